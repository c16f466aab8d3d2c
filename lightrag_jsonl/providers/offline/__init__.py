"""Providers that need no model and no network: language rules, and an embedder that hashes words."""

from lightrag_jsonl.providers.offline.answering import ExtractiveAnswerer
from lightrag_jsonl.providers.offline.embedder import HashEmbedder
from lightrag_jsonl.providers.offline.extraction import (
    OfflineExtractor,
    extract_names,
    extract_text,
    has_other_name,
    text_names,
)
from lightrag_jsonl.providers.offline.keywords import OfflineKeywords
from lightrag_jsonl.providers.offline.listed_names import name_problem

__all__ = [
    "ExtractiveAnswerer",
    "HashEmbedder",
    "OfflineExtractor",
    "OfflineKeywords",
    "extract_names",
    "extract_text",
    "has_other_name",
    "name_problem",
    "text_names",
]
