"""The cost of indexing without model and embedder: python -m benchmarks.index --sizes 200 1000

Each size runs in processes of its own. Prints one JSON object with, for each size, the CPU and wall
time per chunk (without the time of the fake model and embedder), bytes written and on disk, peak
memory, the cost of one more document, of deleting one, and of a first retrieval in a fresh process
(the median of several). It also has the time of a fixed Python loop before and after, by which the
machine's speed in different runs can be compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.usage import Usage, on_disk, peak_mb, plain_loop_ms

# The package is not imported here, since a cold start must include its imports.

SIZES = (200, 1_000, 5_000)
CHUNKS_PER_DOCUMENT = 10
MORE = 9  # documents added one by one
COLD = 5  # fresh processes that ask a first question; a single one may be slow by chance


def main() -> None:
    """Run the sizes asked for and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--chunks-per-document", type=int, default=CHUNKS_PER_DOCUMENT)
    parser.add_argument("--keep", type=Path, help="keep the indexes in this folder")
    parser.add_argument("--part", choices=list(PARTS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        print(json.dumps(PARTS[given.part](given)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        root = given.keep or Path(scratch)
        figures = {str(size): _size(given, size, root) for size in given.sizes}
    print(json.dumps({"benchmark": "index", "cores": os.cpu_count(), "sizes": figures}, indent=2))


def _size(given: argparse.Namespace, size: int, root: Path) -> dict[str, Any]:
    folder = root / f"kb-{size}-{given.chunks_per_document}"
    built, changed = (_run(given, part, size, folder) for part in ("build", "one_more"))
    opened = [_run(given, "cold", size, folder) for _ in range(COLD)]
    seconds = [one["cold_first_context_s"] for one in opened]
    summary = {"cold_first_context_s": median(seconds), "cold_slowest_s": max(seconds)}
    return built | changed | opened[0] | summary


def _run(given: argparse.Namespace, part: str, size: int, folder: Path) -> dict[str, Any]:
    """Measure one part in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.index", "--part", part, "--sizes", str(size)]
    command += ["--folder", str(folder), "--chunks-per-document", str(given.chunks_per_document)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    measured: dict[str, Any] = json.loads(done.stdout)
    print(f"{size}: {part} done", file=sys.stderr)
    return measured


# ── parts, each in a fresh process ──────────────────────────────────────────────


def build(given: argparse.Namespace) -> dict[str, Any]:
    """Insert the whole corpus."""
    from benchmarks.synthetic import Corpus, FastEmbedder, InstantLLM
    from lightrag_jsonl import AsyncLightRAG

    (size,) = given.sizes
    corpus = Corpus(size)
    documents = list(corpus.documents(chunks_per_document=given.chunks_per_document))
    llm, embedder = InstantLLM(corpus), FastEmbedder()
    loop_before = plain_loop_ms()

    async def run() -> dict[str, Any]:
        async with AsyncLightRAG(given.folder, llm=llm, embedder=embedder) as rag:
            await _warm(rag)
            before = Usage()
            report = await rag.insert(documents)
            fakes = llm.seconds + embedder.seconds
            status = await rag.status()
        used = before.until_now()
        assert report.chunks == size, report
        return {
            "chunks": report.chunks,
            "entities": status.entities,
            "relations": status.relations,
            "overhead_ms_per_chunk": round(1000 * (used.wall - fakes) / size, 3),
            "cpu_ms_per_chunk": round(1000 * (used.cpu - fakes) / size, 3),
            "plain_loop_ms": [loop_before, plain_loop_ms()],
            "bytes_written": used.written,
            "bytes_on_disk": on_disk(given.folder),
            "written_per_stored": round(used.written / on_disk(given.folder), 2),
            "model_calls": llm.calls,
            "texts_embedded": embedder.texts,
            "peak_rss_mb": peak_mb(),
        }

    return asyncio.run(run())


def one_more(given: argparse.Namespace) -> dict[str, Any]:
    """Add documents of one chunk to the finished index, one by one; then delete a larger one.

    The figures for adding are medians, since now and then one document triggers a merge of the
    full-text index of many.
    """
    from benchmarks.synthetic import Corpus, FastEmbedder, InstantLLM
    from lightrag_jsonl import AsyncLightRAG, Document

    (size,) = given.sizes
    extra = Corpus(MORE + 1, seed=11)
    texts = [page for document in extra.documents() for page in document.pages or ()]

    async def run() -> dict[str, Any]:
        llm, embedder = InstantLLM(extra), FastEmbedder()
        async with AsyncLightRAG(given.folder, llm=llm, embedder=embedder) as rag:
            await rag.insert(Document(texts[0], id="warm-up"))
            added = []
            for number, text in enumerate(texts[1:]):
                before = Usage()
                await rag.insert(Document(text, id=f"one-more-{number}"))
                added.append(before.until_now())
            first = size // 2 // given.chunks_per_document * given.chunks_per_document
            target = f"document-{first:06d}"
            before = Usage()
            report = await rag.delete(target)
            gone = before.until_now()
        return {
            "one_more_ms": round(1000 * median(one.wall for one in added), 1),
            "one_more_bytes_written": median(one.written for one in added),
            "one_more_bytes_at_most": max(one.written for one in added),
            "delete_ms": round(1000 * gone.wall, 1),
            "delete_chunks": report.chunks,
            "delete_bytes_written": gone.written,
        }

    return asyncio.run(run())


def cold(given: argparse.Namespace) -> dict[str, Any]:
    """Measure the time from the first import to the first retrieved context."""
    started = time.perf_counter()
    from benchmarks.synthetic import FastEmbedder
    from lightrag_jsonl import LightRAG, QueryParam

    param = QueryParam(mode="mix", ll_keywords=("Ro Ro", "Mi Mi"), hl_keywords=("event 3",))
    with LightRAG(given.folder, embedder=FastEmbedder()) as rag:
        context = rag.retrieve("Who met Ro Ro at event 3?", param)
        seconds = time.perf_counter() - started
    assert context.chunks
    return {"cold_first_context_s": round(seconds, 3), "cold_peak_rss_mb": peak_mb()}


Part = Callable[[argparse.Namespace], dict[str, Any]]
PARTS: dict[str, Part] = {"build": build, "one_more": one_more, "cold": cold}


async def _warm(rag: Any) -> None:
    """Trigger late imports before the clock starts."""
    from lightrag_jsonl import Document

    await rag.insert(Document("Note x. Warm Up.", id="warm-up-document"))
    await rag.delete("warm-up-document")


if __name__ == "__main__":
    main()
