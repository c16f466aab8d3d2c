"""Keywords of a question by language rules, with names from earlier turns of the conversation."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from lightrag_jsonl.core.aio import in_daemon_thread
from lightrag_jsonl.core.answers import Keywords
from lightrag_jsonl.core.languages import Language, written_in
from lightrag_jsonl.core.types import Message
from lightrag_jsonl.rules.phrases import ContentWord
from lightrag_jsonl.rules.sentences import find_sentences
from lightrag_jsonl.text.cjk import has_cjk, is_lone, simplified
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.question_kinds import YEAR
from lightrag_jsonl.text.segmentation import without_fillers
from lightrag_jsonl.text.strings import sanitize
from lightrag_jsonl.text.terms import FUNCTION_WORDS

_TURNS = 8  # of a conversation that a question may lean on
_TURN_CHARACTERS = 1000  # of a turn that are read
_TURN_NAMES = 4  # taken from one turn
_VERB_FORM = pattern_of(r"ing\b")  # "the country containing Nugegoda"
_CHINESE_FUNCTION_WORD = pattern_of(
    "|".join(sorted([word for word in FUNCTION_WORDS if not word.isascii()], key=len, reverse=True))
)
_WORD_OR_DECIMAL = pattern_of(r"\d+(?:[.．]\d+)+|[^\W_]+(?:['’-][^\W_]+)*")
_ASCII_NAME = pattern_of(r"(?<![a-z0-9])[a-z][a-z0-9_.-]*[a-z0-9](?![a-z0-9])", re.ASCII)
_FOLLOWING = pattern_of(  # the beginning or end of a question that goes on with another subject
    r"^\W*(?:(?:and|or|but)\b|(?:what|how) about\b|那)|呢\W*$", re.IGNORECASE
)
PERSONAL_PRONOUN = pattern_of(  # explained by an earlier turn or sentence
    r"\b(?:he|she|it|they|him|her|hers|them|his|its|their|theirs)\b"
    r"|[他她它](?!乡|日|山)|其(?!他|它|中|实|余)|此人|前者|后者|後者",
    re.IGNORECASE,
)


class OfflineKeywords:
    """KeywordExtractor without a model: names and noun phrases are low-level keywords, further words
    high-level ones.

    A question with a pronoun ("he", 他), or without any name, also gets the names of the user's last
    turn with names; "And Marley?" or 那刘备呢 gets the turn's other words. The search looks for the
    keywords and the question, and a Chinese question loses pronouns and adverbs.
    """

    def __init__(self, language: Language = "en") -> None:
        self._language: Language = language

    async def keywords(self, question: str, history: Sequence[Message] = ()) -> Keywords:
        """The low- and high-level keywords, each in the order of the text."""
        call = partial(offline_keywords, question, history, self._language)
        return await in_daemon_thread(call)


class _NamesAndWords(NamedTuple):
    """The names and noun phrases of a text, and the remaining words."""

    names: list[str]
    words: list[str]


def offline_keywords(question: str, history: Sequence[Message], language: Language) -> Keywords:
    """The low- and high-level keywords of a question, each in the order of the text."""
    question = sanitize(question)
    subject = question.replace("多少钱", "多少")  # it asks how much, and not about money
    own = _names_and_words(subject, language)
    earlier = _from_history(question, own, history, language)
    names = _distinct_words([*own.names, *earlier.names])
    words = _distinct_words([*own.words, *earlier.words])
    all_names = " ".join(names).casefold()
    themes = [word for word in words if word not in all_names]
    if not names:
        subjects = themes or _distinct_words(_remaining_words(subject))
        names = _distinct_words([*YEAR.findall(question), *subjects])
        themes = []
    searched_question = ""
    if additions := [*earlier.names, *earlier.words]:
        if written_in(question, language) == "zh":
            question = without_fillers(question)
        searched_question = " ".join([*additions, question])
    return Keywords(high_level=tuple(themes), low_level=tuple(names), question=searched_question)


def names_in_question(question: str, language: Language) -> list[str]:
    """The different names in a question, in order; in Chinese without one, the words in Latin letters
    ("谁创建了 confd？").
    """
    question = sanitize(question)
    sentences = find_sentences(question, language)
    names = [phrase.name for sentence in sentences for phrase in sentence.phrases]
    if not names and written_in(question, language) == "zh":
        names = _ASCII_NAME.findall(question)
    return _distinct_words(names)


def _from_history(
    question: str, own: _NamesAndWords, history: Sequence[Message], language: Language
) -> _NamesAndWords:
    """The names or words of earlier turns as context for the question."""
    nothing = _NamesAndWords([], [])
    has_pronoun = PERSONAL_PRONOUN.search(question) is not None
    goes_on = _FOLLOWING.search(question) is not None and not own.words
    is_independent = bool(own.names or own.words)
    if is_independent and not has_pronoun and not goes_on:
        return nothing
    user_turns = [_names_and_words(turn, language) for turn in _turns(history, "user")]
    if own.names and not has_pronoun:
        words = next((turn.words for turn in user_turns if turn.words), [])
        return _NamesAndWords([], words)
    subjects = [turn.names for turn in user_turns]
    for text, turn in zip(_turns(history, "user"), user_turns, strict=True):
        if not PERSONAL_PRONOUN.search(text):
            subjects.append(turn.words)
    for text in _turns(history, "assistant")[:1]:
        subjects.append(_names_and_words(text, language).names)
    names = next(filter(None, subjects), [])
    return _NamesAndWords(names[:_TURN_NAMES], [])


def _turns(history: Sequence[Message], role: str) -> list[str]:
    """The beginnings of the last turns of a role, the latest first."""
    turns = [turn for turn in history[-_TURNS:] if turn.role == role]
    return [sanitize(turn.content[:_TURN_CHARACTERS]) for turn in reversed(turns)]


def _names_and_words(text: str, language: Language) -> _NamesAndWords:
    names: list[str] = []
    noun_phrases: list[str] = []
    single_words: list[str] = []
    for sentence in find_sentences(text, language):
        names += [phrase.name for phrase in sentence.phrases]
        for run in _word_runs(text, sentence.words):
            (noun_phrases if len(run) > 1 else single_words).append(" ".join(run))
    return _NamesAndWords(_distinct_words([*names, *noun_phrases]), _distinct_words(single_words))


def _word_runs(text: str, words: Iterable[ContentWord]) -> list[list[str]]:
    """Words with nothing but a space between them, except for verb forms in -ing: mostly noun phrases."""
    runs: list[list[str]] = []
    end = 0
    for word in words:
        is_adjacent = runs and text[end : word.start] == " "
        if is_adjacent and not _VERB_FORM.search(f"{runs[-1][-1]} {word.text}"):
            runs[-1].append(word.text)
        else:
            runs.append([word.text])
        end = word.start + len(word.text)
    return runs


def _distinct_words(words: Iterable[str]) -> list[str]:
    """The words but for function words, each once, in the first spelling and at the last place."""
    words_by_key: dict[str, str] = {}
    for word in words:
        key = name_key(word)
        words_by_key[key] = words_by_key.pop(key, word)
    return [word for key, word in words_by_key.items() if key not in FUNCTION_WORDS]


def _remaining_words(question: str) -> Iterator[str]:
    """The words of a question without a name or a content word, but for function words."""
    for word in _WORD_OR_DECIMAL.findall(question):
        if has_cjk(word) and written_in(word, "zh") == "zh":
            parts = _CHINESE_FUNCTION_WORD.split(simplified(word))
            yield from (part for part in parts if len(part) > 1 or is_lone(part))
        elif len(word) > 1:
            yield word.casefold()
