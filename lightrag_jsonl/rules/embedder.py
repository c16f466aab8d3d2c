"""Embeds texts by hashing their words and n-grams: no model, no vocabulary."""

import math
import unicodedata
import zlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from lightrag_jsonl.core.aio import in_thread
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.text.cjk import FUNCTION_CHARACTERS, has_cjk
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import sanitize
from lightrag_jsonl.text.terms import FUNCTION_WORDS, search_terms

HASHING_VERSION = 2
_FUNCTION_WORD_WEIGHT = 0.1  # weight of function words, which hardly distinguish texts
_PIECES_WEIGHT = 0.5  # weight of all n-grams of a word together, relative to the word
_HALF_FUNCTION_WEIGHT = 0.3  # of a CJK bigram with one function character
_LONE_CHARACTER = 0.25  # weight of one CJK character, relative to a bigram
_PIECE_LENGTHS = (3, 4, 5)
_CAPITALS_FACTOR = 2.0  # for capitalized words, which are mostly names
_CAPITALIZED_WORD = pattern_of(r"[A-ZÀ-ÞΑ-ΩА-Я][^\W_]*(?:['’][^\W_]+)*")
_LONGEST_WORD = 40  # characters; longer "words" are addresses or data, and are cut
_FUNCTION_TERMS = frozenset(word.replace("'", "") for word in FUNCTION_WORDS)


class HashEmbedder:
    """Embedder by signed feature hashing (Weinberger et al., 2009) of words and n-grams.

    Features are words and their 3- to 5-grams (with boundaries, as in fastText), and CJK characters
    and bigrams. Counts are damped (1 + ln), function words weigh little, capitalized words double.
    By CRC-32, vectors are the same on every machine. `ValueError` if `dim` is less than 2.
    """

    lexical = True

    def __init__(self, dim: int = 1024) -> None:
        if dim < 2:
            raise ValueError(f"dim must be at least 2, not {dim}")
        self.dim = dim
        self.name = f"hash-{dim}-{HASHING_VERSION}"

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """float32, shape (len(texts), dim), rows of unit length; `kind` is ignored."""
        return await in_thread(hash_vectors, texts, self.dim)


def hash_vectors(texts: Sequence[str], dim: int) -> Vectors:
    """A unit vector for each text, shape (len(texts), dim); the first axis if it has no features."""
    vectors = np.zeros((len(texts), dim), dtype=np.float32)
    for row, text in enumerate(texts):
        counts = _term_counts(text)
        features = [_features(*term) for term in counts]
        bits = np.frombuffer(b"".join([hashes for hashes, _ in features]), np.int64)
        weights = np.frombuffer(b"".join([own_weights for _, own_weights in features]))
        factors = np.array([1 + math.log(count) for count in counts.values()])
        weights = factors.repeat([len(hashes) for hashes, _ in features] or 0) * weights
        signed = np.where(bits & 1, weights, -weights)
        vectors[row] = np.bincount((bits >> 1) % dim, signed, minlength=dim)
    lengths = np.linalg.norm(vectors, axis=1)
    vectors[lengths == 0, 0] = 1.0
    lengths[lengths == 0] = 1.0
    return np.asarray(vectors / lengths[:, None], dtype=np.float32)


def _term_counts(text: str) -> dict[tuple[str, bool], int]:
    """The numbers of words, bigrams and CJK characters, with whether the text capitalizes them; or of
    any characters.
    """
    capitalized = frozenset(search_terms(" ".join(_CAPITALIZED_WORD.findall(text))))
    counts = defaultdict[tuple[str, bool], int](int)
    for term, count in Counter(search_terms(text)).items():
        counts[term[:_LONGEST_WORD], term in capitalized] += count
        if len(term) > 1 and has_cjk(term):
            counts[term[0], False] += count
    if not counts:
        folded = unicodedata.normalize("NFKC", sanitize(text))
        characters = [char for char in folded if char.isprintable() and char != " "]
        counts.update(Counter((char, False) for char in characters))
    return counts


@lru_cache(2**15)  # the same words come again and again; 20 MB
def _features(term: str, is_capitalized: bool) -> tuple["array[int]", "array[float]"]:
    """The hashes of a term's features, and the weights of the features."""
    is_cjk = has_cjk(term)
    weight = _cjk_weight(term) if is_cjk else min(1.0, 0.4 + 0.1 * len(term))
    if not is_cjk and term in _FUNCTION_TERMS:
        weight = _FUNCTION_WORD_WEIGHT
    elif is_capitalized and term not in _FUNCTION_TERMS:
        weight *= _CAPITALS_FACTOR
    pieces: list[str] = []
    if not is_cjk and len(term) > 2:
        word = f"<{term}>"
        pieces = [
            word[start : start + size]
            for size in _PIECE_LENGTHS
            for start in range(len(word) - size + 1)
        ]
    share = weight * _PIECES_WEIGHT / math.sqrt(max(len(pieces), 1))
    hashes = array("q", [zlib.crc32(feature.encode()) for feature in (term, *pieces)])
    return hashes, array("d", [weight, *[share] * len(pieces)])


def _cjk_weight(term: str) -> float:
    """The weight of a CJK character or bigram; less with function characters."""
    function_characters = sum(map(FUNCTION_CHARACTERS.__contains__, term))
    if len(term) == 1:
        return _LONE_CHARACTER * (_FUNCTION_WORD_WEIGHT if function_characters else 1.0)
    if term in _FUNCTION_TERMS or function_characters > 1:
        return _FUNCTION_WORD_WEIGHT
    return _HALF_FUNCTION_WEIGHT if function_characters else 1.0
