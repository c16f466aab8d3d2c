"""The completion and its cost in a response of OpenAI's protocol."""

from collections.abc import Mapping
from typing import Any

from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import Completion
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.user_code import finish_of
from lightrag_jsonl.providers.connection import message_of


def read_completion(response: Mapping[str, Any]) -> Completion:
    """The completion in a response of `/chat/completions`; `LLMError` if there is none."""
    cost = read_usage(response.get("usage"))
    choice = next(iter(response.get("choices") or ()), None)
    if choice is None:
        reason = message_of(response) or "there are no choices"
        raise LLMError(f"the server gave no answer: {reason}", transient=True, cost=cost)
    message = choice.get("message") or {}
    content = read_content(message.get("content"))
    finish = finish_of(choice.get("finish_reason"))
    if content is None and finish != "length":
        reason = message.get("refusal") or f"finish reason {choice.get('finish_reason')!r}"
        raise LLMError(f"the model gave no text ({reason})", cost=cost)
    return Completion(sanitize(content or ""), finish, cost)


def read_content(content: object) -> str | None:
    """The text of a message, also of one in parts, as Mistral sends it; thinking is left out."""
    if content is None or isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "".join(map(_part_text, parts))


def _part_text(part: object) -> str:
    """The text of a part of a message; "" for thinking, pictures and the like."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or part.get("type") not in (None, "text", "output_text"):
        return ""
    text = part.get("text")
    return text if isinstance(text, str) else ""


def read_usage(counts: Mapping[str, Any] | None) -> Usage:
    """Tokens as counted by the server; DeepSeek has a field of its own for cached tokens."""
    counts = counts or {}
    details = counts.get("prompt_tokens_details") or {}
    return Usage(
        input_tokens=counts.get("prompt_tokens") or 0,
        output_tokens=counts.get("completion_tokens") or 0,
        cached_tokens=details.get("cached_tokens") or counts.get("prompt_cache_hit_tokens") or 0,
        calls=1,
    )
