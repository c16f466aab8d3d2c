"""Judgement of proposed pairs of entities by a model, and an estimate of the cost."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.curation.duplicates import Duplicate
from lightrag_jsonl.llm.client import ModelClient
from lightrag_jsonl.llm.pair_review import PairReview

NAME_REVIEW = PairReview("review-names", answer="same")


@dataclass(frozen=True, slots=True)
class Judgement:
    """The model's answer about a pair: one entity, two, or `None` for an unreadable answer."""

    pair: Duplicate
    same: bool | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Review:
    """The judgements, in the order of the pairs, and their cost."""

    judgements: tuple[Judgement, ...] = ()
    usage: Usage = Usage()

    @property
    def same(self) -> tuple[Duplicate, ...]:
        """The pairs judged to be one entity."""
        return tuple([judgement.pair for judgement in self.judgements if judgement.same])


def estimate_review(
    pairs: Sequence[Duplicate], client: ModelClient, count: Callable[[str], int]
) -> Usage:
    """The calls and tokens of a review; `ConfigError` without a model."""
    return NAME_REVIEW.estimate([_name_fields(pair) for pair in pairs], client, count)


async def review(pairs: Sequence[Duplicate], client: ModelClient) -> Review:
    """The model's judgement of each pair."""
    records, usage = await NAME_REVIEW.judge([_name_fields(pair) for pair in pairs], client)
    judgements = [
        Judgement(pair, same=bool(record["same"]), reason=str(record.get("reason") or ""))
        if record
        else Judgement(pair)
        for pair, record in zip(pairs, records, strict=True)
    ]
    return Review(tuple(judgements), usage)


def _name_fields(pair: Duplicate) -> Mapping[str, object]:
    return {
        "a": _described(pair.name, pair.types[0], pair.descriptions[0]),
        "b": _described(pair.into, pair.types[1], pair.descriptions[1]),
        "evidence": [evidence.detail for evidence in pair.evidence],
    }


def _described(name: str, type: str, description: str) -> Mapping[str, str]:
    return {"name": name, "type": type, "description": description}
