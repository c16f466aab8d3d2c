"""Jobs: what they wait for, what they keep, the room that they take, and what a purge leaves of them."""

import contextlib
import json
import tracemalloc
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra: pip install 'lightrag-jsonl[server]'")

from lightrag_jsonl import ConfigError
from lightrag_jsonl.core.address import as_address
from lightrag_jsonl.rag.job_records import purge_ended_jobs
from lightrag_jsonl.server import jobs
from lightrag_jsonl.server.indexes import ServerLimits
from lightrag_jsonl.server.job_files import Busy
from lightrag_jsonl.server.jobs import JobQueue
from lightrag_jsonl.server.posted_documents import posted_documents
from lightrag_jsonl.server.worker import LIST_BYTES, shortened_report
from lightrag_jsonl.storage.opening import open_store
from tests.cli.conftest import run
from tests.server.running import SECONDS, serving, wait_for

SECRET = "Zanzibarium"


def queue_with_content(kb: Path, size: int, **limits: int) -> JobQueue:
    """A queue with one failed job that has this much content."""
    queue = JobQueue(kb, **limits)
    with queue.new_content() as content:
        content.write(b"x" * size)
        queue.add("upload", {"name": "a.txt"}, content)
    queue._end(queue.waiting[0], error="no good")
    return queue


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
    with contextlib.closing(open_store(as_address(kb))) as store, serving(kb) as server:
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
        good = server.job(server.upload("b.txt", b"Ada met Bob."))
        message = server.post(f"/indexes/kb/jobs/{good['id']}/retry", {}, 400)["error"]["message"]
        assert "done" in message
        server.post("/indexes/kb/jobs/absent/retry", {}, 404)


def test_all_jobs_share_their_room(kb: Path) -> None:
    """Contents and records together; ended jobs make room, open ones do not, nor does a broken upload
    keep its room.
    """
    queue = queue_with_content(kb, 6_000, most_bytes=10_000)
    (failed,) = queue.newest()
    with pytest.raises(Busy), queue.new_content() as content:
        content.write(b"x" * 9_000)  # the failed job makes room for it
        content.write(b"x" * 2_000)
    assert queue.newest() == [] and not [*(kb / "jobs").glob("*.data")]
    with pytest.raises(KeyError):
        queue.retry(failed.id)
    with queue.new_content() as content:
        content.write(b"x" * 9_000)
        open_job = queue.add("upload", {"name": "b.txt"}, content)
    with pytest.raises(Busy), queue.new_content() as content:
        content.write(b"x" * 2_000)
    assert queue.waiting == [open_job]
    queue.close()


def test_a_failed_job_without_content_says_what_to_do(kb: Path) -> None:
    """Its file is gone, for example with a copied index: it must be sent again."""
    queue = queue_with_content(kb, 10)
    (job,) = queue.newest()
    (kb / "jobs" / f"{job.id}.data").unlink()
    with pytest.raises(ConfigError, match="send it again"):
        queue.retry(job.id)
    queue.close()


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
        assert SECRET not in json.dumps(server.get("/indexes/kb/jobs"))
        server.post(f"/indexes/kb/jobs/{failed['id']}/retry", {}, 404)
    for path in kb.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path


def test_a_purge_on_the_command_line_forgets_ended_jobs(kb: Path) -> None:
    """A job that waits stays with its content: it is not indexed yet."""
    queue = queue_with_content(kb, 10)
    with queue.new_content() as content:
        content.write(b"new")
        waiting = queue.add("upload", {"name": "new.txt"}, content)
    (kb / "jobs" / f"{'a' * 32}.refused").write_text(SECRET, encoding="utf-8")
    queue.close()
    assert run("delete", "-w", kb, "curie", "--purge").exit_code == 0
    left = {path.name for path in (kb / "jobs").iterdir()} - {"lock"}
    assert left == {f"{waiting.id}.json", f"{waiting.id}.data"}


def test_a_purge_follows_no_link(kb: Path, tmp_path: Path) -> None:
    """What a link in place of the folder or of a job leads to stays."""
    outside = tmp_path / "outside"
    outside.mkdir()
    precious = outside / f"{'b' * 32}.json"
    precious.write_text('{"state": "done"}', encoding="utf-8")
    (kb / "jobs").symlink_to(outside)
    purge_ended_jobs(kb)
    (kb / "jobs").unlink()
    (kb / "jobs").mkdir()
    (kb / "jobs" / precious.name).symlink_to(precious)
    purge_ended_jobs(kb)
    assert precious.read_text(encoding="utf-8") == '{"state": "done"}'


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
def test_posted_documents_need_memory_like_their_file(tmp_path: Path, element: str) -> None:
    """Objects that are small in JSON and large in memory are read one after the other."""
    body = tmp_path / "body"
    body.write_text(f'{{"documents": [{",".join([element] * 10_000)}]}}', encoding="utf-8")
    tracemalloc.start()
    try:
        with contextlib.suppress(ConfigError):
            for _ in posted_documents(body):
                pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * body.stat().st_size + 100_000


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "at least one document"),
        (b'{"documents": []}', "Expecting value"),
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
def test_a_wrong_body_is_refused_with_the_place(tmp_path: Path, body: bytes, words: str) -> None:
    """Whatever is wrong with it, the message says what and where."""
    path = tmp_path / "body"
    path.write_bytes(body)
    with pytest.raises(ConfigError, match=words):
        list(posted_documents(path))


def test_posted_documents_are_read_with_all_fields(tmp_path: Path) -> None:
    """Texts alone, objects with metadata, any script, and white space between."""
    path = tmp_path / "body"
    values = ["水 １２ 😀", {"text": "a", "id": "i", "year": 1}]
    path.write_text(json.dumps({"documents": values}, indent=2), encoding="utf-8")
    texts, objects = posted_documents(path)
    assert texts.text == "水 １２ 😀"
    assert (objects.id, objects.metadata) == ("i", {"year": 1})


@pytest.mark.slow
def test_a_large_body_is_checked_by_its_job(kb: Path) -> None:
    """Above the limit of other bodies, a wrong document fails the job, and nothing is indexed; below,
    the answer says so at once.
    """
    values = [{"text": "Ada met Bob. " * 200}, {"txt": "x"}]
    with serving(kb, limits=ServerLimits(body=2_000)) as server:
        job = server.job(server.post("/indexes/kb/documents", {"documents": values}, 202))
        assert job["state"] == "failed" and "documents[1]" in job["error"]
        assert server.get("/indexes/kb")["documents"] == {"done": 2}
        error = server.post("/indexes/kb/documents", {"documents": values[1:]}, 400)["error"]
        assert "documents[0]" in error["message"]
        assert server.get("/indexes/kb/jobs")["total"] == 1
