"""A small index made of given records, and a query pipeline over it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG
from lightrag_jsonl.adapters.offline import ExtractiveAnswerer, HashEmbedder, OfflineKeywords
from lightrag_jsonl.ask import Ask
from lightrag_jsonl.prompts import PromptManager
from lightrag_jsonl.protocols import LLM, Embedder, Reranker, Tokenizer
from lightrag_jsonl.querying.pipeline import QueryPipeline
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.snapshot import SnapshotKeeper
from lightrag_jsonl.types import Document, Record

Given = tuple[Document, list[Record]]
Pipelines = Callable[..., QueryPipeline]


def entity(name: str, kind: str, description: str) -> Record:
    """A record of an entity."""
    return {"type": "entity", "name": name, "entity_type": kind, "description": description}


def relation(source: str, keywords: str, target: str, description: str) -> Record:
    """A record of a relation; `keywords` are parted by commas."""
    words = [word.strip() for word in keywords.split(",")]
    return {
        "type": "relationship",
        "source": source,
        "target": target,
        "keywords": list(words),
        "description": description,
        "strength": 5,
    }


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
            entity("Scrooge", "person", "Scrooge is an old miser."),
            entity("Marley", "person", "Marley was a business partner and is dead."),
            relation(
                "Marley", "business partner", "Scrooge", "They ran a counting house together."
            ),
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
            entity("Bob Cratchit", "person", "Bob Cratchit is a clerk with a large family."),
            entity("Scrooge", "person", "Scrooge pays his clerk badly."),
            relation("Bob Cratchit", "employment", "Scrooge", "Bob Cratchit works for Scrooge."),
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
            entity("Tiny Tim", "person", "Tiny Tim walks with a crutch."),
            relation("Bob Cratchit", "father", "Tiny Tim", "Bob Cratchit is his father."),
        ],
    ),
    (
        Document("北京大学位于北京，创办于一八九八年。", id="pku", title="北京大学"),
        [
            entity("北京大学", "组织", "北京大学是一所大学。"),
            entity("北京", "地点", "北京是首都。"),
            relation("北京大学", "位于", "北京", "北京大学位于北京。"),
        ],
    ),
]


def fill(folder: Path, given: Iterable[Given]) -> None:
    """Index documents from their records."""
    with LightRAG(folder) as rag:
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
    opened: list[Database] = []

    def make(
        folder: Path,
        *,
        llm: LLM | None = None,
        tokenizer: Tokenizer | None = None,
        reranker: Reranker | None = None,
        embedded: bool = True,
        embedder: Embedder | None = None,
        language: str = "en",
    ) -> QueryPipeline:
        database = Database(folder)
        opened.append(database)
        return QueryPipeline(
            ask=Ask(llm, PromptManager.load(language), database, max_concurrent_calls=4),
            keeper=SnapshotKeeper(database),
            embedder=(embedder or HashEmbedder()) if embedded else None,
            tokenizer=tokenizer or Words(),
            reranker=reranker,
            keyword_extractor=None if llm else OfflineKeywords("en"),
            answerer=None if llm else ExtractiveAnswerer("en"),
            language=language,
        )

    yield make
    for database in opened:
        database.close()


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
