"""Scores, their intervals, generated questions and graph health, on small indexes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import ConfigError, Document, IndexOptions, LightRAG
from lightrag_jsonl.evaluation import (
    EvalQuestion,
    Lookup,
    evaluate,
    generate_questions,
    graph_health,
    rank_retrievers,
    read_questions,
    report,
    retrievers,
    write_questions,
)
from lightrag_jsonl.evaluation.scores import interval, score
from lightrag_jsonl.storage import documents
from lightrag_jsonl.types import Chunk, Record


def _relation(source: str, word: str, target: str) -> Record:
    return {
        "type": "relationship",
        "source": source,
        "target": target,
        "keywords": [word],
        "description": f"{source} {word} {target}",
        "strength": 1,
    }


PASSAGES = {
    "opera": (
        "Thornfield Waltz was composed by Ada Merrow.",
        ("Thornfield Waltz", "by", "Ada Merrow"),
    ),
    "life": ("Ada Merrow was born in Quillhaven.", ("Ada Merrow", "born in", "Quillhaven")),
    "town": ("Quillhaven lies on the river Sorrel.", ("Quillhaven", "lies on", "Sorrel")),
    "other": ("A harbor is full of boats.", ("harbor", "full of", "boats")),
    "中文": ("白鹿书院由沈岚创办。", ("白鹿书院", "创办人", "沈岚")),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of five passages, one chunk each; three of them form a chain."""
    path = tmp_path_factory.mktemp("evaluation") / "kb"
    with LightRAG(path) as rag:
        for name, (text, triple) in PASSAGES.items():
            rag.insert_records(Document(text, id=name), [_relation(*triple)], chunks=[text])
    return path


@pytest.fixture(scope="module")
def lookup(folder: Path) -> Iterator[Lookup]:
    """A look into that index."""
    with Lookup(folder) as lookup:
        yield lookup


QUESTION = EvalQuestion(
    "Where was the composer of Thornfield Waltz born?", ("opera", "life"), "Quillhaven"
)


# ── question sets ───────────────────────────────────────────────────────────────


def test_a_question_set_survives_a_file(tmp_path: Path) -> None:
    """What is written is what is read, in any script."""
    asked = (
        QUESTION,
        EvalQuestion("书院是谁创办的？", ("中文",), "沈岚", ("白鹿书院", "１２", "🎼")),
    )
    write_questions(tmp_path / "q.jsonl", asked)
    assert read_questions(tmp_path / "q.jsonl") == asked


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "line 2"),
        ("[]", "JSON object"),
        ('{"question": " ", "supporting": ["a"]}', "'question'"),
        ("[" * 100_000, "recursion"),
        ('{"question": "q", "supporting": []}', "'supporting'"),
        ('{"question": "q", "supporting": "a"}', "'supporting'"),
        ('{"question": "q", "supporting": [1]}', "'supporting'"),
        ('{"question": "q", "supporting": ["a"], "answer": null}', "'answer'"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, problem: str) -> None:
    """The error says which line of which file, and what is wrong with it."""
    path = tmp_path / "q.jsonl"
    path.write_text(f'{{"question": "q", "supporting": ["a"]}}\n{line}\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="line 2") as caught:
        read_questions(path)
    assert problem in str(caught.value)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    """A binary file, or none, is an error that names it."""
    (tmp_path / "q.jsonl").write_bytes(b"\x00\xff\xfe")
    for name in ("q.jsonl", "none.jsonl"):
        with pytest.raises(ConfigError, match=name):
            read_questions(tmp_path / name)


def test_an_empty_set_is_an_error(tmp_path: Path) -> None:
    """Nothing to ask is said at once."""
    (tmp_path / "q.jsonl").write_text("\n\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="no question"):
        read_questions(tmp_path / "q.jsonl")


# ── scores ──────────────────────────────────────────────────────────────────────


def _chunk(name: str, text: str = "", tokens: int = 10) -> Chunk:
    return Chunk(f"chunk-{name}", name, 0, 1, 0, len(text), text, tokens)


def test_recall_counts_supporting_ids_of_documents_and_chunks() -> None:
    """Half of the passages among the first two, all of them among the first five."""
    question = EvalQuestion("q", ("a", "chunk-b"), "42")
    found = [_chunk("x"), _chunk("a"), _chunk("y"), _chunk("b", "It is 42.")]
    values = score(question, found, budget=1_000, seconds=0.0).values
    assert (values["recall@1"], values["recall@2"], values["recall@5"]) == (0.0, 0.5, 1.0)
    assert (values["all@5"], values["answer"]) == (1.0, 1.0)


def test_the_answer_must_stand_within_the_budget() -> None:
    """Only whole chunks that fit count; full-width digits and case make no difference."""
    question = EvalQuestion("q", ("a",), "Route 66")
    found = [_chunk("x"), _chunk("a", "On ROUTE ６６ they drove.")]
    assert score(question, found, budget=20, seconds=0.0).values["answer"] == 1.0
    assert score(question, found, budget=19, seconds=0.0).values["answer"] == 0.0


def test_yes_and_no_are_not_looked_for() -> None:
    """Such answers stand in any text, so they say nothing about retrieval."""
    values = score(EvalQuestion("q", ("a",), "Yes"), [], budget=9, seconds=0.0).values
    assert "answer" not in values


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_an_interval_holds_its_mean_and_can_be_repeated(values: list[float]) -> None:
    """The same values and seed give the same interval, and the mean lies in it."""
    found = interval(values, seed=7)
    assert found == interval(values, seed=7)
    assert found.low - 1e-9 <= found.value <= found.high + 1e-9
    assert found.value == pytest.approx(float(np.mean(values)))


# ── asking ──────────────────────────────────────────────────────────────────────


def test_every_retriever_gets_its_row(folder: Path, lookup: Lookup) -> None:
    """Rows come in order, over the same questions, with their gains over the vectors alone."""
    with LightRAG(folder) as rag:
        systems = {**rank_retrievers(rag, lookup), **retrievers(rag, ["mix", "walk"])}
        rows = evaluate(systems, [QUESTION])
    assert [row.name for row in rows] == ["dense", "bm25", "naive", "mix", "walk"]
    assert rows[-1].metrics["recall@2"].value == 1.0
    assert not rows[0].gains and set(rows[1].gains) == set(rows[1].metrics)
    assert len(report.cells(rows)[0]) == len(report.header(rows))


def test_the_answer_is_looked_for_in_more_than_one_chunk() -> None:
    """The budget is the command line's, unless told otherwise: it holds chunks of the default size."""
    found = [_chunk("a", "Lydos", IndexOptions().chunk_tokens), _chunk("b", "It is 42.", 1_000)]
    (row,) = evaluate({"dense": lambda question: found}, [EvalQuestion("q", ("b",), "42")])
    assert row.metrics["answer"].value == 1.0


def test_words_alone_need_no_embedder(lookup: Lookup) -> None:
    """BM25 finds the passage by its words, in Chinese too."""
    assert lookup.by_words("谁创办了白鹿书院", 5)[0].document_id == "中文"


# ── questions made of the graph ─────────────────────────────────────────────────


def test_generated_questions_take_two_chunks(lookup: Lookup) -> None:
    """Each names one end, asks for the other, and names neither what lies between nor the answer."""
    made = generate_questions(lookup, 10)
    with lookup.snapshot() as snapshot:
        chunks = documents.chunks_by_id(
            snapshot.connection, [name for question in made for name in question.supporting]
        )
    assert len(made) == 2  # Ada Merrow and Quillhaven stand in two chunks each
    between = []
    for question in made:
        first, second = (chunks[name].text for name in question.supporting)
        shared = [name for name in ("Ada Merrow", "Quillhaven") if name in first and name in second]
        between += shared
        assert question.answer not in question.text
        assert first != second and not any(name in question.text for name in shared)
    assert sorted(between) == ["Ada Merrow", "Quillhaven"]


def test_generated_questions_are_the_same_each_time(lookup: Lookup) -> None:
    """Index and seed decide; a smaller number gives the first of them."""
    assert generate_questions(lookup, 10, seed=3) == generate_questions(lookup, 10, seed=3)
    assert generate_questions(lookup, 1, seed=3) == generate_questions(lookup, 10, seed=3)[:1]


def test_generated_questions_speak_the_language_of_the_index(lookup: Lookup) -> None:
    """A Chinese index is asked in Chinese."""
    for language in ("zh", "zh-CN"):
        assert generate_questions(lookup, 1, language=language)[0].text.endswith("？")


# ── health ──────────────────────────────────────────────────────────────────────


def test_health_counts_and_links(lookup: Lookup) -> None:
    """The chain's neighbours share an entity, its ends are joined by a relation, others are not."""
    pairs = [("opera", "life"), ("opera", "town"), ("opera", "other")]
    found = graph_health(lookup, [EvalQuestion("q", pair) for pair in pairs])
    assert (found.chunks, found.isolated, found.silent_chunks) == (5, 0, 0)
    assert found.degrees["max"] == 2
    assert (found.linkage.pairs, found.linkage.linked, found.linkage.by_entity) == (3, 2, 1)
    assert dict(report.health_rows(found))["supporting pairs that are linked"].startswith("2 of 3")


def test_unknown_supporting_ids_are_named(lookup: Lookup) -> None:
    """A question set for another corpus is refused, not scored as a failure."""
    with pytest.raises(ConfigError, match="nowhere"):
        graph_health(lookup, [EvalQuestion("q", ("opera", "nowhere"))])


def test_an_empty_index_has_no_questions(tmp_path: Path) -> None:
    """Nothing is made of nothing, and its health is all zeros."""
    with LightRAG(tmp_path / "kb"), Lookup(tmp_path / "kb") as empty:
        assert generate_questions(empty, 5) == ()
        assert graph_health(empty).entities == 0
