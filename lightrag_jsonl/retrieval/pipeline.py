"""Answers a question: keywords, search, selection, context, answer, citations."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
from anyio import to_thread

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Answerer, Embedder, KeywordExtractor, Reranker, Tokenizer
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import Answer, Chunk, Citation, Context, Keywords, Relation
from lightrag_jsonl.core.user_code import embed_texts, rerank_scores, write_answer
from lightrag_jsonl.llm.client import ModelClient, Reply, UsageMeter
from lightrag_jsonl.retrieval import answering
from lightrag_jsonl.retrieval.context import fit_context
from lightrag_jsonl.retrieval.edge_selection import EdgeSelection, select_by_model
from lightrag_jsonl.retrieval.fusion import Hits, SearchQuery, SearchTask, fuse
from lightrag_jsonl.retrieval.keywords import find_keywords
from lightrag_jsonl.retrieval.modes import MODES, search_texts
from lightrag_jsonl.retrieval.search import Direct, search, with_sources
from lightrag_jsonl.storage.store import Store, read

QUESTION_SHARE = 0.25  # of the total budget for the question; a longer one is cut
SEARCH_TOKENS = 500  # the part of a question used for search; embedders read about as many
RERANKED = 2  # times `chunk_top_k`: the number of chunks a reranker chooses from
LONGEST_TOKEN = 64  # characters; used to cut a huge question before counting its tokens

Cited: TypeAlias = tuple[tuple[Citation, ...], tuple[int, ...]]

log = logging.getLogger(__name__)


class QueryObserver:
    """Is called after each step of a query; `failed` comes instead of the remaining ones. This one
    does nothing.
    """

    async def keywords_found(self, keywords: Keywords) -> None:
        """The question's keywords."""

    async def retrieved(self, relations: Sequence[Relation], chunks: Sequence[Chunk]) -> None:
        """Everything that was found, best first."""

    async def selected(self, selection: EdgeSelection, context: Context) -> None:
        """What was chosen, and the context that the model reads."""

    async def piece(self, text: str) -> None:
        """A piece of the answer."""

    async def answered(self, answer: Answer, *, reused: bool = False) -> None:
        """The whole answer."""

    async def failed(self, error: BaseException) -> None:
        """The question could not be answered."""


Observer: TypeAlias = QueryObserver | None
Meter: TypeAlias = UsageMeter | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPipeline:
    """Answers questions from one index.

    `keyword_extractor` and `answerer`, if given, replace the model for these steps. `cite` finds
    the citations in an answer, and the cited numbers that the model was never shown.
    """

    store: Store
    client: ModelClient
    embedder: Embedder | None
    tokenizer: Tokenizer
    reranker: Reranker | None
    keyword_extractor: KeywordExtractor | None
    answerer: Answerer | None
    language: str
    cite: Callable[[str, Context], Awaitable[Cited]]

    async def retrieve(
        self, question: str, param: QueryParam, observer: Observer = None
    ) -> Context:
        """What a model would be shown; `ConfigError` if the question is empty."""
        meter = UsageMeter()
        with meter.attach_usage():
            return await self._context(question, param, observer or QueryObserver(), meter)

    async def answer(
        self, question: str, param: QueryParam, *, observer: Observer = None, meter: Meter = None
    ) -> Answer:
        """An answer with its citations; its usage is all that `meter` has counted."""
        run = self._run(question, param, observer, meter, whole=True)
        *_, answer = [item async for item in run]
        assert isinstance(answer, Answer)
        return answer

    def stream(
        self, question: str, param: QueryParam, *, observer: Observer = None, meter: Meter = None
    ) -> AnswerStream:
        """The answer in pieces as they are written; after the last one, `.answer` holds it whole."""
        return AnswerStream(self._run(question, param, observer, meter, whole=False))

    # ── the answer ──────────────────────────────────────────────────────────────

    async def _run(
        self, question: str, param: QueryParam, observer: Observer, meter: Meter, *, whole: bool
    ) -> AsyncGenerator[str | Answer]:
        """Yields the pieces of the answer as `str`, then the whole `Answer`."""
        started, observer, meter = (
            time.monotonic(),
            observer or QueryObserver(),
            meter or UsageMeter(),
        )
        text, replies = "", list[Reply]()
        try:
            context = await self._context(question, param, observer, meter)
            async with aclosing(self._pieces(context, param, meter, replies, whole)) as pieces:
                async for piece in pieces:
                    text += piece
                    await observer.piece(piece)
                    yield piece
            citations, invented = await self.cite(text, context)
            answer = Answer(text, citations, context, usage=meter.spent, invented=invented)
            answer = replace(answer, truncated=any(reply.cut_off for reply in replies))
            await observer.answered(answer)
        except BaseException as error:
            await observer.failed(error)
            raise
        log.info("query (%s): %.2f s", param.mode, time.monotonic() - started)
        yield answer

    async def _pieces(
        self,
        context: Context,
        param: QueryParam,
        meter: UsageMeter,
        replies: list[Reply],
        whole: bool,
    ) -> AsyncGenerator[str]:
        """The answer as it is written; the model's reply is appended to `replies`."""
        mode, client = MODES[context.mode], self.client
        if mode.searches and context.empty:
            yield answering.nothing_found(client.prompts, param)
            return
        if mode.searches and self.answerer is not None:
            yield await write_answer(self.answerer, context.question, context)
            return
        if mode.searches:
            terms = client.prompts.terms(mode.prompt)
            variables = answering.answer_variables(context, param, self.tokenizer, terms)
            ask = partial(client.text, mode.prompt, variables, meter=meter, for_reader=True)
            stream = partial(client.stream, mode.prompt, variables, meter)
        else:
            messages = answering.chat_messages(context.question, param, self.tokenizer)
            ask = partial(client.chat, messages, meter)
            stream = partial(client.stream_chat, messages, meter)
        if whole:
            replies.append(await ask())
            yield replies[0].readable_text
            return
        async with aclosing(stream()) as written:
            async for piece in written:
                yield piece
            replies.append(written.reply)

    # ── the context ─────────────────────────────────────────────────────────────

    async def _context(
        self, question: str, param: QueryParam, observer: QueryObserver, meter: UsageMeter
    ) -> Context:
        """What a model would be shown; calls to the model on the way are counted by `meter`."""
        context = Context(self._checked(question, param), param.mode, language=self.language)
        mode, direct = MODES[param.mode], Direct()
        if mode.searches and not self.store.is_empty():
            if mode.graph:
                context = replace(context, keywords=await self._keywords(context, param, meter))
                await observer.keywords_found(context.keywords)
            query = await self._query(context)
            context, direct = await to_thread.run_sync(self._search, query, param, context)
        await observer.retrieved(context.relations, context.chunks)
        if self._reranks(param) and context.chunks:
            context = await self._reranked(context, direct, param)
        selection = await self._selection(context, param, meter)
        if selection.method == "llm" and selection.relations and not selection.fallback:
            chosen = (context, direct, selection.relations, param.chunk_top_k)
            context = await read(self.store, lambda reader: with_sources(reader, *chosen))
        context = replace(context, relations=selection.relations)
        context = await to_thread.run_sync(fit_context, context, param, self.tokenizer)
        await observer.selected(selection.only(context.relations), context)
        return context

    def _checked(self, question: str, param: QueryParam) -> str:
        """The question, cut to its share of the budget, without characters that cannot be stored."""
        question = sanitize(question).strip()
        if not question:
            raise ConfigError("the question is empty: ask something")
        limit = max(int(param.max_total_tokens * QUESTION_SHARE), 1)
        return self._cut(question, limit) or question[:1]

    def _cut(self, text: str, limit: int = SEARCH_TOKENS) -> str:
        """At most `limit` tokens of a text; a short text is not counted."""
        if len(text) <= limit // 4:  # a character never has more than four tokens
            return text
        return self.tokenizer.truncate(text[: limit * LONGEST_TOKEN], limit)

    async def _keywords(self, context: Context, param: QueryParam, meter: UsageMeter) -> Keywords:
        history = answering.recent_turns(param, self.tokenizer)
        return await find_keywords(
            context.question,
            param,
            history,
            client=self.client,
            extractor=self.keyword_extractor,
            meter=meter,
        )

    async def _query(self, context: Context) -> SearchQuery:
        """The texts to search with and their vectors, all embedded in one call."""
        mode, question = MODES[context.mode], context.question
        low, high = search_texts(mode, context.keywords, question)
        wanted = [self._cut(text) for text in (question, *low, *high)]
        if self.embedder is None:
            return SearchQuery(wanted[0], low, high)
        texts = list(dict.fromkeys(wanted))
        vectors = await embed_texts(self.embedder, texts, "query")
        lexical = bool(getattr(self.embedder, "lexical", False))
        rows = vectors[[texts.index(text) for text in wanted]]
        return SearchQuery(wanted[0], low, high, rows, lexical)

    def _search(
        self, query: SearchQuery, param: QueryParam, context: Context
    ) -> tuple[Context, Direct]:
        limit = param.chunk_top_k * (RERANKED if self._reranks(param) else 1)
        with self.store.snapshot() as snapshot:
            task = SearchTask(snapshot, query, MODES[param.mode], param, limit)
            return search(task, context)

    def _reranks(self, param: QueryParam) -> bool:
        return self.reranker is not None and param.enable_rerank

    async def _reranked(self, found: Context, direct: Direct, param: QueryParam) -> Context:
        """The best `chunk_top_k` chunks, as the reranker ranks them.

        It judges the chunks that the question's text found, or all if there are none. It compares
        with the question alone, and would drop passages that lead to the answer without resembling
        the question; so in modes that search the graph its order is fused with the one before.
        """
        assert self.reranker is not None
        judged = [n for n, chunk in enumerate(found.chunks) if not direct or chunk.id in direct]
        texts = [found.chunks[number].text for number in judged]
        scores = await rerank_scores(self.reranker, found.question, texts)
        lists = [Hits.ranked(np.array(judged), np.nan_to_num(scores, nan=-np.inf))]
        if MODES[param.mode].graph:
            lists.append(Hits.of(range(len(found.chunks)), np.zeros(len(found.chunks))))
        best = fuse(lists, param.fusion, limit=param.chunk_top_k)
        ranked = [replace(found.chunks[number], score=score) for number, score, _ in best.rows()]
        return replace(found, chunks=tuple(ranked))

    async def _selection(
        self, found: Context, param: QueryParam, meter: UsageMeter
    ) -> EdgeSelection:
        """The relations to answer from."""
        if param.selection == "llm" and self.client.has_model:
            question, relations, count = found.question, found.relations, param.top_k
            return await select_by_model(
                question, relations, client=self.client, count=count, meter=meter
            )
        if param.selection == "all":
            return EdgeSelection.by_rank("all", found.relations)
        return EdgeSelection.by_rank("score", found.relations[: param.top_k])


class AnswerStream:
    """The pieces of one answer, for `async for`."""

    def __init__(self, pieces: AsyncGenerator[str | Answer]) -> None:
        self._pieces = pieces
        self._answer: Answer | None = None

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        item = await anext(self._pieces)
        if isinstance(item, Answer):
            self._answer = item
            await self._pieces.aclose()
            raise StopAsyncIteration
        return item

    async def aclose(self) -> None:
        """End the answer early; there will be no `.answer`."""
        await self._pieces.aclose()

    @property
    def answer(self) -> Answer:
        """The whole answer, with its citations; `ValueError` before the last piece was read."""
        if self._answer is None:
            raise ValueError("the answer is whole once all of its pieces were read")
        return self._answer
