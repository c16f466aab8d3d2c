"""Laws over time: what held at a moment is a function of the set of documents, and nothing else is seen."""

import asyncio
import random
import tempfile
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.core.dates import first_day, iso_date, last_day
from lightrag_jsonl.core.time_expressions import may_hold
from lightrag_jsonl.core.types import Document, Record
from lightrag_jsonl.retrieval.claims import read_claims
from lightrag_jsonl.retrieval.holding import HoldingView, find_holding
from lightrag_jsonl.storage.rows import PendingDocument
from tests.indexing.libraries import PIECES, libraries, slow
from tests.kit import index, reading

MOMENTS = ("1843", "1843-12", "1844-06-01")
WRITTEN = (None, "1842", "Dec. 1843", "1844年6月")

written_dates = st.lists(st.sampled_from(WRITTEN), min_size=5, max_size=5)
State = dict[str, list[tuple[str, ...]]]


def documents(
    library: Sequence[Sequence[Record]], dates: Sequence[str | None]
) -> list[PendingDocument]:
    """A document for each list of records, with a date or without."""
    return [
        PendingDocument(
            Document("".join(PIECES) + str(number), id=f"d{number}", date=date),
            1000.0 + number,
            tuple(records),
            PIECES,
        )
        for number, (records, date) in enumerate(zip(library, dates, strict=False))
    ]


def states(folder: str) -> State:
    """The mentions and passages that held at each moment."""
    with reading(folder) as snapshot:
        claims = read_claims(snapshot, frozenset(["know", "ow"]))
        held: State = {}
        for moment in MOMENTS:
            view = HoldingView(snapshot.dialect, find_holding(snapshot, moment, claims))
            chunks = view.chunks()
            rows = [*view.entity_mentions(), *view.relation_mentions()]
            held[moment] = sorted(
                (chunks[row.chunk].id, chunks[row.chunk].text, repr(row.mention)) for row in rows
            )
            for row in rows:
                assert may_hold(row.mention.valid_from, row.mention.valid_to, moment) or not (
                    row.mention.description
                )
                date = iso_date(chunks[row.chunk].date)
                assert not date or first_day(date) <= last_day(moment)
        return held


@slow
@given(libraries, written_dates, st.randoms(use_true_random=False))
def test_what_held_does_not_depend_on_the_order_of_documents(
    library: list[list[Record]], dates: list[str | None], chance: random.Random
) -> None:
    """And whatever is shown may hold at the moment, and was written by then."""

    async def run(folder: str, pending: Sequence[PendingDocument]) -> State:
        async with index(folder) as rag:
            for document in pending:
                await rag.engine.indexing.insert([document])
        return states(folder)

    given_documents = documents(library, dates)
    shuffled = chance.sample(given_documents, len(given_documents))
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as further:
        assert asyncio.run(run(folder, given_documents)) == asyncio.run(run(further, shuffled))


@slow
@given(libraries, written_dates)
def test_deleting_the_newest_document_gives_the_old_states(
    library: list[list[Record]], dates: list[str | None]
) -> None:
    """To the row, at every moment."""

    async def run(folder: str) -> None:
        *older, newest = documents(library, dates)
        async with index(folder) as rag:
            await rag.engine.indexing.insert(older)
            before = states(folder)
            await rag.engine.indexing.insert([newest])
            await rag.delete(newest.document.id or "")
            assert states(folder) == before

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))
