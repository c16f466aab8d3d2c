"""`serve` and `mcp`: answer the questions of programs."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import click

from lightrag_jsonl import ConfigError, LightRAG
from lightrag_jsonl.cli.group import CommandOutput, command, index_command
from lightrag_jsonl.cli.options import (
    FILE,
    FILE_OR_FOLDER,
    NON_NEGATIVE,
    POSITIVE,
    Parameters,
    base_url,
    embedder,
    language,
    llm,
    llm_for,
    models,
    option,
    reranker,
)
from lightrag_jsonl.cli.output import emit
from lightrag_jsonl.core.address import Address, IndexGroup, as_address
from lightrag_jsonl.providers.connection import environment_value
from lightrag_jsonl.providers.settings import Setup, chosen_setting
from lightrag_jsonl.rag.opening import open_async, open_index
from lightrag_jsonl.storage.opening import has_index

SERVER_PACKAGES: Final = ("prometheus_client", "starlette", "uvicorn")


def _addresses(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[Address, ...]:
    """The folders and databases of the arguments; a file is none."""
    addresses = tuple(map(as_address, values))
    for address in addresses:
        if isinstance(address, Path) and address.is_file():
            raise click.BadParameter(f"Directory '{address}' is a file.")
    return addresses


def _groups(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[Address, ...]:
    """Several indexes for each name, from NAME=INDEX."""
    addresses_by_name: dict[str, list[str]] = {}
    for value in values:
        name, _, address = value.partition("=")
        if not (name and address):
            raise click.BadParameter(f"{value!r} is not NAME=INDEX")
        addresses_by_name.setdefault(name, []).append(address)
    groups: list[Address] = []
    for name, addresses in addresses_by_name.items():
        group = as_address(addresses)
        if not isinstance(group, IndexGroup):
            raise click.BadParameter(f"{name!r} needs a second --group {name}=INDEX")
        groups.append(replace(group, index=name))
    return tuple(groups)


@command(
    click.argument(
        "indexes", nargs=-1, metavar="[INDEX]...", type=FILE_OR_FOLDER, callback=_addresses
    ),
    option(
        "-w --working-dir folders",
        "The same as INDEX; may be repeated.",
        multiple=True,
        callback=_addresses,
    ),
    option(
        "--group groups",
        "Offer several indexes, read only, as one under a NAME: one --group for each.",
        metavar="NAME=INDEX",
        multiple=True,
        callback=_groups,
    ),
    option("--no-open", "Do not open the page in a browser.", is_flag=True),
    llm,
    llm_for,
    base_url,
    embedder,
    language,
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
    indexes: tuple[Address, ...],
    folders: tuple[Address, ...],
    groups: tuple[Address, ...],
    host: str,
    port: int,
    token_file: Path | None,
    hosts: tuple[str, ...],
    max_upload: int,
    max_job_hours: int,
    max_questions: int,
    search_processes: int,
    no_open: bool,
    index_options: Parameters,
) -> CommandOutput:
    """Add documents and ask in the browser; answer programs.

    Each INDEX (default kb) is a folder, under its name, or a postgresql:// URL, under the name of its schema;
    an index is made where there is none. On a machine with a screen, the page is opened in the
    browser. Several servers may offer one database.

    The server offers REST (see /openapi.json) and the chat protocols of OpenAI (/v1) and Ollama (/api).
    Models are those that each index remembers, unless --llm or --llm-for name others. Any --host but this machine
    requires a token: from --token-file or the variable LIGHTRAG_JSONL_TOKEN. Indexing runs in separate processes.

    \b
    Examples:
      lightrag-jsonl serve
      lightrag-jsonl serve kb notes --host 0.0.0.0 \\
          --allow-host kb.example.org --token-file token
      lightrag-jsonl serve 'postgresql://ann@db.example.org/library?index=books'
      lightrag-jsonl serve --group library=kb2024 --group library=kb2025
    """
    _check_server_packages()

    from lightrag_jsonl.server.app import create_app
    from lightrag_jsonl.server.browser import check_port, run_server
    from lightrag_jsonl.server.indexes import MEGABYTE, Indexes, ServerLimits
    from lightrag_jsonl.server.security import Access

    access = Access(host=host, token=_token(token_file), hosts=hosts)
    addresses = (*indexes, *folders, *groups) or _default_addresses()
    new_addresses = [address for address in addresses if not has_index(address)]
    _check_new_folders(new_addresses)
    check_port(host, port)
    _make_indexes(new_addresses, setup)
    limits = ServerLimits(
        upload=max_upload * MEGABYTE,
        questions=max_questions,
        job_seconds=max_job_hours * 3_600.0,
    )
    opener = partial(
        open_async, setup=setup, options=index_options, search_processes=search_processes
    )
    open_indexes = Indexes(limits, setup, opener=opener)
    open_indexes.open(addresses)
    app = create_app(open_indexes, access)
    run_server(app, host, port, opens_page=not no_open and _has_screen())
    return CommandOutput(None, "")


def _default_addresses() -> tuple[Address, ...]:
    """The index of the user's settings, or else kb."""
    return (as_address(chosen_setting("working_dir", Setup())[0] or "kb"),)


def _check_server_packages() -> None:
    """Raise `ConfigError` without the packages of the extra `server`."""
    try:
        import uvicorn  # noqa: F401

        import lightrag_jsonl.server.app  # noqa: F401
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in SERVER_PACKAGES:
            raise
        raise ConfigError("the server is an extra: pip install '.[server]'") from error


def _check_new_folders(addresses: Sequence[Address]) -> None:
    """Raise `ConfigError` for a folder with other files, where no index is made."""
    for address in addresses:
        if isinstance(address, Path) and address.is_dir() and any(address.iterdir()):
            raise ConfigError(
                f"{address} has files, but no index. To read these files: lightrag-jsonl insert -w kb "
                f"{address}; then: lightrag-jsonl serve kb"
            )


def _make_indexes(addresses: Sequence[Address], setup: Setup) -> None:
    for address in addresses:
        open_index(replace(setup, working_dir=address), create=True).close()
        emit(f"new index: {address}", err=True)


def _has_screen() -> bool:
    """Whether the terminal is interactive, on a machine with a graphical screen."""
    if not sys.stderr.isatty():
        return False
    if sys.platform in ("win32", "darwin"):
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


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
      {"mcpServers": {"kb": {
          "command": "lightrag-jsonl", "args": ["mcp", "-w", "/data/kb"]}}}
    """
    try:
        from lightrag_jsonl.mcp import mcp_server
    except ModuleNotFoundError as error:
        raise ConfigError(f"`mcp` needs the package {error.name}: pip install '.[mcp]'") from error
    rag.run(lambda async_rag: mcp_server(async_rag, allow_write=allow_write).run_stdio_async())
    return CommandOutput(None, b"")
