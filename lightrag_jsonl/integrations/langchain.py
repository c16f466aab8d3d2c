"""A retriever for LangChain."""

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.integrations import passages


class LightRAGRetriever(BaseRetriever):
    """The passages that an index (`rag`, a `LightRAG`) finds for a question, best first."""

    rag: Any
    param: QueryParam = QueryParam()

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        context = self.rag.retrieve(query, self.param)
        return [
            Document(id=chunk.id, page_content=chunk.text, metadata=place)
            for chunk, place in passages(context)
        ]
