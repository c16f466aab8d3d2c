"""An index for its users: `AsyncLightRAG`, and `LightRAG` without await."""

from lightrag_jsonl.rag.asynchronous import AsyncLightRAG
from lightrag_jsonl.rag.blocking import LightRAG

__all__ = ["AsyncLightRAG", "LightRAG"]
