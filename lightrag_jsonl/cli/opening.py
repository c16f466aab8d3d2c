"""Opens an index from a `Setup`; names recorded in the folder fill in options not given.

The folder holds names of models only: addresses and keys come from the user.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import lightrag_jsonl
from lightrag_jsonl import ConfigError, EmbeddingError, IndexOptions, LightRAG, StorageError
from lightrag_jsonl.cli.options import EMBEDDERS, NO_MODEL, Setup, user_default
from lightrag_jsonl.core.protocols import LLM, Embedder, Vectors
from lightrag_jsonl.providers.offline import HashEmbedder
from lightrag_jsonl.storage.sqlite.database import SQLiteStore

NOT_REMEMBERED = {"max_calls", "max_concurrent_calls", "max_input_tokens", "max_output_tokens"}


def open_index(
    given: Setup, options: Mapping[str, Any] | None = None, *, create: bool = False
) -> LightRAG:
    """Open an index with the given or recorded parts; `StorageError` if there is none.

    `options` are those of indexing, None for each that is not given; those of the last insert fill
    in. With `create` a missing index is made, and its parts and options are recorded.
    """
    known = recorded(given.working_dir)
    if known is None and not create:
        make = f"make one with: lightrag-jsonl insert -w {given.working_dir} FILES"
        raise StorageError(f"no index in {given.working_dir}; {make}", path=given.working_dir)
    setup = completed(given, known or {})
    chosen = {name: value for name, value in (options or {}).items() if value not in (None, ())}
    chosen |= {n: str(v.resolve()) for n, v in chosen.items() if isinstance(v, Path)}
    if known and options is not None and not create:
        chosen = json.loads(known.get("cli.options", "{}")) | chosen
    embedder = make_embedder(setup)
    if known is None:
        _ = embedder.dim  # an embedder that is not available fails before a folder is created
    elif not (given.embedder or "cli.embedder" in known or "embedder" not in known):
        embedder = _RecordedEmbedder(known) if embedder.name != known["embedder"] else embedder
    rag = LightRAG(
        setup.working_dir,
        llm=make_llm(setup),
        embedder=embedder,
        language=str(setup.language),
        options=IndexOptions(**chosen),
        prompts=setup.prompts,
    )
    if create:
        kept = {name: value for name, value in chosen.items() if name not in NOT_REMEMBERED}
        names = {"llm": setup.llm, "embedder": setup.embedder, "prompts": setup.prompts or ""}
        names["options"] = json.dumps(kept, ensure_ascii=False, sort_keys=True)
        remember(rag, **names)
    return rag


def recorded(working_dir: Path) -> dict[str, str] | None:
    """The settings that an index was built with; None if there is no index yet."""
    if not (working_dir / "index.sqlite").is_file():
        return None
    with closing(SQLiteStore(working_dir)) as store, store.reader() as reader:
        return reader.settings()


def remember(rag: LightRAG, **names: object) -> None:
    """Record names in the index, for later commands."""
    with rag._twin._store.transaction() as transaction:
        transaction.put_settings({f"cli.{name}": str(value) for name, value in names.items()})


def completed(setup: Setup, known: Mapping[str, str]) -> Setup:
    """A setup whose names are those given, or else recorded, or else the user's defaults."""
    prompts = setup.prompts or known.get("cli.prompts") or user_default("prompts")
    embedder = setup.embedder or known.get("cli.embedder")
    if embedder is None:
        embedder = "hash" if "embedder" in known else user_default("embedder") or "hash"
    kind, _, name = embedder.partition(":")
    if kind == "st" and name and Path(name).is_dir():
        embedder = f"st:{Path(name).resolve()}"
    return replace(
        setup,
        llm=setup.llm or known.get("cli.llm") or user_default("llm") or NO_MODEL,
        embedder=embedder,
        language=setup.language or known.get("language") or user_default("language") or "en",
        prompts=Path(prompts).resolve() if prompts else None,
    )


def make_llm(setup: Setup) -> LLM | None:
    """The model of a completed setup; None for "none"."""
    if setup.llm in (None, NO_MODEL):
        return None
    return lightrag_jsonl.OpenAILLM(setup.llm, base_url=setup.base_url)


def make_embedder(setup: Setup) -> Embedder:
    """The embedder of a completed setup."""
    kind, _, name = str(setup.embedder).partition(":")
    if kind == "st" and name:
        return lightrag_jsonl.SentenceTransformerEmbedder(name)
    if kind == "openai" and name:
        url = setup.embedder_base_url or setup.base_url
        return lightrag_jsonl.OpenAIEmbedder(name, base_url=url)
    if setup.embedder != "hash":
        raise ConfigError(f"{setup.embedder!r} is no embedder: it must be {EMBEDDERS}")
    return HashEmbedder()


class _RecordedEmbedder:
    """An embedder of another program, known by its name: enough for commands that embed nothing."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self.name, self.dim = known["embedder"], int(known["dim"])

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        raise EmbeddingError(f"the embedder {self.name} is needed: name it with --embedder")
