"""GraphRAG with its standard indexing, its own client and its own stores."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import graphrag.api as api
import pandas as pd
from graphrag.config.models.graph_rag_config import GraphRagConfig

from benchmarks.referee.contestants.base import (
    DIMENSIONS,
    Found,
    Graph,
    NotOfferedError,
    Settings,
)
from benchmarks.referee.material import Document, Question

LEVEL = 2  # of communities, the default of its command line
RESPONSE = "Multiple Paragraphs"
TABLES = ("entities", "communities", "community_reports", "text_units", "relationships")


class Microsoft:
    """A project folder of GraphRAG: the documents are files in its input folder."""

    ways: Mapping[str, Settings] = {"local": {}, "basic": {}}

    def __init__(self, folder: Path, address: str, language: str) -> None:
        logging.disable(logging.WARNING)
        self._folder = folder
        self._input = folder / "input"
        self._input.mkdir(parents=True, exist_ok=True)
        model = {"model_provider": "openai", "api_base": address, "api_key": "unused"}
        self._config = GraphRagConfig(
            completion_models={"default_completion_model": {**model, "model": "gpt-4o-mini"}},
            embedding_models={
                "default_embedding_model": {**model, "model": "text-embedding-3-small"}
            },
            input={"type": "text"},
            input_storage={"type": "file", "base_dir": str(self._input)},
            output_storage={"type": "file", "base_dir": str(folder / "output")},
            update_output_storage={"type": "file", "base_dir": str(folder / "update_output")},
            reporting={"type": "file", "base_dir": str(folder / "logs")},
            cache={
                "type": "json",
                "storage": {"type": "file", "base_dir": str(folder / "cache")},
            },
            vector_store={
                "type": "lancedb",
                "db_uri": str(folder / "output" / "lancedb"),
                "vector_size": DIMENSIONS,
            },
        )
        self._tables: dict[str, Any] = {}

    def insert(self, documents: Sequence[Document]) -> None:
        for document in documents:
            path = self._input / (document.file or f"{document.id}.txt")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(document.text, encoding="utf-8")
        is_update = (self._folder / "output" / "entities.parquet").exists()
        outputs = asyncio.run(
            api.build_index(config=self._config, method="standard", is_update_run=is_update)
        )
        self._tables = {}
        for output in outputs:
            if output.error is not None:
                raise output.error

    def delete(self, document: Document) -> None:
        raise NotOfferedError("deletion")

    def search(self, question: Question, way: str, *, tokens: int | None = None) -> Found:
        limits = {"max_context_tokens": tokens} if tokens else {}
        config = self._config.model_copy(
            update={
                "local_search": self._config.local_search.model_copy(update=limits),
                "basic_search": self._config.basic_search.model_copy(update=limits),
            }
        )
        searches = {"local": self._local, "basic": self._basic}
        _, context = asyncio.run(searches[way](config, question.text))
        tables = {name: table for name, table in context.items() if len(table)}
        sources = tables.get("sources", tables.get("Sources"))
        passages = tuple(sources["text"]) if sources is not None else ()
        text = "\n\n".join([table.to_csv(sep="|", index=False) for table in tables.values()])
        return Found(passages, text)

    def graph(self) -> Graph:
        relations = self._table("relationships")
        pairs = tuple(zip(relations["source"], relations["target"], strict=True))
        names = tuple(self._table("entities")["title"])
        return Graph(names, pairs, len(self._table("text_units")))

    def close(self) -> None:
        """Nothing is open."""

    def _table(self, name: str) -> Any:
        if name not in self._tables:
            self._tables[name] = pd.read_parquet(self._folder / "output" / f"{name}.parquet")
        return self._tables[name]

    def _local(self, config: GraphRagConfig, text: str) -> Any:
        tables = {name: self._table(name) for name in TABLES}
        return api.local_search(
            config=config,
            **tables,
            covariates=None,
            community_level=LEVEL,
            response_type=RESPONSE,
            query=text,
        )

    def _basic(self, config: GraphRagConfig, text: str) -> Any:
        return api.basic_search(
            config=config,
            text_units=self._table("text_units"),
            response_type=RESPONSE,
            query=text,
        )
