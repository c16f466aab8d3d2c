"""A retriever for Haystack."""

from haystack import Document, component

from lightrag_jsonl import LightRAG
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.integrations import passages


@component
class LightRAGRetriever:
    """The passages that an index finds for a question, best first."""

    def __init__(self, rag: LightRAG, param: QueryParam | None = None) -> None:
        self._rag = rag
        self._param = param

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, list[Document]]:
        """The passages as `documents`."""
        context = self._rag.retrieve(query, self._param)
        documents = [
            Document(id=chunk.id, content=chunk.text, meta=place, score=chunk.score)
            for chunk, place in passages(context)
        ]
        return {"documents": documents}
