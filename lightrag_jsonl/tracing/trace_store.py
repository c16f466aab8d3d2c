"""The stored traces: finding, loading, listing, showing and exporting them."""

from __future__ import annotations

from lightrag_jsonl.core.errors import CorruptError, NotFoundError
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import TraceSummary
from lightrag_jsonl.storage.store import Reader
from lightrag_jsonl.tracing.events import event_from_json
from lightrag_jsonl.tracing.prov import Bases
from lightrag_jsonl.tracing.rdf import Format, Version
from lightrag_jsonl.tracing.source_lookup import Sources, look_up_sources
from lightrag_jsonl.tracing.trace import Trace, assemble_trace


def find(reader: Reader, prefix: str) -> str:
    """The trace id that is `prefix`, or else the only one that begins with it.

    Raises `NotFoundError` if none or several begin with it.
    """
    prefix = sanitize(prefix)
    ids = [row.id for row in reader.traces(prefix=prefix)]
    if prefix in ids:
        return prefix
    if len(ids) != 1:
        problem = "more than one trace" if ids else "no trace"
        raise NotFoundError(f"{problem} begins with {prefix!r}")
    return ids[0]


def summaries(reader: Reader, limit: int | None = None) -> tuple[TraceSummary, ...]:
    """The recorded queries, the newest first."""
    return tuple(reader.traces(limit=limit))


def load(reader: Reader, trace_id: str) -> Trace:
    """How an answer came about; the id may be shortened as long as it stays unambiguous."""
    return stored_trace(reader, find(reader, trace_id))


def stored_trace(reader: Reader, id: str) -> Trace:
    """The trace with exactly this id; `CorruptError` if its events cannot be read."""
    try:
        return assemble_trace(map(event_from_json, reader.trace_events(id)))
    except ValueError as error:
        raise CorruptError(f"trace {id} cannot be read: {error}") from error


def sources(reader: Reader, trace: Trace) -> Sources:
    """The stored texts behind a trace."""
    return look_up_sources(reader, trace.chunk_ids)


def export_trace(
    reader: Reader,
    trace_id: str,
    *,
    format: Format = "nquads",
    rdf: Version = "1.2",
    with_source: bool = False,
    entity_base: str | None = None,
    predicate_base: str | None = None,
) -> str:
    """A trace as RDF; see `export`. URIs of entities and predicates begin with the given bases."""
    from lightrag_jsonl.tracing.export import export

    trace = load(reader, trace_id)
    given = {"entity": entity_base, "predicate": predicate_base}
    bases = Bases(**{name: base for name, base in given.items() if base is not None})
    found = sources(reader, trace) if with_source else None
    return export(trace, format=format, version=rdf, sources=found, bases=bases)


def trace_page(reader: Reader, trace_id: str, language: str) -> str:
    """A trace as one self-contained web page."""
    from lightrag_jsonl.tracing.page import render_page

    trace = load(reader, trace_id)
    return render_page(trace, sources(reader, trace), language=language)
