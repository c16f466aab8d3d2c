"""OpenAIEmbedder against a server that plays a script."""

import asyncio

import numpy as np
import pytest

from lightrag_jsonl import EmbeddingError, OpenAIEmbedder
from lightrag_jsonl.providers import openai_embedder
from tests.kit import TOKENIZER, Vectors
from tests.servers import Reply, Request, ScriptedServer, embedding_reply, error_reply


def lengths_and_ones(request: Request) -> Reply:
    """A vector of a text's length for each; the answer lists them backwards."""
    texts = request.json["input"]
    return embedding_reply([(len(text), 1.0) for text in texts], order=range(len(texts))[::-1])


def embedder(server: ScriptedServer, **options: object) -> OpenAIEmbedder:
    settings = {"base_url": server.base_url, "max_retries": 0, **options}
    return OpenAIEmbedder("e", **settings)  # type: ignore[arg-type]


def embed(server: ScriptedServer, *texts: str, **options: object) -> Vectors:
    return asyncio.run(embedder(server, **options).embed(texts, kind="passage"))


def test_rows_are_unit_float32_in_the_order_of_the_texts() -> None:
    """The server's own order does not show in the result; a row of zeros is refused."""
    texts = ["乔峰" * count for count in range(1, 8)]
    with ScriptedServer(respond=lengths_and_ones) as server:
        vectors = embed(server, *texts)

    assert vectors.dtype == np.float32 and vectors.shape == (7, 2)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0)
    assert np.allclose(vectors[:, 0] / vectors[:, 1], [len(text) for text in texts])
    zeros = ScriptedServer([embedding_reply([[0.0, 0.0]])])
    with zeros as server, pytest.raises(EmbeddingError, match="only zeros"):
        embed(server, "a")


def test_prefixes_differ_by_kind_and_show_in_the_name() -> None:
    """Queries and passages get their own prefix; one that changes the index changes the name. There is
    no request for no text; an empty text, which OpenAI refuses, is sent as a space.
    """
    with ScriptedServer(respond=lengths_and_ones) as server:
        model = embedder(server, query_prefix="query: ", passage_prefix="passage: ")
        asyncio.run(model.embed(["１２"], kind="query"))
        asyncio.run(model.embed([""], kind="passage"))
        assert embed(server, dim=2).shape == (0, 2)
        embed(server, "")

    assert [body["input"] for body in server.bodies] == [["query: １２"], ["passage: "], [" "]]
    assert model.name == "e + 'passage: '" and embedder(server).name == "e"


def test_the_dimension_is_known_given_or_asked_for_once() -> None:
    """OpenAI's models need no request, and can shorten their vectors; an unknown one is asked once,
    without a loop or inside one.
    """

    async def inside() -> int:
        return embedder(server).dim

    large = "text-embedding-3-large"
    assert OpenAIEmbedder(large).dim == 3072
    with ScriptedServer(respond=lengths_and_ones) as server:
        model = embedder(server)
        assert (model.dim, model.dim, len(server.bodies)) == (2, 2, 1)
        assert asyncio.run(inside()) == 2
        assert embedder(server, dim=5).dim == 5
        shorter = OpenAIEmbedder(large, dim=2, base_url=server.base_url)
        assert asyncio.run(shorter.embed(["a"], kind="query")).shape == (1, 2)
    assert server.bodies[-1]["dimensions"] == 2


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (embedding_reply([[1.0]]), r"shape \(2, dim\), got \(1, 1\)"),
        (Reply({"data": [{"index": 0, "embedding": [1.0]}] * 2}), "not a list of vectors"),
        (Reply({"data": None}), "not a list of vectors"),
        (embedding_reply([[1.0], [1.0, 2.0]]), "not a table"),
        (Reply('{"data":[{"embedding":[NaN]},{"embedding":[1]}]}'), "NaN"),
        (error_reply(404, "no such model"), "check the model's name"),
    ],
)
def test_wrong_answers_and_failures_are_embedding_errors(reply: Reply, words: str) -> None:
    """Too few vectors, wrong indices, other widths, no numbers; a refusal says what to do."""
    with ScriptedServer([reply]) as server, pytest.raises(EmbeddingError, match=words):
        embed(server, "a", "b")


@pytest.mark.parametrize(
    ("status", "unavailable"),
    [
        *((status, False) for status in (400, 403, 413, 422, 500)),
        *((status, True) for status in (401, 402, 404, 429, 502, 503, 504)),
    ],
)
def test_a_refused_text_differs_from_a_server_that_cannot_be_asked(
    status: int, unavailable: bool
) -> None:
    """What may be about the text is told from what concerns every text; the server's words remain,
    also where they begin like markup.
    """
    reply = error_reply(status, "<400> InvalidParameter: 第 3 段")
    with ScriptedServer([reply]) as server, pytest.raises(EmbeddingError) as caught:
        embed(server, "a", max_retries=0)
    assert caught.value.unavailable is unavailable and "第 3 段" in str(caught.value)


def test_no_connection_is_no_refusal() -> None:
    """Of a server that is gone, nothing is learned about a text."""
    with ScriptedServer() as server:
        model = embedder(server, dim=2, max_retries=0)
    with pytest.raises(EmbeddingError) as caught:
        asyncio.run(model.embed(["a"], kind="passage"))
    assert caught.value.unavailable


def test_clip_is_what_the_model_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short texts stay; long ones are cut with room for the tokenizer's error; no limit, no cut."""
    monkeypatch.setattr(openai_embedder, "default_tokenizer", lambda: TOKENIZER)
    model = OpenAIEmbedder("e", max_tokens=10)

    assert model.clip("short") == "short"
    assert model.clip("三国演义" * 5) == "三国演义三国演义"
    assert OpenAIEmbedder("e").clip("a" * 99) == "a" * 99
    assert OpenAIEmbedder("text-embedding-3-small").max_tokens == 8191


def test_a_huge_answer_is_not_read_to_its_end() -> None:
    """It fails with the option's name, and does not fill the memory."""
    huge = ScriptedServer([embedding_reply([[0.5] * 100_000])])
    words = r"longer than 10,000 bytes \(max_answer_bytes\)"
    with huge as server, pytest.raises(EmbeddingError, match=words):
        embed(server, "a", max_answer_bytes=10_000)
