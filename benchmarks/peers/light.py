"""LightRAG (lightrag-hku) with its file storages and its own tuple format."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from lightrag import LightRAG, QueryParam
from lightrag.prompt import PROMPTS
from lightrag.utils import EmbeddingFunc

from benchmarks.peers.fakes import DIM, Replies, WordVectors
from benchmarks.peers.system import Asked, Found, Material, Paper

CUT = "\n<<cut here>>\n"  # between the pieces of a document; LightRAG removes form feeds
ROOM = 8_192  # tokens in a chunk; no piece is longer, so that none is cut again


class Light:
    """An index of LightRAG."""

    modes: Sequence[str] = ("mix", "local", "global", "hybrid", "naive")
    can_delete = True

    def __init__(self, folder: Path, material: Material) -> None:
        logging.disable(logging.WARNING)
        replies = {text: _reply(found) for text, found in material.found.items()}
        model = _model(Replies(replies, material.clock))
        embed = _embedder(WordVectors(material.clock))
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        folder.mkdir(parents=True, exist_ok=True)
        self._rag = LightRAG(
            working_dir=str(folder),
            llm_model_func=model,
            embedding_func=EmbeddingFunc(DIM, embed, max_token_size=ROOM),
            chunk_token_size=ROOM,
        )
        self._run(self._rag.initialize_storages())

    def insert(self, papers: Iterable[Paper]) -> None:
        given = list(papers)
        texts = [CUT.join(paper.pages) for paper in given]
        names = [paper.id for paper in given]
        self._run(
            self._rag.ainsert(
                texts,
                split_by_character=CUT,
                split_by_character_only=True,
                ids=names,
                file_paths=[f"{name}.txt" for name in names],
            )
        )

    def delete(self, paper_id: str) -> None:
        done = self._run(self._rag.adelete_by_doc_id(paper_id))
        if done.status != "success":
            raise RuntimeError(done.message)

    def context(self, asked: Asked, mode: str) -> int:
        param = QueryParam(
            mode=mode,
            only_need_context=True,
            ll_keywords=list(asked.names),
            hl_keywords=[asked.theme],
            enable_rerank=False,
        )
        return len(self._run(self._rag.aquery(asked.text, param)) or "")

    def counts(self) -> tuple[int, int]:
        graph = self._run(self._rag.chunk_entity_relation_graph._get_graph())
        return graph.number_of_nodes(), graph.number_of_edges()

    def close(self) -> None:
        self._run(self._rag.finalize_storages())
        self._loop.close()

    def _run(self, doing: Any) -> Any:
        return self._loop.run_until_complete(doing)


# Functions, not methods: the library makes deep copies of what it is given.


def _model(replies: Replies) -> Callable[..., Awaitable[str]]:
    async def complete(
        prompt: str,
        system_prompt: str | None = None,
        history_messages: Sequence[object] = (),
        **_: object,
    ) -> str:
        reply = replies.about(prompt)
        if history_messages:
            return str(PROMPTS["DEFAULT_COMPLETION_DELIMITER"])
        return reply or "A summary."

    return complete


def _embedder(vectors: WordVectors) -> Callable[..., Awaitable[npt.NDArray[np.float32]]]:
    async def embed(texts: list[str], **_: object) -> npt.NDArray[np.float32]:
        return vectors.embed(texts)

    return embed


def _reply(found: Found) -> str:
    mark, end = PROMPTS["DEFAULT_TUPLE_DELIMITER"], PROMPTS["DEFAULT_COMPLETION_DELIMITER"]
    rows = [("entity", e["name"], e["entity_type"], e["description"]) for e in found.entities]
    rows += [
        ("relation", r["source"], r["target"], ",".join(r["keywords"]), r["description"])  # type: ignore[arg-type, misc]
        for r in found.relations
    ]
    return "\n".join([*(mark.join(map(str, row)) for row in rows), end])
