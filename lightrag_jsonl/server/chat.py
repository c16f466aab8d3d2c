"""The common part of both chat protocols: indexes as models, conversations, the sources of answers."""

import contextlib
import json
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from lightrag_jsonl.core.answers import Answer, Context, answer_lines
from lightrag_jsonl.core.errors import ConfigError, LightRAGError, NotFoundError
from lightrag_jsonl.core.modes import DEFAULT_MODE, MODES, Mode
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.types import Message
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.server.indexes import Index, Indexes
from lightrag_jsonl.server.routing import Call, Stream, error_body, error_message, error_status
from lightrag_jsonl.tracing.events import AnswerChunk

AnswerPieces: TypeAlias = AsyncGenerator[str | Answer]  # of texts, with the answer at the end

EVENTS: Final = "text/event-stream"
SIDE_TASK: Final = "### Task:"  # how Open WebUI's requests for titles, tags and the like begin
SOURCES_SEPARATOR: Final = "\n\n---\n"  # between an answer and the list of its sources
SOURCE_LIST: Final = re.compile(r"\n\n---\n(?:- \[\d+\] .*(?:\n|\Z))+\Z")
FIRST_TURN: Final = re.compile(r"<chat_history>\s*(?:USER:\s*)?(.*)")
CHAT_TITLE_LENGTH: Final = 40  # characters
# A mode before a question, as users of LightRAG write it, with instructions: "/local[as a table] Who …?"
SLASH_MODE: Final = re.compile(
    rf"/(?P<mode>{'|'.join(MODES)})?(?:\[(?P<instructions>[^\]\n]*)\])?(?<!/)\s+(?=\S)",
    re.IGNORECASE,
)


class ChatMessage(Struct):
    """A turn of a conversation; of a `content` in parts, the texts are read."""

    role: str
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """The text of the turn, without the list of sources added to an answer by the server."""
        content = self.content or ""
        if not isinstance(content, str):
            content = "\n".join(str(part.get("text", "")) for part in content)
        if self.role == "assistant":
            content = SOURCE_LIST.sub("", content)
        return content


def model_names(indexes: Indexes) -> list[str]:
    """The names of the models: each index, and each index with each mode."""
    names: list[str] = []
    for index in indexes.by_name:
        names.append(index)
        names += [f"{index}:{mode}" for mode in MODES]
    return names


def find_model(indexes: Indexes, name: str) -> tuple[Index, Mode]:
    """The index and the mode for the name of a model; `NotFoundError` for an unknown model."""
    index_name, _, mode_name = name.partition(":")
    if mode_name in ("", "latest"):
        mode_name = DEFAULT_MODE
    mode = next((mode for mode in MODES if mode == mode_name), None)
    if index_name not in indexes.by_name or mode is None:
        raise NotFoundError(
            f"no such model: {name}; a model is the name of an index, or index:mode"
        )
    return indexes.by_name[index_name], mode


async def answer_conversation(
    call: Call,
    turns: Sequence[ChatMessage],
    *,
    media: str,
    write: Callable[[str | Answer], str],
    whole: Callable[[str, Answer], object],
) -> object:
    """The answer to the last turn of the user: in pieces by `write`, or at once by `whole`.

    An error before the first piece has the status of an error.
    """
    index, mode = find_model(call.indexes, call.body.model)
    question, param = last_question(turns, mode)
    if question.startswith(SIDE_TASK):
        pieces = _side_task(index, question)
    else:
        pieces = _answer_from(index, question, param)
    with contextlib.ExitStack() as slot:
        slot.enter_context(call.indexes.question(question))
        if not call.body.stream:
            return await _whole_answer(pieces, whole)
        first_piece = await anext(pieces)
        parts = _stream_parts(call, first_piece, pieces, media=media, write=write)
        return Stream(parts, media, slot.pop_all())


def evidence_of(answer: Answer) -> dict[str, object]:
    """The fields of an answer beside the protocol: the sources, and the verdicts on claims."""
    return {"sources": answer.citations, "claims": answer.claims, "uncited": answer.uncited}


def finish_reason(answer: Answer) -> str:
    """Why an answer ends, in the words of both protocols."""
    return "length" if answer.truncated else "stop"


def stream_part(media: str, value: object) -> str:
    """A value as a part of a stream: a server-sent event, or a line of JSON."""
    text = msgspec.json.encode(value).decode()
    if media == EVENTS:
        return f"data: {text}\n\n"
    return f"{text}\n"


def last_question(turns: Sequence[ChatMessage], mode: Mode) -> tuple[str, QueryParam]:
    """The last turn of the user, with earlier turns as history and system turns as instructions."""
    positions = [position for position, turn in enumerate(turns) if turn.role == "user"]
    if not positions:
        raise ConfigError("messages must contain a user message")
    question_position = positions[-1]
    history: list[Message] = []
    for turn in turns[:question_position]:
        if turn.role == "user":
            earlier_question, _, _ = _without_slash_mode(turn.text)
            history.append(Message("user", earlier_question))
        elif turn.role == "assistant":
            history.append(Message("assistant", turn.text))
    instructions = [turn.text for turn in turns if turn.role in ("system", "developer")]
    question, asked_mode, own_instructions = _without_slash_mode(turns[question_position].text)
    instructions.append(own_instructions)
    param = QueryParam(
        mode=asked_mode or mode,
        user_prompt="\n".join(filter(None, instructions)),
        conversation_history=history,
    )
    return question, param


def _without_slash_mode(text: str) -> tuple[str, Mode | None, str]:
    """A question without leading mode and instructions, the mode, and the instructions."""
    prefix = SLASH_MODE.match(text)
    if prefix is None:
        return text, None, ""
    name = (prefix["mode"] or "").lower()
    mode = next((mode for mode in MODES if mode == name), None)
    return text[prefix.end() :], mode, prefix["instructions"] or ""


async def _whole_answer(pieces: AnswerPieces, whole: Callable[[str, Answer], object]) -> object:
    async with contextlib.aclosing(pieces):
        collected = [piece async for piece in pieces]
    text = "".join(piece for piece in collected if isinstance(piece, str))
    answer = collected[-1]
    assert isinstance(answer, Answer)
    return whole(text, answer)


async def _stream_parts(
    call: Call,
    first_piece: str | Answer,
    pieces: AnswerPieces,
    *,
    media: str,
    write: Callable[[str | Answer], str],
) -> AsyncGenerator[str]:
    try:
        async with contextlib.aclosing(pieces):
            yield write(first_piece)
            async for piece in pieces:
                yield write(piece)
    except LightRAGError as error:
        _, code = error_status(error)
        message = error_message(error, call.indexes)
        body = error_body(code, message) if media == EVENTS else {"error": message}
        yield stream_part(media, body)


async def _answer_from(index: Index, question: str, param: QueryParam) -> AnswerPieces:
    """The answer of an index, followed by the sources and by the claims without a source."""
    async with contextlib.aclosing(index.ask(question, param)) as events:
        async for event in events:
            if isinstance(event, AnswerChunk) and event.text:
                yield event.text
            elif isinstance(event, Answer):
                if sources := "".join(f"- {line}\n" for line in answer_lines(event)):
                    yield SOURCES_SEPARATOR + sources
                yield event


async def _side_task(index: Index, prompt: str) -> AnswerPieces:
    """The answer to a chat program's own request, such as for a title: without the index."""
    engine = index.rag.engine
    meter = UsageMeter()
    if engine.client.has_model("answer"):
        reply = await engine.client.chat([Message("user", prompt)], meter)
        text = reply.readable_text
    else:
        text = json.dumps(_side_task_without_model(prompt), ensure_ascii=False)
    yield text
    yield Answer(text, context=Context(language=engine.language), usage=meter.spent)


def _side_task_without_model(prompt: str) -> dict[str, object]:
    """A title from the first words of the conversation; no tags, follow-ups or queries."""
    if '"title"' in prompt:
        match = FIRST_TURN.search(prompt)
        title = match[1][:CHAT_TITLE_LENGTH] if match else "…"
        return {"title": title}
    return {name: [] for name in ("tags", "follow_ups", "queries") if f'"{name}"' in prompt}
