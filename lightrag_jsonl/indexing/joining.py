"""Takes the documents of other indexes into this one, with all that was paid for there."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from lightrag_jsonl.core.errors import ConfigError, LLMError, SettingsError
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import MergeReport
from lightrag_jsonl.indexing import aliases, commits
from lightrag_jsonl.indexing.commits import IndexWriter, plan_documents
from lightrag_jsonl.indexing.contents import content_vectors as stored_vectors
from lightrag_jsonl.indexing.contents import document_contents as stored_chunks
from lightrag_jsonl.indexing.incoming import IncomingDocument as ExtractedDocument
from lightrag_jsonl.indexing.merging import GRAPH_KINDS, GraphKey, IndexChange
from lightrag_jsonl.indexing.progress import Progress, ProgressCallback
from lightrag_jsonl.indexing.reading_queue import GROUP
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.storage.rows import Aliases, StoredDocument
from lightrag_jsonl.storage.store import read, write
from lightrag_jsonl.storage.views import StoreView, Transaction

ANSWERS = 500  # that are copied in one transaction


class Source(NamedTuple):
    """An index that is merged into another; of its documents, those in `only`, or all if that is None.

    If it `replaces`, they take the place of other versions there.
    """

    location: str
    view: StoreView
    only: Collection[str] | None = None
    replaces: bool = False


@dataclass(slots=True)
class _Plan:
    """What is to be taken over: documents that are new here, from which source each, and names."""

    aliases: Aliases
    new: list[tuple[Source, StoredDocument]] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    pending: int = 0


class _Group(NamedTuple):
    """Documents that become visible together, and their vectors by digest."""

    documents: list[ExtractedDocument]
    vectors: dict[bytes, Vectors]

    def plan(self, view: StoreView) -> IndexChange:
        change = plan_documents(self.documents, (), view)
        change.known_vectors = self.vectors
        return change


class _CacheOnly(UsageMeter):
    """Allows no model call, so that only summaries are used whose answers are cached."""

    def check(self) -> None:
        raise LLMError("merging indexes asks no model")


async def join_indexes(
    writer: IndexWriter, sources: Sequence[Source], progress: ProgressCallback | None = None
) -> MergeReport:
    """Merge the indexes of `sources` into that of `writer`; no model is asked.

    All conflicts are found before anything is written: `SettingsError` for an index that was built
    with other parts, `ConfigError` for a document with two versions, or names merged differently.
    """
    plan = await read(writer.store, partial(_plan, writer, sources))
    answers = 0
    for source in sources:
        answers += await _copy_answers(writer, source)
    if plan.aliases != await read(writer.store, lambda view: view.aliases()):
        await writer.commit(partial(commits.plan_renaming, lambda view: plan.aliases))
    deferred, rows, done, documents = set[GraphKey](), set[GraphKey](), 0, 0
    groups = _groups(plan.new)
    while group := await asyncio.to_thread(next, groups, None):
        change = await writer.commit(group.plan, meter=_CacheOnly(), deferred=deferred)
        rows |= {(kind, row) for kind in GRAPH_KINDS for row in change.graph.rows(kind)}
        done, documents = done + len(change.chunks), documents + len(group.documents)
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


def _plan(writer: IndexWriter, sources: Sequence[Source], view: StoreView) -> _Plan:
    here, plan = writer.store.location, _Plan(view.aliases())
    versions = {one.id: (one.content, here) for one in view.documents()}
    for source in sources:
        _check_settings(writer.settings(), source, here)
        plan.aliases = _joined(plan.aliases, source, here)
        conflicts: dict[str, str] = {}
        for one in source.view.documents(source.only):
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
        plan.pending += len(source.view.pending())
    return plan


def _check_settings(wanted: Mapping[str, str], source: Source, here: str) -> None:
    if source.location == here:
        raise ConfigError(f"an index cannot be merged into itself: {here}")
    found = source.view.settings()
    for name, value in wanted.items():
        if found.get(name, value) != value:
            raise SettingsError(
                f"{source.location} was built with {name} {found[name]!r}, {here} with {value!r}: "
                "indexes are merged if embedder, language and tokenizer are the same",
                path=source.location,
            )


def _joined(known: Aliases, source: Source, here: str) -> Aliases:
    """The merges of names of two indexes; `ConfigError` if they contradict each other."""
    others = source.view.aliases()
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
    return aliases.aliases_of(links, {**others.displays, **known.displays})


# ── reading and writing ─────────────────────────────────────────────────────────


async def _copy_answers(writer: IndexWriter, source: Source) -> int:
    """Take over a source's cached answers, of chosen documents those about one of them alone."""
    keys = await asyncio.to_thread(source.view.completion_keys)
    wanted = [(k, id) for k, id in keys.items() if source.only is None or id in source.only]

    def copy(some: Sequence[tuple[bytes, str | None]], transaction: Transaction) -> int:
        copied = 0
        for key, document in some:
            answer = source.view.completion(key)
            if answer is not None and transaction.completion(key) is None:
                transaction.put_completion(key, answer, document)
                copied += 1
        return copied

    count = 0
    for start in range(0, len(wanted), ANSWERS):
        some = wanted[start : start + ANSWERS]
        count += await write(writer.store, partial(copy, some), durable=False)
    return count


def _groups(new: Sequence[tuple[Source, StoredDocument]]) -> Iterator[_Group]:
    """Documents with all that was extracted from them, grouped as an insert does, and their vectors."""
    group, chunks = _Group([], {}), 0
    for source, stored in new:
        found = stored_chunks(source.view, stored.id)
        pages, extractions = source.view.pages([stored.id]), found.extractions
        each = tuple(extractions[row] for row in found.chunks)
        document = ExtractedDocument(stored, pages, tuple(found.chunks.values()), each)
        group.documents.append(document)
        group.vectors.update(stored_vectors(source.view, found))
        chunks += len(found.chunks)
        if chunks >= GROUP:
            yield group
            group, chunks = _Group([], {}), 0
    if group.documents:
        yield group
