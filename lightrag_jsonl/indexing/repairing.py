"""Rebuilds what is derived: rows folded anew from their claims, full text, vectors (also of another embedder)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from functools import partial

from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.indexing.embedding import Embeddings
from lightrag_jsonl.indexing.kept_summaries import keep_summaries, read_summaries
from lightrag_jsonl.indexing.merging import (
    GRAPH_KINDS,
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
    claims,
    documents,
    maintenance,
    rows,
    settings,
    snapshot,
)
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.embeddings import embedding_ids, put_embeddings
from lightrag_jsonl.storage.vector_upkeep import mend_embeddings
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
        mend_embeddings(connection, snapshot.dimension(connection))
        chunks = rows.all_ids(connection, "chunk")
        said, summaries = said_again(connection, chunks), read_summaries(connection, chunks)
        old = {kind: rows.all_ids(connection, kind) for kind in GRAPH_KINDS}
        claims.drop_claims(connection, chunks)
        for kind, ids in old.items():
            rows.drop_rows(connection, kind, ids)
        plan = fold(connection, said, (), NextIds.read(connection), aliases.read(connection))
        keep_summaries(plan, summaries, all_claims=True)
        describer.describe(connection, plan)
        rows.put_entities(connection, plan.entities.values())
        rows.put_relations(connection, plan.relations.values())
        claims.put_claims(connection, plan.entity_claims, plan.relation_claims)
        terms = maintenance.rebuild_terms(connection)
        _use_stored(connection, embeddings, plan)
        documents.renew_states(connection)
        snapshot.note_rebuilt(connection)
        entities, relations = len(plan.entities), len(plan.relations)
        told.extend(
            [
                f"{orphans} orphaned rows dropped",
                f"{entities} entities ({entities - len(old['entity']):+d}) and {relations} relations "
                f"({relations - len(old['relation']):+d}) folded from the claims of {len(chunks)} chunks",
                f"full text of {terms} chunks rebuilt",
            ]
        )

    await database.committed(refold)
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
    told (done, all). Tells how many texts have a vector now. `ConfigError` where it is called as
    the embedder before, but makes vectors of another length: they are told apart by the name.
    """
    with database.reading() as connection:
        known = settings.read(connection)
    if known.get("embedder") == recorded["embedder"] and known.get("dim") != recorded["dim"]:
        raise ConfigError(
            f"the index has vectors of {known.get('dim')} dimensions by {recorded['embedder']!r}; "
            f"give the embedder of {recorded['dim']} another name"
        )
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
    keyed = embeddings.keyed(text for found in wanted.values() for _, text in found)
    texts = list(dict(keyed).items())
    for start in range(0, len(texts), BATCH):
        vectors = await embeddings.missing(texts[start : start + BATCH])
        await database.committed(partial(put_embeddings, vectors=vectors))
        if watcher is not None:
            watcher(min(start + BATCH, len(texts)), len(texts))

    def switch(connection: sqlite3.Connection) -> None:
        for kind, found in wanted.items():
            keys = [embeddings.key(text) for _, text in found]
            ids = embedding_ids(connection, keys)
            pairs = [(ids[key], row) for key, (row, _) in zip(keys, found, strict=True)]
            maintenance.use_embeddings(connection, kind, pairs)
        if recorded is not None:
            settings.record(connection, recorded)
        snapshot.note_rebuilt(connection)

    await database.committed(switch)
    return len(texts)


def _texts(connection: sqlite3.Connection, *, only_missing: bool) -> Texts:
    """What each row's vector stands for."""
    found: Texts = {"entity": [], "relation": [], "chunk": []}
    for entity in rows.entities_by_id(connection, rows.all_ids(connection, "entity")).values():
        if not only_missing or entity.embedding is None:
            found["entity"].append((entity.id, entity_text(entity)))
    for relation in rows.relations_by_id(connection, rows.all_ids(connection, "relation")).values():
        if not only_missing or relation.embedding is None:
            found["relation"].append((relation.id, relation_text(relation)))
    if only_missing:
        chunks = maintenance.chunks_without_vector(connection)
    else:
        chunks = rows.all_ids(connection, "chunk")
    for row, chunk in sorted(documents.chunks_by_row(connection, chunks).items()):
        found["chunk"].append((row, chunk.text))
    return found


def _use_stored(connection: sqlite3.Connection, embeddings: Embeddings, plan: Plan) -> None:
    """Give the folded rows the vectors that are stored for their texts."""
    pairs: dict[Kind, list[tuple[bytes, int]]] = {
        "entity": [(embeddings.key(entity_text(row)), row.id) for row in plan.entities.values()],
        "relation": [
            (embeddings.key(relation_text(row)), row.id) for row in plan.relations.values()
        ],
    }
    for kind, found in pairs.items():
        ids = embedding_ids(connection, [key for key, _ in found])
        known = [(ids[key], row) for key, row in found if key in ids]
        maintenance.use_embeddings(connection, kind, known)
