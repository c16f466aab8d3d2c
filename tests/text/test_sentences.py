"""What a sentence is where lines are long."""

import pytest

from lightrag_jsonl.text.markup import without_markup
from lightrag_jsonl.text.sentences import beginning_of_words, sentence_spans


def test_a_long_line_goes_on_in_a_line_of_another_length() -> None:
    """Lines of a page in columns or of justified text have all lengths; a small letter goes on with the
    sentence, and a capital letter after a long line begins a paragraph.
    """
    first = (
        "The survey of the estuary was led by Ines Calder, who had mapped the two northern channels "
        * 2
    )
    text = f"{first}with Sonde, an open-source\ntool for depths. {'It was slow. ' * 3}"
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    assert sentences[0].endswith("an open-source\ntool for depths.")
    parts = f"{first * 2}with Sonde\nTools for depths were rare."
    assert len(sentence_spans(parts)) == 2


def test_the_number_of_a_heading_ends_no_sentence() -> None:
    """Behind marks of Markdown and behind the word for a part; a number at the end of a sentence does."""
    for line in ("#### 1. Lamps", "## Section 22. Lamps", "Article 4. Lamps", "> 3. 灯塔 lamps"):
        assert [line[start:end] for start, end in sentence_spans(line)] == [line]
    assert len(sentence_spans("He was 22. Lamps burned.")) == 2


def test_quoted_lines_are_apart_from_what_is_said_to_them() -> None:
    """In mails and in Markdown, at every depth; the lines of one quotation go on."""
    text = "Dora wrote:\n> The lamp is\n> out again.\n>> Oil!\nBuy some."
    assert [text[start:end] for start, end in sentence_spans(text)] == [
        "Dora wrote:",
        "> The lamp is\n> out again.",
        ">> Oil!",
        "Buy some.",
    ]


@pytest.mark.parametrize(
    "bullet", ["• ", "○ ", "■ ", "➢ ", "✓ ", "⬥ ", "・", "\uf0d8", "\uf0b7 ", "- ", "· "]
)
def test_a_line_with_a_bullet_begins_a_sentence(bullet: str) -> None:
    """Whatever the bullet is; points go on in lines without one, and in a word no mark is a bullet."""
    lines = (
        f"The lamp has three parts\n{bullet}a lens that turns with the\n  clockwork\n{bullet}a wick"
    )
    assert [lines[start:end] for start, end in sentence_spans(lines)] == [
        "The lamp has three parts",
        f"{bullet}a lens that turns with the\n  clockwork",
        f"{bullet}a wick",
    ]
    point = f"{bullet}lamps of the coast"
    assert point[beginning_of_words(point, 0, len(point)) :] == "lamps of the coast"


@pytest.mark.parametrize(
    "sentence",
    [
        "许闻达在《谁动了灯塔？》一书中写了渡口。",
        "许闻达读过《灯塔在哪里？》。",
        "馆方发布了[“新馆开放，欢迎来访！”](https://example.org/a/b)的通知。",
        "信中写道“请说明原因。”，馆方没有答复。",
    ],
)
def test_a_stop_inside_a_title_a_link_or_a_quotation_that_goes_on_ends_nothing(
    sentence: str,
) -> None:
    """What follows says that the sentence goes on."""
    text = f"{sentence}第二句。"
    assert [text[start:end] for start, end in sentence_spans(text)] == [sentence, "第二句。"]


def test_every_initial_belongs_to_a_name() -> None:
    """P. too, which also stands for a page."""
    text = "We met P. S. Odum. See p. 5 of it."
    assert [text[start:end] for start, end in sentence_spans(text)] == [
        "We met P. S. Odum.",
        "See p. 5 of it.",
    ]


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("  - [x] Add it", "Add it"),
        ("> > **2) Add it**", "Add it**"),
        ("## 2.3 Add it", "Add it"),
        ("1.添加", "添加"),
        ("（三）添加", "添加"),
        ("① 添加", "添加"),
        ("2.3 million", "2.3 million"),
        ("(s)he came", "(s)he came"),
        ("A. Smith came", "A. Smith came"),
        ("3)", "3)"),
    ],
)
def test_the_words_of_a_sentence_begin_behind_its_marks(sentence: str, words: str) -> None:
    """Also behind several; what is said, and a mark without words, is none."""
    assert sentence[beginning_of_words(sentence, 0, len(sentence)) :] == words


@pytest.mark.parametrize(
    "sentence",
    [
        "It is not true that Wren Pte. Ltd. Board members approved the loan.",
        "Nobody but Wren Corp. Legal knew the code.",
        "Never call Tom Baker Jr. Lucy Baker does that.",
        "They sell no apples, pears, etc. Shops do.",
        "It is wrong that Cllr. Mary Hall left.",
        "It is not true that J. A. Odum bought the mill of I. I. Wren.",
    ],
)
def test_an_abbreviation_before_a_capital_ends_no_sentence(sentence: str) -> None:
    """What is behind it, quoted alone, might say the contrary."""
    assert sentence_spans(sentence) == [(0, len(sentence))]


@pytest.mark.parametrize(
    "text",
    [
        "He works at Wren Inc.| The firm grew.",
        "It was in Jan.| Then it rained.",
        "No.| Paul stayed.",
    ],
)
def test_a_sentence_may_end_with_an_abbreviation(text: str) -> None:
    """Before a word that opens sentences; and after a word that looks like an abbreviation."""
    first, second = text.split("|")
    spans = sentence_spans(first + second)
    assert spans[0] == (0, len(first))


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("The lamp was *not*<br>lit by the keeper.", 1),
        ("The lamp is\n<em>not</em>\nlit by the keeper.", 1),
        ("灯塔没有<br>点亮。", 1),
        ("出席：林梅、陈岩<br>\n缺席：周海<br>", 2),
    ],
)
def test_markup_at_the_end_of_a_line_neither_cuts_nor_joins(text: str, sentences: int) -> None:
    """It is blanks, so a wrapped line goes on behind it, and a line of Chinese text ends before it."""
    assert len(sentence_spans(without_markup(text))) == sentences
