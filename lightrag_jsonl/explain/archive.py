"""The stored traces: finding, loading, showing and exporting them, with the texts they rest on."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from lightrag_jsonl.errors import CorruptError, NotFoundError
from lightrag_jsonl.explain.library import StoredLibrary
from lightrag_jsonl.explain.rdf import Format, Version
from lightrag_jsonl.explain.sources import Sources, look_up
from lightrag_jsonl.explain.trace import Trace, event_from_json, fold
from lightrag_jsonl.storage import traces
from lightrag_jsonl.text import sanitize


def find(connection: sqlite3.Connection, prefix: str) -> str:
    """The trace id that is `prefix`, or else the only one that begins with it.

    Raises `NotFoundError` if none or several begin with it.
    """
    prefix = sanitize(prefix)
    ids = traces.found(connection, prefix)
    if prefix in ids:
        return prefix
    if len(ids) != 1:
        problem = "no trace" if not ids else "more than one trace"
        raise NotFoundError(f"{problem} begins with {prefix!r}")
    return ids[0]


def load(connection: sqlite3.Connection, trace_id: str) -> Trace:
    """The stored trace; `CorruptError` if its events cannot be read."""
    stored = traces.events(connection, trace_id)
    try:
        return fold(event_from_json(text) for _, text in stored)
    except (ValueError, TypeError) as error:
        raise CorruptError(f"trace {trace_id} cannot be read: {error}") from error


def sources(connection: sqlite3.Connection, trace: Trace) -> Sources:
    """The stored texts behind a trace."""
    return look_up(trace.chunk_ids, StoredLibrary(connection))


def exported(
    connection: sqlite3.Connection,
    trace_id: str,
    *,
    format: Format = "nquads",
    rdf: Version = "1.2",
    with_source: bool = False,
    entity_base: str | None = None,
    predicate_base: str | None = None,
) -> str:
    """A trace as RDF, with the given bases of entities and predicates; see `export`."""
    from lightrag_jsonl.explain.export import export

    trace = load(connection, trace_id)
    given = {"entity": entity_base, "predicate": predicate_base}
    own = {name: base for name, base in given.items() if base is not None}
    trace = replace(trace, bases=replace(trace.bases, **own))
    behind = sources(connection, trace) if with_source else None
    return export(trace, format=format, rdf=rdf, with_source=with_source, sources=behind)


def page(connection: sqlite3.Connection, trace_id: str, *, language: str = "en") -> str:
    """A trace as one self-contained web page."""
    from lightrag_jsonl.explain.html import trace_page

    trace = load(connection, trace_id)
    return trace_page(trace, sources(connection, trace), language=language)
