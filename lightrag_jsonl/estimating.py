"""Estimates an insert: the real prompts, chunker and conversation, with a simulated model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count as numbers

from lightrag_jsonl.ask import request_key
from lightrag_jsonl.indexing.chunking import chunk_pages, document_pages
from lightrag_jsonl.indexing.extraction import LLMExtractor
from lightrag_jsonl.options import ExtractionPrompt, IndexOptions
from lightrag_jsonl.protocols import Tokenizer
from lightrag_jsonl.types import Completion, Document, Failure, Message, Record, ResponseType, Usage

# Fitted on recorded answers of gpt-4o and gpt-4o-mini about A Christmas Carol (three runs, 42
# chunks of 1,200 tokens): written tokens = BASE + RATE * tokens of text, first turn and later ones.
# That is prose. Of notes that are all facts the same models wrote three to five times as much.
BASE = 40
RATES = (0.52, 0.62)
ENOUGH = 3  # chunks that must have been read before `scale_of` trusts what was measured
MESSAGE_TOKENS = 4  # what the chat format adds to a message
SUMMARY_EVERY = 7_500  # tokens of text for each summary; below, the cost of one
SUMMARY = Usage(input_tokens=550, output_tokens=250, calls=1)
PER = 1_000_000  # prices are for so many tokens

RECORDS: dict[ExtractionPrompt, Record] = {
    "extract-graph": {"type": "entity", "name": "", "entity_type": "concept"},
    "agent-kg-extract": {"type": "definition", "entity": ""},
    "extract-with-ontologies": {"type": "entity", "entity": "", "entity_type": "concept"},
}
LAST_FIELD = {"agent-kg-extract": "definition"}
FILLER = "What the text says about it, in a sentence or two that have the usual length."


@dataclass(frozen=True, slots=True)
class Estimate:
    """What indexing some documents would cost; `cached_tokens` are the input tokens that can be
    cached.

    A token can be cached if an earlier request began with the same messages. Each gleaning round
    counts as one call; answers in the index's own cache cost nothing. Output tokens follow a rule
    fitted to prose, multiplied by `scale`: how much more than the rule the model has written in
    this index so far, or 1 before it has read enough. `summaries` is a rule of thumb, since they
    depend on how often names recur.
    """

    documents: int = 0
    chunks: int = 0
    text_tokens: int = 0
    extraction: Usage = Usage()
    summaries: Usage = Usage()
    scale: float = 1.0
    failures: tuple[Failure, ...] = ()

    @property
    def usage(self) -> Usage:
        """Extraction and summaries together."""
        return self.extraction + self.summaries

    def cost(self, *, input: float, output: float, cached: float | None = None) -> float:
        """The price, given prices for a million tokens; `cached` if cached input has a price of its own."""
        total = self.usage
        fresh = total.input_tokens - total.cached_tokens
        known = total.cached_tokens * (input if cached is None else cached)
        return (fresh * input + known + total.output_tokens * output) / PER


def scale_of(chunks: int, text_tokens: int, used: Usage) -> float:
    """By what factor a model's output so far differs from the rule's; 1 if too little was read."""
    if chunks < ENOUGH:
        return 1.0
    later = (used.calls - chunks) / chunks
    expected = used.calls * BASE + text_tokens * (RATES[0] + RATES[1] * later)
    return used.output_tokens / expected


class Foreseen:
    """A simulated model: answers with the expected number of records, and counts tokens and calls."""

    def __init__(
        self,
        name: str,
        extraction: ExtractionPrompt,
        count: Callable[[str], int],
        *,
        scale: float = 1.0,
    ) -> None:
        self.name = name
        self.scale = scale
        self.usage = Usage()
        self._extraction = extraction
        self._count = count
        self._numbers = numbers(1)
        self._known: dict[bytes, Completion] = {}
        self._prefixes: set[tuple[Message, ...]] = set()
        self._sizes: dict[str, int] = {}
        self._line = max(count(self._record()), 1)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        """An answer of the expected length; a repeated request costs nothing."""
        key = request_key(self.name, messages, response_type, max_tokens)
        if key not in self._known:
            written = self._expected(messages, max_tokens)
            read, seen = self._read(messages)
            self.usage += Usage(read, written, seen, calls=1)
            lines = max(round(written / self._line), 1)
            self._known[key] = Completion("\n".join(self._record() for _ in range(lines)))
        return self._known[key]

    def _expected(self, messages: Sequence[Message], max_tokens: int | None) -> int:
        text = next(message.content for message in messages if message.role == "user")
        later = any(message.role == "assistant" for message in messages)
        written = round((BASE + RATES[later] * self._size(text)) * self.scale)
        return written if max_tokens is None else min(written, max_tokens)

    def _read(self, messages: Sequence[Message]) -> tuple[int, int]:
        """The tokens of a request, and how many of them an earlier request began with."""
        read = seen = 0
        for number, message in enumerate(messages, 1):
            read += self._size(message.content) + MESSAGE_TOKENS
            prefix = tuple(messages[:number])
            if prefix in self._prefixes:
                seen = read
            self._prefixes.add(prefix)
        return read, seen

    def _size(self, text: str) -> int:
        if text not in self._sizes:
            self._sizes[text] = self._count(text)
        return self._sizes[text]

    def _record(self) -> str:
        record = dict(RECORDS[self._extraction])
        record["entity" if "entity" in record else "name"] = f"Name {next(self._numbers)}"
        record[LAST_FIELD.get(self._extraction, "description")] = FILLER
        return json.dumps(record, separators=(",", ":"))


@dataclass(slots=True)
class _Tally:
    documents: int = 0
    chunks: int = 0
    text_tokens: int = 0
    failures: list[Failure] = field(default_factory=list)


async def estimate(
    documents: Iterable[Document | Failure],
    extractor: LLMExtractor,
    foreseen: Foreseen,
    tokenizer: Tokenizer,
    options: IndexOptions,
) -> Estimate:
    """Run the extraction of every chunk as an insert would, with `foreseen` as its model."""
    tally = _Tally()
    for one in documents:
        if isinstance(one, Failure):
            tally.failures.append(one)
            continue
        chunks = chunk_pages(
            document_pages(one.id or "", one),
            tokenizer=tokenizer,
            size=options.chunk_tokens,
            overlap=options.chunk_overlap,
        )
        tally.documents += 1
        tally.chunks += len(chunks)
        tally.text_tokens += sum(chunk.tokens for chunk in chunks)
        for chunk in chunks:
            await extractor.extract(chunk)
            await asyncio.sleep(0)
    return Estimate(
        tally.documents,
        tally.chunks,
        tally.text_tokens,
        foreseen.usage,
        _summaries(tally.text_tokens if foreseen.usage.calls else 0),
        foreseen.scale,
        tuple(tally.failures),
    )


def _summaries(text_tokens: int) -> Usage:
    number = text_tokens // SUMMARY_EVERY
    return Usage(number * SUMMARY.input_tokens, number * SUMMARY.output_tokens, 0, number)
