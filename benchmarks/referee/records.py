"""Finds what was recorded about the text in a prompt, and for a question."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.referee.material import Material, Question, Row, names_of

SHORTEST = 16  # characters of a sentence by which a text is recognized

_BORDER = re.compile(r"(?<=[.!?。！？])|\n")
_NOT_A_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Reading:
    """A recorded text by its sentences, and the rows that a model reads in it."""

    sentences: frozenset[str]
    rows: tuple[Row, ...]


@dataclass(slots=True)
class Records:
    """The readings of a corpus by their sentences, and its questions by their words."""

    readings: list[Reading] = field(default_factory=list)
    questions: dict[str, Question] = field(default_factory=dict)
    _numbers: dict[str, list[int]] = field(default_factory=dict)

    def add(self, material: Material) -> None:
        """Add the recorded texts and the questions of a corpus."""
        for text, rows in material.readings:
            sentences = frozenset(sentences_of(text))
            for sentence in sentences:
                self._numbers.setdefault(sentence, []).append(len(self.readings))
            self.readings.append(Reading(sentences, tuple(rows)))
        for question in material.questions:
            self.questions[folded(question.text)] = question

    def rows_about(self, text: str) -> list[Row]:
        """The rows of every recorded text in a prompt; of one that is there in part, and in no other
        text of the prompt, the rows whose names stand in the prompt.
        """
        sentences = set(sentences_of(text))
        numbers = {n for sentence in sentences for n in self._numbers.get(sentence, ())}
        readings = [self.readings[number] for number in sorted(numbers)]
        whole_readings = [reading for reading in readings if reading.sentences <= sentences]
        rest = sentences.difference(*[reading.sentences for reading in whole_readings])
        whole_text = folded(text)
        rows: dict[str, Row] = {}
        for reading in readings:
            is_whole = reading.sentences <= sentences
            if not is_whole and not reading.sentences & rest:
                continue  # texts that overlap: the beginning of the next, or the end of the last
            for row in reading.rows:
                if is_whole or all(folded(name) in whole_text for name in names_of(row)):
                    rows.setdefault(repr(row), row)
        return list(rows.values())

    def question_in(self, text: str) -> Question | None:
        """The longest recorded question whose words stand in a text."""
        whole_text = folded(text)
        matches = [words for words in self.questions if words in whole_text]
        return self.questions[max(matches, key=len)] if matches else None


def sentences_of(text: str) -> list[str]:
    """The folded sentences of a text; a text without a longer sentence is one sentence."""
    sentences = [folded(part) for part in _BORDER.split(text)]
    long_ones = [sentence for sentence in sentences if len(sentence) >= SHORTEST]
    return long_ones or [sentence for sentence in sentences if sentence][:1]


def folded(text: str) -> str:
    """A text without case, punctuation and repeated white space."""
    return _NOT_A_WORD.sub(" ", text.casefold()).strip()


def texts_key(texts: Iterable[str]) -> str:
    """A short name for some texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def shortened(rows: Sequence[Row], share: float) -> list[Row]:
    """The first rows, whose number is a share of all."""
    return list(rows[: int(len(rows) * share)])
