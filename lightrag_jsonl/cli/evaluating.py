"""`eval`: measure whether retrieval finds what supports the answers, and whether the graph helps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lightrag_jsonl.cli.opening import asking
from lightrag_jsonl.cli.options import FILE, Setup, as_json, models, number_option
from lightrag_jsonl.cli.output import counted, emit_json, say, table
from lightrag_jsonl.options import MODES
from lightrag_jsonl.types import Mode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lightrag_jsonl.evaluation import EvalQuestion, GraphHealth, Lookup, Row
    from lightrag_jsonl.sync import LightRAG

ASKABLE = tuple(
    mode for mode in MODES if mode not in ("bypass", "naive")
)  # naive is always included
FEW = 20  # questions; with fewer, an average means little


@click.command("eval")
@click.argument("questions", type=FILE, required=False)
@number_option(
    "--generate",
    help="Generate N questions, each about two chunks, from the graph; no model is needed.",
)
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the generated questions to a file, to read and to use again.",
)
@click.option(
    "-m",
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(["naive", *ASKABLE]),
    help="A mode to compare with naive; may be repeated. Default: all modes.",
)
@number_option(
    "--budget",
    default=4_000,
    show_default=True,
    help="The answer is looked for in the best chunks, up to so many tokens.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed for generating questions and resampling.",
)
@models
@as_json
def evaluate(
    setup: Setup,
    questions: Path | None,
    generate: int | None,
    save: Path | None,
    modes: tuple[Mode, ...],
    budget: int,
    seed: int,
    as_json: bool,
) -> None:
    """Measure how well each mode finds what supports the answers.

    QUESTIONS is a JSONL file with lines {"question": …, "supporting": [ids of documents or
    chunks], "answer": …}. The rows "dense" and "bm25" use the chunks' vectors or words alone,
    without the graph.

    \b
    Examples:
      lightrag-jsonl eval questions.jsonl -w kb
      lightrag-jsonl eval --generate 100 -w kb --save made.jsonl
    """
    from lightrag_jsonl import evaluation

    if (questions is None) == (generate is None):
        raise click.UsageError("give a file of QUESTIONS or --generate N, one of the two")
    with asking(setup) as rag, evaluation.Lookup(setup.working_dir) as lookup:
        if questions is not None:
            asked = evaluation.read_questions(questions)
        else:
            count = generate or 0
            language = rag.status().language
            asked = evaluation.generate_questions(lookup, count, language=language, seed=seed)
        if save is not None:
            evaluation.write_questions(save, asked)
        health = evaluation.graph_health(lookup, asked)
        rows = _rows(rag, lookup, asked, modes or ASKABLE, budget, seed)
    if as_json:
        emit_json({"questions": len(asked), "rows": rows, "graph": health})
    else:
        _tell(asked, rows, health)


def _rows(
    rag: LightRAG,
    lookup: Lookup,
    questions: Sequence[EvalQuestion],
    modes: Sequence[Mode],
    budget: int,
    seed: int,
) -> tuple[Row, ...]:
    from tqdm import tqdm

    from lightrag_jsonl import evaluation

    if not questions:
        return ()
    systems = evaluation.rank_retrievers(rag, lookup) | evaluation.retrievers(rag, modes)
    total = len(systems) * len(questions)
    with tqdm(total=total, unit=" searches", disable=None, leave=False) as bar:  # None: no terminal
        return evaluation.evaluate(systems, questions, budget=budget, seed=seed, watcher=bar.update)


def _tell(questions: Sequence[EvalQuestion], rows: Sequence[Row], health: GraphHealth) -> None:
    from lightrag_jsonl.evaluation import report

    if not questions:
        say("the graph has no two steps that lie in two chunks: nothing to ask")
    else:
        say(f"{counted(len(questions), 'question')}; in percent, ± half of the 95% interval")
        say(table(report.cells(rows), report.header(rows)))
    if 0 < len(questions) < FEW:
        say("so few questions say little about the next one", err=True)
    say()
    say(table(report.health_rows(health)))
