"""`entities` and `relations`: list them, edit them by hand, and merge names of one entity."""

import getpass
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from lightrag_jsonl import LightRAG
from lightrag_jsonl.cli.group import Reply, index_command, main
from lightrag_jsonl.cli.options import COUNT, NUMBER, models, option
from lightrag_jsonl.cli.output import cost_words, table
from lightrag_jsonl.curation.duplicates import groups

name = click.argument("name")
names = click.argument("names", nargs=-1, required=True)
ends = (click.argument("source"), click.argument("target"))
description = option("--description", "What it is, in a sentence or two.")
kind = option("--type", "Its type, such as person.")
about_relation = (
    description,
    option("--keyword keywords", "What it is about; may be repeated.", multiple=True),
    option("--weight", "Its weight; relations in texts have 1 to 10.", click.FLOAT),
)
signed = (
    option("--by", "Who makes this edit (default: your user name).", default=getpass.getuser),
    option("--reason", "Why.", default=""),
    *models,
)
pages = (
    option("-n --limit", "The maximum number.", NUMBER, default=100, show_default=True),
    option("--offset", "Skip the first.", COUNT, default=0),
    option("--search", "Only names that contain this.", default=""),
)


@main.group()
def entities() -> None:
    """List, create, edit, delete and merge entities."""


@main.group()
def relations() -> None:
    """List relations, and create, edit and delete them by hand."""


@index_command(*pages, option("--type", "Only this type.", default=""), name="list", group=entities)
def list_entities(rag: LightRAG, **given: Any) -> Reply:
    """List the entities by name."""
    found = rag.entities.list(**given)
    return Reply(found, table(found, "name", "type", "description") or "no entities")


@index_command(*pages, name="list", group=relations)
def list_relations(rag: LightRAG, **given: Any) -> Reply:
    """List the relations, the heaviest first."""
    found = rag.entities.relations(**given)
    words = table(found, "source", "target", "keywords", "weight", "description")
    return Reply(found, words or "no relations")


@index_command(name, kind, description, *signed, name="create", group=entities)
def create_entity(rag: LightRAG, name: str, **given: Any) -> Reply:
    """Create the entity NAME. Later mentions in texts are merged into it."""
    given = {field: value or "" for field, value in given.items()}
    return _made(rag, rag.entities.create(name, **given))


@index_command(name, kind, description, *signed, name="edit", group=entities)
def edit_entity(rag: LightRAG, name: str, **given: Any) -> Reply:
    """Replace the type or description of the entity NAME. `entities merge` changes its name."""
    if given["type"] is None and given["description"] is None:
        raise click.UsageError("give --type or --description")
    return _made(rag, rag.entities.edit(name, **given))


@index_command(name, *signed, name="delete", group=entities)
def delete_entity(rag: LightRAG, name: str, **given: Any) -> Reply:
    """Delete the entity NAME and its relations, also from texts inserted later."""
    return _made(rag, rag.entities.delete(name, **given))


@index_command(*ends, *about_relation, *signed, name="create", group=relations)
def create_relation(rag: LightRAG, source: str, target: str, **given: Any) -> Reply:
    """Create a relation between SOURCE and TARGET."""
    given = {"description": ""} | {name: one for name, one in given.items() if one is not None}
    return _made(rag, rag.entities.create_relation(source, target, **given))


@index_command(*ends, *about_relation, *signed, name="edit", group=relations)
def edit_relation(rag: LightRAG, source: str, target: str, **given: Any) -> Reply:
    """Replace the description, keywords or weight of the relation of SOURCE and TARGET."""
    given["keywords"] = given["keywords"] or None
    if given["description"] is None and given["keywords"] is None and given["weight"] is None:
        raise click.UsageError("give --description, --keyword or --weight")
    return _made(rag, rag.entities.edit_relation(source, target, **given))


@index_command(*ends, *signed, name="delete", group=relations)
def delete_relation(rag: LightRAG, source: str, target: str, **given: Any) -> Reply:
    """Delete the relation of SOURCE and TARGET, also from texts inserted later."""
    return _made(rag, rag.entities.delete_relation(source, target, **given))


def _made(rag: LightRAG, id: str) -> Reply:
    undo = f"to undo: lightrag-jsonl delete -w {rag.working_dir} {id}"
    return Reply({"edit": id}, notes=[undo])


@index_command(
    option("-n --limit", "How many.", NUMBER, default=50),
    option("--review", "Let the model judge the pairs; prints an estimate first.", is_flag=True),
    option("--yes", "Start the review without confirmation.", is_flag=True),
    option(
        "--merge",
        "Merge the pairs that a text states unambiguously; with --review, those that the model judges "
        "the same. `entities unmerge` undoes it.",
        is_flag=True,
    ),
    *models,
    group=entities,
)
def duplicates(rag: LightRAG, limit: int, review: bool, yes: bool, merge: bool) -> Reply:
    """List pairs of entities that may be the same, most likely first."""
    found = rag.entities.duplicates(limit=limit)
    notes = []
    if review and found:
        cost = cost_words(rag.entities.estimate_review(found))
        if not yes:
            click.confirm(f"review {len(found)} pairs: about {cost}?", abort=True, err=True)
        judged = rag.entities.review(found)
        found, notes = judged.same, [f"reviewed: {judged.usage.calls} calls (estimated: {cost})"]
    if merge:
        found = rag.entities.merge_pairs(found) if review else rag.entities.merge_stated()
        notes += _undo(rag, [name for group in groups(found) for name in group[1:]])
    rows = [{**asdict(one), "evidence": [sign.detail for sign in one.evidence]} for one in found]
    words = table(rows, "name", "into", "score", "types", "evidence")
    return Reply(found, words or "no possible duplicates", notes=notes)


@index_command(
    names, option("--into", "The merged entity.", required=True), *models, group=entities
)
def merge(rag: LightRAG, names: tuple[str, ...], into: str) -> Reply:
    """Merge the entities NAMES. Extracted data is kept, so this can be undone."""
    rag.entities.merge(names, into=into)
    undo = _undo(rag, [name for name in names if name != into])
    return Reply({"merged": names, "into": into}, notes=undo)


@index_command(names, *models, group=entities)
def unmerge(rag: LightRAG, names: tuple[str, ...]) -> Reply:
    """Undo the merge of NAMES, or of all names that were merged into NAMES."""
    rag.entities.unmerge(*names)
    return Reply({"unmerged": names})


def _undo(rag: LightRAG, merged: Sequence[str]) -> list[str]:
    names = " ".join(f'"{name}"' for name in merged)
    return (
        [f"to undo: lightrag-jsonl entities unmerge -w {rag.working_dir} {names}"] if names else []
    )
