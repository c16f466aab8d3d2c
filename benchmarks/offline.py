"""How many questions are answered without a model: python -m benchmarks.offline

An answer is right if one of its sentences holds one of the label's texts, `first` if the first sentence
does; otherwise it is wrong. An answer without a sentence is silent. Where the sources hold no answer (labels
without texts) it is `rightly silent`, or `groundless` if it has a sentence. `precision` is the share of right
ones among all with a sentence.

`--labels offline` are 120 questions over the READMEs of installed packages, A Christmas Carol, 三国演义 and
notes of everyday life. `--labels offline-held` are thirty questions over the two novels and thirty over
other notes. `--squad FILE` are questions in the form of SQuAD (DRCD and CMRC 2018 have it, too): over the first
`--articles`, a document each, and half as many over articles that are not indexed, which hold no answer here.
Prints one JSON object.
"""

import argparse
import gzip
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
Label: TypeAlias = dict[str, Any]
Verdict: TypeAlias = Literal["first", "right", "wrong", "silent", "groundless", "rightly silent"]


def main() -> None:
    """Index the corpora, ask, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--labels", choices=["offline", "offline-held"], default="offline-held")
    parser.add_argument("--packages", nargs="*", default=PACKAGES.split())
    parser.add_argument(
        "--squad", type=Path, help="a file in the form of SQuAD, in place of labels"
    )
    parser.add_argument("--articles", type=int, default=20)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--language", choices=["en", "zh"], default="en", help="of the file")
    parser.add_argument("--show", action="store_true", help="print what is not answered")
    arguments = parser.parse_args()
    if arguments.squad:
        documents, labels = _squad(arguments.squad, arguments.articles, arguments.questions)
        verdicts = _ask(documents, arguments.language, labels, show=arguments.show)
        print(json.dumps({"benchmark": arguments.squad.stem, **_figures(verdicts)}))
        return
    labels = json.loads((LABELS / f"{arguments.labels}.json").read_text(encoding="utf-8"))
    verdicts = []
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


def _squad(file: Path, articles: int, questions: int) -> tuple[list[Document], list[Label]]:
    """The first articles of a file, and questions about them and about the others, evenly chosen."""
    rows = json.loads(file.read_text(encoding="utf-8"))["data"]
    documents = [
        Document(
            "\n\n".join([paragraph["context"] for paragraph in row["paragraphs"]]),
            id=f"article-{number}",
            title=row["title"],
        )
        for number, row in enumerate(rows[:articles])
    ]
    about_them = [
        {"question": asked["question"], "answer": [answer["text"] for answer in asked["answers"]]}
        for asked in _asked(rows[:articles])
    ]
    about_others: list[Label] = [
        {"question": asked["question"], "answer": []} for asked in _asked(rows[articles:])
    ]
    return documents, [*_evenly(about_them, questions), *_evenly(about_others, questions // 2)]


def _asked(articles: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The questions about articles, in order."""
    for article in articles:
        for paragraph in article["paragraphs"]:
            yield from paragraph["qas"]


def _evenly(labels: Sequence[Label], count: int) -> Sequence[Label]:
    """So many labels at most, as far apart as they can be."""
    return labels[:: max(1, -(-len(labels) // count))]


def _ask(
    documents: Sequence[Document],
    language: Language,
    labels: Sequence[Label],
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
    if not expected_texts:
        return "groundless" if answer.citations else "rightly silent"
    if not answer.citations:
        return "silent"
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
        "groundless": counts["groundless"],
        "precision": round(right / max(right + counts["wrong"] + counts["groundless"], 1), 4),
    }


if __name__ == "__main__":
    main()
