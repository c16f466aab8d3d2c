"""The words of Chinese texts by a segmenter, each with the part of speech."""

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from lightrag_jsonl.text.cjk import simplified

if TYPE_CHECKING:
    from rjieba import Jieba

_COPULA = "是"  # joined to words that are guessed: 煤是
_FILLER_TAGS = ("r", "d", "y")  # pronouns and question words, adverbs, particles at the end


class SegmentedWord(NamedTuple):
    """A word of the segmenter with the span, the part of speech, and whether a dictionary has the word."""

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
    """A segmenter of our own, loaded once (0.1 s): other code may add words to the shared segmenter."""
    from rjieba import Jieba

    return Jieba()


def is_common_noun(name: str) -> bool:
    """Whether the dictionary has a name as a common noun."""
    plain = simplified(name)
    segmenter = _segmenter()
    return segmenter.has_word(plain) and segmenter.tag(plain) == [(plain, "n")]


def segmented(text: str) -> Iterator[SegmentedWord]:
    """The words of a text, in order; guessed words without a copula at the end."""
    segmenter = _segmenter()
    plain = simplified(text)
    end = 0
    for segment, segment_tag in segmenter.tag(plain):
        start = end
        end += len(segment)
        word = segment
        tag = segment_tag
        if len(word) > 1 and word.endswith(_COPULA) and not segmenter.has_word(word):
            word = word.removesuffix(_COPULA)
            tag = segmenter.tag(word)[0][1]
        word_end = start + len(word)
        yield SegmentedWord(start, word_end, text[start:word_end], tag, segmenter.has_word(word))
