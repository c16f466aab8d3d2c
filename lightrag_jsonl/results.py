"""Reads the result files of a batch: which requests were answered, and which were not."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lightrag_jsonl.adapters.openai import read_completion
from lightrag_jsonl.errors import ConfigError, LLMError
from lightrag_jsonl.indexfiles import check_not_of_index
from lightrag_jsonl.types import Completion, Json, Record

KEY = re.compile("[0-9a-f]{64}")  # the form of a request's id


@dataclass(slots=True)
class Results:
    """The results of a batch by request id.

    `answers` and `failed` belong to the requests that were asked for. If one has several results,
    the first good one counts and the further ones are counted in `doubled`. `others` holds results
    for any other id: their answer, or None if they have none or the id is not one of ours.
    """

    answers: dict[str, Completion] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    others: dict[str, Completion | None] = field(default_factory=dict)
    doubled: int = 0
    unreadable: int = 0

    @classmethod
    def read(cls, paths: Sequence[Path], asked: Collection[str]) -> Results:
        """Read all lines of all files, in order; `ConfigError` if a file cannot be read."""
        results = cls()
        for path in paths:
            for line in _lines(path):
                results._take(line, asked)
        for answered in results.answers.keys() & results.failed.keys():
            del results.failed[answered]
        return results

    def _take(self, line: str, asked: Collection[str]) -> None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        id = record.get("custom_id") if isinstance(record, dict) else None
        if not isinstance(id, str):
            self.unreadable += 1
        elif id not in asked:
            self.others[id] = self.others.get(id) or _other(id, record)
        else:
            try:
                done = _answer(record)
            except LLMError as error:
                self.failed.setdefault(id, str(error))
                return
            if id in self.answers:
                self.doubled += 1
            else:
                self.answers[id] = done


def _other(id: str, record: Record) -> Completion | None:
    if not KEY.fullmatch(id):
        return None
    try:
        return _answer(record)
    except LLMError:
        return None


def _lines(path: Path) -> Iterator[str]:
    check_not_of_index(path)
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            for line in file:
                if line.strip():
                    yield line
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error


def _answer(record: Record) -> Completion:
    """The completion of a result; `LLMError` says why there is none."""
    problem = _message(record.get("error"))
    response = record.get("response")
    if not isinstance(response, dict):
        raise LLMError(problem or "the result has no response")
    body, status = response.get("body"), response.get("status_code", 200)
    if not isinstance(body, dict) or status != 200:
        inner = _message(body.get("error")) if isinstance(body, dict) else ""
        raise LLMError(problem or inner or f"status {status}")
    done = read_completion(body)
    if done.finish == "length" and not done.text.strip():
        raise LLMError("the answer was cut off before its first word")
    return done


def _message(error: Json) -> str:
    if isinstance(error, dict):
        return str(error.get("message") or error.get("code") or "an error without a message")
    return str(error) if error else ""
