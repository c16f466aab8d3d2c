"""What happens when something goes wrong: left-overs, cut answers, examples, equal names, kills."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.overview import folded
from benchmarks.referee.material import (
    Document,
    Material,
    Question,
    Row,
    entity_row,
    names_of,
    relation_row,
)
from benchmarks.referee.server import Behavior
from benchmarks.referee.sessions import Arena
from benchmarks.referee.sets import generated

Figures = dict[str, Any]
CUT = 0.5  # of an extraction answer
DELAY = 0.1  # seconds before an answer, while a writer is to be killed
KILL_DOCUMENTS = 40
KILL_AFTER = 0.5  # of the calls that an undisturbed insert makes
SECRETS = ("Brackmoor", "Quillane", "zinnober")  # words of the deleted document alone

# Written for this measure: each sentence is a relation, so that every answer is known.
STATEMENTS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "harbor": (
        ("Ida Holm", "founded", "Northlight Shipping"),
        ("Northlight Shipping", "operates from", "Port Varen"),
        ("Ida Holm", "was born in", "Port Varen"),
        ("Northlight Shipping", "bought", "the ferry Gannet"),
    ),
    "bridge": (
        ("Tomas Reyl", "designed", "the Varen Bridge"),
        ("the Varen Bridge", "crosses", "the river Ostra"),
        ("Tomas Reyl", "studied with", "Ida Holm"),
        ("the Varen Bridge", "was opened by", "Mayor Sund"),
    ),
    "museum": (
        ("Mayor Sund", "opened", "the Ostra Museum"),
        ("the Ostra Museum", "shows", "the logbook of the Gannet"),
        ("Clara Venn", "directs", "the Ostra Museum"),
        ("Clara Venn", "wrote", "A History of Port Varen"),
    ),
    "orchard": (
        ("Emil Quist", "planted", "the Ostra orchards"),
        ("the Ostra orchards", "supply", "the Quist cider works"),
        ("Emil Quist", "married", "Clara Venn"),
        ("the Quist cider works", "ship with", "Northlight Shipping"),
    ),
    "archive": (
        ("Brackmoor", "blackmailed", "Ida Holm"),
        ("Ida Holm", "paid", "Quillane"),
        ("Quillane", "painted in zinnober", "the ferry Gannet"),
        ("Brackmoor", "employed", "Quillane"),
    ),
    "school": (
        ("Ines Falk", "teaches at", "the Varen School"),
        ("the Varen School", "was built by", "Tomas Reyl"),
        ("Ines Falk", "sails", "the ferry Gannet"),
        ("the Varen School", "stands beside", "the river Ostra"),
    ),
}
DELETED = "archive"


def small_material(name: str = "small", files: Mapping[str, str] | None = None) -> Material:
    """Six short documents whose graph is known, and a question about each."""
    documents = []
    readings = []
    for id, statements in STATEMENTS.items():
        sentences = [f"{source} {verb} {target}." for source, verb, target in statements]
        text = f"About the {id} of Port Varen. " + " ".join(sentences)
        documents.append(Document(id, text, (files or {}).get(id, "")))
        readings.append((text, _rows(statements)))
    return Material(name, "en", tuple(documents), tuple(readings), tuple(_questions()))


def _rows(statements: Sequence[tuple[str, str, str]]) -> tuple[Row, ...]:
    """A relation for each statement, and its ends, each right before the first relation with it."""
    rows: list[Row] = []
    described: set[str] = set()
    for source, verb, target in statements:
        for name in (source, target):
            if name not in described:
                rows.append(entity_row(name, f"{source} {verb} {target}."))
                described.add(name)
        rows.append(relation_row(source, verb, target))
    return tuple(rows)


def _questions() -> list[Question]:
    """A question about each document; none has a word of the deleted one, since questions are stored,
    too.
    """
    questions = []
    for id, statements in STATEMENTS.items():
        first = ("Ida Holm", "knew", "the ferry Gannet") if id == DELETED else statements[0]
        questions.append(
            Question(
                text=f"What happened between {first[0]} and {first[2]}?",
                supporting=(id,),
                names=(first[0], first[2]),
                themes=(first[1],),
            )
        )
    return questions


# ── deletion ────────────────────────────────────────────────────────────────────


def deletion(arena: Arena, contestant: str) -> Figures:
    """Where words of a deleted document are still found: in the graph, in contexts, in files."""
    material = small_material()
    steps: list[Figures] = [
        {"do": "insert"},
        {"do": "delete", "id": DELETED},
        {"do": "graph"},
        {"do": "search", "all ways": True},
    ]
    session = arena.session(contestant, "deletion", material, steps)
    if "error" in session:
        return {"error": session["error"]}
    _, delete, graph, search = session["steps"]
    if "not offered" in delete:
        return {"not offered": delete["not offered"]}
    names = [name for name in graph["value"]["entities"] if _has_secret(name)]
    contexts = {
        way: sum(_has_secret(result["context"]) for result in results)
        for way, results in search["value"].items()
    }
    return {
        "graph": len(names),
        "contexts": sum(contexts.values()),
        "files": _files_with_secrets(arena.folder(contestant, "deletion")),
        "calls": sum(delete["asked"]["calls"].values()),
    }


def _has_secret(text: str) -> bool:
    return any(secret.casefold() in text.casefold() for secret in SECRETS)


def _files_with_secrets(folder: Path) -> list[str]:
    """The files of an index that hold a word of the deleted document, in upper or lower case."""
    secrets = [secret.casefold().encode() for secret in SECRETS]
    files = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes().lower()
            if any(secret in content for secret in secrets):
                files.append(str(path.relative_to(folder)))
    return files


# ── the model's answers ─────────────────────────────────────────────────────────


def cut_answers(arena: Arena, contestant: str) -> Figures:
    """What share of entities and relations is lost if every extraction answer is cut in half; a
    contestant that asks again is answered in full.
    """
    whole = _graph_after(arena, contestant, "whole", Behavior())
    cut = _graph_after(arena, contestant, "cut", Behavior(cut=CUT))
    for session in (whole, cut):
        if "error" in session:
            return {"error": session["error"]}
    return {
        "entities_lost": _lost(whole["graph"], cut["graph"], "entities"),
        "relations_lost": _lost(whole["graph"], cut["graph"], "relations"),
        "calls": cut["calls"],
        "calls_undisturbed": whole["calls"],
    }


def _graph_after(
    arena: Arena,
    contestant: str,
    name: str,
    behavior: Behavior,
    material: Material | None = None,
) -> Figures:
    """The graph after an insert during which the model behaves in some way, and the calls."""
    material = material or small_material()
    with arena.server.behaving(contestant, behavior):
        session = arena.session(contestant, name, material, [{"do": "insert"}, {"do": "graph"}])
    if "error" in session:
        return {"error": session["error"]}
    insert, graph = session["steps"]
    return {"graph": graph["value"], "calls": sum(insert["asked"]["calls"].values())}


def _lost(whole: Figures, cut: Figures, part: str) -> float:
    """Percent of the entities or relations that are missing."""
    everything = _folded_set(whole[part])
    missing = everything - _folded_set(cut[part])
    return round(100 * len(missing) / (len(everything) or 1), 1)


def _folded_set(items: Sequence[str | Sequence[str]]) -> set[str]:
    """Names, or pairs of names in either order, without their spelling."""
    keys = set()
    for item in items:
        names = [item] if isinstance(item, str) else list(item)
        keys.add(" / ".join(sorted(folded(name) for name in names)))
    return keys


def copied_example(arena: Arena, contestant: str) -> Figures:
    """How many entities of the prompt's example are in the graph if the model copies it."""
    copied = _graph_after(arena, contestant, "example", Behavior(copies_example=True))
    if "error" in copied:
        return {"error": copied["error"]}
    if not arena.server.models[contestant].copied:
        return {"not offered": "an example"}
    material = small_material()
    true_names = {name for _, rows in material.readings for row in rows for name in names_of(row)}
    names = _folded_set(copied["graph"]["entities"]) - _folded_set(sorted(true_names))
    return {"entities": len(names), "names": sorted(names)[:5]}


# ── inserting again ─────────────────────────────────────────────────────────────


def equal_file_names(arena: Arena, contestant: str) -> Figures:
    """How many of two documents with the same file name in two folders are indexed."""
    files = {id: f"{id}/notes.txt" for id in STATEMENTS}
    material = small_material("equal-names", files)
    material = replace(material, documents=material.documents[:2])
    session = arena.session(
        contestant, "equal-names", material, [{"do": "insert"}, {"do": "graph"}]
    )
    if "error" in session:
        return {"error": session["error"]}
    return {"indexed": session["steps"][1]["value"]["chunks"], "of": len(material.documents)}


def same_insert(arena: Arena, contestant: str) -> Figures:
    """What the same insert costs the second time, and whether the graph stays the same."""
    steps = [{"do": "insert"}, {"do": "graph"}, {"do": "insert"}, {"do": "graph"}]
    session = arena.session(contestant, "twice", small_material(), steps)
    if "error" in session:
        return {"error": session["error"]}
    _, before, again, after = session["steps"]
    return {
        "calls": sum(again["asked"]["calls"].values()),
        "texts_embedded": again["asked"]["texts_embedded"],
        "graph_changed": _is_changed(before["value"], after["value"]),
    }


def _is_changed(before: Figures, after: Figures) -> bool:
    parts = ("entities", "relations")
    is_same = all(_folded_set(before[part]) == _folded_set(after[part]) for part in parts)
    return not is_same or before["chunks"] != after["chunks"]


def kill(arena: Arena, contestant: str) -> Figures:
    """Kill a writer in the middle, insert again, and compare with an undisturbed insert."""
    material = generated(KILL_DOCUMENTS)
    undisturbed = _graph_after(arena, contestant, "undisturbed", Behavior(), material)
    if "error" in undisturbed:
        return {"error": undisturbed["error"]}
    model = arena.server.models[contestant]
    calls_before = model.counts.calls.total()
    limit = calls_before + int(KILL_AFTER * undisturbed["calls"])

    def is_half_done() -> bool:
        return model.counts.calls.total() >= limit

    with arena.server.behaving(contestant, Behavior(delay=DELAY)):
        was_running = arena.killed_session(
            contestant, "killed", material, [{"do": "insert"}], is_half_done
        )
    steps = [{"do": "insert"}, {"do": "graph"}]
    session = arena.session(contestant, "killed", material, steps)
    if "error" in session:
        return {"error": session["error"], "killed": was_running}
    calls = model.counts.calls.total() - calls_before
    return {
        "killed": was_running,
        "calls_repeated": calls - undisturbed["calls"],
        "calls_undisturbed": undisturbed["calls"],
        "graph_differs": _is_changed(undisturbed["graph"], session["steps"][1]["value"]),
    }


FAULTS: Mapping[str, Callable[[Arena, str], Figures]] = {
    "deletion": deletion,
    "cut answers": cut_answers,
    "copied example": copied_example,
    "equal file names": equal_file_names,
    "same insert": same_insert,
    "kill": kill,
}
