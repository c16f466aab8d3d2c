"""Rebuilds derived data: rows from their claims, full text, vectors (also with another embedder)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.indexing.embedding import Embeddings
from lightrag_jsonl.indexing.kept_summaries import keep_summaries
from lightrag_jsonl.indexing.merging import (
    GRAPH_KINDS,
    NextIds,
    Plan,
    Said,
    fold,
    said_again,
    with_both_ends,
)
from lightrag_jsonl.indexing.summaries import Describer
from lightrag_jsonl.indexing.tallies import entity_text, relation_text
from lightrag_jsonl.protocols import Vectors
from lightrag_jsonl.storage import (
    aliases,
    checks,
    claims,
    documents,
    maintenance,
    rows,
    settings,
    snapshot,
    tables,
    values,
)
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.embeddings import embedding_ids, put_embeddings
from lightrag_jsonl.storage.rows import EntityRow, RelationRow
from lightrag_jsonl.storage.summarized import Summaries, read_summaries
from lightrag_jsonl.storage.vector_upkeep import mend_embeddings
from lightrag_jsonl.types import Kind

BATCH = 512  # texts embedded and stored at a time

Texts = dict[Kind, list[tuple[int, str]]]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class _Cleared:
    """What was there before the derived rows were dropped."""

    orphans: int
    chunks: list[int]
    said: list[Said]
    summaries: Summaries
    rows: Mapping[Kind, int]


async def repair(
    database: Database, embeddings: Embeddings, describer: Describer, built_with: Mapping[str, str]
) -> list[str]:
    """Fold the whole graph anew from its claims, and rebuild full text and missing vectors.

    Returns a line for people for each step. Documents and claims stay as they are; no model is
    asked. Lost settings are recorded again from `built_with`. Rows and vectors change in one
    transaction, so an interrupted repair leaves the index as it was. Raises `CorruptError` if
    something is lost that cannot be derived.
    """
    mended = await database.committed(partial(_mend, database.path, built_with))
    plan, chunks, generation = await database.committed(
        lambda connection: _planned(connection, describer), flush=False
    )
    texts = [*_plan_texts(plan), *(text for _, text in chunks)]
    count = await _embed(database, embeddings, dict(await embeddings.keyed(texts)), noted={})
    write = partial(_write, database.working_dir, embeddings, plan, chunks, generation)
    told = await database.committed(write)
    return [*mended, *told, f"{count} vectors made anew"]


def _mend(path: Path, built_with: Mapping[str, str], connection: sqlite3.Connection) -> list[str]:
    """Restore missing tables and readable values, which all else needs; returns what was done."""
    values.check_sources(connection, path)
    if checks.is_damaged(connection):
        connection.execute("REINDEX")  # any other damage is reported after the repair
    names = {
        "dropped: no trigger is ours": tables.drop_triggers(connection),
        "made anew": tables.make_anew(connection),
    }
    told = [f"{', '.join(found)} {done}" for done, found in names.items() if found]
    if dropped := values.drop_wrong(connection):
        told.append(f"{dropped} rows that could not be read dropped")
    if lost := checks.missing_settings(connection):
        settings.record(connection, {key: built_with[key] for key in lost})
        told.append(f"{', '.join(lost)} recorded as this index is opened with")
    if mend_embeddings(connection, settings.dimension(connection)) or told:
        snapshot.note_rebuilt(connection)
    return told


def _planned(
    connection: sqlite3.Connection, describer: Describer
) -> tuple[Plan, list[tuple[int, str]], int]:
    """The graph folded anew, the chunks without a vector, and the generation; the database is not changed."""
    connection.execute("SAVEPOINT folding")
    try:
        found = _cleared(connection)
        ids, known = NextIds.read(connection), aliases.read(connection)
        plan = fold(connection, found.said, (), ids, known)
        keep_summaries(plan, found.summaries, all_claims=True)
        describer.describe(connection, plan)
        chunks = _chunk_texts(connection, maintenance.chunks_without_vector(connection))
    finally:
        connection.execute("ROLLBACK TO folding")
        connection.execute("RELEASE folding")
    return plan, chunks, snapshot.generation(connection)


def _cleared(connection: sqlite3.Connection) -> _Cleared:
    """Drop orphaned rows, all claims, and the rows folded from them."""
    orphans, chunks = maintenance.drop_orphans(connection), rows.all_ids(connection, "chunk")
    said, loose = with_both_ends(said_again(connection, chunks), aliases.read(connection))
    summaries = read_summaries(connection, chunks)
    claims.drop_claims(connection, chunks)
    counts: dict[Kind, int] = {}
    for kind in GRAPH_KINDS:
        old = rows.all_ids(connection, kind)
        counts[kind] = len(old)
        rows.drop_rows(connection, kind, old)
    return _Cleared(orphans + loose, chunks, said, summaries, counts)


def _write(
    working_dir: Path,
    embeddings: Embeddings,
    plan: Plan,
    chunks: Sequence[tuple[int, str]],
    generation: int,
    connection: sqlite3.Connection,
) -> list[str]:
    """Replace the graph by the folded one; returns what was done."""
    snapshot.check_generation(connection, generation, working_dir)
    before = _cleared(connection)
    keys = [embeddings.key(text) for text in _plan_texts(plan)]
    stored = embedding_ids(connection, keys)
    changed: list[EntityRow | RelationRow] = [*plan.entities.values(), *plan.relations.values()]
    for row, key in zip(changed, keys, strict=True):
        row.embedding = stored[key]
    rows.put_entities(connection, plan.entities.values())
    rows.put_relations(connection, plan.relations.values())
    claims.put_claims(connection, plan.entity_claims, plan.relation_claims)
    _use_stored(connection, embeddings, "chunk", chunks)
    terms = maintenance.rebuild_terms(connection)
    documents.renew_states(connection)
    snapshot.note_rebuilt(connection)
    entities, relations = len(plan.entities), len(plan.relations)
    return [
        f"{before.orphans} orphaned rows dropped",
        f"{entities} entities ({entities - before.rows['entity']:+d}) and {relations} relations "
        f"({relations - before.rows['relation']:+d}) folded from the claims of {len(before.chunks)} chunks",
        f"full text of {terms} chunks rebuilt",
    ]


def _plan_texts(plan: Plan) -> list[str]:
    """The texts to embed for a plan's entities, then for its relations."""
    texts = [entity_text(row) for row in plan.entities.values()]
    return texts + [relation_text(row) for row in plan.relations.values()]


async def reembed(
    database: Database,
    embeddings: Embeddings,
    recorded: Mapping[str, str],
    *,
    watcher: Progress | None = None,
) -> int:
    """Move the index to another embedder; the old vectors are used until all new ones are stored.

    New vectors are stored as they come, so an interrupted move goes on where it stopped. `watcher`
    is called with (done, all). Returns the number of texts. Raises `ConfigError` if the new
    embedder has the name of the old one but vectors of another length: embedders are told apart by
    name.
    """
    known = await database.read(settings.read)
    if known.get("embedder") == recorded["embedder"] and known.get("dim") != recorded["dim"]:
        raise ConfigError(
            f"the index has vectors of {known.get('dim')} dimensions by {recorded['embedder']!r}; "
            f"give the embedder of {recorded['dim']} another name"
        )
    wanted = await database.read(_texts)
    texts = dict(await embeddings.keyed(text for found in wanted.values() for _, text in found))
    moving = {settings.MOVING: recorded["embedder"]}
    await _embed(database, embeddings, texts, noted=moving, watcher=watcher)

    def switch(connection: sqlite3.Connection) -> None:
        for kind, found in wanted.items():
            _use_stored(connection, embeddings, kind, found)
        settings.record(connection, recorded)
        settings.forget(connection, settings.MOVING)
        snapshot.note_rebuilt(connection)

    await database.committed(switch)
    return len(texts)


async def _embed(
    database: Database,
    embeddings: Embeddings,
    keyed: Mapping[bytes, str],
    *,
    noted: Mapping[str, str],
    watcher: Progress | None = None,
) -> int:
    """Embed the texts without a vector, storing each batch as it comes; returns how many there were.

    The settings in `noted` are recorded along with the vectors.
    """

    def put(vectors: Mapping[bytes, Vectors], connection: sqlite3.Connection) -> None:
        put_embeddings(connection, vectors)
        settings.record(connection, noted)

    texts, count = list(keyed.items()), 0
    for start in range(0, len(texts), BATCH):
        vectors = await embeddings.missing(texts[start : start + BATCH])
        await database.committed(partial(put, vectors))
        count += len(vectors)
        if watcher is not None:
            watcher(min(start + BATCH, len(texts)), len(texts))
    return count


def _texts(connection: sqlite3.Connection) -> Texts:
    """The texts to embed for every row."""
    entities = rows.entities_by_id(connection, rows.all_ids(connection, "entity"))
    relations = rows.relations_by_id(connection, rows.all_ids(connection, "relation"))
    return {
        "entity": [(row.id, entity_text(row)) for row in entities.values()],
        "relation": [(row.id, relation_text(row)) for row in relations.values()],
        "chunk": _chunk_texts(connection, rows.all_ids(connection, "chunk")),
    }


def _chunk_texts(connection: sqlite3.Connection, chunks: Collection[int]) -> list[tuple[int, str]]:
    found = documents.chunks_by_row(connection, chunks)
    return [(row, chunk.text) for row, chunk in sorted(found.items())]


def _use_stored(
    connection: sqlite3.Connection,
    embeddings: Embeddings,
    kind: Kind,
    found: Sequence[tuple[int, str]],
) -> None:
    """Point rows at the stored vectors of their texts."""
    keys = [embeddings.key(text) for _, text in found]
    ids = embedding_ids(connection, keys)
    pairs = [(ids[key], row) for key, (row, _) in zip(keys, found, strict=True)]
    maintenance.use_embeddings(connection, kind, pairs)
