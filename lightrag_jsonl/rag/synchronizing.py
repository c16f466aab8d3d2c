"""Synchronizes an index with folders: documents of deleted files go, and the report says what differs."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from lightrag_jsonl.core.claims import Conflict, GraphDifference
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.index_reports import InsertReport
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.lenses.claims import ClaimIndex
from lightrag_jsonl.lenses.conflicts import find_conflicts
from lightrag_jsonl.rag.engine import Engine
from lightrag_jsonl.storage.status import document_statuses
from lightrag_jsonl.storage.store import read, search
from lightrag_jsonl.storage.views import Snapshot

if TYPE_CHECKING:
    from lightrag_jsonl.indexing.loading import Given


async def synchronized(
    engine: Engine,
    sources: "Given | Iterable[Given]",
    insert: "Callable[[Given | Iterable[Given]], Awaitable[InsertReport]]",
    *,
    allow_gone: bool,
) -> InsertReport:
    """The report of an insert, after which documents of deleted files are deleted, with what is new, gone and
    contradicted in the graph. `ConfigError` without a folder; with `allow_gone` a folder may be gone.
    """
    if not isinstance(sources, str | Path | Document):
        sources = list(sources)
    folders = _folders(sources, allow_gone=allow_gone)
    before = await _present_state(engine)
    report = await insert(sources)
    if not report.stopped:
        report = replace(report, deleted=await _delete_gone(engine, folders, report))
    after = await _present_state(engine)
    return replace(report, difference=after.since(before))


def _folders(sources: "Given | Iterable[Given]", *, allow_gone: bool) -> list[Path]:
    """The folders among the sources, also those that are gone; `ConfigError` without a folder."""
    if isinstance(sources, str | Path | Document):
        sources = [sources]
    paths = [source for source in sources if isinstance(source, Path)]
    folders = [path for path in paths if path.is_dir() or (allow_gone and not path.exists())]
    if not folders:
        raise ConfigError("nothing can be synchronized: no folder was given")
    return folders


async def _delete_gone(
    engine: Engine, folders: Sequence[Path], report: InsertReport
) -> tuple[str, ...]:
    """Delete the documents of deleted files in these folders; returns the document ids."""
    from lightrag_jsonl.indexing.loading import gone_files

    indexed = {document.id for document in await read(engine.store, document_statuses)}
    loaded = {*report.documents, *report.unchanged}
    failed = [failure.document_id for failure in report.failures]
    gone: set[str] = set()
    for folder in folders:
        gone |= set(gone_files(folder, indexed, loaded, failed))
    if gone:
        await engine.indexing.delete(sorted(gone))
    return tuple(sorted(gone))


# ── what differs ────────────────────────────────────────────────────────────────


class GraphState(Struct, frozen=True, kw_only=True):
    """The names of entities, and of the ends of relations, and the contradictions of a graph."""

    entities: frozenset[str]
    relations: frozenset[tuple[str, str]]
    conflicts: tuple[Conflict, ...]

    def since(self, before: "GraphState") -> GraphDifference:
        """What is new in this state, and what is gone since an earlier one."""
        known_conflicts = {_sides(conflict) for conflict in before.conflicts}
        new_conflicts = [
            conflict for conflict in self.conflicts if _sides(conflict) not in known_conflicts
        ]
        return GraphDifference(
            new_entities=tuple(sorted(self.entities - before.entities)),
            gone_entities=tuple(sorted(before.entities - self.entities)),
            new_relations=tuple(sorted(self.relations - before.relations)),
            gone_relations=tuple(sorted(before.relations - self.relations)),
            new_conflicts=tuple(new_conflicts),
        )


async def _present_state(engine: Engine) -> GraphState:
    return await search(
        engine.store, lambda snapshot: _read_state(snapshot, engine.claims.claims(snapshot))
    )


def _read_state(snapshot: Snapshot, index: ClaimIndex) -> GraphState:
    """The present state of a graph."""
    names = snapshot.entity_names(snapshot.graph.entities.tolist())
    relations: set[tuple[str, str]] = set()
    for low, high in snapshot.graph.all_ends.tolist():
        first, second = sorted((names[low], names[high]))
        relations.add((first, second))
    return GraphState(
        entities=frozenset(names.values()),
        relations=frozenset(relations),
        conflicts=find_conflicts(snapshot, index),
    )


def _sides(conflict: Conflict) -> tuple[str, frozenset[tuple[str, str]]]:
    """The identity of a contradiction: the subject, the documents and the sentences."""
    sides = [(claim.document_id, claim.text) for claim in (conflict.first, conflict.second)]
    return conflict.subject, frozenset(sides)
