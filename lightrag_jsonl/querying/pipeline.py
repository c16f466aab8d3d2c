"""From question to answer: the steps in their order."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from lightrag_jsonl.ask import Ask
from lightrag_jsonl.options import QueryParam
from lightrag_jsonl.protocols import Answerer, Embedder, KeywordExtractor, Reranker, Tokenizer
from lightrag_jsonl.querying import answering
from lightrag_jsonl.querying.edges import EdgeBook
from lightrag_jsonl.querying.observing import Observer, Silent
from lightrag_jsonl.querying.recipes import RECIPES
from lightrag_jsonl.storage.snapshot import SnapshotKeeper
from lightrag_jsonl.types import Answer, Citation, Context, Usage

SEARCH_TOKENS = 2_000  # of a question that are searched with; the rest of a longer one is cut

Cite = Callable[[str, Context], tuple[tuple[Citation, ...], tuple[int, ...]]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Retrieved:
    """A context and what finding it cost."""

    context: Context
    usage: Usage = Usage()


class QueryPipeline:
    """Answers questions from one index.

    With `keyword_extractor` and `answerer` no model is asked; otherwise `ask` is. `cite` finds
    the citations of an answer. `book` tells edges by short ids for `selection="llm"`; without
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
        self._tokenizer = tokenizer
        self._reranker = reranker
        self._keyword_extractor = keyword_extractor
        self._answerer = answerer
        self._language = language
        self._cite = cite
        self._book = book

    async def retrieve(
        self, question: str, param: QueryParam, observer: Observer | None = None
    ) -> Context:
        """What would be shown to the model; `ConfigError` where the question is empty."""
        return (await self._retrieve(question, param, observer or Silent())).context

    async def answer(
        self,
        question: str,
        param: QueryParam,
        context: Context | None = None,
        observer: Observer | None = None,
    ) -> Answer:
        """An answer with its citations; a given `context` is answered from as it is."""
        stream = self.stream(question, param, observer, context, whole=True)
        async for _ in stream:
            pass
        return stream.answer

    def stream(
        self,
        question: str,
        param: QueryParam,
        observer: Observer | None = None,
        context: Context | None = None,
        *,
        whole: bool = False,
    ) -> AnswerStream:
        """The answer in pieces as they are written; `.answer` once they are exhausted.

        `whole` asks the model for its answer at once: one piece, with its usage.
        """
        run = self._run(question, param, observer or Silent(), context, whole)
        return AnswerStream(run)

    # ── the run of one question ─────────────────────────────────────────────────

    async def _run(
        self,
        question: str,
        param: QueryParam,
        observer: Observer,
        context: Context | None,
        whole: bool,
    ) -> AsyncIterator[str | Answer]:
        """The pieces of the answer, then the answer."""
        try:
            found = (
                await self._retrieve(question, param, observer)
                if context is None
                else _Retrieved(context)
            )
            usages = [found.usage]
            pieces: list[str] = []
            async with aclosing(self._pieces(found.context, param, usages, whole)) as written:
                async for piece in written:
                    pieces.append(piece)
                    await observer.piece(piece)
                    yield piece
            answer = await self._cited("".join(pieces), found.context, sum(usages, Usage()))
            await observer.answered(answer)
            yield answer
        except BaseException as error:
            await observer.failed(error)
            raise

    async def _pieces(
        self, context: Context, param: QueryParam, usages: list[Usage], whole: bool
    ) -> AsyncIterator[str]:
        recipe = RECIPES[context.mode]
        if recipe.searches and context.empty:
            yield answering.nothing_found(self._ask.prompts, param)
            return
        if self._answerer is not None and recipe.searches:
            yield await self._answerer.answer(context.question, context)
            return
        messages = answering.messages(
            context,
            recipe.prompt,
            param=param,
            tokenizer=self._tokenizer,
            prompts=self._ask.prompts,
        )
        if whole:
            reply = await self._ask.chat(messages)
            usages.append(reply.usage)
            yield reply.text
            return
        async for piece in self._ask.stream_chat(messages, usages):
            yield piece
