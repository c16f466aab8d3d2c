"""Imports a working directory of LightRAG or nano-graphrag without model calls."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from anyio import to_thread

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.text import clean_name, digest, name_key, sanitize
from lightrag_jsonl.core.types import UNKNOWN_TYPE, Document, Failure, Json, Record
from lightrag_jsonl.indexing.progress import ShowProgress
from lightrag_jsonl.rag import AsyncLightRAG
from lightrag_jsonl.storage.rows import PendingDocument
from lightrag_jsonl.storage.store import read
from lightrag_jsonl.storage.views import StoreView

if TYPE_CHECKING:
    import networkx as nx

GRAPH = "graph_chunk_entity_relation.graphml"
SEPARATOR = "<SEP>"  # between the parts of a description or of a list of chunks
QUOTES = "\"'“”"
NO_FILE = ("", "unknown_source", "no-file-path")
CUT = "\ufffd \t\r\n"  # ignored at a chunk's ends: from cutting inside a character, or stripping


@dataclass(frozen=True, slots=True)
class ForeignIndex:
    """What a working directory holds: texts and chunks by id, and the graph."""

    documents: Mapping[str, Record]
    chunks: Mapping[str, Record]
    graph: "nx.Graph"


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """The sizes of an index, as it was read or as it is stored."""

    documents: int = 0
    chunks: int = 0
    entities: int = 0
    relations: int = 0


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was read, what is stored here, and in words what has no exact counterpart here.

    Entities and relations that named no known chunk are stored in a document of their own.
    """

    documents: tuple[str, ...]
    read: ImportCounts
    stored: ImportCounts
    not_imported: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()


async def import_index(
    rag: AsyncLightRAG, folder: str | Path, *, progress: ShowProgress = None
) -> ImportReport:
    """Copy documents, chunks, entities and relations into an index, with new vectors.

    Raises `ConfigError` if the folder holds no such index.
    """
    index = await to_thread.run_sync(read_folder, Path(folder))
    conversion = _Conversion(index)
    pending = [one.pending(rag._seconds()) for one in conversion.targets if one.pieces]
    report = await rag._indexing.insert(pending, progress=progress, tolerant=True, summarize=False)
    ids = tuple(str(one.document.id) for one in pending)
    counts = len(index.documents), len(index.chunks), len(index.graph), index.graph.size()
    stored = await read(rag._store, lambda view: _stored(view, ids))
    not_imported = tuple(conversion.not_imported)
    return ImportReport(ids, ImportCounts(*counts), stored, not_imported, report.failures)


def _stored(view: StoreView, ids: Sequence[str]) -> ImportCounts:
    chunks = view.chunks(documents=ids)
    entities = {mention.owner for mention in view.entity_mentions(chunks=chunks)}
    relations = {mention.owner for mention in view.relation_mentions(chunks=chunks)}
    return ImportCounts(len(view.documents(ids)), len(chunks), len(entities), len(relations))


def read_folder(folder: Path) -> ForeignIndex:
    """Read a working directory; `ConfigError` if it is none, or a file in it is damaged."""
    import networkx as nx

    if not (folder / GRAPH).is_file():
        below = sorted(path.parent.name for path in folder.glob(f"*/{GRAPH}"))
        hint = f"; its folders {', '.join(below)} do: name one of them" if below else ""
        raise ConfigError(
            f"{folder} is not a working directory of LightRAG or nano-graphrag: no {GRAPH}{hint}"
        )
    try:
        graph = nx.Graph(nx.read_graphml(folder / GRAPH))
    except (nx.NetworkXException, ParseError, ValueError, LookupError) as error:
        raise ConfigError(f"{folder / GRAPH} is not GraphML ({error})") from error
    documents = _entries(folder / "kv_store_full_docs.json")
    return ForeignIndex(documents, _entries(folder / "kv_store_text_chunks.json"), graph)


def _entries(path: Path) -> dict[str, Record]:
    """The entries of a key-value file that have a text; none if there is no file."""
    try:
        value = json.loads(path.read_bytes()) if path.is_file() else {}
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: invalid JSON ({error})") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{path} is not a key-value store")
    return {
        id: entry
        for id, entry in value.items()
        if isinstance(entry, dict) and isinstance(entry.get("content"), str)
    }


@dataclass(slots=True)
class _Target:
    """A document here: its pages, and its chunks in order with their records."""

    id: str
    title: str | None = None
    source: str | None = None
    pages: list[str] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)

    def pending(self, created_at: float) -> PendingDocument:
        """The document, ready to be inserted."""
        id = self.id or "doc-" + digest(*self.pages)
        document = Document("", id, self.title, self.source, pages=tuple(self.pages))
        return PendingDocument(document, created_at, tuple(self.records), tuple(self.pieces))


class _Conversion:
    """The documents of a foreign index; descriptions and weights are distributed over their chunks."""

    def __init__(self, index: ForeignIndex) -> None:
        self.not_imported: list[str] = []
        self.targets: list[_Target] = []
        self._positions: dict[str, tuple[_Target, int]] = {}  # of chunks, by their foreign ids
        self._names: dict[str, str] = {}
        self._keys: set[str] = set()
        self._add_documents(index)
        self._without_source = _Target("", "imported without a source")
        self.targets.append(self._without_source)
        for name, data in index.graph.nodes(data=True):
            self._add_entity(str(name), data)
        for source, target, data in index.graph.edges(data=True):
            self._add_relation(str(source), str(target), data)

    def _add_documents(self, index: ForeignIndex) -> None:
        by_document: defaultdict[str, list[tuple[int, str, str]]] = defaultdict(list)
        for id, entry in index.chunks.items():
            order, text = entry.get("chunk_order_index"), sanitize(str(entry["content"]))
            if text.strip(CUT):
                number = order if isinstance(order, int) else 0
                by_document[str(entry.get("full_doc_id") or id)].append((number, id, text))
        for id in sorted(index.documents.keys() - by_document.keys()):
            self._skip("document", id, "it was not processed there: insert its text")
        for id, chunks in by_document.items():
            if id not in index.documents:
                self._skip("document", id, "its text is missing: its chunks became its pages")
            self._add_document(id, index.documents.get(id, {}), sorted(chunks))

    def _add_document(self, id: str, entry: Record, chunks: Sequence[tuple[int, str, str]]) -> None:
        """Add a document with each chunk where it occurs in the text, or else as a page."""
        text, path = sanitize(str(entry.get("content", ""))), str(entry.get("file_path") or "")
        source = None if path in NO_FILE else path
        title = source and source.replace("\\", "/").rsplit("/", 1)[-1]
        target = _Target(id, title, source, [text] if text.strip() else [])
        found, lost, position = [], [], 0
        for _, chunk, content in chunks:
            piece = content if text.find(content, position) >= 0 else content.strip(CUT)
            start = text.find(piece, position)
            if start < 0:
                lost.append((chunk, content))
            else:
                found.append((chunk, piece))
                position = start + 1
        target.pages += [content for _, content in lost]
        for number, (chunk, piece) in enumerate(found + lost):
            self._positions[chunk] = target, number
            target.pieces.append(piece)
        self.targets.append(target)

    def _add_entity(self, raw: str, data: Mapping[str, object]) -> None:
        cleaned = name = clean_name(raw)
        if not name:
            self._skip("entity", raw, "nothing is left of its name")
            return
        number = 1
        while name_key(name) in self._keys:
            number += 1
            name = f"{cleaned} ({number})"
        if number > 1:
            self._skip("entity", raw, f"it is {name!r} here: another entity has this name")
        self._keys.add(name_key(name))
        self._names[raw] = name
        kind = clean_name(_unquoted(str(data.get("entity_type") or ""))) or UNKNOWN_TYPE
        self._add({"type": "entity", "name": name, "entity_type": kind}, data, name)

    def _add_relation(self, raw_source: str, raw_target: str, data: Mapping[str, object]) -> None:
        source, target = self._names.get(raw_source), self._names.get(raw_target)
        if source is None or target is None or source == target:
            reason = "it joins an entity with itself" if source else "an end has no name"
            self._skip("relation", f"{raw_source} — {raw_target}", reason)
            return
        joined = SEPARATOR.join(_parts(data.get("keywords")))
        words: list[Json] = [*_parts(re.sub("[,，、;；]", SEPARATOR, joined))]
        record: Record = {"type": "relationship", "source": source, "target": target}
        record |= {"keywords": words, "strength": _weight(data.get("weight"))}
        self._add(record, data, f"{source} — {target}")

    def _add(self, record: Record, data: Mapping[str, object], label: str) -> None:
        """Add a record to each of its chunks, with the descriptions distributed over them."""
        descriptions = _parts(data.get("description")) or ("",)
        chunks = [id for id in _parts(data.get("source_id")) if id in self._positions]
        count = max(len(descriptions), len(chunks))
        weight = record.get("strength")
        if isinstance(weight, float):
            record = {**record, "strength": min(max(weight / count, 1.0), 10.0)}
        for number in range(count):
            text = descriptions[number] if number < len(descriptions) else ""
            if chunks:
                target, index = self._positions[chunks[number % len(chunks)]]
            else:
                target, index = self._without_source, len(self._without_source.pieces)
                target.pages.append(f"{label}: {text}")
                target.pieces.append(f"{label}: {text}")
            target.records.append({**record, "description": text, "chunk": index})

    def _skip(self, kind: str, name: str, reason: str) -> None:
        self.not_imported.append(f"{kind} {name}: {reason}")


def _parts(joined: object) -> tuple[str, ...]:
    """The distinct parts of a joined field, without the quotes that old versions wrote."""
    parts = (_unquoted(part) for part in str(joined or "").split(SEPARATOR))
    return tuple(dict.fromkeys(part for part in parts if part))


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] in QUOTES and text[-1] in QUOTES:
        return text[1:-1].strip()
    return text


def _weight(value: object) -> float:
    try:
        weight = float(str(value))
    except ValueError:
        return 1.0
    return weight if isfinite(weight) else 1.0
