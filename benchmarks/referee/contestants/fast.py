"""fast-graphrag with its own client, chunks and storages."""

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from fast_graphrag import GraphRAG, QueryParam
from fast_graphrag._llm import OpenAIEmbeddingService, OpenAILLMService

from benchmarks.referee.contestants.base import (
    DIMENSIONS,
    Found,
    Graph,
    NotOfferedError,
    Settings,
)
from benchmarks.referee.material import Document, Question

# The shares of a context's tokens, as the default settings have them (of 16,000).
SHARES = {
    "entities_max_tokens": 4_000 / 16_000,
    "relations_max_tokens": 3_000 / 16_000,
    "chunks_max_tokens": 9_000 / 16_000,
}
DOMAIN = "Find what the texts say about people, places, works and events, and how they are related."
EXAMPLE_QUERIES = "Who took part in it?\nWhere and when did it happen?"


class Fast:
    """An index of fast-graphrag, which has one way of retrieving."""

    ways: Mapping[str, Settings] = {"default": {}}

    def __init__(self, folder: Path, address: str, language: str) -> None:
        logging.disable(logging.WARNING)
        os.environ.setdefault("OPENAI_API_KEY", "unused")
        asyncio.set_event_loop(asyncio.new_event_loop())
        self._rag = GraphRAG(
            working_dir=str(folder),
            domain=DOMAIN,
            example_queries=EXAMPLE_QUERIES,
            entity_types=["person", "place", "organization", "event", "other"],
            config=GraphRAG.Config(
                llm_service=OpenAILLMService(base_url=address, api_key="unused"),
                embedding_service=OpenAIEmbeddingService(
                    base_url=address, api_key="unused", embedding_dim=DIMENSIONS
                ),
            ),
        )

    def insert(self, documents: Sequence[Document]) -> None:
        self._rag.insert([document.text for document in documents], show_progress=False)

    def delete(self, document: Document) -> None:
        raise NotOfferedError("deletion")

    def search(self, question: Question, way: str, *, tokens: int | None = None) -> Found:
        limits = {name: int(share * tokens) for name, share in SHARES.items()} if tokens else {}
        param = QueryParam(only_context=True, **limits)
        context = self._rag.query(question.text, param).context
        passages = tuple([str(chunk) for chunk, _ in context.chunks])
        lines = [f"{entity.name},{entity.description}" for entity, _ in context.entities]
        lines += [
            f"{relation.source},{relation.target},{relation.description}"
            for relation, _ in context.relations
        ]
        return Found(passages, "\n".join([*lines, *passages]))

    def graph(self) -> Graph:
        run = asyncio.get_event_loop().run_until_complete
        storage = self._rag.state_manager.graph_storage
        nodes = [run(storage.get_node_by_index(at)) for at in range(run(storage.node_count()))]
        edges = [run(storage.get_edge_by_index(at)) for at in range(run(storage.edge_count()))]
        chunks = run(self._rag.state_manager.get_num_chunks())
        relations = tuple([(edge.source, edge.target) for edge in edges])
        return Graph(tuple([node.name for node in nodes]), relations, chunks)

    def close(self) -> None:
        asyncio.get_event_loop().close()
