"""A request to a model, and the key of its answer in the cache."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import msgspec

from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import Json, Message, ResponseType
from lightrag_jsonl.llm.scheduler import QUESTION

PieceReceiver: TypeAlias = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A conversation for a model to continue, with the form of the answer.

    - `prompt`: the id of the prompt, for messages of the log.
    - `names`: the entity names that records may use, if the server of the model can enforce them.
    - `document`: the id of the only document quoted in the conversation.
    - `for_reader`: an empty answer is a failure.
    - `on_piece`: receives the pieces of the answer. Once some are in `passed_pieces`, a failed call cannot
      be repeated unnoticed.
    """

    prompt: str
    messages: tuple[Message, ...]
    response_type: ResponseType = "text"
    max_tokens: int | None = None
    schema: Mapping[str, Json] | None = None
    names: Sequence[str] | None = None
    priority: int = QUESTION
    document: str | None = None
    for_reader: bool = False
    on_piece: PieceReceiver | None = None
    passed_pieces: list[str] = field(default_factory=list)

    def sanitized(self) -> "ModelRequest":
        """The request without characters that UTF-8 cannot hold."""
        messages = [Message(turn.role, sanitize(turn.content)) for turn in self.messages]
        return replace(self, messages=tuple(messages))

    def key(self, model: str) -> bytes:
        """The cache key of the answer of a model."""
        return request_key(model, self.messages, self.response_type, self.max_tokens)

    async def pass_on(self, piece: str) -> None:
        """Hand a piece of the answer to the reader."""
        if piece and self.on_piece is not None:
            self.passed_pieces.append(piece)
            await self.on_piece(piece)


def request_key(
    model: str, messages: Sequence[Message], response_type: ResponseType, max_tokens: int | None
) -> bytes:
    """The cache key of a completion: a hash of the model's name and the whole request."""
    request = msgspec.json.encode([model, response_type, max_tokens, messages])
    return hashlib.sha256(request).digest()
