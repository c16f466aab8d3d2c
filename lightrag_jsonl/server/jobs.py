"""The jobs that change an index: kept in its folder, and done one by one in a child process."""

import asyncio
import contextlib
import logging
import os
import re
import signal
import stat
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
from filelock import FileLock, Timeout

from lightrag_jsonl.core.errors import LockedError, NotFoundError, StorageError
from lightrag_jsonl.core.types import Json

Kind: TypeAlias = Literal["upload", "insert", "delete", "retry"]
State: TypeAlias = Literal["waiting", "running", "done", "failed", "cancelled"]

ATTEMPTS: Final = 3  # of a job whose process dies; then the job itself is to blame
JOB_SECONDS: Final = 24 * 3_600.0  # a book takes a day with a model that reads a chunk a minute
KEPT: Final = 1_000  # ended jobs that are remembered
LONGEST_LINE: Final = 1 << 26  # bytes of a report, which lists every failure
TOO_LONG: Final = (
    "the job took more than {hours:g} hours (`serve --max-job-hours`). What it has indexed stays, and"
    " a retry goes on with the rest"
)
TOKEN: Final = "LIGHTRAG_JSONL_TOKEN"  # the variable with the server's token
JOB_ID: Final = re.compile("[0-9a-f]{32}")  # as `uuid4().hex` makes them

log = logging.getLogger(__name__)


class Job(msgspec.Struct):
    """One change of an index. Times are in seconds since 1970, `size` in bytes.

    `about` is what the client said: the name and other fields of an upload, the ids to delete.
    """

    id: str
    kind: Kind
    created_at: float
    about: dict[str, Any] = {}
    size: int = 0
    state: State = "waiting"
    attempts: int = 0
    ended_at: float | None = None
    progress: dict[str, Any] = {}
    report: dict[str, Any] = {}
    error: str = ""

    @property
    def ended(self) -> bool:
        """Whether nothing remains to be done."""
        return self.state in ("done", "failed", "cancelled")


class Message(msgspec.Struct):
    """What the child process says about the job in hand; with a report or an error it has ended."""

    progress: dict[str, Any] = {}
    report: dict[str, Any] = {}
    error: str = ""


class JobQueue:
    """The jobs of one index, oldest first.

    A job is a file, and another with its content; both have a name made here. Jobs that were not
    ended when the server was, are done after its next start. A job ends as failed after `seconds`.
    Whoever prepared the folder may have written anything into it: a file that is no job under its own
    name, or a link, is set aside. `LockedError` if another server has the folder, `StorageError` if a
    link leads out of it.
    """

    def __init__(self, index_folder: Path, *, seconds: float = JOB_SECONDS) -> None:
        self._seconds = seconds
        self._child: asyncio.subprocess.Process | None = None  # the process of the running job
        self._index_folder = index_folder
        self._folder = index_folder / "jobs"
        lock_file = self._folder / "lock"
        for path in (self._folder, lock_file):
            _refuse_link(path)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._lock = FileLock(lock_file, thread_local=False)
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            words = f"another server has the jobs of {index_folder}: stop it first"
            raise LockedError(words, path=index_folder) from error
        jobs = sorted(_load_jobs(self._folder), key=lambda job: (job.created_at, job.id))
        self._jobs = {job.id: job for job in jobs}
        for content in self._folder.glob("*.data"):  # uploads that broke off
            if content.stem not in self._jobs and not content.is_dir():
                content.unlink()
        for job in self.waiting:
            if job.attempts >= ATTEMPTS:
                self._end(job, error=f"the server was killed {job.attempts} times during this job")
        self._wake = asyncio.Event()
        self._wake.set()

    def newest(self) -> list[Job]:
        """All jobs, newest first."""
        return [*reversed(self._jobs.values())]

    def get(self, id: str) -> Job:
        """One job; `NotFoundError` if there is none."""
        if id not in self._jobs:
            raise NotFoundError(f"no such job: {id}")
        return self._jobs[id]

    @property
    def waiting(self) -> list[Job]:
        """Those that have not ended, in the order in which they will be done."""
        return [job for job in self._jobs.values() if not job.ended]

    @contextlib.contextmanager
    def content_file(self) -> Iterator[Path]:
        """A new file for the content of a job; it is deleted if no job is made of it."""
        path = self._folder / f"{uuid.uuid4().hex}.data"
        try:
            yield path
        finally:
            if path.stem not in self._jobs:
                path.unlink(missing_ok=True)

    def add(self, kind: Kind, about: dict[str, Any], content: Path | None = None) -> Job:
        """Add a job, with its content in a file made by `content_file`; it is on the disk then."""
        id = uuid.uuid4().hex if content is None else content.stem
        size = 0 if content is None else content.stat().st_size
        job = Job(id, kind, time.time(), about, size)
        self._save(job)
        self._jobs[id] = job
        self._wake.set()
        return job

    def cancel(self, id: str) -> Job:
        """End a job that waits or runs; what it has indexed stays. `NotFoundError` if there is none."""
        job = self.get(id)
        if job.state == "running" and self._child is not None:
            _kill(self._child)
        if not job.ended:
            self._end(job, state="cancelled")
        return job

    def close(self) -> None:
        """Let another server have the jobs."""
        self._lock.release()

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
        """Do what waits in a new process, which ends with this one; returns early if it dies."""
        inherited = {name: text for name, text in os.environ.items() if name != TOKEN}
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "lightrag_jsonl.server.worker", str(self._index_folder)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE,
            env={**inherited, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
        assert child.stdin is not None and child.stdout is not None
        self._child = child
        job: Job | None = None
        try:
            while child.returncode is None and (waiting := self.waiting):
                job = waiting[0]
                job.state, job.attempts = "running", job.attempts + 1
                self._save(job)
                with contextlib.suppress(ConnectionError):  # it died; the loop below sees that
                    child.stdin.write(msgspec.json.encode(job) + b"\n")
                    await child.stdin.drain()
                if not await self._follow(job, child.stdout):
                    status = await child.wait()
                    if not job.ended and job.attempts >= ATTEMPTS:
                        self._end(job, error=f"the indexing process exited (status {status})")
                    return
        except asyncio.CancelledError:  # the server ends; that is not the fault of the job
            if job is not None and not job.ended:
                job.attempts -= 1
                self._save(job)
            raise
        finally:
            self._child = None
            if child.returncode is None:
                _kill(child)
            await child.wait()

    async def _follow(self, job: Job, reports: asyncio.StreamReader) -> bool:
        """Note what the process reports of a job; whether it can do another one afterwards."""
        try:
            async with asyncio.timeout(self._seconds):
                while line := await reports.readline():
                    if job.ended:  # it was cancelled meanwhile
                        return False
                    self._note(job, msgspec.json.decode(line, type=Message))
                    if job.ended:
                        return True
        except TimeoutError:
            self._end(job, error=TOO_LONG.format(hours=self._seconds / 3_600))
            if self._child is not None:
                _kill(self._child)
        return False

    def _note(self, job: Job, message: Message) -> None:
        job.progress = message.progress or job.progress
        if message.report or message.error:
            self._end(job, message.report, message.error)

    def _end(
        self,
        job: Job,
        report: dict[str, Json] | None = None,
        error: str = "",
        *,
        state: State | None = None,
    ) -> None:
        job.report = report or {}
        job.error = error
        job.state = state or ("failed" if error else "done")
        job.ended_at = time.time()
        self._save(job)
        (self._folder / f"{job.id}.data").unlink(missing_ok=True)
        ended = [old for old in self._jobs.values() if old.ended]
        for old in ended[:-KEPT]:
            del self._jobs[old.id]
            (self._folder / f"{old.id}.json").unlink(missing_ok=True)

    def _save(self, job: Job) -> None:
        path = self._folder / f"{job.id}.json"
        new = path.with_suffix(".new")
        new.unlink(missing_ok=True)
        with new.open("xb") as file:  # never through a link that lies there
            file.write(msgspec.json.encode(job))
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)


def _kill(child: asyncio.subprocess.Process) -> None:
    """End a process and what it has started; the index survives that at any time."""
    with contextlib.suppress(ProcessLookupError):
        if sys.platform == "win32":
            child.kill()  # what it has started ends when its pipes are closed
        else:
            os.killpg(child.pid, signal.SIGKILL)  # it leads a session of its own


def _refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise StorageError(f"{path} is a symbolic link: remove it", path=path)


def _load_jobs(folder: Path) -> Iterator[Job]:
    """The jobs in a folder; files that hold none are set aside."""
    for path in sorted(folder.glob("*.json")):
        try:
            yield _load_job(path)
        except ValueError as error:
            aside = path.with_suffix(".refused")
            path.replace(aside)
            log.warning("%s is no job (%s): it is now called %s", path, error, aside.name)


def _load_job(path: Path) -> Job:
    """The job in a file; `ValueError` if the file, its name or its content cannot be trusted."""
    if not JOB_ID.fullmatch(path.stem):
        raise ValueError("its name is not the id of a job")
    content = path.with_suffix(".data")
    for file in (path, content):
        if os.path.lexists(file) and not stat.S_ISREG(file.lstat().st_mode):
            raise ValueError(f"{file.name} is a link or a special file")
    job = msgspec.json.decode(path.read_bytes(), type=Job)
    if job.id != path.stem:
        raise ValueError("it has the id of another job")
    return job
