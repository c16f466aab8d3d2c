"""Indexing on a Ray cluster: each node makes small indexes of a few documents, to be merged here.

Each shard is made by a Ray task: in a temporary folder of its node, with model and embedder by the
names that the index remembers. Its database comes back through Ray's object store, and is merged here on arrival: nothing
merged here is ever lost. Ray repeats the task of a node that dies.
"""

import asyncio
import contextlib
import logging
import socket
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from lightrag_jsonl.core.errors import ConfigError, LightRAGError, LLMError
from lightrag_jsonl.core.index_reports import InsertReport
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.core.types import Failure
from lightrag_jsonl.indexing.incoming import incoming_document
from lightrag_jsonl.indexing.loading import Given, UnreadSource
from lightrag_jsonl.indexing.merging import GraphKey
from lightrag_jsonl.indexing.outcome import InsertOutcome, with_unread
from lightrag_jsonl.indexing.progress import Progress, ProgressCallback
from lightrag_jsonl.providers.settings import Setup
from lightrag_jsonl.rag import AsyncLightRAG
from lightrag_jsonl.rag.engine import Engine
from lightrag_jsonl.rag.opening import index_arguments
from lightrag_jsonl.rag.settings import adopt_settings
from lightrag_jsonl.readers.limits import FileLimits
from lightrag_jsonl.storage.rows import PendingDocument, text_mark
from lightrag_jsonl.storage.sqlite.database import FILE_NAME, SQLiteStore
from lightrag_jsonl.storage.status import reads_when_asked

LARGEST_SHARD = 200_000  # characters, about 50 chunks: lost with a node
SHARDS_OF_EACH_CPU = 4  # of an insert, so that no node waits long for the last one
RETRIES = 5  # of a shard whose node or process dies
SHARDS_PER_CPU = 2  # dealt out at a time: one to work on, one to go on with
CONNECT_TIMEOUT = 5.0  # seconds
SHARD_PREFIX = "lightrag-jsonl-shard-"  # of temporary folders
COST_LIMITS = ("max_calls", "max_input_tokens", "max_output_tokens")


Shard: TypeAlias = tuple[PendingDocument, ...]


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """Everything a node needs to make a shard: settings and options of the index, and endpoints."""

    settings: Mapping[str, str]
    options: IndexOptions
    setup: Setup


async def insert_on_ray(
    rag: AsyncLightRAG,
    documents: Given | Iterable[Given],
    address: str,
    *,
    setup: Setup | None = None,
    shard_characters: int | None = None,
    progress: ProgressCallback | None = None,
    file_limits: FileLimits | None = None,
    restore_purged: bool = False,
) -> InsertReport:
    """Index documents on the Ray cluster at `address` ("auto", "local", "HOST:6379", "ray://…").

    Every node needs this package, and access to the model and embedder of the index by their names:
    keys come from the node's own environment or settings, addresses too, unless `setup` gives
    them; "http://localhost:8000/v1" is then a server on each node. Files of prompts and of an
    ontology must lie at the same path on all nodes.

    A document is read by one node; a shard is one document or several, of up to `shard_characters`: by
    default a quarter of what there is to read for each CPU, or 200,000 if that is less.
    Documents in the index are skipped: after an interruption, another call continues. Summaries
    are written at the end, from here. `ConfigError` without Ray, for limits of cost (no node can
    keep them alone), for a chunker, and for models that only a program can make.
    """
    if any(getattr(rag.options, name) is not None for name in COST_LIMITS):
        raise ConfigError(
            f"on a cluster there are no limits of cost: leave out {', '.join(COST_LIMITS)}"
        )
    engine = rag.engine
    if engine.chunker is not None:
        raise ConfigError("a chunker works on this machine only: open the index without it")
    with connected_cluster(address) as ray:
        await engine.record_models(overwrite=False)
        settings = await rag.admin.settings()
        settings |= await asyncio.to_thread(engine.index_settings)
        plan = ShardPlan(settings, rag.options, setup or Setup())
        run = _ClusterInsert(engine, plan, progress)
        pending = run.new_documents(
            engine.pending_documents(documents, run.unread, file_limits=file_limits),
            restore_purged=restore_purged,
        )
        await run.insert(ray, shards(pending, cpus=_cpus(ray), characters=shard_characters))
    is_read_now = not reads_when_asked(settings)
    if is_read_now and engine.client.has_model("summarize") and not run.report.stopped:
        usage = await rag.admin.summarize()  # with the summaries of an interrupted call
        run.report = replace(run.report, usage=run.report.usage + usage)
    report = with_unread(run.full_report(), run.unread)
    if report.stopped:  # there are no limits of cost: it was an error of the nodes
        error = LLMError(report.stopped, permanent=True)
        error.report = report
        error.usage = report.usage
        raise error
    return report


def shards(
    pending: Iterable[PendingDocument], *, cpus: int, characters: int | None = None
) -> Iterator[Shard]:
    """The documents in their order, dealt into shards of so many characters or one document.

    By default there are a few shards for each CPU; where there is more to read than the largest ones hold, that is
    not known before all is read, and shards are of the largest size.
    """
    if characters is None:
        count = SHARDS_OF_EACH_CPU * cpus
        beginning, pending = _with_beginning(pending, count * LARGEST_SHARD)
        characters = min(LARGEST_SHARD, -(-sum(map(_characters, beginning)) // count))
    shard: list[PendingDocument] = []
    shard_length = 0
    for document in pending:
        length = _characters(document)
        if shard and shard_length + length > characters:
            yield tuple(shard)
            shard = []
            shard_length = 0
        shard.append(document)
        shard_length += length
    if shard:
        yield tuple(shard)


def _with_beginning(
    pending: Iterable[PendingDocument], characters: int
) -> tuple[list[PendingDocument], Iterator[PendingDocument]]:
    """The first documents, of so many characters, and all documents."""
    documents = iter(pending)
    beginning: list[PendingDocument] = []
    length = 0
    for document in documents:
        beginning.append(document)
        length += _characters(document)
        if length >= characters:
            break
    return beginning, chain(beginning, documents)


def _characters(pending: PendingDocument) -> int:
    """The characters of a document."""
    return sum(map(len, pending.document.pages or [pending.document.text]))


def make_shard(plan: ShardPlan, documents: Shard) -> tuple[bytes, InsertReport]:
    """On a node: the database of an index of these documents, without summaries, and its report."""
    with tempfile.TemporaryDirectory(prefix=SHARD_PREFIX) as scratch:
        folder = Path(scratch)
        with closing(SQLiteStore(folder)) as store:
            adopt_settings(store, plan.settings)
        arguments = index_arguments(replace(plan.setup, working_dir=folder))
        arguments["options"] = plan.options
        report = asyncio.run(_insert_shard(arguments, documents))
        return (folder / FILE_NAME).read_bytes(), report


async def _insert_shard(arguments: Mapping[str, Any], documents: Shard) -> InsertReport:
    """The report of an insert; of one that ended with an error, the work until then is merged."""
    async with AsyncLightRAG(**arguments) as rag:
        try:
            return await rag.engine.indexing.insert(documents, tolerant=True, summarize=False)
        except LightRAGError as error:
            if error.report is None:
                raise
            return error.report


@contextlib.contextmanager
def _stored_shard(database: bytes) -> Iterator[SQLiteStore]:
    """The store of a database, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix=SHARD_PREFIX) as scratch:
        folder = Path(scratch)
        (folder / FILE_NAME).write_bytes(database)
        with closing(SQLiteStore(folder, create=False)) as store:
            yield store


def _cpus(ray: Any) -> int:
    """The CPUs of the cluster now, at least one."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


class _ClusterInsert:
    """An insert on a cluster: what nodes have read so far, the documents that they are not given, and the
    numbers of shards.
    """

    def __init__(self, engine: Engine, plan: ShardPlan, progress: ProgressCallback | None) -> None:
        self.report = InsertReport()
        self.unread: list[UnreadSource] = []
        self._left_out = InsertOutcome()
        self._engine = engine
        self._plan = plan
        self._progress = progress
        self._touched: set[GraphKey] = set()
        self._seen_marks: set[str] = set()  # of purges before this insert
        self._dealt = 0
        self._merged = 0

    def new_documents(
        self, pending: Iterable[PendingDocument], *, restore_purged: bool
    ) -> Iterator[PendingDocument]:
        """The documents that differ from the index; of several with one id, the last one counts. What was
        purged stays out, unless `restore_purged`.
        """
        with self._engine.store.view() as view:
            contents = {document.id: document.content for document in view.documents()}
            self._seen_marks = view.purge_marks()
        marks = set() if restore_purged else self._seen_marks
        for pending_document in pending:
            waiting = self._left_out.storable_document(pending_document)
            if waiting is None:
                continue
            incoming = incoming_document(waiting)
            row = incoming.document
            if marks and text_mark(incoming.pages) in marks:
                self._left_out.purged.append(incoming.id)
                continue
            if contents.get(row.id) == row.content:
                self._left_out.unchanged.append(row.id)
            else:
                contents[row.id] = row.content
                yield waiting

    def full_report(self) -> InsertReport:
        """The report with the documents that no node was given."""
        left_out = self._left_out
        return replace(
            self.report,
            unchanged=tuple(left_out.unchanged),
            purged=(*self.report.purged, *left_out.purged),
            failures=(*self.report.failures, *left_out.failures),
        )

    async def insert(self, ray: Any, waiting_shards: Iterator[Shard]) -> None:
        """Deal out the waiting shards, and merge each on arrival, until all are merged."""
        make = ray.remote(max_retries=RETRIES)(make_shard)
        plan = ray.put(self._plan)
        running: dict[Any, Shard] = {}  # by task
        while True:
            while len(running) < SHARDS_PER_CPU * _cpus(ray) and not self.report.stopped:
                shard = next(waiting_shards, None)
                if shard is None:
                    break
                running[make.remote(plan, shard)] = shard
                self._dealt += 1
            self._show_progress()
            if not running:
                return
            ended, _ = await asyncio.to_thread(ray.wait, list(running), fetch_local=False)
            for task in ended:
                await self._take(ray, task, running.pop(task))

    async def _take(self, ray: Any, task: Any, shard: Shard) -> None:
        """Merge the shard that a task has made; after too many dead nodes, its documents become failures."""
        try:
            database, report = await asyncio.to_thread(ray.get, task)
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, LightRAGError):
                raise error.cause from error
            raise LightRAGError(f"a node of the cluster failed: {error.cause!r}") from error
        except ray.exceptions.RayError as error:
            message = f"the shard was lost {RETRIES + 1} times: {error}"
            reason, _, _ = message.partition("\n")
            for pending in shard:
                document_id = pending.document.id or ""
                self.unread.append(Failure(document_id, None, reason))
        else:
            await self._merge(database, report)
        self._merged += 1

    async def _merge(self, database: bytes, report: InsertReport) -> None:
        """Merge the database of a shard, and add its report to the report."""
        with _stored_shard(database) as store:
            merged = await self._engine.curation.merge_indexes(
                [store],
                replaces=True,
                seen_marks=self._seen_marks,
                touched=self._touched,
            )
        counts = Counter(kind for kind, _ in self._touched)
        whole = self.report
        self.report = replace(
            whole,
            documents=(*whole.documents, *merged.documents),
            purged=(*whole.purged, *merged.purged),
            chunks=whole.chunks + merged.chunks,
            entities=counts["entity"],
            relations=counts["relation"],
            failures=(*whole.failures, *report.failures),
            shortened=(*whole.shortened, *report.shortened),
            usage=whole.usage + report.usage,
            extraction=whole.extraction + report.extraction,
            stopped=whole.stopped or report.stopped,
        )

    def _show_progress(self) -> None:
        """Report the chunks so far, out of an estimate from the merged shards."""
        if self._progress is None:
            return
        chunks = self.report.chunks
        chunks_per_shard = chunks / max(1, self._merged)
        self._progress(
            Progress(
                chunks_done=chunks,
                chunks_known=round(chunks_per_shard * self._dealt),
                documents_done=len(self.report.documents),
                steps={"shards": (self._merged, self._dealt)},
            )
        )


@contextlib.contextmanager
def connected_cluster(address: str) -> Iterator[Any]:
    """Ray, connected to a cluster; an earlier connection is used, and stays. `ConfigError` without Ray, or
    if there is no cluster; then nothing of the attempt is left.
    """
    try:
        import ray
    except ImportError as error:
        raise ConfigError(f"a cluster needs Ray: pip install '.[ray]' ({error})") from error
    if ray.is_initialized():
        yield ray
        return
    try:
        host, colon, port = address.removeprefix("ray://").rpartition(":")
        if colon:  # Ray itself would try for minutes
            connection = socket.create_connection((host, int(port)), CONNECT_TIMEOUT)
            connection.close()
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # Ray raises a plain one if a node does not start in time
        ray.shutdown()
        raise ConfigError(
            f"no Ray cluster at {address!r}: start one (on this machine: ray start --head), or give "
            f"the address of one: {error}"
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()
