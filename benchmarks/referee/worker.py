"""Runs the steps of one session with one contestant, in an environment with that contestant.

The referee starts it. What each step gives and uses goes to a file, since some contestants print.
"""

import argparse
import json
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from benchmarks.referee.contestants.base import Contestant, NotOfferedError
from benchmarks.referee.material import Material, read_material
from benchmarks.usage import Usage, on_disk, peak_mb

ADAPTERS = {
    "ours": ("ours", "Ours"),
    "vectors": ("vectors", "PlainVectors"),
    "lightrag": ("light", "Light"),
    "nano": ("nano", "Nano"),
    "fast": ("fast", "Fast"),
    "hipporag": ("hippo", "Hippo"),
    "graphrag": ("microsoft", "Microsoft"),
}

Figures = dict[str, Any]
Step = Mapping[str, Any]


def main() -> None:
    """Open the index, take the steps, write what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contestant", choices=list(ADAPTERS))
    for name in ("folder", "material", "steps", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--address", required=True)
    arguments = parser.parse_args()
    material = read_material(arguments.material)
    steps = json.loads(arguments.steps.read_text(encoding="utf-8"))
    began = Usage()
    module_name, class_name = ADAPTERS[arguments.contestant]
    module = import_module(f"benchmarks.referee.contestants.{module_name}")
    contestant: Contestant = getattr(module, class_name)(
        arguments.folder, arguments.address, material.language
    )
    opened = began.until_now()
    results: list[Figures] = []
    for step in steps:
        results.append(_taken(contestant, material, step, arguments))
        if "error" in results[-1]:
            break
    figures = {
        "opening": asdict(opened),
        "steps": results,
        "ways": list(contestant.ways),
        "peak_mb": peak_mb(),
    }
    arguments.out.write_text(json.dumps(figures, ensure_ascii=False), encoding="utf-8")
    contestant.close()
    figures["bytes_on_disk"] = on_disk(arguments.folder)
    arguments.out.write_text(json.dumps(figures, ensure_ascii=False), encoding="utf-8")


def _taken(
    contestant: Contestant, material: Material, step: Step, arguments: argparse.Namespace
) -> Figures:
    """What a step gives, what it uses, and what it asks of the model; or its error."""
    counts = _counts(arguments.address)
    usage = Usage()
    figures: Figures = {"do": step["do"]}
    try:
        figures["value"] = STEPS[step["do"]](contestant, material, step)
    except NotOfferedError as missing:
        figures["not offered"] = str(missing)
    except Exception as error:  # noqa: BLE001 (a contestant's own code may raise anything)
        figures["error"] = f"{type(error).__name__}: {error}"[:500]
        figures["traceback"] = traceback.format_exc()[-3_000:]
    figures["used"] = asdict(usage.until_now())
    figures["asked"] = _difference(_counts(arguments.address), counts)
    figures["bytes_on_disk"] = on_disk(arguments.folder)
    return figures


def _counts(address: str) -> Figures:
    with urlopen(f"{address}/counts", timeout=60) as response:
        counts: Figures = json.load(response)
    return counts


def _difference(after: Figures, before: Figures) -> Figures:
    difference: Figures = {}
    for name, value in after.items():
        if isinstance(value, dict):
            difference[name] = _difference(value, before.get(name, {}))
        else:
            difference[name] = value - before.get(name, 0)
    return difference


# ── the steps ───────────────────────────────────────────────────────────────────


def _insert(contestant: Contestant, material: Material, step: Step) -> None:
    """Insert the documents with the ids of the step, or else all."""
    ids = step.get("ids")
    documents = [document for document in material.documents if ids is None or document.id in ids]
    contestant.insert(documents)


def _delete(contestant: Contestant, material: Material, step: Step) -> None:
    documents = {document.id: document for document in material.documents}
    contestant.delete(documents[step["id"]])


def _search(contestant: Contestant, material: Material, step: Step) -> dict[str, list[Figures]]:
    """For each way and question what is found, and the milliseconds of CPU here, without those of the
    model server; the default way alone unless the step wants all of them.
    """
    ways = list(contestant.ways) if step.get("all ways") else [next(iter(contestant.ways))]
    results: dict[str, list[Figures]] = {way: [] for way in ways}
    for way in ways:
        for question in material.questions[: step.get("questions")]:
            usage = Usage()
            found = contestant.search(question, way, tokens=step.get("tokens"))
            cpu_ms = 1000 * usage.until_now().cpu
            results[way].append({**asdict(found), "cpu_ms": cpu_ms})
    return results


def _graph(contestant: Contestant, material: Material, step: Step) -> Figures:
    return asdict(contestant.graph())


STEPS: Mapping[str, Callable[[Contestant, Material, Step], Any]] = {
    "insert": _insert,
    "delete": _delete,
    "search": _search,
    "graph": _graph,
}

if __name__ == "__main__":
    main()
