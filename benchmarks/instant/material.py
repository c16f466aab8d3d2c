"""The corpus as a file, the instant model and the fast embedder."""

import gzip
import itertools
import json
import random
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

from benchmarks.datasets import Dataset, data_folder, load
from benchmarks.synthetic import CHUNKS_PER_DOCUMENT, Corpus

CHECKOUT = Path(__file__).resolve().parents[2]
DIM = 384
QUESTIONS = 40
EXTRA = 6  # documents of one piece that are added later; the first two are not measured
THEME = "took part together"  # the high-level keyword of every question
WORDS, FADE = 12, 0.7  # the number of words embedded, and the weight of each relative to the last

REAL_SETS = (
    *("multihoprag-a", "musique-a", "popqa-a", "2wiki-101-a", "hotpotqa-train"),
    *("bench-2wiki-corpus", "dragonball-en-multi-a"),
    *("zh-cmrc2018", "dragonball-zh-multi-a", "rgb-zh-a"),
)
NOVELS = {"christmas_carol": 4_000, "sanguo_yanyi": 1_200}  # characters of a piece
LONGEST_PIECE = 4_000  # characters
NAMES, DESCRIPTION = 10, 150  # of a piece, and the characters of a description

_START = re.compile(r"Note \d+\. ")
_WORD = re.compile(r"\w+")
_TAG = re.compile(r"\[[^]]*\]")
_SENTENCE = re.compile(r"[^。！？.!?]+[。！？.!?]*\s*")
_NAME = re.compile(
    r"\b[A-Z][\w'-]+(?: (?:of |the )?[A-Z][\w'-]+)+|\b[A-Z][\w'-]{4,}|《[^》\n]{2,12}》"
    r"|[一-鿿]{2,4}(?:市|省|县|公司|大学|集团|医院|王朝|学院|岛|国)|玄德|关公|张飞|曹操|孔明|吕布|董卓"
)

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


def write_real(path: Path, chunks: int) -> None:
    """Write passages of the shared question sets and of two novels, English and Chinese, in a random order: as many
    pieces as there are, `chunks` at most. The model finds names by a pattern, and relates neighbours.
    """
    datasets = [load(name) for name in REAL_SETS]
    titled = [(one.id, one.title, one.text) for dataset in datasets for one in dataset.passages]
    texts = [
        *(f"{title}\n\n{_with_line_breaks(text[:LONGEST_PIECE])}" for _, title, text in titled),
        *_parts_of_novels(),
    ]
    numbered = [f"Note {number}. {text}" for number, text in enumerate(texts)]
    pieces_by_passage = dict(zip([id for id, _, _ in titled], numbered, strict=False))
    starts = list(range(0, len(numbered), CHUNKS_PER_DOCUMENT))
    random.Random(7).shuffle(starts)
    documents = {
        f"document-{start:06d}": numbered[start : start + CHUNKS_PER_DOCUMENT] for start in starts
    }
    further = documents.pop(f"document-{starts[0]:06d}")[:EXTRA]
    papers = dict(list(documents.items())[: chunks // CHUNKS_PER_DOCUMENT])
    extra = {f"extra-{number}": [piece] for number, piece in enumerate(further)}
    pieces = [piece for paper in (*papers.values(), *extra.values()) for piece in paper]
    questions = [
        *_real_questions(
            [one for one in datasets if one.language == "en"], pieces_by_passage, pieces
        ),
        *_real_questions(
            [one for one in datasets if one.language == "zh"], pieces_by_passage, pieces
        ),
    ]
    answers = {piece: "\n".join(map(json.dumps, _real_rows(piece))) for piece in pieces}
    whole = {"papers": papers, "extra": extra, "answers": answers, "questions": questions}
    path.write_text(json.dumps(whole), encoding="utf-8")


def _parts_of_novels() -> Iterator[str]:
    for name, length in NOVELS.items():
        novel = gzip.decompress((data_folder() / "text" / f"{name}.txt.gz").read_bytes()).decode()
        for start in range(0, len(novel), length):
            yield novel[start : start + length]


def _with_line_breaks(text: str) -> str:
    """The text with a line break behind every second sentence, if it has none."""
    sentences = _SENTENCE.findall(text)
    if "\n" in text or not sentences:
        return text
    pairs = ["".join(sentences[first : first + 2]).strip() for first in range(0, len(sentences), 2)]
    return "\n".join(pairs)


def _names_in(text: str) -> list[str]:
    return list(dict.fromkeys(_NAME.findall(text)))[:NAMES]


def _real_rows(piece: str) -> Iterator[Mapping[str, Any]]:
    """The names in a piece, or its beginning, each described by its first line; relations of neighbours."""
    _, _, text = piece.partition(". ")
    names = _names_in(text) or [text.split()[0]]
    for name in names:
        line = next(line for line in text.split("\n") if name in line)[:DESCRIPTION]
        yield {"type": "entity", "name": name, "entity_type": "name", "description": line}
    for one, other in itertools.pairwise(names):
        yield {
            "type": "relationship",
            "source": one,
            "target": other,
            "keywords": [THEME],
            "description": f"{one} is told of with {other}.",
            "strength": 5,
        }


def _real_questions(
    datasets: Iterable[Dataset], pieces_by_passage: Mapping[str, str], pieces: Iterable[str]
) -> list[dict[str, Any]]:
    """Half of the questions: of each set in turn one with a supporting passage among the pieces."""
    known = frozenset(pieces)
    by_set: list[list[dict[str, Any]]] = []
    for dataset in datasets:
        titles = {passage.id: passage.title for passage in dataset.passages}
        found: list[dict[str, Any]] = []
        for question in dataset.questions:
            ids = [id for id in question.supporting if pieces_by_passage.get(id) in known]
            names = [*_names_in(question.text), *[titles[id] for id in ids if titles[id]]]
            names = names or [question.text[:4]]
            if ids:
                stated = [pieces_by_passage[id] for id in ids]
                found.append(
                    {"text": question.text, "names": [names[0], names[-1]], "pieces": stated}
                )
        by_set.append(found)
    in_turn = itertools.chain.from_iterable(itertools.zip_longest(*by_set))
    return list(itertools.islice(filter(None, in_turn), QUESTIONS // 2))


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
    real = [
        Asked(one["text"], tuple(one["names"]), tuple(one["pieces"]))
        for one in whole.get("questions", ())
    ]
    return Material(papers, extra, found, tuple(real or _questions(papers, found)))


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
