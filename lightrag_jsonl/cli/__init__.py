"""The command line: a thin layer over `LightRAG`."""

from lightrag_jsonl.cli import (
    admin,
    demo,
    documents,
    editing,
    explain,
    mcp,
    prompts,
    questions,
    serve,
    transfer,
)
from lightrag_jsonl.cli.group import main

__all__ = [
    "admin", "demo", "documents", "editing", "explain", "main", "mcp", "prompts", "questions",
    "serve", "transfer",
]  # fmt: skip
