"""Jobs: nothing accepted is lost; what they wait for, the room they take, what a purge leaves of them."""

import asyncio
import contextlib
import json
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra: pip install '.[server]'")

from lightrag_jsonl import ConfigError, Document, LightRAG
from lightrag_jsonl.server import jobs
from lightrag_jsonl.server.posted_documents import posted_documents
from lightrag_jsonl.server.worker import LIST_BYTES, shortened_report
from tests.cli.conftest import run
from tests.kit import store_at
from tests.server.running import SECONDS, Running, serving, wait_for

SECRET = "Zanzibarium"


@pytest.fixture
def impatient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that say after half a second, not after ten, that another one writes."""
    module = tmp_path / "path" / "sitecustomize.py"
    module.parent.mkdir()
    module.write_text(
        "from lightrag_jsonl.storage.sqlite import database\n"
        "patient = database.FileLock\n"
        "database.FileLock = lambda path, timeout, **options: patient(\n"
        "    path, min(timeout, 0.5), **options\n"
        ")\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(module.parent))


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_a_job_waits_for_another_writer(kb: Path) -> None:
    """While another process writes to the index, the job says so; then it is done, at one attempt."""
    with contextlib.closing(store_at(kb)) as store, serving(kb) as server:
        with store.writer_lock(10):
            job = server.upload("a.txt", "Ada met Bob in Town. 艾达在城里遇见鲍勃。".encode())
            path = f"/indexes/kb/jobs/{job['id']}"
            waiting = wait_for(lambda: server.get(path), lambda seen: seen["error"])
            assert waiting["state"] == "waiting" and "kb is being written to" in waiting["error"]
            assert str(kb) not in waiting["error"]
        done = server.job(job)
        assert (done["state"], done["error"], done["attempts"]) == ("done", "", 1)


@pytest.mark.slow
def test_a_process_does_the_jobs_that_follow_soon_and_then_ends(
    kb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that comes after the last has ended, too; without any for a while, no process is left."""
    monkeypatch.setattr(jobs, "IDLE_SECONDS", SECONDS)
    with serving(kb) as server:
        queue = server.indexes.get("kb").jobs
        first = server.job(server.upload("a.txt", b"Ada met Bob."))
        child = queue._child
        monkeypatch.setattr(jobs, "IDLE_SECONDS", 0.1)
        second = server.job(server.upload("b.txt", b"Bob met Cy."))
        assert first["state"] == second["state"] == "done"
        assert child is not None
        assert f"process {child.pid} " in (kb / "writer.lock").read_text(encoding="utf-8")
        wait_for(lambda: child.returncode is not None)


@pytest.mark.slow
def test_a_failed_job_is_tried_again_with_its_content(kb: Path) -> None:
    """Also after a restart of the server; a job that is done or cancelled is not tried again."""
    with serving(kb) as server:
        job = server.job(server.upload("a.bin", b"\0\1\2"))
        assert job["state"] == "failed"
    with serving(kb) as server:
        again = server.post(f"/indexes/kb/jobs/{job['id']}/retry", {})
        assert again["state"] in ("waiting", "running") and again["id"] == job["id"]
        failed = server.job(job)
        assert failed["state"] == "failed" and "a.bin" in failed["error"]
        assert failed["ended_at"] > job["ended_at"]
        (listed,) = server.get("/indexes/kb/documents", state="failed")["items"]
        assert server.get("/indexes/kb/text", id=listed["id"])["document"] == listed
        good = server.job(server.upload("b.txt", b"Ada met Bob."))
        message = server.post(f"/indexes/kb/jobs/{good['id']}/retry", {}, 400)["error"]["message"]
        assert "done" in message
        server.post("/indexes/kb/jobs/absent/retry", {}, 404)


@pytest.mark.slow
def test_all_jobs_share_their_room(kb: Path) -> None:
    """What was sent for jobs that are not done: beyond it a client is asked to come again, until a
    failed job is given up.
    """
    with serving(kb, limits={"jobs_bytes": 10_000}) as server:
        failed = server.job(server.upload("a.bin", b"\0" * 6_000))
        assert failed["state"] == "failed"
        message = server.upload("b.txt", b"x" * 6_000, 429)["error"]["message"]
        assert "try" in message
        assert server.post(f"/indexes/kb/jobs/{failed['id']}/cancel", {})["state"] == "cancelled"
        done = server.job(server.upload("b.txt", b"Ada met Bob. " * 460))
        assert done["state"] == "done"
        assert server.job(server.upload("c.txt", b"Ada met Cy. " * 500))["state"] == "done"


@pytest.mark.slow
def test_nothing_that_was_accepted_is_lost_beside_purges(kb: Path) -> None:
    """Each document is in the index, whatever is purged by other processes while it arrives, and each
    job says so.
    """

    def purge(number: int) -> None:
        with LightRAG(kb, options={"lock_timeout": SECONDS}) as rag:
            rag.insert(Document(f"Nobody {number} stays.", id=f"gone-{number}"))
            rag.delete(f"gone-{number}", purge=True)

    with serving(kb) as server:
        accepted: dict[str, str] = {}
        with ThreadPoolExecutor(1) as purging:
            purges = [purging.submit(purge, number) for number in range(5)]
            while not all(done.done() for done in purges):
                name = f"u{len(accepted)}"
                job = server.upload(f"{name}.txt", f"Ada met Bob in {name}.".encode(), id=name)
                accepted[name] = job["id"]
            for done in purges:
                done.result()
        wait_for(lambda: not {"waiting", "running"} & {*server_states(server)})
        stored = server.get("/indexes/kb/documents", limit=500)["items"]
    names = {document["id"] for document in stored if document["state"] == "done"}
    assert names >= accepted.keys() and len(accepted) > 5


def server_states(server: Running) -> list[str]:
    return [job["state"] for job in server.get("/indexes/kb/jobs", limit=500)["items"]]


@pytest.mark.slow
def test_what_waits_is_indexed_without_a_server(kb: Path) -> None:
    """`resume` reads uploads and documents that a server accepted, and did not come to."""
    table = b"Name,Born\nAda,1815"
    values = [{"text": "x met y.", "id": "b"}]
    with (
        contextlib.closing(store_at(kb)) as store,
        store.writer_lock(10),
        serving(kb) as server,
    ):
        server.upload("a.csv", table, id="a", title="T")
        server.post("/indexes/kb/documents", {"documents": values}, 202)
        listed = server.get("/indexes/kb/documents", state="pending")["items"]
        assert {document["source"] for document in listed} == {"a.csv", None}
    assert run("resume", "-w", kb).exit_code == 0
    with LightRAG(kb) as rag:
        titles = {document.id: document.title for document in rag.documents()}
    assert titles["a"] == "T" and "b" in titles


@pytest.mark.slow
def test_a_deleted_document_comes_back_only_if_it_is_sent_again(kb: Path) -> None:
    """A deletion takes the versions that came before it, also those that wait; later ones stay."""
    body = {"documents": [{"text": "Ada met Bob.", "id": "a"}]}
    with serving(kb) as server, contextlib.closing(store_at(kb)) as store:
        with store.writer_lock(10):
            server.post("/indexes/kb/documents", body, 202)
            first = server.post("/indexes/kb/documents", body, 202)
            deletion = server.post("/indexes/kb/delete", {"ids": ["a"]}, 202)
        assert server.job(deletion)["state"] == server.job(first)["state"] == "done"
        assert "a" not in document_ids(server)
        with store.writer_lock(10):
            server.post("/indexes/kb/documents", body, 202)
            server.post("/indexes/kb/delete", {"ids": ["a"], "purge": True}, 202)
            last = server.post("/indexes/kb/documents", body, 202)
        assert server.job(last)["report"]["documents"] == ["a"]
        assert "a" in document_ids(server)


def document_ids(server: Running) -> set[str]:
    return {document["id"] for document in server.get("/indexes/kb/documents")["items"]}


@pytest.mark.slow
def test_a_purge_leaves_no_name_in_the_jobs(kb: Path) -> None:
    """Neither the name of a file, a title, an id nor a content, even while the server runs."""
    with serving(kb) as server:
        text = f"Ada found {SECRET} in Town."
        done = server.job(server.upload(f"{SECRET}.txt", text.encode(), id=SECRET, title=SECRET))
        assert done["report"]["documents"] == [SECRET]
        failed = server.job(server.upload(f"{SECRET}.docx", SECRET.encode()))
        asked = {"ids": [SECRET], "purge": True}
        purged = server.job(server.post("/indexes/kb/delete", asked, 202))
        assert purged["state"] == "done" and purged["about"] == {"purge": True, "documents": 1}
        listed = [
            job for job in server.get("/indexes/kb/jobs")["items"] if job["id"] != failed["id"]
        ]
        assert listed and SECRET not in json.dumps(listed)
        waiting = server.get(f"/indexes/kb/jobs/{failed['id']}")
        assert waiting["state"] == "failed"  # it can be tried again, or given up
        server.post(f"/indexes/kb/jobs/{failed['id']}/cancel", {})
        server.job(server.post("/indexes/kb/delete", {"ids": ["curie"], "purge": True}, 202))
        assert SECRET not in json.dumps(server.get("/indexes/kb/jobs"))
    for path in kb.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path


def test_long_lists_of_a_report_are_cut(kb: Path) -> None:
    """A report is small whatever a job met, and says how much it left out."""
    report = {"documents": [f"文档{n}" for n in range(100_000)], "chunks": 3, "failures": ()}
    shortened = shortened_report(report)
    kept = len(shortened["documents"])
    assert 1_000 < kept < 10_000 and shortened["left_out"] == {"documents": 100_000 - kept}
    assert len(json.dumps(shortened, ensure_ascii=False).encode()) < LIST_BYTES * 1.2
    assert shortened_report({"documents": ["a"]}) == {"documents": ["a"]}


@pytest.mark.slow
def test_a_file_of_bad_lines_has_a_short_report(kb: Path) -> None:
    """The lines that are no documents are named at first, then counted."""
    with serving(kb) as server:
        job = server.job(server.upload("a.jsonl", b"{}\n" * 30_000 + b'"Ada met Bob."'))
    assert job["state"] == "done" and len(job["report"]["documents"]) == 1
    listed = job["report"]["failures"]
    left_out = job["report"].get("left_out", {}).get("failures", 0)
    assert len(listed) + left_out == 1_001 and "line 1:" in listed[0]["reason"]


@pytest.mark.slow
@pytest.mark.parametrize("element", ["{}", '{"text": ""}', "[]", "1"])
def test_posted_documents_need_memory_like_their_body(element: str) -> None:
    """Objects that are small in JSON and large in memory are read one after the other."""
    body = f'{{"documents": [{",".join([element] * 10_000)}]}}'.encode()
    tracemalloc.start()
    try:
        with contextlib.suppress(ConfigError):
            for _ in posted_documents(body):
                pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(body) + 100_000


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "at least one document"),
        (b'{"documents": []}', "at least one document"),
        (b'{"documents": [ ] }', "at least one document"),
        (b'{"documents": [{"text": "a"},]}', "Expecting value"),
        (b'{"documents": {}}', "at least one document"),
        (b'{"documents": [{"text": "a"}]', "there is more"),
        (b'{"documents": [{"text": "a"}], "x": 1}', "there is more"),
        (b'{"documents": [{"text": "a"} {"text": "b"}]}', "expected ,"),
        (b'{"documents": [{"text": "a"}, {"txt": "b"}]}', r"documents\[1\]"),
        (b'{"documents": [{"text": "a", "x": NaN}]}', "NaN"),
        (b'{"documents": ["\xff"]}', "UTF-8"),
        (b'{"documents": [' + b"[" * 100_000, "invalid JSON"),
    ],
)
def test_a_wrong_body_is_refused_with_the_place(body: bytes, words: str) -> None:
    """Whatever is wrong with it, the message says what and where."""
    with pytest.raises(ConfigError, match=words):
        list(posted_documents(body))


def test_posted_documents_are_read_with_all_fields() -> None:
    """Texts alone, objects with metadata, any script, and white space between."""
    values = ["水 １２ 😀", {"text": "a", "id": "i", "year": 1}]
    texts, objects = posted_documents(json.dumps({"documents": values}, indent=2).encode())
    assert texts.text == "水 １２ 😀"
    assert (objects.id, objects.metadata) == ("i", {"year": 1})


@pytest.mark.slow
@pytest.mark.parametrize("body", [2_000, 1_000_000])
def test_a_body_is_taken_whole_or_not_at_all(kb: Path, body: int) -> None:
    """The answer names the wrong document at once, also in a body above the limit of other bodies."""
    values = [{"text": "Ada met Bob. " * 200}, {"text": "x", "id": "\u200b"}]
    with serving(kb, limits={"body": body}) as server:
        error = server.post("/indexes/kb/documents", {"documents": values}, 400)["error"]
        assert "documents[1]" in error["message"]
        assert server.get("/indexes/kb")["documents"] == {"done": 2}
        assert server.get("/indexes/kb/jobs")["total"] == 0
        good = server.post("/indexes/kb/documents", {"documents": values[:1]}, 202)
        assert good["about"] == {"documents": 1} and server.job(good)["state"] == "done"


@pytest.mark.slow  # starts a process
async def test_a_server_that_lost_the_right_to_do_jobs_does_no_further_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its process for jobs still runs: another server does them by now."""
    with LightRAG(tmp_path, llm="none") as rag:
        rag.insert("Ada met Bob in Rome.")
    looks: list[int] = []
    done: list[str] = []
    with contextlib.closing(store_at(tmp_path)) as store:
        queue = jobs.JobQueue(store, tmp_path)
        monkeypatch.setattr(type(store), "SHARES_JOBS", True)

        @contextlib.contextmanager
        def lost_after_the_first_job() -> Iterator[Callable[[], bool]]:
            def is_held() -> bool:
                looks.append(len(looks))
                return not done

            yield is_held

        monkeypatch.setattr(store, "jobs_lock", lost_after_the_first_job)
        running = asyncio.create_task(queue.run())
        first = await queue.add("delete", {"ids": ["unknown"]})
        while (await queue.get(first.id)).state != "done":
            await asyncio.sleep(0.05)
        done.append(first.id)
        second = await queue.add("delete", {"ids": ["unknown too"]})
        seen = len(looks)
        while len(looks) < seen + 3:
            await asyncio.sleep(0.05)
        assert (await queue.get(second.id)).state == "waiting"
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
