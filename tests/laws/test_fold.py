"""Law `fold`: the graph is a function of the set of mentions, whatever the order, batches or repetition."""

import asyncio
import itertools
import random
import tempfile
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import Chunk, Document, EntityMention, RelationMention
from tests.indexing.libraries import edit, edits, libraries, pending, slow
from tests.kit import Record, View, entity, extraction, fingerprint, index, problems, view


async def merge_in_batches(batches: Sequence[Sequence[Any]]) -> View:
    with tempfile.TemporaryDirectory() as folder:
        async with index(folder) as rag:
            for batch in batches:
                await rag.engine.indexing.insert(batch)
        assert problems(folder) == []
        return view(folder)


@slow
@given(libraries, st.randoms(use_true_random=False))
def test_order_batches_and_repetition_do_not_matter(
    library: list[list[Record]], chance: random.Random
) -> None:
    """Entities, relations, vectors and full text depend on the set of mentions alone."""
    one_by_one = [[pending(number, records)] for number, records in enumerate(library)]
    doubled = []
    for number, records in enumerate(library):
        mixed = records * 2
        chance.shuffle(mixed)
        doubled.append(pending(number, mixed))
    chance.shuffle(doubled)
    cut = chance.randint(0, len(doubled))

    first = asyncio.run(merge_in_batches(one_by_one))
    second = asyncio.run(merge_in_batches([doubled[:cut], doubled[cut:]]))

    assert (first.entities, first.relations) == (second.entities, second.relations)
    assert (first.vectors, first.terms) == (second.vectors, second.terms)


@slow
@given(libraries, edits, st.randoms(use_true_random=False))
def test_edits_by_hand_are_claims_like_others(
    library: list[list[Record]],
    given_edits: list[tuple[str, str, str | None]],
    chance: random.Random,
) -> None:
    """What people create, edit and delete gives the same graph before and after the documents."""
    documents = [pending(number, records) for number, records in enumerate(library)]

    async def run(folder: str) -> None:
        async with index(folder) as rag:
            await rag.engine.indexing.insert(documents)
            await edit(rag, given_edits)
            first = view(folder)
            assert problems(folder) == []
            chance.shuffle(documents)
            await rag.delete(*(f"d{number}" for number in range(len(library))))
            for document in documents:
                await rag.engine.indexing.insert([document])
                assert problems(folder) == []
            assert view(folder) == first
            await rag.admin.rebuild()
            assert view(folder) == first

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


@pytest.mark.slow
def test_a_hub_of_many_equal_descriptions_is_merged_alike_in_any_order() -> None:
    """What is shown of an entity with more mentions than are read does not depend on the order."""
    ordered = sorted(range(48), key=lambda number: fingerprint(f"d{number}"))
    texts = ["The same words."] * 45 + [f"Something else, {number}." for number in range(3)]
    documents = [
        pending(number, [entity("Hub", text)]) for number, text in zip(ordered, texts, strict=True)
    ]

    at_once = asyncio.run(merge_in_batches([documents]))
    in_turn = asyncio.run(merge_in_batches([documents[i::6] for i in range(6)]))
    backwards = asyncio.run(merge_in_batches([documents[40:], documents[:40][::-1]]))

    assert at_once.entities == in_turn.entities == backwards.entities


class Scripted:
    """An extractor whose answers arrive in an order of their own."""

    name = "scripted"

    def __init__(self, pauses: Sequence[int]) -> None:
        self._pauses = iter(pauses)

    async def extract(self, chunk: Chunk) -> Any:
        for _ in range(next(self._pauses, 0)):
            await asyncio.sleep(0)
        names = sorted({word.strip(".") for word in chunk.text.split() if word[0].isupper()})
        return extraction(
            tuple(EntityMention(name, "person", f"In {chunk.document_id}.") for name in names),
            tuple(RelationMention(a, b, ("by",), "Near.") for a, b in itertools.pairwise(names)),
        )


@slow
@given(st.lists(st.integers(0, 30), max_size=12), st.permutations(range(6)))
def test_concurrency_does_not_matter(pauses: list[int], order: list[int]) -> None:
    """Documents that overtake each other leave the same graph."""
    texts = [f"Ann met Bob. Person{n} met Person{n + 1}. Cid met Ann." for n in range(6)]

    async def build(numbers: Sequence[int], extractor: Scripted) -> View:
        with tempfile.TemporaryDirectory() as folder:
            async with index(folder, extractor=extractor) as rag:
                await rag.insert([Document(texts[n], id=f"d{n}") for n in numbers])
            assert problems(folder) == []
            return view(folder)

    assert asyncio.run(build(order, Scripted(pauses))) == asyncio.run(build(range(6), Scripted(())))
