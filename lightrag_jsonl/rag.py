"""AsyncLightRAG: documents in, answers out, and how each answer came about."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
import uuid
from collections.abc import (
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, TypeVar

from lightrag_jsonl.assembly import Engine, Setup, connect, rehearsal
from lightrag_jsonl.defaults import complete, wrapped_embedder
from lightrag_jsonl.errors import ConfigError, NotFoundError, SettingsError, StorageError
from lightrag_jsonl.explain import archive
from lightrag_jsonl.explain.events import Event
from lightrag_jsonl.explain.recorder import Listener
from lightrag_jsonl.files import Given, read_all
from lightrag_jsonl.forks import not_copied
from lightrag_jsonl.indexing.embedding import Embeddings
from lightrag_jsonl.indexing.repairing import Progress
from lightrag_jsonl.indexing.runs import Watcher
from lightrag_jsonl.options import IndexOptions, QueryParam, Turn
from lightrag_jsonl.prompts import PromptManager
from lightrag_jsonl.protocols import (
    LLM,
    Answerer,
    Embedder,
    Extractor,
    KeywordExtractor,
    Reranker,
    Tokenizer,
)
from lightrag_jsonl.questions import AsyncStream, Tell, events
from lightrag_jsonl.spending import Spending
from lightrag_jsonl.storage import (
    documents,
    maintenance,
    overview,
    schema,
    settings,
    snapshot,
    traces,
    views,
)
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.maintenance import CacheStats
from lightrag_jsonl.storage.pending import PendingDocument
from lightrag_jsonl.storage.vector_upkeep import clear_unused_embeddings
from lightrag_jsonl.telling import Told
from lightrag_jsonl.text import sanitize
from lightrag_jsonl.types import (
    Answer,
    Context,
    DeleteReport,
    Document,
    DocumentStatus,
    Failure,
    InsertReport,
    Language,
    Mode,
    Page,
    Record,
    Rejection,
    Status,
    TraceSummary,
    Usage,
)

if TYPE_CHECKING:
    import networkx as nx

    from lightrag_jsonl.batching import BatchExport, BatchImport
    from lightrag_jsonl.duplicates import Duplicate
    from lightrag_jsonl.estimating import Estimate
    from lightrag_jsonl.explain.origins import DocumentOrigins, EdgeOrigins
    from lightrag_jsonl.explain.rdf import Format, Version
    from lightrag_jsonl.explain.sources import Sources
    from lightrag_jsonl.explain.trace import Trace
    from lightrag_jsonl.explain.verify import Problem
    from lightrag_jsonl.importing import ImportReport

# What few programs use (estimates, batches, imports, origins, audits) is imported inside the methods
# that use it: importing it here would delay a program's first answer by a twentieth.

PAUSE_SECONDS = 0.01

Result = TypeVar("Result")

log = logging.getLogger(__name__)


class AsyncLightRAG:
    """A knowledge graph over texts, kept in one folder, and answers from it.

    Without a model (`llm=None`), language rules find entities and keywords and put answers
    together; without an embedder, vectors are hashes of words. Neither needs a key or a network.
    `language` is "en", "zh", or a language that `prompts` provides. Fix `clock` (seconds since
    1970) and `new_id` (ids of traces) to get the same results, byte for byte, in every run.

    Raises `StorageError` if the folder cannot be used, and `SettingsError` if it was built with
    other settings.
    """

    def __init__(
        self,
        working_dir: str | Path,
        *,
        llm: LLM | Callable[..., object] | None = None,
        embedder: Embedder | Callable[..., object] | None = None,
        tokenizer: Tokenizer | None = None,
        reranker: Reranker | None = None,
        language: str = "en",
        options: IndexOptions | None = None,
        prompts: PromptManager | Path | str | None = None,
        extractor: Extractor | None = None,
        keyword_extractor: KeywordExtractor | None = None,
        answerer: Answerer | None = None,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self.options = options or IndexOptions()
        self.language = language
        self._clock = clock
        self._view: tuple[int, nx.Graph] | None = None
        self._moves = 0  # calls of `reembed` under way
        self._prompts = (
            prompts if isinstance(prompts, PromptManager) else PromptManager.load(language, prompts)
        )
        parts = complete(llm, embedder, extractor, keyword_extractor, answerer, language)
        setup = Setup(
            parts, tokenizer, reranker, language, self.options, self._prompts, clock, new_id
        )
        self._database = Database(working_dir)
        try:
            self._engine = connect(self._database, setup)
        except BaseException:
            self._database.close()
            raise

    def __repr__(self) -> str:
        return f"AsyncLightRAG({str(self.working_dir)!r})"

    def __reduce__(self) -> NoReturn:
        raise not_copied(self.working_dir)

    @property
    def working_dir(self) -> Path:
        """The folder of the index."""
        return self._database.working_dir

    # ── documents ───────────────────────────────────────────────────────────────

    async def insert(
        self, documents: Given | Iterable[Given], *, watcher: Watcher | None = None
    ) -> InsertReport:
        """Index texts (`str`), files and folders (`Path`) and `Document`s.

        A document whose id and content are known is skipped; one with a known id and a new content
        replaces the old one. `watcher` is told of progress. A file or document that cannot be read
        or indexed becomes a failure in the report; if it is the only one given, it raises
        `ConfigError`. Like every method that writes, this raises `LockedError` if another process
        keeps writing for longer than `IndexOptions.lock_timeout`.
        """
        waiting, unreadable = self._pending(documents)
        report = await self._steadily(lambda on: on.indexing.insert(waiting, watcher=watcher))
        return replace(report, failures=(*unreadable, *report.failures))

    def _pending(
        self, documents: Given | Iterable[Given]
    ) -> tuple[Iterator[PendingDocument], list[Failure]]:
        """The documents, read one at a time, and a list that collects the ones that could not be read."""
        unreadable: list[Failure] = []

        def waiting() -> Iterator[PendingDocument]:
            for one in read_all(documents):
                if isinstance(one, Failure):
                    unreadable.append(one)
                else:
                    yield PendingDocument(one, None, None, self._clock())

        return waiting(), unreadable

    async def insert_records(
        self,
        document: Document | str,
        records: Iterable[Record],
        chunks: Sequence[str] | None = None,
    ) -> InsertReport:
        """Index a document from ready-made records of the prompt `extract-graph`; no model is
        asked.

        A record may name its chunk by index (`"chunk"`, default 0). `chunks` are the pieces of the
        document in order; without them the document is cut as usual. `ConfigError` names a record
        or a piece that does not fit.
        """
        whole = Document(document) if isinstance(document, str) else document
        if chunks is not None and (isinstance(chunks, str) or not chunks):
            raise ConfigError("chunks must be the pieces of the document, at least one, or None")
        pieces = None if chunks is None else tuple(chunks)
        waiting = PendingDocument(whole, tuple(records), pieces, self._clock())
        return await self._steadily(lambda on: on.indexing.insert([waiting]))

    async def update(self, document: Document) -> InsertReport:
        """Replace the document of the same id; the model is asked only about chunks whose text
        changed.

        Raises `NotFoundError` if there is no document of this id.
        """
        if document.id is None:
            raise ConfigError("update needs a document with the id of the one it replaces")
        id = sanitize(document.id)
        if not await self._database.read(lambda connection: documents.is_known(connection, id)):
            raise NotFoundError(f"no such document: {id}")
        return await self.insert(document)

    async def resume(self, *, watcher: Watcher | None = None) -> InsertReport:
        """Go on with documents that an interrupted insert left waiting."""
        return await self._steadily(lambda on: on.indexing.resume(watcher=watcher))

    async def retry(self, *, watcher: Watcher | None = None) -> InsertReport:
        """Ask again for every chunk that failed, and for the missing part of chunks read in part."""
        return await self._steadily(lambda on: on.indexing.retry(watcher=watcher))

    async def delete(self, *ids: str) -> DeleteReport:
        """Remove documents by id; if some ids are unknown, `NotFoundError` names them and none is
        removed.
        """
        wanted = _texts(ids)
        return await self._steadily(lambda on: on.indexing.delete(wanted))

    async def estimate(self, documents: Given | Iterable[Given]) -> Estimate:
        """What `insert` would cost with a model, in calls and tokens; no model is asked, nothing is
        stored.
        """
        from lightrag_jsonl.estimating import Foreseen, estimate, scale_of

        setup, tokenizer = self._engine.setup, self._engine.tokenizer
        scale = scale_of(*await self._database.read(overview.measured))
        foreseen = Foreseen(
            self._engine.model_name, self.options.extraction, tokenizer.count, scale=scale
        )
        extractor = rehearsal(self._database, setup, foreseen)
        return await estimate(read_all(documents), extractor, foreseen, tokenizer, self.options)

    async def export_batch(
        self, path: str | Path, documents: Given | Iterable[Given] = (), *, reasoning: bool = False
    ) -> BatchExport:
        """Write the requests to the model as a file in OpenAI's batch format.

        The documents become visible when `import_batch` has brought all answers. Gleaning and
        summaries need further rounds, so call this again after each import. `reasoning=True` leaves
        out the temperature, which reasoning models do not take. Raises `ConfigError` if the index
        has no model.
        """
        from lightrag_jsonl.batching import Batch

        given, unreadable = self._pending(documents)
        done = await Batch(self._database, self._engine.setup).export(
            given, Path(path), reasoning=reasoning
        )
        return replace(done, failures=(*unreadable, *done.failures))

    async def import_batch(self, *paths: str | Path, finish: bool = False) -> BatchImport:
        """Read the results of a batch; documents whose answers are all there become visible.

        With `finish` the missing answers are given up: their chunks count as failed, and all
        waiting documents become visible. Raises `ConfigError` if there is no model, or a file
        cannot be read.
        """
        from lightrag_jsonl.batching import Batch

        batch = Batch(self._database, self._engine.setup)
        return await batch.take_back([Path(path) for path in paths], finish=finish)

    async def import_index(
        self, folder: str | Path, *, watcher: Watcher | None = None
    ) -> ImportReport:
        """Take over a working directory of LightRAG or nano-graphrag; no model is asked.

        Its documents, chunks, entities and relations are copied into this index and embedded anew.
        Raises `ConfigError` if the folder holds no such index.
        """
        from lightrag_jsonl.importing import import_folder

        return await import_folder(
            Path(folder), self._engine.indexing, self._database, clock=self._clock, watcher=watcher
        )

    # ── questions ───────────────────────────────────────────────────────────────

    async def query(
        self,
        question: str,
        param: QueryParam | None = None,
        *,
        mode: Mode | None = None,
        history: Sequence[Turn] = (),
        explain: bool = False,
        listener: Listener | None = None,
    ) -> Answer:
        """Answer a question from the index. `mode` and `history` override those of `param`.

        Every query leaves a trace, whose id is `Answer.trace_id`. An error that ends the query says
        in `usage` what was paid. With `explain=True` the model chooses the relations and gives its
        reasons, unless there is no model or `selection` is "all". `listener` receives each event
        once it is stored.
        """
        asked = self._param(question, param, mode, history, explain)
        spending = Spending()
        return await self._steadily(
            lambda on: on.questions.answer(question, asked, spending, listener)
        )

    async def retrieve(
        self,
        question: str,
        param: QueryParam | None = None,
        *,
        mode: Mode | None = None,
        history: Sequence[Turn] = (),
    ) -> Context:
        """What a model would be shown: ranked entities, relations and chunks, and the text of the
        prompt.
        """
        asked = self._param(question, param, mode, history)
        self._database.check_place()
        return await self._steadily(lambda on: on.querying.retrieve(question, asked))

    def stream(
        self,
        question: str,
        param: QueryParam | None = None,
        *,
        mode: Mode | None = None,
        history: Sequence[Turn] = (),
        explain: bool = False,
        listener: Listener | None = None,
    ) -> AsyncStream:
        """The answer in pieces; after the last one, `.answer` holds it whole. Arguments as in
        `query`.

        `.usage` is what was paid so far, even if the stream is left early.
        """
        asked = self._param(question, param, mode, history, explain)

        spending = Spending()

        def answer(tell: Tell) -> Awaitable[Answer]:
            return self._steadily(
                lambda on: on.questions.answer(question, asked, spending, listener, tell)
            )

        return AsyncStream(answer, spending)

    def events(
        self,
        question: str,
        param: QueryParam | None = None,
        *,
        mode: Mode | None = None,
        history: Sequence[Turn] = (),
        explain: bool = True,
    ) -> Told[Event]:
        """The events of a query as they happen, each stored before it is yielded.

        The last event is always an `End`, with the error if the query failed. `aclose()` ends the
        query early. If `reembed` replaces the vectors while the query runs, the query starts again,
        with a second `Session` event.
        """
        asked = self._param(question, param, mode, history, explain)

        spending = Spending()

        def answer(listener: Listener, tell: Tell) -> Awaitable[Answer]:
            return self._steadily(
                lambda on: on.questions.answer(question, asked, spending, listener, tell)
            )

        return events(answer)

    def _param(
        self,
        question: str,
        param: QueryParam | None,
        mode: Mode | None,
        history: Sequence[Turn],
        explain: bool = False,
    ) -> QueryParam:
        if not isinstance(question, str):
            raise TypeError(f"a question must be a text, not {type(question).__name__}")
        param = param or QueryParam()
        if not isinstance(param, QueryParam):
            raise TypeError(f"param must be a QueryParam, not {type(param).__name__}")
        if mode is not None:
            param = replace(param, mode=mode)
        if explain and param.selection == "score" and self._engine.setup.parts.llm is not None:
            param = replace(param, selection="llm")
        return replace(param, conversation_history=tuple(history)) if history else param

    async def extract(self, prompt: str, text: str, **variables: object) -> list[Record]:
        """The records that one of the extraction prompts yields for a text; nothing is stored.

        `variables` are what the prompt needs besides `text` (`schema`, `classes`, …). Lines that
        are not valid records are logged as warnings.
        """
        if self._prompts.prompt(prompt).response_type != "jsonl":
            raise ConfigError(f"prompt {prompt!r} does not answer with records")
        self._database.check_place()
        asked = await self._engine.ask.jsonl(prompt, {**variables, "text": sanitize(text)})
        for refused in asked.result.rejections:
            if refused.reason != "repaired":
                why = f"{refused.reason}: {refused.detail}" if refused.detail else refused.reason
                log.warning("line %d is no record (%s): %.200s", refused.line, why, refused.text)
        return list(asked.result.records)

    # ── traces ──────────────────────────────────────────────────────────────────

    async def traces(self, *, limit: int = 100) -> tuple[TraceSummary, ...]:
        """The newest queries, each with its status; a negative limit means all."""
        rows = await self._database.read(partial(traces.listed, limit=limit))
        return tuple(TraceSummary(*row) for row in rows)  # type: ignore[arg-type]

    async def trace(self, trace_id: str) -> Trace:
        """How an answer came about; the id may be shortened as long as it stays unambiguous.

        Raises `NotFoundError` if no trace, or more than one, has an id that begins like this.
        """
        return await self._database.read(
            lambda connection: archive.load(connection, archive.find(connection, trace_id))
        )

    async def trace_html(self, trace_id: str, *, language: Language | None = None) -> str:
        """A trace as one self-contained web page, by default in the index's language."""
        return await self._database.read(
            lambda connection: archive.page(
                connection,
                archive.find(connection, trace_id),
                language=language or self.language,
            )
        )

    async def sources(self, trace: Trace) -> Sources:
        """The stored texts behind a trace."""
        return await self._database.read(lambda connection: archive.sources(connection, trace))

    async def edge_origins(self, source: str, predicate: str, target: str) -> EdgeOrigins:
        """Where an edge was read: every chunk, page and document, and the queries that chose it.

        `NotFoundError` names the entity or the edge that does not exist.
        """
        from lightrag_jsonl.explain import origins

        return await self._database.read(
            lambda connection: origins.edge_origins(connection, source, predicate, target)
        )

    async def document_origins(self, document_id: str) -> DocumentOrigins:
        """A document's pages and chunks with the edges they state, and the queries that used it."""
        from lightrag_jsonl.explain import origins

        return await self._database.read(
            lambda connection: origins.document_origins(connection, sanitize(document_id))
        )

    async def export_trace(
        self,
        trace_id: str,
        *,
        format: Format = "nquads",
        rdf: Version = "1.2",
        with_source: bool = False,
        entity_base: str | None = None,
        predicate_base: str | None = None,
    ) -> str:
        """A trace as RDF; `with_source` adds the chain from its edges to their documents.

        The URI of an entity or predicate is a base (by default `urn:entity:` or `urn:predicate:`)
        followed by its percent-encoded key. Raises `ConfigError` for a base without a scheme.
        """

        def exported(connection: sqlite3.Connection) -> str:
            return archive.exported(
                connection,
                archive.find(connection, trace_id),
                format=format,
                rdf=rdf,
                with_source=with_source,
                entity_base=entity_base,
                predicate_base=predicate_base,
            )

        return await self._database.read(exported)

    async def verify(self, *trace_ids: str) -> tuple[Problem, ...]:
        """What is wrong with the named traces; without ids, with all traces and the texts they rest on."""
        from lightrag_jsonl.explain import auditing

        def audited(connection: sqlite3.Connection) -> tuple[Problem, ...]:
            if not trace_ids:
                return tuple(auditing.audit(connection))
            ids = [archive.find(connection, one) for one in trace_ids]
            return tuple(auditing.audit_traces(connection, ids))

        return await self._database.read(audited)

    async def forget_traces(self, *, keep: int) -> int:
        """Delete all but the `keep` newest traces; returns how many were deleted."""
        return await self._database.committed(
            lambda connection: traces.keep_newest(connection, keep)
        )

    # ── upkeep ──────────────────────────────────────────────────────────────────

    async def duplicates(self, *, limit: int = 100) -> tuple[Duplicate, ...]:
        """Pairs of entities that may be the same, likeliest first, with the evidence; none is merged."""
        from lightrag_jsonl.duplicates import find_duplicates

        def search() -> tuple[Duplicate, ...]:  # with a keeper of its own, so that no query waits
            with snapshot.SnapshotKeeper(self._database).snapshot() as moment:
                return find_duplicates(moment, limit=limit)

        return await asyncio.to_thread(search)

    async def merge_entities(self, names: Iterable[str], *, into: str) -> None:
        """Make several names one entity called `into`. Later inserts keep to it; `unmerge` undoes
        it.

        `NotFoundError` names those that no entity has.
        """
        listed = _texts([names] if isinstance(names, str) else names)
        await self._steadily(lambda on: on.indexing.merge(listed, into))

    async def unmerge(self, *names: str) -> None:
        """Make merged names entities of their own again; `NotFoundError` lists names that are not
        merged.

        Names that were merged into one of them earlier stay merged with it. Given the target of a
        merge, which was not merged itself, this undoes that merge.
        """
        listed = _texts(names)
        await self._steadily(lambda on: on.indexing.unmerge(listed))

    async def summarize(self) -> Usage:
        """Ask the model for every summary that is due; returns what that cost."""
        return (await self._steadily(lambda on: on.indexing.summarize())).usage

    async def reembed(
        self, embedder: Embedder | Callable[..., object], *, watcher: Progress | None = None
    ) -> int:
        """Move the index to another embedder, without asking a model; returns the number of texts.

        Questions use the old vectors until all new ones are stored. After an interruption, call it
        again to go on; until it is done, `vacuum` and `clear_cache` delete no vectors.
        """
        setup = self._engine.setup
        parts = replace(setup.parts, embedder=wrapped_embedder(embedder))
        embeddings = Embeddings(
            parts.embedder, self._database, batch_size=self.options.embed_batch_size
        )
        await embeddings.measured()
        recorded = {"embedder": parts.embedder.name, "dim": str(parts.embedder.dim)}
        self._moves += 1
        try:
            return await self._engine.indexing.reembed(embeddings, recorded, watcher)
        finally:  # after a cancellation, too: the switch to the new vectors may have been committed
            if self._is_built_with(recorded):
                self._engine = connect(self._database, replace(setup, parts=parts))
            self._moves -= 1

    def _is_built_with(self, wanted: Mapping[str, str]) -> bool:
        try:
            with self._database.reading() as connection:
                return wanted.items() <= settings.read(connection).items()
        except StorageError:  # it was closed meanwhile
            return False

    async def _steadily(self, call: Callable[[Engine], Awaitable[Result]]) -> Result:
        """The result of `call`; if `reembed` replaced the vectors meanwhile, `call` is made once more."""
        engine = self._engine
        try:
            return await call(engine)
        except SettingsError:
            while self._moves and self._engine is engine:  # `reembed` is about to connect anew
                await asyncio.sleep(PAUSE_SECONDS)
            if self._engine is engine:
                raise
            return await call(self._engine)

    async def repair(self) -> list[str]:
        """Rebuild everything that is derived from the documents and their claims; returns a line
        for each step.
        """
        return await self._steadily(lambda on: on.indexing.repair())

    async def vacuum(self) -> int:
        """Give unused space back to the disk; returns how many bytes that was.

        The whole database is written anew. Answers wait until that is done, since each of them
        stores a trace. While another process reads for a long time, no space can be freed yet; the
        log then says so. A cancelled vacuum still runs to its end.
        """
        return await self._steadily(self._vacuum)

    async def _vacuum(self, on: Engine) -> int:
        async with on.indexing.writing():  # an insert may be about to use these vectors
            before = overview.bytes_on_disk(self.working_dir)
            await self._database.committed(clear_unused_embeddings)
            await self._database.vacuum()
            return max(0, before - overview.bytes_on_disk(self.working_dir))

    async def cache_stats(self) -> CacheStats:
        """What the caches of completions and embeddings hold."""
        return await self._database.read(maintenance.cache_stats)

    async def clear_cache(self) -> int:
        """Delete cached model answers and unused vectors; returns how many."""

        return await self._steadily(self._clear_cache)

    async def _clear_cache(self, on: Engine) -> int:
        def clear(connection: sqlite3.Connection) -> int:
            completions = maintenance.clear_completions(connection)
            return completions + clear_unused_embeddings(connection)

        async with on.indexing.writing():
            return await self._database.committed(clear)

    # ── looking ─────────────────────────────────────────────────────────────────

    async def status(self) -> Status:
        """The index as a whole."""
        self._database.check_place()

        def told(connection: sqlite3.Connection) -> Status:
            recorded = settings.read(connection)
            return Status(
                working_dir=str(self.working_dir),
                documents=overview.document_counts(connection),
                **overview.counts(connection),
                language=self.language,
                llm=self._engine.model_name,
                embedder=self._engine.setup.parts.embedder.name,
                dim=int(recorded.get("dim", 0)),
                tokenizer=self._engine.tokenizer.name,
                format=schema.FORMAT,
                bytes_on_disk=overview.bytes_on_disk(self.working_dir),
                extraction=overview.extraction(connection),
            )

        return await self._database.read(told)

    async def documents(self) -> tuple[DocumentStatus, ...]:
        """Every document, with how its extraction went."""
        self._database.check_place()
        return await self._database.read(overview.document_statuses)

    async def pages(self, document_id: str) -> tuple[Page, ...]:
        """A document's pages, as they were indexed."""
        id = sanitize(document_id)
        found = await self._database.read(lambda connection: documents.pages(connection, id))
        if not found:
            raise NotFoundError(f"no such document: {id}")
        return found

    async def rejections(self, *ids: str) -> list[tuple[str, str, Rejection]]:
        """Refused lines as (document id, chunk id, rejection); without ids, those of all documents."""
        wanted = _texts(ids) or None
        return await self._database.read(lambda connection: overview.rejections(connection, wanted))

    async def records(self) -> list[Record]:
        """Every stored claim as an `extract-graph` record with its document and chunk index."""
        return await self._database.read(lambda connection: list(views.records(connection)))

    @property
    def graph(self) -> nx.Graph:
        """A read-only networkx view: nodes by entity name, with all their attributes."""
        with self._database.reading() as connection:
            generation = snapshot.generation(connection)
            if self._view is None or self._view[0] != generation:
                self._view = (generation, views.named_graph(connection))
        return self._view[1]

    # ── the end ─────────────────────────────────────────────────────────────────

    async def close(self) -> None:
        """Finish writing and close the index; further calls raise `StorageError`."""
        try:
            await asyncio.to_thread(self._database.close)
        except RuntimeError:  # the program is ending, when no thread can be started
            self._database.close()
        self._engine.querying.close()

    async def __aenter__(self) -> AsyncLightRAG:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _texts(given: Iterable[str]) -> list[str]:
    """Ids or names as they are stored; `TypeError` if one is not a `str`."""
    listed = list(given)
    for one in listed:
        if not isinstance(one, str):
            raise TypeError(f"expected texts, one after another, got {type(one).__name__}")
    return [sanitize(one) for one in listed]
