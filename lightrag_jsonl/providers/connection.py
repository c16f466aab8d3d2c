"""The connection to a server that speaks OpenAI's protocol, and its failures in words."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lightrag_jsonl.core.errors import FREE, ConfigError, LLMError
from lightrag_jsonl.core.usage import Usage

if TYPE_CHECKING:
    import openai

OPENAI_URL = "https://api.openai.com/v1"
CONNECT_SECONDS = 10.0
LONGEST_DETAIL = 300  # characters of a server's own message that are shown
ONE_CALL = Usage(calls=1)


@dataclass(frozen=True, slots=True)
class Failure:
    """A kind of failure: what to do about it, and the flags of its `LLMError`."""

    advice: str
    transient: bool = False
    permanent: bool = False
    cost: Usage = FREE


_NO_CONNECTION = Failure(
    "no connection; is the server running, is the base URL right (and HTTP_PROXY, if it is set)?",
    transient=True,
)
_BROKEN_OFF = Failure("the connection broke before the answer was there", cost=ONE_CALL)
_TOO_SLOW = Failure("no answer in time; raise the timeout or ask for less", cost=ONE_CALL)
_NO_CREDIT = Failure("the account has no credit left", permanent=True)
_FAILURES: Mapping[object, Failure] = {  # by code, status and its hundreds, exception's name
    "insufficient_quota": _NO_CREDIT,
    "context_length_exceeded": Failure("the request is too long; use smaller chunks or batches"),
    401: Failure(
        "check the key (api_key= in Python, or OPENAI_API_KEY; a server in your own network gets "
        "that only if OPENAI_BASE_URL names it)",
        permanent=True,
    ),
    402: _NO_CREDIT,
    403: Failure("this key may not use this model"),  # gateways refuse single texts with it, too
    404: Failure("check the model's name, and the base URL (it ends in /v1)", permanent=True),
    429: Failure("too many requests; lower max_concurrent_calls or try later", transient=True),
    504: _TOO_SLOW,
    3: Failure("check the base URL, from which it leads elsewhere", permanent=True),
    4: Failure("the server refused the request"),
    5: Failure("the server failed, even after retries; try later", transient=True),
    "ConnectTimeout": _NO_CONNECTION,
    "ReadError": _BROKEN_OFF,
    "RemoteProtocolError": _BROKEN_OFF,
    "APITimeoutError": _TOO_SLOW,
    "APIConnectionError": _NO_CONNECTION,
    "OpenAIError": Failure("the server reported an error", transient=True),
    "ValueError": Failure("it answered with no JSON; check the base URL (it usually ends in /v1)"),
}


@dataclass(repr=False)
class Connection:
    """Where to send requests, and with which key.

    The first request makes a client of the SDK; the environment's `OPENAI_API_KEY` and
    `OPENAI_BASE_URL` count then, if no key or URL was given. Redirects are not followed.
    `ConfigError` if the URL is invalid or if there is no key.
    """

    base_url: str | None
    api_key: str | None
    timeout: float
    max_retries: int
    _made: tuple[asyncio.AbstractEventLoop, openai.AsyncOpenAI] | None = None

    def __post_init__(self) -> None:
        if self.base_url is not None and not re.match(r"https?://[^/:\s]", self.base_url):
            raise ConfigError(f"{self.base_url!r} is no URL such as http://localhost:8000/v1")

    @property
    def url(self) -> str:
        """The URL that requests are sent to."""
        return self.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL

    @property
    def host(self) -> str:
        """The server's name and port."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    def client(self) -> openai.AsyncOpenAI:
        """The client; another event loop gets a new one, since connections belong to a loop."""
        loop, made = asyncio.get_running_loop(), self._made
        if made is None or made[0] is not loop:
            made = self._made = loop, self._new_client()
        return made[1]

    def _new_client(self) -> openai.AsyncOpenAI:
        import openai

        try:
            return openai.AsyncOpenAI(
                api_key=self.api_key or ("no-key" if _gets_no_key(self.url) else None),
                base_url=self.url,
                max_retries=self.max_retries,
                timeout=openai.Timeout(self.timeout, connect=min(self.timeout, CONNECT_SECONDS)),
                http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
            )
        except openai.OpenAIError as error:
            raise ConfigError(
                f"no API key for {self.host}: set OPENAI_API_KEY, or give api_key= "
                "(where no model is named, the offline providers work without a key)"
            ) from error

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Turn what a request raises into an `LLMError` that says what to do, without a key."""
        import openai

        try:
            yield
        except openai.APIStatusError as error:
            raise self._explained(error) from None  # some servers repeat the key that they got
        except (openai.OpenAIError, ValueError) as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> LLMError:
        response = getattr(error, "response", None)
        status = 0 if response is None else response.status_code
        classes = [type(error.__cause__), *type(error).__mro__]
        keys = [getattr(error, "code", None), status, status // 100]
        keys += [one.__name__ for one in classes]
        known = next(_FAILURES[key] for key in keys if key in _FAILURES)
        body, text = getattr(error, "body", ""), getattr(response, "text", "")
        words = filter(None, map(message_of, (body, text, getattr(error, "doc", ""))))
        detail = next(words, str(error.__cause__ or ""))
        message = f"{self.host}: {known.advice} ({f'HTTP {status}: ' if status else ''}{detail})"
        for key in filter(None, (self.api_key, os.environ.get("OPENAI_API_KEY"))):
            message = message.replace(key, "***")
        wait = "" if response is None else response.headers.get("retry-after", "")
        return LLMError(
            message,
            transient=known.transient,
            permanent=known.permanent,
            retry_after=float(wait) if re.fullmatch(r"\d+(\.\d+)?", wait) else None,
            cost=known.cost,
        )


def message_of(body: object) -> str:
    """The message in an error's body, wherever the server put it, in a few words."""
    while isinstance(body, Mapping):
        body = next((body[key] for key in ("message", "error", "detail") if body.get(key)), "")
    words = " ".join(str(body or "").split())
    return "an HTML page" if words.startswith("<") else words[:LONGEST_DETAIL]


def _gets_no_key(url: str) -> bool:
    """Whether a server is on this machine or in the local network, and `OPENAI_BASE_URL` does not
    name it: the environment's key is not for it, and it seldom asks for one.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        is_own = ipaddress.ip_address(host).is_private
    except ValueError:
        is_own = "." not in host or host.endswith((".local", ".internal", ".localhost"))
    is_named = urlsplit(os.environ.get("OPENAI_BASE_URL", "")).netloc == parts.netloc
    return is_own and not (is_named and os.environ.get("OPENAI_API_KEY"))
