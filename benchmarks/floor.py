"""The least work that the task takes: python -m benchmarks.floor --sizes 200 1000

An index that only parses records, counts tokens, writes rows, terms and vectors, and
searches these: no merging, no law, no trace, no budget. What a library needs more is the price of what it
promises. Prints one JSON object with the figures of both, and ours divided by those of the floor.
"""

import argparse
import json
import sqlite3
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from benchmarks.instant.material import (
    DIM,
    THEME,
    Asked,
    Material,
    Paper,
    Replies,
    WordVectors,
    write,
)
from benchmarks.instant.worker import run_part
from lightrag_jsonl.core.tokens import default_tokenizer

SCHEMA = """
CREATE TABLE IF NOT EXISTS chunk (id INTEGER PRIMARY KEY, key TEXT, text TEXT, tokens INTEGER);
CREATE TABLE IF NOT EXISTS entity (id INTEGER PRIMARY KEY, key TEXT, text TEXT);
CREATE TABLE IF NOT EXISTS relation (id INTEGER PRIMARY KEY, key TEXT, text TEXT);
CREATE TABLE IF NOT EXISTS mention (id INTEGER PRIMARY KEY, chunk INTEGER, name TEXT, text TEXT);
CREATE TABLE IF NOT EXISTS vector (kind TEXT, id INTEGER, data BLOB, PRIMARY KEY (kind, id));
CREATE VIRTUAL TABLE IF NOT EXISTS terms USING fts5 (text, content = '');
"""
KINDS = ("chunk", "entity", "relation")
GROUP = 128  # chunks that are committed together
NEAREST = 60  # rows of each kind
SHOWN = 15  # rows of each kind in a context
PARTS = ("build", "cold", "ask")
RATIOS = ("cpu_ms_per_chunk", "bytes_written", "bytes_on_disk", "full_mode_cpu_ms")

Figures = dict[str, Any]


class Floor:
    """An index of rows, terms and vectors, without anything that a library promises."""

    modes: Sequence[str] = ("mix",)

    def __init__(self, folder: Path, material: Material) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(folder / "floor.sqlite")
        self._connection.executescript(SCHEMA)
        self._replies = Replies(material, lambda rows: "\n".join(map(json.dumps, rows)))
        self._vectors = WordVectors(material.clock)
        self._tokenizer = default_tokenizer()
        self._ids: dict[str, dict[str, int]] = {
            kind: dict(self._connection.execute(f"SELECT key, id FROM {kind}")) for kind in KINDS
        }
        self._indexes: dict[str, Any] = {}

    def insert(self, papers: Iterable[Paper]) -> None:
        pages = [page for paper in papers for page in paper.pages]
        for start in range(0, len(pages), GROUP):
            self._insert_pages(pages[start : start + GROUP])
        self._indexes.clear()

    def delete(self, paper_id: str) -> None:
        raise RuntimeError("the floor has no deletion")

    def pieces(self, asked: Asked, mode: str) -> list[str]:
        raise RuntimeError("the floor is not asked what it finds")

    def context(self, asked: Asked, mode: str) -> int:
        texts = [asked.text, *asked.names, THEME]
        queries = self._vectors.embed(texts)
        names = len(asked.names)
        queries_by_kind = {
            "chunk": queries[:1],
            "entity": queries[1 : 1 + names],
            "relation": queries[[0, -1]],
        }
        ids = {kind: self._nearest(kind, queries_by_kind[kind]) for kind in KINDS}
        words = " OR ".join(f'"{word}"' for word in asked.text.split() if word.isalnum())
        hits = self._connection.execute(
            "SELECT rowid FROM terms WHERE terms MATCH ? ORDER BY rank LIMIT ?", (words, NEAREST)
        )
        by_turns = zip(ids["chunk"], [id for (id,) in hits], strict=False)
        ids["chunk"] = [id for both in by_turns for id in both]
        return len("\n".join(text for kind in KINDS for text in self._texts(kind, ids[kind])))

    def counts(self) -> tuple[int, int]:
        entities, relations = (
            self._connection.execute(f"SELECT count(*) FROM {kind}").fetchone()[0]
            for kind in KINDS[1:]
        )
        return entities, relations

    def close(self) -> None:
        self._connection.close()

    # ── inserting ───────────────────────────────────────────────────────────────

    def _insert_pages(self, pages: Sequence[str]) -> None:
        new_texts: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
        mentions: list[tuple[int, str, str]] = []
        for page in pages:
            key = page[:60]
            chunk = self._id("chunk", key)
            new_texts["chunk"][key] = page
            reply = self._replies.about(page) or ""
            for record in map(json.loads, reply.split("\n")):
                self._add_record(record, new_texts)
                mentions.append((chunk, record.get("name", ""), record["description"]))
        self._write(new_texts, mentions)

    def _add_record(self, record: Mapping[str, Any], new_texts: dict[str, dict[str, str]]) -> None:
        if record["type"] == "entity":
            kind = "entity"
            key = record["name"].casefold()
            text = f"{record['name']}\n{record['description']}"
        else:
            kind = "relation"
            key = "\n".join(sorted((record["source"].casefold(), record["target"].casefold())))
            text = f"{record['source']} — {record['target']}: {record['description']}"
        if key not in self._ids[kind]:
            self._id(kind, key)
            new_texts[kind][key] = text

    def _id(self, kind: str, key: str) -> int:
        ids = self._ids[kind]
        return ids.setdefault(key, len(ids) + 1)

    def _write(
        self, new_texts: Mapping[str, Mapping[str, str]], mentions: Sequence[tuple[int, str, str]]
    ) -> None:
        execute = self._connection.executemany
        execute("INSERT INTO mention (chunk, name, text) VALUES (?, ?, ?)", mentions)
        for kind, texts in new_texts.items():
            rows = [(self._ids[kind][key], key, text) for key, text in texts.items()]
            execute(f"INSERT INTO {kind} (id, key, text) VALUES (?, ?, ?)", rows)
            vectors = self._vectors.embed(list(texts.values())).astype("<f2")
            vector_rows = [
                (kind, id, vector.tobytes()) for (id, *_), vector in zip(rows, vectors, strict=True)
            ]
            execute("INSERT INTO vector VALUES (?, ?, ?)", vector_rows)
            if kind == "chunk":
                counts = [(self._tokenizer.count(text), id) for id, _, text in rows]
                execute("UPDATE chunk SET tokens = ? WHERE id = ?", counts)
                terms = [(id, text) for id, _, text in rows]
                execute("INSERT INTO terms (rowid, text) VALUES (?, ?)", terms)
        self._connection.commit()

    # ── searching ───────────────────────────────────────────────────────────────

    def _nearest(self, kind: str, queries: np.ndarray) -> list[int]:
        """The ids of the nearest rows; ids count from 1 in the order of the vectors."""
        index = self._index(kind)
        faiss.omp_set_num_threads(1)
        _, positions = index.search(np.ascontiguousarray(queries), min(NEAREST, index.ntotal))
        return [int(position) + 1 for position in positions.T.ravel()]

    def _index(self, kind: str) -> Any:
        if kind not in self._indexes:
            statement = "SELECT data FROM vector WHERE kind = ? ORDER BY id"
            data = b"".join(row for (row,) in self._connection.execute(statement, (kind,)))
            self._indexes[kind] = faiss.IndexScalarQuantizer(
                DIM, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
            )
            self._indexes[kind].add_sa_codes(np.frombuffer(data, np.uint8).reshape(-1, 2 * DIM))
        return self._indexes[kind]

    def _texts(self, kind: str, ids: Sequence[int]) -> list[str]:
        distinct_ids = list(dict.fromkeys(ids))[:SHOWN]
        marks = ", ".join("?" * len(distinct_ids))
        statement = f"SELECT text FROM {kind} WHERE id IN ({marks})"
        return [text for (text,) in self._connection.execute(statement, distinct_ids)]


def main() -> None:
    """Measure the floor and this library, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=(200, 1_000), help="chunks")
    arguments = parser.parse_args()
    sizes = {str(size): _measured(size) for size in arguments.sizes}
    print(json.dumps({"benchmark": "floor", "sizes": sizes}, indent=2))


def _measured(size: int) -> Figures:
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as scratch:
        corpus = Path(scratch) / "corpus.json"
        write(corpus, size)
        for name in ("floor", "ours"):
            figures[name] = {}
            for part in PARTS:
                figures[name] |= run_part(part, Path(scratch) / name, corpus, system=name)
    ratios = {key: _ratio(figures["ours"][key], figures["floor"][key]) for key in RATIOS}
    return figures | {"times_floor": ratios}


def _ratio(figure: float, floor_figure: float) -> float | None:
    """The first over the second; None if the second is 0, as bytes written to a folder in memory are."""
    return round(figure / floor_figure, 2) if floor_figure else None


if __name__ == "__main__":
    main()
