"""An index that is kept in step with a folder of files."""

import re
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import Chunk, ConfigError, Document, EntityMention, RelationMention
from tests.kit import extraction, index, problems


async def test_an_edited_file_replaces_its_earlier_text(tmp_path: Path) -> None:
    """Whether it is named by itself or in its folder, by a relative path or by a link."""
    file, link = tmp_path / "texts" / "文.txt", tmp_path / "link"
    file.parent.mkdir()
    link.symlink_to(file.parent)
    async with index(tmp_path / "kb") as rag:
        for number, given in enumerate((file, file.parent, link, link / "文.txt")):
            file.write_text(f"Ann met Bob{number}.", encoding="utf-8")
            await rag.insert(given)
            assert [one.id for one in await rag.documents()] == [str(file)]
            names = {one.name for one in await rag.entities.list()}
            assert {name for name in names if name.startswith("Bob")} == {f"Bob{number}"}


@pytest.mark.slow
async def test_documents_of_files_that_are_gone_go_with_sync_only(tmp_path: Path) -> None:
    """So do lines that are gone; other documents, files elsewhere, files of other kinds that were
    named, and everything below what cannot be read stay.
    """
    folder, outside = tmp_path / "texts", tmp_path / "texts2.txt"
    (folder / "deep").mkdir(parents=True)
    lines = folder / "lines.jsonl"
    lines.write_text('"Cid met Dan."\n{"text": "Eve met Fay.", "id": "eve"}\n"Gil met Hal."\n')
    names = ("a.txt", "b.txt", "deep/c.md", "d.log", "bad.txt")
    for name in names:
        (folder / name).write_text(f"Ann met Zoe in {name}.")
    outside.write_text("Ann was outside.")

    async with index(tmp_path / "kb") as rag:
        await rag.insert([folder, outside, folder / "d.log", Document("By hand.", id="own")])
        (folder / "a.txt").unlink()
        (folder / "deep" / "c.md").unlink()
        (folder / "bad.txt").write_bytes(b"\0\1")
        lines.write_text('"Gil met Hal."\n')
        assert (await rag.insert(folder)).deleted == ()
        report = await rag.insert(folder, sync=True)
        assert [one.partition("#")[0] for one in report.deleted] == [
            str(folder / name) for name in ("a.txt", "deep/c.md", "lines.jsonl")
        ]
        left = {one.id for one in await rag.documents()}
        kept = {str(folder / name) for name in ("b.txt", "d.log", "bad.txt")}
        assert left > {*kept, str(outside), "own", "eve"} and len(left) == 7
        assert problems(tmp_path / "kb") == []
        lines.write_text('"Ida met Jon."\n{broken\n')
        assert (await rag.insert(folder, sync=True)).deleted == ()


async def test_nothing_is_deleted_for_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """An unmounted folder is missing or empty: an error, and the documents stay."""
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("Ann met Bob.")
    async with index(tmp_path / "kb") as rag:
        await rag.insert(folder)
        (folder / "a.txt").unlink()
        with pytest.raises(ConfigError, match="no readable file"):
            await rag.insert(folder, sync=True)
        folder.rmdir()
        for given in (folder, "a text", [Document("x")]):
            with pytest.raises(ConfigError, match="no folder was given"):
                await rag.insert(given, sync=True)
        assert len(await rag.documents()) == 1


class Directors:
    """Reads who directs or meets whom, as a user's own extractor."""

    name = "directors"

    async def extract(self, chunk: Chunk) -> Any:
        """The two names of the sentence, and their relation."""
        ((source, keyword, target),) = re.findall(
            r"(.+?) (is the director of|met) (.+)\.", chunk.text
        )
        entities = [EntityMention(name, "thing", "") for name in (source, target)]
        relation = RelationMention(source, target, (keyword,), chunk.text)
        return extraction(entities=tuple(entities), relations=(relation,))


async def test_sync_reports_what_changed_in_the_graph(tmp_path: Path) -> None:
    """New and gone names and relations, and contradictions that were not there before; without sync it
    compares nothing.
    """
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(6):
        for source in "ab":
            text = f"Bob{number} Stone is the director of Mill{number} House."
            (folder / f"{number}{source}.txt").write_text(text, encoding="utf-8")
    async with index(tmp_path / "kb", extractor=Directors()) as rag:
        assert (await rag.insert(folder)).difference is None
        (folder / "0b.txt").unlink()
        (folder / "1a.txt").write_text("Bob1 Stone met Eve Ray.", encoding="utf-8")
        (folder / "2b.txt").write_text("Zoe Hill is the director of Mill2 House.", encoding="utf-8")
        difference = (await rag.insert(folder, sync=True)).difference
        assert difference is not None
        assert set(difference.new_entities) == {"Eve Ray", "Zoe Hill"}
        assert difference.gone_entities == ()
        assert ("Mill2 House", "Zoe Hill") in difference.new_relations
        (conflict,) = difference.new_conflicts
        assert {conflict.first.subject, conflict.second.subject} == {"Bob2 Stone", "Zoe Hill"}
        unchanged = (await rag.insert(folder, sync=True)).difference
        assert unchanged is not None and unchanged.new_conflicts == unchanged.new_entities == ()
