"""What hubs were told lately, remembered from one commit of an insert to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lightrag_jsonl.indexing.merging import Fragment
from lightrag_jsonl.types import Kind

MOST = 10_000  # entities and relations that are remembered; of more, all are forgotten

Owner = tuple[Kind, int]


class Hubs:
    """The first fragments that no summary covers, of entities and relations that have several.

    Each commit of an insert mentions the same hubs again, and in the database their claims lie on
    as many pages as there are chunks that mention them. What is remembered holds for the generation
    it was left at: a change by anybody else makes all of it void.
    """

    def __init__(self) -> None:
        self._generation = -1
        self._fragments: dict[Owner, tuple[Fragment, ...]] = {}

    def at(self, generation: int) -> Mapping[Owner, tuple[Fragment, ...]]:
        """The fragments by owner (kind, row id), as they are at a generation."""
        if generation != self._generation:
            self._fragments.clear()
        return self._fragments

    def clear(self) -> None:
        """Forget all, since claims are taken out."""
        self._fragments.clear()

    def leave(
        self,
        generation: int,
        found: Mapping[Owner, tuple[Fragment, ...]],
        *,
        instead_of: Iterable[Owner],
    ) -> None:
        """Remember `found` at a generation, and nothing else of the owners that it is `instead_of`."""
        for owner in instead_of:
            self._fragments.pop(owner, None)
        if len(self._fragments) + len(found) > MOST:
            self._fragments.clear()
        self._fragments.update(found)
        self._generation = generation
