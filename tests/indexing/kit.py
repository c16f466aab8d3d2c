"""What the tests of storage and indexing share: small indexes, and everything that an index holds."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lightrag_jsonl import AsyncLightRAG, IndexOptions
from lightrag_jsonl.adapters.offline import HashEmbedder
from lightrag_jsonl.indexing.checking import fold_problems, id_problems
from lightrag_jsonl.prompts import PromptManager
from lightrag_jsonl.protocols import LLM
from lightrag_jsonl.storage import checks, fulltext, reading, settings
from lightrag_jsonl.storage.database import FILE_NAME, Database
from lightrag_jsonl.storage.derived import derived_problems
from lightrag_jsonl.storage.embeddings import load_vectors
from lightrag_jsonl.storage.snapshot import SnapshotKeeper
from lightrag_jsonl.testing import Request
from lightrag_jsonl.tokens import FittedTokenizer
from lightrag_jsonl.types import Kind, Record


@cache
def prompts(language: str = "en") -> PromptManager:
    """The prompt set, loaded once for all tests."""
    return PromptManager.load(language, None)


@contextlib.asynccontextmanager
async def index(
    folder: Path | str, llm: LLM | None = None, *, options: IndexOptions | None = None, **more: Any
) -> AsyncIterator[AsyncLightRAG]:
    """An index that opens fast: a small hashing embedder, the fitted tokenizer."""
    rag = AsyncLightRAG(
        folder,
        llm=llm,
        embedder=more.pop("embedder", None) or HashEmbedder(dim=64),
        tokenizer=more.pop("tokenizer", None) or FittedTokenizer(),
        options=options,
        prompts=more.pop("prompts", None) or prompts(more.get("language", "en")),
        **more,
    )
    try:
        yield rag
    finally:
        await rag.close()


# ── records and answers ─────────────────────────────────────────────────────────


def entity(name: str, description: str = "", kind: str = "person", **more: Any) -> Record:
    """A record of an entity."""
    return {
        "type": "entity",
        "name": name,
        "entity_type": kind,
        "description": description or f"About {name}.",
        **more,
    }


def relation(source: str, target: str, description: str = "", **more: Any) -> Record:
    """A record of a relation."""
    return {
        "type": "relationship",
        "source": source,
        "target": target,
        "keywords": ["knows"],
        "description": description or f"{source} knows {target}.",
        "strength": 5,
        **more,
    }


def jsonl(*records: Record) -> str:
    """Records as a model writes them."""
    return "\n".join(json.dumps(record, ensure_ascii=False) for record in records)


NAMES = re.compile(r"\b[A-Z][a-z]+\d*\b")


def text_of(request: Request) -> str:
    """The text that a request for extraction is about."""
    asked = next(m.content for m in request.messages if m.role == "user")
    return asked.partition("Text:\n")[2]


def read_names(request: Request) -> str:
    """A model's answer: an entity for each capitalized word, a relation between neighbours.

    It never finds more on a second look, and summarizes by naming the number of notes.
    """
    if any(message.role == "assistant" for message in request.messages):
        return jsonl({"type": "done", "entities": 0, "relationships": 0})
    if request.question.startswith("Subject:"):
        return f"A summary of {request.question.count(chr(10) + '- ')} notes."
    names = list(dict.fromkeys(NAMES.findall(text_of(request))))
    found: list[Record] = [entity(name, f"{name} is in the text.") for name in names]
    found += [relation(a, b) for a, b in itertools.pairwise(names)]
    return jsonl(*found, {"type": "done", "entities": len(names), "relationships": len(names) - 1})


# ── everything that an index holds ──────────────────────────────────────────────


@dataclass(frozen=True)
class View:
    """An index without row ids: what is equal here is equal to every user."""

    documents: list[Any]
    chunks: list[Any]
    entities: list[Any]
    relations: list[Any]
    vectors: dict[Any, bytes]
    terms: list[Any]
    hits: dict[str, list[Any]]


def view(folder: Path | str, *, times: bool = False) -> View:
    """All that the index in a folder holds; `times` says whether first mentions count."""
    with contextlib.closing(Database(folder)) as database, database.reading() as connection:
        rows = lambda query: connection.execute(query).fetchall()  # noqa: E731
        entities = reading.entities(connection, [r[0] for r in rows("SELECT id FROM entities")])
        relations = reading.relations(connection, [r[0] for r in rows("SELECT id FROM relations")])
        counts = {
            kind: dict(rows(f"SELECT id, mentions FROM {kind}"))
            for kind in ("entities", "relations")
        }
        names = dict(rows("SELECT id, name FROM chunks"))
        keys = dict(rows("SELECT id, key FROM entities"))
        dim = settings.dimension(connection)

        def vectors(kind: Kind) -> Iterator[tuple[int, bytes]]:
            ids, matrix = load_vectors(connection, kind, dim)
            yield from zip(ids.tolist(), (row.tobytes() for row in matrix), strict=True)

        terms = rows("SELECT term, doc, cnt FROM chunk_vocabulary ORDER BY term")
        return View(
            documents=rows(
                "SELECT name, title, source, date, metadata, content, state FROM documents ORDER BY name"
            ),
            chunks=rows(
                "SELECT name, position, page, start, stop, text, tokens, state FROM chunks ORDER BY name"
            ),
            entities=sorted(
                (
                    e.name,
                    e.type,
                    e.description,
                    sorted(e.chunk_ids),
                    e.degree,
                    e.attributes,
                    counts["entities"][id],
                )
                + ((e.created_at,) if times else ())
                for id, e in entities.items()
            ),
            relations=sorted(
                (
                    r.source,
                    r.target,
                    r.keywords,
                    r.description,
                    r.weight,
                    sorted(r.chunk_ids),
                    counts["relations"][id],
                )
                + ((r.created_at,) if times else ())
                for id, r in relations.items()
            ),
            vectors={
                **{("entity", keys[id]): vector for id, vector in vectors("entity")},
                **{("chunk", names[id]): vector for id, vector in vectors("chunk")},
                **{
                    ("relation", relations[id].source, relations[id].target): vector
                    for id, vector in vectors("relation")
                },
            },
            terms=terms,
            hits={
                term: sorted(
                    (names[row], round(score, 9))
                    for row, score in fulltext.search(connection, term, 99)
                )
                for term, _, _ in terms[:20]
            },
        )


def problems(folder: Path | str, keeper: SnapshotKeeper | None = None) -> list[str]:
    """Every invariant that does not hold; `keeper` is one that has seen earlier states."""
    with contextlib.closing(Database(folder)) as database:
        with database.reading() as connection:
            found = checks.problems(connection)
            found += id_problems(connection) + fold_problems(connection)
        with (keeper or SnapshotKeeper(database)).snapshot() as snapshot:
            return found + derived_problems(snapshot)


def damage(folder: Path, script: str) -> None:
    """Change the database behind the package's back."""
    with contextlib.closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        connection.executescript(script)


def stored(folder: Path | str, query: str, *values: object) -> list[Any]:
    """The rows of one question to the database."""
    with contextlib.closing(Database(folder)) as database, database.reading() as connection:
        return connection.execute(query, values).fetchall()
