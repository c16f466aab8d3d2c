"""Writes an overview within the token budget: communities with their names, then excerpts."""

from dataclasses import replace

from lightrag_jsonl.core.answers import Community, CommunityReport, Context, Dropped
from lightrag_jsonl.core.languages import FIXED_WORDS, known_language
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.retrieval.context import REDUCED, context_mark
from lightrag_jsonl.retrieval.context_writer import ContextWriter, listed_name
from lightrag_jsonl.retrieval.excerpts import ExcerptChoice
from lightrag_jsonl.retrieval.reports import cited_chunk_ids
from lightrag_jsonl.retrieval.task import Overview, SearchResult

MOST_TRIALS = 4  # budgets tried, since the lengths of sentences are estimates
WELL_USED = 0.95  # of the budget: nothing longer is tried
NAMES_SHARE = 0.25  # of the budget for the names of entities, at most
# Of the budget for reports, at most: a report says what a part is about, and the excerpts have the details
# that a question is about. Chosen on one text, A Christmas Carol, with recorded reports.
REPORTS_SHARE = 0.25
FRAME = "[999] … "  # around the excerpts of a chunk
MOST_NUMBER = 999  # of a passage
NUMBER = "[999]"  # of a passage, after the names of its community


def fit_overview(
    result: SearchResult, param: QueryParam, tokenizer: Tokenizer, secret: str = ""
) -> Context:
    """The overview within the total budget, with the prompt.

    The excerpts are numbered as the chunks are, in the order of the text. The chunks of the context are
    those with excerpts, whole.
    """
    overview = result.overview
    if overview is None:
        raise ValueError("the result has no overview")
    writer = OverviewWriter(result, overview, tokenizer, secret)
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
        self, result: SearchResult, overview: Overview, tokenizer: Tokenizer, secret: str
    ) -> None:
        self._overview = overview
        self._context = result.context
        self._tokenizer = tokenizer
        self._name_tokens: dict[
            str, int
        ] = {}  # each is counted for the first budget that reaches it
        words = FIXED_WORDS[known_language(self._context.language)]
        self._writer = ContextWriter(words, self._context, context_mark(self._context, secret))
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

    def _communities(self, overview: Overview, budget: int) -> tuple[list[Community], int]:
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

    def _reports(self, overview: Overview, budget: int) -> tuple[dict[int, CommunityReport], int]:
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
