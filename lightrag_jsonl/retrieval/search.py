"""Searches the index for one question, within one snapshot: from seeds to plain values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from lightrag_jsonl.core.types import Chunk, Context, Entity, Relation
from lightrag_jsonl.retrieval.expansion import expand
from lightrag_jsonl.retrieval.filtering import filtered_degrees, filtered_facts, find_filter
from lightrag_jsonl.retrieval.fusion import NO_HITS, Hits, SearchTask, Subgraph, among, column, fuse
from lightrag_jsonl.retrieval.pagerank import walk_around
from lightrag_jsonl.retrieval.seeds import find_seeds
from lightrag_jsonl.storage.store import Reader
from lightrag_jsonl.storage.vector_index import Ids

AROUND = 2  # times `top_k`: the entities and relations that the walk starts around
EDGES_TO_CHOOSE_FROM = 3  # times `top_k`: the relations for a later selection
WORD_COUNTS = 0.1  # weight of vectors that only count words, where BM25 has 1

Direct: TypeAlias = frozenset[str]  # ids of chunks found by the question's text


def search(task: SearchTask, context: Context) -> tuple[Context, Direct]:
    """The context with everything that the mode finds, best first, and without a prompt; and which
    chunks the question's text found, if the mode searches those.

    Unless relations are selected by score, more of them than `top_k` are found, to choose from.
    """
    mode, param = task.mode, task.param
    task = task._replace(filtered=find_filter(task.snapshot, param.where))
    seeds = find_seeds(task)
    if not mode.graph:
        weights = [WORD_COUNTS if task.query.lexical else 1.0, 1.0]
        lists = [seeds.dense, seeds.lexical]
        chunks = fuse(lists, param.fusion, weights=weights, limit=task.chunk_limit)
        return _loaded(task, context, Subgraph(), chunks, seeds.chunks)
    choose = param.selection != "score"
    limit = (EDGES_TO_CHOOSE_FROM if choose else AROUND) * param.top_k
    subgraph = expand(task, seeds, limit)
    entities, chunks = walk_around(task, seeds, subgraph, lambda rows: _names(task, rows))
    shown = Subgraph(
        entities if len(entities) else subgraph.entities[: param.top_k],
        subgraph.relations if choose else subgraph.relations[: param.top_k],
    )
    by_text = seeds.chunks if mode.chunks else NO_HITS.ids
    return _loaded(task, context, shown, chunks, by_text)


def with_sources(
    reader: Reader, found: Context, direct: Direct, relations: Sequence[Relation], limit: int
) -> Context:
    """What goes with the relations that a model chose (specification 2, section 1).

    These are their chunks that were found, the chunks found by text that state none of the
    relations to choose from (the selection says nothing about these), and then their other chunks.
    Entities are left out, since their descriptions may say what was not chosen.
    """
    chosen = dict.fromkeys([id for relation in relations for id in relation.chunk_ids])
    judged = {id for relation in found.relations for id in relation.chunk_ids}
    wanted = chosen.keys() | (direct - judged)
    kept = [chunk for chunk in found.chunks if chunk.id in wanted]
    others = reader.chunks_by_id(chosen.keys() - {chunk.id for chunk in kept})
    chunks = (*kept, *(others[id] for id in chosen if id in others))[:limit]
    return replace(found, entities=(), chunks=chunks, documents=_labels(reader, chunks))


# ── rows to values ──────────────────────────────────────────────────────────────


def _loaded(
    task: SearchTask, context: Context, shown: Subgraph, hits: Hits, by_text: Ids
) -> tuple[Context, Direct]:
    """What was found as plain values, with scores and reasons; these are valid after the snapshot."""
    entities, relations = _facts(task, shown.entities.ids, shown.relations.ids)
    if task.filtered is None:
        degrees = task.snapshot.graph.degrees(shown.entities.ids)
    else:
        degrees = filtered_degrees(task.snapshot, shown.entities.ids, task.filtered)
    ranked = zip(shown.entities.rows(), degrees.tolist(), strict=True)
    stored = task.snapshot.chunks(hits.ids.tolist())
    direct = [stored[row].id for row in hits.ids[among(hits.ids, by_text)].tolist()]
    context = replace(
        context,
        entities=tuple(
            [replace(entities[r], degree=d, score=s, why=why) for (r, s, why), d in ranked]
        ),
        relations=tuple(
            [replace(relations[r], score=s, why=why) for r, s, why in shown.relations.rows()]
        ),
        chunks=tuple([replace(stored[r], score=s, why=why) for r, s, why in hits.rows()]),
        documents=_labels(task.snapshot, stored.values()),
    )
    return context, frozenset(direct)


def _facts(
    task: SearchTask, entities: Ids, relations: Ids
) -> tuple[dict[int, Entity], dict[int, Relation]]:
    """Entities and relations by row id, under a filter as what it lets through describes them."""
    snapshot = task.snapshot
    if task.filtered is not None:
        return filtered_facts(snapshot, entities, relations, task.filtered)
    return snapshot.entities(entities.tolist()), snapshot.relations(relations.tolist())


def _names(task: SearchTask, rows: Collection[int]) -> dict[int, str]:
    """The names of entities, under a filter as what it lets through spells them."""
    if task.filtered is None:
        entities = task.snapshot.entities(rows, chunk_limit=0)
    else:
        entities, _ = _facts(task, column(sorted(rows)), NO_HITS.ids)
    return {row: entity.name for row, entity in entities.items()}


def _labels(reader: Reader, chunks: Iterable[Chunk]) -> dict[str, str]:
    """What readers know the documents of chunks by: title, or else source, or else id."""
    documents = reader.documents({chunk.document_id for chunk in chunks})
    return {one.id: one.title or one.source or one.id for one in documents}
