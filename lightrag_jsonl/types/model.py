"""What goes to a model and comes back: messages, completions, and the records of its answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from lightrag_jsonl.usage import Usage

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Record: TypeAlias = dict[str, Json]
ResponseType: TypeAlias = Literal["text", "json", "jsonl"]
RejectionReason: TypeAlias = Literal[
    "repaired",
    "array",
    "multiline",
    "not_object",
    "not_json",
    "malformed",
    "truncated",
    "too_deep",
    "schema",
    "unknown_id",
    "duplicate_id",
    "self_relation",
    "empty_name",
    "ontology",
]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; `role` is "system", "user" or "assistant"."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer; `finish` is "length" if it stopped at the token limit."""

    text: str
    finish: Literal["stop", "length"] = "stop"
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Rejection:
    """A line of model output that did not become a record (or did so only after repair).

    `line` counts from 1 in the model's text; `detail` says where and why in words.
    """

    line: int
    text: str
    reason: RejectionReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class JsonlResult:
    """What a JSONL answer held: its whole records, the line each began on, and what was refused.

    `truncated` says that the answer broke off inside a record, an array or a thought.
    """

    records: tuple[Record, ...] = ()
    line_numbers: tuple[int, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    truncated: bool = False
