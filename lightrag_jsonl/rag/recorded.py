"""What an index records about the parts that it was made with, and these parts made again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from lightrag_jsonl.core.address import Address
from lightrag_jsonl.core.errors import CorruptError
from lightrag_jsonl.core.protocols import LLM, Embedder
from lightrag_jsonl.providers import as_embedder, as_llm
from lightrag_jsonl.providers.configured import NO_MODEL, RECORDED, Setup, make_embedder, make_llm
from lightrag_jsonl.storage.opening import has_index, open_store
from lightrag_jsonl.storage.store import OWN_SETTINGS, Store

OPTIONS = "cli.options"  # the setting that holds the options of the last insert, as JSON


def recorded_settings(address: Address) -> dict[str, str] | None:
    """The settings that an index was built with; None if there is no index yet."""
    if not has_index(address):
        return None
    with closing(open_store(address, create=False)) as store, store.reader() as reader:
        return reader.settings()


def adopt_settings(store: Store, settings: Mapping[str, str]) -> None:
    """Record the settings of another index in a new one, which is then opened like that."""
    with store.transaction() as transaction:
        if not transaction.settings().keys() - OWN_SETTINGS:
            kept = {name: one for name, one in settings.items() if name not in OWN_SETTINGS}
            transaction.put_settings(kept)


def recorded_options(known: Mapping[str, str]) -> dict[str, Any]:
    """The options of indexing that the command line recorded."""
    try:
        return dict(json.loads(known.get(OPTIONS, "{}")))
    except (ValueError, TypeError) as error:
        raise CorruptError(f"the recorded options of the index cannot be read: {error}") from error


def choose_llm(
    given: LLM | Callable[..., object] | str | None, known: Mapping[str, str], setup: Setup
) -> LLM | None:
    """The given model, or else the recorded one; None for none."""
    given = known.get(RECORDED["llm"], NO_MODEL) if given is None else given
    return make_llm(given, setup) if isinstance(given, str) else as_llm(given)


def choose_embedder(
    given: Embedder | Callable[..., object] | str | None, known: Mapping[str, str], setup: Setup
) -> Embedder:
    """The given embedder, or else the recorded one, if necessary by its name only."""
    if given is not None and not isinstance(given, str):
        return as_embedder(given)
    name = known.get(RECORDED["embedder"], "hash")
    if given not in (None, name) or "embedder" not in known:
        return make_embedder(given or name, setup)
    built_with, dim = known["embedder"], int(known["dim"])
    made = make_embedder(name, setup, dim)
    return made if made.name == built_with else make_embedder(f"custom:{built_with}", setup, dim)
