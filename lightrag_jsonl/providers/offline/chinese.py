"""Names and content words of Chinese texts, by a segmenter's parts of speech and written forms."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from lightrag_jsonl.core.cjk import has_cjk, simplified
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

if TYPE_CHECKING:
    from rjieba import Jieba

_WORK_TITLE = re.compile(r"《([^《》\n]{1,40})》")
_SURNAME_AND_NAME = re.compile(  # 姓刘名备，字玄德
    r"姓([^\W\d]{1,2})，?名([^\W\d字]{1,2})(?=[，。,字]|$)"
)
_LATIN = re.compile(
    r"(?<![A-Za-z0-9])[a-z]*[A-Z][A-Za-z0-9.+&'’-]*(?:/[A-Z]{1,3}(?= ?\d)[\d.-]*)?"  # GB/T 19001
    r"(?: (?:of |the |and )*[A-Z0-9][A-Za-z0-9.+&'’-]*){0,5}"
)
_ATTACHED = re.compile("^[由与对被把令使](?=.)|(?<=.)[是曰笑道]$")  # to a name by the segmenter
_TAG_TYPES = {"nr": "person", "ns": "place", "nt": "organization", "nz": "concept"}
_CHARACTERS_PER_NOUN = 80
_NAME_ENDINGS = "馆院园寺山河江湖海城县郡州府楼阁亭宫殿庙塔桥村镇路街关岛岭坡谷洞"
_PLACE_ENDINGS = frozenset(_NAME_ENDINGS + "市省区国乡屯溪港湾站滩洲屿闸坞巷陵阳阴")
_FILLER_TAGS = ("r", "d", "y")  # pronouns and question words, adverbs, particles at the end


class _Word(NamedTuple):
    """A word of the segmenter with its span, its part of speech, and whether a dictionary has it."""

    start: int
    end: int
    text: str
    tag: str
    in_dictionary: bool


def chinese_phrases(text: str, spans: Spans, *, question: bool) -> PhrasesAndWords:
    """The names, the repeated nouns and the content words of a Chinese text."""
    words = _with_whole_names(_segmented(text))
    names = without_overlap(
        [*title_phrases(text, spans), *_written_names(text), *_tagged_names(words)]
    )
    content = [word for word in words if _is_content(word, question=question)]
    phrases = without_overlap([*names, *_repeated_nouns(content, len(text))])
    return PhrasesAndWords(phrases, [ContentWord(word.start, word.text) for word in content])


def without_fillers(text: str) -> str:
    """A Chinese question without pronouns and adverbs, of no use to a search.

    An adverb of one character may be a part of a word unknown to the segmenter (守将).
    """
    words = [
        word.text
        for word in _segmented(text)
        if word.tag not in _FILLER_TAGS or (word.tag == "d" and len(word.text) == 1)
    ]
    return "".join(words)


@cache
def _segmenter() -> "Jieba":
    """A segmenter of our own, loaded once (0.1 s): other code may add words to the shared one."""
    from rjieba import Jieba

    return Jieba()


def _segmented(text: str) -> Iterator[_Word]:
    """The words of a text; guessed words and people's names without attached ones (煤是)."""
    segmenter = _segmenter()
    plain = simplified(text)
    at = 0
    for segment, segment_tag in segmenter.tag(plain):
        at = plain.index(segment, at)
        word = segment
        tag = segment_tag
        in_dictionary = segmenter.has_word(segment)
        if tag == "nr" or not in_dictionary:
            word = _ATTACHED.sub("", segment)
        if word != segment:
            tag = segmenter.tag(word)[0][1]
            in_dictionary = segmenter.has_word(word)
        start = plain.index(word, at)
        end = start + len(word)
        yield _Word(
            start=start, end=end, text=text[start:end], tag=tag, in_dictionary=in_dictionary
        )
        at += len(segment)


def _with_whole_names(words: Iterable[_Word]) -> list[_Word]:
    """The words, with places joined to the end of their name (潇湘馆), and parts of foreign names
    to each other (皮埃尔·居里).
    """
    joined: list[_Word] = []
    for word in words:
        if joined and _belongs_to(joined[-1], word):
            before = joined[-1]
            joined[-1] = before._replace(end=word.end, text=before.text + word.text)
        else:
            joined.append(word)
    return joined


def _belongs_to(before: _Word, word: _Word) -> bool:
    """Whether a word goes on with the name before it."""
    if before.end != word.start:
        return False
    if before.tag == "nr":
        return "·" in (word.text, before.text[-1])
    return before.tag == "ns" and len(word.text) == 1 and word.text in _NAME_ENDINGS


def _is_content(word: _Word, *, question: bool) -> bool:
    """Whether a word (verb or noun) can be the subject of a relation or a question."""
    if not word.in_dictionary or not has_cjk(word.text) or _is_common_noun(word.text):
        return False
    if len(word.text) == 1:
        return question and word.tag.startswith(("n", "j", "zg"))
    return word.tag in ("n", "v", "vn", "l")


def _is_common_noun(text: str) -> bool:
    text = simplified(text)
    return text in STOP_WORDS or text[0] in "一二三四五六七八九十两几各每某此其"


def _written_names(text: str) -> Iterator[Phrase]:
    """Names by their written form: works in 《》, 姓刘名备, words in Latin letters."""
    for match in _WORK_TITLE.finditer(text):
        yield Phrase(start=match.start(1), end=match.end(1), name=match[1], type="work")
    for match in _SURNAME_AND_NAME.finditer(text):
        name = match[1] + match[2]
        yield Phrase(start=match.start(), end=match.end(), name=name, type="person")
    for match in _LATIN.finditer(text):
        name = match[0].rstrip(".-'’")
        if len(name) > 1:
            yield Phrase(
                start=match.start(), end=match.end(), name=name, type="concept", sure=False
            )


def _tagged_names(words: Sequence[_Word]) -> Iterator[Phrase]:
    """Names by their tags; of people only names with a surname, or repeated ones."""
    counts = Counter(word.text for word in words)
    for word in words:
        type = _TAG_TYPES.get(word.tag[:2])
        if not type or len(word.text) < 2 or not has_cjk(word.text) or _is_common_noun(word.text):
            continue
        if simplified(word.text) in tables.MISTAGGED_WORDS:
            continue
        if word.tag == "nr" and not _is_person(word, counts[word.text]):
            continue
        if type == "place" and not _is_place(word, counts[word.text]):
            continue
        yield Phrase(
            start=word.start, end=word.end, name=word.text, type=type, sure=type != "concept"
        )


def _is_person(word: _Word, count: int) -> bool:
    """Whether a word tagged as a person's name is one: the segmenter guesses many."""
    name = simplified(word.text)
    has_surname = name[0] in tables.SURNAMES or name[:2] in tables.DOUBLE_SURNAMES
    return has_surname or count > 1 or "·" in word.text


def _is_place(word: _Word, count: int) -> bool:
    """Whether a word tagged as a place is one: a guess needs the ending of a place, or a repetition."""
    name = simplified(word.text)
    return word.in_dictionary or name[-1] in _PLACE_ENDINGS or count > 1


def _repeated_nouns(words: Sequence[_Word], length: int) -> Iterator[Phrase]:
    """The nouns that a text repeats most: one for every 80 characters, but at least three."""
    nouns = [word for word in words if word.tag != "v" and len(word.text) > 1]
    counts = Counter(word.text for word in nouns)
    repeated = [text for text, count in counts.items() if count > 1]
    ranked = sorted(repeated, key=lambda text: (-counts[text] * len(text), text))
    best = set(ranked[: max(3, length // _CHARACTERS_PER_NOUN)])
    for word in nouns:
        if word.text in best:
            yield Phrase(start=word.start, end=word.end, name=word.text, type="concept", sure=False)
