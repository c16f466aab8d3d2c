"""`cache stats | clear`, `vacuum` and `reembed`: maintain an index."""

from __future__ import annotations

import click

from lightrag_jsonl.cli import trust
from lightrag_jsonl.cli.opening import (
    embedder_memories,
    looking,
    make_embedder,
    remember,
    require_index,
)
from lightrag_jsonl.cli.options import Setup, embedder_base_url, embedder_option, folder
from lightrag_jsonl.cli.output import Reply, counted, replying, table
from lightrag_jsonl.cli.progress import interruptible, text_bar


@click.group()
def cache() -> None:
    """Show or delete the model answers that the index has cached."""


@cache.command()
@folder
@replying
def stats(setup: Setup) -> Reply:
    """Show how many answers and vectors are kept."""
    with looking(setup) as rag:
        found = rag.cache_stats()
    tokens = f"{found.input_tokens:,} tokens in, {found.output_tokens:,} out"
    rows = (
        ("model answers", f"{found.completions:,} ({tokens})"),
        ("vectors", f"{found.embeddings:,} ({found.unused_embeddings:,} not in use)"),
    )
    return Reply(found, table(rows))


@cache.command()
@folder
@replying
def clear(setup: Setup) -> Reply:
    """Delete the cached model answers and the vectors not in use.

    The graph stays as it is, but the same texts or questions would have to be paid for again.
    """
    with looking(setup) as rag:
        number = rag.clear_cache()
    words = f"forgot {counted(number, 'answer or vector', 'answers and vectors')}"
    return Reply({"cleared": number}, words)


@click.command()
@folder
@replying
def vacuum(setup: Setup) -> Reply:
    """Give unused space back to the disk.

    The whole database is rewritten. Answers wait until that is done, since each of them stores a
    trace: some ten seconds for a gigabyte, so better not in busy hours.
    """
    with looking(setup) as rag:
        freed = rag.vacuum()
    return Reply({"bytes": freed}, f"{freed / 1e6:,.1f} MB given back")


@click.command()
@folder
@embedder_option(required=True)
@embedder_base_url
@replying
def reembed(setup: Setup, embedder: str, embedder_base_url: str | None) -> Reply:
    """Move the index to another embedder.

    No model reads the texts again. The old vectors are used until all new ones are stored.

    \b
    Example:
      lightrag-jsonl reembed -w kb --embedder st:BAAI/bge-m3
    """
    known = require_index(setup.working_dir)
    new = make_embedder(embedder, embedder_base_url)
    trust.named(embedder_base_url)
    hint = "the old vectors stay in use; run the same command again to go on"
    with interruptible(hint), looking(setup) as rag, text_bar() as watcher:
        number = rag.reembed(new, watcher=watcher)
        remember(setup.working_dir, known, embedder_memories(embedder, embedder_base_url))
    done = {"embedder": new.name, "dim": new.dim, "texts": number}
    return Reply(done, f"{counted(number, 'text')} embedded with {new.name}")
