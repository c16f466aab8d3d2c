"""Lets a model judge which proposed pairs are one entity, in batches; estimates what that costs."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from lightrag_jsonl.core.types import Record
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing.duplicates import Duplicate
from lightrag_jsonl.llm.client import ModelClient, UsageMeter

REVIEW_PROMPT = "review-names"
PAIRS_AT_ONCE = 20  # pairs in one call
WRITTEN = 30  # tokens for each judgement, as estimated
MESSAGE_TOKENS = 8  # what the chat format adds to the two messages
YES_OR_NO = {"true": True, "yes": True, "是": True, "false": False, "no": False, "否": False}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the model says of a pair: one entity, two, or (None) nothing readable; and why."""

    pair: Duplicate
    same: bool | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Review:
    """The judgements, in the order of the pairs, and what they cost."""

    judgements: tuple[Judgement, ...] = ()
    usage: Usage = Usage()

    @property
    def same(self) -> tuple[Duplicate, ...]:
        """The pairs that are one entity."""
        return tuple([one.pair for one in self.judgements if one.same])


def estimate_review(
    pairs: Sequence[Duplicate], client: ModelClient, count: Callable[[str], int]
) -> Usage:
    """The calls and tokens of a review; `ConfigError` without a model."""
    _ = client.llm  # rather than after somebody agreed to the price
    total = Usage()
    for at in range(0, len(pairs), PAIRS_AT_ONCE):
        lines = _lines(pairs[at : at + PAIRS_AT_ONCE])
        messages = client.prompts.render(REVIEW_PROMPT, {"pairs": lines})
        read = MESSAGE_TOKENS + sum(count(message.content) for message in messages)
        total += Usage(read, WRITTEN * len(lines), calls=1)
    return total


async def review(pairs: Sequence[Duplicate], client: ModelClient) -> Review:
    """What the model says of each pair."""
    meter = UsageMeter()

    async def judge(batch: Sequence[Duplicate]) -> list[Judgement]:
        variables = {"pairs": _lines(batch)}
        read = await client.jsonl(REVIEW_PROMPT, variables, normalize=_normalized, meter=meter)
        by_id = {str(one["id"]).strip(" []#"): one for one in read.result.records}
        nothing: Record = {"same": None, "reason": ""}
        found = [by_id.get(str(id), nothing) for id in range(1, len(batch) + 1)]
        words = [str(one.get("reason") or "") for one in found]
        same = [None if one is nothing else bool(one["same"]) for one in found]
        return list(map(Judgement, batch, same, words))

    with meter.attach_usage():
        batches = [pairs[at : at + PAIRS_AT_ONCE] for at in range(0, len(pairs), PAIRS_AT_ONCE)]
        found = await asyncio.gather(*map(judge, batches))
    return Review(tuple(chain.from_iterable(found)), meter.spent)


def _normalized(record: Record) -> tuple[Record, ...]:
    """The record with a number as id, or a yes or no in words, as the schema wants them."""
    same = YES_OR_NO.get(str(record.get("same")).strip().casefold())
    return ({**record, "id": str(record.get("id")), "same": same},)


def _lines(pairs: Sequence[Duplicate]) -> list[str]:
    """The pairs as the model reads them, numbered from 1."""
    lines = []
    for id, pair in enumerate(pairs, 1):
        both = zip((pair.name, pair.into), pair.types, pair.descriptions, strict=True)
        a, b = ({"name": name, "type": type, "description": text} for name, type, text in both)
        evidence = [sign.detail for sign in pair.evidence]
        line = {"id": str(id), "a": a, "b": b, "evidence": evidence}
        lines.append(json.dumps(line, ensure_ascii=False))
    return lines
