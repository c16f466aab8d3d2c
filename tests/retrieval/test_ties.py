"""Equal scores fall by what the passages are, never by the order in which documents came."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import Document, QueryParam
from tests.kit import RANKING_MODES, index

QUESTIONS = ("Where did Ann meet Ben?", "谁在港口工作？", "Who sings?")


def documents() -> list[Document]:
    """Copies, passages that differ in one name, and passages in Chinese, each of one chunk."""
    texts = [
        f"Ann met {name} at the harbour of Leith." for name in ("Ben", "Cid", "Dan", "Eve", "Fay")
    ]
    texts += [f"{name}在港口工作，每天修理船只。" for name in ("王明", "李华", "张强", "赵敏")]
    texts += [f"The song number {number} has a refrain." for number in range(9)]
    return [Document(text, id=f"d{number}") for number, text in enumerate([*texts, *texts[:6]])]


async def shown(folder: Path, inserted: Sequence[Document]) -> list[Any]:
    """What every mode finds for each question, in order, after an insert document by document."""
    rankings: list[Any] = []
    async with index(folder, embedder=None) as rag:
        for document in inserted:
            await rag.insert(document)
        for mode in RANKING_MODES:
            for question in QUESTIONS:
                param = QueryParam(mode=mode, top_k=4, chunk_top_k=4)
                context = await rag.retrieve(question, param)
                rankings.append(
                    [
                        [chunk.id for chunk in context.chunks],
                        [entity.name for entity in context.entities],
                        [{relation.source, relation.target} for relation in context.relations],
                    ]
                )
    return rankings


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_the_order_of_documents_decides_no_ranking(tmp_path: Path, seed: int) -> None:
    """In every mode that ranks, with fewer places than equal passages."""
    shuffled = documents()
    random.Random(seed).shuffle(shuffled)
    expected = await shown(tmp_path / "in-order", documents())
    assert any(chunks for chunks, _, _ in expected)
    assert await shown(tmp_path / "shuffled", shuffled) == expected
