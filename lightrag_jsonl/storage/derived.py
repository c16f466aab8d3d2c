"""Checks that graph and vectors in memory agree with the database they were derived from."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lightrag_jsonl.storage.embeddings import load_vectors
from lightrag_jsonl.storage.rows import OWNERS, all_ids
from lightrag_jsonl.storage.settings import dimension
from lightrag_jsonl.storage.snapshot import Snapshot
from lightrag_jsonl.types import Kind

HALF = 2e-3  # tolerance of a component where vectors are kept as 16-bit floats or bytes


def derived_problems(snapshot: Snapshot) -> list[str]:
    """Differences between the graph and vectors in memory and the database, in words."""
    connection, graph = snapshot.connection, snapshot.graph
    found = []
    if graph.entity_ids() != all_ids(connection, "entity"):
        found.append("the graph in memory has other entities than the database")
    rows = connection.execute("SELECT id, low, high, weight FROM relations ORDER BY id").fetchall()
    if list(graph.relation_rows()) != rows:
        found.append("the graph in memory has other relations than the database")
    for kind in OWNERS:
        found += _vectors(snapshot, kind)
    return found


def _vectors(snapshot: Snapshot, kind: Kind) -> Iterator[str]:
    dim = dimension(snapshot.connection)
    index = snapshot.vectors[kind]
    if not dim:
        if len(index):
            yield f"the {kind} vectors in memory have no counterpart in the database"
        return
    ids, matrix = load_vectors(snapshot.connection, kind, dim)
    if sorted(index.ids.tolist()) != ids.tolist():
        yield f"the {kind} vectors in memory are of other rows than the database's"
    elif len(ids) and not np.allclose(index.vectors(ids), matrix, atol=HALF):
        yield f"the {kind} vectors in memory differ from the database's"
