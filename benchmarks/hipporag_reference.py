"""A retriever like HippoRAG 2, beside which `benchmarks.retrieval` measures ours.

As published: phrases and passages are nodes; phrases are joined by triples and by similarity, and
to the passages they occur in; the walk starts at the ends of the five triples nearest to the whole
question, and at every passage with 0.05 times its similarity; the damping is 0.5. The model call
that filters the triples is left out.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.corpora import make_embedder
from benchmarks.datasets import Dataset, Triple
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.types import Chunk
from lightrag_jsonl.providers.offline import OfflineExtractor, OfflineKeywords

Floats = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Embed = Callable[[Sequence[str]], Floats]

TRIPLES, PASSAGE_WEIGHT, DAMPING, ROUNDS = 5, 0.05, 0.5, 40
SYNONYMS, SIMILARITY = 5, 0.8  # at most so many for each phrase, and at least so similar
BLOCK = 1_000  # phrases compared with all others at a time


@dataclass(frozen=True, slots=True)
class Material:
    """A data set as arrays.

    - `keys`: each entity's number by name key; `entities` are their embeddings.
    - `mentions`: (entity, passage) pairs. `synonyms`: pairs of entities, and `similarities`.
    - `facts`: the two ends of each triple; `triples` are their embeddings.
    - `questions`: embeddings; `names`: the names in each; `dense`: shape (questions, passages).
    """

    dataset: Dataset
    keys: dict[str, int]
    entities: Floats
    mentions: Ints
    synonyms: Ints
    similarities: Floats
    facts: Ints
    triples: Floats
    questions: Floats
    names: tuple[tuple[str, ...], ...]
    dense: Floats

    def nearest(self, names: Sequence[str], embed: Embed) -> Iterator[tuple[int, float]]:
        """For each name the entity with the same key (similarity 1), or else the nearest one."""
        for name in names:
            near = self.entities @ embed([name])[0]
            same = self.keys.get(name_key(name))
            best = int(near.argmax())
            yield (best, float(near[best])) if same is None else (same, 1.0)


def embed_with(name: str) -> Embed:
    """A function that embeds texts, by the name of an embedder."""
    embedder = make_embedder(name)
    return lambda texts: asyncio.run(embedder.embed(texts, kind="query"))


def material(dataset: Dataset, embed: Embed) -> Material:
    """The arrays of a data set, from recorded triples or else those of the offline extractor."""
    contents = [_read(dataset, place) for place in range(len(dataset.passages))]
    spelling: dict[str, str] = {}
    for name in (name for names, _ in contents for name in names):
        spelling.setdefault(name_key(name), name)
    keys = {key: number for number, key in enumerate(spelling)}
    mentions = {
        (keys[name_key(name)], place) for place, (names, _) in enumerate(contents) for name in names
    }
    triples = [triple for _, found in contents for triple in found]
    ends = [(keys[name_key(source)], keys[name_key(target)]) for source, _, target in triples]
    entities = embed(list(spelling.values()))
    questions = embed([question.text for question in dataset.questions])
    sentences = [" ".join(triple) for triple in triples] if dataset.has_records else []
    return Material(
        dataset,
        keys,
        entities,
        np.array(sorted(mentions), np.int64).reshape(-1, 2),
        *synonym_edges(entities),
        np.array(ends, np.int64).reshape(-1, 2),
        embed(sentences) if sentences else entities[:0],
        questions,
        tuple(_question_names(dataset)),
        questions @ embed([passage.content for passage in dataset.passages]).T,
    )


def synonym_edges(vectors: Floats) -> tuple[Ints, Floats]:
    """Pairs of nearly equal vectors, each pair once, and their similarities."""
    pairs: dict[tuple[int, int], float] = {}
    for first in range(0, len(vectors), BLOCK):
        near = vectors[first : first + BLOCK] @ vectors.T
        for row, line in enumerate(near, start=first):
            line[row] = 0
            for other in np.argsort(-line, kind="stable")[:SYNONYMS].tolist():
                if line[other] >= SIMILARITY:
                    pairs[min(row, other), max(row, other)] = float(line[other])
    return np.array(list(pairs), np.int64).reshape(-1, 2), np.array(list(pairs.values()))


def hipporag(arrays: Material, *, embed: Embed | None = None) -> list[Ints]:
    """The passages ranked for each question; with `embed`, its names are the seeds, not triples."""
    senders, receivers, chances = _steps(arrays)
    split = len(arrays.keys)
    size = split + len(arrays.dataset.passages)
    joined = np.bincount(senders, minlength=size) > 0
    frequency = np.maximum(np.bincount(arrays.mentions[:, 0], minlength=split), 1)
    ranked = []
    for number, names in enumerate(arrays.names):
        start = np.zeros(size)
        seeds = _triple_seeds(arrays, number) if embed is None else arrays.nearest(names, embed)
        for entity, near in seeds:
            start[entity] = max(start[entity], near / frequency[entity])
        dense = arrays.dense[number]
        start[split:] = PASSAGE_WEIGHT * (dense - dense.min()) / (np.ptp(dense) or 1)
        start /= start.sum() or 1
        here = start
        for _ in range(ROUNDS):
            moved = np.bincount(receivers, chances * here[senders], size)
            here = DAMPING * moved + (1 - DAMPING * here[joined].sum()) * start
        ranked.append(np.argsort(-here[split:], kind="stable"))
    return ranked


def _steps(arrays: Material) -> tuple[Ints, Ints, Floats]:
    """The steps of the walk: from which node, to which node, and their chances."""
    mentions = arrays.mentions + np.array((0, len(arrays.keys)))
    pairs = np.concatenate([mentions, arrays.facts, arrays.synonyms])
    weights = np.ones(len(pairs))
    weights[len(pairs) - len(arrays.synonyms) :] = arrays.similarities
    senders, receivers = np.concatenate([pairs, pairs[:, ::-1]]).T
    weights = np.tile(weights, 2)
    return senders, receivers, weights / np.bincount(senders, weights)[senders]


def _triple_seeds(arrays: Material, number: int) -> Iterator[tuple[int, float]]:
    near = arrays.triples @ arrays.questions[number]
    for place in np.argsort(-near, kind="stable")[:TRIPLES]:
        yield from ((int(entity), float(near[place])) for entity in arrays.facts[place])


def _read(dataset: Dataset, place: int) -> tuple[list[str], list[Triple]]:
    """The names and triples of a passage: recorded, or else read by the offline extractor."""
    passage = dataset.passages[place]
    if dataset.has_records:
        names, triples = passage.entities, list(passage.triples)
    else:
        text = passage.content
        chunk = Chunk(passage.id, passage.id, 0, 1, 0, len(text), text)
        found = asyncio.run(OfflineExtractor("en").extract(chunk))
        triples = [(one.source, " ".join(one.keywords), one.target) for one in found.relations]
        names = tuple(mention.name for mention in found.entities)
    ends = [name for source, _, target in triples for name in (source, target)]
    return [name for name in (*names, *ends) if name.strip()], triples


def _question_names(dataset: Dataset) -> Iterator[tuple[str, ...]]:
    """The recorded names in each question, or else its offline keywords."""
    keywords = OfflineKeywords("en")
    for question in dataset.questions:
        yield question.names or asyncio.run(keywords.keywords(question.text)).low_level
