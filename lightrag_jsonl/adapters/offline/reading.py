"""Reads a text by the rules of the language it is written in."""

from __future__ import annotations

from lightrag_jsonl.adapters.offline.phrases import Sentence, Sort
from lightrag_jsonl.options import ENTITY_TYPES
from lightrag_jsonl.text import is_cjk
from lightrag_jsonl.types import Language


def written_in(text: str, default: Language) -> Language:
    """The language of a text: Chinese if at least a fifth of its letters are CJK, else English; the
    default if it has no letters.
    """
    letters = [char for char in text if char.isalpha()]
    if not letters:
        return default
    wide = sum(map(is_cjk, letters))
    return "zh" if wide * 5 >= len(letters) else "en"


def read(text: str, language: Language, *, quick: bool = False) -> tuple[Sentence, ...]:
    """The sentences of a text, by the rules of its language; `quick` for a question."""
    if written_in(text, language) == "zh":
        from lightrag_jsonl.adapters.offline.chinese import read_chinese

        return read_chinese(text, quick=quick)
    from lightrag_jsonl.adapters.offline.english import read_english

    return read_english(text, quick=quick)


def type_name(sort: Sort, language: Language) -> str:
    """The name of the entity type for a sort, in this language."""
    return ENTITY_TYPES[language][ENTITY_TYPES["en"].index(sort)]
