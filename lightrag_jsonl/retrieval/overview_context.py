"""Writes an overview within the token budget: communities with their names, then excerpts."""

from dataclasses import replace

from lightrag_jsonl.core.answers import Community, Context, Dropped
from lightrag_jsonl.core.languages import FIXED_WORDS, known_language
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.retrieval.context import REDUCED, context_mark
from lightrag_jsonl.retrieval.context_writer import ContextWriter
from lightrag_jsonl.retrieval.excerpts import ExcerptRequest, choose_excerpts
from lightrag_jsonl.retrieval.task import Overview, SearchResult

MOST_TRIALS = 4  # budgets tried, since the lengths of sentences are estimates
WELL_USED = 0.95  # of the budget: nothing longer is tried
NAMES_SHARE = 0.25  # of the budget for the names of entities, at most
FRAME = "[999] … "  # around the excerpts of a chunk
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
    writer = OverviewWriter(result, tokenizer, secret)
    limit = int(param.max_total_tokens * (1.0 - float(getattr(tokenizer, "error", 0.0))))
    budget = limit
    best: Context | None = None
    for _ in range(MOST_TRIALS):
        context = writer.context(overview, budget)
        if context.tokens <= limit and (best is None or context.tokens > best.tokens):
            best = context
        if not context.tokens or WELL_USED * limit <= context.tokens <= limit:
            break
        budget = int(budget * limit / context.tokens)
    while best is None:
        budget = int(budget * REDUCED)
        context = writer.context(overview, budget)
        best = context if context.tokens <= limit else None
    return best


class OverviewWriter:
    """Writes the overview of one question for different budgets."""

    def __init__(self, result: SearchResult, tokenizer: Tokenizer, secret: str) -> None:
        self._context = result.context
        self._tokenizer = tokenizer
        words = FIXED_WORDS[known_language(self._context.language)]
        self._writer = ContextWriter(words, self._context, context_mark(self._context, secret))

    def context(self, overview: Overview, budget: int) -> Context:
        """The context for about a budget, with the exact number of tokens of its prompt."""
        count = self._tokenizer.count
        fixed = count("\n\n".join(self._writer.overview_headings()))
        names_budget = int(NAMES_SHARE * budget)
        communities, names_tokens = self._communities(overview, names_budget)
        request = ExcerptRequest(
            sentences=overview.sentences,
            question_terms=overview.question_terms,
            chunk_weights=overview.chunk_weights,
            frame_tokens=count(FRAME) + (count(NUMBER) if communities else 0),
        )
        excerpts = choose_excerpts(request, budget - fixed - names_tokens)
        chunks = [overview.chunks[position] for position in excerpts]
        spans = {overview.chunks[position].id: tuple(spans) for position, spans in excerpts.items()}
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
        """The communities with as many names of the most important entities as fit, and the tokens."""
        names: dict[int, list[str]] = {}
        tokens = 0
        for position, name in overview.names:
            cost = self._tokenizer.count(self._writer.listed_name(name))
            if tokens + cost > budget:
                break
            tokens += cost
            names.setdefault(position, []).append(name)
        communities = [
            replace(overview.communities[position], entities=tuple(names[position]))
            for position in sorted(names)
        ]
        return communities, tokens
