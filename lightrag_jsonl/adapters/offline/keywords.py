"""Finds the keywords of a question by language rules: its names, and its themes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence

from lightrag_jsonl.adapters.offline import chinese_words, english_words
from lightrag_jsonl.adapters.offline.phrases import Phrase
from lightrag_jsonl.adapters.offline.reading import read, written_in
from lightrag_jsonl.text import has_cjk, is_lone, name_key, sanitize
from lightrag_jsonl.types import Keywords, Language, Message


class OfflineKeywords:
    """KeywordExtractor without a model: names and noun phrases are low-level keywords, other words
    high-level ones.

    A question with a pronoun such as "he", "it" or 他 also gets the names of the user's last turn.
    """

    def __init__(self, language: Language = "en") -> None:
        self._language: Language = language

    async def keywords(self, question: str, history: Sequence[Message] = ()) -> Keywords:
        """The low- and high-level keywords of a question, each in the order of the text."""
        return await asyncio.to_thread(find_keywords, question, history, language=self._language)


def find_keywords(
    question: str, history: Sequence[Message] = (), *, language: Language
) -> Keywords:
    """The low- and high-level keywords of a question, each in the order of the text."""
    question = sanitize(question)
    names, words = _names_and_words(question, language)
    if _LEANING.search(question):
        before = next((turn.content for turn in reversed(history) if turn.role == "user"), "")
        names = _distinct([*names, *_names_and_words(sanitize(before), language)[0]])
    taken = {name_key(part) for name in names for part in [name, *name.split()]}
    themes = [word for word in words if name_key(word) not in taken and not _within(word, names)]
    if not names:
        names, themes = themes or _distinct(_leftovers(question)), []
    return Keywords(high_level=tuple(themes), low_level=tuple(names))


def _names_and_words(text: str, language: Language) -> tuple[list[str], list[str]]:
    sentences = read(text, language, quick=True)
    phrases = [phrase for sentence in sentences for phrase in sentence.phrases]
    names = _distinct(phrase.name for phrase in phrases if _names_something(phrase))
    words = (word for sentence in sentences for _, word in sentence.words)
    return names, _distinct(word for word in words if word not in _QUESTION_WORDS)


def _names_something(phrase: Phrase) -> bool:
    return phrase.name.casefold() not in _QUESTION_WORDS and len(phrase.name) > 1


def _distinct(words: Iterable[str]) -> list[str]:
    return list({name_key(word): word for word in reversed(list(words))}.values())[::-1]


def _within(word: str, names: Iterable[str]) -> bool:
    return has_cjk(word) and any(word in name for name in names)


_QUESTION_WORDS = (
    english_words.QUESTION_WORDS | english_words.STOP_WORDS | chinese_words.QUESTION_WORDS
)
_LEANING = re.compile(  # pronouns that only an earlier turn resolves
    r"\b(?:he|she|it|they|him|her|them|his|its|their|theirs|this|that|these|those)\b"
    r"|[他她它]|其(?!他|它|中|实|余)|这|那|此人|前者|后者",
    re.IGNORECASE,
)


_EDGES = re.compile(
    "|".join(
        sorted(
            map(re.escape, chinese_words.QUESTION_WORDS | chinese_words.STOP_WORDS),
            key=lambda word: (-len(word), word),
        )
    )
)


_PIECE = re.compile(r"\d+(?:[.．]\d+)+|[^\W_]+(?:['’-][^\W_]+)*")  # decimals are not split


def _leftovers(question: str) -> Iterator[str]:
    """The words of a question without names, except function and question words."""
    for piece in _PIECE.findall(question):
        if has_cjk(piece) and written_in(piece, "zh") == "zh":
            yield from (part for part in _EDGES.split(piece) if len(part) > 1 or is_lone(part))
        elif piece.casefold() not in _QUESTION_WORDS and len(piece) > 1:
            yield piece.casefold()
