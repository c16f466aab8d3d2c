"""Queries while documents come, change and go: python -m benchmarks.contention [--seconds 60]

16 threads ask questions, half of them through the object that inserts, half through another object
on the same folder, as another process would. One thread inserts, replaces and deletes without a
pause. A result is torn if it shows part of a document, or two versions of it. Prints one JSON
object.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lightrag_jsonl import Document, IndexOptions, LightRAG, QueryParam
from lightrag_jsonl.adapters.offline import HashEmbedder
from lightrag_jsonl.indexing.checking import fold_problems
from lightrag_jsonl.storage import checks
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.derived import derived_problems
from lightrag_jsonl.storage.snapshot import SnapshotKeeper
from lightrag_jsonl.testing import Request, ScriptedLLM
from lightrag_jsonl.types import Context

THREADS = 16
DOCUMENTS = 24
STEADY = 8  # so many of them, the first ones, are never changed after the beginning
PARTS = 3  # chunks in a document, with two people in each
WHOLE = PARTS * 2  # people in a document: relations of its hub
SECONDS_PER_CALL = 0.002
WIDE = QueryParam(
    mode="mix",
    top_k=400,  # more than there are, so that whatever is missing was not visible
    chunk_top_k=100,
    max_entity_tokens=50_000,
    max_relation_tokens=50_000,
    max_total_tokens=200_000,
)
NAME = re.compile(r"\b(?:Hub|Ann|Bob)\d+[a-z]?(?:v\d+p\d+)?\b")
PERSON = re.compile(r"(?:Ann|Bob)(\d+)v(\d+)p(\d+)")


@dataclass
class Counts:
    """What the threads did and saw; `seconds` are the times of the queries."""

    queries: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    seen: int = 0  # how often a result had a document as a whole
    versions: set[tuple[int, int]] = field(default_factory=set)


def main() -> None:
    """Run the threads and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        counts = _run(Path(folder), seconds)
        unsound = _problems(Path(folder))
    took = np.asarray(counts.seconds or [0.0])
    result = {
        "benchmark": "contention",
        "seconds": seconds,
        "threads": THREADS,
        "queries": sum(counts.queries.values()),
        "by_kind": dict(sorted(counts.queries.items())),
        "writes": dict(sorted(counts.writes.items())),
        "versions_seen": len(counts.versions),
        "documents_seen_whole": counts.seen,
        "errors": len(counts.errors),
        "torn": len(counts.torn),
        "problems_afterwards": unsound,
        "milliseconds": {
            "median": round(float(np.median(took)) * 1e3, 1),
            "p99": round(float(np.quantile(took, 0.99)) * 1e3, 1),
            "most": round(float(took.max()) * 1e3, 1),
        },
        "examples": [*counts.errors[:3], *counts.torn[:3]],
    }
    print(json.dumps(result))


def _run(folder: Path, seconds: float) -> Counts:
    counts = Counts()
    with _open(folder) as rag, _open(folder) as other:
        rag.insert(document(number, 0) for number in range(DOCUMENTS))
        end = time.monotonic() + seconds
        threads = [threading.Thread(target=_write, args=(rag, end, counts))]
        threads += [
            threading.Thread(target=_ask, args=(rag if n % 2 else other, n, end, counts))
            for n in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return counts


def _open(folder: Path) -> LightRAG:
    llm = ScriptedLLM(answer, seconds=SECONDS_PER_CALL)
    options = IndexOptions(max_gleanings=0)
    return LightRAG(folder, llm=llm, embedder=HashEmbedder(dim=64), options=options)


# ── what is written ─────────────────────────────────────────────────────────────


def document(number: int, version: int) -> Document:
    """A document about a hub that knows two people in each part, other people in each version."""
    pages = tuple(
        f"Hub{number} knows Ann{number}v{version}p{part} and Bob{number}v{version}p{part}."
        for part in range(PARTS)
    )
    return Document("", id=f"d{number}", title=f"Hub{number}", pages=pages)


def answer(request: Request) -> str:
    """A model's answer: a text's people and whom the hub knows; a question's keywords."""
    text = next(m.content for m in request.messages if m.role == "user").partition("Text:\n")[2]
    names = list(dict.fromkeys(NAME.findall(text)))
    if not names:
        asked = NAME.findall(request.text)[:1]
        return json.dumps({"high_level_keywords": asked, "low_level_keywords": asked})
    records: list[dict[str, object]] = [
        {"type": "entity", "name": n, "entity_type": "person", "description": f"{n} is one."}
        for n in names
    ]
    records += [
        {
            "type": "relationship",
            "source": names[0],
            "target": name,
            "keywords": ["knows"],
            "description": f"{names[0]} knows {name}.",
            "strength": 5,
        }
        for name in names[1:]
    ]
    return "\n".join(json.dumps(record) for record in records)


def _write(rag: LightRAG, end: float, counts: Counts) -> None:
    chance = random.Random(1)
    versions = dict.fromkeys(range(DOCUMENTS), 0)
    while time.monotonic() < end:
        some = chance.sample(range(STEADY, DOCUMENTS), chance.randint(1, 6))
        try:
            if chance.random() < 0.3:
                rag.delete(*(f"d{number}" for number in some))
                counts.writes["deleted"] += len(some)
            for number in some:
                versions[number] += 1
            rag.insert(document(number, versions[number]) for number in some)
            counts.writes["inserted"] += len(some)
        except Exception as error:  # noqa: BLE001 - errors are part of the result
            counts.errors.append(f"write: {error!r}")


# ── what is asked ───────────────────────────────────────────────────────────────


def _ask(rag: LightRAG, seed: int, end: float, counts: Counts) -> None:
    chance = random.Random(seed)
    kinds: list[tuple[str, Callable[[LightRAG, int, Counts], None]]] = [
        ("retrieve", _retrieve),
        ("query", _query),
        ("stream", _stream),
        ("graph", _graph),
    ]
    while time.monotonic() < end:
        ((name, ask),) = chance.choices(kinds, weights=(6, 3, 1, 1))
        started = time.perf_counter()
        try:
            ask(rag, chance.randrange(DOCUMENTS), counts)
        except Exception as error:  # noqa: BLE001 - errors are part of the result
            counts.errors.append(f"{name}: {error!r}")
        counts.seconds.append(time.perf_counter() - started)
        counts.queries[name] += 1


def _retrieve(rag: LightRAG, number: int, counts: Counts) -> None:
    _check_context(rag.retrieve(f"Whom does Hub{number} know?", WIDE), number, counts)


def _query(rag: LightRAG, number: int, counts: Counts) -> None:
    _check_context(rag.query(f"Whom does Hub{number} know?", WIDE).context, number, counts)


def _stream(rag: LightRAG, number: int, counts: Counts) -> None:
    pieces = rag.stream(f"Whom does Hub{number} know?", WIDE)
    for _ in pieces:
        pass
    _check_context(pieces.answer.context, number, counts)


def _graph(rag: LightRAG, _: int, counts: Counts) -> None:
    graph = rag.graph
    for number in range(DOCUMENTS):
        hub = f"Hub{number}"
        _check(f"graph, {hub}", number, [list(graph)], counts)
        if hub in graph and graph.degree(hub) != WHOLE:
            counts.torn.append(f"graph: {hub} has {graph.degree(hub)} relations")


def _check_context(context: Context, number: int, counts: Counts) -> None:
    """Check the entities, relations and chunks of the document that was asked about."""
    hub = f"Hub{number}"
    ends = {
        end
        for r in context.relations
        if hub in (r.source, r.target)
        for end in (r.source, r.target)
    }
    chunks = [NAME.findall(chunk.text) for chunk in context.chunks]
    told = {name for names in chunks if hub in names for name in names}
    entities = {entity.name for entity in context.entities}
    _check(f"context of {hub}", number, [ends, told, entities], counts)
    nameless = {chunk.document_id for chunk in context.chunks} - context.documents.keys()
    if nameless:
        counts.torn.append(f"context of {hub}: chunks of {sorted(nameless)}")


def _check(where: str, number: int, views: Sequence[Iterable[str]], counts: Counts) -> None:
    """Check that each view has all the document's people, of the same version, or each has none."""
    people = [{name for name in view if _document_of(name) == number} for view in views]
    versions = {_version_of(name) for view in people for name in view}
    sizes = {len(view) for view in people}
    if sizes == {WHOLE} and len(versions) == 1:
        counts.seen += 1
        counts.versions.add((number, versions.pop()))
    elif sizes != {0} or number < STEADY:
        parts = [len(view) for view in people]
        counts.torn.append(f"{where}: {parts} of {WHOLE} people, versions {sorted(versions)}")


def _document_of(name: str) -> int | None:
    found = PERSON.fullmatch(name)
    return int(found[1]) if found else None


def _version_of(name: str) -> int:
    found = PERSON.fullmatch(name)
    return int(found[2]) if found else -1


def _problems(folder: Path) -> list[str]:
    """The invariants of the index that do not hold afterwards."""
    database = Database(folder)
    try:
        with database.reading() as connection:
            found = checks.problems(connection) + fold_problems(connection)
        with SnapshotKeeper(database).snapshot() as snapshot:
            return found + derived_problems(snapshot)
    finally:
        database.close()


if __name__ == "__main__":
    main()
