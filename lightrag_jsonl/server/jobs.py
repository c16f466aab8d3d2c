"""The jobs of an index: kept in the folder `jobs`, and done one after the other by a child process."""

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

JobKind: TypeAlias = Literal["upload", "insert", "delete", "retry"]
JobState: TypeAlias = Literal["waiting", "running", "done", "failed", "cancelled"]

ATTEMPTS: Final = 3  # of a job whose process dies; then the job itself is to blame
JOB_SECONDS: Final = 24 * 3_600.0  # a book takes a day with a model that reads a chunk a minute
MAX_ENDED_JOBS: Final = 1_000  # further ones are forgotten, the oldest first
LONGEST_LINE: Final = 1 << 26  # bytes of a report, which lists every failure
JOB_TOO_LONG: Final = (
    "the job took more than {hours:g} hours (`serve --max-job-hours`). Everything indexed until then "
    "stays, and a retry goes on with the rest"
)
TOKEN_VARIABLE: Final = "LIGHTRAG_JSONL_TOKEN"  # holds the server's token, a secret
JOB_ID: Final = re.compile("[0-9a-f]{32}")  # as `uuid4().hex` makes them

log = logging.getLogger(__name__)


class Job(msgspec.Struct):
    """A change of an index. Times are in seconds since 1970, `size` in bytes.

    `details`, called `about` in JSON, come from the client: the name and other fields of an upload,
    the ids to delete.
    """

    id: str
    kind: JobKind
    created_at: float
    details: dict[str, Any] = msgspec.field(name="about", default_factory=dict)
    size: int = 0
    state: JobState = "waiting"
    attempts: int = 0
    ended_at: float | None = None
    progress: dict[str, Any] = {}
    report: dict[str, Any] = {}
    error: str = ""

    @property
    def ended(self) -> bool:
        """Whether the job is over, for good or ill."""
        return self.state in ("done", "failed", "cancelled")


class WorkerMessage(msgspec.Struct):
    """A message of the child process about a job; a report or an error ends the job."""

    progress: dict[str, Any] = {}
    report: dict[str, Any] = {}
    error: str = ""


class JobQueue:
    """The jobs of an index, oldest first.

    A job is a file, with its content in a second file; the names of both are made here. Open jobs of
    a stopped or killed server are done after the next start. A job fails after `seconds`. The folder
    may come from somebody else and hold anything: links, and files without a job of the same name,
    are set aside. `LockedError` if another server has the folder, `StorageError`
    if a link leads out of it.
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
            raise LockedError(
                f"another server has the jobs of {index_folder}: stop it first", path=index_folder
            ) from error
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
        """The job with an id; `NotFoundError` for an unknown id."""
        if id not in self._jobs:
            raise NotFoundError(f"no such job: {id}")
        return self._jobs[id]

    @property
    def waiting(self) -> list[Job]:
        """The jobs that have not ended, in the order of their turns."""
        return [job for job in self._jobs.values() if not job.ended]

    @contextlib.contextmanager
    def content_file(self) -> Iterator[Path]:
        """A new file for the content of a job; deleted unless a job is made of it."""
        path = self._folder / f"{uuid.uuid4().hex}.data"
        try:
            yield path
        finally:
            if path.stem not in self._jobs:
                path.unlink(missing_ok=True)

    def add(self, kind: JobKind, details: dict[str, Any], content: Path | None = None) -> Job:
        """Add a job and write it to the disk; `content` is a file made by `content_file`."""
        id = uuid.uuid4().hex if content is None else content.stem
        size = 0 if content is None else content.stat().st_size
        job = Job(id=id, kind=kind, created_at=time.time(), details=details, size=size)
        self._save(job)
        self._jobs[id] = job
        self._wake.set()
        return job

    def cancel(self, id: str) -> Job:
        """End a job that waits or runs; the documents it has indexed stay. `NotFoundError` for an unknown id."""
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
        """Do the waiting jobs in a new process; returns early if the process dies."""
        environment = {name: text for name, text in os.environ.items() if name != TOKEN_VARIABLE}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "lightrag_jsonl.server.worker",
            str(self._index_folder),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE,
            env=environment,
            start_new_session=True,
        )
        assert child.stdin is not None and child.stdout is not None
        self._child = child
        job: Job | None = None
        try:
            while child.returncode is None and (waiting := self.waiting):
                job = waiting[0]
                job.state = "running"
                job.attempts += 1
                self._save(job)
                with contextlib.suppress(ConnectionError):  # the process died; `_follow` notices
                    child.stdin.write(msgspec.json.encode(job) + b"\n")
                    await child.stdin.drain()
                if not await self._follow(job, child.stdout):
                    status = await child.wait()
                    if not job.ended and job.attempts >= ATTEMPTS:
                        self._end(job, error=f"the indexing process exited (status {status})")
                    return
        except asyncio.CancelledError:  # the server ends, which is no failed attempt
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
        """Note the reports on a job; returns whether the process can do another job."""
        try:
            async with asyncio.timeout(self._seconds):
                while line := await reports.readline():
                    if job.ended:  # by `cancel`
                        return False
                    self._note(job, msgspec.json.decode(line, type=WorkerMessage))
                    if job.ended:
                        return True
        except TimeoutError:
            self._end(job, error=JOB_TOO_LONG.format(hours=self._seconds / 3_600))
            if self._child is not None:
                _kill(self._child)
        return False

    def _note(self, job: Job, message: WorkerMessage) -> None:
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
        job.report = report or {}
        job.error = error
        job.state = state or ("failed" if error else "done")
        job.ended_at = time.time()
        self._save(job)
        (self._folder / f"{job.id}.data").unlink(missing_ok=True)
        ended = [old for old in self._jobs.values() if old.ended]
        for old in ended[:-MAX_ENDED_JOBS]:
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
    """End a process and its children, which does no harm to the index."""
    with contextlib.suppress(ProcessLookupError):
        if sys.platform == "win32":
            child.kill()  # its children end when their pipes are closed
        else:
            os.killpg(child.pid, signal.SIGKILL)  # the child leads a session of its own


def _refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise StorageError(f"{path} is a symbolic link: remove it", path=path)


def _load_jobs(folder: Path) -> Iterator[Job]:
    """The jobs in a folder; other files are set aside."""
    for path in sorted(folder.glob("*.json")):
        try:
            yield _load_job(path)
        except ValueError as error:
            aside = path.with_suffix(".refused")
            path.replace(aside)
            log.warning("%s is no job (%s): it is now called %s", path, error, aside.name)


def _load_job(path: Path) -> Job:
    """The job in a file; `ValueError` for a name, a file or a content that cannot be trusted."""
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
