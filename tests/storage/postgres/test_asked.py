"""An index in a database that is read when it is asked equals one in a folder."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.cli.conftest import run_json
from tests.kit import View, index, problems, view
from tests.laws.test_commit import KILLS, LIVES, check_killed_questions
from tests.retrieval.test_asked import QUESTION, ScriptedLLM, answering, documents, read_texts
from tests.tools import test_asked_elsewhere as elsewhere


async def test_reading_is_the_same_in_both_stores(
    tmp_path: Path, url: Callable[[object], str]
) -> None:
    """What two instances that ask at once have read, each chunk once, and what a rollback takes back."""
    views: list[list[View]] = []
    for address in (url(tmp_path), tmp_path / "kb"):
        llm = ScriptedLLM(answering, seconds=0.01)
        seen: list[View] = []
        async with index(address, llm) as rag, index(address, llm) as other:
            await rag.insert(documents(), read="asked", progress=False)
            seen.append(view(address))
            await rag.admin.snapshot("unread")
            questions = [one.query(QUESTION, read_chunks=3) for one in (rag, other)]
            await asyncio.gather(*questions)
            assert len(read_texts(llm)) == len(set(read_texts(llm)))
            await rag.query(QUESTION)
            seen.append(view(address))
            await rag.admin.rollback("unread")
            seen.append(view(address))
        assert problems(address) == []
        assert len(read_texts(llm)) == len(documents())
        views.append(seen)
    assert views[0] == views[1]
    assert views[0][0] == views[0][2]


@pytest.mark.parametrize(
    "check",
    [
        elsewhere.stays_after_a_merge,
        elsewhere.joins_what_two_copies_have_read,
        elsewhere.stays_after_a_rollback_and_a_purge,
    ],
)
async def test_what_was_learned_stays(
    check: Callable[[Callable[[str], str]], Awaitable[None]],
    tmp_path: Path,
    url: Callable[[object], str],
) -> None:
    """In a database as in a folder: see `tests.tools.test_asked_elsewhere`."""
    await check(lambda name: url(tmp_path / name))


async def test_a_copy_in_another_store_has_all_that_was_learned(
    tmp_path: Path, url: Callable[[object], str]
) -> None:
    """From a folder into a database, and back."""
    await elsewhere.asked(tmp_path / "a")
    before = await elsewhere.learned(tmp_path / "a")
    run_json("copy", tmp_path / "a", url(tmp_path / "b"))
    run_json("copy", url(tmp_path / "b"), tmp_path / "c")
    assert await elsewhere.learned(url(tmp_path / "b")) == before
    assert await elsewhere.learned(tmp_path / "c") == before


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(-(-KILLS // LIVES)))
def test_a_question_that_is_killed_loses_nothing(
    tmp_path: Path, url: Callable[[object], str], seed: int
) -> None:
    """In a database as in a folder: see `tests.laws.test_commit`."""
    check_killed_questions(url(tmp_path), tmp_path, seed)
