"""The values of one search: query and task, seeds, subgraph, result."""

from collections.abc import Mapping
from typing import Protocol, TypeVar

import numpy as np
from msgspec import Struct, field

from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.modes import MODES, ModePlan
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Tokenizer, Vectors
from lightrag_jsonl.core.types import Entity, Kind, Relation
from lightrag_jsonl.retrieval.hits import NO_HITS, Hits, Mask, column, ties
from lightrag_jsonl.storage.graph_index import distinct_rows, is_among
from lightrag_jsonl.storage.vector_index import Floats, Ids
from lightrag_jsonl.storage.views import Snapshot

Fact = TypeVar("Fact", Entity, Relation)

TIES = 20  # searched for beyond a limit, where equal scores may lie on both sides of it


class SearchQuery(Struct, frozen=True, kw_only=True):
    """The texts to search with: the question, texts for entities (`low`) and for relations (`high`).

    `vectors` has a row for each text, in the order of the fields. `lexical` says that the vectors
    only count words. `likeness_floor` is the cosine from which on a passage is more like the question
    than unrelated texts are; with None, whatever is asked is searched for. If the question could not
    be `embedded`, the vectors are zeros, and nothing is searched by vectors.
    """

    question: str
    low: tuple[str, ...] = ()
    high: tuple[str, ...] = ()
    vectors: Vectors
    lexical: bool = False
    likeness_floor: float | None = None
    embedded: bool = True


class VisiblePart(Struct, frozen=True):
    """The part of a snapshot that counts: the texts and records of `snapshot`, without `hidden_chunks` (row ids)."""

    snapshot: Snapshot
    hidden_chunks: frozenset[int]


class SearchTask(Struct, frozen=True, kw_only=True):
    """One search: a snapshot of the index, a query, a mode, and the user's settings.

    `chunk_limit` is the number of chunks to find: `chunk_top_k`, or more where a reranker chooses
    from the chunks. `filtered` has the rows that a filter lets through, ascending; None if there is
    no filter. `filtered_entities` are those made of visible mentions so far, by row id: one search
    asks for the same ones several times. `part` is what a lens leaves of the snapshot; None if all
    counts.
    """

    snapshot: Snapshot
    query: SearchQuery
    mode: ModePlan
    param: QueryParam
    chunk_limit: int
    filtered: Mapping[Kind, Ids] | None = None
    filtered_entities: dict[int, Entity] = field(default_factory=dict)
    part: VisiblePart | None = None

    @classmethod
    def without_question(cls, snapshot: Snapshot, param: QueryParam) -> "SearchTask":
        """A task that looks at what a filter lets through, whatever is asked."""
        no_vectors = np.zeros((1, 1), np.float32)
        query = SearchQuery(question="", vectors=no_vectors, embedded=False)
        return cls(
            snapshot=snapshot, query=query, mode=MODES[param.mode], param=param, chunk_limit=0
        )

    def ranked(self, kind: Kind, ids: Ids, scores: Floats, limit: int, why: str = "") -> Hits:
        """The rows (ascending ids) with the highest scores, best first, as `settled`."""
        return self.settled(kind, Hits.ranked(ids, scores, why), limit)

    def settled(self, kind: Kind, hits: Hits, limit: int | None = None) -> Hits:
        """The best hits, with those of equal scores in the order of what they are, so that the order in
        which documents came decides nothing.
        """
        is_apart = ~ties(hits.scores)
        starts = np.concatenate([[0], np.flatnonzero(is_apart) + 1, [len(hits)]])  # of equal scores
        if limit is not None:
            starts = starts[: np.searchsorted(starts, limit) + 1]
        lengths = np.diff(starts)
        tied = np.flatnonzero(np.repeat(lengths > 1, lengths))
        if len(tied):
            tied_ids = hits.ids[tied].tolist()
            names = self.snapshot.lasting_names(kind, tied_ids)
            tied_names = [names.get(id, "") for id in tied_ids]
            groups_of_hits = np.repeat(np.arange(len(lengths)), lengths)
            groups = groups_of_hits[tied].tolist()
            positions = np.arange(starts[-1])
            ordered = sorted(zip(groups, tied_names, tied.tolist(), strict=True))
            positions[tied] = [position for _, _, position in ordered]
            hits = hits[positions]
        return hits[:limit]

    def cosines(self, kind: Kind, rows: Ids) -> Floats:
        """The cosine of the question and each row; not a number without a vector."""
        question = self.query.vectors[:1]
        cosines: Floats = self.snapshot.vectors_by_kind[kind].scores(question, rows)[0]
        return cosines

    def inside(self, kind: Kind, rows: Ids) -> Mask:
        """Whether the filter lets each row through."""
        if self.filtered is None:
            return np.ones(len(rows), np.bool_)
        return is_among(rows, self.filtered[kind])


class Seeds(Struct, frozen=True, kw_only=True):
    """First hits, best first; `dense` and `lexical` are the chunks that the question's text found.

    `named` maps entities that the question clearly names to the likeness of the names; `spellings` are their names
    in the question, looked for if there are keywords.
    `nearest_relation` matches the whole question best, if relations were searched.
    """

    entities: Hits = NO_HITS
    named: Mapping[int, float] = field(default_factory=dict)
    spellings: tuple[str, ...] = ()
    relations: Hits = NO_HITS
    nearest_relation: Hits = NO_HITS
    dense: Hits = NO_HITS
    lexical: Hits = NO_HITS

    @property
    def named_rows(self) -> Ids:
        """The entities that the question names."""
        return column(self.named)

    @property
    def chunks(self) -> Ids:
        """The chunks that the question's text found, ascending."""
        return distinct_rows(self.dense.ids, self.lexical.ids)


class Subgraph(Struct, frozen=True):
    """The entities and relations that the seeds lead to, best first."""

    entities: Hits = NO_HITS
    relations: Hits = NO_HITS


class Overview(Protocol):
    """What an answer about everything is written from, in place of single items."""

    def fit(
        self, result: "SearchResult", param: QueryParam, tokenizer: Tokenizer, secret: str = ""
    ) -> Context:
        """The context of a result within the total budget, with the prompt."""


class SearchResult(Struct, frozen=True):
    """The findings of a search, as plain values, valid also after the snapshot.

    `context` has entities, relations and chunks, best first, and no prompt yet. `text_chunk_ids` are
    the chunks found by the question's text, best first, if the mode searches by text. The best of these
    chunks, `guaranteed_chunk_id`, is dropped neither by a reranker nor by a budget. An `overview` is
    written in place of the single items. `facts` are the row ids of entities and relations, for lenses;
    `lenses` are the numbers of the lenses that found something.
    """

    context: Context
    text_chunk_ids: tuple[str, ...] = ()
    guaranteed_chunk_id: str = ""
    overview: Overview | None = None
    facts: Subgraph = Subgraph()
    lenses: tuple[int, ...] = ()
