"""Extraction by batch files: the requests to a model, written to a file, and its answers, read back.

Each round runs the real extraction with an object in place of the model, which collects the
requests that have no answer in the cache: about chunks, to resume and glean, and at last summaries.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from anyio import to_thread

from lightrag_jsonl.core import types
from lightrag_jsonl.core.errors import BudgetError, LLMError
from lightrag_jsonl.core.protocols import LLM
from lightrag_jsonl.core.types import Completion, Failure, InsertReport, Message, Record
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing.loading import Given, read_text
from lightrag_jsonl.llm.client import request_key
from lightrag_jsonl.providers.openai import read_completion
from lightrag_jsonl.rag import AsyncLightRAG
from lightrag_jsonl.storage.rows import PendingDocument
from lightrag_jsonl.storage.store import write
from lightrag_jsonl.storage.views import Transaction

Round: TypeAlias = Literal["extraction", "summaries", "done"]
Request: TypeAlias = tuple[tuple[Message, ...], int | None]  # the turns, and the most tokens
URL = "/v1/chat/completions"
MAX_REQUESTS = 50_000  # that providers accept in one file
ENCODER = msgspec.json.Encoder()
KEY = re.compile("[0-9a-f]{64}")  # the form of a request's id


@dataclass(frozen=True, slots=True)
class BatchExport:
    """What was written: `requests` in `files`; `pending` documents are not visible yet.

    `round` is what the requests are for, or "done" if no request is left.
    """

    round: Round
    requests: int
    files: tuple[str, ...]
    pending: int
    unchanged: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchImport:
    """What was read.

    - `answered`: requests that got their answer now. `missing`: those without a usable result;
      `failed` holds the ones of them that have a failed one, as (request, reason).
    - `unused`: results that no open request waits for. `unreadable`: lines that are no results.
    - `usage`: what the new answers cost. `requests`: how many the next export will write, in which
      `round`.
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


@dataclass
class _Collector:
    """Used in place of a model: records each request and raises, which ends all work or one chunk."""

    name: str
    error: type[BudgetError | LLMError]
    requests: dict[str, Request] = field(default_factory=dict)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: types.ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        key = request_key(self.name, messages, response_type, max_tokens)
        self.requests[key.hex()] = tuple(messages), max_tokens
        raise self.error("not answered yet")


@dataclass(slots=True)
class _OpenWork:
    """The requests of the next round, each with the document it quotes (a summary has none), and
    the pending documents whose answers are all there.
    """

    round: Round = "done"
    requests: dict[str, Request] = field(default_factory=dict)
    documents: dict[str, str] = field(default_factory=dict)
    complete: list[PendingDocument] = field(default_factory=list)
    pending: int = 0


async def export_batch(
    rag: AsyncLightRAG,
    path: Path,
    documents: Given | Iterable[Given] = (),
    *,
    reasoning: bool = False,
) -> BatchExport:
    """Add documents to the pending ones, and write the requests of the next round.

    Without requests, a file left from an earlier round is removed, so that it is not sent again.
    `reasoning` writes the requests as reasoning models take them. `ConfigError` without a model.
    """
    model, failures = rag._client.llm, list[Failure]()
    unchanged, unreadable = await rag._indexing.defer(list(rag._pending(documents, failures)))
    work = await _open_work(rag)
    if work.complete:
        await _insert_complete(rag, work, finish=False)
        work = await _open_work(rag)
    lines = [_line(model, id, request, reasoning) for id, request in work.requests.items()]
    files = tuple(map(str, await to_thread.run_sync(_write, lines, path)))
    failed = (*failures, *unreadable)
    return BatchExport(work.round, len(lines), files, work.pending, tuple(unchanged), failed)


async def import_batch(
    rag: AsyncLightRAG, paths: Sequence[Path], *, finish: bool = False
) -> BatchImport:
    """Store the results, and make every document visible whose answers are all there.

    With `finish`, missing answers are given up: their chunks count as failed, to be retried later,
    and their documents become visible without them.
    """
    asked = await _open_work(rag)
    answers, failed, unreadable = await to_thread.run_sync(_read, paths)
    answered = asked.requests.keys() & answers.keys()

    def put(writer: Transaction) -> None:
        for key, answer in ((bytes.fromhex(id), answer) for id, answer in answers.items()):
            if writer.completion(key) is None:
                writer.put_completion(key, answer, asked.documents.get(key.hex()))

    await write(rag._store, put)
    inserted = await _insert_complete(rag, await _open_work(rag), finish=finish)
    left = await _open_work(rag)
    missing = asked.requests.keys() - answered
    return BatchImport(
        answered=len(answered),
        missing=len(missing),
        failed=tuple(sorted((id, why) for id, why in failed.items() if id in missing)),
        unused=len(answers) - len(answered),
        unreadable=unreadable,
        inserted=inserted,
        usage=sum((answers[id].usage for id in answered), Usage()),
        pending=left.pending,
        round=left.round,
        requests=len(left.requests),
    )


async def _open_work(rag: AsyncLightRAG) -> _OpenWork:
    """Go through every pending chunk as an insert would, and collect the unanswered requests."""
    collector = _Collector(rag._client.llm.name, BudgetError)
    extractor = rag._model_extractor(rag._model_client(collector))
    work = _OpenWork(requests=collector.requests)
    for document, chunks in rag._indexing.pending_work():
        answered = 0
        for chunk in chunks:
            try:
                await extractor.extract(chunk)
                answered += 1
            except BudgetError:  # a new request is the last one
                work.documents.setdefault(next(reversed(work.requests)), chunk.document_id)
        if isinstance(document, PendingDocument):
            work.pending += 1
            if answered == len(chunks):
                work.complete.append(document)
    if work.requests:
        work.round = "extraction"
    elif not work.pending:
        collector = _Collector(rag._client.llm.name, LLMError)
        await rag._index_pipeline(rag._model_client(collector)).summarize()
        work.requests = collector.requests
        work.round = "summaries" if work.requests else "done"
    return work


async def _insert_complete(rag: AsyncLightRAG, work: _OpenWork, *, finish: bool) -> InsertReport:
    """Insert the documents whose answers are all there (with `finish` all), and retry failed chunks."""
    indexing = rag._index_pipeline(rag._model_client(_Collector(rag._client.llm.name, LLMError)))
    renewed = await indexing.retry()
    insert = indexing.resume() if finish else indexing.insert(work.complete, tolerant=True)
    inserted = await insert
    return replace(
        inserted,
        documents=tuple(sorted({*inserted.documents, *renewed.documents})),
        chunks=inserted.chunks + renewed.chunks,
        failures=(*renewed.failures, *inserted.failures),
    )


def _line(llm: LLM, id: str, request: Request, reasoning: bool) -> Record:
    messages, max_tokens = request
    if (make := getattr(llm, "request_body", None)) is not None:
        body: Record = make(messages, max_tokens=max_tokens)
    else:
        body = {"model": llm.name, "messages": [asdict(one) for one in messages]}
        body |= {} if max_tokens is None else {"max_tokens": max_tokens}
    if reasoning:
        body.pop("temperature", None)
        if "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")
    return {"custom_id": id, "method": "POST", "url": URL, "body": body}


def _write(lines: Sequence[Record], path: Path) -> list[Path]:
    """Write one request a line, into as many files as the provider's limit requires; none for none."""
    written = []
    for number, start in enumerate(range(0, len(lines), MAX_REQUESTS), 1):
        target = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        target.write_bytes(ENCODER.encode_lines(lines[start : start + MAX_REQUESTS]))
        written.append(target)
    if not written:
        path.unlink(missing_ok=True)
    return written


def _read(paths: Sequence[Path]) -> tuple[dict[str, Completion], dict[str, str], int]:
    """The first answers by request, why others failed, and the number of unreadable lines."""
    answers: dict[str, Completion] = {}
    failed: dict[str, str] = {}
    unreadable = 0
    for line in (line for path in paths for line in read_text(path).split("\n") if line.strip()):
        try:
            record = json.loads(line)
            id = record["custom_id"]
            if KEY.fullmatch(id) and id not in answers:
                answers[id] = _answer(record)
        except LLMError as error:
            failed.setdefault(id, str(error))
        except (ValueError, TypeError, KeyError, RecursionError):
            unreadable += 1
    return answers, failed, unreadable


def _answer(record: Record) -> Completion:
    """The completion of a result; `LLMError` gives the reason if there is none."""
    response = record.get("response")
    body = response.get("body") if isinstance(response, dict) else None
    status = response.get("status_code", 200) if isinstance(response, dict) else None
    if not isinstance(body, dict) or status != 200:
        error = body.get("error") if isinstance(body, dict) else record.get("error")
        message = error.get("message") if isinstance(error, dict) else error
        raise LLMError(str(message or f"the result has no response (status {status})"))
    completion = read_completion(body)
    if completion.finish == "length" and not completion.text.strip():
        raise LLMError("the answer was cut off before its first word")
    return completion
