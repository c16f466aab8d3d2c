"""Places: where a source is, told in the index's language, and documents of one name told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from lightrag_jsonl import Document, LightRAG, PromptManager
from lightrag_jsonl.places import told_apart, told_place
from lightrag_jsonl.testing import ScriptedLLM


@pytest.mark.parametrize(
    ("language", "place"),
    [
        ("en", "年报, page 2, characters 0–12"),
        ("zh", "年报，第 2 页，第 0–12 字"),
        ("zh-CN", "年报，第 2 页，第 0–12 字"),
        ("zh_Hans", "年报，第 2 页，第 0–12 字"),
        ("ZH", "年报，第 2 页，第 0–12 字"),
        ("prompts_fr", "年报, page 2, characters 0–12"),
    ],
)
def test_a_place_is_told_in_a_language(language: str, place: str) -> None:
    """The words are those of the language, English ones where it is not known."""
    assert told_place("年报", 2, 0, 12, language) == place


def test_only_shared_labels_get_the_id() -> None:
    """A label that several documents have gets their ids; any other stays as it is."""
    found = told_apart([("a", "Report"), ("b", "Report"), ("c", "年报"), ("a", "Report")])

    assert found == {"a": "Report (a)", "b": "Report (b)", "c": "年报"}


def test_sources_follow_the_language_of_the_index(tmp_path: Path) -> None:
    """Under a Chinese answer the places are told in Chinese."""
    with LightRAG(tmp_path / "kb", language="zh") as rag:
        rag.insert(Document("居里夫人在巴黎发现了镭。", id="curie", title="居里夫人"))
        answer = rag.query("居里夫人发现了什么？")

    assert str(answer).endswith("居里夫人，第 1 页，第 0–12 字")


def test_an_index_of_any_kind_of_chinese_is_chinese(tmp_path: Path) -> None:
    """Its model is told Chinese types, and its sources are told in Chinese."""
    model = ScriptedLLM(lambda request: "镭 [1]。")
    prompts = PromptManager.load("zh")
    with LightRAG(tmp_path, llm=model, language="zh-CN", prompts=prompts) as rag:
        rag.insert_records(Document("居里夫人在巴黎发现了镭。", id="curie", title="居里夫人"), [])
        answer = rag.query("居里夫人发现了什么？", mode="naive")
        rag.insert("皮埃尔在巴黎。")

    assert str(answer).endswith("居里夫人，第 1 页，第 0–12 字")
    assert "人物" in model.requests[-1].text


def test_sources_of_one_title_are_told_apart(tmp_path: Path) -> None:
    """Two documents with the same title are named with their ids, one alone is not."""
    told = {
        "spring": "Marie Curie discovered radium.",
        "autumn": "Marie Curie discovered polonium.",
    }
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(Document(text, id=id, title="Notes") for id, text in told.items())
        both = str(rag.query("What did Marie Curie discover?"))
        rag.delete("autumn")
        alone = str(rag.query("What did Marie Curie discover?"))

    assert "Notes (spring), page 1" in both and "Notes (autumn), page 1" in both
    assert "Notes, page 1" in alone
