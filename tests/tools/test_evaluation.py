"""Scores, their intervals and generated questions, on small indexes."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import Chunk, ConfigError, Document, LightRAG
from lightrag_jsonl.core.answers import Verdict
from lightrag_jsonl.core.types import ModelTask
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.tools import evaluation
from lightrag_jsonl.tools.evaluation import EvalQuestion, interval, read_questions, score
from tests.kit import relation

OFFLINE: Mapping[ModelTask, str] = {"keywords": "none", "extract": "none"}
PASSAGES = {
    "opera": ("Thornfield Waltz was composed by Ada Merrow.", "Thornfield Waltz|by|Ada Merrow"),
    "life": ("Ada Merrow was born in Quillhaven.", "Ada Merrow|born in|Quillhaven"),
    "town": ("Quillhaven lies on the river Sorrel.", "Quillhaven|lies on|Sorrel"),
    "other": ("A harbor is full of boats.", "harbor|full of|boats"),
    "中文": ("白鹿书院由沈岚创办。", "白鹿书院|创办人|沈岚"),
}
QUESTION = EvalQuestion(
    "Where was the composer of Thornfield Waltz born?", ("opera", "life"), "Quillhaven"
)


@pytest.fixture(scope="module")
def rag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LightRAG]:
    """An index of five passages, one chunk each; three of them form a chain."""
    with LightRAG(tmp_path_factory.mktemp("evaluation") / "kb") as rag:
        for name, (text, triple) in PASSAGES.items():
            source, word, target = triple.split("|")
            record = relation(source, target, keywords=[word])
            rag.insert_records(Document(text, id=name), [record], chunks=[text])
        yield rag


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '{"question": " ", "supporting": ["a"]}',
        '{"question": "q", "supporting": []}',
        '{"question": "q", "supporting": [1]}',
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    """The error says which line of which file it is; a set without questions is an error, too."""
    path = tmp_path / "q.jsonl"
    path.write_text(f'{{"question": "q", "supporting": ["a"]}}\n{line}\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"q\.jsonl, line 2"):
        read_questions(path)
    path.write_text("\n\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="no question"):
        read_questions(path)


def _chunk(name: str, text: str = "", tokens: int = 10) -> Chunk:
    return Chunk(f"chunk-{name}", name, 0, 1, 0, len(text), text, tokens)


def test_scores() -> None:
    """Recall counts ids of documents and chunks; the answer must be in complete chunks that fit the
    budget, in any case and width; yes and no are not looked for.
    """
    question = EvalQuestion("q", ("a", "chunk-b"), "Route 66")
    found = [_chunk("x"), _chunk("a"), _chunk("y"), _chunk("b", "On ROUTE ６６ they drove.")]
    values = score(question, found, budget=40)
    assert (values["recall@1"], values["recall@2"], values["recall@5"]) == (0.0, 0.5, 1.0)
    assert values["answer"] == 1.0 and score(question, found, budget=39)["answer"] == 0.0
    assert "answer" not in score(EvalQuestion("q", ("a",), "Yes"), [], budget=9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_an_interval_holds_its_mean_and_can_be_repeated(values: list[float]) -> None:
    """The same values and seed give the same interval, and the mean lies in it."""
    found = interval(values, seed=7)
    assert found == interval(values, seed=7)
    assert found.low - 1e-9 <= found.value <= found.high + 1e-9
    assert found.value == pytest.approx(float(np.mean(values)))


def test_every_retriever_gets_its_row(rag: LightRAG) -> None:
    """Rows come in order, over the same questions, with their gains over the vectors alone; ids of
    another corpus are refused, not scored as a failure.
    """
    chinese = EvalQuestion("谁创办了白鹿书院", ("中文",))
    rows = rag.run(evaluation.evaluate, [QUESTION, chinese], modes=["mix"])
    assert [row.name for row in rows] == ["dense", "bm25", "naive", "mix"]
    assert rows[1].metrics["recall@2"].value >= 0.75
    assert rows[-1].metrics["recall@2"].value == 1.0
    assert not rows[0].gains and set(rows[1].gains) == set(rows[1].metrics)
    assert evaluation.figures(rows[0]).keys() == evaluation.figures(rows[1]).keys()
    wrong = EvalQuestion("q", ("opera", "nowhere"))
    with pytest.raises(ConfigError, match="nowhere"):
        rag.run(evaluation.evaluate, [wrong], modes=[])


def test_generated_questions_take_two_chunks(rag: LightRAG) -> None:
    """Each names one end, asks for the other, and names neither the entity between them nor the
    answer; index and seed decide, and a smaller number gives the first of them.
    """
    made = rag.run(evaluation.generate_questions, 10, seed=3)
    assert len(made) == 2  # Ada Merrow and Quillhaven are in two chunks each
    texts = {chunk.id: chunk.text for chunk in rag.retrieve("Ada Merrow Quillhaven 白鹿").chunks}
    for question in made:
        first, second = (texts[name] for name in question.supporting)
        shared = [name for name in ("Ada Merrow", "Quillhaven") if name in first and name in second]
        assert first != second and len(shared) == 1
        assert question.answer not in question.text and shared[0] not in question.text
    assert rag.run(evaluation.generate_questions, 1, seed=3) == made[:1]


def test_claims_of_answers_are_counted_by_what_is_known_of_them(tmp_path: Path) -> None:
    """By the same judge as in answers: a wrong year is missing, a statement without a citation counts, and
    one with two citations counts once.
    """
    answer = "Thornfield Waltz was composed by Ada Merrow [1][2]. It was composed in 1905 [1]. Ada Merrow was born in Quillhaven."
    with LightRAG(tmp_path, llm=ScriptedLLM(lambda request: answer), models=OFFLINE) as rag:
        rag.insert([text for text, _ in PASSAGES.values()])
        (counts,) = rag.run(evaluation.count_claims, [QUESTION], modes=["naive"])
    assert (counts.mode, counts.statements, counts.uncited) == ("naive", 3, 1)
    assert counts.verdicts == {**dict.fromkeys(get_args(Verdict), 0), "missing": 1, "nearest": 2}
    assert evaluation.claim_figures(counts)["missing"] == "1"
