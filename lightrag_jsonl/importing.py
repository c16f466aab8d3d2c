"""Takes over a working directory of LightRAG or nano-graphrag without asking a model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lightrag_jsonl.indexing.pipeline import IndexPipeline
from lightrag_jsonl.indexing.runs import Watcher
from lightrag_jsonl.migration.folder import read_folder
from lightrag_jsonl.migration.mapping import Counts, map_index
from lightrag_jsonl.migration.placing import Unmapped
from lightrag_jsonl.storage import overview
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.types import Failure


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was read, what is stored here, and what differs from the original.

    `unmapped` lists what has no exact counterpart here. `kept_apart` holds (name there, name here)
    of entities that were separate there, though both names have the same name key here;
    `merge_entities` makes them one. `without_source` counts entities and relations that named no
    known chunk: they are stored in a document of their own.
    """

    documents: tuple[str, ...]
    read: Counts
    stored: Counts
    unmapped: tuple[Unmapped, ...] = ()
    kept_apart: tuple[tuple[str, str], ...] = ()
    without_source: int = 0
    failures: tuple[Failure, ...] = ()


async def import_folder(
    folder: Path,
    pipeline: IndexPipeline,
    database: Database,
    *,
    clock: Callable[[], float],
    watcher: Watcher | None = None,
) -> ImportReport:
    """Read the folder, convert it, and index it as if its claims had just been made."""
    index = await asyncio.to_thread(read_folder, folder)
    mapped = await asyncio.to_thread(map_index, index, at=clock())
    report = await pipeline.insert(mapped.documents, watcher=watcher, summarize=False)
    ids = tuple(one.document.id or "" for one in mapped.documents)
    with database.reading() as connection:
        stored = Counts(**overview.counts_of(connection, ids))
    return ImportReport(
        ids,
        mapped.read,
        stored,
        mapped.unmapped,
        mapped.kept_apart,
        mapped.without_source,
        report.failures,
    )
