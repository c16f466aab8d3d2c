"""How often a citation is pinned to the right sentence: python -m benchmarks.citations

(a) Chinese: the questions of cmrc2018 with their answers as statements, each citing its passage; the
right sentence holds the answer. `rejected` counts those that cite another passage and are found to be
unsupported. (b) English: claims in other words than their passages, labelled by hand with the sentence
that supports them, or null. Prints one JSON object; figures are shares of 1.
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
NO_INDEX: Any = SimpleNamespace(chunks=lambda ids: {}, documents=lambda ids: [])


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
    ids = list(passages)
    right = rejected = unsupported = number = 0
    for one in _lines(data / "zh-cmrc2018" / "questions.jsonl.gz"):
        id, answer = one["supporting"][0], one["answers"][0]
        text = passages[id]
        if not any(answer in text[start:end] for start, end in sentence_spans(text)):
            continue
        claim = f"{one['question'].rstrip('？?。')}：{answer}"
        number += 1
        found = cited(claim, text)
        right += answer in found.text
        unsupported += not found.supported
        other = passages[ids[(ids.index(id) + len(ids) // 2) % len(ids)]]
        rejected += not cited(claim, other).supported
    shares = {"right": right, "unsupported": unsupported, "rejected": rejected}
    return {"claims": number, **{name: round(n / number, 4) for name, n in shares.items()}}


def _english(data: Path, labels: Path) -> dict[str, float]:
    carol = _lines(data / "replay-carol" / "chunks.jsonl.gz")
    texts = {f"carol:{one['chunk']}": one["text"] for one in carol if one["chunkset"] == "nobom"}
    musique = _lines(data / "musique-a" / "passages_openie.jsonl.gz")
    texts |= {one["id"]: one["text"] for one in musique}
    right, rejected = list[bool](), list[bool]()
    known = json.loads(labels.read_text(encoding="utf-8"))
    for label in [one for one in known if one["passage"] in texts]:
        found = cited(label["claim"], texts[label["passage"]])
        if label["sentence"] is None:
            rejected.append(not found.supported)
        else:
            right.append(label["sentence"] in " ".join(found.text.split()))
    return {
        "claims": len(right),
        "right": round(sum(right) / max(len(right), 1), 4),
        "unsupported_claims": len(rejected),
        "rejected": round(sum(rejected) / max(len(rejected), 1), 4),
    }


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


if __name__ == "__main__":
    main()
