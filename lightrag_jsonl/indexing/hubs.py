"""Remembers the latest descriptions of hubs from one commit of an insert to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lightrag_jsonl.indexing.merging import Fragment
from lightrag_jsonl.types import Kind

MOST = 10_000  # entities and relations remembered; beyond that, all are forgotten

Owner = tuple[Kind, int]


class Hubs:
    """The first fragments not covered by a summary, for entities and relations that have several.

    Each commit of an insert mentions the same hubs again, and reading their claims from the
    database would touch a page for each chunk that mentions them. The memory is valid for one
    generation: a commit by anybody else empties it.
    """

    def __init__(self) -> None:
        self._generation = -1
        self._fragments: dict[Owner, tuple[Fragment, ...]] = {}

    def at(self, generation: int) -> Mapping[Owner, tuple[Fragment, ...]]:
        """The fragments by owner (kind, row id), valid at a generation."""
        if generation != self._generation:
            self._fragments.clear()
        return self._fragments

    def clear(self) -> None:
        """Forget everything: for commits that remove claims."""
        self._fragments.clear()

    def leave(
        self,
        generation: int,
        found: Mapping[Owner, tuple[Fragment, ...]],
        *,
        instead_of: Iterable[Owner],
    ) -> None:
        """Remember `found` as of a generation, and forget what was known of the owners in `instead_of`."""
        for owner in instead_of:
            self._fragments.pop(owner, None)
        if len(self._fragments) + len(found) > MOST:
            self._fragments.clear()
        self._fragments.update(found)
        self._generation = generation
