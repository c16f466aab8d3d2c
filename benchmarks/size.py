"""How large the package is, and how much of it a change and a question run.

    python -m benchmarks.size [--package DIR]

Prints one JSON object. `lines` are lines of Python files. `rooms` are the modules and packages at
the top level of the package, without `__init__` and `__main__`; `layers` is the longest chain of
imports among them, also of those inside functions, but not of those for type checkers only.
`insert` is the second insertion of a document of one chunk, `query` the second question in the mode
mix, `first_query` the first one, which loads the index. Counted are the distinct functions of the
package that run, in any thread, and their files; `code_objects` has lambdas, comprehensions and
generator expressions, too (Python 3.12 and later run comprehensions inline).
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
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
CORE = ("core", "llm", "storage", "indexing", "retrieval")
TEXTS = (
    "Marie Curie discovered radium in Paris.",
    "Pierre Curie taught physics in Paris.",
    "Irène Curie found new elements in Paris.",
)
QUESTIONS = ("What did Marie Curie discover?", "Where did Pierre Curie teach?", "Who found what?")


def main() -> None:
    """Measure a package and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, default=_default_package(), help="its folder")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        print(json.dumps(run_figures()))
        return
    package = given.package.resolve()
    figures = {"benchmark": "size", **static_figures(package), **_run_apart(package)}
    print(json.dumps(figures, indent=2))


# ── what can be read from the files ─────────────────────────────────────────────


def _default_package() -> Path:
    """The package of this checkout, or else the installed one."""
    beside, spec = CHECKOUT / "lightrag_jsonl", find_spec("lightrag_jsonl")
    return beside if beside.is_dir() or spec is None else Path(str(spec.origin)).parent


def static_figures(package: Path) -> dict[str, Any]:
    """Lines, rooms and layers."""
    imports = room_imports(package)
    return {
        "lines": {
            "package": _lines(package),
            "core_path": sum(_lines(package / room) for room in CORE),
            "tests": _lines(package.parent / "tests"),
            "by_room": {room: _lines(path) for room, path in rooms(package).items()},
        },
        "rooms": len(imports),
        "layers": len(chain := longest_chain(imports)),
        "longest_chain": chain,
    }


def rooms(package: Path) -> dict[str, Path]:
    """The modules and packages at the top level, by name; none with dunder names."""
    found = {
        path.stem: path
        for path in sorted(package.iterdir())
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    return {name: path for name, path in found.items() if not name.startswith("__")}


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
    for child in ast.iter_child_nodes(node):
        yield from _imported_modules(child)


def _lines(path: Path) -> int:
    return sum(file.read_text(encoding="utf-8").count("\n") for file in _python_files(path))


def _python_files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


# ── what runs ───────────────────────────────────────────────────────────────────


def _run_apart(package: Path) -> dict[str, Any]:
    """`run_figures` in a process that imports this package."""
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-P", str(Path(__file__).resolve()), "--run"]
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, check=True, text=True, cwd=package.parent
    )
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def run_figures() -> dict[str, Any]:
    """How much an insert and a query run, and the number of public names of the facade."""
    recorder = CallRecorder()
    from lightrag_jsonl import AsyncLightRAG, Document, LightRAG
    from lightrag_jsonl.testing import HashEmbedder, ScriptedLLM

    with tempfile.TemporaryDirectory() as folder:
        llm = ScriptedLLM(scripted)
        with LightRAG(folder, llm=llm, embedder=HashEmbedder()) as rag:
            inserted = [
                recorder.calls(lambda text=text: rag.insert(Document(text, id=text)))  # type: ignore[misc]
                for text in TEXTS
            ]
            asked = [
                recorder.calls(lambda text=text: rag.query(text, mode="mix"))  # type: ignore[misc]
                for text in QUESTIONS
            ]
    return {
        "insert": inserted[1],
        "first_query": asked[0],
        "query": asked[1],
        "facade": len([name for name in dir(AsyncLightRAG) if not name.startswith("_")]),
    }


class CallRecorder:
    """Records which code of the package runs, in all threads that start from now on, and in this."""

    def __init__(self) -> None:
        self._seen: set[CodeType] | None = None
        threading.setprofile(self._record)
        sys.setprofile(self._record)

    def calls(self, work: Callable[[], object]) -> dict[str, int]:
        """How much of the package `work` runs."""
        import lightrag_jsonl

        seen: set[CodeType] = set()
        self._seen = seen
        work()
        self._seen = None
        package = str(Path(str(lightrag_jsonl.__file__)).parent)
        ours = [code for code in seen if code.co_filename.startswith(package)]
        return {
            "functions": len([code for code in ours if not code.co_name.startswith("<")]),
            "code_objects": len(ours),
            "files": len({code.co_filename for code in ours}),
        }

    def _record(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and self._seen is not None:
            self._seen.add(frame.f_code)


def scripted(request: Any) -> str:
    """A model's answer: two names of a text, a question's keywords, or an answer with a source."""
    if request.response_type == "json":
        return json.dumps({"high_level_keywords": ["physics"], "low_level_keywords": ["Curie"]})
    if request.response_type == "jsonl":
        if len(request.messages) > 2:
            return '{"type":"done","entities":0,"relationships":0}'
        text = next(text for text in TEXTS if text in request.text)
        person, city = " ".join(text.split()[:2]), "Paris"
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
