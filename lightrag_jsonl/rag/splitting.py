"""Merges other indexes into one, and splits an index in two."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager

from lightrag_jsonl.core.address import Address
from lightrag_jsonl.core.errors import NotFoundError
from lightrag_jsonl.core.index_reports import MergeReport
from lightrag_jsonl.indexing.progress import ShowProgress, progress_bars
from lightrag_jsonl.providers.model_names import NO_MODEL
from lightrag_jsonl.rag.engine import Engine
from lightrag_jsonl.rag.engine_opening import open_engine
from lightrag_jsonl.rag.settings import adopt_settings
from lightrag_jsonl.storage.opening import open_store
from lightrag_jsonl.storage.status import document_statuses
from lightrag_jsonl.storage.store import Store, read


async def add_indexes(
    engine: Engine, addresses: Sequence[Address], *, restore_purged: bool, progress: ShowProgress
) -> MergeReport:
    """Add the documents of the indexes at some addresses."""
    with _open_stores(addresses) as stores:
        return await _join(engine, stores, restore_purged=restore_purged, progress=progress)


async def check_addition(engine: Engine, addresses: Sequence[Address]) -> None:
    """Raise as `add_indexes` if the indexes at some addresses do not fit that of the engine, or each other."""
    with _open_stores(addresses) as stores:
        await engine.curation.check_merge(stores)


@contextmanager
def _open_stores(addresses: Sequence[Address]) -> Iterator[list[Store]]:
    with ExitStack() as stack:
        stores: list[Store] = []
        for address in addresses:
            store = open_store(address, create=False)
            stores.append(stack.enter_context(closing(store)))
        yield stores


async def split_index(
    engine: Engine,
    document_ids: Sequence[str],
    into: Address,
    *,
    remove: bool,
    progress: ShowProgress,
) -> MergeReport:
    """Copy documents into an index of their own, and delete them here if asked to `remove` them."""
    indexed = {document.id for document in await read(engine.store, document_statuses)}
    if missing := [id for id in document_ids if id not in indexed]:
        raise NotFoundError(f"no such document: {', '.join(missing)}")
    settings = await read(engine.store, lambda view: view.settings())
    with closing(open_store(into)) as store:
        adopt_settings(store, settings)
    part = open_engine(
        into,
        llm=engine.llm or NO_MODEL,
        models={task: model or NO_MODEL for task, model in engine.models.items()},
        embedder=engine.embedder,
        tokenizer=engine.tokenizer,
        options=engine.options,
        prompts=engine.prompts,
    )
    with closing(part):
        report = await _join(part, [engine.store], document_ids=document_ids, progress=progress)
    if remove:
        await engine.indexing.delete([id for id in document_ids if id not in report.purged])
    return report


async def _join(
    engine: Engine,
    stores: Sequence[Store],
    *,
    document_ids: Sequence[str] | None = None,
    restore_purged: bool = False,
    progress: ShowProgress,
) -> MergeReport:
    """Add the documents of other stores: all, or only the documents with these ids."""
    await engine.record_models(overwrite=False)
    with progress_bars(progress) as show_progress:
        return await engine.curation.merge_indexes(
            stores, document_ids, restores=restore_purged, progress=show_progress
        )
