"""Merges other indexes into an index: documents, with all paid results, and merges of names."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TypeAlias

from lightrag_jsonl.core.errors import ConfigError, LLMError, SettingsError
from lightrag_jsonl.core.index_reports import MergeReport
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import BY_RULES
from lightrag_jsonl.curation.aliases import aliases_of, plan_renaming
from lightrag_jsonl.indexing.commits import IndexWriter, plan_documents
from lightrag_jsonl.indexing.contents import DocumentContents, content_vectors, document_contents
from lightrag_jsonl.indexing.incoming import (
    IncomingDocument,
    documents_of_chunks,
    with_extractions,
)
from lightrag_jsonl.indexing.insertion import LARGEST_GROUP
from lightrag_jsonl.indexing.merging import GRAPH_KINDS, GraphKey, IndexChange
from lightrag_jsonl.indexing.progress import Progress, ProgressCallback
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.storage.rows import Aliases, StoredDocument, purge_marks
from lightrag_jsonl.storage.status import QUESTIONS_READ, READ
from lightrag_jsonl.storage.store import Store, read, write
from lightrag_jsonl.storage.views import StoreView, Transaction

ANSWERS_AT_ONCE = 500  # copied in one transaction


@dataclass(frozen=True, slots=True)
class SourceIndex:
    """An index for merging into another index.

    `document_ids` are the documents to take, or `None` for all. If the source `replaces`, its
    documents take the place of other versions. If it `restores`, documents that were purged from the
    index come back; in any case, those whose marks the caller has seen and heeded before.
    """

    location: str
    view: StoreView
    document_ids: Collection[str] | None = None
    replaces: bool = False
    restores: bool = False
    seen_marks: Collection[str] = ()


@dataclass(slots=True)
class _MergePlan:
    """The plan of a merge: new documents, each with the source, and merges of names; of `unchanged` documents,
    the chunks that a model has read in the source only.
    """

    aliases: Aliases
    documents: list[tuple[SourceIndex, StoredDocument]] = field(default_factory=list)
    unchanged: list[tuple[SourceIndex, StoredDocument]] = field(default_factory=list)
    purged: dict[str, list[str]] = field(default_factory=dict)  # ids by location of the source
    marks: set[str] = field(default_factory=set)  # of purges in the sources
    pending: int = 0


MergedDocument: TypeAlias = tuple[SourceIndex, IncomingDocument, DocumentContents]


@dataclass(slots=True)
class _DocumentGroup:
    """Documents to become visible together, and the vectors by digest."""

    documents: list[IncomingDocument] = field(default_factory=list)
    vectors: dict[bytes, Vectors] = field(default_factory=dict)
    sources: dict[str, SourceIndex] = field(default_factory=dict)  # by location
    chunks: int = 0

    def add(
        self, source: SourceIndex, document: IncomingDocument, contents: DocumentContents
    ) -> None:
        """Add a document with all that was extracted from it in a source."""
        self.documents.append(document)
        self.vectors.update(content_vectors(source.view, contents))
        self.sources[source.location] = source
        self.chunks += len(document.chunks)

    def plan(self, view: StoreView) -> IndexChange:
        change = plan_documents(self.documents, (), view)
        change.known_vectors = self.vectors
        return change


class _CacheOnly(UsageMeter):
    """Allows no model call, so that summaries come only from cached answers."""

    def check(self) -> None:
        raise LLMError("merging indexes asks no model")


async def merge_indexes(
    writer: IndexWriter,
    sources: Sequence[SourceIndex],
    progress: ProgressCallback | None = None,
    touched: set[GraphKey] | None = None,
) -> MergeReport:
    """Merge the sources into the index of the writer; no model is asked. Created and changed entities and
    relations are added to `touched`.

    All conflicts are found before anything is written: `SettingsError` for an index that was built
    with other parts, `ConfigError` for a document with two versions, or for contradicting merges
    of names.
    """
    plan = await read(writer.store, partial(plan_merge, writer, sources))
    await write(writer.store, partial(_put_read_mode, sources))
    answers = 0
    for source in sources:
        answers += await _copy_answers(writer, source, plan.purged.get(source.location, ()))
    if plan.marks:
        await write(writer.store, lambda transaction: transaction.put_purge_marks(plan.marks))
    if plan.aliases != await read(writer.store, lambda view: view.aliases()):
        await writer.commit(partial(plan_renaming, lambda view: plan.aliases))
    deferred: set[GraphKey] = set()
    rows: set[GraphKey] = set() if touched is None else touched
    contributing: dict[str, SourceIndex] = {}  # by location
    chunks = 0
    documents = 0
    groups = chain(
        _groups(_new_documents(plan.documents)),
        _groups(_new_readings(plan.unchanged, writer.store)),
    )
    while group := await asyncio.to_thread(next, groups, None):
        change = await writer.commit(group.plan, meter=_CacheOnly(), deferred=deferred)
        for kind in GRAPH_KINDS:
            rows.update([(kind, row) for row in change.graph.rows(kind)])
            rows.difference_update([(kind, row) for row in change.graph.rows(kind, gone=True)])
        contributing |= group.sources
        chunks += len(change.chunks)
        documents += len(group.documents)
        if progress is not None:
            expected_chunks = chunks * max(len(plan.documents), documents) // documents
            progress(Progress(chunks, expected_chunks, documents))
    await write(writer.store, partial(_count_questions, contributing.values()))
    return MergeReport(
        documents=tuple(document.id for _, document in plan.documents),
        unchanged=tuple([document.id for _, document in plan.unchanged]),
        purged=tuple(sorted({id for ids in plan.purged.values() for id in ids})),
        pending=plan.pending,
        chunks=chunks,
        entities=sum(kind == "entity" for kind, _ in rows),
        relations=sum(kind == "relation" for kind, _ in rows),
        answers=answers,
        summaries_due=len(deferred),
    )


# ── the plan, and its conflicts ─────────────────────────────────────────────────


def plan_merge(writer: IndexWriter, sources: Sequence[SourceIndex], view: StoreView) -> _MergePlan:
    """What a merge into the index of a view would do; raises as `merge_indexes`."""
    location = writer.store.location
    plan = _MergePlan(view.aliases())
    versions = {document.id: (document.content, location) for document in view.documents()}
    marks = view.purge_marks()
    for source in sources:
        _check_settings(writer.settings(), source, location)
        plan.aliases = _joint_aliases(plan.aliases, source, location)
        _plan_documents_of(source, plan, versions, marks)
        plan.pending += len(source.view.pending())
    plan.marks = _marks_of(sources, view)
    return plan


def _marks_of(sources: Sequence[SourceIndex], view: StoreView) -> set[str]:
    """The marks of purges in whole sources, but those of documents that are in the index."""
    whole_sources = [source for source in sources if source.document_ids is None]
    marks = set().union(*[source.view.purge_marks() for source in whole_sources])
    for document in view.documents() if marks else ():
        marks -= purge_marks(document.id, view.pages([document.id]))
    return marks


def _plan_documents_of(
    source: SourceIndex, plan: _MergePlan, versions: dict[str, tuple[str, str]], marks: set[str]
) -> None:
    """Add the documents of a source to the plan; `versions` holds content and location by id, `marks` what
    documents have left that were purged from the index.
    """
    locations_by_id: dict[str, str] = {}  # of conflicting versions
    unseen_marks = set() if source.restores else marks.difference(source.seen_marks)
    for document in source.view.documents(source.document_ids):
        content, location = versions.get(document.id, ("", ""))
        if content == document.content:
            plan.unchanged.append((source, document))
            continue
        if unseen_marks:
            pages = source.view.pages([document.id])
            if unseen_marks & purge_marks(document.id, pages):
                plan.purged.setdefault(source.location, []).append(document.id)
                continue
        if location and not source.replaces:
            locations_by_id[document.id] = location
        versions[document.id] = (document.content, source.location)
        plan.documents.append((source, document))
    if locations_by_id:
        locations = [*sorted(set(locations_by_id.values())), source.location]
        raise ConfigError(
            f"different versions of a document are in {' and '.join(locations)}: "
            f"{', '.join(locations_by_id)}; delete the older one and merge again; nothing was "
            "changed"
        )


def _check_settings(settings: Mapping[str, str], source: SourceIndex, location: str) -> None:
    if source.location == location:
        raise ConfigError(f"an index cannot be merged into itself: {location}")
    source_settings = source.view.settings()
    for name, value in settings.items():
        source_value = source_settings.get(name, value)
        if source_value != value:
            raise SettingsError(
                f"{source.location} was built with {name} {source_value!r}, {location} with "
                f"{value!r}: indexes are merged if embedder, language and tokenizer are the same",
                path=source.location,
            )


def _joint_aliases(aliases: Aliases, source: SourceIndex, location: str) -> Aliases:
    """The merges of names of two indexes; `ConfigError` if the merges contradict each other."""
    source_aliases = source.view.aliases()
    links = {**source_aliases.links, **aliases.links}
    for key, target in links.items():
        is_contradicted = source_aliases.links.get(key, target) != target
        if is_contradicted or _is_circular(key, links):
            raise ConfigError(
                f"the name {key!r} is merged into different entities in {location} and "
                f"{source.location}: undo one of these merges with unmerge; nothing was changed"
            )
    displays = {**source_aliases.displays, **aliases.displays}
    return aliases_of(links, displays, aliases.apart | source_aliases.apart)


def _is_circular(key: str, links: Mapping[str, str]) -> bool:
    """Whether the links from a key lead to no end."""
    visited = {key}
    while key in links:
        key = links[key]
        if key in visited:
            return True
        visited.add(key)
    return False


# ── reading and writing ─────────────────────────────────────────────────────────


async def _copy_answers(
    writer: IndexWriter, source: SourceIndex, purged_ids: Collection[str]
) -> int:
    """Copy a source's cached answers; if documents were chosen, or some were purged here, only the answers
    about one document alone. Returns the number of copied answers.
    """
    documents_by_key = await asyncio.to_thread(source.view.completion_keys)
    left_out = {None, *purged_ids} if purged_ids else set()
    keys = [
        (key, document_id)
        for key, document_id in documents_by_key.items()
        if (source.document_ids is None or document_id in source.document_ids)
        and document_id not in left_out
    ]

    def copy(batch: Sequence[tuple[bytes, str | None]], transaction: Transaction) -> int:
        copied = 0
        for key, document_id in batch:
            answer = source.view.completion(key)
            if answer is not None and transaction.completion(key) is None:
                transaction.put_completion(key, answer, document_id)
                copied += 1
        return copied

    count = 0
    for start in range(0, len(keys), ANSWERS_AT_ONCE):
        batch = keys[start : start + ANSWERS_AT_ONCE]
        count += await write(writer.store, partial(copy, batch), durable=False)
    return count


def _groups(documents: Iterable[MergedDocument]) -> Iterator[_DocumentGroup]:
    """The documents in groups of at least as many chunks as the largest of an insert."""
    group = _DocumentGroup()
    for document in documents:
        group.add(*document)
        if group.chunks >= LARGEST_GROUP:
            yield group
            group = _DocumentGroup()
    if group.documents:
        yield group


def _new_documents(
    documents: Sequence[tuple[SourceIndex, StoredDocument]],
) -> Iterator[MergedDocument]:
    """The documents with all extracted records."""
    for source, stored in documents:
        contents = document_contents(source.view, stored.id)
        document = IncomingDocument(
            document=stored,
            pages=source.view.pages([stored.id]),
            chunks=tuple(contents.chunks.values()),
            extractions=tuple(contents.extractions[row] for row in contents.chunks),
            override=next(iter(source.view.overrides(contents.chunks).values()), None),
        )
        yield source, document, contents


def _new_readings(
    unchanged: Sequence[tuple[SourceIndex, StoredDocument]], store: Store
) -> Iterator[MergedDocument]:
    """What a model has read in a source, of chunks that only rules have read in the store."""
    with store.view() as view:
        rows_by_name = {name: row for row, name in view.chunks_by_rules().items()}
    for source, stored in unchanged if rows_by_name else ():
        read_names = [
            report.chunk_id
            for report in source.view.chunk_reports([stored.id])
            if report.state != "failed" and not report.extractor.startswith(BY_RULES)
        ]
        rows = [rows_by_name.pop(name) for name in read_names if name in rows_by_name]
        if not rows:
            continue
        with store.view() as view:
            (document,) = documents_of_chunks(rows, view)
        contents = document_contents(source.view, stored.id)
        chunk_rows = {chunk.id: row for row, chunk in contents.chunks.items()}
        extractions = {
            row: contents.extractions[chunk_rows[chunk.id]]
            for row, chunk in zip(document.rows, document.chunks, strict=True)
        }
        yield source, with_extractions(document, extractions), contents


# ── when a model reads ──────────────────────────────────────────────────────────


def _put_read_mode(sources: Sequence[SourceIndex], transaction: Transaction) -> None:
    """Record in an index without documents when a model reads chunks, as the first source says."""
    modes = [source.view.settings().get(READ) for source in sources]
    mode = next(filter(None, modes), None)
    if mode is not None and not transaction.counts().documents:
        transaction.put_settings({READ: transaction.settings().get(READ, mode)})


def _count_questions(sources: Iterable[SourceIndex], transaction: Transaction) -> None:
    """Add the questions that had chunks of whole sources read."""
    settings = [transaction.settings()]
    settings += [source.view.settings() for source in sources if source.document_ids is None]
    questions = sum(int(values.get(QUESTIONS_READ, "0")) for values in settings)
    if questions:
        transaction.put_settings({QUESTIONS_READ: str(questions)})
