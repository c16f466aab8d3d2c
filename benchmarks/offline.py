"""How many questions are answered without a model: python -m benchmarks.offline

An answer is right if one of its sentences holds one of the label's texts, `first` if the first sentence
does; otherwise it is wrong. An answer without a sentence is silent, and `rightly` so where the sources hold
no answer (labels without texts). `precision` is the share of right ones among all with a sentence.

`--labels offline` are 120 questions over the READMEs of installed packages, A Christmas Carol, 三国演义 and
notes of everyday life. `--labels offline-held` are thirty questions over the two novels and thirty over
other notes. Prints one JSON object.
"""

import argparse
import gzip
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any, Literal, TypeAlias

from benchmarks.datasets import data_folder
from lightrag_jsonl import Document, LightRAG
from lightrag_jsonl.core.answers import Answer
from lightrag_jsonl.core.languages import Language

LABELS = Path(__file__).parent / "labels"
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
NOTES: dict[str, tuple[str, Language]] = {
    "notes-en": ("en", "en"),
    "notes-zh": ("zh", "zh"),
    "letters-en": ("letters-en", "en"),
    "letters-zh": ("letters-zh", "zh"),
}
Verdict: TypeAlias = Literal["first", "right", "wrong", "silent", "rightly silent"]


def main() -> None:
    """Index the corpora, ask, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--labels", choices=["offline", "offline-held"], default="offline-held")
    parser.add_argument("--packages", nargs="*", default=PACKAGES.split())
    parser.add_argument("--show", action="store_true", help="print what is not answered")
    arguments = parser.parse_args()
    labels = json.loads((LABELS / f"{arguments.labels}.json").read_text(encoding="utf-8"))
    verdicts: list[Verdict] = []
    figures: dict[str, Any] = {}
    for corpus in dict.fromkeys(label["corpus"] for label in labels):
        documents, language = _corpus(corpus, arguments.data, arguments.packages)
        own_labels = [label for label in labels if label["corpus"] == corpus]
        own_verdicts = _ask(documents, language, own_labels, show=arguments.show)
        figures[corpus] = _figures(own_verdicts)
        verdicts += own_verdicts
    print(json.dumps({"benchmark": arguments.labels, **_figures(verdicts), "corpora": figures}))


def _corpus(name: str, data: Path, packages: Iterable[str]) -> tuple[list[Document], Language]:
    """The documents of a corpus, and their language."""
    if name == "readmes":
        return list(filter(None, map(_readme, packages))), "en"
    if name in NOTES:
        file, language = NOTES[name]
        text = (LABELS / "notes" / f"{file}.md").read_text(encoding="utf-8")
        notes = [f"# {note}" for note in text.split("# ") if note.strip()]
        return [Document(note, id=f"note-{number}") for number, note in enumerate(notes)], language
    file, language = BOOKS[name]
    text = gzip.decompress((data / "text" / f"{file}.txt.gz").read_bytes()).decode()
    return [Document(text, id=name)], language


def _readme(package: str) -> Document | None:
    """The README of an installed package; None if it is not installed."""
    try:
        description = metadata(package).json.get("description")
    except PackageNotFoundError:
        return None
    return Document(str(description or package), id=package)


def _ask(
    documents: Sequence[Document],
    language: Language,
    labels: Sequence[dict[str, Any]],
    *,
    show: bool,
) -> list[Verdict]:
    verdicts: list[Verdict] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        LightRAG(folder, language=language, llm="none", embedder="hash") as rag,
    ):
        rag.insert(documents)
        for number, label in enumerate(labels):
            answer = rag.query(label["question"])
            verdict = _verdict(answer, label["answer"])
            verdicts.append(verdict)
            if show and verdict not in ("first", "rightly silent"):
                print(f"{number} {verdict}: {label['question']} {label['answer']}")
                print("   ", answer.text)
    return verdicts


def _verdict(answer: Answer, expected_texts: Sequence[str]) -> Verdict:
    if not answer.citations:
        return "silent" if expected_texts else "rightly silent"
    quoted = answer.text.casefold()
    first_sentence = quoted.partition(" [1]")[0]
    texts = [text.casefold() for text in expected_texts]
    if any(text in first_sentence for text in texts):
        return "first"
    return "right" if any(text in quoted for text in texts) else "wrong"


def _figures(verdicts: Sequence[Verdict]) -> dict[str, float]:
    counts = Counter(verdicts)
    right = counts["first"] + counts["right"]
    return {
        "questions": len(verdicts),
        "right": right,
        "first": counts["first"],
        "wrong": counts["wrong"],
        "silent": counts["silent"],
        "rightly silent": counts["rightly silent"],
        "precision": round(right / max(right + counts["wrong"], 1), 4),
    }


if __name__ == "__main__":
    main()
