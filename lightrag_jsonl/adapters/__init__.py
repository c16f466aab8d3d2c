"""Adapters to the outside world; heavy packages are loaded by the first call that needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lightrag_jsonl.adapters.functions import FunctionEmbedder, FunctionLLM, as_embedder, as_llm
    from lightrag_jsonl.adapters.openai import OpenAILLM
    from lightrag_jsonl.adapters.openai_embedder import OpenAIEmbedder
    from lightrag_jsonl.adapters.sentence_transformers import (
        CrossEncoderReranker,
        SentenceTransformerEmbedder,
    )

# The module of each name; each is imported when it is first used.
_LATE = {
    "CrossEncoderReranker": "sentence_transformers",
    "FunctionEmbedder": "functions",
    "FunctionLLM": "functions",
    "OpenAIEmbedder": "openai_embedder",
    "OpenAILLM": "openai",
    "SentenceTransformerEmbedder": "sentence_transformers",
    "as_embedder": "functions",
    "as_llm": "functions",
}

__all__ = [
    "CrossEncoderReranker",
    "FunctionEmbedder",
    "FunctionLLM",
    "OpenAIEmbedder",
    "OpenAILLM",
    "SentenceTransformerEmbedder",
    "as_embedder",
    "as_llm",
]


def __getattr__(name: str) -> object:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
