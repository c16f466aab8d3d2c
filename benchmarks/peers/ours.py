"""This library, measured like the others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from benchmarks.peers.fakes import DIM, Replies, WordVectors
from benchmarks.peers.system import Asked, Found, Material, Paper
from lightrag_jsonl import LightRAG, QueryParam
from lightrag_jsonl.options import MODES
from lightrag_jsonl.protocols import Vectors
from lightrag_jsonl.types import Completion, Document, Message, Mode, ResponseType, Usage

NOTHING = '{"type":"done","entities":0,"relationships":0}'


class Ours:
    """An index of this library."""

    modes: Sequence[Mode] = ("mix", *(mode for mode in MODES if mode not in ("mix", "bypass")))
    can_delete = True

    def __init__(self, folder: Path, material: Material) -> None:
        replies = {text: _reply(found) for text, found in material.found.items()}
        self._rag = LightRAG(
            folder,
            llm=_Model(Replies(replies, material.clock)),
            embedder=_Embedder(WordVectors(material.clock)),
        )

    def insert(self, papers: Iterable[Paper]) -> None:
        self._rag.insert(Document("", id=paper.id, pages=paper.pages) for paper in papers)

    def delete(self, paper_id: str) -> None:
        self._rag.delete(paper_id)

    def context(self, asked: Asked, mode: str) -> int:
        chosen = next(one for one in self.modes if one == mode)
        param = QueryParam(mode=chosen, ll_keywords=asked.names, hl_keywords=(asked.theme,))
        return len(self._rag.retrieve(asked.text, param).prompt)

    def counts(self) -> tuple[int, int]:
        status = self._rag.status()
        return status.entities, status.relations

    def close(self) -> None:
        self._rag.close()


class _Model:
    name = "instant"

    def __init__(self, replies: Replies) -> None:
        self._replies = replies

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        turns = [message.content for message in messages if message.role == "user"]
        reply = self._replies.about(turns[0]) or "A summary."
        return Completion(NOTHING if len(turns) > 1 else reply, usage=Usage(1000, 500))


class _Embedder:
    name = "words"
    dim = DIM

    def __init__(self, vectors: WordVectors) -> None:
        self._vectors = vectors

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        return self._vectors.embed(texts)


def _reply(found: Found) -> str:
    rows = (*found.entities, *found.relations)
    return "\n".join(json.dumps(row) for row in rows)
