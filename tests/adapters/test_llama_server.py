"""The adapters against a real llama.cpp server with a random model: nothing is played here."""

from __future__ import annotations

import asyncio
import json

import jsonschema
import numpy as np
import pytest

from lightrag_jsonl.adapters import OpenAIEmbedder, OpenAILLM
from lightrag_jsonl.errors import LLMError
from lightrag_jsonl.types import Json, Message

QUESTION = [Message("user", "Name the heroes. 乔峰 🌍")]
NAMES = ("乔峰", "Ebenezer Scrooge", 'Tim "Tiny" Cratchit', "C:\\temp", "line\nbreak", "🌍")

# First bytes of needlessly long UTF-8, which llama.cpp's grammars take for the character meant.
# A token of the tiny model is a byte; no real model writes these.
OVERLONG = (0xC0, 0xC1, 0xE0, 0xF0, *range(0xF5, 0x100))


def record(kind: str, **fields: Json) -> Json:
    properties: Json = {"type": {"const": kind}, **fields}
    return {"type": "object", "properties": properties, "required": ["type", *fields]}


TEXT: Json = {"type": "string", "maxLength": 40}
KEYWORDS: Json = {"type": "array", "items": {"enum": ["kin", "friend"]}, "maxItems": 3}
STRENGTH: Json = {"type": "number", "minimum": 1, "maximum": 10}
SCHEMA: Json = {
    "oneOf": [
        record("entity", name=TEXT, size={"enum": ["大", "small"]}, description=TEXT),
        record("relationship", source=TEXT, target=TEXT, keywords=KEYWORDS, strength=STRENGTH),
        record(
            "attribute", entity=TEXT, value={"type": ["string", "boolean", "null"], "maxLength": 9}
        ),
        record("done", entities={"type": "integer", "minimum": 0}),
    ]
}


def test_chat_stops_at_the_limit_and_counts(tiny_llama: str) -> None:
    """A cut answer finishes with "length" and its tokens are counted."""
    answer = asyncio.run(OpenAILLM("tiny", base_url=tiny_llama).complete(QUESTION, max_tokens=12))

    assert answer.text and answer.finish == "length"
    assert answer.usage.output_tokens == 12 and answer.usage.input_tokens > 10
    assert answer.usage.calls == 1


async def test_a_stream_is_the_answer_in_pieces(tiny_llama: str) -> None:
    """At temperature 0 the pieces, joined, are the whole answer."""
    llm = OpenAILLM("tiny", base_url=tiny_llama, extra_body={"grammar": "root ::= [a-z]{30}"})
    pieces = [piece async for piece in llm.stream(QUESTION)]
    whole = (await llm.complete(QUESTION)).text
    assert len(pieces) > 1 and "".join(pieces) == whole and len(whole) == 30


@pytest.mark.parametrize("names", [None, NAMES])
def test_every_line_of_a_random_model_is_valid(
    tiny_llama: str, names: tuple[str, ...] | None
) -> None:
    """Held by the grammar, noise comes out as records of the schema, its names from the list."""
    llm = OpenAILLM(
        "tiny",
        base_url=tiny_llama,
        constrain="grounded",
        temperature=1.0,
        extra_body={"logit_bias": [[byte, False] for byte in OVERLONG]},
    )
    checker = jsonschema.Draft202012Validator(SCHEMA)

    async def ask() -> list[str]:
        asked = (
            llm.complete_records(QUESTION, schema=SCHEMA, names=names, max_tokens=400)
            for _ in range(6)
        )
        answers = await asyncio.gather(*asked)
        cut = [answer.finish == "length" for answer in answers]
        lines = [answer.text.rstrip("\n").split("\n") for answer in answers]
        return [
            line for part, half in zip(lines, cut, strict=True) for line in part[: len(part) - half]
        ]

    found = [json.loads(line) for line in asyncio.run(ask())]

    assert len(found) >= 1
    for value in found:
        checker.validate(value)
        chosen = [value[key] for key in ("name", "source", "target", "entity") if key in value]
        assert all(chosen) and (names is None or set(chosen) <= set(names))


def test_embeddings_are_unit_rows(tiny_llama: str) -> None:
    """A real server's vectors: the width asked for once, one row a text, equal texts alike."""
    embedder = OpenAIEmbedder("tiny", base_url=tiny_llama, batch_size=2)
    # All of six bytes: this server pools texts of different lengths in one batch inexactly.
    vectors = asyncio.run(embedder.embed(["乔峰", "Marley", "乔峰", "阿朱"], kind="passage"))

    assert vectors.shape == (4, embedder.dim) == (4, 64)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert np.allclose(vectors[0], vectors[2], atol=1e-3)
    assert not np.allclose(vectors[0], vectors[1], atol=1e-2)


def test_a_prompt_beyond_the_context_is_explained(tiny_llama: str) -> None:
    """llama.cpp's refusal of a prompt that is too long reaches the caller in words."""
    with pytest.raises(LLMError, match="context") as caught:
        asyncio.run(
            OpenAILLM("tiny", base_url=tiny_llama).complete([Message("user", "a" * 40_000)])
        )

    assert not caught.value.transient
