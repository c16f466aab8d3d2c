"""The nouns: frozen values that the steps take and return."""

from lightrag_jsonl.languages import Language
from lightrag_jsonl.types.answers import Answer, Citation, Context, Dropped, Keywords, Mode
from lightrag_jsonl.types.graph import (
    UNKNOWN_TYPE,
    ChunkState,
    Entity,
    EntityMention,
    Extraction,
    Kind,
    Relation,
    RelationMention,
)
from lightrag_jsonl.types.model import (
    Completion,
    Json,
    JsonlResult,
    Message,
    Record,
    Rejection,
    RejectionReason,
    ResponseType,
)
from lightrag_jsonl.types.reports import (
    DeleteReport,
    DocumentState,
    DocumentStatus,
    ExtractionReport,
    Failure,
    InsertReport,
    Status,
    TraceSummary,
)
from lightrag_jsonl.types.texts import Chunk, Document, Page
from lightrag_jsonl.usage import Usage

__all__ = [
    "UNKNOWN_TYPE",
    "Answer",
    "Chunk",
    "ChunkState",
    "Citation",
    "Completion",
    "Context",
    "DeleteReport",
    "Document",
    "DocumentState",
    "DocumentStatus",
    "Dropped",
    "Entity",
    "EntityMention",
    "Extraction",
    "ExtractionReport",
    "Failure",
    "InsertReport",
    "Json",
    "JsonlResult",
    "Keywords",
    "Kind",
    "Language",
    "Message",
    "Mode",
    "Page",
    "Record",
    "Rejection",
    "RejectionReason",
    "Relation",
    "RelationMention",
    "ResponseType",
    "Status",
    "TraceSummary",
    "Usage",
]
