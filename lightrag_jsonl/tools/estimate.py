"""Estimates what an insert would cost: the real prompts and chunks, with a simulated model."""

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lightrag_jsonl.core.options import ExtractionPrompt
from lightrag_jsonl.core.types import Chunk, Completion, Failure, Message, Record, ResponseType
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing.chunking import chunk_pages, document_pages
from lightrag_jsonl.indexing.loading import Given, load_documents
from lightrag_jsonl.llm.client import request_key
from lightrag_jsonl.rag import AsyncLightRAG

# Fitted on recorded answers of gpt-4o and gpt-4o-mini about A Christmas Carol (three runs, 42
# chunks of 1,200 tokens): written tokens = BASE + RATE * tokens of text, first turn and later ones.
# That is prose. Of notes that are all facts the same models wrote three to five times as much.
BASE = 40
RATES = (0.52, 0.62)
MESSAGE_TOKENS = 4  # what the chat format adds to a message
SUMMARY_EVERY = 7_500  # tokens of text for each summary; below, the tokens it reads and writes
SUMMARY_TOKENS = (550, 250)
FILLER = "What the text says about it, in a sentence or two that have the usual length."
RECORDS: dict[ExtractionPrompt, Record] = {
    "extract-graph": {"type": "entity", "entity_type": "concept", "description": FILLER},
    "agent-kg-extract": {"type": "definition", "definition": FILLER},
    "extract-with-ontologies": {"type": "entity", "entity_type": "concept"},
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """What indexing some documents would cost.

    `cached_tokens` are the input tokens that began an earlier request, which providers cache.
    Answers in the index's own cache cost nothing. Output tokens follow a rule fitted to prose;
    `summaries` is a rule of thumb, since they depend on how often names recur. With `glean_check`,
    every check is assumed to find that something was missed.
    """

    documents: int = 0
    chunks: int = 0
    text_tokens: int = 0
    extraction: Usage = Usage()
    summaries: Usage = Usage()
    failures: tuple[Failure, ...] = ()

    @property
    def usage(self) -> Usage:
        """Extraction and summaries together."""
        return self.extraction + self.summaries


class SimulatedLLM:
    """Answers with the expected number of records, and counts tokens and calls."""

    def __init__(
        self, name: str, extraction: ExtractionPrompt, count: Callable[[str], int]
    ) -> None:
        self.name = name
        self.usage = Usage()
        self._record = RECORDS[extraction]
        self._declares = extraction == "extract-graph"
        self._name_field = "name" if self._declares else "entity"
        self._count = count
        self._numbers = itertools.count(1)
        self._answers: dict[bytes, Completion] = {}
        self._prefixes: set[tuple[Message, ...]] = set()

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        """An answer of the expected length; a repeated request costs nothing."""
        key = request_key(self.name, messages, response_type, max_tokens)
        if key not in self._answers:
            text = next(message.content for message in messages if message.role == "user")
            later = any(message.role == "assistant" for message in messages)
            written = round(BASE + RATES[later] * self._count(text))
            written = 1 if response_type == "text" else min(written, max_tokens or written)
            self.usage += Usage(*self._read(messages, written), calls=1)
            self._answers[key] = Completion(self._text(written))
        return self._answers[key]

    def _text(self, tokens: int) -> str:
        """An answer of about so many tokens; a single one is the answer to a check."""
        if tokens == 1:
            return "YES"
        count = max(round(tokens / self._count(self._line())), 1)
        lines = [self._line() for _ in range(count)]
        if self._declares:
            lines.append(json.dumps({"type": "done", "entities": count, "relationships": 0}))
        return "\n".join(lines)

    def _read(self, messages: Sequence[Message], written: int) -> tuple[int, int, int]:
        """The tokens read, those written, and how many read ones began an earlier request."""
        read = seen = 0
        for number, message in enumerate(messages, 1):
            read += self._count(message.content) + MESSAGE_TOKENS
            prefix = tuple(messages[:number])
            if prefix in self._prefixes:
                seen = read
            self._prefixes.add(prefix)
        return read, written, seen

    def _line(self) -> str:
        return json.dumps({**self._record, self._name_field: f"Name {next(self._numbers)}"})


async def estimate(rag: AsyncLightRAG, documents: Given | Iterable[Given]) -> Estimate:
    """What `insert` would cost with a model; no model is called, nothing is stored."""
    failures: list[Failure] = []
    size, overlap = rag.options.chunk_tokens, rag.options.chunk_overlap

    def cut() -> Iterator[Sequence[Chunk]]:
        for document in load_documents(documents):
            if isinstance(document, Failure):
                failures.append(document)
                continue
            pages = document_pages(document.id or "", document)
            chunks = chunk_pages(pages, tokenizer=rag.engine.tokenizer, size=size, overlap=overlap)
            yield [replace(chunk, title=document.title or "") for chunk in chunks]

    model = rag.engine.client.llm.name if rag.engine.client.has_model else "none"
    found = await _estimate(rag, cut(), model)
    return replace(found, failures=tuple(failures))


async def estimate_upgrade(rag: AsyncLightRAG) -> Estimate:
    """What `retry(upgrade=True)` would cost; nothing is stored. `ConfigError` without a model."""
    return await _estimate(rag, rag.engine.indexing.upgradable(), rag.engine.client.llm.name)


async def _estimate(
    rag: AsyncLightRAG, documents: Iterable[Sequence[Chunk]], model: str
) -> Estimate:
    llm = SimulatedLLM(model, rag.options.extraction, rag.engine.tokenizer.count)
    extractor = rag.engine.extractor_for(rag.engine.client_for(llm, store_answers=False))
    sizes: list[list[int]] = []
    for chunks in documents:
        sizes.append([chunk.tokens for chunk in chunks])
        for chunk in chunks:
            await extractor.extract(chunk)
    tokens = sum(map(sum, sizes))
    summaries = tokens // SUMMARY_EVERY if llm.usage.calls else 0
    read, written = (summaries * count for count in SUMMARY_TOKENS)
    return Estimate(
        documents=len(sizes),
        chunks=sum(map(len, sizes)),
        text_tokens=tokens,
        extraction=llm.usage,
        summaries=Usage(read, written, calls=summaries),
    )
