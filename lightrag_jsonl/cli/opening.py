"""Opens an index from a `Setup`; names recorded in the folder fill in options not given.

The folder holds names of models only: addresses and keys come from the user.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from lightrag_jsonl.cli.options import Setup
from lightrag_jsonl.core.errors import ConfigError, EmbeddingError, StorageError
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.core.protocols import LLM, Embedder, Vectors

if TYPE_CHECKING:
    from lightrag_jsonl.sync import LightRAG

NO_MODEL = "none"
NOT_REMEMBERED = ("max_calls", "max_concurrent_calls", "max_input_tokens", "max_output_tokens")


def open_for_reading(setup: Setup) -> LightRAG:
    """Open an existing index, without the model and embedder it was built with."""
    from lightrag_jsonl.sync import LightRAG

    known = require_index(setup.working_dir)
    embedder = (
        UnavailableEmbedder(known["embedder"], int(known["dim"])) if "embedder" in known else None
    )
    return LightRAG(setup.working_dir, embedder=embedder, language=_language(setup, known))


def open_for_questions(setup: Setup) -> LightRAG:
    """Open an existing index with the given or recorded model and embedder."""
    known = require_index(setup.working_dir)
    return _open(setup, known, None)


def open_for_insert(setup: Setup, given: Mapping[str, Any]) -> LightRAG:
    """Open an index to insert into, or create it; the names of its models are recorded in it."""
    known = recorded(setup.working_dir)
    if given.get("extraction") == "extract-with-ontologies" and "ontology" not in given:
        raise click.UsageError("--extraction extract-with-ontologies needs an --ontology")
    rag = _open(setup, known, index_options(given))
    remembered = {name: value for name, value in given.items() if name not in NOT_REMEMBERED}
    options = json.dumps(remembered, ensure_ascii=False, default=str, sort_keys=True)
    remember(
        setup.working_dir,
        {
            "cli.llm": llm_name(setup, known),
            "cli.embedder": embedder_name(setup, known),
            "cli.prompts": str(setup.prompts.resolve()) if setup.prompts else "",
            "cli.options": options,
        },
    )
    return rag


def open_for_writing(setup: Setup, given: Mapping[str, Any]) -> LightRAG:
    """Open an existing index to write to, with the settings of the last insert unless others are
    given.
    """
    known = require_index(setup.working_dir)
    options = json.loads(known.get("cli.options", "{}"))
    unknown = options.keys() - {field.name for field in fields(IndexOptions)}
    if unknown:
        raise StorageError(
            f"{setup.working_dir} was made with options this version does not know: "
            f"{', '.join(sorted(unknown))}",
            path=setup.working_dir,
        )
    return _open(setup, known, index_options({**options, **given}))


# ── what the folder holds ───────────────────────────────────────────────────────


def has_index(working_dir: Path) -> bool:
    """Whether the folder holds an index."""
    return (working_dir / "index.sqlite").is_file()


def recorded(working_dir: Path) -> dict[str, str]:
    """The settings that an index was built with; empty if there is no index yet."""
    from lightrag_jsonl.storage.sqlite.database import SQLiteStore

    if not has_index(working_dir):
        return {}
    with closing(SQLiteStore(working_dir)) as store, store.reader() as reader:
        return reader.settings()


def require_index(working_dir: Path) -> dict[str, str]:
    """The settings that an index was built with; `StorageError` if there is no index."""
    if not has_index(working_dir):
        raise StorageError(
            f"no index in {working_dir}; make one with: lightrag-jsonl insert -w {working_dir} FILES",
            path=working_dir,
        )
    return recorded(working_dir)


def remember(working_dir: Path, values: Mapping[str, str]) -> None:
    """Record settings for later commands in the folder."""
    from lightrag_jsonl.storage.sqlite.database import SQLiteStore

    with closing(SQLiteStore(working_dir)) as store, store.transaction() as transaction:
        transaction.put_settings(values)


# ── the parts ───────────────────────────────────────────────────────────────────


def llm_name(setup: Setup, known: Mapping[str, str]) -> str:
    """The model that was given, or else the recorded one, or else "none"."""
    return setup.llm or known.get("cli.llm") or NO_MODEL


def embedder_name(setup: Setup, known: Mapping[str, str]) -> str:
    """The embedder that was given, or else the recorded one, or else "hash"; folders absolute."""
    spec = setup.embedder or known.get("cli.embedder") or "hash"
    kind, _, name = spec.partition(":")
    return f"st:{Path(name).resolve()}" if kind == "st" and Path(name).is_dir() else spec


def _language(setup: Setup, known: Mapping[str, str]) -> str:
    return setup.language or known.get("language") or "en"


def _open(setup: Setup, known: Mapping[str, str], options: IndexOptions | None) -> LightRAG:
    from lightrag_jsonl.sync import LightRAG

    prompts = setup.prompts or (Path(known["cli.prompts"]) if known.get("cli.prompts") else None)
    embedder = make_embedder(embedder_name(setup, known), setup.embedder_base_url or setup.base_url)
    if not known:
        _ = embedder.dim  # an embedder that is not available fails before a folder is created
    return LightRAG(
        setup.working_dir,
        llm=make_llm(llm_name(setup, known), setup.base_url),
        embedder=embedder,
        language=_language(setup, known),
        options=options,
        prompts=prompts,
    )


def index_options(given: Mapping[str, Any]) -> IndexOptions:
    """`IndexOptions` with the given fields; `UsageError` if they contradict each other."""
    try:
        return IndexOptions(**{name: value for name, value in given.items() if value is not None})
    except ConfigError as error:
        raise click.UsageError(str(error)) from error


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given; paths are made absolute."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    return {n: v.resolve() if isinstance(v, Path) else v for n, v in given.items()}


def make_llm(model: str | None, base_url: str | None) -> LLM | None:
    """The chat model with this name; None for no name and for "none"."""
    if model in (None, "", NO_MODEL):
        return None
    from lightrag_jsonl.providers.openai import OpenAILLM

    return OpenAILLM(str(model), base_url=base_url)


def make_embedder(spec: str, base_url: str | None) -> Embedder:
    """The embedder for a `spec`: `hash`, `st:NAME_OR_FOLDER` or `openai:NAME`."""
    kind, _, name = spec.partition(":")
    if kind == "st":
        from lightrag_jsonl.providers.sentence_transformers import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder(name)
    if kind == "openai":
        from lightrag_jsonl.providers.openai_embedder import OpenAIEmbedder

        return OpenAIEmbedder(name, base_url=base_url)
    from lightrag_jsonl.providers.offline import HashEmbedder

    return HashEmbedder()


class UnavailableEmbedder:
    """Stands for an index's embedder in commands that embed nothing."""

    def __init__(self, name: str, dim: int) -> None:
        self.name = name
        self.dim = dim

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """Raise `EmbeddingError`: this stand-in cannot embed."""
        raise EmbeddingError(f"the embedder {self.name} is needed: name it with --embedder")
