"""The namespace for the maintenance of an index."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anyio import to_thread

from lightrag_jsonl.core.languages import known_language
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Embedder
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing.progress import ShowProgress
from lightrag_jsonl.providers import as_embedder
from lightrag_jsonl.rag.engine import Engine
from lightrag_jsonl.rag.export import GraphFormat, export_graph, graph_format
from lightrag_jsonl.rag.wiki import wiki_pages, write_wiki
from lightrag_jsonl.retrieval.communities import load_communities
from lightrag_jsonl.retrieval.reports import with_reports
from lightrag_jsonl.retrieval.task import SearchTask
from lightrag_jsonl.storage.store import read, search, write
from lightrag_jsonl.storage.views import Snapshot, Transaction


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

    async def check(self, *, full: bool = False) -> list[str]:
        """The problems of the stored data, in words; `rebuild` repairs derived data.

        Graph, full text and vectors are compared with mentions and texts: random samples, or with
        `full` everything.
        """
        return await self._engine.curation.check(full=full)

    async def export(self, path: Path | str, *, format: GraphFormat | None = None) -> GraphFormat:
        """Write the graph to a file, by default in the format of the suffix; returns the format.

        Suffixes: .graphml, .json, .jsonl (the records behind the graph), .csv, .nq (N-Quads),
        .cypher and .html (a page of the entities with most relations). `ConfigError` for any other
        suffix. A path without a suffix is a folder for a wiki: a Markdown page for each entity,
        community and document. Written anew are only pages that changed, and pages of what the index
        no longer has are deleted.
        """
        chosen_format = format or graph_format(Path(path))
        if chosen_format == "wiki":
            pages = await self._wiki_pages()
            await to_thread.run_sync(write_wiki, Path(path), pages)
            return chosen_format
        text = await self.export_text(chosen_format)
        write_file = partial(Path(path).write_text, text, "utf-8", newline="")
        await to_thread.run_sync(write_file)
        return chosen_format

    async def _wiki_pages(self) -> dict[str, str]:
        engine = self._engine

        def make_pages(snapshot: Snapshot) -> dict[str, str]:
            task = SearchTask.without_question(snapshot, QueryParam(mode="overview"))
            rows = engine.retrieval.communities.communities(task)
            communities = with_reports(snapshot, load_communities(task, rows))
            return wiki_pages(snapshot, communities, known_language(engine.language))

        return await search(engine.store, make_pages)

    async def export_text(self, format: GraphFormat) -> str:
        """The text of an export."""
        write_graph = partial(export_graph, format=format, language=self._engine.language)
        return await read(self._engine.store, write_graph)
