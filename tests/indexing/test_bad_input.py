"""Texts and records that nobody should hand in: taken as they are, or refused in words."""

import math
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import ConfigError, Document, IndexOptions, Limits, NotFoundError, QueryParam
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import entity, index, jsonl, problems, read_names, relation


@pytest.mark.parametrize("text", ["", " ", "\n\t\u3000\u2028\f "])
async def test_a_text_without_text_is_a_failure(tmp_path: Path, text: str) -> None:
    """It is reported, the others are indexed, and nothing waits."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        report = await rag.insert([text, "Ann met Bob."])
        assert len(report.documents) == 1
        assert [failure.reason for failure in report.failures] == ["the document has no text"]
        assert len(await rag.documents()) == 1


async def test_what_cannot_be_stored_is_replaced_at_the_door(tmp_path: Path) -> None:
    """NUL and lone surrogates in texts, names, metadata and records; offsets stay what they were."""
    bad = "Ann\0 met \ud800Bob."
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        given = Document(bad, id="x", title=bad, source=bad, date=bad, metadata={bad: [bad]})
        await rag.insert(given)
        assert (await rag.insert(given)).unchanged == ("x",)
        records = [entity(bad, bad, bad), relation(bad, "Bob", bad, keywords=[bad])]
        await rag.insert_records(Document(bad, id="y"), records)
        (page,) = await rag.pages("x")
        assert page.text == "Ann\ufffd met \ufffdBob." and len(page.text) == len(bad)
        (await rag.admin.export_text("jsonl")).encode("utf-8")
        for status in await rag.documents():
            str(status).encode("utf-8")
        await rag.delete("x")
    assert problems(tmp_path) == []


@pytest.mark.parametrize("id", ["d\x00", "d\ud800"])
async def test_ids_that_cannot_be_stored_are_refused(tmp_path: Path, id: str) -> None:
    """Two of them would become one document, and `delete` would remove another than was named."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        with pytest.raises(
            ConfigError, match=r"the id 'd\\.* has characters that cannot be stored"
        ):
            await rag.insert(Document("Ann met Bob.", id=id))
        report = await rag.insert([Document("Ann met Bob.", id=id), Document("Cid.", id="d\ufffd")])
        assert report.documents == ("d\ufffd",) and len(report.failures) == 1
        for use in (rag.delete, rag.pages):
            with pytest.raises(NotFoundError, match="no such document"):
                await use(id)
        assert [one.id for one in await rag.documents()] == ["d\ufffd"]


@pytest.mark.parametrize("now", [1_763_935_200_000.0, math.nan, math.inf, -1.0, "noon", None])
async def test_a_clock_gives_seconds(tmp_path: Path, now: Any) -> None:
    """A time in milliseconds, which no date can show, is refused before it is stored."""
    async with index(tmp_path, ScriptedLLM(read_names), clock=lambda: now) as rag:
        with pytest.raises(ConfigError, match=r"clock returned .* seconds since 1970"):
            await rag.insert("Ann met Bob.")
        with pytest.raises(ConfigError, match="seconds since 1970"):
            await rag.insert_records("Ann met Bob.", [entity("Ann")])
        with pytest.raises(ConfigError, match="seconds since 1970"):
            await rag.query("Who?", mode="bypass")
        assert not await rag.documents() and not await rag.traces.list()


@pytest.mark.slow
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
    roomy = IndexOptions(max_gleanings=0, limits=Limits(records_per_token=1_000))
    async with index(tmp_path, ScriptedLLM(["\n".join(answers)]), options=roomy) as rag:
        report = await rag.insert(Document("Ann met Bob.", id="x"))
        assert report.documents == ("x",) and len(rag.graph) > 1_500
    assert problems(tmp_path) == []


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
async def test_a_number_that_json_does_not_know_is_null(tmp_path: Path, number: float) -> None:
    """One such value of one document does not stop filters from finding the others."""
    async with index(tmp_path) as rag:
        documents = [
            Document("Ann met Bob.", id="a", metadata={"year": 1900, "numbers": [number]}),
            Document("Ann met Cid.", id="b", metadata={"year": number}),
        ]
        await rag.insert(documents)
        found = await rag.retrieve("Ann", QueryParam(mode="naive", where={"year": 1900}))
        kept = {one.id: one.metadata for one in await rag.documents()}
    assert {chunk.document_id for chunk in found.chunks} == {"a"}
    assert kept == {"a": {"year": 1900, "numbers": [None]}, "b": {"year": None}}


async def test_records_that_are_no_json_are_refused(tmp_path: Path) -> None:
    """What is nested too deeply, too, also in metadata, or has a number too long to be written;
    nothing is stored.
    """
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(ConfigError, match="metadata"):
        Document("Ann", metadata={"deep": deep})
    async with index(tmp_path) as rag:
        for bad in (deep, b"1900", 10**5_000):
            record = {**entity("Ann"), "x": bad}
            with pytest.raises(ConfigError, match="plain JSON that can be stored"):
                await rag.insert_records(Document("Ann met Bob."), [record])
        assert await rag.documents() == ()


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (Document("Ann sang.", id="bad", metadata={"n": 10**5_000}), "plain JSON"),
        (Document("Ann sang.", id="\u3000\t"), "no character that can be seen"),
        (Document("Ann sang.", id="\u200b"), "no character that can be seen"),
    ],
)
async def test_a_document_that_cannot_be_stored_stops_no_other(
    tmp_path: Path, bad: Document, words: str
) -> None:
    """Alone, it is an error; among several, a failure with a reason."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        with pytest.raises(ConfigError, match=words):
            await rag.insert(bad)
        assert await rag.documents() == ()
        report = await rag.insert([bad, Document("Ann met Bob.", id="．")])
        assert report.documents == ("．",)
        assert [failure.document_id for failure in report.failures] == [bad.id]
    assert problems(tmp_path) == []
