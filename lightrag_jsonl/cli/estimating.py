"""`estimate`: what it would cost to read texts with a model."""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lightrag_jsonl.cli.folders import has_index
from lightrag_jsonl.cli.indexing import (
    INCOMPLETE,
    cutting_options,
    given_options,
    gleaning_options,
    tell_failures,
)
from lightrag_jsonl.cli.opening import going_on, inserting
from lightrag_jsonl.cli.options import Setup, as_json, models, with_options
from lightrag_jsonl.cli.output import counted, emit_json, say, table, to_json
from lightrag_jsonl.cli.sources import find_sources

if TYPE_CHECKING:
    from lightrag_jsonl.estimating import Estimate
    from lightrag_jsonl.sync import LightRAG

HALF = 0.5  # what providers charge for a batch, as a share of their price


def _price(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    if value is not None and not 0 <= value < math.inf:
        raise click.BadParameter(f"{value} is not a price")
    return value


price = partial(click.option, type=float, metavar="P", callback=_price)


@click.command()
@click.argument("files", nargs=-1, required=True)
@models
@with_options(cutting_options, gleaning_options)
@price("--price-input", help="Price of a million tokens read.")
@price("--price-cached", help="Of a million tokens read that the provider has cached.")
@price("--price-output", help="Of a million tokens written.")
@as_json
def estimate(
    setup: Setup,
    files: tuple[str, ...],
    price_input: float | None,
    price_cached: float | None,
    price_output: float | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Estimate what reading FILES with a model would cost.

    No model is asked, nothing is stored. Chunks, calls and input tokens come from the real
    prompts; output tokens from a rule fitted to recorded answers. Tokens are cacheable if an
    earlier request began with the same messages. Answers that the index in --working-dir (if
    there is one) has cached cost nothing.

    \b
    Examples:
      lightrag-jsonl estimate books/
      lightrag-jsonl estimate book.txt --price-input 0.15 --price-cached 0.075 --price-output 0.6
    """
    if (price_input is None) != (price_output is None):
        raise click.UsageError("--price-input and --price-output go together")
    if price_input is None and price_cached is not None:
        raise click.UsageError("--price-cached needs --price-input and --price-output")
    sources = find_sources(files)
    with _opened(setup, given_options(given)) as rag:
        found = rag.estimate(sources)
    cost = None
    if price_input is not None and price_output is not None:
        cost = found.cost(input=price_input, output=price_output, cached=price_cached)
    if as_json:
        emit_json({**_plain(found), "cost": cost})
    else:
        _tell(found, cost)
    tell_failures(setup.working_dir, found.failures)
    if found.failures:
        raise click.exceptions.Exit(INCOMPLETE)


@contextlib.contextmanager
def _opened(setup: Setup, given: dict[str, Any]) -> Iterator[LightRAG]:
    """The existing index with its recorded settings, or else a temporary one."""
    if has_index(setup.working_dir):
        with going_on(setup, given) as rag:
            yield rag
        return
    with tempfile.TemporaryDirectory() as folder:
        alone = replace(setup, working_dir=Path(folder), embedder=None)
        with inserting(alone, given) as rag:
            yield rag


def _plain(found: Estimate) -> dict[str, object]:
    value = to_json(found)
    assert isinstance(value, dict)
    return {**value, "usage": to_json(found.usage)}


def _tell(found: Estimate, cost: float | None) -> None:
    say(
        f"{counted(found.documents, 'document')}, {counted(found.chunks, 'chunk')}, "
        f"{found.text_tokens:,} tokens of text"
    )
    parts = (
        ("extraction", found.extraction),
        ("summaries (roughly)", found.summaries),
        ("together", found.usage),
    )
    rows = [(n, u.calls, u.input_tokens, u.cached_tokens, u.output_tokens) for n, u in parts]
    say(table(rows, ("", "calls", "tokens in", "cacheable", "tokens out")))
    if found.scale != 1.0:
        say(f"tokens out: {found.scale:.2f} times those of prose, as measured in this index")
    if cost is not None:
        say(f"at these prices: {cost:,.4f} (by batch files usually half: {cost * HALF:,.4f})")
