"""Loads values for row ids, under a filter only from the documents that it lets through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from lightrag_jsonl.querying.hits import Hits, Scope, Subgraph
from lightrag_jsonl.sorting import among
from lightrag_jsonl.storage import claims, reading
from lightrag_jsonl.storage.claims import EntityClaim, RelationClaim
from lightrag_jsonl.storage.snapshot import FACT_CHUNKS, Snapshot
from lightrag_jsonl.types import Chunk, Entity, Json, Kind, Relation

NamesOf = Callable[[Iterable[int]], Mapping[int, str]]


def find_scope(snapshot: Snapshot, where: Mapping[str, Json]) -> Scope | None:
    """The rows that the filter lets through; None without a filter."""
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
    """The entities and relations of a subgraph, in its order, with scores and reasons.

    Under a filter each is rebuilt from its mentions in the documents that the filter lets through.
    """
    entity_rows = subgraph.entities.ids.tolist()
    relation_rows = subgraph.relations.ids.tolist()
    if scope is None:
        entities = snapshot.entities(entity_rows)
        relations = snapshot.relations(relation_rows)
        degrees = snapshot.graph.degrees(entity_rows).tolist()
    else:
        entities, relations = _told_by(snapshot, subgraph, scope)
        degrees = _degrees(snapshot, entity_rows, scope)
    return (
        tuple(
            _entity_hit(entities[row], degree, score, why)
            for (row, score, why), degree in zip(subgraph.entities.rows(), degrees, strict=True)
        ),
        tuple(
            _relation_hit(relations[row], score, why)
            for row, score, why in subgraph.relations.rows()
        ),
    )


def load_chunks(snapshot: Snapshot, hits: Hits) -> tuple[Chunk, ...]:
    """The chunks of these hits, in order, with scores and reasons."""
    found = snapshot.chunks(hits.ids.tolist())
    return tuple(_chunk_hit(found[row], score, why) for row, score, why in hits.rows())


def entity_namer(snapshot: Snapshot, scope: Scope | None) -> NamesOf:
    """A function from row ids to entities' names, for explaining why something was found."""

    def names_of(rows: Iterable[int]) -> dict[int, str]:
        if scope is None:
            return {row: entity.name for row, entity in snapshot.entities(rows).items()}
        said = _entity_claims(snapshot, rows, scope)
        return {row: _most_frequent(c.mention.name for c in found) for row, found in said.items()}

    return names_of


def _entity_hit(of: Entity, degree: int, score: float, why: str) -> Entity:
    """Like `dataclasses.replace`, but three times as fast; so are the two functions below."""
    return Entity(
        of.name,
        of.type,
        of.description,
        of.chunk_ids,
        degree,
        of.created_at,
        of.attributes,
        score,
        why,
    )


def _relation_hit(of: Relation, score: float, why: str) -> Relation:
    return Relation(
        of.source,
        of.target,
        of.keywords,
        of.description,
        of.weight,
        of.chunk_ids,
        of.created_at,
        score,
        why,
    )


def _chunk_hit(of: Chunk, score: float, why: str) -> Chunk:
    return Chunk(
        of.id,
        of.document_id,
        of.index,
        of.page,
        of.start,
        of.end,
        of.text,
        of.tokens,
        of.created_at,
        score,
        why,
    )


# ── under a filter ──────────────────────────────────────────────────────────────


def _told_by(
    snapshot: Snapshot, subgraph: Subgraph, scope: Scope
) -> tuple[dict[int, Entity], dict[int, Relation]]:
    """Entities and relations as the chunks in scope alone describe them."""
    asked = subgraph.relations.ids.tolist()
    pairs = snapshot.graph.ends(asked).tolist()
    ends = {row: (low, high) for row, (low, high) in zip(asked, pairs, strict=True)}
    said = _entity_claims(snapshot, {*subgraph.entities.ids.tolist()}.union(*ends.values()), scope)
    told = _relation_claims(snapshot, ends, scope)
    rows = {claim.chunk for found in said.values() for claim in found}
    rows |= {claim.chunk for found in told.values() for claim in found}
    chunks = snapshot.chunks(sorted(rows))
    entities = {row: _entity(found, chunks) for row, found in said.items()}
    relations = {
        row: _relation(told[row], entities[low].name, entities[high].name, chunks)
        for row, (low, high) in ends.items()
    }
    return entities, relations


def _degrees(snapshot: Snapshot, entities: Sequence[int], scope: Scope) -> list[int]:
    """How many of each entity's relations are in scope."""
    around = (snapshot.graph.relations_of([row])[1] for row in entities)
    return [int(among(relations, scope.relations).sum()) for relations in around]


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
    """The owners asked for, and the chunks in scope that mention them (of a hub's chunks only the first)."""
    wanted = sorted(set(ids))
    left = set(scope.chunks.tolist())
    count: Counter[int] = Counter()
    chunks: set[int] = set()
    for owner, chunk in reading.mention_chunks(snapshot.connection, kind, wanted):
        if chunk in left and count[owner] < FACT_CHUNKS:
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
