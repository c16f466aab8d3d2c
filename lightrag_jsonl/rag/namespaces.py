"""The namespaces of an index for its contents: entities, communities and traces."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lightrag_jsonl.core.answers import Community
from lightrag_jsonl.core.claims import Conflict, DatedClaim
from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.index_reports import MergedRecords
from lightrag_jsonl.core.options import LANGUAGE_NAMES, QueryParam
from lightrag_jsonl.core.types import (
    Document,
    EditAction,
    Entity,
    Json,
    Neighbourhood,
    Record,
    Relation,
    TraceSummary,
)
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.lenses.history import entity_history
from lightrag_jsonl.lenses.reports import (
    ReportRun,
    ReportTask,
    estimate_reports,
    find_report_tasks,
    reported_communities,
    write_reports,
)
from lightrag_jsonl.providers.model_names import NO_MODEL
from lightrag_jsonl.rag.engine import Engine
from lightrag_jsonl.rag.engine_opening import open_engine
from lightrag_jsonl.retrieval.association import association
from lightrag_jsonl.retrieval.task import SearchTask
from lightrag_jsonl.rules import HashEmbedder
from lightrag_jsonl.storage.rows import MILLION, PendingDocument, RelationRow
from lightrag_jsonl.storage.store import CompletionCache, read, search, write
from lightrag_jsonl.storage.views import Snapshot, StoreView
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.strings import sanitize
from lightrag_jsonl.tracing.rdf import Format, Version

if TYPE_CHECKING:
    from lightrag_jsonl.curation.duplicates import Duplicate
    from lightrag_jsonl.curation.homonyms import Homonym
    from lightrag_jsonl.curation.review import Review
    from lightrag_jsonl.lenses.conflicts import ConflictReview
    from lightrag_jsonl.tracing.trace import (
        DocumentProvenance,
        EdgeProvenance,
        Problem,
        Sources,
        Trace,
    )

MOST_WEIGHT = 1_000_000  # of a relation made by hand
ALL_PAIRS = 1 << 40  # a limit that no index reaches


class Entities:
    """The entities of the graph, by name, and the merges of names."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def get(self, name: str) -> Entity:
        """An entity, by name, a merged name or an alias of this entity alone; `NotFoundError` for an unknown name."""
        neighbourhood = await self.neighbours(name, limit=0)
        return neighbourhood.entity

    async def list(
        self, *, search: str = "", type: str = "", limit: int | None = None, offset: int = 0
    ) -> tuple[Entity, ...]:
        """Entities by name: all, or only with `search` in the name, or of a single `type`.

        The first `offset` are left out, and at most `limit` returned.
        """
        key = name_key(sanitize(search))

        def load(view: StoreView) -> tuple[Entity, ...]:
            kind = type.casefold()
            rows = view.listed("entity", search=key, type=kind, limit=limit, offset=offset)
            return tuple(view.entities(rows).values())

        return await read(self._engine.store, load)

    async def relations(
        self, *, search: str = "", limit: int | None = None, offset: int = 0
    ) -> tuple[Relation, ...]:
        """Relations, the heaviest first: all, or only with `search` in the name of an end.

        The first `offset` are left out, and at most `limit` returned.
        """
        key = name_key(sanitize(search))

        def load(view: StoreView) -> tuple[Relation, ...]:
            rows = view.listed("relation", search=key, limit=limit, offset=offset)
            return tuple(view.relations(rows).values())

        return await read(self._engine.store, load)

    async def neighbours(self, name: str, *, limit: int | None = None) -> Neighbourhood:
        """An entity and the relations, at most `limit`: those that state something first, by weight; then the
        names that are only mentioned together with it, the most telling first. The `degree` of the entity is
        the number of all. `NotFoundError` for an unknown name.
        """

        def load(view: StoreView) -> Neighbourhood:
            row = _entity_called(view, name)
            relation_rows = view.relation_rows(ends=[row])
            entity = view.entities([row])[row]
            ranked = [] if limit == 0 else _ranked_neighbours(view, relation_rows)
            relations_by_row = view.relations(ranked[:limit])
            relations = tuple(relations_by_row[id] for id in ranked[:limit])
            return Neighbourhood(replace(entity, degree=len(relation_rows)), relations)

        return await read(self._engine.store, load)

    async def history(self, name: str) -> tuple[DatedClaim, ...]:
        """What was said about an entity over time, with the sentences, documents and dates: in the order
        of time, claims without a date last. `NotFoundError` for an unknown name.
        """
        return await read(
            self._engine.store, lambda view: entity_history(view, _entity_called(view, name))
        )

    async def of_records(
        self, texts: Iterable[tuple[Document | str, Iterable[Record]]]
    ) -> MergedRecords:
        """The entities and relations of records, merged as in this index; nothing is stored.

        Takes texts with their records, such as those of `extract`; each text is cut as usual, and a
        record may name a chunk by index. The result is what an index of these texts alone would hold:
        names in different spellings are one, types are voted on, descriptions are joined. No model is
        called, so there are no summaries; edits by hand and merges of names of this index do not count.
        """
        from tempfile import TemporaryDirectory

        engine = self._engine
        pending_documents = [
            PendingDocument(
                document=Document(document) if isinstance(document, str) else document,
                created_at=engine.clock.seconds(),
                records=tuple(records),
            )
            for document, records in texts
        ]
        with TemporaryDirectory() as folder:
            scratch = open_engine(
                folder,
                llm=NO_MODEL,
                embedder=HashEmbedder(dim=8),  # nobody searches
                tokenizer=engine.tokenizer,
                language=engine.language,
                options=engine.options,
                prompts=engine.prompts,
                chunker=engine.chunker,
            )
            with closing(scratch):
                report = await scratch.indexing.insert(
                    pending_documents, progress=False, summarize=False
                )
                entities = Entities(scratch)
                return MergedRecords(
                    entities=await entities.list(),
                    relations=await entities.relations(),
                    rejections=report.extraction.rejections,
                )

    async def merge(self, names: Iterable[str], *, into: str) -> None:
        """Make names a single entity, in later inserts, too; `NotFoundError` lists unknown names."""
        listed = [names] if isinstance(names, str) else list(names)
        await self._engine.curation.merge_names([sanitize(name) for name in listed], into)

    async def unmerge(self, *names: str) -> None:
        """Undo the merge of names; `NotFoundError` lists names without a merge.

        Earlier merges into one of these names stay. For the target of a merge, the whole merge is
        undone.
        """
        await self._engine.curation.unmerge_names([sanitize(name) for name in names])

    async def create(
        self, name: str, *, type: str, description: str, by: str, reason: str = ""
    ) -> str:
        """Add an entity by hand; later mentions in texts are merged with it.

        All methods from here to `delete_relation` store an edit as a document with its author
        (`by`), time and reason, and return the document's id: `delete` of the document undoes the
        edit. Inserting, deleting and `rebuild` keep edits. `ConfigError` if the entity exists
        already, or a value is invalid.
        """
        record = _edited_entity(name, type=type, description=description)
        return await self._edit("create", record, by=by, reason=reason)

    async def edit(
        self,
        name: str,
        *,
        type: str | None = None,
        description: str | None = None,
        by: str,
        reason: str = "",
    ) -> str:
        """Replace an entity's type or description; `None` keeps either. `merge` changes the name."""
        record = _edited_entity(name, type=type, description=description)
        return await self._edit("edit", record, by=by, reason=reason)

    async def delete(self, name: str, *, by: str, reason: str = "") -> str:
        """Remove an entity and its relations from the graph, also for texts inserted later.

        Creating the entity again also brings back all statements of the texts about the entity.
        """
        return await self._edit("delete", {"type": "entity", "name": name}, by=by, reason=reason)

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
        """Relate two entities by hand; `NotFoundError` names an unknown end."""
        record = _edited_relation(
            source, target, description=description, keywords=keywords, weight=weight
        )
        return await self._edit("create", record, by=by, reason=reason)

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
        """Replace a relation's description, keywords or weight; `None` keeps the present value."""
        record = _edited_relation(
            source, target, description=description, keywords=keywords, weight=weight
        )
        return await self._edit("edit", record, by=by, reason=reason)

    async def delete_relation(self, source: str, target: str, *, by: str, reason: str = "") -> str:
        """Remove the relation of two entities from the graph, also for texts inserted later."""
        record = _edited_relation(source, target)
        return await self._edit("delete", record, by=by, reason=reason)

    async def _edit(self, action: EditAction, record: Record, *, by: str, reason: str) -> str:
        from lightrag_jsonl.curation.edits import Edit

        edit = Edit(action=action, record=record, by=by, reason=reason)
        return await self._engine.curation.edit(edit, self._engine.clock.seconds())

    async def duplicates(self, *, limit: int = 100) -> "tuple[Duplicate, ...]":
        """Pairs of entities, perhaps the same entity, most likely first, with the evidence."""
        from lightrag_jsonl.curation.duplicates import find_duplicates

        has_meaning = not getattr(self._engine.embedder, "lexical", False)
        find = partial(find_duplicates, limit=limit, has_meaning=has_meaning)
        return await search(self._engine.store, find)

    async def merge_stated(self) -> "tuple[Duplicate, ...]":
        """Merge the `certain` pairs: stated by a text, unambiguous, and without evidence against
        the merge. Returns the pairs; `unmerge` undoes a merge.
        """
        pairs = await self.duplicates(limit=ALL_PAIRS)
        return await self.merge_pairs([pair for pair in pairs if pair.certain])

    async def merge_pairs(self, pairs: "Iterable[Duplicate]") -> "tuple[Duplicate, ...]":
        """Merge proposed pairs, each group of connected pairs into an entity; returns the pairs."""
        from lightrag_jsonl.curation.duplicates import groups

        merged = tuple(pairs)
        for into, *names in groups(merged):
            await self.merge(names, into=into)
        return merged

    async def homonyms(self, *, limit: int = 100) -> "tuple[Homonym, ...]":
        """Names with perhaps several bearers, most likely first: types, dates or places of their
        documents contradict each other. `separate` takes the name and the bearers of one.
        """
        from lightrag_jsonl.curation.homonyms import find_homonyms

        return await search(self._engine.store, partial(find_homonyms, limit=limit))

    async def separate(self, name: str, bearers: Mapping[str, Iterable[str]]) -> None:
        """Tell the bearers of a name apart: by each qualifier, the ids of the documents that mean the
        bearer. "John Gale" becomes "John Gale (Kestrel Works)" in them, and stays an alias.

        Other and later documents keep the bare name. `NotFoundError` for an unknown name, or a document
        that does not mention it; `ConfigError` if other names are merged into it. `rejoin` undoes it.
        """
        documents = {
            qualifier: [sanitize(id) for id in ([ids] if isinstance(ids, str) else ids)]
            for qualifier, ids in bearers.items()
        }
        await self._engine.curation.separate_name(sanitize(name), documents)

    async def rejoin(self, *names: str) -> None:
        """Take the qualifiers off separated names; `NotFoundError` lists names without one."""
        await self._engine.curation.rejoin_names([sanitize(name) for name in names])

    async def estimate_review(self, pairs: "Iterable[Duplicate]") -> Usage:
        """The cost of `review`, if no answer is in the cache; `ConfigError` without a model."""
        from lightrag_jsonl.curation.review import estimate_review

        return estimate_review(tuple(pairs), self._engine.client, self._engine.tokenizer.count)

    async def review(self, pairs: "Iterable[Duplicate]") -> "Review":
        """Let the model judge pairs, in batches; `merge_pairs` merges the pairs in `same`."""
        from lightrag_jsonl.curation.review import review

        return await review(tuple(pairs), self._engine.client)

    async def estimate_conflict_review(self, conflicts: Iterable[Conflict]) -> Usage:
        """The cost of `review_conflicts`, if no answer is in the cache; `ConfigError` without a model."""
        from lightrag_jsonl.lenses.conflicts import estimate_conflict_review

        return estimate_conflict_review(
            tuple(conflicts), self._engine.client, self._engine.tokenizer.count
        )

    async def review_conflicts(self, conflicts: Iterable[Conflict]) -> "ConflictReview":
        """Let the model judge pairs of `LightRAG.conflicts`, in batches."""
        from lightrag_jsonl.lenses.conflicts import review_conflicts

        return await review_conflicts(tuple(conflicts), self._engine.client)


class Communities:
    """The communities of the graph: entities and passages that belong together."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def list(self, *, where: Mapping[str, Any] | None = None) -> tuple[Community, ...]:
        """The communities of the graph, the largest first, each followed by its parts.

        `where` filters documents as in `QueryParam`: then they are made of the visible documents alone.
        """
        engine = self._engine
        find = partial(reported_communities, memory=engine.communities, where=where)
        return await search(engine.store, find)

    async def estimate_report(self) -> Usage:
        """The cost of `report`, if no answer is in the cache; `ConfigError` without a model."""
        report_tasks = await self._report_tasks()
        engine = self._engine
        return estimate_reports(
            report_tasks,
            engine.client,
            engine.tokenizer.count,
            LANGUAGE_NAMES.get(engine.language, engine.language),
        )

    async def report(self) -> ReportRun:
        """Let the model write a report on each larger community of level 0 that has none.

        Overviews show reports with their citations beside the excerpts. A report holds as
        long as its community has the same passages, and is written anew only after a
        change. A purge, and the deletion of cached answers, delete reports.
        """
        engine = self._engine
        _ = engine.client.model("summarize")
        await write(engine.store, lambda transaction: None)  # an error before anything is paid
        cache = CompletionCache(engine.store)
        return await write_reports(
            await self._report_tasks(),
            engine.client,
            cache,
            LANGUAGE_NAMES.get(engine.language, engine.language),
        )

    async def _report_tasks(self) -> Sequence[ReportTask]:
        engine = self._engine

        def find(snapshot: Snapshot) -> Sequence[ReportTask]:
            task = SearchTask.without_question(snapshot, QueryParam(mode="overview"))
            return find_report_tasks(task, engine.communities, engine.tokenizer)

        return await search(engine.store, find)


class Traces:
    """The recorded queries: how each answer came about."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def get(self, trace_id: str | None) -> "Trace":
        """The trace of an answer, by id or by the URI of an event.

        An unambiguous beginning of the id is enough. `NotFoundError` if no trace or several traces
        have an id with this beginning, or if the answer has no trace (`None`).
        """
        return await read(self._engine.store, partial(_load_trace, trace_id=trace_id))

    async def list(self, *, limit: int | None = 100) -> tuple[TraceSummary, ...]:
        """The newest queries, each with its status; `limit=None` for all."""
        return tuple(await read(self._engine.store, lambda view: view.traces(limit=limit)))

    async def verify(self, *trace_ids: str) -> "tuple[Problem, ...]":
        """The problems of these traces; without ids, of all traces and the cited texts."""
        from lightrag_jsonl.tracing.trace import verify_traces

        return await read(self._engine.store, lambda view: verify_traces(view, trace_ids))

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
        """A trace as RDF, labelled in the index's language; `with_source` adds the chain from the edges to
        the documents.

        The URI of an entity or predicate is a base (by default `urn:entity:` or `urn:predicate:`)
        followed by the percent-encoded key. Raises `ConfigError` for a base without a scheme.
        """
        from lightrag_jsonl.tracing.export import export_trace
        from lightrag_jsonl.tracing.trace import look_up_sources

        def write_rdf(view: StoreView) -> str:
            trace = _load_trace(view, trace_id)
            sources = look_up_sources(view, trace.chunk_ids) if with_source else None
            return export_trace(
                trace,
                format=format,
                version=rdf,
                sources=sources,
                entity_base=entity_base,
                predicate_base=predicate_base,
                language=self._engine.language,
            )

        return await read(self._engine.store, write_rdf)

    async def page(self, trace_id: str | None) -> str:
        """A trace as a self-contained web page, in the index's language."""
        from lightrag_jsonl.tracing.page import render_page
        from lightrag_jsonl.tracing.trace import look_up_sources

        def render(view: StoreView) -> str:
            trace = _load_trace(view, trace_id)
            sources = look_up_sources(view, trace.chunk_ids)
            return render_page(trace, sources, language=self._engine.language)

        return await read(self._engine.store, render)

    async def sources(self, trace: "Trace") -> "Sources":
        """The stored texts behind a trace."""
        from lightrag_jsonl.tracing.trace import look_up_sources

        look_up = partial(look_up_sources, chunk_ids=trace.chunk_ids)
        return await read(self._engine.store, look_up)

    async def edge_provenance(self, source: str, predicate: str, target: str) -> "EdgeProvenance":
        """An edge's sources, and the queries with this edge; `NotFoundError` for an unknown edge."""
        from lightrag_jsonl.tracing.trace import edge_provenance

        return await read(
            self._engine.store,
            lambda view: edge_provenance(view, source, predicate, target),
        )

    async def document_provenance(self, document_id: str) -> "DocumentProvenance":
        """A document's pages, chunks and edges, and the queries with chunks of the document.

        `document_id` is the id, the name or the URI; `NotFoundError` if no document or several
        documents have this name.
        """
        from lightrag_jsonl.tracing.trace import document_provenance

        id = sanitize(document_id)
        return await read(self._engine.store, lambda view: document_provenance(view, id))

    async def delete(self, *, keep: int = 0) -> int:
        """Delete all but the `keep` newest traces; returns the number of deleted traces."""
        return await write(self._engine.store, lambda writer: writer.delete_traces(keep=keep))


def _load_trace(view: StoreView, trace_id: str | None) -> "Trace":
    from lightrag_jsonl.tracing.trace import load_trace

    if trace_id is None:
        raise NotFoundError("this answer has no trace: keep_traces is 0, or the index is read-only")
    return load_trace(view, trace_id)


def _edited_entity(name: str, *, type: str | None, description: str | None) -> Record:
    return {"type": "entity", "name": name, "entity_type": type, "description": description}


def _edited_relation(
    source: str,
    target: str,
    *,
    description: str | None = None,
    keywords: Iterable[str] | None = None,
    weight: float | None = None,
) -> Record:
    if weight is not None and not 0 < weight < MOST_WEIGHT:
        raise ConfigError(f"a weight is a number above 0 and below {MOST_WEIGHT:,}, not {weight}")
    keyword_list: Json = None if keywords is None else [*keywords]
    return {
        "type": "relationship",
        "source": source,
        "target": target,
        "description": description,
        "keywords": keyword_list,
        "strength": weight,
    }


def _entity_called(view: StoreView, name: str) -> int:
    """The row id of the entity with a name, a merged name, or an alias of it alone; `NotFoundError`."""
    key = name_key(sanitize(name))
    row = view.entity_ids([key]).get(key)
    bearers = [row] if row is not None else [id for id, _ in view.alias_claims(keys=[key])]
    if len(bearers) == 1:
        return bearers[0]
    names = ", ".join(sorted(view.entity_names(bearers).values()))
    hint = f"; an alias of {names}" if names else ""
    raise NotFoundError(f"no such entity: {name}{hint}")


def _ranked_neighbours(view: StoreView, rows: Mapping[int, RelationRow]) -> list[int]:
    """The row ids of relations: those that state something first, then by how telling they are."""
    ends = view.entity_rows(ids={end for row in rows.values() for end in (row.low, row.high)})
    low = [ends[row.low].mentions for row in rows.values()]
    high = [ends[row.high].mentions for row in rows.values()]
    weights = [row.weight / MILLION for row in rows.values()]
    likelihoods = association(weights, low, high, view.counts().chunks).tolist()
    telling = {
        id: (row.states_something, weight if row.states_something else likelihood, weight)
        for (id, row), weight, likelihood in zip(rows.items(), weights, likelihoods, strict=True)
    }

    def rank(id: int) -> tuple[bool, float, float, str, str]:
        states_something, likelihood, weight = telling[id]
        row = rows[id]
        source, target = (row.high, row.low) if row.reversed else (row.low, row.high)
        return not states_something, -likelihood, -weight, ends[source].name, ends[target].name

    return sorted(rows, key=rank)
