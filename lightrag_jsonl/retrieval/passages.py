"""Which of the passages found are shown: those of a date in the question first, and one of several copies."""

import calendar
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from lightrag_jsonl.core.headings import find_headings
from lightrag_jsonl.retrieval.full_text import question_terms
from lightrag_jsonl.retrieval.hits import Hits, column, concatenated
from lightrag_jsonl.retrieval.question_names import question_names
from lightrag_jsonl.retrieval.task import TIES, SearchTask
from lightrag_jsonl.storage.filters import parse_where
from lightrag_jsonl.storage.graph_index import is_among
from lightrag_jsonl.storage.vector_index import Ids
from lightrag_jsonl.text.dates import CHINESE_DIGITS, days_and_months, half_width, tells_date
from lightrag_jsonl.text.terms import search_terms

# Bounds, not tuned.
MOST_READ = 60  # passages with words of a date, in whose headings the date is looked for
MOST_LEADING = 3  # passages that come first

_ORDINAL_ENDINGS = ("st", "nd", "rd", "th")


def with_asked_dates(task: SearchTask, walked: Hits, text_hits: Hits) -> tuple[Hits, Hits]:
    """The hits of the walk and by text, after the passages under a title or a heading with a day or a month of the
    question, or of documents of a day in the question, the best by text first; if passages of the date mention a
    name of the question, after these alone.

    A date within a text leads nowhere: many texts mention a month, and what happened in a month is often told after it.
    """
    dates = days_and_months(task.query.question)
    if not dates:
        return walked, text_hits
    rows = _rows_of_dates(task, dates)
    rows = rows[task.inside("chunk", rows)]
    if not len(rows):
        return walked, text_hits
    rows = _mentioning_asked_names(task, rows)
    terms = question_terms(task.query.question)
    scores = dict(task.snapshot.search_terms(terms, len(rows), rows.tolist()))
    scores_of_rows = np.array([scores.get(row, 0.0) for row in rows.tolist()])
    leading = task.ranked("chunk", rows, scores_of_rows, MOST_LEADING, "of a date in the question")
    return _led_by(leading, walked), _led_by(leading, text_hits)


def _led_by(leading: Hits, hits: Hits) -> Hits:
    """Hits after the leading ones, which score as the best hit does; nothing after no hits."""
    if not len(hits):
        return hits
    scores = np.full(len(leading), hits.scores.max())
    following = hits[~is_among(hits.ids, leading.ids)]
    return concatenated([Hits(leading.ids, scores, leading.why), following])[0]


def _rows_of_dates(task: SearchTask, dates: Sequence[str]) -> Ids:
    """The chunks with one of the dates in a title or a heading, or as the date of the document."""
    snapshot = task.snapshot
    rows: set[int] = set()
    for day in [date for date in dates if len(date) == len("2021-05-12")]:
        rows.update(snapshot.matching_chunks(parse_where({"date": {"$gte": day, "$lte": day}})))
    titles = [label.title or "" for label in snapshot.document_labels(titled=True)]
    if titles_of_dates := _titles_of_dates(titles, dates):
        rows.update(snapshot.matching_chunks(parse_where({"title": [*titles_of_dates]})))
    terms = [term for date in dates for term in search_terms(_forms_of(date))]
    scores = dict(snapshot.search_terms(terms, MOST_READ + TIES, None))
    hits = task.settled("chunk", Hits.of([*scores], [*scores.values()]), MOST_READ)
    for row, chunk in snapshot.chunks(hits.ids.tolist()).items():
        headings = [chunk.background, *[heading.title for heading in find_headings(chunk.text)]]
        if any(tells_date(heading, dates) for heading in headings):
            rows.add(row)
    return column(sorted(rows))


def _titles_of_dates(titles: Iterable[str], dates: Sequence[str]) -> list[str]:
    """The titles that tell one of the dates; a date is read only where its year stands, which takes less time."""
    years = {date[:4] for date in dates}
    years |= {_in_chinese_digits(year) for year in years}
    return [
        title
        for title in titles
        if any(year in half_width(title) for year in years) and tells_date(title, dates)
    ]


def _mentioning_asked_names(task: SearchTask, rows: Ids) -> Ids:
    """Those of some chunks that mention a name of the question, or all if none does."""
    named = column(question_names(task).spellings)
    positions, entities = task.snapshot.graph.entities_of(rows)
    mentioning = rows[np.unique(positions[is_among(entities, named)])]
    return mentioning if len(mentioning) else rows


def _forms_of(date: str) -> str:
    """The words in which a date may be written, in figures and in both languages."""
    year = date[:4]
    month, *days = map(int, date.split("-")[1:])
    forms = [
        year,
        f"{month} {month:02}",
        calendar.month_name[month],
        calendar.month_abbr[month],
    ]
    chinese = f"{_in_chinese_digits(year)}年{_chinese_number(month)}月"
    for day in days:
        forms += [f"{day} {day:02}", *[f"{day}{ending}" for ending in _ORDINAL_ENDINGS]]
        chinese += f"{_chinese_number(day)}日"
    return " ".join([*forms, chinese])


def _in_chinese_digits(year: str) -> str:
    return "".join([CHINESE_DIGITS[int(digit)] for digit in year])


def _chinese_number(number: int) -> str:
    """A number below 100 in Chinese words."""
    tens, unit = divmod(number, 10)
    ten = {0: "", 1: "十"}.get(tens, f"{CHINESE_DIGITS[tens]}十")
    return ten + (CHINESE_DIGITS[unit] if unit or not tens else "")


# ── arranged passages ─────────────────────────────────────────────────────────

SPARE_CHUNKS = 20  # found beyond the limit, to take the place of copies


class Passages(Struct, frozen=True):
    """The passages of a search, each text once: by the walk and by text, and by row the copies of those with copies."""

    walked: Hits
    by_text: Hits
    copies: Mapping[int, Sequence[int]]


def arrange_passages(task: SearchTask, walked: Hits, text_hits: Hits) -> Passages:
    """The passages in the order to show them; of several copies, the one that the walk ranks best.

    The passages of a date in the question come first. Of the hits by text, those that may be shown are looked at.
    """
    if any(map(str.isnumeric, task.query.question)):  # as in every date
        walked, text_hits = with_asked_dates(task, walked, text_hits)
    text_limit = SPARE_CHUNKS
    if len(walked) == 0 or task.chunk_limit > task.param.chunk_top_k:
        text_limit += task.chunk_limit
    leading = text_hits[:text_limit]
    walked_rows = walked.ids.tolist()
    leading_rows = leading.ids.tolist()
    rows = dict.fromkeys([*walked_rows, *leading_rows])
    fingerprints = task.snapshot.fingerprints(rows)
    copies_by_text: dict[str, list[int]] = {}
    for row in rows:
        if row in fingerprints:
            copies_by_text.setdefault(fingerprints[row], []).append(row)
    original_by_row: dict[int, int] = {}
    for copies in copies_by_text.values():
        original_by_row |= dict.fromkeys(copies, copies[0])
    return Passages(
        walked=_without_copies(walked, original_by_row),
        by_text=_without_copies(text_hits, original_by_row),
        copies={copies[0]: copies[1:] for copies in copies_by_text.values() if len(copies) > 1},
    )


def _without_copies(hits: Hits, original_by_row: Mapping[int, int]) -> Hits:
    """The hits with each original once, in the place of the best copy."""
    ids = column([original_by_row.get(row, row) for row in hits.ids.tolist()])
    _, places = np.unique(ids, return_index=True)
    places.sort()
    return Hits(ids[places], hits.scores[places], hits.why[places])
