"""Personalized PageRank on a walk graph, and the most probable path to each node."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from lightrag_jsonl.retrieval.filtering import entity_names
from lightrag_jsonl.retrieval.task import SearchTask, Seeds
from lightrag_jsonl.retrieval.walk_graph import START, WalkGraph
from lightrag_jsonl.storage.vector_index import Floats, Ids

# The probability of following an edge; else the walker starts again. `benchmarks.crossvalidation`
# chooses 0.7 among 0.6 to 0.8 in four of five folds; frozen questions: passages -12.5 without a walk.
DAMPING = 0.7
CHANGE_LIMIT = 3e-3  # the walk ends when the shares of all nodes together change by less

_EDGE_WORDS = ("mentioned with", "related to", "nearly the same as", "also called")  # by edge type

Path: TypeAlias = Sequence[tuple[int, int]]  # nodes, each with the type of the edge to it


def walk(graph: WalkGraph, starts: Floats, *, change_limit: float = CHANGE_LIMIT) -> Floats:
    """The share of time that a walker spends at each node.

    The walker starts anew as `starts` says, also from nodes without edges. The shares add up to 1;
    they are zeros if `starts` is.
    """
    shares = starts
    change = np.inf
    while change >= change_limit and starts.any():
        sent = graph.chances * shares.take(graph.senders)
        new_shares = np.bincount(graph.receivers, sent * DAMPING, len(shares)).astype(np.float64)
        new_shares += starts * (1 - new_shares.sum())
        change = float(np.abs(new_shares - shares).sum())
        shares = new_shares
    return shares


# ── why a node was reached ──────────────────────────────────────────────────────


def last_steps(graph: WalkGraph, starts: Floats) -> Ids:
    """The last step of the most probable path from a start to each node: the number of a step, or
    -1 if the path is the start itself, or there is no path.
    """
    with np.errstate(divide="ignore"):
        costs = -np.log(starts)
    steps = np.full(len(starts), -1)
    step_costs = -np.log(DAMPING * graph.chances)
    while True:
        path_costs = costs.take(graph.senders) + step_costs
        least_costs = costs.copy()
        np.minimum.at(least_costs, graph.receivers, path_costs)
        is_best = path_costs == least_costs.take(graph.receivers)
        is_better = is_best & (path_costs < costs.take(graph.receivers))
        if not is_better.any():
            return steps
        steps[graph.receivers[is_better]] = np.flatnonzero(is_better)
        costs = least_costs


def path_to(graph: WalkGraph, steps: Ids, node: int) -> Path:
    """The most probable path to a node, from its start on."""
    path = []
    while (step := int(steps[node])) >= 0:
        path.append((node, int(graph.edge_types[step])))
        node = int(graph.senders[step])
    return [(node, START), *reversed(path)]


def describe_paths(
    task: SearchTask, graph: WalkGraph, seeds: Seeds, paths: Sequence[Path]
) -> list[str]:
    """Paths in words: why each begins, then every node on the way and how it is reached."""
    rows = dict(enumerate(graph.entities.tolist()))
    ends = task.snapshot.graph.ends(seeds.nearest_relation.ids).ravel().tolist()
    passed = {rows[node] for path in paths for node, _ in path if node in rows}
    names = entity_names(task, {*passed, *ends})
    pair = " — ".join([names.get(end, "") for end in ends])
    beginnings = dict.fromkeys(ends, f"end of the relation nearest to the question: {pair}")
    beginnings |= {row: f"named in the question: {names.get(row, '')}" for row in seeds.named}

    def step_in_words(node: int, edge_type: int) -> str:
        label = "a passage"
        if node in rows:
            label = names.get(rows[node]) or "an entity"
        if edge_type == START:
            return f"{label} ({beginnings.get(rows.get(node, 0), 'near the question')})"
        return f"{_EDGE_WORDS[edge_type]} {label}"

    return [
        "; ".join([step_in_words(node, edge_type) for node, edge_type in path]) for path in paths
    ]
