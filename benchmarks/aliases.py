"""Which names are one entity: python -m benchmarks.aliases

Compares what `duplicates` proposes, and what `merge_stated` would merge by rule, with labels made by
hand, on the recorded graphs of A Christmas Carol, and on chapters of 三国演义 and passages of HotpotQA read
without a model. The last two rows are of texts that were labelled before the first run over them.
Pairs with a name that is ambiguous, or has no label, do not count. `joined_recall` counts the pairs
that the right proposals make one together. Prints one JSON object.
"""

import argparse
import asyncio
import gzip
import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

from benchmarks.datasets import data_folder, load
from lightrag_jsonl import AsyncLightRAG, Document, IndexOptions
from lightrag_jsonl.testing import ReplayLLM, Request, ScriptedLLM
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.tools.importer import import_index
from tests.replays.carol import answers, chunks

LABELS = Path(__file__).parent / "labels"
RUNS = ("gpt-4o", "gpt-4o-mini", "gpt-4o-mini (LightRAG prompt)")  # tuned on the first
# Graphs that users of LightRAG committed, by the name of their labels.
IMPORTED = {"film": "wd-lightrag14-film", "anaesthesia": "wd-lightrag0-zh-anaesthesia"}
HALVES = ((0, 10), (10, 20), (0, 20))  # chapters; tuned on the first half
MIDDLE = (40, 50)  # chapters, with other names
PASSAGES = 300  # of HotpotQA, where names are mostly parts of full names
CHAPTER = re.compile(r"(?=第[一二三四五六七八九十]+回 )")
ALL = 100_000  # proposals
SUMMARY_CHARACTERS = 1_200

Pair = frozenset[str]


def main() -> None:
    """Index, compare, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--runs", nargs="*", default=RUNS, help="recorded runs on the Carol")
    given = parser.parse_args()
    figures = {run: asyncio.run(_carol(given.data, run)) for run in given.runs}
    for first, last in HALVES:
        chapters = _chapters(given.data)[first:last]
        figures[f"三国 {first + 1}–{last}"] = asyncio.run(_read_by_rules(chapters, "zh", "sanguo"))
    for labels, folder in IMPORTED.items():
        if not (given.data / folder).is_dir():
            continue
        figures[folder] = asyncio.run(_imported(given.data / folder, labels))
    first, last = MIDDLE
    chapters = _chapters(given.data)[first:last]
    figures[f"三国 {first + 1}–{last}"] = asyncio.run(
        _read_by_rules(chapters, "zh", "sanguo_middle")
    )
    if (given.data / "hotpotqa-train").is_dir():
        passages = load(given.data / "hotpotqa-train").passages[:PASSAGES]
        texts = [passage.content for passage in passages]
        figures["hotpotqa-train"] = asyncio.run(_read_by_rules(texts, "en", "hotpotqa"))
    print(json.dumps({"benchmark": "aliases", "indexes": figures}, ensure_ascii=False))


async def _carol(data: Path, run: str) -> dict[str, Any]:
    texts = [text.strip() for text in chunks(data)]
    replies = dict(zip(texts, answers(data, run), strict=True))
    llm = ScriptedLLM(partial(recorded_reply, replies))
    with tempfile.TemporaryDirectory() as folder:
        options = IndexOptions(chunk_tokens=3_000)  # a chunk of the recording is one chunk here
        async with AsyncLightRAG(folder, llm=llm, options=options) as rag:
            await rag.insert([Document("", id="carol", pages=tuple(texts))])
            return await _figures(rag, "carol")


def recorded_reply(replies: Mapping[str, list[str]], request: Request) -> str:
    """What was recorded about a chunk; in place of a summary, the notes that were to be summarized."""
    question = next(message.content for message in request.messages if message.role == "user")
    turn = sum(message.role == "assistant" for message in request.messages)
    for text, recorded in replies.items():
        if text in question:
            return recorded[turn] if turn < len(recorded) else ReplayLLM.nothing_more
    _, _, notes = request.question.partition("Notes:")
    return notes.replace("\n- ", " ").strip()[:SUMMARY_CHARACTERS]


def _chapters(data: Path) -> list[str]:
    """The chapters of 三国演义, without the introduction."""
    with gzip.open(data / "text" / "sanguo_yanyi.txt.gz", "rt", encoding="utf-8") as file:
        return CHAPTER.split(re.sub("</?p>", "\n", file.read()))[1:]


async def _read_by_rules(texts: Sequence[str], language: str, labels: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncLightRAG(folder, language=language) as rag:
            await rag.insert([Document(text, id=f"{n:03}") for n, text in enumerate(texts)])
            return await _figures(rag, labels)


async def _imported(source: Path, labels: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        for path in source.iterdir():
            content = path.read_bytes()
            if path.suffix == ".gz":
                content = gzip.decompress(content)
            (Path(folder) / path.name.removesuffix(".gz")).write_bytes(content)
        async with AsyncLightRAG(Path(folder) / "index") as rag:
            await import_index(rag, folder)
            return await _figures(rag, labels)


async def _figures(rag: AsyncLightRAG, labels: str) -> dict[str, Any]:
    found = await rag.entities.duplicates(limit=ALL)
    names = [one.name for one in await rag.entities.list()]
    same, different = labelled_pairs(labels, names)
    proposed = [(frozenset((name_key(d.name), name_key(d.into))), d.certain) for d in found]
    return {
        "entities": len(names),
        "same": len(same),
        "proposals": measured([pair for pair, _ in proposed], same, different),
        "merged_by_rule": measured([pair for pair, sure in proposed if sure], same, different),
    }


def labelled_pairs(labels: str, names: Iterable[str]) -> tuple[set[Pair], set[Pair]]:
    """The pairs of these names that are one bearer, and those that are two, by their keys."""
    given = json.loads((LABELS / f"aliases_{labels}.json").read_text(encoding="utf-8"))
    ambiguous = set(map(name_key, given["ambiguous"]))
    bearers = {name_key(one): n for n, group in enumerate(given["bearers"]) for one in group}
    known = sorted({*map(name_key, names)} & {*map(name_key, given["names"])} - ambiguous)
    pairs = [frozenset(pair) for pair in combinations(known, 2)]
    same = {pair for pair in pairs if len({bearers.get(key, key) for key in pair}) == 1}
    return same, set(pairs) - same


def measured(found: Iterable[Pair], same: set[Pair], different: set[Pair]) -> dict[str, Any]:
    """How many pairs were found, how many of those are right, and how many of the right ones."""
    pairs = set(found)
    right, wrong = len(pairs & same), len(pairs & different)
    joined = len(_joined(pairs & same) & same)
    return {
        "pairs": len(pairs),
        "right": right,
        "wrong": wrong,
        "precision": round(right / (right + wrong or 1), 3),
        "recall": round(right / (len(same) or 1), 3),
        "joined_recall": round(joined / (len(same) or 1), 3),
    }


def _joined(pairs: Iterable[Pair]) -> set[Pair]:
    """All pairs of keys that these pairs connect."""
    groups: dict[str, set[str]] = {}
    for pair in pairs:
        group = set[str]().union(pair, *(groups.get(key, ()) for key in pair))
        groups.update(dict.fromkeys(group, group))
    return {frozenset(two) for group in groups.values() for two in combinations(group, 2)}


if __name__ == "__main__":
    main()
