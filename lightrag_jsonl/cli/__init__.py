"""The command line: a thin layer over `LightRAG`."""

from lightrag_jsonl.cli import admin, demo, documents, explain, prompts, questions, transfer
from lightrag_jsonl.cli.group import main

__all__ = ["admin", "demo", "documents", "explain", "main", "prompts", "questions", "transfer"]
