"""The protocols of OpenAI and Ollama: the real `openai` client, and what Open WebUI sends."""

import json
from pathlib import Path
from typing import Any

import openai
import pytest

pytest.importorskip("uvicorn", reason="needs the extra: pip install '.[server]'")

from lightrag_jsonl import LLMError
from lightrag_jsonl.server.chat import ChatMessage, last_question
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import MODES
from tests.server.running import PacedLLM, Running, serving, serving_model

TITLE_TASK = """### Task:
Generate a concise, 3-5 word title with an emoji summarizing the chat history.
### Output:
JSON format: { "title": "your concise title here" }
### Chat History:
<chat_history>
USER: 谁派张骞联络大月氏？
ASSISTANT: 汉武帝。
</chat_history>"""


def client(server: Running) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0)


@pytest.mark.slow
def test_what_chat_programs_ask_beside_questions(server: Running) -> None:
    """A model by its name, the models in memory, and a body of octets, as some clients of Ollama send it; a
    body without a type, which any page could send, is refused.
    """
    assert "kb" in {model["name"] for model in server.get("/api/ps")["models"]}
    body = b'{"model": "kb", "messages": []}'
    for media, status in (("application/octet-stream", 200), ("text/plain", 415), ("", 415)):
        response = server.client.post("/api/chat", content=body, headers={"Content-Type": media})
        assert response.status_code == status
    with client(server) as api:
        assert api.models.retrieve("kb:local").id == "kb:local"
        with pytest.raises(openai.NotFoundError, match="no such model"):
            api.models.retrieve("other")


@pytest.mark.parametrize(
    ("written", "question", "mode", "instructions"),
    [
        ("/local Where was she born?", "Where was she born?", "local", ""),
        ("/NAIVE[as a table] 她生于何处？", "她生于何处？", "naive", "as a table"),
        ("/[in one word] Where?", "Where?", "mix", "in one word"),
        ("/locally grown food, where?", "/locally grown food, where?", "mix", ""),
        ("/etc/hosts, what is it?", "/etc/hosts, what is it?", "mix", ""),
        ("/ where?", "/ where?", "mix", ""),
        ("/local", "/local", "mix", ""),
    ],
)
def test_a_slash_before_a_question_names_the_mode(
    written: str, question: str, mode: str, instructions: str
) -> None:
    """As users of LightRAG write it, with instructions in brackets; also in the turns before."""
    turns = [
        ChatMessage("user", written),
        ChatMessage("assistant", "?"),
        ChatMessage("user", written),
    ]
    asked, param = last_question(turns, "mix")
    assert (asked, param.mode, param.user_prompt) == (question, mode, instructions)
    assert [turn.content for turn in param.conversation_history] == [question, "?"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "question", "expected"),
    [
        ("kb", "Where was Marie Curie born?", "Warsaw"),
        ("kb:local", "谁派张骞联络大月氏？", "汉武帝"),
    ],
)
def test_openai_client_gets_answer_and_sources(
    server: Running, model: str, question: str, expected: str
) -> None:
    """The real client reads the answer, in one piece and in many, with the sources in both places."""
    turns: Any = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": question}]},
    ]
    with client(server) as api:
        complete = api.chat.completions.create(model=model, messages=turns, temperature=0)
        chunks = [
            *api.chat.completions.create(
                model=model, messages=turns, stream=True, stream_options={"include_usage": True}
            )
        ]
        names = {one.id for one in api.models.list()}

    text = complete.choices[0].message.content or ""
    answer, _, listed = text.partition("\n\n---\n")
    assert expected in answer and "\n- [1] " in listed
    sources = complete.model_extra["sources"]  # type: ignore[index]
    assert expected in "".join(one["text"] for one in sources)
    assert complete.usage is not None and complete.choices[0].finish_reason == "stop"
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices) == text
    assert chunks[-2].model_extra["sources"] == sources  # type: ignore[index]
    assert chunks[-1].usage == complete.usage and not chunks[-1].choices
    assert names == {"kb", *(f"kb:{mode}" for mode in MODES)}


def test_openai_client_gets_errors(server: Running) -> None:
    """An unknown model is a 404, and a conversation without a question a 400, also in a stream."""
    with client(server) as api:
        for stream in (False, True):
            with pytest.raises(openai.NotFoundError, match="no such model: gpt-4"):
                api.chat.completions.create(
                    model="gpt-4", messages=[{"role": "user", "content": "q"}], stream=stream
                )
            with pytest.raises(openai.BadRequestError, match="a user message"):
                api.chat.completions.create(model="kb", messages=[], stream=stream)
            with pytest.raises(openai.BadRequestError, match="question is empty"):
                api.chat.completions.create(
                    model="kb", messages=[{"role": "user", "content": " "}], stream=stream
                )


def test_history_and_system_turns_reach_the_model_without_source_lists(kb: Path) -> None:
    """Earlier turns are the history; the sources that the server listed are not part of it."""
    llm = ScriptedLLM(lambda request: "Warsaw [1].")
    earlier = "In Warsaw [1].\n\n---\n- [1] Curie, page 1, characters 0–9\n"
    turns: Any = [
        {"role": "system", "content": "Answer in rhyme."},
        {"role": "user", "content": "Where was she born?"},
        {"role": "assistant", "content": earlier},
        {"role": "user", "content": "Marie Curie?"},
    ]
    with serving_model(kb, llm) as server, client(server) as api:
        found = api.chat.completions.create(model="kb:naive", messages=turns, stream=True)
        text = "".join(one.choices[0].delta.content or "" for one in found)

    prompt = "\n".join(turn.content for turn in llm.requests[-1].messages)
    assert text.startswith("Warsaw [1].")
    assert "In Warsaw [1]." in prompt and "Where was she born?" in prompt
    assert "Answer in rhyme." in prompt and "---" not in prompt and "characters 0–9" not in prompt


@pytest.mark.slow
def test_ollama_chat_and_generate(server: Running) -> None:
    """NDJSON by default and one object on request; the last line is done and has the sources."""
    ask = {"model": "kb:latest", "messages": [{"role": "user", "content": "Where was Curie born?"}]}
    response = server.client.post("/api/chat", json=ask)
    assert response.headers["content-type"].startswith("application/x-ndjson")
    lines = [json.loads(line) for line in response.text.split("\n") if line]
    complete = server.post("/api/chat", {**ask, "stream": False})

    assert [one["done"] for one in lines] == [False] * (len(lines) - 1) + [True]
    assert "".join(one["message"]["content"] for one in lines) == complete["message"]["content"]
    assert (
        "Warsaw" in complete["message"]["content"] and complete["sources"] == lines[-1]["sources"]
    )
    generated = server.post(
        "/api/generate", {"model": "kb:naive", "prompt": "张骞出使哪里？", "stream": False}
    )
    assert "西域" in generated["response"] and generated["done"] is True


def test_ollama_lists_and_describes_its_models(server: Running) -> None:
    """What Open WebUI asks first: the version, the models, and one of them."""
    assert server.get("/api/version")["version"]
    names = [one["model"] for one in server.get("/api/tags")["models"]]
    assert names[0] == "kb" and "kb:mix" in names
    assert server.post("/api/show", {"model": "kb:mix"})["capabilities"] == ["completion"]
    missing = server.post("/api/show", {"model": "other"}, 404)["error"]
    assert missing.startswith("no such model: other")
    for path, body in (("/api/generate", {}), ("/api/chat", {"messages": []})):
        assert server.post(path, {"model": "kb", **body})["done_reason"] == "load"
        assert "no such model" in server.post(path, {"model": "other", **body}, 404)["error"]
        assert isinstance(server.post(path, {"model": "kb", "stream": 5}, 400)["error"], str)


def test_side_tasks_do_not_ask_the_index(server: Running) -> None:
    """A title comes from the conversation's first words, and no question is recorded."""
    ask = {"model": "kb", "messages": [{"role": "user", "content": TITLE_TASK}], "stream": False}
    answer = server.post("/api/chat", ask)["message"]["content"]
    assert json.loads(answer) == {"title": "谁派张骞联络大月氏？"}
    tags = {**ask, "messages": [{"role": "user", "content": '### Task:\n{ "tags": ["a"] }'}]}
    complete = server.post("/v1/chat/completions", tags)
    assert json.loads(complete["choices"][0]["message"]["content"]) == {"tags": []}
    assert server.get("/indexes/kb/traces") == []


def test_side_tasks_go_to_the_model_as_they_are(kb: Path) -> None:
    """With a model the task is the only prompt, without a context from the index."""
    llm = PacedLLM(['{"title": "Envoy"}'])
    with serving_model(kb, llm) as server:
        ask = {"model": "kb", "messages": [{"role": "user", "content": TITLE_TASK}]}
        answer = server.post("/v1/chat/completions", ask)["choices"][0]["message"]["content"]
        assert server.get("/indexes/kb/traces") == []
    assert (answer, llm.calls) == ('{"title": "Envoy"}', [TITLE_TASK])


def test_error_of_the_model_ends_a_stream_in_words(kb: Path) -> None:
    """A model that fails after its first words: both protocols say so, and no page of HTML comes."""
    llm = PacedLLM()

    async def fail(messages: Any, **more: Any) -> Any:
        yield "one "
        raise LLMError("the model is gone", permanent=True)

    llm.stream = fail  # type: ignore[method-assign, assignment]
    turns: Any = [{"role": "user", "content": "Marie Curie?"}]
    with serving_model(kb, llm) as server, client(server) as api:
        stream = api.chat.completions.create(model="kb:naive", messages=turns, stream=True)
        with pytest.raises(openai.APIError, match="the model is gone"):
            list(stream)
        ask = {"model": "kb:naive", "messages": turns}
        lines = server.client.post("/api/chat", json=ask).text.strip().split("\n")
        assert "the model is gone" in json.loads(lines[-1])["error"]
        events = server.events("/indexes/kb/stream", {"question": "Curie", "mode": "naive"})
        assert events[-1][0] == "error" and events[-1][1]["code"] == "model"


def test_refusals_are_written_in_the_protocol(kb: Path) -> None:
    """Without the token, Ollama's clients get a text, and those of OpenAI an object."""
    with serving(kb, token="a-token-for-this-test") as server:
        paths, nothing = ("/api/tags", "/v1/models"), {"X-API-Key": ""}
        first, second = (server.client.get(path, headers=nothing).json() for path in paths)
        assert first["error"].startswith("send the token")
        assert second["error"]["message"] == first["error"]
