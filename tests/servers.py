"""Model servers for tests: one that plays a script, and a real llama.cpp with a tiny random model."""

import json
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

STARTUP_SECONDS = 240


@dataclass(frozen=True)
class Request:
    """What a client posted; header names are in lower case."""

    headers: Mapping[str, str]
    json: dict[str, Any]
    path: str = ""


@dataclass(frozen=True)
class Reply:
    """What the server sends back.

    `body` may be bytes, text or anything JSON. With `events`, the answer is a stream of
    server-sent events, one each, ended by [DONE]. `delay` seconds pass before anything is sent.
    After `cut_after` bytes of the body (or that many events) the connection is closed in the middle.
    """

    body: Any = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut_after: int | None = None
    events: Sequence[Any] | None = None


def chat_reply(
    text: str | None,
    *,
    finish: str = "stop",
    prompt_tokens: int = 7,
    completion_tokens: int = 5,
    cached_tokens: int = 0,
) -> Reply:
    message = {"role": "assistant", "content": text}
    usage: dict[str, Any] = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    usage["prompt_tokens_details"] = {"cached_tokens": cached_tokens}
    choices = [{"index": 0, "message": message, "finish_reason": finish}]
    return Reply({"id": "c", "object": "chat.completion", "choices": choices, "usage": usage})


def stream_reply(
    pieces: Iterable[str], *, finish: str | None = "stop", usage: Mapping[str, int] | None = None
) -> Reply:
    """A chat completion in pieces; without `finish` it just stops. `usage` is reported after the end."""
    choices: list[Any] = [[{"index": 0, "delta": {"content": piece}}] for piece in pieces]
    if finish is not None:
        choices.append([{"index": 0, "delta": {}, "finish_reason": finish}])
    events = [{"id": "c", "choices": choice} for choice in choices]
    return Reply(events=events + ([{"choices": [], "usage": usage}] if usage else []))


def embedding_reply(vectors: Sequence[Sequence[float]], *, order: Sequence[int] = ()) -> Reply:
    """Embeddings, listed in another `order` if one is given."""
    rows = [
        {"object": "embedding", "index": at, "embedding": list(vectors[at])}
        for at in (order or range(len(vectors)))
    ]
    return Reply({"object": "list", "data": rows, "usage": {"prompt_tokens": 1}})


def error_reply(
    status: int, message: str, *, code: str | None = None, retry_after: str | None = None
) -> Reply:
    """An error as OpenAI words it."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return Reply({"error": {"message": message, "code": code}}, status=status, headers=headers)


Step = Reply | Callable[[Request], Reply]


class ScriptedServer:
    """An HTTP server on loopback that answers from a script, then by `respond`.

    Every request is kept in `requests`, but for those of its list of `models`. At the end of the script
    it answers 500, not to be retried.
    """

    def __init__(
        self,
        replies: Iterable[Step] = (),
        *,
        respond: Callable[[Request], Reply] | None = None,
        models: Reply | None = None,
    ) -> None:
        self.models = models or error_reply(404, "no list of models")
        self.requests: list[Request] = []
        self._replies = list(replies)
        self._respond = respond
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.json for request in self.requests]

    def __enter__(self) -> "ScriptedServer":
        serve = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        serve.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            step = self._replies.pop(0) if self._replies else self._respond
        if step is None:
            end = error_reply(500, "the script is at its end")
            return replace(end, headers={"x-should-retry": "false"})
        return step(request) if callable(step) else step

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        answer, closing, models = self._answer, self._closing, self.models

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:
                """Write nothing."""

            def do_GET(self) -> None:
                _send(self, models)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                reply = answer(Request(headers, json.loads(body), path=self.path))
                if reply.delay:
                    closing.wait(reply.delay)
                try:
                    _send(self, reply)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

        return Handler


def _send(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    if reply.events is not None:
        _send_events(handler, reply)
        return
    body = reply.body
    kind = "text/html" if isinstance(body, str | bytes) else "application/json"
    if not isinstance(body, str | bytes):
        body = json.dumps(body, ensure_ascii=False)
    content = body.encode("utf-8") if isinstance(body, str) else body
    _head(handler, reply, {"Content-Type": kind, "Content-Length": str(len(content))})
    handler.wfile.write(content[: reply.cut_after])
    handler.close_connection = reply.cut_after is not None


def _send_events(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    """Chunked, so that a connection closed early differs from an end."""
    kind = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
    _head(handler, reply, {**kind, "Connection": "close"})  # or the next request may meet the end
    events = [json.dumps(event, ensure_ascii=False) for event in reply.events or ()]
    for event in [*events, "[DONE]"][: reply.cut_after]:
        data = f"data: {event}\n\n".encode()
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        handler.wfile.flush()
    if reply.cut_after is None:
        handler.wfile.write(b"0\r\n\r\n")


def _head(handler: BaseHTTPRequestHandler, reply: Reply, headers: Mapping[str, str]) -> None:
    handler.send_response(reply.status)
    for name, value in {**headers, **reply.headers}.items():
        handler.send_header(name, value)
    handler.end_headers()


def write_tiny_llama(path: Path) -> None:
    """A llama of two layers and random weights; one token a byte, so that it can write any text."""
    import gguf

    tokens, kinds = _byte_vocabulary()
    size, width, layers = len(tokens), 64, 2
    turn = "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
    settings = {
        "context_length": 16_384,
        "embedding_length": width,
        "block_count": layers,
        "feed_forward_length": 128,
        "head_count": 4,
        "head_count_kv": 2,
        "layer_norm_rms_eps": 1e-5,
        "rope_dimension_count": width // 4,
        "vocab_size": size,
        "tokenizer_model": "gpt2",
        "tokenizer_pre": "gpt-2",
        "token_list": tokens,
        "token_types": kinds,
        "token_merges": ["i n"],
        "bos_token_id": size - 3,
        "eos_token_id": size - 1,
        "pad_token_id": size - 3,
        "add_bos_token": False,
        "chat_template": f"{{% for m in messages %}}{turn}{{% endfor %}}<|im_start|>assistant\n",
    }
    writer = gguf.GGUFWriter(path, "llama")
    for name, value in settings.items():
        getattr(writer, f"add_{name}")(value)
    _add_weights(writer, size, width, layers)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _byte_vocabulary() -> tuple[list[str], list[int]]:
    """GPT-2's printable stand-ins for the 256 bytes, one merge, and three control tokens."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    stand_ins = {byte: chr(byte) for byte in printable}
    stand_ins.update({byte: chr(256 + at) for at, byte in enumerate(others)})
    plain = [stand_ins[byte] for byte in range(256)] + ["in"]
    control = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    return plain + control, [1] * len(plain) + [3] * len(control)


def _add_weights(writer: Any, size: int, width: int, layers: int) -> None:
    import numpy as np

    random, ones = np.random.default_rng(7), np.ones(width, dtype=np.float32)
    square, keys, inner = (width, width), (width // 2, width), (2 * width, width)
    shapes = {"attn_q": square, "attn_k": keys, "attn_v": keys, "attn_output": square}
    shapes |= {"ffn_gate": inner, "ffn_up": inner, "ffn_down": inner[::-1]}
    tensors = {"token_embd": (size, width), "output": (size, width)}
    for layer in range(layers):
        tensors.update({f"blk.{layer}.{name}": shape for name, shape in shapes.items()})
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{norm}.weight", ones)
    writer.add_tensor("output_norm.weight", ones)
    for name, shape in tensors.items():
        noise = random.normal(0.0, 0.05, shape).astype(np.float32)
        writer.add_tensor(f"{name}.weight", noise)


def _serve_llama(model: str) -> None:
    """Serve a model on a free port until standard input ends; print the address."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 16_384
    params.n_parallel = 2
    params.cpuparams.n_threads = 1
    params.offline = True
    params.ui = False
    params.embedding = True
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    _serve_llama(sys.argv[1])
