"""Opens an index with models by name: names come from the folder, addresses and keys from the user."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lightrag_jsonl.core.errors import StorageError
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.providers.configured import NO_MODEL, RECORDED, Setup, chosen, make_llm
from lightrag_jsonl.rag.asynchronous import AsyncLightRAG
from lightrag_jsonl.rag.blocking import LightRAG
from lightrag_jsonl.rag.parts import OPTIONS, choose_embedder, recorded_options, recorded_settings

NOT_REMEMBERED = {"max_calls", "max_concurrent_calls", "max_input_tokens", "max_output_tokens"}


def index_arguments(
    given: Setup, options: Mapping[str, Any] | None = None, *, create: bool = False
) -> dict[str, Any]:
    """The arguments of `LightRAG`: the given or recorded parts and `options` of indexing.

    Without `create` a missing index is a `StorageError`.
    """
    known = recorded_settings(given.working_dir)
    if known is None and not create:
        make = f"make one with: lightrag-jsonl insert -w {given.working_dir} FILES"
        raise StorageError(f"no index in {given.working_dir}; {make}", path=str(given.working_dir))
    setup, picked = completed(given, known), _plain(options or {})
    if known and not create:
        picked = recorded_options(known) | picked
    embedder = choose_embedder(setup.embedder, known or {}, setup)
    if known is None:
        _ = embedder.dim  # an embedder that is not available fails before a folder is created
    return {
        "working_dir": setup.working_dir,
        "llm": make_llm(str(setup.llm), setup) or NO_MODEL,
        "embedder": embedder,
        "language": setup.language,
        "options": IndexOptions.from_mapping(picked),
        "prompts": setup.prompts,
    }


def open_index(
    given: Setup, options: Mapping[str, Any] | None = None, *, create: bool = False
) -> LightRAG:
    """Open an index; with `create` a missing one is made, and its parts and options are recorded."""
    arguments = index_arguments(given, options, create=create)
    rag = LightRAG(**arguments)
    if create:
        picked = _plain(options or {})
        kept = {name: value for name, value in picked.items() if name not in NOT_REMEMBERED}
        with rag._store.transaction() as transaction:
            transaction.put_settings(
                {
                    **rag._twin._model_names(),
                    RECORDED["prompts"]: str(arguments["prompts"] or ""),
                    OPTIONS: json.dumps(kept, ensure_ascii=False, sort_keys=True),
                }
            )
    return rag


def open_async(folder: Path) -> AsyncLightRAG:
    """Open an existing index with its recorded parts and options, for use in an event loop."""
    return AsyncLightRAG(**index_arguments(Setup(folder)))


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, with paths as absolute texts."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    return given | {n: str(v.resolve()) for n, v in given.items() if isinstance(v, Path)}


def completed(setup: Setup, known: Mapping[str, str] | None) -> Setup:
    """A setup whose names are those given, or else recorded, or else the user's defaults."""
    found = {
        name: chosen(name, setup, known)[0] for name in ("llm", "embedder", "language", "prompts")
    }
    return replace(
        setup,
        llm=found["llm"] or NO_MODEL,
        embedder=found["embedder"] or "hash",
        language=found["language"] or "en",
        prompts=Path(found["prompts"]).resolve() if found["prompts"] else None,
    )
