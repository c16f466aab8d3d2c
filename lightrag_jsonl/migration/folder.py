"""Reads a working directory of LightRAG or nano-graphrag, gzipped or not, into plain values."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.indexfiles import check_not_of_index
from lightrag_jsonl.types import Json

if TYPE_CHECKING:
    import networkx as nx

SEPARATOR = "<SEP>"  # between the parts of a description or of a list of chunks
GRAPH = "graph_chunk_entity_relation.graphml"
QUOTES = "\"'“”"
MOST_BYTES = 1 << 32  # the most that a gzipped file may unpack to
NO_SOURCE = ("", "unknown_source", "no-file-path")


@dataclass(frozen=True, slots=True)
class ForeignDocument:
    """A whole text; `source` is the file it came from, if recorded."""

    id: str
    text: str
    source: str | None


@dataclass(frozen=True, slots=True)
class ForeignChunk:
    """A piece of a document; `order` is its number there, `answers` are ids of cached answers about it."""

    id: str
    document: str
    order: int
    text: str
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForeignNode:
    """An entity in the graph file, its joined fields separated."""

    name: str
    kind: str
    descriptions: tuple[str, ...]
    chunks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForeignEdge:
    """A relation in the graph file, its joined fields separated."""

    source: str
    target: str
    keywords: tuple[str, ...]
    descriptions: tuple[str, ...]
    chunks: tuple[str, ...]
    weight: float


@dataclass(frozen=True, slots=True)
class ForeignAnswer:
    """A model's cached answer; `chunk` is the chunk it is about, if the cache says that."""

    text: str
    chunk: str | None


@dataclass(frozen=True, slots=True)
class ForeignIndex:
    """Everything in a working directory that has a counterpart here; `reports` counts what has none."""

    documents: Mapping[str, ForeignDocument]
    chunks: Mapping[str, ForeignChunk]
    nodes: tuple[ForeignNode, ...]
    edges: tuple[ForeignEdge, ...]
    answers: tuple[ForeignAnswer, ...]
    reports: int


def read_folder(folder: Path) -> ForeignIndex:
    """Read a working directory; `ConfigError` if it is none, or a file in it is damaged."""
    graph = _graph(folder)
    entity_chunks = _store(folder, "kv_store_entity_chunks.json")
    relation_chunks = _store(folder, "kv_store_relation_chunks.json")
    chunks = dict(_chunks(_store(folder, "kv_store_text_chunks.json")))
    nodes = tuple(_node(str(name), data, entity_chunks) for name, data in graph.nodes(data=True))
    edges = tuple(
        _edge(str(source), str(target), data, relation_chunks)
        for source, target, data in graph.edges(data=True)
    )
    return ForeignIndex(
        documents=dict(_documents(_store(folder, "kv_store_full_docs.json"))),
        chunks=chunks,
        nodes=nodes,
        edges=edges,
        answers=tuple(_answers(_store(folder, "kv_store_llm_response_cache.json"), chunks)),
        reports=len(_store(folder, "kv_store_community_reports.json")),
    )


# ── files ───────────────────────────────────────────────────────────────────────


def _bytes(folder: Path, name: str) -> bytes | None:
    """A file's content, unpacked if it is gzipped; `None` if there is no such file."""
    plain, packed = folder / name, folder / f"{name}.gz"
    check_not_of_index(plain)
    check_not_of_index(packed)
    try:
        if plain.is_file():
            return plain.read_bytes()
        return _unpacked(packed) if packed.is_file() else None
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"cannot read {name} in {folder}: {error}") from error


def _unpacked(path: Path) -> bytes:
    """The content of a gzipped file; refused if it is too large, as a small file may unpack to anything."""
    with gzip.open(path) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ConfigError(f"{path} holds more than {MOST_BYTES:,} bytes; unpack it first")
    return data


def _store(folder: Path, name: str) -> dict[str, Json]:
    """A key-value file; empty if there is none."""
    data = _bytes(folder, name)
    if data is None:
        return {}
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{folder / name} is no JSON ({error})") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{folder / name} holds no key-value store")
    return value


def _graph(folder: Path) -> nx.Graph:
    import networkx as nx

    data = _bytes(folder, GRAPH)
    if data is None:
        raise ConfigError(_no_graph(folder))
    try:
        return nx.Graph(nx.read_graphml(io.BytesIO(data)))
    except (nx.NetworkXException, ParseError, ValueError, LookupError) as error:
        raise ConfigError(f"{folder / GRAPH} is no GraphML ({error})") from error


def _no_graph(folder: Path) -> str:
    below = sorted({path.parent.name for path in folder.glob(f"*/{GRAPH}*")})
    hint = f"; its folders {', '.join(below)} do: name one of them" if below else ""
    return f"{folder} is no working directory of LightRAG or nano-graphrag: no {GRAPH}{hint}"


# ── entries ─────────────────────────────────────────────────────────────────────


def _documents(store: Mapping[str, Json]) -> Iterator[tuple[str, ForeignDocument]]:
    for id, entry in store.items():
        if isinstance(entry, dict) and isinstance(entry.get("content"), str):
            source = entry.get("file_path")
            known = source if isinstance(source, str) and source not in NO_SOURCE else None
            yield id, ForeignDocument(id, str(entry["content"]), known)


def _chunks(store: Mapping[str, Json]) -> Iterator[tuple[str, ForeignChunk]]:
    for id, entry in store.items():
        if isinstance(entry, dict) and isinstance(entry.get("content"), str):
            order, answers = entry.get("chunk_order_index"), entry.get("llm_cache_list")
            yield (
                id,
                ForeignChunk(
                    id,
                    str(entry.get("full_doc_id") or id),
                    order if isinstance(order, int) else 0,
                    str(entry["content"]),
                    tuple(map(str, answers)) if isinstance(answers, list) else (),
                ),
            )


def _node(name: str, data: Mapping[str, object], known: Mapping[str, Json]) -> ForeignNode:
    return ForeignNode(
        name,
        unquoted(str(data.get("entity_type") or "")),
        _parts(data.get("description")),
        _with_listed(_parts(data.get("source_id")), known.get(name)),
    )


def _edge(
    source: str, target: str, data: Mapping[str, object], known: Mapping[str, Json]
) -> ForeignEdge:
    listed = known.get(f"{source}{SEPARATOR}{target}") or known.get(f"{target}{SEPARATOR}{source}")
    return ForeignEdge(
        source,
        target,
        _parts(data.get("keywords")),
        _parts(data.get("description")),
        _with_listed(_parts(data.get("source_id")), listed),
        _weight(data.get("weight")),
    )


def _with_listed(chunks: tuple[str, ...], listed: Json) -> tuple[str, ...]:
    """The chunks of an entry in the graph, with those of the longer list in newer versions."""
    more = listed.get("chunk_ids") if isinstance(listed, dict) else None
    return tuple(dict.fromkeys([*chunks, *map(str, more if isinstance(more, list) else ())]))


def _parts(joined: object) -> tuple[str, ...]:
    """The distinct parts of a joined field, without the quotes that old versions wrote."""
    parts = (unquoted(part) for part in str(joined or "").split(SEPARATOR))
    return tuple(dict.fromkeys(part for part in parts if part))


def unquoted(text: str) -> str:
    """The text without outer white space, and without one pair of quotes around it."""
    text = text.strip()
    if len(text) > 1 and text[0] in QUOTES and text[-1] in QUOTES:
        return text[1:-1].strip()
    return text


def _weight(value: object) -> float:
    try:
        weight = float(str(value))
    except ValueError:
        return 1.0
    return weight if weight == weight else 1.0


def _answers(
    store: Mapping[str, Json], chunks: Mapping[str, ForeignChunk]
) -> Iterator[ForeignAnswer]:
    """The cached answers: from one store, or (before version 1.4) from a store for each query mode."""
    about = {key: chunk.id for chunk in chunks.values() for key in chunk.answers}
    for key, entry in _flat(store):
        answer, chunk = entry.get("return"), entry.get("chunk_id")
        if isinstance(answer, str):
            known = chunk if isinstance(chunk, str) and chunk in chunks else about.get(key)
            yield ForeignAnswer(answer, known)


def _flat(store: Mapping[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
    """The entries of a store, and of stores nested in it."""
    for key, entry in store.items():
        if isinstance(entry, dict):
            yield key, entry
            inner = entry.items() if entry.get("return") is None else ()
            yield from ((name, one) for name, one in inner if isinstance(one, dict))
