"""`query`, `retrieve` and `eval`: ask questions of an index."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lightrag_jsonl.cli.explain import event_printer
from lightrag_jsonl.cli.opening import NO_MODEL, llm_name, open_for_questions, require_index
from lightrag_jsonl.cli.options import (
    FILE,
    TARGET,
    Setup,
    as_json,
    mode,
    models,
    number_option,
    with_options,
)
from lightrag_jsonl.cli.output import (
    Reply,
    counted,
    emit,
    emit_json,
    one_line,
    printable,
    replying,
    table,
)
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.options import MODES, QueryParam
from lightrag_jsonl.core.types import Answer, Context, Json, Mode, format_position, unique_labels

if TYPE_CHECKING:
    from lightrag_jsonl.sync import LightRAG

DESCRIPTION_COLUMNS = 100
CONDITION = re.compile(r"(?P<key>[^=<>!]+?)\s*(?P<sign>>=|<=|!=|=|>|<)\s*(?P<value>.*)", re.DOTALL)
OPERATORS = {"=": "$in", "!=": "$nin", ">=": "$gte", "<=": "$lte", ">": "$gt", "<": "$lt"}
PLAIN = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?|true|false")
TEXT_FIELDS = frozenset({"id", "title", "source", "date"})
COUNT = click.IntRange(min=0, max=1_000_000)
GRAPH_MODES = tuple(one for one in MODES if one not in ("bypass", "naive"))


def _history(
    context: click.Context, option: click.Parameter, value: Path | None
) -> Sequence[Mapping[str, str]]:
    if value is None:
        return ()
    try:
        turns = json.loads(value.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{value} is not JSON: {error}") from error
    if not isinstance(turns, list):
        raise ConfigError(f'{value} must hold a list of {{"role": …, "content": …}}')
    return turns


def _where(
    context: click.Context, option: click.Parameter, value: tuple[str, ...]
) -> dict[str, dict[str, list[Json]]]:
    """The conditions in the form of `QueryParam.where`: repeated ones on a key add values."""
    where: dict[str, dict[str, list[Json]]] = {}
    for condition in value:
        match = CONDITION.fullmatch(condition)
        if match is None:
            raise click.BadParameter(f"{condition!r} is not KEY=VALUE")
        key, text = match["key"].strip(), match["value"]
        values: list[Json] = [text]
        if key not in TEXT_FIELDS and PLAIN.fullmatch(text):  # "2024" may be a number or a text
            values.append(json.loads(text))
        where.setdefault(key, {}).setdefault(OPERATORS[match["sign"]], []).extend(values)
    return where


QUESTION_OPTIONS = (
    mode,
    number_option("--top-k", type=COUNT, help="Entities and relations to look up (default 40)."),
    number_option("--chunk-top-k", type=COUNT, help="Chunks to look up (default 20)."),
    number_option(
        "--max-tokens", "max_total_tokens", help="Maximum context tokens (default 30000)."
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
    help="Have the model choose the facts and give reasons; print each step to stderr.",
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

    Without a QUESTION, or with -, it is read from stdin. The model is the one the index was
    built with, unless another is given; without any, the answer is put together from sentences
    of the texts.

    \b
    Examples:
      lightrag-jsonl query -w kb "Who was Scrooge's partner?"
      lightrag-jsonl query -w kb --mode global --llm gpt-4o-mini "What is the book about?"
      lightrag-jsonl query -w kb --where source=minutes.txt --where 'date>=2024-01-01' "Who came?"
      echo "乔峰的身世是什么？" | lightrag-jsonl query -w kb
    """
    model = llm_name(setup, require_index(setup.working_dir))
    if given["mode"] == "bypass" and model == NO_MODEL:
        raise click.UsageError("--mode bypass asks only a model: name one with --llm")
    if stream and as_json:
        raise click.UsageError("--json prints the complete answer: it cannot go with --stream")
    text, param = _question(question), _param(given)
    with open_for_questions(setup) as rag:
        listener = event_printer(rag._twin._store) if explain else None
        if stream or (stream is None and sys.stdout.isatty() and not as_json):
            pieces = rag.stream(text, param, explain=explain, listener=listener)
            for piece in pieces:
                click.echo(printable(piece), nl=False)
                sys.stdout.flush()
            answer = pieces.answer
            emit(str(answer).removeprefix(answer.text))
        else:
            answer = rag.query(text, param, explain=explain, listener=listener)
            emit_json(answer) if as_json else emit(answer)
        if not as_json:
            _emit_warnings(answer)
        _emit_reason_for_nothing(rag, answer.context, param)


@click.command()
@click.argument("question", nargs=-1)
@models
@with_options(QUESTION_OPTIONS)
@click.option("--prompt", is_flag=True, help="Print the context as a model would read it.")
@replying
def retrieve(setup: Setup, question: tuple[str, ...], prompt: bool, **given: Any) -> Reply:
    """Show what is found for a QUESTION, best first.

    \b
    Examples:
      lightrag-jsonl retrieve -w kb --mode local --top-k 10 "Scrooge and Marley"
      lightrag-jsonl retrieve -w kb --prompt "Who was Scrooge's partner?"
    """
    text, param = _question(question), _param(given)
    with open_for_questions(setup) as rag:
        context = rag.retrieve(text, param)
        _emit_reason_for_nothing(rag, context, param)
    return Reply(context, context.prompt if prompt else "\n".join(_context_lines(context)))


def _question(words: Sequence[str]) -> str:
    """The arguments as one text, or else stdin."""
    if not words or tuple(words) == ("-",):
        from lightrag_jsonl.cli.documents import read_stdin

        if sys.stdin.isatty():
            raise click.UsageError("no question: give it as an argument, or through stdin")
        words = (read_stdin(),)
    text = " ".join(words).strip()
    if not text:
        raise click.UsageError("the question is empty")
    return text


def _param(given: Mapping[str, Any]) -> QueryParam:
    return QueryParam(**{name: value for name, value in given.items() if value is not None})


# ── for people ──────────────────────────────────────────────────────────────────


def _emit_warnings(answer: Answer) -> None:
    """Point out invented citations and a truncated answer, which cannot be seen in the text."""
    if answer.truncated:
        emit("note: the answer is not complete: the model reached its token limit", err=True)
    if answer.invented:
        numbers = ", ".join(f"[{number}]" for number in answer.invented)
        emit(f"note: {numbers} in the answer: no such source was sent to the model", err=True)


def _emit_reason_for_nothing(rag: LightRAG, context: Context, param: QueryParam) -> None:
    """If nothing was found because nothing could be found, print why to stderr."""
    if not context.empty or param.mode == "bypass":
        return
    documents = rag.documents()
    known = TEXT_FIELDS.union(*(document.metadata for document in documents))
    unknown = [key for key in param.where if key not in known]
    if any((context.dropped.entities, context.dropped.relations, context.dropped.chunks)):
        emit(f"note: what was found exceeds {param.max_total_tokens:,} tokens", err=True)
    elif not any(document.chunks for document in documents):
        emit("note: no document of this index has been read yet", err=True)
    elif unknown:
        names = f"{', '.join(map(repr, unknown))}; --where can ask for {', '.join(sorted(known))}"
        emit(f"note: no document has {names}", err=True)
    elif param.where:
        emit("note: only documents that match --where were searched", err=True)


def _context_lines(context: Context) -> Iterator[str]:
    entities = ((e.score, f"{e.name} ({e.type}): {e.description}") for e in context.entities)
    relations = (
        (r.score, f"{r.source} — {r.predicate} — {r.target} (weight {r.weight:g}): {r.description}")
        for r in context.relations
    )
    labels = unique_labels(context.documents.items())
    chunks = []
    for chunk in context.chunks:
        label = labels.get(chunk.document_id, chunk.document_id)
        position = format_position(label, chunk.page, chunk.start, chunk.end, context.language)
        chunks.append((chunk.score, f"[{position}] {chunk.text}"))
    for title, items in (("entities", entities), ("relations", relations), ("chunks", chunks)):
        for number, (score, text) in enumerate(items, 1):
            if number == 1:
                yield title
            yield f"{number:4}  {score:6.3f}  {one_line(text, DESCRIPTION_COLUMNS)}"
    dropped = context.dropped
    if context.empty:
        yield "nothing was found"
    yield (
        f"{context.tokens:,} tokens; over budget: {dropped.entities} entities, "
        f"{dropped.relations} relations, {dropped.chunks} chunks"
    )


# ── evaluation ──────────────────────────────────────────────────────────────────


@click.command("eval")
@click.argument("questions", type=FILE, required=False)
@number_option(
    "--generate", help="Make N questions from the graph, each over two chunks; without a model."
)
@click.option("--save", type=TARGET, metavar="FILE", help="Write the questions to a file.")
@click.option(
    "-m",
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(["naive", *GRAPH_MODES]),
    help="A mode to try besides naive; may be repeated (default: all).",
)
@number_option(
    "--budget",
    default=4_000,
    show_default=True,
    help="How many tokens of the best chunks are searched for the answer.",
)
@click.option("--seed", type=COUNT, default=0, show_default=True, help="The random seed.")
@models
@replying
def evaluate(
    setup: Setup,
    questions: Path | None,
    generate: int | None,
    save: Path | None,
    modes: tuple[Mode, ...],
    budget: int,
    seed: int,
) -> Reply:
    """Measure how well each mode finds what supports the answers.

    The QUESTIONS are a JSONL file. A line is {"question": …, "supporting": [ids of documents or
    chunks], "answer": …}. "dense" and "bm25" rank chunks by their vectors or words alone,
    without the graph.

    \b
    Examples:
      lightrag-jsonl eval questions.jsonl -w kb --mode mix --mode walk
      lightrag-jsonl eval --generate 100 -w kb --save generated.jsonl
    """
    from lightrag_jsonl.tools import evaluation

    if (questions is None) == (generate is None):
        raise click.UsageError("give either a file of QUESTIONS or --generate N")
    with open_for_questions(setup) as rag:
        if questions is not None:
            asked = evaluation.read_questions(questions)
        else:
            asked = rag.run(evaluation.generate_questions, generate or 0, seed=seed)
        if save is not None:
            evaluation.write_questions(save, asked)
        rows = rag.run(
            evaluation.evaluate, asked, modes=modes or GRAPH_MODES, budget=budget, seed=seed
        )
        health = rag.run(evaluation.graph_health)
    lines = [f"{counted(len(asked), 'question')}; in percent, ± half of the 95% interval"]
    lines += [table(evaluation.cells(rows), evaluation.HEADER)] if asked else []
    lines += ["", table(list(asdict(health).items()))]
    return Reply({"questions": len(asked), "rows": rows, "graph": health}, "\n".join(lines))
