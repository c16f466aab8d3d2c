"""A provider with OpenAI's batch API, for tests: files, batches and results, all in memory."""

import itertools
import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]
AnswerRequest = Callable[
    [Body], str | None
]  # from the body of a request to the text, None if it fails


class BatchServer:
    """Answers batches after `polls` looks at each; requests answered with None are in the error file.

    `refusal` is the reason why each batch is refused as a whole.
    """

    def __init__(self, answer: AnswerRequest, *, polls: int = 1, refusal: str = "") -> None:
        self.polls = polls
        self.refusal = refusal
        self.files: dict[str, bytes] = {}
        self.batches: list[Body] = []
        self.authorizations: set[str] = set()
        self._answer = answer
        self._looks: dict[str, int] = {}
        self._numbers = itertools.count(1)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = False

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> "BatchServer":
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def post(self, path: str, content: bytes) -> Body:
        """Store a file, or begin a batch."""
        if path == "/v1/files":
            return {"id": self._store(_uploaded(content)), "object": "file", "purpose": "batch"}
        request = json.loads(content)
        batch = {
            **request,
            "id": f"batch_{next(self._numbers)}",
            "object": "batch",
            "status": "validating",
        }
        if self.refusal:
            error = {"code": "invalid", "message": self.refusal, "line": 1}
            batch |= {"status": "failed", "errors": {"object": "list", "data": [error]}}
        self.batches.append(batch)
        return batch

    def get(self, path: str) -> Body | bytes:
        """The list of batches, the newest first; a batch; or a file."""
        *_, kind, name = path.removesuffix("/content").split("/")
        if kind == "files":
            return self.files[name]
        if name == "batches":
            return {"object": "list", "data": self.batches[::-1], "has_more": False}
        (batch,) = [batch for batch in self.batches if batch["id"] == name]
        looks = self._looks[name] = self._looks.get(name, 0) + 1
        if batch["status"] in ("validating", "in_progress"):
            batch["status"] = "in_progress"
            if looks >= self.polls:
                self._complete(batch)
        return batch

    def _complete(self, batch: Body) -> None:
        answered: list[Body] = []
        failed: list[Body] = []
        for line in self.files[batch["input_file_id"]].decode().split("\n"):
            if not line:
                continue
            request = json.loads(line)
            text = self._answer(request["body"])
            results = failed if text is None else answered
            results.append(_result(request["custom_id"], text))
        counts = {
            "total": len(answered) + len(failed),
            "completed": len(answered),
            "failed": len(failed),
        }
        batch |= {"status": "completed", "request_counts": counts}
        for key, lines in (("output_file_id", answered), ("error_file_id", failed)):
            if lines:
                batch[key] = self._store("\n".join(map(json.dumps, lines)).encode())

    def _store(self, content: bytes) -> str:
        name = f"file_{next(self._numbers)}"
        self.files[name] = content
        return name

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:
                """Write nothing."""

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                provider.authorizations.add(self.headers["Authorization"])
                self._send(provider.post(self.path.split("?")[0], content))

            def do_GET(self) -> None:
                self._send(provider.get(self.path.split("?")[0]))

            def _send(self, body: Body | bytes) -> None:
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        return Handler


def _uploaded(form: bytes) -> bytes:
    """The file in a multipart form."""
    boundary = form.split(b"\r\n", 1)[0]
    part = next(part for part in form.split(boundary) if b"filename=" in part)
    return re.split(rb"\r\n\r\n", part, maxsplit=1)[1].removesuffix(b"\r\n")


def _result(request_id: str, text: str | None) -> Body:
    """A line of a file of results, or of errors."""
    if text is None:
        body: Body = {"error": {"message": "the model is overloaded"}}
        return {"custom_id": request_id, "response": {"status_code": 500, "body": body}}
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    response = {"status_code": 200, "body": {"choices": [choice], "usage": usage}}
    return {"custom_id": request_id, "response": response, "error": None}
