"""AsyncLightRAG: documents in, answers out, and how each answer came about."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from lightrag_jsonl.core import protocols, types
from lightrag_jsonl.core.address import Address, AddressArgument, as_address
from lightrag_jsonl.core.answers import Answer, Context
from lightrag_jsonl.core.claims import Conflict
from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.index_reports import (
    DeleteReport,
    DocumentStatus,
    InsertReport,
    MergeReport,
    Status,
)
from lightrag_jsonl.core.options import IndexOptions, QueryFields, QueryParam, ReadMode, Turn
from lightrag_jsonl.core.types import Document, Record
from lightrag_jsonl.core.validation import names_replacements
from lightrag_jsonl.indexing.incoming import storable
from lightrag_jsonl.indexing.progress import ShowProgress
from lightrag_jsonl.lenses.claims import ClaimMemory
from lightrag_jsonl.lenses.conflicts import find_conflicts
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.llm.prompt_manager import PromptManager
from lightrag_jsonl.providers.model_names import model_name
from lightrag_jsonl.rag.admin import Admin
from lightrag_jsonl.rag.engine import Engine, random_id
from lightrag_jsonl.rag.engine_opening import open_engine
from lightrag_jsonl.rag.namespaces import Communities, Entities, Traces
from lightrag_jsonl.rag.settings import EmbedderArgument, LLMArgument
from lightrag_jsonl.rag.splitting import add_indexes, split_index
from lightrag_jsonl.rag.streams import AsyncAnswerStream, queued
from lightrag_jsonl.rag.synchronizing import synchronized
from lightrag_jsonl.readers.limits import FileLimits
from lightrag_jsonl.storage.network import store_network
from lightrag_jsonl.storage.rows import PendingDocument
from lightrag_jsonl.storage.status import document_statuses, index_status
from lightrag_jsonl.storage.store import read
from lightrag_jsonl.text.strings import sanitize
from lightrag_jsonl.tracing.checking import CheckFunction
from lightrag_jsonl.tracing.recorder import Listener

if TYPE_CHECKING:
    import networkx as nx

    from lightrag_jsonl.indexing.loading import Given, UnreadSource
    from lightrag_jsonl.readers.formats import Readers


class AsyncLightRAG:
    """A knowledge graph over texts, kept in one folder, and answers from the graph.

    The constructor opens the index, or makes it. Use an instance from one event loop. `engine` is the
    `Engine` with the parts of the index: store, models and pipelines.

    `working_dir` is the folder, or the URL of a PostgreSQL database (see docs/postgres.md).

    `models` names or holds models for single tasks, in place of `llm`: "extract" (chunks),
    "summarize" (descriptions), "keywords" (of a question), "select" (relations), "answer", and "judge"
    (whether names, or questions, mean the same). Arguments without a task of their own use `llm`.

    An index remembers the names of its models, embedder and language, and the prompts and options
    of the command line; arguments override the recorded names. A model is an object, a function,
    or a name; a name is asked at the endpoint in the user's settings (see `providers.settings`;
    the settings are read for endpoints alone). Without a model ("none", and the default of a new
    index), language rules find entities and keywords and put answers together; the embedder "hash"
    hashes words. Neither needs a key or a network. If the recorded model is not available here,
    methods that need the model raise `ConfigError`.

    `chunker` is a function that divides a page into chunks, in place of the sizes in `options`: from
    the text to its pieces, or to (start, end) in characters. It is not remembered.

    `check` tells whether the sentences near a claim say the same, where words cannot: "judge" (the model
    for this task), "st:" and the name of a cross-encoder for entailment, or a function from claim and
    sentences to True, False or None. It judges answers only if `admin.measure_checker` admitted it.

    `language` is "en" (of a new index), "zh", any language by code or name ("fr", "French": the
    model is asked in English to write French), or the path of a folder with prompts. Fix `clock`
    (seconds since 1970) and `new_id` (ids of traces) to get the same results, byte for byte, in
    every run. With `search_processes`, so many further processes search, and questions at the same time
    use several cores.

    Raises `StorageError` if the folder cannot be used, or with `create=False` holds no
    index, and `SettingsError` if the index was built with different settings.
    """

    @names_replacements
    def __init__(
        self,
        working_dir: AddressArgument,
        *,
        llm: LLMArgument | None = None,
        models: Mapping[types.ModelTask, LLMArgument] | None = None,
        embedder: EmbedderArgument | None = None,
        tokenizer: protocols.Tokenizer | None = None,
        reranker: protocols.Reranker | None = None,
        check: CheckFunction | str | None = None,
        language: str | None = None,
        options: IndexOptions | Mapping[str, Any] | None = None,
        prompts: PromptManager | Path | str | None = None,
        chunker: protocols.Chunker | None = None,
        extractor: protocols.Extractor | None = None,
        keyword_extractor: protocols.KeywordExtractor | None = None,
        answerer: protocols.Answerer | None = None,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = random_id,
        search_processes: int = 0,
        create: bool = True,
    ) -> None:
        self.engine: Engine = open_engine(
            working_dir,
            llm=llm,
            models=models,
            embedder=embedder,
            tokenizer=tokenizer,
            reranker=reranker,
            check=check,
            language=language,
            options=options,
            prompts=prompts,
            chunker=chunker,
            extractor=extractor,
            keyword_extractor=keyword_extractor,
            answerer=answerer,
            clock=clock,
            new_id=new_id,
            search_processes=search_processes,
            create=create,
        )
        self.working_dir: Address = self.engine.working_dir
        self.options: IndexOptions = self.engine.options
        self._network: tuple[int, nx.Graph] | None = None  # with the generation that it shows

    def __repr__(self) -> str:
        return f"AsyncLightRAG({str(self.working_dir)!r})"

    @names_replacements
    async def insert(
        self,
        documents: "Given | Iterable[Given]",
        *,
        sync: bool = False,
        allow_empty: bool = False,
        read: ReadMode | None = None,
        progress: ShowProgress = None,
        readers: "Readers | None" = None,
        file_limits: FileLimits | None = None,
        restore_purged: bool = False,
    ) -> InsertReport:
        """Index texts (`str`), files and folders (`Path`) and `Document`s.

        Files are read by suffix; `readers` adds functions from bytes to a `Document`, for more
        suffixes, like ".abc", or in place of packaged readers. The id of a file is the path: an edited
        file replaces the earlier text. With `sync`, documents of deleted files in the folders are
        deleted at the end; a folder without any readable file raises `ConfigError`, and nothing is
        deleted: it may be a disk that is not mounted. With `allow_empty`, all documents of such a
        folder, or of one that is gone, are deleted. The report then also says what is new, gone and
        contradicted in the graph. `file_limits` limit the cost of reading one file.

        A document with the id and content of an indexed document is skipped; with the id and a new
        content it replaces the indexed document. A text that was purged stays out and is named in the
        report, unless `restore_purged`. A bar for each stage is shown in a terminal and in a notebook;
        `progress=False` shows no bar, and a function is called with a `Progress` instead.

        With `read="asked"` no model reads the chunks now: names and neighbours are found by rules, and
        a question has a model read the best chunks that it finds (`QueryParam.read_chunks`). The index
        remembers this for later inserts and questions; `read="all"` lets a model read each chunk when
        it is inserted, as a new index does.

        An unreadable file or document becomes a failure in the report; a single unreadable file raises
        `ConfigError`. An error that would stop every further document (a wrong key or address, an
        unknown model, no answers any more) is raised, with the work until then as its `report`; a limit
        of calls or tokens is no error, but `stopped` in the report. Like every writing method, raises
        `LockedError` if another process keeps writing for longer than `IndexOptions.lock_timeout`.
        """
        may_be_empty = allow_empty if sync else None

        async def insert_sources(sources: "Given | Iterable[Given]") -> InsertReport:
            unread: list[UnreadSource] = []
            pending = self.engine.pending_documents(
                sources, unread, readers=readers, file_limits=file_limits, allow_empty=may_be_empty
            )
            return await self.engine.indexing.insert(
                pending, progress=progress, restore_purged=restore_purged, unread=unread
            )

        await self.engine.record_models()
        if read is not None:
            await self.engine.record_read_mode(read)
        if sync:
            return await synchronized(
                self.engine, documents, insert_sources, allow_gone=allow_empty
            )
        return await insert_sources(documents)

    async def extract(self, document: Document | str) -> tuple[types.Extraction, ...]:
        """Read a text without indexing it: entities and relations of each chunk, as an insert would
        read them. Nothing is stored, neither the text nor the model's answers.

        `Extraction.as_records` gives records for `insert_records`, for example after a check by
        your own rules. A chunk that could not be read has an `error`; an error that would stop every
        chunk (a wrong key or address, an unknown model) is raised.
        """
        if isinstance(document, str):
            document = Document(document)
        pending = PendingDocument(document=document, created_at=0.0)
        meter = UsageMeter()
        with meter.attach_usage():
            return tuple(await self.engine.extract(storable(pending).document, meter))

    async def insert_records(
        self,
        document: Document | str,
        records: Iterable[Record],
        chunks: Sequence[str] | None = None,
        *,
        restore_purged: bool = False,
    ) -> InsertReport:
        """Index a document from ready-made records of `extract-graph`; no model is called.

        A record may name a chunk by index (`"chunk"`, default 0). `chunks` are the pieces of the
        document in order; without `chunks` the document is cut as usual. `ConfigError` names a
        piece missing from the text. An invalid record is listed in `rejections`. A text that was purged
        stays out, unless `restore_purged`.
        """
        if chunks is not None and (isinstance(chunks, str) or not chunks):
            raise ConfigError("chunks must be the pieces of the document, at least one, or None")
        if isinstance(document, str):
            document = Document(document)
        await self.engine.record_models(overwrite=False)
        pending = PendingDocument(
            document=document,
            created_at=self.engine.clock.seconds(),
            records=tuple(records),
            chunks=None if chunks is None else tuple(chunks),
        )
        return await self.engine.indexing.insert(
            [pending], progress=False, summarize=False, restore_purged=restore_purged
        )

    async def resume(self, *, progress: ShowProgress = None) -> InsertReport:
        """Continue with the pending documents of an interrupted insert; raises like `insert`."""
        return await self.engine.indexing.resume(progress=progress)

    async def retry(
        self,
        *,
        upgrade: bool = False,
        max_tokens: int | None = None,
        progress: ShowProgress = None,
    ) -> InsertReport:
        """Repeat the extraction of failed chunks, complete the extraction of partial chunks, and embed
        the texts refused by the embedder.

        With `upgrade`, also repeat the extraction of chunks read without a model, with another
        model, or with another revision of the prompt. A failing chunk keeps the earlier result.
        In an index that is read when it is asked, this reads the rest: first what questions have found
        most often, then what has the most frequent names. It ends after `max_tokens` of input and output.

        After an interruption, another call continues. `ConfigError` without a model or `extractor`;
        raises like `insert`.
        """
        if upgrade:
            if self.engine.reads_by_rules:
                raise ConfigError("an upgrade needs a model: none was given")
            await self.engine.check_new_models()
            await self.engine.record_models()
        return await self.engine.indexing.retry(
            upgrade=upgrade, max_tokens=max_tokens, progress=progress
        )

    async def delete(self, *ids: str, purge: bool = False) -> DeleteReport:
        """Remove documents by id; `NotFoundError` names unknown ids, and then nothing is removed.

        With `purge` no text of these documents, or of documents and versions deleted earlier, remains
        in the folder: cached answers, unused vectors and traces that may quote a document are
        deleted, and so are a server's records of ended jobs; the database is rewritten. `LockedError`
        if another process still reads an earlier state: the documents are deleted then, and
        `admin.vacuum` does the rest.
        """
        return await self.engine.indexing.delete(checked_texts(ids), purge=purge)

    @names_replacements
    async def merge_from(
        self, *indexes: str | Address, restore_purged: bool = False, progress: ShowProgress = None
    ) -> MergeReport:
        """Add the documents of other indexes (folders or addresses), as if inserted here.

        Edits by hand, merges of names, vectors and the model's cached answers come along; recorded
        queries and pending documents stay behind. No model is called: new summaries stay due
        (`admin.summarize` writes due summaries). Only texts without a vector in the other indexes
        are embedded. Documents already here are skipped: after an interruption, another call
        continues.

        Documents that were purged here are left out, and named in the report; with `restore_purged` they come
        back.

        Nothing is changed if an index was built with another embedder, language or tokenizer
        (`SettingsError`), or if there are two versions of a document or contradictory merges of
        names (`ConfigError` names both).
        """
        addresses = [as_address(index) for index in indexes]
        return await add_indexes(
            self.engine, addresses, restore_purged=restore_purged, progress=progress
        )

    @names_replacements
    async def split(
        self,
        documents: Iterable[str],
        into: str | Address,
        *,
        remove: bool = False,
        progress: ShowProgress = None,
    ) -> MergeReport:
        """Make a new index of the documents with these ids, at the address `into`.

        With `remove`, the documents are deleted here, but those that were purged at `into`. Cached answers about a single document are
        copied, and so are all merges of names. `NotFoundError` names unknown documents.
        """
        ids = checked_texts(documents)
        return await split_index(
            self.engine, ids, as_address(into), remove=remove, progress=progress
        )

    async def conflicts(
        self,
        *,
        explained: bool = False,
        functional_kinds: Iterable[str] | None = None,
        limit: int | None = 100,
    ) -> tuple[Conflict, ...]:
        """Pairs of claims of the texts that contradict each other, by subject: different values where a
        subject has one value at a time. Such kinds are learned from the counts of the index, or named:
        here, or for answers, too, in `IndexOptions.functional_kinds`.

        With `explained`, pairs follow that time explains: an earlier value and a later one. A relation
        that a person makes or changes, with a reason, settles the contradictions about it, and so does the
        deletion of a relation. No model is called.
        """
        engine = self.engine
        claims = engine.claims if functional_kinds is None else ClaimMemory(functional_kinds)
        return await read(
            engine.store,
            lambda view: find_conflicts(
                view, claims.claims(view), explained=explained, limit=limit
            ),
        )

    async def status(self) -> Status:
        """The numbers of documents, entities and relations, and the parts of the index."""
        engine = self.engine
        totals = engine.report_totals
        status = await read(engine.store, lambda view: index_status(view, totals))
        return replace(
            status,
            working_dir=str(self.working_dir),
            language=self.engine.language,
            llm=model_name(engine.llm),
            models={task: model_name(model) for task, model in engine.models.items()},
            embedder=engine.embedder.name,
            tokenizer=engine.tokenizer.name,
            bytes_on_disk=engine.store.size(),
        )

    async def documents(
        self, *, limit: int | None = None, offset: int = 0
    ) -> tuple[DocumentStatus, ...]:
        """The documents, with the results of extraction; pending documents last.

        The first `offset` are left out, and at most `limit` returned.
        """
        load = partial(document_statuses, limit=limit, offset=offset)
        return await read(self.engine.store, load)

    async def pages(self, document_id: str) -> tuple[types.Page, ...]:
        """A document's pages, as indexed."""
        (id,) = checked_texts([document_id])
        pages = await read(self.engine.store, lambda view: view.pages([id]))
        if not pages:
            raise NotFoundError(f"no such document: {id}")
        return pages

    async def rejections(self, *ids: str) -> list[tuple[str, str, types.Rejection]]:
        """Rejected lines as (document id, chunk id, rejection); without ids, of all documents."""
        document_ids = checked_texts(ids) or None
        return await read(self.engine.store, lambda view: view.rejections(document_ids))

    async def query(
        self,
        question: str,
        param: QueryParam | Mapping[str, Any] | None = None,
        *,
        history: Sequence[Turn] = (),
        explain: bool = False,
        listener: Listener | None = None,
        **fields: Unpack[QueryFields],
    ) -> Answer:
        """Answer a question from the index.

        `history` and any field of `QueryParam`, like `mode`, override the fields of `param`; `None`
        overrides nothing. Every query leaves a trace with the id `Answer.trace_id` (`None` if
        `keep_traces` is 0, or the folder is read-only). If the query fails, the error has the calls
        and tokens in `usage`.

        With `explain=True` the model selects the relations and gives reasons, unless there is no
        model or `selection` is "all". `listener` receives each event after the event is stored; the
        last event is an `End`, also after an error.
        """
        param = self._param(param, history, fields, explain=explain)
        return await self.engine.answer(question, param, UsageMeter(), listener=listener)

    async def retrieve(
        self,
        question: str,
        param: QueryParam | Mapping[str, Any] | None = None,
        *,
        history: Sequence[Turn] = (),
        **fields: Unpack[QueryFields],
    ) -> Context:
        """The context sent to the model: ranked entities, relations and chunks, and the prompt text."""
        param = self._param(param, history, fields)
        return await self.engine.retrieval.retrieve(question, param)

    def stream(
        self,
        question: str,
        param: QueryParam | Mapping[str, Any] | None = None,
        *,
        history: Sequence[Turn] = (),
        explain: bool = False,
        listener: Listener | None = None,
        **fields: Unpack[QueryFields],
    ) -> AsyncAnswerStream:
        """The answer in pieces; after the last piece, `.answer` holds the complete answer.

        Arguments as in `query`. `.usage` counts the calls and tokens used so far.
        """
        param = self._param(param, history, fields, explain=explain)
        meter = UsageMeter()

        async def run(put_item: Callable[[str | Answer], None]) -> None:
            put_item(
                await self.engine.answer(
                    question, param, meter, listener=listener, put_piece=put_item
                )
            )

        return AsyncAnswerStream(queued(run), meter)

    @property
    def entities(self) -> Entities:
        """Entities, relations and merges of names: `get`, `list`, `relations`, `neighbours`, `history`, `merge`, …"""
        return Entities(self.engine)

    @property
    def communities(self) -> Communities:
        """Groups of entities and passages that belong together: `list`, `report`, `estimate_report`."""
        return Communities(self.engine)

    @property
    def traces(self) -> Traces:
        """The recorded questions: `get`, `list`, `page`, `export`, `verify`, `sources`, …"""
        return Traces(self.engine)

    @property
    def admin(self) -> Admin:
        """Maintenance of the index: `export`, `snapshot`, `check`, `vacuum`, `settings`, …"""
        return Admin(self.engine)

    @property
    def graph(self) -> "nx.Graph":
        """A read-only networkx graph of the index as it is now: nodes by entity name, with all attributes as
        texts, and weights as numbers, ready for networkx to write in any format.

        No copy is made: algorithms read the index in memory. Attributes are read from the store when they are
        asked for, and only while the index is open; `rag.graph.copy()` is a graph of its own.
        """
        with self.engine.store.view() as view:
            generation = view.generation
        if self._network is None or self._network[0] != generation:
            self._network = generation, store_network(self.engine.store)
        return self._network[1]

    async def close(self) -> None:
        """Close the index; further calls raise `StorageError`."""
        self.engine.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def _param(
        self,
        param: QueryParam | Mapping[str, Any] | None,
        history: Sequence[Turn],
        fields: QueryFields,
        *,
        explain: bool = False,
    ) -> QueryParam:
        """The settings of a question: `param`, overridden by the fields with a value."""
        overrides: dict[str, Any] = {
            name: value for name, value in fields.items() if value is not None
        }
        if param:
            param = replace(QueryParam.from_mapping(param), **overrides)
        else:
            param = QueryParam(**overrides)
        if explain and param.selection == "score" and self.engine.client.has_model("select"):
            param = replace(param, selection="llm")
        if history:
            param = replace(param, conversation_history=tuple(history))
        return param


def checked_texts(texts: Iterable[str]) -> list[str]:
    """Ids as stored; `TypeError` for an id of another type than `str`, `NotFoundError` for an id
    with characters that cannot be stored.
    """
    ids = list(texts)
    for id in ids:
        if not isinstance(id, str):
            raise TypeError(f"an id is a text, not {type(id).__name__}; a list is given as *ids")
        if sanitize(id) != id:
            raise NotFoundError(f"no such document: {id!r}")
    return ids
