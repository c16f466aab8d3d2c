"""A deterministic corpus with ready-made extractions."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

SENTENCES, WORDS = 30, 15  # about 1,000 tokens
ENTITIES, RELATIONS = 10, 8
CHUNKS_PER_DOCUMENT = 10
SYLLABLES = ("ka", "ro", "mi", "ten", "sul", "va", "do", "ber", "lin", "os", "pra", "chi")


@dataclass(slots=True)
class Corpus:
    """`chunks` texts of about 1,000 tokens, with names drawn by Zipf's law.

    `answers` gets the model's answer to each text as `documents` draws it.
    """

    chunks: int
    seed: int = 7
    answers: dict[str, str] = field(default_factory=dict)

    def documents(
        self, *, chunks_per_document: int = CHUNKS_PER_DOCUMENT
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Ids of documents, and their pages; each page is a chunk."""
        rng = np.random.default_rng(self.seed)
        for first in range(0, self.chunks, chunks_per_document):
            numbers = range(first, min(first + chunks_per_document, self.chunks))
            pages = tuple(self._chunk(number, rng) for number in numbers)
            yield f"document-{first:06d}", pages

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
