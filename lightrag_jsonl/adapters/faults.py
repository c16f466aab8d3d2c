"""Explains failed requests to a model server, in words that say what to do."""

from __future__ import annotations

import json
import math
import random
import re
import sys
import time
from collections.abc import Collection, Mapping
from email.utils import mktime_tz, parsedate_tz
from typing import TYPE_CHECKING

from lightrag_jsonl.errors import FREE, LLMError
from lightrag_jsonl.types import Usage

if TYPE_CHECKING:
    import openai

DETAIL_LIMIT = 300  # characters of a server's own message that are shown

ADVICE: Mapping[int, str] = {
    401: "check the key (OPENAI_API_KEY, or api_key= in Python)",
    402: "the account has no credit left",
    403: "this key may not use this model",
    404: "check the model's name and the base URL (it usually ends in /v1)",
    405: "check the base URL (it usually ends in /v1)",
    408: "the server gave up waiting; try again",
    413: "the request is too long; use smaller chunks or batches",
    429: "too many requests, even after waiting; lower max_concurrent_calls or try later",
}
REDIRECT_ADVICE = "check the base URL, from which it leads elsewhere"
REQUEST_ADVICE = "the server refused the request"
SERVER_ADVICE = "the server failed, even after retries; try later"
TRANSIENT = frozenset({408, 409, 425, 429})
UNHEARD = frozenset({408, 504, 520, 524})  # a gateway gave up waiting, or could not read the answer
FIRST_PAUSE = 0.5  # seconds before a request is sent again; doubled each time
LONGEST_PAUSE = 8.0
LONGEST_ASKED = 120.0  # seconds; a server that asks for a longer wait is not asked again
PERMANENT = frozenset({401, 402, 404, 405})  # not 403, with which gateways also refuse single texts
SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
NO_KEY_SENT = (
    "no key was sent, as to any server of your own; set OPENAI_BASE_URL to its address, and it "
    "gets OPENAI_API_KEY"
)
PROXIED = (
    " It is asked through the proxy that HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names; NO_PROXY excepts "
    "servers."
)
NO_UTF8 = "its answer is no UTF-8; if it stays so, the server cuts characters in two"
KEY_LIKE = re.compile(r"\b(?:(?:sk|Bearer)[-_ ]|key[-_])[\w*.\-]{6,}", re.IGNORECASE)


class EndpointError(LLMError):
    """A request failed; `status` and `detail` are the server's own, if it answered at all."""

    def __init__(
        self,
        message: str,
        *,
        transient: bool = False,
        retry_after: float | None = None,
        permanent: bool = False,
        unheard: bool = False,
        cost: Usage = FREE,
        status: int | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(
            message,
            transient=transient,
            retry_after=retry_after,
            permanent=permanent,
            unheard=unheard,
            cost=cost,
        )
        self.status = status
        self.detail = detail


def failures() -> tuple[type[Exception], ...]:
    """The exceptions of the SDK, of the HTTP client below it, and of broken answers."""
    import openai

    return (openai.OpenAIError, ValueError, *transport_failures())


def transport_failures() -> tuple[type[Exception], ...]:
    """What the loaded HTTP clients raise if a server cannot be reached."""
    clients = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    return tuple(client.HTTPError for client in clients if client is not None)


def pause(error: Exception, sent: int) -> float | None:
    """Seconds to wait before a request, sent `sent` times so far, is sent again; None if it is not.

    These are the SDK's own rules; the SDK itself does not report which requests got lost.
    """
    import openai

    asked = None
    if isinstance(error, openai.APIStatusError):
        headers = error.response.headers
        asked, wish = _retry_after(headers), headers.get("x-should-retry")
        failed = error.status_code in TRANSIENT or error.status_code >= 500
        hopeless = _is_spent(error) or (asked or 0.0) > LONGEST_ASKED
        if hopeless or wish == "false" or not (failed or wish == "true"):
            return None
    elif not isinstance(error, openai.APIConnectionError):
        return None
    backoff = min(FIRST_PAUSE * 2.0 ** (sent - 1), LONGEST_PAUSE)
    return asked or backoff * random.uniform(0.75, 1.0)


def is_unheard(error: Exception) -> bool:
    """Whether a request was sent whose answer did not arrive, or broke off."""
    import openai

    if isinstance(error, openai.APIStatusError):
        return error.status_code in UNHEARD
    if not isinstance(error, openai.APIConnectionError):
        return isinstance(error, transport_failures())  # raised inside a stream that had begun
    clients = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    lost = tuple(
        kind
        for client in clients
        if client is not None
        for kind in (client.ReadTimeout, client.ReadError, client.RemoteProtocolError)
    )
    return isinstance(error.__cause__, lost)


def set_up_failures() -> tuple[type[Exception], ...]:
    """What HTTP clients raise if the environment's proxies or certificates are unusable."""
    clients = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    named = (client.InvalidURL for client in clients if client is not None)
    return (ImportError, OSError, ValueError, *named)


def cause(error: Exception) -> Exception | None:
    """The error to chain; None for a refused key, since some servers repeat the key they got."""
    return None if getattr(error, "status_code", None) in (401, 403) else error


def explain(
    error: Exception,
    *,
    host: str,
    secrets: Collection[str],
    keyless: bool = False,
    proxied: bool = False,
) -> EndpointError:
    """One of `failures()` as an `EndpointError` that names the host and contains no secret.

    `keyless`: no key was sent. `proxied`: the request went through a proxy.
    """
    import openai

    if isinstance(error, openai.APIStatusError):
        return _refused(error, host, secrets, keyless)
    unheard = is_unheard(error)
    if isinstance(error, openai.APITimeoutError):
        words = "no answer in time; raise the timeout or ask for less"
    elif unheard and isinstance(error, openai.APIConnectionError):
        words = f"the connection broke before the answer was there ({_root(error)})"
    elif isinstance(error, openai.APIConnectionError):
        words = f"no connection ({_root(error)}); is the server running, is the base URL right?"
        words += PROXIED if proxied else ""
    elif isinstance(error, openai.APIError):
        words = f"the server reported an error: {detail(error.body) or error.message}"
    elif isinstance(error, json.JSONDecodeError):
        words = "the answer is no JSON; check the base URL (it usually ends in /v1)"
    elif isinstance(error, UnicodeDecodeError):
        words = NO_UTF8
    elif isinstance(error, ValueError):
        return EndpointError(f"{host}: {redact(str(error), secrets)}")
    else:
        words = f"the connection broke ({error.__class__.__name__})"
    return EndpointError(f"{host}: {redact(words, secrets)}", transient=True, unheard=unheard)


def redact(text: str, secrets: Collection[str]) -> str:
    """The text without the given keys, and without anything that looks like a key."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return KEY_LIKE.sub("***", text)


def detail(body: object) -> str:
    """The message in an error's body, wherever the server put it."""
    while isinstance(body, Mapping):
        body = next((body[key] for key in ("message", "error", "detail") if body.get(key)), None)
    if body is None:
        return ""
    return _page(
        body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)
    )


def _refused(
    error: openai.APIStatusError, host: str, secrets: Collection[str], keyless: bool
) -> EndpointError:
    status = error.status_code
    spent = _is_spent(error)
    advice = "the account has no credit left" if spent else _advice(status)
    if status == 401 and keyless:
        advice = NO_KEY_SENT
    said = redact(detail(error.body) or _page(error.response.text), secrets)
    return EndpointError(
        f"{host}: HTTP {status}: {advice}" + (f" ({said})" if said else ""),
        transient=not spent and (status in TRANSIENT or status >= 500),
        retry_after=_retry_after(error.response.headers),
        permanent=spent or status in PERMANENT,
        unheard=is_unheard(error),
        status=status,
        detail=said,
    )


def _is_spent(error: openai.APIStatusError) -> bool:
    return error.code in SPENT or error.type in SPENT


def _advice(status: int) -> str:
    if status in ADVICE:
        return ADVICE[status]
    if status < 400:
        return REDIRECT_ADVICE
    return REQUEST_ADVICE if status < 500 else SERVER_ADVICE


def _page(text: str) -> str:
    folded = " ".join(text.split())
    if folded.startswith("<"):
        return "it answered with an HTML page"
    return folded if len(folded) <= DETAIL_LIMIT else folded[:DETAIL_LIMIT] + "…"


def _root(error: BaseException) -> str:
    """The message of the first cause that has one."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or error.__class__.__name__


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server asks to wait, given as a number or as a date; None if it does not."""
    date = parsedate_tz(headers.get("retry-after"))
    till = None if date is None else mktime_tz(date) - time.time()
    milliseconds = _number(headers.get("retry-after-ms"))
    asked = _number(headers.get("retry-after")) if milliseconds is None else milliseconds / 1000
    seconds = till if asked is None else asked
    return seconds if seconds is not None and seconds >= 0 else None


def _number(header: str | None) -> float | None:
    try:
        number = math.nan if header is None else float(header)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
