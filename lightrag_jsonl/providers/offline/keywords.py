"""Finds the keywords of a question by language rules: its names, and its themes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from anyio import to_thread

from lightrag_jsonl.core.text import has_cjk, is_lone, name_key, sanitize
from lightrag_jsonl.core.types import Keywords, Language, Message
from lightrag_jsonl.providers.offline.phrases import written_in
from lightrag_jsonl.providers.offline.sentences import find_sentences
from lightrag_jsonl.providers.offline.words import FUNCTION_WORDS


class OfflineKeywords:
    """KeywordExtractor without a model: names and noun phrases are low-level keywords, other words
    high-level ones.

    A question with a pronoun such as "he", "it" or 他 also gets the names of the user's last turn.
    """

    def __init__(self, language: Language = "en") -> None:
        self._language: Language = language

    async def keywords(self, question: str, history: Sequence[Message] = ()) -> Keywords:
        """The low- and high-level keywords of a question, each in the order of the text."""
        return await to_thread.run_sync(find_keywords, question, history, self._language)


def find_keywords(question: str, history: Sequence[Message], language: Language) -> Keywords:
    """The low- and high-level keywords of a question, each in the order of the text."""
    question = sanitize(question)
    names, words = _names_and_words(question, language)
    if _REFERRING.search(question):
        before = next((turn.content for turn in reversed(history) if turn.role == "user"), "")
        names = _distinct([*names, *_names_and_words(sanitize(before), language)[0]])
    named = " ".join(names).casefold()
    themes = [word for word in words if word not in named]
    if not names:
        names, themes = themes or _distinct(_remaining_words(question)), []
    return Keywords(high_level=tuple(themes), low_level=tuple(names))


def _names_and_words(text: str, language: Language) -> tuple[list[str], list[str]]:
    sentences = find_sentences(text, language, question=True)
    names = (phrase.name for sentence in sentences for phrase in sentence.phrases)
    words = (word for sentence in sentences for _, word in sentence.words)
    return _distinct(names), _distinct(words)


def _distinct(words: Iterable[str]) -> list[str]:
    """The words but for function words, each once: the first of those that share a key."""
    first = {name_key(word): word for word in reversed(list(words))}
    return [word for word in reversed(first.values()) if word.casefold() not in FUNCTION_WORDS]


def _remaining_words(question: str) -> Iterator[str]:
    """The words of a question without names."""
    for piece in _PIECE.findall(question):
        if has_cjk(piece) and written_in(piece, "zh") == "zh":
            yield from (part for part in _BETWEEN.split(piece) if len(part) > 1 or is_lone(part))
        elif len(piece) > 1:
            yield piece.casefold()


_BETWEEN = re.compile("|".join(sorted(filter(has_cjk, FUNCTION_WORDS), key=len, reverse=True)))
_PIECE = re.compile(r"\d+(?:[.．]\d+)+|[^\W_]+(?:['’-][^\W_]+)*")  # decimals are not split
_REFERRING = re.compile(  # pronouns that only an earlier turn explains
    r"\b(?:he|she|it|they|him|her|them|his|its|their|theirs|this|that|these|those)\b"
    r"|[他她它]|其(?!他|它|中|实|余)|这|那|此人|前者|后者",
    re.IGNORECASE,
)
