"""Imports a working directory of LightRAG or nano-graphrag without model calls."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, NamedTuple
from xml.etree.ElementTree import ParseError

from anyio import to_thread

from lightrag_jsonl.core.errors import ConfigError, required_packages
from lightrag_jsonl.core.types import UNKNOWN_TYPE, Document, Failure, Record
from lightrag_jsonl.indexing.progress import ShowProgress
from lightrag_jsonl.rag import AsyncLightRAG
from lightrag_jsonl.readers.formats import READERS, file_suffix
from lightrag_jsonl.storage.rows import PendingDocument
from lightrag_jsonl.storage.store import read
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.names import clean_name, name_key
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import digest, sanitize

if TYPE_CHECKING:
    import networkx as nx

GRAPH = "graph_chunk_entity_relation.graphml"
DOCUMENTS_FILE = "kv_store_full_docs.json"
CHUNKS_FILE = "kv_store_text_chunks.json"
PART_SEPARATOR = "<SEP>"  # between the parts of a description or of a list of chunks
QUOTES = "\"'“”"
NO_FILE = ("", "unknown_source", "no-file-path")
CHUNK_ENDS = "\ufeff\ufffd \t\r\n"  # ignored there: a mark of files, and from cutting inside a character, or stripping
KEYWORD_SEPARATORS = pattern_of("[,，、;；]")


@dataclass(frozen=True, slots=True)
class ForeignIndex:
    """The contents of a working directory: texts and chunks by id, and the graph."""

    documents: Mapping[str, Record]
    chunks: Mapping[str, Record]
    graph: "nx.Graph"


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """The sizes of an index, as read there or as stored here."""

    documents: int = 0
    chunks: int = 0
    entities: int = 0
    relations: int = 0


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The sizes read and stored, and in words everything without an exact counterpart here.

    Entities and relations without a chunk are stored in a document of their own.
    """

    documents: tuple[str, ...]
    read: ImportCounts
    stored: ImportCounts
    purged: tuple[str, ...] = ()
    not_imported: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()


async def import_index(
    rag: AsyncLightRAG,
    folder: str | Path,
    *,
    progress: ShowProgress = None,
    restore_purged: bool = False,
) -> ImportReport:
    """Copy documents, chunks, entities and relations into an index, with new vectors.

    Documents whose texts were purged from the index stay out, unless `restore_purged`.

    Raises `ConfigError` if the folder holds no such index.
    """
    engine = rag.engine
    index = await to_thread.run_sync(read_folder, Path(folder))
    conversion = _Conversion(index)
    now = engine.clock.seconds()
    pending = [target.pending(now) for target in conversion.targets if target.pieces]
    report = await engine.indexing.insert(
        pending,
        progress=progress,
        tolerant=True,
        summarize=False,
        restore_purged=restore_purged,
    )
    pending_ids = [str(document.document.id) for document in pending]
    ids = tuple(id for id in pending_ids if id not in report.purged)
    return ImportReport(
        documents=ids,
        read=ImportCounts(
            documents=len(index.documents),
            chunks=len(index.chunks),
            entities=len(index.graph),
            relations=index.graph.size(),
        ),
        stored=await read(engine.store, lambda view: _stored_counts(view, ids)),
        purged=report.purged,
        not_imported=tuple(conversion.not_imported),
        failures=report.failures,
    )


def _stored_counts(view: StoreView, document_ids: Sequence[str]) -> ImportCounts:
    chunks = view.chunks(documents=document_ids)
    entities = {mention.owner for mention in view.entity_mentions(chunks=chunks)}
    relations = {mention.owner for mention in view.relation_mentions(chunks=chunks)}
    return ImportCounts(
        documents=len(view.documents(document_ids)),
        chunks=len(chunks),
        entities=len(entities),
        relations=len(relations),
    )


def read_folder(folder: Path) -> ForeignIndex:
    """Read a working directory; `ConfigError` for any other folder, for a damaged file or a link."""
    with required_packages():
        import networkx as nx

    if not (folder / GRAPH).is_file():
        graphs_below = folder.glob(f"*/{GRAPH}")
        subfolders = sorted(path.parent.name for path in graphs_below)
        hint = ""
        if subfolders:
            hint = f"; its folders {', '.join(subfolders)} do: name one of them"
        raise ConfigError(
            f"{folder} is not a working directory of LightRAG or nano-graphrag: no {GRAPH}{hint}"
        )
    for path in (folder / name for name in (GRAPH, DOCUMENTS_FILE, CHUNKS_FILE)):
        if path.is_symlink():
            raise ConfigError(f"{path} is a symbolic link: put the file itself there")
    try:
        graph = nx.Graph(nx.read_graphml(folder / GRAPH))
    except (nx.NetworkXException, ParseError, ValueError, LookupError) as error:
        raise ConfigError(f"{folder / GRAPH} is not GraphML ({error})") from error
    return ForeignIndex(
        documents=_entries_with_text(folder / DOCUMENTS_FILE),
        chunks=_entries_with_text(folder / CHUNKS_FILE),
        graph=graph,
    )


def _entries_with_text(path: Path) -> dict[str, Record]:
    """The entries of a key-value file with a text; empty without a file."""
    if not path.is_file():
        return {}
    try:
        entries = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: invalid JSON ({error})") from error
    if not isinstance(entries, dict):
        raise ConfigError(f"{path} is not a key-value store")
    return {
        id: entry
        for id, entry in entries.items()
        if isinstance(entry, dict) and isinstance(entry.get("content"), str)
    }


class _ForeignChunk(NamedTuple):
    """A chunk of the foreign index; sorts by its number in the document."""

    number: int
    id: str
    text: str


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
        document = Document(
            text="",
            id=self.id or "doc-" + digest(*self.pages),
            title=self.title,
            source=self.source,
            pages=tuple(self.pages),
        )
        return PendingDocument(
            document=document,
            created_at=created_at,
            records=tuple(self.records),
            chunks=tuple(self.pieces),
        )


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
        for name, attributes in index.graph.nodes(data=True):
            self._add_entity(str(name), attributes)
        for source, target, attributes in index.graph.edges(data=True):
            self._add_relation(str(source), str(target), attributes)

    def _add_documents(self, index: ForeignIndex) -> None:
        chunks_by_document = _chunks_by_document(index)
        unprocessed = index.documents.keys() - chunks_by_document.keys()
        for id in sorted(unprocessed):
            self._skip("document", id, "it was not processed there: insert its text")
        for id, chunks in chunks_by_document.items():
            if id not in index.documents:
                self._skip("document", id, "its text is missing: its chunks became its pages")
            entry = index.documents.get(id, {})
            self._add_document(id, entry, sorted(chunks))

    def _add_document(self, id: str, entry: Record, chunks: Sequence[_ForeignChunk]) -> None:
        """Add a document with each chunk where it occurs in the text, or else as a page."""
        text = sanitize(str(entry.get("content", ""))).removeprefix("\ufeff")  # a mark of files
        target = _empty_target(id, entry)
        if text.strip():
            target.pages.append(text)
        additional_pages: list[_ForeignChunk] = []
        position = 0
        for chunk in chunks:
            piece = chunk.text
            if text.find(piece, position) < 0:
                piece = piece.strip(CHUNK_ENDS)
            start = text.find(piece, position)
            if start < 0:
                additional_pages.append(chunk)
            else:
                self._add_piece(target, chunk.id, piece)
                position = start + 1
        for chunk in additional_pages:
            target.pages.append(chunk.text)
            self._add_piece(target, chunk.id, chunk.text)
        self.targets.append(target)

    def _add_piece(self, target: _Target, chunk_id: str, text: str) -> None:
        self._positions[chunk_id] = (target, len(target.pieces))
        target.pieces.append(text)

    def _add_entity(self, foreign_name: str, attributes: Mapping[str, object]) -> None:
        if not clean_name(foreign_name):
            self._skip("entity", foreign_name, "nothing is left of its name")
            return
        name = self._unique_name(foreign_name)
        self._names[foreign_name] = name
        quoted_type = str(attributes.get("entity_type") or "")
        entity_type = clean_name(_unquoted(quoted_type))
        record: Record = {
            "type": "entity",
            "name": name,
            "entity_type": entity_type or UNKNOWN_TYPE,
        }
        self._add_record(record, attributes, label=name)

    def _unique_name(self, foreign_name: str) -> str:
        """The cleaned name, with a number if an earlier entity has the same cleaned name."""
        cleaned = clean_name(foreign_name)
        name = cleaned
        number = 1
        while name_key(name) in self._keys:
            number += 1
            name = f"{cleaned} ({number})"
        if number > 1:
            reason = f"it is {name!r} here: another entity has this name"
            self._skip("entity", foreign_name, reason)
        self._keys.add(name_key(name))
        return name

    def _add_relation(
        self, foreign_source: str, foreign_target: str, attributes: Mapping[str, object]
    ) -> None:
        source = self._names.get(foreign_source)
        target = self._names.get(foreign_target)
        if source is None or target is None or source == target:
            reason = "it joins an entity with itself" if source else "an end has no name"
            self._skip("relation", f"{foreign_source} — {foreign_target}", reason)
            return
        keywords = PART_SEPARATOR.join(_distinct_parts(attributes.get("keywords")))
        record: Record = {
            "type": "relationship",
            "source": source,
            "target": target,
            "keywords": [*_distinct_parts(KEYWORD_SEPARATORS.sub(PART_SEPARATOR, keywords))],
            "strength": _finite_weight(attributes.get("weight")),
        }
        self._add_record(record, attributes, label=f"{source} — {target}")

    def _add_record(self, record: Record, attributes: Mapping[str, object], *, label: str) -> None:
        """Add a record to each of its chunks; descriptions and weight are distributed over these."""
        chunk_ids = _distinct_parts(attributes.get("source_id"))
        positions = [self._positions[id] for id in chunk_ids if id in self._positions]
        descriptions = list(_distinct_parts(attributes.get("description"))) or [""]
        while len(descriptions) < len(positions):
            descriptions.append("")
        weight = record.get("strength")
        if isinstance(weight, float):
            share = weight / len(descriptions)
            record = {**record, "strength": min(max(share, 1.0), 10.0)}
        for number, description in enumerate(descriptions):
            if positions:
                target, piece = positions[number % len(positions)]
            else:
                target, piece = self._add_page_without_source(f"{label}: {description}")
            target.records.append({**record, "description": description, "chunk": piece})

    def _add_page_without_source(self, text: str) -> tuple[_Target, int]:
        """Add a page to the document of everything without a source; returns its position."""
        target = self._without_source
        target.pages.append(text)
        target.pieces.append(text)
        return target, len(target.pieces) - 1

    def _skip(self, kind: str, name: str, reason: str) -> None:
        self.not_imported.append(f"{kind} {name}: {reason}")


def _chunks_by_document(index: ForeignIndex) -> dict[str, list[_ForeignChunk]]:
    """The chunks with a text by document; a chunk without a document is a document itself."""
    chunks: defaultdict[str, list[_ForeignChunk]] = defaultdict(list)
    for id, entry in index.chunks.items():
        text = sanitize(str(entry["content"]))
        if text.strip(CHUNK_ENDS):
            order = entry.get("chunk_order_index")
            number = order if isinstance(order, int) else 0
            document_id = str(entry.get("full_doc_id") or id)
            chunks[document_id].append(_ForeignChunk(number, id, text))
    return chunks


def _empty_target(id: str, entry: Record) -> _Target:
    path = str(entry.get("file_path") or "")
    if path in NO_FILE:
        return _Target(id)
    file = PureWindowsPath(path)
    title = file.stem if file_suffix(file) in READERS else file.name  # as of files read here
    return _Target(id, title=title, source=path)


def _distinct_parts(joined: object) -> tuple[str, ...]:
    """The distinct parts of a joined field, without the quotes of old versions."""
    quoted_parts = str(joined or "").split(PART_SEPARATOR)
    parts = [_unquoted(part) for part in quoted_parts]
    return tuple(dict.fromkeys(part for part in parts if part))


def _unquoted(text: str) -> str:
    text = text.strip()
    is_quoted = len(text) > 1 and text[0] in QUOTES and text[-1] in QUOTES
    return text[1:-1].strip() if is_quoted else text


def _finite_weight(value: object) -> float:
    try:
        weight = float(str(value))
    except ValueError:
        return 1.0
    return weight if isfinite(weight) else 1.0
