"""This package, through the same server as its peers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.referee.contestants.base import DIMENSIONS, Found, Graph, Settings
from benchmarks.referee.material import Document, Question
from lightrag_jsonl import Document as OurDocument
from lightrag_jsonl import LightRAG, OpenAIEmbedder, OpenAILLM, QueryParam


class Ours:
    """An index of this package."""

    ways: Mapping[str, Settings] = {
        "mix": {},
        "hybrid": {"mode": "hybrid"},
        "local": {"mode": "local"},
        "global": {"mode": "global"},
        "naive": {"mode": "naive"},
        "overview": {"mode": "overview"},
    }

    def __init__(self, folder: Path, address: str, language: str) -> None:
        self._rag = LightRAG(
            folder,
            llm=OpenAILLM("scripted", base_url=address, api_key="unused"),
            embedder=OpenAIEmbedder("vectors", dim=DIMENSIONS, base_url=address, api_key="unused"),
            language=language,
        )

    def insert(self, documents: Sequence[Document]) -> None:
        self._rag.insert(
            [
                OurDocument(document.text, id=document.id, source=document.file)
                for document in documents
            ]
        )

    def delete(self, document: Document) -> None:
        self._rag.delete(document.id, purge=True)

    def search(self, question: Question, way: str, *, tokens: int | None = None) -> Found:
        settings = dict(self.ways[way])
        if tokens is not None:
            settings["max_total_tokens"] = tokens
        context = self._rag.retrieve(question.text, QueryParam(**settings))
        return Found(tuple([chunk.text for chunk in context.chunks]), context.prompt)

    def graph(self) -> Graph:
        graph = self._rag.graph
        names = tuple(sorted(graph))
        relations = tuple(sorted(graph.edges()))
        return Graph(names, relations, self._rag.status().chunks)

    def close(self) -> None:
        self._rag.close()
