"""LightRAG with JSONL extraction: texts to a knowledge graph, questions to answers with sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lightrag_jsonl.errors import (
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
from lightrag_jsonl.options import IndexOptions, QueryParam
from lightrag_jsonl.types import (
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
    Usage,
)

if TYPE_CHECKING:
    from lightrag_jsonl.adapters.functions import FunctionEmbedder, FunctionLLM
    from lightrag_jsonl.adapters.openai import OpenAILLM
    from lightrag_jsonl.adapters.openai_embedder import OpenAIEmbedder
    from lightrag_jsonl.adapters.sentence_transformers import (
        CrossEncoderReranker,
        SentenceTransformerEmbedder,
    )
    from lightrag_jsonl.batching import BatchExport, BatchImport
    from lightrag_jsonl.estimating import Estimate
    from lightrag_jsonl.importing import ImportReport
    from lightrag_jsonl.jsonl import JsonlReader, parse_jsonl
    from lightrag_jsonl.prompts import Prompt, PromptManager
    from lightrag_jsonl.protocols import LLM as LLM
    from lightrag_jsonl.protocols import Answerer as Answerer
    from lightrag_jsonl.protocols import Embedder as Embedder
    from lightrag_jsonl.protocols import Extractor as Extractor
    from lightrag_jsonl.protocols import KeywordExtractor as KeywordExtractor
    from lightrag_jsonl.protocols import Reranker as Reranker
    from lightrag_jsonl.protocols import StreamingLLM as StreamingLLM
    from lightrag_jsonl.protocols import Tokenizer as Tokenizer
    from lightrag_jsonl.rag import AsyncLightRAG
    from lightrag_jsonl.sync import LightRAG

__version__ = "0.1.0"

# Names whose modules take time to import: each is imported when it is first used. The ports among
# them are not in `__all__`, so that `import *` cannot replace a user's own class `LLM`.
_LATE = {
    "Answerer": "lightrag_jsonl.protocols",
    "AsyncLightRAG": "lightrag_jsonl.rag",
    "BatchExport": "lightrag_jsonl.batching",
    "BatchImport": "lightrag_jsonl.batching",
    "CrossEncoderReranker": "lightrag_jsonl.adapters.sentence_transformers",
    "Embedder": "lightrag_jsonl.protocols",
    "Estimate": "lightrag_jsonl.estimating",
    "Extractor": "lightrag_jsonl.protocols",
    "FunctionEmbedder": "lightrag_jsonl.adapters.functions",
    "FunctionLLM": "lightrag_jsonl.adapters.functions",
    "ImportReport": "lightrag_jsonl.importing",
    "JsonlReader": "lightrag_jsonl.jsonl",
    "KeywordExtractor": "lightrag_jsonl.protocols",
    "LLM": "lightrag_jsonl.protocols",
    "LightRAG": "lightrag_jsonl.sync",
    "OpenAIEmbedder": "lightrag_jsonl.adapters.openai_embedder",
    "OpenAILLM": "lightrag_jsonl.adapters.openai",
    "Prompt": "lightrag_jsonl.prompts",
    "PromptManager": "lightrag_jsonl.prompts",
    "Reranker": "lightrag_jsonl.protocols",
    "SentenceTransformerEmbedder": "lightrag_jsonl.adapters.sentence_transformers",
    "StreamingLLM": "lightrag_jsonl.protocols",
    "Tokenizer": "lightrag_jsonl.protocols",
    "parse_jsonl": "lightrag_jsonl.jsonl",
}

__all__ = [
    "Answer",
    "AsyncLightRAG",
    "BatchExport",
    "BatchImport",
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
    "Estimate",
    "Extraction",
    "ExtractionReport",
    "Failure",
    "FunctionEmbedder",
    "FunctionLLM",
    "ImportReport",
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
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATE[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
