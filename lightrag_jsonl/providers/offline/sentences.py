"""Finds the sentences of a text, by the rules of the language it is written in."""

from __future__ import annotations

from lightrag_jsonl.core.types import Language
from lightrag_jsonl.providers.offline.chinese import chinese_sentences
from lightrag_jsonl.providers.offline.english import english_sentences
from lightrag_jsonl.providers.offline.phrases import Sentence, written_in


def find_sentences(text: str, language: Language, *, question: bool = False) -> list[Sentence]:
    """The sentences of a text; `language` decides where the writing does not."""
    if written_in(text, language) == "zh":
        return chinese_sentences(text, question=question)
    return english_sentences(text)
