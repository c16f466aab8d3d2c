"""Several servers over one database: jobs of all are done, also when the one that does them is killed."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

import httpx2
import pytest

pytest.importorskip("uvicorn", reason="needs the extra: pip install '.[server]'")

from lightrag_jsonl import LightRAG
from tests.server.running import process_serving, wait_for

Url = Callable[[object], str]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
OCTETS = {"Content-Type": "application/octet-stream"}
UPLOADS = 16
ASKERS = 3


def test_no_upload_is_lost_with_a_killed_server(url: Url) -> None:
    """Both servers accept uploads; one is killed with jobs on its hands, and the other does all of them. Who asks the
    other one meanwhile, without a pause, sees no error.
    """
    address = url("servers")
    index = address.rpartition("=")[2]
    accepted: list[str] = []
    with (
        process_serving(address) as (first, client),
        process_serving(address) as (_, other),
        asking(other, index) as statuses,
    ):
        for number in range(UPLOADS):
            text = "\n\n".join(
                f"Ann{number} met Bob{number} in Town{place}." for place in range(40)
            )
            sender = (client, other)[number % 2]
            response = sender.post(
                f"/indexes/{index}/upload",
                params={"name": f"file-{number}.txt"},
                content=text.encode(),
                headers=OCTETS,
            )
            assert response.status_code == 202, response.text
            accepted.append(response.json()["id"])
        wait_for(lambda: any(job["state"] != "waiting" for job in _jobs(other, index)))
        first.send_signal(signal.SIGKILL)
        first.wait()
        jobs = wait_for(
            lambda: _jobs(other, index),
            lambda jobs: {job["state"] for job in jobs} <= {"done", "failed"},
        )
        assert {job["id"] for job in jobs} == set(accepted)
        assert {(job["state"], job["error"]) for job in jobs} == {("done", "")}
        assert other.get(f"/indexes/{index}").json()["documents"] == {"done": UPLOADS}
        answer = other.post(f"/indexes/{index}/query", json={"question": "Whom did Ann3 meet?"})
        assert answer.status_code == 200, answer.text
    assert len(statuses) > ASKERS and {*statuses} == {"200"}
    with LightRAG(address) as rag:
        assert len(rag.documents()) == UPLOADS


def test_a_job_is_cancelled_by_another_server(url: Url) -> None:
    """What one server accepted, the other one cancels, whichever does it."""
    address = url("cancelling")
    index = address.rpartition("=")[2]
    text = "\n\n".join(f"Ann{n} met Bob{n % 97} in Town{n % 53}." for n in range(20_000))
    with process_serving(address) as (_, client), process_serving(address) as (_, other):
        job = client.post(
            f"/indexes/{index}/upload",
            params={"name": "long.txt"},
            content=text.encode(),
            headers=OCTETS,
        ).json()
        path = f"/indexes/{index}/jobs/{job['id']}"
        wait_for(lambda: other.get(path).json()["state"] == "running")
        for server in (other, client):
            response = server.post(f"{path}/cancel", json={})
            assert response.status_code == 200, response.text
            assert server.get(path).json()["state"] == "cancelled"


@contextlib.contextmanager
def asking(client: httpx2.Client, index: str) -> Iterator[list[str]]:
    """Asks a server in several threads until the end; the statuses of all answers, or the errors."""
    statuses: list[str] = []
    has_ended = threading.Event()

    def ask(number: int) -> None:
        while not has_ended.is_set():
            body = {"question": f"Whom did Ann{number} meet?"}
            try:
                response = client.post(f"/indexes/{index}/query", json=body)
                statuses.append(str(response.status_code))
            except httpx2.HTTPError as error:
                statuses.append(repr(error))

    threads = [threading.Thread(target=ask, args=[number]) for number in range(ASKERS)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        has_ended.set()
        for thread in threads:
            thread.join()


def _jobs(client: object, index: str) -> list[dict[str, str]]:
    jobs = client.get(f"/indexes/{index}/jobs", params={"limit": 100}).json()["items"]  # type: ignore[attr-defined]
    return list(jobs)
