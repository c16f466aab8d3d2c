"""Extraction with a provider's batch API from beginning to end: submit, wait, read, and the next round."""

import asyncio
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lightrag_jsonl.core.errors import ConfigError, LLMError
from lightrag_jsonl.core.index_reports import InsertReport, SkippedFile
from lightrag_jsonl.core.protocols import LLM
from lightrag_jsonl.core.types import Failure, ModelTask
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing.loading import Given
from lightrag_jsonl.providers import OpenAILLM
from lightrag_jsonl.providers.openai_batches import OpenAIBatches, ProviderBatch
from lightrag_jsonl.rag import AsyncLightRAG
from lightrag_jsonl.tools.batch import BatchExport, BatchImport, export_batch, import_batch

POLL_SECONDS = 60.0

ShowBatch = Callable[[ProviderBatch], None]


@dataclass(frozen=True, slots=True)
class BatchRun:
    """The result of a run: rounds of requests and answers, until nothing was left to ask.

    `failed` lists requests without an answer, as (request, reason); the chunks are failed, for `retry`
    or another run.
    """

    rounds: int
    batches: tuple[str, ...]
    answered: int
    failed: tuple[tuple[str, str], ...]
    documents: tuple[str, ...]
    usage: Usage
    unchanged: tuple[str, ...] = ()
    purged: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()


async def run_batch(
    rag: AsyncLightRAG,
    documents: Given | Iterable[Given] = (),
    *,
    reasoning: bool = False,
    restore_purged: bool = False,
    poll_seconds: float = POLL_SECONDS,
    show: ShowBatch | None = None,
) -> BatchRun:
    """Index documents by batches of the model's provider; waits until all are answered.

    A run that is interrupted goes on when started again, and submits nothing twice: documents wait in
    the index, and a batch with the same requests is found at the provider. Requests that fail are
    submitted once more; after a round without any answer the run ends. `show` is called with each
    state of a batch. `ConfigError` for a model without a batch API or a key; no document is stored then.
    """
    if documents:
        _batch_model(rag, "extract").check_key()
    first = True
    exports: list[BatchExport] = []
    imports: list[BatchImport] = []
    batches: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "requests.jsonl"
        while True:
            export = await export_batch(
                rag,
                path,
                documents if first else (),
                reasoning=reasoning,
                restore_purged=restore_purged,
            )
            first = False
            exports.append(export)
            if not export.requests:
                break
            service = _batch_service(rag, export)
            results: list[Path] = []
            for file in map(Path, export.files):
                batch = await _finished_batch(service, file, poll_seconds=poll_seconds, show=show)
                batches.append(batch.id)
                results += await _downloaded(service, batch, Path(folder))
            imported = await import_batch(rag, results)
            if not imported.answered:
                imports.append(await import_batch(rag, results, finish=True))
                break
            imports.append(imported)
    return _whole_run(exports, imports, batches)


def _batch_service(rag: AsyncLightRAG, export: BatchExport) -> OpenAIBatches:
    """The batches of the provider of a round's model."""
    return _batch_model(rag, "summarize" if export.round == "summaries" else "extract").batch_api


def _batch_model(rag: AsyncLightRAG, task: ModelTask) -> OpenAILLM:
    """The model for a task; `ConfigError` for one without a batch API."""
    llm: LLM = rag.engine.client.model(task)
    if not isinstance(llm, OpenAILLM):
        raise ConfigError(
            f"{llm.name} has no batch API: use an OpenAILLM (--llm NAME), or `batch export` and "
            "`batch import` with files"
        )
    return llm


async def _finished_batch(
    service: OpenAIBatches, file: Path, *, poll_seconds: float, show: ShowBatch | None
) -> ProviderBatch:
    """The batch of a file, after the end of the provider's work; `LLMError` for a refused batch."""
    batch = await service.submit(file)
    while True:
        if show is not None:
            show(batch)
        if not batch.is_running:
            break
        await asyncio.sleep(poll_seconds)
        batch = await service.state(batch.id)
    if not batch.result_files and batch.state != "completed":
        reason = batch.error or "the provider gives no reason"
        raise LLMError(f"the batch {batch.id} ended as {batch.state!r}: {reason}", permanent=True)
    return batch


async def _downloaded(service: OpenAIBatches, batch: ProviderBatch, folder: Path) -> list[Path]:
    """The files of results of a batch."""
    results: list[Path] = []
    for number, file_id in enumerate(batch.result_files):
        target = folder / f"{batch.id}-{number}.jsonl"
        await service.download(file_id, target)
        results.append(target)
    return results


def _whole_run(
    exports: Sequence[BatchExport], imports: Sequence[BatchImport], batches: Sequence[str]
) -> BatchRun:
    """All rounds together."""
    inserted: list[InsertReport] = [imported.inserted for imported in imports]
    documents = {document for report in inserted for document in report.documents}
    failures = [failure for report in inserted[-1:] for failure in report.failures]
    return BatchRun(
        rounds=len(imports),
        batches=tuple(batches),
        answered=sum(imported.answered for imported in imports),
        failed=imports[-1].failed if imports else (),
        documents=tuple(sorted(documents)),
        usage=sum((imported.usage for imported in imports), Usage()),
        unchanged=exports[0].unchanged,
        purged=exports[0].purged,
        failures=(*exports[0].failures, *failures),
        skipped=exports[0].skipped,
    )
