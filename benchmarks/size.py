"""How much of the package a reader must know to follow an insert, a question and a deletion.

    python -m benchmarks.size [--package DIR]

Prints one JSON object; `benchmarks.readability` measures how the code itself reads. `rooms` are the
modules and packages at the top level of the package, without `__init__` and `__main__`; `layers` is
the longest chain of imports among them, also inside functions, but not for type checkers only.
`insert` is the second insertion of a document of one chunk, `query` the second question in the mode
mix, `first_query` the first question, which loads the index, `delete` a deletion. Of each, `functions`
counts the distinct functions of the package that run, in any thread, `files` their files, `lines`
the lines of their code, `names` these functions and all classes, constants, functions and aliases of the package that they refer to,
and `calls_across_rooms` the distinct pairs of a caller and a callee in different rooms.
"""

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeAlias

CHECKOUT = Path(__file__).resolve().parents[1]
CORE = ("core", "llm", "storage", "indexing", "retrieval")
TEXTS = (
    "Marie Curie discovered radium in Paris.",
    "Pierre Curie taught physics in Paris.",
    "Irène Curie found new elements in Paris.",
)
Call: TypeAlias = tuple[CodeType | None, CodeType]  # the caller, if it is Python, and the callee
QUESTIONS = ("What did Marie Curie discover?", "Where did Pierre Curie teach?", "Who found what?")


def main() -> None:
    """Measure a package and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, default=default_package(), help="its folder")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        print(json.dumps(run_figures()))
        return
    package = arguments.package.resolve()
    figures = {"benchmark": "size", **static_figures(package), **run_apart(package)}
    print(json.dumps(figures, indent=2))


# ── what can be read from the files ─────────────────────────────────────────────


def default_package() -> Path:
    """The package of this checkout, or else the installed one."""
    beside = CHECKOUT / "lightrag_jsonl"
    installed = find_spec("lightrag_jsonl")
    if beside.is_dir() or installed is None:
        return beside
    return Path(str(installed.origin)).parent


def static_figures(package: Path) -> dict[str, Any]:
    """Lines, rooms and layers."""
    imports = room_imports(package)
    chain = longest_chain(imports)
    return {
        "lines": {
            "package": _lines(package),
            "core_path": sum(_lines(package / room) for room in CORE),
            "tests": _lines(package.parent / "tests"),
            "by_room": {room: _lines(path) for room, path in rooms(package).items()},
        },
        "rooms": len(imports),
        "layers": len(chain),
        "longest_chain": chain,
    }


def rooms(package: Path) -> dict[str, Path]:
    """The modules and packages at the top level, by name; none with dunder names."""
    return {
        path.stem: path
        for path in sorted(package.iterdir())
        if path.suffix == ".py" or (path / "__init__.py").is_file()
        if not path.stem.startswith("__")
    }


def room_imports(package: Path) -> dict[str, set[str]]:
    """For each room the other rooms that it imports when it runs; imports are written absolute."""
    names = rooms(package)
    imports: dict[str, set[str]] = {name: set() for name in names}
    for room, path in names.items():
        for file in _python_files(path):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            for module in _imported_modules(tree):
                top, _, rest = module.partition(".")
                if top == package.name:
                    imports[room].update({rest.partition(".")[0]} & names.keys() - {room})
    return imports


def longest_chain(imports: Mapping[str, Collection[str]]) -> list[str]:
    """The longest path through the imports; rooms that import each other are one step of it."""
    import networkx as nx

    circles = nx.condensation(nx.DiGraph({room: sorted(imports[room]) for room in imports}))
    path = nx.dag_longest_path(circles)
    return [" and ".join(sorted(circles.nodes[step]["members"])) for step in path]


def _imported_modules(node: ast.AST) -> Iterator[str]:
    """The modules (or names in them) that code imports; none under `if TYPE_CHECKING`."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    elif isinstance(node, ast.expr):
        return  # imports are statements
    for child in ast.iter_child_nodes(node):
        yield from _imported_modules(child)


def _lines(path: Path) -> int:
    return sum(file.read_text(encoding="utf-8").count("\n") for file in _python_files(path))


def _python_files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


# ── what runs ───────────────────────────────────────────────────────────────────


def run_apart(package: Path) -> dict[str, Any]:
    """`run_figures` in a process that imports this package."""
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-P", str(Path(__file__).resolve()), "--run"]
    process = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, check=True, text=True, cwd=package.parent
    )
    figures: dict[str, Any] = json.loads(process.stdout)
    return figures


def run_figures() -> dict[str, Any]:
    """How much an insert and a query run, and the number of public names of the facade."""
    import lightrag_jsonl
    from lightrag_jsonl import AsyncLightRAG, Document, LightRAG
    from lightrag_jsonl.testing import HashEmbedder, ScriptedLLM

    recorder = CallRecorder()  # after the imports, which it would make four times as long
    with tempfile.TemporaryDirectory() as folder:
        llm = ScriptedLLM(scripted)
        with LightRAG(folder, llm=llm, embedder=HashEmbedder()) as rag:
            inserts = [
                recorder.calls(lambda text=text: rag.insert(Document(text, id=text)))  # type: ignore[misc]
                for text in TEXTS
            ]
            queries = [
                recorder.calls(lambda text=text: rag.query(text, mode="mix"))  # type: ignore[misc]
                for text in QUESTIONS
            ]
            deletion = recorder.calls(lambda: rag.delete(TEXTS[0]))
    package = Path(str(lightrag_jsonl.__file__)).parent
    runs = {
        "insert": inserts[1],
        "first_query": queries[0],
        "query": queries[1],
        "delete": deletion,
    }
    figures: dict[str, Any] = {name: _figures(calls, package) for name, calls in runs.items()}
    both = inserts[1] | queries[1]
    figures["names_of_insert_and_query"] = _figures(both, package)["names"]
    figures["facade"] = len([name for name in dir(AsyncLightRAG) if not name.startswith("_")])
    return figures


class CallRecorder:
    """Records which code of the package runs and what calls it, in all threads started from now on,
    and in the current one.
    """

    def __init__(self) -> None:
        self._calls: set[Call] | None = None
        threading.setprofile(self._record)
        sys.setprofile(self._record)

    def calls(self, work: Callable[[], object]) -> set[Call]:
        """The distinct pairs of a caller and a callee that `work` runs."""
        calls: set[Call] = set()
        self._calls = calls
        work()
        self._calls = None
        return calls

    def _record(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and self._calls is not None:
            caller = frame.f_back
            self._calls.add((caller.f_code if caller else None, frame.f_code))


def _figures(calls: Collection[Call], package: Path) -> dict[str, int]:
    """How much of the package these calls run."""
    code = {callee for _, callee in calls if Path(callee.co_filename).is_relative_to(package)}
    across_rooms = [
        (caller, callee)
        for caller, callee in calls
        if caller in code and callee in code and _room(caller, package) != _room(callee, package)
    ]
    return {
        "functions": len([item for item in code if not item.co_name.startswith("<")]),
        "files": len({item.co_filename for item in code}),
        "lines": sum(map(_code_lines, code)),
        "names": len(_names(code, package)),
        "calls_across_rooms": len(across_rooms),
    }


def _code_lines(code: CodeType) -> int:
    """The number of lines that hold a function's code: neither comments nor docstrings."""
    return len({line for _, _, line in code.co_lines() if line is not None})


def _room(code: CodeType | None, package: Path) -> str:
    """The room of the package that code stands in."""
    return "" if code is None else Path(code.co_filename).relative_to(package).parts[0]


def _names(code: Collection[CodeType], package: Path) -> set[str]:
    """The functions that run, and the names of modules of the package that they refer to."""
    defined = _defined_names(package)
    functions = {item.co_qualname for item in code if "<" not in item.co_name}
    return functions | {name for item in code for name in item.co_names if name in defined}


@cache
def _defined_names(package: Path) -> frozenset[str]:
    """The classes, functions, constants and aliases of all modules of the package."""
    defined: set[str] = set()
    for file in _python_files(package):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                defined.add(node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                defined.update(target.id for target in targets if isinstance(target, ast.Name))
    return frozenset(defined)


def scripted(request: Any) -> str:
    """A model's answer: two names of a text, a question's keywords, or an answer with a source."""
    if request.response_type == "json":
        return json.dumps({"high_level_keywords": ["physics"], "low_level_keywords": ["Curie"]})
    if request.response_type == "jsonl":
        if len(request.messages) > 2:
            return '{"type":"done","entities":0,"relationships":0}'
        text = next(text for text in TEXTS if text in request.text)
        person = " ".join(text.split()[:2])
        city = "Paris"
        rows = [
            {"type": "entity", "name": name, "entity_type": "person", "description": text}
            for name in (person, city)
        ]
        relation = {"source": person, "target": city, "keywords": ["work"], "description": text}
        rows.append({"type": "relationship", **relation, "strength": 5})  # type: ignore[dict-item]
        return "\n".join(json.dumps(row) for row in rows)
    return "Radium [1]."


if __name__ == "__main__":
    main()
