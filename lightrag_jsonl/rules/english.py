"""Names, found by capitals, and content words of English texts."""

import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import pairwise

from msgspec import Struct

from lightrag_jsonl.core.types import UNKNOWN_TYPE
from lightrag_jsonl.rules.phrases import (
    WORD_GAP,
    ContentWord,
    Phrase,
    PhrasesAndWords,
    Spans,
    title_phrases,
    without_name_lines,
)
from lightrag_jsonl.rules.words import begins_no_name, is_given_name, is_ordinary
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.sentences import OPENING_MARKS, PERHAPS_LAST, beginning_of_words
from lightrag_jsonl.text.strings import words as word_set
from lightrag_jsonl.text.terms import STOP_WORDS

PERSON_TITLES = word_set("mr mrs ms miss dr prof cllr sgt capt lt")
OFFICES = word_set(  # titles before a surname that is no ordinary word: Major Tom, not Major League
    """sir lord rev reverend doctor professor president chancellor minister secretary senator sen congressman
    representative rep governor gov mayor councillor councilman councilwoman cllr chairman supervisor commissioner
    judge justice ambassador captain capt general gen colonel col major lieutenant lt sergeant sgt admiral marshal
    commander corporal officer inspector detective constable coach"""
)
_DATE_WORDS = word_set(
    "january february march april may june july august september october november december"
    " monday tuesday wednesday thursday friday saturday sunday today yesterday tomorrow tonight"
)
_KINDS: Mapping[str, str] = {  # last words of names that say what is named
    "organization": """university college school institute company inc ltd corporation orchestra
    association committee council ministry bank museum library hospital laboratory academy""",
    "place": "city river lake island islands ocean street square bridge airport county valley",
    "event": "war revolution championship championships cup olympics tournament festival",
}
TYPES_BY_WORD = {word: type for type, listed in _KINDS.items() for word in listed.split()}

_SMALL_IN_TITLES = word_set(
    "a an the and or of in on at by for to from with as vs via de la von van"
)
_MOST_CAPITALS = 4  # words: more of them in capitals are a sentence or a heading
_WORD_LETTER = r"[\p{L}\p{M}\p{N}]"
_CAPITALIZED = (  # St. Mr. J.R.R. or a word; letters may be decomposed
    r"(?:(?:\p{Lu}\p{M}*(?:\p{Ll}\p{M}*){0,3}\.)+(?=\s?\p{Lu}|,)"
    rf"|\p{{Lu}}{_WORD_LETTER}*)"
    rf"(?:(?:[-‐‑–&+_]|['’](?![sS]\b)|\.(?=[a-z]{{2,3}}\b)){_WORD_LETTER}+)*\+{{0,2}}"
)
_INNER_WORD = rf"(?:of(?:{WORD_GAP}the)?|for|de|del|des|di|da|du|la|le|von|van|der|bin|&)"
_ORDINAL = rf"(?<!\b(?i:{'|'.join(sorted(_DATE_WORDS))})\s)\d{{1,3}}(?:st|nd|rd|th)"  # "5th Avenue"
_CAPITALIZED_NAME = pattern_of(
    rf"(?<![\p{{L}}\p{{M}}\p{{N}}'’]|{_WORD_LETTER}_)(?:{_ORDINAL}{WORD_GAP})?{_CAPITALIZED}"
    rf"(?:{WORD_GAP}(?:{_INNER_WORD}{WORD_GAP})?(?:(?:[dl]['’])?{_CAPITALIZED}|\d{{1,4}}\b(?![.,/]\d)))*",
    module="regex",
)
_ENGLISH_WORD = pattern_of(
    rf"(?<![\p{{L}}\p{{M}}\p{{N}}'’-])\p{{L}}(?:[\p{{L}}\p{{M}}\p{{N}}'’-]*{_WORD_LETTER})?",
    module="regex",
)
_VISIBLE_RUN = pattern_of(r"\S+")
_LETTER = pattern_of(r"[\p{L}\p{N}]", module="regex")
_OPENING_MARK = pattern_of(
    r"(?=[\n:|•%>*\[(\"“‘„«])"  # first characters, for speed
    r"(?:[:|•%>*\[(\"“‘„«](?:\s*|[^\w\n]{1,3})(?=\p{Lu})"
    rf"|\n{OPENING_MARKS.pattern}(?=\p{{Lu}}))",
    module="regex",
)
_ABBREVIATION = pattern_of(r"\b(?P<short>[A-Za-z]{2,5})\.\s+(?=(?P<next>[A-Z]\w*))")
_STRETCH_END = "\n"  # in a list of words: between words that are no neighbours


def english_phrases(text: str, spans: Spans) -> PhrasesAndWords:
    """The names and the content words of an English text; `spans` are the sentences."""
    names = list(english_names(text, spans))
    named_positions = {at for name in names for at in range(name.start, name.end)}
    words: list[ContentWord] = []
    for match in _ENGLISH_WORD.finditer(text):
        word = match[0].casefold()
        if len(word) > 2 and match.start() not in named_positions and word not in STOP_WORDS:
            words.append(ContentWord(match.start(), word))
    return PhrasesAndWords(names, words)


def english_names(
    text: str, spans: Spans, *, has_title: bool = True, recorded: str = ""
) -> Iterator[Phrase]:
    """The names of an English text in order; `spans` are the sentences, the first may be the title.

    A capital shows a name, except where any word has a capital: at the beginning of a sentence,
    after a mark that begins something, such as a colon, and in a heading. A word in such a place is
    a name if it is no ordinary word, or if the text has it with a capital elsewhere more often than
    without. Names within the title, and runs of capitals in the `recorded` name keys, are left out.
    """
    spans = list(_possible_sentences(text, without_name_lines(text, spans, _CAPITALIZED_NAME)))
    title_end = 0
    for title in title_phrases(text, spans) if has_title else ():
        yield title
        title_end = title.end
    for name in _capitalized_names(text, spans, recorded):
        if name.start >= title_end:
            yield name


def _possible_sentences(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Sentences, also those that may begin behind an abbreviation: no name is "Acme Ltd. Board"."""
    for start, end in spans:
        starts = [start]
        for abbreviation in _ABBREVIATION.finditer(text, start, end):
            goes_on = abbreviation["next"].casefold() in PERHAPS_LAST  # Co. Ltd.
            if abbreviation["short"].casefold() in PERHAPS_LAST and not goes_on:
                starts.append(abbreviation.end())
        yield from pairwise([*starts, end])


class _Capitals(Struct, frozen=True, dict=True):
    """Where capitals tell nothing in a text, and the counts of capitals elsewhere.

    `openings` are the positions of first words, `stretches` the words at the other places, which are counted at the
    first question: many a text needs no counts.
    """

    openings: Set[int]
    stretches: Iterator[list[str]]

    @cached_property
    def words(self) -> list[str]:
        """The words at the other places, with ends of stretches between words that are no neighbours."""
        return [word for stretch in self.stretches for word in (*stretch, _STRETCH_END)]

    @cached_property
    def counts(self) -> Counter[str]:
        """The words in lower case."""
        return Counter(map(str.casefold, self.words))

    @cached_property
    def capitalized(self) -> Counter[str]:
        """The words with a capital, in lower case."""
        return Counter([word.casefold() for word in self.words if word[0].isupper()])

    @cached_property
    def pairs(self) -> Set[tuple[str, str]]:
        """Adjacent words with capitals, in lower case."""
        return {
            (word.casefold(), next_word.casefold())
            for word, next_word in pairwise(self.words)
            if word[0].isupper() and next_word[0].isupper()
        }

    def surplus(self, word: str) -> int:
        """The other places where a word has a capital minus the places without."""
        return 2 * self.capitalized[word] - self.counts[word]

    def show_a_name(self, word: str) -> bool:
        """Whether a word, in lower case, is a name where the word opens a sentence."""
        surplus = self.surplus(word)
        return surplus > 0 if surplus else not all(map(is_ordinary, word.split("-")))


def _capitalized_names(text: str, spans: Spans, recorded: str) -> Iterator[Phrase]:
    labels = [_label(text, start, end) for start, end in spans]
    capitals = _capitals(text, spans, labels)
    for (start, end), label_end in zip(spans, labels, strict=True):
        for run in _CAPITALIZED_NAME.finditer(text, start, end):
            if recorded and name_key(run[0]) in recorded:
                continue
            words = [word.span() for word in _VISIBLE_RUN.finditer(text, *run.span())]
            is_label = run.start() < label_end
            for part, has_title in _names_of_run(text, words):
                name = _name_phrase(text, part, capitals, is_label=is_label, has_title=has_title)
                if name is not None:
                    yield name


def _names_of_run(text: str, words: Spans) -> Iterator[tuple[Spans, bool]]:
    """The words of each name in a run, and whether a title stands before. Between two names are "for" after a rare
    word, "of" after a person, but not after the number of a king, and "&" between two people.
    """
    texts = [text[start:end] for start, end in words]
    if len(texts) == 1:  # most often
        if not _is_personal_title(texts[0], ""):
            yield words, False
        return
    first = 0
    has_title = False
    for number, (word, after) in enumerate(zip(texts, [*texts[1:], ""], strict=True)):
        before = texts[number - 1]
        is_title = _is_personal_title(word, after)
        is_person = number > first + 1 and is_given_name(texts[first].casefold())
        is_between = (
            (word == "for" and _is_rare(before))
            or (
                word == "of" and (has_title or (is_person and _is_rare(before) and len(before) > 1))
            )
            or (word == "&" and is_person and is_given_name(after.casefold()))
        )
        if is_title or is_between:
            if first < number and (is_between or has_title or _is_rare(before)):
                yield words[first:number], has_title
            first = number + 1
            has_title = is_title
    if first < len(words):
        yield words[first:], has_title


def _is_personal_title(word: str, next_word: str) -> bool:
    folded = word.casefold().rstrip(".")
    is_office = folded in OFFICES and (is_given_name(next_word.casefold()) or _is_rare(next_word))
    return is_office or folded in PERSON_TITLES


def _is_rare(word: str) -> bool:
    """Whether a word with a capital is no ordinary word."""
    folded = _folded_name(word)
    return word[:1].isupper() and folded not in STOP_WORDS and not is_ordinary(folded)


def _label(text: str, start: int, end: int) -> int:
    """The end of a label or a heading: the whole sentence, or the part before a colon, with
    capitals on all words except short ones. The start of the sentence without a label.
    """
    if _all_have_capitals(text, start, end):
        return end
    colon = text.find(":", start, end)
    return colon if colon > 0 and _all_have_capitals(text, start, colon) else start


def _all_have_capitals(text: str, start: int, end: int) -> bool:
    words = (word[0] for word in _ENGLISH_WORD.finditer(text, start, end))
    return all(not word[0].islower() or word in _SMALL_IN_TITLES for word in words)


def _capitals(text: str, spans: Spans, labels: list[int]) -> _Capitals:
    first_letters = [
        _LETTER.search(text, beginning_of_words(text, start, end), end) for start, end in spans
    ]
    lines = f"\n{text}"  # the first line begins with a line break, too
    mark_ends = [mark.end() - 1 for mark in _OPENING_MARK.finditer(lines)]
    openings = {*mark_ends, *[letter.start() for letter in first_letters if letter]}
    plain = text.replace("’", "'")
    stretches = (
        stretch
        for (_, end), label_end in zip(spans, labels, strict=True)
        for stretch in _words_between_openings(plain, label_end, end, openings, mark_ends)
    )
    return _Capitals(openings, stretches)


def _words_between_openings(
    text: str, start: int, end: int, openings: Set[int], mark_ends: Sequence[int]
) -> Iterator[list[str]]:
    """The words of a sentence in stretches, without the words at openings: the first, and those behind marks."""
    inner = mark_ends[bisect_right(mark_ends, start) : bisect_left(mark_ends, end)]
    for stretch_start, stretch_end in pairwise([start, *inner, end]):
        first = _ENGLISH_WORD.search(text, stretch_start, stretch_end)
        if first is not None:
            is_opening = first.start() in openings
            words_start = first.end() if is_opening else stretch_start
            yield _ENGLISH_WORD.findall(text, words_start, stretch_end)


def _name_phrase(
    text: str, words: Spans, capitals: _Capitals, *, is_label: bool, has_title: bool
) -> Phrase | None:
    """The name in a run of capitalized words: without a date and common words before."""
    is_opening = words[0][0] in capitals.openings
    first = 0
    for first, (start, end) in enumerate(words):
        word = text[start:end]
        next_word = text[slice(*words[first + 1])] if first + 1 < len(words) else ""
        if has_title or not (
            _is_of_date(word) or _is_common_word(word, next_word, capitals, is_opening=is_opening)
        ):
            break
        is_opening = is_label
    else:
        return None
    name = " ".join(text[start:end] for start, end in words[first:]).rstrip(".")
    folded_words = _folded_name(name).split()
    is_heading = len(folded_words) > _MOST_CAPITALS and name.isupper()
    if is_heading or len(name) < 2:
        return None
    if is_label and not has_title and not any(map(capitals.show_a_name, folded_words)):
        return None
    type = "person" if has_title else TYPES_BY_WORD.get(folded_words[-1], UNKNOWN_TYPE)
    return Phrase(
        start=words[first][0],
        end=words[-1][1],
        name=unicodedata.normalize("NFC", name),
        type=type,
        sure=type != UNKNOWN_TYPE,
    )


def _folded_name(word: str) -> str:
    return word.replace("’", "'").casefold()


def _is_common_word(word: str, next_word: str, capitals: _Capitals, *, is_opening: bool) -> bool:
    """Whether the first word of a run, though capitalized, is no part of a name."""
    folded = _folded_name(word)
    if word[0].isdigit():
        return _is_of_date(next_word)
    if not word[0].isupper() or folded.partition("'")[0] in STOP_WORDS:
        return True
    if not is_opening or (folded, _folded_name(next_word)) in capitals.pairs:
        return not next_word and is_ordinary(folded) and capitals.surplus(folded) < 0
    if not next_word:
        return not capitals.show_a_name(folded)
    return begins_no_name(folded) or capitals.surplus(folded) < 0


def _is_of_date(word: str) -> bool:
    return word.isdigit() or word.casefold().removesuffix("s") in _DATE_WORDS  # "Tuesdays"
