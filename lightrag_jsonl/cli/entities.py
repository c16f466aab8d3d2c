"""`entities duplicates | merge | unmerge`: a person decides which names mean the same entity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lightrag_jsonl.cli.opening import asking, known_aliases, looking
from lightrag_jsonl.cli.options import Setup, folder, number_option
from lightrag_jsonl.cli.output import Reply, counted, replying, table
from lightrag_jsonl.text import clean_name, name_key

if TYPE_CHECKING:
    from lightrag_jsonl.duplicates import Duplicate
    from lightrag_jsonl.indexing.renaming import Step


@click.group()
def entities() -> None:
    """Find names that mean the same entity, and merge them.

    \b
    Examples:
      lightrag-jsonl entities duplicates -w kb
      lightrag-jsonl entities merge -w kb "Scrooge" "old Scrooge" --into "Ebenezer Scrooge"
      lightrag-jsonl entities unmerge -w kb "old Scrooge"
    """


@entities.command()
@folder
@number_option("-n", "--limit", default=50, show_default=True)
@replying
def duplicates(setup: Setup, limit: int) -> Reply:
    """List pairs of entities that may be the same, likeliest first. Nothing is changed."""
    with looking(setup) as rag:
        found = rag.duplicates(limit=limit)
    header = ("score", "name", "may be", "types", "because")
    rows = list(map(_row, found))
    return Reply(found, table(rows, header) if rows else "no two entities look alike")


@entities.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--into", required=True, metavar="NAME", help="The name of the merged entity.")
@folder
@replying
def merge(setup: Setup, names: tuple[str, ...], into: str) -> Reply:
    """Merge the entities NAMES. What was read from the texts is kept, so this can be undone."""
    from lightrag_jsonl.indexing.renaming import undoing

    into = clean_name(into)
    with asking(setup) as rag:
        before = known_aliases(setup.working_dir)
        rag.merge_entities(names, into=into)
    others = [name for name in names if name_key(name) != name_key(into)]
    lines = [f"{counted(len(others), 'name')} now mean{'s' * (len(others) == 1)} {into}"]
    for number, step in enumerate(undoing(before, names, into)):
        lines.append(f"{' ' * 8 if number else 'to undo:'} {_undo(setup, step)}")
    return Reply({"merged": names, "into": into}, "\n".join(lines))


@entities.command()
@click.argument("names", nargs=-1, required=True)
@folder
@replying
def unmerge(setup: Setup, names: tuple[str, ...]) -> Reply:
    """Make merged NAMES entities of their own again.

    Given the name that others were merged into, these become entities of their own.
    """
    with asking(setup) as rag:
        rag.unmerge(*names)
    own = "its" if len(names) == 1 else "their"
    return Reply({"unmerged": names}, f"{counted(len(names), 'name')} on {own} own again")


def _undo(setup: Setup, step: Step) -> str:
    names = " ".join(f'"{name}"' for name in step.names)
    if step.into is None:
        return f"lightrag-jsonl entities unmerge -w {setup.working_dir} {names}"
    return f'lightrag-jsonl entities merge -w {setup.working_dir} {names} --into "{step.into}"'


def _row(one: Duplicate) -> tuple[object, ...]:
    types = " / ".join(dict.fromkeys(kind or "?" for kind in one.types))
    reasons = "; ".join(item.detail for item in one.evidence)
    return (f"{one.score:.2f}", one.name, one.into, types, reasons)
