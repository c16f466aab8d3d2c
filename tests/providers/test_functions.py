"""Plain functions as models and embedders."""

import asyncio
import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lightrag_jsonl import (
    AsyncLightRAG,
    Completion,
    ConfigError,
    Document,
    FunctionEmbedder,
    FunctionLLM,
    IndexOptions,
    LLMError,
    Message,
    Usage,
)
from lightrag_jsonl.llm.scheduler import FIRST_LIMIT
from lightrag_jsonl.providers import as_embedder, as_llm

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


def test_the_shape_that_lightrag_users_have() -> None:
    """System prompt and history go where they belong; max_tokens through the keywords. A narrower
    shape works too: what it has no name for is in the prompt.
    """

    async def llm(
        prompt: str,
        system_prompt: str | None = None,
        history_messages: Sequence[dict[str, str]] = (),
        **kw: Any,
    ) -> str:
        return repr((prompt, system_prompt, [turn["role"] for turn in history_messages], kw))

    whole = "('More?', 'Extract.', ['user', 'assistant'], {'max_tokens': 9})"
    assert ask(llm, max_tokens=9) == whole
    assert ask(llm, [Message("user", "hi")]) == "('hi', None, [], {})"
    turns = 'user:\n文本\n\nassistant:\n{"a":1}\n\nuser:\nMore?'
    assert ask(lambda prompt: prompt, GLEANING[:2]) == "Extract.\n\n文本"
    assert ask(lambda prompt: prompt) == f"Extract.\n\n{turns}"
    assert ask(lambda prompt, max_tokens=0: prompt + str(max_tokens), max_tokens=3)[-1] == "3"


def test_callables_of_all_kinds() -> None:
    """Lambdas that return coroutines, partials, objects with an async call. A function may report
    finish reason and usage itself; what is no answer is an LLMError.
    """

    class Model:
        async def __call__(self, messages: list[dict[str, str]]) -> str:
            return messages[-1]["content"]

    async def chat(mark: str, messages: list[dict[str, str]]) -> str:
        return mark + messages[-1]["content"]

    cut = Completion("half", "length", Usage(1, 2, 3, 1))
    assert ask(Model()) == ask(lambda messages: Model()(messages)) == "More?"
    assert ask(functools.partial(chat, "!")) == "!More?"
    assert asyncio.run(FunctionLLM(lambda messages: cut).complete(GLEANING)) is cut
    assert asyncio.run(FunctionLLM(lambda messages: "x").complete(GLEANING)).usage.calls == 1
    with pytest.raises(LLMError, match="returned NoneType"):
        ask(lambda messages: None)


def test_names() -> None:
    """The function's own, with what a partial binds, so that another model behind the same function
    has answers of its own; or the one given.
    """

    def chat(messages: object, model: str = "", client: object = None) -> str:
        return ""

    bound = functools.partial(chat, model="l", client=object())
    assert FunctionLLM(chat).name == FunctionLLM(functools.partial(chat)).name == "chat"
    assert FunctionLLM(bound).name == "chat(model='l')"
    assert FunctionLLM(chat, name="mine").name == "mine"


def test_ports_stay_themselves_and_functions_are_wrapped() -> None:
    """Anything else is a ConfigError that names what would do."""
    llm, embedder = FunctionLLM(lambda messages: ""), FunctionEmbedder(lambda texts: [], dim=2)

    assert as_llm(llm) is llm and as_embedder(embedder) is embedder
    assert isinstance(as_llm(lambda messages: ""), FunctionLLM)
    with pytest.raises(ConfigError, match=r"OpenAILLM, not 'gpt-4o'"):
        as_llm("gpt-4o")  # type: ignore[arg-type]
    for wrong in (lambda texts: [], "BAAI/bge-m3"):
        with pytest.raises(ConfigError, match=r"SentenceTransformerEmbedder.*dim="):
            as_embedder(wrong)


def test_rows_are_normalized_float32() -> None:
    """Lists and arrays, from plain and async functions, become unit rows; no text asks nothing. A
    parameter called `kind` gets "query" or "passage".
    """

    async def arrays(texts: list[str], kind: str) -> np.ndarray[Any, Any]:
        assert kind == "query"
        return np.array([[3.0, 4.0]] * len(texts))

    for function in (arrays, lambda texts: [[3, 4] for _ in texts]):
        vectors = asyncio.run(FunctionEmbedder(function, dim=2).embed(["a", "文"], kind="query"))
        assert vectors.dtype == np.float32
        assert np.allclose(vectors, [[0.6, 0.8]] * 2)
    nothing = FunctionEmbedder(lambda texts: 1 / 0, dim=3).embed([], kind="query")
    assert asyncio.run(nothing).shape == (0, 3)


@dataclass
class EmbeddingFunc:
    """What LightRAG's users pass: a dimension, and a function inside."""

    embedding_dim: int
    func: Callable[..., object]

    async def __call__(self, *args: Any, **kwargs: Any) -> object:
        return self.func(*args, **kwargs)


@pytest.mark.parametrize(
    "kind", [EmbeddingFunc, lambda dim, f: SimpleNamespace(embedding_dim=dim, func=f)]
)
def test_lightrags_embedding_func_is_understood(kind: Callable[..., object]) -> None:
    """Newer ones can be called, older ones hold the function inside; both are named after it."""

    def bge(texts: list[str]) -> list[list[int]]:
        return [[0, 2] for _ in texts]

    embedder = as_embedder(kind(2, bge))

    assert (embedder.name, embedder.dim) == ("bge", 2)
    assert asyncio.run(embedder.embed(["a"], kind="query")).tolist() == [[0.0, 1.0]]


async def test_plain_functions_wait_for_nobody(tmp_path: Path) -> None:
    """Calls run side by side, and a question that needs no model does not wait for one that answers."""
    under_way = threading.Semaphore(0)
    go_on = threading.Event()

    def model(prompt: str) -> str:
        under_way.release()
        go_on.wait(240)
        return '{"type": "done", "entities": 0, "relationships": 0}'

    options = IndexOptions(max_gleanings=0)
    async with AsyncLightRAG(tmp_path, llm=model, options=options) as rag:
        texts = [Document(f"Ann met Bob {number}.") for number in range(FIRST_LIMIT)]
        inserting = asyncio.create_task(rag.insert(texts))
        try:
            for _ in texts:
                assert await asyncio.to_thread(under_way.acquire, timeout=240)
            await asyncio.wait_for(rag.retrieve("Ann", mode="naive"), 200)
        finally:
            go_on.set()
            await inserting


def test_a_system_text_goes_to_its_own_parameter() -> None:
    """By name, also where the function takes its arguments by name only."""
    seen: list[tuple[str, str]] = []

    async def by_name(*, system: str, prompt: str) -> str:
        seen.append((system, prompt))
        return "x"

    def by_place(prompt: str, /, system_prompt: str = "") -> str:
        seen.append((system_prompt, prompt))
        return "x"

    messages = [Message("system", "Be brief."), Message("user", "Who?")]
    for function in (by_name, by_place):
        assert asyncio.run(FunctionLLM(function).complete(messages)).text == "x"
    assert seen == [("Be brief.", "Who?")] * 2


def test_only_messages_by_name() -> None:
    """A function with a single parameter, by name only, gets the conversation."""

    def llm(*, messages: list[dict[str, str]]) -> str:
        return messages[-1]["content"]

    assert asyncio.run(FunctionLLM(llm).complete([Message("user", "Who?")])).text == "Who?"


def test_a_function_with_other_needs_is_refused_at_once() -> None:
    """The error says what the function may take."""

    def llm(prompt: str, temperature: float) -> str:
        return ""

    with pytest.raises(ConfigError, match=r"needs temperature.*\(system, prompt\)"):
        FunctionLLM(llm)
    with pytest.raises(ConfigError, match="needs an argument"):
        FunctionLLM(lambda: "x")
