"""Materials from indexes: what was read for an index is what the referee replays."""

import asyncio
from collections import defaultdict
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from benchmarks.overview import GROUPS, WholeQuestion, whole_questions
from benchmarks.referee.material import (
    Document,
    Material,
    Question,
    Row,
    entity_row,
)
from lightrag_jsonl.core.languages import known_language
from lightrag_jsonl.rules import OfflineKeywords
from lightrag_jsonl.storage.sqlite.database import SQLiteStore
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.tools.evaluation import EvalQuestion, read_questions

QUESTIONS_FILE = "questions.jsonl"  # in the index folder, as `eval --generate N --save` writes it


def is_index(folder: Path) -> bool:
    """Whether a folder holds an index and questions about it."""
    return (folder / "index.sqlite").is_file() and (folder / QUESTIONS_FILE).is_file()


def material_of_index(folder: Path, *, questions: int | None = None) -> Material:
    """The chunks of an index, and its own questions, which name the chunks that answer them."""
    material = _material(folder, folder.resolve().name)
    keywords = OfflineKeywords(known_language(material.language))
    asked = read_questions(folder / QUESTIONS_FILE)[:questions]
    return replace(material, questions=tuple([_question(item, keywords) for item in asked]))


def material_of_whole_text(folder: Path, name: str) -> Material:
    """The chunks of the index of a text of `benchmarks.overview`, and the questions about the whole."""
    material = _material(folder, name)
    keywords = OfflineKeywords(known_language(material.language))
    questions = [
        _whole_question(item, group, keywords)
        for group in GROUPS
        for item in whole_questions(name, group)
    ]
    return replace(material, questions=tuple(questions))


def _material(folder: Path, name: str) -> Material:
    """Each chunk of an index is a document, in which the model reads what it has read."""
    with closing(SQLiteStore(folder)) as store, store.view() as view:
        language = str(view.settings().get("language", "en"))
        rows_by_chunk = _rows_by_chunk(view)
        chunks = view.chunks()
    return Material(
        name=name,
        language=language,
        documents=tuple([Document(chunk.id, chunk.text) for chunk in chunks.values()]),
        readings=tuple([(chunk.text, tuple(rows_by_chunk[row])) for row, chunk in chunks.items()]),
    )


def _rows_by_chunk(view: StoreView) -> dict[int, list[Row]]:
    """What the model read in each chunk, with its descriptions."""
    rows: dict[int, list[Row]] = defaultdict(list)
    for entity in view.entity_mentions():
        mention = entity.mention
        described = entity_row(mention.name, mention.description, mention.type or "other")
        rows[entity.chunk].append(described)
    for relation in view.relation_mentions():
        statement = relation.mention
        rows[relation.chunk].append(
            {
                "type": "relationship",
                "source": statement.source,
                "target": statement.target,
                "keywords": list(statement.keywords) or ["related"],
                "description": statement.description,
                "strength": statement.strength,
            }
        )
    return rows


def _question(question: EvalQuestion, keywords: OfflineKeywords) -> Question:
    found = asyncio.run(keywords.keywords(question.text))
    return Question(
        text=question.text,
        supporting=question.supporting,
        answer=question.answer,
        names=question.names or tuple(found.low_level),
        themes=tuple(found.high_level) or (question.text,),
    )


def _whole_question(item: WholeQuestion, group: str, keywords: OfflineKeywords) -> Question:
    found = asyncio.run(keywords.keywords(item.question))
    return Question(
        text=item.question,
        names=tuple(found.low_level),
        themes=tuple(found.high_level) or (item.question,),
        points=tuple([tuple(wordings) for wordings in item.points]),
        group=group,
    )
