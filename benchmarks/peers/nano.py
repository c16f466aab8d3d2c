"""nano-graphrag with its file storages, its naive mode and its own tuple format."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from nano_graphrag import GraphRAG, QueryParam
from nano_graphrag._utils import EmbeddingFunc
from nano_graphrag.prompt import PROMPTS

from benchmarks.peers.fakes import DIM, Replies, WordVectors
from benchmarks.peers.system import Asked, Found, Material, Paper

CUT = "\n<<cut here>>\n"
REPORT = json.dumps(
    {
        "title": "A report",
        "summary": "Some people met.",
        "rating": 5.0,
        "rating_explanation": "None.",
        "findings": [{"summary": "They met.", "explanation": "They met at events."}],
        "points": [{"description": "They met.", "score": 5}],
    }
)


class Nano:
    """An index of nano-graphrag, which cannot delete documents."""

    modes: Sequence[str] = ("local", "global", "naive")
    can_delete = False

    def __init__(self, folder: Path, material: Material) -> None:
        logging.disable(logging.WARNING)
        replies = {text: _reply(found) for text, found in material.found.items()}
        model = _model(Replies(replies, material.clock))
        embed = _embedder(WordVectors(material.clock))
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._rag = GraphRAG(
            working_dir=str(folder),
            enable_naive_rag=True,
            chunk_func=_cut,
            embedding_func=EmbeddingFunc(DIM, 8_192, embed),
            best_model_func=model,
            cheap_model_func=model,
        )

    def insert(self, papers: Iterable[Paper]) -> None:
        texts = [CUT.join(paper.pages) for paper in papers]
        self._loop.run_until_complete(self._rag.ainsert(texts))

    def delete(self, paper_id: str) -> None:
        raise RuntimeError("nano-graphrag has no deletion")

    def context(self, asked: Asked, mode: str) -> int:
        param = QueryParam(mode=mode, only_need_context=True)
        return len(self._loop.run_until_complete(self._rag.aquery(asked.text, param)) or "")

    def counts(self) -> tuple[int, int]:
        graph = self._rag.chunk_entity_relation_graph._graph
        return graph.number_of_nodes(), graph.number_of_edges()

    def close(self) -> None:
        self._loop.close()


# Functions, not methods: the library makes deep copies of what it is given.


def _model(replies: Replies) -> Callable[..., Awaitable[str]]:
    async def complete(
        prompt: str,
        system_prompt: str | None = None,
        history_messages: Sequence[object] = (),
        **options: object,
    ) -> str:
        reply = replies.about(prompt)
        if "response_format" in options:
            return REPORT
        if history_messages:
            return str(PROMPTS["DEFAULT_COMPLETION_DELIMITER"])
        return reply or "A summary."

    return complete


def _embedder(vectors: WordVectors) -> Callable[..., Awaitable[npt.NDArray[np.float32]]]:
    async def embed(texts: list[str]) -> npt.NDArray[np.float32]:
        return vectors.embed(texts)

    return embed


def _cut(tokens: list[list[int]], *, doc_keys: list[str], tiktoken_model: Any, **_: object) -> Any:
    """The pieces as given, instead of windows of tokens."""
    return [
        {
            "tokens": len(part),
            "content": page,
            "chunk_order_index": number,
            "full_doc_id": key,
        }
        for key, part in zip(doc_keys, tokens, strict=True)
        for number, page in enumerate(tiktoken_model.decode(part).split(CUT))
    ]


def _reply(found: Found) -> str:
    mark, end = PROMPTS["DEFAULT_TUPLE_DELIMITER"], PROMPTS["DEFAULT_COMPLETION_DELIMITER"]
    rows = [
        ('"entity"', f'"{e["name"]}"', f'"{e["entity_type"]}"', f'"{e["description"]}"')
        for e in found.entities
    ]
    rows += [
        (  # type: ignore[misc]
            '"relationship"',
            f'"{r["source"]}"',
            f'"{r["target"]}"',
            f'"{r["description"]}"',
            str(r["strength"]),
        )
        for r in found.relations
    ]
    between = f"{PROMPTS['DEFAULT_RECORD_DELIMITER']}\n"
    return between.join(f"({mark.join(row)})" for row in rows) + str(end)
