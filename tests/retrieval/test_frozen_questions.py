"""Twenty frozen questions: whoever changes what is ranked first, sees it here."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from lightrag_jsonl import Document, LightRAG, QueryParam
from lightrag_jsonl.retrieval import pagerank, ranking
from lightrag_jsonl.retrieval.hits import Hits
from lightrag_jsonl.testing import HashEmbedder
from tests.kit import RANKING_MODES, TOKENIZER, Vectors, entity, prompts, relation

FROZEN = Path(__file__).parent / "frozen"
PASSAGES_AT = (2, 3)  # of so many first chunks
RELATIONS_AT = 2  # of so many first relations
TOP_K = 4  # few, so that ranking decides what is found at all

Recall = dict[str, dict[str, float]]  # percent by mode: of passages and of relations


class FrozenEmbedder:
    """Vectors as of a model that knows meanings: a lexical embedder leaves ranking to words."""

    def __init__(self) -> None:
        self._embedder = HashEmbedder()
        self.name = "frozen"
        self.dim = self._embedder.dim

    async def embed(self, texts: Sequence[str], *, kind: Any) -> Vectors:
        """The hashed words of the texts."""
        return await self._embedder.embed(texts, kind=kind)


@cache
def rows(name: str) -> list[Any]:
    """The lines of a file of the frozen set."""
    text = (FROZEN / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


@pytest.fixture(scope="module")
def rag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LightRAG]:
    """The frozen passages with their recorded names and relations."""
    with LightRAG(
        tmp_path_factory.mktemp("frozen"),
        llm="none",
        embedder=FrozenEmbedder(),
        tokenizer=TOKENIZER,
        prompts=prompts(),
    ) as rag:
        for passage in rows("passages"):
            records = [entity(name) for name in passage["entities"]]
            for source, predicate, target in passage["relations"]:
                records.append(relation(source, target, keywords=[predicate]))
            rag.insert_records(Document(passage["text"], id=passage["id"]), records)
        yield rag


def measured(rag: LightRAG) -> Recall:
    """The recall of every mode that searches."""
    return {mode: recall_of(rag, mode) for mode in RANKING_MODES}


def recall_of(rag: LightRAG, mode: Any) -> dict[str, float]:
    """The average over the questions, in percent."""
    passages: dict[int, list[float]] = {limit: [] for limit in PASSAGES_AT}
    relations: list[float] = []
    for question in rows("questions"):
        param = QueryParam(
            mode=mode,
            top_k=TOP_K,
            ll_keywords=tuple(question["low"]),
            hl_keywords=tuple(question["high"]),
        )
        context = rag.retrieve(question["question"], param)
        documents = [chunk.document_id for chunk in context.chunks]
        pairs = [
            {relation.source, relation.target} for relation in context.relations[:RELATIONS_AT]
        ]
        for limit in PASSAGES_AT:
            is_found = [id in documents[:limit] for id in question["passages"]]
            passages[limit].append(float(np.mean(is_found)))
        relations.append(np.mean([set(pair) in pairs for pair in question["relations"]]))
    recall = {f"passages@{limit}": np.mean(values) for limit, values in passages.items()}
    recall[f"relations@{RELATIONS_AT}"] = np.mean(relations)
    return {kind: round(100 * float(value), 1) for kind, value in recall.items()}


def expected() -> Recall:
    """The recorded recall."""
    recall: Recall = json.loads((FROZEN / "recall.json").read_text(encoding="utf-8"))
    return recall


@pytest.mark.slow
def test_recall_is_as_recorded(rag: LightRAG) -> None:
    """In every mode, to the decimal."""
    recall = measured(rag)
    assert recall == expected(), json.dumps(recall, indent=1)


# ── wrong rankings ──────────────────────────────────────────────────────────────


def without_weight(patch: pytest.MonkeyPatch) -> None:
    """Relations are scored without their weight."""
    patch.setattr(ranking, "OFTEN_MENTIONED", 0.0)


def without_rarity(patch: pytest.MonkeyPatch) -> None:
    """Every mention weighs the same in the walk."""

    def equal(mentions: npt.NDArray[np.int64], chunk_count: int) -> npt.NDArray[np.float64]:
        return np.ones(len(mentions))

    patch.setattr(pagerank, "mention_rarity", equal)


def reversed_ranking(patch: pytest.MonkeyPatch) -> None:
    """The lowest scores come first."""
    ranked = Hits.ranked

    def lowest_first(
        ids: npt.NDArray[np.int64], scores: npt.NDArray[np.float64], why: str = ""
    ) -> Hits:
        return ranked(ids, -scores, why)

    patch.setattr(Hits, "ranked", lowest_first)


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [without_weight, without_rarity, reversed_ranking])
def test_a_wrong_ranking_is_noticed(
    rag: LightRAG,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[pytest.MonkeyPatch], None],
) -> None:
    """The recall of some mode is not as recorded."""
    spoil(monkeypatch)
    assert measured(rag) != expected()
