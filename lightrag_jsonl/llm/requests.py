"""A request to a model, the key of the answer in the cache, and the reply with records."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct, field

from lightrag_jsonl.core.types import (
    Completion,
    Finish,
    Json,
    JsonlResult,
    Message,
    Picture,
    ResponseType,
)
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.llm.scheduler import QUESTION
from lightrag_jsonl.llm.thinking import without_thinking

PieceReceiver: TypeAlias = Callable[[str], Awaitable[None]]

BROKEN_OFF: Mapping[Finish, str] = {
    "filter": "a content filter of the model's server cut the answer off",
    "error": "the model's server broke the answer off",
}


class ModelRequest(Struct, frozen=True):
    """A conversation for a model to continue, with the form of the answer.

    - `prompt`: the id of the prompt, for messages of the log.
    - `names`: the entity names allowed in records, if the server of the model can enforce names.
    - `document`: the id of the only document quoted in the conversation.
    - `picture`: goes with the last message.
    - `for_reader`: an empty answer is a failure.
    - `on_piece`: receives the pieces of the answer. Once `passed_pieces` has any, a failed call
      cannot be repeated unnoticed.
    """

    prompt: str
    messages: tuple[Message, ...]
    response_type: ResponseType = "text"
    max_tokens: int | None = None
    schema: Mapping[str, Json] | None = None
    names: Sequence[str] | None = None
    priority: int = QUESTION
    document: str | None = None
    picture: Picture | None = None
    for_reader: bool = False
    on_piece: PieceReceiver | None = None
    passed_pieces: list[str] = field(default_factory=list)

    def key(self, model: str) -> bytes:
        """The cache key of the model's answer."""
        messages = self.messages
        if self.picture is not None:
            messages += (Message("picture", hashlib.sha256(self.picture.data).hexdigest()),)
        return request_key(model, messages, self.response_type, self.max_tokens)

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


class ModelReply(Struct, frozen=True):
    """A completion, new or `cached` under `key`, with the messages of the request.

    `usage` is the cost now, failed attempts included: nothing for a cached completion.
    """

    messages: tuple[Message, ...]
    completion: Completion
    key: bytes
    cached: bool
    usage: Usage = Usage()

    @property
    def text(self) -> str:
        """The whole text of the model."""
        return self.completion.text

    @property
    def text_without_thinking(self) -> str:
        """The text without the thinking at the beginning; "" without other text."""
        return without_thinking(self.text)

    @property
    def readable_text(self) -> str:
        """The text for readers: without thinking, or the whole text if there is nothing else."""
        return self.text_without_thinking or self.text

    @property
    def cut_off(self) -> bool:
        """Whether the model stopped at the token limit."""
        return self.completion.finish == "length"

    @property
    def broken_off(self) -> str:
        """Why the rest of the answer was withheld or lost; "" for a whole answer."""
        return BROKEN_OFF.get(self.completion.finish, "")


class Records(Struct, frozen=True):
    """A reply in JSONL and the records read from it."""

    reply: ModelReply
    result: JsonlResult
