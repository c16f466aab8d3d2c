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
    help,
    prompts,
    questions,
    serve,
    snapshots,
    transfer,
)
from lightrag_jsonl.cli.group import main

__all__ = ["main"]
