"""The connection to a server that speaks OpenAI's protocol, with its failures in words."""

import asyncio
import ipaddress
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from lightrag_jsonl.core.errors import FREE, ConfigError, LLMError
from lightrag_jsonl.core.text import clipped
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.user_code import ONE_CALL
from lightrag_jsonl.providers.header_values import (
    environment_value,
    header_value,
    header_values,
    without_secrets,
)

if TYPE_CHECKING:
    import openai

OPENAI_URL = "https://api.openai.com/v1"
SECONDS_TO_CONNECT = 10.0
LISTING_SECONDS = 5.0  # for a list of models, which is small
LLAMA_CPP = "llama.cpp"
OLLAMA = "ollama"
OLLAMA_OWNER = "library"  # of all its models
NOT_ABOUT_THE_TEXT = frozenset({401, 402, 404, 405, 407, 408, 409, 425, 429})  # refusals of HTTP
MARKUP = re.compile(r"<[!?a-z]", re.IGNORECASE)  # unlike "<400> InvalidParameter"
HTTP_TOO_MANY_REQUESTS = 429
KEY = "OPENAI_API_KEY"
ACCOUNT = ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID")  # go into headers, too
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
JSON_WEB_TOKEN = "eyJ"  # how a token begins, unlike a key
AZURE_DEPLOYMENT = "/openai/deployments/"
LONGEST_DETAIL = 300  # characters of a server's own message that are shown


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerFailure:
    """A kind of failure: advice for the user, and the flags of the `LLMError`."""

    advice: str
    transient: bool = False
    permanent: bool = False
    timed_out: bool = False
    too_long: bool = False
    cost: Usage = FREE


_TOO_LONG = re.compile(  # llama.cpp, OpenAI, vLLM, Gemini, Mistral, TGI, DashScope
    r"exceed_context_size|context_length_exceeded|available context size|maximum context length"
    r"|token count.{0,40}exceeds|too large for model|tokens?`? \+ `?max_new_tokens|prompt is too long"
    r"|range of input length",
    re.IGNORECASE,
)
_RETRY_DELAY = re.compile(r'"retryDelay"\s*:\s*"([0-9]{1,9}(?:\.[0-9]{1,9})?)s"')
_UNITS = r"milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h"
_RETRY_SENTENCE = re.compile(
    r"\b(?:try(?:ing)?[ ]again|retry(?:ing)?)[ ](?:in|after)[ ](?:about[ ])?"
    rf"((?:[0-9]{{1,9}}(?:\.[0-9]{{1,9}})?\s?(?:{_UNITS})[ ]?(?:and[ ])?){{1,4}})(?![A-Za-z])",
    re.IGNORECASE,
)
_AMOUNT = re.compile(rf"([0-9]+(?:\.[0-9]+)?)\s?({_UNITS})", re.IGNORECASE)
FIRST_CALLS_IN_OWN_NETWORK = 2  # a server on a laptop may do one thing after the other
FIRST_CALLS_OF_A_PROVIDER = 8

_SECONDS_PER_UNIT: Mapping[str, float] = {
    **dict.fromkeys(["millisecond", "milliseconds", "ms"], 0.001),
    **dict.fromkeys(["second", "seconds", "sec", "secs", "s"], 1.0),
    **dict.fromkeys(["minute", "minutes", "min", "mins", "m"], 60.0),
    **dict.fromkeys(["hour", "hours", "h"], 3600.0),
}

_NO_CONNECTION = ServerFailure(
    "no connection; is the server running, is the base URL right (and HTTP_PROXY, if it is set)?",
    transient=True,
)
_BROKEN_OFF = ServerFailure(
    "the connection was closed before the response was complete", transient=True, cost=ONE_CALL
)
_TOO_SLOW = ServerFailure(
    "timed out; raise the timeout (timeout= in Python, or the setting LIGHTRAG_JSONL_TIMEOUT, of an "
    "embedder LIGHTRAG_JSONL_EMBEDDER_TIMEOUT), lower --concurrency (max_concurrent_calls) if the server "
    "does one thing after the other, or use smaller chunks (--chunk-tokens)",
    timed_out=True,
    cost=ONE_CALL,
)
_NO_CREDIT = ServerFailure("the account has no credit left", permanent=True)
_FAILURES: Mapping[object, ServerFailure] = {  # by code, status and its hundreds, exception's name
    "insufficient_quota": _NO_CREDIT,
    "too_long": ServerFailure(
        "the request is too long for the model's window; use smaller chunks (--chunk-tokens) or batches, "
        "and for a chat model set LIGHTRAG_JSONL_CONTEXT_TOKENS (context_tokens= in Python) to the window",
        too_long=True,
    ),
    401: ServerFailure(
        "check the key (api_key= in Python, or OPENAI_API_KEY; a server in your own network gets "
        "that only if OPENAI_BASE_URL names it)",
        permanent=True,
    ),
    402: _NO_CREDIT,
    403: ServerFailure(
        "this key may not use this model"
    ),  # gateways refuse single texts with it, too
    404: ServerFailure(
        "check the model's name (Ollama: `ollama pull NAME`), and the base URL (it ends in /v1)",
        permanent=True,
    ),
    408: ServerFailure("the server waited too long for the request", transient=True),
    409: ServerFailure("the server is busy with the same thing", transient=True),
    429: ServerFailure(
        "too many requests; set LIGHTRAG_JSONL_REQUESTS_PER_MINUTE or …_TOKENS_PER_MINUTE to the limits "
        "of your account (requests_per_minute= and tokens_per_minute= in Python), or try later",
        transient=True,
    ),
    504: _TOO_SLOW,
    3: ServerFailure("check the base URL, from which it leads elsewhere", permanent=True),
    4: ServerFailure("the server refused the request"),
    5: ServerFailure("the server failed; try later", transient=True),
    "ConnectTimeout": _NO_CONNECTION,
    "ReadError": _BROKEN_OFF,
    "RemoteProtocolError": _BROKEN_OFF,
    "APITimeoutError": _TOO_SLOW,
    "APIConnectionError": _NO_CONNECTION,
    "OpenAIError": ServerFailure("the server reported an error", transient=True),
    "ValueError": ServerFailure(
        "the response is not JSON; check the base URL (it usually ends in /v1)"
    ),
}


@dataclass(repr=False)
class ServerConnection:
    """The address of a server and the key for its requests.

    Without a key or URL, the environment's `OPENAI_API_KEY` and `OPENAI_BASE_URL` count. Redirects
    are not followed. `ConfigError` if the URL is invalid or holds a password, or if there is no key.
    """

    base_url: str | None
    api_key: str | None
    timeout: float
    max_bytes: int | None = None  # of a reply's body, or of one event of a stream
    headers: Mapping[str, str] = field(default_factory=dict)  # of every request
    _client: "openai.AsyncOpenAI | None" = None
    _loop: asyncio.AbstractEventLoop | None = None  # of the client

    def __post_init__(self) -> None:
        if self.base_url is not None:
            self.base_url = checked_url(self.base_url)
        if self.api_key is not None:
            self.api_key = header_value(self.api_key, "the API key") or None
        self.headers = header_values(self.headers, "extra_headers")

    @property
    def url(self) -> str:
        """The URL that requests are sent to."""
        return self.base_url or checked_url(environment_value("OPENAI_BASE_URL") or OPENAI_URL)

    @property
    def host(self) -> str:
        """The server's name and port."""
        return urlsplit(self.url).netloc

    @property
    def first_concurrent_calls(self) -> int:
        """The requests in flight before anything is known about the server."""
        if is_in_own_network(self.url):
            return FIRST_CALLS_IN_OWN_NETWORK
        return FIRST_CALLS_OF_A_PROVIDER

    async def program(self) -> str:
        """The program behind an address in one's own network, by its list of models: "llama.cpp",
        "ollama", or "" for another program and without a list.
        """
        if not is_in_own_network(self.url):
            return ""
        client = self.client().with_options(timeout=LISTING_SECONDS)
        try:
            with self.failures():
                answer = await client.models.with_raw_response.list()
                owners = {model.get("owned_by") for model in json.loads(answer.content)["data"]}
        except (LLMError, AttributeError, KeyError, TypeError) as error:
            log.debug("%s: no list of models: %s", self.host, error)
            return ""
        if LLAMA_CPP in answer.headers.get("server", ""):
            return LLAMA_CPP
        return OLLAMA if owners == {OLLAMA_OWNER} else ""

    def client(self) -> "openai.AsyncOpenAI":
        """The client; a new event loop gets a new client, since connections belong to a loop."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client = self._new_client()
            self._loop = loop
        return self._client

    def _new_client(self) -> "openai.AsyncOpenAI":
        import openai

        key = self.api_key or ("no-key" if gets_no_key(self.url) else _from_environment(KEY))
        if not key:
            raise ConfigError(
                f"no API key for {self.host}: export OPENAI_API_KEY=…, or name the model's server "
                "with --base-url or LIGHTRAG_JSONL_BASE_URL (in Python api_key= and base_url=); "
                'without a model: --llm none (in Python llm="none")'
            )
        organization, project = [_from_environment(name) or None for name in ACCOUNT]
        try:
            return openai.AsyncOpenAI(
                api_key=key,
                organization=organization,
                project=project,
                base_url=_request_base(self.url),
                default_query=dict(parse_qsl(urlsplit(self.url).query, keep_blank_values=True)),
                default_headers=self.headers,
                max_retries=0,  # `core.retrying` repeats requests; two loops would multiply
                timeout=openai.Timeout(self.timeout, connect=min(self.timeout, SECONDS_TO_CONNECT)),
                http_client=openai.DefaultAsyncHttpxClient(
                    follow_redirects=False,
                    event_hooks={"request": [self._authorize], "response": [self._limit]},
                ),
            )
        except (
            openai.OpenAIError,
            ValueError,
        ) as error:  # its text may show the password of a proxy
            raise ConfigError(
                f"no connection to {self.host} can be made ({type(error).__name__}): check the addresses "
                "in HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY"
            ) from None

    async def _authorize(self, request: Any) -> None:
        """Move a key to the header of Azure's classic endpoints, which take only tokens as Bearer."""
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        is_classic = AZURE_DEPLOYMENT in request.url.path
        if is_classic and not key.startswith(JSON_WEB_TOKEN):
            del request.headers["Authorization"]
            request.headers["api-key"] = key

    async def _limit(self, response: Any) -> None:
        """End the body, and close the connection, after more than `max_bytes`."""
        read = response.aiter_bytes
        max_bytes = self.max_bytes
        has_events = "event-stream" in response.headers.get("content-type", "")

        async def limited(chunk_size: int | None = None) -> AsyncIterator[bytes]:
            size = 0
            async for part in read(chunk_size):
                size = len(part) if has_events and b"\n" in part else size + len(part)
                yield part
                if max_bytes is not None and size > max_bytes:
                    await response.aclose()
                    return

        response.aiter_bytes = limited

    def check_length(self, content: bytes) -> None:
        """Raise `LLMError` for a body that was not read to the end."""
        if self.max_bytes is not None and len(content) > self.max_bytes:
            limit = f"{self.max_bytes:,} bytes (max_answer_bytes)"
            raise LLMError(f"{self.host}: the answer is longer than {limit}", cost=ONE_CALL)

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Turn the error of a request into an `LLMError` with advice and without a key."""
        import openai

        try:
            yield
        except openai.APIStatusError as error:
            raise self._explained(error) from None  # some servers repeat the key that they got
        except (openai.OpenAIError, ValueError) as error:
            texts = f"{error!r} {error.__cause__!r}"
            has_secret = self._without_keys(texts) != texts
            raise self._explained(error) from (None if has_secret else error)

    def _explained(self, error: Exception) -> LLMError:
        response = getattr(error, "response", None)
        status = 0
        text = ""
        headers: Mapping[str, str] = {}
        if response is not None:
            status = response.status_code
            text = response.text
            headers = response.headers
        failure = _failure_of(error, status, text)
        bodies = (getattr(error, "body", ""), text, getattr(error, "doc", ""))
        detail = next(filter(None, map(message_of, bodies)), str(error.__cause__ or ""))
        prefix = f"HTTP {status}: " if status else ""
        message = f"{self.host}: {failure.advice} ({prefix}{detail})"
        is_refusal = status == 500 or (status // 100 == 4 and status not in NOT_ABOUT_THE_TEXT)
        return LLMError(
            self._without_keys(message),
            transient=failure.transient and headers.get("x-should-retry") != "false",
            permanent=failure.permanent,
            refused=is_refusal and not failure.permanent,
            too_long=failure.too_long,
            retry_after=_pause_named(headers, text),
            timed_out=failure.timed_out,
            rate_limited=status == HTTP_TOO_MANY_REQUESTS and not failure.permanent,
            cost=failure.cost,
        )

    def _without_keys(self, message: str) -> str:
        variables = (KEY, *ACCOUNT, *PROXIES, *map(str.lower, PROXIES))
        secrets = [*self.headers.values(), self.api_key or "", *map(environment_value, variables)]
        proxies = [urlsplit(secret) for secret in secrets if "://" in secret and "@" in secret]
        secrets += [unquote(proxy.password or "") for proxy in proxies]
        secrets += [proxy.netloc.rpartition("@")[0] for proxy in proxies]
        words = [secret.partition(" ")[2] for secret in secrets]  # of "Bearer KEY"
        return without_secrets(message, filter(None, [*secrets, *words]))


def _from_environment(name: str) -> str:
    return header_value(environment_value(name), name)


def _failure_of(error: Exception, status: int, body: str) -> ServerFailure:
    """The kind of failure: by the server's code, the status, its hundreds, the exception's class."""
    if status in (400, 413, 422, 500) and _TOO_LONG.search(body):
        return _FAILURES["too_long"]
    classes = [type(error.__cause__), *type(error).__mro__]
    names = [cls.__name__ for cls in classes]
    keys = [getattr(error, "code", None), status, status // 100, *names]
    return next(_FAILURES[key] for key in keys if key in _FAILURES)


def pause_asked_for(headers: Mapping[str, str]) -> float | None:
    """The seconds after which a server wants to be asked again, if its headers say so.

    `Retry-After` holds seconds or a date (RFC 9110, section 10.2.3); `retry-after-ms` is Azure's.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value):
            return float(value) * unit
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0.0, date.timestamp() - time.time())


def _pause_named(headers: Mapping[str, str], text: str) -> float | None:
    """The pause in the headers of a refusal, or else in its body."""
    pause = pause_asked_for(headers)
    return pause_in_body(text) if pause is None else pause


def pause_in_body(text: str) -> float | None:
    """The seconds after which a server wants to be asked again, if the body of its refusal says so.

    Gemini's `RetryInfo` has a field `retryDelay` ("5s", a protobuf Duration); OpenAI, Groq, Azure
    and vLLM's gateways write "try again in 1m5.1s" or "retry after 5 seconds".
    """
    delay = _RETRY_DELAY.search(text)
    if delay is not None:
        return float(delay[1])
    sentence = _RETRY_SENTENCE.search(text)
    if sentence is None:
        return None
    amounts = _AMOUNT.findall(sentence[1])
    return sum(float(number) * _SECONDS_PER_UNIT[unit.lower()] for number, unit in amounts)


def message_of(body: object) -> str:
    """The message in the body of an error, from any of the usual places, cut if it is long."""
    while isinstance(body, Mapping):
        body = next((body[key] for key in ("message", "error", "detail") if body.get(key)), "")
    text = str(body or "").strip()
    return "an HTML page" if MARKUP.match(text) else clipped(text, LONGEST_DETAIL)


def checked_url(url: str) -> str:
    """The URL of a server; `ConfigError` for an invalid URL, or a password, which errors would show."""
    url = url.strip()
    try:
        parts = urlsplit(url)
        is_address = parts.port is None or parts.port > 0
    except ValueError:
        is_address = False
    if "@" in url.partition("?")[0]:
        raise ConfigError(
            "the URL of a server holds a password or a user name: leave it out, and give the key "
            "by OPENAI_API_KEY or api_key"
        )
    if not is_address or not re.match(r"https?://[^/:\s]", url) or not url.isprintable():
        description = repr(url) if is_address and "@" not in url else "the address of a server"
        raise ConfigError(f"{description} is not a URL such as http://localhost:8000/v1")
    return url


def _request_base(url: str) -> str:
    """The URL that paths are added to: without a query, and without the path of a request."""
    parts = urlsplit(url)
    path = re.sub(r"/(chat/completions|embeddings)/?$", "", parts.path)
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def gets_no_key(url: str) -> bool:
    """Whether a server is in one's own network, and not named by `OPENAI_BASE_URL` beside a key."""
    named_server = urlsplit(environment_value("OPENAI_BASE_URL")).netloc
    is_named = named_server == urlsplit(url).netloc
    return is_in_own_network(url) and not (is_named and environment_value(KEY))


def is_in_own_network(url: str) -> bool:
    """Whether a server is on this machine or in a private network."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".localhost"))
