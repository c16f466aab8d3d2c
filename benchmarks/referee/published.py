"""What others have published about a question set, scored like our own measurements."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.datasets import data_folder, load
from benchmarks.referee.quality import RANKS, averages

TITLES = {  # keys of 2wiki-101-a/published.json
    "graph": "fast-graphrag (gpt-4o-mini, OpenAI vectors)",
    "lightrag": "LightRAG local (gpt-4o-mini, OpenAI vectors)",
    "nano": "nano-graphrag local (gpt-4o-mini, OpenAI vectors)",
    "vdb": "vectors alone (OpenAI vectors)",
}


def published(name: str, count: int | None = None) -> Mapping[str, Any]:
    """Under the name of the set the averages of each system over the first questions, if a file
    `published.json` lies beside the set.
    """
    path = data_folder() / name / "published.json"
    if not path.is_file():
        return {}
    answers_by_system = json.loads(path.read_text(encoding="utf-8"))
    questions = load(name).questions[:count]
    averages_by_system = {}
    for system, ids_by_question in answers_by_system.items():
        rows = []
        for question in questions:
            ids = list(dict.fromkeys(ids_by_question.get(question.id, ())))
            metrics: dict[str, float] = {}
            for rank in RANKS:
                hits = [id in ids[:rank] for id in question.supporting]
                metrics[f"recall@{rank}"] = float(np.mean(hits))
                metrics[f"all@{rank}"] = float(all(hits))
            rows.append(metrics)
        averages_by_system[TITLES.get(system, system)] = averages(rows)
    return {name: averages_by_system}
