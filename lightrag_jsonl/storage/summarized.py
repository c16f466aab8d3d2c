"""The summaries there are and were, and the claims that each was written from."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lightrag_jsonl.storage.bulk import put_rows
from lightrag_jsonl.storage.claims import TABLES
from lightrag_jsonl.types import Kind

# Rows with the names that survive a change of row ids: an entity's key, or those of a relation's ends.
NAMED: Mapping[Kind, str] = {
    "entity": "SELECT o.id, o.key, o.key, o.summary, o.covered, o.covered_mentions FROM entities o",
    "relation": "SELECT o.id, l.key, h.key, o.summary, o.covered, o.covered_mentions "
    "FROM relations o JOIN entities l ON l.id = o.low JOIN entities h ON h.id = o.high",
}


@dataclass(frozen=True, slots=True)
class Summarized:
    """A summary, the last claim it covers, and which of the claims to be folded anew it covers."""

    summary: str
    covered: int
    covered_mentions: int
    claims: frozenset[int]


class Earlier(NamedTuple):
    """A summary that was replaced by a newer one; `owner` is an entity or relation (row id)."""

    kind: Kind
    owner: int
    covered: int
    covered_mentions: int
    summary: str


Summaries = Mapping[tuple[Kind, Hashable], Summarized]


def read_summaries(connection: sqlite3.Connection, chunks: Collection[int]) -> Summaries:
    """The summaries of everything these chunks (row ids) mention, read before their claims are removed."""
    found: dict[tuple[Kind, Hashable], Summarized] = {}
    wanted = json.dumps(sorted(chunks))
    for kind, named in NAMED.items():
        covers: dict[int, set[int]] = {}
        for owner, claim in connection.execute(
            f"SELECT m.{kind}, m.id FROM json_each(?) AS wanted "
            f"JOIN {TABLES[kind]} m ON m.chunk = wanted.value",
            (wanted,),
        ):
            covers.setdefault(owner, set()).add(claim)
        rows = connection.execute(
            f"{named} WHERE o.summary IS NOT NULL AND o.id IN (SELECT value FROM json_each(?))",
            (json.dumps(sorted(covers)),),
        )
        for owner, low, high, summary, covered, count in rows:
            of = frozenset(claim for claim in covers[owner] if claim <= covered)
            found[kind, frozenset((low, high))] = Summarized(summary, covered, count, of)
    return found


def earlier_summary(
    connection: sqlite3.Connection, kind: Kind, owner: int, *, before: int
) -> Earlier | None:
    """The latest summary of an entity or relation that does not cover the claim with this row id."""
    row = connection.execute(
        "SELECT kind, owner, covered, covered_mentions, summary FROM earlier_summaries "
        "WHERE kind = ? AND owner = ? AND covered < ? ORDER BY covered DESC LIMIT 1",
        (kind, owner, before),
    ).fetchone()
    return None if row is None else Earlier(*row)


def put_earlier(connection: sqlite3.Connection, replaced: Iterable[Earlier]) -> None:
    """Store summaries that are being replaced."""
    put_rows(connection, "INSERT OR REPLACE INTO earlier_summaries", replaced)


def drop_earlier(
    connection: sqlite3.Connection, kind: Kind, owner: int, *, from_claim: int
) -> None:
    """Delete earlier summaries of an entity or relation that cover this claim (a row id) or later ones."""
    connection.execute(
        "DELETE FROM earlier_summaries WHERE kind = ? AND owner = ? AND covered >= ?",
        (kind, owner, from_claim),
    )
