"""How the package reads, in numbers that packing lines cannot improve: python -m benchmarks.readability

Prints one JSON object. `--package` measures another package, to set beside this one; `--places` also
prints where each finding is.

nodes             nodes of the syntax trees, without contexts and operators
nodes_per_line    nodes per line of code: how dense a line is
packed            assignments of several values to several names, in percent of all assignments
star_calls        calls with `*name` or `*(…)`, per 1,000 calls: arguments that a reader cannot see
vague_names       variables and parameters called by a pronoun or a participle, in percent
pronouns          per 100 words of docstrings
homonyms          module-level names that are defined in several modules
public_homonyms   classes among them that have no leading underscore
private_uses      uses of a private attribute of another object
room_intrusions   imports of a private name, or of a private module, of another room
functions         the median, the 95th percentile and the maximum of their lines
"""

import argparse
import ast
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.size import default_package

VAGUE_WORDS = """
one ones other others found known unknown given shown kept wanted every those that this these it what
how about done left rest same such some any none both each made seen asked said told meant held put
got more most less thing things stuff tmp
"""
PRONOUN_WORDS = """
it its that this these those one ones other others which what who whom whose none some such they them
their
"""
VAGUE = frozenset(VAGUE_WORDS.split())
PRONOUNS = frozenset(PRONOUN_WORDS.split())
NO_SUBSTANCE = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
CONVENTIONAL = ("log", "logger", "__all__")  # names that every module may have


def main() -> None:
    """Measure a package and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, default=default_package(), help="its folder")
    parser.add_argument("--places", action="store_true", help="also print where")
    arguments = parser.parse_args()
    measured = measure(arguments.package.resolve())
    report: dict[str, Any] = {"benchmark": "readability", **measured.figures()}
    if arguments.places:
        report["places"] = measured.places
        report["homonyms_in"] = {name: sorted(files) for name, files in measured.homonyms.items()}
    print(json.dumps(report, ensure_ascii=False, indent=2))


@dataclass
class Readability:
    """Counts over all modules of a package; `places` lists findings as "file:line name" by kind."""

    counts: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    definitions: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    classes: set[str] = field(default_factory=set)
    function_lines: list[int] = field(default_factory=list)

    @property
    def homonyms(self) -> dict[str, set[str]]:
        """The files of each name that several modules define."""
        return {
            name: files
            for name, files in self.definitions.items()
            if len(files) > 1 and name not in CONVENTIONAL
        }

    @property
    def public_homonyms(self) -> list[str]:
        """Public classes that several modules define, or that share their name with something."""
        return sorted(name for name in self.homonyms if name in self.classes and name[0] != "_")

    def figures(self) -> dict[str, Any]:
        """The figures of the module's docstring."""
        counts = self.counts
        lengths = sorted(self.function_lines) or [0]
        findings = {kind: len(places) for kind, places in self.places.items()}
        return {
            "nodes": counts["nodes"],
            "nodes_per_line": round(counts["nodes"] / max(counts["code_lines"], 1), 2),
            "packed": _share(findings.get("packed", 0), counts["assignments"], 100),
            "star_calls": _share(findings.get("star_calls", 0), counts["calls"], 1000),
            "vague_names": _share(findings.get("vague_names", 0), counts["names"], 100),
            "pronouns": _share(counts["pronouns"], counts["words"], 100),
            "homonyms": len(self.homonyms),
            "public_homonyms": len(self.public_homonyms),
            "private_uses": findings.get("private_uses", 0),
            "room_intrusions": findings.get("room_intrusions", 0),
            "functions": [
                lengths[len(lengths) // 2],
                lengths[int(0.95 * (len(lengths) - 1))],
                lengths[-1],
            ],
            "code_lines": counts["code_lines"],
        }


def measure(package: Path) -> Readability:
    """The counts over all modules of a package, its tests left out."""
    measured = Readability()
    for path in sorted(package.rglob("*.py")):
        if "tests" not in path.parts:
            _measure_module(measured, path.relative_to(package), path.read_text(encoding="utf-8"))
    return measured


def _measure_module(measured: Readability, path: Path, source: str) -> None:
    """Add the counts of one module."""
    tree = ast.parse(source)
    measured.counts["code_lines"] += _code_lines(tree, source)
    for text in _docstrings(tree):
        words = re.findall(r"[A-Za-z']+", re.sub(r"`[^`]*`", " ", text).lower())
        measured.counts["words"] += len(words)
        measured.counts["pronouns"] += sum(word in PRONOUNS for word in words)
    for node in ast.walk(tree):
        if not isinstance(node, NO_SUBSTANCE):
            measured.counts["nodes"] += 1
            _measure_node(measured, path, node)
    for name, is_class in _module_names(tree):
        measured.definitions[name].add(str(path))
        if is_class:
            measured.classes.add(name)


def _measure_node(measured: Readability, path: Path, node: ast.AST) -> None:
    """Add what one node of a syntax tree tells."""

    def note(kind: str, name: str = "") -> None:
        measured.places[kind].append(f"{path}:{getattr(node, 'lineno', 0)} {name}".rstrip())

    if isinstance(node, ast.Assign):
        measured.counts["assignments"] += 1
        if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
            note("packed")
    elif isinstance(node, ast.Call):
        measured.counts["calls"] += 1
        if any(_hides_arguments(argument) for argument in node.args):
            note("star_calls")
    elif isinstance(node, ast.Attribute):
        if _is_private(node.attr) and not _is_own(node.value):
            note("private_uses", node.attr)
    elif isinstance(node, ast.ImportFrom):
        for module in _intrusions(node, path):
            note("room_intrusions", module)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        measured.function_lines.append((node.end_lineno or node.lineno) - node.lineno + 1)
    if name := _bound_name(node):
        measured.counts["names"] += 1
        if name.strip("_") in VAGUE:
            note("vague_names", name)


def _intrusions(node: ast.ImportFrom, path: Path) -> Iterator[str]:
    """What an import takes from another room although its name says that it is private there."""
    module = node.module or ""
    room = module.split(".")[1:2]
    if room and room[0] not in (path.parts[0], path.stem):
        for alias in node.names:
            full_name = f"{module}.{alias.name}"
            if any(_is_private(part) for part in full_name.split(".")):
                yield full_name


def _bound_name(node: ast.AST) -> str | None:
    """The name that a node gives to a variable or a parameter."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.arg if isinstance(node, ast.arg) else None


def _hides_arguments(argument: ast.expr) -> bool:
    return isinstance(argument, ast.Starred) and isinstance(argument.value, ast.Name | ast.Tuple)


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _is_own(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def _module_names(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """The names that a module defines, and whether each is a class or an alias of a type."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name, True
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, False
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, "TypeAlias" in ast.unparse(node.annotation)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, False


def _docstrings(tree: ast.Module) -> list[str]:
    texts = [ast.get_docstring(n, clean=False) for n in ast.walk(tree) if isinstance(n, DOCUMENTED)]
    return [text for text in texts if text]


def _code_lines(tree: ast.Module, source: str) -> int:
    """The lines that are neither blank, nor comments, nor docstrings."""
    documented: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False):
            docstring = node.body[0]
            last_line = docstring.end_lineno or docstring.lineno
            documented.update(range(docstring.lineno, last_line + 1))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in documented
        for number, line in enumerate(source.split("\n"), 1)
    )


def _share(part: int, whole: int, unit: int) -> float:
    return round(unit * part / max(whole, 1), 1)


if __name__ == "__main__":
    main()
