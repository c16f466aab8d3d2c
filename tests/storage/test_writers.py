"""Who writes, writes alone and to the end: beside cancellations, other embedders, and odd callables."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from lightrag_jsonl import AsyncLightRAG, IndexOptions, LightRAG, LLMError, QueryParam
from lightrag_jsonl.adapters.offline import HashEmbedder
from lightrag_jsonl.errors import ConfigError, EmbeddingError, SettingsError, StorageError
from lightrag_jsonl.explain.events import End
from lightrag_jsonl.indexing import repairing
from lightrag_jsonl.protocols import Vectors
from lightrag_jsonl.storage import database as storage_database
from lightrag_jsonl.storage import settings
from lightrag_jsonl.storage.database import FILE_NAME, Database
from lightrag_jsonl.testing import Request, ScriptedLLM
from lightrag_jsonl.types import Completion, Document, DocumentStatus, Message
from tests.indexing.kit import damage, entity, index, problems, read_names, stored, view

LONG = 20.0  # seconds: nothing here waits for so long unless it fails
ONE_LOOK = IndexOptions(max_gleanings=0)


class Embedder:
    """A hashing embedder of any name, that does something first."""

    def __init__(self, name: str, dim: int = 16, first: Callable[[], Any] = lambda: None) -> None:
        self.name, self.dim, self.first = name, dim, first
        self.passages: list[str] = []
        self._inner = HashEmbedder(dim=dim)

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        self.passages += texts if kind == "passage" else []
        done = self.first()
        if asyncio.iscoroutine(done):
            await done
        return np.asarray(await self._inner.embed(texts, kind=kind))


def records(*names: str) -> list[dict[str, Any]]:
    return [entity(name, f"{name} is here.") for name in names]


# ── another embedder ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dim", [16, 24])
async def test_who_was_open_before_the_index_moved_to_another_embedder_is_told(
    dim: int, tmp_path: Path
) -> None:
    """Neither inserts nor asks: vectors of two embedders would stand side by side, even of one length."""
    async with index(tmp_path, embedder=Embedder("old")) as one:
        await one.insert("Ada Lovelace wrote to Charles Babbage.")
        assert (await one.retrieve("Who wrote?")).chunks
        async with index(tmp_path, embedder=Embedder("old")) as other:
            await other.reembed(Embedder("new", dim))
            for call in (one.insert("Grace Hopper met Howard Aiken."), one.retrieve("Who?")):
                with pytest.raises(SettingsError, match="built with embedder 'new'"):
                    await call
            assert (await other.retrieve("Who wrote?")).chunks
    assert problems(tmp_path) == []


async def test_of_two_first_inserts_the_second_is_held_to_what_the_first_was(
    tmp_path: Path,
) -> None:
    one = index(tmp_path, embedder=Embedder("one"))
    two = index(tmp_path, embedder=Embedder("one"), language="zh")
    async with one as first, two as second:
        await first.insert("Ada Lovelace wrote to Charles Babbage.")
        with pytest.raises(SettingsError, match="language"):
            await second.insert("张骞出使西域。")


# ── cancelled ───────────────────────────────────────────────────────────────────


async def test_who_is_cancelled_holds_the_folder_until_what_it_wrote_is_written(
    tmp_path: Path,
) -> None:
    """Else the next writer plans on rows that change under it."""
    embedding = asyncio.Event()
    embedder = Embedder("e")
    one, two = index(tmp_path, embedder=embedder), index(tmp_path, embedder=Embedder("e"))
    async with one as first, two as second:
        told = [{**record, "description": "first"} for record in records("Anna", "Bob")]
        await first.insert_records(Document("Anna and Bob.", id="a"), told)
        await first.insert_records(Document("Anna, Carl.", id="b"), records("Anna", "Carl"))
        embedder.first = embedding.set
        with contextlib.closing(sqlite3.connect(tmp_path / FILE_NAME)) as holder:
            delete = asyncio.create_task(first.delete("a"))
            await embedding.wait()  # now it is planned
            holder.execute("BEGIN IMMEDIATE")
            await asyncio.sleep(0.1)  # now its commit waits for the database
            delete.cancel()
            new = Document("Anna, Bob, Dora.", id="c")
            insert = asyncio.create_task(second.insert_records(new, records("Anna", "Bob", "Dora")))
            await asyncio.sleep(0.2)
            delete.cancel()  # however often
            await asyncio.sleep(0.1)
            assert not insert.done() and not delete.done()
            holder.execute("ROLLBACK")
        with pytest.raises(asyncio.CancelledError):
            await delete
        assert (await insert).documents == ("c",)
        assert {"Anna", "Bob", "Dora"} <= set(second.graph.nodes())
    assert problems(tmp_path) == []


async def test_what_was_planned_on_rows_that_somebody_changed_is_not_written(
    tmp_path: Path,
) -> None:
    """A program that writes without asking costs the command, not the index."""
    intrude = "INSERT INTO commits (touched) VALUES ('{\"all\": true}')"
    embedder = Embedder("e")
    async with index(tmp_path, embedder=embedder) as rag:
        await rag.insert_records(Document("Anna.", id="a"), records("Anna"))
        embedder.first = lambda: damage(tmp_path, intrude)
        with pytest.raises(StorageError, match="changed by another program"):
            await rag.insert_records(Document("Anna, Bob.", id="b"), records("Anna", "Bob"))
        embedder.first = lambda: None
        assert (await rag.resume()).documents == ("b",)
    assert problems(tmp_path) == []


@pytest.mark.parametrize("upkeep", ["vacuum", "clear_cache"])
async def test_upkeep_takes_no_vector_that_an_insert_counts_on(upkeep: str, tmp_path: Path) -> None:
    """The vectors of a deleted text are not in use; one that is just inserted again needs them."""
    slow = ScriptedLLM(read_names, seconds=0.5)
    text = "Marie Curie met Pierre Curie."
    async with index(tmp_path, slow, options=ONE_LOOK) as rag:
        await rag.insert(Document(text, id="a"))
        await rag.delete("a")
        damage(tmp_path, "DELETE FROM completions")  # the model is asked again
        insert = asyncio.create_task(rag.insert(Document(text, id="a")))
        await asyncio.sleep(0.2)
        await getattr(rag, upkeep)()
        await insert
        found = await rag.retrieve("Curie", QueryParam(mode="naive", lexical=False))
        assert found.chunks
    assert problems(tmp_path) == []


async def test_a_repair_that_is_cut_short_leaves_the_index_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows and their vectors change together; what was embedded before the end is not embedded again."""
    embedder = Embedder("one")

    def fail() -> None:
        if len(embedder.passages) > 1:
            raise OSError("no network")

    async with index(tmp_path, embedder=embedder) as rag:
        for name in ("Ann", "Bob", "Cid"):
            await rag.insert_records(Document(f"{name} 中文", id=name), records(name))
        damage(tmp_path, "UPDATE entity_mentions SET description = name || ' sings. 🙂'")
        before = view(tmp_path)
        embedder.passages.clear()
        embedder.first = fail
        monkeypatch.setattr(repairing, "BATCH", 1)
        with pytest.raises(EmbeddingError, match="no network"):
            await rag.repair()
        assert view(tmp_path) == before and not lacking(tmp_path)
        embedder.first = lambda: None
        embedder.passages.clear()
        assert (await rag.repair())[-1] == "2 vectors made anew"
        assert len(embedder.passages) == 2
    assert problems(tmp_path) == [] and not lacking(tmp_path)


def lacking(folder: Path) -> list[str]:
    """The entities that have no vector."""
    return [name for (name,) in stored(folder, "SELECT name FROM entities WHERE embedding IS NULL")]


async def test_a_vacuum_that_is_cancelled_holds_the_folder_until_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is still being rewritten: the next writer would wait for it in vain."""
    begun, going_on = threading.Event(), threading.Event()

    class Slow(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            if sql == "VACUUM":
                begun.set()
                going_on.wait(LONG)
            return super().execute(sql, *values)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Slow, **k))
    async with index(tmp_path) as rag:
        await rag.insert_records("Ann.", records("Ann"))
        vacuum = asyncio.create_task(rag.vacuum())
        assert await asyncio.to_thread(begun.wait, LONG)
        vacuum.cancel()
        done, _ = await asyncio.wait([vacuum], timeout=0.3)
        assert not done
        going_on.set()
        with pytest.raises(asyncio.CancelledError):
            await vacuum
        assert (await rag.insert_records("Bob.", records("Bob"))).documents
    assert problems(tmp_path) == []


def test_a_vacuum_beside_a_long_reader_says_that_the_space_comes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No space is given back yet, and never less than none; once nobody reads, it is."""
    monkeypatch.setattr(storage_database, "READERS_SECONDS", 0.1)
    with LightRAG(tmp_path) as rag:
        rag.insert_records("Ann.", records("Ann"))
        damage(tmp_path, "CREATE TABLE much AS SELECT zeroblob(3000000); DROP TABLE much")
        with contextlib.closing(sqlite3.connect(tmp_path / FILE_NAME)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM documents").fetchall()
            assert rag.vacuum() == 0
            assert "the space is given back when" in caplog.text
        caplog.clear()
        assert rag.vacuum() > 2_000_000 and not caplog.messages


@pytest.mark.parametrize("upkeep", ["vacuum", "clear_cache"])
async def test_upkeep_takes_no_vector_of_a_move_that_was_interrupted(
    upkeep: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on where it was; once it is done, the old vectors can go."""
    monkeypatch.setattr(repairing, "BATCH", 1)
    new = Embedder("new")

    def fail() -> None:
        if len(new.passages) > 2:
            raise OSError("no network")

    async with index(tmp_path, embedder=Embedder("old")) as rag:
        await rag.insert_records(Document("Ann, Bob.", id="a"), records("Ann", "Bob"))
        new.first = fail
        with pytest.raises(EmbeddingError, match="no network"):
            await rag.reembed(new)
        assert (await rag.cache_stats()).unused_embeddings == 2
        await getattr(rag, upkeep)()
        new.first = lambda: None
        new.passages.clear()
        await rag.reembed(new)
        assert len(new.passages) == 1
        await getattr(rag, upkeep)()
        assert (await rag.cache_stats()).unused_embeddings == 0
    assert problems(tmp_path) == []


async def test_a_deletion_that_fails_deletes_nothing(tmp_path: Path) -> None:
    """Neither what is visible nor what waits: it is one transaction."""
    embedder = Embedder("one")

    def fail() -> None:
        raise OSError("no network")

    def state(found: Sequence[DocumentStatus]) -> list[tuple[str, str]]:
        return [(document.id, document.state) for document in found]

    async with index(tmp_path, ScriptedLLM(read_names), embedder=embedder) as rag:
        for name in "ab":
            await rag.insert(Document(f"Ann met Person {name}.", id=name))
        embedder.first = fail
        with pytest.raises(EmbeddingError, match="no network"):
            await rag.insert(Document("Ann left Person c.", id="c"))
        before = state(await rag.documents())
        assert ("c", "pending") in before
        damage(tmp_path, "UPDATE entity_mentions SET description = id || ' 中文'")
        with pytest.raises(EmbeddingError, match="no network"):
            await rag.delete("a", "c")
        assert state(await rag.documents()) == before
        embedder.first = lambda: None
        await rag.delete("a", "c")
        assert state(await rag.documents()) == [("b", "done")]
    assert problems(tmp_path) == []


# ── what was embedded ───────────────────────────────────────────────────────────

LONG_TEXT = "\n\n".join(f"Ann met Person{number} in 北京. 🙂" for number in range(12))


def cut(**more: int) -> IndexOptions:
    """Options that make twelve chunks of the text, and a call and a batch of few of them."""
    sizes = {"chunk_tokens": 16, "chunk_overlap": 0, "max_gleanings": 0, "max_concurrent_calls": 1}
    return IndexOptions(**sizes, embed_batch_size=4, **more)  # type: ignore[arg-type]


async def test_a_document_that_waits_keeps_its_vectors(tmp_path: Path) -> None:
    """Whatever stops it: a limit, or an embedder that fails half way."""
    for limit in (5, None):
        embedder = Embedder("one")
        options = cut() if limit is None else cut(max_calls=limit)
        llm = ScriptedLLM(read_names, seconds=0.001)
        async with index(tmp_path, llm, embedder=embedder, options=options) as rag:
            report = await (rag.insert(Document(LONG_TEXT, id="x")) if limit else rag.resume())
            assert bool(report.stopped) == bool(limit)
            asked = [text for text in embedder.passages if text in LONG_TEXT]
            assert len(asked) == (12 if limit else 0)
            await rag.vacuum()
    assert problems(tmp_path) == []


async def test_an_embedder_that_fails_half_way_is_asked_for_the_rest(tmp_path: Path) -> None:
    """The batches that came are kept; so are those of documents that wait for their commit."""
    embedder = Embedder("one")

    async def fail() -> None:
        if len(embedder.passages) > 8:
            await asyncio.sleep(0.01)
            raise OSError("no network")

    async with index(tmp_path, embedder=embedder, options=cut()) as rag:
        embedder.first = fail
        with pytest.raises(EmbeddingError, match="no network"):
            await rag.insert(Document(LONG_TEXT, id="x"))
        embedder.first = lambda: None
        embedder.passages.clear()
        await rag.resume()
        assert len([text for text in embedder.passages if text in LONG_TEXT]) == 4
    assert problems(tmp_path) == []


async def test_vectors_from_afar_are_kept_as_they_come(tmp_path: Path) -> None:
    """A killed insert does not ask for them again."""
    embedder = Embedder("one")
    embedder.remote = True  # type: ignore[attr-defined]
    seen: list[int] = []

    def look(request: Request) -> str:
        seen.extend(stored(tmp_path, "SELECT count(*) FROM vectors")[0])
        return read_names(request)

    llm = ScriptedLLM(look, seconds=0.01)
    async with index(tmp_path, llm, embedder=embedder, options=cut()) as rag:
        await rag.insert(Document(LONG_TEXT, id="x"))
    assert seen[-1] > 0 and problems(tmp_path) == []


# ── what waits ──────────────────────────────────────────────────────────────────


async def test_a_retry_leaves_the_next_version_of_its_document_waiting(tmp_path: Path) -> None:
    """A killed update is resumed, whatever happens to the version before."""

    def fails(request: Request) -> LLMError:
        return LLMError("no")

    slow = ScriptedLLM(read_names, seconds=LONG)
    async with index(tmp_path, ScriptedLLM(fails), options=ONE_LOOK) as rag:
        await rag.insert(Document("Anna was first.", id="d"))
    async with index(tmp_path, slow, options=ONE_LOOK) as rag:
        update = asyncio.create_task(rag.insert(Document("Bob came later.", id="d")))
        while not slow.requests:
            await asyncio.sleep(0.01)
        update.cancel()
        with pytest.raises(asyncio.CancelledError):
            await update
    async with index(tmp_path, ScriptedLLM(read_names), options=ONE_LOOK) as rag:
        assert (await rag.retry()).documents == ("d",)
        assert (await rag.resume()).documents == ("d",)
        assert (await rag.pages("d"))[0].text == "Bob came later."


# ── odd callables ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
@pytest.mark.timeout(60)
def test_a_model_that_ends_the_program_ends_its_own_call(
    error: type[BaseException], tmp_path: Path
) -> None:
    """Who waits for it is told, nothing is held, and the next calls work."""
    armed = True

    def model(prompt: str) -> str:
        if armed:
            raise error("enough")
        return '{"type": "entity", "name": "Bob", "entity_type": "person", "description": "B."}'

    with LightRAG(tmp_path, llm=model, embedder=HashEmbedder(dim=16), options=ONE_LOOK) as rag:
        with pytest.raises(error):
            rag.insert(Document("Bob went home.", id="a"))
        armed = False
        assert rag.resume().documents == ("a",)
        assert rag.status().documents == {"done": 1}


@pytest.mark.timeout(60)
def test_a_model_that_has_run_dry_fails_its_chunk(tmp_path: Path) -> None:
    """`StopIteration`, which no future takes, is an error like any other."""
    answers = iter(list[str]())

    def model(prompt: str) -> str:
        return next(answers)

    with LightRAG(tmp_path, llm=model, embedder=HashEmbedder(dim=16)) as rag:
        (failure,) = rag.insert("Bob went home.").failures
    assert "StopIteration" in failure.reason


async def test_a_model_that_cancels_its_own_call_fails_its_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As clients do whose time is up: no document is passed over in silence."""
    monkeypatch.setattr("lightrag_jsonl.ask.FIRST_PAUSE", 0.0)

    class Model:
        name = "impatient"

        async def complete(self, messages: Sequence[Message], **more: Any) -> Completion:
            raise asyncio.CancelledError

    async with index(tmp_path, Model(), options=ONE_LOOK) as rag:
        report = await rag.insert([Document(f"Bob {n}.", id=f"d{n}") for n in range(3)])
        assert len(report.failures) == 3
        assert "cancelled its own call" in report.failures[0].reason


@pytest.mark.parametrize("odd", [ValueError("no idea"), "a text"], ids=["raises", "answers"])
async def test_an_object_that_breaks_its_promise_fails_its_chunk(
    odd: object, tmp_path: Path
) -> None:
    """As a function does: the other documents go in, and the reason is told."""

    class Model:
        name = "odd"

        async def complete(self, messages: Sequence[Message], **more: Any) -> Completion:
            if "Bob" not in messages[-1].content:
                return Completion(read_names(Request(tuple(messages), "jsonl", None)))
            if isinstance(odd, Exception):
                raise odd
            return odd  # type: ignore[return-value]

    async with index(tmp_path, Model(), options=ONE_LOOK) as rag:
        told = [Document("Bob went home.", id="b"), Document("Anna Lee sang.", id="a")]
        (failure,) = (await rag.insert(told)).failures
        assert failure.document_id == "b" and failure.reason.startswith("odd ")
        assert {d.id: d.state for d in await rag.documents()} == {"a": "done", "b": "failed"}


def test_an_embedder_of_the_same_name_and_another_length_is_refused(tmp_path: Path) -> None:
    """Vectors are known by the name; those there are would count as made already."""

    class Alike(HashEmbedder):
        name = "alike"

    with LightRAG(tmp_path, embedder=Alike(64)) as rag:
        rag.insert("Ann met Bob.")
        with pytest.raises(ConfigError, match="another name"):
            rag.reembed(Alike(32))
        assert rag.retrieve("Ann").chunks
    assert problems(tmp_path) == []


@pytest.mark.parametrize("way", ["stream", "events"])
async def test_an_answer_in_pieces_begun_beside_its_own_reembed_goes_on(
    tmp_path: Path, way: str
) -> None:
    """Its question was embedded for the old vectors when the new ones came: it is asked anew."""

    class Held(HashEmbedder):
        asked, may_answer = asyncio.Event(), asyncio.Event()

        async def embed(
            self, texts: Sequence[str], *, kind: Literal["query", "passage"]
        ) -> Vectors:
            if kind == "query":
                self.asked.set()
                await self.may_answer.wait()
            return await super().embed(texts, kind=kind)

    held = Held(64)
    async with index(tmp_path, embedder=held) as rag:
        await rag.insert(Document("Ann met Bob.", id="d"))

        async def read() -> list[object]:
            return [told async for told in getattr(rag, way)("Who met Bob?")]

        reading = asyncio.create_task(read())
        await held.asked.wait()
        await rag.reembed(HashEmbedder(128))
        held.may_answer.set()
        told = await reading
        assert "Ann met Bob" in str(told)
        assert (await rag.traces(limit=1))[0].status == "complete"
        ends = [event for event in told if isinstance(event, End)]
        assert [end.error for end in ends] == [None] * (way == "events")


async def test_who_asks_and_inserts_beside_its_own_reembed_goes_on(tmp_path: Path) -> None:
    """Questions under way when the new vectors come are asked again of those; nobody gets an error."""
    async with index(tmp_path, embedder=HashEmbedder(64)) as rag:
        texts = [Document(f"Ann{n} met Bob{n % 7}.", id=f"d{n}") for n in range(40)]
        await rag.insert(texts)
        over = asyncio.Event()

        async def ask(number: int) -> int:
            asked = 0
            while not over.is_set():
                assert (await rag.query(f"Who met Bob{number}?")).context.chunks
                asked += 1
            return asked

        asking = [asyncio.create_task(ask(number)) for number in range(6)]
        await asyncio.sleep(0.05)
        moving = asyncio.create_task(rag.reembed(HashEmbedder(128)))
        await asyncio.sleep(0)
        late = await rag.insert(Document("Cid met Dan.", id="late"))
        assert await moving > 40
        await asyncio.sleep(0.05)
        over.set()
        assert all(await asyncio.gather(*asking))
        assert late.documents == ("late",)
        assert (await rag.status()).dim == 128
    assert problems(tmp_path) == []


async def test_who_is_cancelled_while_the_index_moves_goes_on_with_what_it_has_then(
    tmp_path: Path,
) -> None:
    """The switch is written to its end: the object has the new embedder, too, though nobody waits."""
    async with index(tmp_path, embedder=Embedder("old")) as rag:
        await rag.insert_records(Document("Ann.", id="a"), records("Ann"))
        loop = asyncio.get_running_loop()

        def cancel_soon(done: int, of: int) -> None:
            if done == of:
                loop.call_soon(lambda: loop.call_soon(moving.cancel))

        moving = asyncio.create_task(rag.reembed(Embedder("new"), watcher=cancel_soon))
        with pytest.raises(asyncio.CancelledError):
            await moving
        assert (await rag.retrieve("Who is Ann?")).entities
        await rag.insert_records(Document("Bob.", id="b"), records("Bob"))
        assert (await rag.status()).embedder == "new"
    assert problems(tmp_path) == []


UPKEEP: dict[str, Callable[[AsyncLightRAG], Awaitable[object]]] = {
    "merge": lambda rag: rag.merge_entities(["Ann", "Bob"], into="Ann"),
    "unmerge": lambda rag: rag.unmerge("Dan"),
    "summarize": lambda rag: rag.summarize(),
    "repair": lambda rag: rag.repair(),
    "vacuum": lambda rag: rag.vacuum(),
    "clear_cache": lambda rag: rag.clear_cache(),
}


@pytest.mark.parametrize("call", UPKEEP.values(), ids=UPKEEP)
async def test_upkeep_beside_its_own_reembed_waits_for_it(
    call: Callable[[AsyncLightRAG], Awaitable[object]], tmp_path: Path
) -> None:
    """And is done on what that has made; nobody gets an error."""
    begun, going_on = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        begun.set()
        await going_on.wait()

    async with index(tmp_path, embedder=Embedder("old")) as rag:
        await rag.insert_records("Four.", records("Ann", "Bob", "Cid", "Dan"))
        await rag.merge_entities(["Cid", "Dan"], into="Cid")
        moving = asyncio.create_task(rag.reembed(Embedder("new", first=wait)))
        await begun.wait()
        upkeep = asyncio.create_task(call(rag))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        going_on.set()
        await moving
        await upkeep
        assert (await rag.status()).embedder == "new"
    assert problems(tmp_path) == []


# ── want of memory ──────────────────────────────────────────────────────────────


class Starved(asyncio.SelectorEventLoop):
    """A loop that is told nothing by other threads so many times, for want of memory."""

    wants = 0

    def call_soon_threadsafe(self, *arguments: Any, **more: Any) -> asyncio.Handle:
        if self.wants:
            self.wants -= 1
            raise MemoryError
        return super().call_soon_threadsafe(*arguments, **more)


def test_who_waits_for_a_write_is_told_as_soon_as_there_is_memory(tmp_path: Path) -> None:
    """What was committed is not called failed, and the thread lives to write the next."""
    loop = Starved()
    with contextlib.closing(loop), contextlib.closing(Database(tmp_path)) as database:

        async def write(value: str) -> None:
            loop.wants = 3
            await database.committed(lambda c: settings.record(c, {"note": value}))

        for value in ("one", "two"):
            loop.run_until_complete(asyncio.wait_for(write(value), LONG))
            with database.reading() as connection:
                assert settings.read(connection)["note"] == value
