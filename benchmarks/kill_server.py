"""Kills a server in the middle of its jobs, and checks the index and the jobs after each kill.

    python -m benchmarks.kill_server [--kills N] [--seed N]

A client posts jobs of all kinds until the server is killed with SIGKILL at a random moment; the next server of the
same folder goes on with them. After each kill the index is checked as by `benchmarks.kill`. After ten kills a last
server of the folder does all that is left; then each job that a client was given must be done, or failed with a
reason, and the documents must be those that the jobs leave. Prints one JSON object; exit 1 if there is a problem.
"""

import argparse
import contextlib
import json
import random
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import httpx2

from benchmarks.kill import broken_invariants
from lightrag_jsonl import LightRAG
from tests.kit import problems
from tests.server.running import process_serving, wait_for

LIVES = 10  # of one folder
LONGEST = 3.0  # seconds from the first job of a server to its end
PAUSE = 0.2  # seconds between two jobs, at most
PARAGRAPHS = 400  # of a text, at most
IDS = [f"d{number}" for number in range(12)]
JOB_KINDS = ("documents", "documents", "upload", "upload", "delete", "purge", "retry", "edit")

DocumentState: TypeAlias = Literal["present", "absent", "either"]


@dataclass(slots=True)
class Sent:
    """A job that a client was given: its id, its kind, and the documents that it is about."""

    id: str
    kind: str
    documents: list[str]


@dataclass(slots=True)
class Folder:
    """An index, the jobs that clients were given, in order, and the jobs whose answers got lost."""

    path: Path
    sent: list[Sent] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)  # documents of jobs that may be there or not


def text(name: str, chance: random.Random) -> str:
    """A text of a few pages about people who meet."""
    people = [f"{first} {name.title()}son" for first in ("Ada", "Bob", "Cyril", "Dora")]
    return "\n\n".join(
        f"{chance.choice(people)} met {chance.choice(people)} in Town{number}. They founded the "
        f"House of Town{number} and wrote a long letter about the walk by the river."
        for number in range(chance.randrange(5, PARAGRAPHS))
    )


def post_job(client: httpx2.Client, folder: Folder, chance: random.Random) -> None:
    """Post a job of any kind, and note it."""
    kind = chance.choice(JOB_KINDS)
    names = chance.sample(IDS, 1 if kind == "upload" else 3)
    if kind == "documents":
        documents = [{"id": name, "text": text(name, chance)} for name in names]
        request: dict[str, Any] = {"json": {"documents": documents}}
    elif kind == "upload":
        request = {
            "params": {"name": f"{names[0]}.txt", "id": names[0]},
            "content": text(names[0], chance).encode(),
            "headers": {"Content-Type": "application/octet-stream"},
        }
    elif kind in ("delete", "purge"):
        stored = client.get(f"/indexes/{folder.path.name}/documents").json()["items"]
        names = [document["id"] for document in stored if document["id"] in names]
        request = {"json": {"ids": names, "purge": kind == "purge"}}
    elif kind == "edit":
        edit = {"action": "edit", "name": f"Ada {names[0].title()}son", "description": "Read."}
        request = {"json": {**edit, "by": "benchmark"}}
        names = []
    else:
        request = {"json": {}}
        names = []
    path = {"purge": "delete"}.get(kind, kind)
    folder.unsure.update(names)  # until there is an answer
    response = client.post(f"/indexes/{folder.path.name}/{path}", **request)
    if kind in ("delete", "purge") and response.status_code in (400, 404):
        return  # there is nothing to delete, or not any more
    response.raise_for_status()
    folder.unsure.difference_update(names)
    folder.sent.append(Sent(response.json()["id"], kind, names))


def live(folder: Folder, chance: random.Random) -> str:
    """One life of a server; the kind of the job that ran when it was killed."""
    with process_serving(folder.path) as (server, client):
        murder = threading.Timer(chance.uniform(0, LONGEST), server.kill)
        murder.start()
        with contextlib.suppress(httpx2.TransportError):  # killed while a job was posted
            while server.poll() is None:
                post_job(client, folder, chance)
                time.sleep(chance.uniform(0, PAUSE))
        server.wait()
    with contextlib.closing(sqlite3.connect(folder.path / "index.sqlite")) as connection:
        rows = connection.execute("SELECT record FROM jobs WHERE state = 'running'")
        running = [json.loads(record)["kind"] for (record,) in rows]
    return running[0] if running else "none"


def is_shorter(count: int, jobs: list[Any]) -> bool:
    """Whether there are fewer jobs than before."""
    return len(jobs) < count


def check_index(folder: Path) -> list[str]:
    """Everything that is wrong with the index."""
    with contextlib.closing(sqlite3.connect(folder / "index.sqlite")) as connection:
        wrong = broken_invariants(connection)
    messages = [f"{name}: {rows}" for name, rows in wrong.items() if rows]
    return messages + problems(folder)


def finish(folder: Folder) -> tuple[Counter[str], list[str]]:
    """Let a server do all jobs that are left; the final states of the jobs, and what is wrong."""
    path = f"/indexes/{folder.path.name}"
    with process_serving(folder.path) as (_, client):

        def open_jobs() -> list[Any]:
            jobs = client.get(f"{path}/jobs", params={"limit": 200}).json()["items"]
            return [job for job in jobs if job["ended_at"] is None]

        count = len(open_jobs())
        while count:  # one job after another, however many: a busy machine is slow, but goes on
            count = len(wait_for(open_jobs, partial(is_shorter, count)))
        jobs = {sent.id: client.get(f"{path}/jobs/{sent.id}").json() for sent in folder.sent}
        stored = client.get(f"{path}/documents", params={"limit": 200}).json()["items"]
    messages = check_index(folder.path)
    states = Counter[str]()
    for place, sent in enumerate(folder.sent):
        state = jobs[sent.id].get("state", "missing")
        states[state] += 1
        if state == "missing" and not _purged(folder.sent[place:], jobs):
            messages.append(f"job {sent.id} ({sent.kind}) is lost")
        if state == "failed" and not jobs[sent.id]["error"]:
            messages.append(f"job {sent.id} ({sent.kind}) failed without a reason")
        if state not in ("done", "failed", "missing"):
            messages.append(f"job {sent.id} ({sent.kind}) is {state}")
    ids = {document["id"] for document in stored if document["state"] != "pending"}
    for id, state in expected_documents(folder, jobs).items():
        if (state == "present" and id not in ids) or (state == "absent" and id in ids):
            messages.append(f"document {id} should be {state}")
    return states, messages


def _purged(sent: list[Sent], jobs: Mapping[str, Any]) -> bool:
    """Whether one of these jobs was a purge, which removes the ended jobs before it."""
    return any(
        later.kind == "purge" and jobs[later.id].get("state", "missing") != "failed"
        for later in sent
    )


def expected_documents(folder: Folder, jobs: Mapping[str, Any]) -> dict[str, DocumentState]:
    """What the jobs leave of each document; either, if a job failed, is unknown or told nobody."""
    states: dict[str, DocumentState] = dict.fromkeys(IDS, "absent")
    for sent in folder.sent:
        is_done = jobs[sent.id].get("state") == "done"
        outcome: DocumentState = "absent" if sent.kind in ("delete", "purge") else "present"
        for id in sent.documents:
            states[id] = outcome if is_done else "either"
    return states | dict.fromkeys(folder.unsure, "either")


def main() -> None:
    """Kill, check, and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    started = time.monotonic()
    killed = Counter[str]()
    states = Counter[str]()
    messages: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        for first in range(0, options.kills, LIVES):
            folder = Folder(Path(scratch, f"kb{first}"))
            with LightRAG(folder.path) as rag:
                rag.insert("Ann met Bob in Ulm.")
            for number in range(first, min(first + LIVES, options.kills)):
                kind = live(folder, chance)
                killed[kind] += 1
                messages += [
                    f"kill {number}, {kind}: {message}" for message in check_index(folder.path)
                ]
            folder_states, folder_messages = finish(folder)
            print(f"{number + 1} kills, {dict(folder_states)}", file=sys.stderr)
            states += folder_states
            messages += [f"folder {first}: {message}" for message in folder_messages]
    figures = {
        "benchmark": "kill_server",
        "kills": options.kills,
        "running": dict(sorted(killed.items())),
        "jobs": dict(sorted(states.items())),
        "problems": messages,
        "seconds": round(time.monotonic() - started, 1),
    }
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    if messages:
        sys.exit(1)


if __name__ == "__main__":
    main()
