"""The indexes of a server, each with its jobs and the questions that are being answered."""

import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from lightrag_jsonl import AsyncLightRAG
from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.types import Answer
from lightrag_jsonl.rag.opening import open_async
from lightrag_jsonl.server.jobs import JOB_SECONDS, JobQueue
from lightrag_jsonl.server.metrics import Metrics
from lightrag_jsonl.server.sharing import SharedStream
from lightrag_jsonl.storage.store import search
from lightrag_jsonl.storage.views import Snapshot
from lightrag_jsonl.tracing.events import Event

Item: TypeAlias = Event | Answer
Opener: TypeAlias = Callable[[Path], AsyncLightRAG]

MEGABYTE: Final = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What a client may ask for: sizes in bytes, `question` in characters, `job_seconds` for one job,
    the rest are numbers.
    """

    upload: int = 100 * MEGABYTE
    body: int = MEGABYTE
    question: int = 20_000
    questions: int = 16
    jobs: int = 1_000
    jobs_bytes: int = 1_000 * MEGABYTE
    job_seconds: float = JOB_SECONDS


class Busy(Exception):
    """A limit is reached for now; the client should try again after `seconds`."""

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


class EntityLine(msgspec.Struct, frozen=True):
    """An entity in a list; `degree` is the number of its relations."""

    name: str
    type: str
    degree: int


class Index:
    """One index; `LockedError` if another server has it."""

    def __init__(
        self,
        name: str,
        folder: Path,
        metrics: Metrics,
        opener: Opener,
        *,
        job_seconds: float = JOB_SECONDS,
    ) -> None:
        self.name, self.folder, self._metrics = name, folder, metrics
        self.rag = opener(folder)
        self.jobs = JobQueue(folder, seconds=job_seconds)
        self.agents: Starlette | None = None  # answers programs that act on a person's behalf
        self._asked: dict[bytes, SharedStream[Item]] = {}
        self._directory: tuple[int, dict[str, EntityLine]] = (-1, {})

    def ask(self, question: str, param: QueryParam, explain: bool = False) -> AsyncGenerator[Item]:
        """The events of a question, and its answer at the end; equal questions at once are one.

        Close it to leave early: when all listeners have left, the model's call is cancelled.
        """
        key = msgspec.json.encode([question, param, explain])
        shared = self._asked.get(key)
        self._metrics.count("questions_total", index=self.name, mode=param.mode)
        if shared is not None:
            self._metrics.count("questions_shared_total", index=self.name)
            return shared.listen()

        async def run(put: Callable[[Item], None]) -> None:
            pieces = self.rag.stream(question, param, explain=explain, listener=put)
            try:
                async with contextlib.aclosing(pieces):
                    async for _ in pieces:  # they come as events, too, in order with the others
                        pass
                put(pieces.answer)
            finally:
                usage = pieces.usage
                self._metrics.count("model_calls_total", usage.calls, index=self.name)
                for kind in ("input", "output", "cached"):
                    tokens = getattr(usage, f"{kind}_tokens")
                    self._metrics.count("model_tokens_total", tokens, index=self.name, kind=kind)

        def ended() -> None:
            if self._asked.get(key) is stream:
                del self._asked[key]

        stream = self._asked[key] = SharedStream(run, ended)
        return stream.listen()

    async def directory(self) -> dict[str, EntityLine]:
        """All entities by the key of their name, those with most relations first."""

        def load(snapshot: Snapshot) -> tuple[int, dict[str, EntityLine]]:
            if self._directory[0] == snapshot.generation:
                return self._directory
            degrees = snapshot.graph.degrees(snapshot.graph.entities).tolist()
            degree = dict(zip(snapshot.graph.entities.tolist(), degrees, strict=True))
            rows = snapshot.entity_rows().values()
            found = {row.key: EntityLine(row.name, row.type, degree[row.id]) for row in rows}
            by_degree = sorted(found.items(), key=lambda one: (-one[1].degree, one[0]))
            return snapshot.generation, dict(by_degree)

        self._directory = await search(self.rag.engine.store, load)
        return self._directory[1]

    async def find_entities(self, text: str, kind: str) -> list[EntityLine]:
        """The entities of a type (all for "") whose name begins with a text, then those with it in."""
        key, all_entities = name_key(text), await self.directory()
        found = [item for item in all_entities.items() if not kind or item[1].type == kind]
        begins = [line for name, line in found if name.startswith(key)]
        return begins + [line for name, line in found if key in name and not name.startswith(key)]

    async def close(self) -> None:
        """Close the index, and let another server have it."""
        self.jobs.close()
        await self.rag.close()


@dataclass
class Indexes:
    """All indexes of a server by name, and how many questions are being answered."""

    limits: Limits = Limits()
    metrics: Metrics = field(default_factory=Metrics)
    opener: Opener = open_async
    by_name: dict[str, Index] = field(default_factory=dict)
    in_flight: int = 0

    def open(self, folders: Iterable[Path]) -> None:
        """Open the index in each folder; `ConfigError` if two have the same name or one has none."""
        for folder in folders:
            name = folder.resolve().name
            if not name or not name.isprintable() or set(name) & set(":/\\?#"):
                raise ConfigError(f"{folder}: its name cannot be that of an index; rename it")
            if name in self.by_name:
                first = self.by_name[name].folder
                raise ConfigError(f"{first} and {folder} have the same name: rename one of them")
            self.by_name[name] = Index(
                name,
                folder,
                self.metrics,
                self.opener,
                job_seconds=self.limits.job_seconds,
            )

    def get(self, name: str) -> Index:
        """The index of this name; `NotFoundError` lists those that there are."""
        if name not in self.by_name:
            raise NotFoundError(f"no such index: {name}; available: {', '.join(self.by_name)}")
        return self.by_name[name]

    @contextlib.contextmanager
    def question(self, text: str) -> Iterator[None]:
        """Count a question while it is answered; `Busy` if there are too many, 413 if it is long."""
        if not text.strip():
            raise ConfigError("the question is empty")
        if len(text) > self.limits.question:
            raise HTTPException(413, f"the question has over {self.limits.question:,} characters")
        if self.in_flight >= self.limits.questions:
            raise Busy(f"{self.in_flight} questions in progress: try again later", 2)
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1
