"""One description for each entity and relation: when a model is asked for it, from what, how often."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import AsyncLightRAG, Completion, Document, IndexOptions, LLMError, Usage
from lightrag_jsonl.indexing.summaries import text_groups
from lightrag_jsonl.testing import Request, ScriptedLLM
from tests.indexing.libraries import summarizing
from tests.kit import entity, index, jsonl, problems, read_names, reading, relation, text_of


def fact(number: int) -> str:
    return f"In year {number} the hub was painted in the {number}th colour."


async def insert_facts(
    folder: Path, llm: ScriptedLLM | None, numbers: Sequence[int], **options: int
) -> None:
    """A document for each number, in turn, each with one fact about Hub."""
    async with index(folder, llm, options=IndexOptions(**options)) as rag:  # type: ignore[arg-type]
        for n in numbers:
            await summarizing(rag, Document(fact(n), id=f"d{n}"), [entity("Hub", fact(n))])


def notes(request: Request) -> list[str]:
    return request.question.partition("Notes:\n- ")[2].split("\n- ")


def hub(folder: Path, name: str = "Hub") -> tuple[str, str | None]:
    """The description and the summary of an entity."""
    with reading(folder) as reader:
        (row,) = (row for row in reader.entity_rows().values() if row.name == name)
        return row.description, row.summary


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "options"), [(7, {}), (9, {"summarize_group_tokens": 3})], ids=["few", "too long"]
)
async def test_descriptions_stand_below_each_other_as_they_are(
    tmp_path: Path, count: int, options: dict[str, int]
) -> None:
    """Up to seven, or where each is too long for a group; no model is asked, over and over, to make
    them fewer. Without one eight are shown.
    """
    llm = ScriptedLLM(read_names)
    await insert_facts(tmp_path / "a", llm, range(count), **options)
    description, summary = hub(tmp_path / "a")
    assert sorted(description.split("\n")) == [fact(n) for n in range(count)]
    assert llm.requests == []
    await insert_facts(tmp_path / "b", None, range(30))
    description, summary = hub(tmp_path / "b")
    assert summary is None and len(description.split("\n")) == 8


async def test_the_same_words_many_times_need_no_summary(tmp_path: Path) -> None:
    """It is distinct descriptions that count."""
    llm = ScriptedLLM(read_names)
    async with index(tmp_path, llm) as rag:
        for n in range(20):
            await summarizing(rag, Document(str(n), id=f"d{n}"), [entity("Hub", "The same.")])
    assert hub(tmp_path) == ("The same.", None) and llm.requests == []


@pytest.mark.slow
async def test_many_mentions_cost_an_eighth_as_many_calls_at_most(tmp_path: Path) -> None:
    """A summary is renewed when the mentions since the last one are eight, or a quarter of all."""
    llm = ScriptedLLM(read_names)
    await insert_facts(tmp_path, llm, range(60))
    assert 3 <= len(llm.requests) <= 60 / 8
    assert problems(tmp_path) == []


async def test_a_summary_is_written_from_all_descriptions_and_never_from_a_summary(
    tmp_path: Path,
) -> None:
    """Each call has every description so far; those that came since stand beside the summary."""
    llm = ScriptedLLM(read_names)
    await insert_facts(tmp_path, llm, range(18))
    assert [len(notes(request)) for request in llm.requests] == [8, 16]
    assert all("summary" not in request.question for request in llm.requests)
    assert "in English" in llm.requests[0].messages[0].content
    description, summary = hub(tmp_path)
    assert summary == "A summary of 16 notes."
    assert description.split("\n")[0] == summary
    assert sorted(description.split("\n")[1:]) == sorted([fact(16), fact(17)])


async def test_records_ask_no_model(tmp_path: Path) -> None:
    """`insert_records` lets the summaries wait that are due, until `summarize` or a later insert."""
    llm = ScriptedLLM(read_names)
    async with index(tmp_path, llm) as rag:
        facts = [entity("Hub", fact(n)) for n in range(9)]
        report = await rag.insert_records(Document("a", id="a"), facts)
        assert llm.requests == [] and report.usage.calls == 0
        assert hub(tmp_path)[1] is None and len(hub(tmp_path)[0].split("\n")) == 8
        assert (await rag.admin.summarize()).calls == len(llm.requests) == 1
        assert hub(tmp_path)[1] == "A summary of 9 notes."
        await rag.insert_records(Document("b", id="b"), [entity("Far", fact(n)) for n in range(8)])
        await rag.insert("Far is near.")
        assert hub(tmp_path, "Far")[1] == "A summary of 9 notes."


async def test_two_long_descriptions_need_a_summary(tmp_path: Path) -> None:
    """Few are joined only while they are short together."""
    llm = ScriptedLLM(read_names)
    await insert_facts(tmp_path, llm, range(3), summarize_tokens=40)
    assert hub(tmp_path)[1] is not None and llm.requests


@pytest.mark.slow
async def test_relations_are_summarized_too(tmp_path: Path) -> None:
    """By their ends' names, which stand alike whichever end came first."""
    llm = ScriptedLLM(read_names)
    for first in ("Abe", "Zed"):
        async with index(tmp_path / first, llm) as rag:
            await summarizing(rag, Document(first, id="a"), [entity(first)])
            for n in range(9):
                records = [entity("Abe"), entity("Zed"), relation("Zed", "Abe", fact(n))]
                await summarizing(rag, Document(fact(n), id=f"d{n}"), records)
        with reading(tmp_path / first) as reader:
            assert [r.summary for r in reader.relation_rows().values()] == ["A summary of 8 notes."]
    titles = {request.question.split("\n")[0] for request in llm.requests}
    assert titles == {"Subject: Abe — Zed"}


async def test_a_summary_covers_its_own_mentions_only(tmp_path: Path) -> None:
    """After mentions of others are deleted and their row ids used again, new ones stand beside it."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        facts = [entity("Hub", fact(n)) for n in range(8)]
        others = [{**entity(f"Other{n}", "x"), "chunk": 1} for n in range(9)]
        await summarizing(rag, Document("a", id="a"), facts[:7])
        document = Document("first second", id="b")
        await summarizing(rag, document, [facts[7], *others], ["first", "second"])
        assert hub(tmp_path)[0] == "A summary of 8 notes."
        await summarizing(rag, Document("c", id="c"), [entity("Last", "x")])
        await rag.delete("c")
        await summarizing(rag, Document("d", id="d"), [entity("Hub", fact(8))])
        assert hub(tmp_path)[0] == "A summary of 8 notes.\n" + fact(8)


@pytest.mark.parametrize("gone", [0, 7])
async def test_no_summary_outlives_a_mention_that_it_covers(tmp_path: Path, gone: int) -> None:
    """The first as well as the last: no deleted text stands in one, and no model is asked."""
    names = ("Hub", "relation")
    llm = ScriptedLLM(read_names)
    async with index(tmp_path, llm) as rag:
        for n in range(8):
            records = [entity("Hub", fact(n)), entity("Far", "x"), relation("Hub", "Far", fact(n))]
            await summarizing(rag, Document(fact(n), id=f"d{n}"), records)
        assert summaries(tmp_path) == {"Far": None, **dict.fromkeys(names, "A summary of 8 notes.")}
        calls = len(llm.requests)
        await rag.delete(f"d{gone}")
        assert set(summaries(tmp_path).values()) == {None} and len(llm.requests) == calls
    assert problems(tmp_path) == []
    left = {fact(n) for n in range(8) if n != gone}
    assert set(hub(tmp_path)[0].split("\n")) == left


@pytest.mark.parametrize("answer", ["", "  \n", LLMError("ill")])
async def test_where_no_summary_can_be_had_the_descriptions_stand_in(
    tmp_path: Path, answer: str | Exception
) -> None:
    """Nothing is lost, nothing bad is cached, and the next insert tries again."""
    well = False

    def model(request: Request) -> str | Exception:
        return read_names(request) if well else answer

    async with index(tmp_path, ScriptedLLM(model)) as rag:
        for n in range(8):
            await summarizing(rag, Document(str(n), id=f"d{n}"), [entity("Hub", fact(n))])
        assert len(hub(tmp_path)[0].split("\n")) == 8 and hub(tmp_path)[1] is None
        well = True
        await summarizing(rag, Document("8", id="d8"), [entity("Hub", fact(8))])
        assert hub(tmp_path) == ("A summary of 9 notes.",) * 2


async def test_a_budget_that_ends_awaits_the_summaries_that_are_being_written(
    tmp_path: Path,
) -> None:
    """They are paid for: counted with their tokens, and not asked for again; `summarize` goes on."""

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
        report = await summarizing(rag, Document("many", id="d"), records)
        assert "4 of 4 calls" in report.stopped and len(llm.requests) == 4
        assert (report.usage.calls, report.usage.output_tokens) == (4, 4 * 2)
        assert report.documents == ("d",) and hub(tmp_path, "Hub0")[0].startswith("In year")
    async with index(tmp_path, llm) as rag:
        assert (await rag.admin.summarize()).calls == 2
    assert len(llm.requests) == 6 and hub(tmp_path, "Hub0") == ("A summary.",) * 2


async def test_a_summary_that_fails_is_asked_for_once_an_insert(tmp_path: Path) -> None:
    """However many commits the insert has; the next insert tries again."""

    def model(request: Request) -> str | Exception:
        if request.question.startswith("Subject: Ann"):
            return LLMError("no answer in time", cost=Usage(calls=1))
        return jsonl(entity("Ann", text_of(request)))

    def lost() -> int:
        return sum(request.question.startswith("Subject: Ann\n") for request in llm.requests)

    llm = ScriptedLLM(model)
    options = IndexOptions(max_gleanings=0)
    async with index(tmp_path, llm, options=options) as rag:
        report = await rag.insert([f"On day {n} Ann met Bob{n}." for n in range(50)])
        assert lost() == 1 and report.usage.calls == len(llm.requests)
        await rag.insert("On day 51 Ann met Cid.")
        assert lost() == 2 and hub(tmp_path, "Ann")[1] is None


# ── many descriptions: groups ───────────────────────────────────────────────────

texts = st.lists(st.text("abcdef ", min_size=1, max_size=12), min_size=1, max_size=60, unique=True)


@given(texts, st.integers(10, 60))
def test_groups_keep_every_text_in_order_within_the_limit(found: list[str], limit: int) -> None:
    """Only a text that is longer alone makes a group too large."""
    cut = text_groups(found, limit=limit, count=len)
    assert [text for group in cut for text in group] == found
    assert all(len(group) == 1 or sum(map(len, group)) <= limit for group in cut)


def test_a_new_description_changes_one_group_and_the_path_above() -> None:
    """Groups are cut where the content says so: the others are answered from the cache."""
    many = [fact(n) for n in range(3_000)]

    def cut(texts: Sequence[str]) -> list[list[str]]:
        return text_groups(texts, limit=12_000, count=lambda text: len(text) // 4)

    before = cut(many)
    assert 3_000 / 400 < len(before) < 3_000 / 150  # where they are cut for no other reason
    for at in (0, 5, 300, 599, 2_999):
        after = cut([*many[:at], "A new fact.", *many[at:]])
        changed = [group for group in after if group not in before]
        assert 1 <= len(changed) <= 2


@pytest.mark.parametrize("fails", [False, True])
async def test_a_hub_of_many_descriptions_is_summarized_in_groups(
    fails: bool, tmp_path: Path
) -> None:
    """Side by side, each within the limit of tokens; a failed one costs no other: what was paid is
    reported, and the next try pays for the rest only, as does a later renewal."""

    def model(request: Request) -> str | Exception:
        return LLMError("ill") if fails and fact(0) in notes(request) else read_names(request)

    llm = ScriptedLLM(model, seconds=0.01)
    options = IndexOptions(summarize_group_tokens=600)
    async with index(tmp_path, llm, options=options) as rag:
        facts = [entity("Hub", fact(n)) for n in range(300)]
        report = await summarizing(rag, Document("a", id="a"), facts)
        first = len(llm.requests)
        assert first > 6 and llm.most_in_flight > 4
        assert report.usage.calls == first - fails and (hub(tmp_path)[1] is None) == fails
        fails = False
        await rag.admin.summarize()
        assert hub(tmp_path)[1] is not None and len(llm.requests) <= first + 3
        more = [entity("Hub", fact(n)) for n in range(300, 400)]
        await summarizing(rag, Document("b", id="b"), more)
    assert len(llm.requests) < 2 * first
    assert all(len(" ".join(notes(request)).split()) < 600 for request in llm.requests)
    assert problems(tmp_path) == []


# ── merges of names, and rebuilding ─────────────────────────────────────────────


def summaries(folder: Path) -> dict[str, str | None]:
    with reading(folder) as reader:
        found = {row.name: row.summary for row in reader.entity_rows().values()}
        for relation in reader.relation_rows().values():
            found["relation"] = relation.summary
    return found


async def insert_two_hubs(rag: AsyncLightRAG) -> None:
    """Hub and Far are summarized, and mentioned beside a few others."""
    for n in range(8):
        records = [entity("Hub", fact(n)), entity("Far", fact(n + 50)), entity("Ann", "A person.")]
        records += [relation("Hub", "Far", fact(n + 100))]
        await summarizing(rag, Document(fact(n), id=f"d{n}"), records)
    records = [entity("Hub", fact(8)), entity("Bob", "A man."), entity("Bobby", "A boy.")]
    await summarizing(rag, Document(fact(8), id="d8"), records)


async def test_a_merge_keeps_the_summaries_of_all_that_it_does_not_concern(tmp_path: Path) -> None:
    """Of those that it does, the descriptions stand in, with those of the merged name."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        await insert_two_hubs(rag)
        before = summaries(tmp_path)
        assert sum(summary is not None for summary in before.values()) == 3
        await rag.entities.merge(["Bobby", "Ann"], into="Bob")
        merged = summaries(tmp_path)
        assert merged == {name: before[name] for name in merged}
        assert merged.keys() == {"Hub", "Far", "Bob", "relation"}
        await rag.entities.merge(["Bob"], into="Hub")
        assert hub(tmp_path)[1] is None and "A man." in hub(tmp_path)[0]
        assert summaries(tmp_path)["Far"] == before["Far"]
    assert problems(tmp_path) == []


async def test_rebuilding_asks_for_nothing_that_was_paid_for(tmp_path: Path) -> None:
    """The summaries come from the cache, and cover what came after them, too."""
    llm = ScriptedLLM(read_names)
    async with index(tmp_path, llm) as rag:
        for n in range(8):
            records = [entity("Hub", fact(n)), entity("Far", fact(n + 50))]
            await summarizing(rag, Document(fact(n), id=f"d{n}"), records)
        before, asked = summaries(tmp_path), len(llm.requests)
        await rag.admin.rebuild()
        assert summaries(tmp_path) == before and len(llm.requests) == asked
    assert problems(tmp_path) == []
