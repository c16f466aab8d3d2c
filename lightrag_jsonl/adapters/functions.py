"""Plain functions as models and embedders, in the signatures that people already have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Literal, TypeAlias, cast

import numpy as np

from lightrag_jsonl.adapters.threads import Threads
from lightrag_jsonl.calls import is_lost
from lightrag_jsonl.errors import ConfigError, EmbeddingError, LightRAGError, LLMError
from lightrag_jsonl.protocols import LLM, Embedder, Vectors
from lightrag_jsonl.types import Completion, Message, ResponseType, Usage
from lightrag_jsonl.units import unit_rows

Function: TypeAlias = Callable[..., object]
LIGHTRAG = frozenset({"prompt", "system_prompt", "history_messages"})
NO_SIGNATURE: Mapping[str, inspect.Parameter] = MappingProxyType({})
Shape = Literal["messages", "system_prompt", "prompt"]


MODELS = Threads(256)  # more than enough: the index limits concurrent calls
EMBEDDERS = Threads()


class FunctionLLM:
    """A function as an `LLM`; a plain function runs in a thread, an async one on the loop.

    Its parameters decide what it gets: `(messages)` gets a list of `{"role", "content"}` mappings
    (`Message` values if its annotation says so); `(system, prompt)` gets two strings; `(prompt,
    system_prompt=None, history_messages=[], **kw)`, LightRAG's own, gets what it names,
    `max_tokens` included. What the signature has no place for is written into the prompt. The
    function returns a string or a `Completion`. Its exceptions become a transient `LLMError`.
    `name` is part of cache keys: functions of the same name need different ones.
    """

    def __init__(self, function: Function, *, name: str | None = None) -> None:
        if not callable(function):
            raise ConfigError(f"a function is needed, not {type(function).__name__}")
        self._function = function
        self._call = _signature(function)
        self._name = name or _name_of(function)

    @property
    def name(self) -> str:
        """The given name, or else the function's."""
        return self._name

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        """What the function returns for the conversation."""
        values, named = self._call.arguments(messages, max_tokens)
        try:
            answer = await _run(MODELS, self._function, *values, **named)
        except LightRAGError:
            raise
        except Exception as error:  # the user's own function may raise anything
            told = f"{self.name} failed: {_words(error)}"
            raise LLMError(told, transient=True, unheard=is_lost(error)) from error
        if isinstance(answer, Completion):
            return answer
        if not isinstance(answer, str):
            kind = "None" if answer is None else f"a value of type {type(answer).__name__}"
            told = f"{self.name} returned {kind}, not a string"
            raise LLMError(told, transient=answer is None, cost=Usage(calls=1))
        return Completion(answer, usage=Usage(calls=1))


class FunctionEmbedder:
    """A function from a list of texts to rows of numbers, as an `Embedder`.

    It may be plain (then it runs in a thread) or async, and return lists or an array of shape
    (len(texts), dim); rows are normalized. If it has a parameter `kind`, it gets "query" or
    "passage". Its exceptions, and results of another shape, become an `EmbeddingError`.
    """

    def __init__(self, function: Function, *, dim: int, name: str | None = None) -> None:
        if not callable(function):
            raise ConfigError(f"a function is needed, not {type(function).__name__}")
        if dim < 1:
            raise ConfigError("dim must be at least 1")
        self._function = function
        self._takes_kind = "kind" in _parameters(function)
        self._dim = dim
        self._name = name or _name_of(function)

    @property
    def name(self) -> str:
        """The given name, or else the function's."""
        return self._name

    @property
    def dim(self) -> int:
        """The length of a vector, as given."""
        return self._dim

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """float32 of shape (len(texts), dim), rows of unit length."""
        if not texts:
            return np.zeros((0, self._dim), dtype=np.float32)
        named = {"kind": kind} if self._takes_kind else {}
        try:
            rows = await _run(EMBEDDERS, self._function, list(texts), **named)
        except LightRAGError:
            raise
        except Exception as error:  # the user's own function may raise anything
            raise EmbeddingError(f"{self.name} failed: {_words(error)}") from error
        return unit_rows(
            cast("Sequence[object]", rows), count=len(texts), dim=self._dim, source=self.name
        )


def as_llm(model: LLM | Function) -> LLM:
    """What a user gives as `llm`: an `LLM` as it is, a function wrapped. Raises `ConfigError`."""
    if callable(getattr(model, "complete", None)):
        name = getattr(model, "name", None)
        if not isinstance(name, str) or not name:
            raise ConfigError(
                f"the name of a model tells its answers from those of others: "
                f"{type(model).__name__}.name must be a text, not {name!r}"
            )
        return cast("LLM", model)
    if callable(model):
        return FunctionLLM(model)
    hint = f"; did you mean OpenAILLM({model!r})?" if isinstance(model, str) else ""
    raise ConfigError(f"llm must be an LLM or a function, not {type(model).__name__}{hint}")


def as_embedder(embedder: object) -> Embedder:
    """What a user gives as `embedder`: an `Embedder` as it is, or LightRAG's EmbeddingFunc wrapped.

    The latter has `embedding_dim`, and `func` or is callable itself. Raises `ConfigError`.
    """
    has_dim = (
        inspect.getattr_static(embedder, "dim", None) is not None
    )  # reading it may load a model
    if has_dim and callable(getattr(embedder, "embed", None)):
        return cast("Embedder", embedder)
    dim = getattr(embedder, "embedding_dim", None)
    function = embedder if callable(embedder) else getattr(embedder, "func", None)
    if isinstance(dim, int) and callable(function):
        inner = getattr(embedder, "func", None) or function
        return FunctionEmbedder(
            function, dim=dim, name=getattr(embedder, "model_name", None) or _name_of(inner)
        )
    if callable(embedder):
        raise ConfigError(
            f"the length of {_name_of(embedder)}'s vectors is not known: "
            "give FunctionEmbedder(function, dim=…)"
        )
    hint = (
        f"; did you mean SentenceTransformerEmbedder({embedder!r})?"
        if isinstance(embedder, str)
        else ""
    )
    raise ConfigError(f"embedder must be an Embedder, not {type(embedder).__name__}{hint}")


@dataclass(frozen=True, slots=True)
class _Call:
    """How to call a function; `takes` are the keywords it accepts, None for all."""

    shape: Shape
    takes: frozenset[str] | None = frozenset()
    wants_messages: bool = False

    def arguments(
        self, messages: Sequence[Message], max_tokens: int | None
    ) -> tuple[list[object], dict[str, object]]:
        """Positional and keyword arguments for one call."""
        named: dict[str, object] = {}
        if max_tokens is not None and self._accepts("max_tokens"):
            named["max_tokens"] = max_tokens
        if self.shape == "messages":
            turns = list(messages) if self.wants_messages else _mappings(messages)
            return [turns], named
        system, history, prompt = _parts(messages)
        if self.shape == "system_prompt":
            return [system, _transcript(history, prompt)], named
        if self._accepts("history_messages"):
            named["history_messages"] = _mappings(history)
        else:
            prompt = _transcript(history, prompt)
        if self._accepts("system_prompt"):
            named["system_prompt"] = system or None
        elif system:
            prompt = f"{system}\n\n{prompt}"
        return [prompt], named

    def _accepts(self, keyword: str) -> bool:
        return self.takes is None or keyword in self.takes


def _signature(function: Function) -> _Call:
    parameters = _parameters(function)
    names = frozenset(parameters)
    positional = [
        parameter
        for parameter in parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    varied = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters.values())
    takes = None if open_ended else names
    required = [parameter.name for parameter in positional if parameter.default is parameter.empty]
    first = positional[0] if positional else None
    if first is not None and first.name == "prompt" and LIGHTRAG.issuperset(required):
        return _Call("prompt", takes)
    if len(required) == 2 and not required[1].startswith("system"):
        return _Call("system_prompt", names)
    if len(required) > 1 or (parameters is not NO_SIGNATURE and first is None and not varied):
        raise ConfigError(
            f"{_name_of(function)} takes ({', '.join(parameters)}); a model function takes "
            "(messages), (system, prompt) or (prompt, system_prompt=None, history_messages=[])"
        )
    if first is not None and first.annotation in (str, "str"):
        return _Call("prompt", takes)
    wants = first is not None and "Message" in str(first.annotation)
    return _Call("messages", names, wants_messages=wants)


def _parameters(function: Function) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # some callables written in C have no signature
        return NO_SIGNATURE


async def _run(threads: Threads, function: Function, *values: object, **named: object) -> object:
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - the method itself is looked at
    ):
        return await function(*values, **named)  # type: ignore[misc]
    answer = await threads.run(partial(_called, function, *values, **named))
    return await answer if inspect.isawaitable(answer) else answer


def _called(function: Function, *values: object, **named: object) -> object:
    """A function's result. StopIteration is converted: a future cannot hold it, and would never be done."""
    try:
        return function(*values, **named)
    except StopIteration as error:
        raise RuntimeError("StopIteration: there was nothing more to take") from error


def _parts(messages: Sequence[Message]) -> tuple[str, list[Message], str]:
    """The system text, the turns before the last, and the last turn's text."""
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    turns = [message for message in messages if message.role != "system"]
    return system, turns[:-1], turns[-1].content if turns else ""


def _transcript(history: Sequence[Message], prompt: str) -> str:
    if not history:
        return prompt
    turns = [f"{message.role}:\n{message.content}" for message in history]
    return "\n\n".join([*turns, f"user:\n{prompt}"])


def _mappings(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def _name_of(function: object) -> str:
    inner = getattr(function, "func", function)  # functools.partial
    named = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    short = str(named).rpartition("<locals>.")[2]
    bound = _bound(function) if isinstance(function, partial) else ""
    return f"{short}({bound})" if bound else short


def _bound(function: partial[object]) -> str:
    """The arguments bound by a partial, if their repr is the same in every process."""
    given = [*((None, value) for value in function.args), *sorted(function.keywords.items())]
    plain = [(name, value) for name, value in given if isinstance(value, str | int | float)]
    return ", ".join(repr(value) if name is None else f"{name}={value!r}" for name, value in plain)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
