"""From when and until when statements hold, read from their words."""

import pytest

from lightrag_jsonl.core.time_expressions import (
    claim_dates,
    find_time_expressions,
    holds_at,
    resolved_date,
)


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("Since 1931 Mei Lin has kept the lighthouse.", ("1931", "")),
        ("From May 2019 to March 2021 Ann led it.", ("2019-05", "2021-03")),
        ("It was at war between 1937 and 1945.", ("1937", "1945")),
        ("The contract ran 2015–2018.", ("2015", "2018")),
        ("The pass is valid until 31 December 2021.", ("", "2021-12-31")),
        ("Before 2020 another rule held.", ("", "2019")),
        ("From 2019 to the present she has been mayor.", ("2019", "")),
        ("During 2020 the bridge was closed.", ("2020", "2020")),
        ("In the 1930s the mill was built.", ("1930", "")),
        ("1937年至1945年，他任校长。", ("1937", "1945")),
        ("2021年3月至5月，门票为十元。", ("2021-03", "2021-05")),
        ("自２０２１年６月起，票价为十二元。", ("2021-06", "")),
        ("2020年以前由张三负责。", ("", "2019")),
        ("有效期至2022年底。", ("", "2022")),
        ("截至2021年6月，公司有五人。", ("2021-06", "")),
        ("2019年至今担任主任。", ("2019", "")),
        ("光绪三年建成。", ("1877", "")),
        ("建安十三年，曹操任丞相。", ("0208", "")),
        ("The hall holds 1500 people.", ("", "")),
        ("It costs from 1500 to 2000 euros.", ("", "")),
        ("Napoleon (1769–1821) was an emperor.", ("", "")),
        ("这座城有2000年的历史。", ("", "")),
        ("No date here 🕰️.", ("", "")),
    ],
)
def test_a_sentence_says_when_it_holds(text: str, dates: tuple[str, str]) -> None:
    """Beginnings, ends and periods in both languages; numbers and the years of a life are none."""
    assert claim_dates(text, []) == dates


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("Ann was director until last March.", ("", "2021-03")),
        ("She has worked there since September.", ("2020-09", "")),
        ("Three years ago the shop opened.", ("2018", "")),
        ("去年3月起由李四负责。", ("2020-03", "")),
        ("本月起涨价。", ("2021-06", "")),
        ("昨天任命了新馆长。", ("2021-06-09", "")),
    ],
)
def test_relative_dates_count_from_the_date_of_the_text(text: str, dates: tuple[str, str]) -> None:
    """Without a date of the text, they say nothing."""
    assert claim_dates(text, [], "2021-06-10") == dates
    assert claim_dates(text, []) == ("", "")


@pytest.mark.parametrize(
    ("text", "names", "dates"),
    [
        ("Until 2020 Ann Berg led the inn, since then Carl Dorn has.", ["Ann Berg"], ("", "2020")),
        ("Until 2020 Ann Berg led the inn, since then Carl Dorn has.", ["Carl Dorn"], ("2020", "")),
        ("2018年至2020年，张三任局长，2021年起李四任局长。", ["李四", "局长"], ("2021", "")),
        ("2018年至2020年，张三任局长，2021年起李四任局长。", ["张三", "局长"], ("2018", "2020")),
        ("In 2015 it rained. Ann Berg likes tea.", ["Ann Berg"], ("", "")),
        ("The fee was 10 euros until 2020, and is now 12 euros.", ["12 euros"], ("", "")),
        ("The fee was 10 euros until 2020, and is now 12 euros.", ["10 euros"], ("", "2020")),
    ],
)
def test_the_clause_with_the_names_counts(
    text: str, names: list[str], dates: tuple[str, str]
) -> None:
    """Of a sentence with several dates, each name has those of its own clause."""
    assert claim_dates(text, names) == dates


def test_an_expression_has_its_span() -> None:
    """The words can be shown where they stand, also after characters that fold to more than one."""
    text = "ﬃ 🕰️ 自２０２１年６月起，票价为十二元。"
    (expression,) = find_time_expressions(text)
    assert text[expression.start : expression.end] == "自２０２１年６月起"


def test_a_sentence_may_hold_at_a_moment() -> None:
    """What the words leave open may hold; a moment may be a year, a month or a day."""
    assert holds_at("Until March 2020 Ann led it.", "2020")
    assert not holds_at("Until March 2020 Ann led it.", "2020-04-01")
    assert not holds_at("Since 2021 Carl leads it.", "2020-12")
    assert holds_at("Carl leads it.", "1066")


def test_words_of_an_extractor_become_a_date() -> None:
    """Dates with words around them, and relative ones; "now" is no end."""
    assert resolved_date("since about June 2021") == "2021-06"
    assert resolved_date("last year", "2021-06") == "2020"
    assert resolved_date("去年", "2021") == "2020"
    assert resolved_date("present") == resolved_date("") == ""


def test_nothing_is_after_the_last_year() -> None:
    """A text of the year 9999, as people write "without end", names no month after that year."""
    assert resolved_date("next January", "9999-12-31") == ""
    assert claim_dates("Ann leads it until March.", ["Ann"], "9999-12-31") == ("", "")
    assert resolved_date("next December", "9999-06") == "9999-12"
