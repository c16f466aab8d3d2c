"""`cache`, `vacuum`, `reembed`, `rebuild` and `doctor`: maintain an index."""

from collections.abc import Mapping

import click

from lightrag_jsonl import LightRAG, LightRAGError, __version__
from lightrag_jsonl.cli import options
from lightrag_jsonl.cli.group import Reply, command, index_command
from lightrag_jsonl.cli.options import models, option
from lightrag_jsonl.core.tokens import tokenizer_for
from lightrag_jsonl.providers.connection import OPENAI_URL, checked_url
from lightrag_jsonl.providers.model_names import NO_MODEL, make_embedder
from lightrag_jsonl.providers.settings import Setup, chosen_setting, endpoint
from lightrag_jsonl.rag.opening import completed, open_index
from lightrag_jsonl.rag.settings import recorded_settings


@index_command(option("--clear", "Delete them.", is_flag=True))
def cache(rag: LightRAG, clear: bool) -> Reply:
    """Show how many model answers are cached, or delete them. The graph is not changed."""
    return Reply({"deleted": rag.admin.clear_cache()} if clear else rag.admin.cache())


@index_command()
def vacuum(rag: LightRAG) -> Reply:
    """Free unused disk space. Other writes wait until it is done."""
    return Reply({"freed_bytes": rag.admin.vacuum()})


@command(options.working_dir, options.embedder, options.embedder_base_url)
def reembed(setup: Setup) -> Reply:
    """Move the index to another --embedder.

    No model is called. The old vectors are used until all new ones are stored.
    """
    if setup.embedder is None:
        raise click.UsageError("name the new embedder with --embedder")
    new = make_embedder(str(completed(setup, {}).embedder), setup)
    with open_index(Setup(setup.working_dir)) as rag:
        number = rag.admin.reembed(new)
    return Reply({"embedder": new.name, "dim": new.dim, "texts": number})


@index_command(*models)
def rebuild(rag: LightRAG) -> Reply:
    """Rebuild graph, full text and vectors. No model is called."""
    lines = rag.admin.rebuild()
    return Reply(lines, "\n".join(lines))


@command(
    *models,
    option("--full", "Compare all derived data with its sources, not a sample.", is_flag=True),
)
def doctor(setup: Setup, full: bool) -> Reply:
    """Show what will be used, and check the index.

    Exit 1 if there is a problem. The complete database is read, and graph, full text and vectors are
    compared with the extracted data. `rebuild` repairs them.
    """
    problems: list[str] = []
    known: dict[str, str] | None = None
    used: dict[str, str] = {}
    try:
        known = recorded_settings(setup.working_dir)
        used = _models(setup, known)
        if known is not None:
            with open_index(setup) as rag:
                problems += rag.admin.check(full=full)
    except LightRAGError as error:
        problems.append(str(error))
    found = {
        "version": __version__,
        "tokenizer": tokenizer_for((known or {}).get("tokenizer")).name,
        **used,
        "working_dir": setup.working_dir,
        "index": known is not None,
        "problems": problems,
    }
    notes = [f"problem: {problem}" for problem in problems]
    return Reply(found, {**found, "problems": len(problems)}, 1 if problems else 0, notes)


def _models(setup: Setup, known: Mapping[str, str] | None) -> dict[str, str]:
    """The model, the embedder and the endpoints that will be used, each with where it comes from."""
    used, found = completed(setup, known), dict[str, str]()
    for part in ("llm", "embedder"):
        name = str(getattr(used, part))
        found |= {part: name, f"{part}_from": chosen_setting(part, setup, known)[1]}
        is_own = name == NO_MODEL or name.startswith("custom:")  # it has no endpoint that we know
        if is_own if part == "llm" else not name.startswith("openai:"):
            continue
        at = endpoint(used, "" if part == "llm" else "embedder_")
        found[f"{part}_endpoint"] = checked_url(at.url or OPENAI_URL)
        found[f"{part}_endpoint_from"] = at.url_from
        found[f"{part}_key"] = at.refused or (f"from {at.key_from}" if at.key_from else "none")
    return found
