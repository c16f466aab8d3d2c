"""`entities`, `cache`, `vacuum`, `reembed`, `rebuild` and `doctor`: maintain an index."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from lightrag_jsonl import LightRAG, LightRAGError, __version__
from lightrag_jsonl.cli import opening, options
from lightrag_jsonl.cli.group import Reply, command, index_command, main
from lightrag_jsonl.cli.options import NO_MODEL, NUMBER, Setup, models, option
from lightrag_jsonl.cli.output import progress_bar, table
from lightrag_jsonl.core.tokens import tokenizer_for

KEY = "OPENAI_API_KEY"
OPENAI = "https://api.openai.com/v1"
entity_names = click.argument("names", nargs=-1, required=True)


@main.group()
def entities() -> None:
    """Find names that mean the same entity, and merge them."""


@index_command(option("-n --limit", "How many.", NUMBER, default=50), group=entities)
def duplicates(rag: LightRAG, limit: int) -> Reply:
    """List pairs of entities that may be the same, most likely first. Nothing is changed."""
    found = rag.entities.duplicates(limit=limit)
    rows = [{**asdict(one), "evidence": [sign.detail for sign in one.evidence]} for one in found]
    words = table(rows, "name", "into", "score", "types", "evidence")
    return Reply(found, words or "no possible duplicates")


@index_command(
    entity_names, option("--into", "The merged entity.", required=True), *models, group=entities
)
def merge(rag: LightRAG, names: tuple[str, ...], into: str) -> Reply:
    """Merge the entities NAMES. What was read from the texts is kept, so this can be undone."""
    rag.entities.merge(names, into=into)
    undo = " ".join(f'"{name}"' for name in names if name != into)
    note = f"to undo: lightrag-jsonl entities unmerge -w {rag.working_dir} {undo}"
    return Reply({"merged": names, "into": into}, notes=[note])


@index_command(entity_names, *models, group=entities)
def unmerge(rag: LightRAG, names: tuple[str, ...]) -> Reply:
    """Make merged NAMES, or all that were merged into NAMES, entities of their own again."""
    rag.entities.unmerge(*names)
    return Reply({"unmerged": names})


@index_command(option("--clear", "Delete them.", is_flag=True))
def cache(rag: LightRAG, clear: bool) -> Reply:
    """Show how many answers of the model are cached, or delete them. The graph stays."""
    return Reply({"deleted": rag.admin.clear_cache()} if clear else rag.admin.cache())


@index_command()
def vacuum(rag: LightRAG) -> Reply:
    """Give unused space back to the disk. Until that is done, nothing else can be written."""
    return Reply({"freed_bytes": rag.admin.vacuum()})


@command(options.working_dir, options.embedder, options.embedder_base_url)
def reembed(setup: Setup) -> Reply:
    """Move the index to another --embedder.

    No model reads the texts again. The old vectors are used until all new ones are stored.
    """
    if setup.embedder is None:
        raise click.UsageError("name the new embedder with --embedder")
    setup = opening.completed(setup, {})
    new = opening.make_embedder(setup)
    with opening.open_index(Setup(setup.working_dir)) as rag, progress_bar("texts") as progress:
        number = rag.admin.reembed(new, progress=progress)
        opening.remember(rag, embedder=setup.embedder)
    return Reply({"embedder": new.name, "dim": new.dim, "texts": number})


@index_command(*models)
def rebuild(rag: LightRAG) -> Reply:
    """Make graph, full text and vectors anew. No model is asked."""
    lines = rag.admin.rebuild()
    return Reply(lines, "\n".join(lines))


@command(*models)
def doctor(setup: Setup) -> Reply:
    """Show what will be used, and check the index.

    Exit 1 if there is a problem. The whole database is read. `rebuild` makes anew what is derived
    from the texts.
    """
    problems: list[str] = []
    known: dict[str, str] | None = None
    try:
        known = opening.recorded(setup.working_dir)
        if known is not None:
            with opening.open_index(setup) as rag:
                problems += rag.admin.check()
    except LightRAGError as error:
        problems.append(str(error))
    used = opening.completed(setup, known or {})
    endpoint = setup.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI
    remote = str(used.embedder).startswith("openai:")
    found = {
        "version": __version__,
        "tokenizer": tokenizer_for((known or {}).get("tokenizer")).name,
        "llm": used.llm if used.llm == NO_MODEL else f"{used.llm} at {endpoint}",
        "embedder": used.embedder,
        "embedder_endpoint": (setup.embedder_base_url or endpoint) if remote else "",
        "key": f"{KEY} is {'set' if os.environ.get(KEY) else 'not set'}",
        "working_dir": setup.working_dir,
        "index": known is not None,
        "problems": problems,
    }
    notes = [f"problem: {problem}" for problem in problems]
    return Reply(found, {**found, "problems": len(problems)}, 1 if problems else 0, notes)
