"""Recall and precision of complete lists: python -m benchmarks.listing [--counts 5 50 500]

Generated corpora with known truth: a guild that admits people, makes products and owns shops, of each so
many, among as many people, products and shops that have nothing to do with it. Each question is asked
by a type, by a predicate and by both, in English and Chinese. Prints one JSON object: by language and count
the questions with a list, and recall and precision in percent; then the questions that must get no list.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.corpora import make_embedder
from benchmarks.datasets import data_folder
from lightrag_jsonl import Document, LightRAG
from lightrag_jsonl.core.types import Record

PASSAGE_ITEMS = 10  # names in a document


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of items: its type in the graph, the predicate from the guild, and how items are named."""

    type: str
    predicate: str
    name: str


@dataclass(frozen=True, slots=True)
class ListingCorpus:
    """A language's guild, rival and kinds, and questions: for all of a type, for those of the guild, and
    such that must get no list.
    """

    guild: str
    rival: str
    kinds: Sequence[Kind]
    of_type: Sequence[str]
    of_guild: Sequence[str]
    without_list: Sequence[str]


CORPORA: Mapping[str, ListingCorpus] = {
    "en": ListingCorpus(
        guild="Harbor Guild",
        rival="Tower Union",
        kinds=(
            Kind("person", "admits", "Member {}"),
            Kind("product", "makes", "Lantern {}"),
            Kind("shop", "owns", "Booth {}"),
        ),
        of_type=("How many people are there?", "List all products.", "Which shops are there?"),
        of_guild=(
            "How many people does the Harbor Guild admit?",
            "List all products that the Harbor Guild makes.",
            "Which shops are owned by the Harbor Guild?",
        ),
        without_list=(
            "How many people left the Harbor Guild?",
            "List the best products.",
            "Which shops burned in March?",
        ),
    ),
    "zh": ListingCorpus(
        guild="海港行会",
        rival="塔楼公社",
        kinds=(
            Kind("人物", "接纳", "成员{}号"),
            Kind("产品", "制造", "灯笼{}号"),
            Kind("店铺", "拥有", "货摊{}号"),
        ),
        of_type=("一共有多少个人物？", "列出所有产品。", "有哪些店铺？"),
        of_guild=(
            "海港行会接纳了多少人？",
            "列出海港行会制造的所有产品。",
            "海港行会拥有哪些店铺？",
        ),
        without_list=("有多少人离开了海港行会？", "列出最好的产品。", "哪些店铺三月着了火？"),
    ),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", nargs="+", type=int, default=[5, 50, 500], metavar="N")
    arguments = parser.parse_args()
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(data_folder() / "tiktoken"))
    figures = {
        language: {count: _measured(language, corpus, count) for count in arguments.counts}
        for language, corpus in CORPORA.items()
    }
    print(json.dumps({"benchmark": "listing", "lists": figures}, ensure_ascii=False, indent=2))


def _measured(language: str, corpus: ListingCorpus, count: int) -> dict[str, float]:
    """The figures of one corpus."""
    with tempfile.TemporaryDirectory() as folder:
        embedder = make_embedder("hash")
        with LightRAG(Path(folder), llm="none", embedder=embedder, language=language) as rag:
            _insert(rag, corpus, count)
            expected: list[tuple[str, set[str]]] = []
            for kind, of_type, of_guild in zip(
                corpus.kinds, corpus.of_type, corpus.of_guild, strict=True
            ):
                own_items = {kind.name.format(number) for number in range(count)}
                rival_items = {kind.name.format(count + number) for number in range(count)}
                expected.append((of_type, own_items | rival_items))
                expected.append((of_guild, own_items))
            return _figures(rag, expected, corpus.without_list)


def _figures(
    rag: LightRAG, expected: Sequence[tuple[str, set[str]]], without_list: Sequence[str]
) -> dict[str, float]:
    found = 0
    listed = 0
    correct = 0
    totals_right = 0
    for question, names in expected:
        listing = rag.retrieve(question).listing
        items = {item.name for item in listing.items} if listing else set()
        found += listing is not None
        listed += len(items)
        correct += len(items & names)
        totals_right += listing is not None and listing.total == len(names)
    reachable = sum([min(len(names), 500) for _, names in expected])
    wrong_lists = sum([rag.retrieve(question).listing is not None for question in without_list])
    return {
        "questions": len(expected),
        "with a list": found,
        "right number": totals_right,
        "recall": round(100 * correct / reachable, 1),
        "precision": round(100 * correct / max(listed, 1), 1),
        "lists where none is due": wrong_lists,
    }


def _insert(rag: LightRAG, corpus: ListingCorpus, count: int) -> None:
    """The items of the guild and as many of its rival, some in each document."""
    for owner, first in ((corpus.guild, 0), (corpus.rival, count)):
        for kind in corpus.kinds:
            names = [kind.name.format(number) for number in range(first, first + count)]
            for start in range(0, count, PASSAGE_ITEMS):
                members = names[start : start + PASSAGE_ITEMS]
                text = f"{owner} {kind.predicate} {', '.join(members)}."
                records = [_entity(name, kind.type) for name in members]
                records += [_relation(owner, name, kind.predicate) for name in members]
                rag.insert_records(Document(text), [_entity(owner, "guild"), *records])


def _entity(name: str, type: str) -> Record:
    return {"type": "entity", "name": name, "entity_type": type, "description": f"{name}."}


def _relation(source: str, target: str, predicate: str) -> Record:
    return {
        "type": "relationship",
        "source": source,
        "target": target,
        "keywords": [predicate],
        "description": f"{source} {predicate} {target}.",
        "strength": 5,
    }


if __name__ == "__main__":
    main()
