"""Rebuilds what is derived: rows folded anew from their claims, full text, vectors (also of another embedder)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from lightrag_jsonl.indexing.embedding import Embeddings
from lightrag_jsonl.indexing.merging import (
    NextIds,
    Plan,
    entity_text,
    fold,
    relation_text,
    said_again,
)
from lightrag_jsonl.indexing.summaries import Describer
from lightrag_jsonl.storage import (
    aliases,
    cache,
    claims,
    documents,
    maintenance,
    rows,
    settings,
    snapshot,
)
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.types import Kind

BATCH = 512  # texts embedded and stored at a time

Texts = dict[Kind, list[tuple[int, str]]]
Told = Callable[[int, int], None]


async def repair(database: Database, embeddings: Embeddings, describer: Describer) -> list[str]:
    """Fold the whole graph anew from its claims, and rebuild full text and missing vectors.

    Answers with a line a step, for people. The documents and what was said about them stay as
    they are; no model is asked.
    """
    told: list[str] = []

    def refold(connection: sqlite3.Connection) -> None:
        orphans = maintenance.drop_orphans(connection)
        chunks = [row[0] for row in connection.execute("SELECT id FROM chunks ORDER BY id")]
        said = said_again(connection, chunks)
        old = {row.key: row for row in rows.entities_by_key(connection, _keys(connection)).values()}
        claims.drop_claims(connection, chunks)
        connection.execute("DELETE FROM entities")
        connection.execute("DELETE FROM relations")
        plan = fold(connection, said, (), NextIds.read(connection), aliases.read(connection))
        describer.describe(connection, plan)
        rows.put_entities(connection, plan.entities.values())
        rows.put_relations(connection, plan.relations.values())
        claims.put_claims(connection, plan.entity_claims, plan.relation_claims)
        terms = maintenance.rebuild_terms(connection)
        _use_stored(connection, embeddings, plan)
        snapshot.note_commit(connection, all=True)
        changed = len(old) - len(plan.entities)
        told.append(f"{orphans} orphaned rows dropped")
        told.append(
            f"{len(plan.entities)} entities ({changed:+d} were there before) and "
            f"{len(plan.relations)} relations folded from the claims of {len(chunks)} chunks"
        )
        told.append(f"full text of {terms} chunks rebuilt")

    await asyncio.wrap_future(database.submit(refold))
    count = await _embed_all(database, embeddings, only_missing=True)
    told.append(f"{count} vectors made anew")
    return told


async def reembed(
    database: Database,
    embeddings: Embeddings,
    recorded: Mapping[str, str],
    *,
    watcher: Told | None = None,
) -> int:
    """Move the index to another embedder; the old vectors serve until all new ones are stored.

    What is embedded is kept as it goes: an interrupted move goes on where it was. `watcher` is
    told (done, all). Tells how many texts have a vector now.
    """
    return await _embed_all(database, embeddings, recorded=recorded, watcher=watcher)


async def _embed_all(
    database: Database,
    embeddings: Embeddings,
    *,
    recorded: Mapping[str, str] | None = None,
    watcher: Told | None = None,
    only_missing: bool = False,
) -> int:
    with database.reading() as connection:
        wanted = _texts(connection, only_missing=only_missing)
    texts = list(
        dict.fromkeys(embeddings.clip(text) for found in wanted.values() for _, text in found)
    )
    for start in range(0, len(texts), BATCH):
        vectors = await embeddings.missing(texts[start : start + BATCH])
        await asyncio.wrap_future(database.submit(partial(cache.put_embeddings, vectors=vectors)))
        if watcher is not None:
            watcher(min(start + BATCH, len(texts)), len(texts))

    def switch(connection: sqlite3.Connection) -> None:
        for kind, found in wanted.items():
            keys = [embeddings.key(embeddings.clip(text)) for _, text in found]
            ids = cache.embedding_ids(connection, keys)
            pairs = [(ids[key], row) for key, (row, _) in zip(keys, found, strict=True)]
            maintenance.use_embeddings(connection, kind, pairs)
        if recorded is not None:
            settings.record(connection, recorded)
        snapshot.note_commit(connection, all=True)

    await asyncio.wrap_future(database.submit(switch))
    return len(texts)


def _texts(connection: sqlite3.Connection, *, only_missing: bool) -> Texts:
    """What each row's vector stands for."""
    found: Texts = {"entity": [], "relation": [], "chunk": []}
    for entity in rows.entities_by_key(connection, _keys(connection)).values():
        if not only_missing or entity.embedding is None:
            found["entity"].append((entity.id, entity_text(entity)))
    ids = [row[0] for row in connection.execute("SELECT id FROM relations ORDER BY id")]
    for relation in rows.relations_by_id(connection, ids).values():
        if not only_missing or relation.embedding is None:
            found["relation"].append((relation.id, relation_text(relation)))
    every = [row[0] for row in connection.execute("SELECT id FROM documents")]
    have = {
        row[0] for row in connection.execute("SELECT id FROM chunks WHERE embedding IS NOT NULL")
    }
    for row, chunk in documents.chunks_of(connection, every).items():
        if not only_missing or row not in have:
            found["chunk"].append((row, chunk.text))
    return found


def _keys(connection: sqlite3.Connection) -> Sequence[str]:
    return [row[0] for row in connection.execute("SELECT key FROM entities ORDER BY id")]


def _use_stored(connection: sqlite3.Connection, embeddings: Embeddings, plan: Plan) -> None:
    """Give the folded rows the vectors that are stored for their texts."""
    pairs: dict[Kind, list[tuple[bytes, int]]] = {
        "entity": [
            (embeddings.key(embeddings.clip(entity_text(r))), r.id) for r in plan.entities.values()
        ],
        "relation": [
            (embeddings.key(embeddings.clip(relation_text(r))), r.id)
            for r in plan.relations.values()
        ],
    }
    for kind, found in pairs.items():
        ids = cache.embedding_ids(connection, [key for key, _ in found])
        known = [(ids[key], row) for key, row in found if key in ids]
        maintenance.use_embeddings(connection, kind, known)
