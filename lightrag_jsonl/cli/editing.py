"""`entities` and `relations`: list them, and create, edit and delete them by hand."""

from __future__ import annotations

import getpass
from typing import Any

import click

from lightrag_jsonl import LightRAG
from lightrag_jsonl.cli.admin import entities
from lightrag_jsonl.cli.group import Reply, index_command, main
from lightrag_jsonl.cli.options import COUNT, NUMBER, models, option
from lightrag_jsonl.cli.output import table

name = click.argument("name")
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
    given |= {"description": given["description"] or "", "weight": given["weight"] or 1.0}
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
