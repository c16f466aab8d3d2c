"""The entities that a question names."""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lightrag_jsonl.core.cjk import CJK, has_cjk
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.terms import search_terms
from lightrag_jsonl.retrieval.aliases import entities_called
from lightrag_jsonl.retrieval.hits import column
from lightrag_jsonl.retrieval.task import SearchTask

# Bounds of the time that a question takes: no name of the question sets is longer, and a question of
# a hundred words has no more spans.
LONGEST_NAME = 12  # words; names up to this length are looked for in the question
LONGEST_CJK_NAME = 8  # characters; likewise
NAME_LIMIT = 1_200  # spans of the question that are looked up as names

_SPAN_PART = re.compile(rf"([{CJK}])|[^\s{CJK}]+")
_POSSESSIVE = re.compile(r"['’]s?\W*$")
_SURROUNDINGS = "?!.,;:…？！。，、；：\"“”'‘’()（）[]《》〈〉「」『』【】"

NameSpan: TypeAlias = tuple[int, int, str]  # start, end, name key


@dataclass(frozen=True, slots=True)
class QuestionNames:
    """Entities by the key of a name in the question or in a keyword; and the spelling of each entity
    whose name stands in the question itself.
    """

    rows_by_key: Mapping[str, int]
    spellings: Mapping[int, str]

    def contain(self, text: str) -> bool:
        """Whether a text is the whole or a part of a name in the question."""
        words = _bounded(text)
        return any(words in _bounded(spelling) for spelling in self.spellings.values())


def question_names(task: SearchTask) -> QuestionNames:
    """The names in the question and in its keywords that are names of visible entities."""
    spans = _name_spans(task.query.question)
    keys = {*map(name_key, task.query.low), *(key for _, _, key in spans)}
    rows_by_key = {**entities_called(task, keys), **task.snapshot.entity_ids(keys)}
    visible = task.inside("entity", column(rows_by_key.values()))
    rows_by_key = dict(itertools.compress(rows_by_key.items(), visible))
    return QuestionNames(rows_by_key, _names_as_spelled(task.query.question, spans, rows_by_key))


def names_an_entity(task: SearchTask) -> bool:
    """Whether the name of an entity occurs in the question; words in small letters are no names."""
    spellings = question_names(task).spellings
    return not all(spelling.islower() for spelling in spellings.values())


def without_common_words(
    task: SearchTask, likeness_by_row: Mapping[int, float], spellings: Mapping[int, str]
) -> dict[int, float]:
    """The named entities without common words ("area code"), written small in the question and in the
    index; all named entities if nothing else remains.
    """
    small = [
        row for row, spelling in spellings.items() if spelling.islower() and not has_cjk(spelling)
    ]
    stored_names = task.snapshot.entity_names(small)
    common = {row for row in small if stored_names[row].islower()}
    proper = {row: likeness for row, likeness in likeness_by_row.items() if row not in common}
    return proper or dict(likeness_by_row)


def _names_as_spelled(
    question: str, spans: Sequence[NameSpan], rows_by_key: Mapping[str, int]
) -> dict[int, str]:
    """The names of entities as the question spells them, the longest first; no name inside a longer
    one.
    """
    taken: list[tuple[int, int]] = []
    spellings: dict[int, str] = {}
    for start, end, key in spans:
        if key in rows_by_key and all(
            start >= taken_end or taken_start >= end for taken_start, taken_end in taken
        ):
            taken.append((start, end))
            span = question[start:end]
            name = _POSSESSIVE.sub("", span).strip(_SURROUNDINGS)
            spellings.setdefault(rows_by_key[key], name or span)
    return spellings


def _name_spans(question: str) -> list[NameSpan]:
    """Runs of words or of CJK characters that may be names, the longest first."""
    parts = list(_SPAN_PART.finditer(question))
    spans: list[NameSpan] = []
    for first, part in enumerate(parts):
        is_character = bool(part[1])
        longest = LONGEST_CJK_NAME if is_character else LONGEST_NAME
        is_common_word = not question[part.start()].isupper()
        for last in range(first, min(first + longest, len(parts))):
            if first == last and (is_character or is_common_word):
                continue
            start = part.start()
            end = parts[last].end()
            key = name_key(_POSSESSIVE.sub("", question[start:end]))
            if key:
                spans.append((start, end, key))
    return sorted(spans, key=lambda span: (span[0] - span[1], span))[:NAME_LIMIT]


def _bounded(name: str) -> str:
    return f" {' '.join(search_terms(name))} "
