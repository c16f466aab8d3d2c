"""LightRAG (lightrag-hku) with its own client, chunks and file storages."""

import asyncio
import json
import logging
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lightrag import LightRAG, QueryParam
from lightrag.llm.openai import gpt_4o_mini_complete, openai_embed
from lightrag.utils import EmbeddingFunc

from benchmarks.referee.contestants.base import DIMENSIONS, Found, Graph, Settings
from benchmarks.referee.material import Document, Question

LONGEST = 8_192  # tokens of a text to embed


class Light:
    """An index of LightRAG."""

    ways: Mapping[str, Settings] = {
        "mix": {},
        "hybrid": {"mode": "hybrid"},
        "local": {"mode": "local"},
        "global": {"mode": "global"},
        "naive": {"mode": "naive"},
    }

    def __init__(self, folder: Path, address: str, language: str) -> None:
        logging.disable(logging.WARNING)
        os.environ["OPENAI_API_BASE"] = address
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        folder.mkdir(parents=True, exist_ok=True)
        embed = partial(openai_embed.func, model="vectors", base_url=address, api_key="unused")
        self._rag = LightRAG(
            working_dir=str(folder),
            llm_model_func=gpt_4o_mini_complete,
            embedding_func=EmbeddingFunc(DIMENSIONS, embed, max_token_size=LONGEST),
            addon_params={"language": "Chinese" if language == "zh" else "English"},
        )
        self._run(self._rag.initialize_storages())

    def insert(self, documents: Sequence[Document]) -> None:
        self._run(
            self._rag.ainsert(
                [document.text for document in documents],
                ids=[document.id for document in documents],
                file_paths=[document.file or f"{document.id}.txt" for document in documents],
            )
        )

    def delete(self, document: Document) -> None:
        result = self._run(self._rag.adelete_by_doc_id(document.id, delete_llm_cache=True))
        if result.status != "success":
            raise RuntimeError(result.message)

    def search(self, question: Question, way: str, *, tokens: int | None = None) -> Found:
        settings = dict(self.ways[way], enable_rerank=False)
        if tokens is not None:
            # The shares that the default settings give to entities and relations.
            settings |= {
                "max_total_tokens": tokens,
                "max_entity_tokens": tokens // 5,
                "max_relation_tokens": tokens * 4 // 15,
            }
        param = QueryParam(**settings, only_need_context=True)
        context = str(self._run(self._rag.aquery(question.text, param)) or "")
        return Found(_passages(context), context)

    def graph(self) -> Graph:
        graph = self._run(self._rag.chunk_entity_relation_graph._get_graph())
        chunks = self._run(self._rag.chunks_vdb.client_storage)["data"]
        return Graph(tuple(graph.nodes), tuple(graph.edges), len(chunks))

    def close(self) -> None:
        self._run(self._rag.finalize_storages())
        self._loop.close()

    def _run(self, doing: Any) -> Any:
        return self._loop.run_until_complete(doing)


def _passages(context: str) -> tuple[str, ...]:
    """The texts of the chunks in a context: one JSON object a line, after the entities and relations."""
    lines = context.partition("Document Chunks")[2].split("\n")
    objects = [json.loads(line) for line in lines if line.startswith('{"reference_id"')]
    return tuple([chunk["content"] for chunk in objects])
