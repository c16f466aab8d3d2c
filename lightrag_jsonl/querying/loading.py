"""From row ids to plain values, and the filter: nothing that only other documents said is loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from lightrag_jsonl.querying.hits import Hit, Scope, Subgraph
from lightrag_jsonl.storage import claims, documents, reading
from lightrag_jsonl.storage.claims import EntityClaim, RelationClaim
from lightrag_jsonl.storage.snapshot import Snapshot
from lightrag_jsonl.types import Chunk, Entity, Json, Kind, Relation

SOURCE_LIMIT = 20  # chunks named as sources of one entity or relation, the first ones


def find_scope(snapshot: Snapshot, where: Mapping[str, Json]) -> Scope | None:
    """The rows that the filter leaves; None without a filter."""
    if not where:
        return None
    chunks = reading.allowed_chunks(snapshot.connection, dict(where))
    mentioned = {
        kind: np.array(sorted(reading.mentioned(snapshot.connection, kind, chunks)), np.int64)
        for kind in claims.TABLES
    }
    return Scope(np.array(chunks, np.int64), mentioned["entity"], mentioned["relation"])


def load_facts(
    snapshot: Snapshot, subgraph: Subgraph, scope: Scope | None
) -> tuple[tuple[Entity, ...], tuple[Relation, ...]]:
    """The entities and relations of a subgraph, in its order, with score and reason.

    Under a filter each is told anew from the mentions in the documents that are left.
    """
    degrees: Mapping[int, int] = {}
    if scope is None:
        rows = _rows(subgraph.entities)
        entities = reading.entities(
            snapshot.connection,
            rows,
            chunk_limit=SOURCE_LIMIT,
            name_chunks=snapshot.chunk_names,
        )
        degrees = {row: snapshot.graph.degree(row) for row in rows}
        relations = reading.relations(
            snapshot.connection,
            _rows(subgraph.relations),
            chunk_limit=SOURCE_LIMIT,
            name_chunks=snapshot.chunk_names,
        )
    else:
        entities, relations = _told_by(snapshot, subgraph, scope)
    return (
        tuple(
            replace(
                entities[h.id],
                degree=degrees.get(h.id, entities[h.id].degree),
                score=h.score,
                why=h.why,
            )
            for h in subgraph.entities
        ),
        tuple(replace(relations[h.id], score=h.score, why=h.why) for h in subgraph.relations),
    )


def load_chunks(snapshot: Snapshot, hits: Sequence[Hit]) -> tuple[Chunk, ...]:
    """The chunks of these hits, in their order, with score and reason."""
    found = documents.chunks_by_row(snapshot.connection, [hit.id for hit in hits])
    return tuple(replace(found[hit.id], score=hit.score, why=hit.why) for hit in hits)


def entity_namer(snapshot: Snapshot, scope: Scope | None) -> Callable[[int], str]:
    """A look-up of display names by row id, for telling why something was found."""

    @cache
    def name_of(row: int) -> str:
        if scope is None:
            return reading.entity_names(snapshot.connection, [row]).get(row, "")
        said = _entity_claims(snapshot, [row], scope).get(row, [])
        return _most_frequent(claim.mention.name for claim in said) if said else ""

    return name_of


def _rows(hits: Sequence[Hit]) -> list[int]:
    return [hit.id for hit in hits]


# ── under a filter ──────────────────────────────────────────────────────────────


def _told_by(
    snapshot: Snapshot, subgraph: Subgraph, scope: Scope
) -> tuple[dict[int, Entity], dict[int, Relation]]:
    """Entities and relations as the chunks in scope alone tell them."""
    ends = {row: snapshot.graph.ends(row) for row in _rows(subgraph.relations)}
    said = _entity_claims(snapshot, {*_rows(subgraph.entities)}.union(*ends.values()), scope)
    told = _relation_claims(snapshot, ends, scope)
    rows = {claim.chunk for found in said.values() for claim in found}
    rows |= {claim.chunk for found in told.values() for claim in found}
    chunks = documents.chunks_by_row(snapshot.connection, sorted(rows))
    entities = {row: _entity(found, chunks) for row, found in said.items()}
    for row in entities:
        around = np.array(snapshot.graph.relations_of(row), np.int64)
        degree = int(np.isin(around, scope.relations).sum())
        entities[row] = replace(entities[row], degree=degree)
    relations = {
        row: _relation(told[row], entities[low].name, entities[high].name, chunks)
        for row, (low, high) in ends.items()
    }
    return entities, relations


def _entity_claims(
    snapshot: Snapshot, ids: Iterable[int], scope: Scope
) -> dict[int, list[EntityClaim]]:
    wanted, chunks = _places(snapshot, "entity", ids, scope)
    grouped: dict[int, list[EntityClaim]] = {}
    for claim in claims.entity_claims(snapshot.connection, chunks):
        if claim.entity in wanted:
            grouped.setdefault(claim.entity, []).append(claim)
    return {row: sorted(found, key=lambda claim: claim.place) for row, found in grouped.items()}


def _relation_claims(
    snapshot: Snapshot, ids: Iterable[int], scope: Scope
) -> dict[int, list[RelationClaim]]:
    wanted, chunks = _places(snapshot, "relation", ids, scope)
    grouped: dict[int, list[RelationClaim]] = {}
    for claim in claims.relation_claims(snapshot.connection, chunks):
        if claim.relation in wanted:
            grouped.setdefault(claim.relation, []).append(claim)
    return {row: sorted(found, key=lambda claim: claim.place) for row, found in grouped.items()}


def _places(
    snapshot: Snapshot, kind: Kind, ids: Iterable[int], scope: Scope
) -> tuple[set[int], set[int]]:
    """The owners asked for, and the chunks in scope that mention them, some of a hub's only."""
    wanted = sorted(set(ids))
    left = set(scope.chunks.tolist())
    count: Counter[int] = Counter()
    chunks: set[int] = set()
    for owner, chunk in reading.mention_chunks(snapshot.connection, kind, wanted):
        if chunk in left and count[owner] < SOURCE_LIMIT:
            count[owner] += 1
            chunks.add(chunk)
    return set(wanted), chunks


def _entity(found: Sequence[EntityClaim], chunks: Mapping[int, Chunk]) -> Entity:
    mentions = [claim.mention for claim in found]
    sources = _sources(found, chunks)
    return Entity(
        name=_most_frequent(mention.name for mention in mentions),
        type=_most_frequent(mention.type for mention in mentions),
        description=_joined(mention.description for mention in mentions),
        chunk_ids=tuple(chunk.id for chunk in sources),
        created_at=min((c.created_at for c in sources if c.created_at), default=None),
        attributes=tuple(sorted({pair for mention in mentions for pair in mention.attributes})),
    )


def _relation(
    found: Sequence[RelationClaim], low: str, high: str, chunks: Mapping[int, Chunk]
) -> Relation:
    mentions = [claim.mention for claim in found]
    forward = 2 * sum(claim.forward for claim in found) >= len(found)
    sources = _sources(found, chunks)
    return Relation(
        source=low if forward else high,
        target=high if forward else low,
        keywords=tuple(sorted({word for mention in mentions for word in mention.keywords})),
        description=_joined(mention.description for mention in mentions),
        weight=sum(mention.strength for mention in mentions),
        chunk_ids=tuple(chunk.id for chunk in sources),
        created_at=min((c.created_at for c in sources if c.created_at), default=None),
    )


def _sources(
    found: Sequence[EntityClaim] | Sequence[RelationClaim], chunks: Mapping[int, Chunk]
) -> list[Chunk]:
    return [chunks[row] for row in dict.fromkeys(claim.chunk for claim in found)]


def _most_frequent(values: Iterable[str]) -> str:
    votes = Counter(values)
    return min(votes, key=lambda value: (-votes[value], value))


def _joined(descriptions: Iterable[str]) -> str:
    return "\n".join(dict.fromkeys(text for text in descriptions if text))
