"""`query` and `retrieve`: ask questions of an index."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Final

import click

from lightrag_jsonl import Answer, Context, LightRAG, QueryParam
from lightrag_jsonl.cli.group import CommandOutput, index_command
from lightrag_jsonl.cli.options import (
    NON_NEGATIVE,
    POSITIVE,
    Parameters,
    collected,
    mode,
    models,
    option,
    read_stdin,
    take,
)
from lightrag_jsonl.cli.output import (
    LineWrap,
    in_words,
    priced_words,
    printable,
    table,
    terminal_columns,
    wrapped,
)
from lightrag_jsonl.core.answers import answer_lines, with_invented_marked
from lightrag_jsonl.core.languages import Language, known_language
from lightrag_jsonl.core.types import Json, ModelTask
from lightrag_jsonl.indexing.loading import path_id
from lightrag_jsonl.storage.status import reads_when_asked
from lightrag_jsonl.text.strings import counted
from lightrag_jsonl.tracing import events

CONDITION: Final = re.compile(
    r"(?P<key>[^=<>!]+)(?P<sign>>=|<=|!=|=|>|<)\s*(?P<value>.*)", re.DOTALL
)
FILTER_OPERATORS: Final = {
    "=": "$in",
    "!=": "$nin",
    ">=": "$gte",
    "<=": "$lte",
    ">": "$gt",
    "<": "$lt",
}
PLAIN_VALUE: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?|true|false")
TEXT_FIELDS: Final = frozenset({"id", "title", "source", "date"})
SOURCE_INDENT: Final = "    "  # of the further lines of a source
QUESTION_TASKS: Final[tuple[ModelTask, ...]] = ("keywords", "select", "answer")
NOTES: Final[Mapping[Language, Mapping[str, str]]] = {  # below an answer
    "en": {
        "incomplete": "note: the answer is incomplete: the model reached its token limit, or a content filter or "
        "an error of its server cut it off",
        "invented": "note: {} in the answer: no such source was sent to the model",
        "read": "read for this question: {chunks}, {tokens:,} tokens",
        "unread": "note: not all chunks found could be read: {}",
        "none_selected": "note: the model selected none of the relations; only directly matched passages were used",
    },
    "zh": {
        "incomplete": "注意：回答不完整，模型达到了 token 上限，或被内容过滤器、服务器错误截断",
        "invented": "注意：回答中的 {} 没有对应的来源，并未提供给模型",
        "read": "为此问题阅读了 {number:,} 个段落，用去 {tokens:,} 个 token",
        "unread": "注意：检索到的段落未能全部阅读：{}",
        "none_selected": "注意：模型没有选择任何关系，只使用了直接检索到的段落",
    },
}
QUERY_FIELDS: Final = tuple(field.name for field in fields(QueryParam))


def _where(
    context: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> dict[str, dict[str, list[Json]]]:
    """The conditions in the form of `QueryParam.where`; repeated conditions on a key add values, and so does the
    id of a file for its path, as in `full_ids`.
    """
    where: dict[str, dict[str, list[Json]]] = {}
    for condition in value:
        match = CONDITION.fullmatch(condition)
        if match is None:
            raise click.BadParameter(f"{condition!r} is not KEY=VALUE")
        key = match["key"].strip()
        text = match["value"]
        operator = FILTER_OPERATORS[match["sign"]]
        values = where.setdefault(key, {}).setdefault(operator, [])
        values.append(text)
        if key == "id" and operator in ("$in", "$nin"):
            values.append(path_id(Path(text)))
        is_plain = PLAIN_VALUE.fullmatch(text)
        if is_plain and key not in TEXT_FIELDS:  # "2024" may be a number or a text
            values.append(json.loads(text))
    return where


def _question(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> str:
    is_on_stdin = value in ((), ("-",))
    text = read_stdin() if is_on_stdin else " ".join(value)
    if not text.strip():
        raise click.UsageError("the question is empty")
    return text.strip()


def _take_query_param(parameters: Parameters) -> QueryParam:
    return QueryParam(**take(parameters, QUERY_FIELDS))


question_options = collected(
    "param",
    _take_query_param,
    click.argument("question", nargs=-1, callback=_question),
    mode,
    option("--top-k", "Entities and relations to look up (40).", NON_NEGATIVE, default=40),
    option("--chunk-top-k", "Chunks to look up (20).", POSITIVE, default=20),
    option("--max-tokens max_total_tokens", "Context tokens (30000).", POSITIVE, default=30_000),
    option(
        "--where",
        "Only documents with this id, title, source, date or other metadata; may be repeated. "
        "Also KEY>=VALUE, <=, >, < and !=; KEY=… twice means either, KEY!=… twice neither.",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_where,
    ),
    option(
        "--read-chunks",
        "In an index of `insert --read asked`: how many of the best chunks are read first (8).",
        NON_NEGATIVE,
    ),
    option(
        "--as-of",
        "A date such as 2021-06: without later documents, and without what did not hold then.",
        metavar="DATE",
    ),
)


@index_command(
    models,
    question_options,
    option("--response-type", 'The form of the answer, such as "One Paragraph".'),
    option("--user-prompt", "A further instruction for the answer.", default=""),
    option(
        "--ask-again",
        "With --check: ask once more if claims of the answer are unsupported.",
        is_flag=True,
    ),
    option(
        "--explain --explainable explain",
        "Let the model select the relations and give reasons; print each step to stderr.",
        is_flag=True,
    ),
)
def query_command(rag: LightRAG, question: str, param: QueryParam, explain: bool) -> CommandOutput:
    """Answer a QUESTION, and show where the answer comes from.

    Without a QUESTION, or with -, the question is read from stdin. The model is the model of the
    index, unless --llm names another; without a model, the answer is put together from sentences of
    the texts. With several -w, the indexes are asked as one. More options, also --check:
    `lightrag-jsonl help models`.

    \b
    Examples:
      lightrag-jsonl query -w kb --mode global "What is the book about?"
      lightrag-jsonl query -w kb --where 'date>=2024-01-01' "Who came?"
    """
    listener = None
    if explain:
        from lightrag_jsonl.cli.explain import event_printer

        listener = event_printer(rag)
    as_json = click.get_current_context().params["as_json"]
    prints_events = explain or param.ask_again  # as they happen, and not amid the answer
    if as_json or prints_events:
        answer = rag.query(question, param, explain=explain, listener=listener)
        if not as_json:
            text = with_invented_marked(answer.text, answer.invented)
            click.echo(wrapped(text), nl=False)
    else:
        if reads_when_asked(rag.admin.settings()) and sys.stderr.isatty():
            listener = _reading_printer()
        pieces = rag.stream(question, param, listener=listener)
        lines = LineWrap(terminal_columns())
        for piece in pieces:
            click.echo(printable(lines.feed(piece)), nl=False)
        click.echo(printable(lines.end()), nl=False)
        answer = pieces.answer
    sources = [wrapped(line, indent=SOURCE_INDENT) for line in answer_lines(answer)]
    display = "\n".join(["", "", *sources]) if sources else b"\n"
    notes = list(_answer_notes(rag, answer.context, answer))
    return CommandOutput(answer, display, notes=notes)


@index_command(
    models,
    question_options,
    option("--prompt", "Print the context as it is sent to the model.", is_flag=True),
)
def retrieve_command(
    rag: LightRAG, question: str, param: QueryParam, prompt: bool
) -> CommandOutput:
    """Show what is retrieved for a QUESTION, best first."""
    context = rag.retrieve(question, param)
    nothing = ""
    if context.empty:
        nothing = rag.run(
            lambda loop_rag: loop_rag.engine.retrieval.writer.no_answer(context, param)
        )
    display = context.prompt if prompt else _context_tables(context, nothing)
    return CommandOutput(context, display, notes=list(_answer_notes(rag, context)))


def _reading_printer() -> Callable[[events.Event], None]:
    """A listener for printing the progress of the reading for a question to stderr, on one line."""

    def print_event(event: events.Event) -> None:
        if isinstance(event, events.ReadingProgress):
            click.echo(f"\rreading {event.chunks_done} of {event.chunks_known}", err=True, nl=False)
        elif isinstance(event, events.ChunksRead):
            click.echo("\r\033[K", err=True, nl=False)

    return print_event


def _answer_notes(rag: LightRAG, context: Context, answer: Answer | None = None) -> Iterator[str]:
    """Hidden faults of an answer or a context, and what it cost."""
    notes = NOTES[known_language(context.language)]
    if answer is not None and answer.truncated:
        yield notes["incomplete"]
    if answer is not None and answer.invented:
        numbers = ", ".join(f"[{number}]" for number in answer.invented)
        yield notes["invented"].format(numbers)
    reading = context.reading
    if reading.chunk_ids:
        tokens = reading.usage.input_tokens + reading.usage.output_tokens
        number = len(reading.chunk_ids)
        yield notes["read"].format(number=number, chunks=counted(number, "chunks"), tokens=tokens)
    if answer is None and reading.problem:
        yield notes["unread"].format(reading.problem)
    if answer is not None and answer.usage.calls:
        yield f"used: {priced_words(rag, answer.usage, QUESTION_TASKS)}"
    if context.none_selected:
        yield notes["none_selected"]


def _context_tables(context: Context, nothing: str) -> str:
    """What was found as tables; the words for nothing if that is so."""
    chunks: list[dict[str, object]] = []
    for chunk in context.chunks:
        title = context.documents.get(chunk.document_id)
        chunks.append({**asdict(chunk), "document": title})
    tables = {
        "entities": table(context.entities, "score", "name", "type", "description"),
        "relations": table(context.relations, "score", "source", "keywords", "target"),
        "chunks": table(chunks, "score", "document", "page", "text"),
    }
    parts = [f"{name}\n{rows}\n" for name, rows in tables.items() if rows]
    if not parts:
        parts.append(f"{nothing}\n")
    size = {"tokens": context.tokens, "over budget": asdict(context.dropped)}
    parts.append(in_words(size))
    return "\n".join(parts)
