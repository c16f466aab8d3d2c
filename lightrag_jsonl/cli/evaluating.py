"""`eval`: does retrieval find the supporting passages, and does the graph help on this corpus?"""

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

ASKABLE = tuple(mode for mode in MODES if mode not in ("bypass", "naive"))  # naive always runs
FEW = 20  # with fewer questions, an average says little


@click.command("eval")
@click.argument("questions", type=FILE, required=False)
@number_option(
    "--generate",
    help="Make N questions from the graph, each over two chunks; no model is needed.",
)
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the questions to a file, to look at and to ask again.",
)
@click.option(
    "-m",
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(["naive", *ASKABLE]),
    help="A mode to try besides naive; may be repeated (default: all).",
)
@number_option(
    "--budget",
    default=4_000,
    show_default=True,
    help="How many tokens of the best chunks are searched for the answer.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="The seed for generating questions and for resampling.",
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

    The QUESTIONS are a JSONL file. A line is {"question": …, "supporting": [ids of documents or
    chunks], "answer": …}. "dense" and "bm25" rank chunks by their vectors or words alone,
    without the graph.

    \b
    Examples:
      lightrag-jsonl eval questions.jsonl -w kb
      lightrag-jsonl eval --generate 100 -w kb --save made.jsonl
    """
    from lightrag_jsonl import evaluation

    if (questions is None) == (generate is None):
        raise click.UsageError("give either a file of QUESTIONS or --generate N")
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
        say("the graph has no two linked relations in two chunks: nothing to ask")
    else:
        say(f"{counted(len(questions), 'question')}; in percent, ± half of the 95% interval")
        say(table(report.cells(rows), report.header(rows)))
    if 0 < len(questions) < FEW:
        say("with so few questions, these averages say little", err=True)
    say()
    say(table(report.health_rows(health)))
