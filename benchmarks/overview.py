"""How much of a whole text a context covers: python -m benchmarks.overview [--keep DIR]

Questions about the whole of four texts, two of them Chinese, two of them no novels, with key points that
were listed before anything was measured: twenty by which the ranking was tuned (`labels/overview.json`),
and twenty fresh ones (`labels/overview-fresh.json`). A key point is covered if one of its wordings stands
in the prompt. Prints one JSON object: the percent of covered key points by text, group of questions, way
of retrieving and budget in tokens. `first pages` is the beginning of the text.
"""

import argparse
import json
import os
import re
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks.aliases import recorded_reply
from benchmarks.corpora import DEFAULT_EMBEDDER, make_embedder
from benchmarks.datasets import data_folder
from lightrag_jsonl import Document, IndexOptions, LightRAG, QueryParam
from lightrag_jsonl.core.protocols import Embedder
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.text.cjk import CJK
from lightrag_jsonl.tools.importer import import_index
from tests.kit import unzipped
from tests.replays import carol

GROUPS = {"tuned": "overview.json", "fresh": "overview-fresh.json"}  # of questions, in `labels`
BUDGETS = (4_000, 8_000, 16_000)  # tokens
CHAPTERS = 20  # of 三国演义
DOCUMENTATION = (
    "guide",
    "files",
    "guarantees",
    "migration",
    "mcp",
    "postgres",
    "scale",
    "server",
    "stores",
)


@dataclass(frozen=True, slots=True)
class WholeQuestion:
    """A question about a whole text, and for each key point of the answer its possible wordings."""

    question: str
    points: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class WholeText:
    """A text by name, its language, and the function that indexes it in a folder with an embedder."""

    name: str
    language: str
    index: Callable[[Path, Embedder], None]


def main() -> None:
    """Measure each text and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", nargs="+", default=[text.name for text in TEXTS], metavar="NAME")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the indexes there")
    parser.add_argument("--missing", action="store_true", help="list what overview does not cover")
    arguments = parser.parse_args()
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(data_folder() / "tiktoken"))  # exact budgets
    figures: dict[str, dict[str, Coverage]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for text in TEXTS:
            if text.name in arguments.texts:
                embedder = make_embedder(DEFAULT_EMBEDDER[text.language])
                folder = (arguments.keep or Path(scratch)) / text.name
                figures[text.name] = coverage_by_group(
                    text, folder, embedder, list_missing=arguments.missing
                )
    print(json.dumps({"benchmark": "overview", "percent": figures}, ensure_ascii=False, indent=2))


# ── what is measured ────────────────────────────────────────────────────────────

FIRST_PAGES = "first pages"
WAYS: Mapping[str, QueryParam] = {
    "naive": QueryParam(mode="naive"),
    "hybrid": QueryParam(mode="hybrid", least_likeness=0.0),
    "mix": QueryParam(mode="mix"),
    "overview": QueryParam(mode="overview"),
}
Coverage = dict[str, dict[int, float]]  # percent of the key points, by way of retrieving and budget


def coverage_by_group(
    text: WholeText, folder: Path, embedder: Embedder, *, list_missing: bool = False
) -> dict[str, Coverage]:
    """The percent of covered key points for each group of questions; the text is indexed in `folder`
    unless it is there.
    """
    if not folder.exists():
        text.index(folder, embedder)
    figures: dict[str, Coverage] = {}
    with LightRAG(folder, llm="none", embedder=embedder, language=text.language) as rag:
        for group in GROUPS:
            questions = whole_questions(text.name, group)
            figures[group] = _coverage(rag, questions, list_missing=list_missing)
            for way, by_budget in figures[group].items():
                print(f"{text.name:12} {group:6} {way:12} {by_budget}", file=sys.stderr)
    return figures


def _coverage(rag: LightRAG, questions: Sequence[WholeQuestion], *, list_missing: bool) -> Coverage:
    figures = {FIRST_PAGES: _coverage_of_first_pages(rag, questions)}
    for way, param in WAYS.items():
        figures[way] = {}
        for budget in BUDGETS:
            prompts = [_prompt(rag, item.question, param, budget) for item in questions]
            figures[way][budget] = _percent(questions, prompts)
            if list_missing and way == "overview":
                _list_missing(questions, prompts, budget)
    return figures


def _prompt(rag: LightRAG, question: str, param: QueryParam, budget: int) -> str:
    """The context of a question within a budget; several passages wherever there are any."""
    return rag.retrieve(question, replace(param, max_total_tokens=budget, chunk_top_k=100)).prompt


def _coverage_of_first_pages(rag: LightRAG, questions: Sequence[WholeQuestion]) -> dict[int, float]:
    """The coverage of the beginning of the text, the same for all questions."""
    store = rag.engine.store
    with store.view() as view:
        pages = "\n".join([chunk.text for chunk in view.chunks().values()])
    tokenizer = rag.engine.tokenizer
    return {
        budget: _percent(questions, [tokenizer.truncate(pages, budget)] * len(questions))
        for budget in BUDGETS
    }


def _percent(questions: Sequence[WholeQuestion], prompts: Sequence[str]) -> float:
    """The percent of all key points that stand in the prompts of their questions."""
    covered: list[bool] = []
    for item, prompt in zip(questions, prompts, strict=True):
        text = folded(prompt)
        covered += [stands_in(text, wordings) for wordings in item.points]
    return round(100 * sum(covered) / len(covered), 1)


def _list_missing(questions: Sequence[WholeQuestion], prompts: Sequence[str], budget: int) -> None:
    for item, prompt in zip(questions, prompts, strict=True):
        text = folded(prompt)
        missing = [wordings[0] for wordings in item.points if not stands_in(text, wordings)]
        print(budget, item.question, missing, file=sys.stderr)


def stands_in(text: str, wordings: Sequence[str]) -> bool:
    """Whether one of the wordings stands in a folded text."""
    return any(folded(wording) in text for wording in wordings)


def folded(text: str) -> str:
    """A text without case, punctuation and line breaks; Chinese without spaces."""
    words = re.sub(r"[\W_]+", " ", unicodedata.normalize("NFKC", text).casefold())
    return re.sub(rf"(?<=[{CJK}]) | (?=[{CJK}])", "", words)


def whole_questions(name: str, group: str) -> list[WholeQuestion]:
    """The labeled questions about a text; a key point is a list of wordings, or has them as `words`
    beside the fact.
    """
    path = Path(__file__).parent / "labels" / GROUPS[group]
    labels = json.loads(path.read_text(encoding="utf-8"))
    return [
        WholeQuestion(
            item["question"],
            [point["words"] if isinstance(point, dict) else point for point in item["points"]],
        )
        for item in labels[name]
    ]


# ── the texts ───────────────────────────────────────────────────────────────────


def _index_carol(folder: Path, embedder: Embedder) -> None:
    """A Christmas Carol, as gpt-4o read it."""
    parts, replies = carol.documents(data_folder())
    pages = tuple([part.text for part in parts])
    document = Document("", id="carol", title="A Christmas Carol", pages=pages)
    # A prompt may go on after the text of a page.
    llm = ScriptedLLM(partial(recorded_reply, replies))
    options = IndexOptions(chunk_tokens=3_000)  # a chunk of the recording is one chunk here
    with LightRAG(folder, llm=llm, embedder=embedder, options=options) as rag:
        rag.insert(document)


def _index_sanguo(folder: Path, embedder: Embedder) -> None:
    """The first chapters of 三国演义, read by the rules."""
    text = re.sub("</?p>", "\n", unzipped(data_folder() / "text" / "sanguo_yanyi.txt.gz"))
    beginning = text[: text.index("第二十一回")]
    with LightRAG(folder, llm="none", embedder=embedder, language="zh") as rag:
        rag.insert(Document(beginning, id="sanguo", title="三国演义"))


def _index_anaesthesia(folder: Path, embedder: Embedder) -> None:
    """Notes on medication before anaesthesia, with the graph that gpt-4o read."""
    packed = data_folder() / "wd-lightrag0-zh-anaesthesia"
    with tempfile.TemporaryDirectory() as unpacked:
        for path in packed.glob("*.gz"):
            (Path(unpacked) / path.stem).write_text(unzipped(path), encoding="utf-8")
        with LightRAG(folder, llm="none", embedder=embedder, language="zh") as rag:
            rag.run(import_index, unpacked)


def _index_docs(folder: Path, embedder: Embedder) -> None:
    """The English documentation of this project, read by the rules."""
    docs = Path(__file__).resolve().parents[1] / "docs"
    with LightRAG(folder, llm="none", embedder=embedder) as rag:
        rag.insert([docs / f"{name}.md" for name in DOCUMENTATION])


TEXTS = (
    WholeText("carol", "en", _index_carol),
    WholeText("anaesthesia", "zh", _index_anaesthesia),
    WholeText("sanguo", "zh", _index_sanguo),
    WholeText("docs", "en", _index_docs),
)

if __name__ == "__main__":
    main()
