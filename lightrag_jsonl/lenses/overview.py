"""Questions about a whole corpus: communities, and sentences from the beginning to the end, within the token budget."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from msgspec import Struct

from lightrag_jsonl.core.answers import Community, CommunityReport, Context, Dropped, Keywords
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.types import UNKNOWN_TYPE, Chunk
from lightrag_jsonl.lenses.communities import (
    CommunityMemory,
    CommunityRows,
)
from lightrag_jsonl.lenses.excerpts import (
    ExcerptChoice,
    Sentences,
    different_sentences,
    sentences_of,
)
from lightrag_jsonl.lenses.front_matter import is_front_matter
from lightrag_jsonl.lenses.reports import cited_chunk_ids, with_reports
from lightrag_jsonl.retrieval.context import REDUCED, context_mark
from lightrag_jsonl.retrieval.context_writer import ContextWriter, listed_name
from lightrag_jsonl.retrieval.filtering import (
    names_in_chunks,
    names_with_types,
    visible_degrees,
    with_filter,
)
from lightrag_jsonl.retrieval.full_text import lexical_hits
from lightrag_jsonl.retrieval.hits import column
from lightrag_jsonl.retrieval.lens import Lens
from lightrag_jsonl.retrieval.task import SearchResult, SearchTask
from lightrag_jsonl.storage.graph_index import is_among
from lightrag_jsonl.storage.status import with_documents
from lightrag_jsonl.storage.vector_index import Floats, Ids
from lightrag_jsonl.text.question_kinds import asks_about_everything, is_of_any_text
from lightrag_jsonl.text.terms import content_stems

# Bounds of the time.
CHUNKS_READ = 400  # whose sentences are read for one question
MOST_PROMPT_NAMES = 2_000  # of entities; a longer list fits into no prompt
MOST_CHUNKS_KEPT = 2_000  # whose sentences are in memory, 7 kB each if it has 1,200 tokens

# How much more a sentence counts in the first or last chunk of a document, where texts say what they are about
# and how things end. Tuned as the weights in `excerpts`.
OUTER_WEIGHT = 2.0

# How much more a sentence counts in the document and in the chunk most like the question: a question about a
# whole library is often answered by some of its documents, one about a book by all of its parts. Tuned on
# A Christmas Carol and on this project's documentation.
DOCUMENT_GAIN = 10.0
DOCUMENT_SHARPNESS = 3
CHUNK_GAIN = 0.5

# Front matter is left out, unless a greater share of all chunks is front matter.
MOST_FRONT_MATTER = 0.35


class Overviews(Lens):
    """What is said about everything: communities, and chunks to quote from, in the order of the text.

    `communities` keeps those of the graph between searches.
    """

    def __init__(self, communities: CommunityMemory) -> None:
        self._memory = communities

    def overview(self, task: SearchTask, context: Context) -> SearchResult:
        """The communities of the visible graph, and chunks of all parts."""
        task = with_filter(task)
        communities = self._memory.communities(task)
        top_communities = self._memory.in_words(task, communities)
        if task.part is None:  # a report is written from all that the passages say
            top_communities = with_reports(task.snapshot, top_communities)
        chunks_by_row = _spread_chunks(task, cited_chunk_ids(top_communities))
        chunks = tuple(chunks_by_row.values())
        overview = OverviewParts(
            chunks=chunks,
            sentences=_stored_sentences(task, chunks_by_row),
            chunk_weights=tuple(with_likeness(task, chunks_by_row, chunk_weights(chunks))),
            question_terms=subject_terms(context.question, context.keywords),
            communities=top_communities,
            names=_important_names(task, communities, column(chunks_by_row)),
        )
        context = with_documents(task.snapshot, replace(context, mode="overview", chunks=chunks))
        return SearchResult(context, overview=overview)


def subject_terms(question: str, keywords: Keywords) -> frozenset[str]:
    """The words of a question and of the keywords, without words for a text about any subject, and without those
    that name the whole ("these village reports").
    """
    texts = [keywords.question or question, *keywords.low_level, *keywords.high_level]
    stems = content_stems(" ".join(texts))
    if asks_about_everything(question):
        stems -= content_stems(question)
    return frozenset([term for term in stems if not is_of_any_text(term)])


# ── chunks ──────────────────────────────────────────────────────────────────────


def _spread_chunks(task: SearchTask, cited_ids: Collection[str]) -> dict[int, Chunk]:
    """The visible chunks without front matter, by row id in the order of the text; chunks cited in
    reports are always included.

    Of more than `CHUNKS_READ`, the best of each of so many sections of equal length: first by
    words in common with the question, then by the number of entities.
    """
    ordered = _reading_order(task)
    cited_rows = set(task.snapshot.chunks(ids=cited_ids)) & set(ordered.tolist())
    if len(ordered) > CHUNKS_READ:
        scores = _chunk_scores(task, ordered)
        sections = np.array_split(np.arange(len(ordered)), CHUNKS_READ)
        best_rows = {int(ordered[section[scores[section].argmax()]]) for section in sections}
        ordered = ordered[is_among(ordered, column(best_rows | cited_rows))]
    stored_chunks = task.snapshot.chunks(ordered.tolist())
    chunks_by_row = {
        row: stored_chunks[row] for row in ordered.tolist() if stored_chunks[row].text.strip()
    }
    return _without_front_matter(chunks_by_row, cited_rows)


def _reading_order(task: SearchTask) -> Ids:
    """The visible chunks in the order of the text; the order of all is kept for a state of the index."""
    memory = task.snapshot.state_memory
    if memory.reading_order is None:
        rows = task.snapshot.graph.chunks.tolist()
        memory.reading_order = column(task.snapshot.chunk_names(rows))
    ordered: Ids = memory.reading_order
    return ordered[task.inside("chunk", ordered)]


def _chunk_scores(task: SearchTask, chunks: Ids) -> Floats:
    """A score for each chunk: above 1 with words of the question, else by mentions."""
    graph = task.snapshot.graph
    positions, _ = graph.entities_of(chunks)
    mentions = np.bincount(positions, minlength=len(chunks))
    hits = lexical_hits(task, CHUNKS_READ)
    likeness = dict(zip(hits.ids.tolist(), hits.scores.tolist(), strict=True))
    from_question = [1 + likeness[row] if row in likeness else 0.0 for row in chunks.tolist()]
    scores: Floats = mentions / (1 + mentions.max(initial=0)) + np.array(from_question)
    return scores


def chunk_weights(chunks: Sequence[Chunk]) -> list[float]:
    """How much the sentences of each chunk count: more in the first and the last chunk of a document."""
    first_chunks = {chunk.document_id: chunk.id for chunk in reversed(chunks)}
    last_chunks = {chunk.document_id: chunk.id for chunk in chunks}
    outer_chunks = {*first_chunks.values(), *last_chunks.values()}
    return [OUTER_WEIGHT if chunk.id in outer_chunks else 1.0 for chunk in chunks]


def _without_front_matter(
    chunks_by_row: Mapping[int, Chunk], cited_rows: Collection[int]
) -> dict[int, Chunk]:
    front_rows = {row for row, chunk in chunks_by_row.items() if is_front_matter(chunk.text)}
    front_rows -= set(cited_rows)
    if len(front_rows) > MOST_FRONT_MATTER * len(chunks_by_row):
        return dict(chunks_by_row)
    return {row: chunk for row, chunk in chunks_by_row.items() if row not in front_rows}


def with_likeness(
    task: SearchTask, chunks_by_row: Mapping[int, Chunk], weights: Sequence[float]
) -> list[float]:
    """The weights of chunks, greater for chunks like the question, and for all chunks of a document with
    such a chunk.
    """
    rows = column(chunks_by_row)
    if not task.query.embedded or not len(rows):
        return list(weights)
    cosines = task.cosines("chunk", rows)
    lowest = float(np.nanmin(cosines, initial=1.0))
    span = float(np.nanmax(cosines, initial=lowest)) - lowest
    likeness = np.nan_to_num((cosines - lowest) / (span or 1.0))
    best: dict[str, float] = {}
    for chunk, value in zip(chunks_by_row.values(), likeness.tolist(), strict=True):
        best[chunk.document_id] = max(best.get(chunk.document_id, 0.0), value)
    weighted: list[float] = []
    for chunk, value, weight in zip(
        chunks_by_row.values(), likeness.tolist(), weights, strict=True
    ):
        of_document = 1 + DOCUMENT_GAIN * best[chunk.document_id] ** DOCUMENT_SHARPNESS
        weighted.append(weight * of_document * (1 + CHUNK_GAIN * value))
    return weighted


# ── sentences and names ───────────────────────────────────────────────────────────────────────


def _stored_sentences(task: SearchTask, chunks_by_row: Mapping[int, Chunk]) -> Sentences:
    """The different sentences of chunks; without a filter, those of a chunk are kept for a state of the index."""
    earlier = task.snapshot.state_memory.sentences if task.filtered is None else {}
    sentences_by_row = {row: earlier[row] for row in chunks_by_row if row in earlier}
    missing = [row for row in chunks_by_row if row not in sentences_by_row]
    names = names_in_chunks(task, column(missing))
    for row in missing:
        chunk = chunks_by_row[row]
        sentences_by_row[row] = sentences_of(chunk.text, chunk.tokens, tuple(names[row].items()))
    if task.filtered is None and missing:
        has_room = len(earlier) + len(missing) <= MOST_CHUNKS_KEPT
        all_sentences = {**earlier, **sentences_by_row} if has_room else sentences_by_row
        task.snapshot.state_memory.sentences = (
            all_sentences  # a new one: other searches read the old
        )
    return different_sentences([sentences_by_row[row] for row in chunks_by_row])


def _important_names(
    task: SearchTask, communities: Sequence[CommunityRows], chunks: Ids
) -> tuple[tuple[int, str], ...]:
    """The entities of communities by the number of relations and chunks, each with the position of its
    community, of equal ones the first community's; none that `chunks` do not mention.

    A name without a type and with a single chunk is often no name at all, and left out.
    """
    entities = np.concatenate([np.zeros(0, np.int64), *[part.entities for part in communities]])
    homes = np.repeat(np.arange(len(communities)), [len(part.entities) for part in communities])
    positions, mentioning = task.snapshot.graph.chunks_of(entities)
    is_visible = task.inside("chunk", mentioning)
    mentions = np.bincount(positions[is_visible], minlength=len(entities))
    scores = visible_degrees(task, entities) + mentions
    is_mentioned = is_among(entities, task.snapshot.graph.entities_of(chunks)[1])
    best = np.lexsort((-scores, ~is_mentioned))[: min(is_mentioned.sum(), MOST_PROMPT_NAMES)]
    named_types = names_with_types(task, entities[best])
    names: list[tuple[int, str]] = []
    for at in best.tolist():
        name, type = named_types[int(entities[at])]
        if mentions[at] > 1 or type != UNKNOWN_TYPE:
            names.append((int(homes[at]), name))
    return tuple(names)


# ── the prompt ────────────────────────────────────────────────────────────────

MOST_TRIALS = 4  # budgets tried, since the lengths of sentences are estimates
WELL_USED = 0.95  # of the budget: nothing longer is tried
NAMES_SHARE = 0.25  # of the budget for the names of entities, at most
# Of the budget for reports, at most: a report says what a part is about, and the excerpts have the details
# that a question is about. Chosen on one text, A Christmas Carol, with recorded reports.
REPORTS_SHARE = 0.25
FRAME = "[999] … "  # around the excerpts of a chunk
MOST_NUMBER = 999  # of a passage
NUMBER = "[999]"  # of a passage, after the names of its community


class OverviewParts(Struct, frozen=True, kw_only=True):
    """What an overview is written from, before the budget decides.

    `chunks` are in the order of the text, with their `sentences` and weights. `communities` come largest first;
    `names` are entities, the most important first, each with the position of its community.
    """

    chunks: tuple[Chunk, ...]
    sentences: Sentences
    chunk_weights: tuple[float, ...]
    question_terms: frozenset[str]
    communities: tuple[Community, ...]
    names: tuple[tuple[int, str], ...]

    def fit(
        self, result: SearchResult, param: QueryParam, tokenizer: Tokenizer, secret: str = ""
    ) -> Context:
        """The overview within the total budget, with the prompt.

        The excerpts are numbered as the chunks are, in the order of the text. The chunks of the context are
        those with excerpts, whole.
        """
        writer = OverviewWriter(result.context, self, tokenizer, secret)
        limit = int(param.max_total_tokens * (1.0 - float(getattr(tokenizer, "error", 0.0))))
        budget = limit
        best: Context | None = None
        for _ in range(MOST_TRIALS):
            context = writer.context(budget)
            if context.tokens <= limit and (best is None or context.tokens > best.tokens):
                best = context
            if not context.tokens or WELL_USED * limit <= context.tokens <= limit:
                break
            budget = int(budget * limit / context.tokens)
        while best is None:
            budget = int(budget * REDUCED)
            context = writer.context(budget)
            best = context if context.tokens <= limit else None
        return best


class OverviewWriter:
    """Writes the overview of one question for different budgets."""

    def __init__(
        self, context: Context, overview: OverviewParts, tokenizer: Tokenizer, secret: str
    ) -> None:
        self._overview = overview
        self._context = context
        self._tokenizer = tokenizer
        self._name_tokens: dict[
            str, int
        ] = {}  # each is counted for the first budget that reaches it
        self._writer = ContextWriter(self._context, context_mark(self._context, secret))
        self._choice = ExcerptChoice(
            overview.sentences,
            question_terms=overview.question_terms,
            chunk_weights=overview.chunk_weights,
        )

    def context(self, budget: int) -> Context:
        """The context for about a budget, with the exact number of tokens of its prompt."""
        overview = self._overview
        count = self._tokenizer.count
        fixed = count("\n\n".join(self._writer.overview_headings()))
        communities, community_tokens = self._communities(overview, budget)
        frame_tokens = count(FRAME) + (count(NUMBER) if communities else 0)
        excerpts = self._choice.choose(budget - fixed - community_tokens, frame_tokens)
        spans = {overview.chunks[position].id: tuple(spans) for position, spans in excerpts.items()}
        visible_ids = spans.keys() | cited_chunk_ids(communities)
        chunks = [chunk for chunk in overview.chunks if chunk.id in visible_ids]
        prompt = self._writer.overview(communities, chunks, spans)
        return replace(
            self._context,
            chunks=tuple(chunks),
            excerpts=spans,
            communities=tuple(communities),
            tokens=count(prompt) if prompt else 0,
            prompt=prompt,
            dropped=Dropped(chunks=len(overview.chunks) - len(chunks)),
        )

    def _communities(self, overview: OverviewParts, budget: int) -> tuple[list[Community], int]:
        """The communities with reports and names of the most important entities, as many as fit into
        their shares of a budget, and the tokens.
        """
        reports, report_tokens = self._reports(overview, int(REPORTS_SHARE * budget))
        names: dict[int, list[str]] = {}
        tokens = 0
        for position, name in overview.names:
            if name not in self._name_tokens:
                text = listed_name(name, self._writer.words.list_comma)
                self._name_tokens[name] = self._tokenizer.count(text)
            cost = self._name_tokens[name]
            if tokens + cost > NAMES_SHARE * budget:
                break
            tokens += cost
            names.setdefault(position, []).append(name)
        communities = [
            replace(
                overview.communities[position],
                entities=tuple(names.get(position, ())),
                report=reports.get(position),
            )
            for position in sorted({*names, *reports})
        ]
        return communities, tokens + report_tokens

    def _reports(
        self, overview: OverviewParts, budget: int
    ) -> tuple[dict[int, CommunityReport], int]:
        """The reports on the largest communities, by position, as many as fit; and their tokens."""
        reports: dict[int, CommunityReport] = {}
        tokens = 0
        for position, community in enumerate(overview.communities):
            if community.report is None:
                continue
            numbers = dict.fromkeys(community.chunk_ids, MOST_NUMBER)
            cost = self._tokenizer.count(self._writer.report(community.report, numbers))
            if tokens + cost <= budget:
                tokens += cost
                reports[position] = community.report
        return reports, tokens
