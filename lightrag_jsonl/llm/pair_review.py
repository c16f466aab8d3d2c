"""Judgements of pairs by a model, yes or no, in batches; and an estimate of the cost."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from msgspec import Struct

from lightrag_jsonl.core.types import Record
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.llm.client import ModelClient, UsageMeter

PAIRS_AT_ONCE = 20  # pairs in one call
JUDGEMENT_TOKENS = 30  # written for each pair, as estimated
MESSAGE_TOKENS = 8  # added by the chat format to the two messages
YES_OR_NO = {"true": True, "yes": True, "是": True, "false": False, "no": False, "否": False}

PairFields: TypeAlias = Mapping[str, object]  # a pair as the model reads it, without a number


class PairReview(Struct, frozen=True):
    """A prompt about pairs. `answer` is the field of its records with yes or no."""

    prompt: str
    answer: str

    def estimate(
        self, pairs: Sequence[PairFields], client: ModelClient, count: Callable[[str], int]
    ) -> Usage:
        """The calls and tokens of a review; `ConfigError` without a model."""
        _ = client.model("judge")  # rather than after somebody agreed to the price
        total = Usage()
        for batch in _pair_batches(pairs, PAIRS_AT_ONCE):
            messages = client.prompts.render(self.prompt, {"pairs": _numbered_lines(batch)})
            input_tokens = MESSAGE_TOKENS + sum(count(message.content) for message in messages)
            total += Usage(input_tokens, JUDGEMENT_TOKENS * len(batch), calls=1)
        return total

    async def judge(
        self,
        pairs: Sequence[PairFields],
        client: ModelClient,
        *,
        meter: UsageMeter | None = None,
        at_once: int = PAIRS_AT_ONCE,
    ) -> tuple[list[Record | None], Usage]:
        """The model's record of each pair, `None` for an unreadable answer; and all that `meter` counted."""
        meter = meter or UsageMeter()

        async def judge_batch(batch: Sequence[PairFields]) -> list[Record | None]:
            answer = await client.jsonl(
                self.prompt,
                {"pairs": _numbered_lines(batch)},
                normalize=self._normalized,
                meter=meter,
            )
            records_by_id = {_plain_id(record): record for record in answer.result.records}
            return [records_by_id.get(str(number)) for number in range(1, len(batch) + 1)]

        with meter.attach_usage():
            records = await asyncio.gather(*map(judge_batch, _pair_batches(pairs, at_once)))
        return list(chain.from_iterable(records)), meter.spent

    def _normalized(self, record: Record) -> tuple[Record, ...]:
        """The record with a number as id, or a yes or no in words, as the schema requires."""
        answer = YES_OR_NO.get(str(record.get(self.answer)).strip().casefold())
        return ({**record, "id": str(record.get("id")), self.answer: answer},)


def _pair_batches(pairs: Sequence[PairFields], at_once: int) -> Iterator[Sequence[PairFields]]:
    for start in range(0, len(pairs), at_once):
        yield pairs[start : start + at_once]


def _numbered_lines(pairs: Sequence[PairFields]) -> list[str]:
    """The pairs as the model reads them, numbered from 1."""
    return [
        json.dumps({"id": str(number), **fields}, ensure_ascii=False)
        for number, fields in enumerate(pairs, start=1)
    ]


def _plain_id(record: Record) -> str:
    """The number of a pair, also if the model wrote "[1]" or "#1"."""
    return str(record["id"]).strip(" []#")
