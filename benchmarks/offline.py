"""How many questions are answered without a model: python -m benchmarks.offline

Sixty questions over the READMEs of installed packages, A Christmas Carol and 三国演义, written by hand
before any tuning, each with texts of which the answer must hold one. The rules were tuned on the
questions with even numbers, counted from 0 (`tuned`); the others are `held`. `first` is the share in
which the first sentence holds it. Prints one JSON object; figures are shares of 1.
"""

import argparse
import gzip
import json
import tempfile
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from benchmarks.datasets import data_folder
from lightrag_jsonl import Document, LightRAG
from lightrag_jsonl.core.answers import Answer
from lightrag_jsonl.core.languages import Language

LABELS = Path(__file__).parent / "labels" / "offline.json"
PACKAGES = (
    "anyio certifi charset-normalizer click cloudpickle filelock fsspec h11 httpcore2 huggingface-hub"
    " hypothesis idna jinja2 jiter joblib markupsafe msgspec networkx numpy openai opencc packaging"
    " pluggy pygments pytest rapidfuzz regex requests rich ruff scikit-learn sniffio starlette"
    " tiktoken tqdm typer urllib3 uvicorn"
)
BOOKS: dict[str, tuple[str, Language]] = {
    "carol": ("christmas_carol", "en"),
    "sanguo": ("sanguo_yanyi", "zh"),
}


def main() -> None:
    """Index the corpora, ask, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--packages", nargs="*", default=PACKAGES.split())
    parser.add_argument("--show", action="store_true", help="print what is not answered")
    given = parser.parse_args()
    labels = json.loads(LABELS.read_text(encoding="utf-8"))
    corpora: dict[str, tuple[list[Document], Language]] = {
        "readmes": (list(filter(None, map(_readme, given.packages))), "en")
    }
    for name, (file, language) in BOOKS.items():
        text = gzip.decompress((given.data / "text" / f"{file}.txt.gz").read_bytes()).decode()
        corpora[name] = [Document(text, id=name)], language
    answered: list[tuple[bool, bool]] = []
    figures: dict[str, Any] = {}
    for name, (documents, language) in corpora.items():
        own = [label for label in labels if label["corpus"] == name]
        with tempfile.TemporaryDirectory() as folder:
            found = _asked(folder, documents, language, own, show=given.show)
        figures[name] = _halves(found)
        answered += found
    print(
        json.dumps(
            {
                "benchmark": "offline",
                "questions": len(answered),
                **_halves(answered),
                "corpora": figures,
            }
        )
    )


def _readme(package: str) -> Document | None:
    """The README of an installed package; None if it is not installed."""
    try:
        found = metadata(package)
    except PackageNotFoundError:
        return None
    return Document(str(found.json.get("description") or package), id=package)


def _asked(
    folder: str,
    documents: list[Document],
    language: Language,
    labels: list[dict[str, Any]],
    *,
    show: bool,
) -> list[tuple[bool, bool]]:
    results = []
    with LightRAG(folder, language=language, llm="none", embedder="hash") as rag:
        rag.insert(documents)
        for number, label in enumerate(labels):
            answer = rag.query(label["question"])
            results.append(_holds(answer, label["answer"]))
            if show and not all(results[-1]):
                print(number, *results[-1], label["question"], label["answer"])
                print("   ", answer.text)
    return results


def _holds(answer: Answer, wanted: list[str]) -> tuple[bool, bool]:
    """Whether the answer, and whether its first sentence, holds one of the texts."""
    quoted = answer.text.rpartition("\n\n")[0].casefold()
    first = quoted.partition(" [1]")[0]
    texts = [one.casefold() for one in wanted]
    return any(one in quoted for one in texts), any(one in first for one in texts)


def _halves(answered: list[tuple[bool, bool]]) -> dict[str, dict[str, float]]:
    halves = {"tuned": answered[::2], "held": answered[1::2]}
    return {
        half: {
            "answered": round(sum(one for one, _ in found) / max(len(found), 1), 4),
            "first": round(sum(first for _, first in found) / max(len(found), 1), 4),
        }
        for half, found in halves.items()
    }


if __name__ == "__main__":
    main()
