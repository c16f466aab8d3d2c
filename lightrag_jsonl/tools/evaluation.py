"""Measures whether retrieval finds the passages that support an answer, and what the graph adds."""

import itertools
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.text import digest, name_key, search_terms
from lightrag_jsonl.core.types import Chunk, Mode, Relation, known_language
from lightrag_jsonl.indexing.loading import read_text
from lightrag_jsonl.rag import AsyncLightRAG
from lightrag_jsonl.storage.store import Reader, Snapshot, read, search

RECALL_AT = (1, 2, 5, 10)
METRICS = (*(f"recall@{count}" for count in RECALL_AT), "answer")
SCORED_CHUNKS = 20
UNLIMITED = 1_000_000  # tokens; so many that the budget does not influence the ranks
RESAMPLES = 2_000
TAILS = (0.025, 0.975)  # of the bootstrap means: what is between them is the 95 % interval
UNINFORMATIVE_ANSWERS = frozenset(
    {"", "yes", "no", "是", "不是", "否", "有", "没有"}
)  # in any passage
BRIDGE_CHUNKS = range(2, 9)  # the number of chunks that mention the unnamed entity of a question
MAX_RELATIONS = 16  # of one entity, tried for a question
TEMPLATES = {
    "en": "Take what “{start}” is linked to by “{first}”: what is that linked to by “{second}”?",
    "zh": "与“{start}”有“{first}”这一联系的，又与什么有“{second}”这一联系？",
}


class EvalQuestion(msgspec.Struct, frozen=True, omit_defaults=True, rename={"text": "question"}):
    """A question, the ids of the answering documents or chunks, and optional low-level keywords."""

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
class RetrieverScores:
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
    questions: list[EvalQuestion] = []
    for number, line in enumerate(read_text(Path(path)).split("\n"), 1):
        if not line.strip():
            continue
        try:
            questions.append(msgspec.json.decode(line, type=EvalQuestion))
        except (msgspec.MsgspecError, RecursionError) as error:
            raise ConfigError(f"{path}, line {number}: {error}") from error
    if not questions:
        raise ConfigError(f"{path}: no question in it")
    return tuple(questions)


def write_questions(path: str | Path, questions: Iterable[EvalQuestion]) -> None:
    """Write a question set for `read_questions`."""
    Path(path).write_bytes(msgspec.json.Encoder().encode_lines(questions))


async def generate_questions(
    rag: AsyncLightRAG, count: int, *, seed: int = 0
) -> tuple[EvalQuestion, ...]:
    """Up to `count` two-hop questions with their supporting chunks; no model is called.

    Each question leads from an entity, over an unnamed second entity (the bridge), to the answer;
    no chunk alone mentions both ends. The same index and seed give the same questions.
    """
    template = TEMPLATES[known_language(rag.language)]

    def generate(snapshot: Snapshot) -> tuple[EvalQuestion, ...]:
        chunks_by_entity: defaultdict[int, set[int]] = defaultdict(set)
        for entity, chunk in np.transpose(snapshot.graph.all_mentions).tolist():
            chunks_by_entity[entity].add(chunk)
        bridges = [
            entity for entity, chunks in chunks_by_entity.items() if len(chunks) in BRIDGE_CHUNKS
        ]
        bridges.sort(key=lambda entity: (digest(str(seed), str(entity)), entity))
        questions = (
            _two_hop_question(snapshot, bridge, chunks_by_entity, template) for bridge in bridges
        )
        return tuple(itertools.islice(filter(None, questions), count))

    return await search(rag.engine.store, generate)


class _Hop(NamedTuple):
    """A relation of the bridge: the row of its other end, and of a chunk that states it."""

    relation: Relation
    end: int
    chunk: int


def _two_hop_question(
    snapshot: Snapshot,
    bridge: int,
    chunks_by_entity: Mapping[int, set[int]],
    template: str,
) -> EvalQuestion | None:
    """The first question over a bridge; None if a single chunk answers all of them."""
    for first_hop, second_hop in itertools.permutations(_hops(snapshot, bridge), 2):
        start = first_hop.end
        end = second_hop.end
        if first_hop.chunk in chunks_by_entity[end] or second_hop.chunk in chunks_by_entity[start]:
            continue
        entities = snapshot.entities([start, end])
        chunks = snapshot.chunks([first_hop.chunk, second_hop.chunk])
        text = template.format(
            start=entities[start].name,
            first=first_hop.relation.keywords[0],
            second=second_hop.relation.keywords[0],
        )
        return EvalQuestion(
            text=text,
            supporting=(chunks[first_hop.chunk].id, chunks[second_hop.chunk].id),
            answer=entities[end].name,
        )
    return None


def _hops(snapshot: Snapshot, bridge: int) -> Iterator[_Hop]:
    """The relations of a bridge without its name in their wording."""
    _, rows = snapshot.graph.relations_of(np.array([bridge]))
    rows = rows[:MAX_RELATIONS]
    relations = snapshot.relations(rows.tolist())
    bridge_key = name_key(snapshot.entities([bridge])[bridge].name)
    mentions = snapshot.relation_mentions(relations=relations)
    chunks = {mention.relation: mention.chunk for mention in reversed(mentions)}
    for row, ends in zip(rows.tolist(), snapshot.graph.ends(rows).tolist(), strict=True):
        relation = relations[row]
        is_source = name_key(relation.source) == bridge_key
        end_name = relation.target if is_source else relation.source
        wording = [name_key(text) for text in (end_name, *relation.keywords)]
        names_bridge = any(bridge_key in text for text in wording)
        if row in chunks and relation.keywords and not names_bridge:
            (end,) = {*ends} - {bridge}
            yield _Hop(relation, end, chunks[row])


async def evaluate(
    rag: AsyncLightRAG,
    questions: Sequence[EvalQuestion],
    *,
    modes: Iterable[Mode],
    budget: int = 4_000,
    seed: int = 0,
) -> tuple[RetrieverScores, ...]:
    """The scores of vectors alone ("dense"), words alone ("bm25"), `naive` and each of `modes`.

    `budget` limits the tokens of the passages in which the answer is looked for. `ConfigError` if
    a supporting id is not in the index.
    """
    await read(rag.engine.store, lambda reader: _check_ids(reader, questions))
    values_by_retriever: dict[str, list[dict[str, float]]] = defaultdict(list)
    for question in questions:
        for retriever in dict.fromkeys(("dense", "bm25", "naive", *modes)):
            start = time.perf_counter()
            chunks = await _retrieve(rag, retriever, question)
            seconds = time.perf_counter() - start
            values = score(question, chunks, budget)
            values_by_retriever[retriever].append({**values, "seconds": seconds})
    dense = values_by_retriever["dense"]
    return tuple(
        _averages(retriever, values, dense, seed)
        for retriever, values in values_by_retriever.items()
    )


async def _retrieve(rag: AsyncLightRAG, retriever: str, question: EvalQuestion) -> Sequence[Chunk]:
    """The best chunks for a question, best first."""
    if retriever == "bm25":
        return await search(rag.engine.store, partial(_search_words, question.text))
    param = QueryParam(
        mode="naive" if retriever == "dense" else retriever,  # type: ignore[arg-type]
        lexical=retriever != "dense",
        ll_keywords=question.names,
        chunk_top_k=SCORED_CHUNKS,
        max_total_tokens=UNLIMITED,
    )
    context = await rag.retrieve(question.text, param)
    return context.chunks


def _search_words(question: str, snapshot: Snapshot) -> list[Chunk]:
    terms = list(dict.fromkeys(search_terms(question)))
    hits = snapshot.search_terms(terms, SCORED_CHUNKS)
    chunks = snapshot.chunks([row for row, _ in hits])
    return [replace(chunks[row], score=bm25) for row, bm25 in hits]


def _check_ids(reader: Reader, questions: Iterable[EvalQuestion]) -> None:
    """Raise `ConfigError` for supporting ids of no document and no chunk."""
    supporting: set[str] = set()
    for question in questions:
        supporting |= set(question.supporting)
    document_ids = {document.id for document in reader.documents(supporting)}
    chunk_ids = {chunk.id for chunk in reader.chunks(ids=supporting).values()}
    missing = sorted(supporting - document_ids - chunk_ids)
    if missing:
        examples = ", ".join(missing[:5])
        raise ConfigError(f"{len(missing)} supporting ids are not in the index, such as {examples}")


def score(question: EvalQuestion, chunks: Sequence[Chunk], budget: int) -> dict[str, float]:
    """The quality of ranked chunks as an answer to a question, by metric; `budget` is in tokens."""
    values: dict[str, float] = {}
    for count in RECALL_AT:
        best_ids = {id for chunk in chunks[:count] for id in (chunk.id, chunk.document_id)}
        hits = [id in best_ids for id in question.supporting]
        values[f"recall@{count}"] = float(np.mean(hits))
    answer = name_key(question.answer) if question.answer else ""
    if answer not in UNINFORMATIVE_ANSWERS:
        texts = _texts_within(chunks, budget)
        values["answer"] = float(bool(texts) and answer in name_key("\n".join(texts)))
    return values


def _texts_within(chunks: Sequence[Chunk], budget: int) -> list[str]:
    """The texts of the first chunks that fit into a budget of tokens."""
    totals = itertools.accumulate(chunk.tokens for chunk in chunks)
    return [chunk.text for chunk, total in zip(chunks, totals, strict=True) if total <= budget]


def interval(values: Sequence[float], *, seed: int = 0) -> Interval:
    """The mean with its percentile bootstrap interval (Efron, 1979); at least one value is needed.

    Lists of equal length are resampled alike, for the comparison of two retrievers.
    """
    sample = np.asarray(values, np.float64)
    generator = np.random.default_rng(seed)
    positions = generator.integers(0, len(sample), (RESAMPLES, len(sample)))
    low, high = np.quantile(sample[positions].mean(axis=1), TAILS)
    return Interval(float(sample.mean()), float(low), float(high))


def _averages(
    retriever: str,
    values_by_question: Sequence[Mapping[str, float]],
    dense: Sequence[Mapping[str, float]],
    seed: int,
) -> RetrieverScores:
    """The averages of a retriever, and their differences to those of "dense"."""
    metrics: dict[str, Interval] = {}
    gains: dict[str, Interval] = {}
    for metric in METRICS:
        values = _column(values_by_question, metric)
        if not values:
            continue
        metrics[metric] = interval(values, seed=seed)
        if retriever != "dense":
            differences = np.subtract(values, _column(dense, metric))
            gains[metric] = interval(differences.tolist(), seed=seed)
    seconds = float(np.median(_column(values_by_question, "seconds")))
    return RetrieverScores(
        name=retriever,
        metrics=metrics,
        p50_ms=round(seconds * 1000, 2),
        gains=gains,
    )


def _column(values_by_question: Sequence[Mapping[str, float]], metric: str) -> list[float]:
    """The values of a metric, of the questions that have it."""
    return [values[metric] for values in values_by_question if metric in values]


def figures(scores: RetrieverScores) -> dict[str, str]:
    """The cells of a table: metrics in percent with half of their intervals, then the gain."""
    cells = {"": scores.name}
    for name in METRICS:
        cells[name.replace("recall", "r")] = _percent(scores.metrics.get(name))
    gain = scores.gains.get("recall@5")
    cells["gain r@5"] = ""
    if gain is not None:
        bounds = f"[{100 * gain.low:+.0f}, {100 * gain.high:+.0f}]"
        cells["gain r@5"] = f"{100 * gain.value:+.1f} {bounds}"
    cells["ms"] = f"{scores.p50_ms:.1f}"
    return cells


def _percent(average: Interval | None) -> str:
    if average is None:
        return ""
    half_width = 50 * (average.high - average.low)
    return f"{100 * average.value:.1f} ±{half_width:.0f}"
