"""What a model writes about a text: python -m benchmarks.extraction --base-url http://127.0.0.1:8080/v1

Reads the first chunks of some chapters of a book in English (A Christmas Carol) and in Chinese (三国演义):
with the usual prompt and with the prompt for small models, each with constrained output off and on. Every cell
of the table has the same chunks, none across the end of a chapter (so many chunks are a whole chapter). `--held-out` takes chapters on which no prompt was chosen, `--chapters` any others,
and `--skip` begins within a chapter. Prints one JSON object;
`--answers FOLDER` keeps the model's answers and the records, to be read; `--cache FOLDER` keeps every answer
by its request, so that a run which was ended goes on where it was.

records      entities, and relations between two of them (with the prompt for small models also those
             of names by rules; what follows counts records of names that the model wrote)
refused      refused or doubtful records, by reason ("example": copies of the prompt's example)
supported    descriptions that name what they are about (a relation's both ends), with these names and at
             least half of the other words from the chunk
tokens       read and written by the model; `per_1000` is the number of supported descriptions for each
             thousand of both, `per_1000_written` for each thousand written
"""

import argparse
import gzip
import hashlib
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from benchmarks.datasets import data_folder
from lightrag_jsonl import Document, IndexOptions, LightRAG
from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.core.types import Completion, Extraction, Json, Message, ResponseType
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing.examples import TextWords
from lightrag_jsonl.providers import OpenAILLM
from lightrag_jsonl.testing import HashEmbedder
from lightrag_jsonl.text.cjk import has_cjk
from lightrag_jsonl.text.names import folded_text, name_key
from lightrag_jsonl.text.terms import is_grammatical, search_terms, stem

Constraint = Literal["off", "auto"]
Settings = tuple[str, Constraint]  # the extraction prompt, and whether the form is forced
_SENTENCE_END = re.compile(r"[.!?。！？][”\"'’]*\s*")
LEAST_SHARE = 0.5  # of a description's words that occur in the chunk
WHOLE = 100_000  # tokens: a text of this benchmark is one chunk


@dataclass(frozen=True, slots=True)
class Book:
    """A text in chapters; `heading` matches the line that begins one.

    The prompts were chosen on the beginnings of `chapters`.
    """

    file: str
    heading: str
    chapters: Sequence[int]
    held_out: Sequence[int]


BOOKS: Mapping[Language, Book] = {
    "en": Book(file="christmas_carol", heading=r"^STAVE [A-Z]+$", chapters=(1, 3), held_out=(2, 4)),
    "zh": Book(file="sanguo_yanyi", heading=r"^第.{1,5}回", chapters=(1, 4), held_out=(30, 40)),
}
CELLS: Mapping[str, Settings] = {
    "usual": ("extract-graph", "off"),
    "usual-constrained": ("extract-graph", "auto"),
    "small": ("extract-small", "off"),
    "small-constrained": ("extract-small", "auto"),
}


class RecordedLLM(OpenAILLM):
    """The model, with a list of the answers; `cache` is a folder of answers by request."""

    def __init__(self, model: str, *, cache: Path | None = None, **settings: Any) -> None:
        super().__init__(model, **settings)
        self.answers: list[str] = []
        self._cache = cache

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        """The answer, which is also listed."""
        answer = partial(
            super().complete, messages, response_type=response_type, max_tokens=max_tokens
        )
        return await self._recorded(answer, [_turns(messages), response_type, max_tokens])

    async def complete_records(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Json],
        names: Sequence[str] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """The answer, which is also listed."""
        answer = partial(
            super().complete_records, messages, schema=schema, names=names, max_tokens=max_tokens
        )
        request: list[Json] = [_turns(messages), dict(schema), self.constrain, max_tokens]
        return await self._recorded(answer, request)

    async def _recorded(
        self, ask: Callable[[], Awaitable[Completion]], request: Sequence[Json]
    ) -> Completion:
        """The answer to a request, from the cache or from the model."""
        digest = hashlib.sha256(json.dumps([self.name, *request]).encode()).hexdigest()
        path = self._cache and self._cache / f"{digest[:32]}.json"
        if path and path.exists():
            completion = msgspec.json.decode(path.read_bytes(), type=Completion)
        else:
            completion = await ask()
        if path and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(msgspec.json.encode(completion))
        self.answers.append(completion.text)
        return completion


@dataclass(frozen=True, slots=True)
class Reading:
    """A chunk, the extraction and the model's answers."""

    text: str
    extraction: Extraction
    answers: Sequence[str]

    @property
    def statements(self) -> list[tuple[tuple[str, ...], str]]:
        """Names and description of each record with a description, whose names the model wrote."""
        entities = [((entity.name,), entity.description) for entity in self.extraction.entities]
        relations = [
            ((relation.source, relation.target), relation.description)
            for relation in self.extraction.relations
        ]
        written = folded_text("\n".join(self.answers))
        return [
            (names, description)
            for names, description in (*entities, *relations)
            if description and all(_is_written(name, written) for name in names)
        ]

    @property
    def supported(self) -> list[tuple[tuple[str, ...], str]]:
        """The statements that the words of the chunk support."""
        words = _stems(self.text)
        folded = name_key(self.text).replace(" ", "")
        return [
            (names, description)
            for names, description in self.statements
            if all(name_key(name).replace(" ", "") in folded for name in names)
            and all(_may_name(description, name) for name in names)
            and _is_supported(description, names, words)
        ]


def main() -> None:
    """Read the chunks in every cell, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", required=True, metavar="URL")
    parser.add_argument("--model", default="local", help="the name that the server knows")
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--languages", nargs="+", choices=list(BOOKS), default=list(BOOKS))
    parser.add_argument("--cells", nargs="+", choices=list(CELLS), default=list(CELLS))
    chapters = parser.add_mutually_exclusive_group()
    chapters.add_argument("--held-out", action="store_true", help="chapters without chosen prompts")
    chapters.add_argument("--chapters", nargs="+", type=int, metavar="N", help="of each book")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="characters in English")
    parser.add_argument("--chunks", type=int, default=2, metavar="N", help="of each chapter")
    parser.add_argument("--characters", type=int, default=1_200, help="of a chunk in English")
    parser.add_argument("--prompts", type=Path, metavar="FOLDER", help="of prompts to try instead")
    parser.add_argument("--options", type=json.loads, default={}, help="IndexOptions as JSON")
    parser.add_argument("--answers", type=Path, metavar="FOLDER", help="keep the answers there")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="answers by request")
    arguments = parser.parse_args()
    cells: dict[str, Any] = {}
    for language in arguments.languages:
        for cell in arguments.cells:
            readings, seconds = _readings(language, CELLS[cell], arguments)
            name = f"{language} {cell}"
            cells[name] = {**figures(readings), "seconds": round(seconds, 1)}
            print(json.dumps({name: cells[name]}), file=sys.stderr, flush=True)
            if arguments.answers:
                _keep(readings, arguments.answers / f"{arguments.model}-{name}.json")
    print(json.dumps({"benchmark": "extraction", "model": arguments.model, "cells": cells}))


def figures(readings: Sequence[Reading]) -> dict[str, Any]:
    """The figures of a cell."""
    extractions = [reading.extraction for reading in readings]
    rejections = Counter(
        rejection.reason for extraction in extractions for rejection in extraction.rejections
    )
    statements = sum(len(reading.statements) for reading in readings)
    supported = sum(len(reading.supported) for reading in readings)
    usage = sum((extraction.usage for extraction in extractions), Usage())
    tokens = usage.input_tokens + usage.output_tokens
    return {
        "chunks": len(readings),
        "states": Counter(extraction.state for extraction in extractions),
        "entities": sum(len(extraction.entities) for extraction in extractions),
        "relations": sum(len(extraction.relations) for extraction in extractions),
        "refused": dict(sorted(rejections.items())),
        "described": statements,
        "supported": supported,
        "calls": usage.calls,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "per_1000": _ratio(1_000 * supported, tokens),
        "per_1000_written": _ratio(1_000 * supported, usage.output_tokens),
    }


def _readings(
    language: Language, settings: Settings, arguments: argparse.Namespace
) -> tuple[list[Reading], float]:
    """The readings of all chunks of a language, and the seconds that they took."""
    extraction_prompt, constraint = settings
    readings: list[Reading] = []
    options = IndexOptions.from_mapping(
        {"extraction": extraction_prompt, "chunk_tokens": WHOLE, **arguments.options}
    )
    llm = RecordedLLM(
        arguments.model,
        cache=arguments.cache,
        base_url=arguments.base_url,
        constrain=constraint,
        timeout=3_600.0,
    )
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        LightRAG(
            folder,
            llm=llm,
            embedder=HashEmbedder(),
            language=language,
            options=options,
            prompts=arguments.prompts and arguments.prompts / language,
        ) as rag,
    ):
        for text in _chunk_texts(language, arguments):
            llm.answers.clear()
            (extraction,) = rag.extract(Document(text))
            readings.append(Reading(text, extraction, tuple(llm.answers)))
    return readings, time.monotonic() - started


def _chunk_texts(language: Language, arguments: argparse.Namespace) -> Iterable[str]:
    """The first chunks of the chapters, each up to the end of a paragraph or sentence."""
    book = BOOKS[language]
    raw = (arguments.data / "text" / f"{book.file}.txt.gz").read_bytes()
    text = re.sub(r"</?p>|\r|\[Illustration[^\]]*\]", "", gzip.decompress(raw).decode())
    headings = [*re.finditer(book.heading, text, re.MULTILINE)]
    ends = [*[heading.start() for heading in headings[1:]], len(text)]
    divisor = 1 if language == "en" else 3  # a Chinese text says as much in a third
    size = arguments.characters // divisor
    skipped = arguments.skip // divisor
    default_chapters = book.held_out if arguments.held_out else book.chapters
    for chapter in arguments.chapters or default_chapters:
        position = text.index("\n", headings[chapter - 1].end()) + 1
        chapter_end = ends[chapter - 1]
        if skipped:
            position = _sentence_end(text, position + skipped)
        for _ in range(arguments.chunks):
            if not text[position:chapter_end].strip():
                break
            end = min(_sentence_end(text, position + size), chapter_end)
            yield text[position:end].strip()
            position = end


def _sentence_end(text: str, position: int) -> int:
    """The end of the sentence at a position."""
    sentence_end = _SENTENCE_END.search(text, position)
    return sentence_end.end() if sentence_end else len(text)


def _is_supported(description: str, names: Iterable[str], words: frozenset[str]) -> bool:
    """Whether the description has words besides the names, and half of these are in the chunk."""
    own_words = _stems(description).difference(*map(_stems, names))
    present = own_words & words
    return len(own_words) > 0 and len(present) >= LEAST_SHARE * len(own_words)


def _may_name(description: str, name: str) -> bool:
    """Whether a description holds a name, or a word of it, or in Chinese two characters in a row; a name in
    another script may have been translated.
    """
    key = name_key(name)
    if has_cjk(key) != has_cjk(description):
        return True
    words = TextWords(description)
    if words.has_name(key):
        return True
    if not has_cjk(key):
        return any(map(words.has_word, search_terms(key)))
    characters = "".join(key.split())
    pairs = [characters[start : start + 2] for start in range(len(characters) - 1)]
    return any(map(words.has_word, pairs))


def _is_written(name: str, answers: str) -> bool:
    """Whether a model wrote a name as the text of a field or of a list, also with an article."""
    return any(f'"{article}{name_key(name)}"' in answers for article in ("", "the "))


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in search_terms(text) if not is_grammatical(word))


def _turns(messages: Iterable[Message]) -> Json:
    return [[message.role, message.content] for message in messages]


def _ratio(value: float, total: float) -> float:
    return round(value / total, 2) if total else 0.0


def _keep(readings: Sequence[Reading], path: Path) -> None:
    """Write the chunks, the answers and the records into a file."""
    chunks: list[dict[str, Any]] = []
    for reading in readings:
        supported = [list(names) for names, _ in reading.supported]
        rejections = [
            [rejection.reason, rejection.text, rejection.detail]
            for rejection in reading.extraction.rejections
        ]
        chunks.append(
            {
                "text": reading.text,
                "answers": list(reading.answers),
                "records": list(reading.extraction.as_records()),
                "rejections": rejections,
                "supported": supported,
                "error": reading.extraction.error,
            }
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(chunks, ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
