"""Laws over time, for any store: what holds at a moment is a function of the visible documents alone."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from hypothesis import strategies as st

from lightrag_jsonl import Document
from lightrag_jsonl.lenses.as_of import as_held, find_holding
from lightrag_jsonl.lenses.claims import read_claims
from lightrag_jsonl.storage.filters import parse_where
from lightrag_jsonl.text.dates import first_day, iso_date, last_day, may_hold
from tests.indexing.libraries import PIECES
from tests.kit import Record, index, pending_document, reading

MOMENTS = ("1843", "1843-12", "1844-06-01")
WRITTEN = (None, "1842", "Dec. 1843", "1844年6月")
FUNCTIONAL = frozenset(["know", "ow"])

written_dates = st.lists(st.sampled_from(WRITTEN), min_size=5, max_size=5)
Library: TypeAlias = Sequence[Sequence[Record]]
State: TypeAlias = dict[str, list[tuple[str, ...]]]
Place: TypeAlias = Path | str


def documents(library: Library, dates: Sequence[str | None]) -> list[Any]:
    """A document for each list of records, with a date or without, on one of two shelves."""
    pending_documents: list[Any] = []
    for number, (records, date) in enumerate(zip(library, dates, strict=False)):
        document = Document(
            "".join(PIECES) + str(number),
            id=f"d{number}",
            date=date,
            metadata={"shelf": "even" if number % 2 == 0 else "odd"},
        )
        pending_documents.append(
            pending_document(document, 1000.0 + number, records=tuple(records), chunks=PIECES)
        )
    return pending_documents


def states(place: Place, shelf: str | None = None) -> State:
    """The mentions and passages that hold at each moment, of all documents or of a shelf."""
    with reading(place) as snapshot:
        where = {} if shelf is None else {"shelf": shelf}
        visible_chunks = snapshot.matching_chunks(parse_where(where))
        claims = read_claims(snapshot, FUNCTIONAL).visible_in(set(visible_chunks))
        held: State = {}
        for moment in MOMENTS:
            view = as_held(snapshot, find_holding(snapshot, moment, claims))
            chunks = view.chunks(visible_chunks)
            rows = [
                *view.entity_mentions(chunks=visible_chunks),
                *view.relation_mentions(chunks=visible_chunks),
            ]
            held[moment] = sorted(
                (chunks[row.chunk].id, chunks[row.chunk].text, repr(row.mention)) for row in rows
            )
            for row in rows:
                mention = row.mention
                is_valid = may_hold(mention.valid_from, mention.valid_to, moment)
                assert is_valid or not mention.description
                date = iso_date(chunks[row.chunk].date)
                assert not date or first_day(date) <= last_day(moment)
        return held


async def insert(place: Place, *groups: Sequence[Any]) -> State:
    """The states after documents are inserted group by group."""
    async with index(place) as rag:
        for group in groups:
            await rag.engine.indexing.insert(group)
    return states(place)


async def check_order(
    place: Place, further_place: Place, pending: Sequence[Any], chance: random.Random
) -> None:
    """One by one or together, in any order: the same holds at every moment."""
    shuffled = chance.sample(pending, len(pending))
    one_by_one = await insert(place, *[[document] for document in pending])
    assert await insert(further_place, shuffled) == one_by_one


async def check_undo(place: Place, pending: Sequence[Any]) -> None:
    """Without the newest document everything is as before, at every moment."""
    *older, newest = pending
    before = await insert(place, older)
    await insert(place, [newest])
    async with index(place) as rag:
        await rag.delete(newest.document.id or "")
    assert states(place) == before


async def check_filter(place: Place, further_place: Place, pending: Sequence[Any]) -> None:
    """A shelf holds what it would hold alone: nothing of the other shelf takes the place of a claim."""
    await insert(place, pending)
    shelf = [document for document in pending if document.document.metadata == {"shelf": "even"}]
    assert await insert(further_place, shelf) == states(place, shelf="even")


async def check_isolation(place: Place, further_place: Place, pending: Sequence[Any]) -> None:
    """What is inserted into another open index changes nothing here."""
    half = len(pending) // 2 + 1
    before = await insert(place, pending[:half])
    async with index(place) as rag, index(further_place) as further_rag:
        await further_rag.engine.indexing.insert(pending[half:])
        assert states(place) == before
        assert {status.id for status in await rag.documents()} == {
            document.document.id for document in pending[:half]
        }
    assert states(place) == before
