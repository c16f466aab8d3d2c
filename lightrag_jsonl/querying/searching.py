"""The search of one question at one moment of the index: from seeds to plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lightrag_jsonl.options import QueryParam
from lightrag_jsonl.querying.edges import CANDIDATES
from lightrag_jsonl.querying.expansion import expand
from lightrag_jsonl.querying.fusion import fuse
from lightrag_jsonl.querying.hits import Probe, Subgraph
from lightrag_jsonl.querying.loading import find_scope, load_chunks, load_facts
from lightrag_jsonl.querying.recipes import Recipe
from lightrag_jsonl.querying.seeds import find_seeds
from lightrag_jsonl.querying.selection import fact_chunks
from lightrag_jsonl.storage import documents, reading
from lightrag_jsonl.storage.snapshot import Snapshot
from lightrag_jsonl.types import Chunk, Entity, Kind, Relation

CHUNK_CANDIDATES = 2  # times `chunk_top_k` chunks are handed on, for a reranker to choose from


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found, best first, and how its chunks were come by.

    `direct` are the chunks that the question's own text found, where the mode looks for them;
    `reached` are those that facts led to, in that order. `documents` are titles by id.
    """

    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    direct: frozenset[str] = frozenset()
    reached: tuple[str, ...] = ()
    documents: Mapping[str, str] = field(default_factory=dict)


def find(
    snapshot: Snapshot, probe: Probe, recipe: Recipe, param: QueryParam, *, wide: bool = False
) -> Findings:
    """Search the lanes of a mode. `wide` hands on more relations than `top_k`, to choose from."""
    scope = find_scope(snapshot, param.where)
    seeds = find_seeds(
        snapshot,
        probe,
        recipe,
        scope=scope,
        top_k=param.top_k,
        chunk_top_k=param.chunk_top_k,
        lexical=param.lexical,
    )
    subgraph = Subgraph()
    if recipe.facts:
        subgraph = expand(
            snapshot,
            seeds,
            probe,
            scope=scope,
            ranking=param.ranking,
            fusion=param.fusion,
            top_k=param.top_k,
            relation_limit=param.top_k * (CANDIDATES if wide else 1),
        )
    entities, relations = load_facts(snapshot, subgraph, scope)
    limit = CHUNK_CANDIDATES * param.chunk_top_k
    labels = _labels(entities, relations)
    reached = fact_chunks(snapshot, subgraph, probe, scope=scope, labels=labels, limit=limit)
    direct = seeds.chunks if recipe.chunks else ()
    hits = fuse([reached, *direct], how=param.fusion)[:limit]
    chunks = dict(zip([hit.id for hit in hits], load_chunks(snapshot, hits), strict=True))
    hit_by_text = {hit.id for lane in direct for hit in lane}
    return Findings(
        tuple(entities.values()),
        tuple(relations.values()),
        tuple(chunks.values()),
        frozenset(chunks[row].id for row in chunks if row in hit_by_text),
        tuple(chunks[hit.id].id for hit in reached if hit.id in chunks),
        reading.document_labels(
            snapshot.connection, {chunk.document_id for chunk in chunks.values()}
        ),
    )


def load_sources(snapshot: Snapshot, relations: Sequence[Relation]) -> tuple[Chunk, ...]:
    """The chunks that relations were read from, each once, those of the first relation first."""
    names = dict.fromkeys(name for relation in relations for name in relation.chunk_ids)
    found = documents.chunks_by_id(snapshot.connection, names)
    return tuple(found[name] for name in names if name in found)


def _labels(
    entities: Mapping[int, Entity], relations: Mapping[int, Relation]
) -> dict[tuple[Kind, int], str]:
    """What to call facts when saying why a chunk was found."""
    labels: dict[tuple[Kind, int], str] = {}
    for row, entity in entities.items():
        labels["entity", row] = f"“{entity.name}”"
    for row, relation in relations.items():
        labels["relation", row] = f"“{relation.source} — {relation.predicate} → {relation.target}”"
    return labels
