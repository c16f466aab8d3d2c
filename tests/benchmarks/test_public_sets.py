"""Question sets are read as they are published, into one form."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.public_sets import UnknownFormatError, load_public

QUESTION = "Who wrote the book about the lighthouse?"
TEXT = "The lighthouse stands at Gull Point. Mei Lin wrote a book about it."
OTHER = "Gulls eat fish."


def written(folder: Path, files: dict[str, Any]) -> Path:
    for name, value in files.items():
        rows = "\n".join(map(json.dumps, value)) if name.endswith(".jsonl") else json.dumps(value)
        (folder / name).write_text(rows, encoding="utf-8")
    return folder


CONTEXT_ROW = {
    "_id": "q1",
    "question": QUESTION,
    "answer": "Mei Lin",
    "supporting_facts": [["Lighthouse", 1]],
    "context": [["Lighthouse", TEXT.split("  ")], ["Gulls", [OTHER]]],
}
COLUMNS_ROW = {
    **CONTEXT_ROW,
    "supporting_facts": {"title": ["Lighthouse"], "sent_id": [1]},
    "context": {"title": ["Lighthouse", "Gulls"], "sentences": [[TEXT], [OTHER]]},
}
MUSIQUE_ROW = {
    "id": "q1",
    "question": QUESTION,
    "answer": "Mei Lin",
    "paragraphs": [
        {"title": "Lighthouse", "paragraph_text": TEXT, "is_supporting": True},
        {"title": "Gulls", "paragraph_text": OTHER, "is_supporting": False},
    ],
}
EVIDENCE = {"title": "Lighthouse", "fact": "Mei Lin wrote a book about it."}
SETS: dict[str, dict[str, Any]] = {
    "HotpotQA": {"dev.json": [CONTEXT_ROW]},
    "HotpotQA by columns": {"dev.jsonl": [COLUMNS_ROW]},
    "MuSiQue": {"dev.jsonl": [MUSIQUE_ROW]},
    "MultiHop-RAG": {
        "MultiHopRAG.json": [{"query": QUESTION, "answer": "Mei Lin", "evidence_list": [EVIDENCE]}],
        "corpus.json": [{"title": "Lighthouse", "body": TEXT}, {"title": "Gulls", "body": OTHER}],
    },
    "GraphRAG-Bench": {
        "questions.json": [
            {
                "id": "q1",
                "source": "Lighthouse",
                "question": QUESTION,
                "answer": "Mei Lin",
                "evidence": ["Mei Lin wrote a book about it."],
            }
        ],
        "corpus.json": [
            {"corpus_name": "Lighthouse", "context": TEXT},
            {"corpus_name": "Gulls", "context": OTHER},
        ],
    },
    "one's own": {
        "passages.jsonl": [{"id": "a", "text": TEXT}, {"id": "b", "text": OTHER}],
        "questions.jsonl": [{"question": QUESTION, "supporting": ["a"], "answer": "Mei Lin"}],
    },
}


@pytest.mark.parametrize("name", SETS)
def test_a_published_format_is_recognized(name: str, tmp_path: Path) -> None:
    """The question, its answer and the passage that supports it come out, whatever the form."""
    dataset = load_public(written(tmp_path, SETS[name]))
    (question,) = dataset.questions
    assert (question.text, question.answer) == (QUESTION, "Mei Lin")
    texts = {passage.id: passage.text for passage in dataset.passages}
    assert len(texts) == 2
    assert [texts[id] for id in question.supporting] == [TEXT]


def test_evidence_that_is_in_no_passage_leaves_its_question_out(tmp_path: Path) -> None:
    """A question whose evidence cannot be found would count as missed by everybody."""
    files = json.loads(json.dumps(SETS["MultiHop-RAG"]))
    files["MultiHopRAG.json"][0]["evidence_list"][0]["fact"] = "Nobody said so."
    assert load_public(written(tmp_path, files)).questions == ()


def test_an_unknown_format_names_its_files(tmp_path: Path) -> None:
    """The error says what was read."""
    with pytest.raises(UnknownFormatError, match=r"strange\.json"):
        load_public(written(tmp_path, {"strange.json": [{"a": 1}]}))
