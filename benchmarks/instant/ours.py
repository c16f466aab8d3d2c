"""An index of this package with the instant model and the fast embedder."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.instant.material import DIM, THEME, Asked, Material, Paper, Replies, WordVectors
from lightrag_jsonl import Completion, Context, Document, LightRAG, Message, QueryParam, Usage

NOTHING = '{"type":"done","entities":0,"relationships":0}'


class Ours:
    """An index; `modes` are the retrieval modes, the fullest one first."""

    modes: Sequence[Any] = ("mix", "naive", "local", "global", "hybrid")

    def __init__(self, folder: Path, material: Material, *, search_processes: int = 0) -> None:
        replies = Replies(material, lambda rows: "\n".join(map(json.dumps, rows)))
        # a version that is compared may know no search processes, so without any they are not named
        processes: dict[str, Any] = {}
        if search_processes:
            processes["search_processes"] = search_processes
        self._rag = LightRAG(
            self.indexes(folder),
            llm=_Model(replies),
            embedder=_Embedder(WordVectors(material.clock)),
            **processes,
        )

    def indexes(self, folder: Path) -> Path | list[Path]:
        """What is opened: the folder."""
        return folder

    def insert(self, papers: Iterable[Paper]) -> None:
        self._rag.insert([Document("", id=paper.id, pages=paper.pages) for paper in papers])

    def delete(self, paper_id: str) -> None:
        self._rag.delete(paper_id)

    def context(self, asked: Asked, mode: Any) -> int:
        return len(self._retrieved(asked, mode).prompt)

    def pieces(self, asked: Asked, mode: Any) -> list[str]:
        return [chunk.text for chunk in self._retrieved(asked, mode).chunks]

    def _retrieved(self, asked: Asked, mode: Any) -> Context:
        param = QueryParam(mode=mode, ll_keywords=asked.names, hl_keywords=(THEME,))
        return self._rag.retrieve(asked.text, param)

    def answer(self, asked: Asked) -> str:
        """The answer to a question, in the mode mix."""
        param = QueryParam(ll_keywords=asked.names, hl_keywords=(THEME,))
        return self._rag.query(asked.text, param).text

    def counts(self) -> tuple[int, int]:
        status = self._rag.status()
        return status.entities, status.relations

    def close(self) -> None:
        self._rag.close()


class Several(Ours):
    """The indexes in a folder, asked as one."""

    def indexes(self, folder: Path) -> Path | list[Path]:
        """What is opened: the folders in the folder."""
        return sorted(path for path in folder.iterdir() if path.is_dir())


class _Model:
    name = "instant"

    def __init__(self, replies: Replies) -> None:
        self._replies = replies

    async def complete(self, messages: Sequence[Message], **options: object) -> Completion:
        turns = [message.content for message in messages if message.role == "user"]
        reply = self._replies.about(turns[0]) or "A summary."
        return Completion(NOTHING if len(turns) > 1 else reply, usage=Usage(1000, 500))


class _Embedder:
    name = "words"
    dim = DIM

    def __init__(self, vectors: WordVectors) -> None:
        self._vectors = vectors

    async def embed(self, texts: Sequence[str], *, kind: str) -> npt.NDArray[np.float32]:
        return self._vectors.embed(texts)
