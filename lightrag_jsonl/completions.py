"""What a model's adapter returns, checked: a whole completion, or a stream of pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from lightrag_jsonl.errors import LLMError
from lightrag_jsonl.reading.thoughts import ThoughtFilter
from lightrag_jsonl.telling import closed
from lightrag_jsonl.text import sanitize
from lightrag_jsonl.types import Completion, Usage

FINISHED = ("stop", "length")
ANSWERED = Usage(calls=1)  # of an answer that cannot be used


class Teller:
    """Passes on the pieces of an answer; once `begun`, a failed call cannot be repeated unnoticed."""

    def __init__(self, pieces: asyncio.Queue[str | None]) -> None:
        self._pieces = pieces
        self.begun = False

    def tell(self, piece: str) -> None:
        """Pass on one more piece."""
        self.begun = True
        self._pieces.put_nowait(piece)


def sound(done: object, model: str) -> Completion:
    """A completion whose fields have the right types; `LLMError` if it has no text."""
    if not isinstance(done, Completion):
        raise LLMError(
            f"{model} answered with {type(done).__name__}, not with a Completion", cost=ANSWERED
        )
    if not isinstance(done.text, str):
        raise LLMError(f"{model} answered without a text: {done.text!r}", cost=ANSWERED)
    usage = done.usage or Usage()
    counts = usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.calls
    finish = done.finish if done.finish in FINISHED else "stop"
    if usage is done.usage and finish is done.finish and set(map(type, counts)) == {int}:
        return done
    try:
        return Completion(done.text, finish, Usage(*(int(count or 0) for count in counts)))
    except (TypeError, ValueError, OverflowError) as error:
        raise LLMError(
            f"{model} counts its tokens in no numbers: {done.usage!r}", cost=ANSWERED
        ) from error


async def written(source: AsyncIterator[object], teller: Teller) -> Completion:
    """Read a model's stream to its end, passing on each piece, except for a thought at its
    beginning.

    Empty pieces, with which some clients end, are skipped.
    """
    pieces: list[str] = []
    thoughts = ThoughtFilter()
    try:
        async for piece in source:
            if piece is None or piece == "":
                continue
            if not isinstance(piece, str):
                raise TypeError(f"a piece of its answer is {type(piece).__name__}, not text")
            pieces.append(sanitize(piece))
            if said := thoughts.take(pieces[-1]):
                teller.tell(said)
    finally:
        await closed(source)
    usage = getattr(source, "usage", None)
    return Completion(
        "".join(pieces),
        "length" if getattr(source, "finish", None) == "length" else "stop",
        usage if isinstance(usage, Usage) else Usage(),
    )
