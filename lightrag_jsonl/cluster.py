"""Indexing on a Ray cluster: nodes make small indexes of some documents each, which are merged here.

Each shard is made by a Ray task: in a temporary folder of its node, with model and embedder by the
names that the index remembers. It comes back through Ray's object store and is merged as it arrives,
so that what is merged is never lost. Ray repeats the task of a node that dies.
"""

import asyncio
import contextlib
import logging
import socket
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lightrag_jsonl.core.errors import ConfigError, LightRAGError
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.core.types import Failure, InsertReport
from lightrag_jsonl.indexing.loading import Given, incoming
from lightrag_jsonl.indexing.progress import Progress, ProgressCallback
from lightrag_jsonl.providers.configured import Setup
from lightrag_jsonl.rag import AsyncLightRAG
from lightrag_jsonl.rag.opening import index_arguments
from lightrag_jsonl.rag.parts import adopt_settings
from lightrag_jsonl.storage.rows import PendingDocument
from lightrag_jsonl.storage.sqlite.database import FILE_NAME, SQLiteStore

SHARD_CHARACTERS = 200_000  # about 50 chunks: what is lost with a node, and merged at once
RETRIES = 5  # of a shard whose node or process dies
QUEUED = 2  # shards dealt out for each CPU of the cluster: one to work on, one to go on with
CONNECT_SECONDS = 5.0
LIMITS = ("max_calls", "max_input_tokens", "max_output_tokens")


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """What a node needs to make a shard: as the index is built, and where the models are asked."""

    settings: Mapping[str, str]
    options: IndexOptions
    setup: Setup


async def insert_on_ray(
    rag: AsyncLightRAG,
    documents: Given | Iterable[Given],
    address: str,
    *,
    setup: Setup | None = None,
    shard_characters: int = SHARD_CHARACTERS,
    progress: ProgressCallback | None = None,
) -> InsertReport:
    """Index documents on the Ray cluster at `address` ("auto", "local", "HOST:6379", "ray://…").

    Every node needs this package, and access to the model and embedder of the index by their names:
    keys come from the node's own environment or settings, addresses too, unless `setup` gives
    them; "http://localhost:8000/v1" is then a server on each node. Files of prompts and of an
    ontology must lie at the same path on all nodes.

    A document is read by one node; a shard is one document or several, of up to `shard_characters`.
    Known documents are skipped, so what was interrupted is called again to go on. Summaries are
    written at the end, from here. `ConfigError` without Ray, for limits of cost, which no node can
    keep alone, and for models that only a program can make.
    """
    if any(getattr(rag.options, name) is not None for name in LIMITS):
        raise ConfigError(
            f"on a cluster there are no limits of cost: leave out {', '.join(LIMITS)}"
        )
    await rag._record_models(keep=True)
    settings = await rag.admin.settings() | await asyncio.to_thread(rag._settings)
    plan = ShardPlan(settings, rag.options, setup or Setup())
    run = _Run(rag, plan, progress)
    pending = run.unknown(rag._pending(documents, run.failures))
    with _cluster(address) as ray:
        await run.insert(ray, shards(pending, shard_characters))
    if rag._client.has_model and not run.report.stopped:  # also those an interrupted run owes
        spent = await rag.admin.summarize()
        run.report = replace(run.report, usage=run.report.usage + spent)
    return replace(run.report, failures=(*run.failures, *run.report.failures))


def shards(
    pending: Iterable[PendingDocument], characters: int
) -> Iterator[tuple[PendingDocument, ...]]:
    """The documents in their order, dealt into shards of so many characters or one document."""
    shard, size = list[PendingDocument](), 0
    for one in pending:
        length = sum(map(len, one.document.pages or [one.document.text]))
        if shard and size + length > characters:
            yield tuple(shard)
            shard, size = [], 0
        shard.append(one)
        size += length
    if shard:
        yield tuple(shard)


def make_shard(
    plan: ShardPlan, documents: tuple[PendingDocument, ...]
) -> tuple[bytes, InsertReport]:
    """On a node: the database of an index of these documents, without summaries, and its report."""
    with tempfile.TemporaryDirectory(prefix="lightrag-jsonl-shard-") as scratch:
        folder = Path(scratch)
        with closing(SQLiteStore(folder)) as store:
            adopt_settings(store, plan.settings)
        arguments = index_arguments(replace(plan.setup, working_dir=folder))

        async def insert() -> InsertReport:
            async with AsyncLightRAG(**{**arguments, "options": plan.options}) as rag:
                return await rag._indexing.insert(documents, tolerant=True, summarize=False)

        report = asyncio.run(insert())
        return (folder / FILE_NAME).read_bytes(), report


class _Run:
    """One insert on a cluster, and what it did so far."""

    def __init__(
        self, rag: AsyncLightRAG, plan: ShardPlan, progress: ProgressCallback | None
    ) -> None:
        self.report = InsertReport()
        self.failures: list[Failure] = []
        self._rag, self._plan, self._progress = rag, plan, progress
        self._merged = self._dealt = 0

    def unknown(self, pending: Iterable[PendingDocument]) -> Iterator[PendingDocument]:
        """The documents that are not in the index; the last of those with the same id counts."""
        with self._rag._store.view() as view:
            known = {one.id: one.content for one in view.documents()}
        for one in pending:
            try:
                found = incoming(one)
            except ConfigError as error:
                name = one.document.id or one.document.source or ""
                self.failures.append(Failure(name, None, str(error)))
                continue
            if known.get(found.document.id) == found.document.content:
                unchanged = (*self.report.unchanged, found.document.id)
                self.report = replace(self.report, unchanged=unchanged)
            else:
                known[found.document.id] = found.document.content
                yield found.pending

    async def insert(self, ray: Any, dealt: Iterator[tuple[PendingDocument, ...]]) -> None:
        """Deal out shards, and merge them as they arrive, until none is left."""
        task = ray.remote(max_retries=RETRIES)(make_shard)
        plan, working = ray.put(self._plan), dict[Any, tuple[PendingDocument, ...]]()
        while True:
            room = QUEUED * max(1, int(ray.cluster_resources().get("CPU", 1)))
            while len(working) < room and not self.report.stopped:
                if (shard := next(dealt, None)) is None:
                    break
                working[task.remote(plan, shard)] = shard
                self._dealt += 1
            self._show()
            if not working:
                return
            (done, *_), _ = await asyncio.to_thread(ray.wait, list(working), num_returns=1)
            await self._take(ray, done, working.pop(done))

    async def _take(self, ray: Any, done: Any, shard: tuple[PendingDocument, ...]) -> None:
        """Merge a shard that is done; if its nodes died too often, its documents are failures."""
        try:
            database, report = await asyncio.to_thread(ray.get, done)
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, LightRAGError):
                raise error.cause from error
            raise LightRAGError(f"a node of the cluster failed: {error.cause!r}") from error
        except ray.exceptions.RayError as error:
            reason = f"the shard was lost {RETRIES + 1} times: {error}".partition("\n")[0]
            self.failures += [Failure(one.document.id or "", None, reason) for one in shard]
        else:
            await self._merge(database, report)
        self._merged += 1

    async def _merge(self, database: bytes, report: InsertReport) -> None:
        with tempfile.TemporaryDirectory(prefix="lightrag-jsonl-merge-") as scratch:
            (Path(scratch) / FILE_NAME).write_bytes(database)
            with closing(SQLiteStore(Path(scratch), create=False)) as store:
                merged = await self._rag._indexing.join([store], replaces=True)
        known = self.report
        self.report = replace(
            known,
            documents=(*known.documents, *merged.documents),
            chunks=known.chunks + merged.chunks,
            entities=known.entities + merged.entities,
            relations=known.relations + merged.relations,
            failures=(*known.failures, *report.failures),
            usage=known.usage + report.usage,
            extraction=known.extraction + report.extraction,
            stopped=known.stopped or report.stopped,
        )

    def _show(self) -> None:
        if self._progress is not None:
            done = self.report.chunks
            known = round(done / max(1, self._merged) * self._dealt)
            steps = {"shards": (self._merged, self._dealt)}
            self._progress(Progress(done, known, len(self.report.documents), steps))


@contextlib.contextmanager
def _cluster(address: str) -> Iterator[Any]:
    """Ray, connected to a cluster; left connected if it was so before."""
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            f"a cluster needs Ray: pip install 'lightrag-jsonl[ray]' ({error})"
        ) from error
    if ray.is_initialized():
        yield ray
        return
    try:
        host, colon, port = address.removeprefix("ray://").rpartition(":")
        if colon:  # Ray itself would try for minutes
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError) as error:
        raise ConfigError(f"no Ray cluster at {address!r}: {error}") from error
    try:
        yield ray
    finally:
        ray.shutdown()
