"""Records to mentions: the checks on each mention, and their order."""

from dataclasses import MISSING, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import Chunk, RelationMention
from lightrag_jsonl.core.types import entity_record, relation_record
from lightrag_jsonl.indexing.examples import Examples
from lightrag_jsonl.indexing.mentions import MentionCollector
from lightrag_jsonl.indexing.provided_records import provided_extractions
from tests.kit import Record, entity, prompts, relation
from tests.storage.contract import FULL_ENTITY, FULL_RELATION


def extraction(*records: Record, text: str = "Ann met Bob.") -> Any:
    """What ready-made records of one chunk amount to."""
    chunk = Chunk("c", "d", 0, 1, 0, len(text), text)
    return provided_extractions([chunk], records, prompts().schema("extract-graph", {}))[0]


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = "type name source target to entities edges keywords attribute strength aliases 描述 x"
keys = st.sampled_from(KEYS.split())


@given(st.dictionaries(keys, plain | st.sampled_from(["entity", "关系", "done"]), max_size=6))
def test_no_record_is_an_error(record: Record) -> None:
    """Whatever a record holds, reading it gives an extraction."""
    found = extraction(record)
    assert all(1.0 <= relation.strength <= 10.0 for relation in found.relations)


@pytest.mark.parametrize("name", ["", "  ", "\u200b", '""', "《》"])
def test_a_mention_without_a_name_is_refused(name: str) -> None:
    """Of an entity or of an end of a relation; the line is kept with the reason."""
    found = extraction(entity(name, "x"), relation(name, "Bob"), relation("Ann", name))
    assert found.entities == found.relations == () and found.state == "partial"
    assert [(one.line, one.reason) for one in found.rejections] == [
        (1, "empty_name"), (2, "empty_name"), (3, "empty_name"),
    ]  # fmt: skip


def test_a_relation_with_itself_is_refused() -> None:
    """However its ends are spelled."""
    loops = relation("Apple Inc.", "APPLE INC"), relation("１２", "12")
    found = extraction(entity("Apple Inc."), *loops)
    assert found.relations == () and found.state == "partial"
    assert [one.reason for one in found.rejections] == ["self_relation"] * 2


def test_long_lists_of_ready_made_records_stay() -> None:
    """The schema limits the lists of a model's answer; a ready-made record keeps every item."""
    keywords = ["trade", "port", "ship", "grain", "salt", "wool", "tax"]
    result = extraction(relation("Ann", "Bob", keywords=keywords))
    assert result.rejections == ()
    assert result.relations[0].keywords == tuple(keywords)


def test_ends_that_nothing_named_become_unknown_entities() -> None:
    """Once each, without a word of the relation's text, and only where no entity has the name."""
    found = extraction(relation("Ann", "Bob"), relation("bob", "Cid"), entity("ANN", "Sings."))
    assert [(m.name, m.type, m.description) for m in found.entities] == [
        ("ANN", "person", "Sings."), ("Bob", "unknown", ""), ("Cid", "unknown", ""),
    ]  # fmt: skip


def test_mentions_stand_in_the_order_of_the_text_each_once() -> None:
    """The order and number of the lines leave no mark."""
    bob, ann, zoe = map(entity, ("Bob", "Ann", "Zoe"))
    records = [bob, relation("Bob", "Ann"), ann, zoe, entity("Ann", "Old.")]
    found, turned = extraction(*records), extraction(*reversed(records), *records)
    assert (found.entities, found.relations) == (turned.entities, turned.relations)
    assert [m.name for m in found.entities] == ["Ann", "Ann", "Bob", "Zoe"]


def test_records_of_mentions_give_the_mentions_again() -> None:
    """No field is lost in an export of records or a copy; the samples leave none at its default."""
    entity_mention = replace(FULL_ENTITY, grounded=True)  # by the text, not by the record
    records = [entity_record(entity_mention), relation_record(FULL_RELATION)]
    again = extraction(*records, text="Ann, called 安, met Bob.")
    assert entity_mention in again.entities
    assert again.relations == (FULL_RELATION,)


@pytest.mark.parametrize(
    ("name", "default"),
    [
        (field.name, field.default)
        for field in fields(RelationMention)
        if field.default is not MISSING
    ],
)
def test_mentions_that_differ_in_one_field_have_an_order(name: str, default: Any) -> None:
    """Also where one of them leaves the field at its default."""
    further = replace(FULL_RELATION, **{name: default})
    for mentions in ([FULL_RELATION, further], [further, FULL_RELATION]):
        collector = MentionCollector("Ann met Bob.", relations=dict.fromkeys(mentions))
        assert set(collector.extraction().relations) == set(mentions)


def test_a_relation_without_keywords_or_strength_counts_one() -> None:
    """What is optional may be missing."""
    record: Record = {"type": "relationship", "source": "Ann", "target": "Bob", "description": "x"}
    assert extraction(record).relations == (RelationMention("Ann", "Bob", (), "x", 1.0),)


@pytest.mark.parametrize(
    ("text", "name", "is_there"),
    [
        ("Tiny\n  Tim met them.", "tiny tim", True),
        ("They met Apple Inc. there.", "APPLE INC", True),
        ("马利 １２ times", "12", True),
        ("He said “Bob”.", '"Bob"', True),
        ("They met O’Brien there.", "O'Brien", True),
        ("皮埃尔•居里在巴黎。", "皮埃尔·居里", True),
        ("The war of 1914–1918 ended.", "1914-1918", True),
        ("刘\u200b备在涿郡。", "刘备", True),
        ("蜀汉丞相诸葛\n亮住在隆中。", "诸葛亮", True),
        ("AT&amp;T paid.", "AT&T", True),
        ("Ann met Bob.", "Scrooge", False),
        ("It was her\nmine.", "Hermine", False),  # without its spaces, it would hold her
    ],
)
def test_a_name_is_found_in_any_form(text: str, name: str, is_there: bool) -> None:
    """Other case, width, quotes, dots and dashes, markup, and line breaks in Chinese. One that does not
    occur is kept and flagged.
    """
    assert [mention.grounded for mention in extraction(entity(name), text=text).entities] == [
        is_there
    ]


def test_aliases_are_names_that_the_text_gives() -> None:
    """Each once, cleaned; neither the entity's own name nor what the text does not hold. A value that
    is no list of names costs them and nothing else.
    """
    text = "刘备，字玄德，人称刘皇叔（Ｋ１２）。"
    given_ = ["玄德", "“玄德”", "刘备", "Ｋ１２", "先主"]
    for key in ("aliases", "alias", "别名", "又名"):
        (found,) = extraction(entity("刘备", **{key: given_}), text=text).entities
        assert found.aliases == ("K12", "玄德")
    for value, aliases in (
        ("玄德、刘皇叔", ("刘皇叔", "玄德")),
        (7, ()),
        ({"a": 1}, ()),
        (None, ()),
    ):
        (found,) = extraction(entity("刘备", aliases=value), text=text).entities
        assert found.aliases == aliases


@pytest.mark.parametrize("name", ["He", "she", "他们", "自己"])
def test_a_pronoun_is_no_name(name: str) -> None:
    """Neither of an entity nor of an end of a relation; the line is refused with the reason."""
    pronoun = entity(name, "keeps the mill.", kind="person")
    found = extraction(pronoun, relation(name, "Bob"), relation("Ann", name))
    assert (found.entities, found.relations) == ((), ())
    assert [line.reason for line in found.rejections] == ["empty_name"] * 3


@pytest.mark.parametrize(("name", "kind"), [("It", "work"), ("IT", "concept"), ("He", "element")])
def test_titles_and_abbreviations_may_look_like_pronouns(name: str, kind: str) -> None:
    """They keep their names."""
    found = extraction(entity(name, f"{name} is known.", kind=kind), relation(name, "Bob"))
    assert name in [mention.name for mention in found.entities] and found.relations


def test_a_date_of_the_example_is_no_date_of_the_text() -> None:
    """Nor is the other date of such a record; a date that the text has stays."""
    examples = Examples.of(prompts().render("extract-graph", {"text": ""}), lambda record: [record])
    record = entity("Ann", "Ann met Bob.") | {"valid_from": "1931", "valid_to": "2023"}
    for text, dates in (("Ann met Bob.", ("", "")), ("Ann met Bob in 1931.", ("1931", "2023"))):
        collector = MentionCollector(text, examples=examples)
        collector.add([(1, record)])
        (mention,) = collector.entities
        assert (mention.valid_from, mention.valid_to) == dates and not collector.rejections


@pytest.mark.parametrize("word", ["unknown", "None", "N/A", "-", "无", "未指定", "不详"])
def test_a_word_for_no_date_is_no_date(word: str) -> None:
    """Models write one where the field should be left out."""
    undated = {"valid_from": word, "valid_to": word}
    found = extraction(entity("Ann", "Ann met Bob.") | undated, relation("Ann", "Bob") | undated)
    mentions = [*found.entities, *found.relations]
    assert {date for mention in mentions for date in (mention.valid_from, mention.valid_to)} == {""}


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Curie (wait, actually the text says Marie)", "Curie"),
        ("居里（等等，应该是居里夫人）", "居里"),
        ("Hmm, I think this is a physicist", ""),
        ("Physicist. The passage mentions radium too.", ""),
        ("让我再看一遍原文", ""),
        ("for x in range(9): print(x)", ""),
        ("data.load(path)", ""),
        ("total = sum([1, 2])", ""),
        ("Who's Afraid of Virginia Woolf? (film)", "Who's Afraid of Virginia Woolf? (film)"),
        ("St. Louis (Missouri)", "St. Louis (Missouri)"),
        ("R&D; Sales", "R&D; Sales"),
        ("Wait Until Dark", "Wait Until Dark"),
        ("np.dot(a, b)", "np.dot(a, b)"),
        ("chroot() system call", "chroot() system call"),
        ("File.createTempFile() in Java", "File.createTempFile() in Java"),
    ],
)
def test_thoughts_and_code_are_no_names(written: str, name: str) -> None:
    """What stands in the text is a name, whatever it looks like; anything else is cut or refused, counted, and
    in relations, too.
    """
    text = "Curie, 居里 and Bohr saw Wait Until Dark, and called np.dot(a, b)."
    collector = MentionCollector(text=text)
    entity: Record = {"name": written, "entity_type": "concept", "description": "x"}
    relation: Record = {
        "source": "Bohr",
        "target": written,
        "keywords": ["saw"],
        "description": "x",
    }
    collector.add([(1, {"type": "entity", **entity}), (2, {"type": "relationship", **relation})])
    names = {mention.name for mention in collector.entities}
    ends = {mention.target for mention in collector.relations}
    assert names == ({name} if name else set())
    assert ends == names
    assert len(collector.rejections) == (2 if name != written else 0)
