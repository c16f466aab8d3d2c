"""Judgement of proposed contradictions by a model, and an estimate of the cost."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lightrag_jsonl.core.claims import Conflict, DatedClaim
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.llm.client import ModelClient
from lightrag_jsonl.llm.pair_review import PairReview

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
