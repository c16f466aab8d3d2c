"""`serve` and `mcp`: answer the questions of programs."""

from functools import partial
from pathlib import Path

import click

from lightrag_jsonl import ConfigError, LightRAG
from lightrag_jsonl.cli.group import CommandOutput, command, index_command
from lightrag_jsonl.cli.options import (
    DIRECTORY,
    FILE,
    NON_NEGATIVE,
    POSITIVE,
    Parameters,
    base_url,
    llm,
    llm_for,
    models,
    option,
    reranker,
)
from lightrag_jsonl.providers.header_values import environment_value
from lightrag_jsonl.providers.settings import Setup
from lightrag_jsonl.rag.opening import open_async

SERVER_PACKAGES = ("prometheus_client", "starlette", "uvicorn")


@command(
    click.argument("folders", nargs=-1, required=True, type=DIRECTORY, metavar="DIR..."),
    llm,
    llm_for,
    base_url,
    reranker,
    option("--host", "The address to listen on (default 127.0.0.1).", default="127.0.0.1"),
    option("--port", "The port (default 9621).", click.IntRange(0, 65_535), default=9621),
    option("--token-file", "A file with the token that requests must send.", FILE),
    option(
        "--allow-host hosts", "Another host name of this server; may be repeated.", multiple=True
    ),
    option("--max-upload", "The largest upload in MB (default 100).", POSITIVE, default=100),
    option("--max-job-hours", "The longest job in hours (default 24).", POSITIVE, default=24),
    option("--max-questions", "Questions answered at once (default 16).", POSITIVE, default=16),
    option(
        "--search-processes",
        "Processes for each index that search for its questions, to use several cores (default 0: the server searches).",
        click.IntRange(0),
        default=0,
    ),
    option(
        "--read-chunks",
        "In indexes of `insert --read asked`: how many chunks a question may have read at most (default: "
        "as each index remembers, or 8).",
        NON_NEGATIVE,
    ),
)
def serve_command(
    setup: Setup,
    folders: tuple[Path, ...],
    host: str,
    port: int,
    token_file: Path | None,
    hosts: tuple[str, ...],
    max_upload: int,
    max_job_hours: int,
    max_questions: int,
    search_processes: int,
    index_options: Parameters,
) -> CommandOutput:
    """Serve indexes by HTTP, each under its folder's name.

    The server offers REST (see /openapi.json) and the chat protocols of OpenAI (/v1) and Ollama (/api).
    Models are those that each index remembers, unless --llm or --llm-for name others. Any --host but this machine requires a token: from --token-file, or from the environment
    variable LIGHTRAG_JSONL_TOKEN. Indexing runs in separate processes.

    \b
    Examples:
      lightrag-jsonl serve kb
      lightrag-jsonl serve kb notes --host 0.0.0.0 --allow-host kb.example.org --token-file token
    """
    try:
        import uvicorn

        from lightrag_jsonl.server.app import create_app
        from lightrag_jsonl.server.connections import uvicorn_settings
        from lightrag_jsonl.server.indexes import MEGABYTE, Indexes, ServerLimits
        from lightrag_jsonl.server.security import Access
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in SERVER_PACKAGES:
            raise
        raise ConfigError("the server is an extra: pip install 'lightrag-jsonl[server]'") from error
    access = Access(host=host, token=_token(token_file), hosts=hosts)
    limits = ServerLimits(
        upload=max_upload * MEGABYTE,
        questions=max_questions,
        job_seconds=max_job_hours * 3_600.0,
    )
    opener = partial(
        open_async,
        setup=setup,
        options=index_options,
        search_processes=search_processes,
    )
    indexes = Indexes(limits, setup, opener=opener)
    indexes.open(folders)
    uvicorn.run(
        create_app(indexes, access),
        host=host,
        port=port,
        log_level="info",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        **uvicorn_settings(),
    )
    return CommandOutput(None, "")


def _token(file: Path | None) -> str | None:
    """The token in a file, or else in the environment."""
    if file is not None:
        return file.read_text(encoding="utf-8").strip()
    return environment_value("LIGHTRAG_JSONL_TOKEN") or None


@index_command(
    models,
    option("--allow-write", "Offer tools that insert and delete documents, too.", is_flag=True),
)
def mcp_command(rag: LightRAG, allow_write: bool) -> CommandOutput:
    """Offer the index as tools to agents (MCP).

    An agent's program starts this command and speaks the Model Context Protocol on stdin and
    stdout. The tools are search, ask, entity, source, documents and communities.

    \b
    Example, for the configuration file of such a program:
      {"mcpServers": {"kb": {"command": "lightrag-jsonl", "args": ["mcp", "-w", "/data/kb"]}}}
    """
    try:
        from lightrag_jsonl.mcp import mcp_server
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"`mcp` needs the package {error.name}: pip install 'lightrag-jsonl[mcp]'"
        ) from error
    rag.run(lambda async_rag: mcp_server(async_rag, allow_write=allow_write).run_stdio_async())
    return CommandOutput(None, b"")
