"""Documents with records, as hypothesis draws them."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from lightrag_jsonl import AsyncLightRAG, ConfigError, Document, InsertReport, NotFoundError
from lightrag_jsonl.core.types import EditAction
from lightrag_jsonl.curation.edits import Edit
from tests.kit import Record, entity, pending_document, relation

NAMES = (
    "Scrooge", "scrooge", "SCROOGE.", "马利", "“马利”", "Bob", "Ｂｏｂ", "Tiny Tim", "42", "🙂",
    "Ebenezer Scrooge", "Mr. Scrooge", "Fan Scrooge", "Bob Cratchit", "雅各布·马利",
)  # fmt: skip
TEXTS = ("He is old.", "He is dead.", "他死了。", "He is old.", "x")
TYPES = ("person", "unknown", "creature", "Person")
DATES = ("", "1843", "December 1843", "1844-01", "last year")
PIECES = ("Scrooge met 马利. ", "Bob and Tiny Tim, 42 of them. ", "Nobody. ")

entities = st.builds(
    entity,
    st.sampled_from(NAMES),
    st.sampled_from(TEXTS),
    st.sampled_from(TYPES),
    chunk=st.integers(0, 2),
    aliases=st.lists(st.sampled_from(NAMES), max_size=2),
    valid_from=st.sampled_from(DATES),
)
relations = st.builds(
    relation,
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
    st.sampled_from(TEXTS),
    chunk=st.integers(0, 2),
    strength=st.sampled_from((1, 2.5, 9.999999, "7", 10)),
    keywords=st.lists(st.sampled_from(("owes", "knows", "朋友")), max_size=2),
    valid_from=st.sampled_from(DATES),
    valid_to=st.sampled_from(DATES),
)
record_lists = st.lists(entities | relations, max_size=8)
libraries = st.lists(record_lists, min_size=1, max_size=5)
few_examples = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def slow(test: Callable[..., Any]) -> Any:
    """A law whose examples take long each: few are drawn, and the test has the marker `slow`."""
    return pytest.mark.slow(few_examples(test))


def pending(number: int, records: Sequence[Record]) -> Any:
    """A document of three chunks with these records."""
    document = Document("".join(PIECES) + str(number), id=f"d{number}")
    return pending_document(document, 1000.0 + number, records=tuple(records), chunks=PIECES)


edits = st.lists(
    st.tuples(st.sampled_from("ced"), st.sampled_from(NAMES), st.none() | st.sampled_from(NAMES)),
    max_size=5,
)


async def edit(rag: AsyncLightRAG, given: Sequence[tuple[str, str, str | None]]) -> list[str]:
    """Make those edits that are possible; returns their ids."""
    ids = []
    for number, (letter, name, other) in enumerate(given):
        what: Record
        if other is not None:
            what = {"type": "relationship", "source": name, "target": other, "strength": 3.5}
        else:
            what = {"type": "entity", "name": name, "entity_type": "edited"}
        action: EditAction = {"c": "create", "e": "edit", "d": "delete"}[letter]  # type: ignore[assignment]
        if action != "delete":
            what["description"] = f"Edit {number}."
        with contextlib.suppress(ConfigError, NotFoundError):
            ids.append(await rag.engine.curation.edit(Edit(action, what, "Eve"), 2000.0))
    return ids


Step = tuple[int, str, list[list[Record]]]
steps = st.tuples(st.integers(0, 4), st.sampled_from("idumr"), libraries)


async def change(rag: AsyncLightRAG, number: int, action: str, library: list[list[Record]]) -> None:
    """Delete, merge, unmerge or rebuild, where that is possible; otherwise insert a document."""
    known = {status.id for status in await rag.documents()}
    names = [one.name for one in await rag.entities.list()]
    if action == "d" and f"d{number}" in known:
        await rag.delete(f"d{number}")
    elif action == "m" and len(names) > 1:
        await rag.entities.merge([names[number % len(names)]], into=names[0])
    elif action == "u" and number % 2:
        with contextlib.suppress(KeyError):
            await rag.entities.unmerge(*names[:1])
    elif action == "r":
        await rag.admin.rebuild()
    else:
        await rag.engine.indexing.insert([pending(number, library[0])])


async def summarizing(
    rag: AsyncLightRAG,
    document: Document,
    records: Sequence[Record],
    chunks: Sequence[str] | None = None,
) -> InsertReport:
    """Insert records as if a model had found them: the summaries that are due are asked for."""
    pieces = None if chunks is None else tuple(chunks)
    return await rag.engine.indexing.insert(
        [pending_document(document, records=tuple(records), chunks=pieces)]
    )
