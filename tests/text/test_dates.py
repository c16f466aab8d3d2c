"""Dates as people write them, and their order in time."""

import pytest

from lightrag_jsonl import ConfigError
from lightrag_jsonl.core.options import checked_date
from lightrag_jsonl.text.dates import (
    day_in_name,
    days_later,
    first_day,
    iso_date,
    last_day,
    may_hold,
    months_later,
)


@pytest.mark.parametrize(
    ("written", "iso"),
    [
        ("2021", "2021"),
        ("2021-6", "2021-06"),
        ("2021-06-15T10:00:00Z", "2021-06-15"),
        ("20210615", "2021-06-15"),
        ("June 2021", "2021-06"),
        ("Sept. 2021", "2021-09"),
        ("6th of June, 2021", "2021-06-06"),
        ("June 6, 2021", "2021-06-06"),
        ("15. Juni 2021", ""),
        ("15. June 2021", "2021-06-15"),
        ("Tue, 15 Jun 2021 10:00:00 +0800", "2021-06-15"),
        ("Tuesday, June 15, 2021 at 9:30 PM", "2021-06-15"),
        ("AD 208", "0208"),
        ("2021年6月", "2021-06"),
        ("２０２１年６月５日", "2021-06-05"),
        ("２０２１－０６－１５", "2021-06-15"),
        ("２０２１／６／１５　９：３０", "2021-06-15"),
        ("二〇二一年十二月三十一日", "2021-12-31"),
        ("光绪三年", "1877"),
        ("貞觀元年", "0627"),
        ("民国二十六年七月", "1937"),
        ("公元208年", "0208"),
    ],
)
def test_what_people_write_is_read(written: str, iso: str) -> None:
    """English and Chinese dates, with full-width digits, words and names of eras, have one form."""
    assert iso_date(written) == iso


@pytest.mark.parametrize(
    "text", ["", "soon", "2021-13", "30 February 2021", "Marchenko 2021", "十三年", "📅", "12 June"]
)
def test_what_is_no_date_is_none(text: str) -> None:
    """A text without a year, or with a day that does not exist, is no date; a setting with one is refused."""
    assert iso_date(text) == ""
    with pytest.raises(ConfigError, match="as_of must be a date such as 2021"):
        checked_date(text, "as_of")


def test_dates_are_compared_as_stretches_of_days() -> None:
    """A month lies within its year, a leap day at the end of February."""
    assert first_day("2020") <= first_day("2020-02") <= last_day("2020-02") <= last_day("2020")
    assert last_day("2020-02") == first_day("2020-02-29") == first_day("2020-03") - 1


def test_dates_are_counted_with_their_precision() -> None:
    """A month before a month is a month."""
    assert months_later("2021-01-15", -1) == "2020-12"
    assert months_later("2021", -12, parts=1) == "2020"
    assert days_later("2021-01-01", -1) == "2020-12-31"


def test_a_moment_may_lie_between_two_dates() -> None:
    """What is open may hold; a moment may be a year, a month or a day."""
    assert may_hold("", "2020-03", "2020")
    assert not may_hold("", "2020-03", "2020-04-01")
    assert not may_hold("2021", "", "2020-12")
    assert may_hold("", "", "1066")


def test_a_name_may_be_a_day() -> None:
    """As daily notes are named, perhaps with further words; a year or a number alone is none."""
    for name in (
        "2026-11-03",
        "2026-11-03 Standup",
        "20261103",
        "2026_11_03",
        "2026年11月3日",
        "3 November 2026",
    ):
        assert day_in_name(name) == "2026-11-03"
    for name in ("1984", "2026-11", "Apollo 11", "说明 🗓️", ""):
        assert day_in_name(name) == ""


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("25/12/1902", "1902-12-25"),
        ("12/25/1902", "1902-12-25"),
        ("7.3.1902", "1902-03-07"),
        ("04-04-1902", "1902-04-04"),
        ("２５/１２/1902", "1902-12-25"),
        ("25/12/1902 19:30", "1902-12-25"),
        ("05/06/1902", "1902"),
        ("31/02/1902", ""),
    ],
)
def test_dates_with_the_year_last(text: str, iso: str) -> None:
    """Where day and month cannot be told, the year is what is known."""
    assert iso_date(text) == iso


def test_a_setting_needs_a_date_that_can_be_told() -> None:
    """Nobody gets another month than was meant."""
    with pytest.raises(ConfigError, match="must be a date"):
        checked_date("05/06/1902", "as_of")
    assert checked_date("25/06/1902", "as_of") == "1902-06-25"
