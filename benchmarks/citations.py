"""How often a citation is pinned to the right sentence: python -m benchmarks.citations

(a) Chinese: the questions of cmrc2018 with their answers as statements, each citing its passage; the
right sentence holds the answer. (b) English: claims in other words than their passages, labelled by hand with
the sentence that says so. Prints one JSON object; figures are shares of 1. Verdicts: benchmarks.claims.
"""

import argparse
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.datasets import data_folder
from lightrag_jsonl.core.answers import Citation, Context
from lightrag_jsonl.core.sentences import sentence_spans
from lightrag_jsonl.core.types import Chunk
from lightrag_jsonl.tracing.citations import resolve_citations

LABELS = Path(__file__).parent / "labels" / "citations-en.json"
# Passages are in the context; no document has pictures.
NO_INDEX: Any = SimpleNamespace(
    chunks=lambda ids: {}, documents=lambda ids: [], pages=lambda ids: ()
)


def main() -> None:
    """Resolve the citations, compare, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--labels", type=Path, default=LABELS)
    given = parser.parse_args()
    figures = {"zh": _chinese(given.data), "en": _english(given.data, given.labels)}
    print(json.dumps({"benchmark": "citations", **figures}))


def cited(claim: str, passage: str) -> Citation:
    """The citation of a passage by a claim."""
    chunk = Chunk("c", "d", 0, 1, 0, len(passage), passage)
    return resolve_citations(NO_INDEX, f"{claim} [1]", Context(chunks=(chunk,)), (1,)).citations[0]


def _chinese(data: Path) -> dict[str, float]:
    passages = {
        one["id"]: one["text"] for one in _lines(data / "zh-cmrc2018" / "passages.jsonl.gz")
    }
    right: list[bool] = []
    for one in _lines(data / "zh-cmrc2018" / "questions.jsonl.gz"):
        answer = one["answers"][0]
        text = passages[one["supporting"][0]]
        if any(answer in text[start:end] for start, end in sentence_spans(text)):
            claim = f"{one['question'].rstrip('？?。')}：{answer}"
            right.append(answer in cited(claim, text).text)
    return _shares(right)


def _english(data: Path, labels: Path) -> dict[str, float]:
    carol = _lines(data / "replay-carol" / "chunks.jsonl.gz")
    texts = {f"carol:{one['chunk']}": one["text"] for one in carol if one["chunkset"] == "nobom"}
    musique = _lines(data / "musique-a" / "passages_openie.jsonl.gz")
    texts |= {one["id"]: one["text"] for one in musique}
    right: list[bool] = []
    for label in json.loads(labels.read_text(encoding="utf-8")):
        if label["passage"] in texts and label["sentence"] is not None:
            found = cited(label["claim"], texts[label["passage"]])
            right.append(label["sentence"] in " ".join(found.text.split()))
    return _shares(right)


def _shares(right: list[bool]) -> dict[str, float]:
    return {"claims": len(right), "right": round(sum(right) / max(len(right), 1), 4)}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


if __name__ == "__main__":
    main()
