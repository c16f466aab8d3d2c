"""Embeds texts by hashing their words and n-grams: no model, no vocabulary."""

import math
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import numpy as np
from anyio import to_thread

from lightrag_jsonl.core.cjk import FUNCTION_CHARACTERS, has_cjk
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.stop_words import FUNCTION_WORDS
from lightrag_jsonl.core.terms import search_terms
from lightrag_jsonl.core.text import sanitize

_Features: TypeAlias = tuple[list[int], list[float]]  # slots, and the weights added to them

VERSION = 2
_FAINT = 0.1  # weight of function words, which hardly distinguish texts
_PIECES = 0.5  # weight of all n-grams of a word together, relative to the word
_LONE_CHARACTER = 0.25  # weight of one CJK character, relative to a bigram
_PIECE_SIZES = (3, 4, 5)
_LOUDNESS = 2.0  # factor for capitalized words, which are mostly names
_LOUD = re.compile(r"[A-ZÀ-ÞΑ-ΩА-Я][^\W_]*(?:['’][^\W_]+)*")
_NOTHING = 1e-9
_LONGEST_WORD = 40  # characters; longer "words" are addresses or data, and are cut
_FAINT_TERMS = frozenset(word.replace("'", "") for word in FUNCTION_WORDS)


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
        self.name = f"hash-{dim}-{VERSION}"

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """float32, shape (len(texts), dim), rows of unit length; `kind` is ignored."""
        return await to_thread.run_sync(hash_vectors, texts, self.dim)


def hash_vectors(texts: Sequence[str], dim: int) -> Vectors:
    """A unit vector for each text, shape (len(texts), dim); the first axis if it has no features."""
    known: dict[tuple[str, bool], _Features] = {}
    vectors = np.zeros((len(texts), dim), dtype=np.float32)
    for row, text in enumerate(texts):
        slots, weights = list[int](), list[float]()
        for term, count in Counter(_terms(text)).items():
            if term not in known:
                known[term] = _features(*term, dim)
            slots += known[term][0]
            weights += [(1 + math.log(count)) * weight for weight in known[term][1]]
        vectors[row] = np.bincount(np.array(slots, np.int64), weights, minlength=dim)
    lengths = np.linalg.norm(vectors, axis=1)
    vectors[lengths < _NOTHING, 0] = 1.0
    lengths[lengths < _NOTHING] = 1.0
    return np.asarray(vectors / lengths[:, None], dtype=np.float32)


def _terms(text: str) -> Iterator[tuple[str, bool]]:
    """Words, bigrams and CJK characters, with whether the text capitalizes them; or any others."""
    loud = {term for word in _LOUD.findall(text) for term in search_terms(word)}
    terms = search_terms(text)
    for term in terms:
        yield term[:_LONGEST_WORD], term in loud
        if len(term) > 1 and has_cjk(term):
            yield term[0], False
    if not terms:
        folded = unicodedata.normalize("NFKC", sanitize(text))
        yield from ((char, False) for char in folded if char.isprintable() and char != " ")


def _features(term: str, loud: bool, dim: int) -> _Features:
    weight = _weight(term) * (_LOUDNESS if loud and term not in _FAINT_TERMS else 1.0)
    features = [(term, weight)]
    if not has_cjk(term) and len(term) > 2:
        word = f"<{term}>"
        pieces = [word[i : i + n] for n in _PIECE_SIZES for i in range(len(word) - n + 1)]
        share = weight * _PIECES / math.sqrt(len(pieces))
        features += [(piece, share) for piece in pieces]
    hashed = [(zlib.crc32(feature.encode("utf-8")), share) for feature, share in features]
    slots = [(value >> 1) % dim for value, _ in hashed]
    return slots, [share if value & 1 else -share for value, share in hashed]


def _weight(term: str) -> float:
    if has_cjk(term):
        faint = sum(char in FUNCTION_CHARACTERS for char in term)
        if len(term) == 1:
            return _FAINT * _LONE_CHARACTER if faint else _LONE_CHARACTER
        return (1.0, 0.3, _FAINT)[2 if term in _FAINT_TERMS else min(faint, 2)]
    return _FAINT if term in _FAINT_TERMS else min(1.0, 0.4 + 0.1 * len(term))
