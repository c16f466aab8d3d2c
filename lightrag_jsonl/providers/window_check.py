"""Notices a server that reads only a part of a request, as Ollama beyond `num_ctx`."""

import logging
from typing import Any

from lightrag_jsonl.core.tokens import FittedTokenizer
from lightrag_jsonl.core.usage import Usage

# Tokenizers of models differ from the estimate by less than a third; a cut costs more, or is harmless.
LEAST_SHARE = 0.6
LEAST_TOKENS = 1_000  # of a request, so that the estimate is good
SMALLEST_WINDOW = 512  # tokens; a smaller count is no count of what was read

log = logging.getLogger(__name__)


class WindowCheck:
    """Compares the tokens counted by a server with the tokens sent; warns once."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._tokenizer = FittedTokenizer()
        self._has_warned = False

    def check(self, messages: Any, usage: Usage) -> None:
        """Warn if the server read far fewer tokens than the messages have."""
        read_tokens = usage.input_tokens + usage.cached_tokens  # some servers count them apart
        if self._has_warned or usage.input_tokens < SMALLEST_WINDOW:
            return
        texts = [message["content"] for message in messages if isinstance(message["content"], str)]
        if sum(map(len, texts)) < max(LEAST_TOKENS, read_tokens):
            return
        sent_tokens = sum(map(self._tokenizer.count, texts))
        if sent_tokens < LEAST_TOKENS or read_tokens >= LEAST_SHARE * sent_tokens:
            return
        self._has_warned = True
        log.warning(
            "%s: the server read %d of about %d tokens; the rest was cut off, often the instructions. "
            "With Ollama set num_ctx to %d or more (OLLAMA_CONTEXT_LENGTH, or PARAMETER num_ctx in a "
            "Modelfile), with other servers the length of the context; or use smaller chunks and "
            "token budgets",
            self._model,
            read_tokens,
            sent_tokens,
            1 << (sent_tokens + LEAST_TOKENS - 1).bit_length(),  # the next power of two
        )
