"""Turns question sets and generated texts into what contestants are given."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.datasets import LOADERS, Dataset, Passage, data_folder, load
from benchmarks.datasets import Question as SetQuestion
from benchmarks.public_sets import load_public
from benchmarks.referee.material import (
    Document,
    Material,
    Question,
    Row,
    rows_of_triples,
)
from benchmarks.synthetic import Corpus
from lightrag_jsonl.core.languages import known_language
from lightrag_jsonl.core.types import Chunk
from lightrag_jsonl.rules import OfflineExtractor, OfflineKeywords

QUESTIONS = 40  # about generated texts
THEME = "took part together"


def load_set(name: str) -> Dataset:
    """A set by its name, or in a file or folder in any published format."""
    if (data_folder() / name).is_dir() and not Path(name).exists():
        return load(name)
    path = Path(name)
    if not path.exists():
        raise SystemExit(f"{name}: no such set in {data_folder()}, and no such file or folder")
    return load(path) if path.name in LOADERS else load_public(path)


def material_of(
    dataset: Dataset, *, questions: int | None = None, passages: int | None = None
) -> Material:
    """A question set: each passage is a document, read as recorded or else by the rules.

    With `questions` only the first ones are asked; with `passages`, there are so many documents:
    those that answer the questions, then the first of the others.
    """
    asked = dataset.questions[:questions]
    chosen = _chosen(dataset.passages, asked, passages)
    documents = tuple([Document(passage.id, passage.content) for passage in chosen])
    readings = tuple([(passage.content, _rows(passage, dataset)) for passage in chosen])
    keywords = OfflineKeywords(known_language(dataset.language))
    return Material(
        name=dataset.name,
        language=dataset.language,
        documents=documents,
        readings=readings,
        questions=tuple([_question(question, keywords) for question in asked]),
    )


def _chosen(
    passages: Sequence[Passage], questions: Sequence[SetQuestion], count: int | None
) -> Sequence[Passage]:
    if count is None:
        return passages
    supporting = {id for question in questions for id in question.supporting}
    others = [passage for passage in passages if passage.id not in supporting]
    wanted = {passage.id for passage in others[: max(0, count - len(supporting))]} | supporting
    return [passage for passage in passages if passage.id in wanted]


def _rows(passage: Passage, dataset: Dataset) -> tuple[Row, ...]:
    """The rows of a passage, from recorded triples or else from the rules of this package."""
    if dataset.has_records:
        return rows_of_triples(passage.triples, passage.entities)
    text = passage.content
    chunk = Chunk(passage.id, passage.id, 0, 1, 0, len(text), text)
    extraction = asyncio.run(OfflineExtractor(known_language(dataset.language)).extract(chunk))
    triples = [
        (relation.source, " ".join(relation.keywords), relation.target)
        for relation in extraction.relations
    ]
    return rows_of_triples(triples, [mention.name for mention in extraction.entities])


def _question(question: SetQuestion, keywords: OfflineKeywords) -> Question:
    """A question with its recorded names, or else the rules' names, and the rules' themes."""
    found = asyncio.run(keywords.keywords(question.text))
    return Question(
        text=question.text,
        supporting=question.supporting,
        answer=question.answer,
        names=question.names or tuple(found.low_level),
        themes=tuple(found.high_level) or (question.text,),
    )


def generated(chunks: int) -> Material:
    """A generated corpus of documents of about 1,000 tokens, and questions about related names."""
    corpus = Corpus(chunks)
    documents = [Document(id, pages[0]) for id, pages in corpus.documents(chunks_per_document=1)]
    readings = []
    for document in documents:
        lines = corpus.answers[document.text].split("\n")
        readings.append((document.text, tuple([json.loads(line) for line in lines])))
    return Material(
        name=f"generated-{chunks}",
        language="en",
        documents=tuple(documents),
        readings=tuple(readings),
        questions=tuple(_generated_questions(documents, readings)),
    )


def _generated_questions(
    documents: Sequence[Document], readings: Sequence[tuple[str, tuple[Row, ...]]]
) -> Iterator[Question]:
    """Questions about pairs of related names, spread evenly over the corpus."""
    for number in range(QUESTIONS):
        place = number * len(documents) // QUESTIONS
        rows = readings[place][1]
        relation = next(row for row in rows if row["type"] == "relationship")
        names = (relation["source"], relation["target"])
        yield Question(
            text=f"Event {number}: where did {names[0]} meet {names[1]}?",
            supporting=(documents[place].id,),
            names=names,
            themes=(THEME,),
        )
