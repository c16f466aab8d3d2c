"""The failures of model servers, told apart by their codes, statuses and words, each with advice."""

import re
from collections.abc import Mapping

from msgspec import Struct

from lightrag_jsonl.core.errors import FREE
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.user_code import ONE_CALL
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import clipped

MARKUP = pattern_of(r"<[!?a-z]", re.IGNORECASE)  # unlike "<400> InvalidParameter"
LONGEST_DETAIL = 300  # characters of a server's own message that are shown


class ServerFailure(Struct, frozen=True):
    """A kind of failure: advice for the user, and the flags of the `LLMError`."""

    advice: str
    transient: bool = False
    permanent: bool = False
    timed_out: bool = False
    too_long: bool = False
    busy: bool = False  # nothing is wrong with the request, which may be sent again later
    cost: Usage = FREE


class WebPage(ValueError):
    """A page of HTML with status 200, in place of an answer."""


_TOO_LONG = pattern_of(  # llama.cpp, OpenAI, vLLM, Gemini, Mistral, TGI, DashScope
    r"exceed_context_size|context_length_exceeded|available context size|maximum context length"
    r"|token count.{0,40}exceeds|too large for model|tokens?`? \+ `?max_new_tokens|prompt is too long"
    r"|range of input length",
    re.IGNORECASE,
)
_TOO_BUSY = pattern_of(  # SiliconFlow, Ollama, OpenAI, Anthropic, Gemini, GLM, Qianfan and gateways
    r"\b[RT]P[MD] limit|\bQPS\b.{0,20}limit|rate[ _-]?limit|too many (?:concurrent )?requests"
    r"|requests per (?:minute|second)|server(?: is)? (?:currently )?busy|overloaded"
    r"|throttl|at capacity|loading model|请求过多|请求过于频繁|频率限制|速率限制|并发.{0,10}(?:超|限)|限流|繁忙",
    re.IGNORECASE,
)
_NO_CREDIT_WORDS = pattern_of(  # Anthropic, DeepSeek, OpenAI, Moonshot, GLM, DashScope, Volcengine
    r"credit balance|insufficient[ _-](?:account[ _-])?(?:balance|credit|quota|fund)"
    r"|(?:balance|credits?|funds?) (?:is|are|was|were) (?:too low|low|insufficient|exhausted|depleted)"
    r"|(?:balance|credits?) (?:exhausted|depleted)|not enough (?:balance|credits?|funds)"
    r"|out of credits?|no credits? (?:left|remaining)|\barrear|overdue|billing[ _]hard[ _]limit"
    r"|exceeded_current_quota|余额不足|余额不够|欠费",
    re.IGNORECASE,
)
_MAY_BE_BUSY = frozenset({403, 500, 502})  # statuses that servers also have for other failures
_MAY_BE_UNPAID = frozenset({400, 403, 429})

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
_BUSY = ServerFailure("the server is busy, or still starting", transient=True, busy=True)
_FAILURES: Mapping[object, ServerFailure] = {  # by code, status and its hundreds, exception's name
    "insufficient_quota": _NO_CREDIT,
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
        busy=True,
    ),
    503: _BUSY,
    504: _TOO_SLOW,
    524: _TOO_SLOW,  # of Cloudflare, before a server
    529: _BUSY,
    3: ServerFailure("check the base URL, from which it leads elsewhere", permanent=True),
    4: ServerFailure("the server refused the request"),
    5: ServerFailure("the server failed; try later", transient=True),
    "ConnectTimeout": _NO_CONNECTION,
    "ReadError": _BROKEN_OFF,
    "RemoteProtocolError": _BROKEN_OFF,
    "TimeoutError": _TOO_SLOW,
    "WebPage": ServerFailure(
        "the address answers with a web page; check the base URL (it usually ends in /v1)",
        permanent=True,
    ),
    "APITimeoutError": _TOO_SLOW,
    "APIConnectionError": _NO_CONNECTION,
    "OpenAIError": ServerFailure("the server reported an error", transient=True),
    "ValueError": ServerFailure(
        "the response is not JSON; check the base URL (it usually ends in /v1)"
    ),
}
_REQUEST_TOO_LONG = ServerFailure(
    "the request is too long for the model's window; use smaller chunks (--chunk-tokens) or batches, "
    "and for a chat model set LIGHTRAG_JSONL_CONTEXT_TOKENS (context_tokens= in Python) to the window",
    too_long=True,
)


def failure_of(error: Exception, status: int, body: str) -> ServerFailure:
    """The kind of failure: by the server's words and code, the status, the exception's class."""
    if status in (400, 413, 422, 500) and _TOO_LONG.search(body):
        return _REQUEST_TOO_LONG
    if status in _MAY_BE_UNPAID and _NO_CREDIT_WORDS.search(body):
        return _NO_CREDIT
    if status in _MAY_BE_BUSY and _TOO_BUSY.search(body):
        return _FAILURES[429] if status == 403 else _BUSY
    if MARKUP.match(getattr(error, "doc", "").lstrip()):  # of a JSON decoder's error
        return _FAILURES["WebPage"]
    classes = [type(error.__cause__), *type(error).__mro__]
    names = [cls.__name__ for cls in classes]
    keys = [getattr(error, "code", None), status, status // 100, *names]
    return next(_FAILURES[key] for key in keys if key in _FAILURES)


def failure_in_answer(body: Mapping[str, object]) -> ServerFailure:
    """The kind of failure that a gateway reports with status 200."""
    error = body.get("error")
    status = error.get("code") if isinstance(error, Mapping) else None
    text = str(body)
    if status == 402 or _NO_CREDIT_WORDS.search(text):
        return _NO_CREDIT
    if status in (429, 503, 529) or _TOO_BUSY.search(text):
        return _BUSY
    return ServerFailure("the server gave no answer", transient=True)


def message_of(body: object) -> str:
    """The message in the body of an error, from any of the usual places, cut if it is long."""
    while isinstance(body, Mapping):
        body = next(
            (body[key] for key in ("message", "error", "detail", "error_msg") if body.get(key)), ""
        )
    text = str(body or "").strip()
    return "an HTML page" if MARKUP.match(text) else clipped(text, LONGEST_DETAIL)
