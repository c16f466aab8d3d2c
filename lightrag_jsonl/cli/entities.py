"""`entities duplicates | merge | unmerge`: which names mean one thing, as a person decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lightrag_jsonl.cli.opening import asking, known_aliases, looking
from lightrag_jsonl.cli.options import Setup, as_json, folder
from lightrag_jsonl.cli.output import counted, emit_json, say, table
from lightrag_jsonl.text import clean_name, name_key

if TYPE_CHECKING:
    from lightrag_jsonl.duplicates import Duplicate
    from lightrag_jsonl.indexing.renaming import Step


@click.group()
def entities() -> None:
    """Find names that mean one thing, and merge them.

    \b
    Examples:
      lightrag-jsonl entities duplicates -w kb
      lightrag-jsonl entities merge -w kb "Scrooge" "old Scrooge" --into "Ebenezer Scrooge"
      lightrag-jsonl entities unmerge -w kb "old Scrooge"
    """


@entities.command()
@folder
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=50, show_default=True, metavar="N"
)
@as_json
def duplicates(setup: Setup, limit: int, as_json: bool) -> None:
    """List pairs of entities that may be one, the likeliest first. Nothing is changed."""
    with looking(setup) as rag:
        found = rag.duplicates(limit=limit)
    if as_json:
        emit_json(found)
    elif found:
        header = ("score", "name", "may be", "types", "because")
        say(table([_row(one) for one in found], header))
    else:
        say("no two entities look alike")


@entities.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--into", required=True, metavar="NAME", help="What they are all to be called.")
@folder
@as_json
def merge(setup: Setup, names: tuple[str, ...], into: str, as_json: bool) -> None:
    """Make the entities NAMES one. What the texts say stays as it is, so this can be undone."""
    from lightrag_jsonl.indexing.renaming import undoing

    into = clean_name(into)
    before = known_aliases(setup.working_dir)
    with asking(setup) as rag:
        rag.merge_entities(names, into=into)
    if as_json:
        emit_json({"merged": names, "into": into})
        return
    others = [name for name in names if name_key(name) != name_key(into)]
    say(f"{counted(len(others), 'name')} now mean{'s' * (len(others) == 1)} {into}")
    for number, step in enumerate(undoing(before, names, into)):
        say(f"{' ' * 8 if number else 'to undo:'} {_undo(setup, step)}")


@entities.command()
@click.argument("names", nargs=-1, required=True)
@folder
@as_json
def unmerge(setup: Setup, names: tuple[str, ...], as_json: bool) -> None:
    """Make merged NAMES entities of their own again.

    A name that others were merged into gives these back.
    """
    with asking(setup) as rag:
        rag.unmerge(*names)
    if as_json:
        emit_json({"unmerged": names})
        return
    say(f"{counted(len(names), 'name')} on {'its' if len(names) == 1 else 'their'} own again")


def _undo(setup: Setup, step: Step) -> str:
    names = " ".join(f'"{name}"' for name in step.names)
    if step.into is None:
        return f"lightrag-jsonl entities unmerge -w {setup.working_dir} {names}"
    return f'lightrag-jsonl entities merge -w {setup.working_dir} {names} --into "{step.into}"'


def _row(one: Duplicate) -> tuple[object, ...]:
    types = " / ".join(dict.fromkeys(kind or "?" for kind in one.types))
    reasons = "; ".join(item.detail for item in one.evidence)
    return (f"{one.score:.2f}", one.name, one.into, types, reasons)
