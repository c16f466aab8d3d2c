"""`import`: convert a working directory of LightRAG or nano-graphrag."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lightrag_jsonl.cli.folders import has_index
from lightrag_jsonl.cli.indexing import INCOMPLETE, tell_failures
from lightrag_jsonl.cli.opening import going_on, inserting
from lightrag_jsonl.cli.options import Setup, as_json, models
from lightrag_jsonl.cli.output import counted, emit_json, one_line, say, table
from lightrag_jsonl.cli.progress import progress_bar

if TYPE_CHECKING:
    from lightrag_jsonl.importing import ImportReport
    from lightrag_jsonl.migration.placing import Unmapped
    from lightrag_jsonl.sync import LightRAG

SHOWN = 20
WIDTH = 100


@click.command("import")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@models
@as_json
def import_folder(setup: Setup, folder: Path, as_json: bool) -> None:
    """Import an index of LightRAG or nano-graphrag.

    FOLDER is its working directory. Its documents, chunks, entities and relations are imported
    with their descriptions and sources; no model is asked. New vectors are made by --embedder.
    What has no counterpart is listed. LightRAG 0.x and 1.x and nano-graphrag with their file
    storages (GraphML and JSON, gzipped or not) can be read.

    \b
    Examples:
      lightrag-jsonl import ./rag_storage -w kb
      lightrag-jsonl import ./dickens -w kb --embedder st:BAAI/bge-m3
      lightrag-jsonl import ./recipes -w kb --language zh
    """
    with _opened(setup, folder) as rag, progress_bar() as watcher:
        report = rag.import_index(folder, watcher=watcher)
    if as_json:
        emit_json(report)
    else:
        _tell(setup.working_dir, report)
    if report.failures:
        raise click.exceptions.Exit(INCOMPLETE)


def _opened(setup: Setup, folder: Path) -> AbstractContextManager[LightRAG]:
    """The index to import into; it is not created if the foreign folder cannot be read."""
    if has_index(setup.working_dir):
        return going_on(setup, {})
    from lightrag_jsonl.migration.folder import read_folder

    read_folder(folder)
    return inserting(setup, {})


def _tell(working_dir: Path, report: ImportReport) -> None:
    names = [field.name for field in fields(report.read)]
    rows = [(name, getattr(report.read, name), getattr(report.stored, name)) for name in names]
    say(table(rows, ("", "read", "stored")))
    if report.without_source:
        say(
            f"{counted(report.without_source, 'entity or relation', 'entities and relations')} "
            "named no known chunk: these are in a document of their own"
        )
    for there, here in report.kept_apart[:SHOWN]:
        say(f"kept apart: {one_line(there)} is {here!r} here; merge them if they are the same")
    _list(report.unmapped)
    tell_failures(working_dir, report.failures)


def _list(unmapped: Sequence[Unmapped]) -> None:
    if unmapped:
        say(f"{counted(len(unmapped), 'item')} not imported, or changed:")
    for one in unmapped[:SHOWN]:
        say(f"  {one.kind} {one_line(one.name, WIDTH)}: {one.reason}")
    if len(unmapped) > SHOWN:
        say(f"  … and {len(unmapped) - SHOWN:,} more (--json shows all)")
