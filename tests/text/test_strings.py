"""Promises of the text functions: ids, names, sentences, and terms."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from opencc import OpenCC

from lightrag_jsonl.text.cjk import is_cjk, is_lone, simplified, with_simple_characters
from lightrag_jsonl.text.names import clean_name, folded_text, name_key
from lightrag_jsonl.text.sentences import first_words, sentence_spans
from lightrag_jsonl.text.strings import clipped_at_word, counted, digest
from lightrag_jsonl.text.terms import search_terms, stem

ANY = st.text(alphabet=st.characters(exclude_categories=()), max_size=60)
PROSE = st.text(alphabet="aB1 .!?\n。！？”“\"'’…《》<p>玄德Mr\f", max_size=80)


@given(st.lists(ANY, max_size=4), st.lists(ANY, max_size=4))
def test_digest_distinguishes_lists_of_parts(left: list[str], right: list[str]) -> None:
    """Only equal lists of parts share a digest: where one part ends is part of it. It never changes,
    since ids are stored.
    """
    assert (digest(*left) == digest(*right)) == (left == right)
    assert digest("中文", "１２") == "f6664704c2d8918a"


@pytest.mark.parametrize(
    "spellings",
    [
        ["Apple Inc.", "apple inc", "APPLE INC.", " “Apple\u3000Inc.” ", "Ａｐｐｌｅ Ｉｎｃ．"],
        ["曹操", "「曹操」", "《曹操》", "曹操。"],
        ["关羽１２", "關羽12"],
        ["乾隆年间的台湾", "乾隆年間的臺灣"],
        ["Marley’s Ghost", "Marley's Ghost"],
        ["列夫·托尔斯泰", "列夫•托尔斯泰", "列夫・托尔斯泰"],
        ["👻 ghost", "👻  Ghost!"],
    ],
)
def test_spellings_of_one_name_share_a_key(spellings: list[str]) -> None:
    """Case, width, quotes, outer punctuation and traditional characters do not make another name."""
    assert len({name_key(spelling) for spelling in spellings}) == 1
    for spelling in spellings:
        assert name_key(spelling) in folded_text(f"({spelling}) was there. 在这里。")


def test_names_that_differ_keep_different_keys() -> None:
    """What carries meaning at the end or the beginning of a name is not stripped."""
    names = ["C", "C++", "C#", "3.14", "314", "Lilu", "Lilu (mythology)", "!!!", "?", "5%", "5"]
    signed = [".NET", "Net", "A*", "A", "A-", "A+", "RRT*", "RRT", "-40 °C", "40 °C", ".5", "中*"]
    names += signed

    assert len({name_key(name) for name in names}) == len(names)
    for name in signed:
        assert name_key(name_key(name)) == name_key(f"“{name}”") == name_key(name)


@pytest.mark.parametrize(
    "spelling", ["Galen", "Galen*", "*Galen*", "__Galen__", "...Galen", "- Galen-"]
)
def test_marks_of_notes_and_of_markdown_make_no_other_name(spelling: str) -> None:
    """The star of a footnote, emphasis, an ellipsis and dashes of lists are not parts of a name."""
    assert name_key(spelling) == "galen"


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ('"Scrooge"', "Scrooge"),
        ("“Scrooge", "Scrooge"),
        ("《三国演义》", "三国演义"),
        ("《战国》系列", "《战国》系列"),
        ("AT&amp;T", "AT&T"),
        ("<b>Bob</b>\tCratchit\n", "Bob Cratchit"),
        ("１２　ＡＢＣ", "12 ABC"),
        ('12"', '12"'),
        ('"A" and "B"', '"A" and "B"'),
        ("HashMap<K,V>", "HashMap<K,V>"),
        ("&lt;T&gt;", "<T>"),
        ("<person>Alice</person>", "Alice"),
        ('<a href="x">Bob</a><br/>', "Bob"),
        ("\ufeff孔\u200b明\x07", "孔明"),
        ("👩‍👧 family", "👩‍👧 family"),
        ('""', ""),
    ],
)
def test_clean_name_drops_wrapping_and_keeps_the_name(raw: str, clean: str) -> None:
    """Markup, wrapping quotes and control characters go; the name's own characters stay."""
    assert clean_name(raw) == clean


@given(st.one_of(ANY, PROSE))
def test_sentences_cover_the_text_in_order(text: str) -> None:
    """Spans are ordered, trimmed, disjoint; only white space lies outside of them."""
    end = 0
    for left, right in sentence_spans(text):
        assert left < right and text[left:right] == text[left:right].strip()
        assert not text[end:left].strip()
        end = right
    assert not text[end:].strip()


WIDE_LINE = "Nils" + " rowed past" * 12  # 136 columns
CHINESE_LINE = "老周在河边修了三十年的船，手艺传给了儿子和两个徒弟"  # 50 columns


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Mr. Scrooge saw it, e.g. the door. It was 3.14 at 5 p.m. The end!",
            ["Mr. Scrooge saw it, e.g. the door.", "It was 3.14 at 5 p.m.", "The end!"],
        ),
        (
            "It was 32 km/h. So says J. Roe. It ran 5 m. Roe v. Doe won. It is 30 °C. Boats left.",
            [
                "It was 32 km/h.",
                "So says J. Roe.",
                "It ran 5 m.",
                "Roe v. Doe won.",
                "It is 30 °C.",
                "Boats left.",
            ],
        ),
        ('"How now?" said Scrooge. "Who?"', ['"How now?" said Scrooge.', '"Who?"']),
        ("J. K. Rowling came. See No. 5.", ["J. K. Rowling came.", "See No. 5."]),
        ("Apple Inc. The U.S. Army left.", ["Apple Inc.", "The U.S. Army left."]),
        ("A title\n\nText that\nwraps. Ｙes.", ["A title", "Text that\nwraps.", "Ｙes."]),
        ("1. First\n2. Second", ["1. First", "2. Second"]),
        ("# Notes\nA\ntext.\n## On\n_It_", ["# Notes", "A\ntext.", "## On", "_It_"]),
        ("See\n#1 and\nC# by\nhand.", ["See\n#1 and\nC# by\nhand."]),
        ("玄德曰：“汝是何人？”操大笑。", ["玄德曰：“汝是何人？”", "操大笑。"]),
        ('他说："你好。我很好。"走了……又来', ['他说："你好。', '我很好。"', "走了……又来"]),
        ("第一回 标题\n正文。</p><p>下一", ["第一回 标题", "正文。</p><p>", "下一"]),
        ("Seattle\nIt" + " rains" * 20 + ".", ["Seattle", "It" + " rains" * 20 + "."]),
        ("Born in 1867.[1] She left.[2][3] G.", ["Born in 1867.[1]", "She left.[2][3]", "G."]),
        ("By 1898.[1] or so. See a.[0]b.", ["By 1898.[1] or so.", "See a.[0]b."]),
        ("发现了镭。[1]生于华沙。【２，3】后来", ["发现了镭。[1]", "生于华沙。【２，3】", "后来"]),
        ("He left.<sup>[1]</sup> She too.", ["He left.<sup>[1]</sup>", "She too."]),
        ("见下。[链接](https://a.org)", ["见下。", "[链接](https://a.org)"]),
        ("皮埃尔．居里去世。", ["皮埃尔．居里去世。"]),
        ("重３．５克．他笑了．“好．”完", ["重３．５克．", "他笑了．", "“好．”", "完"]),
        (f"{WIDE_LINE} the\nLee yard lay. Boats.", [f"{WIDE_LINE} the\nLee yard lay.", "Boats."]),
        (f"A list of all\n{WIDE_LINE}.", ["A list of all", f"{WIDE_LINE}."]),
        (f"{WIDE_LINE}{WIDE_LINE}\nLee lay.", [f"{WIDE_LINE}{WIDE_LINE}", "Lee lay."]),
        (f"{CHINESE_LINE}，\n他卖船。", [f"{CHINESE_LINE}，\n他卖船。"]),
        (f"{CHINESE_LINE}又\n卖船，走了。", [f"{CHINESE_LINE}又\n卖船，走了。"]),
        (f"{CHINESE_LINE}又\n三月五日", [f"{CHINESE_LINE}又", "三月五日"]),
        (f"{CHINESE_LINE}又\n- 卖船，走了。", [f"{CHINESE_LINE}又", "- 卖船，走了。"]),
        ("床前明月光，\n疑是地上霜。", ["床前明月光，", "疑是地上霜。"]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, expected: list[str]) -> None:
    """Abbreviations, numbers and quotes do not cut a sentence in two; its notes go with it."""
    assert [text[start:end] for start, end in sentence_spans(text)] == expected


@pytest.mark.slow
def test_a_long_text_of_stops_is_read_in_linear_time() -> None:
    """Hostile runs of stops, quotes, spaces and line breaks do not stall the reader."""
    for piece in (". ", "\n", "。", '"', "<a", "((", "' ", ".[1", "。[1]", "．", "中．"):
        assert sentence_spans("a" + piece * 100_000)


@pytest.mark.parametrize(
    "forms",
    [
        "marry married marries marrying",
        "bake bakes baked baking",
        "stop stops stopped stopping",
        "fill filled fills filling",
        "pass passes passed passing",
        "discover discovers discovered discovery",
        "city cities",
        "movie movies",
        "box boxes",
        "study studied studies",
    ],
)
def test_forms_of_english_words_share_a_stem(forms: str) -> None:
    """Plurals, past tenses and gerunds of regular verbs and nouns."""
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    "words", ["mary mars marie", "census cens", "string strive", "gas gass", "bus buy"]
)
def test_other_words_have_other_stems(words: str) -> None:
    """Names, and words that only look like plurals or gerunds."""
    assert len({stem(word) for word in words.split()}) == len(words.split())


def test_search_terms_of_mixed_scripts() -> None:
    """Words where spaces are written, bigrams where they are not, width and case folded."""
    assert search_terms("Scrooge’s O'Brien １２ ω-force开发 我 हिन्दी 👻 café_CAFÉ") == [
        *("scrooge", "obrien", "12", "ω", "force", "开发", "我", "हिन्दी", "café", "café")
    ]
    assert search_terms("三国演义") == search_terms("三國演義") == ["三国", "国演", "演义"]


@example("㐀\ud800")
@given(st.one_of(ANY, st.text(st.characters(min_codepoint=0x3400, max_codepoint=0x9FFF))))
def test_simplified_texts_keep_their_length(text: str) -> None:
    """Each traditional character becomes one other, so that offsets stay right; in words as known."""
    assert len(simplified(text)) == len(text)
    assert simplified("乾隆時，衣服乾燥。👻 Ｇhost １２") == "乾隆时，衣服干燥。👻 Ｇhost １２"


@pytest.mark.slow  # asks OpenCC for 102,000 characters
def test_each_traditional_character_is_replaced_as_by_opencc() -> None:
    """The table in the package is the one of OpenCC."""
    codes = (*range(0x3400, 0xA000), *range(0x20000, 0x32000))
    characters = "\n".join(map(chr, codes))
    assert with_simple_characters(characters) == OpenCC("t2s").convert(characters)


@given(st.one_of(ANY, st.text("镭x和钋。 １あ한", max_size=20)))
def test_each_cjk_character_begins_an_index_term(text: str) -> None:
    """So a single character is found wherever it stands; all search terms are index terms, before those of
    numbered parts.
    """
    terms = search_terms(text, endings=True)

    longer_terms = [term for term in search_terms(text) if not is_lone(term)]
    assert [term for term in terms if not is_lone(term)][: len(longer_terms)] == longer_terms
    beginnings = {term[0] for term in terms}
    assert all(char in beginnings for term in terms for char in term if is_cjk(char))


def test_first_words_are_cut_between_words() -> None:
    """Where there are some, or after a sentence; a mark of Markdown before them is left out."""
    assert first_words("# Ann Lee\n\nShe wrote books.", 12) == "Ann Lee"
    assert first_words("Dr. Lee wrote. He slept.", 12) == "Dr. Lee…"
    assert first_words("居里夫人发现了钋和镭。", 4) == "居里夫人…"
    assert [first_words(text, 9) for text in ("", "短文。", "👻" * 10)] == [
        "",
        "短文",
        "👻" * 9 + "…",
    ]


@pytest.mark.parametrize(
    ("text", "limit", "line"),
    [
        ("Ann Lee sings", 8, "Ann Lee…"),
        ("Ann Lee\nsings", 10, "Ann Lee…"),
        ("Ann Lee sings", 13, "Ann Lee sings"),
        ("Ann Lee, sings", 7, "Ann Lee…"),
        ("沈若兰住在临川👻", 5, "沈若兰住在…"),
        ("x" * 40, 30, "x" * 30 + "…"),
        ("老周修船，\n1935年\n卖了\n船", 30, "老周修船，1935年卖了船"),
        ("배를 팔고\n떠났다", 30, "배를 팔고 떠났다"),
    ],
)
def test_a_quote_is_cut_between_words(text: str, limit: int, line: str) -> None:
    """Text without spaces, and a very long word, are cut at the limit."""
    assert clipped_at_word(text, limit) == line


@pytest.mark.parametrize(
    ("number", "nouns", "words"),
    [
        (1, "entities", "1 entity"),
        (1, "new chunks", "1 new chunk"),
        (0, "relations", "0 relations"),
        (2_000, "entities", "2,000 entities"),
    ],
)
def test_a_counted_noun_has_the_number_of_its_count(number: int, nouns: str, words: str) -> None:
    """One is singular; none and many are plural."""
    assert counted(number, nouns) == words
