"""Summaries that outlive a folding anew: a row whose summarized claims are all there, and no others."""

from __future__ import annotations

from collections.abc import Hashable

from lightrag_jsonl.indexing.merging import GRAPH_KINDS, Plan
from lightrag_jsonl.storage.rows import EntityRow, RelationRow
from lightrag_jsonl.storage.summarized import Summaries


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
                    if claim > known.covered and fragment[1]
                ]


def _name(plan: Plan, row: EntityRow | RelationRow) -> Hashable:
    if isinstance(row, EntityRow):
        return frozenset((row.key,))
    return frozenset(plan.entities[end].key for end in (row.low, row.high))
