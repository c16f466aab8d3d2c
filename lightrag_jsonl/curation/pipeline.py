"""Curation: people's corrections of the graph, merges of indexes, and checks of stored data."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from functools import partial

from lightrag_jsonl.core.errors import CorruptError
from lightrag_jsonl.core.index_reports import MergeReport
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.curation.aliases import merged_aliases, plan_renaming, unmerged_aliases
from lightrag_jsonl.curation.consistency import check_derived, check_snapshots
from lightrag_jsonl.curation.edits import Edit, edit_document
from lightrag_jsonl.curation.homonyms import plan_rejoining, plan_separating
from lightrag_jsonl.curation.index_merge import SourceIndex, merge_indexes, plan_merge
from lightrag_jsonl.indexing.commits import IndexWriter, plan_documents
from lightrag_jsonl.indexing.merging import GraphKey, IndexChange
from lightrag_jsonl.indexing.progress import ProgressCallback
from lightrag_jsonl.storage.store import Store, read
from lightrag_jsonl.storage.views import StoreView


class CurationPipeline:
    """Every change of an index by hand, through the writer of the indexing pipeline."""

    def __init__(self, writer: IndexWriter, tokenizer: Tokenizer, language: str) -> None:
        self._writer = writer
        self._tokenizer = tokenizer
        self._language = language

    async def merge_names(self, names: Collection[str], into: str) -> None:
        """Make several names one entity called `into`; the mentions of chunks do not change."""
        new_aliases = partial(merged_aliases, names=names, into=into)
        await self._writer.commit_alone(partial(plan_renaming, new_aliases))

    async def unmerge_names(self, names: Collection[str]) -> None:
        """Undo the merge of names; for the target of a merge, undo the whole merge."""
        new_aliases = partial(unmerged_aliases, names=names)
        await self._writer.commit_alone(partial(plan_renaming, new_aliases))

    async def separate_name(self, name: str, bearers: Mapping[str, Collection[str]]) -> None:
        """Give a name a qualifier in the documents of each bearer."""
        await self._writer.commit_alone(partial(plan_separating, name=name, bearers=bearers))

    async def rejoin_names(self, names: Collection[str]) -> None:
        """Take the qualifiers off separated names."""
        await self._writer.commit_alone(partial(plan_rejoining, names=names))

    async def edit(self, edit: Edit, now: float) -> str:
        """Store an edit by hand, made at `now` (seconds since 1970); returns the document's id."""

        def plan(view: StoreView) -> IndexChange:
            document = edit_document(
                edit,
                view=view,
                now=now,
                tokenizer=self._tokenizer,
                language=self._language,
            )
            return plan_documents([document], (), view)

        change = await self._writer.commit_alone(plan)
        document, _ = change.documents[0]
        return document.id

    async def merge_indexes(
        self,
        stores: Iterable[Store],
        document_ids: Collection[str] | None = None,
        *,
        replaces: bool = False,
        restores: bool = False,
        seen_marks: Collection[str] = (),
        progress: ProgressCallback | None = None,
        touched: set[GraphKey] | None = None,
    ) -> MergeReport:
        """Add the documents of other indexes: all, or only those with these ids.

        With `replaces`, they take the place of other versions here; with `restores`, those that were
        purged here come back; marks of purges that were `seen` before do not count. What was created or
        changed is added to `touched`.
        """
        with ExitStack() as stack:
            sources = [
                SourceIndex(
                    location=store.location,
                    view=stack.enter_context(store.view()),
                    document_ids=document_ids,
                    replaces=replaces,
                    restores=restores,
                    seen_marks=seen_marks,
                )
                for store in stores
            ]
            async with self._writer.exclusive():
                return await merge_indexes(self._writer, sources, progress, touched)

    async def check_merge(self, stores: Iterable[Store]) -> None:
        """Raise as `merge_indexes` if other indexes contradict this one, or each other; nothing is written.

        What was purged here is compared, too, as for a merge of all of them into a new index.
        """
        with ExitStack() as stack:
            sources = [
                SourceIndex(store.location, stack.enter_context(store.view()), restores=True)
                for store in stores
            ]
            await read(self._writer.store, partial(plan_merge, self._writer, sources))

    async def check(self, *, full: bool = False) -> list[str]:
        """The problems of the stored data, in words.

        Derived data is checked only if the rest is sound: a sample, or with `full` everything,
        including the data of snapshots.
        """
        whole = self._writer.store
        problems: list[str] = []
        for store in whole.parts:
            place = "" if store is whole else f"{store.location}: "
            problems += [f"{place}{problem}" for problem in await self._problems_of(store, full)]
        return problems

    async def _problems_of(self, store: Store, full: bool) -> list[str]:
        problems = await asyncio.to_thread(store.check, full=full)
        if problems:
            return problems
        try:
            problems = await read(store, partial(check_derived, self._writer.embedder, full))
        except CorruptError as error:  # bytes of a text that cannot be read
            return [str(error)]
        if full and not problems:
            problems = await asyncio.to_thread(check_snapshots, store, self._writer.embedder)
        return problems
