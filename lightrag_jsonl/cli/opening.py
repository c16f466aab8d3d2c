"""Opens an index from a `Setup`; settings recorded in the folder fill in options not given."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from lightrag_jsonl.cli import trust
from lightrag_jsonl.cli.folders import has_index
from lightrag_jsonl.cli.options import Setup
from lightrag_jsonl.errors import ConfigError, EmbeddingError, StorageError

if TYPE_CHECKING:
    import sqlite3

    from lightrag_jsonl.options import IndexOptions
    from lightrag_jsonl.protocols import LLM, Embedder, Vectors
    from lightrag_jsonl.storage.aliases import Aliases
    from lightrag_jsonl.sync import LightRAG

NO_MODEL = "none"
FORGOTTEN = (  # options of one run, which the index does not remember
    "max_calls",
    "max_concurrent_calls",
    "max_input_tokens",
    "max_output_tokens",
)


def looking(setup: Setup) -> LightRAG:
    """Open an existing index to look at it, without the model and embedder it was built with."""
    from lightrag_jsonl.sync import LightRAG

    known = require_index(setup.working_dir)
    embedder = Recorded(known["embedder"], int(known["dim"])) if "embedder" in known else None
    return LightRAG(setup.working_dir, embedder=embedder, language=_language(setup, known))


def asking(setup: Setup) -> LightRAG:
    """Open an existing index to ask it, with the given model (if any) and, unless another is given,
    the recorded embedder.

    A model that is the recorded one is asked at the recorded endpoint, unless another is given.
    """
    known = require_index(setup.working_dir)
    url = setup.base_url
    if url is None and setup.llm not in (None, NO_MODEL) and setup.llm == known.get("cli.llm"):
        url = known.get("cli.base_url")
        trust.check(url, setup, "--base-url")
    return _open(setup, known, make_llm(setup.llm, url), None)


def inserting(setup: Setup, given: Mapping[str, Any]) -> LightRAG:
    """Open an index to insert into, or create it; its settings are recorded in the folder."""
    known = recorded(setup.working_dir)
    if setup.llm is None and known.get("cli.llm", NO_MODEL) != NO_MODEL:
        raise ConfigError(
            f"{setup.working_dir} is set up for the model {known['cli.llm']}: name a model with "
            "--llm, or say --llm none for the language rules"
        )
    if given.get("extraction") == "extract-with-ontologies" and "ontology" not in given:
        raise click.UsageError("--extraction extract-with-ontologies needs an --ontology")
    llm = make_llm(setup.llm, setup.base_url)
    rag = _open(setup, known, llm, index_options(given))
    try:
        remember(setup.working_dir, known, _memories(setup, known, given))
    except BaseException:
        rag.close()
        raise
    return rag


def going_on(setup: Setup, given: Mapping[str, Any]) -> LightRAG:
    """Open an existing index to write to, with the settings of the last insert unless others are
    given.
    """
    known = require_index(setup.working_dir)
    model, url = setup.llm or known.get("cli.llm"), llm_url(setup, known)
    if model != NO_MODEL:
        trust.check(url, setup, "--base-url")
    llm = make_llm(model, url)
    if setup.prompts is None and known.get("cli.prompts"):
        setup = replace(setup, prompts=Path(known["cli.prompts"]))
    options = index_options({**_recorded_options(setup.working_dir, known), **given})
    return _open(setup, known, llm, options)


# ── what the folder knows ───────────────────────────────────────────────────────


def require_index(working_dir: Path) -> dict[str, str]:
    """The settings that an index was built with; `StorageError` if there is no index."""
    if not has_index(working_dir):
        raise StorageError(
            f"no index in {working_dir}; make one with: lightrag-jsonl insert -w {working_dir} FILES",
            path=working_dir,
        )
    return recorded(working_dir)


@contextlib.contextmanager
def reading(working_dir: Path) -> Iterator[sqlite3.Connection]:
    """The database of a folder's index, for reading without opening the index."""
    from lightrag_jsonl.storage.database import Database

    with contextlib.closing(Database(working_dir)) as database, database.reading() as connection:
        yield connection


def recorded(working_dir: Path) -> dict[str, str]:
    """The settings that an index was built with; empty if there is no index yet."""
    from lightrag_jsonl.storage import settings

    if not has_index(working_dir):
        return {}
    with reading(working_dir) as connection:
        return settings.read(connection)


def older_documents(working_dir: Path, ids: Sequence[str]) -> list[str]:
    """Ids of documents with the title and source of one of these, but an earlier text."""
    from lightrag_jsonl.storage import overview

    with reading(working_dir) as connection:
        return overview.namesakes(connection, ids)


def known_aliases(working_dir: Path) -> Aliases:
    """Which names were merged into which entity."""
    from lightrag_jsonl.storage import aliases

    with reading(working_dir) as connection:
        return aliases.read(connection)


def remember(working_dir: Path, known: Mapping[str, str], values: Mapping[str, str]) -> None:
    """Record settings for later commands in the folder, if they differ from the `known` ones."""
    from lightrag_jsonl.storage import settings
    from lightrag_jsonl.storage.database import Database

    if any(known.get(key) != value for key, value in values.items()):
        with contextlib.closing(Database(working_dir)) as database:
            database.write(lambda connection: settings.record(connection, values))


def put_model_back(working_dir: Path, known: Mapping[str, str]) -> None:
    """Record the earlier model again, when an insert with another one has read nothing."""
    from lightrag_jsonl.storage import settings
    from lightrag_jsonl.storage.database import Database

    def write(connection: sqlite3.Connection) -> None:
        for key in ("cli.llm", "cli.base_url"):
            settings.forget(connection, key)
            settings.record(connection, {key: known[key]} if key in known else {})

    if recorded(working_dir).get("cli.llm") != known.get("cli.llm"):
        with contextlib.closing(Database(working_dir)) as database:
            database.write(write)


def _recorded_options(working_dir: Path, known: Mapping[str, str]) -> dict[str, Any]:
    """The options of the last insert; `StorageError` if this version does not know one of them."""
    from lightrag_jsonl.options import IndexOptions

    try:
        options = json.loads(known.get("cli.options", "{}"))
    except (ValueError, RecursionError):
        options = None
    if not isinstance(options, dict) or options.keys() - {one.name for one in fields(IndexOptions)}:
        raise StorageError(
            f"the options recorded in {working_dir} cannot be used by this version; "
            f"record them anew with: lightrag-jsonl insert -w {working_dir} FILES",
            path=working_dir,
        )
    return options


def embedder_memories(spec: str, base_url: str | None) -> dict[str, str]:
    """An embedder's settings as they are recorded; a model's folder by its absolute path."""
    kind, _, name = spec.partition(":")
    if kind == "st" and Path(name).is_dir():
        spec = f"st:{Path(name).resolve()}"
    return {"cli.embedder": spec, "cli.embedder_base_url": base_url or ""}


def _memories(setup: Setup, known: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, str]:
    kept = {name: value for name, value in given.items() if name not in FORGOTTEN}
    return {
        **embedder_memories(embedder_spec(setup, known), embedder_url(setup, known)),
        "cli.llm": setup.llm or NO_MODEL,
        "cli.base_url": setup.base_url or "",
        "cli.language": _language(setup, known),
        "cli.prompts": str(setup.prompts.resolve()) if setup.prompts else "",
        "cli.options": json.dumps(kept, ensure_ascii=False, default=str, sort_keys=True),
    }


def _language(setup: Setup, known: Mapping[str, str]) -> str:
    return setup.language or known.get("language") or known.get("cli.language") or "en"


def embedder_spec(setup: Setup, known: Mapping[str, str]) -> str:
    """The embedder that was given, or else the recorded one, or else the default."""
    return setup.embedder or known.get("cli.embedder") or "hash"


def embedder_url(setup: Setup, known: Mapping[str, str]) -> str | None:
    """The embedder's endpoint; the recorded one counts only for the recorded embedder."""
    if setup.embedder_base_url is not None:
        return setup.embedder_base_url
    if setup.embedder is None and "cli.embedder" in known:
        return known.get("cli.embedder_base_url") or None
    return setup.base_url


def llm_url(setup: Setup, known: Mapping[str, str]) -> str | None:
    """The model's endpoint; the recorded one counts only for the recorded model."""
    return setup.base_url or (known.get("cli.base_url") if setup.llm is None else None)


# ── the parts ───────────────────────────────────────────────────────────────────


def _open(
    setup: Setup, known: Mapping[str, str], llm: LLM | None, options: IndexOptions | None
) -> LightRAG:
    from lightrag_jsonl.sync import LightRAG

    trust.named(setup.base_url, setup.embedder_base_url)
    spec, url = embedder_spec(setup, known), embedder_url(setup, known)
    if spec.startswith("openai:"):
        trust.check(url, setup, "--embedder-base-url")
    embedder = make_embedder(spec, url)
    if options is not None and known.get("cli.embedder") != spec:
        _ = embedder.dim  # fails for an unavailable embedder, before a folder is created
    return LightRAG(
        setup.working_dir,
        llm=llm,
        embedder=embedder,
        language=_language(setup, known),
        options=options,
        prompts=setup.prompts,
    )


def index_options(given: Mapping[str, Any]) -> IndexOptions:
    """`IndexOptions` with the given fields; `UsageError` if they contradict each other."""
    from lightrag_jsonl.options import IndexOptions

    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if "entity_types" in values:
        values["entity_types"] = tuple(values["entity_types"])
    try:
        return IndexOptions(**values)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error


def make_llm(model: str | None, base_url: str | None) -> LLM | None:
    """The chat model with this name; `None` for no name and for "none"."""
    if model in (None, "", NO_MODEL):
        return None
    from lightrag_jsonl.adapters.openai import OpenAILLM

    return OpenAILLM(str(model), base_url=base_url or None)


def make_embedder(spec: str, base_url: str | None) -> Embedder:
    """The embedder for a `spec`: `hash`, `st:NAME_OR_FOLDER` or `openai:NAME`."""
    kind, _, name = spec.partition(":")
    if kind == "st":
        from lightrag_jsonl.adapters.sentence_transformers import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder(name)
    if kind == "openai":
        from lightrag_jsonl.adapters.openai_embedder import OpenAIEmbedder

        return OpenAIEmbedder(name, base_url=base_url or None)
    from lightrag_jsonl.adapters.offline import HashEmbedder

    return HashEmbedder()


class Recorded:
    """Stands for an index's embedder in commands that embed nothing."""

    def __init__(self, name: str, dim: int) -> None:
        self.name = name
        self.dim = dim

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """Raise `EmbeddingError`: this stand-in cannot embed."""
        raise EmbeddingError(f"the embedder {self.name} is needed: name it with --embedder")
