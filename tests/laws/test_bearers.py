"""Law `fold`, for names with one bearer: what a document joins depends on what was read of it, and on what people took apart,
not on when.
"""

import asyncio
import contextlib
import tempfile
from collections.abc import Collection, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import (
    AsyncLightRAG,
    Chunk,
    Document,
    EntityMention,
    LLMError,
    NotFoundError,
    RelationMention,
)
from tests.indexing.libraries import slow
from tests.kit import View, assert_rebuilt_alike, extraction, index

NAMES = (
    "Okafor", "Chidi Okafor", "Ada Okafor", "Mr. Okafor", "Mrs. Okafor", "C. Okafor", "Chidi", "The Raven", "沈德明", "德明",
)  # fmt: skip
chunks = st.lists(st.lists(st.sampled_from(NAMES), max_size=4), min_size=1, max_size=4)
libraries = st.lists(chunks, min_size=1, max_size=3)


class Reader:
    """An extractor of the names between commas, the second an alias of the first; it fails for some chunks."""

    name = "reader"

    def __init__(self, failing: Collection[int]) -> None:
        self.failing = set(failing)

    async def extract(self, chunk: Chunk) -> Any:
        if chunk.index in self.failing:
            raise LLMError("unplugged")
        names = [name for name in chunk.text.strip(".\n").split(", ") if name]
        return extraction(
            tuple(
                EntityMention(name, "person", f"{name} is here.", True, (), tuple(names[1:2]))
                if name == names[0] and names[1:2] not in ([], [name])
                else EntityMention(name, "person", f"{name} is here.")
                for name in dict.fromkeys(names)
            ),
            tuple(
                RelationMention(names[0], name, ("meets",), "They meet.")
                for name in dict.fromkeys(names)
                if name != names[0]
            ),
        )


def documents(library: Sequence[Sequence[Sequence[str]]]) -> list[Document]:
    return [
        Document("", id=f"d{n}", pages=[", ".join(names) + "." for names in pages])
        for n, pages in enumerate(library)
    ]


async def build(
    library: Sequence[Sequence[Sequence[str]]],
    *,
    failing: Collection[int] = (),
    apart_before: Sequence[str] = (),
    apart_after: Sequence[str] = (),
) -> View:
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader(failing)
        async with index(folder, extractor=reader) as rag:
            inserted = documents(library)
            await rag.insert(inserted[:1])
            if failing:
                reader.failing.pop()
                await rag.retry()
                reader.failing.clear()
            for name in apart_before:
                await _take_apart(rag, name)
            await rag.insert(inserted[1:])
            await rag.retry()
            for name in apart_after:
                await _take_apart(rag, name)
            return await assert_rebuilt_alike(rag, folder)


async def _take_apart(rag: object, name: str) -> None:
    try:
        await rag.entities.unmerge(name)  # type: ignore[attr-defined]
    except NotFoundError:  # joined nowhere
        return


@slow
@given(libraries, st.sets(st.integers(0, 3), min_size=1))
def test_chunks_that_are_read_later_give_the_same_graph(
    library: list[list[list[str]]], failing: set[int]
) -> None:
    """Whichever chunks failed first."""
    late = asyncio.run(build(library, failing=failing))
    at_once = asyncio.run(build(library))
    assert (late.entities, late.relations) == (at_once.entities, at_once.relations)
    assert late.vectors == at_once.vectors


@slow
@given(libraries, st.sets(st.integers(0, 3), min_size=1), st.permutations(NAMES), st.booleans())
def test_edits_are_replaced_while_chunks_are_read_again(
    library: list[list[list[str]]], failing: set[int], names: list[str], edits_come_first: bool
) -> None:
    """A name that a person deleted comes back in the commit that joins it to its bearer, and counts once."""

    async def run(folder: str) -> None:
        reader = Reader(failing)
        async with index(folder, extractor=reader) as rag:
            await rag.insert(documents(library))
            edits = [Document("Nobody.", id=id) for id in await _delete(rag, names[:4])]
            replaced = edits[1:]  # the first stays
            reader.failing.clear()
            given_again = documents(library)
            await rag.insert(
                [*replaced, *given_again] if edits_come_first else [*given_again, *replaced]
            )
            await assert_rebuilt_alike(rag, folder)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


async def _delete(rag: AsyncLightRAG, names: Sequence[str]) -> list[str]:
    """The ids of the edits that delete those of the names that are there."""
    edits = []
    for name in names:
        with contextlib.suppress(NotFoundError):
            edits.append(await rag.entities.delete(name, by="Eve"))
    return edits


@slow
@given(libraries)
def test_names_taken_apart_stay_apart_in_documents_of_any_time(
    library: list[list[list[str]]],
) -> None:
    """It does not matter whether the other documents were there already."""
    joining = [["Ngozi Bello", "Bello"]]
    with_bellos = [joining, *([*pages, ["Bello", "Tunde Bello"]] for pages in library)]
    before = asyncio.run(build(with_bellos, apart_before=["Bello"]))
    after = asyncio.run(build(with_bellos, apart_after=["Bello"]))
    assert (before.entities, before.relations) == (after.entities, after.relations)
    assert "bello" in before.entities
