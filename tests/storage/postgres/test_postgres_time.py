"""Laws over time in PostgreSQL; `tests/laws/test_time.py` has them for SQLite."""

import asyncio
import random
from collections.abc import Callable
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.indexing.libraries import libraries
from tests.kit import Record
from tests.laws.moments import (
    check_filter,
    check_isolation,
    check_order,
    check_undo,
    documents,
    written_dates,
)

few_examples = settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
Url = Callable[[object], str]


@few_examples
@given(libraries, written_dates, st.randoms(use_true_random=False))
def test_what_held_does_not_depend_on_the_order_of_documents(
    url: Url, library: list[list[Record]], dates: list[str | None], chance: random.Random
) -> None:
    """And whatever is visible may hold at the moment, and was written by then."""
    pending = documents(library, dates)
    asyncio.run(check_order(url(uuid4()), url(uuid4()), pending, chance))


@few_examples
@given(libraries, written_dates)
def test_deleting_the_newest_document_gives_the_old_states(
    url: Url, library: list[list[Record]], dates: list[str | None]
) -> None:
    """To the row, at every moment."""
    asyncio.run(check_undo(url(uuid4()), documents(library, dates)))


@few_examples
@given(libraries, written_dates)
def test_a_filter_does_not_leak_at_any_moment(
    url: Url, library: list[list[Record]], dates: list[str | None]
) -> None:
    """A hidden document's claim takes the place of no visible claim."""
    asyncio.run(check_filter(url(uuid4()), url(uuid4()), documents(library, dates)))


@few_examples
@given(libraries, written_dates)
def test_two_indexes_do_not_share_time(
    url: Url, library: list[list[Record]], dates: list[str | None]
) -> None:
    """Later claims of one index replace nothing in another."""
    asyncio.run(check_isolation(url(uuid4()), url(uuid4()), documents(library, dates)))
