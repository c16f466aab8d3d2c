"""`cache`, `vacuum`, `reembed` and `rebuild`: maintain an index."""

import click

from lightrag_jsonl import LightRAG
from lightrag_jsonl.cli import options
from lightrag_jsonl.cli.group import CommandOutput, command, index_command
from lightrag_jsonl.cli.options import models, option
from lightrag_jsonl.providers.addresses import remember_addresses
from lightrag_jsonl.providers.model_names import make_embedder
from lightrag_jsonl.providers.settings import Setup
from lightrag_jsonl.rag.opening import completed, given_addresses, open_index


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

    No model is called. The old vectors are used until all new ones are stored. The embedders:
    `lightrag-jsonl help models`.
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
