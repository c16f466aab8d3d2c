"""Laws `fold` and `undo`, together: whatever people and models do to an index, in whatever order, it is what its documents and
edits say.
"""

import asyncio
import contextlib
import random
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl import AsyncLightRAG, Chunk, Document, LightRAGError, LLMError
from tests.indexing.libraries import few_examples
from tests.kit import assert_rebuilt_alike, index, problems
from tests.laws.test_bearers import NAMES, Reader

MOST_STEPS = 12
DOCUMENTS = 6
EDITOR = "Eve"


class UnreliableReader(Reader):
    """A reader that fails for a share of the chunks."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(())
        self.chance = chance
        self.share = 0.0

    async def extract(self, chunk: Chunk) -> Any:
        if self.chance.random() < self.share:
            raise LLMError("unplugged")
        return await super().extract(chunk)


class History:
    """Steps of one index, drawn by chance; those that are impossible are refused and change nothing."""

    def __init__(self, rag: AsyncLightRAG, chance: random.Random) -> None:
        self.rag = rag
        self.chance = chance
        self.edits: list[str] = []
        self.snapshots: list[str] = []

    async def step(self) -> None:
        """One step of any kind."""
        with contextlib.suppress(LightRAGError):
            await self.chance.choice(STEPS)(self)

    async def name(self) -> str:
        """The name of an entity that is there, or one that may not be."""
        names = [listed.name for listed in await self.rag.entities.list()]
        return self.chance.choice(names or NAMES)

    async def ids(self) -> list[str]:
        """A document or two, if there are any."""
        ids = [status.id for status in await self.rag.documents()]
        return self.chance.sample(ids, min(len(ids), self.chance.randint(1, 2)))

    def documents(self) -> list[Document]:
        """Documents with pages of names, new or in place of earlier ones."""
        numbers = self.chance.sample(range(DOCUMENTS), self.chance.randint(1, 3))
        return [Document("", id=f"d{number}", pages=self._pages()) for number in numbers]

    def _pages(self) -> list[str]:
        lengths = [self.chance.randint(0, 4) for _ in range(self.chance.randint(1, 4))]
        return [", ".join(self.chance.choices(NAMES, k=length)) + "." for length in lengths]

    async def insert(self) -> None:
        await self.rag.insert(self.documents())

    async def replace_edit(self) -> None:
        if not self.edits:
            return
        given = [Document("Okafor.", id=self.chance.choice(self.edits)), *self.documents()]
        await self.rag.insert(self.chance.sample(given, len(given)))

    async def retry(self) -> None:
        await self.rag.retry()

    async def delete(self) -> None:
        await self.rag.delete(*await self.ids(), purge=self.chance.random() < 0.5)

    async def edit(self) -> None:
        entities = self.rag.entities
        name = await self.name()
        other = await self.name()
        make_edit = self.chance.choice(
            [
                lambda: entities.edit(name, description="Edited.", by=EDITOR),
                lambda: entities.create(
                    self.chance.choice(NAMES), type="person", description="Made.", by=EDITOR
                ),
                lambda: entities.delete(name, by=EDITOR),
                lambda: entities.edit_relation(name, other, weight=2.5, by=EDITOR),
                lambda: entities.delete_relation(name, other, by=EDITOR),
            ]
        )
        self.edits.append(await make_edit())

    async def merge(self) -> None:
        await self.rag.entities.merge([await self.name()], into=await self.name())

    async def unmerge(self) -> None:
        await self.rag.entities.unmerge(await self.name())

    async def separate(self) -> None:
        bearers = {"elder": await self.ids(), "younger": await self.ids()}
        await self.rag.entities.separate(await self.name(), bearers)

    async def rejoin(self) -> None:
        await self.rag.entities.rejoin(await self.name())

    async def save(self) -> None:
        self.snapshots.append(f"state {len(self.snapshots)}")
        await self.rag.admin.snapshot(self.snapshots[-1])

    async def roll_back(self) -> None:
        if self.snapshots:
            await self.rag.admin.rollback(self.chance.choice(self.snapshots))


STEPS: Sequence[Callable[[History], Awaitable[None]]] = (
    History.insert, History.insert, History.retry, History.delete, History.edit, History.edit, History.replace_edit,
    History.merge, History.unmerge, History.separate, History.rejoin, History.save, History.roll_back,
)  # fmt: skip


@pytest.mark.slow
@settings(few_examples, max_examples=60)
@given(st.randoms(use_true_random=False))
def test_an_index_is_what_its_documents_and_edits_say(chance: random.Random) -> None:
    """After each step, and merged anew at the end."""

    async def run(folder: str) -> None:
        reader = UnreliableReader(chance)
        async with index(folder, extractor=reader) as rag:
            history = History(rag, chance)
            await history.insert()
            for _ in range(chance.randint(1, MOST_STEPS)):
                reader.share = chance.choice([0.0, 0.0, 0.4, 0.8])
                await history.step()
                assert problems(folder) == []
            await assert_rebuilt_alike(rag, folder)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))
