"""Checks the fields of dataclasses against the annotations, with msgspec."""

from collections.abc import Callable, Mapping, Set
from dataclasses import fields
from functools import cache, wraps
from typing import Any, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.text.strings import cut, sanitize

P = ParamSpec("P")
Fields = TypeVar("Fields")  # a dataclass
CheckedResult = TypeVar("CheckedResult")

LONGEST_VALUE = 60  # characters of a value that an error shows
REPLACEMENTS: Mapping[str, str] = {  # of the arguments that LightRAG has, by their names there
    "llm_model_func": "llm=",
    "llm_model_name": "llm=OpenAILLM(name)",
    "llm_model_kwargs": "llm=OpenAILLM(name, extra_body=…)",
    "llm_model_max_async": "options=IndexOptions(max_concurrent_calls=…)",
    "embedding_func": "embedder=",
    "embedding_batch_num": "options=IndexOptions(embed_batch_size=…)",
    "rerank_model_func": "reranker=",
    "chunk_token_size": "options=IndexOptions(chunk_tokens=…)",
    "chunk_overlap_token_size": "options=IndexOptions(chunk_overlap=…)",
    "chunking_func": "chunker=",
    "entity_extract_max_gleaning": "options=IndexOptions(max_gleanings=…)",
    "addon_params": "language= and options=IndexOptions(entity_types=…)",
    "workspace": "a folder for each index",
    "kv_storage": "nothing: all is stored in one SQLite database",
    "vector_storage": "nothing: all is stored in one SQLite database",
    "graph_storage": "nothing: all is stored in one SQLite database",
    "doc_status_storage": "nothing: all is stored in one SQLite database",
    "enable_llm_cache": "nothing: the model's answers are always cached",
    "input": "documents=",
    "file_paths": "Document(text, source=…)",
    "split_by_character": "insert_records(document, records, chunks=…)",
    "ids": "Document(text, id=…) to insert, or where={'id': […]} to ask",
    "only_need_context": "retrieve(question)",
    "only_need_prompt": "retrieve(question).prompt",
    "stream": "stream(question)",
    "query": "question=",
    "system_prompt": "user_prompt=, or prompts= for a prompt of your own",
    "model_func": "llm= of LightRAG",
    "history_turns": "conversation_history=",
}


def only_text_field(schema: Mapping[str, Any]) -> str:
    """The field of a record whose JSON Schema has nothing but one text, or "". Such a record may be written
    as the text alone: a list of names.
    """
    properties = schema.get("properties") or {}
    if len(properties) != 1:
        return ""
    ((name, settings),) = properties.items()
    is_text = isinstance(settings, Mapping) and settings.get("type") == "string"
    return name if is_text and schema.get("required") == [name] else ""


def names_replacements(function: Callable[P, CheckedResult]) -> Callable[P, CheckedResult]:
    """The function, with a `TypeError` that names the replacement of an argument of LightRAG's."""

    @wraps(function)
    def checked(*args: P.args, **keywords: P.kwargs) -> CheckedResult:
        for name in REPLACEMENTS.keys() & keywords.keys():
            raise TypeError(f"there is no argument {name!r}; use {REPLACEMENTS[name]}")
        return function(*args, **keywords)

    return checked


def with_replacements(dataclass_type: type[Fields]) -> type[Fields]:
    """A class decorator: `names_replacements` for the arguments of a class."""
    dataclass_type.__init__ = names_replacements(dataclass_type.__init__)  # type: ignore[method-assign]
    return dataclass_type


def from_mapping(kind: type[Fields], source: object) -> Fields:
    """A dataclass made from untrusted input, or the `source` itself if already of this `kind`.

    `ConfigError` for wrong values and for names of no field.
    """
    if isinstance(source, kind):
        return source
    if not isinstance(source, Mapping):
        raise ConfigError(f"expected names and values, not {repr_start(source)}")
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    for name in source:
        if name not in names:
            replacement = REPLACEMENTS.get(str(name))
            advice = (
                f"use {replacement}" if replacement else f"available: {', '.join(sorted(names))}"
            )
            raise ConfigError(f"there is no option {repr_start(name)}; {advice}")
    return kind(**source)


def check_fields(instance: object) -> None:
    """`ConfigError` names a field with a wrong value; numbers of numpy become Python's own."""
    for name, hint in _hints(type(instance)).items():  # type: ignore[arg-type]  # mypy: no Hashable
        value = getattr(instance, name)
        try:
            checked = msgspec.convert(plain_json(value, name), hint)
        except (msgspec.ValidationError, RecursionError) as error:
            choices = get_args(hint) if get_origin(hint) is Literal else ()
            advice = f"; known are {', '.join(choices)}" if choices else ""
            raise ConfigError(f"{name}: {error}: {repr_start(value)}{advice}") from error
        object.__setattr__(instance, name, checked)


def plain_json(value: object, name: str) -> Any:
    """A value as plain JSON: numbers of numpy and the like as Python's own, sequences as lists."""
    if hasattr(value, "item"):  # a numpy scalar; some are subclasses of float
        return value.item()
    if isinstance(value, str | int | float) or value is None:
        return value
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain_json(item, name) for key, item in value.items()}
    if isinstance(value, list | tuple | Set):
        return [plain_json(item, name) for item in value]
    raise ConfigError(f"{name} must be texts, numbers, or lists of them, not {repr_start(value)}")


def check_storable(name: str, value: object) -> None:
    """`ConfigError` for a text with half a character or NUL, which would be stored as another one."""
    if isinstance(value, str) and sanitize(value) != value:
        raise ConfigError(f"{name} is no Unicode text: {repr_start(value)}")


def repr_start(value: object) -> str:
    """The beginning of a value's `repr`, or the type's name if a user's `__repr__` raises."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - the user's own code may raise anything
        text = f"<{type(value).__name__}>"
    return cut(text, LONGEST_VALUE)


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The annotations of the fields, except the names in the class's tuple `unchecked`."""
    hints = get_type_hints(kind, include_extras=True)
    unchecked = ("unchecked", *getattr(kind, "unchecked", ()))
    return {name: hint for name, hint in hints.items() if name not in unchecked}
