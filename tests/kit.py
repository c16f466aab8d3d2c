"""What many tests share: small indexes, records as models write them, and all that an index holds."""

import contextlib
import gzip
import hashlib
import itertools
import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from msgspec import Struct, structs

from lightrag_jsonl import (
    LLM,
    AsyncLightRAG,
    Document,
    EntityMention,
    IndexOptions,
    PromptManager,
    RelationMention,
    Tokenizer,
)
from lightrag_jsonl.core import modes
from lightrag_jsonl.core.address import as_address
from lightrag_jsonl.core.index_reports import FileNote, SkippedFile
from lightrag_jsonl.core.tokens import FittedTokenizer
from lightrag_jsonl.core.types import Extraction, Failure
from lightrag_jsonl.curation.consistency import check_derived
from lightrag_jsonl.indexing.embedding import PassageEmbedder
from lightrag_jsonl.indexing.loading import load_documents
from lightrag_jsonl.storage.opening import open_store
from lightrag_jsonl.storage.rows import PendingDocument
from lightrag_jsonl.storage.store import Store
from lightrag_jsonl.storage.views import Snapshot
from lightrag_jsonl.testing import HashEmbedder, Request
from lightrag_jsonl.text.terms import search_terms

Record: TypeAlias = dict[str, Any]
Vectors: TypeAlias = npt.NDArray[np.float32]

Mode: TypeAlias = modes.Mode
DEFAULT_MODE = modes.DEFAULT_MODE
GRAPH_MODES = modes.GRAPH_MODES
MODES: tuple[Mode, ...] = tuple(modes.MODES)
SEARCHING_MODES = tuple([mode for mode, plan in modes.MODES.items() if plan.searches])
# An overview is in the order of the text.
RANKING_MODES = tuple([mode for mode in SEARCHING_MODES if not modes.MODES[mode].communities])

Language: TypeAlias = Literal["en", "zh"]
Kind: TypeAlias = Literal["entity", "relation", "chunk"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TOKENIZER: Tokenizer = FittedTokenizer()  # counts alike on every machine


@cache
def prompts(language: str = "en") -> PromptManager:
    """The prompt set, loaded once for all tests."""
    return PromptManager.load(language, None)


@contextlib.asynccontextmanager
async def index(
    folder: Path | str, llm: LLM | None = None, *, options: IndexOptions | None = None, **more: Any
) -> AsyncIterator[AsyncLightRAG]:
    """An index that opens fast: a small hashing embedder, the fitted tokenizer."""
    rag = AsyncLightRAG(
        folder,
        llm=llm,
        embedder=more.pop("embedder", None) or HashEmbedder(dim=64),
        tokenizer=more.pop("tokenizer", None) or TOKENIZER,
        options=options,
        prompts=more.pop("prompts", None) or prompts(more.get("language", "en")),
        **more,
    )
    try:
        yield rag
    finally:
        await rag.close()


def store_at(place: Path | str, *, create: bool = True) -> Store:
    """The store of a folder or of the URL of a database."""
    return open_store(as_address(place), create=create)


@contextlib.contextmanager
def reading(folder: Path | str) -> Iterator[Snapshot]:
    """What is stored in a folder, as a process of its own would see it."""
    with contextlib.closing(store_at(folder)) as store, store.snapshot() as snapshot:
        yield snapshot


class Loaded(NamedTuple):
    """What a source holds; the failures, skipped files and notes are those of an insert's report."""

    documents: list[Document]
    failures: list[Any]
    skipped: list[Any]
    notes: list[Any]


def loaded(source: Any, readers: Any = None, **options: Any) -> Loaded:
    """What an insert reads of a source, without an index."""
    items = list(load_documents(source, readers, **options))
    return Loaded(
        documents=[item for item in items if isinstance(item, Document)],
        failures=[item for item in items if isinstance(item, Failure)],
        skipped=[item for item in items if isinstance(item, SkippedFile)],
        notes=[item for item in items if isinstance(item, FileNote)],
    )


def fingerprint(text: str) -> str:
    """16 hex digits that stand for a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def recorded_settings(folder: Path | str) -> dict[str, str]:
    """The settings that an index remembers."""
    with reading(folder) as snapshot:
        return dict(snapshot.settings())


# ── recordings ──────────────────────────────────────────────────────────────────


def unzipped(path: Path) -> str:
    """The text of a gzipped file."""
    return gzip.decompress(path.read_bytes()).decode()


def rows_of(path: Path) -> list[Any]:
    """The JSON values in the lines of a gzipped file."""
    return [json.loads(line) for line in unzipped(path).split("\n") if line]


# ── records and answers ─────────────────────────────────────────────────────────


def entity(name: str, description: str = "", kind: str = "person", **more: Any) -> Record:
    """A record of an entity."""
    description = description or f"About {name}."
    return {
        "type": "entity",
        "name": name,
        "entity_type": kind,
        "description": description,
        **more,
    }


def relation(source: str, target: str, description: str = "", **more: Any) -> Record:
    """A record of a relation."""
    return {
        "type": "relationship",
        "source": source,
        "target": target,
        "keywords": ["knows"],
        "description": description or f"{source} knows {target}.",
        "strength": 5,
        **more,
    }


def extraction(
    entities: Iterable[EntityMention] = (),
    relations: Iterable[RelationMention] = (),
    **account: Any,
) -> Extraction:
    """What an extractor returns for a chunk: what is mentioned, and an account of the reading."""
    return Extraction(tuple(entities), tuple(relations), **account)


def pending_document(document: Document, created_at: float = 0.0, **more: Any) -> PendingDocument:
    """A document that waits to be read; `more` are its records and chunks, and the job that brought it."""
    return PendingDocument(document, created_at, **more)


def jsonl(*records: Record) -> str:
    """Records as a model writes them."""
    return "\n".join(json.dumps(record, ensure_ascii=False) for record in records)


NAMES = re.compile(r"\b[A-Z][a-z]+\d*\b")


def text_of(request: Request) -> str:
    """The text that a request for extraction is about."""
    asked = next(m.content for m in request.messages if m.role == "user")
    return asked.partition("Text:\n")[2]


def read_names(request: Request) -> str:
    """A model's answer: an entity for each capitalized word, a relation between neighbours.

    It never finds more on a second look, and summarizes by naming the number of notes.
    """
    if any(message.role == "assistant" for message in request.messages):
        return jsonl({"type": "done", "entities": 0, "relationships": 0})
    if request.question.startswith("Subject:"):
        return f"A summary of {request.question.count(chr(10) + '- ')} notes."
    names = list(dict.fromkeys(NAMES.findall(text_of(request))))
    found: list[Record] = [entity(name, f"{name} is in the text.") for name in names]
    found += [relation(a, b) for a, b in itertools.pairwise(names)]
    return jsonl(*found, {"type": "done", "entities": len(names), "relationships": len(names) - 1})


# ── everything that an index holds ──────────────────────────────────────────────


@dataclass(frozen=True)
class View:
    """An index without row ids: what is equal here is equal to every user."""

    documents: list[Any]
    chunks: list[Any]
    entities: dict[str, Any]
    relations: dict[tuple[str, str], Any]
    dates: list[Any]
    vectors: dict[Any, bytes]
    terms: dict[str, Any]


def view(folder: Path | str, *, times: bool = False) -> View:
    """All that the index in a folder holds; `times` says whether first mentions count."""
    with reading(folder) as snapshot:
        entities, relations = _graph(snapshot, times)
        return View(
            documents=sorted(
                (d.id, d.title, d.source, d.date, d.metadata, d.content, d.state)
                for d in snapshot.documents()
            ),
            chunks=sorted(
                (*_chunk(chunk), report.state)
                for report in snapshot.chunk_reports()
                for chunk in snapshot.chunks([report.row]).values()
            ),
            entities=entities,
            relations=relations,
            dates=sorted(_dates(snapshot)),
            vectors=dict(_vectors(snapshot)),
            terms=_terms(snapshot),
        )


def _chunk(chunk: Any) -> tuple[Any, ...]:
    return (chunk.id, chunk.index, chunk.page, chunk.start, chunk.end, chunk.text, chunk.tokens)


def _graph(snapshot: Snapshot, times: bool) -> tuple[dict[str, Any], dict[tuple[str, str], Any]]:
    rows, edges = snapshot.entity_rows(), snapshot.relation_rows()
    entities, relations = {}, {}
    for id, one in snapshot.entities(list(rows), chunk_limit=10**6).items():
        merged = _field_values(one, times)
        entities[rows[id].key] = *merged, rows[id].mentions, rows[id].summary
    for id, edge in snapshot.relations(list(edges), chunk_limit=10**6).items():
        merged = _field_values(edge, times)
        relations[edge.source, edge.target] = *merged, edges[id].mentions, edges[id].summary
    return entities, relations


def _field_values(one: Any, times: bool) -> tuple[Any, ...]:
    """All fields of an entity or a relation; the order of chunks counts for nothing, nor the time unless asked."""
    created_at = one.created_at if times else None
    shown = replace(one, chunk_ids=sorted(one.chunk_ids), created_at=created_at)
    return tuple([getattr(shown, field.name) for field in fields(shown)])


def _dates(snapshot: Snapshot) -> Iterator[tuple[str, ...]]:
    """The mentions with a time for which they hold, by chunk and description."""
    chunks = snapshot.chunks()
    for kind in KINDS[:2]:
        for row in snapshot.dated_mentions(kind):
            yield kind, chunks[row.chunk].id, row.description, row.valid_from, row.valid_to


def _vectors(snapshot: Snapshot) -> Iterator[tuple[Any, bytes]]:
    chunks = snapshot.chunks()
    names: dict[Kind, dict[int, Any]] = {
        "entity": {id: row.key for id, row in snapshot.entity_rows().items()},
        "relation": {
            id: (one.source, one.target)
            for id, one in snapshot.relations(list(snapshot.relation_rows())).items()
        },
        "chunk": {row: chunk.id for row, chunk in chunks.items()},
    }
    for kind, rows in names.items():
        for row, vector in snapshot.vectors(kind, rows).items():
            yield (kind, rows[row]), vector.tobytes()


def _terms(snapshot: Snapshot) -> dict[str, Any]:
    """Some terms with the chunks they find, and how many chunks have each."""
    chunks = snapshot.chunks()
    terms = sorted(
        {term for chunk in chunks.values() for term in search_terms(chunk.text, endings=True)}
    )[:20]
    _, counts = snapshot.term_counts(terms)
    found = {term: snapshot.search_terms([term], 99) for term in terms}
    return {
        term: (counts[term], sorted((chunks[row].id, round(s, 9)) for row, s in found[term]))
        for term in terms
    }


def filled(value: Any) -> Any:
    """A value without a field at its default: a field that a test does not set has another value of its type."""
    is_struct = isinstance(value, Struct)
    others = {
        field.name: _other_value(getattr(value, field.name))
        for field in (structs.fields(value) if is_struct else fields(value))
        if getattr(value, field.name) == field.default
        or (
            callable(field.default_factory)
            and getattr(value, field.name) == field.default_factory()
        )
    }
    return structs.replace(value, **others) if is_struct else replace(value, **others)


def _other_value(default: Any) -> Any:
    match default:
        case bool():
            return not default
        case int() | float():
            return type(default)(default // 2 or 2)
        case tuple():
            return ("一",)
        case dict():
            return {"一": 2}
        case _:
            return "一"


# ── what must always hold ───────────────────────────────────────────────────────


async def assert_rebuilt_alike(rag: AsyncLightRAG, folder: Path | str) -> View:
    """An index without problems that is the same when all mentions are merged anew."""
    assert problems(folder) == []
    merged = view(folder)
    await rag.admin.rebuild()
    assert view(folder) == merged
    return merged


def problems(folder: Path | str, store: Store | None = None) -> list[str]:
    """Every invariant that does not hold: what `doctor` finds, and what differs in memory.

    `store` is one that has seen earlier states.
    """
    with contextlib.closing(store_at(folder)) as fresh, fresh.snapshot() as snapshot:
        embedder = HashEmbedder()
        embedder.name = snapshot.settings().get("embedder", "")
        passages = PassageEmbedder(embedder, fresh, batch_size=64)
        found = fresh.check(full=True) + check_derived(passages, True, snapshot)
        with (store or fresh).snapshot() as seen:
            return found + _derived_differences(snapshot, seen)


def _derived_differences(one: Snapshot, other: Snapshot) -> list[str]:
    """What two snapshots of the same state hold differently in memory."""
    found = []
    for name in ("entities", "chunks", "all_ends", "all_mentions"):
        if not np.array_equal(getattr(one.graph, name), getattr(other.graph, name)):
            found.append(f"the graph in memory has other {name}")
    ids = np.array(list(one.relation_rows()), np.int64)
    if not np.array_equal(one.graph.weights(ids), other.graph.weights(ids)):
        found.append("the relations in memory have other weights")
    for kind in KINDS:
        readers: dict[Kind, Any] = {
            "entity": one.entity_rows,
            "relation": one.relation_rows,
            "chunk": lambda: one.graph.chunks.tolist(),
        }
        ids = np.array(list(readers[kind]()), np.int64)
        vectors, other_vectors = one.vectors_by_kind[kind], other.vectors_by_kind[kind]
        if not np.array_equal(vectors.matrix(ids), other_vectors.matrix(ids)):
            found.append(f"the {kind} vectors in memory are others")
    return found
