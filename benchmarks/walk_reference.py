"""What each part of the walk contributes, measured on arrays without index or database.

python -m benchmarks.walk_reference --data musique-a hotpotqa-train
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.datasets import Dataset, data_argument, load
from benchmarks.hipporag_reference import Embed, Material, material, minilm, recall
from lightrag_jsonl.querying import walk
from lightrag_jsonl.querying.transitions import Floats, Ints
from lightrag_jsonl.querying.walk import Edges, WalkGraph
from lightrag_jsonl.text import search_terms

FOUND = 100  # chunks found by vectors, and as many by words


@dataclass(frozen=True, slots=True)
class Parts:
    """Which parts of the walk are used, and its damping."""

    names: bool = True
    relation: bool = True
    lexical: bool = True
    chunks: bool = True
    relations: bool = True
    synonyms: bool = True
    damping: float = walk.DAMPING


VARIANTS = {
    "walk": Parts(),
    "without the lexical lane": Parts(lexical=False),
    "without names": Parts(names=False),
    "without the question's relation": Parts(relation=False),
    "without near chunks": Parts(chunks=False),
    "without relation edges": Parts(relations=False),
    "without synonym edges": Parts(synonyms=False),
    "damping 0.5": Parts(damping=0.5),
    "damping 0.6": Parts(damping=0.6),
    "damping 0.8": Parts(damping=0.8),
}


def ranked(arrays: Material, words: Floats, embed: Embed, parts: Parts) -> list[Ints]:
    """The passages ranked for each question."""
    facts = np.unique(np.sort(arrays.facts, axis=1), axis=0)
    facts = facts[facts[:, 0] != facts[:, 1]]
    mentions = np.unique(arrays.mentions, axis=0)
    edges = Edges(mentions, facts, arrays.synonyms, arrays.similarities)
    if not parts.relations:
        edges = replace(edges, relations=edges.relations[:0])
    if not parts.synonyms:
        edges = replace(edges, synonyms=edges.synonyms[:0], similarities=edges.similarities[:0])
    graph = WalkGraph(len(arrays.keys), len(arrays.dataset.passages), edges)
    result = []
    for number in range(len(arrays.dataset.questions)):
        reset = _reset(graph, arrays, number, words[number], embed, parts)
        shares = graph.walk(reset, damping=parts.damping)[graph.entities :]
        result.append(np.argsort(-shares, kind="stable"))
    return result


def bm25(dataset: Dataset, *, k1: float = 1.2, b: float = 0.75) -> Floats:
    """The BM25 scores, shape (questions, passages)."""
    bags = [Counter(search_terms(passage.content)) for passage in dataset.passages]
    sizes = np.array([sum(bag.values()) for bag in bags])
    norm = k1 * (1 - b + b * sizes / sizes.mean())
    scores = np.zeros((len(dataset.questions), len(bags)))
    for row, question in zip(scores, dataset.questions, strict=True):
        for term in sorted(set(search_terms(question.text))):
            counts = np.array([bag[term] for bag in bags])
            with_term = int(np.count_nonzero(counts))
            rarity = math.log(1 + (len(bags) - with_term + 0.5) / (with_term + 0.5))
            row += rarity * counts * (k1 + 1) / (counts + norm)
    return scores


def _reset(
    graph: WalkGraph, arrays: Material, number: int, words: Floats, embed: Embed, parts: Parts
) -> Floats:
    seeds = []
    if parts.names:
        names = arrays.names[number]
        seeds += walk.name_seeds(graph, names, *arrays.nearest(names, embed))
    if parts.relation and len(arrays.triples):
        near = arrays.triples @ arrays.questions[number]
        best = int(near.argmax())
        low, high = arrays.facts[best].tolist()
        seeds += walk.relation_seeds(graph, (low, high), float(near[best]), "")
    if not parts.chunks:
        return walk.reset_vector(graph, seeds)
    dense = arrays.dense[number]
    found = np.argsort(-dense, kind="stable")[:FOUND]
    lexical = words if parts.lexical else np.zeros_like(words)
    if parts.lexical:
        best_words = np.argsort(-words, kind="stable")[:FOUND]
        found = np.union1d(found, best_words[words[best_words] > 0])
    return walk.reset_vector(graph, seeds, found, walk.relevance(dense[found], lexical[found]))


def main() -> None:
    """Print the recall of every variant."""
    parser = argparse.ArgumentParser(description=__doc__)
    data_argument(parser, "musique-a", "hotpotqa-train")
    folders = parser.parse_args().data
    report, embed = {}, minilm()
    for folder in folders:
        dataset = load(folder)
        arrays, words = material(dataset, embed), bm25(dataset)
        report[dataset.name] = {
            name: recall(dataset, ranked(arrays, words, embed, parts))
            for name, parts in VARIANTS.items()
        }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
