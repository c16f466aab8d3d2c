"""The Marie Curie example of specification 2, section 8, as it is recorded."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from lightrag_jsonl import Chunk, Trace
from lightrag_jsonl.tracing.trace import Sources, assemble_trace

from .curie import ENGLISH, filled

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
Events = tuple[Any, ...]


def stored(chunks: Mapping[str, Chunk]) -> Any:
    """A reader of an index that holds these chunks, of documents with the title "Lives"."""
    return SimpleNamespace(
        chunks=lambda ids: {id: chunks[id] for id in ids if id in chunks},
        documents=lambda ids: [
            SimpleNamespace(
                id=id,
                title="Lives",
                source=None,
                date=None,
                metadata={},
                seen_pictures=(),
                index="",
            )
            for id in ids
        ],
        pages=lambda *_: (),
    )


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Events, Sources]:
    heard: list[Any] = []
    with filled(tmp_path_factory.mktemp("curie"), ENGLISH) as rag:
        rag.query(ENGLISH.question, mode="hybrid", explain=True, listener=heard.append)
        return tuple(heard), rag.traces.sources(rag.traces.get("0001"))


@pytest.fixture
def events(recorded: tuple[Events, Sources]) -> Events:
    return recorded[0]


@pytest.fixture
def sources(recorded: tuple[Events, Sources]) -> Sources:
    return recorded[1]


@pytest.fixture
def trace(events: Events) -> Trace:
    return trace_of(events)


def trace_of(events: Sequence[Any]) -> Trace:
    """What the events of a query tell."""
    return assemble_trace(events)
