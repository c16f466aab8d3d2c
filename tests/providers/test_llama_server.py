"""The providers against a real llama.cpp server with a random model: nothing is played here."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import jsonschema
import pytest
import yaml

from lightrag_jsonl import Completion, Message, OpenAILLM
from lightrag_jsonl.core.retrying import retries_of, with_retries
from tests import servers
from tests.conftest import CHECKOUT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # a server with a model

QUESTION = [Message("user", "Name the heroes. 乔峰 🌍")]
NAMES = ("乔峰", "Ebenezer Scrooge", 'Tim "Tiny" Cratchit', "C:\\temp", "line\nbreak", "🌍")

# First bytes of needlessly long UTF-8, which llama.cpp's grammars take for the character meant.
# A token of the tiny model is a byte; no real model writes these.
OVERLONG = (0xC0, 0xC1, 0xE0, 0xF0, *range(0xF5, 0x100))
END_OF_TURN = 259  # the token after which the tiny model writes nothing more


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a real llama.cpp server; its model has random weights and talks noise."""
    pytest.importorskip("xllamacpp", reason="needs the wheel xllamacpp")
    pytest.importorskip("gguf", reason="needs the package gguf")
    model = tmp_path_factory.mktemp("llama") / "tiny.gguf"
    servers.write_tiny_llama(model)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    command = [sys.executable, servers.__file__, str(model)]
    server = subprocess.Popen(command, **pipes, encoding="utf-8")  # type: ignore[call-overload]
    assert server.stdin is not None and server.stdout is not None
    try:
        address = server.stdout.readline().strip()
        assert address, "the llama.cpp server did not start"
        yield f"{address}/v1"
    finally:
        server.stdin.close()  # its sign to leave; also given if this process dies
        server.wait(servers.STARTUP_SECONDS)


def record(kind: str, **fields: Any) -> Any:
    properties: Any = {"type": {"const": kind}, **fields}
    return {"type": "object", "properties": properties, "required": ["type", *fields]}


def schema(length: int) -> dict[str, Any]:
    """The schema of records whose texts have at most so many characters."""
    text: Any = {"type": "string", "maxLength": length}
    kinds: Any = {"type": "array", "items": {"enum": ["kin", "friend"]}, "maxItems": 3}
    strength: Any = {"type": "integer", "minimum": 1, "maximum": 10}
    value: Any = {"type": ["string", "boolean", "null"], "maxLength": length}
    return {
        "oneOf": [
            record("entity", name=text, size={"enum": ["大", "small"]}, description=text),
            record("relationship", source=text, target=text, keywords=kinds, strength=strength),
            record("attribute", entity=text, value=value),
        ]
    }


def model(url: str, *, banned: tuple[int, ...] = OVERLONG) -> OpenAILLM:
    """A model that holds to schemas, writes no broken UTF-8, and few empty lists."""
    bias: Any = [[ord("]"), -3.0], *([token, False] for token in banned)]
    body = {"logit_bias": bias, "temperature": 1.0}
    return OpenAILLM("tiny", base_url=url, constrain="grounded", extra_body=body)


async def complete_records(llm: OpenAILLM, **options: Any) -> Completion:
    """An answer to the question; llama.cpp may close an idle connection while a request is on its way."""
    ask = partial(llm.complete_records, QUESTION, **options)
    return await with_retries(ask, retries=retries_of(llm))


async def written_records(llm: OpenAILLM, *, enough: int) -> list[str]:
    """The whole lines of answers, at least so many; a random model often ends within its first record."""
    lines: list[str] = []
    for _ in range(120):
        if len(lines) >= enough:
            break
        asked = [
            complete_records(llm, schema=schema(40), names=NAMES, max_tokens=400) for _ in range(4)
        ]
        for answer in await asyncio.gather(*asked):
            written = [line for line in answer.text.split("\n") if line]
            lines += written[:-1] if answer.finish == "length" else written
    assert len(lines) >= enough
    return lines


async def test_every_record_of_a_random_model_is_valid(tiny_llama: str) -> None:
    """Held to the schema, noise comes out as records of it, a line each, their names from the list."""
    found = await written_records(model(tiny_llama), enough=4)
    # Noise of bytes that are no UTF-8 becomes several characters.
    checker = jsonschema.Draft202012Validator(schema(3 * 40))
    for value in map(json.loads, found):
        checker.validate(value)
        chosen = [value[key] for key in ("name", "source", "target", "entity") if key in value]
        assert set(chosen) <= set(NAMES)


async def test_constrained_records_have_no_white_space_between_tokens(tiny_llama: str) -> None:
    """A record a line, written as compactly as JSON can be, and valid, from the first answer on."""
    lines = await written_records(model(tiny_llama, banned=(*OVERLONG, END_OF_TURN)), enough=12)
    checker = jsonschema.Draft202012Validator(schema(3 * 40))
    for line in lines:
        value = json.loads(line)
        checker.validate(value)
        outside_texts = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line)
        assert not re.search(r"\s", outside_texts)


async def test_the_schemas_of_all_prompts_are_understood(
    tiny_llama: str, caplog: pytest.LogCaptureFixture
) -> None:
    """None is refused, with names and without."""
    llm = model(tiny_llama)
    texts = [path.read_text(encoding="utf-8") for path in sorted(CHECKOUT.glob("prompts_??/*.md"))]
    prompts = [yaml.safe_load(text.split("---")[1]) for text in texts]
    schemas = [p["schema"] for p in prompts if "schema" in p and p["response-type"] == "jsonl"]

    for one in schemas:
        for names in (None, NAMES):
            await complete_records(llm, schema=one, names=names, max_tokens=5)
    assert len(schemas) >= 12 and not caplog.messages
