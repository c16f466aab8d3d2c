"""Purging: of a deleted document no word is left in any file."""

import contextlib
import re
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lightrag_jsonl import Document, IndexOptions, LockedError, QueryParam
from lightrag_jsonl.storage.sqlite import database
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import entity, index, jsonl, problems, read_names, reading, view

WORD, TAIL = "Quixotry", b"uixotr"  # FTS5 leaves out what a term has in common with the one before
SECRET = Document(f"Ann met {WORD} in Bern. 镭的秘密🙂 belongs to {WORD}.", id="secret")
OPTIONS = IndexOptions(chunk_tokens=60, chunk_overlap=0, max_gleanings=1, glean_min_tokens=1)
ASKED = QueryParam(hl_keywords=("letters",), ll_keywords=("Ann",))


def others(number: int) -> list[Document]:
    return [Document(f"Ann wrote to Person{n} and Cid in Bern.", id=f"d{n}") for n in range(number)]


LONGEST_TEXT = 10_000  # bytes


def answer(request: object) -> str:
    """Extraction and summaries as in the kit; answers repeat the prompt."""
    return read_names(request) if "Text:\n" in request.question else request.question  # type: ignore


def left_in(folder: Path, *words: bytes) -> list[str]:
    """The files that hold one of these words, in any case, as bytes or in a compressed text."""
    names: list[str] = []
    for path in sorted(folder.rglob("*")):
        texts = with_unpacked_texts(path.read_bytes()) if path.is_file() else []
        if any(word.lower() in text.lower() for text in texts for word in words):
            names.append(path.name)
    return names


def with_unpacked_texts(data: bytes) -> Iterator[bytes]:
    """The bytes of a file, and what zlib reads at each place where a compressed text may begin."""
    yield data
    for beginning in re.finditer(re.escape(zlib.compress(b"", level=1)[:2]), data):
        with contextlib.suppress(zlib.error):
            yield zlib.decompressobj().decompress(data[beginning.start() :], LONGEST_TEXT)


async def fill(folder: Path, llm: ScriptedLLM, *more: Document) -> None:
    async with index(folder, llm, options=OPTIONS) as rag:
        await rag.insert([*others(12), SECRET, *more])
        await rag.query(f"Who is {WORD}?", QueryParam(hl_keywords=("x",), ll_keywords=(WORD,)))
        await rag.query("Who is Cid?", QueryParam(mode="naive", lexical=True))


def readings(llm: ScriptedLLM) -> int:
    """How often the model was asked to read a chunk."""
    return sum("Text:\n" in request.question for request in llm.requests)


WORDS = (TAIL, "镭的".encode(), "秘密".encode())


@pytest.mark.slow
async def test_no_word_is_left_in_any_file(tmp_path: Path) -> None:
    """Neither in the database nor in its log, before and after closing; what others say stays."""
    llm = ScriptedLLM(answer)
    await fill(tmp_path / "kb", llm)
    assert left_in(tmp_path / "kb", *WORDS)
    async with index(tmp_path / "kb", llm, options=OPTIONS) as rag:
        report = await rag.delete("secret", purge=True)
        assert report.documents == ("secret",) and report.answers > 1 and report.traces == 2
        assert left_in(tmp_path / "kb", *WORDS) == []
    assert left_in(tmp_path / "kb", *WORDS) == [] and problems(tmp_path / "kb") == []
    llm.requests.clear()
    async with index(tmp_path / "again", llm, options=OPTIONS) as rag:
        await rag.insert(others(12))
    assert view(tmp_path / "kb") == view(tmp_path / "again")


@pytest.mark.slow
async def test_what_a_plain_deletion_leaves(tmp_path: Path) -> None:
    """The files still hold the word, as the README says; a later purge without ids removes it."""
    llm = ScriptedLLM(answer)
    await fill(tmp_path / "kb", llm)
    async with index(tmp_path / "kb", llm, options=OPTIONS) as rag:
        await rag.delete("secret")
        await rag.admin.vacuum()
    assert left_in(tmp_path / "kb", *WORDS) == ["index.sqlite"]
    async with index(tmp_path / "kb", llm, options=OPTIONS) as rag:
        assert (await rag.delete(purge=True)).documents == ()
    assert left_in(tmp_path / "kb", *WORDS) == []


@pytest.mark.slow
async def test_what_was_paid_for_other_documents_stays(tmp_path: Path) -> None:
    """Readings of the chunks of other documents are not paid again after a purge."""
    llm = ScriptedLLM(answer)
    await fill(tmp_path / "kb", llm)
    async with index(tmp_path / "kb", llm, options=OPTIONS) as rag:
        await rag.delete("secret", purge=True)
        llm.requests.clear()
        await rag.delete("d1")
        await rag.insert(others(2)[1])
        assert readings(llm) == 0
        trace = (await rag.query("Hello", QueryParam(mode="bypass"))).trace_id
        await rag.delete("d1", purge=True)
        assert [one.id for one in await rag.traces.list()] == [trace]
        await rag.insert(others(2)[1], restore_purged=True)
        assert readings(llm) > 0


async def test_a_reader_of_an_earlier_state_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another process reads, its log cannot be emptied: the error says how to go on."""
    llm = ScriptedLLM(lambda request: jsonl(entity(WORD)))
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    async with index(tmp_path, llm) as rag:
        await rag.insert(SECRET)
        with closing(sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT count(*) FROM chunks").fetchall()
            with pytest.raises(LockedError, match=r"another process is reading.*run vacuum"):
                await rag.delete("secret", purge=True)
            assert left_in(tmp_path, TAIL)
        await rag.admin.vacuum()
        assert not left_in(tmp_path, TAIL)
    with reading(tmp_path) as reader:
        assert not reader.documents()


NEW_SECRET = Document("Ann met Bob in Bern.", id="secret")


async def test_a_purge_removes_answers_about_an_earlier_version(tmp_path: Path) -> None:
    """The document is still there, but the version that the answers quote is not."""
    llm = ScriptedLLM(answer)
    async with index(tmp_path / "kb", llm, options=OPTIONS) as rag:
        await rag.insert([*others(3), SECRET])
        await rag.insert(NEW_SECRET)
        assert (await rag.delete(purge=True)).answers > 0
        assert left_in(tmp_path / "kb", *WORDS) == []
        llm.requests.clear()
        await rag.delete("d1", "secret")
        await rag.insert([*others(3), NEW_SECRET])
        assert readings(llm) == 0  # of the version that was there, all is kept


async def test_a_purge_removes_answers_about_a_document_that_came_again(tmp_path: Path) -> None:
    """Deleted without a purge, its id then used for another text: the first text is purged."""
    llm = ScriptedLLM(answer)
    async with index(tmp_path / "kb", llm, options=OPTIONS) as rag:
        await rag.insert([*others(3), SECRET])
        await rag.delete("secret")
        await rag.insert(NEW_SECRET)
        await rag.delete(purge=True)
        assert left_in(tmp_path / "kb", *WORDS) == []


async def test_nothing_of_a_purged_edit_is_left(tmp_path: Path) -> None:
    """Neither what it set, nor its author, nor its reason, in any file; other edits stay."""
    async with index(tmp_path / "kb") as rag:
        await rag.insert_records(Document("Ann met Bob.", id="d1"), [entity("Ann"), entity("Bob")])
        secret = await rag.entities.edit(
            "Ann", description="Quixotry.", by="Fyodor", reason="镭的秘密🙂"
        )
        await rag.entities.delete("Bob", by="Eve")
        words = (TAIL, b"yodor", "镭的".encode(), "秘密".encode())
        assert left_in(tmp_path / "kb", *words)
        await rag.delete(secret, purge=True)
        assert left_in(tmp_path / "kb", *words) == []
        assert [one.description for one in await rag.entities.list()] == ["About Ann."]
    assert problems(tmp_path / "kb") == []


async def test_a_compressed_answer_is_seen_until_it_is_purged(tmp_path: Path) -> None:
    """A model's words that stand nowhere but in its compressed answer are found there, and purged."""
    llm = ScriptedLLM(lambda request: jsonl(entity("Ann", remark=WORD)))
    async with index(tmp_path, llm, options=OPTIONS) as rag:
        await rag.insert(Document("Ann met Bob in Bern.", id="plain"))
        await rag.admin.vacuum()
        assert TAIL not in (tmp_path / "index.sqlite").read_bytes()
        assert left_in(tmp_path, TAIL) == ["index.sqlite"]
        await rag.delete("plain", purge=True)
        assert left_in(tmp_path, TAIL) == []
