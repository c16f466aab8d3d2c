"""Adapters that need no model: extraction, keywords, vectors and answers."""

from lightrag_jsonl.adapters.offline.answering import ExtractiveAnswerer
from lightrag_jsonl.adapters.offline.embedder import HashEmbedder
from lightrag_jsonl.adapters.offline.extraction import OfflineExtractor
from lightrag_jsonl.adapters.offline.keywords import OfflineKeywords

__all__ = ["ExtractiveAnswerer", "HashEmbedder", "OfflineExtractor", "OfflineKeywords"]
