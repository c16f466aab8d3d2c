"""The routes of documents, and of the jobs that change an index."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Final, Literal

import msgspec
from anyio import to_thread
from msgspec import Meta, Struct
from starlette.exceptions import HTTPException

from lightrag_jsonl.core import types
from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.index_reports import DocumentStatus
from lightrag_jsonl.core.types import Document, DocumentState
from lightrag_jsonl.indexing.incoming import storable
from lightrag_jsonl.server.jobs import Job, JobContent
from lightrag_jsonl.server.lists import Limit, ListParams, ListPart, NonEmptyText, Offset, ShortText
from lightrag_jsonl.server.posted_documents import posted_documents
from lightrag_jsonl.server.routing import (
    Call,
    check_media_type,
    read_body,
)
from lightrag_jsonl.storage.rows import PendingDocument
from lightrag_jsonl.storage.status import document_status, find_documents
from lightrag_jsonl.storage.store import read
from lightrag_jsonl.storage.views import StoreView

MOST_NAMED: Final = 20  # missing documents in an error


class DocumentParams(ListParams):
    """Documents with a `state` (all for ""), and with a text in id, title or source."""

    state: Literal["", DocumentState] = ""
    q: ShortText = ""


class TextParams(Struct, forbid_unknown_fields=True):
    """A document, and a range of passages."""

    id: NonEmptyText
    offset: Offset = 0
    limit: Limit = 50


class UploadParams(Struct, forbid_unknown_fields=True):
    """The name of an uploaded file, and properties of the document in the file."""

    name: Annotated[str, Meta(min_length=1, max_length=255)]
    id: Annotated[str, Meta(min_length=1, max_length=255)] | None = None
    title: ShortText | None = None
    date: ShortText | None = None


class NewDocument(Struct, omit_defaults=True):
    """A document to index; further fields become metadata."""

    text: str
    id: str | None = None
    title: str | None = None
    source: str | None = None
    date: str | None = None
    metadata: dict[str, Any] = {}
    pages: list[str] | None = None


class NewDocuments(Struct, forbid_unknown_fields=True):
    """Texts to index, or objects with the fields of `Document`."""

    documents: Annotated[list[NewDocument | str], Meta(min_length=1)]


class DocumentIds(Struct, forbid_unknown_fields=True):
    """Ids of documents; `purge` asks for no remains in any file."""

    ids: Annotated[list[str], Meta(min_length=1)]
    purge: bool = False


class TextBody(Struct):
    """A document, a range of passages in the order of the text, and the number of all passages."""

    document: DocumentStatus
    total: int
    chunks: list[types.Chunk]


async def list_documents(call: Call) -> ListPart[DocumentStatus]:
    """The documents with states and failures; a file that could not be read has failed."""
    params: DocumentParams = call.params
    failed_jobs = await call.index.jobs.failed()
    find = partial(
        find_documents,
        failed_jobs=failed_jobs,
        text=params.q,
        state=params.state,
        limit=params.limit,
        offset=params.offset,
    )
    total, documents = await read(call.index.rag.engine.store, find)
    return ListPart(total=total, items=list(documents))


async def get_text(call: Call) -> TextBody:
    """A document with passages."""
    params: TextParams = call.params
    failed_jobs = await call.index.jobs.failed()

    def find(view: StoreView) -> TextBody:
        document = document_status(view, params.id, failed_jobs)
        if document is None:
            raise NotFoundError(f"no such document: {params.id}")
        chunks = list(view.chunks(documents=[params.id]).values())
        end = params.offset + params.limit
        return TextBody(document, len(chunks), chunks[params.offset : end])

    return await read(call.index.rag.engine.store, find)


async def insert_documents(call: Call) -> Job:
    """Index texts: all texts, or none if any cannot be stored."""
    check_media_type(call.request, "application/json")
    async with call.index.jobs.new_content() as content:
        await _receive(call, content)
        now = call.index.rag.engine.clock.seconds()
        documents = _storable_documents(content, now)
        return await call.index.jobs.add_documents(documents, content.size)


def _storable_documents(content: JobContent, now: float) -> Iterator[PendingDocument]:
    """The documents in a body; `ConfigError` names an unstorable document."""
    for number, document in enumerate(posted_documents(content.read())):
        try:
            yield storable(PendingDocument(document=document, created_at=now))
        except ConfigError as error:
            raise ConfigError(f"documents[{number}]: {error}") from error


async def upload_file(call: Call) -> Job:
    """Index a file; the file's name is a title and never a path."""
    params: UploadParams = call.params
    has_folders = "/" in params.name or "\\" in params.name
    if has_folders or not params.name.isprintable():
        raise HTTPException(400, "the name of a file must not hold folders or control characters")
    check_media_type(call.request, "application/octet-stream")
    document = Document("", id=params.id, title=params.title, source=params.name, date=params.date)
    now = call.index.rag.engine.clock.seconds()
    pending = PendingDocument(document=document, created_at=now)
    async with call.index.jobs.new_content() as content:
        await _receive(call, content)
        details = msgspec.to_builtins(params)
        return await call.index.jobs.add_file(details, pending, content)


async def _receive(call: Call, content: JobContent) -> None:
    """Put a body aside, piece by piece."""
    async for piece in read_body(call.request, call.indexes.limits.upload):
        await to_thread.run_sync(content.write, piece)


async def delete_documents(call: Call) -> Job:
    """Delete documents; with `purge` also every text, name and answer left over."""
    purge = call.body.purge
    ids = list(dict.fromkeys(call.body.ids))
    stored_ids = await call.index.rag.engine.indexing.deletable_ids(ids, purge=purge)
    missing_ids = [id for id in ids if id not in stored_ids]
    if missing_ids:
        named = ", ".join(missing_ids[:MOST_NAMED])
        raise NotFoundError(f"no such document: {named}")
    details: dict[str, Any] = {"ids": ids}
    if purge:
        details["purge"] = True
    return await call.index.jobs.add("delete", details)


async def retry_failed(call: Call) -> Job:
    """Go on with interrupted documents, and read failed chunks again."""
    return await call.index.jobs.add("retry", {})


async def list_jobs(call: Call) -> ListPart[Job]:
    """The jobs, newest first."""
    params: ListParams = call.params
    total, items = await call.index.jobs.newest(params.offset, params.limit)
    return ListPart(total=total, items=items)


async def get_job(call: Call) -> Job:
    """A job, with the progress."""
    return await call.index.jobs.get(call.request.path_params["id"])


async def cancel_job(call: Call) -> Job:
    """End a waiting or running job, or give up a failed job; finished documents stay, waiting
    documents are removed.
    """
    return await call.index.jobs.cancel(call.request.path_params["id"])


async def retry_job(call: Call) -> Job:
    """Let a failed job wait again, with the documents still waiting."""
    return await call.index.jobs.retry(call.request.path_params["id"])
