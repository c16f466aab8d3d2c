"""A small index made of given records, and a query pipeline over it."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import AsyncLightRAG, Document, LightRAG
from lightrag_jsonl.retrieval.pipeline import QueryPipeline
from lightrag_jsonl.testing import HashEmbedder
from tests.kit import Record, entity, prompts, relation

Given = tuple[Document, list[Record]]
Pipelines = Callable[..., QueryPipeline]

PARTNERS = relation("Marley", "Scrooge", "They ran a counting house.", keywords=["partner"])
CAROL: list[Given] = [
    (
        Document(
            "Marley was the business partner of Scrooge. Marley has been dead for seven years.",
            id="partners",
            title="The partners",
            date="1843-12-19",
            metadata={"shelf": "a"},
        ),
        [
            entity("Scrooge", "Scrooge is an old miser."),
            entity("Marley", "Marley was a business partner and is dead."),
            PARTNERS,
        ],
    ),
    (
        Document(
            "Bob Cratchit works as a clerk for Scrooge. He earns fifteen shillings.",
            id="clerk",
            title="The clerk",
            date="1844-01-01",
            metadata={"shelf": "b"},
        ),
        [
            entity("Bob Cratchit", "Bob Cratchit is a clerk with a large family."),
            entity("Scrooge", "Scrooge pays his clerk badly."),
            relation("Bob Cratchit", "Scrooge", "He works for him.", keywords=["employment"]),
        ],
    ),
    (
        Document(
            "Tiny Tim is the youngest son of Bob Cratchit. He walks with a crutch.",
            id="son",
            title="The son",
            metadata={"shelf": "b"},
        ),
        [
            entity("Tiny Tim", "Tiny Tim walks with a crutch."),
            relation("Bob Cratchit", "Tiny Tim", "He is his father.", keywords=["father"]),
        ],
    ),
    (
        Document("北京大学位于北京，创办于一八九八年。", id="pku", title="北京大学"),
        [
            entity("北京大学", "北京大学是一所大学。", kind="组织"),
            entity("北京", "北京是首都。", kind="地点"),
            relation("北京大学", "北京", "北京大学位于北京。", keywords=["位于"]),
        ],
    ),
]


def fill(folder: Path, given: Iterable[Given]) -> None:
    """Index documents from their records."""
    with LightRAG(folder, tokenizer=Words()) as rag:
        for document, records in given:
            assert not rag.insert_records(document, records).failures


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of four little documents, made once."""
    folder = tmp_path_factory.mktemp("carol")
    fill(folder, CAROL)
    return folder


@pytest.fixture
def carol(filled: Path, tmp_path: Path) -> Path:
    """A copy of that index: what one test has answered is not in the next one's cache."""
    return Path(shutil.copytree(filled, tmp_path / "carol"))


@pytest.fixture
def pipelines() -> Iterator[Pipelines]:
    """Makes query pipelines over a folder, with a model or offline."""
    opened: list[AsyncLightRAG] = []

    def make(folder: Path, **parts: Any) -> QueryPipeline:
        given = {"llm": "none", "embedder": HashEmbedder(), **parts}
        opened.append(AsyncLightRAG(folder, tokenizer=Words(), prompts=prompts(), **given))
        return opened[-1].engine.retrieval

    yield make
    for rag in opened:
        rag.engine.store.close()


class Words:
    """A tokenizer whose tokens are words, and single characters of long ones."""

    name = "words"
    error = 0.0

    def count(self, text: str) -> int:
        """The number of words, a long one counted by its characters."""
        return sum(1 if len(word) < 20 else len(word) for word in text.split())

    def truncate(self, text: str, limit: int) -> str:
        """The longest prefix of whole characters within the limit."""
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.count(text[:middle]) <= limit else (low, middle - 1)
        return text[:low]
