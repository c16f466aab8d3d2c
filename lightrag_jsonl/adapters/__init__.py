"""Ports to the outside world; heavy packages are loaded by the first call that needs them."""

from __future__ import annotations

from lightrag_jsonl.adapters.functions import FunctionEmbedder, FunctionLLM, as_embedder, as_llm
from lightrag_jsonl.adapters.openai import OpenAILLM
from lightrag_jsonl.adapters.openai_embedder import OpenAIEmbedder
from lightrag_jsonl.adapters.sentence_transformers import (
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
