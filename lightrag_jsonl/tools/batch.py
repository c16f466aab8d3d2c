"""Extraction by batch files: the requests to a model, written to a file, and its answers, read back.

Each round runs the real extraction with an object in place of the model, which collects the
requests without an answer in the cache: about chunks, to resume and glean, and finally summaries.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec
from anyio import to_thread

from lightrag_jsonl.core import types
from lightrag_jsonl.core.errors import BudgetError, LLMError
from lightrag_jsonl.core.files import write_whole
from lightrag_jsonl.core.index_reports import InsertReport, SkippedFile
from lightrag_jsonl.core.protocols import LLM, Extractor
from lightrag_jsonl.core.types import (
    Chunk,
    Completion,
    Failure,
    Message,
    Record,
)
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing.loading import Given, UnreadSource, read_text
from lightrag_jsonl.llm.requests import BROKEN_OFF, request_key
from lightrag_jsonl.providers.completions import read_completion
from lightrag_jsonl.rag import AsyncLightRAG
from lightrag_jsonl.rag.engine import Engine
from lightrag_jsonl.storage.rows import PendingDocument
from lightrag_jsonl.storage.store import write
from lightrag_jsonl.storage.views import Transaction
from lightrag_jsonl.text.patterns import pattern_of

Round: TypeAlias = Literal["extraction", "summaries", "done"]
URL = "/v1/chat/completions"
MAX_REQUESTS = 50_000  # in one file: the limit of the providers
ENCODER = msgspec.json.Encoder()
REQUEST_ID = pattern_of("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class BatchExport:
    """The result of an export: `requests` in `files`; `pending` documents are not visible yet.

    `round` is the purpose of the requests, or "done" without any request.
    """

    round: Round
    requests: int
    files: tuple[str, ...]
    pending: int
    unchanged: tuple[str, ...] = ()
    purged: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchImport:
    """The result of an import.

    - `answered`: requests with an answer in these files. `missing`: requests without a usable
      result; `failed` lists the failed results among them, as (request, reason).
    - `unused`: results for no open request. `unreadable`: lines without a result.
    - `usage`: the cost of the new answers. `requests`: the number of requests in the next export,
      and `round` their purpose.
    """

    answered: int
    missing: int
    failed: tuple[tuple[str, str], ...]
    unused: int
    unreadable: int
    inserted: InsertReport
    usage: Usage
    pending: int
    round: Round
    requests: int


class _OpenRequest(NamedTuple):
    """A call of the model: the turns of the conversation, and the limit of the answer in tokens."""

    messages: tuple[Message, ...]
    max_tokens: int | None


@dataclass
class _Collector:
    """Takes the place of a model: records each request, and raises an error instead of an answer.

    With `LLMError` the pipelines go on without this answer, with `BudgetError` they stop.
    """

    name: str
    error: type[BudgetError | LLMError]
    requests: dict[str, _OpenRequest] = field(default_factory=dict)  # by id

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: types.ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        key = request_key(self.name, messages, response_type, max_tokens)
        request_id = key.hex()
        self.requests[request_id] = _OpenRequest(tuple(messages), max_tokens)
        raise self.error("not answered yet")


@dataclass(slots=True)
class _OpenWork:
    """The requests of the next round by id, and the state of the pending documents.

    `quoted_documents` has the document in each request (a summary quotes none), and
    `answered_documents` are the pending documents with all their answers in the cache.
    """

    round: Round = "done"
    requests: dict[str, _OpenRequest] = field(default_factory=dict)
    quoted_documents: dict[str, str] = field(default_factory=dict)
    answered_documents: list[PendingDocument] = field(default_factory=list)
    pending: int = 0


@dataclass(slots=True)
class _Results:
    """The contents of result files: the first answer to each request, the reasons of failed
    results, and the number of unreadable lines.
    """

    answers: dict[str, Completion] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    unreadable: int = 0


async def export_batch(
    rag: AsyncLightRAG,
    path: Path,
    documents: Given | Iterable[Given] = (),
    *,
    reasoning: bool = False,
    restore_purged: bool = False,
) -> BatchExport:
    """Add documents to the pending documents, and write the requests of the next round. Documents whose
    texts were purged stay out, unless `restore_purged`.

    Without requests, a file of an earlier round is removed, lest it be sent again. `reasoning`
    writes the requests in the form for reasoning models. `ConfigError` without a model.
    """
    engine = rag.engine
    _ = engine.client.model("extract")  # before documents are added
    unread: list[UnreadSource] = []
    pending = list(engine.pending_documents(documents, unread))
    deferred = await engine.indexing.defer(pending, restore_purged=restore_purged)
    work = await _open_work(engine)
    if work.answered_documents:
        await _insert_answered(engine, work, finish=False)
        work = await _open_work(engine)
    llm = engine.client.model("summarize" if work.round == "summaries" else "extract")
    lines = [
        _request_line(llm, request_id, request, reasoning=reasoning)
        for request_id, request in work.requests.items()
    ]
    files = await to_thread.run_sync(_write_files, lines, path)
    return BatchExport(
        round=work.round,
        requests=len(lines),
        files=tuple(str(file) for file in files),
        pending=work.pending,
        unchanged=tuple(deferred.unchanged),
        purged=tuple(deferred.purged),
        failures=(*(item for item in unread if isinstance(item, Failure)), *deferred.failures),
        skipped=tuple(item for item in unread if isinstance(item, SkippedFile)),
    )


async def import_batch(
    rag: AsyncLightRAG, paths: Sequence[Path], *, finish: bool = False
) -> BatchImport:
    """Store the results, and make every document visible that has all its answers.

    With `finish`, missing answers are given up: their chunks count as failed, to be retried later,
    and their documents become visible without them.
    """
    engine = rag.engine
    work = await _open_work(engine)
    results = await to_thread.run_sync(_read_results, paths)
    await _store_answers(engine, work, results)
    answered_work = await _open_work(engine)
    inserted = await _insert_answered(engine, answered_work, finish=finish)
    next_work = await _open_work(engine)
    answered = work.requests.keys() & results.answers.keys()
    missing = work.requests.keys() - answered
    failed = [(id, results.failures[id]) for id in missing & results.failures.keys()]
    usages = [results.answers[id].usage for id in answered]
    return BatchImport(
        answered=len(answered),
        missing=len(missing),
        failed=tuple(sorted(failed)),
        unused=len(results.answers) - len(answered),
        unreadable=results.unreadable,
        inserted=inserted,
        usage=sum(usages, Usage()),
        pending=next_work.pending,
        round=next_work.round,
        requests=len(next_work.requests),
    )


# ── the work of a round ─────────────────────────────────────────────────────────


async def _open_work(engine: Engine) -> _OpenWork:
    """The unanswered requests of all pending chunks; without pending documents, of summaries."""
    work = await _open_extraction(engine)
    if work.requests:
        work.round = "extraction"
    elif not work.pending:
        work.requests = await _open_summaries(engine)
        work.round = "summaries" if work.requests else "done"
    return work


async def _open_extraction(engine: Engine) -> _OpenWork:
    """Extract every pending chunk as an insert would, up to the first request without an answer."""
    collector = _Collector(engine.client.model("extract").name, BudgetError)
    extractor = engine.extractor_for(engine.client_for(collector, store_answers=False))
    work = _OpenWork(requests=collector.requests)
    for document, chunks in engine.indexing.pending_work():
        answered_chunks = 0
        for chunk in chunks:
            if await _is_answered(chunk, extractor):
                answered_chunks += 1
            else:
                request_id = next(reversed(collector.requests))  # of this chunk
                work.quoted_documents.setdefault(request_id, chunk.document_id)
        if isinstance(document, PendingDocument):
            work.pending += 1
            if answered_chunks == len(chunks):
                work.answered_documents.append(document)
    return work


async def _is_answered(chunk: Chunk, extractor: Extractor) -> bool:
    """Whether all requests about a chunk have their answers in the cache."""
    try:
        await extractor.extract(chunk)
    except BudgetError:
        return False
    return True


async def _open_summaries(engine: Engine) -> dict[str, _OpenRequest]:
    """The unanswered requests of all due summaries; answered summaries are stored on the way."""
    collector = _Collector(engine.client.model("summarize").name, LLMError)
    indexing = engine.indexing_for(engine.client_for(collector))
    await indexing.summarize()
    return collector.requests


async def _store_answers(engine: Engine, work: _OpenWork, results: _Results) -> None:
    """Store the answers in the cache of the index, each with the document in its request."""

    def put_answers(transaction: Transaction) -> None:
        for request_id, answer in results.answers.items():
            key = bytes.fromhex(request_id)
            if transaction.completion(key) is None:
                document = work.quoted_documents.get(request_id)
                transaction.put_completion(key, answer, document)

    await write(engine.store, put_answers)


async def _insert_answered(engine: Engine, work: _OpenWork, *, finish: bool) -> InsertReport:
    """Insert the documents with all their answers (with `finish` all), and retry failed chunks."""
    collector = _Collector(engine.client.model("extract").name, LLMError)
    indexing = engine.indexing_for(engine.client_for(collector), patient=True)
    retried = await indexing.retry()
    if finish:
        inserted = await indexing.resume()
    else:
        inserted = await indexing.insert(
            work.answered_documents, tolerant=True, restore_purged=True
        )
    documents = {*inserted.documents, *retried.documents}
    return replace(
        inserted,
        documents=tuple(sorted(documents)),
        chunks=inserted.chunks + retried.chunks,
        failures=(*retried.failures, *inserted.failures),
    )


# ── the files ───────────────────────────────────────────────────────────────────


def _request_line(llm: LLM, request_id: str, request: _OpenRequest, *, reasoning: bool) -> Record:
    body = _request_body(llm, request)
    if reasoning:
        body.pop("temperature", None)
        if "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")
    return {"custom_id": request_id, "method": "POST", "url": URL, "body": body}


def _request_body(llm: LLM, request: _OpenRequest) -> Record:
    """The request as the model itself would send it, or else in the plain form of the API."""
    make_body = getattr(llm, "request_body", None)
    if make_body is not None:
        return dict(make_body(request.messages, max_tokens=request.max_tokens))
    messages: list[types.Json] = [asdict(message) for message in request.messages]
    body: Record = {"model": llm.name, "messages": messages}
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    return body


def _write_files(lines: Sequence[Record], path: Path) -> list[Path]:
    """Write a request on each line, into as many files as the limit requires; without a request,
    remove the file.
    """
    if not lines:
        path.unlink(missing_ok=True)
    files = []
    for number, start in enumerate(range(0, len(lines), MAX_REQUESTS), 1):
        file = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        write_whole(file, ENCODER.encode_lines(lines[start : start + MAX_REQUESTS]))
        files.append(file)
    return files


def _read_results(paths: Sequence[Path]) -> _Results:
    results = _Results()
    for path in paths:
        for line in read_text(path).split("\n"):
            if line.strip():
                _read_line(line, results)
    return results


def _read_line(line: str, results: _Results) -> None:
    """Add a line to the results; a later answer to the same request is ignored."""
    try:
        record = json.loads(line)
        request_id = record["custom_id"]
        if REQUEST_ID.fullmatch(request_id) and request_id not in results.answers:
            results.answers[request_id] = _completion_of_result(record)
    except LLMError as error:
        results.failures.setdefault(request_id, str(error))
    except (ValueError, TypeError, KeyError, RecursionError):
        results.unreadable += 1


def _completion_of_result(record: Record) -> Completion:
    """The completion of a result; `LLMError` gives the reason if there is none."""
    response = record.get("response")
    response = response if isinstance(response, dict) else {"status_code": None}
    status = response.get("status_code", 200)
    body = response.get("body")
    if not isinstance(body, dict) or status != 200:
        error = body.get("error") if isinstance(body, dict) else record.get("error")
        message = error.get("message") if isinstance(error, dict) else error
        if not message:
            message = f"the result has no response (status {status})"
        raise LLMError(str(message))
    completion = read_completion(body)
    if completion.finish == "length" and not completion.text.strip():
        raise LLMError("the answer was cut off before its first word")
    if completion.broken_off:
        raise LLMError(BROKEN_OFF[completion.finish])
    return completion
