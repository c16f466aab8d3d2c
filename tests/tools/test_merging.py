"""Law `merge`: indexes made apart and merged are the index that is made at once, and nothing is paid twice."""

import asyncio
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import (
    ConfigError,
    Document,
    IndexOptions,
    LightRAG,
    NotFoundError,
    SettingsError,
)
from lightrag_jsonl.testing import HashEmbedder, Request, ScriptedLLM
from tests.indexing.libraries import edit, edits, libraries, pending, slow
from tests.kit import Record, entity, fingerprint, index, jsonl, problems, reading, relation, view
from tests.laws.test_order import rows
from tests.processes import run_python

OPTIONS = IndexOptions(summarize_fragments=3, max_gleanings=0)
NAMES = re.compile(r"[A-Z][a-z]+\d*|[\u5218\u5173\u5f20][\u5907\u7fbd\u98de]\d*")
TEXTS = {
    "en": ["Hub met Ann{}. Ann{} met Bob.", "Bob{} saw Hub.", "Cid{} wrote to Dan."],
    "zh": ["刘备见了关羽{}。关羽{}见了张飞。", "张飞{}看见刘备。", "关羽{}写信给张羽。"],
}


def read_all(request: Request) -> str:
    """A model that tells every text and every list of notes apart."""
    if request.question.startswith(("Subject:", "对象：")):
        return f"Summary {fingerprint(request.question)}."
    text = re.split(r"(?:Text:|文本：)\n", request.question)[-1]
    names = list(dict.fromkeys(NAMES.findall(text)))
    found: list[Record] = [entity(name, f"{name}: {fingerprint(text)}") for name in names]
    found += [relation(names[0], name, f"{name}, {fingerprint(text)}") for name in names[1:]]
    return jsonl(*found, {"type": "done", "entities": len(names), "relationships": len(names) - 1})


def documents(language: str, count: int = 12, shift: int = 0) -> list[Document]:
    texts = [TEXTS[language][n % 3].format(n, n) for n in range(shift, shift + count)]
    return [Document(text, id=f"d{n}") for n, text in enumerate(texts, shift)]


async def made(folder: Path, given: Sequence[Document], language: str = "en") -> int:
    """An index of these documents; returns how many calls it took."""
    llm = ScriptedLLM(read_all)
    more: dict[str, Any] = {"language": language, "clock": lambda: 1000.0}
    async with index(folder, llm, options=OPTIONS, **more) as rag:
        await rag.insert(given)
    return len(llm.requests)


def stored(folder: Path) -> dict[str, list[Any]]:
    """The rows of every table with their ids, but for the record of commits and the next ids."""
    left_out = ("commits", "sqlite_sequence")
    return {table: found for table, found in rows(folder).items() if table not in left_out}


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_merged_indexes_are_the_one_made_at_once(tmp_path: Path, language: str) -> None:
    """Every row and row id. No model is asked; then only for summaries that no index has paid for:
    those of names that are in both.
    """
    name = {"en": "Zed", "zh": "张备"}[language]
    given = [Document(f"{name} {n}.", id=f"z{n}") for n in range(3)] + documents(language)
    calls = await made(tmp_path / "once", given, language)
    for name, some in (("a", given[:7]), ("b", given[7:])):
        await made(tmp_path / name, some, language)
    llm = ScriptedLLM(read_all)
    async with index(tmp_path / "all", llm, options=OPTIONS, language=language) as rag:
        report = await rag.merge_from(tmp_path / "a", tmp_path / "b")
        assert llm.requests == [] and 0 < report.summaries_due < calls - len(given)
        assert report.documents == tuple(one.id or "" for one in given)
        await rag.admin.summarize()
        assert len(llm.requests) == report.summaries_due
    assert stored(tmp_path / "all") == stored(tmp_path / "once")
    assert problems(tmp_path / "all") == []


async def test_paid_summaries_and_answers_come_along(tmp_path: Path) -> None:
    """One index merged into an empty one is copied: nothing is asked, embedded or left due, and the
    answers are cached: deleting and inserting again costs nothing.
    """
    given = documents("en")
    await made(tmp_path / "a", given)

    class Refusing(HashEmbedder):
        async def embed(self, texts: Sequence[str], *, kind: Any) -> Any:
            raise AssertionError(f"embedded anew: {texts}")

    llm = ScriptedLLM([])
    async with index(tmp_path / "all", llm, options=OPTIONS, embedder=Refusing(dim=64)) as rag:
        report = await rag.merge_from(tmp_path / "a")
        assert report.summaries_due == 0 and report.answers > len(given)
    assert stored(tmp_path / "all") == stored(tmp_path / "a")
    async with index(tmp_path / "all", llm, options=OPTIONS) as rag:
        await rag.delete("d1")
        assert (await rag.insert(given[1])).usage.calls == 0


@slow
@given(libraries, edits, st.integers(0, 5))
def test_merging_is_a_fold_over_claims(
    library: list[list[Record]], given_edits: list[tuple[str, str, str | None]], cut: int
) -> None:
    """Whatever the documents say and people edited: merged is as if inserted, also when repeated."""
    every = [pending(number, records) for number, records in enumerate(library)]

    async def run(root: Path) -> None:
        async with index(root / "once") as once, index(root / "a") as a, index(root / "b") as b:
            for rag in (once, a):
                await rag.engine.indexing.insert(every[:cut])
                await edit(rag, given_edits)
            for rag in (once, b):
                await rag.engine.indexing.insert(every[cut:])
        async with index(root / "all") as rag:
            await rag.merge_from(root / "b")
            await rag.merge_from(root / "a", root / "b")
            assert (await rag.merge_from(root / "a", root / "b")).documents == ()
        assert view(root / "all") == view(root / "once") and problems(root / "all") == []

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


@pytest.mark.slow
async def test_merges_of_names_come_along(tmp_path: Path) -> None:
    """A name merged in one index stands for its entity in the documents of the other, too; what is
    contradictory or goes in a circle is refused before anything is written.
    """
    given = documents("en")
    async with index(tmp_path / "once", ScriptedLLM(read_all), options=OPTIONS) as once:
        await once.insert(given)
        await once.entities.merge(["Bob", "Ann0"], into="Robert")
    await made(tmp_path / "a", given[:6])
    await made(tmp_path / "b", given[6:])
    async with index(tmp_path / "a") as a, index(tmp_path / "b") as b:
        await a.entities.merge(["Bob", "Ann0"], into="Robert")
        async with index(tmp_path / "all", ScriptedLLM(read_all), options=OPTIONS) as rag:
            await rag.merge_from(tmp_path / "b", tmp_path / "a")
            await rag.admin.summarize()
        async with index(tmp_path / "once", ScriptedLLM(read_all), options=OPTIONS) as once:
            await once.admin.summarize()
        assert view(tmp_path / "all") == view(tmp_path / "once")
        await b.entities.merge(["Bob"], into="Hub")  # contradicts the merge in a
        async with index(tmp_path / "c") as c:  # in a circle with it
            await c.insert_records(Document("Bob", id="c"), [entity("Robert"), entity("Bob")])
            await c.entities.merge(["Robert"], into="Bob")
        before = stored(tmp_path / "a")
        for name in ("b", "c"):
            with pytest.raises(ConfigError, match=r"merged into different entities.*unmerge"):
                await a.merge_from(tmp_path / name)
        assert stored(tmp_path / "a") == before


async def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Two versions of a document, another embedder or language, the index itself: the error names
    what it is, and nothing is changed.
    """
    await made(tmp_path / "a", documents("en", 3))
    await made(tmp_path / "b", [*documents("en", 2, 5), Document("Another text by Ann.", id="d1")])
    async with index(tmp_path / "a") as rag:
        before = stored(tmp_path / "a")
        with pytest.raises(ConfigError, match=r"d1; .*nothing was changed"):
            await rag.merge_from(tmp_path / "b")
        with pytest.raises(ConfigError, match="itself"):
            await rag.merge_from(tmp_path / "a")
        async with index(tmp_path / "c", embedder=HashEmbedder(dim=32)) as other:
            await other.insert("Ann.")
        with pytest.raises(SettingsError, match="built with"):
            await rag.merge_from(tmp_path / "c")
        await made(tmp_path / "z", documents("zh", 2, 90), "zh")
        with pytest.raises(SettingsError, match="language 'zh'"):
            await rag.merge_from(tmp_path / "z")
        assert stored(tmp_path / "a") == before


KILLED = """
import os, sys, time
from lightrag_jsonl import LightRAG
from lightrag_jsonl.curation import index_merge
def end(progress):
    os._exit(9)
index_merge.LARGEST_GROUP = 128
LightRAG(sys.argv[1], llm="none").merge_from(*sys.argv[2:], progress=end)
"""


@pytest.mark.slow
def test_a_killed_merge_goes_on(tmp_path: Path) -> None:
    """A process that dies after its first commit leaves whole documents; the next one takes the rest."""
    given = [Document(f"Marie Curie{n} met Pierre Curie in Paris.", id=f"d{n}") for n in range(140)]
    for name, some in (("once", given), ("a", given[:100]), ("b", given[100:])):
        with LightRAG(tmp_path / name) as rag:
            rag.insert(some)
    folders = [str(tmp_path / name) for name in ("all", "a", "b")]
    died = run_python(KILLED, *folders)
    assert died.returncode == 9, died.stderr
    with LightRAG(tmp_path / "all") as rag:
        there = len(rag.documents())
        assert 0 < there < 140
        report = rag.merge_from(*folders[1:])
    assert (len(report.unchanged), len(report.documents)) == (there, 140 - there)
    assert view(tmp_path / "all") == view(tmp_path / "once")
    assert problems(tmp_path / "all") == []


async def test_paid_answers_of_waiting_documents_come_along(tmp_path: Path) -> None:
    """What an interrupted insert left unread is not merged, but nothing of it is paid for again."""
    llm, given = ScriptedLLM(read_all), documents("en", 4)
    async with index(tmp_path / "a", llm, options=IndexOptions(max_gleanings=0, max_calls=2)) as a:
        await a.insert(given)
    async with index(tmp_path / "all", llm, options=OPTIONS) as rag:
        report = await rag.merge_from(tmp_path / "a")
        assert report.pending == 4 - len(report.documents) > 0
        await rag.insert(given)
    assert len(llm.requests) == await made(tmp_path / "once", given)
    assert view(tmp_path / "all") == view(tmp_path / "once")


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_split_index_is_one_of_its_documents_alone(tmp_path: Path, language: str) -> None:
    """It takes the settings and the answers about its documents; removing leaves the others."""
    given = documents(language)
    await made(tmp_path / "all", given, language)
    await made(tmp_path / "part", given[:5], language)
    await made(tmp_path / "rest", given[5:], language)
    llm = ScriptedLLM(read_all)
    more: dict[str, Any] = {"options": OPTIONS, "language": language}
    async with index(tmp_path / "all", llm, **more) as rag:
        with pytest.raises(NotFoundError, match="nothing"):
            await rag.split(["d1", "nothing"], tmp_path / "new")
        assert not (tmp_path / "new").exists()
        await rag.split([one.id or "" for one in given[:5]], tmp_path / "new", remove=True)
        assert llm.requests == []
        await rag.admin.summarize()
    async with index(tmp_path / "new", llm, **more) as rag:
        await rag.admin.summarize()
        with reading(tmp_path / "new") as reader:
            quoted = set(reader.completion_keys().values()) - {None}
    assert quoted == {one.id for one in given[:5]}
    assert view(tmp_path / "new") == view(tmp_path / "part")
    assert view(tmp_path / "all") == view(tmp_path / "rest")
