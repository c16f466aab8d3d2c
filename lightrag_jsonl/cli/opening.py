"""Opens an index from a `Setup`; names recorded in the folder fill in options not given.

The folder holds names of models only: addresses and keys come from the user.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from lightrag_jsonl import (
    ConfigError,
    EmbeddingError,
    IndexOptions,
    LightRAG,
    OpenAIEmbedder,
    OpenAILLM,
    SentenceTransformerEmbedder,
    StorageError,
)
from lightrag_jsonl.cli.options import EMBEDDERS, Setup, user_default
from lightrag_jsonl.core.protocols import LLM, Embedder, Vectors
from lightrag_jsonl.providers.offline import HashEmbedder
from lightrag_jsonl.storage.sqlite.database import SQLiteStore

NO_MODEL = "none"
NOT_REMEMBERED = {"max_calls", "max_concurrent_calls", "max_input_tokens", "max_output_tokens"}


def open_index(
    setup: Setup, options: Mapping[str, Any] | None = None, *, create: bool = False
) -> LightRAG:
    """Open an index with the given or recorded parts; `StorageError` if there is none.

    `options` are those of indexing, None for each that is not given; those of the last insert fill
    in. With `create` a missing index is made, and its parts and options are recorded.
    """
    known = recorded(setup.working_dir)
    if known is None and not create:
        make = f"make one with: lightrag-jsonl insert -w {setup.working_dir} FILES"
        raise StorageError(f"no index in {setup.working_dir}; {make}", path=setup.working_dir)
    known = known or {}
    given = {name: value for name, value in (options or {}).items() if value not in (None, ())}
    given |= {n: str(v.resolve()) for n, v in given.items() if isinstance(v, Path)}
    if options is not None and not create:
        given = json.loads(known.get("cli.options", "{}")) | given
    prompts = setup.prompts or known.get("cli.prompts") or user_default("prompts")
    embedder = make_embedder(setup, known)
    if not known:
        _ = embedder.dim  # an embedder that is not available fails before a folder is created
    rag = LightRAG(
        setup.working_dir,
        llm=make_llm(setup, known),
        embedder=embedder,
        language=setup.language or known.get("language") or user_default("language") or "en",
        options=IndexOptions(**given),
        prompts=prompts,
    )
    if create:
        kept = {name: value for name, value in given.items() if name not in NOT_REMEMBERED}
        names = {
            "cli.llm": setup.llm or known.get("cli.llm") or user_default("llm") or "",
            "cli.embedder": embedder_name(setup, known),
            "cli.prompts": str(Path(prompts).resolve()) if prompts else "",
            "cli.options": json.dumps(kept, ensure_ascii=False, sort_keys=True),
        }
        remember(rag, names)
    return rag


def recorded(working_dir: Path) -> dict[str, str] | None:
    """The settings that an index was built with; None if there is no index yet."""
    if not (working_dir / "index.sqlite").is_file():
        return None
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
    return f"st:{Path(name).resolve()}" if kind == "st" and name and Path(name).is_dir() else spec


def make_llm(setup: Setup, known: Mapping[str, str]) -> LLM | None:
    """The model of an index; None for "none"."""
    name = llm_name(setup, known)
    return None if name == NO_MODEL else OpenAILLM(name, base_url=setup.base_url)


def make_embedder(setup: Setup, known: Mapping[str, str]) -> Embedder:
    """The embedder of an index; a stand-in, if it was made by a program with another one."""
    name = known.get("embedder", HashEmbedder().name)
    if not (setup.embedder or "cli.embedder" in known or name == HashEmbedder().name):
        return _UnknownEmbedder(name, int(known["dim"]))
    spec = embedder_name(setup, known)
    kind, _, name = spec.partition(":")
    if kind == "st" and name:
        return SentenceTransformerEmbedder(name)
    if kind == "openai" and name:
        return OpenAIEmbedder(name, base_url=setup.embedder_base_url or setup.base_url)
    if spec != "hash":
        raise ConfigError(f"{spec!r} is no embedder: it must be {EMBEDDERS}")
    return HashEmbedder()


class _UnknownEmbedder:
    """An embedder that is known by its name only: enough for commands that embed nothing."""

    def __init__(self, name: str, dim: int) -> None:
        self.name, self.dim = name, dim

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        raise EmbeddingError(f"the embedder {self.name} is needed: name it with --embedder")
