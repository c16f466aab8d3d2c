"""The cost of indexing without model and embedder: python -m benchmarks.index --sizes 200 1000

Each size runs in processes of its own. Prints one JSON object with, for each size, the CPU and wall
time per chunk (without the time of the fake model and embedder), bytes written and on disk, peak
memory, the cost of one more document, of deleting one, and of a first retrieval in a fresh process
(the median of several). `growth` is the CPU time per chunk of the largest size divided by that of
the smallest, which is built before and after it, since a machine's speed changes.
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
from statistics import mean, median
from typing import Any

from benchmarks.usage import Usage, on_disk, peak_mb, plain_loop_ms

# The package is not imported here, since a cold start must include its imports.

SIZES = (200, 1_000, 5_000)
CHUNKS_PER_DOCUMENT = 10
MORE = 9  # documents added one by one
COLD = 5  # fresh processes that ask a first question; a single one may be slow by chance

Figures = dict[str, Any]


def main() -> None:
    """Run the sizes asked for and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--keep", type=Path, help="keep the indexes in this folder")
    parser.add_argument("--cold", type=int, default=COLD, help="fresh processes that ask")
    parser.add_argument("--part", choices=list(PARTS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        print(json.dumps(PARTS[given.part](given.folder, *given.sizes)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        root = given.keep or Path(scratch)
        figures: Figures = {str(size): _size(size, root, given.cold) for size in given.sizes}
        result: Figures = {"benchmark": "index", "cores": os.cpu_count(), "sizes": figures}
        if len(figures) > 1:
            result["growth"] = _growth(figures, Path(scratch))
    print(json.dumps(result, indent=2))


def _size(size: int, root: Path, cold_starts: int) -> Figures:
    folder = index_folder(root, size)
    figures = run_part("build", size, folder) | run_part("one_more", size, folder)
    opened = [run_part("cold", size, folder) for _ in range(cold_starts)]
    seconds = [one["cold_first_context_s"] for one in opened]
    return {**figures, **opened[0], "cold_first_context_s": median(seconds)}


def _growth(figures: Figures, scratch: Path) -> float:
    small, large = min(figures, key=int), max(figures, key=int)
    again = run_part("build", int(small), scratch / "again")
    usual = mean(float(one["cpu_ms_per_chunk"]) for one in (figures[small], again))
    return round(float(figures[large]["cpu_ms_per_chunk"]) / usual, 3)


def index_folder(root: Path, size: int) -> Path:
    """Where the index of `size` chunks is."""
    return root / f"kb-{size}"


def run_part(part: str, size: int, folder: Path) -> Figures:
    """Measure one part in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.index", "--part", part, "--sizes", str(size)]
    done = subprocess.run(
        [*command, "--folder", str(folder)], stdout=subprocess.PIPE, check=True, text=True
    )
    measured: Figures = json.loads(done.stdout)
    print(f"{size}: {part} done", file=sys.stderr)
    return measured


# ── parts, each in a fresh process ──────────────────────────────────────────────


def build(folder: Path, size: int) -> Figures:
    """Insert the whole corpus."""
    from benchmarks.synthetic import Corpus, FastEmbedder, InstantLLM
    from lightrag_jsonl import AsyncLightRAG, Document

    corpus = Corpus(size)
    documents = list(corpus.documents(chunks_per_document=CHUNKS_PER_DOCUMENT))
    llm, embedder = InstantLLM(corpus), FastEmbedder()
    loop_before = plain_loop_ms()

    async def run() -> Figures:
        async with AsyncLightRAG(folder, llm=llm, embedder=embedder) as rag:
            await rag.insert(Document("Note x. Warm Up.", id="warm-up"))  # triggers late imports
            await rag.delete("warm-up")
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
            "bytes_on_disk": on_disk(folder),
            "written_per_stored": round(used.written / on_disk(folder), 2),
            "model_calls": llm.calls,
            "texts_embedded": embedder.texts,
            "peak_rss_mb": peak_mb(),
        }

    return asyncio.run(run())


def one_more(folder: Path, size: int) -> Figures:
    """Add documents of one chunk to the finished index, one by one; then delete a larger one.

    The figures for adding are medians, since now and then one document triggers a merge of the
    full-text index of many.
    """
    from benchmarks.synthetic import Corpus, FastEmbedder, InstantLLM
    from lightrag_jsonl import AsyncLightRAG, Document

    extra = Corpus(MORE + 1, seed=11)
    texts = [page for document in extra.documents() for page in document.pages or ()]

    async def run() -> Figures:
        llm, embedder = InstantLLM(extra), FastEmbedder()
        async with AsyncLightRAG(folder, llm=llm, embedder=embedder) as rag:
            await rag.insert(Document(texts[0], id="warm-up"))
            added = []
            for number, text in enumerate(texts[1:]):
                before = Usage()
                await rag.insert(Document(text, id=f"one-more-{number}"))
                added.append(before.until_now())
            first = size // 2 // CHUNKS_PER_DOCUMENT * CHUNKS_PER_DOCUMENT
            before = Usage()
            report = await rag.delete(f"document-{first:06d}")
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


def cold(folder: Path, size: int) -> Figures:
    """Measure the time from the first import to the first retrieved context."""
    started = time.perf_counter()
    from benchmarks.synthetic import FastEmbedder
    from lightrag_jsonl import LightRAG, QueryParam

    param = QueryParam(mode="mix", ll_keywords=("Ro Ro", "Mi Mi"), hl_keywords=("event 3",))
    with LightRAG(folder, embedder=FastEmbedder()) as rag:
        context = rag.retrieve("Who met Ro Ro at event 3?", param)
        seconds = time.perf_counter() - started
    assert context.chunks
    return {"cold_first_context_s": round(seconds, 3), "cold_peak_rss_mb": peak_mb()}


PARTS: dict[str, Callable[[Path, int], Figures]] = {
    "build": build,
    "one_more": one_more,
    "cold": cold,
}


if __name__ == "__main__":
    main()
