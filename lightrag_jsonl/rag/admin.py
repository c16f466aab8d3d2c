"""The namespace for the maintenance of an index."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from lightrag_jsonl.core.address import Address, as_address
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.files import write_whole
from lightrag_jsonl.core.languages import known_language
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Embedder
from lightrag_jsonl.core.snapshots import IndexSnapshot, StateDifference
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing.progress import ShowProgress
from lightrag_jsonl.indexing.snapshots import (
    forget_snapshot,
    named_snapshots,
    return_to_snapshot,
    save_snapshot,
)
from lightrag_jsonl.lenses.reports import reported_communities
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.providers import as_embedder
from lightrag_jsonl.rag.engine import Engine
from lightrag_jsonl.storage.store import read, search, write
from lightrag_jsonl.storage.views import Snapshot, Transaction
from lightrag_jsonl.tracing.checking import CHECKER_SETTING, CheckerFigures, measured

if TYPE_CHECKING:
    from lightrag_jsonl.export.graph_formats import GraphFormat


@dataclass(frozen=True, slots=True)
class CacheStats:
    """The number of cached answers of the model, and the size in bytes."""

    completions: int
    completion_bytes: int


class Admin:
    """Maintenance of an index."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def rebuild(self) -> list[str]:
        """Rebuild all data derived from mentions; returns a line for each step."""
        return await self._engine.indexing.rebuild()

    async def reembed(
        self,
        embedder: Embedder | Callable[..., object],
        *,
        progress: ShowProgress = None,
    ) -> int:
        """Move the index to another embedder, without model calls; returns the number of texts.

        Questions use the old vectors until all new vectors are stored. After an interruption,
        another call continues.
        """
        new_embedder = as_embedder(embedder)
        count = await self._engine.indexing.reembed(new_embedder, progress=progress)
        self._engine.use_embedder(new_embedder)
        await self._engine.record_models()
        return count

    async def summarize(self) -> Usage:
        """Write every due summary, with the model; returns the calls and tokens used."""
        return await self._engine.indexing.summarize()

    async def vacuum(self) -> int:
        """Give unused space back to the disk; returns the number of bytes.

        Deleted texts stay readable in the files until then. `LockedError` if another process
        still reads an earlier state.
        """
        store = self._engine.store
        before = store.size()
        await to_thread.run_sync(store.vacuum)
        return max(0, before - store.size())

    async def snapshot(self, name: str) -> IndexSnapshot:
        """Save the present state of documents, graph and edits under a name.

        No row is copied: from now on, changed and deleted rows are kept, until `delete_snapshot`.
        `ConfigError` for an empty name, or one that is taken.
        """
        engine = self._engine
        save = partial(save_snapshot, name, engine.clock.seconds())
        return await engine.indexing.writer.write_alone(save)

    async def snapshots(self) -> tuple[IndexSnapshot, ...]:
        """The snapshots, the oldest first."""
        return await read(self._engine.store, named_snapshots)

    async def delete_snapshot(self, name: str) -> None:
        """Forget a snapshot; the index does not change. `NotFoundError` for an unknown name."""
        await self._engine.indexing.writer.write_alone(partial(forget_snapshot, name))

    async def rollback(self, name: str) -> IndexSnapshot:
        """Restore documents, graph, edits and merges of names as of a snapshot, without the model or the
        embedder.

        All snapshots stay, so a snapshot taken before the rollback leads forward again. Waiting
        documents, cached answers and traces do not change. `NotFoundError` for an unknown name.
        """
        return await self._engine.indexing.writer.write_alone(partial(return_to_snapshot, name))

    async def diff(
        self,
        before: str | None = None,
        after: str | None = None,
        *,
        index: str | Address | None = None,
        questions: Iterable[str] = (),
        param: QueryParam | None = None,
        answers: bool = False,
    ) -> StateDifference:
        """The differences between the snapshot `before` and the snapshot `after`, or now; or between
        another `index` (folder or address) and the open index.

        Documents, entities, relations, merges of names, and claims (the statements of passages, with
        dates); and the `questions` with different evidence: entities, relations or passages. Answers are
        compared where language rules write answers; a model is asked only with `answers`, at the cost
        in `estimate` of a result without `answers`. A snapshot is read from a temporary copy.
        `NotFoundError` for an unknown name, `ConfigError` for a missing or superfluous argument.
        """
        from lightrag_jsonl.rag.differences import compared_states

        address = None if index is None else as_address(index)
        with compared_states(self._engine, before, after, address) as states:
            return await states.compare([*questions], param or QueryParam(), answers=answers)

    async def cache(self) -> CacheStats:
        """The size of the cache of the model's answers."""
        completions, completion_bytes = await read(
            self._engine.store, lambda view: view.completion_stats()
        )
        return CacheStats(completions, completion_bytes)

    async def clear_cache(self) -> int:
        """Delete cached answers and unused vectors; returns the number of both."""

        def clear(transaction: Transaction) -> int:
            completions = transaction.delete_completions()
            vectors = transaction.delete_cached_vectors()
            return completions + vectors

        return await write(self._engine.store, clear)

    async def settings(self) -> dict[str, str]:
        """The settings of the index, as recorded when it was built."""
        return await read(self._engine.store, lambda view: view.settings())

    async def measure_checker(self) -> CheckerFigures:
        """Measure the checker of claims (`check`) on the labelled claims of this package, and record the
        figures: a checker that marks at least 80 % of the false claims and at most 5 % of the true ones
        may judge answers. `ConfigError` without a checker.
        """
        checker = self._engine.checker
        if checker is None:
            raise ConfigError(
                "no checker to measure: open the index with check=…, or name one by --check"
            )
        meter = UsageMeter()
        with meter.attach_usage():
            figures = await measured(checker, meter)
        setting = {f"{CHECKER_SETTING}{checker.name}": figures.to_json()}
        await write(self._engine.store, lambda transaction: transaction.put_settings(setting))
        self._engine.__dict__.pop("retrieval", None)  # it is made with an admitted checker only
        return figures

    async def check(self, *, full: bool = False) -> list[str]:
        """The problems of the stored data, in words; `rebuild` repairs derived data.

        Graph, full text and vectors are compared with mentions and texts: random samples, or with
        `full` everything.
        """
        return await self._engine.curation.check(full=full)

    async def export(
        self, path: Path | str, *, format: "GraphFormat | None" = None
    ) -> "GraphFormat":
        """Write the graph to a file, by default in the format of the suffix; returns the format.

        Suffixes: .graphml, .json, .jsonl (the records behind the graph), .csv, .nq (N-Quads),
        .cypher and .html (a page of the entities with most relations). `ConfigError` for any other
        suffix. A path without a suffix is a folder for a wiki: a Markdown page for each entity,
        community and document. Written anew are only pages that changed, and pages of what the index
        no longer has are deleted.
        """
        from lightrag_jsonl.export.graph_formats import graph_format

        chosen_format = format or graph_format(Path(path))
        if chosen_format == "wiki":
            from lightrag_jsonl.export.wiki_folder import write_wiki

            pages = await self._wiki_pages()
            await to_thread.run_sync(write_wiki, Path(path), pages)
            return chosen_format
        text = await self.export_text(chosen_format)
        await to_thread.run_sync(write_whole, Path(path), text.encode())
        return chosen_format

    async def _wiki_pages(self) -> dict[str, str]:
        from lightrag_jsonl.export.wiki import wiki_pages

        engine = self._engine

        def make_pages(snapshot: Snapshot) -> dict[str, str]:
            communities = reported_communities(snapshot, engine.communities)
            return wiki_pages(snapshot, communities, known_language(engine.language))

        return await search(engine.store, make_pages)

    async def export_text(self, format: "GraphFormat") -> str:
        """The text of an export."""
        from lightrag_jsonl.export.graph_formats import export_graph

        write_graph = partial(export_graph, format=format, language=self._engine.language)
        return await read(self._engine.store, write_graph)
