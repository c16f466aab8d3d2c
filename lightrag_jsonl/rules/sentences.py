"""The sentences of a text, with the names and the content words by the rules of the language."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from msgspec import Struct

from lightrag_jsonl.core.languages import Language, written_in
from lightrag_jsonl.core.options import Tagger
from lightrag_jsonl.rules.chinese import chinese_names, chinese_phrases
from lightrag_jsonl.rules.english import english_names, english_phrases
from lightrag_jsonl.rules.phrases import ContentWord, Phrase, Spans
from lightrag_jsonl.rules.pronouns import NamedSentence, with_subjects
from lightrag_jsonl.text.markup import blanked, without_addresses, without_markup
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.sentences import sentence_spans

# Also where a chunk ends within the block
_CODE_BLOCK = pattern_of(
    r"^(?P<fence>`{3,})[^`\n]*\n.*?(?:^(?P=fence)`*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)
FoundNames: TypeAlias = Sequence[Phrase]
Part = TypeVar("Part", Phrase, ContentWord)


class Sentence(Struct, frozen=True):
    """A sentence: the span, the names in order, and the content words."""

    start: int
    end: int
    phrases: Sequence[Phrase]
    words: Sequence[ContentWord]


def find_sentences(question: str, language: Language) -> list[Sentence]:
    """The sentences of a question, with their names and words."""
    plain, spans = _plain_and_spans(question)
    if written_in(plain, language) == "zh":
        content = chinese_phrases(plain, spans)
    else:
        content = english_phrases(plain, spans)
    phrases = _by_sentence(spans, content.phrases)
    words = _by_sentence(spans, content.words)
    return [
        Sentence(start, end, phrases[number], words[number])
        for number, (start, end) in enumerate(spans)
    ]


def named_sentences(
    text: str,
    language: Language,
    tagger: Tagger = "rules",
    *,
    has_title: bool = True,
    columns: Sequence[str] = (),
    revise: Callable[[str, FoundNames], FoundNames] | None = None,
) -> list[NamedSentence]:
    """The sentences of a text, with their names; `revise` changes the names found in the plain text.

    The first line of a text may be the title, unless the text is from the middle of a document, perhaps of a
    table with `columns`.
    """
    plain, spans = _plain_and_spans(text)
    names: FoundNames = [*_names_in(plain, spans, language, tagger, has_title=has_title)]
    if revise is not None:
        names = revise(plain, names)
    by_sentence = _by_sentence(spans, names)
    names_by_sentence = [by_sentence[number] for number in range(len(spans))]
    return with_subjects(plain, spans, names_by_sentence, has_title=has_title, columns=columns)


def find_names(text: str, language: Language, *, recorded: str = "") -> Iterator[Phrase]:
    """The names in a text, in order; English ones in the `recorded` name keys may be left out."""
    plain, spans = _plain_and_spans(text)
    yield from _names_in(plain, spans, language, "rules", has_title=True, recorded=recorded)


def _names_in(
    plain: str,
    spans: Spans,
    language: Language,
    tagger: Tagger,
    *,
    has_title: bool,
    recorded: str = "",
) -> Iterable[Phrase]:
    if written_in(plain, language) == "zh":
        return chinese_names(plain, spans, tagger, has_title=has_title)
    return english_names(plain, spans, has_title=has_title, recorded=recorded)


def _plain_and_spans(text: str) -> tuple[str, Spans]:
    """A text without markup, addresses and blocks of code, of the same length, and its sentences."""
    plain = without_markup(_without_code_blocks(text) if "```" in text else text)
    return without_addresses(plain), sentence_spans(plain)


def _without_code_blocks(text: str) -> str:
    return _CODE_BLOCK.sub(lambda block: blanked(block[0]), text)


def _by_sentence(spans: Spans, parts: Iterable[Part]) -> dict[int, list[Part]]:
    """The names or words of each sentence, by the number of the sentence."""
    starts = [start for start, _ in spans]
    parts_by_sentence = defaultdict[int, list[Part]](list)
    for part in parts:
        parts_by_sentence[bisect_right(starts, part.start) - 1].append(part)
    return parts_by_sentence
