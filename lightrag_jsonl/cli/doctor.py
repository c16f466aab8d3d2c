"""`doctor`: what is installed, what will be used, and whether the index is sound."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from lightrag_jsonl.cli import trust
from lightrag_jsonl.cli.folders import has_index
from lightrag_jsonl.cli.opening import (
    NO_MODEL,
    embedder_spec,
    embedder_url,
    going_on,
    llm_url,
    make_embedder,
    recorded,
)
from lightrag_jsonl.cli.options import Setup, models
from lightrag_jsonl.cli.output import Reply, replying, table
from lightrag_jsonl.errors import StorageError

CORE = (
    "click",
    "faiss-cpu",
    "jinja2",
    "jsonschema-rs",
    "networkx",
    "numpy",
    "openai",
    "orjson",
    "PyYAML",
    "rjieba",
    "scipy",
    "sentence-transformers",
    "textblob",
    "tiktoken",
    "tqdm",
)
EXTRAS: Mapping[str, tuple[str, ...]] = {"rdf": ("pyoxigraph",)}
KEY = "OPENAI_API_KEY"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What `doctor` found; the version of a missing package is None.

    An endpoint is "" if none was named; then OPENAI_BASE_URL counts, or else OpenAI's own.
    """

    version: str
    python: str
    packages: Mapping[str, str | None]
    extras: Mapping[str, Mapping[str, str | None]]
    tokenizer: str
    tokenizer_error: float
    embedder: str
    embedder_base_url: str
    llm: str
    base_url: str
    key: bool
    working_dir: Path
    index: bool
    repaired: tuple[str, ...]
    problems: tuple[str, ...]


@click.command()
@models
@click.option("--repair", is_flag=True, help="Rebuild everything derived from texts and records.")
@replying
def doctor(setup: Setup, repair: bool) -> Reply:
    """Show what will be used, and check the index.

    Exit 1 if there is a problem. The check reads the whole index: every reference, every
    count, the full-text index, and the graph against the records it was merged from. --repair
    merges the graph again and rebuilds the full-text index and the vectors; the texts and what
    was read from them stay as they are, and no model is asked.
    """
    trust.named(setup.base_url, setup.embedder_base_url)
    found = diagnose(setup, repair=repair)
    return Reply(found, "\n".join(_lines(found)), 1 if found.problems else 0)


def diagnose(setup: Setup, *, repair: bool = False) -> Diagnosis:
    """Check everything; an index that cannot be opened is reported as a problem, too."""
    import platform
    import sqlite3

    from lightrag_jsonl.defaults import tokenizer_for

    problems: list[str] = []
    repaired: list[str] = []
    known: dict[str, str] = {}
    try:
        check_sources(setup.working_dir)
        known = recorded(setup.working_dir)
        if repair and has_index(setup.working_dir):
            with going_on(setup, {}) as rag:
                repaired = rag.repair()
        problems += check_index(setup.working_dir)
    except StorageError as error:
        problems.append(str(error))
    packages = {name: _version_of(name) for name in CORE}
    problems += [f"{name} is not installed" for name, found in packages.items() if found is None]
    tokenizer = tokenizer_for(known.get("tokenizer"))
    return Diagnosis(
        version=own_version(),
        python=platform.python_version(),
        packages={**packages, "SQLite": sqlite3.sqlite_version},
        extras={extra: {n: _version_of(n) for n in names} for extra, names in EXTRAS.items()},
        tokenizer=tokenizer.name,
        tokenizer_error=getattr(tokenizer, "error", 0.0),
        embedder=_embedder_name(setup, known),
        embedder_base_url=_embedder_endpoint(setup, known),
        llm=setup.llm or known.get("cli.llm") or NO_MODEL,
        base_url=llm_url(setup, known) or "",
        key=bool(os.environ.get(KEY)),
        working_dir=setup.working_dir,
        index=has_index(setup.working_dir),
        repaired=tuple(repaired),
        problems=tuple(problems),
    )


def check_sources(working_dir: Path) -> None:
    """Raise `CorruptError` if the index has lost data that cannot be rebuilt from the rest."""
    from lightrag_jsonl.storage import values
    from lightrag_jsonl.storage.database import Database

    if has_index(working_dir):
        with contextlib.closing(Database(working_dir)) as database, database.reading() as reading:
            values.check_sources(reading, database.path)


def check_index(working_dir: Path) -> list[str]:
    """All problems of a folder's index; none if there is no index."""
    from lightrag_jsonl.indexing.checking import fold_problems, id_problems
    from lightrag_jsonl.storage.checks import problems
    from lightrag_jsonl.storage.database import Database
    from lightrag_jsonl.storage.derived import derived_problems
    from lightrag_jsonl.storage.snapshot import SnapshotKeeper

    if not has_index(working_dir):
        return []
    with contextlib.closing(Database(working_dir)) as database:
        with database.reading() as connection:
            found = problems(connection)
            if not found:
                found += id_problems(connection) + fold_problems(connection)
        if not found:
            with SnapshotKeeper(database).snapshot() as snapshot:
                found += derived_problems(snapshot)
    return found


def own_version() -> str:
    """This package's version."""
    from lightrag_jsonl import __version__

    return __version__


def _version_of(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _embedder_name(setup: Setup, known: Mapping[str, str]) -> str:
    """The embedder a command would use; the recorded one if a program, not the CLI, chose it."""
    if setup.embedder is None and "cli.embedder" not in known and "embedder" in known:
        return known["embedder"]
    return make_embedder(embedder_spec(setup, known), embedder_url(setup, known)).name


def _embedder_endpoint(setup: Setup, known: Mapping[str, str]) -> str:
    elsewhere = embedder_spec(setup, known).startswith("openai:")
    return embedder_url(setup, known) or "" if elsewhere else ""


# ── for people ──────────────────────────────────────────────────────────────────


def _lines(found: Diagnosis) -> Iterator[str]:
    rows = [("lightrag-jsonl", found.version), ("Python", found.python)]
    rows += [(name, version or "missing") for name, version in found.packages.items()]
    for extra, packages in found.extras.items():
        for name, version in packages.items():
            rows.append((name, f"{version or 'missing'} (extra: {extra})"))
    yield table(rows) + "\n"
    about = f"±{found.tokenizer_error:.0%}" if found.tokenizer_error else "exact"
    model = _at(found.llm, found.base_url)
    used = (
        ("tokenizer", f"{found.tokenizer} ({about})"),
        ("embedder", _at(found.embedder, found.embedder_base_url)),
        ("model", "none: language rules" if found.llm == NO_MODEL else model),
        (KEY, "set" if found.key else "not set"),
        ("index", _index_line(found)),
    )
    yield table(used)
    yield from (f"repaired: {line}" for line in found.repaired)
    yield from (f"problem: {problem}" for problem in found.problems)


def _at(model: str, base_url: str) -> str:
    if not base_url:
        return model
    refused = "" if trust.is_trusted(base_url) else " (you never named it: nothing is sent there)"
    return f"{model} at {base_url}{refused}"


def _index_line(found: Diagnosis) -> str:
    if found.problems:
        return f"{found.working_dir}: see below"
    return f"{found.working_dir}: " + ("sound" if found.index else "none yet")
