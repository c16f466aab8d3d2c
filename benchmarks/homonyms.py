"""Names with several bearers: python -m benchmarks.homonyms

Passages of an encyclopedia, read without a model. Titles that differ only by an addition in brackets,
"John Smith (poet)" and "John Smith (footballer)", are the truth: a name stands for several bearers if
several of these passages mention it under the bare title. `right` are proposals for such names, `checked`
all proposals for names that are titles; other proposals are listed for reading. Prints one JSON object.
"""

import argparse
import asyncio
import gzip
import json
import random
import re
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.datasets import data_folder
from lightrag_jsonl import AsyncLightRAG, Document
from lightrag_jsonl.text.names import name_key

BARE_TITLE = re.compile(r"^(.*?)\s*\([^()]*\)$")
LISTED = 30  # names, for reading


def main() -> None:
    """Index, compare, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--others", type=int, default=1_000, help="further passages")
    parser.add_argument("--half", type=int, choices=(0, 1), help="of the names, one half")
    arguments = parser.parse_args()
    with gzip.open(arguments.data / "bench-2wiki-corpus" / "corpus.json.gz", "rt") as file:
        passages = json.load(file)
    figures = asyncio.run(_figures(passages, arguments.others, arguments.half))
    print(json.dumps({"benchmark": "homonyms", **figures}, ensure_ascii=False))


async def _figures(passages: list[dict[str, str]], others: int, half: int | None) -> dict[str, Any]:
    bearers: dict[str, set[str]] = defaultdict(set)
    for passage in passages:
        bearers[_bare(passage["title"])].add(passage["title"])
    homonyms = sorted(name for name, titles in bearers.items() if len(titles) > 1)
    if half is not None:
        homonyms = homonyms[half::2]
    chosen = [passage for passage in passages if _bare(passage["title"]) in homonyms]
    further = [passage for passage in passages if len(bearers[_bare(passage["title"])]) == 1]
    chosen += random.Random(1).sample(further, min(others, len(further)))
    documents = [
        Document(passage["text"], id=f"{number:05} {passage['title']}")
        for number, passage in enumerate(chosen)
    ]
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncLightRAG(folder) as rag:
            await rag.insert(documents)
            names = {name_key(entity.name): entity for entity in await rag.entities.list()}
            proposals = await rag.entities.homonyms(limit=len(names))
    truth = {name_key(name) for name in homonyms} & names.keys()
    expected = {key for key in truth if len(names[key].chunk_ids) > 1}
    keys = [name_key(homonym.name) for homonym in proposals]
    right = [key for key in keys if key in expected]
    unique_titles = {name_key(_bare(passage["title"])) for passage in chosen} - truth
    wrong = [key for key in keys if key in unique_titles]
    unlabelled = [
        {
            "name": homonym.name,
            "score": homonym.score,
            "evidence": [s.detail for s in homonym.evidence],
        }
        for homonym, key in zip(proposals, keys, strict=True)
        if key not in expected
    ]
    return {
        "entities": len(names),
        "names": len(expected),
        "proposals": len(keys),
        "right": len(right),
        "checked": len(right) + len(wrong),
        "recall": round(len(right) / max(1, len(expected)), 3),
        "precision": round(len(right) / max(1, len(right) + len(wrong)), 3),
        "missing": sorted(expected - set(keys))[:LISTED],
        "others": unlabelled[:LISTED],
    }


def _bare(title: str) -> str:
    match = BARE_TITLE.match(title)
    return match[1] if match else title


if __name__ == "__main__":
    main()
