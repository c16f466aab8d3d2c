"""Answers a question: retrieves a context, has the model answer from it, and resolves the citations."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace

from lightrag_jsonl.ask import Ask, Reply
from lightrag_jsonl.calls import answer_of
from lightrag_jsonl.options import QueryParam
from lightrag_jsonl.protocols import (
    Answerer,
    Embedder,
    KeywordExtractor,
    Reranker,
    Tokenizer,
)
from lightrag_jsonl.querying.answering import (
    answer_variables,
    chat_messages,
    nothing_found,
)
from lightrag_jsonl.querying.observing import Observer, Silent
from lightrag_jsonl.querying.recipes import RECIPES
from lightrag_jsonl.querying.retrieving import Retriever
from lightrag_jsonl.spending import Spending
from lightrag_jsonl.storage.snapshot import SnapshotKeeper
from lightrag_jsonl.telling import Told
from lightrag_jsonl.tokens import RememberingTokenizer
from lightrag_jsonl.types import Answer, Citation, Context

Cite = Callable[[str, Context], tuple[tuple[Citation, ...], tuple[int, ...]]]

log = logging.getLogger(__name__)


class QueryPipeline:
    """Answers questions from one index.

    `keyword_extractor` and `answerer`, if given, replace the model for these steps. `cite` finds
    the citations in an answer.
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
    ) -> None:
        self._ask = ask
        self._tokenizer = RememberingTokenizer(tokenizer)
        self._answerer = answerer
        self._cite = cite
        self._retriever = Retriever(
            ask=ask,
            keeper=keeper,
            embedder=embedder,
            tokenizer=self._tokenizer,
            reranker=reranker,
            keyword_extractor=keyword_extractor,
            language=language,
        )

    def close(self) -> None:
        """Let the running search finish, and start no other."""
        self._retriever.close()

    async def retrieve(
        self, question: str, param: QueryParam, observer: Observer | None = None
    ) -> Context:
        """What a model would be shown; `ConfigError` if the question is empty."""
        spending = Spending()
        with spending.told():
            return await self._retriever.context(question, param, observer or Silent(), spending)

    async def answer(
        self,
        question: str,
        param: QueryParam,
        context: Context | None = None,
        observer: Observer | None = None,
        spending: Spending | None = None,
    ) -> Answer:
        """An answer with its citations; if a `context` is given, nothing is searched.

        The answer's usage is all that `spending` has counted, including calls before this one.
        """
        stream = AnswerStream(self._run(question, param, context, observer, spending, whole=True))
        async for _ in stream:
            pass
        return stream.answer

    def stream(
        self,
        question: str,
        param: QueryParam,
        observer: Observer | None = None,
        spending: Spending | None = None,
    ) -> AnswerStream:
        """The answer in pieces as they are written; after the last one, `.answer` holds it whole."""
        return AnswerStream(self._run(question, param, None, observer, spending, whole=False))

    async def _run(
        self,
        question: str,
        param: QueryParam,
        context: Context | None,
        observer: Observer | None,
        spending: Spending | None,
        *,
        whole: bool,
    ) -> AsyncGenerator[str | Answer]:
        """Yields the pieces of the answer as `str`, then the whole `Answer`."""
        started = time.monotonic()
        observer = observer or Silent()
        spending = spending or Spending()
        pieces: list[str] = []
        replies: list[Reply] = []
        try:
            if context is None:
                context = await self._retriever.context(question, param, observer, spending)
            told = self._pieces(context, param, replies, spending, whole=whole)
            async with aclosing(told) as written:
                async for piece in written:
                    pieces.append(piece)
                    await observer.piece(piece)
                    yield piece
            answer = await self._cited("".join(pieces), context)
            cut = any(reply.cut for reply in replies)
            answer = replace(answer, usage=spending.spent, truncated=cut)
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
        replies: list[Reply],
        spending: Spending,
        *,
        whole: bool,
    ) -> AsyncGenerator[str]:
        """The answer as it is written; the model's whole reply is appended to `replies`."""
        recipe = RECIPES[context.mode]
        if recipe.searches and context.empty:
            yield nothing_found(self._ask.prompts, param)
        elif recipe.searches and self._answerer is not None:
            yield await answer_of(self._answerer, context.question, context)
        elif recipe.searches:
            terms = self._ask.prompts.terms(recipe.prompt)
            variables = answer_variables(
                context, param=param, tokenizer=self._tokenizer, terms=terms
            )
            if whole:
                reply = await self._ask.text(
                    recipe.prompt, variables, spending=spending, spoken=True
                )
                replies.append(reply)
                yield reply.shown
            else:
                told = self._ask.stream(recipe.prompt, variables, replies, spending)
                async with aclosing(told) as written:
                    async for piece in written:
                        yield piece
        else:
            messages = chat_messages(context.question, param=param, tokenizer=self._tokenizer)
            if whole:
                reply = await self._ask.chat(messages, spending)
                replies.append(reply)
                yield reply.shown
            else:
                told = self._ask.stream_chat(messages, replies, spending)
                async with aclosing(told) as written:
                    async for piece in written:
                        yield piece

    async def _cited(self, text: str, context: Context) -> Answer:
        if self._cite is None:
            return Answer(text, context=context)
        citations, invented = await asyncio.to_thread(self._cite, text, context)
        return Answer(text, citations, context, invented=invented)


class AnswerStream:
    """The pieces of one answer, for `async for`."""

    def __init__(self, run: AsyncGenerator[str | Answer] | Told[str | Answer]) -> None:
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
        """End the answer early; there will be no `.answer`."""
        await self._run.aclose()

    @property
    def answer(self) -> Answer:
        """The whole answer, with its citations; `ValueError` before the last piece was read."""
        if self._answer is None:
            raise ValueError("the answer is whole once all of its pieces were read")
        return self._answer
