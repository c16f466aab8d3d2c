"""`query`, `retrieve` and `eval`: ask questions of an index."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from lightrag_jsonl import Answer, Context, Dropped, LightRAG, QueryParam
from lightrag_jsonl.cli.documents import read_stdin
from lightrag_jsonl.cli.explain import event_printer
from lightrag_jsonl.cli.group import Reply, index_command
from lightrag_jsonl.cli.options import COUNT, FILE, NUMBER, TARGET, mode, models, option
from lightrag_jsonl.cli.output import in_words, printable, table
from lightrag_jsonl.core.modes import GRAPH_MODES
from lightrag_jsonl.core.types import Json, Mode
from lightrag_jsonl.tools import evaluation

CONDITION = re.compile(r"(?P<key>[^=<>!]+?)\s*(?P<sign>>=|<=|!=|=|>|<)\s*(?P<value>.*)", re.DOTALL)
OPERATORS = {"=": "$in", "!=": "$nin", ">=": "$gte", "<=": "$lte", ">": "$gt", "<": "$lt"}
PLAIN = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?|true|false")
TEXT_FIELDS = frozenset({"id", "title", "source", "date"})


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
        values = where.setdefault(key, {}).setdefault(OPERATORS[match["sign"]], [])
        values.append(text)
        if key not in TEXT_FIELDS and PLAIN.fullmatch(text):  # "2024" may be a number or a text
            values.append(json.loads(text))
    return where


def _question(context: click.Context, option: click.Parameter, value: tuple[str, ...]) -> str:
    text = " ".join(value) if value and value != ("-",) else read_stdin()
    if not text.strip():
        raise click.UsageError("the question is empty")
    return text.strip()


question_options = (
    click.argument("question", nargs=-1, callback=_question),
    *models,
    mode,
    option("--top-k", "Entities and relations to look up (40).", COUNT, default=40),
    option("--chunk-top-k", "Chunks to look up (20).", COUNT, default=20),
    option("--max-tokens max_total_tokens", "Context tokens (30000).", NUMBER, default=30_000),
    option(
        "--where",
        "Only documents with this id, title, source, date or other metadata; may be repeated. "
        "Also KEY>=VALUE, <=, >, < and !=; KEY=… twice means either, KEY!=… twice neither.",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_where,
    ),
)


@index_command(
    *question_options,
    option("--response-type", 'The form of the answer, such as "One Paragraph".'),
    option("--user-prompt", "A further instruction for the answer.", default=""),
    option(
        "--explain --explainable explain",
        "Let the model select the relations and give reasons; print each step to stderr.",
        is_flag=True,
    ),
)
def query(rag: LightRAG, question: str, explain: bool, **given: Any) -> Reply:
    """Answer a QUESTION, and show where the answer comes from.

    Without a QUESTION, or with -, it is read from stdin. The model is the one the index was
    built with, unless another is given; without any, the answer is put together from sentences
    of the texts.

    \b
    Examples:
      lightrag-jsonl query -w kb --mode global --llm gpt-4o-mini "What is the book about?"
      lightrag-jsonl query -w kb --where source=minutes.txt --where 'date>=2024-01-01' "Who came?"
    """
    param = QueryParam(**given)
    listener = event_printer(rag) if explain else None
    as_json = click.get_current_context().params["as_json"]
    if as_json or explain:  # events are printed as they happen, and not amid the answer
        answer = rag.query(question, param, explain=explain, listener=listener)
        click.echo("" if as_json else printable(answer.text), nl=False)
    else:
        pieces = rag.stream(question, param)
        for piece in pieces:
            click.echo(printable(piece), nl=False)
        answer = pieces.answer
    sources = str(answer).removeprefix(answer.text)
    return Reply(answer, sources or b"\n", notes=[*_notes(rag, answer.context, param, answer)])


@index_command(
    *question_options,
    option("--prompt", "Print the context as it is sent to the model.", is_flag=True),
)
def retrieve(rag: LightRAG, question: str, prompt: bool, **given: Any) -> Reply:
    """Show what is retrieved for a QUESTION, best first."""
    param = QueryParam(**given)
    found = rag.retrieve(question, param)
    words = found.prompt if prompt else _context_words(found)
    return Reply(found, words, notes=[*_notes(rag, found, param)])


def _notes(
    rag: LightRAG, context: Context, param: QueryParam, answer: Answer | None = None
) -> Iterator[str]:
    """What cannot be seen in an answer or a context: what is wrong with it, or why it is empty."""
    if answer is not None and answer.truncated:
        yield (
            "note: the answer is incomplete: the model reached its token limit, or a content filter "
            "or an error of its server cut it off"
        )
    if answer is not None and answer.invented:
        numbers = ", ".join(f"[{number}]" for number in answer.invented)
        yield f"note: {numbers} in the answer: no such source was sent to the model"
    if context.none_selected:
        yield "note: the model selected none of the relations; only directly matched passages were used"
    if context.empty and context.dropped != Dropped():
        yield f"note: the results exceed {param.max_total_tokens:,} tokens"
    elif context.empty and param.where:
        known = TEXT_FIELDS.union(*(document.metadata for document in rag.documents()))
        unknown = ", ".join(sorted(param.where.keys() - known))
        names = f"; no document has {unknown}, but: {', '.join(sorted(known))}"
        yield "note: only documents that match --where were searched" + (names if unknown else "")


def _context_words(context: Context) -> str:
    names = context.documents
    chunks = [{**asdict(c), "document": names.get(c.document_id)} for c in context.chunks]
    tables = {
        "entities": table(context.entities, "score", "name", "type", "description"),
        "relations": table(context.relations, "score", "source", "keywords", "target"),
        "chunks": table(chunks, "score", "document", "page", "text"),
    }
    found = [f"{name}\n{rows}\n" for name, rows in tables.items() if rows]
    size = in_words({"tokens": context.tokens, "over budget": asdict(context.dropped)})
    return "\n".join([*(found or ["no results"]), size])


@index_command(
    click.argument("questions", type=FILE, required=False),
    option("--generate", "Make N questions from the graph, each over two chunks.", NUMBER),
    option("--save", "Write the questions to a file.", TARGET),
    option(
        "-m --mode modes",
        "A mode to compare with naive; may be repeated (default: all).",
        click.Choice(["naive", *GRAPH_MODES]),
        multiple=True,
    ),
    *models,
    name="eval",
)
def evaluate(
    rag: LightRAG,
    questions: Path | None,
    generate: int | None,
    save: Path | None,
    modes: tuple[Mode, ...],
) -> Reply:
    """Measure how well each mode finds what supports the answers.

    The QUESTIONS are a JSONL file. A line is {"question": …, "supporting": [ids of documents or
    chunks], "answer": …}. "dense" and "bm25" rank chunks by their vectors or words alone,
    without the graph. Figures are percentages, ± half of the 95% interval; the gain is over dense.

    \b
    Examples:
      lightrag-jsonl eval questions.jsonl -w kb --mode mix --mode walk
      lightrag-jsonl eval --generate 100 -w kb --save generated.jsonl
    """
    if (questions is None) == (generate is None):
        raise click.UsageError("give either a file of QUESTIONS or --generate N")
    made = rag.run(evaluation.generate_questions, generate) if generate else ()
    asked = evaluation.read_questions(questions) if questions else made
    if save is not None:
        evaluation.write_questions(save, asked)
    rows = rag.run(evaluation.evaluate, asked, modes=modes or GRAPH_MODES)
    words = f"{table(map(evaluation.figures, rows))}\n\nquestions  {len(asked)}"
    return Reply({"questions": len(asked), "rows": rows}, words)
