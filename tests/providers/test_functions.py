"""Plain functions as models and embedders."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lightrag_jsonl import AsyncLightRAG, IndexOptions
from lightrag_jsonl.core.errors import ConfigError, EmbeddingError, LLMError
from lightrag_jsonl.core.types import Completion, Document, Message
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.providers import FunctionEmbedder, FunctionLLM, as_embedder, as_llm

GLEANING = (
    Message("system", "Extract."),
    Message("user", "文本"),
    Message("assistant", '{"a":1}'),
    Message("user", "More?"),
)


def ask(
    function: Callable[..., object], messages: Sequence[Message] = GLEANING, **options: int
) -> str:
    return asyncio.run(FunctionLLM(function).complete(messages, **options)).text  # type: ignore[arg-type]


# ── models ──────────────────────────────────────────────────────────────────────


def test_messages_are_plain_mappings() -> None:
    """`(messages)` gets what every client library takes, roles and order kept."""

    async def chat(messages: list[dict[str, str]]) -> str:
        return "|".join(f"{turn['role']}={turn['content']}" for turn in messages)

    assert ask(chat) == 'system=Extract.|user=文本|assistant={"a":1}|user=More?'


def test_a_plain_function_runs_beside_the_loop() -> None:
    """It may block: it is called in another thread."""

    def chat(messages: object) -> str:
        return str(threading.get_ident() == main)

    main = threading.get_ident()
    assert ask(chat) == "False"


def test_the_shape_that_lightrag_users_have() -> None:
    """System prompt and history go where they belong; max_tokens through the keywords."""

    async def llm(
        prompt: str,
        system_prompt: str | None = None,
        history_messages: Sequence[dict[str, str]] = (),
        **kw: Any,
    ) -> str:
        return repr((prompt, system_prompt, [turn["role"] for turn in history_messages], kw))

    assert (
        ask(llm, max_tokens=9) == "('More?', 'Extract.', ['user', 'assistant'], {'max_tokens': 9})"
    )
    assert ask(llm, [Message("user", "hi")]) == "('hi', None, [], {})"


def test_keywords_are_passed_only_where_they_are_taken() -> None:
    """A narrower LightRAG shape works too: what it has no name for is in the prompt."""

    def one(prompt: str) -> str:
        return prompt

    def two(prompt: str, system_prompt: str = "") -> str:
        return f"{system_prompt}:{prompt}"

    def three(text: str, max_tokens: int = 0) -> str:
        return f"{text}{max_tokens}"

    turns = 'user:\n文本\n\nassistant:\n{"a":1}\n\nuser:\nMore?'
    assert ask(one, GLEANING[:2]) == "Extract.\n\n文本"
    assert ask(two) == f"Extract.:{turns}"
    assert ask(two, GLEANING[:2], max_tokens=3) == "Extract.:文本"
    assert ask(three, GLEANING[1:2], max_tokens=3) == "文本3"


def test_callables_of_all_kinds() -> None:
    """Lambdas that return coroutines, partials, objects with an async call, builtins."""

    class Model:
        async def __call__(self, messages: list[dict[str, str]]) -> str:
            return messages[-1]["content"]

    async def chat(mark: str, messages: list[dict[str, str]]) -> str:
        return mark + messages[-1]["content"]

    assert ask(Model()) == ask(lambda messages: Model()(messages)) == "More?"
    assert ask(functools.partial(chat, "!")) == "!More?"
    assert "Extract." in ask(str)


def test_a_completion_passes_through() -> None:
    """A function may report finish reason and usage itself."""
    cut = Completion("half", "length", Usage(1, 2, 3, 1))
    answer = asyncio.run(FunctionLLM(lambda messages: cut).complete(GLEANING))
    assert answer is cut
    assert asyncio.run(FunctionLLM(lambda messages: "x").complete(GLEANING)).usage.calls == 1


def test_what_goes_wrong_is_an_llm_error() -> None:
    """An exception is transient, unless it is a timeout; None and other values are no answer."""

    def broken(messages: object) -> str:
        raise KeyError("choices")

    def refuse(messages: object) -> str:
        raise LLMError("mine")

    with pytest.raises(LLMError, match=r"broken failed: KeyError: 'choices'") as caught:
        ask(broken)
    assert caught.value.transient and isinstance(caught.value.__cause__, KeyError)

    def late(messages: object) -> str:
        raise TimeoutError

    with pytest.raises(LLMError, match="late failed: TimeoutError") as caught:
        ask(late)
    assert not caught.value.transient and caught.value.cost == Usage(calls=1)
    with pytest.raises(LLMError, match="returned NoneType"):
        ask(lambda messages: None)
    with pytest.raises(LLMError, match="returned int"):
        ask(lambda messages: 3)
    with pytest.raises(LLMError, match=r"^mine$"):
        ask(refuse)


@pytest.mark.parametrize(
    "function",
    [lambda a, b, c: "", lambda prompt, system: "", lambda: "", lambda user, system_prompt: ""],
)
def test_another_signature_is_refused_at_once(function: Callable[..., str]) -> None:
    """Swapped, missing or too many parameters are a ConfigError that lists the signatures."""
    with pytest.raises(ConfigError, match=r"takes \(.*\(messages\) or \(prompt, system_prompt"):
        FunctionLLM(function)


def test_names() -> None:
    """The function's own name, or the one given."""

    def chat(messages: object) -> str:
        return ""

    assert FunctionLLM(chat).name == FunctionLLM(functools.partial(chat)).name == "chat"
    assert FunctionLLM(chat, name="mine").name == "mine"


def test_as_llm() -> None:
    """A port stays itself, a function is wrapped, anything else is a ConfigError with a hint."""
    port = FunctionLLM(lambda messages: "")

    assert as_llm(port) is port
    assert isinstance(as_llm(lambda messages: ""), FunctionLLM)
    with pytest.raises(ConfigError, match=r"OpenAILLM\('gpt-4o'\)"):
        as_llm("gpt-4o")  # type: ignore[arg-type]


# ── embedders ───────────────────────────────────────────────────────────────────


def test_rows_are_normalized_float32() -> None:
    """Lists and arrays, from plain and async functions, become unit rows."""

    async def arrays(texts: list[str]) -> np.ndarray[Any, Any]:
        return np.array([[3.0, 4.0]] * len(texts))

    for function in (arrays, lambda texts: [[3, 4] for _ in texts]):
        vectors = asyncio.run(FunctionEmbedder(function, dim=2).embed(["a", "文"], kind="query"))
        assert vectors.dtype == np.float32
        assert np.allclose(vectors, [[0.6, 0.8]] * 2)


def test_no_text_asks_nothing() -> None:
    """An empty list does not reach the function."""
    embedder = FunctionEmbedder(lambda texts: 1 / 0, dim=3)

    assert asyncio.run(embedder.embed([], kind="query")).shape == (0, 3)


def test_kind_is_given_to_functions_that_take_it() -> None:
    """A parameter called `kind` gets "query" or "passage"."""

    def embed(texts: list[str], kind: str) -> list[list[int]]:
        return [[1, 0] if kind == "query" else [0, 1] for _ in texts]

    embedder = FunctionEmbedder(embed, dim=2)
    assert asyncio.run(embedder.embed(["a"], kind="passage")).tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda texts: [[1, 2]], r"shape \(2, 2\), got \(1, 2\)"),
        (lambda texts: [[1, 2, 3]] * 2, r"got \(2, 3\)"),
        (lambda texts: [[1, 2], [1]], "no table"),
        (lambda texts: None, r"got \(\)"),
        (lambda texts: [[1, float("nan")]] * 2, "NaN"),
        (lambda texts: {}["x"], "KeyError"),
    ],
)
def test_wrong_vectors_are_embedding_errors(function: Callable[..., object], words: str) -> None:
    """Another count or width, holes, and the function's own exceptions."""
    with pytest.raises(EmbeddingError, match=words):
        asyncio.run(FunctionEmbedder(function, dim=2).embed(["a", "b"], kind="query"))


@dataclass
class EmbeddingFunc:
    """What LightRAG's users pass: a dimension, and a function inside."""

    embedding_dim: int
    func: Callable[..., object]
    max_token_size: int = 8192


@dataclass
class CallableFunc(EmbeddingFunc):
    """Newer ones can be called themselves."""

    async def __call__(self, *args: Any, **kwargs: Any) -> object:
        return self.func(*args, **kwargs)


@pytest.mark.parametrize("kind", [EmbeddingFunc, CallableFunc])
def test_lightrags_embedding_func_is_understood(kind: type[EmbeddingFunc]) -> None:
    """It is known by its attributes and named after the function inside."""

    def bge(texts: list[str]) -> list[list[int]]:
        return [[0, 2] for _ in texts]

    embedder = as_embedder(kind(2, bge))

    assert (embedder.name, embedder.dim) == ("bge", 2)
    assert asyncio.run(embedder.embed(["a"], kind="query")).tolist() == [[0.0, 1.0]]


def test_as_embedder() -> None:
    """A port stays itself; a function without a dimension, or a name, is a ConfigError with a hint."""
    port = FunctionEmbedder(lambda texts: [], dim=2)

    assert as_embedder(port) is port
    with pytest.raises(ConfigError, match="dim="):
        as_embedder(lambda texts: [])
    with pytest.raises(ConfigError, match=r"SentenceTransformerEmbedder\('BAAI/bge-m3'\)"):
        as_embedder("BAAI/bge-m3")


async def test_plain_functions_wait_for_nobody(tmp_path: Path) -> None:
    """All slots are used, and a question that needs no model does not wait for one that answers."""
    under_way = threading.Semaphore(0)
    go_on = threading.Event()

    def model(prompt: str) -> str:
        under_way.release()
        go_on.wait(30)
        return '{"type": "done", "entities": 0, "relationships": 0}'

    options = IndexOptions(max_concurrent_calls=40, max_gleanings=0)
    async with AsyncLightRAG(tmp_path, llm=model, options=options) as rag:
        texts = [Document(f"Ann met Bob {number}.") for number in range(40)]
        inserting = asyncio.create_task(rag.insert(texts))
        try:
            for _ in texts:
                assert await asyncio.to_thread(under_way.acquire, timeout=30)
            await asyncio.wait_for(rag.retrieve("Ann", mode="naive"), 20)
        finally:
            go_on.set()
            await inserting


def test_partials_of_one_function_are_told_apart() -> None:
    """Another model behind the same function has answers of its own."""

    def call(prompt: str, model: str = "", client: object = None) -> str:
        return model

    large, small = (
        FunctionLLM(functools.partial(call, model=m, client=object())) for m in ("l", "s")
    )
    assert (large.name, small.name) == ("call(model='l')", "call(model='s')")


@pytest.mark.parametrize("name", [None, "", 3])
def test_a_model_without_a_name_is_refused(name: object) -> None:
    """Its answers would be taken for those of others."""

    class Model:
        async def complete(self, messages: object, **more: object) -> Completion:
            return Completion("")

    model = Model()
    if name is not None:
        model.name = name  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="name"):
        as_llm(model)  # type: ignore[arg-type]
