"""Question sets: one JSON object a line, each with the ids of the texts that support its answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.files import read_text
from lightrag_jsonl.indexfiles import check_not_of_index
from lightrag_jsonl.types import Json


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """A question and what should be found for it.

    `supporting` holds ids of documents or chunks. `names` are its low-level keywords; without them,
    keywords are found as for any question.
    """

    text: str
    supporting: tuple[str, ...]
    answer: str = ""
    names: tuple[str, ...] = ()


def read_questions(path: str | Path) -> tuple[EvalQuestion, ...]:
    """The questions of a JSONL file: `question`, `supporting`, and optionally `answer` and `names`.

    Raises `ConfigError` if the file cannot be read; for a bad question it names the line.
    """
    found: list[EvalQuestion] = []
    for number, line in enumerate(read_text(Path(path)).split("\n"), 1):
        if line.strip():
            try:
                found.append(_question(json.loads(line)))
            except (ValueError, RecursionError) as error:
                raise ConfigError(f"{path}, line {number}: {error}") from error
    if not found:
        raise ConfigError(f"{path}: no question in it")
    return tuple(found)


def write_questions(path: str | Path, questions: Iterable[EvalQuestion]) -> None:
    """Write a question set that `read_questions` can read."""
    check_not_of_index(Path(path))
    lines = [json.dumps(_plain(question), ensure_ascii=False) for question in questions]
    Path(path).write_text("".join(line + "\n" for line in lines), encoding="utf-8")


# ── helpers ─────────────────────────────────────────────────────────────────────


def _question(value: Json) -> EvalQuestion:
    if not isinstance(value, dict):
        raise ValueError("a question is a JSON object")
    text, answer = value.get("question"), value.get("answer", "")
    if not isinstance(text, str) or not text.strip():
        raise ValueError("'question' must be a text that is not empty")
    if not isinstance(answer, str | int | float):
        raise ValueError("'answer' must be a text")
    supporting = _texts(value, "supporting")
    if not supporting:
        raise ValueError("'supporting' must name at least one document or chunk")
    return EvalQuestion(text, supporting, str(answer), _texts(value, "names"))


def _texts(value: dict[str, Json], field: str) -> tuple[str, ...]:
    items = value.get(field, [])
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError(f"'{field}' must be a list of texts")
    return tuple(dict.fromkeys(str(item) for item in items))


def _plain(question: EvalQuestion) -> dict[str, Json]:
    plain: dict[str, Json] = {
        "question": question.text,
        "supporting": list(question.supporting),
        "answer": question.answer,
    }
    return {**plain, "names": list(question.names)} if question.names else plain
