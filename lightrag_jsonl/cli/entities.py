"""`entities` and `relations`: lists, edits by hand, and merges of the names of an entity."""

import getpass
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Final

import click

from lightrag_jsonl import LightRAG
from lightrag_jsonl.cli.group import CommandOutput, index_command, main
from lightrag_jsonl.cli.options import (
    NON_NEGATIVE,
    POSITIVE,
    Parameters,
    collected,
    models,
    option,
    take,
    together,
)
from lightrag_jsonl.cli.output import agreed_cost, one_line, table, wrapped
from lightrag_jsonl.core.claims import DatedClaim, claims_by_sentence
from lightrag_jsonl.core.languages import STATING_NOTHING, known_language
from lightrag_jsonl.core.types import UNKNOWN_TYPE, Relation
from lightrag_jsonl.curation.duplicates import groups
from lightrag_jsonl.storage.store import read
from lightrag_jsonl.text.markup import without_bullets
from lightrag_jsonl.text.strings import counted
from lightrag_jsonl.tracing.trace import look_up_sources

ENTITY_COLUMNS: Final = 80  # of the lines of `show`
NEIGHBOUR_COLUMNS: Final = 24  # of what a relation says, and of the name at its other end
NO_CONFLICTS: Final = (
    "no contradictions of relations known to have one value at a time\n"
    'name others, such as --functional "born in" (relations list shows the names);\n'
    "they are found in the records of a model or of insert_records: what was read without a model has none"
)
NO_HOMONYMS: Final = (
    "no name has other years, types, organizations or places in some documents than in others\n"
    "bearers of one name that do not differ in these are not told apart"
)

EDIT_FIELDS: Final = ("type", "description", "keywords", "weight", "by", "reason")

name_argument = click.argument("name")
names_argument = click.argument("names", nargs=-1, required=True)
ends_arguments = together(click.argument("source"), click.argument("target"))
description_option = option("--description", "The description, in a sentence or two.")
edit_options = together(
    option("--by", "Who makes this edit (default: your user name).", default=getpass.getuser),
    option("--reason", "Why.", default=""),
)


def _take_edit(parameters: Parameters) -> Parameters:
    """The given fields of an entity or a relation, and the author of the edit."""
    values = take(parameters, EDIT_FIELDS)
    return {name: value for name, value in values.items() if value not in (None, ())}


entity_edit = collected(
    "edit",
    _take_edit,
    name_argument,
    option("--type", "The type, such as person."),
    description_option,
    edit_options,
)
relation_edit = collected(
    "edit",
    _take_edit,
    ends_arguments,
    description_option,
    option("--keyword keywords", "A keyword of the relation; may be repeated.", multiple=True),
    option("--weight", "The weight; relations in texts have 1 to 10.", click.FLOAT),
    edit_options,
)
review_options = together(
    option("--review", "Let the model judge the pairs; prints an estimate first.", is_flag=True),
    option("--yes", "Start the review without confirmation.", is_flag=True),
)
list_options = together(
    option("-n --limit", "The maximum number.", POSITIVE, default=100, show_default=True),
    option("--offset", "Skip the first.", NON_NEGATIVE, default=0),
    option("--search", "Only names that contain this text.", default=""),
)


@index_command(name_argument, option("-n --limit", "Relations to list.", POSITIVE, default=20))
def show_command(rag: LightRAG, name: str, limit: int) -> CommandOutput:
    """Show the entity NAME: what it is, and its relations."""
    entity, relations = rag.entities.neighbours(name)
    chunks = rag.run(
        lambda loop_rag: read(
            loop_rag.engine.store, lambda view: look_up_sources(view, entity.chunk_ids)
        )
    )
    documents = [document.title or document.name for document in chunks.documents.values()]
    head = entity.name
    if entity.type != UNKNOWN_TYPE:
        head += f" ({entity.type})"
    if entity.aliases:
        head += f"\nalso {', '.join(entity.aliases)}"
    rows = [_neighbour_row(relation, entity.name) for relation in relations[:limit]]
    relation_lines = [table(rows, most_columns=ENTITY_COLUMNS), _unlisted(limit, relations)]
    document_lines = ["documents"]
    for title in documents:
        document_lines.append(f"  {one_line(title, ENTITY_COLUMNS - 2)}")
    parts = [
        head,
        wrapped(without_bullets(entity.description)),
        "\n".join(filter(None, relation_lines)),
        "\n".join(document_lines),
    ]
    value = {"entity": entity, "relations": relations, "documents": documents}
    return CommandOutput(value, "\n\n".join(filter(None, parts)))


def _neighbour_row(relation: Relation, name: str) -> dict[str, str]:
    """A relation seen from an end, with room for its sentence; names mentioned together have no direction."""
    words = ", ".join(relation.keywords)
    if relation.source == name:
        direction = f"{words} →"
        neighbour = relation.target
    else:
        direction = f"← {words}"
        neighbour = relation.source
    if words in ("", *STATING_NOTHING):
        direction = "–"
    return {
        "relation": one_line(direction, NEIGHBOUR_COLUMNS),
        "name": one_line(neighbour, NEIGHBOUR_COLUMNS),
        "sentence": without_bullets(relation.description),
    }


@main.group()
def entities_group() -> None:
    """List, create, edit, delete and merge entities."""


@main.group()
def relations_group() -> None:
    """List relations, and create, edit and delete them by hand."""


@index_command(
    list_options,
    option("--type entity_type", "Only this type.", default=""),
    name="list",
    group=entities_group,
)
def list_entities(
    rag: LightRAG, limit: int, offset: int, search: str, entity_type: str
) -> CommandOutput:
    """List the entities by name."""
    type_word = "未知" if known_language(rag.engine.language) == "zh" else UNKNOWN_TYPE
    stored_type = UNKNOWN_TYPE if entity_type == type_word else entity_type
    entities = rag.entities.list(search=search, type=stored_type, limit=limit + 1, offset=offset)
    notes = _notes_of_page(entities, limit, offset)
    named_entities = [
        replace(entity, type=type_word) if entity.type == UNKNOWN_TYPE else entity
        for entity in entities[:limit]
    ]
    rows = table(named_entities, "name", "aliases", "type", "description")
    return CommandOutput(entities[:limit], rows or "no entities", notes=notes)


@index_command(list_options, name="list", group=relations_group)
def list_relations(rag: LightRAG, limit: int, offset: int, search: str) -> CommandOutput:
    """List the relations, the heaviest first."""
    relations = rag.entities.relations(search=search, limit=limit + 1, offset=offset)
    notes = _notes_of_page(relations, limit, offset)
    rows = table(relations[:limit], "source", "target", "keywords", "weight", "description")
    return CommandOutput(relations[:limit], rows or "no relations", notes=notes)


def _notes_of_page(items: Sequence[object], limit: int, offset: int) -> list[str]:
    """How to see more than a page, if there are more items than its limit."""
    if len(items) <= limit:
        return []
    return [f"{limit:,} at a time: --offset {offset + limit} shows the next, -n another number"]


@index_command(
    name_argument,
    option("-n --limit", "Sentences to list.", POSITIVE, default=100, show_default=True),
    name="history",
    group=entities_group,
)
def show_history(rag: LightRAG, name: str, limit: int) -> CommandOutput:
    """Show what was said about the entity NAME over time, with the sources."""
    claims = rag.entities.history(name)
    sentences = claims_by_sentence(claims)
    rows = map(_claim_row, sentences[:limit])
    lines = [
        table(rows, "from", "to", "statement", "document", "date"),
        _unlisted(limit, sentences),
    ]
    return CommandOutput(claims, "\n".join(filter(None, lines)))


def _unlisted(limit: int, items: Sequence[object]) -> str:
    """A line with the number of items above the limit; "" for none."""
    count = len(items)
    if count <= limit:
        return ""
    return f"first {limit:,} of {count:,} (-n {count} for all)"


@index_command(
    option("-n --limit", "The maximum number.", POSITIVE, default=100, show_default=True),
    option("--explained", "Also pairs that time explains.", is_flag=True),
    option(
        "--functional kinds_with_one_value",
        "A relation or attribute with one value at a time, such as price, or ^head of for one subject "
        "at a time; may be repeated. Others are learned from the texts.",
        multiple=True,
    ),
    review_options,
    models,
    name="conflicts",
)
def list_conflicts(
    rag: LightRAG,
    limit: int,
    explained: bool,
    kinds_with_one_value: tuple[str, ...],
    review: bool,
    yes: bool,
) -> CommandOutput:
    """List pairs of statements that contradict each other. `relations delete` or `edit` settles one."""
    conflicts = rag.conflicts(
        explained=explained, functional_kinds=kinds_with_one_value or None, limit=limit
    )
    notes: list[str] = []
    if review and conflicts:
        review_usage = rag.entities.estimate_conflict_review(conflicts)
        work = f"review {counted(len(conflicts), 'pairs')}"
        cost = agreed_cost(rag, work, review_usage, ["judge"], is_agreed=yes)
        verdict = rag.entities.review_conflicts(conflicts)
        conflicts = verdict.contradictory
        notes.append(f"reviewed: {verdict.usage.calls} calls (estimated: {cost})")
    rows: list[dict[str, str]] = []
    for conflict in conflicts:
        shared_cells = {
            "subject": conflict.subject,
            "relation": conflict.predicate,
            "explained": "by time" if conflict.explained else "",
        }
        for claim in (conflict.first, conflict.second):
            rows.append(shared_cells | _claim_row(claim))
    columns = ("subject", "relation", "explained", "from", "statement", "document", "date")
    return CommandOutput(conflicts, table(rows, *columns) or wrapped(NO_CONFLICTS), notes=notes)


def _claim_row(claim: DatedClaim) -> dict[str, str]:
    """A claim as a row of a table."""
    statement = " → ".join(filter(None, (claim.subject, claim.predicate, claim.value)))
    return {
        "from": claim.valid_from,
        "to": claim.valid_to,
        "statement": claim.text or statement,
        "document": claim.document,
        "date": claim.written,
    }


@index_command(entity_edit, models, name="create", group=entities_group)
def create_entity(rag: LightRAG, name: str, edit: Parameters) -> CommandOutput:
    """Create the entity NAME. Later mentions in texts are merged into it."""
    return _edited(rag, rag.entities.create(name, **{"type": "", "description": "", **edit}))


@index_command(entity_edit, models, name="edit", group=entities_group)
def edit_entity(rag: LightRAG, name: str, edit: Parameters) -> CommandOutput:
    """Replace the type or description of the entity NAME. `entities merge` changes its name."""
    if edit.keys().isdisjoint(("type", "description")):
        raise click.UsageError("give --type or --description")
    return _edited(rag, rag.entities.edit(name, **edit))


@index_command(name_argument, edit_options, models, name="delete", group=entities_group)
def delete_entity(rag: LightRAG, name: str, by: str, reason: str) -> CommandOutput:
    """Delete the entity NAME and its relations, also from texts inserted later."""
    return _edited(rag, rag.entities.delete(name, by=by, reason=reason))


@index_command(relation_edit, models, name="create", group=relations_group)
def create_relation(rag: LightRAG, source: str, target: str, edit: Parameters) -> CommandOutput:
    """Create a relation between SOURCE and TARGET."""
    edit_id = rag.entities.create_relation(source, target, **{"description": "", **edit})
    return _edited(rag, edit_id)


@index_command(relation_edit, models, name="edit", group=relations_group)
def edit_relation(rag: LightRAG, source: str, target: str, edit: Parameters) -> CommandOutput:
    """Replace the description, keywords or weight of the relation of SOURCE and TARGET."""
    if edit.keys().isdisjoint(("description", "keywords", "weight")):
        raise click.UsageError("give --description, --keyword or --weight")
    return _edited(rag, rag.entities.edit_relation(source, target, **edit))


@index_command(ends_arguments, edit_options, models, name="delete", group=relations_group)
def delete_relation(rag: LightRAG, source: str, target: str, by: str, reason: str) -> CommandOutput:
    """Delete the relation of SOURCE and TARGET, also from texts inserted later."""
    return _edited(rag, rag.entities.delete_relation(source, target, by=by, reason=reason))


def _edited(rag: LightRAG, edit_id: str) -> CommandOutput:
    undo = f"to undo: lightrag-jsonl delete -w {rag.working_dir} {edit_id}"
    return CommandOutput({"edit": edit_id}, notes=[undo])


@index_command(
    option("-n --limit", "How many.", POSITIVE, default=50),
    review_options,
    option(
        "--merge",
        "Merge the pairs that a text states unambiguously; with --review, those that the model judges "
        "the same. `entities unmerge` undoes it.",
        is_flag=True,
    ),
    models,
    name="duplicates",
    group=entities_group,
)
def list_duplicates(
    rag: LightRAG, limit: int, review: bool, yes: bool, merge: bool
) -> CommandOutput:
    """List pairs of entities that may be the same, most likely first."""
    pairs = rag.entities.duplicates(limit=limit)
    notes: list[str] = []
    if review and pairs:
        review_usage = rag.entities.estimate_review(pairs)
        work = f"review {counted(len(pairs), 'pairs')}"
        cost = agreed_cost(rag, work, review_usage, ["judge"], is_agreed=yes)
        verdict = rag.entities.review(pairs)
        pairs = verdict.same
        notes.append(f"reviewed: {verdict.usage.calls} calls (estimated: {cost})")
    if merge:
        pairs = rag.entities.merge_pairs(pairs) if review else rag.entities.merge_stated()
        merged_names = [name for group in groups(pairs) for name in group[1:]]
        notes += _unmerge_notes(rag, merged_names)
    rows: list[dict[str, object]] = []
    for pair in pairs:
        evidence = [sign.detail for sign in pair.evidence]
        rows.append({**asdict(pair), "evidence": evidence})
    display = table(rows, "name", "into", "score", "types", "evidence")
    return CommandOutput(pairs, display or "no possible duplicates", notes=notes)


@index_command(
    names_argument,
    option("--into", "The merged entity.", required=True),
    models,
    name="merge",
    group=entities_group,
)
def merge_entities(rag: LightRAG, names: tuple[str, ...], into: str) -> CommandOutput:
    """Merge the entities NAMES. Extracted data is kept, so `entities unmerge` can undo the merge."""
    rag.entities.merge(names, into=into)
    notes = _unmerge_notes(rag, [name for name in names if name != into])
    return CommandOutput({"merged": names, "into": into}, notes=notes)


@index_command(names_argument, models, name="unmerge", group=entities_group)
def unmerge_entities(rag: LightRAG, names: tuple[str, ...]) -> CommandOutput:
    """Undo the merge of NAMES, or of all names that were merged into NAMES."""
    rag.entities.unmerge(*names)
    return CommandOutput({"unmerged": names})


@index_command(
    option("-n --limit", "How many.", POSITIVE, default=50),
    option(
        "--separate",
        "Tell the bearers of this name apart by the qualifiers listed. `entities rejoin` undoes it.",
    ),
    models,
    name="homonyms",
    group=entities_group,
)
def list_homonyms(rag: LightRAG, limit: int, separate: str | None) -> CommandOutput:
    """List names that perhaps have several bearers, since documents contradict each other."""
    homonyms = rag.entities.homonyms(limit=limit)
    notes: list[str] = []
    if separate is not None:
        homonyms = tuple([homonym for homonym in homonyms if homonym.name == separate])
        for homonym in homonyms:
            rag.entities.separate(homonym.name, homonym.bearers)
            names = [f"{separate} ({qualifier})" for qualifier in homonym.bearers]
            notes.append(_undo_note(rag, "rejoin", names))
    rows: list[dict[str, object]] = []
    for homonym in homonyms:
        bearers = [f"{word}: {', '.join(ids)}" for word, ids in homonym.bearers.items()]
        evidence = [sign.detail for sign in homonym.evidence]
        row = {"name": homonym.name, "score": homonym.score}
        rows.append({**row, "bearers": bearers, "evidence": evidence})
    display = table(rows, "name", "score", "bearers", "evidence")
    return CommandOutput(homonyms, display or NO_HOMONYMS, notes=notes)


@index_command(names_argument, models, name="rejoin", group=entities_group)
def rejoin_entities(rag: LightRAG, names: tuple[str, ...]) -> CommandOutput:
    """Take the qualifiers off NAMES that were separated."""
    rag.entities.rejoin(*names)
    return CommandOutput({"rejoined": names})


def _unmerge_notes(rag: LightRAG, merged_names: Sequence[str]) -> list[str]:
    """The command to undo a merge, if there was one."""
    if not merged_names:
        return []
    return [_undo_note(rag, "unmerge", merged_names)]


def _undo_note(rag: LightRAG, command: str, names: Iterable[str]) -> str:
    """The command that undoes a change of these names."""
    quoted_names = " ".join(f'"{name}"' for name in names)
    return f"to undo: lightrag-jsonl entities {command} -w {rag.working_dir} {quoted_names}"
