"""The jobs of an index, done one after the other by a child process."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import time
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import msgspec

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Json
from lightrag_jsonl.providers.settings import SETUP, Setup
from lightrag_jsonl.server.job_files import Busy, Job, JobContent, JobFiles, JobKind, JobState
from lightrag_jsonl.server.messages import without_folders

ATTEMPTS: Final = 3  # of a job whose process dies; then the job itself is to blame
IDLE_SECONDS: Final = 10.0  # before a process without jobs ends; a new one needs a second to start
JOB_SECONDS: Final = 24 * 3_600.0  # a book takes a day with a model that reads a chunk a minute
MOST_JOBS: Final = 1_000  # that wait
MOST_BYTES: Final = 1_000 << 20  # of all jobs, with their contents and reports
LONGEST_LINE: Final = 1 << 22  # bytes of a message; the lists in a report are cut far below
LONGEST_ERROR: Final = 4_000  # characters
QUEUE_SECONDS: Final = 30  # after which a client may ask for a place in the queue again
JOB_TOO_LONG: Final = (
    "the job took more than {hours:g} hours (`serve --max-job-hours`). Everything indexed until then "
    "stays, and a retry goes on with the rest"
)
TOKEN_VARIABLE: Final = "LIGHTRAG_JSONL_TOKEN"  # holds the server's token, a secret

log = logging.getLogger(__name__)


class WorkerMessage(msgspec.Struct):
    """A message of the child process about a job; a report or an error ends the job.

    `locked` says that the job waits, since another process writes to the index.
    """

    progress: dict[str, Any] = {}
    report: dict[str, Any] = {}
    error: str = ""
    locked: str = ""


class JobQueue:
    """The jobs of an index, done in the order of their arrival.

    Open jobs of a stopped or killed server are done after the next start. A job fails after
    `seconds`, not counting the time for which another process writes to the index. `most_jobs` may
    wait; `most_bytes` limit the files of all jobs. Models of the `setup` replace those that the index
    remembers. Raises as `JobFiles`.
    """

    def __init__(
        self,
        index_folder: Path,
        *,
        seconds: float = JOB_SECONDS,
        most_jobs: int = MOST_JOBS,
        most_bytes: int = MOST_BYTES,
        setup: Setup | None = None,
    ) -> None:
        self._seconds = seconds
        self._most_jobs = most_jobs
        self._child: asyncio.subprocess.Process | None = None
        self._current: Job | None = None  # the job of the child process
        self._index_folder = index_folder
        self._setup = setup or Setup()
        self._files = JobFiles(index_folder, most_bytes)
        for job in self.waiting:
            if job.attempts >= ATTEMPTS:
                self._end(job, error=f"the server was killed {job.attempts} times during this job")
        self._wake = asyncio.Event()
        self._wake.set()

    def newest(self, offset: int = 0, limit: int | None = None) -> list[Job]:
        """The jobs, newest first, without the first `offset` and at most `limit`."""
        return self._files.newest(offset, limit)

    def __len__(self) -> int:
        return len(self._files)

    def states(self) -> Counter[str]:
        """The number of jobs in each state."""
        return self._files.states()

    def get(self, id: str) -> Job:
        """The job with an id; `NotFoundError` for an unknown id."""
        return self._files.get(id)

    @property
    def waiting(self) -> list[Job]:
        """The jobs that have not ended, in the order of their turns."""
        return list(self._files.open_jobs.values())

    def check_room(self) -> None:
        """`Busy` while too many jobs wait."""
        count = len(self._files.open_jobs)
        if count >= self._most_jobs:
            raise Busy(f"{count} jobs are queued: try again later", QUEUE_SECONDS)

    def new_content(self) -> AbstractContextManager[JobContent]:
        """A new file for the content of a job; deleted unless a job is made of it."""
        return self._files.new_content()

    def add(self, kind: JobKind, details: dict[str, Any], content: JobContent | None = None) -> Job:
        """Add a job, with its content; `Busy` if there is no room for it."""
        self.check_room()
        job = self._files.add(kind, details, content)
        self._wake.set()
        return job

    def cancel(self, id: str) -> Job:
        """End a job that waits or runs; the documents it has indexed stay. `NotFoundError` for an unknown id."""
        job = self.get(id)
        if job is self._current and self._child is not None:
            _kill(self._child)
        if not job.ended:
            self._end(job, state="cancelled")
        return job

    def retry(self, id: str) -> Job:
        """Let a failed job wait again, with its content.

        `ConfigError` for a job that has not failed, or whose content was deleted to make room;
        `NotFoundError` for an unknown id.
        """
        job = self.get(id)
        if job.state != "failed":
            raise ConfigError(f"only a failed job can be tried again; this job is {job.state}")
        if job.size and not self._files.content(id).exists():
            raise ConfigError("the content of this job was deleted to make room: send it again")
        self.check_room()
        job.state = "waiting"
        job.attempts = 0
        job.ended_at = None
        job.error = ""
        job.progress = {}
        job.report = {}
        self._files.reopen(job)
        self._wake.set()
        return job

    def close(self) -> None:
        """Let another server have the jobs."""
        self._files.close()

    async def run(self) -> None:
        """Do the jobs as they come, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while waiting := self.waiting:
                try:
                    await self._run_child()
                except (OSError, ValueError) as error:  # no process, or it writes no messages
                    log.exception("a job could not be done")
                    self._end(waiting[0], error=f"the indexing process failed: {error}")

    async def _run_child(self) -> None:
        """Do the jobs in a new process until none comes for a while; returns early if the process dies."""
        environment = {name: text for name, text in os.environ.items() if name != TOKEN_VARIABLE}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "lightrag_jsonl.server.worker",
            str(self._index_folder),
            _models_as_json(self._setup),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE,
            env=environment,
            start_new_session=True,
        )
        assert child.stdin is not None and child.stdout is not None
        self._child = child
        try:
            while await self._has_next_job() and child.returncode is None:
                job = self._current = self.waiting[0]
                job.state = "running"
                job.attempts += 1
                self._files.save(job)
                with contextlib.suppress(ConnectionError):  # the process died; `_follow` notices
                    child.stdin.write(msgspec.json.encode(job) + b"\n")
                    await child.stdin.drain()
                if not await self._follow(job, child.stdout):
                    status = await child.wait()
                    if not job.ended and job.attempts >= ATTEMPTS:
                        self._end(job, error=f"the indexing process exited (status {status})")
                    return
        except asyncio.CancelledError:  # the server ends, which is no failed attempt
            if self._current is not None and not self._current.ended:
                self._current.attempts -= 1
                self._files.save(self._current)
            raise
        finally:
            self._child = None
            self._current = None
            if child.returncode is None:
                _kill(child)
            await child.wait()

    async def _has_next_job(self) -> bool:
        """Whether a job waits, or comes within `IDLE_SECONDS`."""
        if not self.waiting:
            self._current = None
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), IDLE_SECONDS)
        return bool(self.waiting)

    async def _follow(self, job: Job, messages: asyncio.StreamReader) -> bool:
        """Note the messages about a job; returns whether the process can do another job."""
        clock = asyncio.get_running_loop().time
        try:
            async with asyncio.timeout(self._seconds) as deadline:
                while line := await messages.readline():
                    if job.ended:  # by `cancel`
                        return False
                    message = msgspec.json.decode(line, type=WorkerMessage)
                    self._note(job, message)
                    if job.ended:
                        return True
                    if message.locked:
                        deadline.reschedule(clock() + self._seconds)
        except TimeoutError:
            self._end(job, error=JOB_TOO_LONG.format(hours=self._seconds / 3_600))
            if self._child is not None:
                _kill(self._child)
        return False

    def _note(self, job: Job, message: WorkerMessage) -> None:
        job.state = "waiting" if message.locked else "running"
        job.error = without_folders(message.locked, self._index_folder)
        job.progress = message.progress or job.progress
        if message.report or message.error:
            self._end(job, message.report, message.error)

    def _end(
        self,
        job: Job,
        report: dict[str, Json] | None = None,
        error: str = "",
        *,
        state: JobState | None = None,
    ) -> None:
        job.report = without_folders(report or {}, self._index_folder)
        job.error = without_folders(error, self._index_folder)[:LONGEST_ERROR]
        job.state = state or ("failed" if error else "done")
        job.ended_at = time.time()
        if job.state == "done" and job.details.get("purge"):
            job.details = {"purge": True, "documents": len(job.details["ids"])}
        self._files.save(job)


def _models_as_json(setup: Setup) -> str:
    """The names and addresses of models in a setup, for the child process."""
    names = [name for name in SETUP if name not in ("working_dir", "prompts")]
    values = {name: getattr(setup, name) for name in names}
    return json.dumps({name: value for name, value in values.items() if value})


def _kill(child: asyncio.subprocess.Process) -> None:
    """End a process and its children, which does no harm to the index."""
    with contextlib.suppress(ProcessLookupError):
        if sys.platform == "win32":
            child.kill()  # its children end when their pipes are closed
        else:
            os.killpg(child.pid, signal.SIGKILL)  # the child leads a session of its own
