"""Finds sentences, the phrases that name things, and content words, by rules of each language."""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import regex

from lightrag_jsonl.core.cjk import has_cjk, is_cjk, simplified
from lightrag_jsonl.core.sentences import sentence_spans
from lightrag_jsonl.core.stop_words import STOP_WORDS
from lightrag_jsonl.core.text import clipped
from lightrag_jsonl.core.types import Language
from lightrag_jsonl.providers.offline import words as tables

if TYPE_CHECKING:
    from rjieba import Jieba

_Spans: TypeAlias = Sequence[tuple[int, int]]

HEADING = re.compile(  # of Markdown and reStructuredText, at the beginning of a sentence
    r"#{1,6}\s|[^\n]{1,100}\n([=~^-])\1{2,}[ \t]*$", re.MULTILINE
)
_MARKUP = re.compile(
    r"^[ \t]*```[^\n]*\n(?:(?![ \t]*```)[^\n]*\n)*[ \t]*```[ \t]*$"  # code
    r"|^[ \t]*```[ \t]*\w[^\n]*\n(?:(?![ \t]*```)[^\n]*\n?)*\Z|^[ \t]*```.*$"  # cut off
    r"|^[ \t]*(?:>>>|\.\.\.|\$)[ \t].*$"
    r"|^[ \t]*\.\. \S.*$(?:\n[ \t]+:.*$)*"  # directives, with their options
    r"|^(?:\|[\w-]+\| ?)+$|^([=~^-])\1{2,}[ \t]*$"
    r"|</?[A-Za-z][^<>]{0,400}>|<!--.{0,2000}?-->"
    r"|\[!\[[^\[\]]*\]\([^()\n]*\)\]\([^()\n]*\)|!\[[^\[\]]*\](?:\([^()\n]*\))?"
    r"|^[ \t]*\[[^\[\]\n]+\]:.*$",
    re.MULTILINE,
)
_ADDRESS = re.compile(
    r"(?<=\])(?:\([^()\s]+[^()\n]*\)|\[[^\[\]\n]*\])"  # of a link
    r"|\b(?:https?|ftp)://[^\s<>\"'`）)\]，。；]+|[\w.+-]{1,60}@[\w-]{1,60}\.[\w.-]{1,60}"
    r"|\b(?:[\w-]{1,60}\.){1,4}(?:com|org|net|io|dev|edu|gov|cn)\b(?:/[^\s<>\"'`）)\]]*)?"
)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A part of the text that names something; `sure` means that the text shows its English type."""

    start: int
    end: int
    name: str
    type: str
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: its span, its phrases in order, and its content words with their positions.

    `topic` is the first name of its paragraph, or of an earlier one: what most sentences are about.
    """

    start: int
    end: int
    phrases: Sequence[Phrase]
    words: Sequence[tuple[int, str]]
    topic: str


def find_sentences(text: str, language: Language, *, question: bool = False) -> list[Sentence]:
    """The sentences of a text; in a Chinese `question`, nouns of one character count as words."""
    plain = without_markup(text)
    spans = sentence_spans(plain)
    plain = _ADDRESS.sub(_spaces, plain)
    if written_in(plain, language) == "zh":
        return _sentences(text, spans, *_chinese(plain, spans, question=question))
    return _sentences(text, spans, *_english(plain, spans))


def written_in(text: str, default: Language) -> Language:
    """Chinese if at least a fifth of the letters are CJK, else English; the default without letters."""
    letters = [char for char in text if char.isalpha()]
    if not letters:
        return default
    return "zh" if sum(map(is_cjk, letters)) * 5 >= len(letters) else "en"


def without_markup(text: str) -> str:
    """The text with code, tags, images and the like replaced by spaces; offsets stay right."""
    return _MARKUP.sub(_spaces, text)


def _spaces(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def is_defined(text: str, start: int, end: int) -> bool:
    """Whether the name at this place of a sentence is followed or preceded by what it is."""
    return (
        _DEFINED_AFTER.match(text, end) is not None
        or _DEFINED_BEFORE.search(text, max(start - 20, 0), start) is not None
        or text[start] == "姓"
    )


def defines(sentence: str, name: str) -> bool:
    """Whether a sentence defines a name."""
    places = re.finditer(
        rf"(?<!\w){re.escape(name)}" if not has_cjk(name) else name, sentence, re.I
    )
    given = (f"姓{re.escape(name[:n])}，?名{re.escape(name[n:])}" for n in (1, 2) if n < len(name))
    return not sentence.endswith(("?", "？")) and (
        any(is_defined(sentence, *place.span()) for place in places)
        or any(re.search(one, sentence) for one in given)
    )


def quote(text: str, longest: int) -> str:
    """A sentence on one line, without markup, cut to so many characters."""
    return clipped(without_markup(text), longest)


_DEFINED_AFTER = re.compile(
    r"[*_`\"'”’)]*(?:\s*\([^()]{0,160}\))?,?\s+(?:is|was|are|were)\s+(?:an?|the|one\s+of)\b"
    r"|[*_`\"'”’)]*,\s+(?:an?|the|[A-Z]\w+['’]s|(?:[a-z]+\s){1,2}(?:of|to))\s"
    r"|，?(?:字|乃|者，|(?:本|原)?是(?![谁也否何]|什么))|(?:，[^，。！？]{0,10})?人也"
)
_DEFINED_BEFORE = re.compile(r"(?:名曰|号曰|名为|号为|唤作|名唤|乃[^，。！？]{2,12})$")
_NEW_PARAGRAPH = re.compile(r"\n\s*\n|\n\u3000")


def _sentences(
    text: str, spans: _Spans, phrases: Iterable[Phrase], words: Iterable[tuple[int, str]]
) -> list[Sentence]:
    starts = [start for start, _ in spans]
    named = defaultdict[int, list[Phrase]](list)
    content = defaultdict[int, list[tuple[int, str]]](list)
    for phrase in phrases:
        named[bisect_right(starts, phrase.start)].append(phrase)
    for word in words:
        content[bisect_right(starts, word[0])].append(word)
    found, topic, before = list[Sentence](), "", 0
    for number, (start, end) in enumerate(spans, start=1):
        own = named[number]
        if own and _NEW_PARAGRAPH.search(text, before, start):
            topic = ""
        found.append(Sentence(start, end, own, content[number], topic))
        topic, before = topic or (own[0].name if own else ""), end
    return found


def _without_overlap(phrases: Iterable[Phrase]) -> list[Phrase]:
    """The phrases in order; of two that overlap the longer, of equal ones the first."""
    kept: list[Phrase] = []
    for phrase in sorted(phrases, key=lambda phrase: phrase.start):
        if not kept or phrase.start >= kept[-1].end:
            kept.append(phrase)
        elif phrase.end - phrase.start > kept[-1].end - kept[-1].start:
            kept[-1] = phrase
    return kept


_TITLE = re.compile(
    r"([^\W_][^()\n。！？，；;：《》=]{0,60}?[^\s.!?…:,;。！？])(?<![.!?]['\"’”])\s*(?:\([^()\n]{1,40}\))?"
)
_TITLE_WORDS = 8
_MOST_CAPITALS = 4  # words: more of them in capitals are a sentence or a heading


def _title(text: str, spans: _Spans) -> Iterator[Phrase]:
    """The title of a text, if its first line is one, without a "(disambiguation)"."""
    title = _TITLE.fullmatch(text, *spans[0]) if len(spans) > 1 else None
    if title is None or "\n" not in text[spans[0][1] : spans[1][0]]:
        return
    words = title[1].split()
    if len(words) <= _TITLE_WORDS and not words[0][0].islower():
        yield Phrase(*title.span(1), " ".join(words).removeprefix("The "), "concept", sure=False)


_CAPITALIZED = (
    r"(?:(?:\p{Lu}\p{Ll}{0,3}\.)+(?=\s?\p{Lu}|,)|\p{Lu}[\p{L}\p{N}]*)"  # St. Mr. J.R.R. or a word
    r"(?:(?:[-–&+]|['’](?![sS]\b)|\.(?=[a-z]{2,3}\b))[\p{L}\p{N}]+)*\+{0,2}"
)
_GAP = r"(?:[^\S\n]{1,2}|[^\S\n]?\n[^\S\n]?)"  # of one paragraph
_NAME = regex.compile(
    rf"(?<![\p{{L}}\p{{N}}'’]){_CAPITALIZED}"
    rf"(?:{_GAP}(?:(?:of(?:{_GAP}the)?|for|de|del|la|le|von|van|der|bin|&){_GAP})?(?:{_CAPITALIZED}|\d{{1,4}}\b))*"
)
_WORD = regex.compile(r"(?<![\p{L}\p{N}'’-])\p{L}[\p{L}\p{N}'’-]*[\p{L}\p{N}]")
_LETTER = regex.compile(r"[\p{L}\p{N}]")
_OBJECT = re.compile(
    r" [a-z]{3,}ed ([a-z]{4,}(?<!ly)(?<!ing))(?= (?:in|at|on|from|during|with)\b|[.,;])"
)
_IS_A = regex.compile(
    r"['\"”’]?\s*(?:\([^()]{0,160}\))?,?\s*(?:is|was|are|were)\s+(?:an?|the|one\s+of\s+the)\s+"
    r"([^.,;:()]{1,80})"
)


def _english(text: str, spans: _Spans) -> tuple[list[Phrase], Iterator[tuple[int, str]]]:
    names = _without_overlap([*_title(text, spans), *_capitalized(text, spans)])
    names = _without_overlap([*names, *_objects(text, names)])
    named = {at for name in names for at in range(name.start, name.end)}
    words = ((found.start(), found[0].casefold()) for found in _WORD.finditer(text))
    return names, (
        (at, word)
        for at, word in words
        if at not in named and len(word) > 2 and word not in STOP_WORDS
    )


def _objects(text: str, names: Iterable[Phrase]) -> Iterator[Phrase]:
    """What a name's verb is about, if it is one word: "Marie Curie discovered radium in …"."""
    for name in names:
        found = _OBJECT.match(text, name.end)
        if found and found[1] not in STOP_WORDS:
            yield Phrase(*found.span(1), found[1], "concept", sure=False)


def _capitalized(text: str, spans: _Spans) -> Iterator[Phrase]:
    first = (_LETTER.search(text, start, end) for start, end in spans)
    openings = {found.start() for found in first if found}
    capitals: Counter[str] = Counter()  # how often more a word has a capital than not, elsewhere
    for found in _WORD.finditer(text):
        if found.start() not in openings:
            capitals[found[0].casefold()] += 1 if found[0][0].isupper() else -1
    for start, end in spans:
        for run in _NAME.finditer(text, start, end):
            words = [part.span() for part in regex.finditer(r"\S+", text, 0, *run.span())]
            if name := _name(text, words, run.start() in openings, capitals):
                yield name


def _name(text: str, words: _Spans, opening: bool, capitals: Counter[str]) -> Phrase | None:
    titled = False
    words = list(dropwhile(lambda span: _is_of_date(text[slice(*span)]), words)) or words
    while words:
        word = text[slice(*words[0])]
        low = word.replace("’", "'").casefold()
        after = text[slice(*words[1])] if len(words) > 1 else ""
        common = opening and capitals[low] < (0 if after else 1)
        common |= word[1:] == "." and after.casefold() in STOP_WORDS  # "It's I. Your uncle"
        twice = f"{word} {word}"  # unlike in Duran Duran, the word is also alone
        common |= word == after and capitals[low] > 2 * text.count(twice)
        if low in tables.TITLES:
            titled = True
        elif word[0].isupper() and low.partition("'")[0] not in STOP_WORDS and not common:
            break
        words, opening = words[1:], False
    name = " ".join(text[start:end] for start, end in words).rstrip(".")
    is_capitals = len(words) > _MOST_CAPITALS and name.isupper()
    if is_capitals or len(name) < 2 or name.casefold() in tables.CALENDAR:
        return None
    start, end = words[0][0], words[-1][1]
    type = "person" if titled else _shown_type(text, name, start, end)
    return Phrase(start, end, name, type or _likely_type(name), sure=type is not None)


def _is_of_date(word: str) -> bool:
    return word.isdigit() or word.casefold() in tables.CALENDAR


def _shown_type(text: str, name: str, start: int, end: int) -> str | None:
    """The type that the text shows: by "X is a …", by a word of the name, or before it."""
    if _is_of_date(name.split()[0]):
        return "date"
    described = _IS_A.match(text, end)
    words = described[1].split() if described else []
    noun_phrase = list(takewhile(lambda word: word not in STOP_WORDS, words))
    own = name.casefold().partition(" of ")[0].split()
    for word in (*reversed(noun_phrase), own[-1], own[0]):
        if word in tables.TYPES:
            return tables.TYPES[word]
    if text.endswith(("said ", "asked ", "cried "), 0, start):
        return "person"
    return "place" if text.endswith((" in ", " near "), 0, start) else None


def _likely_type(name: str) -> str:
    """Two or three words that are no common nouns mostly name a person."""
    words = name.split()
    plain = all(word[1:].islower() for word in words)
    return "person" if plain and len(words) in (2, 3) else "concept"


_WORK = re.compile(r"《([^《》\n]{1,40})》")
_GIVEN = re.compile(r"姓([^\W\d]{1,2})，?名([^\W\d字]{1,2})(?=[，。,字]|$)")  # 姓刘名备，字玄德
_LATIN = re.compile(
    r"(?<![A-Za-z0-9])[a-z]*[A-Z][A-Za-z0-9.+&'’-]*(?:/[A-Z]{1,3}(?= ?\d)[\d.-]*)?"  # GB/T 19001
    r"(?: (?:of |the |and )*[A-Z0-9][A-Za-z0-9.+&'’-]*){0,5}"
)
_JOINED = re.compile("^[由与对被把令使](?=.)|(?<=.)[是曰笑道]$")
_TYPES = {"nr": "person", "ns": "place", "nt": "organization", "nz": "concept"}  # by kind of tag
_CHARACTERS_A_NOUN = 80
_PLACES = "馆院园寺山河江湖海城县郡州府楼阁亭宫殿庙塔桥村镇路街关岛岭坡谷洞"
_FILLERS = ("r", "d", "y")  # tags of pronouns and question words, adverbs, particles at the end


class _Word(NamedTuple):
    """A word of the segmenter with its span and part of speech; `known` if a dictionary has it."""

    start: int
    end: int
    text: str
    tag: str
    known: bool


def _chinese(
    text: str, spans: _Spans, *, question: bool
) -> tuple[list[Phrase], Iterator[tuple[int, str]]]:
    words = _joined(_words(text))
    names = _without_overlap([*_title(text, spans), *_written_names(text), *_tagged_names(words)])
    content = [word for word in words if _is_content(word, question=question)]
    phrases = _without_overlap([*names, *_repeated_nouns(content, len(text))])
    return phrases, ((word.start, word.text) for word in content)


@cache
def _segmenter() -> "Jieba":
    """A segmenter of our own, loaded once (0.1 s): other code may add words to the shared one."""
    from rjieba import Jieba

    return Jieba()


def _words(text: str) -> Iterator[_Word]:
    """The words of a text; guessed ones and people's names without what was joined to them (煤是)."""
    segmenter, plain, at = _segmenter(), simplified(text), 0
    for segment, tag in segmenter.tag(plain):
        at = plain.index(segment, at)
        known = segmenter.has_word(segment)
        word = _JOINED.sub("", segment) if tag == "nr" or not known else segment
        if word != segment:
            tag, known = segmenter.tag(word)[0][1], segmenter.has_word(word)
        start = plain.index(word, at)
        end = start + len(word)
        yield _Word(start, end, text[start:end], tag, known)
        at += len(segment)


def _joined(words: Iterable[_Word]) -> list[_Word]:
    """The words, with places joined to what ends their name (潇湘馆), and parts of foreign names
    to each other (皮埃尔·居里).
    """
    found: list[_Word] = []
    for word in words:
        before = found[-1] if found else None
        dotted = before and before.tag == "nr" and "·" in (word.text, before.text[-1])
        placed = before and before.tag == "ns" and len(word.text) == 1 and word.text in _PLACES
        if before and before.end == word.start and (dotted or placed):
            found[-1] = before._replace(end=word.end, text=before.text + word.text)
        else:
            found.append(word)
    return found


def without_fillers(text: str) -> str:
    """A Chinese question without pronouns and adverbs, which no search should look for.

    An adverb of one character may be a part of a word that the segmenter does not know (守将).
    """
    words = [(one.text, one.tag) for one in _words(text)]
    kept = [text for text, tag in words if tag not in _FILLERS or (tag == "d" and len(text) == 1)]
    return "".join(kept)


def _is_content(word: _Word, *, question: bool) -> bool:
    """Whether a word (verb or noun) can be what a relation or a question is about."""
    if not word.known or not has_cjk(word.text) or _is_common(word.text):
        return False
    if len(word.text) == 1:
        return question and word.tag.startswith(("n", "j", "zg"))
    return word.tag in ("n", "v", "vn", "l")


def _is_common(text: str) -> bool:
    text = simplified(text)
    return text in STOP_WORDS or text[0] in "一二三四五六七八九十两几各每某此其"


def _written_names(text: str) -> Iterator[Phrase]:
    for found in _WORK.finditer(text):
        yield Phrase(*found.span(1), found[1], "work")
    for found in _GIVEN.finditer(text):
        yield Phrase(*found.span(), found[1] + found[2], "person")
    for found in _LATIN.finditer(text):
        if len(name := found[0].rstrip(".-'’")) > 1:
            yield Phrase(*found.span(), name, "concept", sure=False)


def _tagged_names(words: Sequence[_Word]) -> Iterator[Phrase]:
    """Names by their tags; of people only those that begin with a surname, or are repeated."""
    counts = Counter(word.text for word in words)
    for word in words:
        type = _TYPES.get(word.tag[:2])
        if not type or len(word.text) < 2 or not has_cjk(word.text) or _is_common(word.text):
            continue
        if simplified(word.text) in tables.NOT_PLACES:
            continue
        if (
            word.tag != "nr"
            or "·" in word.text
            or simplified(word.text)[0] in tables.SURNAMES
            or counts[word.text] > 1
        ):
            yield Phrase(word.start, word.end, word.text, type, sure=type != "concept")


def _repeated_nouns(words: Sequence[_Word], length: int) -> Iterator[Phrase]:
    """The nouns that a text repeats most: one for every 80 characters of it, but at least three."""
    nouns = [word for word in words if word.tag != "v" and len(word.text) > 1]
    counts = Counter(word.text for word in nouns)
    repeated = [text for text, count in counts.items() if count > 1]
    ranked = sorted(repeated, key=lambda text: (-counts[text] * len(text), text))
    best = set(ranked[: max(3, length // _CHARACTERS_A_NOUN)])
    for word in nouns:
        if word.text in best:
            yield Phrase(word.start, word.end, word.text, "concept", sure=False)
