"""Plain functions as models and embedders, in common signatures."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, cast

import msgspec
import numpy as np

from lightrag_jsonl.core.aio import in_daemon_thread
from lightrag_jsonl.core.errors import ConfigError, LLMError
from lightrag_jsonl.core.protocols import LLM, Embedder, Vectors
from lightrag_jsonl.core.types import Completion, Message, ResponseType
from lightrag_jsonl.core.user_code import ONE_CALL, normalize_vectors

Function: TypeAlias = Callable[..., object]

SYSTEM_PARAMETERS = ("system", "system_prompt")  # names of a parameter for the system text
PARAMETERS = ("prompt", *SYSTEM_PARAMETERS, "history_messages", "max_tokens")
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class FunctionLLM:
    """A function as an `LLM`; a plain function runs in a thread, an async one on the loop.

    `(messages)` gets a list of `{"role", "content"}` mappings. A function with a parameter called
    `prompt` gets texts: `(prompt, system_prompt=None, history_messages=[], **kw)`, LightRAG's own
    signature, gets all parts, `(*, system, prompt)` the system text apart, `(prompt)` a single
    text. A parameter `max_tokens` gets the limit. `ConfigError` for a function with other required
    arguments. The function returns a string or a `Completion`. `name` is part of cache keys:
    functions of the same name need different values.
    """

    def __init__(self, function: Function, *, name: str | None = None) -> None:
        self.name = name or _name_of(function)
        self._function = function
        self._parameters = inspect.signature(function).parameters
        unsupported = [
            parameter.name
            for parameter in [*self._parameters.values()]["prompt" not in self._parameters :]
            if parameter.default is inspect.Parameter.empty
            and parameter.kind not in VARIADIC
            and parameter.name not in PARAMETERS
        ]
        if unsupported or not self._parameters:
            raise ConfigError(
                f"the model function {self.name} needs {', '.join(unsupported) or 'an argument'}: it may "
                "take (messages), (prompt), (system, prompt) or (prompt, system_prompt, "
                "history_messages), and max_tokens"
            )

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        """The function's answer to the conversation."""
        answer = await _call_function(self._call(messages, max_tokens))
        if isinstance(answer, str):
            return Completion(answer, usage=ONE_CALL)
        if isinstance(answer, Completion):
            return answer
        kind = type(answer).__name__
        raise LLMError(f"{self.name} returned {kind}, not a string", cost=ONE_CALL)

    def _call(self, messages: Sequence[Message], max_tokens: int | None) -> partial[object]:
        limit = {"max_tokens": max_tokens} if max_tokens and self._takes("max_tokens") else {}
        if "prompt" not in self._parameters:
            turns = msgspec.to_builtins(list(messages))
            first = next(iter(self._parameters.values()))
            if first.kind is inspect.Parameter.KEYWORD_ONLY:
                return partial(self._function, **{first.name: turns}, **limit)
            return partial(self._function, turns, **limit)
        system = "\n\n".join(turn.content for turn in messages if turn.role == "system")
        *history, question = [turn for turn in messages if turn.role != "system"]
        if self._takes("system_prompt") and self._takes("history_messages"):
            return partial(
                self._function,
                question.content,
                system_prompt=system or None,
                history_messages=msgspec.to_builtins(history),
                **limit,
            )
        texts = [question.content]
        if history:
            texts = [f"{turn.role}:\n{turn.content}" for turn in (*history, question)]
        named: dict[str, object] = dict(limit)
        own_names = [name for name in SYSTEM_PARAMETERS if name in self._parameters]
        if own_names:
            named[own_names[0]] = system
        elif system:
            texts.insert(0, system)
        prompt = "\n\n".join(filter(None, texts))
        if self._parameters["prompt"].kind is inspect.Parameter.POSITIONAL_ONLY:
            return partial(self._function, prompt, **named)
        return partial(self._function, prompt=prompt, **named)

    def _takes(self, name: str) -> bool:
        kinds = [parameter.kind for parameter in self._parameters.values()]
        return inspect.Parameter.VAR_KEYWORD in kinds or name in self._parameters


class FunctionEmbedder:
    """A function from a list of texts to rows of numbers, as an `Embedder`.

    The function may be plain (run in a thread) or async, and return lists or an array of shape
    (len(texts), dim), else `EmbeddingError`; rows are normalized. A parameter `kind` gets "query" or
    "passage".
    """

    def __init__(self, function: Function, *, dim: int, name: str | None = None) -> None:
        self.dim = dim
        self.name = name or _name_of(function)
        self._function = function
        self._takes_kind = "kind" in inspect.signature(function).parameters

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """float32 of shape (len(texts), dim), rows of unit length."""
        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        named = {"kind": kind} if self._takes_kind else {}
        rows: Any = await _call_function(partial(self._function, list(texts), **named))
        return normalize_vectors(rows, count=len(texts), dim=self.dim, source=self.name)


def as_llm(model: LLM | Function) -> LLM:
    """The argument `llm` of a user as an `LLM`: a function is wrapped. Raises `ConfigError`."""
    if callable(getattr(model, "complete", None)):
        return cast("LLM", model)
    if callable(model):
        return FunctionLLM(model)
    raise ConfigError(f"llm must be a function, or an LLM such as OpenAILLM, not {model!r}")


def as_embedder(embedder: object) -> Embedder:
    """An `Embedder` unchanged, or LightRAG's EmbeddingFunc wrapped; raises `ConfigError`."""
    if callable(getattr(embedder, "embed", None)):
        return cast("Embedder", embedder)
    dim = getattr(embedder, "embedding_dim", None)
    inner = getattr(embedder, "func", embedder)
    if isinstance(dim, int) and callable(inner):
        name = getattr(embedder, "model_name", None) or _name_of(inner)
        return FunctionEmbedder(embedder if callable(embedder) else inner, dim=dim, name=name)
    raise ConfigError(
        "embedder must be an Embedder such as SentenceTransformerEmbedder(model) or "
        f"FunctionEmbedder(function, dim=…), not {embedder!r}"
    )


async def _call_function(call: Callable[[], object]) -> object:
    """The result of a function; a plain function may block, and runs in a thread."""
    if inspect.iscoroutinefunction(call):
        return await call()
    answer = await in_daemon_thread(call)
    return await answer if inspect.isawaitable(answer) else answer


def _name_of(function: object) -> str:
    """A function's name, with the values bound by a partial, if equal in every process."""
    if not isinstance(function, partial):
        qualified = getattr(function, "__qualname__", None) or type(function).__qualname__
        return str(qualified).rpartition("<locals>.")[2]
    bound = [*enumerate(function.args), *sorted(function.keywords.items())]
    plain = [f"{key}={value!r}" for key, value in bound if isinstance(value, str | int | float)]
    return _name_of(function.func) + (f"({', '.join(plain)})" if plain else "")
