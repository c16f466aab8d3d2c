"""`entities`, `cache`, `vacuum`, `reembed`, `rebuild` and `doctor`: maintain an index."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from importlib import metadata

import click

from lightrag_jsonl import __version__
from lightrag_jsonl.cli.opening import (
    NO_MODEL,
    embedder_name,
    has_index,
    llm_name,
    make_embedder,
    open_for_questions,
    open_for_reading,
    open_for_writing,
    recorded,
    remember,
    require_index,
)
from lightrag_jsonl.cli.options import (
    Setup,
    embedder,
    embedder_base_url,
    folder,
    models,
    number_option,
)
from lightrag_jsonl.cli.output import Reply, counted, progress_bar, replying, table
from lightrag_jsonl.core.errors import LightRAGError
from lightrag_jsonl.core.tokens import tokenizer_for

KEY = "OPENAI_API_KEY"
OPENAI = "https://api.openai.com/v1"

# ── entities ────────────────────────────────────────────────────────────────────


@click.group()
def entities() -> None:
    """Find names that mean the same entity, and merge them.

    \b
    Examples:
      lightrag-jsonl entities duplicates -w kb
      lightrag-jsonl entities merge -w kb "Scrooge" "old Scrooge" --into "Ebenezer Scrooge"
      lightrag-jsonl entities unmerge -w kb "old Scrooge"
    """


@entities.command()
@folder
@number_option("-n", "--limit", default=50, show_default=True)
@replying
def duplicates(setup: Setup, limit: int) -> Reply:
    """List pairs of entities that may be the same, most likely first. Nothing is changed."""
    with open_for_reading(setup) as rag:
        found = rag.entities.duplicates(limit=limit)
    rows = [
        (
            f"{pair.score:.2f}",
            pair.name,
            pair.into,
            " / ".join(dict.fromkeys(kind or "?" for kind in pair.types)),
            "; ".join(item.detail for item in pair.evidence),
        )
        for pair in found
    ]
    header = ("score", "name", "may be", "types", "evidence")
    return Reply(found, table(rows, header) if rows else "no possible duplicates")


@entities.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--into", required=True, metavar="NAME", help="The name of the merged entity.")
@folder
@replying
def merge(setup: Setup, names: tuple[str, ...], into: str) -> Reply:
    """Merge the entities NAMES. What was read from the texts is kept, so this can be undone."""
    with open_for_questions(setup) as rag:
        rag.entities.merge(names, into=into)
    undo = " ".join(f'"{name}"' for name in names if name != into)
    words = f"{', '.join(names)} → {into}"
    words += f"\nto undo: lightrag-jsonl entities unmerge -w {setup.working_dir} {undo}"
    return Reply({"merged": names, "into": into}, words)


@entities.command()
@click.argument("names", nargs=-1, required=True)
@folder
@replying
def unmerge(setup: Setup, names: tuple[str, ...]) -> Reply:
    """Make merged NAMES entities of their own again.

    Given the name that others were merged into, these become entities of their own.
    """
    with open_for_questions(setup) as rag:
        rag.entities.unmerge(*names)
    return Reply({"unmerged": names}, f"unmerged: {', '.join(names)}")


# ── maintenance ─────────────────────────────────────────────────────────────────


@click.group()
def cache() -> None:
    """Show or delete the model's answers that the index has cached."""


@cache.command()
@folder
@replying
def stats(setup: Setup) -> Reply:
    """Show how many answers are cached."""
    with open_for_reading(setup) as rag:
        found = rag.admin.cache()
    size = f"{found.completion_bytes / 1e6:,.1f} MB"
    return Reply(found, f"{counted(found.completions, 'cached answer')}, {size}")


@cache.command()
@folder
@replying
def clear(setup: Setup) -> Reply:
    """Delete the cached answers of the model.

    The graph stays as it is, but the same texts or questions would have to be paid for again.
    """
    with open_for_reading(setup) as rag:
        number = rag.admin.clear_cache()
    return Reply({"cleared": number}, f"deleted {counted(number, 'cached answer')}")


@click.command()
@folder
@replying
def vacuum(setup: Setup) -> Reply:
    """Give unused space back to the disk.

    The whole database is rewritten; until that is done, nothing else can be written.
    """
    with open_for_reading(setup) as rag:
        freed = rag.admin.vacuum()
    return Reply({"bytes": freed}, f"{freed / 1e6:,.1f} MB freed")


@click.command()
@folder
@embedder
@embedder_base_url
@replying
def reembed(setup: Setup, embedder: str | None, embedder_base_url: str | None) -> Reply:
    """Move the index to another embedder.

    No model reads the texts again. The old vectors are used until all new ones are stored.

    \b
    Example:
      lightrag-jsonl reembed -w kb --embedder st:BAAI/bge-m3
    """
    if embedder is None:
        raise click.UsageError("name the new embedder with --embedder")
    require_index(setup.working_dir)
    spec = embedder_name(Setup(setup.working_dir, embedder=embedder), {})
    new = make_embedder(spec, embedder_base_url)
    with open_for_reading(setup) as rag, progress_bar("texts") as progress:
        number = rag.admin.reembed(new, progress=progress)
    remember(setup.working_dir, {"cli.embedder": spec})
    done = {"embedder": new.name, "dim": new.dim, "texts": number}
    return Reply(done, f"{counted(number, 'text')} embedded with {new.name}")


@click.command()
@models
@replying
def rebuild(setup: Setup) -> Reply:
    """Make graph, full text and vectors anew from the texts and what was read from them.

    No model is asked.
    """
    with open_for_writing(setup, {}) as rag:
        lines = rag.admin.rebuild()
    return Reply(lines, "\n".join(lines))


# ── doctor ──────────────────────────────────────────────────────────────────────


@click.command()
@models
@replying
def doctor(setup: Setup) -> Reply:
    """Show what is installed and what will be used, and check the index.

    Exit 1 if there is a problem. The whole database is read. What is derived from the texts can
    be made anew with: lightrag-jsonl rebuild
    """
    problems: list[str] = []
    known: dict[str, str] = {}
    try:
        known = recorded(setup.working_dir)
        if has_index(setup.working_dir):
            with open_for_reading(setup) as rag:
                problems += rag.admin.check()
    except LightRAGError as error:
        problems.append(str(error))
    packages = dict(_packages())
    problems += [f"{name} is not installed" for name, found in packages.items() if not found]
    model, tokenizer = llm_name(setup, known), tokenizer_for(known.get("tokenizer"))
    found = {
        "version": __version__,
        "python": platform.python_version(),
        "packages": packages,
        "tokenizer": tokenizer.name,
        "embedder": setup.embedder or known.get("embedder") or embedder_name(setup, known),
        "llm": model,
        "endpoint": _endpoint(setup) if model != NO_MODEL else "",
        "key": bool(os.environ.get(KEY)),
        "working_dir": setup.working_dir,
        "index": has_index(setup.working_dir),
        "problems": problems,
    }
    return Reply(found, "\n".join(_doctor_lines(found, packages)), 1 if problems else 0)


def _packages() -> Iterator[tuple[str, str]]:
    """The packages that this one requires, without extras, and their versions; "" if missing."""
    for requirement in metadata.requires("lightrag-jsonl") or ():
        if "extra ==" in requirement:
            continue
        name = requirement.split(">")[0].split("=")[0].strip()
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            yield name, ""


def _endpoint(setup: Setup) -> str:
    return setup.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI


def _doctor_lines(found: Mapping[str, object], packages: Mapping[str, str]) -> Iterator[str]:
    yield table([(name, version or "missing") for name, version in packages.items()]) + "\n"
    index = f"{found['working_dir']}: " + ("OK" if found["index"] else "none yet")
    model = (
        f"{found['llm']} at {found['endpoint']}" if found["endpoint"] else "none: language rules"
    )
    yield table(
        [
            ("lightrag-jsonl", found["version"]),
            ("Python", found["python"]),
            ("tokenizer", found["tokenizer"]),
            ("embedder", found["embedder"]),
            ("model", model),
            (KEY, "set" if found["key"] else "not set"),
            ("index", "see the problems below" if found["problems"] else index),
        ]
    )
    problems = found["problems"]
    assert isinstance(problems, list)
    yield from (f"problem: {problem}" for problem in problems)
