"""A model server that answers from records: chat completions and embeddings as OpenAI offers them.

Every contestant has an address of its own, by which the server knows the form of its prompts, and
counts what it asks for.
"""

import base64
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from benchmarks.referee.contestants.base import FILTER_BY_NAMES
from benchmarks.referee.formats import (
    FORMATS,
    Format,
    Kind,
    Prompt,
    filtered_facts,
    hippo_names,
    points,
    report,
)
from benchmarks.referee.material import Material, Row
from benchmarks.referee.records import Records, texts_key
from benchmarks.referee.vectors import CachedVectors
from lightrag_jsonl.core.tokens import default_tokenizer

UNANSWERED = "There is no record about this."


@dataclass(slots=True)
class Counts:
    """What a contestant has asked for: calls by kind, tokens, texts embedded."""

    calls: Counter[str] = field(default_factory=Counter)
    tokens_read: int = 0
    tokens_written: int = 0
    embedding_calls: int = 0
    texts_embedded: int = 0

    def as_json(self) -> dict[str, Any]:
        """The counts as plain values."""
        return {
            "calls": dict(self.calls),
            "tokens_read": self.tokens_read,
            "tokens_written": self.tokens_written,
            "embedding_calls": self.embedding_calls,
            "texts_embedded": self.texts_embedded,
        }


@dataclass(frozen=True, slots=True)
class Behavior:
    """What goes wrong: the share of an extraction answer that arrives; whether the example of the
    prompt is copied into the answer; seconds before an answer.
    """

    cut: float = 1.0
    copies_example: bool = False
    delay: float = 0.0


class ScriptedModel:
    """Answers the prompts of one contestant from records."""

    def __init__(self, form: Format, records: Records) -> None:
        self.counts = Counts()
        self.behavior = Behavior()
        self.unanswered: list[str] = []
        self.copied = 0  # examples
        self._form = form
        self._records = records
        self._lock = threading.Lock()
        self._tokenizer = default_tokenizer()

    def answer(self, prompt: Prompt) -> tuple[str, str]:
        """The text of an answer and why it ends: "stop", or "length" if it is cut off."""
        kind = self._form.kind(prompt)
        text, finish = self._answer(kind, prompt)
        with self._lock:
            self.counts.calls[kind.value] += 1
            self.counts.tokens_read += self._tokenizer.count(prompt.text)
            self.counts.tokens_written += self._tokenizer.count(text)
            if kind == Kind.OTHER:
                self.unanswered.append(prompt.text[:500])
        return text, finish

    def _answer(self, kind: Kind, prompt: Prompt) -> tuple[str, str]:
        if kind in (Kind.EXTRACTION, Kind.GLEANING, Kind.NAMES):
            return self._extraction(kind, prompt)
        question = self._records.question_in(prompt.text)
        answers: Mapping[Kind, Callable[[], str]] = {
            Kind.MORE: lambda: "NO",
            Kind.SUMMARY: partial(self._form.summary, prompt),
            Kind.REPORT: partial(report, prompt),
            Kind.POINTS: partial(points, prompt),
            Kind.FILTER: partial(
                filtered_facts, prompt, question, by_names=prompt.model == FILTER_BY_NAMES
            ),
        }
        if kind == Kind.KEYWORDS and question is not None:
            return self._form.keywords(question), "stop"
        answer = answers.get(kind)
        return (answer() if answer else UNANSWERED), "stop"

    def _extraction(self, kind: Kind, prompt: Prompt) -> tuple[str, str]:
        rows = self._records.rows_about(self._form.source(prompt))
        arrived = int(len(rows) * self.behavior.cut)
        if kind == Kind.GLEANING:
            return (
                self._form.rows(rows[arrived:]) if rows[arrived:] else self._form.nothing
            ), "stop"
        if kind == Kind.NAMES:
            return hippo_names(rows[:arrived]), "stop"
        if self.behavior.copies_example:
            example = self._form.example(prompt)
            self.copied += bool(example)
            return example or self._form.rows(rows), "stop"
        if arrived < len(rows):
            return self._cut(rows, arrived), "length"
        return self._form.rows(rows), "stop"

    def _cut(self, rows: Sequence[Row], arrived: int) -> str:
        """The rows that arrived, and half of the next one."""
        whole = self._form.rows(rows)
        begin = _common_length(whole, self._form.rows(rows[:arrived]))
        end = _common_length(whole, self._form.rows(rows[: arrived + 1]))
        return whole[: (begin + end) // 2]


def _common_length(text: str, other: str) -> int:
    """The number of characters that two texts begin with alike."""
    pairs = zip(text, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), len(other))


class ModelServer:
    """The server; `address(contestant)` is the base address of a contestant's requests."""

    def __init__(self, records: Records, vectors: CachedVectors) -> None:
        self.models = {name: ScriptedModel(form, records) for name, form in FORMATS.items()}
        self.records = records
        self.vectors = vectors
        handler = type("Handler", (_Handler,), {"server_state": self})
        self._server = _QuietServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def address(self, contestant: str) -> str:
        """Such as http://127.0.0.1:4242/nano/v1."""
        return f"http://127.0.0.1:{self._server.server_port}/{contestant}/v1"

    def learn(self, material: Material) -> None:
        """Answer about the texts of a material, too."""
        self.records.add(material)

    @contextmanager
    def behaving(self, contestant: str, behavior: Behavior) -> Iterator[None]:
        """Answer a contestant in another way in the block."""
        model = self.models[contestant]
        model.behavior = behavior
        try:
            yield
        finally:
            model.behavior = Behavior()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A killed contestant closes its connections: that is no error; anything else is printed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_state: ModelServer

    def do_GET(self) -> None:
        """The counts of a contestant."""
        model = self.server_state.models[self.path.split("/")[1]]
        self._send(model.counts.as_json())

    def do_POST(self) -> None:
        """A chat completion or embeddings."""
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        model = self.server_state.models[self.path.split("/")[1]]
        time.sleep(model.behavior.delay)
        if self.path.endswith("/embeddings"):
            self._send(self._embeddings(model, body))
        elif self.path.endswith("/chat/completions"):
            completion = _completion(model, body)
            if body.get("stream"):
                self._stream(completion)
            else:
                self._send(completion)
        else:
            self.send_error(404)

    def _embeddings(self, model: ScriptedModel, body: Mapping[str, Any]) -> dict[str, Any]:
        texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
        vectors = self.server_state.vectors.embed(texts)
        model.counts.embedding_calls += 1
        model.counts.texts_embedded += len(texts)
        is_packed = body.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": number, "embedding": _encoded(vector, is_packed)}
            for number, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return {"object": "list", "model": body["model"], "data": data, "usage": usage}

    def _send(self, value: Mapping[str, Any]) -> None:
        content = json.dumps(value).encode()
        with suppress(ConnectionError):  # the contestant was killed
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def _stream(self, completion: Mapping[str, Any]) -> None:
        """A completion as a stream of one piece."""
        choice = completion["choices"][0]
        content = {"role": "assistant", "content": choice["message"]["content"]}
        deltas = [{"index": 0, "delta": content, "finish_reason": None}]
        deltas.append({"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]})
        events = [
            json.dumps({**completion, "object": "chat.completion.chunk", "choices": [delta]})
            for delta in deltas
        ]
        lines = "".join([f"data: {event}\n\n" for event in [*events, "[DONE]"]]).encode()
        with suppress(ConnectionError):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(lines)))
            self.end_headers()
            self.wfile.write(lines)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""


def _encoded(vector: np.ndarray[Any, np.dtype[np.float32]], is_packed: bool) -> object:
    return base64.b64encode(vector.tobytes()).decode() if is_packed else vector.tolist()


def _completion(model: ScriptedModel, body: Mapping[str, Any]) -> dict[str, Any]:
    messages = [(message["role"], _text(message["content"])) for message in body["messages"]]
    prompt = Prompt(
        system="\n".join([text for role, text in messages if role in ("system", "developer")]),
        turns=tuple([text for role, text in messages if role == "user"]),
        model=str(body["model"]),
    )
    text, finish = model.answer(prompt)
    message = {"role": "assistant", "content": text}
    return {
        "id": f"chatcmpl-{texts_key([prompt.text])}",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def _text(content: object) -> str:
    """The text of a message, which some clients send in parts."""
    if isinstance(content, list):
        return "".join([part.get("text", "") for part in content])
    return str(content or "")
