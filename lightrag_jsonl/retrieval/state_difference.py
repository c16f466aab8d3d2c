"""The contents of an index in words, and what differs between the contents of two states."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lightrag_jsonl.core.snapshots import Difference, StateDifference
from lightrag_jsonl.core.types import EntityMention, RelationMention
from lightrag_jsonl.storage.views import StoreView

ClaimText = tuple[str, str]  # the subject, and what is said about it


@dataclass(frozen=True, slots=True, kw_only=True)
class StateContents:
    """Documents, entities, relations and merges of names in words, by name; and the number of each claim."""

    documents: Mapping[str, str]
    entities: Mapping[str, str]
    relations: Mapping[str, str]
    merges: Mapping[str, str]
    claims: Counter[ClaimText]

    def since(self, before: "StateContents") -> StateDifference:
        """What differs from an earlier state."""
        return StateDifference(
            documents=_item_differences(before.documents, self.documents),
            entities=_item_differences(before.entities, self.entities),
            relations=_item_differences(before.relations, self.relations),
            merges=_item_differences(before.merges, self.merges),
            claims=tuple(_claim_differences(before.claims, self.claims)),
        )


def read_contents(view: StoreView) -> StateContents:
    """The contents of one state."""
    entity_rows = view.entity_rows()
    names = {row: entity.name for row, entity in entity_rows.items()}
    relations = view.relations(list(view.relation_rows()))
    return StateContents(
        documents={
            document.id: f"{document.title or document.source or document.id}, "
            f"{document.characters:,} characters, version {document.content[:8]}"
            for document in view.documents()
        },
        entities={
            entity.name: f"{entity.type}: {entity.description}" for entity in entity_rows.values()
        },
        relations={
            f"{relation.source} → {relation.target}": f"{', '.join(relation.keywords)}: "
            f"{relation.description}"
            for relation in relations.values()
        },
        merges=dict(_merged_names(view)),
        claims=Counter(_claims(view, names)),
    )


def _merged_names(view: StoreView) -> Iterator[tuple[str, str]]:
    aliases = view.aliases()
    for key, target in aliases.targets.items():
        yield key, aliases.displays.get(target, target)


def _claims(view: StoreView, names: Mapping[int, str]) -> Iterator[ClaimText]:
    """The mentions with a description, without mentions of deleted entities and relations."""
    documents = {row: chunk.document_id for row, chunk in view.chunks().items()}
    for entity in view.entity_mentions():
        if entity.owner is not None and entity.mention.description:
            yield names[entity.owner], _said(entity.mention, documents[entity.chunk])
    for relation in view.relation_mentions():
        if relation.owner is not None and relation.mention.description:
            ends = f"{relation.mention.source} → {relation.mention.target}"
            yield ends, _said(relation.mention, documents[relation.chunk])


def _said(mention: EntityMention | RelationMention, document_id: str) -> str:
    """The description, the time for which it holds, and the document."""
    dates = ""
    if mention.valid_from or mention.valid_to:
        dates = f" ({mention.valid_from or '…'} – {mention.valid_to or '…'})"
    return f"{mention.description}{dates} [{document_id}]"


def _item_differences(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[Difference, ...]:
    names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    return tuple(
        Difference(name=name, before=before.get(name, ""), after=after.get(name, ""))
        for name in names
    )


def _claim_differences(
    before: Counter[ClaimText], after: Counter[ClaimText]
) -> Iterator[Difference]:
    """Claims that are made less often than before, and those that are made more often."""
    for subject, statement in sorted((before - after).keys() | (after - before).keys()):
        is_new = after[subject, statement] > before[subject, statement]
        yield Difference(
            name=subject, before="" if is_new else statement, after=statement if is_new else ""
        )
