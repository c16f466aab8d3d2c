"""Opens an index with models by name: names come from the folder, addresses and keys from the user."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lightrag_jsonl.core.address import Address
from lightrag_jsonl.core.errors import StorageError
from lightrag_jsonl.core.languages import usual_language
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.core.protocols import LLM
from lightrag_jsonl.core.types import ModelTask
from lightrag_jsonl.providers.addresses import forget_addresses, remember_addresses
from lightrag_jsonl.providers.model_names import NO_MODEL, make_llm, make_reranker
from lightrag_jsonl.providers.settings import (
    EMBEDDER,
    RECORDED,
    TASK_PREFIXES,
    Setup,
    chosen_models,
    chosen_setting,
    endpoint,
    has_endpoint,
)
from lightrag_jsonl.rag.asynchronous import AsyncLightRAG
from lightrag_jsonl.rag.blocking import LightRAG
from lightrag_jsonl.rag.settings import (
    OPTIONS,
    check_new_models,
    choose_embedder,
    recorded_options,
    recorded_settings,
)

NOT_REMEMBERED = {"max_calls", "max_concurrent_calls", "max_input_tokens", "max_output_tokens"}


def index_arguments(
    setup: Setup, options: Mapping[str, Any] | None = None, *, create: bool = False
) -> dict[str, Any]:
    """The arguments of `LightRAG`: parts and `options` of indexing, from the caller or the index.

    Without `create` a missing index is a `StorageError`.
    """
    folder = setup.working_dir
    recorded = recorded_settings(folder)
    if not create and isinstance(folder, Path) and folder.is_file():
        insert = f"lightrag-jsonl insert -w kb {shlex.quote(str(folder))}"
        raise StorageError(f"{folder} is a file, not the folder of an index; {insert} reads it")
    if recorded is None and not create:
        advice = f"make one with: lightrag-jsonl insert -w {shlex.quote(str(folder))} FILES"
        raise StorageError(f"no index in {folder}; {advice}", path=str(folder))
    if recorded is None:
        forget_addresses(folder)  # of an earlier index in this place
    setup = completed(setup, recorded)
    index_options = _plain_options(options or {})
    if recorded and not create:
        index_options = recorded_options(recorded) | index_options
    embedder = choose_embedder(setup.embedder, recorded or {}, setup)
    if recorded is None:
        _ = embedder.dim  # an embedder that is not available fails before a folder is created
    models = {task: make_llm(name, setup, task) for task, name in setup.models.items()}
    return {
        "working_dir": folder,
        "llm": make_llm(str(setup.llm), setup) or NO_MODEL,
        "models": {task: model or NO_MODEL for task, model in models.items()},
        "embedder": embedder,
        "reranker": make_reranker(setup),
        "check": chosen_setting("check", setup)[0],
        "language": setup.language,
        "options": IndexOptions.from_mapping(index_options),
        "prompts": setup.prompts,
    }


def open_index(
    setup: Setup, options: Mapping[str, Any] | None = None, *, create: bool = False
) -> LightRAG:
    """Open an index; with `create` a missing index is made, and parts and options are recorded."""
    arguments = index_arguments(setup, options, create=create)
    rag = LightRAG(**arguments)
    if create:
        remembered = {
            name: value
            for name, value in _plain_options(options or {}).items()
            if name not in NOT_REMEMBERED
        }
        settings = {
            **rag.engine.model_settings(),
            RECORDED["prompts"]: str(arguments["prompts"] or ""),
            OPTIONS: json.dumps(remembered, ensure_ascii=False, sort_keys=True),
        }
        with rag.engine.store.transaction() as transaction:
            transaction.put_settings(settings)
        remember_addresses(setup.working_dir, given_addresses(setup))
    return rag


def check_models(setup: Setup) -> None:
    """Raise `ConfigError` for a model without a key that the index would record, before there is an index."""
    recorded = recorded_settings(setup.working_dir) or {}
    complete_setup = completed(setup, recorded)
    models: dict[ModelTask, LLM | None] = {}
    for task, name in complete_setup.models.items():
        models[task] = make_llm(name, complete_setup, task)
    llm = make_llm(str(complete_setup.llm), complete_setup)
    check_new_models(llm, models, recorded)


def open_async(
    address: Address,
    setup: Setup | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    search_processes: int = 0,
) -> AsyncLightRAG:
    """Open an existing index with the recorded parts and options, for use in an event loop.

    Models of a `setup`, and `options`, replace the recorded ones.
    """
    arguments = index_arguments(replace(setup or Setup(), working_dir=address), options)
    return AsyncLightRAG(**arguments, search_processes=search_processes)


def completed(setup: Setup, recorded: Mapping[str, str] | None) -> Setup:
    """A setup without gaps: names come from the setup, or else the index, or the user's defaults."""
    llm, _ = chosen_setting("llm", setup, recorded)
    models, _ = chosen_models(setup, recorded)
    embedder, _ = chosen_setting("embedder", setup, recorded)
    language, _ = chosen_setting("language", setup, recorded)
    prompts, _ = chosen_setting("prompts", setup, recorded)
    return replace(
        setup,
        llm=llm or NO_MODEL,
        models=models,
        embedder=embedder or "hash",
        language=usual_language(language or "en", (recorded or {}).get("language", "")),
        prompts=Path(prompts).resolve() if prompts else None,
    )


def given_addresses(setup: Setup) -> dict[str, str]:
    """The addresses that are arguments, by the names of the models there."""
    complete_setup = completed(setup, recorded_settings(setup.working_dir))
    names = {"": str(complete_setup.llm), EMBEDDER: str(complete_setup.embedder)}
    names |= {TASK_PREFIXES[task]: name for task, name in complete_setup.models.items()}
    addresses: dict[str, str] = {}
    for prefix, name in names.items():
        server = endpoint(setup, prefix, model=name)
        if has_endpoint(prefix, name) and server.url and server.url_from == "argument":
            addresses[name] = server.url
    return addresses


def _plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with a value, and paths as absolute texts."""
    plain: dict[str, Any] = {}
    for name, value in options.items():
        if value in (None, ()):
            continue
        plain[name] = str(value.resolve()) if isinstance(value, Path) else value
    return plain
