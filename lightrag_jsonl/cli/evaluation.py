"""`eval`: how well each mode finds what answers need."""

from collections.abc import Sequence
from pathlib import Path

import click

from lightrag_jsonl import LightRAG
from lightrag_jsonl.cli.group import CommandOutput, index_command
from lightrag_jsonl.cli.options import FILE, POSITIVE, TARGET, models, option
from lightrag_jsonl.cli.output import table
from lightrag_jsonl.core.modes import GRAPH_MODES, Mode
from lightrag_jsonl.tools import evaluation


@index_command(
    click.argument("questions", type=FILE, required=False),
    option("--generate", "Make N questions from the graph, each over two chunks.", POSITIVE),
    option("--save", "Write the questions to a file.", TARGET),
    option(
        "-m --mode modes",
        "A mode to compare with naive; may be repeated (default: all).",
        click.Choice(["naive", *GRAPH_MODES]),
        multiple=True,
    ),
    option(
        "--answers",
        "Also answer each question, and count what is known of the claims.",
        is_flag=True,
    ),
    models,
)
def eval_command(
    rag: LightRAG,
    questions: Path | None,
    generate: int | None,
    save: Path | None,
    modes: tuple[Mode, ...],
    answers: bool,
) -> CommandOutput:
    """Measure how well each mode finds the support of the answers.

    The QUESTIONS are a JSONL file. A line is {"question": …, "supporting": [ids of documents or
    chunks], "answer": …}. "dense" and "bm25" rank chunks by their vectors or words alone,
    without the graph. Figures are percentages, ± half of the 95% interval; the gain is over dense.
    With --answers a second table counts the verdicts on the statements of the answers: only a checker
    (--check, see `lightrag-jsonl help models`) calls one supported; a missing or an unsupported one is
    marked in the answer.

    \b
    Examples:
      lightrag-jsonl eval questions.jsonl -w kb --mode mix --mode local
      lightrag-jsonl eval --generate 100 -w kb --save generated.jsonl
    """
    eval_questions = _eval_questions(rag, questions, generate)
    if save is not None:
        evaluation.write_questions(save, eval_questions)
    rows = rag.run(evaluation.evaluate, eval_questions, modes=modes or GRAPH_MODES)
    number = len(eval_questions)
    values: dict[str, object] = {"questions": number, "rows": rows}
    tables = [table(map(evaluation.figures, rows))]
    if answers:
        counts = rag.run(evaluation.count_claims, eval_questions, modes=modes or GRAPH_MODES)
        values["claims"] = counts
        tables.append(table(map(evaluation.claim_figures, counts)))
    return CommandOutput(values, "\n\n".join([*tables, f"questions  {number}"]))


def _eval_questions(
    rag: LightRAG, file: Path | None, number: int | None
) -> Sequence[evaluation.EvalQuestion]:
    """The questions in a file, or a number of questions made from the graph."""
    if file is not None and number is None:
        return evaluation.read_questions(file)
    if file is None and number is not None:
        return rag.run(evaluation.generate_questions, number)
    raise click.UsageError("give either a file of QUESTIONS or --generate N")
