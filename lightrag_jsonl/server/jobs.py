"""The jobs of an index, done in turn by a child process.

A job is a client's request to change the index, and a row in the index. Documents sent with the
request are stored as pending in the same transaction, so that an accepted job outlives every
process.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import IO, Any, Final, Literal, TypeAlias

import msgspec

from lightrag_jsonl.core.address import Address, address_with_password
from lightrag_jsonl.core.aio import in_thread
from lightrag_jsonl.core.errors import (
    ConfigError,
    LockedError,
    NotFoundError,
    StorageError,
    UnavailableError,
)
from lightrag_jsonl.core.types import Json
from lightrag_jsonl.providers.settings import SETUP, Setup
from lightrag_jsonl.server.messages import without_folders
from lightrag_jsonl.storage.rows import PendingDocument, StoredJob
from lightrag_jsonl.storage.store import Result, Store, read, write
from lightrag_jsonl.storage.views import StoreView, Transaction
from lightrag_jsonl.text.strings import counted

JobKind: TypeAlias = Literal["upload", "insert", "delete", "retry", "edit", "report"]
JobState: TypeAlias = Literal["waiting", "running", "done", "failed", "cancelled"]

ATTEMPTS: Final = 3  # of a job whose process dies; then the job itself is to blame
IDLE_SECONDS: Final = 10.0  # before a process without jobs ends; a new one needs a second to start
JOB_SECONDS: Final = 24 * 3_600.0  # a book takes a day with a model that reads a chunk a minute
MOST_JOBS: Final = 1_000  # that wait
MOST_BYTES: Final = 1_000 << 20  # that were sent for jobs which are not done
MAX_ENDED_JOBS: Final = 1_000  # further ones are forgotten, the oldest first
BYTES_IN_MEMORY: Final = 1 << 20  # of a body that arrives; the rest is on the disk
LONGEST_LINE: Final = 1 << 22  # bytes of a message; the lists in a report are cut far below
LONGEST_ERROR: Final = 4_000  # characters
QUEUE_SECONDS: Final = 30  # after which a client may ask for a place in the queue again
LOOK_SECONDS: Final = 1.0  # between two looks at what other servers of the same index have done
BLOCKED_NOTE_SECONDS: Final = (
    1.0  # between two attempts to note a state while another process writes
)
JOB_TOO_LONG: Final = (
    "the job took more than {hours:g} hours (`serve --max-job-hours`). Everything indexed until then "
    "stays, and a retry goes on with the rest"
)
NO_ROOM: Final = "waiting or failed jobs fill the space for jobs ({jobs}): try again later, or cancel failed jobs"
UNREADABLE: Final = "the record of this job is no job: send it again"
TOKEN_VARIABLE: Final = "LIGHTRAG_JSONL_TOKEN"  # holds the server's token, a secret

log = logging.getLogger(__name__)


class Busy(Exception):
    """A limit is reached; the client should try again after `seconds`."""

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


class Job(msgspec.Struct):
    """A change of an index. Times are in seconds since 1970, `size` in bytes.

    `details`, called `about` in JSON, come from the client: the name and other fields of an upload,
    the ids to delete, the change of an entity. `error` says why a job failed, or what a waiting job
    waits for.
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

    def stored(self) -> StoredJob:
        """The row of the job."""
        record = msgspec.json.encode(self).decode()
        return StoredJob(id=self.id, state=self.state, size=self.size, record=record)


class WorkerMessage(msgspec.Struct):
    """A message of the child process about a job; a report or an error ends the job.

    `locked` says that the job waits, since another process writes to the index.
    """

    progress: dict[str, Any] = {}
    report: dict[str, Any] = {}
    error: str = ""
    locked: str = ""


class JobContent:
    """The body of a request; the bytes count on arrival."""

    def __init__(self, file: IO[bytes], claim: Callable[[int], None]) -> None:
        self.file = file
        self.size = 0
        self._claim = claim

    def write(self, piece: bytes) -> None:
        """Append a piece; `Busy` without room for the piece."""
        self._claim(len(piece))
        self.size += len(piece)
        self.file.write(piece)

    def read(self) -> bytes:
        """The whole body."""
        self.file.seek(0)
        return self.file.read()


class JobQueue:
    """The jobs of an index, done in the order of arrival.

    Open jobs of a stopped or killed server are done after the next start, or by another server if
    several share the index: one of them does the jobs, all accept them. A job fails after
    `seconds`, not counting the time of another process's writing to the index. At most `most_jobs`
    wait; the contents of all open jobs have at most `most_bytes`. Models of the `setup` replace the
    remembered models of the index.
    """

    def __init__(
        self,
        store: Store,
        address: Address,
        *,
        seconds: float = JOB_SECONDS,
        most_jobs: int = MOST_JOBS,
        most_bytes: int = MOST_BYTES,
        setup: Setup | None = None,
    ) -> None:
        self._store = store
        self._address = address
        self._seconds = seconds
        self._most_jobs = most_jobs
        self._most_bytes = most_bytes
        self.setup = setup or Setup()  # of the next child process
        self._incoming = 0  # bytes of bodies that arrive
        self._child: asyncio.subprocess.Process | None = None
        self._current: Job | None = None  # the job of the child process
        self._wake = asyncio.Event()
        self._wake.set()

    # ── looking ─────────────────────────────────────────────────────────────────

    async def newest(self, offset: int = 0, limit: int | None = None) -> tuple[int, list[Job]]:
        """The number of jobs, and the newest, without the first `offset` and at most `limit`."""

        def find(view: StoreView) -> tuple[int, list[StoredJob]]:
            return sum(view.job_states().values()), view.newest_jobs(limit, offset)

        total, rows = await read(self._store, find)
        return total, list(map(self._job, rows))

    async def states(self) -> dict[str, int]:
        """The number of jobs in each state."""
        return await read(self._store, lambda view: view.job_states())

    async def failed(self) -> dict[str, str]:
        """The reasons of failed jobs, by id."""

        def find(view: StoreView) -> list[StoredJob]:
            has_failed = view.job_states().get("failed", 0)
            return view.newest_jobs() if has_failed else []

        rows = await read(self._store, find)
        return {row.id: self._job(row).error for row in rows if row.state == "failed"}

    async def get(self, id: str) -> Job:
        """The job with an id; `NotFoundError` for an unknown id."""
        row = await read(self._store, lambda view: view.job(id))
        if row is None:
            raise NotFoundError(f"no such job: {id}")
        return self._job(row)

    def _job(self, row: StoredJob) -> Job:
        """The job of a row; the current job with progress."""
        if self._current is not None and self._current.id == row.id and not self._current.ended:
            return self._current
        try:
            return msgspec.json.decode(row.record, type=Job)
        except ValueError as error:  # of an index that somebody else prepared
            log.warning("job %s cannot be read: %s", row.id, error)
            return Job(id=row.id, kind="retry", created_at=0.0, state="failed", error=UNREADABLE)

    async def _next(self) -> Job | None:
        """The job to do next."""
        while rows := await read(self._store, lambda view: view.open_jobs(limit=1)):
            job = self._job(rows[0])
            if not job.ended:
                return job
            await self._save_ended(job)
        return None

    # ── asking ──────────────────────────────────────────────────────────────────

    def _check_room(self, view: StoreView, size: int = 0) -> int:
        """The bytes that wait; `Busy` while too many jobs wait, or too many bytes."""
        states = view.job_states()
        count = states.get("waiting", 0) + states.get("running", 0)
        if count >= self._most_jobs:
            raise Busy(f"{counted(count, 'jobs')} in the queue: try again later", QUEUE_SECONDS)
        stored = view.job_bytes()
        if stored + size > self._most_bytes:
            count += states.get("failed", 0)
            raise Busy(NO_ROOM.format(jobs=counted(count, "jobs")), QUEUE_SECONDS)
        return stored

    @contextlib.asynccontextmanager
    async def new_content(self) -> AsyncIterator[JobContent]:
        """A place for the body of a request, removed at the end of the block."""
        stored = await read(self._store, self._check_room)

        def claim(size: int) -> None:
            if stored + self._incoming + size > self._most_bytes:
                raise Busy("bodies that arrive fill the space for jobs: try later", QUEUE_SECONDS)
            self._incoming += size

        with tempfile.SpooledTemporaryFile(max_size=BYTES_IN_MEMORY) as file:
            content = JobContent(file, claim)
            try:
                yield content
            finally:
                self._incoming -= content.size

    async def add(self, kind: JobKind, details: dict[str, Any]) -> Job:
        """Add a job without documents; `Busy` without room."""
        job = self._new_job(kind, details)

        def put(transaction: Transaction) -> None:
            self._check_room(transaction)
            if kind == "delete":  # versions that came before, and are not indexed yet
                earlier = transaction.pending(details["ids"])
                transaction.delete_pending([row.row for row in earlier if row.row is not None])
            transaction.put_job(job.stored())

        return await self._accept(job, put)

    async def add_file(
        self, details: dict[str, Any], document: PendingDocument, content: JobContent
    ) -> Job:
        """Add a job to index a file; `document` has the fields given by the client."""
        job = self._new_job("upload", details, content.size)
        waiting = replace(document, job=job.id, is_file=True)

        def put(transaction: Transaction) -> None:
            self._check_room(transaction, job.size)
            transaction.put_pending(waiting, content.read())
            transaction.put_job(job.stored())

        return await self._accept(job, put)

    async def add_documents(self, documents: Iterable[PendingDocument], size: int) -> Job:
        """Add a job to index documents; an error from `documents` is raised, with nothing stored."""
        job = self._new_job("insert", {"documents": 0}, size)

        def put(transaction: Transaction) -> None:
            self._check_room(transaction, job.size)
            for document in documents:
                transaction.put_pending(replace(document, job=job.id))
                job.details["documents"] += 1
            transaction.put_job(job.stored())

        return await self._accept(job, put)

    def _new_job(self, kind: JobKind, details: dict[str, Any], size: int = 0) -> Job:
        return Job(
            id=uuid.uuid4().hex, kind=kind, created_at=time.time(), details=details, size=size
        )

    async def _accept(self, job: Job, store_job: Callable[[Transaction], None]) -> Job:
        await write(self._store, store_job)
        self._wake.set()
        return job

    async def cancel(self, id: str) -> Job:
        """End a waiting or running job, or give up a failed job.

        Indexed documents stay; the job's waiting documents are removed. `NotFoundError` for an
        unknown id.
        """
        job = await self.get(id)
        if job.state in ("done", "cancelled"):
            return job
        if job is self._current and self._child is not None:
            _kill(self._child)
        job.state = "cancelled"
        await self._save_ended(job)  # a server that does the job sees it soon
        return await self.get(id)  # it may have been done meanwhile

    async def retry(self, id: str) -> Job:
        """Let a failed job wait again, behind all other jobs, with the documents still waiting.

        `ConfigError` for a job without a failure or without waiting documents; `NotFoundError` for
        an unknown id.
        """
        job = await self.get(id)
        if job.state != "failed":
            raise ConfigError(f"only a failed job can be tried again; this job is {job.state}")
        job = Job(
            id=id, kind=job.kind, created_at=job.created_at, details=job.details, size=job.size
        )

        def put(transaction: Transaction) -> None:
            self._check_room(transaction)
            if job.kind in ("upload", "insert") and not transaction.pending(job=id):
                raise ConfigError("nothing of this job waits any more: send it again")
            transaction.delete_job(id)
            transaction.put_job(job.stored())

        return await self._accept(job, put)

    # ── doing ───────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Do the jobs as they come, until cancelled; one server at a time, if several share the index."""
        if not self._store.SHARES_JOBS:
            await self._do_jobs(lambda: True)
        while not self._store.read_only:
            try:
                async with _in_threads(self._store.jobs_lock()) as is_held:
                    await self._do_jobs(is_held)
            except LockedError:
                pass  # another server does them
            except StorageError as error:
                log.warning("the jobs wait: %s", error)
            await asyncio.sleep(LOOK_SECONDS)

    async def _do_jobs(self, is_held: Callable[[], bool]) -> None:
        """Do the jobs while the right to do them is held."""
        while await asyncio.to_thread(is_held):
            await self._wait_for_jobs()
            while await asyncio.to_thread(is_held) and (job := await self._next()):
                if job.attempts >= ATTEMPTS:
                    message = f"the server was killed {job.attempts} times during this job"
                    await self._end(job, error=message)
                    continue
                try:
                    await self._run_child(is_held)
                except (OSError, ValueError) as error:  # no process, or it writes no messages
                    log.exception("a job could not be done")
                    await self._end(job, error=f"the indexing process failed: {error}")

    async def _wait_for_jobs(self) -> None:
        """Wait until a job may have come, here or to another server."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS if self._store.SHARES_JOBS else None):
                await self._wake.wait()
        self._wake.clear()

    async def _run_child(self, is_held: Callable[[], bool]) -> None:
        """Do the jobs in a new process until no job comes for a while; returns early if the process dies, or
        the right to do them is lost.
        """
        environment = {name: text for name, text in os.environ.items() if name != TOKEN_VARIABLE}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "lightrag_jsonl.server.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE,
            env=environment,
            start_new_session=True,
        )
        assert child.stdin is not None and child.stdout is not None
        self._child = child
        setup = self.setup
        try:
            await _send(child.stdin, self._given_setup())
            while (job := await self._next_soon()) and child.returncode is None:
                if self.setup is not setup:
                    return  # the next child has the models that were set meanwhile
                if not await asyncio.to_thread(is_held):
                    return
                self._current = job
                if not await self._begin(job):
                    continue
                await _send(child.stdin, job)
                watch = asyncio.create_task(self._watch(job, child))
                try:
                    is_done = await self._follow(job, child.stdout)
                finally:
                    watch.cancel()
                if not is_done:
                    status = await child.wait()
                    if not job.ended and job.attempts >= ATTEMPTS:
                        await self._end(job, error=f"the indexing process exited (status {status})")
                    return
        except asyncio.CancelledError:  # the server ends, which is no failed attempt
            if self._current is not None and not self._current.ended:
                self._current.attempts -= 1
                interrupted = self._current.stored()
                await self._write(lambda transaction: transaction.put_job(interrupted))
            raise
        finally:
            self._child = None
            self._current = None
            _kill(child)  # also what it started, should it have died itself
            await child.wait()

    async def _begin(self, job: Job) -> bool:
        """Note that a job runs, unless ended meanwhile."""
        job.state = "running"
        job.attempts += 1
        return await self._write(partial(_store_unless_ended, job))

    async def _next_soon(self) -> Job | None:
        """The next job, waiting or added within `IDLE_SECONDS`."""
        self._current = None
        self._wake.clear()
        job = await self._next()
        clock = asyncio.get_running_loop().time
        stop_at = clock() + IDLE_SECONDS
        while job is None and clock() < stop_at:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(stop_at):
                    await self._wait_for_jobs()
            job = await self._next()
        return job

    async def _follow(self, job: Job, messages: asyncio.StreamReader) -> bool:
        """Note the messages about a job; returns whether the process can do another job."""
        clock = asyncio.get_running_loop().time
        try:
            async with asyncio.timeout(self._seconds) as deadline:
                while line := await messages.readline():
                    if job.ended:  # by `cancel`
                        return False
                    message = msgspec.json.decode(line, type=WorkerMessage)
                    if message.report or message.error:
                        await self._end(job, message.report, message.error)
                        return True
                    job.state = "waiting" if message.locked else "running"
                    job.error = without_folders(message.locked, self._address)
                    job.progress = message.progress or job.progress
                    if message.locked:
                        deadline.reschedule(clock() + self._seconds)
        except TimeoutError:
            await self._end(job, error=JOB_TOO_LONG.format(hours=self._seconds / 3_600))
        return False

    async def _watch(self, job: Job, child: asyncio.subprocess.Process) -> None:
        """Tell other servers how far a job is, and end it when one of them has cancelled it."""
        if not self._store.SHARES_JOBS:
            return
        while not job.ended:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                is_wanted = await write(
                    self._store, partial(_store_unless_ended, job), durable=False
                )
            except StorageError as error:
                log.warning("the progress of a job is not stored: %s", error)
                continue
            if not is_wanted and not job.ended:
                job.state = "cancelled"
                _kill(child)

    def _given_setup(self) -> dict[str, Any]:
        """The address with its password, and names and addresses of models, for the child process."""
        names = [name for name in SETUP if name not in ("working_dir", "prompts")]
        values = {name: getattr(self.setup, name) for name in names}
        setup_values = {name: value for name, value in values.items() if value}
        return {**setup_values, "working_dir": address_with_password(self._address)}

    async def _end(self, job: Job, report: dict[str, Json] | None = None, error: str = "") -> None:
        """Store how a job has ended; until then it runs for all who look."""
        ended = msgspec.structs.replace(
            job,
            report=without_folders(report or {}, self._address),
            error=without_folders(error, self._address)[:LONGEST_ERROR],
            state="failed" if error else "done",
        )
        if ended.state == "done" and ended.details.get("purge"):
            ended.details = {"purge": True, "documents": len(ended.details["ids"])}
        await self._save_ended(ended)
        job.report = ended.report
        job.error = ended.error
        job.details = ended.details
        job.ended_at = ended.ended_at
        job.state = ended.state

    async def _save_ended(self, job: Job) -> None:
        """Store an ended job. Waiting documents are kept for failed jobs only, to be tried again."""
        job.ended_at = time.time()

        def save(transaction: Transaction) -> None:
            row = transaction.job_to_change(job.id)
            if row is not None and row.state in ("done", "cancelled") and row.state != job.state:
                return  # it has been done, or another server has ended it
            if job.state != "failed":
                waiting = transaction.pending(job=job.id)
                transaction.delete_pending([row.row for row in waiting if row.row is not None])
            transaction.put_job(job.stored())
            transaction.delete_ended_jobs(MAX_ENDED_JOBS)

        await self._write(save)

    async def _write(self, change: Callable[[Transaction], Result]) -> Result:
        """Write, after waiting for other writing processes, so as not to lose an accepted job."""
        while True:
            try:
                return await write(self._store, change)
            except (LockedError, UnavailableError) as error:
                log.warning("the state of a job is not stored yet: %s", error)
                await asyncio.sleep(BLOCKED_NOTE_SECONDS)


def _store_unless_ended(job: Job, transaction: Transaction) -> bool:
    """Store the state of a job that has not ended; returns whether it has not been ended by another server."""
    row = transaction.job_to_change(job.id)
    if row is None or row.state not in ("waiting", "running"):
        return False
    if not job.ended:
        transaction.put_job(job.stored())
    return True


async def _send(stream: asyncio.StreamWriter, message: object) -> None:
    """Write a line of JSON; the death of a process is noticed on reading."""
    with contextlib.suppress(ConnectionError):
        stream.write(msgspec.json.encode(message) + b"\n")
        await stream.drain()


@contextlib.asynccontextmanager
async def _in_threads(manager: AbstractContextManager[Result]) -> AsyncIterator[Result]:
    """A context manager that waits for the database, in the event loop."""
    value = await in_thread(manager.__enter__)
    try:
        yield value
    finally:
        await in_thread(manager.__exit__, None, None, None)


def _kill(child: asyncio.subprocess.Process) -> None:
    """End a process and its children; the index stays intact."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            child.kill()  # its children end when their pipes are closed
        else:
            os.killpg(child.pid, signal.SIGKILL)  # the child leads a session of its own
