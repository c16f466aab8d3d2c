"""Inserting, updating, retrying and deleting: what is asked, what is kept, what is said about it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lightrag_jsonl import AsyncLightRAG, IndexOptions
from lightrag_jsonl.errors import ConfigError, LLMError, NotFoundError
from lightrag_jsonl.indexing.merging import PLACE_BITS
from lightrag_jsonl.indexing.runs import Progress
from lightrag_jsonl.storage.lock import writing
from lightrag_jsonl.testing import Request, ScriptedLLM
from lightrag_jsonl.types import Document
from tests.indexing.kit import (
    Record,
    entity,
    index,
    jsonl,
    problems,
    read_names,
    relation,
    stored,
    text_of,
    view,
)

PARTS = [
    f"Person{n} walked with Ann along the river and told her a long story. " * 3 for n in range(6)
]
TEXT = "\n\n".join(PARTS)
CHUNKED = IndexOptions(chunk_tokens=60, chunk_overlap=0, max_gleanings=0)


# ── the same again ──────────────────────────────────────────────────────────────


async def test_the_same_document_twice_costs_and_changes_nothing(tmp_path: Path) -> None:
    """Recognized by its text, in one insert or in two, under whatever title and source."""
    llm = ScriptedLLM(read_names)
    async with index(tmp_path, llm, options=CHUNKED) as rag:
        first = await rag.insert([TEXT, Document(TEXT, title="Again", source="elsewhere"), TEXT])
        assert len(first.documents) == 1 and first.unchanged == first.documents * 2
        calls, before = len(llm.requests), view(tmp_path, times=True)
        second = await rag.insert([TEXT, Document(TEXT, title="Other")])
        assert (second.documents, second.unchanged) == ((), first.documents * 2)
        assert len(llm.requests) == calls == 6 and second.usage.calls == 0
        assert view(tmp_path, times=True) == before


async def test_the_same_records_twice_double_nothing(tmp_path: Path) -> None:
    """No weight, no mention and no description grows; also after an interrupted insert was resumed."""
    records = [
        entity("Ann"),
        entity("Bob"),
        relation("Ann", "Bob", keywords=("a", "b"), strength=2),
    ]
    document = Document("Ann met Bob.", id="x", metadata={"tags": ("a", "b")})

    def before_less_times(seen: object) -> tuple[list[object], list[object]]:
        return (
            [row[:-1] for row in seen.entities],  # type: ignore[attr-defined]
            [row[:-1] for row in seen.relations],  # type: ignore[attr-defined]
        )

    async with index(tmp_path) as rag:
        await rag.insert_records(document, records)
        before = view(tmp_path, times=True)
        again = await rag.insert_records(document, [*records])
        assert again.unchanged == ("x",) and again.documents == ()
        assert view(tmp_path, times=True) == before
        await rag.insert_records(document, records + records)
        after = view(tmp_path)
        assert (after.entities, after.relations) == (before_less_times(before))


async def test_two_versions_of_a_document_in_one_insert_leave_the_last(tmp_path: Path) -> None:
    """The same id with another text takes the earlier one's place, in the order given."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        versions = [Document(f"Person{n} met Ann.", id="x") for n in range(5)]
        report = await rag.insert([*versions, Document("Cid left.", id="y")])
        assert report.documents == ("x",) * 5 + ("y",)
        assert set(rag.graph) == {"Person4", "Ann", "Cid"}
    assert problems(tmp_path) == []


async def test_documents_that_share_an_id_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where they differ, by that id; the same text twice, and a later insert, are no reason."""
    same = Document("Ann met Bob.", id="same")
    shared = [Document(f"Person{n} met Ann 中文 🙂.", id="甲") for n in range(3)]
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        await rag.insert([same, *shared, same, "Cid left.", "Cid left."])
        (told,) = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
        assert "share the id '甲': the last one replaces the others" in told
        caplog.clear()
        await rag.insert([shared[0], Document("Dan met Eve.", id="same")])
        assert not [r for r in caplog.records if r.levelname == "WARNING"]


# ── update ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("place", [0, 2, 5])
async def test_an_update_asks_only_about_what_changed(tmp_path: Path, place: int) -> None:
    """An edit near the beginning, in the middle or at the end leaves the other chunks alone."""
    llm = ScriptedLLM(read_names)
    parts = [*PARTS]
    parts[place] = parts[place].replace("the river", "the old canal, which Dora had dug,", 1)
    edited = "\n\n".join(parts)
    async with index(tmp_path / "kb", llm, options=CHUNKED) as rag:
        await rag.insert(Document(TEXT, id="x"))
        calls = len(llm.requests)
        report = await rag.update(Document(edited, id="x"))
        assert report.documents == ("x",) and 1 <= len(llm.requests) - calls <= 2
        assert "Dora" in rag.graph and f"Person{place}" in rag.graph
        back = await rag.update(Document(TEXT, id="x"))
        assert back.usage.calls <= 1 and "Dora" not in rag.graph
    assert problems(tmp_path / "kb") == []


def test_an_update_leaves_nothing_of_the_old_version(tmp_path: Path) -> None:
    """Text, claims and full text are those of the new version, as if the old one had never been."""

    async def run(folder: Path, *texts: str) -> None:
        async with index(folder, ScriptedLLM(read_names), options=CHUNKED) as rag:
            for text in texts:
                await rag.insert(Document(text, id="x"))

    asyncio.run(run(tmp_path / "a", TEXT, "Dora met Eve. " * 5))
    asyncio.run(run(tmp_path / "b", "Dora met Eve. " * 5))
    assert view(tmp_path / "a") == view(tmp_path / "b")


async def test_an_update_of_an_unknown_document_is_refused(tmp_path: Path) -> None:
    """The error names it; without an id nothing can be updated."""
    async with index(tmp_path) as rag:
        with pytest.raises(NotFoundError, match="nobody"):
            await rag.update(Document("x", id="nobody"))
        with pytest.raises(ConfigError, match="id"):
            await rag.update(Document("x"))


# ── deletion ────────────────────────────────────────────────────────────────────


async def test_many_are_deleted_in_one_commit(tmp_path: Path) -> None:
    """One pass for any number, with a report; unknown ids are named, and then nothing is deleted."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        await rag.insert([Document(f"Person{n} met Ann.", id=f"d{n}") for n in range(30)])
        with pytest.raises(NotFoundError, match="nobody, noone"):
            await rag.delete("d1", "nobody", "noone")
        assert len(await rag.documents()) == 30
        commits = stored(tmp_path, "SELECT count(*) FROM commits")[0][0]
        report = await rag.delete(*(f"d{n}" for n in range(29)), "d3")
        assert (len(report.documents), report.chunks) == (29, 29)
        assert (report.entities, report.relations) == (29, 29)
        assert stored(tmp_path, "SELECT count(*) FROM commits") == [(commits + 1,)]
        assert set(rag.graph) == {"Person29", "Ann"}
        with pytest.raises(NotFoundError, match="d3"):
            await rag.delete("d3")
    assert problems(tmp_path) == []


async def test_a_waiting_document_can_be_deleted(tmp_path: Path) -> None:
    """One that an interrupted insert left, and that was never visible, is forgotten."""
    options = IndexOptions(max_calls=1, max_gleanings=0, max_concurrent_calls=1)
    async with index(tmp_path, ScriptedLLM(read_names), options=options) as rag:
        await rag.insert([Document("Ann sang.", id="a"), Document("Bob sang.", id="b")])
        assert [(d.id, d.state) for d in await rag.documents()] == [
            ("a", "done"),
            ("b", "pending"),
        ]
        await rag.delete("b")
        assert [d.id for d in await rag.documents()] == ["a"]
        assert (await rag.resume()).documents == ()


# ── failing chunks ──────────────────────────────────────────────────────────────


class Flaky:
    """A model that fails for some persons until it is mended."""

    def __init__(self, *broken: str, garbage: bool = False) -> None:
        self.broken = set(broken)
        self.garbage = garbage

    def __call__(self, request: Request) -> str | Exception:
        if any(name in text_of(request) for name in self.broken):
            return "no records here" if self.garbage else LLMError("model is ill")
        return read_names(request)


@pytest.mark.parametrize("garbage", [False, True], ids=["error", "garbage"])
@pytest.mark.parametrize("way", ["retry", "insert", "resume and retry"])
async def test_only_failed_chunks_are_asked_again(tmp_path: Path, garbage: bool, way: str) -> None:
    """A partial document can be queried and says why; a retry, or the same insert, asks for the rest alone."""
    flaky = Flaky("Person1", "Person4", garbage=garbage)
    llm = ScriptedLLM(flaky)
    async with index(tmp_path / "kb", llm, options=CHUNKED) as rag:
        report = await rag.insert(Document(TEXT, id="x"))
        assert report.documents == ("x",) and len(report.failures) == 2
        (status,) = await rag.documents()
        assert (status.state, status.extraction.failed, status.extraction.ok) == (
            "partial",
            2,
            4,
        )
        assert {f.chunk_id for f in status.failures} == {f.chunk_id for f in report.failures}
        assert "Person0" in rag.graph and "Person1" not in rag.graph
        assert problems(tmp_path / "kb") == []

        still = await rag.retry()
        assert (await rag.documents())[0].state == "partial" and len(still.failures) == 2
        flaky.broken.clear()
        llm.requests.clear()
        if way == "resume and retry":
            assert (await rag.resume()).documents == ()
        again = await (rag.insert(Document(TEXT, id="x")) if way == "insert" else rag.retry())
        assert sorted(text_of(r)[:7] for r in llm.requests) == ["Person1", "Person4"]
        assert (again.documents, again.failures, again.chunks) == (("x",), (), 2)
        (status,) = await rag.documents()
        assert (status.state, status.failures) == ("done", ()) and "Person4" in rag.graph
        assert await rag.rejections() == []
    async with index(tmp_path / "fresh", ScriptedLLM(read_names), options=CHUNKED) as rag:
        await rag.insert(Document(TEXT, id="x"))
    assert view(tmp_path / "kb") == view(tmp_path / "fresh") and problems(tmp_path / "kb") == []


async def test_a_document_whose_chunks_all_fail_is_failed_and_can_be_deleted(
    tmp_path: Path,
) -> None:
    """It is there, with its text, and findable by it; nothing of it is in the graph."""
    async with index(tmp_path, ScriptedLLM(Flaky("Person")), options=CHUNKED) as rag:
        await rag.insert(Document(TEXT, id="x"))
        (status,) = await rag.documents()
        assert status.state == "failed" and len(status.failures) == 6
        assert problems(tmp_path) == []
        await rag.delete("x")
        assert await rag.documents() == ()


# ── limits on spending ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "limit", [{"max_calls": 4}, {"max_input_tokens": 1500}, {"max_output_tokens": 150}]
)
async def test_a_limit_stops_between_chunks_and_keeps_everything(
    tmp_path: Path, limit: dict[str, int]
) -> None:
    """What was paid for is kept, the report says why it stopped, and the next insert goes on from there."""
    options = IndexOptions(
        **limit, chunk_tokens=60, chunk_overlap=0, max_gleanings=0, max_concurrent_calls=1
    )  # type: ignore[arg-type]
    llm = ScriptedLLM(read_names)
    documents = [Document(TEXT, id="x"), Document("Dora sang.", id="y")]

    paid, stopped = [], True
    async with index(tmp_path / "kb", llm, options=options) as rag:
        while stopped and len(paid) < 9:
            before = len(llm.requests)
            report = await rag.insert(documents)
            paid.append(len(llm.requests) - before)
            assert problems(tmp_path / "kb") == []
            if stopped := bool(report.stopped):
                assert "raise the limit and insert again" in report.stopped
                assert {d.state for d in await rag.documents()} <= {"pending", "done"}
                assert await rag.rejections() == []
    assert not stopped
    assert len(paid) > 1 and all(paid) and sum(paid) == 7
    if "max_calls" in limit:
        assert paid == [4, 3]
    async with index(tmp_path / "fresh", ScriptedLLM(read_names), options=CHUNKED) as rag:
        await rag.insert(documents)
    assert view(tmp_path / "kb") == view(tmp_path / "fresh")


# ── progress, records and ready-made chunks ─────────────────────────────────────


async def test_progress_is_told(tmp_path: Path) -> None:
    """Chunks and documents only ever grow, and end where the report ends."""
    told: list[Progress] = []
    async with index(tmp_path, ScriptedLLM(read_names), options=CHUNKED) as rag:
        await rag.insert([Document(TEXT, id="x"), Document("Ann.", id="y")], watcher=told.append)
    assert told[-1] == Progress(7, 7, 2)
    assert told == sorted(told, key=lambda one: (one.chunks_done, one.documents_done))


async def test_what_follows_the_last_chunk_is_told(tmp_path: Path) -> None:
    """Merging, summaries, vectors and the transaction, in their order, each to its end."""
    told: list[Progress] = []

    def answer(request: Request) -> str:
        if request.question.startswith("Subject:"):
            return "Many walked with Ann."
        return jsonl(entity("Ann", f"Ann heard a story of {text_of(request)[:7]}."))

    options = replace(CHUNKED, summarize_fragments=3, embed_batch_size=2)
    async with index(tmp_path, ScriptedLLM(answer), options=options) as rag:
        await rag.insert(TEXT, watcher=told.append)
    after = [one.steps for one in told if one.chunks_done == 6 and not one.documents_done]
    merging = next(number for number, steps in enumerate(after) if "merging" in steps)
    assert after[merging:] == [
        {"merging": (0, 1)},
        {"summarizing": (0, 1)},
        {"summarizing": (1, 1)},
        {"embedding": (0, 1)},
        {"embedding": (1, 1)},
        {"writing": (0, 1)},
    ]
    assert {"embedding": (4, 6)} in [one.steps for one in told]
    assert told[-1] == Progress(6, 6, 1)


async def test_ready_made_chunks_and_records_keep_their_places(tmp_path: Path) -> None:
    """Chunks are found in the text in order, doubled texts too; each record belongs to the chunk it names,
    or to the first."""
    text = "Ann sang. Bob sang. Ann sang.\fCid sang."
    pieces = ["Ann sang.", "Bob sang.", "Ann sang.", "Cid sang."]
    records: list[Record] = [
        entity("Ann"),
        {**entity("Ann", "Once more."), "chunk": None},
        {**entity("Ann", "Again."), "chunk": 2},
        {**entity("Cid"), "chunk": 3},
    ]
    async with index(tmp_path) as rag:
        await rag.insert_records(Document(text, id="x"), records, pieces)
    rows = stored(tmp_path, "SELECT page, start, stop FROM chunks ORDER BY position")
    assert rows == [(1, 0, 9), (1, 10, 19), (1, 20, 29), (2, 0, 9)]
    query = "SELECT m.name, c.position FROM entity_mentions m JOIN chunks c ON c.id = m.chunk ORDER BY 2"
    assert stored(tmp_path, query) == [("Ann", 0), ("Ann", 0), ("Ann", 2), ("Cid", 3)]


@pytest.mark.parametrize(
    ("records", "pieces", "words"),
    [
        ([entity("Ann", chunk=7)], None, "names chunk 7"),
        ([entity("Ann", chunk="0")], None, "names chunk '0'"),
        ([["Ann"]], None, "records\\[0\\]"),
        ([], ("Nobody sang.",), "chunks\\[0\\] does not occur"),
        ([], ("Bob sang.", "Ann sang."), "chunks\\[1\\] does not occur"),
        ([], ("",), "chunks\\[0\\]"),
    ],
)
async def test_records_and_chunks_that_make_no_sense_leave_no_trace(
    tmp_path: Path, records: list[Record], pieces: tuple[str, ...] | None, words: str
) -> None:
    """The error says where; nothing is stored, nothing waits to fail again."""
    async with index(tmp_path) as rag:
        with pytest.raises(ConfigError, match=words):
            await rag.insert_records(Document("Ann sang. Bob sang.", id="x"), records, pieces)
        assert await rag.documents() == ()


async def test_records_that_are_refused_are_kept_with_their_reason(tmp_path: Path) -> None:
    """A record against the schema is a rejection, the others count."""
    async with index(tmp_path) as rag:
        bad: Record = {"type": "entity", "name": "Bob"}
        report = await rag.insert_records("Ann met Bob.", [entity("Ann"), bad])
        assert report.extraction.partial == 1 and set(rag.graph) == {"Ann"}
        ((_, _, rejection),) = await rag.rejections()
        assert (rejection.line, rejection.reason) == (2, "schema")
        assert "entity_type" in rejection.detail


async def test_what_is_left_was_first_seen_where_it_is_left(tmp_path: Path) -> None:
    """Entities and relations of the first text date from the second, once that is the first."""
    async with index(tmp_path) as rag:
        for id in ("first", "second", "third"):
            said = [entity("Ann"), entity("Bob"), relation("Ann", "Bob")]
            await rag.insert_records(Document(id, id=id), said)
        await rag.delete("first")
    ((second,),) = stored(tmp_path, "SELECT min(created_at) FROM chunks")
    times = "SELECT created_at FROM entities UNION SELECT created_at FROM relations"
    assert stored(tmp_path, times) == [(second,)]


async def test_what_a_retry_refuses_is_on_record(tmp_path: Path) -> None:
    """In place of what the reading before it refused, which was nothing."""
    answers = iter((LLMError("model is ill"), jsonl(entity("Ann"), {"type": "entity"})))
    llm = ScriptedLLM(lambda request: next(answers))
    async with index(tmp_path, llm, options=IndexOptions(max_gleanings=0)) as rag:
        await rag.insert(Document("Ann sang.", id="x"))
        assert await rag.rejections() == []
        await rag.retry()
        ((document, _, rejection),) = await rag.rejections()
        assert (document, rejection.line, rejection.reason) == ("x", 2, "schema")


async def test_nothing_refused_is_kept_of_a_document_that_is_gone(tmp_path: Path) -> None:
    async with index(tmp_path) as rag:
        bad: Record = {"type": "entity", "name": "Bob"}
        await rag.insert_records(Document("Ann met Bob.", id="a"), [entity("Ann"), bad])
        assert len(await rag.rejections()) == 1
        await rag.delete("a")
    assert stored(tmp_path, "SELECT * FROM rejections") == [] and problems(tmp_path) == []


async def test_more_claims_than_fit_into_a_place_stay_in_it(tmp_path: Path) -> None:
    """Those of one chunk never stand among the next one's, nor after they were folded again."""

    def places() -> list[int]:
        return [row[0] for row in stored(tmp_path, "SELECT place FROM entity_mentions ORDER BY id")]

    async with index(tmp_path) as rag:
        said = [entity(f"Name{n}", "x") for n in range(1_100)]
        await rag.insert_records(Document("Names.", id="a"), said)
        before = places()
        await rag.merge_entities(["Name0"], into="Name1099")
        assert len({place >> PLACE_BITS for place in before}) == 1 and places() == before


async def test_ready_made_records_are_never_asked_about(tmp_path: Path) -> None:
    """Not by a retry either, where all of them were refused."""
    async with index(tmp_path, ScriptedLLM([])) as rag:
        report = await rag.insert_records("Ann met Bob.", [{"type": "entity"}])
        assert report.extraction.partial == 1 and report.failures == ()
        assert (await rag.retry()).documents == ()
        assert dict(report.extraction.rejections) == {"schema": 1}


# ── whose turn it is ────────────────────────────────────────────────────────────


async def test_a_question_does_not_wait_for_an_insert(tmp_path: Path) -> None:
    """Its calls are made as soon as one that is in flight is back, however many chunks wait."""
    llm = ScriptedLLM(read_names, seconds=0.002)
    asked: list[int] = []

    async def ask(rag: AsyncLightRAG) -> None:
        while len(llm.requests) < 10:
            await asyncio.sleep(0)
        asked.append(len(llm.requests))
        await rag.query("What did Ann hear?", mode="bypass")  # no search, which takes time

    options = replace(CHUNKED, max_concurrent_calls=1)
    async with index(tmp_path, llm, options=options) as rag:
        await rag.insert("Ann sang.")
        documents = [TEXT.replace("river", f"river {n}") for n in range(9)]
        await asyncio.gather(rag.insert(documents), ask(rag))
    answered = ["What did Ann hear?" in request.text for request in llm.requests].index(True)
    assert len(llm.requests) > 50 and answered <= asked[0] + 1


async def test_documents_are_finished_one_after_another(tmp_path: Path) -> None:
    """The last is not begun before the first is read, though each chunk is asked about several times."""
    llm = ScriptedLLM(read_names)
    options = replace(CHUNKED, max_gleanings=1, glean_min_tokens=0, max_concurrent_calls=1)
    async with index(tmp_path, llm, options=options) as rag:
        await rag.insert([TEXT.replace("river", f"river {n}") for n in range(9)])
    about = [text_of(request).partition("river ")[2][:1] for request in llm.requests]
    assert about.count("0") > len(PARTS)
    assert about.index("8") > max(place for place, which in enumerate(about) if which == "0")


# ── interruptions ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("calls", [1, 3, 6])
async def test_a_cancelled_insert_leaves_everything_whole(tmp_path: Path, calls: int) -> None:
    """The lock is free, what was paid is kept, the document waits, and the same instance goes on."""
    llm = ScriptedLLM(read_names, seconds=0.001)
    enough = asyncio.Event()

    def answer(request: Request) -> str:
        if len(llm.requests) >= calls:
            enough.set()
        return read_names(request)

    llm._answer = answer
    options = IndexOptions(
        chunk_tokens=60, chunk_overlap=0, max_gleanings=0, max_concurrent_calls=1
    )
    async with index(tmp_path, llm, options=options) as rag:
        task = asyncio.create_task(rag.insert(Document(TEXT, id="x")))
        await enough.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert problems(tmp_path) == []
        assert [d.state for d in await rag.documents()] == ["pending"]
        assert (await rag.resume()).documents == ("x",)
        assert len(llm.requests) <= 6 + 1
    assert problems(tmp_path) == []


async def test_who_gives_up_waiting_for_the_lock_does_not_keep_it(tmp_path: Path) -> None:
    """A cancelled wait leaves the folder to others."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        async with writing(tmp_path, 1):
            task = asyncio.create_task(rag.insert("Ann sang."))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert len((await rag.insert("Ann sang.")).documents) == 1
        async with writing(tmp_path, 5):
            pass


# ── what a retry and an update leave as it is ───────────────────────────────────


async def test_a_retry_that_reads_less_changes_nothing(tmp_path: Path) -> None:
    """Where the rest fails again, what another model read before is more than a part of it."""

    def reading(names: list[str]) -> Callable[[Request], str | LLMError]:
        def script(request: Request) -> str | LLMError:
            again = any(message.role == "assistant" for message in request.messages)
            return LLMError("ill") if again else jsonl(*(entity(name) for name in names))

        return script

    names = ["Ann", "Bob", "Cid"]
    text = " ".join(names) + " met. " + "They talked about the weather for hours. " * 20
    async with index(tmp_path, ScriptedLLM(reading(names), name="large")) as rag:
        await rag.insert(Document(text, id="x"))
        before = view(tmp_path)
    async with index(tmp_path, ScriptedLLM(reading(["Ann"]), name="small")) as rag:
        report = await rag.retry()
        assert [failure.document_id for failure in report.failures] == ["x"]
        assert view(tmp_path) == before
    async with index(tmp_path, ScriptedLLM(lambda request: jsonl(entity("Ann")))) as rag:
        assert (await rag.retry()).failures == ()
        assert set((await rag.records())[0]) and len(rag.graph) == 1
    assert problems(tmp_path) == []


async def test_metadata_in_another_order_is_the_same(tmp_path: Path) -> None:
    """Also of what it holds."""
    async with index(tmp_path) as rag:
        first = {"a": 1, "b": [{"c": 2, "d": 3}]}
        other = {"b": [{"d": 3, "c": 2}], "a": 1}
        await rag.insert(Document("Ann met Bob.", id="x", metadata=first))
        report = await rag.insert(Document("Ann met Bob.", id="x", metadata=other))
        assert report.unchanged == ("x",)


async def test_a_number_too_long_to_be_written_stops_no_other_document(tmp_path: Path) -> None:
    """It is a failure with a reason; as a text it can be kept."""
    async with index(tmp_path) as rag:
        texts = [Document("Ann met Bob.", id=id, metadata={"n": 1}) for id in ("a", "c")]
        texts.insert(1, Document("Cid ran.", id="b", metadata={"n": 10**5000}))
        report = await rag.insert(texts)
        assert report.documents == ("a", "c")
        assert "bits" in report.failures[0].reason
    assert problems(tmp_path) == []
