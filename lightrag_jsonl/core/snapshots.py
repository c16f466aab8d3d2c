"""Snapshots of an index, and the difference between two states."""

from dataclasses import dataclass
from datetime import datetime

from lightrag_jsonl.core.display import with_short_repr
from lightrag_jsonl.core.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSnapshot:
    """A state of an index with a name, to which `rollback` leads back.

    `kept_bytes` is the size of the rows that were changed or deleted since, and that are kept for this
    snapshot.
    """

    name: str
    created_at: datetime
    kept_bytes: int = 0


@with_short_repr
@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing in two states, in words: `before` is empty if it is new, `after` if it is gone."""

    name: str
    before: str = ""
    after: str = ""


@with_short_repr
@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDifference:
    """What a question is answered from in two states, where that differs.

    `new_evidence` and `gone_evidence` are entities, relations and passages of the contexts. `before` and
    `after` are the answers; both are empty if a model would have to be asked.
    """

    question: str
    before: str = ""
    after: str = ""
    new_evidence: tuple[str, ...] = ()
    gone_evidence: tuple[str, ...] = ()


@with_short_repr
@dataclass(frozen=True, slots=True, kw_only=True)
class StateDifference:
    """What differs between two states of an index, or two indexes, each in order.

    A document has its id for a name, an entity or a merged name its own, a relation those of its ends. A
    claim is what one passage says, with the time for which it holds. `answers` has the questions with
    other evidence, of `questions` that were asked; `estimate` is the cost of answers by the model.
    """

    documents: tuple[Difference, ...] = ()
    entities: tuple[Difference, ...] = ()
    relations: tuple[Difference, ...] = ()
    claims: tuple[Difference, ...] = ()
    merges: tuple[Difference, ...] = ()
    answers: tuple[AnswerDifference, ...] = ()
    questions: int = 0
    estimate: Usage = Usage()
    usage: Usage = Usage()

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        parts = (self.documents, self.entities, self.relations, self.claims, self.merges)
        return not any(parts) and not self.answers
