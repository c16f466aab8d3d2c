"""nano-graphrag with its own client, chunks and file storages."""

import asyncio
import logging
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nano_graphrag import GraphRAG, QueryParam
from nano_graphrag._llm import get_openai_async_client_instance
from nano_graphrag._utils import EmbeddingFunc

from benchmarks.referee.contestants.base import (
    DIMENSIONS,
    Found,
    Graph,
    NotOfferedError,
    Settings,
)
from benchmarks.referee.material import Document, Question

LONGEST = 8_192  # tokens of a text to embed
SOURCES = "-----Sources-----\n```csv\n"
NAIVE_BORDER = "--New Chunk--\n"
ROW = re.compile(r"^\d+,\t", re.MULTILINE)  # the beginning of a row of the table of chunks
# The shares of a local context's tokens, as the default settings have them (of 13,200).
SHARES = {
    "local_max_token_for_text_unit": 4_000 / 12_000,
    "local_max_token_for_local_context": 4_800 / 12_000,
    "local_max_token_for_community_report": 3_200 / 12_000,
}


class Nano:
    """An index of nano-graphrag."""

    ways: Mapping[str, Settings] = {
        "local": {"mode": "local"},
        "naive": {"mode": "naive"},
        "global": {"mode": "global"},
    }

    def __init__(self, folder: Path, address: str, language: str) -> None:
        logging.disable(logging.WARNING)
        os.environ["OPENAI_BASE_URL"] = address
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._rag = GraphRAG(
            working_dir=str(folder),
            enable_naive_rag=True,
            embedding_func=EmbeddingFunc(DIMENSIONS, LONGEST, _embed),
        )

    def insert(self, documents: Sequence[Document]) -> None:
        texts = [document.text for document in documents]
        self._loop.run_until_complete(self._rag.ainsert(texts))

    def delete(self, document: Document) -> None:
        raise NotOfferedError("deletion")

    def search(self, question: Question, way: str, *, tokens: int | None = None) -> Found:
        param = QueryParam(only_need_context=True, **self.ways[way])
        if tokens is not None:
            param.naive_max_token_for_text_unit = tokens
            for name, share in SHARES.items():
                setattr(param, name, int(share * tokens))
        answer = self._loop.run_until_complete(self._rag.aquery(question.text, param))
        context = str(answer or "")
        return Found(_passages(context, way), context)

    def graph(self) -> Graph:
        graph = self._rag.chunk_entity_relation_graph._graph
        names = {name: name.strip('"') for name in graph.nodes}
        relations = [(names[source], names[target]) for source, target in graph.edges]
        return Graph(tuple(names.values()), tuple(relations), len(self._rag.text_chunks._data))

    def close(self) -> None:
        self._loop.close()


async def _embed(texts: list[str]) -> Any:
    import numpy as np

    client = get_openai_async_client_instance()
    response = await client.embeddings.create(model="vectors", input=texts, encoding_format="float")
    return np.array([item.embedding for item in response.data])


def _passages(context: str, way: str) -> tuple[str, ...]:
    """The texts of the chunks in a context, in their order."""
    if way == "naive":
        return tuple(context.split(NAIVE_BORDER)) if context else ()
    table = context.partition(SOURCES)[2].rpartition("```")[0]
    return tuple([cell.strip().strip('"') for cell in ROW.split(table)[1:]])
