"""Views of the tables, for indexing, retrieval and tracing.

A `StoreView` sees one consistent state. A `Snapshot` is a view with vector search and the graph in
memory, all of the same state. A `Transaction` is a view that sees its own writes, which become
visible together or not at all. All calls block and belong into a thread (`storage.store.read`).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.graph_index import GraphIndex
from lightrag_jsonl.storage.tables.answers import AnswerReads, AnswerWrites
from lightrag_jsonl.storage.tables.dialect import Dialect
from lightrag_jsonl.storage.tables.documents import DocumentReads, DocumentWrites
from lightrag_jsonl.storage.tables.full_text import FullText, stemmed
from lightrag_jsonl.storage.tables.graph import GraphReads, GraphWrites
from lightrag_jsonl.storage.tables.jobs import JobReads, JobWrites
from lightrag_jsonl.storage.tables.kept_rows import SavedStateReads
from lightrag_jsonl.storage.tables.mentions import MentionReads, MentionWrites
from lightrag_jsonl.storage.tables.saved_states import SavedStateWrites
from lightrag_jsonl.storage.tables.settings import SettingReads, SettingWrites
from lightrag_jsonl.storage.tables.traces import TraceReads, TraceWrites
from lightrag_jsonl.storage.tables.vectors import VectorReads, VectorWrites
from lightrag_jsonl.storage.vector_index import Ids, VectorSearch

MOST_COUNTS = 100_000  # terms whose counts are remembered


class StoreView(
    DocumentReads,
    JobReads,
    MentionReads,
    GraphReads,
    VectorReads,
    AnswerReads,
    TraceReads,
    SavedStateReads,
    SettingReads,
):
    """One consistent state of the index."""


class StateMemory:
    """What is counted or loaded once in a generation: a count of a term reads all its occurrences, and questions
    share their common words; `has_records` reads all chunks of an index without records; `facts` are entities
    and relations by row id, as questions show them; `reading_order` are all chunks in the order of the text, and `sentences`
    those of chunks by row id, for questions about the whole.
    """

    def __init__(self) -> None:
        self.facts: dict[Kind, dict[int, Any]] = {"entity": {}, "relation": {}}
        self.has_records: bool | None = None  # not looked up yet
        self.reading_order: Ids | None = None
        self.sentences: dict[int, Any] = {}
        self._part_count = 0
        self._counts: dict[str, int] = {}

    def of_terms(self, terms: Collection[str], full_text: FullText) -> tuple[int, dict[str, int]]:
        """The number of parts of all chunks, and in how many of them each term occurs."""
        counts = self._counts
        stems = {term: stemmed(term) for term in terms}
        missing = {stem for stem in stems.values() if stem not in counts}
        if missing or not counts:
            self._part_count, new_counts = full_text.counts(missing)
            counts.update(new_counts)
        if len(counts) > MOST_COUNTS:
            self._counts = {}
        return self._part_count, {term: counts[stem] for term, stem in stems.items()}


class Snapshot(StoreView):
    """A view with the graph in memory, and search by vectors and by words.

    `graph` is the shape of the graph: relations between entities, and mentions in chunks.
    `vectors_by_kind` searches the vectors, `state_memory` remembers what was counted in this state.
    """

    def __init__(
        self,
        dialect: Dialect,
        graph: GraphIndex,
        vectors: Mapping[Kind, VectorSearch],
        state_memory: StateMemory,
    ) -> None:
        super().__init__(dialect)
        self.graph = graph
        self.vectors_by_kind = vectors
        self.state_memory = state_memory

    def search_terms(
        self, terms: Sequence[str], limit: int, allowed: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        """The best chunks as (row id, score), ties by row id; "猫*" stands for 猫咪, too.

        Longer chunks are searched in parts; the part with the best BM25 counts most.
        """
        return self.dialect.full_text.search(_different_stems(terms), limit, allowed)

    def chunks_with_terms(self, terms: Sequence[str], limit: int) -> list[int]:
        """The first chunks, by row id, where one part holds all of the terms, at least one."""
        return self.dialect.full_text.chunks_with_all(_different_stems(terms), limit)

    def term_counts(self, terms: Collection[str]) -> tuple[int, dict[str, int]]:
        """The number of parts of all chunks, and in how many of them each term occurs."""
        return self.state_memory.of_terms(terms, self.dialect.full_text)

    def has_records(self) -> bool:
        """Whether a model or a user gave the records of a chunk."""
        if self.state_memory.has_records is None:
            self.state_memory.has_records = super().has_records()
        return self.state_memory.has_records


def _different_stems(terms: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(map(stemmed, terms)))


class Transaction(
    StoreView,
    SavedStateWrites,
    DocumentWrites,
    JobWrites,
    MentionWrites,
    GraphWrites,
    VectorWrites,
    AnswerWrites,
    TraceWrites,
    SettingWrites,
):
    """A view for writing, too, which records the touched rows.

    Rows may be written in any order; references must lead to rows when the transaction ends.
    """
