"""`query` and `retrieve`: ask questions of an index."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lightrag_jsonl.cli.explaining import Live
from lightrag_jsonl.cli.opening import NO_MODEL, asking
from lightrag_jsonl.cli.options import (
    FILE,
    Setup,
    as_json,
    mode,
    models,
    number_option,
    with_options,
)
from lightrag_jsonl.cli.output import emit_json, one_line, printable, say
from lightrag_jsonl.cli.sources import read_stdin
from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.places import told_apart, told_place
from lightrag_jsonl.types import Json, Message

if TYPE_CHECKING:
    from lightrag_jsonl.options import QueryParam
    from lightrag_jsonl.sync import LightRAG, Stream
    from lightrag_jsonl.types import Answer, Context

DESCRIPTION_COLUMNS = 100
CONDITION = re.compile(r"(?P<key>[^=<>!]+?)\s*(?P<sign>>=|<=|!=|=|>|<)\s*(?P<value>.*)", re.DOTALL)
EQUAL = "="
LISTED = frozenset({EQUAL, "!="})  # may be repeated for a key: each adds a value
SIGNS = {">=": "$gte", "<=": "$lte", "!=": "$ne", ">": "$gt", "<": "$lt"}
PLAIN = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?|true|false")  # fits SQLite's numbers
COLUMNS = frozenset({"id", "title", "source", "date"})  # always text, also of a number's form
COUNT = click.IntRange(min=0, max=1_000_000)  # limited, since memory for so many is reserved
ROLES = ("system", "user", "assistant")


def _history(
    context: click.Context, option: click.Parameter, value: Path | None
) -> tuple[Message, ...]:
    if value is None:
        return ()
    try:
        turns = json.loads(value.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{value} is not JSON: {error}") from error
    with contextlib.suppress(TypeError, KeyError):
        messages = tuple(Message(turn["role"], turn["content"]) for turn in turns)
        if all(one.role in ROLES and isinstance(one.content, str) for one in messages):
            return messages
    raise ConfigError(
        f'{value} must hold a list of {{"role": {" | ".join(ROLES)}, "content": text}}'
    )


def _where(
    context: click.Context, option: click.Parameter, value: tuple[str, ...]
) -> dict[str, Json]:
    asked: dict[str, dict[str, list[Json]]] = {}
    for condition in value:
        match = CONDITION.fullmatch(condition)
        if match is None:
            raise click.BadParameter(f"{condition!r} is not KEY=VALUE")
        key, sign = match["key"].strip(), match["sign"]
        known = asked.setdefault(key, {})
        repeated = sign in known and sign not in LISTED
        if repeated or (known and (sign == EQUAL) != (EQUAL in known)):
            raise click.BadParameter(
                f"{condition!r} does not go with an earlier condition on {key!r}"
            )
        known.setdefault(sign, []).extend(_choices(key, match["value"]))
    return {key: _wanted(known) for key, known in asked.items()}


def _wanted(choices: Mapping[str, list[Json]]) -> Json:
    """The condition on one field in the form of `QueryParam.where`, from its values by sign."""
    return choices.get(EQUAL) or {SIGNS[sign]: values for sign, values in choices.items()}


def _choices(key: str, text: str) -> list[Json]:
    """The forms a value may have in the metadata: "2024" may be a number or a text."""
    return [json.loads(text), text] if key not in COLUMNS and PLAIN.fullmatch(text) else [text]


QUESTION_OPTIONS = (
    mode,
    number_option("--top-k", type=COUNT, help="Entities and relations to look up (default 40)."),
    number_option("--chunk-top-k", type=COUNT, help="Chunks to look up (default 20)."),
    number_option(
        "--max-tokens", "max_total_tokens", help="Most tokens in the context (default 30000)."
    ),
    click.option(
        "--where",
        multiple=True,
        callback=_where,
        metavar="KEY=VALUE",
        help="Only documents with this id, title, source, date or other metadata; may be repeated. "
        "Also KEY>=VALUE, <=, >, < and !=; KEY=… twice means either, KEY!=… twice neither.",
    ),
    click.option(
        "--history",
        "conversation_history",
        type=FILE,
        callback=_history,
        metavar="FILE",
        help='The conversation so far: JSON, a list of {"role", "content"}.',
    ),
)


@click.command()
@click.argument("question", nargs=-1)
@models
@with_options(QUESTION_OPTIONS)
@click.option("--response-type", metavar="TEXT", help='Its form, such as "One Paragraph".')
@click.option("--user-prompt", metavar="TEXT", help="A further instruction for the answer.")
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Print the answer as it is written (the default on a terminal).",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Have the model choose the facts and say why; print each step to stderr as it happens.",
)
@as_json
def query(
    setup: Setup,
    question: tuple[str, ...],
    stream: bool | None,
    explain: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Answer a QUESTION, and show where the answer comes from.

    Without a QUESTION, or with -, it is read from stdin. Without --llm the answer is put
    together from sentences of the texts.

    \b
    Examples:
      lightrag-jsonl query -w kb "Who was Scrooge's partner?"
      lightrag-jsonl query -w kb --mode global --llm gpt-4o-mini "What is the book about?"
      lightrag-jsonl query -w kb --where source=minutes.txt --where 'date>=2024-01-01' "Who came?"
      echo "乔峰的身世是什么？" | lightrag-jsonl query -w kb
    """
    if given["mode"] == "bypass" and setup.llm in (None, NO_MODEL):
        raise click.UsageError("--mode bypass asks only a model: name one with --llm")
    if stream and as_json:
        raise click.UsageError(
            "--json prints the answer once it is complete: it cannot be used with --stream"
        )
    text, param = _question(question), _param(given)
    if stream is None:
        stream = sys.stdout.isatty()
    with asking(setup) as rag:
        listener = Live(setup.working_dir) if explain else None
        if stream and not as_json:
            answer = _stream(rag.stream(text, param, explain=explain, listener=listener))
        else:
            answer = rag.query(text, param, explain=explain, listener=listener)
            if as_json:
                emit_json(answer)
            else:
                say(answer)
        if not as_json:
            _tell_faults(answer)
        _tell_why_nothing(rag, answer.context, param)


@click.command()
@click.argument("question", nargs=-1)
@models
@with_options(QUESTION_OPTIONS)
@click.option("--prompt", is_flag=True, help="Print the context as a model would read it.")
@as_json
def retrieve(
    setup: Setup, question: tuple[str, ...], prompt: bool, as_json: bool, **given: Any
) -> None:
    """Show what is found for a QUESTION, best first.

    \b
    Examples:
      lightrag-jsonl retrieve -w kb --mode local --top-k 10 "Scrooge and Marley"
      lightrag-jsonl retrieve -w kb --prompt "Who was Scrooge's partner?"
    """
    text, param = _question(question), _param(given)
    with asking(setup) as rag:
        context = rag.retrieve(text, param)
        if as_json:
            emit_json(context)
        elif prompt:
            say(context.prompt)
        else:
            _show(context)
        _tell_why_nothing(rag, context, param)


def _question(words: Sequence[str]) -> str:
    """The arguments as one text, or else stdin."""
    if not words or tuple(words) == ("-",):
        if sys.stdin.isatty():
            raise click.UsageError("no question: give it as an argument, or through stdin")
        words = (read_stdin(),)
    text = " ".join(words).strip()
    if not text:
        raise click.UsageError("the question is empty")
    return text


def _param(given: dict[str, Any]) -> QueryParam:
    from lightrag_jsonl.options import QueryParam

    return QueryParam(**{name: value for name, value in given.items() if value is not None})


# ── for people ──────────────────────────────────────────────────────────────────


def _stream(pieces: Stream) -> Answer:
    for piece in pieces:
        click.echo(printable(piece), nl=False)
        sys.stdout.flush()
    say(_sources(pieces.answer))
    return pieces.answer


def _tell_faults(answer: Answer) -> None:
    """Point out invented citations and a truncated answer, which cannot be seen in the text."""
    if answer.truncated:
        say("note: the answer is not complete: the model reached its token limit", err=True)
    if answer.invented:
        numbers = ", ".join(f"[{number}]" for number in answer.invented)
        say(f"note: {numbers} in the answer: no such source was shown to the model", err=True)


def _tell_why_nothing(rag: LightRAG, context: Context, param: QueryParam) -> None:
    """If nothing was found because nothing could be found, say why on stderr."""
    if not context.empty or param.mode == "bypass":
        return
    documents = rag.documents()
    known = sorted(COLUMNS) + sorted({key for one in documents for key in one.metadata} - COLUMNS)
    unknown = [key for key in param.where if key not in known]
    if any((context.dropped.entities, context.dropped.relations, context.dropped.chunks)):
        say(f"note: what was found does not fit into {param.max_total_tokens:,} tokens", err=True)
    elif not any(one.chunks for one in documents):
        say("note: no document of this index has been read yet", err=True)
    elif unknown:
        say(
            f"note: no document has {', '.join(map(repr, unknown))}; "
            f"--where can ask for {', '.join(known)}",
            err=True,
        )
    elif param.where:
        say("note: only documents that match --where were searched", err=True)


def _sources(answer: Answer) -> str:
    """The part of a printed answer after its text."""
    return str(answer).removeprefix(answer.text)


def _show(context: Context) -> None:
    _list(
        "entities", ((e.score, f"{e.name} ({e.type}): {e.description}") for e in context.entities)
    )
    relations = (
        (r.score, f"{r.source} — {r.predicate} — {r.target} (weight {r.weight:g}): {r.description}")
        for r in context.relations
    )
    _list("relations", relations)
    names = told_apart(context.documents.items())
    chunks = []
    for chunk in context.chunks:
        document = names.get(chunk.document_id, chunk.document_id)
        where = told_place(document, chunk.page, chunk.start, chunk.end, context.language)
        chunks.append((chunk.score, f"[{where}] {chunk.text}"))
    _list("chunks", chunks)
    dropped = context.dropped
    if context.empty:
        say("nothing was found")
    say(
        f"{context.tokens:,} tokens; left out for lack of room: {dropped.entities} entities, "
        f"{dropped.relations} relations, {dropped.chunks} chunks"
    )


def _list(title: str, items: Iterable[tuple[float, str]]) -> None:
    for number, (score, text) in enumerate(items, 1):
        if number == 1:
            say(title)
        say(f"{number:4}  {score:6.3f}  {one_line(text, DESCRIPTION_COLUMNS)}")
