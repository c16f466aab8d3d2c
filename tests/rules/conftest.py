"""Reading without a model, as an index does it."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any

import pytest

from lightrag_jsonl import IndexOptions, LightRAG
from lightrag_jsonl.testing import HashEmbedder
from tests.kit import TOKENIZER, extraction, prompts

READERS = ExitStack()


@pytest.fixture(scope="session", autouse=True)
def readers_closed_at_the_end() -> Iterator[None]:
    """All tests of a process share the indexes that read."""
    with READERS:
        yield


@cache
def reader(language: str, tagger: str) -> LightRAG:
    """An index of a note, without a model; a text that is read is one chunk, and is not stored."""
    folder = READERS.enter_context(tempfile.TemporaryDirectory())
    options = IndexOptions.from_mapping({"tagger": tagger, "chunk_tokens": 100_000})
    rag = LightRAG(
        folder,
        llm="none",
        language=language,
        options=options,
        embedder=HashEmbedder(dim=64),
        tokenizer=TOKENIZER,
        prompts=prompts(language),
    )
    rag.insert_records("A note.", [])
    return READERS.enter_context(rag)


def read(text: str, language: str = "en", tagger: str = "rules") -> Any:
    """What an index reads in a text; nothing, where there is nothing to read."""
    extractions = reader(language, tagger).extract(text)
    return extractions[0] if extractions else extraction(state="empty")


def names_in(text: str, language: str = "en", tagger: str = "rules") -> list[str]:
    """The names of the entities of a text, in order."""
    return [entity.name for entity in read(text, language, tagger).entities]
