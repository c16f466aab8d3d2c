"""The connection to a server of OpenAI's protocol: keys, proxies, and failures in words."""

import asyncio
import ipaddress
import json
import logging
import os
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from lightrag_jsonl.core.errors import ConfigError, LLMError
from lightrag_jsonl.core.user_code import ONE_CALL
from lightrag_jsonl.providers.pauses import pause_named
from lightrag_jsonl.providers.server_failures import MARKUP, WebPage, failure_of, message_of
from lightrag_jsonl.providers.silence import ServerSilence
from lightrag_jsonl.text.patterns import pattern_of

if TYPE_CHECKING:
    import openai


SHORTEST_SECRET = 4  # characters of a value that may be a key, and is not shown
SHORT_SECRET = 8  # a shorter one may also be a part of other words, where it stays
HIDDEN = "***"
_HEADER_NAME = pattern_of(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.1


def header_value(value: str, owner: str) -> str:
    """A value without surrounding white space; `ConfigError` names the `owner`, never the value.

    A header holds printable characters of ASCII only (RFC 9110, section 5.5).
    """
    stripped = value.strip()
    if not (stripped.isascii() and stripped.isprintable()):
        raise ConfigError(
            f"{owner} has a line end, a control character or characters beyond ASCII inside, which no "
            "request can hold: copy it again, whole and alone"
        )
    return stripped


def header_values(headers: Mapping[str, str], owner: str) -> dict[str, str]:
    """Headers without white space around values; `ConfigError` as by `header_value`."""
    checked: dict[str, str] = {}
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name.strip()):
            raise ConfigError(f"{owner}: a name among the headers is no name of a header")
        checked[name.strip()] = header_value(
            value, f"{owner}: the value of the header {name.strip()}"
        )
    return checked


def environment_value(name: str) -> str:
    """An environment variable without surrounding white space, such as the line end of a file from
    Windows; "" if not set.
    """
    return os.environ.get(name, "").strip()


def without_secrets(message: str, secrets: Iterable[str]) -> str:
    """A message with the secrets masked."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= SHORT_SECRET:
            message = message.replace(secret, HIDDEN)
        elif len(secret) >= SHORTEST_SECRET:
            bounded = re.compile(rf"(?<!\w){re.escape(secret)}(?!\w)", re.ASCII)
            message = bounded.sub(HIDDEN, message)
    return message


# ── proxies by the environment ────────────────────────────────────────────────

SOCKS_SCHEMES = {
    "socks": "socks5",
    "socks5": "socks5",
    "socks5h": "socks5h",
}  # the first: of desktops
PROXY_SCHEMES = ("http", "https", *SOCKS_SCHEMES.values())


def proxy_for(url: str) -> str | None:
    """The URL of the proxy for a server; None if the server is asked directly, as on this machine.

    `ConfigError` for a proxy of another kind, or for a SOCKS proxy without the package for it.
    """
    from urllib.request import getproxies

    server = urlsplit(url)
    host = server.hostname or ""
    proxies = getproxies()
    proxy = proxies.get(server.scheme) or proxies.get("all")
    exemptions = proxies.get("no", "").lower().split(",")
    is_exempt = any(_covers(entry.strip(), host, server.port) for entry in exemptions)
    if not proxy or is_loopback(host) or is_exempt:
        return None
    scheme, separator, address = proxy.strip().partition("://")
    if not separator:
        return f"http://{scheme}"
    scheme = SOCKS_SCHEMES.get(scheme.lower(), scheme.lower())
    if scheme not in PROXY_SCHEMES:
        raise ConfigError(
            f"the proxy in the environment is of the kind {scheme!r}: HTTP_PROXY, HTTPS_PROXY and ALL_PROXY "
            "take http://, https:// and socks5://"
        )
    if scheme in SOCKS_SCHEMES:
        _check_socks(host)
    return f"{scheme}://{address}"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _covers(entry: str, host: str, port: int | None) -> bool:
    """Whether a host is meant by an entry of NO_PROXY: a name, a domain, or a network (10.0.0.0/8)."""
    if entry == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:  # one of them is a name, or the entry has a port
        pass
    name = entry.rpartition("://")[2].removeprefix("*").removeprefix(".")
    if port is not None:
        name = name.removesuffix(f":{port}")
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _check_socks(host: str) -> None:
    try:
        import socksio  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"{host} is asked through the SOCKS proxy in ALL_PROXY (or HTTPS_PROXY), which needs a package: "
            "pip install '.[socks]', or name the host in NO_PROXY"
        ) from error


# ── connections ───────────────────────────────────────────────────────────────

OPENAI_URL = "https://api.openai.com/v1"
SECONDS_TO_CONNECT = 10.0
LISTING_SECONDS = 5.0  # for a list of models, which is small
LLAMA_CPP = "llama.cpp"
OLLAMA = "ollama"
OLLAMA_OWNER = "library"  # of all its models
NOT_ABOUT_THE_TEXT = frozenset({401, 402, 404, 405, 407, 408, 409, 425, 429})  # refusals of HTTP
HTTP_OK = 200
HTML = "text/html"
KEY = "OPENAI_API_KEY"
ACCOUNT = ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID")  # go into headers, too
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
JSON_WEB_TOKEN = "eyJ"  # how a token begins, unlike a key
AZURE_DEPLOYMENT = "/openai/deployments/"
FIRST_CALLS_IN_OWN_NETWORK = 2  # a server on a laptop may do one thing after the other
FIRST_CALLS_OF_A_PROVIDER = 8

log = logging.getLogger(__name__)


@dataclass(repr=False)
class ServerConnection:
    """The address of a server and the key for its requests.

    Without a key or URL, the environment's `OPENAI_API_KEY` and `OPENAI_BASE_URL` count. Redirects
    are not followed. `ConfigError` for an invalid URL, a URL with a password, or a missing key.
    """

    base_url: str | None
    api_key: str | None
    timeout: float
    max_bytes: int | None = None  # of a reply's body, or of one event of a stream
    headers: Mapping[str, str] = field(default_factory=dict)  # of every request
    _client: "openai.AsyncOpenAI | None" = None
    _loop: asyncio.AbstractEventLoop | None = None  # of the client
    _silence: ServerSilence = field(default_factory=ServerSilence)

    def __post_init__(self) -> None:
        if self.base_url is not None:
            self.base_url = checked_url(self.base_url)
        if self.api_key is not None:
            self.api_key = header_value(self.api_key, "the API key") or None
        self.headers = header_values(self.headers, "extra_headers")

    @property
    def url(self) -> str:
        """The URL for requests."""
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

    def share_silence(self, silences: dict[str, ServerSilence]) -> None:
        """Share the clock of silence with the connections to the same server, by host name and port."""
        silence = self._silence
        if self.base_url is not None:
            silence = silences.setdefault(self.host, silence)
        if silence is not self._silence:
            self._silence = silence
            self._client = None

    async def program(self) -> str:
        """The program behind an address in the user's own network, by the list of models:
        "llama.cpp", "ollama", or "" for another program and without a list.
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

    def key(self) -> str:
        """The key for requests, any text for a server without keys; `ConfigError` if a key is missing."""
        key = self.api_key or ("no-key" if gets_no_key(self.url) else _from_environment(KEY))
        if not key:
            raise ConfigError(
                f"no API key for {self.host}: export OPENAI_API_KEY=…, or name the model's server "
                "with --base-url or LIGHTRAG_JSONL_BASE_URL (in Python api_key= and base_url=); "
                'without a model: --llm none (in Python llm="none")'
            )
        return key

    def _new_client(self) -> "openai.AsyncOpenAI":
        import openai

        from lightrag_jsonl.providers.patient_client import PatientClient

        key = self.key()
        proxy = proxy_for(self.url)
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
                http_client=PatientClient(
                    self._silence,
                    proxy=proxy,
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
        """Move a key to the header for keys of Azure's classic endpoints: Bearer is for tokens only."""
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        is_classic = AZURE_DEPLOYMENT in request.url.path
        if is_classic and not key.startswith(JSON_WEB_TOKEN):
            del request.headers["Authorization"]
            request.headers["api-key"] = key

    async def _limit(self, response: Any) -> None:
        """End the body, and close the connection, after more than `max_bytes`, or at a page of HTML."""
        read = response.aiter_bytes
        max_bytes = self.max_bytes
        media = response.headers.get("content-type", "")
        has_events = "event-stream" in media
        may_be_page = response.status_code == HTTP_OK and HTML in media

        async def limited(chunk_size: int | None = None) -> AsyncIterator[bytes]:
            size = 0
            async for part in self._silence.parts(response, read(chunk_size)):
                if may_be_page and MARKUP.match(part.lstrip().decode(errors="replace")):
                    raise WebPage("an HTML page")
                size = len(part) if has_events and b"\n" in part else size + len(part)
                yield part
                if max_bytes is not None and size > max_bytes:
                    await response.aclose()
                    return

        response.aiter_bytes = limited

    def check_length(self, content: bytes) -> None:
        """Raise `LLMError` for an incompletely read body."""
        if self.max_bytes is not None and len(content) > self.max_bytes:
            limit = f"{self.max_bytes:,} bytes (max_answer_bytes)"
            raise LLMError(f"{self.host}: the answer is longer than {limit}", cost=ONE_CALL)

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Turn the error of a request into an `LLMError` with advice and without a key; `ConfigError` passes."""
        import openai

        try:
            yield
        except ConfigError:  # a ValueError, too, which means that an answer cannot be read
            raise
        except openai.APIStatusError as error:
            raise self._explained(error) from None  # some servers repeat the key that they got
        except (openai.OpenAIError, ValueError, TimeoutError) as error:
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
        failure = failure_of(error, status, text)
        bodies = (getattr(error, "body", ""), text, getattr(error, "doc", ""))
        detail = next(filter(None, map(message_of, bodies)), str(error.__cause__ or ""))
        prefix = f"HTTP {status}: " if status else ""
        reason = f" ({prefix}{detail})" if prefix or detail else ""
        message = f"{self.host}: {failure.advice}{reason}"
        is_refusal = status == 500 or (status // 100 == 4 and status not in NOT_ABOUT_THE_TEXT)
        is_about_all = failure.permanent or failure.busy
        return LLMError(
            self._without_keys(message),
            transient=failure.transient and headers.get("x-should-retry") != "false",
            permanent=failure.permanent,
            refused=is_refusal and not is_about_all,
            too_long=failure.too_long,
            retry_after=pause_named(headers, text),
            timed_out=failure.timed_out,
            rate_limited=failure.busy,
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
    """The base URL for paths: without a query, and without the path of a request."""
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
