"""Promises of the offline extractor, English and Chinese."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl.core.options import ENTITY_TYPES
from lightrag_jsonl.core.text import name_key
from lightrag_jsonl.core.types import Chunk, Language
from lightrag_jsonl.providers.offline import OfflineExtractor
from lightrag_jsonl.providers.offline.extraction import extract_text

ENGLISH = (
    "Mr. Scrooge met the Ghost of Christmas Past. Jacob Marley was dead, said Scrooge. "
    "He worked for the Bank of England in London, on U.S. Route 61. J. R. R. Tolkien is a writer. "
    "Smith & Sons Ltd. sold C++ and AT&T. It’s the O’Brien. Scrooge’s nephew. Today Smith died today."
)
CHINESE = (
    "孔明笑曰：“玄德曰得是。”玄德曰：“诸葛亮乃当世之奇才。”夏侯惇引兵三千往荆州。"
    "曹操大怒，遂命张飞。罗贯中写了《三国演义》，由雷军在北京大学读。煤是Linux 2.0。"
)


def found(text: str, language: Language = "en") -> dict[str, str]:
    return {one.name: one.type for one in extract_text(text, language=language).entities}


def test_english_names_are_whole() -> None:
    """Names of several words are one entity; titles, pronouns and first words of sentences are not
    part of them.
    """
    entities = found(ENGLISH)

    expected = {
        "Scrooge": "person",
        "Ghost of Christmas Past": "creature",
        "Jacob Marley": "person",
        "Bank of England": "organization",
        "London": "place",
        "U.S. Route 61": "concept",
        "J. R. R. Tolkien": "person",
        "Smith & Sons Ltd": "organization",
        "C++": "concept",
        "AT&T": "concept",
        "O’Brien": "concept",
        "Smith": "concept",
    }
    assert expected.items() <= entities.items()
    assert not {"He", "It", "Mr. Scrooge", "Today", "Scrooge’s"} & set(entities)


def test_the_title_of_a_text_is_an_entity() -> None:
    """Above the text, without what tells it apart from others, also with words in small letters."""
    body = "It was written by Ann Lee in 1999 and " + "sold very well " * 8 + "abroad."

    assert "Lilu" in found(f"Lilu (mythology)\n{body}")
    assert "Primary rock" in found(f"Primary rock\n\n{body}")
    assert "潇湘馆的由来" in found("潇湘馆的由来\n林黛玉住在潇湘馆。", "zh")
    assert "It was written by" not in "".join(found(body))


def test_a_heading_describes_nothing() -> None:
    """It repeats a name; only what stands nowhere else is described by it."""
    text = (
        "# Cavendish Laboratory\n\nThe Cavendish Laboratory opened in Cambridge.\n\n## Niels Bohr"
    )
    described = {one.name: one.description for one in extract_text(text, language="en").entities}

    assert described["Cavendish Laboratory"] == "The Cavendish Laboratory opened in Cambridge."
    assert described["Niels Bohr"] == "## Niels Bohr"


def test_chinese_names_are_not_joined_to_other_words() -> None:
    """What the segmenter joins to a name is taken off."""
    entities = found(CHINESE, "zh")

    expected = {
        "孔明": "人物",
        "玄德": "人物",
        "诸葛亮": "人物",
        "荆州": "地点",
        "曹操": "人物",
        "三国演义": "作品",
        "雷军": "人物",
        "北京大学": "组织",
        "Linux 2.0": "概念",
    }
    assert expected.items() <= entities.items()
    assert not {"玄德曰", "孔明笑", "由雷军", "煤是", "大怒", "遂命"} & set(entities)


def test_a_chunk_is_read_in_its_own_language() -> None:
    """An index in one language takes chunks of the other; types are named in the index's."""
    assert found("曹操与刘备相见。", "en")["曹操"] == "person"
    assert found("Bob Cratchit lives in London.", "zh")["London"] == "地点"


@pytest.mark.parametrize("text", ["", " \n", "...", "👻👻", "的了是", "１２", "\x00\ud800"])
def test_texts_without_names_are_empty(text: str) -> None:
    """Nothing is invented."""
    result = extract_text(text, language="en")

    assert result.entities == () and result.relations == () and result.state == "empty"


MIXED = st.lists(
    st.sampled_from(
        [*ENGLISH.split(), *CHINESE.replace("。", "。 ").split(), "\n", "👻", "<p>", '"']
    ),
    max_size=30,
).map(" ".join)


@given(st.one_of(MIXED, st.text(max_size=80)), st.sampled_from(["en", "zh"]))
@settings(deadline=None)
def test_what_is_found_stands_in_the_text(text: str, language: Language) -> None:
    """Names occur in the text, types are the language's, relations join two found entities."""
    result = extract_text(text, language=language)

    names = {one.name for one in result.entities}
    folded = " ".join(text.replace("_", " ").split()).casefold()
    assert all(name.casefold() in folded and name_key(name) for name in names)
    assert len({name_key(name) for name in names}) == len(names)
    assert all(one.type in ENTITY_TYPES[language] and one.description for one in result.entities)
    for relation in result.relations:
        assert {relation.source, relation.target} <= names and relation.source != relation.target
        assert 1 <= relation.strength <= 10 and relation.description
    pairs = [frozenset((one.source, one.target)) for one in result.relations]
    assert len(set(pairs)) == len(pairs) <= 3 * len(names)


async def test_extraction_depends_on_the_text_alone() -> None:
    """Concurrent chunks, other instances and earlier texts change nothing."""
    texts = [ENGLISH, CHINESE, ENGLISH[40:], CHINESE[20:]] * 3
    chunks = [Chunk(str(at), "d", at, 1, 0, len(text), text) for at, text in enumerate(texts)]
    extractor = OfflineExtractor("zh")
    found = await asyncio.gather(*(extractor.extract(chunk) for chunk in chunks))
    assert found == [extract_text(text, language="zh") for text in texts]


def test_repeated_company_is_stronger_than_a_single_meeting() -> None:
    """Strength grows with how exclusively two names share sentences."""
    text = (
        "Ann Lee met Bob Ray. Ann Lee saw Bob Ray. Ann Lee left. Tom Fox called Ann Lee. It rained."
    )
    strength = {
        frozenset((one.source, one.target)): one.strength
        for one in extract_text(text, language="en").relations
    }

    assert strength[frozenset(("Ann Lee", "Bob Ray"))] > strength[frozenset(("Ann Lee", "Tom Fox"))]


def test_a_sentence_is_about_the_first_name_of_its_paragraph() -> None:
    """Mostly by a pronoun; another paragraph that begins with a name has another topic."""
    text = "Ann Lee sings. She moved to Paris.\n\nBob Ray stayed. He loved Rome."
    relations = extract_text(text, language="en").relations

    assert [(one.source, one.target, one.keywords) for one in relations] == [
        ("Ann Lee", "Paris", ("moved",)),
        ("Bob Ray", "Rome", ("loved",)),
    ]


def test_names_of_a_chinese_novel(shared_data: Path) -> None:
    """In 三国演义 the heroes are named most; a storyteller's phrases are no entities."""
    with gzip.open(shared_data / "text" / "sanguo_yanyi.txt.gz", "rt", encoding="utf-8") as file:
        text = file.read()
    mentions: Counter[str] = Counter()
    for at in range(0, len(text), 6000):
        piece = text[at : at + 1200]
        mentions.update({name: piece.count(name) for name in found(piece, "zh")})

    top = {name for name, _ in mentions.most_common(15)}
    assert {"玄德", "孔明", "曹操", "关公", "张飞"} <= top
    assert not {"却说", "一人", "不知", "玄德曰", "孔明曰", "次日"} & set(mentions)


def test_titles_of_encyclopedia_passages_are_entities(shared_data: Path) -> None:
    """The title of a passage, standing above it, is one of its entities nearly always."""
    path = shared_data / "musique-a" / "passages_openie.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        passages = [json.loads(line) for line in file][:120]
    hits = 0
    for passage in passages:
        keys = {name_key(name) for name in found(f"{passage['title']}\n{passage['text']}")}
        title = passage["title"].split(" (")[0].removeprefix("The ")
        hits += name_key(title) in keys

    assert hits >= 0.9 * len(passages)
