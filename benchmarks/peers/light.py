"""LightRAG (lightrag-hku) with its file storages and its own tuple format."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lightrag import LightRAG, QueryParam
from lightrag.prompt import PROMPTS
from lightrag.utils import EmbeddingFunc

from benchmarks.peers.material import (
    CUT,
    DIM,
    THEME,
    Asked,
    Material,
    Paper,
    Replies,
    Rows,
    embedding_function,
    model_function,
)

ROOM = 8_192  # tokens in a chunk; no piece is longer, so that none is cut again


class Light:
    """An index of LightRAG."""

    modes: Sequence[str] = ("mix", "local", "global", "hybrid", "naive")
    can_delete = True

    def __init__(self, folder: Path, material: Material) -> None:
        logging.disable(logging.WARNING)
        end = str(PROMPTS["DEFAULT_COMPLETION_DELIMITER"])
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        folder.mkdir(parents=True, exist_ok=True)
        self._rag = LightRAG(
            working_dir=str(folder),
            llm_model_func=model_function(Replies(material, _reply), end),
            embedding_func=EmbeddingFunc(DIM, embedding_function(material), max_token_size=ROOM),
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
            hl_keywords=[THEME],
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


def _reply(rows: Rows) -> str:
    mark, end = PROMPTS["DEFAULT_TUPLE_DELIMITER"], PROMPTS["DEFAULT_COMPLETION_DELIMITER"]
    lines = [
        ("entity", row["name"], row["entity_type"], row["description"])
        if row["type"] == "entity"
        else (
            "relation",
            row["source"],
            row["target"],
            ",".join(row["keywords"]),
            row["description"],
        )
        for row in rows
    ]
    return "\n".join([*map(mark.join, lines), end])
