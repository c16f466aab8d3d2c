"""The jobs of an index as files: a job in one file, its content in another, all within a limit of bytes."""

import contextlib
import logging
import os
import stat
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
from filelock import FileLock, Timeout

from lightrag_jsonl.core.errors import LockedError, NotFoundError, StorageError
from lightrag_jsonl.rag.job_records import CONTENT, ENDED_STATES, JOB_ID, JOBS_FOLDER, RECORD

JobKind: TypeAlias = Literal["upload", "insert", "delete", "retry", "edit", "report"]
JobState: TypeAlias = Literal["waiting", "running", "done", "failed", "cancelled"]

MAX_ENDED_JOBS: Final = 1_000  # further ones are forgotten, the oldest first
ROOM_SECONDS: Final = 30  # after which a client may ask for room again

log = logging.getLogger(__name__)


class Busy(Exception):
    """A limit is reached; the client should try again after `seconds`."""

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


class Job(msgspec.Struct):
    """A change of an index. Times are in seconds since 1970, `size` in bytes.

    `details`, called `about` in JSON, come from the client: the name and other fields of an upload,
    the ids to delete, the change of an entity. `error` says why a job failed, or what a waiting job waits for.
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
        return self.state in ENDED_STATES


@dataclass(slots=True)
class _FileSize:
    """The state of a job, and the bytes of its files on the disk."""

    state: JobState
    record: int
    content: int


class JobContent:
    """A new file for the content of a job, whose bytes count while they arrive."""

    def __init__(self, path: Path, files: "JobFiles") -> None:
        self.path = path
        self.size = 0
        self._files = files

    def write(self, piece: bytes) -> None:
        """Append a piece; `Busy` if there is no room for it."""
        self._files.claim(len(piece))
        self.size += len(piece)
        with self.path.open("ab") as file:
            file.write(piece)


class JobFiles:
    """The files in the folder `jobs` of an index; names of files are made here.

    Open jobs are in memory, ended jobs are read when somebody asks. All files together take
    `most_bytes`: to make room, ended jobs are forgotten, the oldest first. The folder may come from
    somebody else and hold anything: links, and files without a job of the same name, are set aside.
    `LockedError` if another server has the folder, `StorageError` if a link leads out of it.
    """

    def __init__(self, index_folder: Path, most_bytes: int) -> None:
        self._folder = index_folder / JOBS_FOLDER
        self._most_bytes = most_bytes
        self._incoming = 0  # bytes of contents that arrive
        self._lock = self._locked(index_folder)
        jobs = sorted(_load_jobs(self._folder), key=lambda job: (job.created_at, job.id))
        self.open_jobs = {job.id: job for job in jobs if not job.ended}
        self._sizes = {job.id: self._file_size(job) for job in jobs}
        for content in self._folder.glob(f"*{CONTENT}"):  # uploads that broke off
            if content.stem not in self._sizes and not content.is_dir():
                content.unlink()

    def close(self) -> None:
        """Let another server have the jobs."""
        self._lock.release()

    # ── looking ─────────────────────────────────────────────────────────────────

    def __len__(self) -> int:
        return len(self._sizes)

    def newest(self, offset: int = 0, limit: int | None = None) -> list[Job]:
        """The jobs, newest first, without the first `offset` and at most `limit`."""
        ids = list(reversed(self._sizes))[offset:]
        jobs: list[Job] = []
        for id in ids:
            if limit is not None and len(jobs) >= limit:
                break
            with contextlib.suppress(NotFoundError):  # purged by another process
                jobs.append(self.get(id))
        return jobs

    def get(self, id: str) -> Job:
        """The job with an id; `NotFoundError` for an unknown or purged job."""
        if id in self.open_jobs:
            return self.open_jobs[id]
        if id in self._sizes:
            try:
                return _load_job(self._record(id))
            except (OSError, ValueError):
                del self._sizes[id]
        raise NotFoundError(f"no such job: {id}")

    def states(self) -> Counter[str]:
        """The number of jobs in each state."""
        return Counter(size.state for size in self._sizes.values())

    def content(self, id: str) -> Path:
        """The path of a job's content, which may be missing."""
        return self._folder / f"{id}{CONTENT}"

    # ── changes ─────────────────────────────────────────────────────────────────

    @contextlib.contextmanager
    def new_content(self) -> Iterator[JobContent]:
        """A new file for the content of a job; deleted unless a job is made of it."""
        content = JobContent(self.content(uuid.uuid4().hex), self)
        content.path.touch(mode=0o600, exist_ok=False)
        try:
            yield content
        finally:
            self._incoming -= content.size
            if content.path.stem not in self._sizes:
                content.path.unlink(missing_ok=True)

    def add(self, kind: JobKind, details: dict[str, Any], content: JobContent | None = None) -> Job:
        """A new job on the disk; `Busy` if there is no room for it."""
        id = uuid.uuid4().hex if content is None else content.path.stem
        size = 0 if content is None else content.size
        job = Job(id=id, kind=kind, created_at=time.time(), details=details, size=size)
        self._make_room(len(msgspec.json.encode(job)))
        self.save(job)
        return job

    def save(self, job: Job) -> None:
        """Write a job to the disk. Of the ended jobs, only failed ones keep their content."""
        record = self._record(job.id)
        new = record.with_suffix(".new")
        new.unlink(missing_ok=True)
        with new.open("xb") as file:  # never through a link that lies there
            file.write(msgspec.json.encode(job))
            file.flush()
            os.fsync(file.fileno())
        new.replace(record)
        if job.ended and job.state != "failed":
            self.content(job.id).unlink(missing_ok=True)
        self._sizes[job.id] = self._file_size(job)
        if job.ended:
            self.open_jobs.pop(job.id, None)
            self._forget_oldest()
        else:
            self.open_jobs[job.id] = job

    def reopen(self, job: Job) -> None:
        """Let an ended job wait again, behind all others."""
        self._sizes.pop(job.id)
        self.save(job)

    def claim(self, size: int) -> None:
        """Count bytes that arrive; `Busy` if there is no room for them."""
        self._make_room(size)
        self._incoming += size

    # ── room ────────────────────────────────────────────────────────────────────

    def _make_room(self, size: int) -> None:
        """Forget ended jobs until there is room for so many bytes; `Busy` if open jobs take it all."""
        excess = self._bytes() + size - self._most_bytes
        if excess <= 0:
            return
        for id in self._ended_ids():
            freed = self._sizes[id].record + self._sizes[id].content
            self._forget(id)
            excess -= freed
            if excess <= 0:
                return
        raise Busy(
            f"{len(self.open_jobs)} jobs fill the space for jobs: try again later", ROOM_SECONDS
        )

    def _bytes(self) -> int:
        stored = sum(size.record + size.content for size in self._sizes.values())
        return stored + self._incoming

    def _ended_ids(self) -> list[str]:
        return [id for id in self._sizes if id not in self.open_jobs]

    def _forget_oldest(self) -> None:
        for id in self._ended_ids()[:-MAX_ENDED_JOBS]:
            self._forget(id)

    def _forget(self, id: str) -> None:
        del self._sizes[id]
        self._record(id).unlink(missing_ok=True)
        self.content(id).unlink(missing_ok=True)

    def _record(self, id: str) -> Path:
        return self._folder / f"{id}{RECORD}"

    def _file_size(self, job: Job) -> _FileSize:
        content = self.content(job.id)
        return _FileSize(
            state=job.state,
            record=self._record(job.id).stat().st_size,
            content=content.stat().st_size if content.exists() else 0,
        )

    def _locked(self, index_folder: Path) -> FileLock:
        """The lock of the folder, which is made if it is not there."""
        lock_file = self._folder / "lock"
        for path in (self._folder, lock_file):
            _refuse_link(path)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        lock = FileLock(lock_file, thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise LockedError(
                f"another server has the jobs of {index_folder}: stop it first", path=index_folder
            ) from error
        return lock


def _refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise StorageError(f"{path} is a symbolic link: remove it", path=path)


def _load_jobs(folder: Path) -> Iterator[Job]:
    """The jobs in a folder; other files are set aside."""
    for path in sorted(folder.glob(f"*{RECORD}")):
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
    content = path.with_suffix(CONTENT)
    for file in (path, content):
        if os.path.lexists(file) and not stat.S_ISREG(file.lstat().st_mode):
            raise ValueError(f"{file.name} is a link or a special file")
    job = msgspec.json.decode(path.read_bytes(), type=Job)
    if job.id != path.stem:
        raise ValueError("it has the id of another job")
    return job
