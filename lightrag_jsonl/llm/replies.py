"""The reply of a model: the text with and without thinking, the way it ended, the records."""

from collections.abc import Mapping
from dataclasses import dataclass

from lightrag_jsonl.core.types import Completion, Finish, JsonlResult, Message
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.llm.thinking import without_thinking

BROKEN_OFF: Mapping[Finish, str] = {
    "filter": "a content filter of the model's server cut the answer off",
    "error": "the model's server broke the answer off",
}


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A completion, new or `cached` under `key`, with the messages of its request.

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
        """The text without the thinking at its beginning; "" if there is nothing else."""
        return without_thinking(self.text)

    @property
    def readable_text(self) -> str:
        """The text for readers: without thinking, or the whole text if there is nothing else."""
        return self.text_without_thinking or self.text

    @property
    def cut_off(self) -> bool:
        """Whether the model stopped at its token limit."""
        return self.completion.finish == "length"

    @property
    def broken_off(self) -> str:
        """Why the rest of the answer was withheld or lost; "" for a whole answer."""
        return BROKEN_OFF.get(self.completion.finish, "")


@dataclass(frozen=True, slots=True)
class Records:
    """A reply in JSONL and the records read from it."""

    reply: ModelReply
    result: JsonlResult
