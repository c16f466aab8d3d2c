"""Checks everything stored for explanations again: traces, and the texts they rest on."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from lightrag_jsonl.errors import CorruptError
from lightrag_jsonl.explain import archive
from lightrag_jsonl.explain.library import StoredLibrary
from lightrag_jsonl.explain.verify import Problem, chunk_fault, verify
from lightrag_jsonl.indexing.spans import chunk_id
from lightrag_jsonl.storage import documents, traces
from lightrag_jsonl.storage.documents import StoredDocument


def audit(connection: sqlite3.Connection) -> Iterator[Problem]:
    """Everything that is wrong with stored traces, documents, pages and chunks."""
    yield from audit_traces(connection, [row[0] for row in traces.listed(connection)])
    for id in traces.strays(connection):
        yield Problem(id, "events", "they belong to no trace")
    yield from _texts(connection)


def audit_traces(connection: sqlite3.Connection, ids: Iterable[str]) -> Iterator[Problem]:
    """What is wrong with these traces."""
    library = StoredLibrary(connection)
    for id in ids:
        positions = [position for position, _ in traces.events(connection, id)]
        if positions != list(range(len(positions))):
            missing = sorted(set(range(max(positions))) - set(positions))
            yield Problem(id, "events", f"missing at {', '.join(map(str, missing))}")
        try:
            trace = archive.load(connection, id)
        except CorruptError as error:
            yield Problem(id, "events", str(error.__cause__))
            continue
        status, mode, question = traces.summary(connection, id)
        told = (trace.id, trace.status, trace.mode, trace.question)
        if told != (id, status, mode, question):
            yield Problem(id, "events", f"they tell of {told}, the list of {status}, {mode}")
        yield from verify(trace, library)


def _texts(connection: sqlite3.Connection) -> Iterator[Problem]:
    """Documents with missing pages, or chunks that are not exactly their part of a page."""
    for document in documents.documents(connection):
        for detail in _document_faults(connection, document):
            yield Problem("", "offsets", detail, document.id)


def _document_faults(connection: sqlite3.Connection, document: StoredDocument) -> Iterator[str]:
    pages = documents.pages(connection, document.id)
    if [page.number for page in pages] != list(range(1, len(pages) + 1)) or not pages:
        yield f"has the pages {', '.join(str(page.number) for page in pages) or 'none'}"
    characters = sum(len(page.text) for page in pages)
    if characters != document.characters:
        yield f"has {characters} characters on its pages, not {document.characters}"
    by_number = {page.number: page for page in pages}
    chunks = documents.chunks_of(connection, [document.row]).values()
    if [chunk.index for chunk in chunks] != list(range(len(chunks))):
        yield "has chunks that are not numbered from 0"
    for chunk in chunks:
        if fault := chunk_fault(chunk, by_number.get(chunk.page)):
            yield f"chunk {chunk.id} {fault}"
        elif chunk.id != chunk_id(chunk.document_id, chunk.page, chunk.start, chunk.text):
            yield f"chunk {chunk.id} is not what it was when it got its id"
