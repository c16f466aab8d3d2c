"""LightRAG: the methods of AsyncLightRAG without await, on an event loop of its own."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

from lightrag_jsonl.eventloop import LoopThread
from lightrag_jsonl.explain.events import Event
from lightrag_jsonl.explain.recorder import Listener
from lightrag_jsonl.files import Given
from lightrag_jsonl.forks import not_copied
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
from lightrag_jsonl.questions import AsyncStream
from lightrag_jsonl.rag import AsyncLightRAG
from lightrag_jsonl.storage.maintenance import CacheStats
from lightrag_jsonl.types import (
    Answer,
    Context,
    DeleteReport,
    Document,
    DocumentStatus,
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

if TYPE_CHECKING:  # imported late, as in `rag`
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


class LightRAG:
    """A knowledge graph over texts, kept in one folder, and answers from it; safe from any thread.

    The arguments are those of `AsyncLightRAG`. Works in scripts, notebooks and inside a running
    event loop: calls run on a private event loop, in a thread that starts with the first call and
    ends with `close()` or the `with` block. Only `retrieve` runs in the caller's thread, which is
    faster, if no other call is under way.
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
        self._rag = AsyncLightRAG(
            working_dir,
            llm=llm,
            embedder=embedder,
            tokenizer=tokenizer,
            reranker=reranker,
            language=language,
            options=options,
            prompts=prompts,
            extractor=extractor,
            keyword_extractor=keyword_extractor,
            answerer=answerer,
            clock=clock,
            new_id=new_id,
        )
        self._loop = LoopThread()

    def __repr__(self) -> str:
        return f"LightRAG({str(self.working_dir)!r})"

    def __reduce__(self) -> NoReturn:
        raise not_copied(self.working_dir)

    @property
    def working_dir(self) -> Path:
        """The folder of the index."""
        return self._rag.working_dir

    @property
    def graph(self) -> nx.Graph:
        """A read-only networkx view: nodes by entity name, with all their attributes."""
        return self._rag.graph

    # ── documents ───────────────────────────────────────────────────────────────

    def insert(
        self, documents: Given | Iterable[Given], *, watcher: Watcher | None = None
    ) -> InsertReport:
        """Index texts (`str`), files and folders (`Path`) and `Document`s."""
        return self._loop.run(self._rag.insert(documents, watcher=watcher))

    def insert_records(
        self,
        document: Document | str,
        records: Iterable[Record],
        chunks: Sequence[str] | None = None,
    ) -> InsertReport:
        """Index a document from ready-made records; no model is asked."""
        return self._loop.run(self._rag.insert_records(document, records, chunks))

    def update(self, document: Document) -> InsertReport:
        """Replace the document of the same id; the model is asked only about chunks whose text changed."""
        return self._loop.run(self._rag.update(document))

    def resume(self, *, watcher: Watcher | None = None) -> InsertReport:
        """Go on with documents that an interrupted insert left waiting."""
        return self._loop.run(self._rag.resume(watcher=watcher))

    def retry(self, *, watcher: Watcher | None = None) -> InsertReport:
        """Ask again for every chunk that failed, and for the missing part of chunks read in part."""
        return self._loop.run(self._rag.retry(watcher=watcher))

    def delete(self, *ids: str) -> DeleteReport:
        """Remove documents by id."""
        return self._loop.run(self._rag.delete(*ids))

    def estimate(self, documents: Given | Iterable[Given]) -> Estimate:
        """What `insert` would cost with a model, in calls and tokens; no model is asked, nothing is
        stored.
        """
        return self._loop.run(self._rag.estimate(documents))

    def export_batch(
        self, path: str | Path, documents: Given | Iterable[Given] = (), *, reasoning: bool = False
    ) -> BatchExport:
        """Write the requests to the model as a file in OpenAI's batch format."""
        return self._loop.run(self._rag.export_batch(path, documents, reasoning=reasoning))

    def import_batch(self, *paths: str | Path, finish: bool = False) -> BatchImport:
        """Read the results of a batch; documents whose answers are all there become visible."""
        return self._loop.run(self._rag.import_batch(*paths, finish=finish))

    def import_index(self, folder: str | Path, *, watcher: Watcher | None = None) -> ImportReport:
        """Take over a working directory of LightRAG or nano-graphrag; no model is asked."""
        return self._loop.run(self._rag.import_index(folder, watcher=watcher))

    # ── questions ───────────────────────────────────────────────────────────────

    def query(
        self,
        question: str,
        param: QueryParam | None = None,
        *,
        mode: Mode | None = None,
        history: Sequence[Turn] = (),
        explain: bool = False,
        listener: Listener | None = None,
    ) -> Answer:
        """Answer a question from the index; see `AsyncLightRAG.query`."""
        return self._loop.run(
            self._rag.query(
                question, param, mode=mode, history=history, explain=explain, listener=listener
            )
        )

    def retrieve(
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
        return self._loop.run_here(self._rag.retrieve(question, param, mode=mode, history=history))

    def stream(
        self,
        question: str,
        param: QueryParam | None = None,
        *,
        mode: Mode | None = None,
        history: Sequence[Turn] = (),
        explain: bool = False,
        listener: Listener | None = None,
    ) -> Stream:
        """The answer in pieces; after the last one, `.answer` of the iterator holds it whole."""
        pieces = self._rag.stream(
            question, param, mode=mode, history=history, explain=explain, listener=listener
        )
        return Stream(self._loop, pieces)

    def events(
        self,
        question: str,
        param: QueryParam | None = None,
        *,
        mode: Mode | None = None,
        history: Sequence[Turn] = (),
        explain: bool = True,
    ) -> Generator[Event]:
        """The events of a query as they happen, each stored before it is yielded.

        `close()` ends the query early.
        """
        return self._loop.iterate(
            self._rag.events(question, param, mode=mode, history=history, explain=explain)
        )

    def extract(self, prompt: str, text: str, **variables: object) -> list[Record]:
        """The records that one of the extraction prompts yields for a text; nothing is stored."""
        return self._loop.run(self._rag.extract(prompt, text, **variables))

    # ── traces ──────────────────────────────────────────────────────────────────

    def traces(self, *, limit: int = 100) -> tuple[TraceSummary, ...]:
        """The newest queries, each with its status; a negative limit means all."""
        return self._loop.run(self._rag.traces(limit=limit))

    def trace(self, trace_id: str) -> Trace:
        """How an answer came about; the id may be shortened as long as it stays unambiguous."""
        return self._loop.run(self._rag.trace(trace_id))

    def trace_html(self, trace_id: str, *, language: Language | None = None) -> str:
        """A trace as one self-contained web page, by default in the index's language."""
        return self._loop.run(self._rag.trace_html(trace_id, language=language))

    def sources(self, trace: Trace) -> Sources:
        """The stored texts behind a trace."""
        return self._loop.run(self._rag.sources(trace))

    def edge_origins(self, source: str, predicate: str, target: str) -> EdgeOrigins:
        """Where an edge was read: every chunk, page and document, and the queries that chose it."""
        return self._loop.run(self._rag.edge_origins(source, predicate, target))

    def document_origins(self, document_id: str) -> DocumentOrigins:
        """A document's pages and chunks with the edges they state, and the queries that used it."""
        return self._loop.run(self._rag.document_origins(document_id))

    def export_trace(
        self,
        trace_id: str,
        *,
        format: Format = "nquads",
        rdf: Version = "1.2",
        with_source: bool = False,
        entity_base: str | None = None,
        predicate_base: str | None = None,
    ) -> str:
        """A trace as RDF; `with_source` adds the chain from its edges to their documents."""
        return self._loop.run(
            self._rag.export_trace(
                trace_id,
                format=format,
                rdf=rdf,
                with_source=with_source,
                entity_base=entity_base,
                predicate_base=predicate_base,
            )
        )

    def verify(self, *trace_ids: str) -> tuple[Problem, ...]:
        """What is wrong with the named traces; without ids, with all traces and the texts they rest on."""
        return self._loop.run(self._rag.verify(*trace_ids))

    def forget_traces(self, *, keep: int) -> int:
        """Delete all but the `keep` newest traces; returns how many were deleted."""
        return self._loop.run(self._rag.forget_traces(keep=keep))

    # ── upkeep ──────────────────────────────────────────────────────────────────

    def duplicates(self, *, limit: int = 100) -> tuple[Duplicate, ...]:
        """Pairs of entities that may be the same, likeliest first, with the evidence; none is merged."""
        return self._loop.run(self._rag.duplicates(limit=limit))

    def merge_entities(self, names: Iterable[str], *, into: str) -> None:
        """Make several names one entity called `into`; `unmerge` undoes it."""
        self._loop.run(self._rag.merge_entities(names, into=into))

    def unmerge(self, *names: str) -> None:
        """Make merged names entities of their own again."""
        self._loop.run(self._rag.unmerge(*names))

    def summarize(self) -> Usage:
        """Ask the model for every summary that is due; returns what that cost."""
        return self._loop.run(self._rag.summarize())

    def reembed(
        self, embedder: Embedder | Callable[..., object], *, watcher: Progress | None = None
    ) -> int:
        """Move the index to another embedder, without asking a model."""
        return self._loop.run(self._rag.reembed(embedder, watcher=watcher))

    def repair(self) -> list[str]:
        """Rebuild everything that is derived from the documents and their claims; returns a line
        for each step.
        """
        return self._loop.run(self._rag.repair())

    def vacuum(self) -> int:
        """Give unused space back to the disk; returns how many bytes that was.

        The whole database is written anew, and answers wait until that is done.
        """
        return self._loop.run(self._rag.vacuum())

    def cache_stats(self) -> CacheStats:
        """What the caches of completions and embeddings hold."""
        return self._loop.run(self._rag.cache_stats())

    def clear_cache(self) -> int:
        """Delete cached model answers and unused vectors; returns how many."""
        return self._loop.run(self._rag.clear_cache())

    # ── looking ─────────────────────────────────────────────────────────────────

    def status(self) -> Status:
        """The index as a whole."""
        return self._loop.run(self._rag.status())

    def documents(self) -> tuple[DocumentStatus, ...]:
        """Every document, with how its extraction went."""
        return self._loop.run(self._rag.documents())

    def pages(self, document_id: str) -> tuple[Page, ...]:
        """A document's pages, as they were indexed."""
        return self._loop.run(self._rag.pages(document_id))

    def rejections(self, *ids: str) -> list[tuple[str, str, Rejection]]:
        """Refused lines as (document id, chunk id, rejection); without ids, those of all documents."""
        return self._loop.run(self._rag.rejections(*ids))

    def records(self) -> list[Record]:
        """Every stored claim as an `extract-graph` record with its document and chunk index."""
        return self._loop.run(self._rag.records())

    # ── the end ─────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Finish writing and close the index."""
        if self._loop.open:
            self._loop.run(self._rag.close())
        self._loop.close()

    def __enter__(self) -> LightRAG:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Stream:
    """The pieces of an answer; `.answer` holds it whole after the last one."""

    def __init__(self, loop: LoopThread, source: AsyncStream) -> None:
        self._source = source
        self._pieces = loop.iterate(source)

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    def __next__(self) -> str:
        return next(self._pieces)

    def close(self) -> None:
        """End the answer early: the model stops writing. For web servers whose reader has left."""
        self._pieces.close()

    @property
    def usage(self) -> Usage:
        """What was paid so far; see `AsyncStream.usage`."""
        return self._source.usage

    @property
    def answer(self) -> Answer:
        """The whole answer, with its citations; `ValueError` before the last piece was read."""
        return self._source.answer
