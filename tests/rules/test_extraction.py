"""Promises of the extraction without a model, English and Chinese: descriptions and neighbours."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl import Chunk, LightRAG
from lightrag_jsonl.core.options import ENTITY_TYPES
from lightrag_jsonl.rules import OfflineExtractor, name_problem
from lightrag_jsonl.rules.extraction import extract_names, text_names
from lightrag_jsonl.text.names import name_key
from tests.kit import Language, unzipped
from tests.rules.conftest import read

ENGLISH = (
    "Mr. Scrooge met the Ghost of Christmas Past. Jacob Marley was dead, said Scrooge. "
    "He worked for the Bank of England in London, on U.S. Route 61. J. R. R. Tolkien is a writer. "
    "Smith & Sons Ltd. sold C++ and AT&T. It’s the O’Brien. Scrooge’s nephew. Today Smith died today."
)
CHINESE = (
    "孔明笑曰：“玄德曰得是。”玄德曰：“诸葛亮乃当世之奇才。”夏侯惇引兵三千往荆州。"
    "曹操大怒，遂命张飞。罗贯中写了《三国演义》，由雷军在北京大学读。煤是Linux 2.0。"
)
TOGETHER = {"en": "mentioned together", "zh": "共同出现"}
MIXED = st.lists(
    st.sampled_from(
        [*ENGLISH.split(), *CHINESE.replace("。", "。 ").split(), "\n", "👻", "<p>", '"']
    ),
    max_size=30,
).map(" ".join)


def descriptions(text: str, language: Language = "en") -> dict[str, str]:
    return {one.name: one.description for one in read(text, language).entities}


def neighbours(text: str, language: Language = "en") -> set[frozenset[str]]:
    relations = read(text, language).relations
    return {frozenset((relation.source, relation.target)) for relation in relations}


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (ENGLISH, "en"),
        (CHINESE, "zh"),
        (
            "# The Kiln\n\n<b>Ada Fenn</b> runs [Kiln](https://kiln.example.com) 🏺. `Ada Fenn`",
            "en",
        ),
        ("１９３１年，林梅在上海开了茶馆（tea@house.cn）。" * 3, "en"),
    ],
)
def test_the_names_of_a_text_are_those_of_its_entities(text: str, language: Language) -> None:
    """Though all else of the sentences is left out: with markup and addresses, in either language."""
    entities = read(text, language).entities
    assert text_names(text, language) == [entity.name for entity in entities] != []


@pytest.mark.parametrize("text", ["", " \n", "...", "👻👻", "的了是", "１２", "\x00\ud800"])
def test_texts_without_names_are_empty(text: str) -> None:
    """Nothing is invented."""
    result = read(text)

    assert result.entities == () and result.relations == () and result.state == "empty"


@given(st.one_of(MIXED, st.text(max_size=80)), st.sampled_from(["en", "zh"]))
@settings(deadline=None)
def test_what_is_found_stands_in_the_text(text: str, language: Language) -> None:
    """Names occur in the text, types are the language's or unknown, and all that is said of two names is
    that they are mentioned together.
    """
    result = read(text, language)

    names = {one.name for one in result.entities}
    assert all(name_key(name) for name in names)
    assert len({name_key(name) for name in names}) == len(names)
    assert {one.type for one in result.entities} <= {*ENTITY_TYPES[language], "unknown"}
    for relation in result.relations:
        assert {relation.source, relation.target} <= names and relation.source != relation.target
        assert relation.keywords == (TOGETHER[language],) and relation.strength == 1
        assert relation.description
    pairs = [frozenset((one.source, one.target)) for one in result.relations]
    assert len(set(pairs)) == len(pairs) <= 3 * len(names)


def test_extraction_depends_on_the_text_alone() -> None:
    """Concurrent chunks, other instances and earlier texts change nothing."""
    texts = [ENGLISH, CHINESE, ENGLISH[40:], CHINESE[20:]] * 3
    chunks = [Chunk(str(at), "d", 0, 1, 0, len(text), text) for at, text in enumerate(texts)]
    extractor = OfflineExtractor("zh", "rules")

    async def read_at_once() -> list[Any]:
        return await asyncio.gather(*(extractor.extract(chunk) for chunk in chunks))

    for text, extraction in zip(texts, asyncio.run(read_at_once()), strict=True):
        alone = read(text, "zh")
        assert (extraction.entities, extraction.relations) == (alone.entities, alone.relations)


# ── what describes a name ───────────────────────────────────────────────────────


def test_sentences_that_begin_with_the_name_describe_it() -> None:
    """The most central first, at most three, none that speaks of others alone."""
    text = (
        "The mill stood by the river. People of Marsh End liked Ann Lee. Ann Lee sold flour from the mill. "
        "Ann Lee sang. Ann Lee ran the mill and sold flour. Bob Ray left."
    )
    assert descriptions(text)["Ann Lee"] == (
        "Ann Lee sold flour from the mill. Ann Lee ran the mill and sold flour. Ann Lee sang."
    )
    assert descriptions(text)["Bob Ray"] == "Bob Ray left."


def test_a_pronoun_at_the_beginning_is_explained() -> None:
    """By the only name that begins the sentence before, or by the heading; also after a time."""
    english = "Ann Lee was born in Lund. Her shop sold Orkla tea. Ann Lee was rich. In 1902 she moved to Oslo."
    assert descriptions(english)["Ann Lee"].startswith("Ann Lee was born in Lund.")
    assert descriptions(english)["Oslo"] == "In 1902 she [Ann Lee] moved to Oslo."
    assert descriptions(english)["Orkla"] == "Her [Ann Lee] shop sold Orkla tea."
    assert frozenset(("Ann Lee", "Oslo")) in neighbours(english)

    under_heading = (
        "# Ann Lee\n\nShe sailed to Bergen.\n\nShe met Bob Ray. She wrote to Cara Quill."
    )
    assert descriptions(under_heading)["Cara Quill"] == "She [Ann Lee] wrote to Cara Quill."

    chinese = "林若兰生于苏州。她后来搬到杭州。１９３１年她在上海开店。"
    found = descriptions(chinese, "zh")
    assert found["杭州"] == "她（林若兰）后来搬到杭州。"
    assert found["上海"] == "１９３１年她（林若兰）在上海开店。"


@pytest.mark.parametrize(
    "text",
    [
        "Ann Lee met Bob Ray. She moved to Oslo.",
        "Ann Lee and Bob Ray sang. He moved to Oslo.",
        "Ann Lee sang.\n\nShe moved to Oslo.",
        "Nobody came. She moved to Oslo.",
        "Ann Lee sang. They moved to Oslo.",
        "Ann Lee sang. This pleased Oslo.",
        "Mr. Lee sang. It was late that day when Oslo slept.",
        "Marsh College opened. He moved to Oslo.",
        "# Ann Lee\n\nBob Ray sang with Cara Quill. He moved to Oslo.",
        "Ann Lee sang. When she left, she moved to Oslo.",
        "Lee’s theorem is deep. It was found in Oslo.",
        "Harvard students sang. It moved to Oslo.",
        "Marsh College opened. It was also noted that Oslo slept.",
        "Marsh College opened. It took Oslo ten years to pay.",
        "# Yearly Report\n\nHer mother lived in Oslo.",
        "# Ann Lee\n\nBob Ray sang.\n\nShe moved to Oslo.",
    ],
)
def test_a_sentence_whose_pronoun_may_mean_others_describes_nobody(text: str) -> None:
    """Its names stay names, but nothing is said of them, and nobody is said to be their neighbour."""
    assert descriptions(text)["Oslo"] == ""
    assert not any("Oslo" in pair for pair in neighbours(text))


@pytest.mark.parametrize(
    "sentence",
    [
        "It was founded to teach farmers in Oslo.",
        "It is the only school that teaches in Oslo.",
        "It took over a shop in Oslo.",
        "It takes its name from Oslo.",
        "It appeared in Oslo in 1920.",
        "It was closed when Oslo burned.",
    ],
)
def test_it_means_the_thing_before_where_it_does_something(sentence: str) -> None:
    """Only "it" of nothing ("it was noted that") has no subject."""
    assert "[Marsh College]" in descriptions(f"Marsh College opened. {sentence}")["Oslo"]


async def test_a_title_stands_at_the_beginning_of_a_document() -> None:
    """The first line of a later chunk is none, and nobody lives under it."""
    text = "Later Years\n\nHe rowed to Vessby and built ferries."
    extractor = OfflineExtractor("en", "rules")
    first, second = [
        await extractor.extract(Chunk("c", "d", index, 1, 0, len(text), text)) for index in (0, 1)
    ]
    assert {entity.name for entity in first.entities} == {"Later Years", "Vessby"}
    assert [(entity.name, entity.description) for entity in second.entities] == [("Vessby", "")]


def test_a_life_stays_with_its_own_name() -> None:
    """In a text on two people, neither is told the other's life."""
    text = (
        "# Ann Lee\n\nAnn Lee was a potter. She taught Bob Ray at Lund.\n\n"
        "# Bob Ray\n\nBob Ray was a smith. He died in Oslo."
    )
    found = descriptions(text)
    assert "Oslo" not in found["Ann Lee"]
    assert found["Bob Ray"].startswith("Bob Ray was a smith. He [Bob Ray] died in Oslo.")


def test_it_at_the_beginning_of_a_further_paragraph_means_nothing_certain() -> None:
    """ "It was agreed" in minutes is not about their heading; below the heading itself, "it" is."""
    minutes = "# Orle Council\n\nIt meets in Brevik.\n\nIt was agreed that Ann Lee signs.\n\n- It was cold.\n"
    assert descriptions(minutes)["Orle Council"] == "It [Orle Council] meets in Brevik."
    assert not descriptions(minutes)["Ann Lee"]


def test_what_is_said_of_others_does_not_describe_the_heading() -> None:
    """Under a heading, a sentence is about it only if no other name was the subject before."""
    text = (
        "# Orla Tamsin\n\nA potter who lived by the sea.\n\n"
        "Ilona Varga was a painter. All pictures were sold at once. Nobody knows where."
    )
    assert descriptions(text)["Orla Tamsin"] == "A potter who lived by the sea."


def test_a_form_of_the_heading_makes_no_second_pair() -> None:
    """A sentence with a part of the heading's name has each pair once."""
    relations = read("# Orla Tamsin\n\nTamsin lived in Leeds.").relations
    assert [(pair.source, pair.target) for pair in relations] == [("Tamsin", "Leeds")]


def test_a_heading_describes_nothing() -> None:
    """It repeats a name; only what stands nowhere else is described by it."""
    text = (
        "# Cavendish Laboratory\n\nThe Cavendish Laboratory opened in Cambridge.\n\n## Niels Bohr"
    )
    described = descriptions(text)

    assert described["Cavendish Laboratory"] == "The Cavendish Laboratory opened in Cambridge."
    assert described["Niels Bohr"] == "Niels Bohr"


def test_a_question_describes_a_name_only_where_there_is_nothing_else() -> None:
    """In either language."""
    assert (
        descriptions("Who was Ann Lee? Ann Lee kept the mill.")["Ann Lee"]
        == "Ann Lee kept the mill."
    )
    assert descriptions("何敏为何来？何敏看守石桥镇。", "zh")["何敏"] == "何敏看守石桥镇。"
    assert descriptions("Who was Ann Lee?")["Ann Lee"] == "Who was Ann Lee?"


@pytest.mark.parametrize(
    ("text", "description"),
    [
        (
            "1. Ann Lee kept the [mill](https://mill.example).\n2. It was old.",
            "Ann Lee kept the mill.",
        ),
        ("- [ ] Ann Lee keeps the mill\n- [x] The mill is old", "[ ] Ann Lee keeps the mill"),
        ("* Ann Lee\n* [Ann Lee](a.md) [Max Roe](b.md)\n* Ann Lee ran it.", "Ann Lee ran it."),
        (
            "Keeper: Ann Lee\n\nKeeper: Ann Lee\n\nAnn Lee, at the mill",
            "Ann Lee, at the mill; Keeper: Ann Lee",
        ),
        ("See [the mill of Ann Lee][1].", "See the mill of Ann Lee."),
    ],
)
def test_a_description_is_clean(text: str, description: str) -> None:
    """Without marks of lists and links, and nothing twice; a name alone, or a link alone, says nothing. A box
    stays: what is to be done is not so yet.
    """
    assert descriptions(text)["Ann Lee"] == description


TABLE = """The club of Ann Lee met.

| Name | Office | Town |
|:-----|--------|------|
| Bob Orne | **Clerk** | Brevik |
| Ada Fenn |  | Brevik |

| Max Roe | Keeper |
"""


def test_a_row_of_a_table_is_quoted_with_the_columns() -> None:
    """Or not at all; the header describes nothing."""
    found = descriptions(TABLE)
    assert found["Bob Orne"] == "Name: Bob Orne; Office: Clerk; Town: Brevik"
    assert found["Ada Fenn"] == "Name: Ada Fenn; Town: Brevik"
    assert found["Max Roe"] == ""
    assert found.get("Town", "") == ""
    relations = read(TABLE).relations
    assert not [one for one in relations if {"Name", "Office", "Town"} & {one.source, one.target}]
    assert all("|" not in one.description for one in relations)


async def test_a_table_goes_on_in_the_next_chunk() -> None:
    """The heading of a chunk ends with the header of the table in which it begins."""
    rows = "| Bob Orne | Clerk |\n| Ada Fenn | Keeper |"
    chunk = Chunk("c", "d", 1, 1, 0, len(rows), rows, heading="Club › Name | Office")
    extraction = await OfflineExtractor("en", "rules").extract(chunk)
    assert {one.name: one.description for one in extraction.entities} == {
        "Bob Orne": "Name: Bob Orne; Office: Clerk",
        "Ada Fenn": "Name: Ada Fenn; Office: Keeper",
    }


def test_a_description_holds_the_name() -> None:
    """Also of a name far back in a long sentence, and both names of a pair; of names too far apart nothing
    is said.
    """
    filler = ", ".join(["and the long road went over hills and through dark woods"] * 6)
    text = f"Ann Lee walked to the mill, {filler}, until Bob Carter met Cara Quill at the bridge."
    extraction = read(text)
    for entity in extraction.entities:
        assert entity.name in entity.description
    pairs = {(relation.source, relation.target): relation for relation in extraction.relations}
    assert ("Ann Lee", "Cara Quill") not in pairs and ("Cara Quill", "Ann Lee") not in pairs
    (relation,) = [relation for ends, relation in pairs.items() if "Cara Quill" in ends]
    assert relation.description == "…until Bob Carter met Cara Quill at the bridge."


# ── neighbours ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "language", "pair"),
    [
        ("Vera Lind founded Northwind.", "en", ("Vera Lind", "Northwind")),
        ("Vera Lind never joined Northwind.", "en", ("Vera Lind", "Northwind")),
        ("沈若兰毕业于复旦大学。", "zh", ("沈若兰", "复旦大学")),
    ],
)
def test_names_of_a_sentence_are_mentioned_together(
    text: str, language: Language, pair: tuple[str, str]
) -> None:
    """Whatever the sentence states or denies: no predicate is read."""
    (relation,) = read(text, language).relations
    assert {relation.source, relation.target} == {*pair}
    assert relation.keywords == (TOGETHER[language],)
    assert relation.description == text


def test_names_of_different_sentences_are_no_neighbours() -> None:
    """But the name that is the heading belongs to each sentence below it, which is then quoted with it."""
    assert (
        neighbours("We sat. Ann Lee sings. The concert in Paris was long. Max Roe left.") == set()
    )
    (relation,) = read("# Ann Lee\n\nThe concert in Paris was long.").relations
    assert {relation.source, relation.target} == {"Ann Lee", "Paris"}
    assert relation.description == "Ann Lee: The concert in Paris was long."


def test_traditional_chinese_is_read_like_simplified_and_quoted_as_written() -> None:
    """The names of a text in traditional characters are those of its simplified twin."""
    simple = "关羽追随刘备。１２年后，关羽在许昌见到曹操，张飞投奔荆州。👻"
    written = "關羽追隨劉備。１２年後，關羽在許昌見到曹操，張飛投奔荊州。👻"
    one, other = (read(text, "zh") for text in (simple, written))

    names = [entity.name for entity in other.entities]
    places = [(written.index(name), name) for name in names]
    assert {"關羽", "張飛", "劉備", "許昌", "曹操"} <= {*names}
    assert [simple[at : at + len(name)] for at, name in places] == [e.name for e in one.entities]
    assert all(entity.description in written for entity in other.entities if entity.description)
    assert len(other.relations) == len(one.relations) > 0


@pytest.mark.slow
def test_names_of_a_chinese_novel(shared_data: Path) -> None:
    """In 三国演义 the heroes are named most."""
    text = unzipped(shared_data / "text" / "sanguo_yanyi.txt.gz")
    mentions: Counter[str] = Counter()
    for at in range(0, len(text), 6000):
        piece = text[at : at + 1200]
        mentions.update({name: piece.count(name) for name in text_names(piece, "zh")})

    assert {"孔明", "曹操", "张飞"} <= {name for name, _ in mentions.most_common(15)}


# ── names from elsewhere ────────────────────────────────────────────────────────


def test_names_from_elsewhere_join_those_found() -> None:
    """In all spellings of capitals, spaces and characters, as the text writes them; where they overlap, the
    longer of two such names counts, and any of them more than a name that is found.
    """
    text = "The old mill of Ann\nLee stands at Marsh End. Lee’s Bridge is near. Bob Carter came."
    names = ["Ann Lee", "marsh end", "Lee's Bridge", "Lee", "Annab", "the old mill", "Bob"]
    extraction = extract_names(text, names, "en")
    assert {entity.name for entity in extraction.entities} == {
        *("Ann Lee", "Marsh End", "Lee’s Bridge", "old mill", "Bob")
    }
    assert extract_names(text, [], "en").entities == read(text).entities
    chinese = extract_names(
        "臺灣大學在臺北，用Kafka通信。１２号楼很高。🙂", ["台湾大学", "Kafka"], "zh"
    )
    assert [entity.name for entity in chinese.entities] == ["臺灣大學", "臺北", "Kafka"]


@pytest.mark.parametrize(
    ("text", "name", "is_name"),
    [
        ("She read Of Mice and Men twice.", "Of Mice and Men", True),
        ("It was led by the hand of Ann Lee.", "the hand of Ann Lee", True),
        ("In 1902 Ann Lee came.", "In 1902", False),
        ("He spoke of Ann Lee.", "of Ann Lee", False),
        ("He came under the rule of Ann Lee.", "under the rule of Ann Lee", False),
        ("The E.U. met.", "E.U.", True),
        ("北京大学在北京。", "北京大学", True),
        ("司马懿大怒，北征匈奴。", "司马懿大怒", False),
        ("他们在帐上帐下听令。", "帐上帐下", False),
        ("他写下《两都赋》。", "两都赋", True),
        ("他的妹妹进了监狱。", "监狱", False),
        ("监狱在城外，监狱很大。", "监狱", True),
        ("守兵万人来了。", "守兵万人", False),
        ("第二次世界大战结束了。", "第二次世界大战", True),
    ],
)
def test_clauses_are_told_from_names(text: str, name: str, is_name: bool) -> None:
    """A word of grammar begins a title only; Chinese names hold no verb and no number of people."""
    assert (name_problem(name, text) == "") == is_name


def test_neighbours_are_stored_and_state_nothing(tmp_path: Path) -> None:
    """In an index, too: a pair of names has a weight and sentences, and no predicate."""
    with LightRAG(tmp_path, llm="none", embedder="hash") as rag:
        rag.insert("Vera Lind joined Nord Line. 👻")
        for number in range(3):
            rag.insert(f"At Nord Line in year {number} people liked Vera Lind.")
        (relation,) = rag.entities.relations(search="Vera Lind")

    assert relation.keywords == ("mentioned together",) and relation.weight == 4
