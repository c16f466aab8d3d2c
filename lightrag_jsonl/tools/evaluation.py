"""Measures whether retrieval finds the passages that support an answer, and what the graph adds."""

import itertools
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.text import digest, name_key, search_terms
from lightrag_jsonl.core.types import Chunk, Mode, Relation, known_language
from lightrag_jsonl.indexing.loading import read_text
from lightrag_jsonl.rag import AsyncLightRAG
from lightrag_jsonl.storage.store import read, search
from lightrag_jsonl.storage.views import Snapshot, StoreView

RECALL_AT = (1, 2, 5, 10)
METRICS = (*(f"recall@{count}" for count in RECALL_AT), "answer")
SCORED_CHUNKS = 20
UNLIMITED = 1_000_000  # tokens; so many that the budget does not influence the ranks
RESAMPLES = 2_000
TAILS = (0.025, 0.975)  # of the bootstrap means: what is between them is the 95 % interval
YES_OR_NO = frozenset({"", "yes", "no", "是", "不是", "否", "有", "没有"})  # found in any passage
BRIDGE_CHUNKS = range(2, 9)  # the number of chunks that mention the unnamed entity of a question
RELATIONS = 16  # the most relations of one entity that are tried
TEMPLATES = {
    "en": "Take what “{start}” is linked to by “{first}”: what is that linked to by “{second}”?",
    "zh": "与“{start}”有“{first}”这一联系的，又与什么有“{second}”这一联系？",
}


class EvalQuestion(msgspec.Struct, frozen=True, omit_defaults=True, rename={"text": "question"}):
    """A question, the ids of documents or chunks that answer it, and its low-level keywords, if given."""

    text: Annotated[str, msgspec.Meta(pattern=r"\S")]
    supporting: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    answer: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Interval:
    """An average over questions, and its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Row:
    """A retriever's averages by metric; `gains` are differences to "dense" on the same questions.

    `recall@k`: the share of the supporting ids among the first k chunks. `answer`: whether the
    answer occurs in the first chunks that fit the token budget.
    """

    name: str
    metrics: Mapping[str, Interval]
    p50_ms: float
    gains: Mapping[str, Interval] = field(default_factory=dict)


def read_questions(path: str | Path) -> tuple[EvalQuestion, ...]:
    """The questions of a JSONL file: `question`, `supporting`, and optionally `answer` and `names`.

    Raises `ConfigError` if the file cannot be read; for a bad question it names the line.
    """
    found: list[EvalQuestion] = []
    for number, line in enumerate(read_text(Path(path)).split("\n"), 1):
        try:
            found += [msgspec.json.decode(line, type=EvalQuestion)] if line.strip() else []
        except (msgspec.MsgspecError, RecursionError) as error:
            raise ConfigError(f"{path}, line {number}: {error}") from error
    if not found:
        raise ConfigError(f"{path}: no question in it")
    return tuple(found)


def write_questions(path: str | Path, questions: Iterable[EvalQuestion]) -> None:
    """Write a question set that `read_questions` can read."""
    Path(path).write_bytes(msgspec.json.Encoder().encode_lines(questions))


async def generate_questions(
    rag: AsyncLightRAG, count: int, *, seed: int = 0
) -> tuple[EvalQuestion, ...]:
    """Up to `count` two-hop questions whose supporting chunks are known; no model is called.

    Each leads from an entity, over one that is not named, to the answer; no chunk alone mentions
    both ends. The same index and seed give the same questions.
    """
    template = TEMPLATES[known_language(rag.language)]

    def generate(snapshot: Snapshot) -> tuple[EvalQuestion, ...]:
        mentions: defaultdict[int, set[int]] = defaultdict(set)
        for entity, chunk in np.transpose(snapshot.graph.all_mentions).tolist():
            mentions[entity].add(chunk)
        bridges = [row for row, chunks in mentions.items() if len(chunks) in BRIDGE_CHUNKS]
        bridges.sort(key=lambda row: (digest(str(seed), str(row)), row))
        made = (_two_hops(snapshot, row, mentions, template) for row in bridges)
        return tuple(itertools.islice(filter(None, made), count))

    return await search(rag._store, generate)


def _two_hops(
    snapshot: Snapshot, bridge: int, mentions: Mapping[int, set[int]], template: str
) -> EvalQuestion | None:
    steps = _steps(snapshot, bridge)
    for (first, start, chunk), (second, end, other_chunk) in itertools.permutations(steps, 2):
        if chunk not in mentions[end] and other_chunk not in mentions[start]:
            entities = snapshot.entities([start, end])
            words = {"first": first.keywords[0], "second": second.keywords[0]}
            text = template.format(start=entities[start].name, **words)
            chunks = snapshot.chunks([chunk, other_chunk])
            supporting = (chunks[chunk].id, chunks[other_chunk].id)
            return EvalQuestion(text, supporting, entities[end].name)
    return None


def _steps(snapshot: Snapshot, bridge: int) -> Iterator[tuple[Relation, int, int]]:
    """(relation, other end, chunk) of relations whose wording does not give away the bridge."""
    rows = snapshot.graph.relations_of(np.array([bridge]))[1][:RELATIONS]
    relations = snapshot.relations(rows.tolist())
    key = name_key(snapshot.entities([bridge])[bridge].name)
    mentions = snapshot.relation_mentions(relations=relations)
    chunks = {mention.owner: mention.chunk for mention in reversed(mentions)}
    for row, ends in zip(rows.tolist(), snapshot.graph.ends(rows).tolist(), strict=True):
        relation = relations[row]
        other = relation.target if name_key(relation.source) == key else relation.source
        words = map(name_key, (other, *relation.keywords))
        if row in chunks and relation.keywords and not any(key in word for word in words):
            (end,) = {*ends} - {bridge}
            yield relation, end, chunks[row]


async def evaluate(
    rag: AsyncLightRAG,
    questions: Sequence[EvalQuestion],
    *,
    modes: Iterable[Mode],
    budget: int = 4_000,
    seed: int = 0,
) -> tuple[Row, ...]:
    """The scores of vectors alone ("dense"), words alone ("bm25"), `naive` and each of `modes`.

    `budget` is the tokens in which the answer is looked for. Raises `ConfigError` if a supporting
    id is not in the index.
    """
    await read(rag._store, lambda view: _check_ids(view, questions))
    scores: dict[str, list[dict[str, float]]] = defaultdict(list)
    for question in questions:
        for name in dict.fromkeys(("dense", "bm25", "naive", *modes)):
            started = time.perf_counter()
            chunks = await _retrieved(rag, name, question)
            seconds = time.perf_counter() - started
            scores[name].append({**score(question, chunks, budget), "seconds": seconds})
    return tuple(_row(name, found, scores["dense"], seed) for name, found in scores.items())


async def _retrieved(rag: AsyncLightRAG, name: str, question: EvalQuestion) -> Sequence[Chunk]:
    if name == "bm25":
        return await search(rag._store, partial(_by_words, question.text))
    param = QueryParam(
        mode="naive" if name == "dense" else name,  # type: ignore[arg-type]
        lexical=name != "dense",
        ll_keywords=question.names,
        chunk_top_k=SCORED_CHUNKS,
        max_total_tokens=UNLIMITED,
    )
    return (await rag.retrieve(question.text, param)).chunks


def _by_words(question: str, snapshot: Snapshot) -> list[Chunk]:
    hits = snapshot.search_terms(list(dict.fromkeys(search_terms(question))), SCORED_CHUNKS)
    chunks = snapshot.chunks([row for row, _ in hits])
    return [replace(chunks[row], score=value) for row, value in hits]


def _check_ids(view: StoreView, questions: Iterable[EvalQuestion]) -> None:
    wanted = {id for question in questions for id in question.supporting}
    known = {document.id for document in view.documents(wanted)}
    known |= {chunk.id for chunk in view.chunks(ids=wanted).values()}
    if unknown := sorted(wanted - known):
        shown = ", ".join(unknown[:5])
        raise ConfigError(f"{len(unknown)} supporting ids are not in the index, such as {shown}")


def score(question: EvalQuestion, chunks: Sequence[Chunk], budget: int) -> dict[str, float]:
    """How well ranked chunks answer a question, by metric; `budget` is in tokens."""
    values: dict[str, float] = {}
    for count in RECALL_AT:
        found = {id for chunk in chunks[:count] for id in (chunk.id, chunk.document_id)}
        values[f"recall@{count}"] = float(np.mean([id in found for id in question.supporting]))
    answer = name_key(question.answer) if question.answer else ""
    if answer not in YES_OR_NO:
        sums = itertools.accumulate(chunk.tokens for chunk in chunks)
        texts = [c.text for c, tokens in zip(chunks, sums, strict=True) if tokens <= budget]
        values["answer"] = float(bool(texts) and answer in name_key("\n".join(texts)))
    return values


def interval(values: Sequence[float], *, seed: int = 0) -> Interval:
    """The mean with its percentile bootstrap interval (Efron, 1979); at least one value is needed.

    Lists of equal length are resampled alike, so that two retrievers can be compared.
    """
    row = np.asarray(values, np.float64)
    picked = np.random.default_rng(seed).integers(0, len(row), (RESAMPLES, len(row)))
    low, high = np.quantile(row[picked].mean(axis=1), TAILS)
    return Interval(float(row.mean()), float(low), float(high))


def _row(
    name: str, scores: Sequence[Mapping[str, float]], base: Sequence[Mapping[str, float]], seed: int
) -> Row:
    metrics, gains = {}, {}
    for metric in METRICS:
        values = [one[metric] for one in scores if metric in one]
        before = [one[metric] for one in base if metric in one]
        if values:
            metrics[metric] = interval(values, seed=seed)
            gains[metric] = interval(np.subtract(values, before).tolist(), seed=seed)
    p50 = float(np.median([one["seconds"] for one in scores])) * 1000
    return Row(name, metrics, round(p50, 2), {} if scores is base else gains)


def figures(row: Row) -> dict[str, str]:
    """A row in words: metrics in percent with half of their intervals, then the gain."""
    shown = {"": row.name}
    for name in METRICS:
        one = row.metrics.get(name)
        words = f"{100 * one.value:.1f} ±{50 * (one.high - one.low):.0f}" if one else ""
        shown[name.replace("recall", "r")] = words
    gain = row.gains.get("recall@5")
    ends = f"[{100 * gain.low:+.0f}, {100 * gain.high:+.0f}]" if gain else ""
    shown["gain r@5"] = f"{100 * gain.value:+.1f} {ends}" if gain else ""
    return {**shown, "ms": f"{row.p50_ms:.1f}"}
