"""A user's own model, embedder, tokenizer and reranker: plain classes that inherit nothing.

This file is read by `mypy --strict` as a user's code would be, and runs.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from lightrag_jsonl import (
    LLM,
    AsyncLightRAG,
    Completion,
    Document,
    Embedder,
    IndexOptions,
    LightRAG,
    Message,
    OpenAILLM,
    QueryParam,
    Reranker,
    ResponseType,
    StreamingLLM,
    Tokenizer,
    Usage,
)
from lightrag_jsonl.core.protocols import ConstrainedLLM
from lightrag_jsonl.testing import EmbedderContract, RerankerContract, TokenizerContract

RECORDS = """\
{"type":"entity","name":"Marie Curie","entity_type":"person","description":"A chemist."}
{"type":"entity","name":"radium","entity_type":"concept","description":"An element."}
{"type":"relationship","source":"Marie Curie","target":"radium","keywords":["discovery"],"description":"She discovered it.","strength":9}
{"type":"done","entities":2,"relationships":1}"""


class MyModel:
    """Says the same about every text."""

    name = "my-model"

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        if response_type == "jsonl":
            return Completion(RECORDS, usage=Usage(100, 50))
        if response_type == "json":
            return Completion('{"high_level_keywords":[],"low_level_keywords":["Marie Curie"]}')
        return Completion("She discovered radium [1].")

    async def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> AsyncIterator[str]:
        for word in ("She ", "discovered ", "radium [1]."):
            yield word


class MyEmbedder:
    """Counts letters."""

    name = "letters"
    dim = 26

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"]
    ) -> npt.NDArray[np.float32]:
        rows = np.full((len(texts), self.dim), 0.01, np.float32)
        for row, text in zip(rows, texts, strict=True):
            for letter in text.lower():
                if "a" <= letter <= "z":
                    row[ord(letter) - ord("a")] += 1
        lengths: npt.NDArray[np.float32] = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.divide(rows, lengths, dtype=np.float32)


class MyTokenizer:
    """A character is a token."""

    name = "characters"

    def count(self, text: str) -> int:
        return len(text)

    def truncate(self, text: str, limit: int) -> str:
        return text[:limit]


class MyReranker:
    """The shorter, the better."""

    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return [-float(len(text)) for text in texts]


def parts() -> tuple[StreamingLLM, LLM, Embedder, Tokenizer, Reranker]:
    """The classes are what the protocols ask for; a type checker sees it here."""
    return MyModel(), MyModel(), MyEmbedder(), MyTokenizer(), MyReranker()


class TestMyEmbedder(EmbedderContract):
    """The published contracts, inherited."""

    def make(self) -> Embedder:
        return MyEmbedder()


class TestMyTokenizer(TokenizerContract):
    def make(self) -> Tokenizer:
        return MyTokenizer()


class TestMyReranker(RerankerContract):
    def make(self) -> Reranker:
        return MyReranker()


def test_own_parts_index_and_answer(tmp_path: Path) -> None:
    """All four of the user's parts work together, in the blocking and in the async class."""
    streaming, _, embedder, tokenizer, reranker = parts()
    options = IndexOptions(chunk_tokens=200, chunk_overlap=20)
    with LightRAG(
        tmp_path / "kb",
        llm=streaming,
        embedder=embedder,
        tokenizer=tokenizer,
        reranker=reranker,
        options=options,
    ) as rag:
        report = rag.insert([Document("Marie Curie discovered radium.", id="curie")])
        assert report.chunks == 1
        answer = rag.query("What did she discover?", QueryParam(mode="local", top_k=5))
        again = rag.query("What did she discover?", mode="local", top_k=5, where={"id": ["curie"]})
        assert again.text == answer.text
        names: list[str] = [citation.document_id for citation in answer.citations]
        assert names == ["curie"]
        assert "".join(rag.stream("What did Marie Curie discover?")) == answer.text


def test_own_parts_in_the_async_class(tmp_path: Path) -> None:
    """The same with coroutines."""

    async def ask() -> str:
        async with AsyncLightRAG(tmp_path / "kb", llm=MyModel(), embedder=MyEmbedder()) as rag:
            await rag.insert("Marie Curie discovered radium.")
            context = await rag.retrieve("Marie Curie", QueryParam(mode="hybrid"))
            scores: list[float] = [entity.score for entity in context.entities]
            assert scores == sorted(scores, reverse=True)
            return (await rag.query("What did she discover?")).text

    assert asyncio.run(ask()) == "She discovered radium [1]."


def held(model: ConstrainedLLM) -> ConstrainedLLM:
    return model


def test_what_users_have_at_hand_is_typed_as_it_is_taken() -> None:
    """Lists of texts, turns as mappings, and the package's own adapter as its own port."""
    ids: list[str] = ["a", "b"]
    turns = [{"role": "user", "content": "Who?"}]
    param = QueryParam(where={"id": ids}, hl_keywords=ids, conversation_history=turns)
    assert Document("x", metadata={"tags": ids}).metadata and param.turns[0].content == "Who?"
    assert held(OpenAILLM("m", base_url="http://localhost:1/v1")).name == "m"
