"""Decides which summaries survive a change: those whose claims are all still there."""

from __future__ import annotations

import sqlite3
from collections.abc import Hashable

from lightrag_jsonl.indexing.merging import GRAPH_KINDS, Plan
from lightrag_jsonl.storage.rows import EntityRow, RelationRow
from lightrag_jsonl.storage.summarized import Summaries, earlier_summary


def restore_summaries(connection: sqlite3.Connection, plan: Plan) -> None:
    """Where a removed claim was covered by a summary, go back to the summary from before that claim."""
    for (kind, owner), claim in plan.uncovered.items():
        earlier = earlier_summary(connection, kind, owner, before=claim)
        if earlier is not None:
            row = plan.row(kind, owner)
            row.summary, row.covered = earlier.summary, earlier.covered
            row.covered_mentions = earlier.covered_mentions


def keep_summaries(plan: Plan, before: Summaries, *, all_claims: bool = False) -> None:
    """Restore the summaries of folded rows whose covered claims are unchanged.

    The claims have kept their row ids (see `said_again`). With `all_claims` the plan contains every
    claim of the index, and a summary must also cover as many claims as it says.
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
                plan.uncovered.pop((kind, row.id), None)
                plan.fragments[kind, row.id] = [
                    fragment
                    for claim, fragment in told.items()
                    if claim > known.covered and fragment[1]
                ]


def _name(plan: Plan, row: EntityRow | RelationRow) -> Hashable:
    if isinstance(row, EntityRow):
        return frozenset((row.key,))
    return frozenset(plan.entities[end].key for end in (row.low, row.high))
