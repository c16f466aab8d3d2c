"""One description for each entity and relation: when a model is asked for it, from what, and how often."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import AsyncLightRAG, IndexOptions
from lightrag_jsonl.errors import LLMError
from lightrag_jsonl.indexing.summaries import groups
from lightrag_jsonl.storage import claims
from lightrag_jsonl.testing import Request, ScriptedLLM
from lightrag_jsonl.text import digest
from lightrag_jsonl.types import Completion, Document
from tests.indexing.kit import (
    damage,
    entity,
    index,
    jsonl,
    problems,
    read_names,
    relation,
    stored,
    text_of,
)


def fact(number: int) -> str:
    return f"In year {number} the hub was painted in the {number}th colour."


async def tell(
    folder: Path, llm: ScriptedLLM | None, numbers: Sequence[int], **options: int
) -> None:
    """A document for each number, in turn, each with one fact about Hub."""
    async with index(folder, llm, options=IndexOptions(**options)) as rag:  # type: ignore[arg-type]
        for number in numbers:
            await rag.insert_records(
                Document(fact(number), id=f"d{number}"), [entity("Hub", fact(number))]
            )


def notes(request: Request) -> list[str]:
    return request.question.partition("Notes:\n- ")[2].split("\n- ")


def hub(folder: Path, name: str = "Hub") -> tuple[str, str | None]:
    ((description, summary),) = stored(
        folder, f"SELECT description, summary FROM entities WHERE name = '{name}'"
    )
    return description, summary


def test_few_and_short_descriptions_are_joined_as_they_are(tmp_path: Path) -> None:
    """One is itself; up to seven stand below each other; no model is asked."""
    llm = ScriptedLLM(read_names)
    asyncio.run(tell(tmp_path, llm, range(7)))
    description, summary = hub(tmp_path)
    assert sorted(description.split("\n")) == [fact(n) for n in range(7)]
    assert summary is None and llm.requests == []


def test_many_mentions_cost_an_eighth_as_many_calls_at_most(tmp_path: Path) -> None:
    """A summary is renewed when the fragments since the last one are eight, or a quarter of all."""
    llm = ScriptedLLM(read_names)
    asyncio.run(tell(tmp_path, llm, range(120)))
    assert 4 <= len(llm.requests) <= 120 / 8
    assert problems(tmp_path) == []


def test_a_summary_is_written_from_all_fragments_and_never_from_a_summary(tmp_path: Path) -> None:
    """Each call has every distinct fragment so far; those that came since stand beside the summary."""
    llm = ScriptedLLM(read_names)
    asyncio.run(tell(tmp_path, llm, range(18)))
    assert [len(notes(request)) for request in llm.requests] == [8, 16]
    assert all("summary" not in request.question for request in llm.requests)
    assert "in English" in llm.requests[0].messages[0].content
    description, summary = hub(tmp_path)
    assert summary == "A summary of 16 notes."
    assert description.split("\n")[0] == summary
    assert sorted(description.split("\n")[1:]) == sorted([fact(16), fact(17)])


async def test_the_same_words_many_times_need_no_summary(tmp_path: Path) -> None:
    """It is distinct descriptions that count."""
    llm = ScriptedLLM(read_names)
    async with index(tmp_path, llm) as rag:
        for number in range(20):
            await rag.insert_records(
                Document(str(number), id=f"d{number}"), [entity("Hub", "The same.")]
            )
    assert hub(tmp_path) == ("The same.", None) and llm.requests == []


def test_two_long_descriptions_need_a_summary(tmp_path: Path) -> None:
    """Few are joined only while they are short together."""
    llm = ScriptedLLM(read_names)
    asyncio.run(tell(tmp_path, llm, range(3), summarize_tokens=40))
    assert hub(tmp_path)[1] is not None and llm.requests


async def test_relations_are_summarized_too(tmp_path: Path) -> None:
    """By their ends' names."""
    llm = ScriptedLLM(read_names)
    async with index(tmp_path, llm) as rag:
        for n in range(9):
            said = [entity("Ann", "A."), entity("Bob", "B."), relation("Ann", "Bob", fact(n))]
            await rag.insert_records(Document(str(n), id=f"d{n}"), said)
    assert stored(tmp_path, "SELECT summary FROM relations") == [("A summary of 8 notes.",)]
    assert [request.question.split("\n")[0] for request in llm.requests] == ["Subject: Ann — Bob"]


def test_the_same_history_gives_the_same_requests(tmp_path: Path) -> None:
    """Nothing of a request depends on chance, time or row ids."""
    one, other = ScriptedLLM(read_names), ScriptedLLM(read_names)
    asyncio.run(tell(tmp_path / "a", one, range(40)))
    asyncio.run(tell(tmp_path / "b", other, range(40)))
    assert one.requests == other.requests and hub(tmp_path / "a") == hub(tmp_path / "b")


async def test_a_summary_covers_its_own_fragments_only(tmp_path: Path) -> None:
    """After others' claims are deleted and their row ids used again, new fragments still stand beside it."""

    def hub_of(rag: object) -> str:
        rows = stored(tmp_path, "SELECT description FROM entities WHERE name = 'Hub'")
        return str(rows[0][0])

    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        facts = [entity("Hub", fact(n)) for n in range(8)]
        others = [entity(f"Other{n}", "x") for n in range(9)]
        await rag.insert_records(Document("a", id="a"), facts[:7])
        chunks = ["first", "second"]
        mixed = [facts[7], *({**other, "chunk": 1} for other in others)]
        await rag.insert_records(Document("first second", id="b"), mixed, chunks)
        assert hub_of(rag) == "A summary of 8 notes."
        await rag.insert_records(Document("c", id="c"), [entity("Last", "x")])
        await rag.delete("c")
        await rag.insert_records(Document("d", id="d"), [entity("Hub", fact(8))])
        assert hub_of(rag) == "A summary of 8 notes.\n" + fact(8)


async def test_a_deletion_frees_row_ids_that_no_summary_covers(tmp_path: Path) -> None:
    """The highest claims of a commit may belong to others and go before the hub is told more."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        waiting = [(Document("a", id="a"), [entity("Hub", fact(n)) for n in range(8)])]
        waiting += [(Document("b", id="b"), [entity(f"Other{n}", "x") for n in range(20)])]
        from lightrag_jsonl.storage.pending import PendingDocument

        await rag._engine.indexing.insert(
            PendingDocument(document, tuple(records), None, 1.0) for document, records in waiting
        )
        await rag.delete("b")
        await rag.insert_records(Document("c", id="c"), [entity("Hub", fact(8))])
    description, summary = hub(tmp_path)
    assert summary and description == summary + "\n" + fact(8)


@pytest.mark.parametrize("gone", [0, 7])
async def test_no_summary_outlives_a_claim_that_it_covers(tmp_path: Path, gone: int) -> None:
    """The first as well as the last: nothing that a deleted text said stands in one."""

    def summaries() -> set[object]:
        entities = "SELECT summary FROM entities WHERE name = 'Hub'"
        return {
            row[0] for row in stored(tmp_path, f"{entities} UNION SELECT summary FROM relations")
        }

    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        for n in range(8):
            said = [entity("Hub", fact(n)), entity("Far", "x"), relation("Hub", "Far", fact(n))]
            await rag.insert_records(Document(fact(n), id=f"d{n}"), said)
        assert summaries() == {"A summary of 8 notes."}
        await rag.delete(f"d{gone}")
        assert summaries() == {None}
    left = {fact(n) for n in range(8) if n != gone}
    assert set(hub(tmp_path)[0].split("\n")) == left


async def test_a_summary_beside_a_deletion_covers_what_is_left_only(tmp_path: Path) -> None:
    """A text that says no more of the hub takes its claims along; their row ids are another's next."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        for id, facts in (("a", range(8)), ("b", range(8, 16))):
            said = [entity("Hub", fact(n)) for n in facts]
            await rag.insert_records(Document(id, id=id), said)
        await rag.insert_records(Document("b, otherwise", id="b"), [])
        assert hub(tmp_path) == ("A summary of 8 notes.",) * 2
        for n in (16, 17):
            await rag.insert_records(Document(fact(n), id=f"c{n}"), [entity("Hub", fact(n))])
    assert set(hub(tmp_path)[0].split("\n")) == {"A summary of 8 notes.", fact(16), fact(17)}


async def test_many_entities_told_of_again_keep_what_was_said_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few of them are read at once."""
    monkeypatch.setattr(claims, "OWNERS_AT_ONCE", 2)
    names = [f"Name{n}" for n in range(5)]
    for number in range(2):
        async with index(tmp_path) as rag:
            said = [entity(name, fact(number)) for name in names]
            await rag.insert_records(Document(fact(number), id=f"d{number}"), said)
    assert {hub(tmp_path, name)[0] for name in names} == {fact(0) + "\n" + fact(1)}


@pytest.mark.parametrize("answer", ["", "  \n", LLMError("ill")])
async def test_where_no_summary_can_be_had_the_fragments_stand_in(
    tmp_path: Path, answer: str | Exception
) -> None:
    """Nothing is lost, nothing bad is cached, and the next insert tries again."""
    well = False

    def model(request: Request) -> str | Exception:
        return read_names(request) if well else answer

    async with index(tmp_path, ScriptedLLM(model)) as rag:
        for n in range(8):
            await rag.insert_records(Document(str(n), id=f"d{n}"), [entity("Hub", fact(n))])
        assert len(hub(tmp_path)[0].split("\n")) == 8 and hub(tmp_path)[1] is None
        well = True
        await rag.insert_records(Document("8", id="d8"), [entity("Hub", fact(8))])
        assert hub(tmp_path) == ("A summary of 9 notes.",) * 2


async def test_a_budget_that_ends_awaits_the_summaries_that_are_being_written(
    tmp_path: Path,
) -> None:
    """They are paid for: counted with their tokens, and not asked for again."""

    class Uneven(ScriptedLLM):
        """The third call takes longer than the others."""

        async def complete(self, *args: Any, **options: Any) -> Completion:
            third = len(self.requests) == 2
            done = await super().complete(*args, **options)
            await asyncio.sleep(0.05 if third else 0.0)
            return done

    llm = Uneven(lambda request: "A summary.")
    records = [entity(f"Hub{n}", fact(day)) for n in range(6) for day in range(8)]
    options = IndexOptions(max_calls=4, max_concurrent_calls=2)
    async with index(tmp_path, llm, options=options) as rag:
        report = await rag.insert_records(Document("many", id="d"), records)
        assert "4 of 4 calls" in report.stopped and len(llm.requests) == 4
        assert (report.usage.calls, report.usage.output_tokens) == (4, 4 * 2)
    async with index(tmp_path, llm) as rag:
        assert (await rag.summarize()).calls == 2
    assert len(llm.requests) == 6


async def test_a_summary_that_nobody_hears_is_asked_for_once_an_insert(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many commits the insert has; fragments stand in, and the next insert tries again."""

    def model(request: Request) -> str | Exception:
        if request.question.startswith("Subject: Ann"):
            return LLMError("no answer in time", transient=True, unheard=True)
        return jsonl(entity("Ann", text_of(request)))

    def lost() -> int:
        return sum(request.question.startswith("Subject: Ann\n") for request in llm.requests)

    monkeypatch.setattr("lightrag_jsonl.indexing.grouping.LINGER_SECONDS", 0.0)
    llm = ScriptedLLM(model, seconds=0.01)
    options = IndexOptions(summarize_fragments=2, max_concurrent_calls=1)
    async with index(tmp_path, llm, options=options) as rag:
        report = await rag.insert([f"On day {n} Ann met Bob{n}." for n in range(6)])
        assert lost() == 1 and report.usage.calls == len(llm.requests)
        await rag.insert("On day 7 Ann met Cid.")
        assert lost() == 2 and hub(tmp_path, "Ann")[1] is None


async def test_a_spent_budget_leaves_fragments(tmp_path: Path) -> None:
    """Documents become visible all the same."""
    async with index(tmp_path, ScriptedLLM(read_names), options=IndexOptions(max_calls=0)) as rag:
        for n in range(8):
            report = await rag.insert_records(
                Document(str(n), id=f"d{n}"), [entity("Hub", fact(n))]
            )
        assert report.documents == ("d7",) and "stopped" in report.stopped
    assert len(hub(tmp_path)[0].split("\n")) == 8


def test_without_a_model_fragments_are_shown_in_the_order_of_places(tmp_path: Path) -> None:
    """At most eight, within the limit of tokens."""
    asyncio.run(tell(tmp_path, None, range(30)))
    description, summary = hub(tmp_path)
    assert summary is None and len(description.split("\n")) == 8


def test_documents_whose_places_are_the_same_have_an_order_still(tmp_path: Path) -> None:
    """A place holds 28 bits of a document's digest: among 20,000 documents two are likely alike."""
    places: dict[str, str] = {}
    for id in map(str, range(200_000)):
        twin = places.setdefault(digest(id)[:7], id)
        if twin != id:
            break

    async def insert(folder: Path, *ids: str) -> None:
        async with index(folder, None) as rag:
            for one in ids:
                text = f"Hub is told of by {one}."
                await rag.insert_records(Document(text, id=one), [entity("Hub", text)])

    asyncio.run(insert(tmp_path / "one", twin, id))
    asyncio.run(insert(tmp_path / "other", id, twin))
    assert twin != id and hub(tmp_path / "one") == hub(tmp_path / "other")


# ── many fragments: groups ──────────────────────────────────────────────────────

texts = st.lists(st.text("abcdef ", min_size=1, max_size=12), min_size=1, max_size=60, unique=True)


@given(texts, st.integers(10, 60))
def test_groups_keep_every_text_in_order_within_the_limit(found: list[str], limit: int) -> None:
    """Only a text that is longer alone makes a group too large."""
    cut = groups(found, limit=limit, count=len)
    assert [text for group in cut for text in group] == found
    assert all(len(group) == 1 or sum(map(len, group)) <= limit for group in cut)


def test_fragments_too_long_for_any_group_stand_as_they_are(tmp_path: Path) -> None:
    """Each is a group of its own: nobody is asked, over and over, to make them fewer."""
    llm = ScriptedLLM(read_names)
    asyncio.run(tell(tmp_path, llm, range(9), summarize_group_tokens=3))
    description, _ = hub(tmp_path)
    assert sorted(description.split("\n")) == [fact(n) for n in range(9)] and llm.requests == []


def test_a_new_fragment_changes_one_group_and_the_path_above(tmp_path: Path) -> None:
    """Groups are cut where the content says so: the others are answered from the cache."""
    many = [fact(n) for n in range(3_000)]

    def cut(texts: Sequence[str]) -> list[list[str]]:
        return groups(texts, limit=12_000, count=lambda text: len(text) // 4)

    before = cut(many)
    assert 3_000 / 400 < len(before) < 3_000 / 150  # where they are cut for no other reason
    for place in (0, 5, 300, 599, 2_999):
        after = cut([*many[:place], "A new fact.", *many[place:]])
        changed = [group for group in after if group not in before]
        assert 1 <= len(changed) <= 2


async def test_a_hub_of_many_fragments_is_summarized_in_groups(tmp_path: Path) -> None:
    """Each request stays within the limit of tokens; a later renewal pays for the changed groups only."""
    llm = ScriptedLLM(read_names)
    facts = [entity("Hub", fact(n)) for n in range(300)]
    options = IndexOptions(summarize_group_tokens=600)
    async with index(tmp_path, llm, options=options) as rag:
        await rag.insert_records(Document("a", id="a"), facts)
        first = len(llm.requests)
        await rag.insert_records(
            Document("b", id="b"), [entity("Hub", fact(n)) for n in range(300, 380)]
        )
    assert first > 6 and len(llm.requests) < 2 * first
    assert all(len(" ".join(notes(request)).split()) < 600 for request in llm.requests)
    assert problems(tmp_path) == []


@pytest.mark.parametrize("fails", [False, True])
async def test_a_report_counts_every_call_for_a_summary(fails: bool, tmp_path: Path) -> None:
    """Those of each level of groups, too, and of one that is empty, so that nothing comes of all."""
    llm = ScriptedLLM(
        lambda request: "" if fails and fact(0) in notes(request) else read_names(request)
    )
    options = IndexOptions(summarize_group_tokens=200)
    async with index(tmp_path, llm, options=options) as rag:
        said = [entity("Hub", fact(n)) for n in range(60)]
        report = await rag.insert_records(Document("a", id="a"), said)
        assert report.usage.calls == len(llm.requests) > 4
        assert (hub(tmp_path)[1] is None) == fails


async def test_groups_are_written_at_the_same_time_and_one_that_fails_costs_no_other(
    tmp_path: Path,
) -> None:
    """What others are in the middle of comes to its end; the next try pays for the rest only."""
    well = False

    def model(request: Request) -> str | Exception:
        return LLMError("ill") if not well and fact(0) in notes(request) else read_names(request)

    llm = ScriptedLLM(model, seconds=0.02)
    async with index(tmp_path, llm, options=IndexOptions(summarize_group_tokens=600)) as rag:
        facts = [entity("Hub", fact(n)) for n in range(300)]
        await rag.insert_records(Document("a", id="a"), facts)
        asked = {request.question for request in llm.requests}
        assert llm.most_in_flight > 4 and hub(tmp_path)[1] is None
        well, before = True, len(llm.requests)
        await rag.summarize()
        again = [request.question for request in llm.requests[before:]]
        assert hub(tmp_path)[1] is not None
        assert [fact(0) in question for question in again if question in asked] == [True]


async def _two_hubs(rag: AsyncLightRAG) -> None:
    """Hub and Far are summarized, and told of beside a few others; some claims came later."""
    for n in range(8):
        said = [entity("Hub", fact(n)), entity("Far", fact(n + 50)), entity("Ann", "A person.")]
        said += [relation("Hub", "Far", fact(n + 100))]
        await rag.insert_records(Document(fact(n), id=f"d{n}"), said)
    said = [entity("Hub", fact(8)), entity("Bob", "A man."), entity("Bobby", "A boy.")]
    await rag.insert_records(Document(fact(8), id="d8"), said)


def _told(folder: Path) -> list[tuple[object, ...]]:
    entities = "SELECT name, description, summary, covered, covered_mentions FROM entities"
    relations = "SELECT 'r', description, summary, covered, covered_mentions FROM relations"
    return stored(folder, f"{entities} UNION ALL {relations} ORDER BY 1")


async def test_a_merge_keeps_the_summaries_of_all_it_does_not_concern(tmp_path: Path) -> None:
    """No summary is paid for again, and what came after it still stands beside it."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        await _two_hubs(rag)
        before = _told(tmp_path)
        assert sum(row[2] is not None for row in before) == 3
        await rag.merge_entities(["Bobby", "Ann"], into="Bob")
        rest = {"Ann", "Bob", "Bobby"}
        assert [row for row in _told(tmp_path) if row[0] not in rest] == [
            row for row in before if row[0] not in rest
        ]
        await rag.unmerge("Bobby", "Ann")
        assert _told(tmp_path) == before
    assert problems(tmp_path) == []


async def test_a_merge_drops_a_summary_only_of_those_whose_claims_it_moves(tmp_path: Path) -> None:
    """Claims older than the summary that it was not written from: it would not be of all of them."""

    def summaries() -> dict[object, bool]:
        return {row[0]: row[2] is not None for row in _told(tmp_path) if row[0] in ("Hub", "Far")}

    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        await _two_hubs(rag)
        await rag.merge_entities(["Bob"], into="Hub")  # told later: stands beside the summary
        assert summaries() == {"Hub": True, "Far": True}
        assert hub(tmp_path, "Hub")[0].endswith("A man.")
        await rag.merge_entities(["Ann"], into="Hub")  # told before
        assert summaries() == {"Hub": False, "Far": True}
    assert problems(tmp_path) == []


async def test_a_repair_keeps_summaries_and_drops_those_that_cover_other_claims(
    tmp_path: Path,
) -> None:
    """They were paid for; one whose claims are not those it was written from goes."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        await _two_hubs(rag)
        before = _told(tmp_path)
        await rag.repair()
        assert _told(tmp_path) == before
        damage(tmp_path, "UPDATE entities SET covered_mentions = 5 WHERE name = 'Far'")
        await rag.repair()
        lost = {row[0] for row in before} - {row[0] for row in _told(tmp_path) if row[2]}
        assert lost == {"Ann", "Bob", "Bobby", "Far"}
    assert problems(tmp_path) == []


async def test_a_relation_is_called_alike_whichever_end_came_first(tmp_path: Path) -> None:
    """So its answers are found again after another order of inserts."""
    llm = ScriptedLLM(read_names)
    for first in ("Abe", "Zed"):
        async with index(tmp_path / first, llm) as rag:
            await rag.insert_records(Document(first, id="a"), [entity(first)])
            for n in range(8):
                said = [entity("Abe"), entity("Zed"), relation("Zed", "Abe", fact(n))]
                await rag.insert_records(Document(fact(n), id=f"d{n}"), said)
    assert {request.question.split("\n")[0] for request in llm.requests} == {"Subject: Abe — Zed"}
