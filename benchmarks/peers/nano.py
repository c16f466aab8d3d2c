"""nano-graphrag with its file storages, its naive mode and its own tuple format."""

import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from nano_graphrag import GraphRAG, QueryParam
from nano_graphrag._utils import EmbeddingFunc
from nano_graphrag.prompt import PROMPTS

from benchmarks.peers.material import (
    CUT,
    DIM,
    Asked,
    Material,
    Paper,
    Replies,
    Rows,
    embedding_function,
    model_function,
)

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
        end = str(PROMPTS["DEFAULT_COMPLETION_DELIMITER"])
        model = model_function(Replies(material, _reply), end, REPORT)
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._rag = GraphRAG(
            working_dir=str(folder),
            enable_naive_rag=True,
            chunk_func=_cut,
            embedding_func=EmbeddingFunc(DIM, 8_192, embedding_function(material)),
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


def _reply(rows: Rows) -> str:
    lines = [
        ("entity", row["name"], row["entity_type"], row["description"])
        if row["type"] == "entity"
        else ("relationship", row["source"], row["target"], row["description"])
        for row in rows
    ]
    mark, end = PROMPTS["DEFAULT_TUPLE_DELIMITER"], PROMPTS["DEFAULT_COMPLETION_DELIMITER"]
    quoted = (mark.join(f'"{cell}"' for cell in line) for line in lines)
    strengths = (f"{mark}{row['strength']}" if "strength" in row else "" for row in rows)
    between = f"{PROMPTS['DEFAULT_RECORD_DELIMITER']}\n"
    both = zip(quoted, strengths, strict=True)
    return between.join(f"({line}{strength})" for line, strength in both) + str(end)
