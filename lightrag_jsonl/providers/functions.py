"""Plain functions as models and embedders, in the signatures that people already have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, TypeAlias, cast

import numpy as np
from anyio import CapacityLimiter, to_thread

from lightrag_jsonl.core.errors import FREE, ConfigError, EmbeddingError, LightRAGError, LLMError
from lightrag_jsonl.core.protocols import LLM, Embedder, Vectors
from lightrag_jsonl.core.types import Completion, Message, ResponseType
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.vectors import normalize_vectors

Function: TypeAlias = Callable[..., object]

ONE_CALL = Usage(calls=1)
MOST_THREADS = 256  # more than enough: the index limits concurrent calls
LIGHTRAG = frozenset({"prompt", "system_prompt", "history_messages"})


class FunctionLLM:
    """A function as an `LLM`; a plain function runs in a thread, an async one on the loop.

    Its first parameter decides what it gets. One called `prompt`, or annotated as `str`, gets a
    prompt: `(prompt, system_prompt=None, history_messages=[], **kw)`, LightRAG's own signature,
    gets what it names, `max_tokens` included, and the rest is written into the prompt. Any other,
    `(messages)`, gets a list of `{"role", "content"}` mappings. The function returns a string or a
    `Completion`. Its exceptions become an `LLMError`, transient unless it is a timeout. `name` is
    part of cache keys: functions of the same name need different ones.
    """

    def __init__(self, function: Function, *, name: str | None = None) -> None:
        self._function = function
        self.name = name or _name_of(function)
        self._limiter = CapacityLimiter(MOST_THREADS)
        parameters = _parameters(function)
        first = next(iter(parameters.values()), None)
        required = {one.name for one in parameters.values() if _is_required(one)}
        takes_prompt = first is not None and (
            first.name == "prompt" or first.annotation in (str, "str")
        )
        if first is None or required - {first.name} - (LIGHTRAG if takes_prompt else set()):
            raise ConfigError(
                f"{self.name} takes ({', '.join(parameters)}); a model function takes "
                "(messages) or (prompt, system_prompt=None, history_messages=[])"
            )
        self._takes_prompt = takes_prompt
        self._accepts = parameters.keys()
        self._accepts_all = any(one.kind is one.VAR_KEYWORD for one in parameters.values())

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        """What the function returns for the conversation."""
        call = self._call(messages, {} if max_tokens is None else {"max_tokens": max_tokens})
        try:
            answer = await _run(call, self._limiter)
        except LightRAGError:
            raise
        except Exception as error:  # the user's own function may raise anything
            is_late = isinstance(error, TimeoutError) or "Timeout" in type(error).__name__
            cost = ONE_CALL if is_late else FREE
            failed = _failure(self.name, error)
            raise LLMError(failed, transient=not is_late, cost=cost) from error
        if isinstance(answer, Completion):
            return answer
        if not isinstance(answer, str):
            kind = type(answer).__name__
            raise LLMError(f"{self.name} returned {kind}, not a string", cost=ONE_CALL)
        return Completion(answer, usage=ONE_CALL)

    def _call(self, messages: Sequence[Message], named: dict[str, object]) -> partial[object]:
        """A call of the function; what it has no parameter for is part of the prompt."""
        if not self._takes_prompt:
            return partial(self._function, _mappings(messages), **self._accepted(named))
        system = "\n\n".join(one.content for one in messages if one.role == "system")
        *history, last = [one for one in messages if one.role != "system"]
        named |= {"system_prompt": system or None, "history_messages": _mappings(history)}
        accepted, prompt = self._accepted(named), last.content
        if history and "history_messages" not in accepted:
            prompt = "\n\n".join(f"{one.role}:\n{one.content}" for one in [*history, last])
        if system and "system_prompt" not in accepted:
            prompt = f"{system}\n\n{prompt}"
        return partial(self._function, prompt, **accepted)

    def _accepted(self, named: dict[str, object]) -> dict[str, object]:
        return {key: named[key] for key in named if self._accepts_all or key in self._accepts}


class FunctionEmbedder:
    """A function from a list of texts to rows of numbers, as an `Embedder`.

    It may be plain (then it runs in a thread) or async, and return lists or an array of shape
    (len(texts), dim); rows are normalized. If it has a parameter `kind`, it gets "query" or
    "passage". Its exceptions, and results of another shape, become an `EmbeddingError`.
    """

    def __init__(self, function: Function, *, dim: int, name: str | None = None) -> None:
        if dim < 1:
            raise ConfigError("dim must be at least 1")
        self._function = function
        self._takes_kind = "kind" in _parameters(function)
        self._limiter = CapacityLimiter(MOST_THREADS)
        self.dim = dim
        self.name = name or _name_of(function)

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """float32 of shape (len(texts), dim), rows of unit length."""
        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        named = {"kind": kind} if self._takes_kind else {}
        try:
            rows = await _run(partial(self._function, list(texts), **named), self._limiter)
        except LightRAGError:
            raise
        except Exception as error:  # the user's own function may raise anything
            raise EmbeddingError(_failure(self.name, error)) from error
        table = cast("Sequence[object]", rows)
        return normalize_vectors(table, count=len(texts), dim=self.dim, source=self.name)


def as_llm(model: LLM | Function) -> LLM:
    """What a user gives as `llm`: an `LLM` as it is, a function wrapped. Raises `ConfigError`."""
    if callable(getattr(model, "complete", None)):
        name = getattr(model, "name", None)
        if not isinstance(name, str) or not name:
            raise ConfigError(
                f"answers are stored under the name of their model: {type(model).__name__}.name "
                f"must be a text, not {name!r}"
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
    if callable(getattr(embedder, "embed", None)):
        return cast("Embedder", embedder)
    dim = getattr(embedder, "embedding_dim", None)
    inner = getattr(embedder, "func", None)
    function = embedder if callable(embedder) else inner
    if isinstance(dim, int) and callable(function):
        name = getattr(embedder, "model_name", None) or _name_of(inner or function)
        return FunctionEmbedder(function, dim=dim, name=name)
    hint = ": give FunctionEmbedder(function, dim=…)" if callable(embedder) else ""
    if isinstance(embedder, str):
        hint = f"; did you mean SentenceTransformerEmbedder({embedder!r})?"
    raise ConfigError(f"embedder must be an Embedder, not {type(embedder).__name__}{hint}")


async def _run(call: partial[object], limiter: CapacityLimiter) -> object:
    """What a function returns; one that is not async may block, and runs in a thread."""
    method = getattr(call.func, "__call__", None)  # noqa: B004 - the method itself is looked at
    if inspect.iscoroutinefunction(call.func) or inspect.iscoroutinefunction(method):
        answer = call()
    else:
        answer = await to_thread.run_sync(call, limiter=limiter, abandon_on_cancel=True)
    return await answer if inspect.isawaitable(answer) else answer


def _parameters(function: Function) -> Mapping[str, inspect.Parameter]:
    if not callable(function):
        raise ConfigError(f"a function is needed, not {type(function).__name__}")
    try:
        return inspect.signature(function).parameters
    except ValueError:  # some callables written in C have no signature
        return {"messages": inspect.Parameter("messages", inspect.Parameter.POSITIONAL_ONLY)}


def _is_required(parameter: inspect.Parameter) -> bool:
    is_varied = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and not is_varied


def _mappings(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def _name_of(function: object) -> str:
    """A function's name, and a partial's bound values that are the same in every process."""
    inner = getattr(function, "func", function)
    qualified = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    name = str(qualified).rpartition("<locals>.")[2]
    if not isinstance(function, partial):
        return name
    given = [*(("", one) for one in function.args), *sorted(function.keywords.items())]
    plain = [(key, one) for key, one in given if isinstance(one, str | int | float)]
    bound = ", ".join(f"{key}={one!r}" if key else repr(one) for key, one in plain)
    return f"{name}({bound})" if bound else name


def _failure(name: str, error: Exception) -> str:
    words = f": {error}" if str(error) else ""
    return f"{name} failed: {type(error).__name__}{words}"
