"""The corpus as a file, the instant model and the fast embedder."""

import json
import re
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from benchmarks.synthetic import Corpus

CHECKOUT = Path(__file__).resolve().parents[2]
DIM = 384
QUESTIONS = 40
EXTRA = 6  # documents of one piece that are added later; the first two are not measured
THEME = "took part together"  # the high-level keyword of every question
WORDS, FADE = 12, 0.7  # the number of words embedded, and the weight of each relative to the last

_START = re.compile(r"Note \d+\. ")
_WORD = re.compile(r"\w+")
_TAG = re.compile(r"\[[^]]*\]")

Rows = Sequence[Mapping[str, Any]]  # records in the form of `extract-graph`


@dataclass(frozen=True, slots=True)
class Paper:
    """A document: its id and its pieces, each of which becomes one chunk."""

    id: str
    pages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about two related names, and the pieces in which they are related."""

    text: str
    names: tuple[str, str]
    pieces: tuple[str, ...] = ()


@dataclass(slots=True)
class Clock:
    """The CPU seconds that the fakes took, the model's calls, and the texts embedded."""

    seconds: float = 0.0
    calls: int = 0
    texts: int = 0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add the CPU time of the block to the fakes' time."""
        started = time.thread_time()
        yield
        self.seconds += time.thread_time() - started


@dataclass(frozen=True, slots=True)
class Material:
    """The corpus, further small documents, what the model finds in each piece, and questions."""

    papers: tuple[Paper, ...]
    extra: tuple[Paper, ...]
    found: Mapping[str, Rows]
    questions: tuple[Asked, ...]
    clock: Clock = field(default_factory=Clock)

    @property
    def chunks(self) -> int:
        """The number of pieces in the corpus."""
        return sum(len(paper.pages) for paper in self.papers)


class System(Protocol):
    """An open index; `modes` are its retrieval modes, the fullest one first."""

    modes: Sequence[str]

    def insert(self, papers: Iterable[Paper]) -> None:
        """Index documents, and return when they are stored."""

    def delete(self, paper_id: str) -> None:
        """Remove one document."""

    def context(self, asked: Asked, mode: str) -> int:
        """The number of characters in the context for a model."""

    def pieces(self, asked: Asked, mode: str) -> list[str]:
        """The pieces found, best first."""

    def counts(self) -> tuple[int, int]:
        """The numbers of stored entities and relations."""

    def close(self) -> None:
        """Close the index."""


# ── the corpus as a file ────────────────────────────────────────────────────────


def write(path: Path, chunks: int) -> None:
    """Generate a corpus of `chunks` pieces, and a few more small documents, and write them."""
    corpus, extra = Corpus(chunks), Corpus(EXTRA, seed=11)
    papers = dict(corpus.documents())
    more = {f"extra-{id}": pages for id, pages in extra.documents(chunks_per_document=1)}
    answers = corpus.answers | extra.answers
    whole = {"papers": papers, "extra": more, "answers": answers}
    path.write_text(json.dumps(whole), encoding="utf-8")


def write_parts(path: Path, parts: Sequence[Path]) -> None:
    """Deal out the documents of a written corpus in turn to as many corpora."""
    whole = json.loads(path.read_text(encoding="utf-8"))
    papers = list(whole["papers"].items())
    for number, part in enumerate(parts):
        dealt = {"papers": dict(papers[number :: len(parts)]), "extra": {}}
        part.write_text(json.dumps(whole | dealt), encoding="utf-8")


def read(path: Path) -> Material:
    """The corpus written by `write`."""
    whole = json.loads(path.read_text(encoding="utf-8"))
    found = {
        text: [json.loads(line) for line in answer.split("\n")]
        for text, answer in whole["answers"].items()
    }
    papers, extra = (
        tuple(Paper(name, tuple(texts)) for name, texts in whole[part].items())
        for part in ("papers", "extra")
    )
    return Material(papers, extra, found, tuple(_questions(papers, found)))


def _questions(papers: Iterable[Paper], found: Mapping[str, Rows]) -> Iterator[Asked]:
    """Questions about pairs of related names, spread evenly over the corpus."""
    texts = [page for paper in papers for page in paper.pages]
    pieces: dict[frozenset[str], list[str]] = defaultdict(list)  # by pairs of names
    for text in texts:
        for pair in dict.fromkeys(frozenset(ends) for ends in _related(found[text])):
            pieces[pair].append(text)
    for number in range(QUESTIONS):
        one, other = next(_related(found[texts[number * len(texts) // QUESTIONS]]))
        text = f"Note {number}: where did {one} meet {other}?"
        yield Asked(text, (one, other), tuple(pieces[frozenset((one, other))]))


def _related(rows: Rows) -> Iterator[tuple[str, str]]:
    """The names of each relation."""
    for row in rows:
        if row["type"] == "relationship":
            yield row["source"], row["target"]


# ── the fakes ───────────────────────────────────────────────────────────────────


class Replies:
    """The model's reply to each piece, in a library's own form; found by the piece's beginning."""

    def __init__(self, material: Material, reply: Callable[[Rows], str]) -> None:
        self._replies = {text[:60]: reply(rows) for text, rows in material.found.items()}
        self._clock = material.clock

    def about(self, prompt: str) -> str | None:
        """The reply for the piece that a prompt contains; None if it contains none."""
        with self._clock.timed():
            self._clock.calls += 1
            start = _START.search(prompt)
            return self._replies.get(prompt[start.start() :][:60]) if start else None


class WordVectors:
    """Unit vectors of the first words of a text: similar beginnings have similar vectors."""

    def __init__(self, clock: Clock) -> None:
        rows = np.random.default_rng(1).standard_normal((4_096, DIM)).astype(np.float32)
        self._rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        self._weights = (FADE ** np.arange(WORDS)).astype(np.float32)
        self._clock = clock

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """One row for each text, float32, shape (len(texts), DIM)."""
        with self._clock.timed():
            self._clock.texts += len(texts)
            found = np.zeros((len(texts), DIM), np.float32)
            for row, text in zip(found, texts, strict=True):
                keys = [zlib.crc32(word.encode()) % 4_096 for word in _words(text)]
                row += self._weights[: len(keys)] @ self._rows[keys]
            found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
            return found


def _words(text: str) -> list[str]:
    return _WORD.findall(_TAG.sub(" ", text[:300]).casefold())[:WORDS] or ["nothing"]
