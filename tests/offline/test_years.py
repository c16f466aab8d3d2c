"""Questions about a year are answered by what is told of this year, or not at all."""

from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG
from lightrag_jsonl.core.question_scope import asks_about_everything
from lightrag_jsonl.providers.offline.answering import is_abstention
from lightrag_jsonl.testing import HashEmbedder

SCHOOL = (
    "The mill closed in 1911. Rosa Lind opened a school in Dover in 1925. From 1930 to 1938 Tom Hale "
    "taught there. The school burned down in 1940 and was rebuilt in 1947. Dover is famous for its "
    "white cliffs."
)
ACADEMY = (
    "周牧野于1915年在杭州开办了湖山书院。1937年书院毁于战火，1946年重建。书院以藏书闻名。"
    "沈砚秋买下了书院的旧址。"
)


def answered(folder: Path, text: str, question: str) -> str:
    language = "en" if text.isascii() else "zh"
    with LightRAG(folder, llm="none", embedder=HashEmbedder(), language=language) as rag:
        rag.insert(text)
        return str(rag.query(question))


@pytest.mark.parametrize(
    ("text", "question", "said"),
    [
        (SCHOOL, "What happened in 1940?", "burned down in 1940"),
        (SCHOOL, "What happened in 1925?", "Rosa Lind opened"),
        (SCHOOL, "When was the school rebuilt?", "rebuilt in 1947"),
        (SCHOOL, "What is Dover famous for?", "white cliffs"),
        (ACADEMY, "1937年发生了什么？", "毁于战火"),
        (ACADEMY, "书院以什么闻名？", "藏书"),
        (ACADEMY, "谁买下了书院的旧址？", "沈砚秋"),
    ],
)
def test_what_is_told_of_a_year_answers(
    tmp_path: Path, text: str, question: str, said: str
) -> None:
    """Also where the question has no other word of the text, and where the text names no year."""
    answer = answered(tmp_path, text, question)
    assert said in answer.split("\n")[0]
    assert not is_abstention(answer)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (SCHOOL, "Who opened a school in 1911?"),
        (SCHOOL, "What burned down in 1950?"),
        (ACADEMY, "谁1937年开办了湖山书院？"),
        (ACADEMY, "湖山书院1946年是在哪里开办的？"),
    ],
)
def test_what_is_told_of_another_year_does_not(tmp_path: Path, text: str, question: str) -> None:
    """The sentence with all other words of the question is shown as the nearest at most."""
    assert is_abstention(answered(tmp_path, text, question))


@pytest.mark.parametrize("question", ["What happened in 1958?", "1958年发生了什么？"])
def test_a_year_is_not_the_whole_of_a_collection(question: str) -> None:
    """Its main names tell nothing of the year."""
    assert not asks_about_everything(question)
    assert asks_about_everything("What happens?")
