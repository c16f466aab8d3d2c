"""A retriever for Haystack."""

from haystack import Document, component

from lightrag_jsonl import LightRAG
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.integrations import passages


@component
class LightRAGRetriever:
    """The passages that an index finds for a question, best first."""

    def __init__(self, rag: LightRAG, param: QueryParam | None = None) -> None:
        self._rag, self._param = rag, param

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, list[Document]]:
        """The passages as `documents`."""
        found = passages(self._rag.retrieve(query, self._param))
        documents = [
            Document(id=one.id, content=one.text, meta=meta, score=one.score) for one, meta in found
        ]
        return {"documents": documents}
