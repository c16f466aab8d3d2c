"""Estimates what an insert would cost: the real prompts and chunks, with a simulated model."""

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lightrag_jsonl.core.options import ExtractionPrompt
from lightrag_jsonl.core.pictures import with_texts
from lightrag_jsonl.core.types import (
    Chunk,
    Completion,
    Document,
    Failure,
    Message,
    Picture,
    Record,
    ResponseType,
)
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing.loading import Given, load_documents
from lightrag_jsonl.llm.client import SEE_PROMPT
from lightrag_jsonl.llm.context_window import MESSAGE_OVERHEAD
from lightrag_jsonl.llm.requests import request_key
from lightrag_jsonl.rag import AsyncLightRAG
from lightrag_jsonl.rag.engine import Engine

# Fitted on recorded answers of gpt-4o and gpt-4o-mini about A Christmas Carol (three runs, 42
# chunks of 1,200 tokens): written tokens = BASE + RATE * tokens of text, first and later turns.
# The Carol is prose: of notes full of facts the same models wrote three to five times as much.
BASE = 40
FIRST_RATE = 0.52
LATER_RATE = 0.62
# Of two Qwens of 0.5 and 1.5 billion parameters, twelve chunks of two novels: 0.13 to 0.19.
NAMES_RATE = 0.2
SUMMARY_EVERY = 7_500  # tokens of text for each summary
SUMMARY_INPUT_TOKENS = 550
SUMMARY_OUTPUT_TOKENS = 250
FILLER = "What the text says about it, in a sentence or two that have the usual length."
# Of a picture: as OpenAI, Anthropic and Qwen count one of 1,240 x 1,750 pixels, within a factor of two.
PICTURE_TOKENS = 1_500
PAGE_WORDS = 350  # of a scanned page
PICTURE_WORDS = 80  # of a picture on a page
TOKENS_PER_WORD = 1.4
RECORDS: dict[ExtractionPrompt, Record] = {
    "extract-graph": {
        "type": "entity",
        "name": "",
        "entity_type": "concept",
        "description": FILLER,
    },
    "extract-small": {"name": ""},
    "agent-kg-extract": {"type": "definition", "entity": "", "definition": FILLER},
    "extract-with-ontologies": {"type": "entity", "entity": "", "entity_type": "concept"},
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of indexing some documents.

    `cached_tokens` are input tokens at the beginning of an earlier request, cached by providers.
    Answers in the index's own cache cost nothing. Output tokens follow a rule fitted to prose;
    `summaries` is a rule of thumb, since their number depends on the recurrence of names. With
    `glean_check`, every check is assumed to find a gap. `seeing` are the calls for the pictures of the
    documents, if there is a model for the task "see"; their texts are assumed to have a usual length.
    """

    documents: int = 0
    chunks: int = 0
    text_tokens: int = 0
    extraction: Usage = Usage()
    summaries: Usage = Usage()
    seeing: Usage = Usage()
    failures: tuple[Failure, ...] = ()

    @property
    def usage(self) -> Usage:
        """Extraction, summaries and pictures together."""
        return self.extraction + self.summaries + self.seeing


class SimulatedLLM:
    """Answers with the expected number of records, and counts tokens and calls."""

    def __init__(
        self, name: str, extraction: ExtractionPrompt, count: Callable[[str], int]
    ) -> None:
        self.name = name
        self.usage = Usage()
        self._record = RECORDS[extraction]
        self._lists_names = extraction == "extract-small"
        self._ends_with_counts = extraction == "extract-graph"
        self._name_field = "name" if "name" in self._record else "entity"
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
            is_check = response_type == "text"
            output_tokens = 1 if is_check else self._expected_tokens(messages, max_tokens)
            self.usage += self._request_usage(messages, output_tokens)
            text = "YES" if is_check else self._records(output_tokens)
            self._answers[key] = Completion(text)
        return self._answers[key]

    def _expected_tokens(self, messages: Sequence[Message], max_tokens: int | None) -> int:
        """The length of an answer, by the fitted rule."""
        question = next(message.content for message in messages if message.role == "user")
        is_first_turn = all(message.role != "assistant" for message in messages)
        if self._lists_names:
            tokens = max(1, round(NAMES_RATE * self._count(question)))
        else:
            rate = FIRST_RATE if is_first_turn else LATER_RATE
            tokens = round(BASE + rate * self._count(question))
        return min(tokens, max_tokens or tokens)

    def _request_usage(self, messages: Sequence[Message], output_tokens: int) -> Usage:
        """The tokens of a request; its longest beginning in an earlier request counts as cached."""
        input_tokens = 0
        cached_tokens = 0
        for number, message in enumerate(messages, 1):
            input_tokens += self._count(message.content) + MESSAGE_OVERHEAD
            prefix = tuple(messages[:number])
            if prefix in self._prefixes:
                cached_tokens = input_tokens
            self._prefixes.add(prefix)
        return Usage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cached_tokens=cached_tokens,
            calls=1,
        )

    def _records(self, tokens: int) -> str:
        """JSONL of about so many tokens."""
        tokens_per_line = self._count(self._next_line())
        count = max(round(tokens / tokens_per_line), 1)
        lines = [self._next_line() for _ in range(count)]
        if self._ends_with_counts:
            last_record = {"type": "done", "entities": count, "relationships": 0}
            lines.append(json.dumps(last_record))
        return "\n".join(lines)

    def _next_line(self) -> str:
        name = f"Name {next(self._numbers)}"
        return json.dumps({**self._record, self._name_field: name})


async def estimate(rag: AsyncLightRAG, documents: Given | Iterable[Given]) -> Estimate:
    """The cost of `insert` with a model; no model is called, nothing is stored."""
    engine = rag.engine
    failures: list[Failure] = []
    has_model = engine.client.has_model("extract")
    model = engine.client.model("extract").name if has_model else "none"
    pictures: list[Picture] = []
    chunks_of_documents = _cut_documents(engine, documents, failures, pictures)
    total = await _estimate_chunks(engine, chunks_of_documents, model)
    seeing = _seeing_usage(engine, pictures)
    return replace(total, seeing=seeing, failures=tuple(failures))


async def estimate_upgrade(rag: AsyncLightRAG) -> Estimate:
    """The cost of `retry(upgrade=True)`; nothing is stored. `ConfigError` without a model."""
    engine = rag.engine
    model = engine.client.model("extract").name
    return await _estimate_chunks(engine, engine.indexing.upgradable(), model)


def _cut_documents(
    engine: Engine,
    sources: Given | Iterable[Given],
    failures: list[Failure],
    pictures: list[Picture],
) -> Iterator[Sequence[Chunk]]:
    """The chunks of each document; a source that cannot be read is appended to `failures`, and pictures,
    without their bytes, to `pictures`.
    """
    for document in load_documents(sources, sees=engine.client.has_model("see")):
        if isinstance(document, Failure):
            failures.append(document)
        if not isinstance(document, Document):
            continue
        pictures += [replace(picture, data=b"") for picture in document.pictures]
        texts = [_usual_text(picture) for picture in document.pictures]
        document_with_texts, _ = with_texts(document, texts)
        yield engine.chunks_of(document_with_texts)


def _usual_text(picture: Picture) -> str:
    """A text of the usual length of a model's reading of such a picture."""
    words = FILLER.split()
    count = PAGE_WORDS if picture.whole_page else PICTURE_WORDS
    return " ".join(itertools.islice(itertools.cycle(words), count))


def _seeing_usage(engine: Engine, pictures: Sequence[Picture]) -> Usage:
    """The cost of having pictures read; tokens of a picture differ from model to model."""
    prompt = engine.prompts.render(SEE_PROMPT, {})
    prompt_tokens = sum(engine.tokenizer.count(turn.content) for turn in prompt)
    words = sum(PAGE_WORDS if picture.whole_page else PICTURE_WORDS for picture in pictures)
    return Usage(
        input_tokens=len(pictures) * (PICTURE_TOKENS + prompt_tokens + MESSAGE_OVERHEAD),
        output_tokens=round(TOKENS_PER_WORD * words),
        calls=len(pictures),
    )


async def _estimate_chunks(
    engine: Engine, documents: Iterable[Sequence[Chunk]], model: str
) -> Estimate:
    """Extract the chunks of documents with a simulated model."""
    llm = SimulatedLLM(model, engine.options.extraction, engine.tokenizer.count)
    extractor = engine.extractor_for(engine.client_for(llm, store_answers=False))
    document_count = 0
    chunk_count = 0
    text_tokens = 0
    for chunks in documents:
        document_count += 1
        for chunk in chunks:
            chunk_count += 1
            text_tokens += chunk.tokens
            await extractor.extract(chunk)
    return Estimate(
        documents=document_count,
        chunks=chunk_count,
        text_tokens=text_tokens,
        extraction=llm.usage,
        summaries=_summary_usage(text_tokens) if llm.usage.calls else Usage(),
    )


def _summary_usage(text_tokens: int) -> Usage:
    summaries = text_tokens // SUMMARY_EVERY
    return Usage(
        input_tokens=summaries * SUMMARY_INPUT_TOKENS,
        output_tokens=summaries * SUMMARY_OUTPUT_TOKENS,
        calls=summaries,
    )
