"""Summaries that outlive a folding anew: a row whose summarized claims are all there, and no others."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass

from lightrag_jsonl.indexing.merging import GRAPH_KINDS, Plan
from lightrag_jsonl.storage import claims
from lightrag_jsonl.storage.rows import EntityRow, RelationRow
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
    for kind in GRAPH_KINDS:
        covers: dict[int, set[int]] = {}
        for owner, claim in connection.execute(
            f"SELECT m.{kind}, m.id FROM json_each(?) AS wanted "
            f"JOIN {claims.TABLES[kind]} m ON m.chunk = wanted.value",
            (wanted,),
        ):
            covers.setdefault(owner, set()).add(claim)
        rows = connection.execute(
            f"{NAMED[kind]} WHERE o.summary IS NOT NULL AND o.id IN (SELECT value FROM json_each(?))",
            (json.dumps(sorted(covers)),),
        )
        for owner, low, high, summary, covered, count in rows:
            of = frozenset(claim for claim in covers[owner] if claim <= covered)
            found[kind, frozenset((low, high))] = Summarized(summary, covered, count, of)
    return found


def keep_summaries(plan: Plan, before: Summaries, *, all_claims: bool = False) -> None:
    """Give the rows of a plan the summaries that still are of their claims, to be described with.

    The claims keep their row ids (`said_again`). With `all_claims` the plan holds all there are, and
    a summary has to cover as many as it says.
    """
    for kind in GRAPH_KINDS:
        for row in plan.alive(kind):
            known = before.get((kind, _name(plan, row)))
            if known is None:
                continue
            told = plan.again.get((kind, row.id), {})
            same = known.claims == {claim for claim in told if claim <= known.covered}
            if same and not (all_claims and known.covered_mentions != len(known.claims)):
                row.summary, row.covered = known.summary, known.covered
                row.covered_mentions = known.covered_mentions
                plan.fragments[kind, row.id] = [
                    fragment
                    for claim, fragment in told.items()
                    if claim > known.covered and fragment[2]
                ]


def _name(plan: Plan, row: EntityRow | RelationRow) -> Hashable:
    if isinstance(row, EntityRow):
        return frozenset((row.key,))
    return frozenset(plan.entities[end].key for end in (row.low, row.high))
