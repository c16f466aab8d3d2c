"""Imports a working directory of LightRAG or nano-graphrag without asking a model."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from anyio import to_thread

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.text import clean_name, digest, name_key, sanitize
from lightrag_jsonl.core.types import UNKNOWN_TYPE, Document, Failure, Json, Record
from lightrag_jsonl.indexing.progress import ProgressCallback
from lightrag_jsonl.storage.rows import PendingDocument
from lightrag_jsonl.storage.store import Reader, read

if TYPE_CHECKING:
    import networkx as nx

    from lightrag_jsonl.rag import AsyncLightRAG

SEPARATOR = "<SEP>"  # between the parts of a description or of a list of chunks
GRAPH = "graph_chunk_entity_relation.graphml"
QUOTES = "\"'“”"
MAX_BYTES = 1 << 32  # that a gzipped file may unpack to
NO_FILE = ("", "unknown_source", "no-file-path")
NO_SOURCE_TITLE = "imported without a source"
CUT = "\ufffd \t\r\n"  # ignored at a chunk's ends: from cutting inside a character, or stripping


@dataclass(frozen=True, slots=True)
class ForeignIndex:
    """What a working directory holds: texts and chunks by id, and the graph."""

    documents: Mapping[str, Mapping[str, Json]]
    chunks: Mapping[str, Mapping[str, Json]]
    graph: nx.Graph


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """How much there was, or is now."""

    documents: int = 0
    chunks: int = 0
    entities: int = 0
    relations: int = 0


@dataclass(frozen=True, slots=True)
class NotImported:
    """Something that has no exact counterpart here."""

    kind: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was read, what is stored here, and what differs from the original.

    Entities and relations that named no known chunk are stored in a document of their own.
    """

    documents: tuple[str, ...]
    read: ImportCounts
    stored: ImportCounts
    not_imported: tuple[NotImported, ...] = ()
    failures: tuple[Failure, ...] = ()


async def import_index(
    rag: AsyncLightRAG, folder: str | Path, *, progress: ProgressCallback | None = None
) -> ImportReport:
    """Copy documents, chunks, entities and relations into an index, and embed them anew.

    Raises `ConfigError` if the folder holds no such index.
    """
    index = await to_thread.run_sync(read_folder, Path(folder))
    conversion = await to_thread.run_sync(_Conversion, index)
    pending = list(conversion.pending(rag._clock()))
    report = await rag._indexing.insert(pending, progress=progress, tolerant=True)
    ids = tuple(one.document.id or "" for one in pending)
    counts = len(index.documents), len(index.chunks), len(index.graph), index.graph.size()
    return ImportReport(
        ids,
        ImportCounts(*counts),
        await read(rag._store, lambda reader: _stored(reader, ids)),
        tuple(conversion.not_imported),
        report.failures,
    )


def _stored(reader: Reader, ids: tuple[str, ...]) -> ImportCounts:
    chunks = reader.document_chunks(ids)
    entities = {mention.entity for mention in reader.entity_mentions(chunks=chunks)}
    relations = {mention.relation for mention in reader.relation_mentions(chunks=chunks)}
    return ImportCounts(len(reader.documents(ids)), len(chunks), len(entities), len(relations))


# ── files ───────────────────────────────────────────────────────────────────────


def read_folder(folder: Path) -> ForeignIndex:
    """Read a working directory; `ConfigError` if it is none, or a file in it is damaged."""
    import networkx as nx

    data = _bytes(folder, GRAPH)
    if data is None:
        below = sorted({path.parent.name for path in folder.glob(f"*/{GRAPH}*")})
        hint = f"; its folders {', '.join(below)} do: name one of them" if below else ""
        raise ConfigError(
            f"{folder} is no working directory of LightRAG or nano-graphrag: no {GRAPH}{hint}"
        )
    try:
        graph = nx.Graph(nx.read_graphml(io.BytesIO(data)))
    except (nx.NetworkXException, ParseError, ValueError, LookupError) as error:
        raise ConfigError(f"{folder / GRAPH} is no GraphML ({error})") from error
    texts = _entries(folder, "kv_store_full_docs.json")
    return ForeignIndex(texts, _entries(folder, "kv_store_text_chunks.json"), graph)


def _bytes(folder: Path, name: str) -> bytes | None:
    """A file's content, unpacked if it is gzipped; None if there is no such file."""
    plain, packed = folder / name, folder / f"{name}.gz"
    try:
        if plain.is_file() or not packed.is_file():
            return plain.read_bytes() if plain.is_file() else None
        with gzip.open(packed) as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, EOFError) as error:
        raise ConfigError(f"cannot read {name} in {folder}: {error}") from error
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{packed} holds more than {MAX_BYTES:,} bytes; unpack it first")
    return data


def _entries(folder: Path, name: str) -> dict[str, dict[str, Json]]:
    """The entries of a key-value file that have a text; none if there is no file."""
    data = _bytes(folder, name)
    try:
        value = json.loads(data or b"{}")
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{folder / name} is no JSON ({error})") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{folder / name} holds no key-value store")
    return {
        str(id): entry
        for id, entry in value.items()
        if isinstance(entry, dict) and isinstance(entry.get("content"), str)
    }


# ── conversion ──────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Target:
    """A document here, with its chunks in order and their records; `index` maps foreign chunk ids."""

    document: Document
    pieces: list[str] = field(default_factory=list)
    index: dict[str, int] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)


class _Conversion:
    """Documents of ours with the records that their chunks state.

    Each description goes to one of the chunks it may come from, in order. The weight of a relation
    is shared among its chunks.
    """

    def __init__(self, index: ForeignIndex) -> None:
        self.not_imported: list[NotImported] = []
        self._targets = list(self._documents(index))
        self._by_chunk = {id: target for target in self._targets for id in target.index}
        self._without_source = _Target(Document("", title=NO_SOURCE_TITLE))
        self._names: dict[str, str] = {}
        self._keys: set[str] = set()
        for name, data in index.graph.nodes(data=True):
            self._entity(str(name), data)
        for source, target, data in index.graph.edges(data=True):
            self._relation(str(source), str(target), data)

    def pending(self, created_at: float) -> Iterator[PendingDocument]:
        """The documents, ready to be inserted."""
        extra = self._without_source
        if extra.pieces:
            pages = tuple(extra.pieces)
            document = Document("", id="doc-" + digest(*pages), title=NO_SOURCE_TITLE, pages=pages)
            extra.document = document
        for target in (*self._targets, *([extra] if extra.pieces else [])):
            records, pieces = tuple(target.records), tuple(target.pieces)
            yield PendingDocument(target.document, created_at, records, pieces)

    def _documents(self, index: ForeignIndex) -> Iterator[_Target]:
        """Every document that has chunks, each chunk where it occurs in the text, or as a page."""
        by_document: defaultdict[str, list[tuple[int, str, str]]] = defaultdict(list)
        for id, entry in index.chunks.items():
            order, text = entry.get("chunk_order_index"), sanitize(str(entry["content"]))
            if text.strip(CUT):
                number = order if isinstance(order, int) else 0
                by_document[str(entry.get("full_doc_id") or id)].append((number, id, text))
        for id, entry in index.documents.items():
            if id in by_document:
                source = str(entry.get("file_path") or "")
                text = sanitize(str(entry["content"]))
                yield self._located(id, text, source, sorted(by_document.pop(id)))
            else:
                self._skip("document", id, "it was not processed there: insert its text")
        for id, chunks in by_document.items():
            self._skip("document", id, "its text is missing: its chunks became its pages")
            yield self._located(id, "", "", sorted(chunks))

    def _located(
        self, id: str, text: str, source: str, chunks: list[tuple[int, str, str]]
    ) -> _Target:
        found, pages, position = [], [], 0
        for _, chunk, content in chunks:
            options = (
                (piece, text.find(piece, position)) for piece in (content, content.strip(CUT))
            )
            piece, start = next(((p, at) for p, at in options if at >= 0), (content, -1))
            if start < 0:
                pages.append((chunk, piece))
            else:
                found.append((chunk, piece))
                position = start + 1
        known = None if source in NO_FILE else source
        title = known and known.replace("\\", "/").rsplit("/", 1)[-1]
        texts = ([text] if text.strip() else []) + [piece for _, piece in pages]
        document = Document("", id=id, title=title, source=known, pages=tuple(texts))
        ordered = [*found, *pages]
        index = {chunk: number for number, (chunk, _) in enumerate(ordered)}
        return _Target(document, [piece for _, piece in ordered], index)

    def _entity(self, raw: str, data: Mapping[str, object]) -> None:
        name, number = clean_name(raw), 1
        if not name:
            self._skip("entity", raw, "nothing is left of its name")
            return
        while name_key(name) in self._keys:
            number += 1
            name = f"{clean_name(raw)} ({number})"
        if number > 1:
            self._skip("entity", raw, f"it is {name!r} here: another entity has the same name key")
        self._keys.add(name_key(name))
        self._names[raw] = name
        kind = clean_name(_unquoted(str(data.get("entity_type") or ""))) or UNKNOWN_TYPE
        record: Record = {"type": "entity", "name": name, "entity_type": kind}
        self._add(record, data, name)

    def _relation(self, raw_source: str, raw_target: str, data: Mapping[str, object]) -> None:
        source, target = self._names.get(raw_source), self._names.get(raw_target)
        if source is None or target is None or source == target:
            reason = "it joins an entity with itself" if source else "an end has no name"
            self._skip("relation", f"{raw_source} — {raw_target}", reason)
            return
        words = [
            _unquoted(w) for p in _parts(data.get("keywords")) for w in re.split("[,，、;；]", p)
        ]
        record: Record = {
            "type": "relationship",
            "source": source,
            "target": target,
            "keywords": [word for word in dict.fromkeys(words) if word],
            "strength": _weight(data.get("weight")),
        }
        self._add(record, data, f"{source} — {target}")

    def _add(self, record: Record, data: Mapping[str, object], label: str) -> None:
        """Add a record to each chunk it was read in, with the descriptions dealt among them."""
        descriptions = _parts(data.get("description")) or ("",)
        chunks = [id for id in _parts(data.get("source_id")) if id in self._by_chunk]
        count = max(len(descriptions), len(chunks))
        weight = record.get("strength")
        if isinstance(weight, float):
            record = {**record, "strength": min(max(weight / count, 1.0), 10.0)}
        for number in range(count):
            text = descriptions[number] if number < len(descriptions) else ""
            full = {**record, "description": text}
            if chunks:
                id = chunks[number % len(chunks)]
                target, index = self._by_chunk[id], self._by_chunk[id].index[id]
            else:
                target, index = self._without_source, len(self._without_source.pieces)
                target.pieces.append(f"{label}: {text}")
            target.records.append({**full, "chunk": index})

    def _skip(self, kind: str, name: str, reason: str) -> None:
        self.not_imported.append(NotImported(kind, name, reason))


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
    return weight if weight == weight else 1.0
