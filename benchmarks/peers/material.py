"""The corpus as a file, so that every library reads the same texts in its own environment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.peers.system import Asked, Found, Material, Paper
from benchmarks.synthetic import Corpus

QUESTIONS = 40


def write(path: Path, chunks: int) -> None:
    """Generate a corpus of `chunks` pieces, and three more small documents, and write them."""
    corpus, extra = Corpus(chunks), Corpus(3, seed=11)
    papers = {one.id: one.pages for one in corpus.documents()}
    more = {f"extra-{one.id}": one.pages for one in extra.documents(chunks_per_document=1)}
    answers = corpus.answers | extra.answers
    whole = {"papers": papers, "extra": more, "answers": answers}
    path.write_text(json.dumps(whole), encoding="utf-8")


def read(path: Path) -> Material:
    """The corpus written by `write`."""
    whole = json.loads(path.read_text(encoding="utf-8"))
    found = {text: _found(answer) for text, answer in whole["answers"].items()}
    papers = _papers(whole["papers"])
    return Material(papers, _papers(whole["extra"]), found, _questions(papers, found))


def _papers(pages: Mapping[str, list[str]]) -> tuple[Paper, ...]:
    return tuple(Paper(name, tuple(texts)) for name, texts in pages.items())


def _found(answer: str) -> Found:
    rows = [json.loads(line) for line in answer.split("\n")]
    return Found(
        entities=tuple(row for row in rows if row["type"] == "entity"),
        relations=tuple(row for row in rows if row["type"] == "relationship"),
    )


def _questions(papers: Iterable[Paper], found: Mapping[str, Found]) -> tuple[Asked, ...]:
    """Questions about pairs of related names, spread evenly over the corpus."""
    texts = [page for paper in papers for page in paper.pages]
    questions = []
    for number in range(QUESTIONS):
        relation = found[texts[number * len(texts) // QUESTIONS]].relations[0]
        one, other = str(relation["source"]), str(relation["target"])
        text = f"Note {number}: where did {one} meet {other}?"
        questions.append(Asked(text, (one, other), "took part together"))
    return tuple(questions)
