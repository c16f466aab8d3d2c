"""`serve` as a process: its command line, jobs that survive kill -9, and its description."""

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, Phase, given, settings

pytest.importorskip("uvicorn", reason="needs the extra: pip install '.[server]'")

from lightrag_jsonl.server.jobs import Job, JobQueue
from tests.cli.conftest import run
from tests.kit import store_at
from tests.server.running import SECONDS, process_serving, serving, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # servers in processes of their own

NAMES = [f"{first} {last}" for first in ("Ada", "Bob", "Cy") for last in ("Moor", "Vale", "Lund")]
TEXT = "\n\n".join(
    f"{NAMES[n % 9]} met {NAMES[(n + 4) % 9]} in Town{n}. They founded the House of Town{n}."
    for n in range(900)
)


def jobs(client: httpx2.Client) -> Any:
    return client.get("/indexes/kb/jobs").json()["items"]


def test_jobs_survive_a_killed_server(kb: Path) -> None:
    """Killed in the middle of a job, the server does it to its end after the next start."""
    octets = {"Content-Type": "application/octet-stream"}
    with process_serving(kb) as (server, client):
        for name in ("first.txt", "second.txt"):
            text = TEXT.replace("Town", name[:3]).encode()
            client.post(
                "/indexes/kb/upload", params={"name": name}, content=text, headers=octets
            ).raise_for_status()
        wait_for(lambda: any(job["progress"] for job in jobs(client)))
        assert {job["state"] for job in jobs(client)} >= {"waiting"}
        server.send_signal(signal.SIGKILL)
        server.wait()
    with process_serving(kb) as (server, client):
        done = wait_for(
            lambda: jobs(client), lambda all: {one["state"] for one in all} <= {"done", "failed"}
        )
        assert [(one["state"], one["error"]) for one in done] == [("done", "")] * 2
        assert done[1]["attempts"] == 2
        assert client.get("/indexes/kb").json()["documents"] == {"done": 4}


def test_job_whose_process_dies_is_tried_again_and_then_given_up(
    kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that kills its process ends as failed, and does not stop the server or other jobs."""
    fatal = tmp_path / "path" / "sitecustomize.py"
    fatal.parent.mkdir()
    fatal.write_text(
        "import os, sys\n"
        "import lightrag_jsonl.readers.limits as limits\n"
        "plain = limits.decode_text\n"
        "limits.decode_text = lambda data, **details: (\n"
        "    os._exit(9) if b'fatal' in data else plain(data, **details)\n"
        ")\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(fatal.parent))
    with serving(kb) as server:
        names = ("fatal.txt", "good.txt")
        both = [server.upload(name, f"Ada met Bob, said {name}.".encode()) for name in names]
        first, second = map(server.job, both)
    assert (first["state"], first["attempts"]) == ("failed", 3) and "exited" in first["error"]
    assert second["state"] == "done"


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader of tables that takes for ever if one holds "hang", and dies if one holds "kill"."""
    module = tmp_path / "path" / "sitecustomize.py"
    module.parent.mkdir()
    module.write_text(
        "import csv, os\n"
        "plain = csv.reader\n"
        "def reader(lines, **options):\n"
        "    while 'hang' in lines.getvalue():\n"
        "        pass\n"
        "    if 'kill' in lines.getvalue():\n"
        "        os._exit(7)\n"
        "    return plain(lines, **options)\n"
        "csv.reader = reader\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(module.parent))


def test_a_job_that_is_seen_to_be_done_is_not_cancelled(
    kb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though its end is stored slowly: what was said of it stays true."""
    plain_write = JobQueue._write

    async def slow_write(self: JobQueue, change: Any) -> Any:
        await asyncio.sleep(0.2)
        return await plain_write(self, change)

    monkeypatch.setattr(JobQueue, "_write", slow_write)
    with serving(kb) as server:
        job = server.upload("ada.csv", b"Name,Born\nAda,1815")
        path = f"/indexes/kb/jobs/{job['id']}"
        wait_for(lambda: server.get(path)["state"] == "done")
        assert server.post(f"{path}/cancel", {})["state"] == "done"


@pytest.mark.usefixtures("hanging")
def test_a_job_can_be_cancelled(kb: Path) -> None:
    """One that runs, though its file is read for ever, and one that waits; the others are done.

    A job that has ended stays as it is, and nothing of a cancelled one is kept or done again.
    """
    with serving(kb) as server:
        first = server.upload("first.csv", b"hang,b\n1,2")
        second = server.upload("second.csv", b"Name,Born\nAda,1815")
        third = server.upload("third.csv", b"Name,Born\nBob,1820")
        wait_for(lambda: server.get(f"/indexes/kb/jobs/{first['id']}")["state"] == "running")
        for job in (second, first):
            path = f"/indexes/kb/jobs/{job['id']}/cancel"
            assert server.post(path, {})["state"] == "cancelled"
        done = server.job(third)
        assert (done["state"], done["attempts"]) == ("done", 1)
        path = f"/indexes/kb/jobs/{third['id']}/cancel"
        assert server.post(path, {})["state"] == "done"
        server.post("/indexes/kb/jobs/absent/cancel", {}, 404)
        assert "pending" not in server.get("/indexes/kb")["documents"]
    with serving(kb) as server:
        states = [job["state"] for job in server.get("/indexes/kb/jobs")["items"]]
        assert states == ["done", "cancelled", "cancelled"]


@pytest.mark.usefixtures("hanging")
def test_a_job_that_takes_too_long_fails_and_is_not_repeated(kb: Path) -> None:
    """The reason names the limit; the job that follows is done."""
    with serving(kb, limits={"job_seconds": 1.5}) as server:
        job = server.job(server.upload("first.csv", b"hang,b\n1,2"))
        assert job["state"] == "failed" and "--max-job-hours" in job["error"]
        assert job["attempts"] == 1
    with serving(kb) as server:
        assert server.job(server.upload("second.csv", b"Name,Born\nAda,1815"))["state"] == "done"
        assert server.job(job)["attempts"] == 1


@pytest.mark.usefixtures("hanging")
def test_a_job_whose_file_kills_its_reader_fails_once(kb: Path) -> None:
    """The reason names the file, and neither this server nor the next one reads it again."""
    with serving(kb) as server:
        job = server.job(server.upload("first.csv", b"kill,b\n1,2"))
        assert (job["state"], job["attempts"]) == ("failed", 1)
        assert "first.csv cannot be read" in job["error"] and "status 7" in job["error"]
    with serving(kb) as server:
        assert server.get(f"/indexes/kb/jobs/{job['id']}")["attempts"] == 1


def test_a_job_that_brought_down_the_server_is_given_up(kb: Path) -> None:
    """After three starts; a server that was stopped in good order counts none."""
    job = Job(id="a" * 32, kind="retry", created_at=1.0, state="running", attempts=3)
    with contextlib.closing(store_at(kb)) as store, store.transaction() as rows:
        rows.put_job(job.stored())
    with serving(kb) as server:
        assert "killed 3 times" in server.job({"id": job.id})["error"]


@pytest.mark.usefixtures("hanging")
def test_a_server_that_is_stopped_does_not_count_an_attempt(kb: Path) -> None:
    """The job is done after the next start, however often the server is started anew."""
    with serving(kb) as server:
        job = server.upload("first.csv", b"hang,b\n1,2")
        wait_for(lambda: server.get(f"/indexes/kb/jobs/{job['id']}")["state"] == "running")
    with contextlib.closing(store_at(kb)) as store, store.view() as view:
        (row,) = view.open_jobs()
    assert row.id == job["id"] and json.loads(row.record)["attempts"] == 0


@pytest.mark.usefixtures("hanging")
def test_nothing_of_a_killed_server_goes_on(kb: Path) -> None:
    """Neither the process that indexes nor the one that reads a file, however long the file takes."""
    octets = {"Content-Type": "application/octet-stream"}
    with process_serving(kb) as (server, client):
        asked = {"params": {"name": "a.csv"}, "content": b"hang,b\n1,2", "headers": octets}
        client.post("/indexes/kb/upload", **asked).raise_for_status()
        family = wait_for(lambda: descendants(server.pid), lambda seen: len(seen) == 2)
        server.send_signal(signal.SIGKILL)
        server.wait()
        wait_for(lambda: not any(is_running(pid) for pid in family))


def descendants(pid: int) -> list[int]:
    """The ids of the processes that a process has started, and of those that these started."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True)
    parents = {
        int(child): int(parent) for child, parent in map(str.split, listed.stdout.splitlines())
    }
    family = [child for child, parent in parents.items() if parent == pid]
    return family + [child for child, parent in parents.items() if parent in family]


def is_running(pid: int) -> bool:
    """Whether a process has not ended; a zombie has."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return bool(state.stdout.strip()) and not state.stdout.startswith("Z")


def test_token_of_the_environment_is_needed_and_not_logged(kb: Path) -> None:
    """`serve` takes the token from LIGHTRAG_JSONL_TOKEN; its log does not have it. Ctrl-C also ends a
    process that searches: it would keep the log open.
    """
    token = "a-token-that-is-long"
    with process_serving(kb, "--search-processes", 1, token=token) as (server, client):
        bare = httpx2.get(client.base_url.join("/indexes"), trust_env=False)
        assert bare.status_code == 401 and client.get("/indexes").json() == ["kb"]
        client.get("/indexes/other")
        asked = client.post("/indexes/kb/retrieve", json={"question": "What is in the documents?"})
        asked.raise_for_status()
        server.send_signal(signal.SIGINT)
        log, _ = server.communicate(timeout=SECONDS)
    assert b"Uvicorn running" in log and token.encode() not in log


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{kb}", "--host", "0.0.0.0"], "set a token"),
        (["{other}"], "has files, but no index"),
        (["{kb}", "{kb}"], "same name"),
        (["{kb}", "-w", "{kb}"], "same name"),  # -w is read as with other commands
        (["{kb}", "--token-file", "{short}"], "at least 16"),
    ],
)
def test_serve_refuses_what_is_not_safe_or_not_there(
    kb: Path, tmp_path: Path, arguments: list[str], words: str
) -> None:
    """The reason is one line, and no port is opened."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("Ada met Bob.", encoding="utf-8")
    (tmp_path / "short").write_text("x\n", encoding="utf-8")
    places = {name: tmp_path / name for name in ("other", "short")}
    result = run("serve", *(one.format(kb=kb, **places) for one in arguments))
    assert result.exit_code == 1 and words in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_server_that_cannot_listen_makes_no_index(tmp_path: Path, host: str) -> None:
    """A port in use, an address of another machine and a folder of files are told in one line, with status 1."""
    new_folder = tmp_path / "new"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        in_use = run("serve", new_folder, "--host", host, "--port", port)
    other_machine = run(
        "serve", new_folder, "--host", "192.0.2.1", "--token-file", _token_file(tmp_path)
    )
    files = run("serve", new_folder, tmp_path)

    assert f"Error: port {port} is in use: choose another one with --port" in in_use.stderr
    assert "192.0.2.1 is no address of this machine" in other_machine.stderr
    assert "has files, but no index" in files.stderr
    for result in (in_use, other_machine, files):
        assert result.exit_code == 1
        assert len(result.stderr.splitlines()) == 1
    assert not new_folder.exists()


def _token_file(folder: Path) -> Path:
    file = folder / "token"
    file.write_text("a-token-that-is-long", encoding="utf-8")
    return file


def test_every_route_is_described() -> None:
    """The types of each can be said in the words of OpenAPI."""
    from lightrag_jsonl.server.app import ROUTES
    from lightrag_jsonl.server.openapi import describe

    assert describe(ROUTES, "0", ["kb"])["paths"].keys() == {route.path for route in ROUTES}


def test_description_is_true(kb: Path) -> None:
    """What the OpenAPI description allows is answered as it says, and what it forbids is refused."""
    schemathesis = pytest.importorskip("schemathesis", reason="needs the package schemathesis")
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    with serving(kb) as server:
        schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
        operations = [found.ok() for found in schema.get_all_operations()]
        for operation in operations:

            @settings(max_examples=5, phases=[Phase.generate], suppress_health_check=[*HealthCheck])
            @given(case=operation.as_strategy())
            def check(case: Any) -> None:
                case.call_and_validate(excluded_checks=[positive_data_acceptance])

            check()
        paths = server.get("/openapi.json")["paths"]
        assert len(operations) == sum(map(len, paths.values())) - 1 >= 25  # all but itself


def test_several_indexes_are_offered_as_one(kb: Path, tmp_path: Path) -> None:
    """A group answers under its name from all its indexes and sees their changes; it takes no documents."""
    more = tmp_path / "more.txt"
    more.write_text("Pierre Curie taught physics in Paris.", "utf-8")
    assert run("insert", "-w", tmp_path / "lectures", more).exit_code == 0
    groups = ("--group", f"both={kb}", "--group", f"both={tmp_path / 'lectures'}")
    with process_serving(kb, *groups) as (_, client):
        assert client.get("/indexes").json() == ["kb", "both"]
        body = {"question": "What did Pierre Curie teach in Paris?"}
        answer = client.post("/indexes/both/query", json=body).json()
        assert {citation["index"] for citation in answer["citations"]} == {"kb", "lectures"}
        trace = client.get(f"/indexes/both/traces/{answer['trace_id']}").json()
        assert trace["answer"] == answer["text"]
        beginning = client.get("/indexes/both/beginning")
        assert beginning.status_code == 200 and str(tmp_path) not in beginning.text

        upload: dict[str, Any] = {
            "params": {"name": "ada.txt"},
            "content": b"Ada Moor met Bob Vale.",
            "headers": {"Content-Type": "application/octet-stream"},
        }
        refused = client.post("/indexes/both/upload", **upload)
        assert refused.status_code == 400, refused.text
        assert "open one of them alone to change it" in refused.text
        assert str(tmp_path) not in refused.text
        assert client.get("/indexes/both/jobs").json()["items"] == []
        client.post("/indexes/kb/upload", **upload).raise_for_status()
        wait_for(lambda: jobs(client)[0]["state"] == "done")
        found = client.post("/indexes/both/retrieve", json={"question": "Who met Bob Vale?"}).json()
        assert found["chunks"][0]["text"] == "Ada Moor met Bob Vale."


def test_a_group_of_one_index_or_none_is_refused(kb: Path) -> None:
    """A group needs a name and two indexes, each there."""
    for groups, words in (
        ((f"both={kb}",), "needs a second --group both=INDEX"),
        ((str(kb),), "is not NAME=INDEX"),
        ((f"both={kb}", f"both={kb / 'absent'}"), "no index in"),
    ):
        options = [option for group in groups for option in ("--group", group)]
        refused = run("serve", "--no-open", "--port", 0, *options)
        assert refused.exit_code and words in refused.stderr
