"""`status`, `documents` and `rejections`: what an index holds, and how reading went."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from lightrag_jsonl.cli.opening import NO_MODEL, looking, recorded
from lightrag_jsonl.cli.options import Setup, folder
from lightrag_jsonl.cli.output import Reply, counted, one_line, replying, table
from lightrag_jsonl.errors import NotFoundError

if TYPE_CHECKING:
    from lightrag_jsonl.types import DocumentStatus, ExtractionReport, Status

LINE_COLUMNS = 60


@click.command()
@folder
@replying
def status(setup: Setup) -> Reply:
    """Show what the index holds and how reading went."""
    with looking(setup) as rag:
        found = rag.status()
    model = recorded(setup.working_dir).get("cli.llm", NO_MODEL)  # `looking` opens it without one
    found = replace(found, llm=model)
    return Reply(found, table(_status_rows(found)))


@click.command()
@folder
@replying
def documents(setup: Setup) -> Reply:
    """List the documents, with their ids and states.

    The states are: done; partial (some chunks failed, or were read in part) and failed (all
    chunks failed), both for `retry`; pending (an insert was interrupted), for `resume`.
    """
    with looking(setup) as rag:
        found = rag.documents()
    header = ("id", "state", "chunks", "failed", "characters", "title", "source")
    return Reply(found, table([_document_row(one) for one in found], header))


@click.command()
@click.argument("ids", nargs=-1)
@folder
@replying
def rejections(setup: Setup, ids: tuple[str, ...]) -> Reply:
    """List the refused lines of a model's answers.

    Of all documents, or of those with IDS. Look at it before you pay for a large corpus: it
    shows what the model gets wrong.
    """
    with looking(setup) as rag:
        known = {one.id for one in rag.documents()}
        unknown = [id for id in ids if id not in known]
        if unknown:
            raise NotFoundError(f"no such document: {', '.join(unknown)}")
        found = rag.rejections(*ids)
    plain = [{"document_id": d, "chunk_id": c, **asdict(r)} for d, c, r in found]
    header = ("document", "chunk", "line", "reason", "detail", "text")
    rows = [
        (d, c, r.line, r.reason, one_line(r.detail, LINE_COLUMNS), one_line(r.text, LINE_COLUMNS))
        for d, c, r in found
    ]
    return Reply(plain, table(rows, header) if rows else "nothing was refused")


def _document_row(one: DocumentStatus) -> tuple[object, ...]:
    return (
        one.id,
        one.state,
        one.chunks,
        len(one.failures),
        one.characters,
        one.title or "",
        one.source or "",
    )


def _status_rows(status: Status) -> list[tuple[str, str]]:
    states = ", ".join(f"{number:,} {state}" for state, number in status.documents.items())
    rows = [
        ("folder", status.working_dir),
        ("documents", f"{sum(status.documents.values()):,}" + (f" ({states})" if states else "")),
        ("chunks", f"{status.chunks:,}"),
        ("entities", f"{status.entities:,}"),
        ("relations", f"{status.relations:,}"),
        ("language", status.language),
        ("model", status.llm),
        ("embedder", f"{status.embedder} ({status.dim} dimensions)"),
        ("tokenizer", status.tokenizer),
        ("size", f"{status.bytes_on_disk / 1e6:,.1f} MB, format {status.format}"),
    ]
    return rows + _extraction_rows(status.extraction)


def _extraction_rows(report: ExtractionReport) -> list[tuple[str, str]]:
    states = (("ok", report.ok), ("empty", report.empty), ("partial", report.partial))
    chunks = ", ".join(f"{number:,} {name}" for name, number in states if number)
    failed = f"{report.failed:,} failed" if report.failed else ""
    rows = [("read", ", ".join(part for part in (chunks, failed) if part) or "nothing yet")]
    rows.append(("records", f"{report.records:,}"))
    if report.rejections:
        refused = ", ".join(f"{name} {number:,}" for name, number in report.rejections.items())
        rows.append(("refused or mended", refused))
    for name, number in (
        ("not in the text", report.ungrounded),
        ("cut off", report.truncated),
        ("resumed", report.resumed),
    ):
        if number:
            rows.append((name, f"{number:,}"))
    if report.gleaned:
        rows.append(("gleaned", ", ".join(f"{number:,}" for number in report.gleaned)))
    usage = report.usage
    if usage.calls:
        rows.append(
            (
                "tokens",
                f"{usage.input_tokens:,} in, {usage.output_tokens:,} out, "
                f"{usage.cached_tokens:,} cached, {counted(usage.calls, 'call')}",
            )
        )
    return rows
