"""Full-text search in chunks: SQLite FTS5 with BM25 over words and CJK bigrams."""

from __future__ import annotations

import itertools
import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from lightrag_jsonl.storage.bulk import put_rows
from lightrag_jsonl.text import CJK, is_lone, search_terms

TermCounts = Callable[[Iterable[str]], Mapping[str, int]]


def put_terms(connection: sqlite3.Connection, texts: Iterable[tuple[int, str]]) -> None:
    """Index the texts of new chunks, each as (row id, text)."""
    rows = [(row, " ".join(search_terms(text))) for row, text in texts]
    put_rows(connection, "INSERT INTO chunk_terms (rowid, terms)", rows)


def drop_terms(connection: sqlite3.Connection, texts: Iterable[tuple[int, str]]) -> None:
    """Remove chunks from the index; the texts must be those they were added with."""
    rows = [("delete", row, " ".join(search_terms(text))) for row, text in texts]
    put_rows(connection, "INSERT INTO chunk_terms (chunk_terms, rowid, terms)", rows)


def search(
    connection: sqlite3.Connection,
    question: str,
    limit: int,
    *,
    keywords: Iterable[str] = (),
    allowed: Iterable[int] | None = None,
    counted: TermCounts | None = None,
    total: int | None = None,
) -> list[tuple[int, float]]:
    """The best chunks for a question as (row id, score), higher is better; ties by row id.

    A single CJK character that is one of the `keywords`, or the whole question, matches bigrams
    that begin with it and, if these are in fewer than `FEW` chunks of an index of at most
    `READABLE`, bigrams that end a run with it. If `allowed` (row ids) is given, only these chunks
    are found. `counted` may be a cached `term_counts`, and `total` a known `chunk_count`.
    """
    total = chunk_count(connection) if total is None else total
    counted = counted or partial(term_counts, connection)
    rows = None if allowed is None else json.dumps(list(allowed))
    terms = dict.fromkeys(search_terms(question))
    if lone := _lone_characters(terms, keywords):
        begin = counted(_beginnings(lone))
        if rows is not None:
            begin = {term: _chunks_with(connection, term, rows) for term in begin}
        rare = [char for char in lone if begin[char + _ANY_END] < FEW][:READ]
        read = rare if total <= READABLE else []
        endings = (end for char in read for end in _endings(connection, char, limit, rows))
        terms = dict.fromkeys([*begin, *(term for term in terms if term not in lone), *endings])
    telling = _telling_terms(list(terms)[:TERM_LIMIT], counted, total)
    if not telling or limit < 1:
        return []
    match = " OR ".join(map(_phrase, telling))
    only = "" if rows is None else _AMONG.format("rowid")
    values = [match, *([] if rows is None else [rows]), limit]
    found = connection.execute(
        "SELECT rowid, bm25(chunk_terms) AS score FROM chunk_terms WHERE chunk_terms MATCH ? "
        f"{only} ORDER BY score, rowid LIMIT ?",
        values,
    )
    return [(row, -score) for row, score in found]


def term_counts(connection: sqlite3.Connection, terms: Iterable[str]) -> dict[str, int]:
    """How many chunks contain each term. FTS5 counts one by one, so frequent terms take longer.

    A term that FTS5 spells differently (without accents) counts as rare; `猫*` stands for all terms
    that begin like this.
    """
    wanted = list(terms)
    beginnings = [term for term in wanted if term.endswith(_ANY_END)]
    rows = connection.execute(
        "SELECT term, doc FROM chunk_vocabulary WHERE term IN (SELECT value FROM json_each(?))",
        (json.dumps(wanted, ensure_ascii=False),),
    )
    exact = dict.fromkeys(wanted, 0) | dict(rows.fetchall())
    return exact | {term: _chunks_with(connection, term) for term in beginnings}


def chunk_count(connection: sqlite3.Connection) -> int:
    """The number of chunks; fast, since SQLite only counts an index's entries."""
    return int(connection.execute("SELECT count(*) FROM chunks").fetchone()[0])


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether there is no chunk."""
    return connection.execute("SELECT 1 FROM chunks LIMIT 1").fetchone() is None


def _chunks_with(connection: sqlite3.Connection, term: str, rows: str | None = None) -> int:
    only = "" if rows is None else _AMONG.format("rowid")
    query = f"SELECT count(*) FROM chunk_terms WHERE chunk_terms MATCH ? {only}"
    values = [_phrase(term), *([] if rows is None else [rows])]
    return int(connection.execute(query, values).fetchone()[0])


# ── terms ───────────────────────────────────────────────────────────────────────

POSTINGS = 2_500  # rows scored for a question (3 to 4 ms); more frequent terms hardly count in BM25
LARGE = 5_000  # chunks; above this, function words are not even counted
TERM_LIMIT = 256  # terms of a question that are used
FEW = 10  # chunks: a lone character that begins bigrams in more is found without its endings, each
# of which would weigh as a rare word
READ = 4  # lone characters for which texts are read
READABLE = 50_000  # chunks; of a larger index no texts are read (20,000 take about 100 ms)
_ANY_END = "*"  # after a term: all terms that begin with it
_AMONG = "AND {} IN (SELECT value FROM json_each(?))"

_WORDS = (  # in a large index too frequent to be used
    "a an and are as at be been but by can could did do does for from had has have he her his how "
    "i if in into is it its me my of on or our she so such than that the their them then there "
    "these they this those to us was we were what when where which who whom whose why will with "
    "would you your"
)
FUNCTION_WORDS = frozenset(_WORDS.split())


def _lone_characters(terms: Iterable[str], keywords: Iterable[str]) -> list[str]:
    """Single characters that are asked for: among the keywords, or the whole question."""
    lone = dict.fromkeys(filter(is_lone, keywords))
    return list(lone | dict.fromkeys(terms)) if all(map(is_lone, terms)) else list(lone)


def _beginnings(lone: Iterable[str]) -> list[str]:
    return [char + _ANY_END for char in lone]


def _endings(
    connection: sqlite3.Connection, character: str, limit: int, rows: str | None
) -> Iterator[str]:
    """The bigrams at whose end a character ends a run, in the first chunks (of `rows`) that hold it.

    The texts are read for it, which takes about 100 ms at 20,000 chunks. FTS5 finds terms by
    their beginnings alone, and takes 550 ms to list them.
    """
    only = "" if rows is None else _AMONG.format("id")
    values = [character, *([] if rows is None else [rows]), limit]
    texts = connection.execute(
        f"SELECT text FROM chunks WHERE instr(text, ?) {only} LIMIT ?", values
    )
    ending = re.compile(f"[{CJK}]{character}(?![{CJK}])")
    return (term for (text,) in texts for term in ending.findall(text))


def _phrase(term: str) -> str:
    """The term in FTS5's query syntax."""
    beginning, any_end, _ = term.partition(_ANY_END)
    return f'"{beginning}"{any_end}'


def _telling_terms(terms: list[str], counted: TermCounts, total: int) -> list[str]:
    """The terms of a question to search for: the rarest, as far as `POSTINGS` rows allow, at least one.

    Terms in more than half of the chunks have no weight in FTS5's BM25. Terms in no chunk are left
    out at the end, since FTS5 spends as long on each as on a rare one.
    """
    telling = terms
    if total > LARGE:
        telling = [term for term in terms if term not in FUNCTION_WORDS] or terms
    counts = counted(telling)
    ordered = sorted(telling, key=lambda term: (counts[term], term))
    ordered = [term for term in ordered if 2 * counts[term] <= total] or ordered[:1]
    used = itertools.accumulate(counts[term] for term in ordered)
    kept = [term for term, rows in zip(ordered, used, strict=True) if rows <= POSTINGS]
    return [term for term in kept or ordered[:1] if counts[term] or not _is_counted_exactly(term)]


def _is_counted_exactly(term: str) -> bool:
    """Whether FTS5 certainly spells a term as we do."""
    return term.isascii() or term.endswith(_ANY_END)
