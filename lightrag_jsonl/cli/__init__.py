"""The command line: a thin layer over `LightRAG`."""

# ruff: noqa: F401  # importing a module adds its commands
from lightrag_jsonl.cli import (
    admin,
    communities,
    demo,
    doctor,
    documents,
    entities,
    explain,
    prompts,
    questions,
    serve,
    transfer,
)
from lightrag_jsonl.cli.group import main

__all__ = ["main"]
