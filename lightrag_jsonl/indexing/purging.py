"""A purge: the deletion of documents from an index and from all of its snapshots."""

from collections.abc import Collection
from contextlib import closing
from dataclasses import replace
from functools import partial

from lightrag_jsonl.indexing.commits import IndexWriter, plan_documents
from lightrag_jsonl.indexing.incoming import incoming_document
from lightrag_jsonl.indexing.merging import IndexChange, RewrittenState
from lightrag_jsonl.storage.opening import copy_of_state, open_store
from lightrag_jsonl.storage.rows import purge_marks
from lightrag_jsonl.storage.store import Store, read, write
from lightrag_jsonl.storage.tables.kept_rows import KEPT_TABLES, RowsByTable, SavedState
from lightrag_jsonl.storage.views import StoreView


class Purging:
    """A purge of documents by id; without ids, of everything in snapshots that is not in the index."""

    def __init__(self, writer: IndexWriter, ids: Collection[str]) -> None:
        self._writer = writer
        self._ids = ids
        self.documents_in_states: set[str] = set()
        self._states: list[RewrittenState] = []
        self._names: set[str] = set()
        self._marks: set[str] = set()

    async def rewrite_states(self) -> None:
        """Delete the documents in copies of the snapshots; from now on, the snapshots keep the rows of the
        copies.
        """
        states = await read(self._writer.store, lambda view: view.saved_states())
        for state in reversed(states):
            ids = await read(self._writer.store, partial(self._ids_in, state))
            self.documents_in_states.update(ids)
            if ids:
                await self._rewrite_state(state, ids)

    def complete(self, change: IndexChange, view: StoreView) -> None:
        """Add the purge to the change that deletes the documents."""
        change.purge = self._names | _entity_names(change, view)
        change.rewritten_states = self._states
        self._add_marks(view, self._ids)
        change.purge_marks = self._marks

    def _add_marks(self, view: StoreView, ids: Collection[str]) -> None:
        """Add what the visible and waiting documents with these ids leave, in a purge of documents by id."""
        if not self._ids:
            return
        for stored in view.documents(ids):
            self._marks |= purge_marks(stored.id, view.pages([stored.id]))
        for waiting in view.pending(ids):
            if not waiting.is_file:  # its text is not known yet
                document = incoming_document(waiting)
                self._marks |= purge_marks(document.id, document.pages)

    def _ids_in(self, state: SavedState, view: StoreView) -> set[str]:
        """The documents to purge from a state."""
        documents = view.documents_at(state)
        if self._ids:
            return {id for id in self._ids if id in documents}
        present = {
            document.id: (document.content, document.created_at) for document in view.documents()
        }
        return {id for id, version in documents.items() if present.get(id) != version}

    async def _rewrite_state(self, state: SavedState, ids: Collection[str]) -> None:
        with (
            copy_of_state(self._writer.store, state.name) as address,
            closing(open_store(address)) as copy,
        ):
            rows_by_table = await self._rows_without(copy, ids)
        self._states.append(RewrittenState(state, rows_by_table))

    async def _rows_without(self, copy: Store, ids: Collection[str]) -> RowsByTable:
        """The rows of a copy that are others after the deletion of documents."""
        writer = replace(self._writer, store=copy, embedder=self._writer.embedder.for_store(copy))
        await write(copy, lambda transaction: transaction.save_state("purge", 0.0))

        def plan(view: StoreView) -> IndexChange:
            change = plan_documents((), ids, view)
            self._names |= _entity_names(change, view)
            self._add_marks(view, ids)
            return change

        await writer.commit(plan)
        return await read(copy, _changed_rows)


def _changed_rows(view: StoreView) -> RowsByTable:
    """The present rows in place of those that are kept for the only state."""
    state = view.saved_states()[0]
    return {table: view.rows_by_key(table, view.kept_rows(state, table)) for table in KEPT_TABLES}


def _entity_names(change: IndexChange, view: StoreView) -> set[str]:
    """The names of the entities in deleted chunks."""
    mentions = view.entity_mentions(chunks=change.old_chunks)
    rows = {mention.owner for mention in mentions if mention.owner is not None}
    entities = view.entity_rows(ids=rows).values()
    return {name for entity in entities for name in (entity.name, *entity.names)}
