"""The settings recorded in an index, and the choice of models and tokenizer by these settings."""

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, TypeAlias

from lightrag_jsonl.core.address import Address
from lightrag_jsonl.core.errors import ConfigError, SettingsError
from lightrag_jsonl.core.protocols import LLM, Embedder, Tokenizer, VisionLLM
from lightrag_jsonl.core.tokens import tokenizer_for
from lightrag_jsonl.core.types import MODEL_TASKS, ModelTask
from lightrag_jsonl.core.user_code import CheckedTokenizer
from lightrag_jsonl.providers import OpenAILLM, as_embedder, as_llm
from lightrag_jsonl.providers.model_names import (
    NO_MODEL,
    MissingModel,
    make_embedder,
    make_llm,
    name_of,
)
from lightrag_jsonl.providers.settings import RECORDED, RECORDED_TASKS, Setup
from lightrag_jsonl.storage.opening import has_index, open_store
from lightrag_jsonl.storage.status import QUESTIONS_READ
from lightrag_jsonl.storage.store import OWN_SETTINGS, Store

LLMArgument: TypeAlias = LLM | Callable[..., object] | str
EmbedderArgument: TypeAlias = Embedder | Callable[..., object] | str

OPTIONS = "cli.options"  # the setting with the options of the last insert, as JSON


def recorded_settings(address: Address) -> dict[str, str] | None:
    """The settings recorded in an index; `None` if there is no index yet."""
    if not has_index(address):
        return None
    with closing(open_store(address, create=False)) as store, store.view() as view:
        return view.settings()


def is_built(recorded: Mapping[str, str]) -> bool:
    """Whether an index with these settings has had a commit, which records the embedder."""
    return "embedder" in recorded


def recorded_options(recorded: Mapping[str, str]) -> dict[str, Any]:
    """The options of indexing, as recorded by the command line."""
    return dict(json.loads(recorded.get(OPTIONS, "{}")))


def adopt_settings(store: Store, settings: Mapping[str, str]) -> None:
    """Record the settings of another index in a new store, before the first opening."""
    with store.transaction() as transaction:
        is_new = not transaction.settings().keys() - OWN_SETTINGS
        if is_new:
            transaction.put_settings(
                {
                    name: value
                    for name, value in settings.items()
                    if name not in {*OWN_SETTINGS, QUESTIONS_READ}
                }
            )


def check_settings(store: Store, expected: Mapping[str, str], address: Address) -> None:
    """Raise `SettingsError` if the index was built with another embedder, language or tokenizer."""
    with store.view() as view:
        recorded = view.settings()
    for name, value in expected.items():
        built_with = recorded.get(name, value)
        if built_with == value:
            continue
        if name == "embedder":
            alternative = "move it to the new one with reembed"
        else:
            alternative = "insert the documents into a new folder"
        raise SettingsError(
            f"{address} was built with {name} {built_with!r}, not {value!r}: "
            f"open it with that {name}, or {alternative}",
            path=store.location,
        )


def check_new_models(
    llm: LLM | None, models: Mapping[ModelTask, LLM | None], recorded: Mapping[str, str]
) -> None:
    """Raise `ConfigError` for a model that an index would record, and that cannot be asked: one without a key
    would fail every later question.
    """
    models_by_setting = {RECORDED["llm"]: llm}
    for task, task_model in models.items():
        models_by_setting[RECORDED_TASKS[task]] = task_model
    for setting, model in models_by_setting.items():
        is_new = not is_built(recorded) or recorded.get(setting) != name_of(model)
        if is_new and isinstance(model, OpenAILLM | MissingModel):
            model.check_key()


def choose_llm(
    argument: LLMArgument | None, recorded: Mapping[str, str], setup: Setup
) -> LLM | None:
    """The model of the argument, or else the recorded model; `None` stands for no model."""
    if argument is None:
        argument = recorded.get(RECORDED["llm"], NO_MODEL)
    if isinstance(argument, str):
        return make_llm(argument, setup)
    return as_llm(argument)


def choose_models(
    arguments: Mapping[ModelTask, LLMArgument], recorded: Mapping[str, str], setup: Setup
) -> dict[ModelTask, LLM | None]:
    """The models for single tasks: of the arguments, or else the recorded models.

    `ConfigError` for a task that does not exist.
    """
    for task in sorted(set(arguments) - set(MODEL_TASKS)):
        raise ConfigError(
            f"models: there is no task {task!r}; the tasks are {', '.join(MODEL_TASKS)}"
        )
    models: dict[ModelTask, LLM | None] = {}
    for task in MODEL_TASKS:
        argument = arguments.get(task) or recorded.get(RECORDED_TASKS[task])
        if isinstance(argument, str):
            if argument:
                models[task] = make_llm(argument, setup, task)
        elif argument is not None:
            models[task] = as_llm(argument)
    vision_model = models.get("see")
    if vision_model is not None and not isinstance(vision_model, VisionLLM):
        raise ConfigError(
            f"models: {vision_model.name} cannot see pictures, since it has no method `see`; "
            "an OpenAILLM has"
        )
    return models


def choose_embedder(
    argument: EmbedderArgument | None, recorded: Mapping[str, str], setup: Setup
) -> Embedder:
    """The embedder of the argument, or else the recorded embedder.

    An embedder unavailable here has a name only, and raises `EmbeddingError` when used.
    """
    if argument is not None and not isinstance(argument, str):
        return as_embedder(argument)
    recorded_name = recorded.get(RECORDED["embedder"], "hash")
    if argument not in (None, recorded_name) or "embedder" not in recorded:
        return make_embedder(argument or recorded_name, setup)
    built_with = recorded["embedder"]
    dim = int(recorded["dim"])
    embedder = make_embedder(recorded_name, setup, dim)
    if embedder.name != built_with:
        embedder = make_embedder(f"custom:{built_with}", setup, dim)
    return embedder


def choose_tokenizer(argument: Tokenizer | None, recorded: Mapping[str, str]) -> Tokenizer:
    """The tokenizer of the argument, or else the recorded or default tokenizer."""
    if argument is not None:
        return CheckedTokenizer(argument)
    return tokenizer_for(recorded.get("tokenizer"))
