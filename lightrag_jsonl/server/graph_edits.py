"""Changes of the graph by hand, requested by a client."""

from collections.abc import Mapping
from itertools import chain
from typing import Annotated, Literal

from msgspec import Meta, Struct

from lightrag_jsonl import AsyncLightRAG
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.curation.duplicates import Evidence
from lightrag_jsonl.server.routing import Call
from lightrag_jsonl.storage.store import read
from lightrag_jsonl.tracing.trace import describe_documents

EditedName = Annotated[str, Meta(min_length=1, max_length=2_000)]
EditedWeight = Annotated[float, Meta(ge=0, le=1_000_000)]


class GraphEdit(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A change of the entity `name`, or of the relation from `name` to `target`.

    `merge` makes `name` another name of the entity `target`, `unmerge` undoes a merge. `separate`
    tells the bearers of `name` apart: `bearers` has the ids of the documents of each, by a
    qualifier; `rejoin` takes the qualifier off. Fields without a value are unchanged. `by` names
    the author of the change.
    """

    action: Literal["edit", "delete", "merge", "unmerge", "separate", "rejoin"]
    name: EditedName
    target: EditedName | None = None
    type: EditedName | None = None
    description: str | None = None
    keywords: list[str] | None = None
    weight: EditedWeight | None = None
    bearers: dict[EditedName, list[str]] | None = None
    by: str = ""
    reason: str = ""


class HomonymParams(Struct, forbid_unknown_fields=True):
    """The most names to list."""

    limit: Annotated[int, Meta(ge=1, le=500)] = 50


class HomonymLine(Struct):
    """A name with perhaps several bearers: why, the ids of the documents of each bearer by a qualifier, and
    the titles of these documents by id.
    """

    name: str
    bearers: Mapping[str, tuple[str, ...]]
    score: float
    evidence: tuple[Evidence, ...]
    documents: dict[str, str]


class EditReport(Struct):
    """The way to undo a change: delete the document, unmerge the name, or rejoin each name."""

    document: str | None = None
    unmerge: str | None = None
    rejoin: tuple[str, ...] = ()


def check_edit(edit: GraphEdit) -> None:
    """`ConfigError` for a missing field of the action."""
    if edit.action == "merge" and edit.target is None:
        raise ConfigError("a merge needs a target: the entity of which `name` is another name")
    if edit.action == "separate" and not edit.bearers:
        raise ConfigError("a separation needs bearers: the ids of documents, by a qualifier")
    if edit.action in ("edit", "delete") and not edit.by.strip():
        raise ConfigError("by must name the author of the change")


async def edit_graph(rag: AsyncLightRAG, edit: GraphEdit) -> EditReport:
    """Carry out a change; `NotFoundError` for an unknown entity or relation."""
    check_edit(edit)
    if edit.action == "merge" and edit.target is not None:
        await rag.entities.merge([edit.name], into=edit.target)
        return EditReport(unmerge=edit.name)
    if edit.action == "unmerge":
        await rag.entities.unmerge(edit.name)
        return EditReport()
    if edit.action == "separate" and edit.bearers:
        await rag.entities.separate(edit.name, edit.bearers)
        separated_names = [f"{edit.name} ({word})" for word in edit.bearers]
        return EditReport(rejoin=tuple(separated_names))
    if edit.action == "rejoin":
        await rag.entities.rejoin(edit.name)
        return EditReport()
    if edit.action == "delete":
        return EditReport(document=await _delete(rag, edit))
    return EditReport(document=await _edit(rag, edit))


async def _delete(rag: AsyncLightRAG, edit: GraphEdit) -> str:
    if edit.target is None:
        return await rag.entities.delete(edit.name, by=edit.by, reason=edit.reason)
    return await rag.entities.delete_relation(
        edit.name, edit.target, by=edit.by, reason=edit.reason
    )


async def _edit(rag: AsyncLightRAG, edit: GraphEdit) -> str:
    if edit.target is None:
        return await rag.entities.edit(
            edit.name,
            type=edit.type,
            description=edit.description,
            by=edit.by,
            reason=edit.reason,
        )
    return await rag.entities.edit_relation(
        edit.name,
        edit.target,
        description=edit.description,
        keywords=edit.keywords,
        weight=edit.weight,
        by=edit.by,
        reason=edit.reason,
    )


async def get_homonyms(call: Call) -> list[HomonymLine]:
    """Names with perhaps several bearers, the likeliest first; `separate` takes the bearers of a name."""
    limit = call.params.limit
    return await call.index.once(f"homonyms {limit}", lambda: _homonym_lines(call.index.rag, limit))


async def _homonym_lines(rag: AsyncLightRAG, limit: int) -> list[HomonymLine]:
    homonyms = await rag.entities.homonyms(limit=limit)
    ids: set[str] = set()
    for homonym in homonyms:
        ids.update(*homonym.bearers.values())
    documents = await read(rag.engine.store, lambda view: describe_documents(view, ids))
    titles = {id: document.title or document.name for id, document in documents.items()}
    lines: list[HomonymLine] = []
    for homonym in homonyms:
        ids_of_bearers = chain.from_iterable(homonym.bearers.values())
        lines.append(
            HomonymLine(
                name=homonym.name,
                bearers=homonym.bearers,
                score=homonym.score,
                evidence=homonym.evidence,
                documents={id: titles[id] for id in ids_of_bearers},
            )
        )
    return lines
