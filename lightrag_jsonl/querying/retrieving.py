"""Retrieves a context for a question: finds keywords, searches, selects relations, writes the text."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

from lightrag_jsonl.ask import Ask
from lightrag_jsonl.calls import embedded
from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.options import QueryParam, Selection
from lightrag_jsonl.protocols import (
    Embedder,
    KeywordExtractor,
    Reranker,
    Tokenizer,
)
from lightrag_jsonl.querying import edges
from lightrag_jsonl.querying.answering import (
    QUESTION_SHARE,
    recent_turns,
)
from lightrag_jsonl.querying.context import build_context
from lightrag_jsonl.querying.edges import EdgeSelection
from lightrag_jsonl.querying.ground import WholeGround
from lightrag_jsonl.querying.hits import Probe
from lightrag_jsonl.querying.keywords import find_keywords
from lightrag_jsonl.querying.observing import Observer
from lightrag_jsonl.querying.recipes import RECIPES, lookups
from lightrag_jsonl.querying.searching import Findings, find, load_sources
from lightrag_jsonl.querying.selection import reranked
from lightrag_jsonl.querying.thread import SHORT_SECONDS, SearchThread
from lightrag_jsonl.querying.writing import Found
from lightrag_jsonl.spending import Spending
from lightrag_jsonl.storage.snapshot import SnapshotKeeper
from lightrag_jsonl.text import sanitize
from lightrag_jsonl.types import Context, Keywords

SEARCH_TOKENS = 500  # the part of a question used for search; embedders read about as many
RERANKED = 2  # times `chunk_top_k`: the number of chunks a reranker chooses from
LONGEST_TOKEN = 64  # characters; used to cut a huge question before counting its tokens


class Retriever:
    """Finds the context that a question is answered from; parameters as in `QueryPipeline`."""

    def __init__(
        self,
        *,
        ask: Ask,
        keeper: SnapshotKeeper,
        embedder: Embedder | None,
        tokenizer: Tokenizer,
        reranker: Reranker | None,
        keyword_extractor: KeywordExtractor | None,
        language: str,
    ) -> None:
        self._ask = ask
        self._keeper = keeper
        self._embedder = embedder
        self._tokenizer = tokenizer
        self._reranker = reranker
        self._keyword_extractor = keyword_extractor
        self._language = language
        self._whole = WholeGround()
        self._thread = SearchThread()

    def close(self) -> None:
        """Let the running search finish, and start no other."""
        self._thread.close()

    async def context(
        self, question: str, param: QueryParam, observer: Observer, spending: Spending
    ) -> Context:
        """What a model would be shown; calls to the model on the way are counted in `spending`."""
        question = self._checked(question, param)
        keywords, probe = Keywords(), None
        recipe = RECIPES[param.mode]
        looked = time.perf_counter()
        state = self._keeper.state() if recipe.searches else "empty"
        if state != "empty":
            if recipe.facts:
                keywords = await self._keywords(question, param, spending)
                await observer.keywords_found(keywords)
            low, high = lookups(recipe, keywords, question)
            probe = await self._probe(question, low, high)
        if self._reranks(param) or self._model_selects(param):
            findings = await self._thread.run(partial(self._find, probe, param))
            await observer.retrieved(findings.relations, findings.chunks)
            findings = await self._reranked(question, findings, param)
            selection, findings = await self._selected(question, findings, param, spending)
            context = await self._thread.run(
                partial(self._written, question, keywords, findings, selection, param)
            )
        else:
            ready = state != "behind" and time.perf_counter() - looked < SHORT_SECONDS
            findings, selection, context = await self._thread.run(
                partial(self._found_and_written, question, keywords, probe, param), ready=ready
            )
            await observer.retrieved(findings.relations, findings.chunks)
        await observer.selected(edges.kept(selection, context.relations), context)
        return context

    def _found_and_written(
        self, question: str, keywords: Keywords, probe: Probe | None, param: QueryParam
    ) -> tuple[Findings, EdgeSelection, Context]:
        """Search, selection and writing in one go, if nothing between them must be awaited."""
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
        with self._keeper.explained():
            return build_context(
                question,
                Found(findings.entities, selection.relations, findings.chunks, findings.documents),
                keywords=keywords,
                param=param,
                tokenizer=self._tokenizer,
                language=self._language,
            )

    def _checked(self, question: str, param: QueryParam) -> str:
        """The question, cut to its share of the budget, without characters that cannot be stored."""
        question = sanitize(question).strip()
        if not question:
            raise ConfigError("the question is empty: ask something")
        limit = max(int(param.max_total_tokens * QUESTION_SHARE), 1)
        return _cut(question, limit, self._tokenizer) or question[:1]

    async def _keywords(self, question: str, param: QueryParam, spending: Spending) -> Keywords:
        return await find_keywords(
            question,
            param=param,
            history=recent_turns(param, self._tokenizer),
            ask=self._ask,
            extractor=self._keyword_extractor,
            spending=spending,
        )

    async def _probe(self, question: str, low: tuple[str, ...], high: tuple[str, ...]) -> Probe:
        """The texts to search with and their vectors, all embedded in one call."""
        question = _cut(question, SEARCH_TOKENS, self._tokenizer)
        if self._embedder is None:
            return Probe(question, low, high)
        wanted = [question, *(_cut(text, SEARCH_TOKENS, self._tokenizer) for text in (*low, *high))]
        texts = list(dict.fromkeys(wanted))
        vectors = await embedded(self._embedder, texts, "query")
        places = {text: place for place, text in enumerate(texts)}
        rows = vectors[[places[text] for text in wanted]]
        return Probe(question, low, high, rows, getattr(self._embedder, "lexical", False))

    def _find(self, probe: Probe | None, param: QueryParam) -> Findings:
        """What the search finds; nothing without a probe."""
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
        return param.selection == "llm" and self._ask.has_model

    async def _reranked(self, question: str, findings: Findings, param: QueryParam) -> Findings:
        """The best `chunk_top_k` chunks, ranked by the reranker if there is one."""
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
        self, question: str, findings: Findings, param: QueryParam, spending: Spending
    ) -> tuple[EdgeSelection, Findings]:
        """The relations to answer from; if a model chose them, the findings keep only what belongs to them.

        See specification 2, section 1: answer from the selected edges and chunks only.
        """
        if not self._model_selects(param):
            return _by_rank(findings, param), findings
        selection = await edges.chosen(
            question, findings.relations, ask=self._ask, count=param.top_k, spending=spending
        )
        if selection.fallback or not selection.relations:
            return selection, findings
        narrowed = partial(self._narrowed, selection, findings, param)
        return selection, await self._thread.run(narrowed)

    def _narrowed(
        self, selection: EdgeSelection, findings: Findings, param: QueryParam
    ) -> Findings:
        """The findings that go with a model's selection of relations.

        Chunks are those behind the chosen relations, and those found by text that state none of the
        candidates: the selection says nothing about these. Entities are left out, since their
        descriptions may say what was not chosen.
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


def _by_rank(findings: Findings, param: QueryParam) -> EdgeSelection:
    """The first relations, or all of them, selected without a model."""
    method: Selection = "all" if param.selection == "all" else "score"
    count = len(findings.relations) if method == "all" else param.top_k
    return edges.ranked(method, findings.relations, count)


def _cut(text: str, limit: int, tokenizer: Tokenizer) -> str:
    """At most `limit` tokens of a text; a short text is not counted."""
    if len(text) <= limit // 4:  # a character never has more than four tokens
        return text
    return tokenizer.truncate(text[: limit * LONGEST_TOKEN], limit)
