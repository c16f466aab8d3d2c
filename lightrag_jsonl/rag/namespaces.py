"""The four namespaces of an index: its entities, its traces, its graph and its administration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from anyio import to_thread

from lightrag_jsonl.core.errors import NotFoundError
from lightrag_jsonl.core.protocols import Embedder
from lightrag_jsonl.core.text import name_key, sanitize
from lightrag_jsonl.core.types import Entity, Record, Relation, TraceSummary
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing.duplicates import Duplicate, find_duplicates
from lightrag_jsonl.indexing.progress import ProgressCallback
from lightrag_jsonl.storage.store import Reader, read, write
from lightrag_jsonl.tracing import verify
from lightrag_jsonl.tracing.export import export
from lightrag_jsonl.tracing.page import render_page
from lightrag_jsonl.tracing.provenance import (
    DocumentProvenance,
    EdgeProvenance,
    document_provenance,
    edge_provenance,
)
from lightrag_jsonl.tracing.rdf import Format, Version
from lightrag_jsonl.tracing.trace import Sources, Trace, load_trace, look_up_sources

if TYPE_CHECKING:
    import networkx as nx

    from lightrag_jsonl.rag.asynchronous import AsyncLightRAG


class Entities:
    """The entities of the graph, by name, and which names are one entity."""

    def __init__(self, rag: AsyncLightRAG) -> None:
        self._rag = rag

    async def get(self, name: str) -> Entity:
        """One entity, by its name or a name merged into it; `NotFoundError` if there is none."""
        return (await self.neighbours(name))[0]

    async def list(self) -> tuple[Entity, ...]:
        """All entities, by name."""

        def load(reader: Reader) -> tuple[Entity, ...]:
            found = reader.entities(list(reader.entity_rows()))
            return tuple(sorted(found.values(), key=lambda entity: entity.name))

        return await read(self._rag._store, load)

    async def neighbours(self, name: str) -> tuple[Entity, tuple[Relation, ...]]:
        """One entity and its relations, strongest first; `NotFoundError` if there is none."""
        key = name_key(sanitize(name))

        def load() -> tuple[Entity, tuple[Relation, ...]]:
            with self._rag._store.snapshot() as snapshot:
                row = snapshot.entity_ids([key]).get(key)
                if row is None:
                    raise NotFoundError(f"no such entity: {name}")
                around = snapshot.graph.relations_of(np.array([row]))[1].tolist()
                entity = replace(snapshot.entities([row])[row], degree=len(around))
                relations = snapshot.relations(around).values()
            by_weight = sorted(relations, key=lambda one: (-one.weight, one.source, one.target))
            return entity, tuple(by_weight)

        return await to_thread.run_sync(load)

    async def merge(self, names: Iterable[str], *, into: str) -> None:
        """Make several names one entity called `into`. Later inserts keep to it; `unmerge` undoes
        it.

        `NotFoundError` lists those that no entity has.
        """
        listed = [names] if isinstance(names, str) else list(names)
        await self._rag._indexing.merge([sanitize(one) for one in listed], into)

    async def unmerge(self, *names: str) -> None:
        """Make merged names entities of their own again; `NotFoundError` lists names that are not
        merged.

        Names that were merged into one of them earlier stay merged with it. Given the target of a
        merge, which was not merged itself, this undoes that merge.
        """
        await self._rag._indexing.unmerge([sanitize(one) for one in names])

    async def duplicates(self, *, limit: int = 100) -> tuple[Duplicate, ...]:
        """Pairs of entities that may be the same, most likely first, with the evidence; none is
        merged.
        """

        def search() -> tuple[Duplicate, ...]:
            with self._rag._store.snapshot() as snapshot:
                return find_duplicates(snapshot, limit=limit)

        return await to_thread.run_sync(search)


class Traces:
    """The recorded queries: how each answer came about."""

    def __init__(self, rag: AsyncLightRAG) -> None:
        self._rag = rag

    async def get(self, trace_id: str) -> Trace:
        """How an answer came about; the id may be shortened as long as it stays unambiguous.

        Raises `NotFoundError` if no trace, or more than one, has an id that begins like this.
        """
        return await read(self._rag._store, lambda reader: load_trace(reader, trace_id))

    async def list(self, *, limit: int | None = 100) -> tuple[TraceSummary, ...]:
        """The newest queries, each with its status; None for all."""
        return tuple(await read(self._rag._store, lambda reader: reader.traces(limit=limit)))

    async def verify(self, *trace_ids: str) -> tuple[verify.Problem, ...]:
        """What is wrong with these traces; without ids, with all traces and the texts they rest
        on.
        """
        return await read(self._rag._store, lambda reader: verify.verify(reader, trace_ids))

    async def export(
        self,
        trace_id: str,
        *,
        format: Format = "nquads",
        rdf: Version = "1.2",
        with_source: bool = False,
        entity_base: str | None = None,
        predicate_base: str | None = None,
    ) -> str:
        """A trace as RDF; `with_source` adds the chain from its edges to their documents.

        The URI of an entity or predicate is a base (by default `urn:entity:` or `urn:predicate:`)
        followed by its percent-encoded key. Raises `ConfigError` for a base without a scheme.
        """

        def write_rdf(reader: Reader) -> str:
            trace = load_trace(reader, trace_id)
            return export(
                trace,
                format=format,
                version=rdf,
                sources=look_up_sources(reader, trace.chunk_ids) if with_source else None,
                entity_base=entity_base,
                predicate_base=predicate_base,
            )

        return await read(self._rag._store, write_rdf)

    async def page(self, trace_id: str, *, language: str | None = None) -> str:
        """A trace as one self-contained web page, by default in the index's language."""

        def render(reader: Reader) -> str:
            trace = load_trace(reader, trace_id)
            found = look_up_sources(reader, trace.chunk_ids)
            return render_page(trace, found, language=language or self._rag.language)

        return await read(self._rag._store, render)

    async def sources(self, trace: Trace) -> Sources:
        """The stored texts behind a trace."""
        return await read(self._rag._store, lambda reader: look_up_sources(reader, trace.chunk_ids))

    async def edge_provenance(self, source: str, predicate: str, target: str) -> EdgeProvenance:
        """Where an edge was read: every chunk, page and document, and the queries that chose it.

        `NotFoundError` names the entity or the edge that does not exist.
        """
        edge = source, predicate, target
        return await read(self._rag._store, lambda reader: edge_provenance(reader, *edge))

    async def document_provenance(self, document_id: str) -> DocumentProvenance:
        """A document's pages and chunks with the edges they state, and the queries that used it."""
        id = sanitize(document_id)
        return await read(self._rag._store, lambda reader: document_provenance(reader, id))

    async def delete(self, *, keep: int = 0) -> int:
        """Delete all but the `keep` newest traces; returns how many were deleted."""
        return await write(self._rag._store, lambda writer: writer.delete_traces(keep=keep))


@dataclass(frozen=True, slots=True)
class CacheStats:
    """The number of cached answers of the model, and their size in bytes."""

    completions: int
    completion_bytes: int


class Admin:
    """Maintenance of an index."""

    def __init__(self, rag: AsyncLightRAG) -> None:
        self._rag = rag

    async def rebuild(self) -> list[str]:
        """Make everything anew that is derived from documents and mentions; returns a line for each
        step.
        """
        return await self._rag._indexing.rebuild()

    async def reembed(
        self,
        embedder: Embedder | Callable[..., object],
        *,
        progress: ProgressCallback | None = None,
    ) -> int:
        """Move the index to another embedder, without asking a model; returns the number of texts.

        Questions use the old vectors until all new ones are stored. After an interruption, call it
        again to go on.
        """
        from lightrag_jsonl.providers.functions import as_embedder

        parts = replace(self._rag._parts, embedder=as_embedder(embedder))
        count = await self._rag._indexing.reembed(parts.embedder, progress=progress)
        self._rag._connect(parts)
        return count

    async def summarize(self) -> Usage:
        """Ask the model for every summary that is due; returns what that cost."""
        return await self._rag._indexing.summarize()

    async def vacuum(self) -> int:
        """Give unused space back to the disk; returns how many bytes that was."""
        store = self._rag._store
        before = store.size()
        await to_thread.run_sync(store.vacuum)
        return max(0, before - store.size())

    async def cache(self) -> CacheStats:
        """What the cache of the model's answers holds."""
        return CacheStats(*await read(self._rag._store, lambda reader: reader.completion_stats()))

    async def clear_cache(self) -> int:
        """Delete cached answers and vectors that nothing uses; returns how many."""
        return await write(
            self._rag._store,
            lambda writer: writer.delete_completions() + writer.delete_cached_vectors(),
        )

    async def settings(self) -> dict[str, str]:
        """What the index was built with."""
        return await read(self._rag._store, lambda reader: reader.settings())

    async def check(self) -> list[str]:
        """What is wrong with the stored data, in words; `rebuild` repairs what is derived."""
        return await to_thread.run_sync(self._rag._store.check)

    async def records(self) -> list[Record]:
        """Every stored mention as an `extract-graph` record with its document and chunk index."""
        return await read(self._rag._store, lambda reader: list(_records(reader)))


def network(reader: Reader) -> nx.Graph:
    """A frozen networkx graph: nodes by entity name, with the attributes of `Entity` and `Relation`."""
    import networkx as nx

    graph = nx.Graph()
    for entity in reader.entities(list(reader.entity_rows())).values():
        graph.add_node(
            entity.name,
            entity_type=entity.type,
            description=entity.description,
            chunk_ids=entity.chunk_ids,
            created_at=entity.created_at,
            attributes=entity.attributes,
        )
    for relation in reader.relations(list(reader.relation_rows())).values():
        graph.add_edge(
            relation.source,
            relation.target,
            source=relation.source,
            target=relation.target,
            keywords=relation.keywords,
            description=relation.description,
            weight=relation.weight,
            chunk_ids=relation.chunk_ids,
            created_at=relation.created_at,
        )
    return nx.freeze(graph)


def _records(reader: Reader) -> Iterator[Record]:
    """Every mention as a record, in the order of documents and chunks."""
    ids = [document.id for document in reader.documents()]
    for row, chunk in reader.document_chunks(ids).items():
        position: Mapping[str, str | int] = {"document": chunk.document_id, "chunk": chunk.index}
        for entity in reader.entity_mentions(chunks=[row]):
            yield {
                "type": "entity",
                "name": entity.mention.name,
                "entity_type": entity.mention.type,
                "description": entity.mention.description,
                **position,
            }
        for relation in reader.relation_mentions(chunks=[row]):
            yield {
                "type": "relationship",
                "source": relation.mention.source,
                "target": relation.mention.target,
                "keywords": list(relation.mention.keywords),
                "description": relation.mention.description,
                "strength": relation.mention.strength,
                **position,
            }
