"""`mcp`: an index as tools for agents."""

from __future__ import annotations

from lightrag_jsonl import ConfigError, LightRAG
from lightrag_jsonl.cli.group import Reply, index_command
from lightrag_jsonl.cli.options import models, option


@index_command(
    *models,
    option("--allow-write", "Offer tools that insert and delete documents, too.", is_flag=True),
)
def mcp(rag: LightRAG, allow_write: bool) -> Reply:
    """Offer the index as tools to agents (MCP).

    An agent's program starts this command and speaks the Model Context Protocol with it on stdin
    and stdout. The tools are search, ask, entity, source and documents.

    \b
    Example, for the configuration file of such a program:
      {"mcpServers": {"kb": {"command": "lightrag-jsonl", "args": ["mcp", "-w", "/data/kb"]}}}
    """
    try:
        from lightrag_jsonl.mcp import serve_stdio
    except ModuleNotFoundError as error:
        needs = f"this needs the package {error.name}: pip install 'lightrag-jsonl[mcp]'"
        raise ConfigError(needs) from error
    rag.run(serve_stdio, allow_write=allow_write)
    return Reply(None, b"")
