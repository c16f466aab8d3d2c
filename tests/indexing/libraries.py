"""Documents with records, as hypothesis draws them."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from lightrag_jsonl.storage.pending import PendingDocument
from lightrag_jsonl.types import Document, Record
from tests.indexing.kit import entity, relation

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
KINDS = ("person", "unknown", "creature", "Person")
PIECES = ("Scrooge met 马利. ", "Bob and Tiny Tim, 42 of them. ", "Nobody. ")

entities = st.builds(
    entity,
    st.sampled_from(NAMES),
    st.sampled_from(TEXTS),
    st.sampled_from(KINDS),
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


def waiting(number: int, records: Sequence[Record]) -> PendingDocument:
    """A document of three chunks that says what the records say."""
    document = Document("".join(PIECES) + str(number), id=f"d{number}")
    return PendingDocument(document, tuple(records), PIECES, 1000.0 + number)
