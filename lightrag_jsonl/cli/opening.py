"""Opens an index from a `Setup`; names recorded in the folder fill in options not given.

The folder holds names of models only: addresses and keys come from the user.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import click

from lightrag_jsonl import ConfigError, EmbeddingError, IndexOptions, LightRAG, StorageError
from lightrag_jsonl.cli.options import Setup, user_default
from lightrag_jsonl.core.protocols import LLM, Embedder, Vectors
from lightrag_jsonl.providers.offline import HashEmbedder
from lightrag_jsonl.storage.sqlite.database import SQLiteStore

NO_MODEL = "none"
NOT_REMEMBERED = {"max_calls", "max_concurrent_calls", "max_input_tokens", "max_output_tokens"}


def open_index(setup: Setup, options: Mapping[str, Any] | None = None) -> LightRAG:
    """Open an existing index with the given or recorded parts; `StorageError` if there is none.

    With `options` (None for those not given) also with the recorded options of the last insert.
    """
    if not has_index(setup.working_dir):
        make = f"make one with: lightrag-jsonl insert -w {setup.working_dir} FILES"
        raise StorageError(f"no index in {setup.working_dir}; {make}", path=setup.working_dir)
    known = recorded(setup.working_dir)
    if options is not None:
        options = json.loads(known.get("cli.options", "{}")) | given_options(options)
    return _open(setup, known, options or {})


def open_for_insert(setup: Setup, options: Mapping[str, Any]) -> LightRAG:
    """Open an index to insert into, or create it; the names of its models are recorded in it."""
    known, given = recorded(setup.working_dir), given_options(options)
    if given.get("extraction") == "extract-with-ontologies" and "ontology" not in given:
        raise click.UsageError("--extraction extract-with-ontologies needs an --ontology")
    rag = _open(setup, known, given)
    remembered = {name: value for name, value in given.items() if name not in NOT_REMEMBERED}
    settings = {
        "cli.llm": setup.llm or known.get("cli.llm") or user_default("llm") or "",
        "cli.embedder": embedder_name(setup, known),
        "cli.prompts": str(_prompts(setup, known) or ""),
        "cli.options": json.dumps(remembered, ensure_ascii=False, sort_keys=True),
    }
    if settings.items() - known.items():
        remember(rag, settings)
    return rag


def _open(setup: Setup, known: Mapping[str, str], options: Mapping[str, Any]) -> LightRAG:
    try:
        checked = IndexOptions(**options)
    except (ConfigError, TypeError) as error:
        raise click.UsageError(str(error)) from error
    embedder = make_embedder(setup, known)
    if not known:
        _ = embedder.dim  # an embedder that is not available fails before a folder is created
    return LightRAG(
        setup.working_dir,
        llm=make_llm(llm_name(setup, known), setup.base_url),
        embedder=embedder,
        language=setup.language or known.get("language") or user_default("language") or "en",
        options=checked,
        prompts=_prompts(setup, known),
    )


# ── what the folder holds ───────────────────────────────────────────────────────


def has_index(working_dir: Path) -> bool:
    """Whether the folder holds an index."""
    return (working_dir / "index.sqlite").is_file()


def recorded(working_dir: Path) -> dict[str, str]:
    """The settings that an index was built with; empty if there is no index yet."""
    if not has_index(working_dir):
        return {}
    with closing(SQLiteStore(working_dir)) as store, store.reader() as reader:
        return reader.settings()


def remember(rag: LightRAG, settings: Mapping[str, str]) -> None:
    """Record settings for later commands in the index."""
    with rag._twin._store.transaction() as transaction:
        transaction.put_settings(settings)


# ── the parts ───────────────────────────────────────────────────────────────────


def llm_name(setup: Setup, known: Mapping[str, str]) -> str:
    """The model that was given, or else the recorded one, or else the user's default."""
    return setup.llm or known.get("cli.llm") or user_default("llm") or NO_MODEL


def embedder_name(setup: Setup, known: Mapping[str, str]) -> str:
    """The embedder that was given, or else the recorded one, or else, for a new index, the user's
    default.
    """
    usual = None if "embedder" in known else user_default("embedder")
    spec = setup.embedder or known.get("cli.embedder") or usual or "hash"
    kind, _, name = spec.partition(":")
    return f"st:{Path(name).resolve()}" if kind == "st" and Path(name).is_dir() else spec


def _prompts(setup: Setup, known: Mapping[str, str]) -> Path | None:
    folder = setup.prompts or known.get("cli.prompts") or user_default("prompts")
    return Path(folder).resolve() if folder else None


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, as plain JSON; paths are made absolute."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    return {n: str(v.resolve()) if isinstance(v, Path) else v for n, v in given.items()}


def make_llm(model: str | None, base_url: str | None) -> LLM | None:
    """The chat model with this name; None for no name and for "none"."""
    if model in (None, NO_MODEL):
        return None
    from lightrag_jsonl.providers.openai import OpenAILLM

    return OpenAILLM(str(model), base_url=base_url)


def make_embedder(setup: Setup, known: Mapping[str, str]) -> Embedder:
    """The embedder of an index; a stand-in, if it was made by a program with another one."""
    name = known.get("embedder", HashEmbedder().name)
    if not (setup.embedder or "cli.embedder" in known or name == HashEmbedder().name):
        return _UnknownEmbedder(name, int(known["dim"]))
    kind, _, name = embedder_name(setup, known).partition(":")
    if kind == "st":
        from lightrag_jsonl.providers.sentence_transformers import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder(name)
    if kind == "openai":
        from lightrag_jsonl.providers.openai_embedder import OpenAIEmbedder

        return OpenAIEmbedder(name, base_url=setup.embedder_base_url or setup.base_url)
    return HashEmbedder()


class _UnknownEmbedder:
    """An embedder that is known by its name only: enough for commands that embed nothing."""

    def __init__(self, name: str, dim: int) -> None:
        self.name, self.dim = name, dim

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        raise EmbeddingError(f"the embedder {self.name} is needed: name it with --embedder")
