"""A retriever for LlamaIndex."""

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from lightrag_jsonl import LightRAG
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.integrations import passages


class LightRAGRetriever(BaseRetriever):
    """The passages that an index finds for a question, best first."""

    def __init__(self, rag: LightRAG, param: QueryParam | None = None) -> None:
        super().__init__()
        self._rag, self._param = rag, param

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = passages(self._rag.retrieve(query_bundle.query_str, self._param))
        return [
            NodeWithScore(node=TextNode(id_=one.id, text=one.text, metadata=meta), score=one.score)
            for one, meta in found
        ]
