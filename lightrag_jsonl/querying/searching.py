"""Searches the index for one question, within one snapshot: from seeds to plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lightrag_jsonl.options import QueryParam
from lightrag_jsonl.querying.edges import CANDIDATES
from lightrag_jsonl.querying.expansion import expand
from lightrag_jsonl.querying.fusion import fuse
from lightrag_jsonl.querying.ground import WholeGround, subgraph_ground
from lightrag_jsonl.querying.hits import NO_HITS, Hits, Ids, Probe, Scope, Seeds, Subgraph
from lightrag_jsonl.querying.loading import entity_namer, find_scope, load_chunks, load_facts
from lightrag_jsonl.querying.recipes import Recipe
from lightrag_jsonl.querying.seeds import find_seeds
from lightrag_jsonl.querying.selection import walk_over
from lightrag_jsonl.sorting import among
from lightrag_jsonl.storage import documents
from lightrag_jsonl.storage.snapshot import Snapshot
from lightrag_jsonl.types import Chunk, Entity, Relation

AROUND = 2  # times `top_k`: the entities and relations that the walk starts around
WORD_COUNTS = 0.1  # weight of vectors that only count words, where BM25 has 1


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found, best first.

    `direct` holds the ids of chunks found by the question's text, if the mode searches those.
    `documents` maps document ids to titles.
    """

    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    direct: frozenset[str] = frozenset()
    documents: Mapping[str, str] = field(default_factory=dict)


def find(
    snapshot: Snapshot,
    probe: Probe,
    recipe: Recipe,
    param: QueryParam,
    *,
    whole: WholeGround,
    wide: bool = False,
    chunk_limit: int | None = None,
) -> Findings:
    """Search what the mode's recipe says.

    With `wide` more relations than `top_k` are returned, and with `chunk_limit` more chunks than
    `chunk_top_k`, for a later selection.
    """
    chunk_limit = param.chunk_top_k if chunk_limit is None else chunk_limit
    scope = find_scope(snapshot, param.where)
    seeds = find_seeds(
        snapshot,
        probe,
        recipe,
        scope=scope,
        top_k=param.top_k,
        chunk_limit=chunk_limit,
        lexical=param.lexical,
    )
    if not recipe.facts:
        hits = _fused_texts(seeds, probe, param)[:chunk_limit]
        return _findings(snapshot, Subgraph(), hits, hits.ids, scope)
    subgraph = expand(
        snapshot,
        seeds,
        probe,
        scope=scope,
        ranking=param.ranking,
        fusion=param.fusion,
        limit=(CANDIDATES if wide else AROUND) * param.top_k,
    )
    direct = seeds.chunk_rows if recipe.chunks else NO_HITS.ids
    if recipe.walk:
        ground = whole.at(snapshot)
    else:
        ground = subgraph_ground(snapshot, subgraph, seeds, direct=recipe.chunks, scope=scope)
    walked = walk_over(
        snapshot,
        ground,
        seeds,
        probe,
        scope=scope,
        names_of=entity_namer(snapshot, scope),
        entity_limit=param.top_k if recipe.walk else 0,
        chunk_limit=chunk_limit,
    )
    shown = Subgraph(
        walked.entities if len(walked.entities) else subgraph.entities[: param.top_k],
        subgraph.relations if wide else subgraph.relations[: param.top_k],
    )
    return _findings(snapshot, shown, walked.chunks, direct, scope)


def load_sources(snapshot: Snapshot, relations: Sequence[Relation]) -> tuple[Chunk, ...]:
    """The chunks that relations were read from, without repetitions, in the order of the relations."""
    names = dict.fromkeys(name for relation in relations for name in relation.chunk_ids)
    found = documents.chunks_by_id(snapshot.connection, names)
    return tuple(found[name] for name in names if name in found)


def _fused_texts(seeds: Seeds, probe: Probe, param: QueryParam) -> Hits:
    """The chunks found by vectors and by words, fused."""
    weights = [WORD_COUNTS if probe.by_words else 1.0, 1.0]
    return fuse([seeds.dense, seeds.lexical], how=param.fusion, weights=weights)


def _findings(
    snapshot: Snapshot,
    shown: Subgraph,
    hits: Hits,
    direct: Ids,
    scope: Scope | None,
) -> Findings:
    """The hits as plain values, which remain valid after the snapshot."""
    entities, relations = load_facts(snapshot, shown, scope)
    chunks = load_chunks(snapshot, hits)
    by_text = among(hits.ids, np.sort(direct))
    return Findings(
        entities,
        relations,
        chunks,
        frozenset(chunk.id for chunk, found in zip(chunks, by_text, strict=True) if found),
        snapshot.labels(chunk.document_id for chunk in chunks),
    )
