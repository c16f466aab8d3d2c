"""The cost of real texts, with line breaks, lists and licences, without a model: python -m benchmarks.texts

Indexes two novels of the shared data (English and Chinese), the documents of this checkout, and its licence
in several documents. Prints one JSON object: the CPU time of the insert per chunk, and for each mode the
median and the 95th percentile of the CPU time of warm retrievals, in milliseconds. `--package` measures
another version, in the folder of a checkout; figures of two versions compare only in turn, on one machine.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.datasets import data_folder
from benchmarks.usage import Usage, spread
from lightrag_jsonl import Document, IndexOptions, LightRAG
from lightrag_jsonl.core.types import Mode

CHECKOUT = Path(__file__).resolve().parents[1]
NOVELS = {"christmas_carol": 200_000, "sanguo_yanyi": 250_000}  # characters read of each
COPIES = 4  # documents that hold the licence after another passage
MODES: tuple[Mode, ...] = ("naive", "local", "mix")
ROUNDS = 3  # of all questions; the first is not counted
QUESTIONS = (
    "What did the Ghost of Christmas Past show Scrooge?",
    "How does Scrooge treat his nephew?",
    "Why did Belle leave Scrooge?",
    "Who are Ignorance and Want?",
    "What colour is the robe of the Ghost of Christmas Present?",
    "How is an index opened by several processes?",
    "What does delete with purge do?",
    "Which file formats can be read?",
    "关羽为什么离开曹操？",
    "张飞在长坂桥做了什么？",
    "董卓是怎么死的？",
    "孙坚得到了什么玉玺？",
    "陶谦为什么让徐州？",
    "怎样从快照恢复索引？",
)


def main() -> None:
    """Measure this version or another one, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, help="the folder of another checkout")
    parser.add_argument("--chunk-tokens", type=int, default=1_200)
    arguments = parser.parse_args()
    if arguments.package is not None:
        command = [sys.executable, __file__, "--chunk-tokens", str(arguments.chunk_tokens)]
        path = f"{arguments.package.resolve()}{os.pathsep}{CHECKOUT}"
        surroundings = {"PYTHONPATH": path, "LIGHTRAG_JSONL_DATA": str(data_folder())}
        subprocess.run(command, env={**os.environ, **surroundings}, check=True)
        return
    with tempfile.TemporaryDirectory() as scratch:
        figures = measured(Path(scratch) / "kb", arguments.chunk_tokens)
    print(json.dumps({"benchmark": "texts", **figures}, indent=2))


def measured(folder: Path, chunk_tokens: int) -> dict[str, Any]:
    """The figures of an index made anew in a folder."""
    before = Usage()
    with LightRAG(folder, options=IndexOptions(chunk_tokens=chunk_tokens)) as rag:
        report = rag.insert(list(documents()))
    used = before.until_now()
    with LightRAG(folder) as rag:
        modes = {mode: spread(_cpu_seconds(rag, mode)) for mode in MODES}
    return {
        "chunks": report.chunks,
        "insert_cpu_ms_per_chunk": round(1000 * used.cpu / report.chunks, 2),
        "modes": modes,
    }


def documents() -> Iterator[Document]:
    """Real texts as people have them: whole, with their front matter, some of it many times."""
    for name, length in NOVELS.items():
        path = data_folder() / "text" / f"{name}.txt.gz"
        text = gzip.decompress(path.read_bytes()).decode()
        yield Document(text[:length], id=name)
    for path in (CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))):
        yield Document(path.read_text(encoding="utf-8"), id=path.name)
    licence = (CHECKOUT / "LICENSE").read_text(encoding="utf-8")
    for number in range(COPIES):
        yield Document(f"Part {number} of the manual.\n\n{licence}", id=f"part-{number}")


def _cpu_seconds(rag: LightRAG, mode: Mode) -> list[float]:
    """The CPU seconds of warm retrievals, over all threads."""
    times: list[float] = []
    for _ in range(ROUNDS):
        for question in QUESTIONS:
            started = time.process_time()
            rag.retrieve(question, mode=mode)
            times.append(time.process_time() - started)
    return times[len(QUESTIONS) :]


if __name__ == "__main__":
    main()
