"""OpenAIEmbedder against a server that plays a script."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from lightrag_jsonl.core.errors import ConfigError, EmbeddingError
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.tokens import FittedTokenizer
from lightrag_jsonl.providers import OpenAIEmbedder, openai_embedder
from tests.servers import Reply, Request, ScriptedServer, Step, embedding_reply, error_reply


def lengths_and_ones(request: Request) -> Reply:
    """A vector of a text's length for each; the answer lists them backwards."""
    texts = request.json["input"]
    return embedding_reply([(len(text), 1.0) for text in texts], order=range(len(texts))[::-1])


def embedder(server: ScriptedServer, **options: object) -> OpenAIEmbedder:
    settings = {"base_url": server.base_url, "max_retries": 0, **options}
    return OpenAIEmbedder("e", **settings)  # type: ignore[arg-type]


def embed(server: ScriptedServer, *texts: str, **options: object) -> Vectors:
    return asyncio.run(embedder(server, **options).embed(texts, kind="passage"))


def fails(*replies: Step, **options: object) -> str:
    with ScriptedServer(replies) as server, pytest.raises(EmbeddingError) as caught:
        embed(server, "a", "b", **options)
    return str(caught.value)


def test_rows_are_unit_float32_in_the_order_of_the_texts() -> None:
    """Batches and the server's own order do not show in the result."""
    texts = ["乔峰" * count for count in range(1, 8)]
    with ScriptedServer(respond=lengths_and_ones) as server:
        vectors = embed(server, *texts, batch_size=2)

    assert vectors.dtype == np.float32 and vectors.shape == (7, 2)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0)
    assert np.allclose(vectors[:, 0] / vectors[:, 1], [len(text) for text in texts])
    assert sorted(len(body["input"]) for body in server.bodies) == [1, 2, 2, 2]


def test_prefixes_differ_by_kind_and_show_in_the_name() -> None:
    """Queries and passages get their own prefix; one that changes the index changes the name."""
    with ScriptedServer(respond=lengths_and_ones) as server:
        model = embedder(server, query_prefix="query: ", passage_prefix="passage: ")
        asyncio.run(model.embed(["１２"], kind="query"))
        asyncio.run(model.embed([""], kind="passage"))

    assert [body["input"] for body in server.bodies] == [["query: １２"], ["passage: "]]
    assert model.name == "e + 'passage: '" and embedder(server).name == "e"


def test_nothing_asks_nothing_and_an_empty_text_is_a_space() -> None:
    """No request for no text; an empty text, which OpenAI refuses, is sent as a space."""
    with ScriptedServer(respond=lengths_and_ones) as server:
        assert embed(server, dim=2).shape == (0, 2)
        embed(server, "")

    assert [body["input"] for body in server.bodies] == [[" "]]


def test_the_dimension_is_known_given_or_asked_for_once() -> None:
    """OpenAI's models need no request; an unknown one is asked once, without a loop or inside one."""

    async def inside() -> int:
        return embedder(server).dim

    assert OpenAIEmbedder("text-embedding-3-large").dim == 3072
    with ScriptedServer(respond=lengths_and_ones) as server:
        model = embedder(server)
        assert (model.dim, model.dim, len(server.bodies)) == (2, 2, 1)
        assert asyncio.run(inside()) == 2
        assert embedder(server, dim=5).dim == 5


def test_a_shorter_vector_is_asked_for_where_the_model_can() -> None:
    """text-embedding-3-* shortens its own vectors."""
    with ScriptedServer(respond=lengths_and_ones) as server:
        model = OpenAIEmbedder("text-embedding-3-small", dim=2, base_url=server.base_url)
        asyncio.run(model.embed(["a"], kind="query"))

    assert server.bodies[0]["dimensions"] == 2


def test_wrong_answers_are_errors() -> None:
    """Too few vectors, wrong indices, another width, NaN, no numbers or far too large ones."""
    doubled = Reply({"data": [{"index": 0, "embedding": [1.0]}] * 2})
    words = Reply({"data": [{"index": 0, "embedding": "x"}, {"index": 1, "embedding": "y"}]})
    ragged = embedding_reply([[1.0], [1.0, 2.0]])

    assert "2 texts gave 1" in fails(embedding_reply([[1.0]]))
    assert "indices" in fails(doubled)
    assert "(2, 3)" in fails(embedding_reply([[1.0, 2.0]] * 2), dim=3)
    assert "no table" in fails(ragged) and "no table" in fails(words)
    assert "NaN" in fails(Reply('{"data":[{"embedding":[NaN]},{"embedding":[1]}]}'))
    assert "long" in fails(Reply('{"data":[{"embedding":[1e200]},{"embedding":[1]}]}'))


def test_failures_of_the_server_are_embedding_errors() -> None:
    """They name the host and what to do, and one of many batches is enough."""
    assert "check the model's name" in fails(error_reply(404, "no such model"))
    assert "no credit" in fails(error_reply(402, "pay"), error_reply(402, "pay"), batch_size=1)
    with (
        ScriptedServer([error_reply(401, "who?")]) as server,
        pytest.raises(EmbeddingError, match="401"),
    ):
        _ = embedder(server).dim


def test_a_row_of_zeros_stays_so() -> None:
    """What has no direction gets none; it is not NaN."""
    with ScriptedServer([embedding_reply([[0.0, 0.0]])]) as server:
        assert embed(server, "a").tolist() == [[0.0, 0.0]]


def test_clip_is_what_the_model_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short texts stay; long ones are cut with room for the tokenizer's error; no limit, no cut."""
    monkeypatch.setattr(openai_embedder, "default_tokenizer", FittedTokenizer)
    model = OpenAIEmbedder("e", max_tokens=10)

    assert model.clip("short") == "short"
    assert model.clip("三国演义" * 5) == "三国演义三国演义"
    assert OpenAIEmbedder("e").clip("a" * 99) == "a" * 99
    assert OpenAIEmbedder("text-embedding-3-small").max_tokens == 8191


def test_senseless_sizes_are_refused() -> None:
    """A batch of nothing, or a vector of none, is a ConfigError."""
    with pytest.raises(ConfigError):
        OpenAIEmbedder("e", batch_size=0)
    with pytest.raises(ConfigError):
        OpenAIEmbedder("e", dim=0)
