"""Texts, files and records that nobody should hand in: taken as they are, or refused in words."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import os
from functools import partial
from pathlib import Path

import pytest

from lightrag_jsonl import IndexOptions, LightRAG, QueryParam
from lightrag_jsonl.errors import ConfigError, EmbeddingError, NotFoundError
from lightrag_jsonl.storage import pending
from lightrag_jsonl.storage.pending import PendingDocument
from lightrag_jsonl.testing import HashEmbedder, ScriptedLLM
from lightrag_jsonl.types import Document, InsertReport, Json
from tests.indexing.kit import entity, index, jsonl, problems, read_names, relation, stored


def insert(folder: Path, *given: str | Path | Document, **options: int) -> InsertReport:
    """Index what is given with a model that reads names."""

    async def run() -> InsertReport:
        llm = ScriptedLLM(read_names)
        async with index(folder, llm, options=IndexOptions(**options)) as rag:  # type: ignore[arg-type]
            return await rag.insert(given)

    report = asyncio.run(run())
    assert problems(folder) == []
    return report


def test_a_list_in_the_place_of_ids_is_a_type_error(tmp_path: Path) -> None:
    """`delete(*ids)` takes them one after another, and nothing is deleted by mistake."""
    with LightRAG(tmp_path) as rag:
        [id] = rag.insert("Ann met Bob.").documents
        for call in (rag.delete, rag.rejections, rag.unmerge):
            with pytest.raises(TypeError, match="one after another, got list"):
                call([id])  # type: ignore[arg-type]
        assert rag.status().chunks == 1


@pytest.mark.parametrize("text", ["", " ", "\n\t\u3000\u2028\f "])
def test_a_text_without_text_is_a_failure(tmp_path: Path, text: str) -> None:
    """It is reported, the others are indexed, and nothing waits."""
    report = insert(tmp_path, text, "Ann met Bob.")
    assert len(report.documents) == 1
    assert [failure.reason for failure in report.failures] == ["the document has no text"]
    assert stored(tmp_path, "SELECT count(*) FROM pending") == [(0,)]


@pytest.mark.parametrize("text", ["x", "中", "🙂", "１", ".", "\u0301"])
def test_one_character_is_a_document(tmp_path: Path, text: str) -> None:
    """It has one chunk."""
    report = insert(tmp_path, text)
    assert (len(report.documents), report.chunks, report.failures) == (1, 1, ())


@pytest.mark.parametrize(
    "text", ["x" * 300_000, "中" * 100_000, "ab cd " * 50_000, "\n" * 50_000 + "Ann"]
)
def test_one_long_line_is_cut(tmp_path: Path, text: str) -> None:
    """With or without spaces; every chunk is its part of the page, and all of it is covered."""
    report = insert(tmp_path, Document(text, id="x"), max_gleanings=0)
    assert report.documents == ("x",) and not report.failures
    rows = stored(tmp_path, "SELECT start, stop FROM chunks ORDER BY position")
    assert rows[-1][1] == len(text)
    assert all(after[0] <= before[1] for before, after in itertools.pairwise(rows))


@pytest.mark.timeout(300)
@pytest.mark.skipif("LIGHTRAG_JSONL_SLOW" not in os.environ, reason="set LIGHTRAG_JSONL_SLOW")
def test_ten_megabytes_in_one_line(tmp_path: Path) -> None:
    """They are a document like another."""
    report = insert(
        tmp_path, Document("Ann met Bob and said 中文 again; " * 300_000, id="x"), max_gleanings=0
    )
    assert report.documents == ("x",) and not report.failures


async def test_what_cannot_be_stored_is_replaced_at_the_door(tmp_path: Path) -> None:
    """NUL and lone surrogates in texts, names, metadata and records; offsets stay what they were."""
    bad = "Ann\0 met \ud800Bob."
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        given = Document(bad, id="x\ud801", title=bad, source=bad, date=bad, metadata={bad: [bad]})
        await rag.insert(given)
        assert (await rag.insert(given)).unchanged == ("x\ufffd",)
        await rag.insert_records(
            Document(bad, id="y"),
            [entity(bad, bad, bad), relation(bad, "Bob", bad, keywords=[bad])],
        )
        (page,) = await rag.pages("x\ufffd")
        assert page.text == "Ann\ufffd met \ufffdBob." and len(page.text) == len(bad)
        json.dumps(await rag.records(), ensure_ascii=False).encode("utf-8")
        for status in await rag.documents():
            str(status).encode("utf-8")
    assert problems(tmp_path) == []


async def test_what_cannot_be_stored_may_wait(tmp_path: Path) -> None:
    """An interrupted insert of such a text is resumed to the same document."""
    options = IndexOptions(max_calls=0)
    llm = ScriptedLLM(read_names)
    async with index(tmp_path, llm, options=options) as rag:
        assert (await rag.insert(Document("Ann\0 met \ud800Bob.", id="x"))).stopped
    async with index(tmp_path, llm) as rag:
        assert (await rag.resume()).documents == ("x",)
        assert (await rag.insert(Document("Ann\0 met \ud800Bob.", id="x"))).unchanged == ("x",)


async def test_hostile_answers_of_a_model_are_no_errors(tmp_path: Path) -> None:
    """Numbers beyond all measure, NUL, surrogates and depth inside records leave a sound index."""
    answers = [
        '{"type":"relationship","source":"Ann","target":"Bob","description":"d","strength":"NaN"}',
        '{"type":"relationship","source":"Ann","target":"Cid","description":"d","strength":1'
        + "0" * 400
        + "}",
        '{"type":"entity","name":"A\\u0000nn","entity_type":"p\\u0000","description":"\\ud800\\u0000"}',
        '{"type":"entity","name":"' + "n" * 20_000 + '","entity_type":"x","description":"y"}',
        "[" * 5_000,
        '{"a":' * 5_000,
        '{"type":"entity","name":7,"entity_type":"x","description":"y"}',
        jsonl(*(entity(f"E{n}") for n in range(1_500))),
    ]
    options = IndexOptions(max_gleanings=0)
    async with index(tmp_path, ScriptedLLM(["\n".join(answers)]), options=options) as rag:
        report = await rag.insert(Document("Ann met Bob.", id="x"))
        assert report.documents == ("x",) and len(rag.graph) > 1_500
    assert problems(tmp_path) == []


def test_files_of_one_name_in_two_folders_are_both_kept(tmp_path: Path) -> None:
    """With other texts they are two documents; with the same text they are one, seen again."""
    for folder, text in (("a", "Ann sang."), ("b", "Bob sang."), ("c", "Ann sang.")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "notes.txt").write_text(text, encoding="utf-8")
    files = [tmp_path / folder / "notes.txt" for folder in "abc"]
    for _ in range(2):
        report = insert(tmp_path / "kb", *files)
    assert len(report.unchanged) == 3 and report.documents == ()
    sources = stored(tmp_path / "kb", "SELECT source FROM documents ORDER BY source")
    assert sources == [(str(files[0]),), (str(files[1]),)]


def test_unreadable_files_do_not_stop_the_others(tmp_path: Path) -> None:
    """A missing and a binary one are failures with their names."""
    binary, good = tmp_path / "b.txt", tmp_path / "g.txt"
    binary.write_bytes(b"\0\1")
    good.write_text("Ann sang.", encoding="utf-8")
    report = insert(tmp_path / "kb", tmp_path / "none.txt", binary, good)
    assert len(report.documents) == 1
    assert ["no such file" in f.reason or "no text file" in f.reason for f in report.failures] == [
        True
    ] * 2


def test_many_pages_and_empty_ones(tmp_path: Path) -> None:
    """Form feeds part pages; blank pages have no chunk and keep their number."""
    insert(tmp_path, Document("Ann.\f\f  \fBob.", id="x"), Document("", id="y", pages=("", "Cid.")))
    rows = stored(
        tmp_path,
        "SELECT d.name, c.page, c.text FROM chunks c JOIN documents d ON d.id = c.document ORDER BY 1, 2",
    )
    assert rows == [("x", 1, "Ann."), ("x", 4, "Bob."), ("y", 2, "Cid.")]


class Broken(HashEmbedder):
    """An embedder that answers with something else than it promised."""

    def __init__(self, answer: str) -> None:
        super().__init__(dim=64)
        self.answer = answer

    async def embed(self, texts, *, kind):  # type: ignore[no-untyped-def]
        rows = await super().embed(texts, kind=kind)
        if self.answer == "error":
            raise ConnectionResetError("the server is gone")
        ragged = [[1.0, 2.0], [1.0]]
        broken = {"shape": rows[:, :7], "count": rows[1:], "nan": rows * float("nan"), "": rows}
        return broken.get(self.answer, ragged)


@pytest.mark.parametrize("answer", ["shape", "count", "nan", "ragged", "error"])
async def test_an_embedder_that_breaks_its_promise_is_told_so(tmp_path: Path, answer: str) -> None:
    """Nothing of it is stored; once it is mended the same insert succeeds and no answer is paid again."""
    embedder, llm = Broken(answer), ScriptedLLM(read_names)
    async with index(tmp_path, llm, embedder=embedder) as rag:
        with pytest.raises(EmbeddingError, match="embedder"):
            await rag.insert(Document("Ann met Bob.", id="x"))
        assert [d.state for d in await rag.documents()] == ["pending"]
        embedder.answer = ""
        assert (await rag.resume()).documents == ("x",)
        assert len(llm.requests) <= 2
    assert problems(tmp_path) == []


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_does_not_know_is_null(tmp_path: Path, number: float) -> None:
    """One such fact of one document does not stop filters from finding the others."""
    with LightRAG(tmp_path) as rag:
        rag.insert(Document("Ann met Bob.", id="a", metadata={"year": 1900, "facts": [number]}))
        rag.insert(Document("Ann met Cid.", id="b", metadata={"year": number}))
        found = rag.retrieve("Ann", QueryParam(mode="naive", where={"year": 1900}))
        kept = {one.id: one.metadata for one in rag.documents()}

    assert {chunk.document_id for chunk in found.chunks} == {"a"}
    assert kept == {"a": {"year": 1900, "facts": [None]}, "b": {"year": None}}


def test_facts_nested_too_deeply_are_refused(tmp_path: Path) -> None:
    """Of documents and of records alike: an error of ours, and nothing is stored."""
    deep: Json = 1
    for _ in range(2_000):
        deep = [deep]
    record = {"type": "entity", "name": "Ann", "entity_type": "", "description": "", "x": deep}
    with LightRAG(tmp_path) as rag:
        with pytest.raises(ConfigError, match="nested too deeply"):
            rag.insert(Document("Ann met Bob.", metadata={"x": deep}))
        with pytest.raises(ConfigError, match="nested too deeply"):
            rag.insert_records(Document("Ann met Bob."), [record])
        assert rag.documents() == ()


async def test_facts_that_are_no_json_are_refused(tmp_path: Path) -> None:
    """Alone, they are an error; of one document among several, a failure that stops no other."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        bad = Document("Ann sang.", id="bad", metadata={"at": b"1900"})  # type: ignore[dict-item]
        with pytest.raises(ConfigError, match="plain JSON; bytes is none"):
            await rag.insert(bad)
        assert await rag.documents() == ()
        report = await rag.insert([bad, Document("Ann met Bob.", id="good")])
        assert report.documents == ("good",)
        (failure,) = report.failures
        assert failure.document_id == "bad"
        assert "plain JSON" in failure.reason
    assert problems(tmp_path) == []


async def test_waiting_records_that_fit_no_more_stop_no_other(tmp_path: Path) -> None:
    """Records of an insert that was killed, whose chunks are others by now: told, and they wait."""
    async with index(tmp_path) as rag:
        records = ({**entity("Ann", "Sang."), "chunk": 7},)
        for id, given in (("bad", records), ("good", None)):
            waiting = PendingDocument(Document(f"Ann met {id}.", id=id), given, None, 1.0)
            await rag._database.committed(partial(pending.put, waiting=waiting))
        report = await rag.resume()
        assert report.documents == ("good",)
        assert [failure.document_id for failure in report.failures] == ["bad"]
        (again,) = (await rag.resume()).failures
        assert "names chunk 7" in again.reason
        await rag.delete("bad")
        assert (await rag.resume()).failures == ()


@pytest.mark.parametrize("chunks", [[], "Ann met Bob."])
def test_chunks_are_several_texts(tmp_path: Path, chunks: list[str] | str) -> None:
    """No pieces at all, or one text, whose characters would each be one, are refused."""
    with LightRAG(tmp_path) as rag:
        with pytest.raises(ConfigError, match="at least one"):
            rag.insert_records(Document("Ann met Bob."), [], chunks=chunks)
        assert rag.documents() == ()


def test_an_id_is_found_as_it_was_given(tmp_path: Path) -> None:
    """Half an emoji cannot be stored; who asks for it by the same id finds the document."""
    with LightRAG(tmp_path) as rag:
        rag.insert(Document("Ann met Bob.", id="a\ud83d"))
        assert rag.pages("a\ud83d")[0].text == "Ann met Bob."
        assert rag.document_origins("a\ud83d").document.id == "a\ufffd"
        assert rag.rejections("a\ud83d") == []
        rag.update(Document("Ann met Cid.", id="a\ud83d"))
        rag.delete("a\ud83d")
        for gone in (rag.pages, rag.delete, rag.document_origins):
            with pytest.raises(NotFoundError, match="\ufffd"):
                gone("a\ud83d")


@pytest.mark.parametrize("id", ["  ", "\u3000\t", "\u200b"])
def test_an_id_that_cannot_be_seen_is_refused(tmp_path: Path, id: str) -> None:
    """Alone as an error; in company as a failure, beside which the others are indexed."""
    blank = Document("Ann met Bob.", id=id)
    with pytest.raises(ConfigError, match="no character that can be seen"):
        insert(tmp_path, blank)
    report = insert(tmp_path, blank, Document("Ann met Cid.", id="．"))
    assert report.documents == ("．",)
    assert [failure.document_id for failure in report.failures] == [id]


async def test_a_writer_of_pending_documents_needs_no_id(tmp_path: Path) -> None:
    """An id that is missing or blank is derived from the text, the same each time."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        given = [
            PendingDocument(Document("Ann sang.", id=id), None, None, 1.0) for id in (None, "")
        ]
        first = await rag._engine.indexing.insert(given[:1])
        assert (await rag._engine.indexing.insert(given[1:])).unchanged == first.documents
