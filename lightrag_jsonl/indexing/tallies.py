"""What a row counts over its mentions (sums and votes), and the name and type that follow from them.

Adding and removing mentions in any order gives the same row.
"""

from __future__ import annotations

from collections.abc import Mapping

from lightrag_jsonl.storage.rows import EntityRow, RelationRow
from lightrag_jsonl.types import UNKNOWN_TYPE, EntityMention, RelationMention

MILLIONTHS = 1_000_000  # weights are summed as integers, so that subtracting is exact


def count_entity(row: EntityRow, mention: EntityMention, times: int) -> None:
    """Add a mention to an entity (`times` 1) or remove it (-1)."""
    row.mentions += times
    _vote(row.names, mention.name, times)
    _vote(row.types, mention.type, times)
    for name, value in mention.attributes:
        _vote(row.attributes, f"{name}\0{value}", times)


def count_relation(
    row: RelationRow, mention: RelationMention, times: int, *, forward: bool
) -> None:
    """Add a mention to a relation (`times` 1) or remove it (-1)."""
    row.mentions += times
    row.weight += times * round(mention.strength * MILLIONTHS)
    for keyword in mention.keywords:
        _vote(row.keywords, keyword, times)
    low, high = (mention.source, mention.target) if forward else (mention.target, mention.source)
    _vote(row.low_names, low, times)
    _vote(row.high_names, high, times)
    if forward:
        row.forward += times
    else:
        row.backward += times


def winner(votes: Mapping[str, int]) -> str:
    """The choice with the most votes; ties go to the one that sorts first."""
    if len(votes) == 1:  # nearly always
        return next(iter(votes))
    return min(votes, key=lambda choice: (-votes[choice], choice), default="")


def vote_type(types: Mapping[str, int]) -> str:
    """The most frequent type; `unknown` wins only if it is the only one."""
    known = {kind: n for kind, n in types.items() if kind != UNKNOWN_TYPE}
    return winner(known) if known else UNKNOWN_TYPE


def _vote(votes: dict[str, int], choice: str, times: int) -> None:
    count = votes.get(choice, 0) + times
    if count:
        votes[choice] = count
    else:
        votes.pop(choice, None)


def settle_entity(row: EntityRow, displays: Mapping[str, str]) -> None:
    """Set the entity's name and type by vote; `displays` holds names that a person chose, by key."""
    row.name = displays.get(row.key) or winner(row.names)
    row.type = vote_type(row.types)


def settle_relation(row: RelationRow) -> None:
    """Set the direction in which the relation is shown: that of most mentions, or by the ends' names."""
    if row.forward != row.backward:
        row.reversed = row.backward > row.forward
    else:
        row.reversed = winner(row.high_names) < winner(row.low_names)


def relation_text(row: RelationRow) -> str:
    """The text embedded for a relation: `source — keywords — target: description`."""
    ends = [winner(row.low_names), winner(row.high_names)]
    source, target = reversed(ends) if row.reversed else ends
    return f"{source} — {', '.join(sorted(row.keywords))} — {target}: {row.description}"


def entity_text(row: EntityRow) -> str:
    """The text embedded for an entity: its name and its description."""
    return f"{row.name}\n{row.description}"
