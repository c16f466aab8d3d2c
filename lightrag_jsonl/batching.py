"""Extraction by batch files: the requests to a model, written to a file, and its answers, read
back.

Each round runs the real extraction with a stand-in for the model. It answers from the cache and
collects the requests that have no answer yet: at first those about each chunk, later those that
resume and glean, finally those for summaries.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from lightrag_jsonl.ask import request_key
from lightrag_jsonl.assembly import Engine, Setup, connect, rehearsal
from lightrag_jsonl.errors import BudgetError, ConfigError, LLMError
from lightrag_jsonl.files import check_target
from lightrag_jsonl.protocols import LLM
from lightrag_jsonl.results import Results
from lightrag_jsonl.storage import cache
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.pending import PendingDocument
from lightrag_jsonl.types import (
    Completion,
    Failure,
    InsertReport,
    Json,
    Message,
    Record,
    ResponseType,
    Usage,
)

Round = Literal["extraction", "summaries", "done"]

URL = "/v1/chat/completions"
MOST = 50_000  # requests that providers accept in one file
SUMMARIZE = "summarize-descriptions"


@dataclass(frozen=True, slots=True)
class BatchExport:
    """What was written: `requests` in `files`; `waiting` documents are not visible yet.

    `round` says what the requests are for, or "done" if nothing is left to ask. `unchanged` lists
    documents that are in the index already.
    """

    round: Round
    requests: int
    files: tuple[str, ...]
    waiting: int
    unchanged: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchImport:
    """What the results brought; `inserted` reports the documents that became visible.

    - `answered`: requests that got their answer now. `missing`: requests without a usable result;
      `failed` holds those of them that have a failed one, as (request, reason).
    - `doubled`: further results for the same request. `known`: answers that were stored before.
    - `kept`: answers, stored because they are paid for, to requests that are not asked now (from an
      earlier export, or of the next round).
    - `unknown`: results that are of no use here. `unreadable`: lines that are no results.
    - `requests`: how many the next export will write.
    """

    answered: int
    missing: int
    failed: tuple[tuple[str, str], ...]
    doubled: int
    known: int
    kept: int
    unknown: int
    unreadable: int
    usage: Usage
    inserted: InsertReport
    waiting: int
    round: Round
    requests: int


class NotYetAnswered(BudgetError):
    """The answer to a request is not in the cache. A `BudgetError`, so that the insert stops cleanly."""


class Abandoned(LLMError):
    """A request that is given up: its chunk fails, or its summary is postponed."""


@runtime_checkable
class BatchLLM(LLM, Protocol):
    """A model whose adapter can return a request instead of sending it."""

    def request_body(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> dict[str, Json]:
        """The body of the request that `complete` would send."""
        ...


@dataclass(frozen=True, slots=True)
class _Request:
    messages: tuple[Message, ...]
    response_type: ResponseType
    max_tokens: int | None


@dataclass
class _Collector:
    """Stands in for a model: notes each request and refuses it with `refusal`."""

    name: str
    refusal: Callable[[str], Exception]
    requests: dict[str, _Request] = field(default_factory=dict)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        key = request_key(self.name, messages, response_type, max_tokens)
        self.requests[key.hex()] = _Request(tuple(messages), response_type, max_tokens)
        raise self.refusal("not answered yet")


@dataclass(slots=True)
class _Survey:
    """The requests of the next round, and the waiting documents whose answers are all there."""

    round: Round = "done"
    requests: dict[str, _Request] = field(default_factory=dict)
    whole: list[PendingDocument] = field(default_factory=list)
    waiting: int = 0


class Batch:
    """The batch files of one index; `ConfigError` if there is no model that could be asked."""

    def __init__(self, database: Database, setup: Setup) -> None:
        if setup.parts.llm is None or setup.parts.extractor is not None:
            raise ConfigError("batch files need a model (llm=…, or --llm) that reads the texts")
        unlimited = replace(
            setup.options, max_calls=None, max_input_tokens=None, max_output_tokens=None
        )
        self._database = database
        self._setup = replace(setup, options=unlimited)
        self._llm: LLM = setup.parts.llm

    # ── what callers do ─────────────────────────────────────────────────────────

    async def export(
        self, given: Iterable[PendingDocument], path: Path, *, reasoning: bool = False
    ) -> BatchExport:
        """Put documents on the waiting list, and write the requests of the next round.

        If there are none, a file left from an earlier round is removed, so that it is not sent
        again. `reasoning` writes the requests without temperature and with the token limit that
        reasoning models take.
        """
        check_target(str(path))
        unchanged, failures = await self._engine(NotYetAnswered).indexing.postpone(given)
        survey = await self._survey()
        if survey.whole:
            await self._settle(survey, finish=False)
            survey = await self._survey()
        lines = (self._line(id, one, reasoning) for id, one in survey.requests.items())
        files = await asyncio.to_thread(_write, lines, path)
        return BatchExport(
            survey.round,
            len(survey.requests),
            tuple(str(file) for file in files),
            survey.waiting,
            tuple(unchanged),
            tuple(failures),
        )

    async def take_back(self, paths: Sequence[Path], *, finish: bool = False) -> BatchImport:
        """Store the results, and make every document visible whose answers are all there.

        With `finish`, missing answers are given up: their chunks count as failed, to be retried
        later, and their documents become visible without them.
        """
        asked = await self._survey()
        results = await asyncio.to_thread(Results.read, paths, asked.requests.keys())
        known = {key for key in results.others if self._is_kept(key)}
        kept = {key: done for key, done in results.others.items() if done and key not in known}
        await self._keep(asked.round, {**results.answers, **kept})
        inserted = await self._settle(await self._survey(), finish=finish)
        left = await self._survey()
        return BatchImport(
            answered=len(results.answers),
            missing=len(asked.requests) - len(results.answers),
            failed=tuple(sorted(results.failed.items())),
            doubled=results.doubled,
            known=len(known),
            kept=len(kept),
            unknown=len(results.others) - len(known) - len(kept),
            unreadable=results.unreadable,
            usage=sum((done.usage for done in results.answers.values()), Usage()),
            inserted=inserted,
            waiting=left.waiting,
            round=left.round,
            requests=len(left.requests),
        )

    # ── what is to be asked ─────────────────────────────────────────────────────

    async def _survey(self) -> _Survey:
        """Go through every waiting chunk as an insert would, and collect the requests without an answer."""
        survey = _Survey()
        model = _Collector(self._llm.name, NotYetAnswered, survey.requests)
        extractor = rehearsal(self._database, self._setup, model)
        for document, chunks in self._engine(NotYetAnswered).indexing.intake.waiting():
            answered = 0
            for chunk in chunks:
                try:
                    await extractor.extract(chunk)
                    answered += 1
                except NotYetAnswered:
                    continue
            if isinstance(document, PendingDocument):
                survey.waiting += 1
                if answered == len(chunks):
                    survey.whole.append(document)
        if survey.requests:
            survey.round = "extraction"
        elif not survey.waiting:
            await self._survey_summaries(survey)
        return survey

    async def _survey_summaries(self, survey: _Survey) -> None:
        model = _Collector(self._llm.name, Abandoned, survey.requests)
        await self._connect(model).indexing.summarize()
        survey.round = "summaries" if survey.requests else "done"

    # ── what was answered ───────────────────────────────────────────────────────

    async def _keep(self, round: Round, answers: Mapping[str, Completion]) -> None:
        prompt = SUMMARIZE if round == "summaries" else self._setup.options.extraction
        at = self._setup.clock()

        def put(connection: sqlite3.Connection) -> None:
            for key, done in answers.items():
                cache.put_completion(
                    connection, bytes.fromhex(key), done, model=self._llm.name, prompt=prompt, at=at
                )

        await self._database.committed(put)

    def _is_kept(self, key: str) -> bool:
        try:
            digest = bytes.fromhex(key)
        except ValueError:
            return False
        with self._database.reading() as connection:
            return cache.completion(connection, digest) is not None

    async def _settle(self, survey: _Survey, *, finish: bool) -> InsertReport:
        """Insert the documents whose answers are all there (with `finish` all), and retry failed chunks."""
        indexing = self._engine(Abandoned if finish else NotYetAnswered).indexing
        renewed = await indexing.retry(summarize=False)
        if finish:
            inserted = await indexing.resume(summarize=False)
        else:
            inserted = await indexing.insert(survey.whole, summarize=False, tolerant=True)
        return replace(
            inserted,
            documents=tuple(sorted({*inserted.documents, *renewed.documents})),
            chunks=inserted.chunks + renewed.chunks,
            failures=(*renewed.failures, *inserted.failures),
        )

    # ── parts ───────────────────────────────────────────────────────────────────

    def _engine(self, refusal: Callable[[str], Exception]) -> Engine:
        return self._connect(_Collector(self._llm.name, refusal))

    def _connect(self, model: _Collector) -> Engine:
        parts = replace(self._setup.parts, llm=model)
        return connect(self._database, replace(self._setup, parts=parts))

    def _line(self, id: str, request: _Request, reasoning: bool) -> Record:
        body = self._body(request)
        if reasoning:
            body.pop("temperature", None)
            if "max_tokens" in body:
                body["max_completion_tokens"] = body.pop("max_tokens")
        return {"custom_id": id, "method": "POST", "url": URL, "body": body}

    def _body(self, request: _Request) -> dict[str, Json]:
        if isinstance(self._llm, BatchLLM):
            return self._llm.request_body(
                request.messages,
                response_type=request.response_type,
                max_tokens=request.max_tokens,
            )
        turns: list[Json] = [{"role": m.role, "content": m.content} for m in request.messages]
        body: dict[str, Json] = {"model": self._llm.name, "messages": turns}
        return body if request.max_tokens is None else {**body, "max_tokens": request.max_tokens}


def _write(lines: Iterable[Record], path: Path) -> list[Path]:
    """Write one request a line, into as many files as the provider's limit requires; no file for none."""
    written: list[Path] = []
    for part in _parts(lines):
        number = len(written) + 1
        target = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        fresh = target.with_name(target.name + ".part")
        with fresh.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in part)
        fresh.replace(target)
        written.append(target)
    if not written:
        path.unlink(missing_ok=True)
    return written


def _parts(lines: Iterable[Record]) -> Iterator[list[Record]]:
    part: list[Record] = []
    for line in lines:
        part.append(line)
        if len(part) == MOST:
            yield part
            part = []
    if part:
        yield part
