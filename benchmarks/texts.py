"""The cost of real texts, with line breaks, lists and licences, without a model: python -m benchmarks.texts

Indexes two novels (English and Chinese) where the shared data are, the documents of this checkout, and its licence
in several documents; with `--characters`, only the beginning of each. Prints one JSON object: the CPU time of
the insert per chunk, and for each mode the median and the 95th percentile of the CPU time of warm retrievals, in
milliseconds. `python -m benchmarks.compare OTHER --scripts texts` measures another version in turn.
"""

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from benchmarks.datasets import data_folder
from benchmarks.usage import Usage, spread
from lightrag_jsonl import Document, IndexOptions, LightRAG
from lightrag_jsonl.core.modes import Mode

CHECKOUT = Path(__file__).resolve().parents[1]
NOVELS = {"christmas_carol": 200_000, "sanguo_yanyi": 250_000}  # characters read of each
COPIES = 4  # documents that hold the licence after another passage
MODES: tuple[Mode, ...] = ("naive", "local", "mix")
FIRST = "Ada Lovelace wrote notes on the engine."  # imports what is imported late; not counted
ROUNDS = 3
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
    "What does the licence say about warranty?",
    "Who may use the work under the licence?",
    "Which modes search the graph?",
    "How much memory does a reader of an index take?",
    "问到才读是什么意思？",
    "哪些模式会检索图谱？",
)


def main() -> None:
    """Measure this version or another one, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--characters", type=int, help="at the beginning of each document")
    parser.add_argument("--chunk-tokens", type=int, default=1_200)
    parser.add_argument("--modes", nargs="+", choices=get_args(Mode), default=MODES)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="the first warms up")
    arguments = parser.parse_args()
    texts = [
        replace(document, text=document.text[: arguments.characters]) for document in documents()
    ]
    with tempfile.TemporaryDirectory() as scratch:
        options = IndexOptions(chunk_tokens=arguments.chunk_tokens)
        folder = Path(scratch) / "kb"
        figures = measured(folder, texts, options, modes=arguments.modes, rounds=arguments.rounds)
    size = str(arguments.characters or "whole")
    print(json.dumps({"benchmark": "texts", "sizes": {size: figures}}, indent=2))


def measured(
    folder: Path,
    texts: Sequence[Document],
    options: IndexOptions,
    *,
    modes: Sequence[Mode],
    rounds: int,
) -> dict[str, Any]:
    """The figures of an index made anew in a folder."""
    with LightRAG(folder, options=options) as rag:
        rag.insert(FIRST)
        before = Usage()
        report = rag.insert(texts)
        used = before.until_now()
    with LightRAG(folder) as rag:
        seconds_by_mode = {mode: _cpu_seconds(rag, mode, rounds) for mode in modes}
    return {
        "chunks": report.chunks,
        "insert_cpu_ms_per_chunk": round(1000 * used.cpu / report.chunks, 2),
        "modes": {
            mode: {
                "p50_cpu_ms": spread(seconds)["p50_ms"],
                "p95_cpu_ms": spread(seconds)["p95_ms"],
            }
            for mode, seconds in seconds_by_mode.items()
        },
    }


def documents() -> Iterator[Document]:
    """Real texts as people have them: whole, with their front matter, some of it many times."""
    for name, length in NOVELS.items():
        path = data_folder() / "text" / f"{name}.txt.gz"
        if not path.exists():
            continue
        text = gzip.decompress(path.read_bytes()).decode()
        yield Document(text[:length], id=name)
    pages = [*CHECKOUT.glob("README*.md"), *(CHECKOUT / "docs").glob("*.md")]
    for path in sorted(pages):
        yield Document(path.read_text(encoding="utf-8"), id=path.name)
    licence = (CHECKOUT / "LICENSE").read_text(encoding="utf-8")
    for number in range(COPIES):
        yield Document(f"Part {number} of the manual.\n\n{licence}", id=f"part-{number}")


def _cpu_seconds(rag: LightRAG, mode: Mode, rounds: int) -> list[float]:
    """The CPU seconds of warm retrievals, over all threads."""
    times: list[float] = []
    for _ in range(rounds):
        for question in QUESTIONS:
            started = time.process_time()
            rag.retrieve(question, mode=mode)
            times.append(time.process_time() - started)
    return times[len(QUESTIONS) :]


if __name__ == "__main__":
    main()
