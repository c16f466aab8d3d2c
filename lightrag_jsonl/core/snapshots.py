"""Snapshots of an index, and the difference between two states."""

from dataclasses import dataclass
from datetime import datetime

from lightrag_jsonl.core.display import with_short_repr
from lightrag_jsonl.core.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSnapshot:
    """A state of an index with a name; `rollback` leads back to the state.

    `kept_bytes` is the size of the rows changed or deleted since, which are kept for the snapshot.
    """

    name: str
    created_at: datetime
    kept_bytes: int = 0


@with_short_repr
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Difference:
    """A document, entity, relation, claim or merge in two states, in words: `before` is empty for new
    ones, `after` for deleted ones.
    """

    name: str
    before: str = ""
    after: str = ""


@with_short_repr
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
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
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StateDifference:
    """The differences between two states of an index, or between two indexes, in order of names.

    The name of a document is the id, the name of a relation has both ends. A claim is the statement of a
    passage, with the time in which the statement holds. `answers` has the questions with different
    evidence, out of `questions` in all; `estimate` is the cost of the answers by the model.
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
