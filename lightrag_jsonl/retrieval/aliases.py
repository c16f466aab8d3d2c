"""Aliases of entities, as stated in the visible documents."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import TypeAlias

import numpy as np

from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.retrieval.hits import column
from lightrag_jsonl.retrieval.task import SearchTask
from lightrag_jsonl.storage.vector_index import Floats, Ids

AliasClaims: TypeAlias = Sequence[tuple[int, str]]  # an entity's row and the key of an alias


def entities_called(task: SearchTask, keys: Collection[str]) -> dict[str, int]:
    """For each key that is an alias, the entity that states it; of several, the best connected."""
    rows_by_key: dict[str, list[int]] = defaultdict(list)
    for row, key in _visible_claims(task, task.snapshot.alias_claims(keys=keys)):
        rows_by_key[key].append(row)
    degrees = task.snapshot.graph.degrees
    return {key: rows[degrees(column(rows)).argmax()] for key, rows in rows_by_key.items()}


def alias_pairs(task: SearchTask, entities: Ids) -> tuple[Ids, Floats]:
    """Pairs of entities, one of each pair in `entities`, where one has the name of the other as an
    alias, shape (n, 2); and the certainty of each pair: 1 over the number of entities with the alias.
    """
    claims = _visible_claims(task, task.snapshot.alias_claims(entities=entities.tolist()))
    rows_by_key = task.snapshot.entity_ids({key for _, key in claims})
    claim_counts = Counter(key for _, key in task.snapshot.alias_claims(keys=rows_by_key))
    ranked_pairs = sorted(
        (min(row, rows_by_key[key]), max(row, rows_by_key[key]), 1 / claim_counts[key])
        for row, key in claims
        if key in rows_by_key
    )
    certainties = {(low, high): certainty for low, high, certainty in ranked_pairs if low < high}
    pairs = np.array([*certainties], np.int64).reshape(-1, 2)
    visible = task.inside("entity", pairs.ravel()).reshape(-1, 2).all(axis=1)
    return pairs[visible], np.array([*certainties.values()], np.float64)[visible]


def _visible_claims(task: SearchTask, claims: AliasClaims) -> AliasClaims:
    """The claims of chunks that the question's filter lets through."""
    if task.filtered is None or not claims:
        return claims
    chunks = set(task.filtered["chunk"].tolist())
    mentions = task.snapshot.entity_mentions(entities={row for row, _ in claims})
    visible = {
        (mention_row.owner, name_key(alias))
        for mention_row in mentions
        if mention_row.chunk in chunks
        for alias in mention_row.mention.aliases
    }
    return [claim for claim in claims if claim in visible]
