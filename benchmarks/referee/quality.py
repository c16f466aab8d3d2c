"""What is found: recall, the answer in a context, and the key points of whole-book questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from benchmarks.overview import folded, stands_in
from benchmarks.referee.material import Material, Question
from benchmarks.referee.sessions import Arena
from lightrag_jsonl.core.tokens import default_tokenizer
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.tools.evaluation import UNINFORMATIVE_ANSWERS, interval

RANKS = (2, 5, 10)
CONTEXT = 4_000  # tokens of a context that is searched for the answer
BEGINNING = 60  # characters by which a passage is recognized
BEST_BY = "recall@5"
EVERYTHING = "recall"  # of all passages in a default context, whatever their order

Figures = dict[str, Any]


def retrieval(arena: Arena, contestant: str, material: Material) -> Figures:
    """The scores of every way of a contestant on a question set, and what indexing it took."""
    steps: list[Figures] = [
        {"do": "insert"},
        {"do": "graph"},
        {"do": "search", "all ways": True},
        {"do": "search", "all ways": True, "tokens": CONTEXT},
    ]
    session = arena.session(contestant, f"set-{material.name}", material, steps)
    if "error" in session:
        return {"error": session["error"]}
    insert, graph, full, limited = session["steps"]
    passages = Passages(material)
    ways = {}
    for way, results in full["value"].items():
        scores = _scores(material.questions, results, limited["value"][way], passages)
        times = [result["cpu_ms"] for result in results]
        tokens = [default_tokenizer().count(result["context"]) for result in results]
        ways[way] = {
            "questions": scores,
            "averages": averages(scores),
            "contexts": [result["context"] for result in limited["value"][way]],
            "cpu_p50_ms": round(median(times), 1),
            "context_tokens": round(float(np.mean(tokens))),
        }
    return {
        "ways": ways,
        "default": session["ways"][0],
        "best": best_way(ways),
        "index": {
            "asked": insert["asked"],
            "used": insert["used"],
            "entities": len(graph["value"]["entities"]),
            "relations": len(graph["value"]["relations"]),
            "chunks": graph["value"]["chunks"],
        },
    }


@dataclass(frozen=True, slots=True)
class _Passage:
    id: str
    text: str


class Passages:
    """Recognizes the documents of a material in what contestants return."""

    def __init__(self, material: Material) -> None:
        self._by_beginning: dict[str, list[_Passage]] = {}
        for document in material.documents:
            text = folded(document.text)
            passages = self._by_beginning.setdefault(text[:BEGINNING], [])
            passages.append(_Passage(document.id, text))

    def ids(self, texts: Sequence[str]) -> list[str]:
        """The ids of the documents with these texts, in their order, each once."""
        ids: list[str] = []
        for text in texts:
            words = folded(text)
            for passage in self._by_beginning.get(words[:BEGINNING], ()):
                if words.startswith(passage.text) or passage.text.startswith(words):
                    ids.append(passage.id)
        return list(dict.fromkeys(ids))


def _scores(
    questions: Sequence[Question],
    results: Sequence[Figures],
    limited: Sequence[Figures],
    passages: Passages,
) -> list[dict[str, float]]:
    """For each question its metrics, between 0 and 1."""
    rows = []
    for question, result, short in zip(questions, results, limited, strict=True):
        ids = passages.ids(result["passages"])
        metrics: dict[str, float] = {}
        for rank in RANKS:
            hits = [id in ids[:rank] for id in question.supporting]
            metrics[f"recall@{rank}"] = float(np.mean(hits))
            metrics[f"all@{rank}"] = float(all(hits))
        metrics[EVERYTHING] = float(np.mean([id in ids for id in question.supporting]))
        answer = name_key(question.answer) if question.answer else ""
        if answer not in UNINFORMATIVE_ANSWERS:
            context = default_tokenizer().truncate(short["context"], CONTEXT)
            metrics["answer"] = float(answer in name_key(context))
        rows.append(metrics)
    return rows


def averages(scores: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """For each metric the mean in percent, and the bounds of its 95 % bootstrap interval."""
    means: dict[str, list[float]] = {}
    for metric in dict.fromkeys(name for row in scores for name in row):
        average = interval([row[metric] for row in scores if metric in row])
        values = (average.value, average.low, average.high)
        means[metric] = [round(100 * value, 1) for value in values]
    return means


def best_way(ways: Mapping[str, Figures]) -> str:
    """The way with the highest recall, chosen on the same questions: it flatters a contestant."""
    return max(ways, key=lambda way: ways[way]["averages"][BEST_BY][0])


def difference(
    scores: Sequence[Mapping[str, float]], others: Sequence[Mapping[str, float]], metric: str
) -> list[float]:
    """The mean difference on the same questions, in percent, with its 95 % interval."""
    pairs = zip(scores, others, strict=True)
    gains = [row[metric] - other[metric] for row, other in pairs if metric in row]
    average = interval(gains or [0.0])
    return [round(100 * value, 1) for value in (average.value, average.low, average.high)]


# ── whole texts ─────────────────────────────────────────────────────────────────


def coverage(arena: Arena, contestant: str, material: Material, budgets: Sequence[int]) -> Figures:
    """The percent of key points in the contexts of whole-text questions, by group, way and budget."""
    steps: list[Figures] = [{"do": "insert"}, {"do": "graph"}]
    steps += [{"do": "search", "all ways": True, "tokens": budget} for budget in budgets]
    session = arena.session(contestant, f"whole-{material.name}", material, steps)
    if "error" in session:
        return {"error": session["error"]}
    insert, graph, *searches = session["steps"]
    groups: dict[str, dict[str, Figures]] = {}
    for group in dict.fromkeys(question.group for question in material.questions):
        groups[group] = {way: {} for way in session["ways"]}
        for budget, step in zip(budgets, searches, strict=True):
            for way, results in step["value"].items():
                percent = _covered(material.questions, results, group=group, budget=budget)
                groups[group][way][str(budget)] = percent
    return {
        "groups": groups,
        "default": session["ways"][0],
        "asked": insert["asked"],
        "entities": len(graph["value"]["entities"]),
        "relations": len(graph["value"]["relations"]),
    }


def _covered(
    questions: Sequence[Question], results: Sequence[Figures], *, group: str, budget: int
) -> float:
    covered: list[bool] = []
    for question, result in zip(questions, results, strict=True):
        if question.group == group:
            text = folded(default_tokenizer().truncate(result["context"], budget))
            covered += [stands_in(text, wordings) for wordings in question.points]
    return round(100 * sum(covered) / len(covered), 1)
