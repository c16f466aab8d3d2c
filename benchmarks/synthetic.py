"""A deterministic corpus with ready-made extractions, an instant model, and a fast embedder."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from lightrag_jsonl import Completion, Document, Message, Usage

Vectors = npt.NDArray[np.float32]
ResponseType = Literal["text", "json", "jsonl"]

SENTENCES, WORDS = 30, 15  # about 1,000 tokens
ENTITIES, RELATIONS = 10, 8
CHUNKS_PER_DOCUMENT = 10
SYLLABLES = ("ka", "ro", "mi", "ten", "sul", "va", "do", "ber", "lin", "os", "pra", "chi")
NOTHING = '{"type":"done","entities":0,"relationships":0}'


@dataclass(slots=True)
class Corpus:
    """`chunks` texts of about 1,000 tokens, with names drawn by Zipf's law.

    `answers` gets the model's answer to each text as `documents` draws it.
    """

    chunks: int
    seed: int = 7
    answers: dict[str, str] = field(default_factory=dict)

    def documents(self, *, chunks_per_document: int = CHUNKS_PER_DOCUMENT) -> Iterator[Document]:
        """The documents; each chunk is a page, so that chunking keeps it."""
        rng = np.random.default_rng(self.seed)
        for first in range(0, self.chunks, chunks_per_document):
            numbers = range(first, min(first + chunks_per_document, self.chunks))
            pages = tuple(self._chunk(number, rng) for number in numbers)
            yield Document("", id=f"document-{first:06d}", title=f"Document {first}", pages=pages)

    def _chunk(self, number: int, rng: np.random.Generator) -> str:
        ranks = np.unique(np.minimum(rng.zipf(1.08, ENTITIES * 3), 10_000_000))
        names = [name_of(int(rank)) for rank in rng.permutation(ranks)[:ENTITIES]]
        while len(names) < ENTITIES:
            names.append(name_of(100_000_000 + number * ENTITIES + len(names)))
        body = []
        for row in rng.integers(0, 12, (SENTENCES, WORDS, 2)):
            words = " ".join(SYLLABLES[i] + SYLLABLES[j] for i, j in row)
            body.append(words.capitalize() + ".")
        text = f"Note {number}. " + ", ".join(names) + ". " + " ".join(body)
        self.answers[text] = _answer(number, names, rng)
        return text


def name_of(rank: int) -> str:
    """A pronounceable name for a rank, the same on every run."""
    parts = []
    while True:
        rank, rest = divmod(rank, 12)
        parts.append(SYLLABLES[rest])
        if rank == 0:
            return "".join(parts).capitalize() + " " + parts[0].capitalize()


def _answer(number: int, names: Sequence[str], rng: np.random.Generator) -> str:
    lines: list[dict[str, object]] = []
    for name in names:
        text = f"{name} took part in event {number}, which note {number} describes."
        lines.append({"type": "entity", "name": name, "entity_type": "person", "description": text})
    for _ in range(RELATIONS):
        one, other = rng.choice(len(names), 2, replace=False)
        lines.append(
            {
                "type": "relationship",
                "source": names[one],
                "target": names[other],
                "keywords": ["took part together", f"event {number % 50}"],
                "description": f"{names[one]} met {names[other]} at event {number}.",
                "strength": int(rng.integers(1, 11)),
            }
        )
    return "\n".join(json.dumps(line) for line in lines)


class InstantLLM:
    """Answers at once from the corpus; gleaning finds nothing.

    `seconds` is the CPU time that it took itself.
    """

    name = "instant"

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self.calls = 0
        self.seconds = 0.0

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        started = time.thread_time()
        self.calls += 1
        asked = next(message.content for message in messages if message.role == "user")
        answer = self._corpus.answers.get(asked[asked.find("Note ") :], "A summary.")
        if messages[-1].role == "user" and len(messages) > 2:
            answer = NOTHING
        self.seconds += time.thread_time() - started
        return Completion(answer, usage=Usage(1000, 500))


class FastEmbedder:
    """Unit vectors made of two rows of a random table, chosen by a hash of the text.

    `seconds` is the CPU time that it took itself.
    """

    def __init__(self, dim: int = 384) -> None:
        self.name = f"fast-{dim}"
        self.dim = dim
        rows = np.random.default_rng(1).standard_normal((4_096, dim)).astype(np.float32)
        self._rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        self.seconds = 0.0
        self.texts = 0

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        started = time.thread_time()
        self.texts += len(texts)
        keys = [hash_of(text) for text in texts]
        one = self._rows[[key % 4_096 for key in keys]]
        two = self._rows[[key // 4_096 % 4_096 for key in keys]]
        found = one + 0.5 * two
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        self.seconds += time.thread_time() - started
        return np.ascontiguousarray(found, np.float32)


def hash_of(text: str) -> int:
    """A number that depends on the text alone."""
    return zlib.crc32(text.encode()) ^ (zlib.adler32(text.encode()) << 7)
