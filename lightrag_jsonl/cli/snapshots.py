"""`snapshot`, `diff` and `rollback`: states of an index by name."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from lightrag_jsonl import LightRAG
from lightrag_jsonl.cli.group import CommandOutput, index_command, main
from lightrag_jsonl.cli.options import FILE, models, option
from lightrag_jsonl.cli.output import agreed_cost, confirm, one_line, table
from lightrag_jsonl.cli.questions import QUESTION_TASKS
from lightrag_jsonl.core.snapshots import AnswerDifference, Difference, StateDifference
from lightrag_jsonl.text.strings import counted

snapshot_argument = click.argument("name")


@main.group()
def snapshot_group() -> None:
    """Save states of the index under names."""


@index_command(snapshot_argument, name="create", group=snapshot_group)
def create_snapshot(rag: LightRAG, name: str) -> CommandOutput:
    """Save the present state under a name. Nothing is copied; what changes from now on is kept."""
    return CommandOutput(rag.admin.snapshot(name))


@index_command(name="list", group=snapshot_group)
def list_snapshots(rag: LightRAG) -> CommandOutput:
    """List the snapshots, the oldest first, and the bytes that are kept for each."""
    snapshots = rag.admin.snapshots()
    rows = [
        {
            "name": snapshot.name,
            "created": f"{snapshot.created_at:%Y-%m-%d %H:%M:%S}",
            "kept bytes": f"{snapshot.kept_bytes:,}",
        }
        for snapshot in snapshots
    ]
    return CommandOutput(snapshots, table(rows, "name", "created", "kept bytes"))


@index_command(snapshot_argument, name="delete", group=snapshot_group)
def delete_snapshot(rag: LightRAG, name: str) -> CommandOutput:
    """Forget a snapshot and what is kept for it. The index does not change."""
    rag.admin.delete_snapshot(name)
    return CommandOutput({"deleted": name})


@index_command(
    snapshot_argument, option("--yes", "Start without confirmation.", is_flag=True), name="rollback"
)
def roll_back(rag: LightRAG, name: str, yes: bool) -> CommandOutput:
    """Go back to a snapshot. No model is called.

    Documents, edits and merges of names since then go, unless a later snapshot holds them.
    """
    if not yes:
        confirm(f"roll back to {name!r}? What came later goes, unless a snapshot holds it")
    return CommandOutput(rag.admin.rollback(name))


@index_command(
    click.argument("before", required=False),
    click.argument("after", required=False),
    option("--index", "Compare another index (folder or address) with this one instead."),
    option("--questions", "A file of questions, one a line: what is answered otherwise?", FILE),
    option("--answers", "Ask the model for these answers; prints an estimate first.", is_flag=True),
    option("--yes", "Ask the model without confirmation.", is_flag=True),
    models,
    name="diff",
)
def print_difference(
    rag: LightRAG,
    before: str | None,
    after: str | None,
    index: str | None,
    questions: Path | None,
    answers: bool,
    yes: bool,
) -> CommandOutput:
    """List what differs between two states.

    From snapshot BEFORE to snapshot AFTER, or now: documents, entities, relations, merges of names, and claims with their dates. + is new, - is gone,
    ~ has changed. Questions are compared by what they are answered from, without a model.
    """
    question_texts: list[str] = []
    if questions is not None:
        lines = questions.read_text(encoding="utf-8-sig").split("\n")
        question_texts = [line.strip() for line in lines if line.strip()]
    difference = rag.admin.diff(before, after, index=index, questions=question_texts)
    notes: list[str] = []
    if answers and difference.estimate.calls:
        work = f"answer {counted(len(difference.answers), 'questions')} twice"
        cost = agreed_cost(rag, work, difference.estimate, QUESTION_TASKS, is_agreed=yes)
        difference = rag.admin.diff(
            before, after, index=index, questions=question_texts, answers=True
        )
        notes.append(f"answered: {difference.usage.calls} calls (estimated: {cost})")
    display = "\n".join(_difference_lines(difference)) or "no difference"
    return CommandOutput(difference, display, notes=notes)


def _difference_lines(difference: StateDifference) -> Iterator[str]:
    """A heading for each kind of difference, and a line or two for each difference."""
    parts = {
        "documents": difference.documents,
        "entities": difference.entities,
        "relations": difference.relations,
        "claims": difference.claims,
        "merged names": difference.merges,
    }
    for heading, differences in parts.items():
        if differences:
            yield f"{heading} ({len(differences)})"
            yield from _item_lines(differences)
    if difference.questions:
        yield f"questions with other evidence ({len(difference.answers)} of {difference.questions})"
    for answer in difference.answers:
        yield from _answer_lines(answer)


def _item_lines(differences: Iterable[Difference]) -> Iterator[str]:
    for item in differences:
        if not item.before:
            yield f"+ {item.name}: {one_line(item.after)}"
        elif not item.after:
            yield f"- {item.name}: {one_line(item.before)}"
        else:
            yield f"~ {item.name}"
            yield from _changed_lines(item.before, item.after)


def _changed_lines(before: str, after: str) -> Iterator[str]:
    """The removed and the new lines of a description."""
    lines_before = before.split("\n")
    lines_after = after.split("\n")
    yield from [f"  - {line}" for line in lines_before if line not in lines_after]
    yield from [f"  + {line}" for line in lines_after if line not in lines_before]


def _answer_lines(answer: AnswerDifference) -> Iterator[str]:
    yield f"? {answer.question}"
    yield from [f"  - {line}" for line in answer.gone_evidence]
    yield from [f"  + {line}" for line in answer.new_evidence]
    if answer.before != answer.after:
        yield f"  before: {one_line(answer.before)}"
        yield f"  after: {one_line(answer.after)}"
