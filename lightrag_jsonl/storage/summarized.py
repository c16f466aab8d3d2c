"""Which summaries there are, and which claims each was written from."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass

from lightrag_jsonl.storage.claims import TABLES
from lightrag_jsonl.types import Kind

# The name of a row that outlives its row id: an entity's key, or the keys of a relation's ends.
NAMED: Mapping[Kind, str] = {
    "entity": "SELECT o.id, o.key, o.key, o.summary, o.covered, o.covered_mentions FROM entities o",
    "relation": "SELECT o.id, l.key, h.key, o.summary, o.covered, o.covered_mentions "
    "FROM relations o JOIN entities l ON l.id = o.low JOIN entities h ON h.id = o.high",
}


@dataclass(frozen=True, slots=True)
class Summarized:
    """A summary, how far it goes, and which claims of those to be folded anew it covers."""

    summary: str
    covered: int
    covered_mentions: int
    claims: frozenset[int]


Summaries = Mapping[tuple[Kind, Hashable], Summarized]


def read_summaries(connection: sqlite3.Connection, chunks: Collection[int]) -> Summaries:
    """The summaries of all that these chunks (row ids) speak of, before their claims are taken out."""
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
