"""What both chat protocols share: models that are indexes, conversations, and the answer's sources."""

import contextlib
import json
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from lightrag_jsonl.core.errors import ConfigError, LightRAGError, NotFoundError
from lightrag_jsonl.core.modes import MODES
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.types import Answer, Context, Message, Mode, source_lines
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.server.indexes import Index, Indexes
from lightrag_jsonl.server.routing import Call, Stream, described, error_body
from lightrag_jsonl.tracing.events import AnswerChunk

Pieces: TypeAlias = AsyncGenerator[str | Answer]

EVENTS: Final = "text/event-stream"
SIDE_TASK: Final = "### Task:"  # how Open WebUI's requests for titles, tags and the like begin
SOURCES: Final = "\n\n---\n"  # between an answer and the list of its sources
SOURCE_LIST: Final = re.compile(r"\n\n---\n(?:- \[\d+\] .*(?:\n|\Z))+\Z")
FIRST_TURN: Final = re.compile(r"<chat_history>\s*(?:USER:)?\s*(.*)")
TITLE_LENGTH: Final = 40  # characters


class ChatMessage(Struct):
    """One turn; `content` is a text, or parts of which those of text are read."""

    role: str
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """The text of the turn, without the list of sources that the server added to it."""
        content = self.content or ""
        if not isinstance(content, str):
            content = "\n".join(str(part.get("text", "")) for part in content)
        return SOURCE_LIST.sub("", content) if self.role == "assistant" else content


def model_names(indexes: Indexes) -> list[str]:
    """Each index, and each with a mode."""
    names = indexes.by_name
    return [name for index in names for name in (index, *(f"{index}:{mode}" for mode in MODES))]


def find_model(indexes: Indexes, name: str) -> tuple[Index, Mode]:
    """The index and the mode that a model's name stands for; `NotFoundError` if there is none."""
    index, _, mode = name.partition(":")
    mode = "mix" if mode in ("", "latest") else mode
    chosen = [one for one in MODES if one == mode]
    if index not in indexes.by_name or not chosen:
        raise NotFoundError(
            f"no such model: {name}; a model is the name of an index, or index:mode"
        )
    return indexes.by_name[index], chosen[0]


async def respond(
    call: Call,
    turns: Sequence[ChatMessage],
    media: str,
    write: Callable[[str | Answer], str],
    whole: Callable[[str, Answer], object],
) -> object:
    """The answer to the last turn of the user: in pieces as `write` writes them, or as a `whole`.

    An error before the first piece has the status of an error.
    """
    index, mode = find_model(call.indexes, call.body.model)
    question, param = _asked(turns, mode)
    is_side_task = question.startswith(SIDE_TASK)
    pieces = _side_task(index, question) if is_side_task else _from_index(index, question, param)
    with contextlib.ExitStack() as slot:
        slot.enter_context(call.indexes.question(question))
        if not call.body.stream:
            async with contextlib.aclosing(pieces):
                *texts, last = [piece async for piece in pieces]
            assert isinstance(last, Answer)
            return whole("".join(map(str, texts)), last)
        first = await anext(pieces)
        written = _written(call, first, pieces, media, write)
        return Stream(written, media, slot.pop_all())


def encoded(media: str, value: object) -> str:
    """A value as one part of a stream: a server-sent event, or a line of JSON."""
    text = msgspec.json.encode(value).decode()
    return f"data: {text}\n\n" if media == EVENTS else f"{text}\n"


def _asked(turns: Sequence[ChatMessage], mode: Mode) -> tuple[str, QueryParam]:
    """The last turn of the user, with those before it as history and the system's as wishes."""
    places = [place for place, turn in enumerate(turns) if turn.role == "user"]
    if not places:
        raise ConfigError("messages must contain a user message")
    earlier = [turn for turn in turns[: places[-1]] if turn.role in ("user", "assistant")]
    history = [Message(turn.role, turn.text) for turn in earlier]
    wishes = "\n".join(turn.text for turn in turns if turn.role in ("system", "developer"))
    param = QueryParam(mode=mode, user_prompt=wishes, conversation_history=history)
    return turns[places[-1]].text, param


async def _written(
    call: Call,
    first: str | Answer,
    pieces: Pieces,
    media: str,
    write: Callable[[str | Answer], str],
) -> AsyncGenerator[str]:
    try:
        async with contextlib.aclosing(pieces):
            yield write(first)
            async for piece in pieces:
                yield write(piece)
    except LightRAGError as error:
        _, code, words = described(error, call.indexes)
        yield encoded(media, error_body(code, words) if media == EVENTS else {"error": words})


async def _from_index(index: Index, question: str, param: QueryParam) -> Pieces:
    async with contextlib.aclosing(index.ask(question, param)) as items:
        async for item in items:
            if isinstance(item, AnswerChunk) and item.text:
                yield item.text
            elif isinstance(item, Answer):
                if item.citations:
                    listed = source_lines(item.citations, item.context.language)
                    yield SOURCES + "".join(f"- {line}\n" for line in listed)
                yield item


async def _side_task(index: Index, prompt: str) -> Pieces:
    """What a chat program asks about a conversation; that is no question for the index."""
    meter = UsageMeter()
    if index.rag.engine.client.has_model:
        reply = await index.rag.engine.client.chat([Message("user", prompt)], meter)
        text = reply.readable_text
    else:
        text = json.dumps(_without_model(prompt), ensure_ascii=False)
    yield text
    yield Answer(text, context=Context(language=index.rag.language), usage=meter.spent)


def _without_model(prompt: str) -> dict[str, object]:
    """A title from the first words of the conversation; no tags, follow-ups or queries."""
    if '"title"' in prompt:
        found = FIRST_TURN.search(prompt)
        return {"title": found[1][:TITLE_LENGTH] if found else "…"}
    return {name: [] for name in ("tags", "follow_ups", "queries") if f'"{name}"' in prompt}
