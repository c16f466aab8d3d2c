"""Claims of texts with dates, for readers: the history of an entity, and contradictions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from lightrag_jsonl.core.display import with_short_repr
from lightrag_jsonl.text.names import nfkc_casefold
from lightrag_jsonl.text.sentences import sentence_spans
from lightrag_jsonl.text.terms import GRAMMAR_WORDS, content_stems

LEAST_SHARED = 0.5  # of the words of a description, in the sentence taken for it


@with_short_repr
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DatedClaim:
    """What one passage says: about `subject` alone, or that `predicate` leads from it to `value`. `kind`
    tells a relation of two entities from a statement about one.

    It holds from `valid_from` to `valid_to`, by the words of the text; "" is open. `written` is the date of
    the document, as it was given. `text` is the nearest sentence, at characters `start` to `end` of the
    page, or the stored description if no sentence has the names and half the words.
    """

    subject: str
    predicate: str = ""
    value: str = ""
    kind: Literal["entity", "relation"] = "entity"
    text: str = ""
    valid_from: str = ""
    valid_to: str = ""
    written: str = ""
    document_id: str = ""
    document: str = ""
    chunk_id: str = ""
    page: int = 1
    start: int = 0
    end: int = 0


@with_short_repr
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Conflict:
    """Two claims with different values, where one subject has one value of this kind at a time.

    `explained` says that time explains the difference: the claims hold at different times, or the second
    is of a later date and takes the place of the first.
    """

    subject: str
    predicate: str
    first: DatedClaim
    second: DatedClaim
    explained: bool = False

    @property
    def values(self) -> tuple[str, str]:
        """The two values: the names in which the claims differ."""
        if self.first.value == self.second.value:
            return self.first.subject, self.second.subject
        return self.first.value, self.second.value


@with_short_repr
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GraphDifference:
    """What of a graph is new and what is gone: names of entities, and of the two ends of relations, each
    in order; and contradictions that were not there before.
    """

    new_entities: tuple[str, ...] = ()
    gone_entities: tuple[str, ...] = ()
    new_relations: tuple[tuple[str, str], ...] = ()
    gone_relations: tuple[tuple[str, str], ...] = ()
    new_conflicts: tuple[Conflict, ...] = ()


class StatementPlaces:
    """Where a text states something; its sentences are read once, for any number of statements."""

    def __init__(self, text: str) -> None:
        self._text = text

    def span(self, names: Sequence[str], description: str) -> tuple[int, int] | None:
        """The characters of the text that state something about names: the description as it stands
        there, or the sentence that shares most of its words, if possible one with all names; None if no
        sentence says something like it.
        """
        start = self._text.find(description) if description else -1
        if start >= 0:
            return start, start + len(description)
        folded_names = [nfkc_casefold(name) for name in names]
        words = content_stems(description, without=GRAMMAR_WORDS)
        candidates: list[tuple[bool, int, int, int]] = []
        for sentence in self._sentences:
            shared = len(words & sentence.stems)
            lacks_name = not all(name in sentence.folded for name in folded_names)
            if shared >= LEAST_SHARED * len(words) and (words or not lacks_name):
                candidates.append((lacks_name, -shared, sentence.start, sentence.end))
        if not candidates:
            return None
        _, _, start, end = min(candidates)
        return start, end

    @cached_property
    def _sentences(self) -> list["_Sentence"]:
        sentences: list[_Sentence] = []
        for start, end in sentence_spans(self._text):
            words = self._text[start:end]
            stems = content_stems(words, without=GRAMMAR_WORDS)
            sentences.append(_Sentence(start, end, nfkc_casefold(words), stems))
        return sentences


class _Sentence(NamedTuple):
    """A sentence at characters of its text, casefolded, and the stems of its words."""

    start: int
    end: int
    folded: str
    stems: frozenset[str]


def claims_by_sentence(claims: Iterable[DatedClaim]) -> list[DatedClaim]:
    """The claims with one for each sentence and time: a sentence with several names is a claim about each
    pair of them.
    """
    first_claims: dict[tuple[str, ...], DatedClaim] = {}
    for claim in claims:
        statement = (claim.text,) if claim.text else (claim.subject, claim.predicate, claim.value)
        dates = (claim.valid_from, claim.valid_to)
        first_claims.setdefault((claim.chunk_id, str(claim.start), *dates, *statement), claim)
    return list(first_claims.values())
