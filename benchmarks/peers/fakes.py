"""The instant model and the fast embedder that every measured library uses."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from benchmarks.peers.system import Clock

DIM = 384
WORDS, FADE = 12, 0.7  # the number of words embedded, and the weight of each relative to the last

_START = re.compile(r"Note \d+\. ")
_WORD = re.compile(r"\w+")
_TAG = re.compile(r"\[[^]]*\]")


class Replies:
    """The model's reply to each piece of the corpus, looked up by the beginning of the piece."""

    def __init__(self, replies: Mapping[str, str], clock: Clock) -> None:
        self._replies = {_head(text): reply for text, reply in replies.items()}
        self.clock = clock

    def about(self, prompt: str) -> str | None:
        """The reply for the piece that a prompt contains; None if it contains none."""
        with timed(self.clock):
            self.clock.calls += 1
            start = _START.search(prompt)
            return self._replies.get(_head(prompt[start.start() :])) if start else None


class WordVectors:
    """Unit vectors of the first words of a text: similar beginnings have similar vectors."""

    def __init__(self, clock: Clock) -> None:
        rows = np.random.default_rng(1).standard_normal((4_096, DIM)).astype(np.float32)
        self._rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        self._weights = (FADE ** np.arange(WORDS)).astype(np.float32)
        self._clock = clock

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """One row for each text, float32, shape (len(texts), DIM)."""
        with timed(self._clock):
            self._clock.texts += len(texts)
            found = np.zeros((len(texts), DIM), np.float32)
            for row, text in zip(found, texts, strict=True):
                keys = [zlib.crc32(word.encode()) % 4_096 for word in _words(text)]
                row += self._weights[: len(keys)] @ self._rows[keys]
            found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
            return found


@contextmanager
def timed(clock: Clock) -> Iterator[None]:
    """Add the CPU time of the block to the fakes' time."""
    started = time.thread_time()
    try:
        yield
    finally:
        clock.seconds += time.thread_time() - started


def _head(text: str) -> str:
    return text[:60]


def _words(text: str) -> list[str]:
    return _WORD.findall(_TAG.sub(" ", text[:300]).casefold())[:WORDS] or ["nothing"]
