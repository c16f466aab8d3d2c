"""The config files of docs/models.md, each with a server that behaves like the one that the file is for.

Such a server refuses what the real one refuses, and keeps to its own ways; a text of several chunks is
indexed, and a question answered, by the command line with nothing but the config file.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import run, run_json
from tests.conftest import CHECKOUT
from tests.kit import TOKENIZER, entity, jsonl, relation
from tests.servers import (
    Reply,
    Request,
    ScriptedServer,
    chat_reply,
    embedding_reply,
    error_reply,
    stream_reply,
)

TEXT = "\n\n".join(
    f"In {year} Ada met Charles in London, and they built a mill." for year in range(1700, 1950)
)
RECORDS = jsonl(
    entity("Ada"),
    entity("Charles"),
    *(entity(f"Mill {number}") for number in range(12)),
    relation("Ada", "Charles", "Ada met Charles in London."),
)
USAGE = {"prompt_tokens": 9, "completion_tokens": 9}


def config_file(words: str) -> str:
    """The config file of the documentation with these words in it."""
    page = (CHECKOUT / "docs" / "models.md").read_text(encoding="utf-8")
    (config,) = [
        config for config in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if words in config
    ]
    return str(config)


def prompt_tokens(request: Request) -> int:
    """The tokens of a chat request."""
    return sum(TOKENIZER.count(turn["content"]) for turn in request.json["messages"])


def answer_to(request: Request) -> str:
    """Records about a chunk, keywords or an answer."""
    text = request.json["messages"][-1]["content"]
    return "Ada met Charles in London [1]." if "Question:" in text else RECORDS


def vectors(request: Request, *, most: int, dim: int) -> Reply:
    """Vectors, unless there are too many texts."""
    texts = request.json["input"]
    if len(texts) > most:
        return error_reply(400, f"batch size is invalid, it should not be larger than {most}.")
    return embedding_reply([[1.0 + number, *[1.0] * (dim - 1)] for number in range(len(texts))])


def ollama(request: Request) -> Reply:
    """Cuts what exceeds its window without a word; streams when asked; wants no key."""
    if request.path.endswith("/embeddings"):
        return vectors(request, most=1_000, dim=1_024)
    if prompt_tokens(request) + request.json.get("max_tokens", 0) > 4_096:
        return chat_reply("The instructions were cut off.")
    if request.json.get("stream"):
        return stream_reply([answer_to(request)], usage=USAGE)
    reply = chat_reply(answer_to(request), prompt_tokens=prompt_tokens(request))
    reply.body["system_fingerprint"] = "fp_ollama"
    return reply


def vllm(request: Request) -> Reply:
    """Refuses what exceeds its window, counting the answer; forces the form of records."""
    if request.json.get("chat_template_kwargs") != {"enable_thinking": False}:
        return chat_reply("<think>" + "Hm. " * 50)
    tokens = prompt_tokens(request) + request.json.get("max_tokens", 0)
    if tokens > 16_384:
        return error_reply(
            400, f"This model's maximum context length is 16384 tokens, not {tokens}"
        )
    if request.json.get("stream"):
        return stream_reply([answer_to(request)], usage=USAGE)
    text = answer_to(request)
    if "response_format" in request.json:
        text = f'{{"records": [{", ".join(RECORDS.split(chr(10)))}]}}'
    return chat_reply(text)


def dashscope(request: Request) -> Reply:
    """Wants the key as a token, and embeds at most ten texts at once."""
    if request.headers.get("authorization") != "Bearer sk-YOUR-KEY":
        return error_reply(401, "Incorrect API key provided.", code="invalid_api_key")
    if request.path.endswith("/embeddings"):
        return vectors(request, most=10, dim=1_024)
    if request.json.get("stream"):
        return stream_reply([answer_to(request)], usage=USAGE)
    return chat_reply(answer_to(request))


def azure(request: Request) -> Reply:
    """Wants its own header, the version, and the path of a deployment."""
    path, _, query = request.path.partition("?")
    if request.headers.get("api-key") != "YOUR-KEY" or "authorization" in request.headers:
        return error_reply(401, "Access denied due to invalid subscription key", code="401")
    if query != "api-version=2024-10-21":
        return error_reply(404, "Resource not found", code="404")
    if path == "/openai/deployments/text-embedding-3-small/embeddings":
        return vectors(request, most=2_048, dim=1_536)
    if path != "/openai/deployments/gpt-4o-mini/chat/completions":
        return error_reply(404, "The API deployment for this resource does not exist.", code="404")
    if request.json.get("stream"):
        return stream_reply([answer_to(request)], usage=USAGE)
    return chat_reply(answer_to(request))


SERVERS: dict[str, tuple[str, Callable[[Request], Reply]]] = {
    "Ollama": (":11434", ollama),
    "vLLM": (":8000", vllm),
    "DashScope": ("dashscope", dashscope),
    "Azure": ("azure.com", azure),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVERS)
def test_a_laptop_with_nothing_but_the_config_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Indexes a text whole, without a failure, and answers from the index."""
    words, respond = SERVERS[name]
    monkeypatch.chdir(tmp_path)
    user_file = Path(os.environ["XDG_CONFIG_HOME"]) / "lightrag-jsonl" / "config.toml"
    user_file.parent.mkdir(parents=True)
    Path("a.txt").write_text(TEXT, encoding="utf-8")
    with ScriptedServer(respond=respond) as server:
        config = re.sub(r"https?://[^/\"]+", server.url, config_file(words))
        user_file.write_text(config, encoding="utf-8")
        report = run_json("insert", "-w", "kb", "a.txt")
        answer = run_json("query", "-w", "kb", "--mode", "local", "Whom did Ada meet?")
        assert run("query", "-w", "kb", "Whom did Ada meet?").exit_code == 0

    assert report["failures"] == [] and report["chunks"] > 1
    assert report["extraction"]["ok"] == report["chunks"]
    assert answer["text"] == "Ada met Charles in London [1]." and answer["citations"]
