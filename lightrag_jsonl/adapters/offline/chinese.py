"""The Chinese reader: finds names by jieba's tags, after correcting words it cut wrongly."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from lightrag_jsonl.adapters.offline import chinese_words as tables
from lightrag_jsonl.adapters.offline.phrases import TAG, Phrase, Sentence, Sort
from lightrag_jsonl.text import has_cjk, sentence_spans


def read_chinese(text: str, *, quick: bool = False) -> tuple[Sentence, ...]:
    """The sentences of a Chinese text with their phrases and content words.

    In a question (`quick`), nouns of one character are content words, too; a longer text has too
    many of them.
    """
    dictionary = _dictionary()
    words = list(_set_right(text, _words(text, dictionary), dictionary))
    fixed = [*_heading(text), *_fixed_phrases(text)]
    names = [*_foreign_names(text, words), *_names(words)]
    phrases = _without_overlap([*fixed, *names])
    phrases = _without_overlap([*phrases, *_common_nouns(words, len(text))])
    content = [word for word in words if _telling(word)]
    if quick:
        lone = [noun for word in words for noun in _lone_nouns(text, word, dictionary)]
        content = sorted([*content, *lone], key=lambda word: word.start)
    return tuple(_sentences(text, words, phrases, content))


def _sentences(
    text: str, words: Sequence[_Word], phrases: Sequence[Phrase], content: Sequence[_Word]
) -> Iterator[Sentence]:
    content_starts = [word.start for word in content]
    word_starts = [word.start for word in words]
    phrase_starts = [phrase.start for phrase in phrases]
    topic = ""
    for start, end in sentence_spans(text):
        own = words[bisect_left(word_starts, start) : bisect_left(word_starts, end)]
        inside = phrases[bisect_left(phrase_starts, start) : bisect_left(phrase_starts, end)]
        about = topic if own and own[0].text in tables.PRONOUNS else ""
        first = next((p.name for p in inside if p.proper and p.sort not in _PLAIN), topic)
        topic = about or first
        told = content[bisect_left(content_starts, start) : bisect_left(content_starts, end)]
        yield Sentence(
            start, end, tuple(inside), tuple((word.start, word.text) for word in told), about
        )


_PLAIN = ("date", "quantity")


def _telling(word: _Word) -> bool:
    """Whether a word (verb or noun) can tell what a relation is about."""
    if len(word.text) < 2 or not has_cjk(word.text):
        return False
    return (word.tag in ("n", "v", "vn", "l") and word.known) and not _generic(word.text)


def _lone_nouns(text: str, word: _Word, dictionary: _Dictionary) -> Iterator[_Word]:
    """The nouns of one character: the word itself, or those in a word of two that the segmenter
    guessed.

    A character next to another CJK character is left out, as a piece of a name that was cut, unless
    that one belongs to a function word.
    """
    if len(word.text) > (1 if word.known else 2):
        return
    for at, char in enumerate(word.text, start=word.start):
        around = text[max(at - 1, 0) : at] + text[at + 1 : at + 2]
        if has_cjk(char) and not _generic(char) and not has_cjk(around.translate(_FUNCTION)):
            tag = dictionary.tag_of(char)
            if tag.startswith(_NOUN_TAGS):
                yield _Word(at, char, tag, True)


_FUNCTION = dict.fromkeys(map(ord, "".join(tables.STOP_WORDS | tables.QUESTION_WORDS)))
_NOUN_TAGS = ("n", "j", "zg")  # names of dynasties are "j"; some nouns of one character are "zg"
_COUNTING = frozenset("一二三四五六七八九十两几各每某此其")


def _generic(text: str) -> bool:
    return text in tables.NOT_NAMES or text in tables.STOP_WORDS or text[0] in _COUNTING


# ── words ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the segmenter with its offset; `known` if it is in the dictionary."""

    start: int
    text: str
    tag: str
    known: bool

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class _Dictionary:
    """A jieba of our own: other code may add words to the module's shared one."""

    def __init__(self) -> None:
        from rjieba import Jieba

        jieba = Jieba()
        self.tag: Callable[[str], list[tuple[str, str]]] = jieba.tag
        self.has: Callable[[str], bool] = jieba.has_word

    def tag_of(self, word: str) -> str:
        """The tag of a word, or "" if the segmenter splits it."""
        tagged = self.tag(word)
        return tagged[0][1] if len(tagged) == 1 else ""


@cache
def _dictionary() -> _Dictionary:
    """The dictionary, loaded once (0.1 s) and never changed."""
    return _Dictionary()


def _words(text: str, dictionary: _Dictionary) -> Iterator[_Word]:
    at = 0
    for word, tag in dictionary.tag(text):
        at = text.index(word, at)
        yield _Word(at, word, tag, dictionary.has(word))
        at += len(word)


def _set_right(text: str, words: Iterable[_Word], dictionary: _Dictionary) -> Iterator[_Word]:
    """The words, with names split off that were joined to others ("孔明笑" → "孔明", "笑"), and names
    joined that were split ("夏侯", "惇" → "夏侯惇").
    """
    count = cache(text.count)
    pieces = [piece for word in words for piece in _split(word, count, dictionary)]
    at = 0
    while at < len(pieces):
        word = pieces[at]
        after = pieces[at + 1] if at + 1 < len(pieces) else None
        if after is not None and _is_compound_name(word, after):
            yield _Word(word.start, word.text + after.text, "nr", False)
            at += 2
        else:
            yield word
            at += 1


def _is_compound_name(word: _Word, after: _Word) -> bool:
    single = len(after.text) == 1 and has_cjk(after.text)
    return (
        word.text in tables.COMPOUND_SURNAMES
        and word.end == after.start
        and single
        and after.text not in tables.AFTER_NAME
        and after.tag[:1] not in "cpu"
    )


def _split(word: _Word, count: Callable[[str], int], dictionary: _Dictionary) -> Iterator[_Word]:
    """A name that is joined to what stands before or after it, split; any other word as it is.

    Jieba's dictionary was learned from novels and contains such joins ("孔明曰"), so it cannot
    decide. The text does: the shorter name must also occur in it without the rest.
    """
    if not word.tag.startswith("nr") or not 2 < len(word.text) <= 5 or not has_cjk(word.text):
        yield word
        return
    text = word.text
    if text[0] in tables.BEFORE_NAME and _is_core(text[1:], text, count, dictionary):
        yield _Word(word.start, text[0], "v", False)
        yield from _split(_Word(word.start + 1, text[1:], "nr", False), count, dictionary)
        return
    for length in range(len(text) - 1, 1, -1):
        core = text[:length]
        spoken = text[length] in tables.SPOKEN_AFTER_NAME and _is_name(core, dictionary)
        if spoken or _is_core(core, text, count, dictionary):
            yield from _split(_Word(word.start, core, "nr", False), count, dictionary)
            yield _Word(word.start + length, text[length:], "v", False)
            return
    yield word


def _is_core(core: str, text: str, count: Callable[[str], int], dictionary: _Dictionary) -> bool:
    """Whether `core` is a name, and occurs in the text without the rest of `text`, too."""
    return count(core) > count(text) and _is_name(core, dictionary)


def _is_name(text: str, dictionary: _Dictionary) -> bool:
    if len(text) < 2 or text in tables.COMPOUND_SURNAMES:
        return False
    return text[0] in tables.SURNAMES or dictionary.tag_of(text) in ("nr", "nrfg", "ns")


# ── names ───────────────────────────────────────────────────────────────────────

_NUMERAL = "0-9０-９零〇一二三四五六七八九十百千万亿两"
_FORMS: tuple[tuple[re.Pattern[str], Sort], ...] = (
    (re.compile(r"《([^《》\n]{1,40})》"), "work"),
    (
        re.compile(
            r"(?:公元前?)?[12１２]?[0-9０-９]{3}\s?年(?:\s?[0-9０-９]{1,2}\s?月(?:\s?[0-9０-９]{1,2}\s?日)?)?"
            rf"|(?:{'|'.join(sorted(tables.ERAS))})[元{_NUMERAL}]{{1,3}}年"
            r"|[0-9０-９]{1,2}\s?月\s?[0-9０-９]{1,2}\s?日|[0-9０-９一二十]{1,3}世纪(?:[0-9０-９]{2}年代)?"
        ),
        "date",
    ),
    (
        re.compile(
            rf"[{_NUMERAL}][{_NUMERAL}.,，]*(?:％|%|(?:多|余)?(?:公里|千米|平方公里|公顷|美元|英镑|日元|人民币|欧元|吨|公斤|千克))"
        ),
        "quantity",
    ),
    (
        re.compile(
            r"(?<![A-Za-z0-9])(?:[A-Z][A-Z0-9]{0,4}/[A-Z]{1,3}(?= ?[0-9])[0-9.-]*"  # GB/T 19001
            r"|[A-Z][A-Za-z0-9.+&'’-]*|[a-z]{1,4}[A-Z0-9-][A-Za-z0-9.-]*)"
            r"(?:(?: (?:of|the|de|del|and))* [A-Z0-9][A-Za-z0-9.+&'’-]*){0,5}"
        ),
        "concept",
    ),
)


def _fixed_phrases(text: str) -> list[Phrase]:
    """Titles in 《》, dates, amounts and names in Latin script, which are found by their form."""
    found: list[Phrase] = []
    for pattern, sort in _FORMS:
        for match in pattern.finditer(_without_tags(text)):
            group = 1 if match.lastindex else 0
            name = " ".join(match[group].split()).rstrip(".-'’")
            if len(name) > 1:
                start = match.start(group)
                found.append(Phrase(start, match.end(group), name, sort, sure=sort != "concept"))
    return found


_HEADING = re.compile(r"\s*([^\s。！？，；：、]{2,24})[^\S\n]*\n\s*\S")


def _heading(text: str) -> Iterator[Phrase]:
    """The title of a text, if its first line is one."""
    title = _HEADING.match(text)
    if title and has_cjk(title[1]) and not re.match("第.{1,8}[章回节卷部篇]|《.*》|=", title[1]):
        yield Phrase(*title.span(1), title[1], "concept", sure=False)


def _without_tags(text: str) -> str:
    """The text with markup replaced by spaces, so that offsets stay valid."""
    return TAG.sub(lambda tag: " " * len(tag[0]), text)


def _foreign_names(text: str, words: Sequence[_Word]) -> Iterator[Phrase]:
    """Names written in parts with dots between them, like "列夫·托尔斯泰"."""
    at = 1
    while at < len(words) - 1:
        last = at
        while last + 1 < len(words) and words[last].text in _DOTS and _spelled(words[last + 1]):
            last += 2
        if last > at and _spelled(words[at - 1]):
            start, end = words[at - 1].start, words[last - 1].end
            yield Phrase(start, end, text[start:end], "person")
        at = last + 1


_DOTS = frozenset("·•・‧")


def _spelled(word: _Word) -> bool:
    return word.text.isalnum()


def _names(words: Sequence[_Word]) -> Iterator[Phrase]:
    """People, places, organizations and other proper names."""
    people = _people(words)
    for at, word in enumerate(words):
        if not has_cjk(word.text) or len(word.text) < 2 or word.text in tables.NOT_NAMES:
            continue
        if head := _headed(words, at):
            yield head
        if word.text in people:
            yield Phrase(word.start, word.end, word.text, "person")
        elif sort := _other_name(word):
            yield Phrase(word.start, word.end, word.text, sort, sure=sort != "concept")


def _people(words: Sequence[_Word]) -> frozenset[str]:
    """The words that name people: by tag and surname, or by the verbs that follow them."""
    acting: Counter[str] = Counter()
    for word, after in pairwise(words):
        if word.end == after.start and after.text in tables.PEOPLE_AFTER:
            acting[word.text] += 1
    counts = Counter(word.text for word in words)
    return frozenset(
        word.text for word in words if _is_person(word, acting[word.text], counts[word.text])
    )


def _is_person(word: _Word, acting: int, count: int) -> bool:
    text, tag = word.text, word.tag
    if not 2 <= len(text) <= 4 or not has_cjk(text) or _generic(text):
        return False
    if text[-1] in tables.NOT_PEOPLE_LAST or text in tables.PLACES:
        return False
    compound = text[:2] in tables.COMPOUND_SURNAMES and 2 < len(text) <= 4
    if compound and (tag.startswith("n") or acting):
        return True
    surname = text[0] in tables.SURNAMES
    if tag in ("nr", "nrfg"):
        return (surname and len(text) <= 3) or acting > 0 or (count > 1 and len(text) == 2)
    if tag == "ns":
        return surname and acting > 0 and len(text) <= 3 and text[-1] not in tables.PLACE_LAST
    return acting > 1 and tag in ("n", "nz", "nrt", "j") and len(text) == 2


def _other_name(word: _Word) -> Sort | None:
    """The sort of a word that is a name, but not of a person; None if it is no name."""
    text, tag = word.text, word.tag
    if text in tables.PLACES:
        return "place"
    if not word.known:
        return None
    if tag == "ns":
        return None if len(text) == 2 and text[0] in tables.NOT_PLACE_FIRST else "place"
    if tag == "nt":
        return "organization"
    if tag == "nz" and len(text) > 2:
        if text[0] in _COUNTING and len(text) < 4:
            return None
        return next((sort for head, sort in tables.HEADS.items() if text.endswith(head)), "concept")
    return None


def _headed(words: Sequence[_Word], at: int) -> Phrase | None:
    """A compound name that ends with a word that shows its sort: "北京" "师范" "大学"."""
    sort = tables.HEADS.get(words[at].text)
    if sort is None or sort == "person":
        return None
    first = at
    while first > 0 and at - first < 4 and _joins(words[first - 1], words[first]):
        first -= 1
    if first == at or not any(word.tag[:2] in ("ns", "nr", "nz", "nt") for word in words[first:at]):
        return None
    start, end = words[first].start, words[at].end
    name = "".join(word.text for word in words[first : at + 1])
    return Phrase(start, end, name, sort)


def _joins(word: _Word, after: _Word) -> bool:
    noun = word.tag in ("n", "ns", "nr", "nz", "nt", "nrt", "vn", "j", "b", "s", "f")
    return word.end == after.start and noun and has_cjk(word.text) and len(word.text) > 1


def _without_overlap(phrases: Iterable[Phrase]) -> list[Phrase]:
    """The phrases in order; of two that overlap the longer, of equal ones the first."""
    kept: list[Phrase] = []
    for phrase in sorted(phrases, key=lambda phrase: phrase.start):
        if kept and phrase.start < kept[-1].end:
            if phrase.end - phrase.start > kept[-1].end - kept[-1].start:
                kept[-1] = phrase
            continue
        kept.append(phrase)
    return kept


# ── common nouns ────────────────────────────────────────────────────────────────

_CHARACTERS_A_NOUN = 80


def _common_nouns(words: Sequence[_Word], length: int) -> Iterator[Phrase]:
    """The nouns that a text repeats most: one for every 80 characters of it, but at least three."""
    counts = Counter(word.text for word in words if _is_noun(word))
    repeated = [text for text, count in counts.items() if count > 1]
    ranked = sorted(repeated, key=lambda text: (-counts[text] * len(text), text))
    best = set(ranked[: max(3, length // _CHARACTERS_A_NOUN)])
    for word in words:
        if word.text in best and _is_noun(word):
            sort = tables.HEADS.get(word.text, "concept")
            yield Phrase(word.start, word.end, word.text, sort, proper=False, sure=False)


def _is_noun(word: _Word) -> bool:
    plain = word.tag in ("n", "vn", "l", "nz") and word.known
    return plain and len(word.text) > 1 and has_cjk(word.text) and not _generic(word.text)
