"""Measures how often retrieval finds the passages behind an answer, the gain by the graph, and the
verdicts on the claims of answers.
"""

import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias, get_args

import msgspec
import numpy as np

from lightrag_jsonl.core.answers import Answer, Verdict
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.files import write_whole
from lightrag_jsonl.core.languages import known_language
from lightrag_jsonl.core.modes import Mode
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.types import Chunk, Relation
from lightrag_jsonl.indexing.loading import read_text
from lightrag_jsonl.rag import AsyncLightRAG
from lightrag_jsonl.storage.store import read, search
from lightrag_jsonl.storage.views import Snapshot, StoreView
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.strings import digest
from lightrag_jsonl.text.terms import search_terms

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


ChunksByEntity: TypeAlias = defaultdict[int, set[int]]  # row ids
MetricValues: TypeAlias = Mapping[str, float]  # of one question by metric, with "seconds"


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


@dataclass(frozen=True, slots=True)
class ClaimCounts:
    """The statements of the answers of a mode, of these the ones without a citation, and how many have
    each verdict. Only `supported` says that a statement is right; `missing` and `unsupported` ones are
    marked.
    """

    mode: Mode
    statements: int
    uncited: int
    verdicts: Mapping[Verdict, int]


def read_questions(path: str | Path) -> tuple[EvalQuestion, ...]:
    """The questions of a JSONL file: `question`, `supporting`, and optionally `answer` and `names`.

    Raises `ConfigError` if the file cannot be read; for a bad question it names the line.
    """
    questions: list[EvalQuestion] = []
    lines = read_text(Path(path)).split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            questions.append(msgspec.json.decode(line, type=EvalQuestion))
        except (msgspec.MsgspecError, RecursionError) as error:
            fault = str(error).replace("Object missing required field", "the question has no field")
            raise ConfigError(f"{path}, line {number}: {fault}") from error
    if not questions:
        raise ConfigError(f"{path}: no question in it")
    return tuple(questions)


def write_questions(path: str | Path, questions: Iterable[EvalQuestion]) -> None:
    """Write a question set for `read_questions`."""
    encoder = msgspec.json.Encoder()
    write_whole(Path(path), encoder.encode_lines(questions))


async def generate_questions(
    rag: AsyncLightRAG, count: int, *, seed: int = 0
) -> tuple[EvalQuestion, ...]:
    """Up to `count` two-hop questions with their supporting chunks; no model is called.

    Each question leads from an entity, over an unnamed second entity (the bridge), to the answer;
    no chunk alone mentions both ends. The same index and seed give the same questions.
    """
    template = TEMPLATES[known_language(rag.engine.language)]

    def generate(snapshot: Snapshot) -> tuple[EvalQuestion, ...]:
        questions: list[EvalQuestion] = []
        chunks_by_entity = _chunks_by_entity(snapshot)
        for bridge in _bridges(chunks_by_entity, seed):
            if len(questions) >= count:
                break
            question = _two_hop_question(snapshot, bridge, chunks_by_entity, template)
            if question is not None:
                questions.append(question)
        return tuple(questions)

    return await search(rag.engine.store, generate)


def _chunks_by_entity(snapshot: Snapshot) -> ChunksByEntity:
    """The chunks with a mention of each entity."""
    chunks_by_entity: ChunksByEntity = defaultdict(set)
    mentions = np.transpose(snapshot.graph.all_mentions)
    for entity, chunk in mentions.tolist():
        chunks_by_entity[entity].add(chunk)
    return chunks_by_entity


def _bridges(chunks_by_entity: ChunksByEntity, seed: int) -> list[int]:
    """The entities with mentions in a few chunks, in an order that depends on the seed alone."""
    bridges = [
        entity for entity, chunks in chunks_by_entity.items() if len(chunks) in BRIDGE_CHUNKS
    ]
    return sorted(bridges, key=lambda entity: (digest(str(seed), str(entity)), entity))


class _Hop(NamedTuple):
    """A relation of the bridge, with the rows of the far end and of a stating chunk."""

    relation: Relation
    end: int
    chunk: int


def _two_hop_question(
    snapshot: Snapshot, bridge: int, chunks_by_entity: ChunksByEntity, template: str
) -> EvalQuestion | None:
    """The first question over a bridge; `None` if a single chunk answers every question."""
    hops = _hops(snapshot, bridge)
    for first_hop, second_hop in itertools.permutations(hops, 2):
        start = first_hop.end
        end = second_hop.end
        is_end_near = first_hop.chunk in chunks_by_entity[end]
        is_start_near = second_hop.chunk in chunks_by_entity[start]
        if is_end_near or is_start_near:
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
    """The relations of a bridge, except relations with the bridge's name in the wording."""
    _, rows = snapshot.graph.relations_of(np.array([bridge]))
    rows = rows[:MAX_RELATIONS]
    relations = snapshot.relations(rows.tolist())
    bridge_entity = snapshot.entities([bridge])[bridge]
    bridge_key = name_key(bridge_entity.name)
    mentions = snapshot.relation_mentions(relations=relations)
    chunks = {mention.owner: mention.chunk for mention in reversed(mentions)}
    ends_of_rows = snapshot.graph.ends(rows)
    for row, ends in zip(rows.tolist(), ends_of_rows.tolist(), strict=True):
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
    await read(rag.engine.store, lambda view: _check_ids(view, questions))
    retrievers = dict.fromkeys(("dense", "bm25", "naive", *modes))
    values_by_retriever: dict[str, list[MetricValues]] = defaultdict(list)
    for question in questions:
        for retriever in retrievers:
            start = time.perf_counter()
            chunks = await _retrieve(rag, retriever, question)
            seconds = time.perf_counter() - start
            values = score(question, chunks, budget)
            values_by_retriever[retriever].append({**values, "seconds": seconds})
    dense = values_by_retriever["dense"]
    scores: list[RetrieverScores] = []
    for retriever, values_by_question in values_by_retriever.items():
        scores.append(_averages(retriever, values_by_question, dense, seed=seed))
    return tuple(scores)


async def count_claims(
    rag: AsyncLightRAG, questions: Sequence[EvalQuestion], *, modes: Iterable[Mode]
) -> tuple[ClaimCounts, ...]:
    """The verdicts on the claims of an answer to each question, by mode; the model answers."""
    counts: list[ClaimCounts] = []
    for mode in dict.fromkeys(modes):
        answers: list[Answer] = []
        for question in questions:
            param = QueryParam(mode=mode, ll_keywords=question.names)
            answers.append(await rag.query(question.text, param))
        counts.append(_claim_counts(mode, answers))
    return tuple(counts)


def _claim_counts(mode: Mode, answers: Iterable[Answer]) -> ClaimCounts:
    uncited = 0
    verdicts: Counter[Verdict] = Counter()
    for answer in answers:
        uncited += len(answer.uncited)
        statements = {(claim.start, claim.end): claim.verdict for claim in answer.claims}
        verdicts.update(statements.values())  # one that several numbers cite counts once
        verdicts.update(claim.verdict for claim in answer.uncited)
    counts = {verdict: verdicts[verdict] for verdict in get_args(Verdict)}
    return ClaimCounts(mode, statements=verdicts.total(), uncited=uncited, verdicts=counts)


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
        read_chunks=0,  # the modes are compared on one and the same index
    )
    context = await rag.retrieve(question.text, param)
    return context.chunks


def _search_words(question: str, snapshot: Snapshot) -> list[Chunk]:
    terms = list(dict.fromkeys(search_terms(question)))
    hits = snapshot.search_terms(terms, SCORED_CHUNKS)
    chunks = snapshot.chunks([row for row, _ in hits])
    return [replace(chunks[row], score=bm25) for row, bm25 in hits]


def _check_ids(view: StoreView, questions: Iterable[EvalQuestion]) -> None:
    """Raise `ConfigError` for supporting ids of no document and no chunk."""
    supporting: set[str] = set()
    for question in questions:
        supporting |= set(question.supporting)
    document_ids = {document.id for document in view.documents(supporting)}
    chunks = view.chunks(ids=supporting)
    chunk_ids = {chunk.id for chunk in chunks.values()}
    missing = sorted(supporting - document_ids - chunk_ids)
    if missing:
        examples = ", ".join(missing[:5])
        raise ConfigError(f"{len(missing)} supporting ids are not in the index, such as {examples}")


def score(question: EvalQuestion, chunks: Sequence[Chunk], budget: int) -> dict[str, float]:
    """The quality of ranked chunks as an answer to a question, by metric; `budget` is in tokens."""
    values: dict[str, float] = {}
    for count in RECALL_AT:
        best_chunks = chunks[:count]
        best_ids = {chunk.id for chunk in best_chunks}
        best_ids |= {chunk.document_id for chunk in best_chunks}
        hits = [id in best_ids for id in question.supporting]
        values[f"recall@{count}"] = float(np.mean(hits))
    answer = name_key(question.answer) if question.answer else ""
    if answer not in UNINFORMATIVE_ANSWERS:
        text = "\n".join(_texts_within(chunks, budget))
        values["answer"] = float(answer in name_key(text))
    return values


def _texts_within(chunks: Sequence[Chunk], budget: int) -> list[str]:
    """The texts of the first chunks that fit into a budget of tokens."""
    texts = []
    tokens = 0
    for chunk in chunks:
        tokens += chunk.tokens
        if tokens <= budget:
            texts.append(chunk.text)
    return texts


def interval(values: Sequence[float], *, seed: int = 0) -> Interval:
    """The mean with the percentile bootstrap interval (Efron, 1979); at least one value is needed.

    Lists of equal length are resampled alike, for the comparison of two retrievers.
    """
    sample = np.asarray(values, np.float64)
    generator = np.random.default_rng(seed)
    positions = generator.integers(0, len(sample), (RESAMPLES, len(sample)))
    means = sample[positions].mean(axis=1)
    low, high = np.quantile(means, TAILS).tolist()
    return Interval(value=float(sample.mean()), low=low, high=high)


def _averages(
    retriever: str,
    values_by_question: Sequence[MetricValues],
    dense: Sequence[MetricValues],
    *,
    seed: int,
) -> RetrieverScores:
    """The averages of a retriever, and the differences to the averages of "dense"."""
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


def _column(values_by_question: Sequence[MetricValues], metric: str) -> list[float]:
    """The values of a metric, without questions that lack the metric."""
    return [values[metric] for values in values_by_question if metric in values]


def figures(scores: RetrieverScores) -> dict[str, str]:
    """The cells of a table: metrics in percent with half of the interval, then the gain."""
    cells = {"": scores.name}
    for name in METRICS:
        average = scores.metrics.get(name)
        column = name.replace("recall", "r")
        cells[column] = "" if average is None else _percent(average)
    gain = scores.gains.get("recall@5")
    cells["gain r@5"] = ""
    if gain is not None:
        ends = f"[{100 * gain.low:+.0f}, {100 * gain.high:+.0f}]"
        cells["gain r@5"] = f"{100 * gain.value:+.1f} {ends}"
    cells["ms"] = f"{scores.p50_ms:.1f}"
    return cells


def _percent(average: Interval) -> str:
    return f"{100 * average.value:.1f} ±{50 * (average.high - average.low):.0f}"


def claim_figures(counts: ClaimCounts) -> dict[str, str]:
    """The cells of a table: a mode, the number of statements, and the number with each verdict."""
    cells = {"": str(counts.mode), "statements": str(counts.statements)}
    cells["uncited"] = str(counts.uncited)
    return cells | {verdict: str(count) for verdict, count in counts.verdicts.items()}
