"""The store of several indexes that are asked as one; nothing is written to them."""

import contextlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import TypeAlias

import numpy as np

from lightrag_jsonl.core.address import Address
from lightrag_jsonl.core.errors import ConfigError, SettingsError
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.graph_index import GraphIndex, distinct_rows
from lightrag_jsonl.storage.joined.rows import NO_ROW, IndexPart, JoinedRows, JoinedState
from lightrag_jsonl.storage.joined.views import JoinedView
from lightrag_jsonl.storage.rows import PendingDocument, StoredJob
from lightrag_jsonl.storage.store import Store
from lightrag_jsonl.storage.tables.base import TABLE_NAMES
from lightrag_jsonl.storage.tables.dialect import Dialect
from lightrag_jsonl.storage.tables.full_text import stemmed
from lightrag_jsonl.storage.vector_index import Floats, Ids, VectorSearch
from lightrag_jsonl.storage.views import Snapshot, StateMemory, StoreView, Transaction

NOTHING_IS_WRITTEN = (
    "{} are asked as one index, and nothing is written to them: open one of them alone to change it"
)
ONE_EMBEDDER = (
    "indexes are asked as one only if they have the same embedder, since likenesses by different ones cannot "
    "be compared, but {}: move one to the other's embedder with reembed"
)

LEAST_RARITY = 1e-6  # of a term in half of all passages or more
EQUALLY_RARE = (
    0.02  # the difference in rarity, as a share, that is not worth a look at the term alone
)

TermCounts: TypeAlias = tuple[int, dict[str, int]]  # as of `Snapshot.term_counts`


class JoinedStore(Store):
    """Several indexes asked as one, which citations call by `names`; safe to use from any thread.

    What questions leave, traces and cached answers, is kept in `scratch` until `close`. `SettingsError` if
    the embedders differ.
    """

    READ_ONLY_ADVICE = NOTHING_IS_WRITTEN

    def __init__(
        self,
        stores: Sequence[Store],
        names: Sequence[str],
        scratch: Store,
        close: Callable[[], None],
    ) -> None:
        super().__init__(" + ".join([store.location for store in stores]))
        self.read_only = False
        self._stores = stores
        self._scratch = scratch
        self._close_parts = close
        self._index_names = names
        self._pool = ThreadPoolExecutor(len(stores), thread_name_prefix="part")
        self._lock = Lock()
        self._states: tuple[tuple[int, ...], JoinedState] | None = None  # with the generations
        self._graph: tuple[JoinedState, GraphIndex] | None = None
        self._check_embedders()

    def _check_embedders(self) -> None:
        with contextlib.ExitStack() as stack:
            settings = [stack.enter_context(store.view()).settings() for store in self._stores]
        embedders = {
            store.location: part_settings["embedder"]
            for store, part_settings in zip(self._stores, settings, strict=True)
            if "embedder" in part_settings
        }
        if len(set(embedders.values())) > 1:
            differing = ", ".join(f"{index} has {name!r}" for index, name in embedders.items())
            raise SettingsError(ONE_EMBEDDER.format(differing), path=self.location)

    @contextlib.contextmanager
    def view(self) -> Iterator[StoreView]:
        """A view of all indexes, consistent within each."""
        self._check_open()
        with contextlib.ExitStack() as stack:
            scratch = stack.enter_context(self._scratch.view())
            views = [stack.enter_context(store.view()) for store in self._stores]
            yield JoinedView(scratch.dialect, views, self._index_names, self._state)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """A view of all indexes for searching."""
        self._check_open()
        with contextlib.ExitStack() as stack:
            scratch = stack.enter_context(self._scratch.view())
            snapshots = [stack.enter_context(store.snapshot()) for store in self._stores]
            state = self._state(snapshots)
            yield JoinedSnapshot(
                scratch.dialect,
                snapshots,
                self._index_names,
                state,
                graph=self._joined_graph(state, snapshots),
                pool=self._pool,
            )

    def _state(self, views: Sequence[StoreView]) -> JoinedState:
        """How the rows of these views are joined; remembered until one of the indexes changes."""
        generations = tuple([view.generation for view in views])
        with self._lock:
            if self._states is None or self._states[0] != generations:
                self._states = generations, JoinedState.of(views, self._index_names)
            return self._states[1]

    def _joined_graph(self, state: JoinedState, snapshots: Sequence[Snapshot]) -> GraphIndex:
        """The joined graph of these snapshots; remembered until one of the indexes changes."""
        with self._lock:
            if self._graph is None or self._graph[0] is not state:
                graph_rows = state.graph_rows([snapshot.graph.rows for snapshot in snapshots])
                self._graph = state, GraphIndex.of(graph_rows)
            return self._graph[1]

    @contextlib.contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Transaction]:
        """Writes of what questions leave."""
        self._check_open()
        with self._scratch.transaction(durable=durable) as transaction:
            yield JoinedTransaction(transaction.dialect, self)

    def writer_lock(self, timeout: float) -> contextlib.AbstractContextManager[None]:
        """`ConfigError`: nothing is written to the indexes."""
        raise ConfigError(NOTHING_IS_WRITTEN.format(self.location))

    @contextlib.contextmanager
    def jobs_lock(self) -> Iterator[Callable[[], bool]]:
        """The right to do no jobs, since none are accepted."""
        yield lambda: True

    def temporary_copy(self) -> contextlib.AbstractContextManager[Address]:
        """`ConfigError`: only a single index has saved states."""
        raise ConfigError(NOTHING_IS_WRITTEN.format(self.location))

    def size(self) -> int:
        """The bytes that all indexes take on the disk."""
        return sum(store.size() for store in self._stores)

    @property
    def parts(self) -> Sequence[Store]:
        """The stores of the indexes; each is checked alone."""
        return self._stores

    def vacuum(self) -> None:
        """`ConfigError`: nothing is written to the indexes."""
        raise ConfigError(NOTHING_IS_WRITTEN.format(self.location))

    def close(self) -> None:
        """Close all indexes, and forget what questions have left."""
        self._closed = True
        self._pool.shutdown()
        self._close_parts()

    def _problems(self, view: StoreView) -> list[str]:
        return []


class JoinedTransaction(Transaction):
    """Writes of what questions leave: traces and answers. `ConfigError` for all that would change an index."""

    def __init__(self, dialect: Dialect, store: JoinedStore) -> None:
        super().__init__(dialect)
        self._store = store

    @property
    def generation(self) -> int:
        """That of the indexes, which answers are about."""
        with self._store.view() as view:
            return view.generation

    def put_settings(self, settings: Mapping[str, str]) -> None:
        raise ConfigError(NOTHING_IS_WRITTEN.format(self._store.location))

    def put_job(self, job: StoredJob) -> None:
        raise ConfigError(NOTHING_IS_WRITTEN.format(self._store.location))

    def put_pending(self, pending: PendingDocument, file: bytes | None = None) -> int | None:
        raise ConfigError(NOTHING_IS_WRITTEN.format(self._store.location))


class JoinedSnapshot(Snapshot, JoinedView):
    """A view of several indexes for searching; each searches vectors and words in a thread of its own."""

    def __init__(
        self,
        dialect: Dialect,
        snapshots: Sequence[Snapshot],
        names: Sequence[str],
        state: JoinedState,
        *,
        graph: GraphIndex,
        pool: Executor,
    ) -> None:
        vectors: dict[Kind, VectorSearch] = {
            kind: JoinedVectors(
                [snapshot.vectors_by_kind[kind] for snapshot in snapshots], state.rows[kind], pool
            )
            for kind in TABLE_NAMES
        }
        JoinedView.__init__(self, dialect, snapshots, names, lambda views: state)
        self.graph = graph
        self.vectors_by_kind = vectors
        self.state_memory = StateMemory()
        self._snapshots = snapshots
        self._pool = pool

    def search_terms(
        self, terms: Sequence[str], limit: int, allowed: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        parts = self.parts
        search = partial(self._own_terms, terms, limit, allowed, self.term_counts(terms))
        hits: list[tuple[int, float]] = []
        for part, scores in zip(parts, self._pool.map(search, parts), strict=True):
            hits += zip(part.joined_rows("chunk", scores), scores.values(), strict=True)
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[: max(limit, 0)]

    def _own_terms(
        self,
        terms: Sequence[str],
        limit: int,
        allowed: Collection[int] | None,
        counts: TermCounts,
        part: IndexPart,
    ) -> dict[int, float]:
        """The scores of the best chunks of a part, with the rarity of each term in all parts."""
        snapshot = self._snapshots[part.number]
        scores = dict(snapshot.search_terms(terms, limit, part.own_rows("chunk", allowed)))
        own_counts = snapshot.term_counts(terms)
        for term in {stemmed(term): term for term in terms}.values():
            excess = _rarity(term, counts) / _rarity(term, own_counts) - 1
            if own_counts[1][term] and abs(excess) > EQUALLY_RARE:
                for row, score in snapshot.search_terms([term], len(scores), list(scores)):
                    scores[row] += excess * score
        return scores

    def chunks_with_terms(self, terms: Sequence[str], limit: int) -> list[int]:
        rows: list[int] = []
        for part, snapshot in zip(self.parts, self._snapshots, strict=True):
            rows += part.joined_rows("chunk", snapshot.chunks_with_terms(terms, limit))
        return rows[:limit]

    def term_counts(self, terms: Collection[str]) -> tuple[int, dict[str, int]]:
        counts = [snapshot.term_counts(terms) for snapshot in self._snapshots]
        return sum(count for count, _ in counts), {
            term: sum(part_counts[term] for _, part_counts in counts) for term in terms
        }


class JoinedVectors:
    """The vectors of one kind in several indexes."""

    def __init__(self, searches: Sequence[VectorSearch], rows: JoinedRows, pool: Executor) -> None:
        self._searches = searches
        self._rows = rows
        self._pool = pool

    def search(
        self, queries: Vectors, limit: int, allowed: Ids | None = None
    ) -> tuple[Ids, Floats]:
        """The nearest vectors of each query, each row once: ids and scores, shape (queries, n <= limit)."""
        search = partial(self._search_part, queries, limit, allowed)
        hits = list(self._pool.map(search, range(len(self._searches))))
        ids = np.concatenate([part_ids for part_ids, _ in hits], axis=1)
        scores = np.concatenate([part_scores for _, part_scores in hits], axis=1)
        best = [_best_hits(*row, limit) for row in zip(ids, scores, strict=True)]
        count = min([len(row_ids) for row_ids, _ in best], default=0)
        shape = (len(queries), count)
        return (
            np.array([row_ids[:count] for row_ids, _ in best], np.int64).reshape(shape),
            np.array([row_scores[:count] for _, row_scores in best], np.float64).reshape(shape),
        )

    def _search_part(
        self, queries: Vectors, limit: int, allowed: Ids | None, part: int
    ) -> tuple[Ids, Floats]:
        if allowed is not None:
            allowed = distinct_rows(self._rows.in_part(part, allowed)[1])
        ids, scores = self._searches[part].search(queries, limit, allowed)
        return self._rows.of_part(part, ids), scores

    def scores(self, queries: Vectors, ids: Ids) -> Floats:
        """Inner products, shape (queries, ids), the best of those with several vectors; NaN where an id has none."""
        scores = np.full((len(queries), len(ids)), np.nan)
        for part, search in enumerate(self._searches):
            positions, own_ids = self._rows.in_part(part, ids)
            if len(own_ids):
                own_scores = search.scores(queries, own_ids)
                np.fmax.at(scores.T, positions, own_scores.T)
        return scores

    def matrix(self, ids: Ids) -> Vectors:
        """The vectors of these ids, shape (ids, dim), of several the first; zeros where an id has none."""
        matrix: Vectors | None = None
        for part, search in enumerate(self._searches):
            positions, own_ids = self._rows.in_part(part, ids)
            vectors = search.matrix(own_ids)
            if not vectors.size:  # nor has an index without vectors of this kind a length of them
                continue
            if matrix is None:
                matrix = np.zeros((len(ids), vectors.shape[1]), np.float32)
            is_missing = ~matrix[positions].any(axis=1)
            matrix[positions[is_missing]] = vectors[is_missing]
        return self._searches[0].matrix(ids) if matrix is None else matrix


def _best_hits(ids: Ids, scores: Floats, limit: int) -> tuple[Ids, Floats]:
    """The ids with the highest scores, best first, each once, ties by id; without `NO_ROW`."""
    order = np.lexsort((ids, -scores))
    order = order[ids[order] != NO_ROW]
    first_places = np.sort(np.unique(ids[order], return_index=True)[1])
    order = order[first_places][:limit]
    return ids[order], scores[order]


def _rarity(term: str, counts: TermCounts) -> float:
    """The weight of a term in BM25, as SQLite has it."""
    part_count, occurrences_by_term = counts
    occurrences = occurrences_by_term[term]
    return max(math.log((part_count - occurrences + 0.5) / (occurrences + 0.5)), LEAST_RARITY)
