"""What is shipped: the wheel has all it needs and nothing else, and stands on declared, free packages."""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT

PACKAGE = CHECKOUT / "lightrag_jsonl"
PROMPTS = ("prompts_en", "prompts_zh")
CACHES = {"__pycache__", ".mypy_cache", ".ruff_cache"}
PERMISSIVE = re.compile(
    r"\b(MIT|MIT-0|MIT-CMU|BSD|0BSD|Apache|ISC|PSF|Python Software Foundation|Unlicense|Zlib|CC0"
    r"|HPND|Mozilla Public License 2\.0|MPL-2\.0)\b",
    re.IGNORECASE,
)
UNFREE = re.compile(r"(?<!L)\bA?GPL|Affero|proprietary|non-?commercial", re.IGNORECASE)


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    """The project table of pyproject.toml."""
    table = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    return dict(table["project"])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """The wheel of this checkout, built in a moment; skipped where its sources are away."""
    if not PACKAGE.is_dir() or find_spec("hatchling") is None:
        pytest.skip("the wheel is built from the sources by hatchling")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as opened:
        yield opened


def _pages_for_contributors() -> list[str]:
    """The texts of CONTRIBUTING and of the pages of the workshops."""
    path = CHECKOUT / "CONTRIBUTING.md"
    if not (path.is_file() and PACKAGE.is_dir()):
        pytest.skip("the sources are away")
    pages = [path, *sorted((CHECKOUT / "docs" / "workshops").glob("*.md"))]
    return [page.read_text(encoding="utf-8") for page in pages]


def test_the_reading_order_names_what_there_is() -> None:
    """Every module and folder that CONTRIBUTING and the workshops lead through stands where they
    say; the reading order has at most 20 files.
    """
    contributing, *workshops = _pages_for_contributors()
    _, heading, rest = contributing.partition("## Reading order\n")
    order, _, _ = rest.partition("\n## How do I …\n")
    steps = re.findall(r"^\d+\. `([\w/]+\.\w+)`", order, flags=re.MULTILINE)
    text = order + "".join(workshops)
    named = re.findall(r"`([\w./]+(?:\.(?:py|md|sql|js|json|toml)|/))`", text)
    folders = (
        *(PACKAGE, CHECKOUT, CHECKOUT / "tests/retrieval"),
        *(PACKAGE / "server/page", CHECKOUT / "benchmarks/referee"),
    )

    assert heading and 15 <= len(steps) <= 20
    assert len(named) > 60
    assert all((PACKAGE / step).is_file() for step in steps)
    assert [name for name in named if not any((folder / name).exists() for folder in folders)] == []


@pytest.mark.slow
def test_contributing_names_what_there_is() -> None:
    """Every function, class and constant that CONTRIBUTING and the workshops name stands somewhere in the code."""
    names = set(re.findall(r"`([A-Za-z_]\w+)`", "".join(_pages_for_contributors())))
    words: set[str] = set()
    for folder in ("lightrag_jsonl", "tests", "benchmarks"):
        for pattern in ("*.py", "*.sql", "server/page/*.js"):
            for source in (CHECKOUT / folder).rglob(pattern):
                words.update(re.findall(r"\w+", source.read_text(encoding="utf-8")))

    assert len(names) > 60
    assert names - words == set()


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package_and_the_prompts(wheel: zipfile.ZipFile) -> None:
    """Code, `py.typed`, samples, styles and scripts as they are built, and both prompt sets."""
    package = {
        path.relative_to(CHECKOUT).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and not CACHES & set(path.parts)
        if not path.is_relative_to(PACKAGE / "server" / "page")  # the sources of server/static
    }
    prompts = {
        f"lightrag_jsonl/{folder}/{path.name}"
        for folder in PROMPTS
        for path in (CHECKOUT / folder).iterdir()
    }
    shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert shipped == package | prompts
    for name in ("py.typed", "tracing/page.css", "tracing/page.js", "cli/samples/questions.jsonl"):
        assert f"lightrag_jsonl/{name}" in shipped


@pytest.mark.slow
def test_the_wheel_says_what_it_is(wheel: zipfile.ZipFile, project: dict[str, Any]) -> None:
    """Its metadata name the licence, the command, the extra and the README."""
    texts = {
        name.rpartition("/")[2]: wheel.read(name).decode()
        for name in wheel.namelist()
        if ".dist-info/" in name
    }
    assert "License-Expression: MIT" in texts["METADATA"] and "MIT" in texts["LICENSE"]
    assert "Provides-Extra: rdf" in texts["METADATA"] and "## Quickstart" in texts["METADATA"]
    assert "lightrag-jsonl = lightrag_jsonl.__main__:run_program" in texts["entry_points.txt"]
    assert f"Version: {project['version']}" in texts["METADATA"]


def test_every_dependency_has_a_lowest_version(project: dict[str, Any]) -> None:
    """`make test-lowest` runs the tests with exactly these."""
    assert all(">=" in line for line in project["dependencies"])


@pytest.mark.slow
def test_what_is_imported_is_declared_and_the_other_way_round(project: dict[str, Any]) -> None:
    """The package imports the standard library and its dependencies, and each of these somewhere."""
    import lightrag_jsonl

    declared = {_key(line) for line in project["dependencies"]}
    extras = project["optional-dependencies"]
    declared |= {_key(line) for name in extras if name != "dev" for line in extras[name]}
    known = metadata.packages_distributions()
    foreign = {
        name
        for path in Path(lightrag_jsonl.__file__).parent.rglob("*.py")
        for name in _imported(path)
        if name not in sys.stdlib_module_names and name != "lightrag_jsonl"
    }
    homes = {name: {_key(one) for one in known.get(name, [name])} for name in foreign}
    # trafilatura cannot be without lxml-html-clean.
    assert declared - {"lxml-html-clean"} <= set().union(*homes.values())
    undeclared = {name for name, home in homes.items() if not declared & home}
    # sentence-transformers cannot be without the first three, mcp without the next two; the others
    # are the programs that integrations are for.
    assert undeclared <= {
        "torch", "tokenizers", "huggingface_hub", "pydantic", "starlette",
        "haystack", "langchain_core", "llama_index", "opentelemetry",
    }  # fmt: skip


def test_all_dependencies_are_free_to_use(project: dict[str, Any]) -> None:
    """The core dependencies and all that they bring have permissive licences; torch may have come
    with NVIDIA's own libraries, which its builds for other machines do without.
    """
    closed = {}
    for name in _brought(project["dependencies"]):
        if name.startswith(("nvidia-", "cuda-")):
            continue
        licence = _licence(name)
        if not PERMISSIVE.search(licence) or UNFREE.search(licence):
            closed[name] = licence
    assert closed == {}


def _imported(path: Path) -> Iterator[str]:
    """The top-level packages that a module imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _key(requirement: str) -> str:
    """A distribution's name as it is compared: lower case, one kind of dash."""
    found = re.match(r"[\w.-]+", requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def _brought(requirements: list[str]) -> set[str]:
    """The installed distributions that requirements bring along, theirs included, extras aside."""
    found: set[str] = set()
    waiting = [_key(line) for line in requirements]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            theirs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # for another system or Python
        found.add(name)
        waiting += [_key(line) for line in theirs if "extra ==" not in line]
    return found


def _licence(name: str) -> str:
    """What a distribution says of its licence: the expression, the classifiers, or the first line."""
    about = metadata.metadata(name)
    classifiers = [one for one in about.get_all("Classifier") or [] if one.startswith("License")]
    written = about.get("License") or ""
    return about.get("License-Expression") or "; ".join([*classifiers, written.split("\n")[0]])
