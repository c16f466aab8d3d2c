"""What every contestant is given: documents, what a model reads in each, and questions.

A file holds it, since contestants run in processes and environments of their own: nothing here
imports this package.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]  # a record in the form of the prompt `extract-graph`


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its id; `file` is the name of the file that it comes from."""

    id: str
    text: str
    file: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with what is known about its answer.

    - `supporting`: the ids of the documents that answer it.
    - `names`, `themes`: what a model names as the particular and the general keywords.
    - `points`: for each key point of the answer its possible wordings.
    - `group`: the questions with which its figures are averaged.
    """

    text: str
    supporting: tuple[str, ...] = ()
    answer: str = ""
    names: tuple[str, ...] = ()
    themes: tuple[str, ...] = ()
    points: tuple[tuple[str, ...], ...] = ()
    group: str = ""


@dataclass(frozen=True, slots=True)
class Material:
    """Documents, the rows that a model reads in recorded texts, and questions.

    `readings` are pairs of a text and its rows; a recorded text is a document or a part of one.
    """

    name: str
    language: str
    documents: tuple[Document, ...]
    readings: tuple[tuple[str, tuple[Row, ...]], ...]
    questions: tuple[Question, ...] = ()

    def write(self, path: Path) -> None:
        """Write everything as one JSON file."""
        path.write_text(json.dumps(asdict(self), ensure_ascii=False), encoding="utf-8")


def read_material(path: Path) -> Material:
    """The material that `Material.write` wrote."""
    fields = json.loads(path.read_text(encoding="utf-8"))
    return Material(
        name=fields["name"],
        language=fields["language"],
        documents=tuple([Document(**document) for document in fields["documents"]]),
        readings=tuple([(text, tuple(rows)) for text, rows in fields["readings"]]),
        questions=tuple([_question(question) for question in fields["questions"]]),
    )


def _question(fields: Mapping[str, Any]) -> Question:
    return Question(
        text=fields["text"],
        supporting=tuple(fields["supporting"]),
        answer=fields["answer"],
        names=tuple(fields["names"]),
        themes=tuple(fields["themes"]),
        points=tuple([tuple(wordings) for wordings in fields["points"]]),
        group=fields["group"],
    )


# ── rows ────────────────────────────────────────────────────────────────────────


def names_of(row: Row) -> tuple[str, ...]:
    """The name of an entity, or the two ends of a relation."""
    if row["type"] == "entity":
        return (row["name"],)
    return (row["source"], row["target"])


def rows_of_triples(
    triples: Sequence[tuple[str, str, str]], names: Sequence[str] = ()
) -> tuple[Row, ...]:
    """Rows with descriptions: the statement of each triple, and for an entity all of its statements."""
    statements: dict[str, list[str]] = {name: [] for name in names}
    for source, predicate, target in triples:
        for end in (source, target):
            statements.setdefault(end, []).append(f"{source} {predicate} {target}.")
    entities = [
        entity_row(name, " ".join(dict.fromkeys(sentences)) or f"{name} is mentioned.")
        for name, sentences in statements.items()
    ]
    relations = [relation_row(*triple) for triple in triples]
    return (*entities, *relations)


def entity_row(name: str, description: str, entity_type: str = "other") -> Row:
    """The row of an entity."""
    return {
        "type": "entity",
        "name": name,
        "entity_type": entity_type,
        "description": description,
    }


def relation_row(source: str, predicate: str, target: str) -> Row:
    """The row of a relation, described by its statement."""
    return {
        "type": "relationship",
        "source": source,
        "target": target,
        "keywords": [predicate],
        "description": f"{source} {predicate} {target}.",
        "strength": 5,
    }
