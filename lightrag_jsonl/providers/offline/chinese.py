"""Names and content words of Chinese texts, by a segmenter's parts of speech and written forms."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from lightrag_jsonl.core.cjk import has_cjk, simplified
from lightrag_jsonl.core.dates import CHINESE_NUMBER, ERAS
from lightrag_jsonl.core.options import Tagger
from lightrag_jsonl.core.stop_words import STOP_WORDS
from lightrag_jsonl.providers.offline import words as tables
from lightrag_jsonl.providers.offline.offices import office_phrases, people_in_office
from lightrag_jsonl.providers.offline.organizations import organization_phrases
from lightrag_jsonl.providers.offline.phrases import (
    ContentWord,
    Phrase,
    PhrasesAndWords,
    Spans,
    title_phrases,
    without_overlap,
)
from lightrag_jsonl.providers.offline.segmentation import SegmentedWord, segmented
from lightrag_jsonl.providers.offline.tagging import tagged_names

_WORK_TITLE = re.compile(r"《([^《》\n]{1,40})》")
_SURNAME_AND_NAME = re.compile(  # 姓刘名备，字玄德
    r"姓([^\W\d]{1,2})，?名([^\W\d字]{1,2})(?=[，。,字]|$)"
)
_LATIN = re.compile(
    r"(?<![A-Za-z0-9])[a-z]*[A-Z][A-Za-z0-9.+&'’-]*(?:/[A-Z]{1,3}(?= ?\d)[\d.-]*)?"  # GB/T 19001
    r"(?: (?:of |the |and )*[A-Z0-9][A-Za-z0-9.+&'’-]*){0,5}"
)
_ERA_YEAR = re.compile(rf"(?:{ERAS})(?:元|{CHINESE_NUMBER}{{1,4}})年")
_TAG_TYPES = {"nr": "person", "ns": "place", "nt": "organization", "nz": "concept"}
_ABSTRACT_NOUN = re.compile(
    r"..+[度性率化感制观型式业]"
)  # 满意度, 城市绿化: the segmenter tags some as names
_PEOPLE_COUNTED = re.compile("[两二三四五六七八九十]人$")  # 张、邓二人
_LONGEST_PLAIN_NAME = 3  # characters of a person's name with a surname of one character
_CHARACTERS_PER_NOUN = 80
_NAME_ENDINGS = "馆院园寺山河江湖海城县郡州府楼阁亭宫殿庙塔桥村镇路街关岛岭坡谷洞"
_MOTIONS = "上下入出回到进离过攻破守围还归取"  # before a kind of place: 上城, 回县
_PLACE_ENDINGS = frozenset(_NAME_ENDINGS + "市省区国乡屯溪港湾站滩洲屿闸坞巷陵阳阴")


def chinese_phrases(text: str, spans: Spans, *, question: bool, tagger: Tagger) -> PhrasesAndWords:
    """The names, the repeated nouns and the content words of a Chinese text."""
    words = _with_whole_names(segmented(text))
    offices = list(office_phrases(text, words))
    if tagger == "lac":
        dictionary_words = [word for word in words if word.in_dictionary]
        tagged = [*tagged_names(text, spans), *_tagged_names(dictionary_words, text)]
    else:
        tagged = list(_tagged_names(words, text))
    names = without_overlap(
        [
            *title_phrases(text, spans),
            *_written_names(text),
            *organization_phrases(text, words),
            *offices,
            *people_in_office(text, words),
            *_people_with_titles(words),
            *_apart_from(offices, tagged),
        ]
    )
    content = [word for word in words if _is_content(word, question=question)]
    phrases = without_overlap([*names, *_repeated_nouns(content, len(text))])
    return PhrasesAndWords(
        phrases,
        [ContentWord(word.start, word.text, is_verb=word.tag in ("v", "vn")) for word in content],
    )


def _apart_from(offices: Sequence[Phrase], names: Iterable[Phrase]) -> Iterator[Phrase]:
    """The names without those that begin or end within an office: 任凉州 of 任凉州牧."""
    for name in names:
        if not any(name.start < office.end and office.start < name.end for office in offices):
            yield name


def _with_whole_names(words: Iterable[SegmentedWord]) -> list[SegmentedWord]:
    """The words, with places joined to the end of their name (潇湘馆, 清溪大桥), and parts of foreign
    names to each other (皮埃尔·居里).
    """
    joined: list[SegmentedWord] = []
    for word in words:
        if joined and _belongs_to(joined[-1], word, joined[-2:-1]):
            before = joined[-1]
            tag = "ns" if word.text in tables.FACILITIES else before.tag
            joined[-1] = before._replace(end=word.end, text=before.text + word.text, tag=tag)
        else:
            joined.append(word)
    return joined


def _belongs_to(
    before: SegmentedWord, word: SegmentedWord, preceding: Sequence[SegmentedWord]
) -> bool:
    """Whether a word goes on with the name before it, or with a noun at the beginning of a clause
    (石门大桥).
    """
    if before.end != word.start:
        return False
    if before.tag == "nr" and "·" in (word.text, before.text[-1]):
        return True
    if word.text in tables.FACILITIES:
        is_opening = not preceding or not preceding[0].text[-1].isalnum()
        return before.tag in ("ns", "nz") or (is_opening and _is_specific_noun(before))
    return before.tag == "ns" and len(word.text) == 1 and word.text in _NAME_ENDINGS


def _is_specific_noun(word: SegmentedWord) -> bool:
    is_noun = word.tag in ("n", "nr") and len(word.text) == 2
    return is_noun and simplified(word.text) not in tables.GENERIC_NOUNS


def _is_content(word: SegmentedWord, *, question: bool) -> bool:
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


def _people_with_titles(words: Sequence[SegmentedWord]) -> Iterator[Phrase]:
    """People by surname and title or profession: 周老师."""
    for surname, title in pairwise(words):
        is_adjacent = surname.end == title.start
        if not is_adjacent or simplified(title.text) not in tables.SURNAME_TITLES:
            continue
        if simplified(surname.text) in tables.SURNAMES | tables.DOUBLE_SURNAMES:
            name = surname.text + title.text
            yield Phrase(start=surname.start, end=title.end, name=name, type="person")


def _tagged_names(words: Sequence[SegmentedWord], text: str) -> Iterator[Phrase]:
    """Names by their tags, but for eras of dates (建安元年); of people only names with a surname, or
    repeated ones.
    """
    counts = Counter(word.text for word in words)
    plain = simplified(text)
    for word in words:
        type = _TAG_TYPES.get(word.tag[:2])
        if type and _ERA_YEAR.match(plain, word.start):
            continue
        if not type or len(word.text) < 2 or not has_cjk(word.text) or _is_common_noun(word.text):
            continue
        if simplified(word.text) in tables.MISTAGGED_WORDS | tables.GENERIC_NOUNS:
            continue
        if word.tag != "nz" and _ABSTRACT_NOUN.fullmatch(simplified(word.text)):
            continue
        if word.tag == "nr" and not _is_person(word, counts[word.text]):
            continue
        if type == "place" and not _is_place(word, counts[word.text]):
            continue
        yield Phrase(
            start=word.start, end=word.end, name=word.text, type=type, sure=type != "concept"
        )


def _is_person(word: SegmentedWord, count: int) -> bool:
    """Whether a word tagged as a person's name is one: the segmenter guesses many."""
    name = simplified(word.text)
    if "·" in name or (len(name) == 2 and name[0] in "小老阿" and name[1] in tables.SURNAMES):
        return True
    if name[:2] in tables.DOUBLE_SURNAMES:
        return True
    if len(name) > _LONGEST_PLAIN_NAME or _PEOPLE_COUNTED.search(name):
        return False
    return name[0] in tables.SURNAMES or (count > 1 and not word.in_dictionary)


def _is_place(word: SegmentedWord, count: int) -> bool:
    """Whether a word tagged as a place is one: a guess needs the ending of a place, or a repetition."""
    name = simplified(word.text)
    if not word.in_dictionary and len(name) == 2 and name[0] in _MOTIONS:
        return False
    return word.in_dictionary or name[-1] in _PLACE_ENDINGS or count > 1


def _repeated_nouns(words: Sequence[SegmentedWord], length: int) -> Iterator[Phrase]:
    """The nouns that a text repeats most, but for generic ones (公司, 方面): one for every 80 characters,
    but at least three.
    """
    nouns = [word for word in words if word.tag in ("n", "l") and _may_name(word)]
    counts = Counter(word.text for word in nouns)
    repeated = [text for text, count in counts.items() if count > 1]
    ranked = sorted(repeated, key=lambda text: (-counts[text] * len(text), text))
    best = set(ranked[: max(3, length // _CHARACTERS_PER_NOUN)])
    for word in nouns:
        if word.text in best:
            yield Phrase(start=word.start, end=word.end, name=word.text, type="concept", sure=False)


def _may_name(word: SegmentedWord) -> bool:
    return len(word.text) > 1 and simplified(word.text) not in tables.GENERIC_NOUNS
