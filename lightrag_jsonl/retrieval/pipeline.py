"""Answers a question: keywords, search, selection, context, answer, citations."""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from lightrag_jsonl.core.errors import ConfigError, EmbeddingError
from lightrag_jsonl.core.modes import MODES
from lightrag_jsonl.core.numbering import CitationNumbering
from lightrag_jsonl.core.observer import QueryObserver
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Answerer, Embedder, KeywordExtractor, Reranker, Tokenizer
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import Answer, Cited, Context, Message
from lightrag_jsonl.core.user_code import can_embed, embed_texts, rerank_scores, write_answer
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.retrieval.context import MARK_SECRET, fit_context
from lightrag_jsonl.retrieval.edge_selection import select_edges
from lightrag_jsonl.retrieval.fusion import Hits, SearchQuery, SearchTask, fuse, joined
from lightrag_jsonl.retrieval.keywords import find_keywords, search_texts
from lightrag_jsonl.retrieval.scope import LikenessScale
from lightrag_jsonl.retrieval.search import search, with_sources
from lightrag_jsonl.storage.status import unread_documents
from lightrag_jsonl.storage.store import Store, read
from lightrag_jsonl.storage.store import search as in_snapshot
from lightrag_jsonl.storage.vector_index import Floats, Ids
from lightrag_jsonl.storage.views import StoreView

QUESTION_SHARE = 0.25  # of the total budget for the question; a longer one is cut
HISTORY_SHARE = 0.25  # of the total budget for the conversation
SEARCH_TOKENS = 500  # the part of a question used for search; embedders read about as many
RERANKED = 2  # times `chunk_top_k`: the number of chunks a reranker chooses from
FORM = "Multiple Paragraphs"  # of an answer, where a user's prompt asks for it and names none

Cite: TypeAlias = Callable[[StoreView, str, Context, Sequence[int]], Cited]
PutPiece: TypeAlias = Callable[[str], None]

log = logging.getLogger(__name__)


NOBODY = QueryObserver()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPipeline:
    """Answers questions from one index.

    `keyword_extractor` and `answerer`, if given, replace the model for these steps. `cite` finds
    the citations in an answer, given the number in the prompt of each, and the cited numbers that
    the model was never shown. `likeness` is the scale of the embedder's cosines. Without `secret_marks`, the marks in prompts are the same for the same
    content in every index.
    """

    store: Store
    client: ModelClient
    embedder: Embedder
    tokenizer: Tokenizer
    reranker: Reranker | None
    keyword_extractor: KeywordExtractor | None
    answerer: Answerer | None
    language: str
    cite: Cite
    likeness: LikenessScale
    secret_marks: bool = True

    async def retrieve(
        self, question: str, param: QueryParam, observer: QueryObserver = NOBODY
    ) -> Context:
        """What a model would be shown; `ConfigError` if the question is empty."""
        meter = UsageMeter()
        with meter.attach_usage():
            return await self._context(question, param, observer, meter)

    async def answer(
        self,
        question: str,
        param: QueryParam,
        *,
        observer: QueryObserver = NOBODY,
        meter: UsageMeter | None = None,
        put_piece: PutPiece | None = None,
    ) -> Answer:
        """An answer with its citations; its usage is all that `meter` has counted.

        With `put_piece` the answer is passed on in pieces as it is written.
        """
        started, meter = time.monotonic(), meter or UsageMeter()
        context = await self._context(question, param, observer, meter)
        pieces: list[str] = []
        numbering = CitationNumbering(context.items)

        async def put(piece: str, *, last: bool = False) -> None:
            if piece := numbering.feed(piece, last=last):
                pieces.append(piece)
                await observer.piece(piece)
                if put_piece is not None:
                    put_piece(piece)

        cut_off = await self._write(context, param, meter, put, streamed=put_piece is not None)
        await put("", last=True)
        text, prompt_numbers = "".join(pieces), tuple(numbering.numbers)
        cited = await read(self.store, lambda view: self.cite(view, text, context, prompt_numbers))
        answer = Answer(
            text=text,
            citations=cited.citations,
            context=context,
            usage=meter.spent,
            invented=cited.invented,
            truncated=cut_off,
            prompt_numbers=prompt_numbers,
            claims=cited.claims,
        )
        await observer.answered(answer)
        log.info("query (%s): %.2f s", param.mode, time.monotonic() - started)
        return answer

    async def _context(
        self, question: str, param: QueryParam, observer: QueryObserver, meter: UsageMeter
    ) -> Context:
        """What a model would be shown; calls to the model on the way are counted by `meter`."""
        context = Context(
            self._checked(question, param),
            param.mode,
            language=self.language,
            response_type=param.response_type or "",
        )
        mode, direct, history = MODES[param.mode], list[str](), self._history(param)
        reranker = self.reranker if param.enable_rerank and param.rerank_weight > 0 else None
        if mode.searches and not self.store.is_empty():
            if mode.graph or history:
                how = param, self.client, self.keyword_extractor, meter
                keywords = await find_keywords(context.question, history, *how)
                context = replace(context, keywords=keywords)
                await observer.keywords_found(context.keywords)
            query = await self._query(context, param)
            limit = param.chunk_top_k * (RERANKED if reranker else 1)
            context, direct = await in_snapshot(
                self.store,
                lambda snapshot: search(SearchTask(snapshot, query, mode, param, limit), context),
            )
        await observer.retrieved(context.relations, context.chunks)
        keep = next(iter(direct), "")
        if reranker is not None and context.chunks:
            context, keep = await _reranked(reranker, context, direct, param)
        searched = replace(context, question=_searched(context))
        may_be_none = not {chunk.id for chunk in context.chunks}.isdisjoint(direct)
        selection = await select_edges(searched, param, self.client, meter, may_be_none=may_be_none)
        if selection.method == "llm" and not selection.fallback:
            chosen = (context, direct, selection.relations, param.chunk_top_k)
            context = await read(self.store, lambda view: with_sources(view, *chosen))
        context = replace(context, relations=selection.relations)
        context = await read(self.store, partial(self._fitted, context, param, keep))
        await observer.selected(selection, context)
        return context

    # ── the question ────────────────────────────────────────────────────────────

    def _checked(self, question: str, param: QueryParam) -> str:
        """The question, cut to its share of the budget, without characters that cannot be stored."""
        question = sanitize(question).strip()
        if not question:
            raise ConfigError("the question is empty")
        limit = max(int(param.max_total_tokens * QUESTION_SHARE), 1)
        return self.tokenizer.truncate(question, limit) or question[:1]

    def _history(self, param: QueryParam) -> tuple[Message, ...]:
        """The latest turns of the conversation that fit into their share of the budget, in order."""
        left = int(param.max_total_tokens * HISTORY_SHARE)
        kept: list[Message] = []
        for turn in reversed(param.turns):
            left -= self.tokenizer.count(turn.content)
            if left < 0:
                break
            kept.append(turn)
        return tuple(reversed(kept))

    async def _query(self, context: Context, param: QueryParam) -> SearchQuery:
        """The texts to search with and their vectors, all embedded in one call."""
        mode, question = MODES[context.mode], _searched(context)
        low, high = search_texts(mode, context.keywords, question)
        wanted = [self.tokenizer.truncate(text, SEARCH_TOKENS) for text in (question, *low, *high)]
        texts = list(dict.fromkeys(wanted))
        lexical = bool(getattr(self.embedder, "lexical", False))
        try:
            vectors = await embed_texts(self.embedder, texts, "query")
        except EmbeddingError as error:
            if error.unavailable or not await can_embed(self.embedder, "query"):
                raise
            log.warning(
                "searching by words alone, since the question cannot be embedded: %s", error
            )
            none = np.zeros((len(wanted), self.embedder.dim), np.float32)
            return SearchQuery(wanted[0], low, high, none, lexical, embedded=False)
        rows = vectors[[texts.index(text) for text in wanted]]
        floor = await self.likeness.floor(wanted[0], rows[0], param)
        return SearchQuery(wanted[0], low, high, rows, lexical, floor)

    def _fitted(self, found: Context, param: QueryParam, keep: str, view: StoreView) -> Context:
        """What of it fits into the budgets, with its prompt."""
        secret = view.settings().get(MARK_SECRET, "") if self.secret_marks else ""
        return fit_context(found, param, self.tokenizer, keep, secret)

    # ── the answer ──────────────────────────────────────────────────────────────

    async def _write(
        self,
        context: Context,
        param: QueryParam,
        meter: UsageMeter,
        put: Callable[[str], Awaitable[None]],
        *,
        streamed: bool,
    ) -> bool:
        """Put out the answer; whether the model's limit, a filter or an error cut it off."""
        searches, given = MODES[context.mode].searches, param.fail_response
        if searches and context.empty:
            await put(await self._no_answer() if given is None else given)
            return False
        if searches and self.answerer is not None:
            await put(await write_answer(self.answerer, context.question, context))
            return False
        messages = self._messages(context, param)
        reply = await self.client.chat(messages, meter, put if streamed else None)
        if not streamed:
            await put(reply.readable_text)
        if reply.broken_off:
            log.warning("the answer is not whole: %s", reply.broken_off)
        return reply.cut_off or bool(reply.broken_off)

    async def _no_answer(self) -> str:
        """What a reader is told if nothing was found: nothing fits, or nothing was read at all."""
        prompts, unread = self.client.prompts, await read(self.store, unread_documents)
        if unread is None:
            return prompts.render("no-context")[-1].content.strip()
        return prompts.render("nothing-indexed", unread._asdict())[-1].content.strip()

    def _messages(self, context: Context, param: QueryParam) -> Sequence[Message]:
        """What the model is asked: the mode's prompt, or else the conversation and the question."""
        mode, prompts, history = MODES[context.mode], self.client.prompts, self._history(param)
        if not mode.searches:
            wishes = (Message("system", param.user_prompt),) if param.user_prompt else ()
            return (*wishes, *history, Message("user", context.question))
        variables = {
            "query": context.question,
            "context": context.prompt,
            "history": history,
            "response_type": param.response_type
            or prompts.terms(mode.prompt).get("response_type", FORM),
            "user_prompt": param.user_prompt,
        }
        return prompts.render(mode.prompt, variables)


def _searched(context: Context) -> str:
    """What is searched for: the question, or what it was made into to stand without the history."""
    return context.keywords.question or context.question


async def _reranked(
    reranker: Reranker, found: Context, direct: Sequence[str], param: QueryParam
) -> tuple[Context, str]:
    """The best `chunk_top_k` chunks by the reranker's order, as far as `rerank_weight` lets it
    decide; and the id of the one that would be first in a search for the question's text alone,
    which is among them.
    """
    asked, texts = _searched(found), [chunk.text for chunk in found.chunks]
    scores = np.nan_to_num(await rerank_scores(reranker, asked, texts), nan=-np.inf)
    numbers = {chunk.id: number for number, chunk in enumerate(found.chunks)}
    by_text = np.array([numbers[id] for id in direct], np.int64)[: RERANKED * param.chunk_top_k]
    best = _by_weight(np.arange(len(scores)), scores, param)[: param.chunk_top_k]
    first = _by_weight(by_text, scores[by_text], param)[:1]
    if len(best) > 1 and not np.isin(first.ids, best.ids).all():
        last = Hits.of(first.ids, best.scores[-1:])
        best = joined([best[:-1], last])[0]
    ranked = [replace(found.chunks[number], score=score) for number, score, _ in best.rows()]
    keep = [found.chunks[number].id for number in first.ids.tolist()]
    return replace(found, chunks=tuple(ranked)), keep[0] if keep else ""


def _by_weight(numbers: Ids, scores: Floats, param: QueryParam) -> Hits:
    """Numbers in the order of their scores, fused with the order that they had."""
    places = np.arange(len(numbers))
    lists = Hits.ranked(places, scores), Hits.of(places, np.zeros(len(places)))
    fused = fuse(lists, weights=[param.rerank_weight, 1 - param.rerank_weight])
    return Hits(numbers[fused.ids], fused.scores, fused.why)
