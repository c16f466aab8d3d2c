"""What work costs: indexing at several sizes, one more document, one less, the first context."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.referee.material import Material
from benchmarks.referee.sessions import Arena

Figures = dict[str, Any]
ASKED = 20  # questions whose contexts are timed


def costs(arena: Arena, contestant: str, material: Material) -> Figures:
    """The figures of one size: the last document is the one more, the first triggers late imports."""
    ids = [document.id for document in material.documents]
    index = f"cost-{material.name}"
    steps: list[Figures] = [
        {"do": "insert", "ids": ids[:1]},
        {"do": "insert", "ids": ids[1:-2]},
        {"do": "insert", "ids": ids[-2:-1]},
        {"do": "insert", "ids": ids[-1:]},
        {"do": "search", "questions": ASKED},
        {"do": "delete", "id": ids[len(ids) // 2]},
    ]
    built = arena.session(contestant, index, material, steps)
    if "error" in built:
        return {"error": built["error"]}
    reopened = arena.session(contestant, index, material, [{"do": "search", "questions": 1}])
    if "error" in reopened:
        return {"error": reopened["error"]}
    _, bulk, _, one_more, search, delete = built["steps"]
    chunks = len(ids) - 3
    figures = {
        "cpu_ms_per_chunk": round(1000 * bulk["used"]["cpu"] / chunks, 2),
        "bytes_written": bulk["used"]["written"],
        "bytes_on_disk": bulk["bytes_on_disk"],
        "peak_mb": built["peak_mb"],
        "model_calls_per_chunk": round(sum(bulk["asked"]["calls"].values()) / chunks, 2),
        "tokens_per_chunk": round(_tokens(bulk["asked"]) / chunks),
        "texts_embedded_per_chunk": round(bulk["asked"]["texts_embedded"] / chunks, 2),
        "one_more_cpu_ms": round(1000 * one_more["used"]["cpu"], 1),
        "one_more_bytes_written": one_more["used"]["written"],
        "one_more_calls": sum(one_more["asked"]["calls"].values()),
        "first_context_cpu_s": _first_context(reopened),
        "context_cpu_ms": _p50(search["value"]),
    }
    if "not offered" not in delete:
        figures["delete_cpu_ms"] = round(1000 * delete["used"]["cpu"], 1)
        figures["delete_bytes_written"] = delete["used"]["written"]
        figures["delete_calls"] = sum(delete["asked"]["calls"].values())
    return figures


def _tokens(asked: Mapping[str, Any]) -> int:
    return int(asked["tokens_read"]) + int(asked["tokens_written"])


def _first_context(session: Mapping[str, Any]) -> float:
    """Seconds of CPU from the import of the contestant to its first context, in a new process."""
    seconds: float = session["opening"]["cpu"] + session["steps"][0]["used"]["cpu"]
    return round(seconds, 2)


def _p50(results_by_way: Mapping[str, Sequence[Mapping[str, float]]]) -> float:
    (results,) = results_by_way.values()
    return round(median([result["cpu_ms"] for result in results[2:] or results]), 1)
