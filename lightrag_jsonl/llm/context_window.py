"""The window of a model: the most tokens of a request and an answer together."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from msgspec import Struct

from lightrag_jsonl.core.options import IndexOptions, QueryParam
from lightrag_jsonl.core.protocols import LLM
from lightrag_jsonl.core.types import Message

PROMPT_TOKENS = 800  # tokens of the longest packaged prompt without its text, with the chat format
USUAL_ANSWER = 2  # usual tokens of an answer for each token of a chunk
SHORTEST_CHUNK = 50  # tokens; smaller ones have no context, and cost the instructions all the same
SHORTEST_ANSWER = 200  # tokens; two or three records
LEAST_ROOM = 4  # an answer should have a fourth of the window
ANSWER_TO_A_QUESTION = 700  # tokens
TOKENIZER_MARGIN = 1.1  # tokens of another tokenizer for each token counted here
MESSAGE_OVERHEAD = 4  # tokens of the chat format around a message


class ContextWindow(Struct, frozen=True):
    """The size of a model's window, and a counter of tokens; an unknown size is None."""

    tokens: int | None
    count: Callable[[str], int]

    def room(self, messages: Iterable[Message]) -> int | None:
        """The remaining tokens for the answer to a conversation; None if the window is unknown."""
        if self.tokens is None:
            return None
        used = sum(self.count(turn.content) + MESSAGE_OVERHEAD for turn in messages)
        return self.tokens - int(TOKENIZER_MARGIN * used)

    def has_room(self, messages: Iterable[Message]) -> bool:
        """Whether a conversation leaves enough room for an answer."""
        room = self.room(messages)
        return room is None or self.tokens is None or room >= self.tokens // LEAST_ROOM

    def answer_limit(self, messages: Iterable[Message], limit: int | None) -> int | None:
        """The most tokens of an answer: the lower of the `limit` and the room."""
        room = self.room(messages)
        if room is None:
            return limit
        room = max(room, SHORTEST_ANSWER)  # the server may count fewer tokens, or refuses
        return room if limit is None else min(room, limit)


def context_tokens(llm: LLM | None) -> int | None:
    """The window of a model, if it says so."""
    size = getattr(llm, "context_tokens", None)
    return size if isinstance(size, int) else None


def fitted_options(
    options: IndexOptions, *, extract: int | None, summarize: int | None
) -> IndexOptions:
    """The options, with chunks and groups of descriptions within the windows of the two models."""
    if extract is not None:
        longest = max(SHORTEST_CHUNK, (extract - PROMPT_TOKENS) // (1 + USUAL_ANSWER))
        if longest < options.chunk_tokens:
            overlap = min(options.chunk_overlap, longest // 12)
            options = replace(options, chunk_tokens=longest, chunk_overlap=overlap)
    if summarize is not None:
        group_tokens = min(options.summarize_group_tokens, max(SHORTEST_CHUNK, summarize // 2))
        options = replace(options, summarize_group_tokens=group_tokens)
    return options


def fitted_param(param: QueryParam, window: int) -> QueryParam:
    """The settings of a question, with a context that leaves room for instructions and answer."""
    budget = int((window - PROMPT_TOKENS - ANSWER_TO_A_QUESTION) / TOKENIZER_MARGIN)
    budget = max(SHORTEST_CHUNK, budget)
    if budget >= param.max_total_tokens:
        return param
    return replace(param, max_total_tokens=budget)
