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
        self._rag = rag
        self._param = param

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        context = self._rag.retrieve(query_bundle.query_str, self._param)
        nodes = []
        for chunk, place in passages(context):
            node = TextNode(id_=chunk.id, text=chunk.text, metadata=place)
            nodes.append(NodeWithScore(node=node, score=chunk.score))
        return nodes
