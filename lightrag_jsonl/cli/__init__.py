"""The command line: a thin layer over `LightRAG`; the module of a command is imported when it is asked for."""

from lightrag_jsonl.cli.group import main

__all__ = ["main"]
