"""`cache`, `vacuum`, `reembed`, `rebuild` and `doctor`: maintain an index."""

from collections.abc import Mapping

import click

from lightrag_jsonl import LightRAG, LightRAGError, __version__
from lightrag_jsonl.cli import options
from lightrag_jsonl.cli.group import CommandOutput, command, index_command
from lightrag_jsonl.cli.options import models, option
from lightrag_jsonl.core.tokens import tokenizer_for
from lightrag_jsonl.providers.addresses import remember_addresses
from lightrag_jsonl.providers.connection import OPENAI_URL, checked_url
from lightrag_jsonl.providers.model_names import make_embedder
from lightrag_jsonl.providers.settings import (
    EMBEDDER,
    RERANKER,
    TASK_PREFIXES,
    Endpoint,
    Setup,
    chosen_models,
    chosen_setting,
    endpoint,
    has_endpoint,
)
from lightrag_jsonl.rag.opening import completed, given_addresses, open_index
from lightrag_jsonl.rag.settings import recorded_settings


@index_command(option("--clear", "Delete the cached answers.", is_flag=True))
def cache_command(rag: LightRAG, clear: bool) -> CommandOutput:
    """Show how many model answers are cached, or delete them. The graph is not changed."""
    if clear:
        return CommandOutput({"deleted": rag.admin.clear_cache()})
    return CommandOutput(rag.admin.cache())


@index_command()
def vacuum_command(rag: LightRAG) -> CommandOutput:
    """Free unused disk space. Other writes wait until it is done."""
    return CommandOutput({"freed_bytes": rag.admin.vacuum()})


@command(options.working_dir, options.embedder, options.embedder_base_url)
def reembed_command(setup: Setup) -> CommandOutput:
    """Move the index to another --embedder.

    No model is called. The old vectors are used until all new ones are stored.
    """
    if setup.embedder is None:
        raise click.UsageError("name the new embedder with --embedder")
    new_embedder = make_embedder(str(completed(setup, {}).embedder), setup)
    with open_index(Setup(setup.working_dir)) as rag:
        texts = rag.admin.reembed(new_embedder)
    remember_addresses(setup.working_dir, given_addresses(setup))
    return CommandOutput({"embedder": new_embedder.name, "dim": new_embedder.dim, "texts": texts})


@index_command(models)
def rebuild_command(rag: LightRAG) -> CommandOutput:
    """Rebuild graph, full text and vectors. No model is called."""
    lines = rag.admin.rebuild()
    return CommandOutput(lines, "\n".join(lines))


@command(
    models,
    option("--full", "Compare all derived data with its sources, not a sample.", is_flag=True),
)
def doctor_command(setup: Setup, full: bool) -> CommandOutput:
    """Show the models and settings in use, and check the index.

    Exit 1 if there is a problem. The complete database is read, and graph, full text and vectors are
    compared with the extracted data. `rebuild` repairs all three.
    """
    problems: list[str] = []
    settings: dict[str, str] | None = None
    models_in_use: dict[str, str] = {}
    try:
        settings = recorded_settings(setup.working_dir)
        models_in_use = _models_in_use(setup, settings)
        if settings is not None:
            with open_index(setup) as rag:
                problems += rag.admin.check(full=full)
    except LightRAGError as error:
        problems.append(str(error))
    findings = {
        "version": __version__,
        "tokenizer": tokenizer_for((settings or {}).get("tokenizer")).name,
        **models_in_use,
        "working_dir": setup.working_dir,
        "index": settings is not None,
        "problems": problems,
    }
    return CommandOutput(
        value=findings,
        display={**findings, "problems": len(problems)},
        status=1 if problems else 0,
        notes=[f"problem: {problem}" for problem in problems],
    )


def _models_in_use(setup: Setup, settings: Mapping[str, str] | None) -> dict[str, str]:
    """The models, the embedder and their endpoints, each with the source of the setting."""
    complete_setup = completed(setup, settings)
    models_in_use: dict[str, str] = {}
    for part, prefix in (("llm", ""), ("embedder", EMBEDDER)):
        name = str(getattr(complete_setup, part))
        models_in_use[part] = name
        models_in_use[f"{part}_from"] = chosen_setting(part, setup, settings)[1]
        models_in_use |= _endpoint_in_use(part, endpoint(complete_setup, prefix, model=name), name)
    reranker, source = chosen_setting("reranker", setup)
    server = endpoint(complete_setup, RERANKER)
    if reranker or server.url:
        models_in_use["reranker"] = reranker or ""
        models_in_use["reranker_from"] = source
        models_in_use |= _endpoint_in_use("reranker", server, reranker or "")
    _, source = chosen_models(setup, settings)
    for task, name in complete_setup.models.items():
        part = f"{task}_llm"
        models_in_use[part] = name
        models_in_use[f"{part}_from"] = "argument" if task in setup.models else source
        server = endpoint(complete_setup, TASK_PREFIXES[task], model=name)
        models_in_use |= _endpoint_in_use(part, server, name)
    return models_in_use


def _endpoint_in_use(part: str, server: Endpoint, name: str) -> dict[str, str]:
    """The endpoint of a model at a server, with key and further settings, and the sources of all."""
    if not has_endpoint(EMBEDDER if part == "embedder" else "", name):
        return {}
    key = f"from {server.key_from}" if server.key_from else "none"
    in_use = {
        f"{part}_endpoint": checked_url(server.url or ("" if part == "reranker" else OPENAI_URL)),
        f"{part}_endpoint_from": server.url_from,
        f"{part}_key": server.refused or key,
    }
    if server.settings_from:
        settings = [f"{setting} from {source}" for setting, source in server.settings_from.items()]
        in_use[f"{part}_settings"] = ", ".join(settings)
    return in_use
