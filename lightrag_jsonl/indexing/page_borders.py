"""Makes the sentences whole that cross the border of two pages, for the readers of chunks."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from lightrag_jsonl.core.types import Chunk, Page
from lightrag_jsonl.text.cjk import is_cjk
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.sentences import sentence_spans
from lightrag_jsonl.text.terms import GRAMMAR_WORDS

LONGEST_SENTENCE_PART = 400  # characters of a sentence on the other page
NEAR_BORDER = 800  # characters of a page in which its first and last sentence are looked for
LONGEST_ENDING = 20  # characters: a full stop, closing quotes and brackets
FEWEST_SENTENCE_WORDS = 6  # before a capital letter; captions and titles have less
FEWEST_SENTENCE_CHARACTERS = 10  # characters of an unfinished sentence

_NO_PROSE = pattern_of(
    r"\s*(?:[#>|*•·●▪-]|\d{1,3}[.)、]|[（(]?[一二三四五六七八九十]+[)）、]|\[\^)"
)
_ENDED = pattern_of(r"[.!?…:;。！？：；｡][\s\"'”’」』）)\]】〕》»*_]*$")
_GOING_ON = pattern_of(r"[,，、（(—–-]$")
_LAST_WORD = pattern_of(r"(?<!\w)\w+$")


def with_whole_sentences(chunks: Iterable[Chunk], pages: Iterable[Page]) -> tuple[Chunk, ...]:
    """The chunks of a document with `preface` and `continuation`.

    A sentence that crosses the border of two pages is whole for the reader of either chunk, while the
    text of a chunk stays a slice of its page.
    """
    written_pages = [page for page in pages if page.text.strip()]
    if len(written_pages) <= 1:
        return tuple(chunks)
    ends = {page.number: _visible_ends(page.text) for page in written_pages}
    prefaces: dict[int, str] = {}
    continuations: dict[int, str] = {}
    for page, following in pairwise(written_pages):
        beginning, ending = divided_sentence(page.text, following.text)
        prefaces[following.number] = beginning
        continuations[page.number] = ending
    complete: list[Chunk] = []
    for chunk in chunks:
        start, end = ends.get(chunk.page, (0, 0))
        is_first = chunk.start <= start
        is_last = chunk.end >= end
        preface = prefaces.get(chunk.page, "") if is_first else ""
        continuation = continuations.get(chunk.page, "") if is_last else ""
        complete.append(replace(chunk, preface=preface, continuation=continuation))
    return tuple(complete)


def _visible_ends(text: str) -> tuple[int, int]:
    """Where the text without white space at both ends begins and ends."""
    return len(text) - len(text.lstrip()), len(text.rstrip())


def divided_sentence(text: str, next_text: str) -> tuple[str, str]:
    """The two parts of a sentence that crosses the border of two texts, as what stands before the
    second text and what follows the first; ("", "") if no sentence does.
    """
    tail = text.rstrip()[-NEAR_BORDER:]
    head = next_text.lstrip()[:NEAR_BORDER]
    if _ENDED.search(tail[-LONGEST_ENDING:]):
        return "", ""
    start, _ = sentence_spans(tail)[-1]
    beginning = tail[start:]
    spans = sentence_spans(head)
    ending = head[: spans[0][1]]
    if (
        _NO_PROSE.match(beginning)
        or _NO_PROSE.match(ending)
        or not _is_unfinished(beginning, ending)
    ):
        return "", ""
    is_unspaced = is_cjk(beginning[-1]) or is_cjk(ending[0])
    gap = "" if is_unspaced else "\n"
    return _last_part(beginning) + gap, gap + _first_part(ending)


def _is_unfinished(beginning: str, ending: str) -> bool:
    """Whether a text without a full stop is an unfinished sentence, not only a title or a caption."""
    if is_cjk(ending[0]) and is_cjk(beginning[-1]):
        return sum(map(is_cjk, beginning)) >= FEWEST_SENTENCE_CHARACTERS
    if ending[0].islower() or _GOING_ON.search(beginning):
        return True
    last_word = _LAST_WORD.search(beginning)
    if last_word is not None and last_word[0] in GRAMMAR_WORDS:
        return True
    return len(beginning.split()) >= FEWEST_SENTENCE_WORDS


def _last_part(text: str) -> str:
    """The end of a text, cut between words if it is too long."""
    if len(text) <= LONGEST_SENTENCE_PART:
        return text
    end = text[-LONGEST_SENTENCE_PART:]
    return end if is_cjk(end[0]) else end.partition(" ")[2] or end


def _first_part(text: str) -> str:
    """The beginning of a text, cut between words if it is too long."""
    if len(text) <= LONGEST_SENTENCE_PART:
        return text
    start = text[:LONGEST_SENTENCE_PART]
    return start if is_cjk(start[-1]) else start.rpartition(" ")[0] or start
