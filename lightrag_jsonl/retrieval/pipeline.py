"""Answers a question: keywords, search, selection, context, answer, citations."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

import numpy as np
from msgspec import Struct, field, structs

from lightrag_jsonl.core.answers import (
    Answer,
    Cited,
    Context,
    PlacedQuote,
    Reading,
)
from lightrag_jsonl.core.edges import EdgeSelection
from lightrag_jsonl.core.errors import ConfigError, EmbeddingError
from lightrag_jsonl.core.languages import FIXED_WORDS, known_language
from lightrag_jsonl.core.modes import MODES
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import (
    Embedder,
    KeywordExtractor,
    QueryObserver,
    Reranker,
    Tokenizer,
    Vectors,
)
from lightrag_jsonl.core.types import ExtractionReport, Message
from lightrag_jsonl.core.user_code import can_embed, embed_texts
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.llm.context_window import context_tokens, fitted_param
from lightrag_jsonl.retrieval.answer_writer import AnswerWriter
from lightrag_jsonl.retrieval.context import context_mark, fit_context
from lightrag_jsonl.retrieval.edge_selection import select_edges, with_sources
from lightrag_jsonl.retrieval.keywords import question_keywords, search_texts
from lightrag_jsonl.retrieval.lens import Lens, fit_with_sections
from lightrag_jsonl.retrieval.reranking import RERANKED, rerank
from lightrag_jsonl.retrieval.scope import LikenessScale, TitleMemory, asks_for_overview
from lightrag_jsonl.retrieval.searching import Searcher, SearchProcesses, SearchRequest
from lightrag_jsonl.retrieval.task import SearchQuery, SearchResult
from lightrag_jsonl.storage.status import reading_state, reads_when_asked
from lightrag_jsonl.storage.store import Store, read, search
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.citation_markers import (
    CitationNumbering,
    with_prompt_numbers,
    without_citations,
)
from lightrag_jsonl.text.question_kinds import is_small_talk
from lightrag_jsonl.text.strings import sanitize

# Budgets, not tuned: what is left of the total is for the context.
QUESTION_SHARE = 0.25  # of the total budget for the question; a longer one is cut
HISTORY_SHARE = 0.25  # of the total budget for the conversation
READING_ROUNDS = 2  # the second one follows names that the first one has found
SEARCH_TOKENS = 500  # the part of a question used for search; embedders read about as many

Cite: TypeAlias = Callable[
    [StoreView, str, int, Context, Sequence[int], Sequence[PlacedQuote]], Cited
]
Check: TypeAlias = Callable[[str, Cited, UsageMeter], Awaitable[Cited]]


class ReadChunks(Protocol):
    """Has a model read chunks for a question, `limit` of them at most; None if all were read before. See
    `indexing.asked`.
    """

    async def __call__(
        self,
        chunk_ids: Sequence[str],
        *,
        limit: int,
        meter: UsageMeter,
        tell: Callable[[int, int], Awaitable[None]],
        earlier: Reading,
    ) -> Reading | None: ...


PutPiece: TypeAlias = Callable[[str], None]

log = logging.getLogger(__name__)

NO_OBSERVER = QueryObserver()


class QueryPipeline(Struct, frozen=True, kw_only=True):
    """Answers questions from one index.

    `keyword_extractor` replaces the model for keywords. `cite` finds the citations in
    an answer and judges its claims; `check`, if there is a checker, tells more of them. `likeness` is the scale of the
    embedder's cosines. The `searcher` searches, or with `processes`, the processes. `read_chunks` has a model
    read what a question finds, if the index is read when it is asked, by default `most_read_chunks`. Without `secret_marks`, equal
    content has equal marks in the prompts of every index.
    """

    store: Store
    client: ModelClient
    embedder: Embedder
    tokenizer: Tokenizer
    reranker: Reranker | None
    keyword_extractor: KeywordExtractor | None
    writer: AnswerWriter
    language: str
    cite: Cite
    likeness: LikenessScale
    check: Check | None = None
    secret_marks: bool = True
    searcher: Searcher = field(default_factory=Searcher)
    titles: TitleMemory = field(default_factory=TitleMemory)
    processes: SearchProcesses | None = None
    read_chunks: ReadChunks | None = None
    most_read_chunks: int = 0

    async def retrieve(
        self, question: str, param: QueryParam, observer: QueryObserver = NO_OBSERVER
    ) -> Context:
        """The context for a model; `ConfigError` if the question is empty."""
        meter = UsageMeter()
        with meter.attach_usage():
            result = await self._search_result(question, self._fitted_param(param), observer, meter)
        return result.context

    async def answer(
        self,
        question: str,
        param: QueryParam,
        *,
        observer: QueryObserver = NO_OBSERVER,
        meter: UsageMeter | None = None,
        put_piece: PutPiece | None = None,
    ) -> Answer:
        """An answer with citations; its usage is all that `meter` has counted.

        With `put_piece` the answer is passed on in pieces as it is written.
        """
        started = time.monotonic()
        meter = meter or UsageMeter()
        param = self._fitted_param(param)
        result = await self._search_result(question, param, observer, meter)
        context = result.context
        pieces: list[str] = []
        numbering = CitationNumbering(context.items)

        async def write_piece(piece: str, *, last: bool = False) -> None:
            numbered_piece = numbering.feed(piece, last=last)
            if numbered_piece:
                pieces.append(numbered_piece)
                await observer.piece(numbered_piece)
                if put_piece is not None:
                    put_piece(numbered_piece)

        is_streamed = put_piece is not None
        written = await self.writer.write(
            context,
            param,
            self._history(param),
            meter=meter,
            write_piece=write_piece,
            streamed=is_streamed,
        )
        await write_piece("", last=True)  # the lenses see also a citation at the very end
        written_length = len("".join(pieces))
        for lens in self._telling_lenses(result):
            end = lens.appended(context, "".join(pieces), numbering.numbers)
            await write_piece(end, last=True)
        answer = await self._with_citations(
            "".join(pieces), written_length, numbering, context, param, meter, quotes=written.quotes
        )
        if param.ask_again and not is_streamed and _unsupported_claims(answer):
            answer = await self._asked_again(answer, result, param, meter)
        answer = replace(answer, truncated=written.cut_off or answer.truncated, usage=meter.spent)
        await observer.answered(answer)
        log.info("query (%s): %.2f s", param.mode, time.monotonic() - started)
        return answer

    async def _with_citations(
        self,
        text: str,
        written_length: int,
        numbering: CitationNumbering,
        context: Context,
        param: QueryParam,
        meter: UsageMeter,
        *,
        quotes: Sequence[PlacedQuote] = (),
    ) -> Answer:
        """A text as an answer, with its citations and what is known of its claims; lenses have appended what is
        behind its first `written_length` characters.
        """
        prompt_numbers = tuple(numbering.numbers)
        cited = await read(
            self.store,
            lambda view: self.cite(
                self._visible(view, param), text, written_length, context, prompt_numbers, quotes
            ),
        )
        if self.check is not None:
            cited = await self.check(text, cited, meter)
        return Answer(
            text=text,
            citations=cited.citations,
            context=context,
            invented=cited.invented,
            prompt_numbers=prompt_numbers,
            claims=cited.claims,
            notice=self.writer.notice(context) if cited.citations else "",
            uncited=cited.uncited,
        )

    async def _asked_again(
        self, answer: Answer, result: SearchResult, param: QueryParam, meter: UsageMeter
    ) -> Answer:
        """The model's second answer, told which claims of the first are unsupported; the first one, if the
        second has no fewer.
        """
        context = answer.context
        if not self.writer.is_model:
            return answer
        written = await self.writer.second_answer(
            context,
            param,
            self._history(param),
            first_answer=with_prompt_numbers(answer.text, answer.prompt_numbers),
            unsupported_claims=_unsupported_claims(answer),
            meter=meter,
        )
        if not written:
            return answer
        second_numbering = CitationNumbering(context.items)
        text = second_numbering.feed(written, last=True)
        written_length = len(text)
        for lens in self._telling_lenses(result):
            end = lens.appended(context, text, second_numbering.numbers)
            text += second_numbering.feed(end, last=True)
        second = await self._with_citations(
            text, written_length, second_numbering, context, param, meter
        )
        is_better = len(_unsupported_claims(second)) < len(_unsupported_claims(answer))
        return second if is_better else answer

    async def _search_result(
        self, question: str, param: QueryParam, observer: QueryObserver, meter: UsageMeter
    ) -> SearchResult:
        """The result with the context that a model would read; model calls on the way are counted by
        `meter`.
        """
        context = Context(
            self._checked(question, param),
            param.mode,
            language=self.language,
            response_type=param.response_type or "",
            where=param.where,
            as_of=param.as_of or "",
        )
        result = SearchResult(context)
        if self._may_search(context.question, param):
            context = await self._with_keywords(context, param, observer, meter)
            result = await self._search(context, param, observer, meter)
        await observer.retrieved(result.context.relations, result.context.chunks)
        search_text = _search_text(context)
        reranker = self._reranker(param)
        if reranker is not None and result.context.chunks and result.overview is None:
            result = await rerank(reranker, result, search_text, param)
        selection = await select_edges(result, search_text, param, client=self.client, meter=meter)
        if selection.method == "llm" and not selection.fallback:
            result = await read(
                self.store,
                lambda view: with_sources(
                    self._visible(view, param), result, selection, param.chunk_top_k
                ),
            )
        context = await asyncio.to_thread(self._fitted, result, selection, param)
        await observer.selected(selection, context)
        return structs.replace(result, context=context)

    def _fitted_param(self, param: QueryParam) -> QueryParam:
        """The settings with a context small enough for the window of the answering model."""
        if not self.writer.is_model:
            return param
        window = context_tokens(self.client.model("answer"))
        return param if window is None else fitted_param(param, window)

    # ── the search ──────────────────────────────────────────────────────────────

    def _may_search(self, question: str, param: QueryParam) -> bool:
        """Whether there is anything to search for; small talk asks neither the model nor the index."""
        if not MODES[param.mode].searches or self.store.is_empty():
            return False
        if param.turns or param.ll_keywords or param.hl_keywords:
            return True  # a conversation or keywords may say what the question is about
        return not (self.likeness.applies(param) and is_small_talk(question))

    async def _with_keywords(
        self, context: Context, param: QueryParam, observer: QueryObserver, meter: UsageMeter
    ) -> Context:
        """The context with the question's keywords, if the mode or a conversation needs keywords."""
        history = self._history(param)
        if not (MODES[param.mode].graph or history):
            return context
        keywords = await question_keywords(
            context.question,
            history,
            param,
            client=self.client,
            extractor=self.keyword_extractor,
            meter=meter,
        )
        await observer.keywords_found(keywords)
        return replace(context, keywords=keywords)

    async def _search(
        self, context: Context, param: QueryParam, observer: QueryObserver, meter: UsageMeter
    ) -> SearchResult:
        """The findings of the index on the question; in an index that is read when it is asked, after a model has
        read what was found first.
        """
        request = await self._search_request(context, param)
        result = await self._found(request)
        limit = self.most_read_chunks if param.read_chunks is None else param.read_chunks
        if self.read_chunks is None or not MODES[param.mode].graph or not limit:
            return result
        if not reads_when_asked(await read(self.store, lambda view: view.settings())):
            return result
        if request.for_overview:
            reading = await read(self.store, self._reading_of_whole)
            if reading.problem:
                await observer.chunks_read(reading)
            return structs.replace(result, context=replace(result.context, reading=reading))
        return await self._found_by_reading(
            request, result, self.read_chunks, limit, observer, meter
        )

    async def _found_by_reading(
        self,
        request: SearchRequest,
        result: SearchResult,
        read_chunks: ReadChunks,
        limit: int,
        observer: QueryObserver,
        meter: UsageMeter,
    ) -> SearchResult:
        """The findings after a model has read the best chunks of a result, and those that were found then, at most so
        many.
        """
        reading = Reading()
        for _ in range(READING_ROUNDS):
            if len(reading.chunk_ids) >= limit:
                break
            newly_read = await read_chunks(
                [chunk.id for chunk in result.context.chunks[:limit]],
                limit=limit - len(reading.chunk_ids),
                meter=meter,
                tell=observer.reading,
                earlier=reading,
            )
            if newly_read is None:
                break
            reading += newly_read
            await observer.chunks_read(reading)
            result = await self._found(request)
            if newly_read.problem:
                break
        return structs.replace(result, context=replace(result.context, reading=reading))

    def _reading_of_whole(self, view: StoreView) -> Reading:
        """What a question about the whole is told of an index that is read when it is asked: nothing is read
        for it, and most of what it is answered from may be read by rules alone.
        """
        state = reading_state(view, ExtractionReport())
        if state.read != "asked" or not state.chunks_unread:
            return Reading()
        words = FIXED_WORDS[known_language(self.language)]
        chunks = state.chunks_read + state.chunks_unread
        return Reading(problem=words.unread_whole.format(state.chunks_read, chunks))

    async def _search_request(self, context: Context, param: QueryParam) -> SearchRequest:
        """What to search for."""
        query = await self._query(context, param)
        factor = RERANKED if self._reranker(param) else 1
        for_overview = await asks_for_overview(
            self.store, self.titles, MODES[param.mode], query.question, context.keywords
        )
        return SearchRequest(
            query=query,
            context=context,
            param=param,
            chunk_limit=param.chunk_top_k * factor,
            for_overview=for_overview,
        )

    async def _found(self, request: SearchRequest) -> SearchResult:
        """The findings of the index, within a single snapshot."""
        # The communities of a graph, which may take seconds, are found and kept in one process.
        if self.processes is not None and not request.for_overview:
            return await self.processes.find(request)
        return await search(self.store, lambda snapshot: self.searcher.find(snapshot, request))

    def _visible(self, view: StoreView, param: QueryParam) -> StoreView:
        """The view through all lenses."""
        for lens in self.searcher.lenses:
            view = lens.view(view, param)
        return view

    def _reranker(self, param: QueryParam) -> Reranker | None:
        """The reranker, if wanted by the question."""
        return self.reranker if param.enable_rerank and param.rerank_weight > 0 else None

    def _fitted(self, result: SearchResult, selection: EdgeSelection, param: QueryParam) -> Context:
        """The part of the result within the budgets, with the prompt and the selected relations."""
        context = replace(result.context, relations=selection.relations)
        result = structs.replace(result, context=context)
        secret = self.store.mark_secret if self.secret_marks else ""
        fit = fit_context if result.overview is None else result.overview.fit
        lenses = self._telling_lenses(result)
        if not lenses:
            return fit(result, param, self.tokenizer, secret)
        return fit_with_sections(
            lambda param_of_items: fit(result, param_of_items, self.tokenizer, secret),
            lenses,
            context,
            param=param,
            tokenizer=self.tokenizer,
            mark=context_mark(context, secret),
        )

    def _telling_lenses(self, result: SearchResult) -> list[Lens]:
        """The lenses that found something."""
        return [self.searcher.lenses[number] for number in result.lenses]

    # ── the question ────────────────────────────────────────────────────────────

    def _checked(self, question: str, param: QueryParam) -> str:
        """The question, cut to its share of the budget, without characters that cannot be stored."""
        question = sanitize(question).strip()
        if not question:
            raise ConfigError("the question is empty")
        limit = max(int(param.max_total_tokens * QUESTION_SHARE), 1)
        return self.tokenizer.truncate(question, limit) or question[:1]

    def _history(self, param: QueryParam) -> tuple[Message, ...]:
        """The latest turns of the conversation within their share of the budget, in order."""
        budget = int(param.max_total_tokens * HISTORY_SHARE)
        turns: list[Message] = []
        for turn in reversed(param.turns):
            budget -= self.tokenizer.count(turn.content)
            if budget < 0:
                break
            turns.append(turn)
        return tuple(reversed(turns))

    async def _query(self, context: Context, param: QueryParam) -> SearchQuery:
        """The texts to search with and their vectors, all embedded in one call."""
        question = _search_text(context)
        low, high = search_texts(MODES[context.mode], context.keywords, question)
        texts = [self.tokenizer.truncate(text, SEARCH_TOKENS) for text in (question, *low, *high)]
        vectors = await self._vectors(texts)
        is_embedded = vectors is not None
        floor = None
        if vectors is None:
            vectors = np.zeros((len(texts), self.embedder.dim), np.float32)
        else:
            floor = await self.likeness.floor(texts[0], vectors[0], param)
        return SearchQuery(
            question=texts[0],
            low=low,
            high=high,
            vectors=vectors,
            lexical=self.likeness.is_lexical,
            likeness_floor=floor,
            embedded=is_embedded,
        )

    async def _vectors(self, texts: Sequence[str]) -> Vectors | None:
        """A vector for each text, shape (texts, dim); None if the embedder refuses a text."""
        distinct_texts = list(dict.fromkeys(texts))
        try:
            vectors = await embed_texts(self.embedder, distinct_texts, "query")
        except EmbeddingError as error:
            if error.unavailable or not await can_embed(self.embedder, "query"):
                raise
            log.warning(
                "searching by words alone, since the question cannot be embedded: %s", error
            )
            return None
        rows: Vectors = vectors[[distinct_texts.index(text) for text in texts]]
        return rows


def _unsupported_claims(answer: Answer) -> tuple[str, ...]:
    """The words of the claims that a checker found to be unsupported, each once."""
    claims = [
        claim for claim in (*answer.claims, *answer.uncited) if claim.verdict == "unsupported"
    ]
    texts = [answer.text[claim.start : claim.end] for claim in claims]
    return tuple(dict.fromkeys([" ".join(without_citations(text).split()) for text in texts]))


def _search_text(context: Context) -> str:
    """The text to search for: the question, or the question made to stand without its history."""
    return context.keywords.question or context.question
