"""Names and content words of English texts, by capitals, titles and the words around them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import takewhile

import regex

from lightrag_jsonl.core.stop_words import STOP_WORDS
from lightrag_jsonl.providers.offline import words as tables
from lightrag_jsonl.providers.offline.phrases import (
    ContentWord,
    Phrase,
    PhrasesAndWords,
    Spans,
    title_phrases,
    without_overlap,
)

_MOST_CAPITALS = 4  # words: more of them in capitals are a sentence or a heading
_CAPITALIZED = (
    r"(?:(?:\p{Lu}\p{Ll}{0,3}\.)+(?=\s?\p{Lu}|,)|\p{Lu}[\p{L}\p{N}]*)"  # St. Mr. J.R.R. or a word
    r"(?:(?:[-–&+]|['’](?![sS]\b)|\.(?=[a-z]{2,3}\b))[\p{L}\p{N}]+)*\+{0,2}"
)
_WORD_GAP = r"(?:[^\S\n]{1,2}|[^\S\n]?\n[^\S\n]?)"  # of one paragraph
_CAPITALIZED_NAME = regex.compile(
    rf"(?<![\p{{L}}\p{{N}}'’]){_CAPITALIZED}"
    rf"(?:{_WORD_GAP}(?:(?:of(?:{_WORD_GAP}the)?|for|de|del|la|le|von|van|der|bin|&){_WORD_GAP})?(?:{_CAPITALIZED}|\d{{1,4}}\b(?![.,]\d)))*"
)
_YEAR_WITH_ERA = re.compile(r"\b(?:(?:AD|BC|BCE|CE)\s\d{1,4}|\d{1,4}\s(?:AD|BC|BCE|CE))\b")
_ENGLISH_WORD = regex.compile(r"(?<![\p{L}\p{N}'’-])\p{L}[\p{L}\p{N}'’-]*[\p{L}\p{N}]")
_VISIBLE_RUN = regex.compile(r"\S+")
_LETTER = regex.compile(r"[\p{L}\p{N}]")
_OBJECT = re.compile(
    r" [a-z]{3,}ed ([a-z]{4,}(?<!ly)(?<!ing))(?= (?:in|at|on|from|during|with)\b|[.,;])"
)
_IS_A = regex.compile(
    r"['\"”’]?\s*(?:\([^()]{0,160}\))?,?\s*(?:is|was|are|were)\s+(?:an?|the|one\s+of\s+the)\s+"
    r"([^.,;:()]{1,80})"
)


def english_phrases(text: str, spans: Spans) -> PhrasesAndWords:
    """The names and the content words of an English text; `spans` are the sentences."""
    names = english_names(text, spans)
    named_positions = {at for name in names for at in range(name.start, name.end)}
    words: list[ContentWord] = []
    for match in _ENGLISH_WORD.finditer(text):
        word = match[0].casefold()
        if len(word) > 2 and match.start() not in named_positions and word not in STOP_WORDS:
            words.append(ContentWord(match.start(), word))
    return PhrasesAndWords(names, words)


def english_names(text: str, spans: Spans) -> list[Phrase]:
    """The names of an English text; `spans` are the sentences."""
    without_years = _YEAR_WITH_ERA.sub(lambda year: "," * len(year[0]), text)
    names = without_overlap(
        [*title_phrases(text, spans), *_capitalized_names(without_years, spans)]
    )
    return without_overlap([*names, *_verb_objects(text, names)])


def _verb_objects(text: str, names: Iterable[Phrase]) -> Iterator[Phrase]:
    """The object of a name's verb, if it is one word: "Marie Curie discovered radium in …"."""
    for name in names:
        match = _OBJECT.match(text, name.end)
        if match and match[1] not in STOP_WORDS:
            yield Phrase(
                start=match.start(1), end=match.end(1), name=match[1], type="concept", sure=False
            )


def _capitalized_names(text: str, spans: Spans) -> Iterator[Phrase]:
    first_letters = [_LETTER.search(text, start, end) for start, end in spans]
    openings = {letter.start() for letter in first_letters if letter}
    capitals = _surplus_of_capitals(text, openings)
    for start, end in spans:
        for run in _CAPITALIZED_NAME.finditer(text, start, end):
            words = [word.span() for word in _VISIBLE_RUN.finditer(text, *run.span())]
            is_opening = run.start() in openings
            if name := _name_phrase(text, words, is_opening=is_opening, capitals=capitals):
                yield name


def _surplus_of_capitals(text: str, openings: set[int]) -> Counter[str]:
    """How often more each word has a capital than not, where no sentence begins."""
    words = _ENGLISH_WORD.finditer(text)
    counts = Counter[str](word[0] for word in words if word.start() not in openings)
    surplus: Counter[str] = Counter()
    for word, count in counts.items():
        surplus[word.casefold()] += count if word[0].isupper() else -count
    return surplus


def _name_phrase(
    text: str, words: Spans, *, is_opening: bool, capitals: Counter[str]
) -> Phrase | None:
    """The name in a run of capitalized words: without a date, titles and common words before it."""
    has_title = False
    while words:
        word, following = _first_two(text, words)
        if _folded_word(word) in tables.PERSON_TITLES:
            has_title = True
        elif not _is_of_date(word) and not _is_common_word(
            text, word, following, is_opening=is_opening, capitals=capitals
        ):
            break
        words = words[1:]
        is_opening = False
    name = " ".join(text[start:end] for start, end in words).rstrip(".")
    is_heading = len(words) > _MOST_CAPITALS and name.isupper()
    if is_heading or len(name) < 2:
        return None
    start = words[0][0]
    end = words[-1][1]
    evident_type = "person" if has_title else _evident_type(text, name, start, end)
    return Phrase(
        start=start,
        end=end,
        name=name,
        type=evident_type or _likely_type(name),
        sure=evident_type is not None,
    )


def _first_two(text: str, words: Spans) -> tuple[str, str]:
    """The first word, and the second or ""."""
    texts = [text[start:end] for start, end in words[:2]]
    return texts[0], texts[1] if len(texts) > 1 else ""


def _folded_word(word: str) -> str:
    return word.replace("’", "'").casefold()


def _is_common_word(
    text: str, word: str, following: str, *, is_opening: bool, capitals: Counter[str]
) -> bool:
    """Whether the first word of a run is no part of a name, in spite of its capital."""
    folded = _folded_word(word)
    if not word[0].isupper() or folded.partition("'")[0] in STOP_WORDS:
        return True
    if is_opening and capitals[folded] < (0 if following else 1):
        return True
    if word[1:] == "." and following.casefold() in STOP_WORDS:  # "It's I. Your uncle"
        return True
    twice = f"{word} {word}"  # unlike in Duran Duran, the word is also alone
    return word == following and capitals[folded] > 2 * text.count(twice)


def _is_of_date(word: str) -> bool:
    return word.isdigit() or word.casefold().removesuffix("s") in tables.CALENDAR  # "Tuesdays"


def _evident_type(text: str, name: str, start: int, end: int) -> str | None:
    """The type in the text: by "X is a …", by a word of the name, or by a word before the name."""
    description = _IS_A.match(text, end)
    words = description[1].split() if description else []
    noun_phrase = list(takewhile(lambda word: word not in STOP_WORDS, words))
    name_words = name.casefold().partition(" of ")[0].split()
    for word in (*reversed(noun_phrase), name_words[-1], name_words[0]):
        if word in tables.TYPES:
            return tables.TYPES[word]
    if text.endswith(("said ", "asked ", "cried "), 0, start):
        return "person"
    return "place" if text.endswith((" in ", " near "), 0, start) else None


def _likely_type(name: str) -> str:
    """Two or three words that are no common nouns mostly name a person."""
    words = name.split()
    is_plain = all(word[1:].islower() for word in words)
    return "person" if is_plain and len(words) in (2, 3) else "concept"
