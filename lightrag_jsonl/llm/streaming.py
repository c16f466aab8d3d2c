"""Reads the stream of a model, and passes the pieces of text on to the reader."""

import logging
from collections.abc import AsyncIterator

from lightrag_jsonl.core.loops import LoopDetector
from lightrag_jsonl.core.types import Completion, Finish
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.user_code import ONE_CALL
from lightrag_jsonl.llm.requests import ModelRequest
from lightrag_jsonl.llm.thinking import ThinkingFilter
from lightrag_jsonl.text.strings import sanitize

log = logging.getLogger(__name__)


async def read_stream(
    stream: AsyncIterator[str], request: ModelRequest, *, max_characters: int
) -> Completion:
    """Read a stream to its end; all pieces but the thinking at the beginning reach the reader.

    Reading stops after `max_characters`, and as soon as the model repeats itself.
    """
    pieces: list[str] = []
    in_loop = False
    try:
        in_loop = await _read_pieces(stream, request, pieces, max_characters)
    finally:
        if close := getattr(stream, "aclose", None):
            await close()
    usage: Usage | None = getattr(stream, "usage", None)
    if in_loop:
        log.warning("%s: the answer is cut off, since it repeats itself", request.prompt)
        return Completion("".join(pieces), finish="length", usage=usage or ONE_CALL)
    finish: Finish = getattr(stream, "finish", None) or "stop"
    return Completion("".join(pieces), finish=finish, usage=usage or Usage())


async def _read_pieces(
    stream: AsyncIterator[str], request: ModelRequest, pieces: list[str], max_characters: int
) -> bool:
    """Read into `pieces`; whether reading stopped because the model repeats itself."""
    thinking = ThinkingFilter()
    loops = LoopDetector()
    room = max_characters
    async for piece in stream:
        if piece and not isinstance(piece, str):
            raise TypeError(f"a piece of its answer is {type(piece).__name__}, not text")
        text = sanitize(piece or "")  # some clients end with None
        pieces.append(text)
        await request.pass_on(thinking.feed(text[:room]))
        room -= len(text)
        if room < 0:
            return False
        if loops.feed(text):
            return True
    return False
