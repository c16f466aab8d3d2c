"""The words of Chinese texts by a segmenter, each with its part of speech."""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from lightrag_jsonl.core.cjk import simplified
from lightrag_jsonl.providers.offline.words import NO_PEOPLE

if TYPE_CHECKING:
    from rjieba import Jieba

_ATTACHED = re.compile(  # to a name by the segmenter
    "^[由与对被把令使](?=.)|(?<=.)[是曰笑道]$|(?<=..)任$"
)
_ORGANIZATION_AND_OFFICE = re.compile(  # single words of the dictionary: 大学校长
    "(大学|中学|小学|学院|医院|法院|公司|银行|局)(校长|教授|教师|院长|总裁|行长|主席|局长)"
)
_FUNCTION_ENDINGS = "之若只时谓乃既亦遂则即又便说等去来从因以欲袭率遣命使引回"  # joined to people's names by the segmenter
_LONGEST_GUESS = 3  # characters of a person's full name
_FILLER_TAGS = ("r", "d", "y")  # pronouns and question words, adverbs, particles at the end


class SegmentedWord(NamedTuple):
    """A word of the segmenter with its span, its part of speech, and whether a dictionary has it."""

    start: int
    end: int
    text: str
    tag: str
    in_dictionary: bool


def without_fillers(text: str) -> str:
    """A Chinese question without pronouns and adverbs, of no use to a search.

    An adverb of one character may be a part of a word unknown to the segmenter (守将).
    """
    words = [
        word.text
        for word in segmented(text)
        if word.tag not in _FILLER_TAGS or (word.tag == "d" and len(word.text) == 1)
    ]
    return "".join(words)


@cache
def _segmenter() -> "Jieba":
    """A segmenter of our own, loaded once (0.1 s): other code may add words to the shared one."""
    from rjieba import Jieba

    return Jieba()


def segmented(text: str) -> Iterator[SegmentedWord]:
    """The words of a text; guessed words and people's names without attached ones (煤是)."""
    segmenter = _segmenter()
    plain = simplified(text)
    at = 0
    for segment, segment_tag in _tagged_segments(plain):
        at = plain.index(segment, at)
        word = segment
        tag = segment_tag
        in_dictionary = segmenter.has_word(segment)
        if tag == "nr" or not in_dictionary:
            word = without_attached(segment, plain)
        if word != segment:
            tag = segmenter.tag(word)[0][1]
            in_dictionary = segmenter.has_word(word)
        if tag == "nr" and word in NO_PEOPLE:
            tag = "n"
        start = plain.index(word, at)
        end = start + len(word)
        yield SegmentedWord(
            start=start, end=end, text=text[start:end], tag=tag, in_dictionary=in_dictionary
        )
        at += len(segment)


def _tagged_segments(text: str) -> Iterator[tuple[str, str]]:
    """The segmenter's words with their parts of speech; the words for an office without their organization."""
    for segment, tag in _segmenter().tag(text):
        joined = _ORGANIZATION_AND_OFFICE.fullmatch(segment)
        if joined is None:
            yield segment, tag
        else:
            yield from [(part, "n") for part in joined.groups()]


def without_attached(segment: str, text: str) -> str:
    """A guessed word or a person's name without what the segmenter joined to a name: 由雷军, 玄德曰, 刘备若.

    The last of three characters also goes if the text has the first two more often without it.
    """
    word = _ATTACHED.sub("", segment)
    if len(word) != _LONGEST_GUESS:
        return word
    name = word[:-1]
    is_joined = word[-1] in _FUNCTION_ENDINGS or text.count(name) > 2 * text.count(word)
    return name if is_joined and _segmenter().tag(name)[0] == (name, "nr") else word
