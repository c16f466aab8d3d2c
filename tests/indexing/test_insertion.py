"""Inserting, updating and deleting: what is asked, what is kept, what is reported about it."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import (
    AsyncLightRAG,
    ConfigError,
    Document,
    IndexOptions,
    LockedError,
    NotFoundError,
    QueryParam,
)
from lightrag_jsonl.indexing.insertion import AHEAD, FIRST_GROUP
from lightrag_jsonl.storage.rows import POSITION_BITS
from lightrag_jsonl.testing import Request, ScriptedLLM
from tests import kit
from tests.kit import (
    Record,
    entity,
    extraction,
    index,
    jsonl,
    problems,
    read_names,
    reading,
    store_at,
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


async def test_two_versions_of_a_document_in_one_insert_leave_the_last(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The same id with another text takes the earlier one's place, in the order given, with a warning."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        versions = [Document(f"Person{n} met Ann.", id="x") for n in range(5)]
        report = await rag.insert([*versions, Document("Cid left.", id="y")])
        assert report.documents == ("x",) * 5 + ("y",)
        assert set(rag.graph) == {"Person4", "Ann", "Cid"}
    assert "share the id 'x': the last one replaces the others" in caplog.text
    assert problems(tmp_path) == []


# ── update ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("position", [0, 2, 5])
async def test_an_update_asks_only_about_what_changed(tmp_path: Path, position: int) -> None:
    """An edit near the beginning, in the middle or at the end leaves the other chunks alone."""
    llm = ScriptedLLM(read_names)
    parts = [*PARTS]
    parts[position] = parts[position].replace("the river", "the old canal, which Dora had dug,", 1)
    edited = "\n\n".join(parts)
    async with index(tmp_path / "kb", llm, options=CHUNKED) as rag:
        await rag.insert(Document(TEXT, id="x"))
        calls = len(llm.requests)
        report = await rag.insert(Document(edited, id="x"))
        assert report.documents == ("x",) and 1 <= len(llm.requests) - calls <= 2
        assert "Dora" in rag.graph and f"Person{position}" in rag.graph
        back = await rag.insert(Document(TEXT, id="x"))
        assert back.usage.calls <= 1 and "Dora" not in rag.graph
    assert problems(tmp_path / "kb") == []


async def test_an_update_leaves_nothing_of_the_old_version(tmp_path: Path) -> None:
    """Text, mentions and full text are those of the new version, as if the old one had never been."""
    for folder, texts in (("a", [TEXT, "Dora met Eve. " * 5]), ("b", ["Dora met Eve. " * 5])):
        async with index(tmp_path / folder, ScriptedLLM(read_names), options=CHUNKED) as rag:
            for text in texts:
                await rag.insert(Document(text, id="x"))
    assert view(tmp_path / "a") == view(tmp_path / "b")


# ── deletion ────────────────────────────────────────────────────────────────────


async def test_many_are_deleted_in_one_commit(tmp_path: Path) -> None:
    """With a report; unknown ids are named, and then nothing is deleted."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        await rag.insert([Document(f"Person{n} met Ann.", id=f"d{n}") for n in range(30)])
        with pytest.raises(NotFoundError, match="nobody, noone"):
            await rag.delete("d1", "nobody", "noone")
        assert len(await rag.documents()) == 30
        with reading(tmp_path) as before:
            report = await rag.delete(*(f"d{n}" for n in range(29)), "d3")
            with reading(tmp_path) as after:
                assert after.generation == before.generation + 1
        assert (len(report.documents), report.chunks) == (29, 29)
        assert (report.entities, report.relations) == (29, 29)
        assert set(rag.graph) == {"Person29", "Ann"}
        with pytest.raises(NotFoundError, match="d3"):
            await rag.delete("d3")
    assert problems(tmp_path) == []


async def test_a_waiting_document_can_be_deleted(tmp_path: Path) -> None:
    """One that an interrupted insert left, and that was never visible, is forgotten."""
    options = IndexOptions(max_calls=1, max_gleanings=0, max_concurrent_calls=1)
    async with index(tmp_path, ScriptedLLM(read_names), options=options) as rag:
        await rag.insert([Document("Ann sang.", id="a"), Document("Bob sang.", id="b")])
        states = [(d.id, d.state) for d in await rag.documents()]
        assert states == [("a", "done"), ("b", "pending")]
        await rag.delete("b")
        assert [d.id for d in await rag.documents()] == ["a"]
        assert (await rag.resume()).documents == ()


# ── limits on spending ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "limit", [{"max_calls": 4}, {"max_input_tokens": 1500}, {"max_output_tokens": 150}]
)
async def test_a_limit_stops_between_chunks_and_keeps_everything(
    tmp_path: Path, limit: dict[str, int]
) -> None:
    """The report says why it stopped, and the next insert goes on from there."""
    options = replace(CHUNKED, max_concurrent_calls=1, **limit)  # type: ignore[arg-type]
    llm = ScriptedLLM(read_names)
    documents = [Document(TEXT, id="x"), Document("Dora sang.", id="y")]
    paid, stopped = [], True
    async with index(tmp_path / "kb", llm, options=options) as rag:
        while stopped and len(paid) < 9:
            before = len(llm.requests)
            report = await rag.insert(documents)
            paid.append(len(llm.requests) - before)
            assert report.usage.calls == paid[-1] and problems(tmp_path / "kb") == []
            if stopped := bool(report.stopped):
                assert "raise the limit" in report.stopped
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


async def test_progress_is_reported(tmp_path: Path) -> None:
    """Reading, then the steps that make documents visible, in their order, each to its end."""
    reports: list[Any] = []

    def answer(request: Request) -> str:
        if request.question.startswith("Subject:"):
            return "Many walked with Ann."
        return jsonl(entity("Ann", f"Ann heard a story of {kit.text_of(request)[:7]}."))

    options = replace(CHUNKED, summarize_fragments=3, embed_batch_size=7)
    async with index(tmp_path, ScriptedLLM(answer), options=options) as rag:
        await rag.insert(TEXT, progress=reports.append)
    last = reports[-1]
    assert (last.chunks_done, last.chunks_known, last.documents_done, last.steps) == (6, 6, 1, {})
    assert last.usage.calls == 7
    assert reports == sorted(reports, key=lambda one: (one.chunks_done, one.documents_done))
    assert [one.steps for one in reports if one.chunks_done == 6 and one.steps] == [
        {"merging": (0, 1)},
        {"merging": (1, 1)},
        {"summarizing": (0, 1)},
        {"summarizing": (1, 1)},
        {"embedding": (0, 7)},
        {"embedding": (7, 7)},
        {"writing": (0, 1)},
        {"writing": (1, 1)},
    ]


async def test_ready_made_chunks_and_records_keep_their_positions(tmp_path: Path) -> None:
    """Chunks are found in the text in order, doubled texts too; each record belongs to the chunk it
    names, or to the first."""
    text = "Ann sang. Bob sang. Ann sang.\fCid sang."
    pieces = ["Ann sang.", "Bob sang.", "Ann sang.", "Cid sang."]
    records: list[Record] = [
        entity("Ann"),
        {**entity("Ann", "Once more."), "chunk": None},
        {**entity("Ann"), "chunk": 2},
        {**entity("Cid"), "chunk": 3},
    ]
    async with index(tmp_path) as rag:
        await rag.insert_records(Document(text, id="x"), records, pieces)
    with reading(tmp_path) as reader:
        chunks = reader.chunks(documents=["x"])
        positions = [(chunk.page, chunk.start, chunk.end) for chunk in chunks.values()]
        assert positions == [(1, 0, 9), (1, 10, 19), (1, 20, 29), (2, 0, 9)]
        mentions = [(one.mention.name, chunks[one.chunk].index) for one in reader.entity_mentions()]
        assert mentions == [("Ann", 0), ("Ann", 0), ("Ann", 2), ("Cid", 3)]


@pytest.mark.parametrize(
    ("records", "pieces", "words"),
    [
        ([entity("Ann")], (), "at least one"),
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
    """A record against the schema, or of no chunk, costs itself alone; no retry asks a model."""
    async with index(tmp_path, ScriptedLLM([])) as rag:
        bad: Record = {"type": "entity", "name": "Bob"}
        given: list[Any] = [
            entity("Ann"), bad, ["Bob"], entity("Bob", chunk=7), entity("Bob", chunk="0"),
        ]  # fmt: skip
        report = await rag.insert_records(Document("Ann met Bob.", id="a"), given)
        assert report.extraction.partial == 1 and report.failures == ()
        assert set(rag.graph) == {"Ann"}
        found = [one for _, _, one in await rag.rejections()]
        reasons = ["schema", "not_object", "unknown_id", "unknown_id"]
        assert [(one.line, one.reason) for one in found] == [*enumerate(reasons, 2)]
        words = ["entity_type", "records[2]", "names chunk 7", "names chunk '0'"]
        assert all(word in one.detail for word, one in zip(words, found, strict=True))
        assert (await rag.retry()).documents == ()
        await rag.delete("a")
        assert await rag.rejections() == [] and problems(tmp_path) == []


async def test_the_themes_of_a_text_are_kept(tmp_path: Path) -> None:
    """Of every chunk, whole or read again, in copies of the index, and until the document is deleted."""
    words: Record = {"type": "content_keywords", "keywords": ["灯塔 🗼", "storms", "storms"]}
    further: Record = {"type": "content_keywords", "keywords": ["storms", "x" * 9_999]}
    chunks = ["The lighthouse stood.", "A storm came."]
    records: list[Record] = [{**words, "chunk": 0}, {**further, "chunk": 1}]
    async with index(tmp_path / "a") as rag:
        document = Document(" ".join(chunks), id="sea")
        report = await rag.insert_records(document, records, chunks=chunks)
        assert report.extraction.content_keywords == {"storms": 2, "灯塔 🗼": 1}
        await rag.insert_records(Document("A ledger.", id="ledger"), [entity("Ledger")])
        found = {one.id: one.content_keywords for one in await rag.documents()}
        assert found == {"sea": ("storms", "灯塔 🗼"), "ledger": ()}
        param = QueryParam(mode="naive", where={"content_keywords": "灯塔 🗼"})
        context = await rag.retrieve("What of the storm and the ledger?", param)
        assert {chunk.document_id for chunk in context.chunks} == {"sea"}
    async with index(tmp_path / "b") as copy:
        await copy.merge_from(tmp_path / "a")
        found = {one.id: one.content_keywords for one in await copy.documents()}
        assert found["sea"] == ("storms", "灯塔 🗼")
        await copy.delete("sea")
        assert (await copy.retrieve("What of the storm?", param)).empty
        assert problems(tmp_path / "b") == []


@pytest.mark.slow
async def test_more_mentions_than_fit_into_a_position_stay_in_it(tmp_path: Path) -> None:
    """Those of one chunk never stand among the next one's, nor after they were merged again."""

    def positions() -> list[int]:
        with reading(tmp_path) as reader:
            return [one.position for one in reader.entity_mentions()]

    async with index(tmp_path) as rag:
        records = [entity(f"Name{n}", "x") for n in range(1_100)]
        await rag.insert_records(Document("Names.", id="a"), records)
        before = positions()
        await rag.entities.merge(["Name0"], into="Name1099")
        assert len({one >> POSITION_BITS for one in before}) == 1 and positions() == before


# ── who goes first ──────────────────────────────────────────────────────────────


@pytest.mark.slow
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
    assert len(llm.requests) > 50 and answered <= asked[0] + 3


async def test_documents_are_finished_one_after_another(tmp_path: Path) -> None:
    """The last is not begun before the first is read, though each chunk is asked about several times."""
    llm = ScriptedLLM(read_names)
    options = replace(CHUNKED, max_gleanings=1, glean_min_tokens=0, max_concurrent_calls=1)
    async with index(tmp_path, llm, options=options) as rag:
        await rag.insert([TEXT.replace("river", f"river {n}") for n in range(9)])
    about = [kit.text_of(request).partition("river ")[2][:1] for request in llm.requests]
    assert about.count("0") > len(PARTS)
    assert about.index("8") > max(place for place, which in enumerate(about) if which == "0")


@pytest.mark.slow
async def test_a_slow_document_does_not_let_memory_grow(tmp_path: Path) -> None:
    """While the first is read, no more than some hundred chunks after it are read ahead."""
    taken = 0
    begun = asyncio.Event()

    class Extractor:
        name = "slow"

        async def extract(self, chunk):  # type: ignore[no-untyped-def]
            if chunk.document_id == "d0":
                for _ in range(300):
                    await asyncio.sleep(0)
                begun.set()
            return extraction(state="empty")

    def documents() -> Iterator[Document]:
        nonlocal taken
        for number in range(8 * FIRST_GROUP):
            assert begun.is_set() or number <= FIRST_GROUP + AHEAD + 1
            taken += 1
            yield Document(f"Text {number}.", id=f"d{number}")

    async with index(tmp_path, extractor=Extractor()) as rag:
        report = await rag.insert(documents())
    assert taken == len(report.documents) == 8 * FIRST_GROUP


@pytest.mark.slow
async def test_the_room_of_waiting_documents_serves_again(tmp_path: Path) -> None:
    """After an insert no page of the file is free: what waited makes room for what is stored of it."""
    texts = [
        f"{n} 号灯塔 🗼. " + f"Person{n} walked with Ann along the river. " * 400 for n in range(9)
    ]
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        await rag.insert([Document(text, id=f"d{n}") for n, text in enumerate(texts)])

    with contextlib.closing(sqlite3.connect(tmp_path / "index.sqlite")) as connection:
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)


# ── interruptions ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("calls", [1, 3, 6])
async def test_a_cancelled_insert_leaves_everything_whole(tmp_path: Path, calls: int) -> None:
    """The lock is free, what was paid is kept, the document waits, and the same instance goes on."""
    enough = asyncio.Event()

    def answer(request: Request) -> str:
        if len(llm.requests) >= calls:
            enough.set()
        return read_names(request)

    llm = ScriptedLLM(answer, seconds=0.001)
    options = replace(CHUNKED, max_concurrent_calls=1)
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


async def test_another_writer_is_waited_for(tmp_path: Path) -> None:
    """For a while; who gives up, or is cancelled, does not take the lock later."""
    options = IndexOptions(lock_timeout=0.1)
    async with index(tmp_path, ScriptedLLM(read_names), options=options) as rag:
        with store_at(tmp_path).writer_lock(1):
            with pytest.raises(LockedError):
                await rag.insert("Ann sang.")
            task = asyncio.create_task(rag.insert("Ann sang."))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert len((await rag.insert("Ann sang.")).documents) == 1
        with store_at(tmp_path).writer_lock(1):
            pass
