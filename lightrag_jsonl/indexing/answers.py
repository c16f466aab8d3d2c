"""Judges a model's answer about a chunk: cut off, repeating, with refused or missing records."""

from collections.abc import Iterable

from lightrag_jsonl.core.types import Rejection
from lightrag_jsonl.indexing.mentions import GRAPH_PROMPT
from lightrag_jsonl.llm.client import Records

STATEMENTS = frozenset({"entity", "relationship"})  # records about the text, not about the answer
LOST = frozenset({"array", "multiline", "malformed", "too_deep", "schema"})  # instead of a record
INTENDED = frozenset(
    {"ontology", "self_relation", "limit"}
)  # refusals that a better answer repeats


def statement_count(answer: Records, *, prompt: str) -> int:
    """The number of records that state something about the text."""
    records = answer.result.records
    if prompt != GRAPH_PROMPT:
        return len(records)
    return sum(record.get("type") in STATEMENTS for record in records)


def declared_records(answer: Records) -> int:
    """The number of records that the answer claims to hold."""
    records = [record for record in answer.result.records if record.get("type") == "done"]
    counts = [record.get(kind) for record in records for kind in ("entities", "relationships")]
    return sum(count for count in counts if isinstance(count, int) and count > 0)


def is_cut_off(answer: Records) -> bool:
    """Whether the end of the answer is missing."""
    return answer.result.truncated or answer.reply.cut_off


def is_loop(answer: Records) -> bool:
    """Whether the model repeated itself until the reading ended: it would go on repeating."""
    return any(rejection.reason == "repeated" for rejection in answer.result.rejections)


def some_are_refused(rejections: Iterable[Rejection]) -> bool:
    """Whether a line was refused, not only repaired."""
    return any(rejection.reason != "repaired" for rejection in rejections)
