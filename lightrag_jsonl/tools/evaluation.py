"""Measures whether retrieval finds the passages that support an answer, and what the graph adds."""

from __future__ import annotations

import itertools
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from anyio import to_thread

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.text import decoded, digest, name_key, search_terms
from lightrag_jsonl.core.types import Chunk, Json, Mode, Relation, known_language
from lightrag_jsonl.storage.store import Reader, Snapshot, Store, read

if TYPE_CHECKING:
    from lightrag_jsonl.rag import AsyncLightRAG

RECALL_AT = (1, 2, 5, 10)
SCORED_CHUNKS = 20
UNLIMITED = 1_000_000  # tokens; so many that the budget does not influence the ranks
RESAMPLES = 2_000
COVERAGE = 0.95
YES_OR_NO = frozenset({"", "yes", "no", "是", "不是", "否", "有", "没有"})  # found in any passage
BRIDGE_CHUNKS = range(2, 9)  # the number of chunks that mention the unnamed entity of a question
RELATIONS = 16  # the most relations of one entity that are tried
TEMPLATES = {
    "en": "Take what “{start}” is linked to by “{first}”: what is that linked to by “{second}”?",
    "zh": "与“{start}”有“{first}”这一联系的，又与什么有“{second}”这一联系？",
}
HEADER = ("", *(f"r@{count}" for count in RECALL_AT), "answer", "gain r@5", "ms")


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """A question and what should be found for it.

    `supporting` holds ids of documents or chunks. `names` are its low-level keywords; without them,
    keywords are found as for any question.
    """

    text: str
    supporting: tuple[str, ...]
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


@dataclass(frozen=True, slots=True)
class GraphHealth:
    """Counts of an index's graph; `degrees` maps quantiles to relations of an entity."""

    chunks: int
    entities: int
    relations: int
    entities_without_relations: int
    chunks_without_entities: int
    degrees: Mapping[str, int]


# ── question sets ───────────────────────────────────────────────────────────────


def read_questions(path: str | Path) -> tuple[EvalQuestion, ...]:
    """The questions of a JSONL file: `question`, `supporting`, and optionally `answer` and `names`.

    Raises `ConfigError` if the file cannot be read; for a bad question it names the line.
    """
    found: list[EvalQuestion] = []
    for number, line in enumerate(decoded(Path(path).read_bytes(), str(path)).split("\n"), 1):
        if line.strip():
            try:
                found.append(_question(json.loads(line)))
            except (ValueError, RecursionError) as error:
                raise ConfigError(f"{path}, line {number}: {error}") from error
    if not found:
        raise ConfigError(f"{path}: no question in it")
    return tuple(found)


def write_questions(path: str | Path, questions: Iterable[EvalQuestion]) -> None:
    """Write a question set that `read_questions` can read."""
    lines = [
        {"question": one.text, "supporting": one.supporting, "answer": one.answer}
        | ({"names": one.names} if one.names else {})
        for one in questions
    ]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    Path(path).write_text(text, encoding="utf-8")


def _question(value: Json) -> EvalQuestion:
    if not isinstance(value, dict):
        raise ValueError("a question is a JSON object")
    text, answer = value.get("question"), value.get("answer", "")
    if not isinstance(text, str) or not text.strip():
        raise ValueError("'question' must be a text that is not empty")
    supporting = _texts(value, "supporting")
    if not supporting:
        raise ValueError("'supporting' must name at least one document or chunk")
    return EvalQuestion(text, supporting, str(answer), _texts(value, "names"))


def _texts(value: dict[str, Json], name: str) -> tuple[str, ...]:
    items = value.get(name, [])
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError(f"'{name}' must be a list of texts")
    return tuple(dict.fromkeys(str(item) for item in items))


async def generate_questions(
    rag: AsyncLightRAG, count: int, *, seed: int = 0
) -> tuple[EvalQuestion, ...]:
    """Up to `count` two-hop questions whose supporting chunks are known; no model is asked.

    Each leads from an entity, over one that is not named, to the answer; no chunk alone mentions
    both ends. The same index and seed give the same questions.
    """
    template = TEMPLATES[known_language(rag.language)]

    def generate() -> tuple[EvalQuestion, ...]:
        with rag._store.snapshot() as snapshot:
            mentions = _mentions(snapshot)
            bridges = [row for row, chunks in mentions.items() if len(chunks) in BRIDGE_CHUNKS]
            bridges.sort(key=lambda row: (digest(str(seed), str(row)), row))
            made = (_two_hops(snapshot, row, mentions, template) for row in bridges)
            return tuple(itertools.islice((one for one in made if one is not None), count))

    return await to_thread.run_sync(generate)


def _two_hops(
    snapshot: Snapshot, bridge: int, mentions: Mapping[int, set[int]], template: str
) -> EvalQuestion | None:
    for (first, end, chunk), (second, other_end, other_chunk) in itertools.permutations(
        _steps(snapshot, bridge), 2
    ):
        apart = chunk not in mentions.get(other_end, ())
        if apart and other_chunk not in mentions.get(end, ()):
            names = {
                row: entity.name for row, entity in snapshot.entities([end, other_end]).items()
            }
            text = template.format(
                start=names[end], first=first.keywords[0], second=second.keywords[0]
            )
            chunks = snapshot.chunks([chunk, other_chunk])
            supporting = (chunks[chunk].id, chunks[other_chunk].id)
            return EvalQuestion(text, supporting, names[other_end])
    return None


def _steps(snapshot: Snapshot, bridge: int) -> Iterator[tuple[Relation, int, int]]:
    """(relation, other end, chunk) of relations whose wording does not give away the bridge."""
    rows = snapshot.graph.relations_of(np.array([bridge]))[1][:RELATIONS]
    relations = snapshot.relations(rows.tolist())
    key = name_key(snapshot.entities([bridge])[bridge].name)
    chunks = {
        m.relation: m.chunk for m in reversed(snapshot.relation_mentions(relations=relations))
    }
    for row, (low, high) in zip(rows.tolist(), snapshot.graph.ends(rows).tolist(), strict=True):
        relation = relations[row]
        end = high if low == bridge else low
        other = relation.target if name_key(relation.source) == key else relation.source
        words = map(name_key, (other, *relation.keywords))
        if row in chunks and relation.keywords and not any(key in word for word in words):
            yield relation, end, chunks[row]


def _mentions(snapshot: Snapshot) -> dict[int, set[int]]:
    """The chunks of each entity."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    for entity, chunk in zip(
        *(column.tolist() for column in snapshot.graph.all_mentions), strict=True
    ):
        found[entity].add(chunk)
    return dict(found)


# ── asking ──────────────────────────────────────────────────────────────────────


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
    await read(rag._store, lambda reader: _check_ids(reader, questions))
    scores: dict[str, list[dict[str, float]]] = defaultdict(list)
    for question in questions:
        for name, chunks, seconds in [
            await _retrieved(rag, "dense", "naive", question, lexical=False),
            await _by_words(rag, question),
            *[await _retrieved(rag, mode, mode, question) for mode in ("naive", *modes)],
        ]:
            scores[name].append({**score(question, chunks, budget), "seconds": seconds})
    return tuple(_row(name, found, scores["dense"], seed) for name, found in scores.items())


async def _retrieved(
    rag: AsyncLightRAG, name: str, mode: Mode, question: EvalQuestion, *, lexical: bool = True
) -> tuple[str, Sequence[Chunk], float]:
    param = QueryParam(
        mode=mode,
        lexical=lexical,
        ll_keywords=question.names,
        chunk_top_k=SCORED_CHUNKS,
        max_total_tokens=UNLIMITED,
    )
    started = time.perf_counter()
    context = await rag.retrieve(question.text, param)
    return name, context.chunks, time.perf_counter() - started


async def _by_words(
    rag: AsyncLightRAG, question: EvalQuestion
) -> tuple[str, Sequence[Chunk], float]:
    started = time.perf_counter()
    chunks = await to_thread.run_sync(_word_hits, rag._store, question.text)
    return "bm25", chunks, time.perf_counter() - started


def _word_hits(store: Store, question: str) -> list[Chunk]:
    with store.snapshot() as snapshot:
        hits = snapshot.search_terms(list(dict.fromkeys(search_terms(question))), SCORED_CHUNKS)
        chunks = snapshot.chunks([row for row, _ in hits])
        return [replace(chunks[row], score=value) for row, value in hits]


def _check_ids(reader: Reader, questions: Iterable[EvalQuestion]) -> None:
    wanted = {id for question in questions for id in question.supporting}
    known = {document.id for document in reader.documents(wanted)} | set(
        reader.chunks_by_id(wanted)
    )
    if unknown := sorted(wanted - known):
        shown = ", ".join(unknown[:5]) + (", …" if len(unknown) > 5 else "")
        raise ConfigError(f"{len(unknown)} supporting ids are not in the index: {shown}")


def score(question: EvalQuestion, chunks: Sequence[Chunk], budget: int) -> dict[str, float]:
    """How well ranked chunks answer a question, by metric; `budget` is in tokens."""
    values: dict[str, float] = {}
    for count in RECALL_AT:
        found = {id for chunk in chunks[:count] for id in (chunk.id, chunk.document_id)}
        share = sum(id in found for id in question.supporting) / len(question.supporting)
        values[f"recall@{count}"] = share
    answer = name_key(question.answer) if question.answer else ""
    if answer not in YES_OR_NO:
        sums = itertools.accumulate(chunk.tokens for chunk in chunks)
        texts = [c.text for c, tokens in zip(chunks, sums, strict=True) if tokens <= budget]
        values["answer"] = float(bool(texts) and answer in name_key("\n".join(texts)))
    return values


def interval(values: Sequence[float], *, seed: int = 0) -> Interval:
    """The mean with its percentile bootstrap interval (Efron, 1979).

    Lists of equal length are resampled alike, so that the intervals of two retrievers can be
    compared.
    """
    row = np.asarray(values, np.float64)
    if not len(row):
        return Interval(0.0, 0.0, 0.0)
    picked = np.random.default_rng(seed).integers(0, len(row), (RESAMPLES, len(row)))
    tail = (1 - COVERAGE) / 2
    low, high = np.quantile(row[picked].mean(axis=1), (tail, 1 - tail))
    return Interval(float(row.mean()), float(low), float(high))


def _row(
    name: str, scores: Sequence[Mapping[str, float]], base: Sequence[Mapping[str, float]], seed: int
) -> Row:
    metrics, gains = {}, {}
    for metric in (*(f"recall@{count}" for count in RECALL_AT), "answer"):
        pairs = [
            (one[metric], b[metric]) for one, b in zip(scores, base, strict=True) if metric in one
        ]
        if pairs:
            metrics[metric] = interval([value for value, _ in pairs], seed=seed)
            gains[metric] = interval([value - before for value, before in pairs], seed=seed)
    p50 = float(np.median([one["seconds"] for one in scores])) * 1000
    return Row(name, metrics, round(p50, 2), {} if scores is base else gains)


def cells(rows: Iterable[Row]) -> list[tuple[str, ...]]:
    """Rows under `HEADER`: metrics in percent with half of their intervals, then the gain."""
    return [
        (
            row.name,
            *(_percent(row.metrics.get(f"recall@{count}")) for count in RECALL_AT),
            _percent(row.metrics.get("answer")),
            _signed(row.gains.get("recall@5")),
            f"{row.p50_ms:.1f}",
        )
        for row in rows
    ]


def _percent(found: Interval | None) -> str:
    return "" if found is None else f"{100 * found.value:.1f} ±{50 * (found.high - found.low):.0f}"


def _signed(gain: Interval | None) -> str:
    if gain is None:
        return ""
    return f"{100 * gain.value:+.1f} [{100 * gain.low:+.0f}, {100 * gain.high:+.0f}]"


# ── the graph ───────────────────────────────────────────────────────────────────


async def graph_health(rag: AsyncLightRAG) -> GraphHealth:
    """Statistics of an index's graph."""

    def count() -> GraphHealth:
        with rag._store.snapshot() as snapshot:
            graph = snapshot.graph
            degrees = graph.degrees(graph.entities)
            mentioning = np.unique(graph.all_mentions[1])
            shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0} if len(degrees) else {}
            return GraphHealth(
                chunks=len(graph.chunks),
                entities=graph.entity_count,
                relations=graph.relation_count,
                entities_without_relations=int((degrees == 0).sum()),
                chunks_without_entities=len(graph.chunks) - len(mentioning),
                degrees={name: int(np.quantile(degrees, at)) for name, at in shares.items()},
            )

    return await to_thread.run_sync(count)
