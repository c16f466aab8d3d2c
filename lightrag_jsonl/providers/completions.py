"""The completion and the cost in a response of OpenAI's protocol."""

import re
from collections.abc import Mapping
from typing import Any

from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.core.types import Completion
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.user_code import finish_of
from lightrag_jsonl.providers.server_failures import failure_in_answer, message_of
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import sanitize

_RECORD = pattern_of(r'^[ \t\r,\[]*\{\s*"[^"\n]{1,40}"\s*:.*\}[ \t\r,\]]*$', re.MULTILINE)


def read_completion(response: Mapping[str, Any]) -> Completion:
    """The completion in a response of `/chat/completions`; `LLMError` without a completion."""
    cost = read_usage(response.get("usage"))
    choice = next(iter(response.get("choices") or ()), None)
    if choice is None:
        failure = failure_in_answer(response)
        reason = message_of(response) or "there are no choices"
        raise LLMError(
            f"{failure.advice}: {reason}",
            transient=failure.transient,
            permanent=failure.permanent,
            rate_limited=failure.busy,
            cost=cost,
        )
    message = choice.get("message") or {}
    content = read_content(message.get("content"))
    finish = finish_of(choice.get("finish_reason"))
    if not (content or "").strip():
        details = (response.get("usage") or {}).get("completion_tokens_details") or {}
        has_hidden_thoughts = bool(details.get("reasoning_tokens"))
        content = text_of_thoughts(read_thoughts(message), is_hidden=has_hidden_thoughts) or content
    if content is None and finish != "length":
        reason = message.get("refusal") or f"finish reason {choice.get('finish_reason')!r}"
        raise LLMError(f"the model gave no text ({reason})", cost=cost)
    return Completion(sanitize(content or ""), finish, cost)


def read_content(content: object) -> str | None:
    """The text of a message, also in parts as from Mistral, without thinking."""
    if content is None or isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "".join(map(_part_text, parts))


def read_thoughts(message: Mapping[str, Any]) -> str:
    """A model's thoughts before an answer, from a field or a part of a message; "" without thoughts."""
    for field in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(message.get(field), str):
            return str(message[field])
    parts = message.get("content")
    thoughts = (
        [part.get("thinking") for part in parts if isinstance(part, Mapping)]
        if isinstance(parts, list)
        else []
    )
    return "".join(read_content(thought) or "" for thought in thoughts)


def text_of_thoughts(thoughts: str, *, is_hidden: bool = False) -> str:
    """The text of an answer with thoughts only: the records inside, or else the marked thoughts.

    Some servers take a whole answer for thinking. `is_hidden` stands for thoughts known only to the
    server. Without thoughts the text is "".
    """
    if _RECORD.search(thoughts):
        return thoughts
    return f"<think>\n{thoughts}" if thoughts.strip() or is_hidden else ""


def _part_text(part: object) -> str:
    """The text of a part of a message; "" for thinking, pictures and the like."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or part.get("type") not in (None, "text", "output_text"):
        return ""
    text = part.get("text")
    return text if isinstance(text, str) else ""


def read_usage(counts: Mapping[str, Any] | None) -> Usage:
    """Tokens as counted by the server; DeepSeek has a separate field for cached tokens."""
    counts = counts or {}
    details = counts.get("prompt_tokens_details") or {}
    return Usage(
        input_tokens=counts.get("prompt_tokens") or 0,
        output_tokens=counts.get("completion_tokens") or 0,
        cached_tokens=details.get("cached_tokens") or counts.get("prompt_cache_hit_tokens") or 0,
        calls=1,
    )
