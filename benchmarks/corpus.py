"""A whole corpus without a model server: python -m benchmarks.corpus [--minilm] [--passages N]

Indexes bench-2wiki-corpus (6,119 passages, each one chunk) with the offline extractor, and the
hashing embedder or all-MiniLM-L6-v2. Prints one JSON object: the seconds and the bytes that it
took, and the times of questions in the mode mix: the first of a freshly opened index, the
warm ones, and the first after one more sentence was inserted. Questions are embedded in advance.
"""

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.corpora import make_embedder, opened
from benchmarks.datasets import Dataset, load
from benchmarks.usage import Usage, Used, on_disk, peak_mb, plain_loop_ms, spread
from lightrag_jsonl import Document, LightRAG, QueryParam

QUESTIONS = 60
MODES = ("mix",)
SENTENCE = "Teutberga met Etan Boritzer in the library of Elmham."


def main() -> None:
    """Index the corpus, ask, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minilm", action="store_true", help="embed with all-MiniLM-L6-v2")
    parser.add_argument("--passages", type=int, metavar="N", help="only the first N")
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the index there")
    given = parser.parse_args()
    dataset = load("bench-2wiki-corpus")
    dataset = replace(dataset, passages=dataset.passages[: given.passages])
    name = "minilm" if given.minilm else "hash"
    with tempfile.TemporaryDirectory() as scratch:
        folder = (given.keep or Path(scratch)) / f"{dataset.name}-{name}-{len(dataset.passages)}"
        figures = measured(dataset, name, folder, given.questions)
    print(json.dumps({"benchmark": "corpus", "embedder": name, **figures}, indent=2))


def measured(dataset: Dataset, embedder_name: str, folder: Path, count: int) -> dict[str, Any]:
    """Everything that is measured about one corpus, in a folder that may hold its index already."""
    embedder, before = make_embedder(embedder_name), Usage()
    with opened(dataset, embedder, folder) as rag:
        used, status = before.until_now(), rag.status()
        questions = _questions(dataset, count)
        for question in questions:
            _ask(rag, question, "mix")  # its texts are embedded from now on
    figures: dict[str, Any] = {
        "passages": len(dataset.passages),
        "entities": status.entities,
        "relations": status.relations,
        "index_s": round(used.wall, 1),
        "index_cpu_s": round(used.cpu, 1),
        "bytes_on_disk": on_disk(folder),
        "plain_loop_ms": plain_loop_ms(),
    }
    for mode in MODES:
        with opened(dataset, embedder, folder) as rag:
            first = _ask(rag, questions[0], mode)
            warm = [_ask(rag, question, mode) for question in questions]
            before = Usage()
            rag.insert(Document(SENTENCE, id="one-more-sentence"))
            inserted = before.until_now()
            after = _ask(rag, questions[0], mode)
            rag.delete("one-more-sentence")
        figures[mode] = {
            **_milliseconds("first", first),
            **spread([used.wall for used in warm]),
            **_milliseconds("insert_one_sentence", inserted),
            **_milliseconds("after_one_sentence", after),
        }
    return figures | {"peak_rss_mb": peak_mb()}


def _questions(dataset: Dataset, count: int) -> list[str]:
    """Questions about evenly spaced passages, every other one about two of them."""
    titles = [passage.title for passage in dataset.passages]
    chosen = [titles[number * len(titles) // count] for number in range(count)]
    return [
        f"Were {title} and {chosen[number - 1]} from the same country?"
        if number % 2
        else f"Who is the father of {title}, and where was he born?"
        for number, title in enumerate(chosen)
    ]


def _ask(rag: LightRAG, question: str, mode: Any) -> Used:
    """What one retrieval takes."""
    before = Usage()
    context = rag.retrieve(question, QueryParam(mode=mode))
    used = before.until_now()
    assert context.chunks, question
    return used


def _milliseconds(name: str, used: Used) -> dict[str, float]:
    """Wall and CPU time."""
    return {f"{name}_ms": round(1000 * used.wall, 1), f"{name}_cpu_ms": round(1000 * used.cpu, 1)}


if __name__ == "__main__":
    main()
