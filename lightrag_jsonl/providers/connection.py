"""The connection to a server that speaks OpenAI's protocol, and its failures in words."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lightrag_jsonl.core.errors import FREE, ConfigError, LightRAGError, LLMError
from lightrag_jsonl.core.types import Json
from lightrag_jsonl.core.usage import Usage

if TYPE_CHECKING:
    import openai

OPENAI_URL = "https://api.openai.com/v1"
NO_KEY = "no-key"  # sent to a user's own server if no key was given
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


_NO_JSON = Failure("it answered with no JSON; check the base URL (it usually ends in /v1)")
_REPORTED = Failure("the server reported an error", transient=True)
_TOO_SLOW = Failure("no answer in time; raise the timeout or ask for less", cost=ONE_CALL)
_BROKEN_OFF = Failure("the connection broke before the answer was there", cost=ONE_CALL)
_NO_SECURITY = Failure("no secure connection; SSL_CERT_FILE can name your own certificates")
_NO_CONNECTION = Failure(
    "no connection; is the server running, is the base URL right (and HTTP_PROXY, if it is set)?",
    transient=True,
)
_NO_KEY_SENT = Failure(
    "no key was sent, as to any server of your own; set OPENAI_BASE_URL to its address, and it "
    "gets OPENAI_API_KEY",
    permanent=True,
)
_NO_CREDIT = Failure("the account has no credit left", permanent=True)
_TOO_LONG = Failure("the request is too long; use smaller chunks or batches")
_BY_STATUS: Mapping[int, Failure] = {  # HTTP statuses, and their hundreds
    3: Failure("check the base URL, from which it leads elsewhere", permanent=True),
    4: Failure("the server refused the request"),
    5: Failure("the server failed, even after retries; try later", transient=True),
    401: Failure("check the key (OPENAI_API_KEY, or api_key= in Python)", permanent=True),
    402: _NO_CREDIT,
    403: Failure("this key may not use this model"),  # gateways refuse single texts with it, too
    404: Failure("check the model's name, and the base URL (it ends in /v1)", permanent=True),
    405: Failure("check the base URL (it usually ends in /v1)", permanent=True),
    408: _TOO_SLOW,
    413: _TOO_LONG,
    429: Failure("too many requests; lower max_concurrent_calls or try later", transient=True),
    504: _TOO_SLOW,
}
_BY_CODE: Mapping[str | None, Failure] = {
    "insufficient_quota": _NO_CREDIT,
    "billing_hard_limit_reached": _NO_CREDIT,
    "context_length_exceeded": _TOO_LONG,
}
_KEY_LIKE = re.compile(r"\b(?:(?:sk|Bearer)[-_ ]|key[-_])[\w*.\-]{6,}", re.IGNORECASE)


class RequestError(LLMError):
    """A request failed; `status` and `detail` are the server's own, if it answered at all."""

    status: int | None = None
    detail = ""


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
    given: openai.AsyncOpenAI | None
    _made: tuple[asyncio.AbstractEventLoop, openai.AsyncOpenAI] | None = None

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.base_url or OPENAI_URL)
            is_valid = bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_valid = False
        if not is_valid:
            raise ConfigError(f"{self.base_url!r} is no URL such as http://localhost:8000/v1")

    @property
    def url(self) -> str:
        """The URL that requests are sent to."""
        if self.given is not None:
            return str(self.given.base_url)
        return self.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL

    @property
    def host(self) -> str:
        """The server's name and port."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    def client(self) -> openai.AsyncOpenAI:
        """The client; another event loop gets a new one, since connections belong to a loop."""
        if self.given is not None:
            return self.given
        loop, made = asyncio.get_running_loop(), self._made
        if made is None or made[0] is not loop:
            made = self._made = loop, self._make_client()
        return made[1]

    def _make_client(self) -> openai.AsyncOpenAI:
        import openai

        try:
            return openai.AsyncOpenAI(
                api_key=NO_KEY if self.api_key is None and _gets_no_key(self.url) else self.api_key,
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
        """Turn whatever a request raises into a `RequestError`."""
        import openai

        try:
            yield
        except LightRAGError:
            raise
        except openai.APIStatusError as error:
            repeats_key = error.status_code in (401, 403)  # some servers repeat the key they got
            raise self._refused(error) from (None if repeats_key else error)
        except (openai.OpenAIError, ValueError) as error:
            raise self._failed(error) from error

    def error(self, failure: Failure, detail: str = "") -> RequestError:
        """An error that names the host and contains no key."""
        words = f"{self.host}: {failure.advice}" + (f" ({detail})" if detail else "")
        client = self.given or (self._made and self._made[1])
        for key in (self.api_key, client and client.api_key, os.environ.get("OPENAI_API_KEY")):
            if isinstance(key, str) and key not in ("", NO_KEY):
                words = words.replace(key, "***")
        return RequestError(
            _KEY_LIKE.sub("***", words),
            transient=failure.transient,
            permanent=failure.permanent,
            cost=failure.cost,
        )

    def _refused(self, error: openai.APIStatusError) -> RequestError:
        """The error for an answer with another status than 200."""
        status, wait = error.status_code, error.response.headers.get("retry-after", "")
        by_code = _BY_CODE.get(error.code) or _BY_CODE.get(error.type)
        failure = by_code or _BY_STATUS.get(status) or _BY_STATUS[status // 100]
        if status == 401 and error.request.headers.get("authorization") == f"Bearer {NO_KEY}":
            failure = _NO_KEY_SENT
        detail = message_of(error.body) or message_of(error.response.text)
        refusal = self.error(failure, f"HTTP {status}: {detail}".rstrip(": "))
        refusal.status, refusal.detail = status, detail
        refusal.retry_after = float(wait) if re.fullmatch(r"\d+(\.\d+)?", wait) else None
        return refusal

    def _failed(self, error: Exception) -> RequestError:
        """The error for an answer that did not come, or not whole."""
        import openai

        causes: list[BaseException] = [error]
        while cause := causes[-1].__cause__ or causes[-1].__context__:
            causes.append(cause)
        names = {type(cause).__name__ for cause in causes}
        detail = next((str(cause) for cause in reversed(causes) if str(cause)), "")
        if any(isinstance(cause, ssl.SSLError) for cause in causes):
            return self.error(_NO_SECURITY, detail)
        if isinstance(error, openai.APITimeoutError) and "ConnectTimeout" not in names:
            return self.error(_TOO_SLOW)
        if names & {"ReadError", "RemoteProtocolError"}:  # of httpx
            return self.error(_BROKEN_OFF, detail)
        if isinstance(error, openai.APIConnectionError):
            return self.error(_NO_CONNECTION, detail)
        if isinstance(error, openai.APIError):
            return self.error(_REPORTED, message_of(error.body) or error.message)
        return self.error(_NO_JSON, message_of(getattr(error, "doc", detail)))


def json_object(content: bytes) -> dict[str, Json]:
    """The JSON object of an answer; `ValueError` if it is none."""
    value = json.loads(content)
    if not isinstance(value, dict):
        raise ValueError(f"{type(value).__name__}, not an object")
    return value


def message_of(body: object) -> str:
    """The message in an error's body, wherever the server put it, in a few words."""
    while isinstance(body, Mapping):
        body = next((body[key] for key in ("message", "error", "detail") if body.get(key)), "")
    if not isinstance(body, str):
        body = json.dumps(body, ensure_ascii=False, default=str) if body else ""
    words = " ".join(body.split())
    if words.startswith("<"):
        return "an HTML page"
    return words if len(words) <= LONGEST_DETAIL else f"{words[:LONGEST_DETAIL]}…"


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
