"""LightRAG with JSONL extraction: texts to a knowledge graph, questions to answers with sources."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from lightrag_jsonl.core.errors import (
    BudgetError,
    ConfigError,
    CorruptError,
    EmbeddingError,
    LightRAGError,
    LLMError,
    LockedError,
    NotFoundError,
    PromptError,
    ResponseError,
    SettingsError,
    StorageError,
    VersionError,
)
from lightrag_jsonl.core.options import IndexOptions, QueryParam
from lightrag_jsonl.core.protocols import LLM as LLM
from lightrag_jsonl.core.protocols import Answerer as Answerer
from lightrag_jsonl.core.protocols import Embedder as Embedder
from lightrag_jsonl.core.protocols import Extractor as Extractor
from lightrag_jsonl.core.protocols import KeywordExtractor as KeywordExtractor
from lightrag_jsonl.core.protocols import Reranker as Reranker
from lightrag_jsonl.core.protocols import StreamingLLM as StreamingLLM
from lightrag_jsonl.core.protocols import Tokenizer as Tokenizer
from lightrag_jsonl.core.types import (
    Answer,
    Chunk,
    Citation,
    Completion,
    Context,
    DeleteReport,
    Document,
    DocumentStatus,
    Dropped,
    Entity,
    EntityMention,
    Extraction,
    ExtractionReport,
    Failure,
    InsertReport,
    JsonlResult,
    Keywords,
    Message,
    Page,
    Rejection,
    Relation,
    RelationMention,
    Status,
    TraceSummary,
)
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.llm.prompt import Prompt
from lightrag_jsonl.llm.prompt_manager import PromptManager
from lightrag_jsonl.llm.reader import JsonlReader, parse_jsonl
from lightrag_jsonl.rag import AsyncLightRAG, LightRAG

if TYPE_CHECKING:
    from lightrag_jsonl.providers.functions import FunctionEmbedder, FunctionLLM
    from lightrag_jsonl.providers.openai import OpenAILLM
    from lightrag_jsonl.providers.openai_embedder import OpenAIEmbedder
    from lightrag_jsonl.providers.sentence_transformers import (
        CrossEncoderReranker,
        SentenceTransformerEmbedder,
    )

__version__ = "0.1.0"

# Providers are imported when they are first used.
_PROVIDERS = (
    "CrossEncoderReranker",
    "FunctionEmbedder",
    "FunctionLLM",
    "OpenAIEmbedder",
    "OpenAILLM",
    "SentenceTransformerEmbedder",
)

# The ports (LLM, Embedder, …) are left out, so that `import *` cannot replace a user's own classes.
__all__ = [
    "Answer",
    "AsyncLightRAG",
    "BudgetError",
    "Chunk",
    "Citation",
    "Completion",
    "ConfigError",
    "Context",
    "CorruptError",
    "CrossEncoderReranker",
    "DeleteReport",
    "Document",
    "DocumentStatus",
    "Dropped",
    "EmbeddingError",
    "Entity",
    "EntityMention",
    "Extraction",
    "ExtractionReport",
    "Failure",
    "FunctionEmbedder",
    "FunctionLLM",
    "IndexOptions",
    "InsertReport",
    "JsonlReader",
    "JsonlResult",
    "Keywords",
    "LLMError",
    "LightRAG",
    "LightRAGError",
    "LockedError",
    "Message",
    "NotFoundError",
    "OpenAIEmbedder",
    "OpenAILLM",
    "Page",
    "Prompt",
    "PromptError",
    "PromptManager",
    "QueryParam",
    "Rejection",
    "Relation",
    "RelationMention",
    "ResponseError",
    "SentenceTransformerEmbedder",
    "SettingsError",
    "Status",
    "StorageError",
    "TraceSummary",
    "Usage",
    "VersionError",
    "parse_jsonl",
]


def __getattr__(name: str) -> object:
    if name in _PROVIDERS:
        return getattr(import_module("lightrag_jsonl.providers"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PROVIDERS})
