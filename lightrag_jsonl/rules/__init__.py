"""Providers that need no model and no network: language rules, and an embedder that hashes words."""

from lightrag_jsonl.rules.answering import ExtractiveAnswerer
from lightrag_jsonl.rules.embedder import HashEmbedder
from lightrag_jsonl.rules.extraction import (
    OfflineExtractor,
    extract_names,
    extract_text,
    has_other_name,
    text_names,
)
from lightrag_jsonl.rules.keywords import OfflineKeywords
from lightrag_jsonl.rules.listed_names import name_problem

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
