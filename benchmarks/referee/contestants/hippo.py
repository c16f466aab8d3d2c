"""HippoRAG 2 with its own client and stores."""

import ast
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from benchmarks.referee.contestants.base import FILTER_BY_NAMES, Found, Graph, Settings
from benchmarks.referee.material import Document, Question

BEST = 20  # passages found
CHARACTERS_PER_TOKEN = 4


def _without_vllm() -> None:
    """Let the import of vllm succeed: it serves models on a GPU, which are not used here."""
    vllm = ModuleType("vllm")
    vllm.SamplingParams = vllm.LLM = object  # type: ignore[attr-defined]
    sys.modules.setdefault("vllm", vllm)


_without_vllm()
from hipporag import HippoRAG  # noqa: E402


class Hippo:
    """An index of HippoRAG 2, whose facts are filtered by the model."""

    ways: Mapping[str, Settings] = {
        "facts": {"model": "gpt-4o-mini"},
        "facts with names": {"model": FILTER_BY_NAMES},
        "vectors alone": {},
    }

    def __init__(self, folder: Path, address: str, language: str) -> None:
        logging.disable(logging.WARNING)
        os.environ.setdefault("OPENAI_API_KEY", "unused")
        folder.mkdir(parents=True, exist_ok=True)
        self._rag = HippoRAG(
            save_dir=str(folder),
            llm_model_name="gpt-4o-mini",
            llm_base_url=address,
            embedding_model_name="text-embedding-vectors",
            embedding_base_url=address,
        )

    def insert(self, documents: Sequence[Document]) -> None:
        self._rag.index([document.text for document in documents])
        self._rag.ready_to_retrieve = False  # it would search what it had loaded before

    def delete(self, document: Document) -> None:
        self._rag.delete([document.text])

    def search(self, question: Question, way: str, *, tokens: int | None = None) -> Found:
        model = self.ways[way].get("model")
        if model is None:
            (solution,) = self._rag.retrieve_dpr([question.text], num_to_retrieve=BEST)
        else:
            self._rag.rerank_filter.model_name = model
            (solution,) = self._rag.retrieve([question.text], num_to_retrieve=BEST)
        passages = tuple(solution.docs)
        # An answer reads the five best passages by default.
        shown = passages[: self._rag.global_config.qa_top_k] if tokens is None else passages
        limit = None if tokens is None else tokens * CHARACTERS_PER_TOKEN
        return Found(passages, "\n\n".join(shown)[:limit])

    def graph(self) -> Graph:
        names = self._rag.entity_embedding_store.get_all_texts()
        facts = [read_fact(fact) for fact in self._rag.fact_embedding_store.get_all_texts()]
        chunks = self._rag.chunk_embedding_store.get_all_ids()
        relations = tuple(dict.fromkeys([(fact[0], fact[-1]) for fact in facts]))
        return Graph(tuple(names), relations, len(chunks))

    def close(self) -> None:
        """Nothing is open."""


def read_fact(text: str) -> tuple[str, ...]:
    """The parts of a stored fact, which is written as a Python tuple."""
    return tuple(ast.literal_eval(text))
