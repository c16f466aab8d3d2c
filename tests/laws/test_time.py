"""Laws over time in SQLite; `tests/storage/postgres/test_postgres_time.py` has them for PostgreSQL."""

import asyncio
import random
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.indexing.libraries import libraries, slow
from tests.kit import Record
from tests.laws.moments import (
    check_filter,
    check_isolation,
    check_order,
    check_undo,
    documents,
    written_dates,
)


@slow
@given(libraries, written_dates, st.randoms(use_true_random=False))
def test_what_held_does_not_depend_on_the_order_of_documents(
    library: list[list[Record]], dates: list[str | None], chance: random.Random
) -> None:
    """And whatever is visible may hold at the moment, and was written by then."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as further:
        asyncio.run(check_order(folder, further, documents(library, dates), chance))


@slow
@given(libraries, written_dates)
def test_deleting_the_newest_document_gives_the_old_states(
    library: list[list[Record]], dates: list[str | None]
) -> None:
    """To the row, at every moment."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(check_undo(folder, documents(library, dates)))


@slow
@given(libraries, written_dates)
def test_a_filter_does_not_leak_at_any_moment(
    library: list[list[Record]], dates: list[str | None]
) -> None:
    """A hidden document's claim takes the place of no visible claim."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as further:
        asyncio.run(check_filter(folder, further, documents(library, dates)))


@slow
@given(libraries, written_dates)
def test_two_indexes_do_not_share_time(
    library: list[list[Record]], dates: list[str | None]
) -> None:
    """Later claims of one index replace nothing in another."""
    with tempfile.TemporaryDirectory() as folder:
        places = Path(folder)
        asyncio.run(check_isolation(places / "a", places / "b", documents(library, dates)))
