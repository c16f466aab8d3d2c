"""AsyncLightRAG: documents in, answers out, and how each answer came about."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from lightrag_jsonl.core import types
from lightrag_jsonl.core.address import Address, as_address
from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.options import QueryFields, QueryParam, Turn
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import Answer, Document, Failure, Record
from lightrag_jsonl.core.validation import names_replacements
from lightrag_jsonl.indexing.loading import Given, gone_files, load_documents
from lightrag_jsonl.indexing.progress import ShowProgress, progress_bars
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.providers import configured, offline
from lightrag_jsonl.rag.export import network
from lightrag_jsonl.rag.parts import IndexParts, adopt_settings
from lightrag_jsonl.rag.streams import AsyncAnswerStream, queued
from lightrag_jsonl.readers import Readers
from lightrag_jsonl.storage.opening import open_store
from lightrag_jsonl.storage.rows import PendingDocument
from lightrag_jsonl.storage.status import document_statuses, index_status
from lightrag_jsonl.storage.store import Store, read
from lightrag_jsonl.tracing.events import Session
from lightrag_jsonl.tracing.recorder import Listener, Recorder, replay

if TYPE_CHECKING:
    import networkx as nx


class AsyncLightRAG(IndexParts):
    """A knowledge graph over texts, kept in one folder, and answers from it.

    `working_dir` is the folder, or the URL of a PostgreSQL database (see docs/postgres.md).

    An index remembers the names of its model, embedder and language, and the prompts and options
    of the command line; they are used unless others are given. A model is an object, a function,
    or a name, which is asked at the endpoint of the user's settings (see `providers.configured`;
    they are read for that alone). Without a model ("none", and the default of a new index),
    language rules find entities and keywords and put answers together; the embedder "hash" hashes
    words. Neither needs a key or a network. If the recorded model is not available here, methods
    that need it raise `ConfigError`.

    `language` is "en" (of a new index), "zh", any other by code or name ("fr", "French": the model
    is asked in English to write in it), or the path of a folder with prompts. Fix `clock`
    (seconds since 1970) and `new_id` (ids of traces) to get the same results, byte for byte, in
    every run. One instance is used from one event loop.

    Raises `StorageError` if the folder cannot be used, or with `create=False` holds no
    index, and `SettingsError` if it was built with other settings.
    """

    def __repr__(self) -> str:
        return f"AsyncLightRAG({str(self.working_dir)!r})"

    @names_replacements
    async def insert(
        self,
        documents: Given | Iterable[Given],
        *,
        sync: bool = False,
        progress: ShowProgress = None,
        readers: Readers | None = None,
    ) -> types.InsertReport:
        """Index texts (`str`), files and folders (`Path`) and `Document`s.

        Files are read by their suffix; `readers` adds functions from bytes to a `Document`, for
        more suffixes, such as ".abc", or in place of packaged ones. A file's id is its path, so that
        an edited file replaces its earlier text. With `sync`, documents whose files are gone from
        the given folders are deleted at the end; a folder without any readable file raises
        `ConfigError`, and nothing is deleted.

        A document whose id and content are known is skipped; one with a known id and a new content
        replaces the old one. A bar for each stage is shown in a terminal and in a notebook;
        `progress=False` shows none, and a function is called with a `Progress` instead.

        A file or document that cannot be read or indexed becomes a failure in the report; a file
        that cannot be read and is the only one given raises `ConfigError`. Like every method that
        writes, this raises `LockedError` if another process keeps writing for longer than
        `IndexOptions.lock_timeout`.
        """
        failures: list[Failure] = []
        await self._record_models()
        if sync and not isinstance(documents, str | Path | Document):
            documents = list(documents)
        folders = _folders(documents) if sync else []
        pending = self._pending(documents, failures, readers)
        report = await self._indexing.insert(pending, progress=progress)
        report = replace(report, failures=(*failures, *report.failures))
        if not folders or report.stopped:
            return report
        known = {one.id for one in await self.documents()}
        found = {*report.documents, *report.unchanged}
        failed = [one.document_id for one in report.failures]
        gone = {id for one in folders for id in gone_files(one, known, found, failed)}
        if gone:
            await self._indexing.delete(sorted(gone))
        return replace(report, deleted=tuple(sorted(gone)))

    def _pending(
        self,
        documents: Given | Iterable[Given],
        failures: list[Failure],
        readers: Readers | None = None,
    ) -> Iterator[PendingDocument]:
        """The documents, read one at a time; those that cannot be read are added to `failures`."""
        for one in load_documents(documents, readers):
            if isinstance(one, Failure):
                failures.append(one)
            else:
                yield PendingDocument(one, self._seconds())

    async def insert_records(
        self,
        document: Document | str,
        records: Iterable[Record],
        chunks: Sequence[str] | None = None,
    ) -> types.InsertReport:
        """Index a document from ready-made records of `extract-graph`; no model is called.

        A record may name its chunk by index (`"chunk"`, default 0). `chunks` are the pieces of the
        document in order; without them the document is cut as usual. `ConfigError` names a piece
        that does not occur. An invalid record is listed in `rejections`.
        """
        if chunks is not None and (isinstance(chunks, str) or not chunks):
            raise ConfigError("chunks must be the pieces of the document, at least one, or None")
        document = Document(document) if isinstance(document, str) else document
        pieces = None if chunks is None else tuple(chunks)
        await self._record_models(keep=True)
        pending = PendingDocument(document, self._seconds(), tuple(records), pieces)
        return await self._indexing.insert([pending], progress=False, summarize=False)

    async def resume(self, *, progress: ShowProgress = None) -> types.InsertReport:
        """Continue with the documents that an interrupted insert left pending."""
        return await self._indexing.resume(progress=progress)

    async def retry(
        self, *, upgrade: bool = False, progress: ShowProgress = None
    ) -> types.InsertReport:
        """Repeat the extraction of failed chunks, and complete that of partial chunks.

        With `upgrade`, also repeat it for chunks that were extracted without a model, with another
        model, or with another revision of the prompt. A chunk that fails keeps its earlier result. After an
        interruption, call it again to continue. `ConfigError` without a model or `extractor`.
        """
        if upgrade and isinstance(self._extractor, offline.OfflineExtractor):
            raise ConfigError("an upgrade needs a model: none was given")
        if upgrade:
            await self._record_models()
        return await self._indexing.retry(upgrade=upgrade, progress=progress)

    async def delete(self, *ids: str, purge: bool = False) -> types.DeleteReport:
        """Remove documents by id; `NotFoundError` names unknown ones, and then none is removed.

        With `purge` no text of these, or of documents that were deleted earlier, remains in the
        folder: cached answers, kept vectors and traces that may quote them go, and the database is
        rewritten. `LockedError` if another process still reads an earlier state: the documents
        are deleted then, and `admin.vacuum` does the rest.
        """
        return await self._indexing.delete(checked_texts(ids), purge=purge)

    @names_replacements
    async def merge_from(
        self, *indexes: str | Address, progress: ShowProgress = None
    ) -> types.MergeReport:
        """Add the documents of other indexes (folders or addresses), as if they were inserted here.

        Edits by hand, merges of names, vectors and the model's cached answers come with them;
        recorded queries and pending documents do not. No model is called: new summaries stay due
        (`admin.summarize` writes them). A text is embedded only if it differs from those in the
        other indexes. Documents that are here already are skipped, so an interrupted merge is
        continued by calling it again.

        Nothing is changed if an index was built with another embedder, language or tokenizer
        (`SettingsError`), or if there are two versions of a document or contradictory merges of
        names (`ConfigError` names them).
        """
        with ExitStack() as opened:
            stores = [open_store(as_address(one), create=False) for one in indexes]
            for store in stores:
                opened.callback(store.close)
            return await self._join(stores, None, progress)

    @names_replacements
    async def split(
        self,
        documents: Iterable[str],
        into: str | Address,
        *,
        remove: bool = False,
        progress: ShowProgress = None,
    ) -> types.MergeReport:
        """Make a new index of the documents with these ids, at the address `into`.

        They stay here, too, unless `remove`. Cached answers that are about one of the documents
        alone are copied, and so are all merges of names. `NotFoundError` names unknown documents.
        """
        ids = checked_texts(documents)
        known = {one.id for one in await self.documents()}
        if missing := [id for id in ids if id not in known]:
            raise NotFoundError(f"no such document: {', '.join(missing)}")
        settings = await read(self._store, lambda view: view.settings())
        with closing(open_store(as_address(into))) as store:
            adopt_settings(store, settings)
        async with AsyncLightRAG(
            into,
            llm=self._llm or configured.NO_MODEL,
            embedder=self._embedder,
            tokenizer=self._tokenizer,
            options=self.options,
            prompts=self._prompts,
        ) as part:
            report = await part._join([self._store], ids, progress)
        if remove:
            await self.delete(*ids)
        return report

    async def _join(
        self, stores: Sequence[Store], only: Sequence[str] | None, progress: ShowProgress
    ) -> types.MergeReport:
        await self._record_models(keep=True)
        with progress_bars(progress) as show:
            return await self._indexing.join(stores, only, progress=show)

    async def status(self) -> types.Status:
        """How much the index holds, and what it was built with."""
        status = await read(self._store, index_status)
        return replace(
            status,
            working_dir=str(self.working_dir),
            language=self.language,
            llm=self._client.llm.name if self._client.has_model else "none",
            embedder=self._embedder.name,
            tokenizer=self._tokenizer.name,
            bytes_on_disk=self._store.size(),
        )

    async def documents(
        self, *, limit: int | None = None, offset: int = 0
    ) -> tuple[types.DocumentStatus, ...]:
        """The documents, with the results of their extraction; pending ones last.

        The first `offset` are left out, and at most `limit` returned.
        """
        return await read(self._store, partial(document_statuses, limit=limit, offset=offset))

    async def pages(self, document_id: str) -> tuple[types.Page, ...]:
        """A document's pages, as they were indexed."""
        (id,) = checked_texts([document_id])
        found = await read(self._store, lambda view: view.pages([id]))
        if not found:
            raise NotFoundError(f"no such document: {id}")
        return found

    async def rejections(self, *ids: str) -> list[tuple[str, str, types.Rejection]]:
        """Rejected lines as (document id, chunk id, rejection); without ids, those of all documents."""
        wanted = checked_texts(ids) or None
        return await read(self._store, lambda view: view.rejections(wanted))

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

        `history` and any field of `QueryParam` given here, such as `mode`, override those of
        `param`; None counts as not given. Every query leaves a trace, whose id is
        `Answer.trace_id` (None if `keep_traces` is 0, or the folder is read-only). If the query
        fails, the error has the calls and tokens in `usage`.

        With `explain=True` the model selects the relations and gives its reasons, unless there is
        no model or `selection` is "all". `listener` receives each event once it is stored; the
        last one is an `End`, also after an error.
        """
        param = self._param(param, history, fields, explain)
        return await self._answer(question, param, UsageMeter(), listener)

    async def retrieve(
        self,
        question: str,
        param: QueryParam | Mapping[str, Any] | None = None,
        *,
        history: Sequence[Turn] = (),
        **fields: Unpack[QueryFields],
    ) -> types.Context:
        """What is sent to the model: ranked entities, relations and chunks, and their text."""
        param = self._param(param, history, fields)
        return await self._querying.retrieve(question, param)

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
        """The answer in pieces; after the last one, `.answer` holds it complete.

        Arguments as in `query`. `.usage` counts the calls and tokens used so far.
        """
        param = self._param(param, history, fields, explain)
        meter = UsageMeter()

        async def run(put: Callable[[str | Answer], None]) -> None:
            put(await self._answer(question, param, meter, listener, put))

        return AsyncAnswerStream(queued(run), meter)

    @property
    def graph(self) -> "nx.Graph":
        """A read-only networkx view: nodes by entity name, with all their attributes as texts, and
        weights as numbers, so that networkx can write it in any format.
        """
        with self._store.view() as view:
            if self._network is None or self._network[0] != view.generation:
                entities = view.entities(view.entity_rows()).values()
                relations = view.relations(view.relation_rows()).values()
                self._network = (view.generation, network(entities, relations))
        return self._network[1]

    async def close(self) -> None:
        """Close the index; further calls raise `StorageError`."""
        self._store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _answer(
        self,
        question: str,
        param: QueryParam,
        meter: UsageMeter,
        listener: Listener | None = None,
        put_piece: Callable[[str], None] | None = None,
    ) -> Answer:
        """The answer, recorded from the first event to the last; `put_piece` gets its pieces."""
        with self._store.view() as view:
            generation = view.generation
        session = Session(self._new_id(), sanitize(question), param.mode, self._now(), generation)
        keep, now = self.options.keep_traces, self._now
        recorder = Recorder(self._store, session, meter, listener=listener, clock=now, keep=keep)
        answers = None if param.similarity_reuse is None else self._answers
        await recorder.begin()
        try:
            with meter.attach_usage():
                answer = await answers.find(question, param, meter) if answers else None
                if answer is not None:
                    await replay(answer, recorder)
                    if put_piece is not None:
                        put_piece(answer.text)
                else:
                    answer = await self._querying.answer(
                        question, param, observer=recorder, meter=meter, put_piece=put_piece
                    )
                    if answers is not None:
                        await answers.keep(question, param, answer, generation)
        except BaseException as error:
            await recorder.failed(error)
            raise
        return replace(answer, trace_id=recorder.stored_trace_id)

    def _param(
        self,
        param: QueryParam | Mapping[str, Any] | None,
        history: Sequence[Turn],
        fields: QueryFields,
        explain: bool = False,
    ) -> QueryParam:
        """The settings of a question, all in one."""
        given: dict[str, Any] = {name: one for name, one in fields.items() if one is not None}
        param = replace(QueryParam.from_mapping(param or {}), **given)
        if explain and param.selection == "score" and self._client.has_model:
            param = replace(param, selection="llm")
        return replace(param, conversation_history=tuple(history)) if history else param


def checked_texts(given: Iterable[str]) -> list[str]:
    """Ids as they are stored; `TypeError` if one is not a `str`, `NotFoundError` if it has
    characters that cannot be stored.
    """
    listed = list(given)
    for text in listed:
        if not isinstance(text, str):
            raise TypeError(f"expected texts, one after another, got {type(text).__name__}")
        if sanitize(text) != text:
            raise NotFoundError(f"no such document: {text!r}")
    return listed


def _folders(documents: Given | Iterable[Given]) -> list[Path]:
    """The folders among what is given; `ConfigError` if there is none."""
    given = [documents] if isinstance(documents, str | Path | Document) else [*documents]
    if folders := [one for one in given if isinstance(one, Path) and one.is_dir()]:
        return folders
    raise ConfigError("nothing can be synchronized: no folder was given")
