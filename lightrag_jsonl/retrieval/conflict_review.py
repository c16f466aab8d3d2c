"""Judgment of proposed contradictions by a model, in batches, and an estimate of the cost."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from lightrag_jsonl.core.claims import Conflict, DatedClaim
from lightrag_jsonl.core.types import Record
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.llm.client import ModelClient, UsageMeter

CONFLICT_PROMPT = "review-claims"
CONFLICTS_AT_ONCE = 20  # pairs in one call
TOKENS_WRITTEN = 30  # written for each pair, as estimated
CHAT_TOKENS = 8  # added by the chat format to the two messages
ANSWERS_IN_WORDS = {"true": True, "yes": True, "是": True, "false": False, "no": False, "否": False}


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
    _ = client.model("judge")  # rather than after somebody agreed to the price
    total = Usage()
    for batch in _conflict_batches(conflicts):
        messages = client.prompts.render(CONFLICT_PROMPT, {"pairs": _numbered_pairs(batch)})
        input_tokens = CHAT_TOKENS + sum(count(message.content) for message in messages)
        total += Usage(input_tokens, TOKENS_WRITTEN * len(batch), calls=1)
    return total


async def review_conflicts(conflicts: Sequence[Conflict], client: ModelClient) -> ConflictReview:
    """The model's judgement of each pair."""
    meter = UsageMeter()

    async def judge(batch: Sequence[Conflict]) -> list[tuple[Conflict, bool]]:
        answer = await client.jsonl(
            CONFLICT_PROMPT,
            {"pairs": _numbered_pairs(batch)},
            normalize=_normalized_answer,
            meter=meter,
        )
        judgements: dict[str, bool] = {}
        for record in answer.result.records:
            judgements[str(record["id"]).strip(" []#")] = bool(record["contradictory"])
        return [
            (conflict, judgements[str(number)])
            for number, conflict in enumerate(batch, start=1)
            if str(number) in judgements
        ]

    with meter.attach_usage():
        judged = list(
            chain.from_iterable(await asyncio.gather(*map(judge, _conflict_batches(conflicts))))
        )
    return ConflictReview(
        contradictory=tuple(
            [conflict for conflict, is_contradictory in judged if is_contradictory]
        ),
        compatible=tuple(
            [conflict for conflict, is_contradictory in judged if not is_contradictory]
        ),
        usage=meter.spent,
    )


def _conflict_batches(conflicts: Sequence[Conflict]) -> Iterator[Sequence[Conflict]]:
    for start in range(0, len(conflicts), CONFLICTS_AT_ONCE):
        yield conflicts[start : start + CONFLICTS_AT_ONCE]


def _normalized_answer(record: Record) -> tuple[Record, ...]:
    """The record with a number as id, or a yes or no in words, as the schema requires."""
    answer = ANSWERS_IN_WORDS.get(str(record.get("contradictory")).strip().casefold())
    return ({**record, "id": str(record.get("id")), "contradictory": answer},)


def _numbered_pairs(conflicts: Sequence[Conflict]) -> list[str]:
    """The pairs as the model reads them, numbered from 1."""
    lines: list[str] = []
    for number, conflict in enumerate(conflicts, start=1):
        line = {
            "id": str(number),
            "subject": conflict.subject,
            "a": _claim_fields(conflict.first),
            "b": _claim_fields(conflict.second),
        }
        lines.append(json.dumps(line, ensure_ascii=False))
    return lines


def _claim_fields(claim: DatedClaim) -> dict[str, str]:
    """A claim in the words of the text, with the known dates."""
    fields = {
        "says": claim.text,
        "from": claim.valid_from,
        "until": claim.valid_to,
        "document_of": claim.written,
    }
    return {name: value for name, value in fields.items() if value}
