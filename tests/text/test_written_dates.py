"""Dates in the words of a text, and relative ones from the date of the text."""

import pytest

from lightrag_jsonl.text.dates import find_dates, resolved_date


def test_words_of_a_record_become_a_date() -> None:
    """Dates with words around them, and relative ones; "now" is no end."""
    assert resolved_date("since about June 2021") == "2021-06"
    assert resolved_date("last year", "2021-06") == "2020"
    assert resolved_date("去年", "2021") == "2020"
    assert resolved_date("present") == resolved_date("") == ""


@pytest.mark.parametrize(
    ("words", "iso"),
    [
        ("last March", "2021-03"),
        ("since September", "2020-09"),
        ("three years ago", "2018"),
        ("去年3月", "2020-03"),
        ("本月", "2021-06"),
        ("昨天", "2021-06-09"),
        ("今年", "2021"),
        ("yesterday", "2021-06-09"),
    ],
)
def test_relative_dates_count_from_the_date_of_the_text(words: str, iso: str) -> None:
    """Without a date of the text, they say nothing."""
    assert resolved_date(words, "2021-06-10") == iso
    assert resolved_date(words) == ""


def test_nothing_is_after_the_last_year() -> None:
    """A text of the year 9999, as people write "without end", names no month after that year."""
    assert resolved_date("next January", "9999-12-31") == ""
    assert resolved_date("until March", "9999-12-31") == ""
    assert resolved_date("next December", "9999-06") == "9999-12"


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        (
            "From May 2019 to March 2021 Ann led it.",
            [("2019-05", "2019-05"), ("2021-03", "2021-03")],
        ),
        ("In the 1930s the mill was built.", [("1930", "1939")]),
        ("自２０２１年６月起，票价为十二元。", [("2021-06", "2021-06")]),
        ("票价自２０２１．０６．０５起为１２元。", [("2021-06-05", "2021-06-05")]),
        ("建安十三年，曹操任丞相。", [("0208", "0208")]),
        ("The hall holds 1500 people.", []),
        ("这座城有2000年的历史。", []),
        ("No date here 🕰️.", []),
    ],
)
def test_dates_are_found_in_texts(text: str, dates: list[tuple[str, str]]) -> None:
    """In both languages; numbers and ages are none."""
    assert [(date.first, date.last) for date in find_dates(text)] == dates


def test_a_date_has_its_span() -> None:
    """The words can be shown where they stand, also after characters that fold to more than one."""
    text = "ﬃ 🕰️ 自２０２１年６月起，票价为十二元。"
    (date,) = find_dates(text)
    assert text[date.start : date.end] == "２０２１年６月"
