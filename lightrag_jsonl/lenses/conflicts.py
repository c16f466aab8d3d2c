"""Contradictions: claims of the same subject and functional kind with different values; and their judgement by a model."""

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from msgspec import Struct, structs

from lightrag_jsonl.core.answers import QUOTE_LENGTH, Context
from lightrag_jsonl.core.claims import Conflict, DatedClaim
from lightrag_jsonl.core.languages import FIXED_WORDS, known_language
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.lenses.claims import (
    INVERSE,
    MOST_COMPARED,
    Claim,
    ClaimIndex,
    ClaimMemory,
    are_apart,
    is_same_value,
)
from lightrag_jsonl.lenses.history import ClaimWords, dated_claims
from lightrag_jsonl.llm.client import ModelClient
from lightrag_jsonl.llm.pair_review import PairReview
from lightrag_jsonl.retrieval.context_writer import safe_line
from lightrag_jsonl.retrieval.lens import Lens, Section
from lightrag_jsonl.retrieval.task import SearchResult, SearchTask
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.dates import first_day
from lightrag_jsonl.text.names import nfkc_casefold
from lightrag_jsonl.text.strings import clipped_at_word

CONFLICTS_SHOWN = 3  # in a context: bounds its length
BUDGET_SHARE = 0.1  # of a prompt, at most; not tuned


class ClaimPair(NamedTuple):
    """Two claims with different values, the earlier claim first."""

    first: Claim
    second: Claim
    explained: bool

    @property
    def subject(self) -> str:
        """The name of the common subject."""
        is_inverse = self.first.kind.startswith(INVERSE)
        return self.first.names[1 if is_inverse else 0]


def find_conflicts(
    view: StoreView, index: ClaimIndex, *, explained: bool = False, limit: int | None = None
) -> tuple[Conflict, ...]:
    """The contradictions of an index, by subject; with `explained`, those explained by time last."""
    pairs = [pair for pair in conflicting_pairs(index) if explained or not pair.explained]
    pairs.sort(key=lambda pair: (pair.explained, pair.first.subject, pair.first.mention))
    return described_conflicts(view, pairs[:limit])


def conflicting_pairs(index: ClaimIndex) -> Iterator[ClaimPair]:
    """A pair of claims for each two different values of a subject, if possible a pair unexplained
    by time. Relations made or changed by a person are decided.
    """
    listed: set[frozenset[tuple[int, str]]] = set()
    for group in index.functional_groups():
        claims = sorted(group, key=lambda claim: claim.mention)[:MOST_COMPARED]
        for first_claims, second_claims in itertools.combinations(_by_value(claims), 2):
            pair = _least_explained(first_claims, second_claims)
            statements = frozenset(
                [(claim.chunk, claim.description) for claim in (pair.first, pair.second)]
            )
            if statements not in listed and not _is_decided(pair, index):
                listed.add(statements)
                yield pair


def described_conflicts(view: StoreView, pairs: Sequence[ClaimPair]) -> tuple[Conflict, ...]:
    """Pairs of claims with the sentences, documents and dates behind the claims."""
    claims = [claim for pair in pairs for claim in (pair.first, pair.second)]
    dated = iter(_with_sentences(view, claims))
    return tuple(
        Conflict(
            subject=pair.subject,
            predicate=pair.first.predicate,
            first=next(dated),
            second=next(dated),
            explained=pair.explained,
        )
        for pair in pairs
    )


# ── in the context and the answer of a question ─────────────────────────────────


class Conflicts(Lens, Struct, frozen=True):
    """The contradictions, unexplained by time, between two of the passages."""

    claims: ClaimMemory

    def find(self, task: SearchTask, result: SearchResult) -> SearchResult | None:
        """The result with the contradictions between its passages."""
        if result.overview is not None:
            return None
        chunk_ids = [chunk.id for chunk in result.context.chunks]
        index = self.claims.claims_of_chunks(task.snapshot, chunk_ids)
        if not index.claims:
            return None
        conflicts = find_conflicts(task.snapshot, index, limit=CONFLICTS_SHOWN)
        if not conflicts:
            return None
        return structs.replace(result, context=replace(result.context, conflicts=conflicts))

    def fitted(self, context: Context) -> Context:
        """The context with the contradictions between two of the passages that are left."""
        chunk_ids = {chunk.id for chunk in context.chunks}
        conflicts = [
            conflict
            for conflict in context.conflicts
            if {conflict.first.chunk_id, conflict.second.chunk_id} <= chunk_ids
        ]
        return replace(context, conflicts=tuple(conflicts))

    def section(self, context: Context) -> Section | None:
        """The contradictions in words."""
        if not context.conflicts:
            return None
        words = FIXED_WORDS[known_language(context.language)]
        heading = f"{words.conflicts}{words.colon.rstrip()}"
        return Section(heading, [f"- {line}" for line in conflict_lines(context)], BUDGET_SHARE)

    def appended(self, context: Context, text: str, cited: Collection[int]) -> str:
        """The contradictions behind an answer: with a value in the text, and a passage among the cited
        numbers.
        """
        numbers = {chunk.id: number for number, chunk in enumerate(context.chunks, start=1)}
        folded = nfkc_casefold(text)
        lines: list[str] = []
        for conflict, line in zip(context.conflicts, conflict_lines(context), strict=True):
            is_cited = any(
                numbers[claim.chunk_id] in cited for claim in (conflict.first, conflict.second)
            )
            if is_cited and any(nfkc_casefold(value) in folded for value in conflict.values):
                lines.append(line)
        return "".join([f"\n\n{line}" for line in lines])


def conflict_lines(context: Context) -> list[str]:
    """A line for each contradiction, with both sentences, dates and the numbers of the passages."""
    numbers = {chunk.id: number for number, chunk in enumerate(context.chunks, start=1)}
    words = FIXED_WORDS[known_language(context.language)]
    lines: list[str] = []
    for conflict in context.conflicts:
        sides: list[str] = []
        for claim in (conflict.first, conflict.second):
            date = words.brackets.format(claim.written) if claim.written else ""
            quote = words.quote.format(clipped_at_word(claim.text, QUOTE_LENGTH))
            sides.append(safe_line(quote + date) + f" [{numbers[claim.chunk_id]}]")
        topic = words.comma.join(filter(None, (conflict.subject, conflict.predicate)))
        lines.append(words.conflict.format(safe_line(topic), *sides))
    return lines


# ── pairs ───────────────────────────────────────────────────────────────────────


def _by_value(claims: Iterable[Claim]) -> list[list[Claim]]:
    """The claims in groups with the same value."""
    groups: list[list[Claim]] = []
    for claim in claims:
        for group in groups:
            if is_same_value(group[0].value, claim.value):
                group.append(claim)
                break
        else:
            groups.append([claim])
    return groups


def _least_explained(first_claims: Sequence[Claim], second_claims: Sequence[Claim]) -> ClaimPair:
    pairs = list(itertools.product(first_claims, second_claims))
    together = [pair for pair in pairs if not are_apart(*pair)]
    first, second = together[0] if together else pairs[-1]
    if first.begin and second.begin and first_day(second.begin) < first_day(first.begin):
        return ClaimPair(second, first, explained=not together)
    return ClaimPair(first, second, explained=not together)


def _is_decided(pair: ClaimPair, index: ClaimIndex) -> bool:
    """Whether a person made or changed one of the two relations."""
    ends = [tuple(sorted(claim.source_and_target)) for claim in (pair.first, pair.second)]
    return any(end in index.decided for end in ends)


def _with_sentences(view: StoreView, claims: Sequence[Claim]) -> list[DatedClaim]:
    statements = [
        ClaimWords(
            chunk=claim.chunk,
            kind=claim.mention_kind,
            subject=claim.names[0],
            predicate=claim.predicate,
            value=claim.names[1],
            description=claim.description,
            valid_from=claim.valid_from,
            valid_to=claim.valid_to,
        )
        for claim in claims
    ]
    return dated_claims(view, statements)


# ── judged by a model ─────────────────────────────────────────────────────────

CONFLICT_REVIEW = PairReview("review-claims", answer="contradictory")


@dataclass(frozen=True, slots=True)
class ConflictReview:
    """The pairs judged by a model to be contradictions, and the pairs judged not to be; pairs without a
    readable answer are in neither. `usage` is the cost.
    """

    contradictory: tuple[Conflict, ...] = ()
    compatible: tuple[Conflict, ...] = ()
    usage: Usage = Usage()


def estimate_conflict_review(
    conflicts: Sequence[Conflict], client: ModelClient, count: Callable[[str], int]
) -> Usage:
    """The calls and tokens of a review; `ConfigError` without a model."""
    return CONFLICT_REVIEW.estimate([_conflict_fields(pair) for pair in conflicts], client, count)


async def review_conflicts(conflicts: Sequence[Conflict], client: ModelClient) -> ConflictReview:
    """The model's judgement of each pair."""
    pairs = [_conflict_fields(conflict) for conflict in conflicts]
    records, usage = await CONFLICT_REVIEW.judge(pairs, client)
    judged: dict[bool, list[Conflict]] = {True: [], False: []}
    for conflict, record in zip(conflicts, records, strict=True):
        if record is not None:
            judged[bool(record["contradictory"])].append(conflict)
    return ConflictReview(
        contradictory=tuple(judged[True]), compatible=tuple(judged[False]), usage=usage
    )


def _conflict_fields(conflict: Conflict) -> Mapping[str, object]:
    return {
        "subject": conflict.subject,
        "a": _claim_fields(conflict.first),
        "b": _claim_fields(conflict.second),
    }


def _claim_fields(claim: DatedClaim) -> dict[str, str]:
    """A claim in the words of the text, with the known dates."""
    fields = {
        "says": claim.text,
        "from": claim.valid_from,
        "until": claim.valid_to,
        "document_of": claim.written,
    }
    return {name: value for name, value in fields.items() if value}
