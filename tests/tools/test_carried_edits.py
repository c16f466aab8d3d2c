"""Edits by hand go where their documents go: into copies, into merged and split indexes, and out again."""

from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl.tools.copying import copy_index
from tests.edited import insert_text, make_edits, undo_edits
from tests.kit import index, problems, reading, view


def overrides_by_chunk(folder: Path) -> dict[str, Any]:
    """The overrides in an index, by public chunk id."""
    with reading(folder) as snapshot:
        return {override.chunk_id: override for override in snapshot.overrides().values()}


@pytest.mark.slow
async def test_a_copy_has_the_edits_and_can_undo_them(tmp_path: Path) -> None:
    """All that was edited, with author, time and reason; undone in the copy, the text stands alone."""
    source = tmp_path / "kb"
    copy = tmp_path / "copy"
    await insert_text(source)
    before = view(source)
    await make_edits(source)
    copy_index(source, copy)
    assert view(copy) == view(source) and problems(copy) == []
    assert len(overrides_by_chunk(source)) == 7
    assert overrides_by_chunk(copy) == overrides_by_chunk(source)
    await undo_edits(copy)
    assert view(copy) == before and problems(copy) == []


@pytest.mark.slow
async def test_merged_edits_are_as_if_made_here(tmp_path: Path) -> None:
    """The same graph and overrides in an empty index; undone there, the text stands alone."""
    source = tmp_path / "kb"
    merged = tmp_path / "all"
    await insert_text(source)
    before = view(source)
    await make_edits(source)
    async with index(merged) as rag:
        await rag.merge_from(source)
    assert view(merged) == view(source) and problems(merged) == []
    assert overrides_by_chunk(merged) == overrides_by_chunk(source)
    await undo_edits(merged)
    assert view(merged) == before and problems(merged) == []


async def test_an_edit_comes_alone_without_its_text(tmp_path: Path) -> None:
    """A split by the document of an edit takes that override, and no other."""
    source = tmp_path / "kb"
    await insert_text(source)
    await make_edits(source)
    overrides = overrides_by_chunk(source).values()
    (created,) = [override for override in overrides if override.names == ("Fay",)]
    with reading(source) as snapshot:
        (chunk,) = snapshot.chunks(ids=[created.chunk_id]).values()
    async with index(source) as rag:
        await rag.split([chunk.document_id], tmp_path / "part")
    assert overrides_by_chunk(tmp_path / "part") == {created.chunk_id: created}
    async with index(tmp_path / "part") as part:
        assert [entity.name for entity in await part.entities.list()] == ["Fay"]
