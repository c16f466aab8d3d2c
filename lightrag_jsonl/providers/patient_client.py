"""The HTTP client for a model server, on the right way and with one clock for all calls to the server."""

from typing import Any

import httpx2
import openai

from lightrag_jsonl.providers.silence import ALLOWED_SILENCE, ServerSilence


class PatientClient(openai.DefaultAsyncHttpxClient):
    """The SDK's client, with one clock for all calls to the server in place of one for each."""

    def __init__(self, silence: ServerSilence, *, proxy: str | None, **options: Any) -> None:
        route: dict[str, Any] = {"proxy": proxy}
        if (
            proxy is None
        ):  # a transport of one's own keeps the client from the environment's proxies
            limits = openai.DEFAULT_CONNECTION_LIMITS
            route = {"transport": httpx2.AsyncHTTPTransport(limits=limits)}
        super().__init__(**route, **options)
        self._silence = silence

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """The response; `TimeoutError` after so long a silence of the server."""
        timeout = request.extensions.get("timeout", {})
        seconds = timeout.get("read")
        request.extensions = {
            **request.extensions,
            "timeout": {**timeout, "read": None},
            ALLOWED_SILENCE: seconds,
        }
        async with self._silence.limit(seconds):
            response = await super().send(request, **options)
        self._silence.heard(is_end=False)
        return response
