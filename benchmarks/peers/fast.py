"""fast-graphrag with its default storages and its own response models."""

import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from fast_graphrag import GraphRAG, QueryParam
from fast_graphrag._llm import BaseEmbeddingService, BaseLLMService
from fast_graphrag._services import BaseChunkingService
from fast_graphrag._types import TChunk, TDocument, THash

from benchmarks.peers.material import CUT, DIM, Asked, Material, Paper, Replies, Rows, WordVectors


class Fast:
    """An index of fast-graphrag, which has one retrieval mode, and cannot delete documents."""

    modes: Sequence[str] = ("default",)
    can_delete = False

    def __init__(self, folder: Path, material: Material) -> None:
        logging.disable(logging.WARNING)
        asyncio.set_event_loop(asyncio.new_event_loop())
        self._model = _Model(Replies(material, _reply))
        self._rag = GraphRAG(
            working_dir=str(folder),
            domain="Notes about people who met at events.",
            example_queries="Where did one meet another?",
            entity_types=["person"],
            config=GraphRAG.Config(
                llm_service=self._model,
                embedding_service=_Embedder(WordVectors(material.clock)),
                chunking_service_cls=_Pieces,
            ),
        )

    def insert(self, papers: Iterable[Paper]) -> None:
        self._rag.insert([CUT.join(paper.pages) for paper in papers], show_progress=False)

    def delete(self, paper_id: str) -> None:
        raise RuntimeError("fast-graphrag has no deletion")

    def context(self, asked: Asked, mode: str) -> int:
        self._model.names = asked.names
        found = self._rag.query(asked.text, QueryParam(only_context=True)).context
        shown = (*found.entities, *found.relations, *found.chunks)
        return sum(len(str(one)) for one, _ in shown)

    def counts(self) -> tuple[int, int]:
        manager = self._rag.state_manager
        loop = asyncio.get_event_loop()
        entities = loop.run_until_complete(manager.get_num_entities())
        return entities, loop.run_until_complete(manager.get_num_relations())

    def close(self) -> None:
        asyncio.get_event_loop().close()


class _Model(BaseLLMService):  # type: ignore[misc]
    def __init__(self, replies: Replies) -> None:
        super().__init__(model="instant")
        self.names: Sequence[str] = ()
        self._replies = replies

    async def send_message(
        self,
        prompt: str,
        system_prompt: str | None = None,
        history_messages: list[dict[str, str]] | None = None,
        response_model: Any = None,
        **_: object,
    ) -> Any:
        reply = self._replies.about(prompt)
        if response_model.__name__ == "TGraph":
            model = response_model.Model.model_validate_json(reply or NOTHING)
            return model.to_dataclass(model), []
        known = {"description": "A summary.", "named": list(self.names), "generic": []}
        return response_model.model_validate({**known, "grouped_facts": []}), []


@dataclass
class _Embedder(BaseEmbeddingService):  # type: ignore[misc]
    vectors: WordVectors | None = None

    def __init__(self, vectors: WordVectors) -> None:
        super().__init__(embedding_dim=DIM, model="words")
        self.vectors = vectors

    async def encode(self, texts: list[str], model: str | None = None) -> npt.NDArray[np.float32]:
        assert self.vectors is not None
        return self.vectors.embed(texts)


class _Pieces(BaseChunkingService):  # type: ignore[misc]
    async def extract(self, data: Iterable[TDocument]) -> list[list[TChunk]]:
        """The pieces as given."""
        import xxhash

        return [
            [
                TChunk(id=THash(xxhash.xxh3_64_intdigest(page) // 2), content=page, metadata={})
                for page in document.data.split(CUT)
            ]
            for document in data
        ]


NOTHING = json.dumps({"entities": [], "relationships": [], "other_relationships": []})


def _reply(rows: Rows) -> str:
    entities = [
        {"name": row["name"], "type": row["entity_type"], "desc": row["description"]}
        for row in rows
        if row["type"] == "entity"
    ]
    relations = [
        {"source": row["source"], "target": row["target"], "desc": row["description"]}
        for row in rows
        if row["type"] == "relationship"
    ]
    whole = {"entities": entities, "relationships": relations, "other_relationships": []}
    return json.dumps(whole)
