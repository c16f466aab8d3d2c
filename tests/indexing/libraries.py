"""Documents with records, as hypothesis draws them."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from lightrag_jsonl.core.types import Document, Record
from lightrag_jsonl.storage.rows import PendingDocument
from tests.kit import entity, relation

NAMES = (
    "Scrooge",
    "scrooge",
    "SCROOGE.",
    "马利",
    "“马利”",
    "Bob",
    "Ｂｏｂ",
    "Tiny Tim",
    "42",
    "🙂",
)
TEXTS = ("He is old.", "He is dead.", "他死了。", "He is old.", "x")
TYPES = ("person", "unknown", "creature", "Person")
PIECES = ("Scrooge met 马利. ", "Bob and Tiny Tim, 42 of them. ", "Nobody. ")

entities = st.builds(
    entity,
    st.sampled_from(NAMES),
    st.sampled_from(TEXTS),
    st.sampled_from(TYPES),
    chunk=st.integers(0, 2),
)
relations = st.builds(
    relation,
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
    st.sampled_from(TEXTS),
    chunk=st.integers(0, 2),
    strength=st.sampled_from((1, 2.5, 9.999999, "7", 10)),
    keywords=st.lists(st.sampled_from(("owes", "knows", "朋友")), max_size=2),
)
record_lists = st.lists(entities | relations, max_size=8)
libraries = st.lists(record_lists, min_size=1, max_size=5)
slow = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def pending(number: int, records: Sequence[Record]) -> PendingDocument:
    """A document of three chunks with these records."""
    document = Document("".join(PIECES) + str(number), id=f"d{number}")
    return PendingDocument(document, 1000.0 + number, tuple(records), PIECES)
