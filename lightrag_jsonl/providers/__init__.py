"""Models and embedders; heavy packages are loaded by the first call that needs them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lightrag_jsonl.providers.functions import (
        FunctionEmbedder,
        FunctionLLM,
        as_embedder,
        as_llm,
    )
    from lightrag_jsonl.providers.openai import OpenAILLM
    from lightrag_jsonl.providers.openai_embedder import OpenAIEmbedder
    from lightrag_jsonl.providers.sentence_transformers import (
        CrossEncoderReranker,
        SentenceTransformerEmbedder,
    )

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

_MODULES = {  # of each name; each is imported when it is first used
    "CrossEncoderReranker": "sentence_transformers",
    "OpenAIEmbedder": "openai_embedder",
    "OpenAILLM": "openai",
    "SentenceTransformerEmbedder": "sentence_transformers",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'functions')}"), name)
