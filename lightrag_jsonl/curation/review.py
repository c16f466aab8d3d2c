"""Lets a model judge proposed pairs of entities, in batches; estimates the cost."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from lightrag_jsonl.core.types import Record
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.curation.duplicates import Duplicate
from lightrag_jsonl.llm.client import ModelClient, UsageMeter

REVIEW_PROMPT = "review-names"
PAIRS_AT_ONCE = 20  # pairs in one call
JUDGEMENT_TOKENS = 30  # written for each pair, as estimated
MESSAGE_TOKENS = 8  # added by the chat format to the two messages
YES_OR_NO = {"true": True, "yes": True, "是": True, "false": False, "no": False, "否": False}


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
    _ = client.model("judge")  # rather than after somebody agreed to the price
    total = Usage()
    for batch in _pair_batches(pairs):
        messages = client.prompts.render(REVIEW_PROMPT, {"pairs": _numbered_lines(batch)})
        input_tokens = MESSAGE_TOKENS + sum(count(message.content) for message in messages)
        total += Usage(input_tokens, JUDGEMENT_TOKENS * len(batch), calls=1)
    return total


async def review(pairs: Sequence[Duplicate], client: ModelClient) -> Review:
    """The model's judgement of each pair."""
    meter = UsageMeter()

    async def judge(batch: Sequence[Duplicate]) -> list[Judgement]:
        answer = await client.jsonl(
            REVIEW_PROMPT,
            {"pairs": _numbered_lines(batch)},
            normalize=_normalized_judgement,
            meter=meter,
        )
        records_by_id = {_plain_id(record): record for record in answer.result.records}
        return [
            _judgement(pair, records_by_id.get(str(number)))
            for number, pair in enumerate(batch, start=1)
        ]

    with meter.attach_usage():
        judgements = await asyncio.gather(*map(judge, _pair_batches(pairs)))
    return Review(tuple(chain.from_iterable(judgements)), meter.spent)


def _pair_batches(pairs: Sequence[Duplicate]) -> Iterator[Sequence[Duplicate]]:
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        yield pairs[start : start + PAIRS_AT_ONCE]


def _judgement(pair: Duplicate, record: Record | None) -> Judgement:
    if record is None:
        return Judgement(pair)
    return Judgement(pair, same=bool(record["same"]), reason=str(record.get("reason") or ""))


def _plain_id(record: Record) -> str:
    """The number of a pair, also if the model wrote "[1]" or "#1"."""
    return str(record["id"]).strip(" []#")


def _normalized_judgement(record: Record) -> tuple[Record, ...]:
    """The record with a number as id, or a yes or no in words, as the schema requires."""
    is_same = YES_OR_NO.get(str(record.get("same")).strip().casefold())
    return ({**record, "id": str(record.get("id")), "same": is_same},)


def _numbered_lines(pairs: Sequence[Duplicate]) -> list[str]:
    """The pairs as the model reads them, numbered from 1."""
    lines: list[str] = []
    for number, pair in enumerate(pairs, start=1):
        line = {
            "id": str(number),
            "a": _described(pair.name, pair.types[0], pair.descriptions[0]),
            "b": _described(pair.into, pair.types[1], pair.descriptions[1]),
            "evidence": [evidence.detail for evidence in pair.evidence],
        }
        lines.append(json.dumps(line, ensure_ascii=False))
    return lines


def _described(name: str, type: str, description: str) -> Mapping[str, str]:
    return {"name": name, "type": type, "description": description}
