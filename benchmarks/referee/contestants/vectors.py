"""The floor: the vectors of the documents and nothing else."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np

from benchmarks.referee.contestants.base import Found, Graph, Settings
from benchmarks.referee.material import Document, Question

BEST = 20  # documents found
CHARACTERS_PER_TOKEN = 4


class PlainVectors:
    """Documents in a file, ranked by the cosine of their vectors with the question's."""

    ways: Mapping[str, Settings] = {"vectors": {}}

    def __init__(self, folder: Path, address: str, language: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "documents.json"
        self._address = address
        content = self._path.read_text(encoding="utf-8") if self._path.exists() else "{}"
        self._texts: dict[str, str] = json.loads(content)

    def insert(self, documents: Sequence[Document]) -> None:
        self._texts |= {document.id: document.text for document in documents}
        self._save()

    def delete(self, document: Document) -> None:
        del self._texts[document.id]
        self._save()

    def search(self, question: Question, way: str, *, tokens: int | None = None) -> Found:
        texts = list(self._texts.values())
        vectors = self._embedded(texts)
        scores = vectors @ self._embedded([question.text])[0]
        ranked = [texts[at] for at in np.argsort(-scores, kind="stable")[:BEST]]
        context = "\n\n".join(ranked)
        limit = tokens * CHARACTERS_PER_TOKEN if tokens else None
        return Found(tuple(ranked), context[:limit])

    def graph(self) -> Graph:
        return Graph((), (), len(self._texts))

    def close(self) -> None:
        """Nothing is open."""

    def _save(self) -> None:
        content = json.dumps(self._texts, ensure_ascii=False)
        self._path.write_text(content, encoding="utf-8")

    def _embedded(self, texts: Sequence[str]) -> np.ndarray:
        if not hasattr(self, "_vectors"):
            self._vectors: dict[str, np.ndarray] = {}
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if missing:
            body = json.dumps({"model": "vectors", "input": missing}).encode()
            with urlopen(Request(f"{self._address}/embeddings", body), timeout=600) as response:
                data = json.load(response)["data"]
            rows = [np.asarray(item["embedding"], np.float32) for item in data]
            self._vectors |= dict(zip(missing, rows, strict=True))
        return np.stack([self._vectors[text] for text in texts])
