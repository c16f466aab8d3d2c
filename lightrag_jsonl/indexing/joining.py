"""Takes the documents of other indexes into this one, with all that was paid for there."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from lightrag_jsonl.core.errors import ConfigError, LLMError, SettingsError
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import (
    Completion,
    Extraction,
    ExtractionReport,
    Kind,
    MergeReport,
    Message,
    ResponseType,
)
from lightrag_jsonl.indexing import merging
from lightrag_jsonl.indexing.commits import IndexWriter, plan_documents
from lightrag_jsonl.indexing.inserting import GROUP
from lightrag_jsonl.indexing.merging import GRAPH_KINDS, ExtractedDocument, GraphKey, IndexChange
from lightrag_jsonl.indexing.progress import Progress, ProgressCallback
from lightrag_jsonl.storage.rows import Aliases, StoredDocument
from lightrag_jsonl.storage.store import Reader, Transaction, read, write

ANSWERS = 500  # that are copied in one transaction
OWN_SETTINGS = ("format", "mark_secret")  # that every index makes for itself


class Source(NamedTuple):
    """An index that is merged into another; only its documents with these ids, or all if None.

    If it `replaces`, its documents take the place of other versions there.
    """

    location: str
    reader: Reader
    only: Collection[str] | None = None
    replaces: bool = False


class CachedAnswers:
    """Stands in for a model of which only answers that are in the cache may be used."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        raise LLMError("merging indexes asks no model")


@dataclass(frozen=True, slots=True)
class KeptExtraction(Extraction):
    """An extraction as it was stored: of its numbers, only the report is known."""

    kept: ExtractionReport = ExtractionReport()

    @property
    def report(self) -> ExtractionReport:
        return self.kept


@dataclass(slots=True)
class _Plan:
    """What is to be taken over: documents that are new here, from which source each, and names."""

    aliases: Aliases
    new: list[tuple[Source, StoredDocument]] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    pending: int = 0


async def join_indexes(
    writer: IndexWriter, sources: Sequence[Source], progress: ProgressCallback | None = None
) -> MergeReport:
    """Merge the indexes of `sources` into that of `writer`, which asks no model for summaries.

    All conflicts are found before anything is written: `SettingsError` for an index that was built
    with other parts, `ConfigError` for a document with two versions, or names merged differently.
    """
    plan = await read(writer.store, partial(_plan, writer, sources))
    answers = 0
    for source in sources:
        answers += await _copy_answers(writer, source)
    if plan.aliases != await read(writer.store, lambda reader: reader.aliases()):
        rename = partial(merging.plan_renaming, lambda reader: plan.aliases)
        await writer.commit(rename)
    deferred, rows, done, documents = set[GraphKey](), set[GraphKey](), 0, 0
    groups = _groups(plan.new)
    while group := await asyncio.to_thread(next, groups, None):
        change = await writer.commit(partial(_plan_group, *group), deferred=deferred)
        rows |= {(kind, row) for kind in GRAPH_KINDS for row in change.graph.rows(kind)}
        done, documents = done + len(change.chunks), documents + len(group[0])
        if progress is not None:
            progress(Progress(done, done * len(plan.new) // documents, documents))
    return MergeReport(
        documents=tuple(one.id for _, one in plan.new),
        unchanged=tuple(plan.unchanged),
        pending=plan.pending,
        chunks=done,
        entities=sum(kind == "entity" for kind, _ in rows),
        relations=sum(kind == "relation" for kind, _ in rows),
        answers=answers,
        summaries_due=len(deferred),
    )


# ── what is taken over, and whether it fits ─────────────────────────────────────


def _plan(writer: IndexWriter, sources: Sequence[Source], reader: Reader) -> _Plan:
    here, plan = writer.store.location, _Plan(reader.aliases())
    versions = {one.id: (one.content, here) for one in reader.documents()}
    for source in sources:
        _check_settings(writer.settings(), source, here)
        plan.aliases = _joined(plan.aliases, source, here)
        conflicts: dict[str, str] = {}
        for one in source.reader.documents(source.only):
            content, place = versions.get(one.id, ("", ""))
            if content == one.content:
                plan.unchanged.append(one.id)
                continue
            if place and not source.replaces:
                conflicts[one.id] = place
            versions[one.id] = one.content, source.location
            plan.new.append((source, one))
        if conflicts:
            places = " and ".join([*sorted(set(conflicts.values())), source.location])
            raise ConfigError(
                f"different versions of a document are in {places}: {', '.join(conflicts)}; delete "
                "the older one and merge again; nothing was changed"
            )
        plan.pending += len(source.reader.pending())
    return plan


def _check_settings(wanted: Mapping[str, str], source: Source, here: str) -> None:
    if source.location == here:
        raise ConfigError(f"an index cannot be merged into itself: {here}")
    found = source.reader.settings()
    for name, value in wanted.items():
        if found.get(name, value) != value:
            raise SettingsError(
                f"{source.location} was built with {name} {found[name]!r}, {here} with {value!r}: "
                "indexes are merged if embedder, language and tokenizer are the same",
                path=source.location,
            )


def _joined(known: Aliases, source: Source, here: str) -> Aliases:
    """The merges of names of two indexes; `ConfigError` if they contradict each other."""
    others = source.reader.aliases()
    links = {**others.links, **known.links}
    for key in links:
        seen, end = {key}, key
        while end in links and (end := links[end]) not in seen:
            seen.add(end)
        if end in links or others.links.get(key, links[key]) != links[key]:
            raise ConfigError(
                f"the name {key!r} is merged into different entities in {here} and "
                f"{source.location}: undo one of these merges with unmerge; nothing was changed"
            )
    displays = {**others.displays, **known.displays}
    kept = {*links.values(), *displays.keys() - links.keys()}
    return Aliases(links, {key: name for key, name in displays.items() if key in kept})


# ── reading and writing ─────────────────────────────────────────────────────────


async def _copy_answers(writer: IndexWriter, source: Source) -> int:
    """Take over a source's cached answers, of chosen documents those about one of them alone."""
    keys = await asyncio.to_thread(source.reader.completion_keys)
    wanted = [(k, id) for k, id in keys.items() if source.only is None or id in source.only]

    def copy(some: Sequence[tuple[bytes, str | None]], transaction: Transaction) -> int:
        copied = 0
        for key, document in some:
            answer = source.reader.completion(key)
            if answer is not None and transaction.completion(key) is None:
                transaction.put_completion(key, answer, document)
                copied += 1
        return copied

    count = 0
    for start in range(0, len(wanted), ANSWERS):
        some = wanted[start : start + ANSWERS]
        count += await write(writer.store, partial(copy, some), durable=False)
    return count


def _groups(
    new: Sequence[tuple[Source, StoredDocument]],
) -> Iterator[tuple[list[ExtractedDocument], dict[bytes, Vectors]]]:
    """Documents with all that was read in them, grouped as an insert does, and their vectors."""
    group, vectors, chunks = list[ExtractedDocument](), dict[bytes, Vectors](), 0
    for source, stored in new:
        document, own = _read_document(source.reader, stored)
        group.append(document)
        vectors |= own
        chunks += len(document.chunks)
        if chunks >= GROUP:
            yield group, vectors
            group, vectors, chunks = [], {}, 0
    if group:
        yield group, vectors


def _read_document(
    reader: Reader, stored: StoredDocument
) -> tuple[ExtractedDocument, dict[bytes, Vectors]]:
    """A document, its chunks and what was read in them, with the vectors of all these by digest."""
    chunks = reader.chunks(documents=[stored.id])
    extractions = {
        one.row: KeptExtraction(
            state=one.state, error=one.error, extractor=one.extractor, kept=one.report
        )
        for one in reader.chunk_reports([stored.id])
    }
    entities = reader.entity_mentions(chunks=chunks)
    relations = reader.relation_mentions(chunks=chunks)
    refused = reader.rejections([stored.id])
    for row, chunk in chunks.items():
        extractions[row] = replace(
            extractions[row],
            entities=tuple(one.mention for one in entities if one.chunk == row),
            relations=tuple(one.mention for one in relations if one.chunk == row),
            rejections=tuple(line for _, id, line in refused if id == chunk.id),
        )
    kinds: dict[Kind, set[int]] = {
        "chunk": set(chunks),
        "entity": {one.entity for one in entities if one.entity is not None},
        "relation": {one.relation for one in relations if one.relation is not None},
    }
    vectors: dict[bytes, Vectors] = {}
    for kind, rows in kinds.items():
        digests = reader.vector_digests(kind, rows)
        vectors |= {digests[row]: one for row, one in reader.vectors(kind, rows).items()}
    found = tuple(extractions[row] for row in chunks)
    pages = reader.pages(stored.id)
    return ExtractedDocument(stored, pages, tuple(chunks.values()), found), vectors


def _plan_group(
    documents: Sequence[ExtractedDocument], vectors: Mapping[bytes, Vectors], reader: Reader
) -> IndexChange:
    change = plan_documents(documents, (), reader)
    change.known_vectors = vectors
    return change
