"""From question to answer: the steps in their order."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from lightrag_jsonl.ask import Ask
from lightrag_jsonl.errors import ConfigError, EmbeddingError, StorageError
from lightrag_jsonl.options import QueryParam, Selection
from lightrag_jsonl.protocols import (
    Answerer,
    Embedder,
    KeywordExtractor,
    Reranker,
    Tokenizer,
    Vectors,
)
from lightrag_jsonl.querying import edges
from lightrag_jsonl.querying.answering import (
    QUESTION_SHARE,
    answer_variables,
    chat_messages,
    nothing_found,
    recent_turns,
)
from lightrag_jsonl.querying.context import build_context
from lightrag_jsonl.querying.edges import EdgeBook, EdgeSelection
from lightrag_jsonl.querying.ground import WholeGround
from lightrag_jsonl.querying.hits import Probe
from lightrag_jsonl.querying.keywords import find_keywords
from lightrag_jsonl.querying.observing import Observer, Silent
from lightrag_jsonl.querying.recipes import RECIPES, lookups
from lightrag_jsonl.querying.searching import Findings, find, load_sources
from lightrag_jsonl.querying.selection import reranked
from lightrag_jsonl.querying.writing import Found
from lightrag_jsonl.storage.snapshot import SnapshotKeeper
from lightrag_jsonl.text import sanitize
from lightrag_jsonl.tokens import RememberingTokenizer
from lightrag_jsonl.types import Answer, Citation, Context, Keywords, Usage

SEARCH_TOKENS = 500  # of a question that are searched with: embedders read about as many
RERANKED = 2  # times `chunk_top_k` chunks are found for a reranker to choose from
LONGEST_TOKEN = 64  # characters a token at most, for cutting a huge question before counting it

Cite = Callable[[str, Context], tuple[tuple[Citation, ...], tuple[int, ...]]]

Result = TypeVar("Result")

log = logging.getLogger(__name__)


class QueryPipeline:
    """Answers questions from one index.

    `keyword_extractor` and `answerer`, where given, stand in for the model. `cite` finds the
    citations of an answer. `book` tells relations by short ids for `selection="llm"`; without
    it, or without a model, rank selects.
    """

    def __init__(
        self,
        *,
        ask: Ask,
        keeper: SnapshotKeeper,
        embedder: Embedder | None,
        tokenizer: Tokenizer,
        reranker: Reranker | None,
        keyword_extractor: KeywordExtractor | None,
        answerer: Answerer | None,
        language: str,
        cite: Cite | None = None,
        book: EdgeBook[Any] | None = None,
    ) -> None:
        self._ask = ask
        self._keeper = keeper
        self._embedder = embedder
        self._tokenizer = RememberingTokenizer(tokenizer)
        self._reranker = reranker
        self._keyword_extractor = keyword_extractor
        self._answerer = answerer
        self._language = language
        self._cite = cite
        self._book = book
        self._whole = WholeGround()
        self._thread = ThreadPoolExecutor(1, "lightrag-jsonl-query")
        self._closed = False

    def close(self) -> None:
        """Let go of the thread; what is being searched comes to its end, nothing more is."""
        self._closed = True
        self._thread.shutdown(wait=False)

    async def retrieve(
        self, question: str, param: QueryParam, observer: Observer | None = None
    ) -> Context:
        """What would be shown to the model; `ConfigError` where the question is empty."""
        return await self._retrieve(question, param, observer or Silent(), [])

    async def answer(
        self,
        question: str,
        param: QueryParam,
        context: Context | None = None,
        observer: Observer | None = None,
    ) -> Answer:
        """An answer with its citations; a given `context` is answered from as it is."""
        stream = AnswerStream(self._run(question, param, observer or Silent(), context, whole=True))
        async for _ in stream:
            pass
        return stream.answer

    def stream(
        self, question: str, param: QueryParam, observer: Observer | None = None
    ) -> AnswerStream:
        """The answer in pieces as they are written; `.answer` once they are exhausted."""
        return AnswerStream(self._run(question, param, observer or Silent(), None, whole=False))

    # ── from question to answer ─────────────────────────────────────────────────

    async def _run(
        self,
        question: str,
        param: QueryParam,
        observer: Observer,
        context: Context | None,
        *,
        whole: bool,
    ) -> AsyncGenerator[str | Answer]:
        """The pieces of the answer as text, then the answer itself."""
        started = time.monotonic()
        usages: list[Usage] = []
        pieces: list[str] = []
        try:
            if context is None:
                context = await self._retrieve(question, param, observer, usages)
            async with aclosing(self._pieces(context, param, usages, whole=whole)) as written:
                async for piece in written:
                    pieces.append(piece)
                    await observer.piece(piece)
                    yield piece
            answer = await self._cited("".join(pieces), context, sum(usages, Usage()))
            await observer.answered(answer)
        except BaseException as error:
            await observer.failed(error)
            raise
        log.info("query (%s): %.2f s", param.mode, time.monotonic() - started)
        yield answer

    async def _pieces(
        self, context: Context, param: QueryParam, usages: list[Usage], *, whole: bool
    ) -> AsyncGenerator[str]:
        recipe = RECIPES[context.mode]
        if recipe.searches and context.empty:
            yield nothing_found(self._ask.prompts, param)
        elif recipe.searches and self._answerer is not None:
            yield await self._answerer.answer(context.question, context)
        elif recipe.searches:
            variables = answer_variables(context, param=param, tokenizer=self._tokenizer)
            if whole:
                reply = await self._ask.text(recipe.prompt, variables)
                usages.append(reply.usage)
                yield reply.text
            else:
                async for piece in self._ask.stream(recipe.prompt, variables, usages):
                    yield piece
        else:
            messages = chat_messages(context.question, param=param, tokenizer=self._tokenizer)
            if whole:
                reply = await self._ask.chat(messages)
                usages.append(reply.usage)
                yield reply.text
            else:
                async for piece in self._ask.stream_chat(messages, usages):
                    yield piece

    async def _cited(self, text: str, context: Context, usage: Usage) -> Answer:
        if self._cite is None:
            return Answer(text, context=context, usage=usage)
        citations, invented = await asyncio.to_thread(self._cite, text, context)
        return Answer(text, citations, context, usage=usage, invented=invented)

    # ── from question to context ────────────────────────────────────────────────

    async def _retrieve(
        self, question: str, param: QueryParam, observer: Observer, usages: list[Usage]
    ) -> Context:
        question = self._checked(question, param)
        keywords, probe = Keywords(), None
        recipe = RECIPES[param.mode]
        if recipe.searches and not self._keeper.is_empty():
            if recipe.facts:
                keywords = await self._keywords(question, param, usages)
                await observer.keywords_found(keywords)
            low, high = lookups(recipe, keywords, question)
            probe = await self._probe(question, low, high)
        if self._reranks(param) or self._model_selects(param):
            findings = await self._apart(partial(self._find, probe, param))
            await observer.retrieved(findings.relations, findings.chunks)
            findings = await self._reranked(question, findings, param)
            selection, findings = await self._selected(question, findings, param)
            usages.append(selection.usage)
            context = await self._apart(
                partial(self._written, question, keywords, findings, selection, param)
            )
        else:
            findings, selection, context = await self._apart(
                partial(self._found_and_written, question, keywords, probe, param)
            )
            await observer.retrieved(findings.relations, findings.chunks)
        await observer.selected(edges.kept(selection, context.relations), context)
        return context

    def _found_and_written(
        self, question: str, keywords: Keywords, probe: Probe | None, param: QueryParam
    ) -> tuple[Findings, EdgeSelection, Context]:
        """The way to the context where nothing on it is awaited: one change of threads less."""
        findings = self._find(probe, param)
        selection = _by_rank(findings, param)
        return findings, selection, self._written(question, keywords, findings, selection, param)

    def _written(
        self,
        question: str,
        keywords: Keywords,
        findings: Findings,
        selection: EdgeSelection,
        param: QueryParam,
    ) -> Context:
        return build_context(
            question,
            Found(findings.entities, selection.relations, findings.chunks, findings.documents),
            keywords=keywords,
            param=param,
            tokenizer=self._tokenizer,
            language=self._language,
        )

    async def _apart(self, work: Callable[[], Result]) -> Result:
        """Run it beside the event loop, always in the same thread.

        Searches take turns at the snapshot anyway, and find in the processor's cache what the
        thread used last: with any thread of a pool each takes a fifth longer.
        """
        if self._closed:
            raise StorageError("this LightRAG was closed")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _checked(self, question: str, param: QueryParam) -> str:
        """The question without what cannot be stored, cut to its share of the budget."""
        question = sanitize(question).strip()
        if not question:
            raise ConfigError("the question is empty: ask something")
        limit = max(int(param.max_total_tokens * QUESTION_SHARE), 1)
        return _cut(question, limit, self._tokenizer) or question[:1]

    async def _keywords(self, question: str, param: QueryParam, usages: list[Usage]) -> Keywords:
        keywords, usage = await find_keywords(
            question,
            param=param,
            history=recent_turns(param, self._tokenizer),
            ask=self._ask,
            extractor=self._keyword_extractor,
        )
        usages.append(usage)
        return keywords

    async def _probe(self, question: str, low: tuple[str, ...], high: tuple[str, ...]) -> Probe:
        """The texts to search with, each embedded on its own, all in one call."""
        question = _cut(question, SEARCH_TOKENS, self._tokenizer)
        if self._embedder is None:
            return Probe(question, low, high)
        wanted = [question, *(_cut(text, SEARCH_TOKENS, self._tokenizer) for text in (*low, *high))]
        texts = list(dict.fromkeys(wanted))
        vectors = _checked_vectors(
            await self._embedder.embed(texts, kind="query"), len(texts), self._embedder
        )
        places = {text: place for place, text in enumerate(texts)}
        rows = vectors[[places[text] for text in wanted]]
        return Probe(question, low, high, rows, getattr(self._embedder, "lexical", False))

    def _find(self, probe: Probe | None, param: QueryParam) -> Findings:
        """What there is to show; nothing where there is nothing to search for, or in."""
        if probe is None:
            return Findings()
        recipe = RECIPES[param.mode]
        wide = param.selection != "score"
        with self._keeper.snapshot() as snapshot:
            return find(
                snapshot,
                probe,
                recipe,
                param,
                whole=self._whole,
                wide=wide,
                chunk_limit=param.chunk_top_k * (RERANKED if self._reranks(param) else 1),
            )

    def _reranks(self, param: QueryParam) -> bool:
        return self._reranker is not None and param.enable_rerank

    def _model_selects(self, param: QueryParam) -> bool:
        return param.selection == "llm" and self._book is not None and self._ask.has_model

    async def _reranked(self, question: str, findings: Findings, param: QueryParam) -> Findings:
        """The best `chunk_top_k` chunks, judged by the reranker where there is one."""
        chunks = findings.chunks
        if self._reranker is not None and param.enable_rerank and chunks:
            chunks = await reranked(
                question,
                chunks,
                direct=findings.direct,
                facts=RECIPES[param.mode].facts,
                reranker=self._reranker,
                fusion=param.fusion,
            )
        return replace(findings, chunks=chunks[: param.chunk_top_k])

    async def _selected(
        self, question: str, findings: Findings, param: QueryParam
    ) -> tuple[EdgeSelection, Findings]:
        """The relations to answer from; where a model chose them, only what belongs to them
        (specification 2, section 1: from the selected edges and chunks only).
        """
        if self._book is None or not self._model_selects(param):
            return _by_rank(findings, param), findings
        selection = await edges.chosen(
            question, findings.relations, ask=self._ask, book=self._book, count=param.top_k
        )
        if selection.fallback or not selection.relations:
            return selection, findings
        return selection, await self._apart(partial(self._narrowed, selection, findings, param))

    def _narrowed(
        self, selection: EdgeSelection, findings: Findings, param: QueryParam
    ) -> Findings:
        """The chunks behind the chosen relations, and those hit by text that the choice passed no
        judgment on, since they state none of the candidates; no entity, whose description may say
        what was not chosen.
        """
        chosen = {name for relation in selection.relations for name in relation.chunk_ids}
        judged = {name for relation in findings.relations for name in relation.chunk_ids}
        wanted = chosen | (findings.direct - judged)
        kept = [chunk for chunk in findings.chunks if chunk.id in wanted]
        with self._keeper.snapshot() as snapshot:
            loaded = load_sources(snapshot, selection.relations)
            known = {chunk.id for chunk in kept}
            chunks = (*kept, *(chunk for chunk in loaded if chunk.id not in known))
            labels = snapshot.labels(chunk.document_id for chunk in chunks)
        return replace(
            findings,
            entities=(),
            chunks=chunks[: param.chunk_top_k],
            documents=labels,
        )


class AnswerStream:
    """The pieces of one answer; iterate over it with `async for`."""

    def __init__(self, run: AsyncGenerator[str | Answer]) -> None:
        self._run = run
        self._answer: Answer | None = None

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        item = await anext(self._run)
        if isinstance(item, Answer):
            self._answer = item
            await self._run.aclose()
            raise StopAsyncIteration
        return item

    async def aclose(self) -> None:
        """Stop before the end: no answer will come of it."""
        await self._run.aclose()

    @property
    def answer(self) -> Answer:
        """The whole answer, with its citations; `ValueError` while pieces are still to come."""
        if self._answer is None:
            raise ValueError("the answer is whole once all of its pieces were read")
        return self._answer


def _by_rank(findings: Findings, param: QueryParam) -> EdgeSelection:
    """The first relations, or all of them, without a model's judgment."""
    method: Selection = "all" if param.selection == "all" else "score"
    count = len(findings.relations) if method == "all" else param.top_k
    return edges.ranked(method, findings.relations, count)


def _cut(text: str, limit: int, tokenizer: Tokenizer) -> str:
    """At most `limit` tokens of a text; a short text is not even counted."""
    if len(text) <= limit // 4:  # no tokenizer makes more than four tokens of a character
        return text
    return tokenizer.truncate(text[: limit * LONGEST_TOKEN], limit)


def _checked_vectors(vectors: Vectors, count: int, embedder: Embedder) -> Vectors:
    rows = np.asarray(vectors, np.float32)
    if rows.shape != (count, embedder.dim):
        raise EmbeddingError(
            f"{embedder.name} gave vectors of the shape {rows.shape}, not ({count}, {embedder.dim})"
        )
    return rows
