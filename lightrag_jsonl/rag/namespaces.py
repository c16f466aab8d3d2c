"""The namespaces of an index: its entities, its traces and its administration."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from anyio import to_thread

from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.protocols import Embedder
from lightrag_jsonl.core.text import name_key, sanitize
from lightrag_jsonl.core.types import (
    Claim,
    Entity,
    Json,
    Neighbourhood,
    Record,
    Relation,
    TraceSummary,
)
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing.duplicates import Duplicate, find_duplicates, groups
from lightrag_jsonl.indexing.edits import Edit
from lightrag_jsonl.indexing.progress import ShowProgress
from lightrag_jsonl.indexing.reviewing import Review, estimate_review, review
from lightrag_jsonl.providers import as_embedder
from lightrag_jsonl.rag.export import GraphFormat, export_graph, graph_format
from lightrag_jsonl.storage.store import read, search, write
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.tracing import trace as recorded
from lightrag_jsonl.tracing.export import export
from lightrag_jsonl.tracing.page import render_page
from lightrag_jsonl.tracing.rdf import Format, Version

if TYPE_CHECKING:
    from lightrag_jsonl.rag.parts import IndexParts

Result = TypeVar("Result")
MOST_WEIGHT = 1_000_000


class _Namespace:
    """Some of the methods of an index."""

    def __init__(self, parts: "IndexParts") -> None:
        self._parts = parts

    async def _read(self, function: Callable[[StoreView], Result]) -> Result:
        return await read(self._parts._store, function)


class Entities(_Namespace):
    """The entities of the graph, by name, and which names are one entity."""

    async def get(self, name: str) -> Entity:
        """One entity, by its name or a name merged into it; `NotFoundError` if there is none."""
        return (await self.neighbours(name))[0]

    async def list(
        self, *, search: str = "", type: str = "", limit: int | None = None, offset: int = 0
    ) -> tuple[Entity, ...]:
        """Entities by name: those with `search` in their name, and of this `type`, if given.

        The first `offset` are left out, and at most `limit` returned.
        """
        key = name_key(sanitize(search))

        def load(view: StoreView) -> tuple[Entity, ...]:
            rows = view.listed(
                "entity", search=key, type=type.casefold(), limit=limit, offset=offset
            )
            return tuple(view.entities(rows).values())

        return await self._read(load)

    async def relations(
        self, *, search: str = "", limit: int | None = None, offset: int = 0
    ) -> tuple[Relation, ...]:
        """Relations, the heaviest first: those with `search` in the name of an end, if given.

        The first `offset` are left out, and at most `limit` returned.
        """
        key = name_key(sanitize(search))

        def load(view: StoreView) -> tuple[Relation, ...]:
            rows = view.listed("relation", search=key, limit=limit, offset=offset)
            return tuple(view.relations(rows).values())

        return await self._read(load)

    async def neighbours(self, name: str) -> Neighbourhood:
        """One entity and its relations, strongest first; `NotFoundError` if there is none."""
        key = name_key(sanitize(name))

        def load(view: StoreView) -> Neighbourhood:
            row = view.entity_ids([key]).get(key)
            if row is None:
                raise NotFoundError(f"no such entity: {name}")
            around = view.relation_rows(ends=[row])
            entity = replace(view.entities([row])[row], degree=len(around))
            relations = view.relations(around).values()
            by_weight = sorted(relations, key=lambda one: (-one.weight, one.source, one.target))
            return Neighbourhood(entity, tuple(by_weight))

        return await self._read(load)

    async def merge(self, names: Iterable[str], *, into: str) -> None:
        """Make names one entity, in later inserts, too; `NotFoundError` lists unknown ones."""
        listed = [names] if isinstance(names, str) else list(names)
        await self._parts._indexing.merge([sanitize(one) for one in listed], into)

    async def unmerge(self, *names: str) -> None:
        """Undo the merge of these names; `NotFoundError` lists names that are not merged.

        Names that were merged into one of them earlier stay merged with it. Given the target of a
        merge, all names that were merged into it are separated again.
        """
        await self._parts._indexing.unmerge([sanitize(one) for one in names])

    async def create(
        self, name: str, *, type: str, description: str, by: str, reason: str = ""
    ) -> str:
        """Add an entity by hand; later mentions of it in texts are merged with it.

        This and the following methods store an edit as a document that records who (`by`), when and
        why, and return its id: `delete` of that document undoes the edit. Inserting, deleting and
        `rebuild` keep edits. `ConfigError` if there is such an entity, or a value is invalid.
        """
        about: Record = {"entity_type": type, "description": description}
        return await self._edit("create", {"type": "entity", "name": name, **about}, by, reason)

    async def edit(
        self,
        name: str,
        *,
        type: str | None = None,
        description: str | None = None,
        by: str,
        reason: str = "",
    ) -> str:
        """Replace an entity's type or description; None keeps it. `merge` changes its name."""
        about: Record = {"entity_type": type, "description": description}
        return await self._edit("edit", {"type": "entity", "name": name, **about}, by, reason)

    async def delete(self, name: str, *, by: str, reason: str = "") -> str:
        """Remove an entity and its relations from the graph, also for texts inserted later.

        Creating it again also brings back what the texts state about it.
        """
        return await self._edit("delete", {"type": "entity", "name": name}, by, reason)

    async def create_relation(
        self,
        source: str,
        target: str,
        *,
        description: str,
        keywords: Iterable[str] = (),
        weight: float = 1.0,
        by: str,
        reason: str = "",
    ) -> str:
        """Relate two entities by hand; `NotFoundError` names an end that does not exist."""
        about = description, keywords, weight
        return await self._edit("create", _relation(source, target, *about), by, reason)

    async def edit_relation(
        self,
        source: str,
        target: str,
        *,
        description: str | None = None,
        keywords: Iterable[str] | None = None,
        weight: float | None = None,
        by: str,
        reason: str = "",
    ) -> str:
        """Replace a relation's description, keywords or weight; None keeps what is there."""
        about = description, keywords, weight
        return await self._edit("edit", _relation(source, target, *about), by, reason)

    async def delete_relation(self, source: str, target: str, *, by: str, reason: str = "") -> str:
        """Remove the relation of two entities from the graph, also for texts inserted later."""
        return await self._edit("delete", _relation(source, target), by, reason)

    async def _edit(self, claim: Claim, record: Record, by: str, reason: str) -> str:
        return await self._parts._indexing.edit(
            Edit(claim, record, by, reason), self._parts._seconds()
        )

    async def duplicates(self, *, limit: int = 100) -> tuple[Duplicate, ...]:
        """Pairs of entities that may be the same, most likely first, with the evidence."""
        return await search(self._parts._store, partial(find_duplicates, limit=limit))

    async def merge_stated(self) -> tuple[Duplicate, ...]:
        """Merge the pairs that are `certain`: stated by a text, unambiguous, and without evidence
        against them. Returns these pairs; `unmerge` undoes it.
        """
        pairs = await self.duplicates(limit=1 << 40)
        return await self.merge_pairs([pair for pair in pairs if pair.certain])

    async def merge_pairs(self, pairs: Iterable[Duplicate]) -> tuple[Duplicate, ...]:
        """Merge proposed pairs, each group of connected ones into one entity; returns the pairs."""
        merged = tuple(pairs)
        for into, *names in groups(merged):
            await self.merge(names, into=into)
        return merged

    async def estimate_review(self, pairs: Iterable[Duplicate]) -> Usage:
        """What `review` would cost, if no answer is in the cache; `ConfigError` without a model."""
        return estimate_review(tuple(pairs), self._parts._client, self._parts._tokenizer.count)

    async def review(self, pairs: Iterable[Duplicate]) -> Review:
        """Let the model judge pairs, in batches; `merge_pairs` merges the `same` ones it found."""
        return await review(tuple(pairs), self._parts._client)


class Traces(_Namespace):
    """The recorded queries: how each answer came about."""

    async def get(self, trace_id: str | None) -> recorded.Trace:
        """How an answer came about, by its id or the URI of one of its events.

        The id may be shortened as long as it stays unambiguous. `NotFoundError` if no trace, or more
        than one, has an id that begins like this, or if the answer has no trace (None).
        """
        return await self._read(partial(_load_trace, trace_id=trace_id))

    async def list(self, *, limit: int | None = 100) -> tuple[TraceSummary, ...]:
        """The newest queries, each with its status; None for all."""
        return tuple(await self._read(lambda view: view.traces(limit=limit)))

    async def verify(self, *trace_ids: str) -> tuple[recorded.Problem, ...]:
        """The problems of these traces; without ids, of all traces and the texts they cite."""
        return await self._read(lambda view: recorded.verify(view, trace_ids))

    async def export(
        self,
        trace_id: str | None,
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

        def write_rdf(view: StoreView) -> str:
            trace = _load_trace(view, trace_id)
            sources = recorded.look_up_sources(view, trace.chunk_ids) if with_source else None
            bases = {"entity_base": entity_base, "predicate_base": predicate_base}
            return export(trace, format=format, version=rdf, sources=sources, **bases)

        return await self._read(write_rdf)

    async def page(self, trace_id: str | None) -> str:
        """A trace as one self-contained web page, in the index's language."""

        def render(view: StoreView) -> str:
            trace = _load_trace(view, trace_id)
            found = recorded.look_up_sources(view, trace.chunk_ids)
            return render_page(trace, found, language=self._parts.language)

        return await self._read(render)

    async def sources(self, trace: recorded.Trace) -> recorded.Sources:
        """The stored texts behind a trace."""
        find = partial(recorded.look_up_sources, chunk_ids=trace.chunk_ids)
        return await self._read(find)

    async def edge_provenance(
        self, source: str, predicate: str, target: str
    ) -> recorded.EdgeProvenance:
        """The sources of an edge, and the queries that selected it; `NotFoundError` if there is none."""
        edge = source, predicate, target
        return await self._read(lambda view: recorded.edge_provenance(view, *edge))

    async def document_provenance(self, document_id: str) -> recorded.DocumentProvenance:
        """A document's pages and chunks with the edges they state, and the queries that used it.

        It is named by its id, its name or its URI; `NotFoundError` if that is not one document.
        """
        id = sanitize(document_id)
        return await self._read(lambda view: recorded.document_provenance(view, id))

    async def delete(self, *, keep: int = 0) -> int:
        """Delete all but the `keep` newest traces; returns how many were deleted."""
        return await write(self._parts._store, lambda writer: writer.delete_traces(keep=keep))


@dataclass(frozen=True, slots=True)
class CacheStats:
    """The number of cached answers of the model, and their size in bytes."""

    completions: int
    completion_bytes: int


class Admin(_Namespace):
    """Maintenance of an index."""

    async def rebuild(self) -> list[str]:
        """Rebuild all data derived from mentions; returns a line for each step."""
        return await self._parts._indexing.rebuild()

    async def reembed(
        self,
        embedder: Embedder | Callable[..., object],
        *,
        progress: ShowProgress = None,
    ) -> int:
        """Move the index to another embedder, without model calls; returns the number of texts.

        Questions use the old vectors until all new ones are stored. After an interruption, call it
        again to continue.
        """
        new = as_embedder(embedder)
        count = await self._parts._indexing.reembed(new, progress=progress)
        self._parts._connect(new)
        await self._parts._record_models()
        return count

    async def summarize(self) -> Usage:
        """Write every summary that is due, with the model; returns the calls and tokens used."""
        return await self._parts._indexing.summarize()

    async def vacuum(self) -> int:
        """Give unused space back to the disk; returns how many bytes that was.

        What was deleted stays readable in the files until then. `LockedError` if another process
        still reads an earlier state.
        """
        store = self._parts._store
        before = store.size()
        await to_thread.run_sync(store.vacuum)
        return max(0, before - store.size())

    async def cache(self) -> CacheStats:
        """What the cache of the model's answers holds."""
        return CacheStats(*await self._read(lambda view: view.completion_stats()))

    async def clear_cache(self) -> int:
        """Delete cached answers and vectors that nothing uses; returns how many."""
        return await write(
            self._parts._store,
            lambda writer: writer.delete_completions() + writer.delete_cached_vectors(),
        )

    async def settings(self) -> dict[str, str]:
        """What the index was built with."""
        return await self._read(lambda view: view.settings())

    async def check(self, *, full: bool = False) -> list[str]:
        """The problems of the stored data, in words; `rebuild` repairs derived data.

        Graph, full text and vectors are compared with what mentions and texts give: of each a
        random sample, or with `full` all.
        """
        return await self._parts._indexing.check(full=full)

    async def export(self, path: Path | str, *, format: GraphFormat | None = None) -> GraphFormat:
        """Write the graph to a file, by default in the format of its suffix, which is returned.

        They are .graphml, .json, .jsonl (the records behind the graph), .csv, .nq (N-Quads), .cypher
        and .html (a page with the entities that have most relations). `ConfigError` for others.
        """
        chosen = format or graph_format(Path(path))
        text = await self.export_text(chosen)
        await to_thread.run_sync(lambda: Path(path).write_text(text, "utf-8", newline=""))
        return chosen

    async def export_text(self, format: GraphFormat) -> str:
        """What `export` would write."""
        write_graph = partial(export_graph, format=format, language=self._parts.language)
        return await self._read(write_graph)


def _load_trace(view: StoreView, trace_id: str | None) -> recorded.Trace:
    if trace_id is None:
        raise NotFoundError("this answer has no trace: keep_traces is 0, or the index is read-only")
    return recorded.load_trace(view, trace_id)


def _relation(
    source: str,
    target: str,
    description: str | None = None,
    keywords: Iterable[str] | None = None,
    weight: float | None = None,
) -> Record:
    if weight is not None and not 0 < weight < MOST_WEIGHT:
        raise ConfigError(f"a weight is a number above 0 and below {MOST_WEIGHT:,}, not {weight}")
    words: Json = None if keywords is None else [*keywords]
    ends: Record = {"type": "relationship", "source": source, "target": target}
    return {**ends, "description": description, "keywords": words, "strength": weight}
