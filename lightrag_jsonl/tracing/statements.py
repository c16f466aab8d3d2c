"""Finds what an answer claims: the claim before each cited number, and the statements without one."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from msgspec import Struct

from lightrag_jsonl.core.languages import FIXED_WORDS
from lightrag_jsonl.text.citation_markers import (
    CITATION_MARKER,
    CitationMarker,
    find_citations,
    without_citations,
)
from lightrag_jsonl.text.markup import without_marks
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.sentences import sentence_spans
from lightrag_jsonl.text.terms import is_grammatical, search_terms
from lightrag_jsonl.tracing.claim_words import OFFERS, SOURCES_AS_SUBJECT

_LEADING = pattern_of(rf"(?:[\s\"'”’」』]|{CITATION_MARKER.pattern})*".replace("?P<numbers>", "?:"))
_MARKER_BEHIND = pattern_of(rf"[^\S\n]*{CITATION_MARKER.pattern}")  # a sentence: "… Warsaw. [1]"
_JOINTS = ",，、;；。."
_ENOUGH_TERMS = 2
_LEAST_TERMS = 3  # of a statement; fewer are a heading or "I hope this helps."
_NO_STATEMENT_ENDS = (":", "：", "?", "？")
_NO_STATEMENT_BEGINNINGS = (
    *("#", "|", "…"),
    *[
        sentence.partition("{")[0]
        for words in FIXED_WORDS.values()
        for sentence in (
            words.parts,
            words.names_mentioned_most,
            words.lists_need_records,
            words.as_of_documents,
            words.nothing_with,
            words.filtered_nothing_with,
        )
    ],
)
_LIST_MARK = pattern_of(r"(?:[-*+•·]|\(?\d{1,3}[.)、]|[（(]?[一二三四五六七八九十]+[)）、])\s*")
_REFERENCES = pattern_of(  # the heading of a list of sources, which some models add
    r"^[ \t\u3000#*]*(?:references?|sources?|citations?|参考(?:资料|文献|来源)?|引用(?:来源)?|来源|资料来源)[ \t\u3000*]*+[:：]?[ \t\u3000*]*+$",
    re.IGNORECASE | re.MULTILINE,
)
_FIXED_SENTENCES = frozenset(
    sentence
    for words in FIXED_WORDS.values()
    for sentence in (
        words.selected,
        words.no_words,
        words.nothing_found,
        words.filtered_nothing_found,
    )
)


class CitingClaim(Struct, frozen=True, kw_only=True):
    """A claim of an answer, at characters `start` to `end`, and the numbers behind it, each with the
    place of its marker.
    """

    start: int
    end: int
    markers: list[tuple[int, int]]


def citing_claims(text: str) -> list[CitingClaim]:
    """The claims with cited numbers: the part of the sentence since the previous markers, or the whole
    sentence if the part has too few terms.
    """
    spans = sentence_spans(text)
    claims: list[CitingClaim] = []
    marker_end = 0
    for marker in find_citations(text):
        markers = [(number, marker.start) for number in marker.numbers]
        if claims and not text[marker_end : marker.start].strip():
            claims[-1].markers.extend(markers)
        else:
            start, end = _cited_sentence(text, spans, marker)
            claim_start = max(start, marker_end)
            claim_end = marker.start
            terms = _content_terms(without_citations(text[claim_start:claim_end]))
            if len({*terms}) < _ENOUGH_TERMS:
                claim_start = start
                claim_end = end
            claim_start, claim_end = _trimmed(text, claim_start, claim_end)
            claims.append(CitingClaim(start=claim_start, end=claim_end, markers=markers))
        marker_end = marker.end
    return claims


def _content_terms(text: str) -> list[str]:
    """The search terms of a text that are no words of grammar."""
    return [term for term in search_terms(text) if not is_grammatical(term)]


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without white space, and without punctuation at the start."""
    while start < end and (text[start].isspace() or text[start] in _JOINTS):
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _cited_sentence(
    text: str, spans: Sequence[tuple[int, int]], marker: CitationMarker
) -> tuple[int, int]:
    """The span of the sentence of a marker.

    A marker at the start of a sentence belongs to the previous sentence on the same line.
    """
    index = max(bisect_right(spans, (marker.start, len(text))) - 1, 0)
    start = spans[index][0]
    leading = _LEADING.match(text, start)
    joined = index > 0 and "\n" not in text[spans[index - 1][1] : start]
    if joined and leading and marker.start < leading.end():
        index -= 1
    return spans[index]


# ── statements without a citation ───────────────────────────────────────────────


def uncited_statements(text: str) -> Iterator[tuple[int, int]]:
    """The spans of the sentences of an answer that state something and cite nothing.

    Headings, introductions, questions, offers, what is said of the sources themselves, and this
    package's fixed sentences state nothing; nor does a list of references at the end.
    """
    references = _REFERENCES.search(text)
    text = text[: references.start()] if references else text
    for start, end in sentence_spans(text):
        if _MARKER_BEHIND.match(text, end):
            continue
        leading = _LEADING.match(text, start)
        start = min(leading.end(), end) if leading else start  # markers of the statement before
        mark = _LIST_MARK.match(text, start)
        start = mark.end() if mark and mark.end() < end else start
        is_cited = CITATION_MARKER.search(text, start, end) is not None
        if not is_cited and _is_statement(text[start:end]):
            yield start, end


def _is_statement(sentence: str) -> bool:
    """Whether a sentence without a citation states something about the subject of the answer."""
    statement = " ".join(without_marks(sentence).split())
    if statement.endswith(_NO_STATEMENT_ENDS):
        return False
    if sentence.startswith(_NO_STATEMENT_BEGINNINGS) or statement in _FIXED_SENTENCES:
        return False
    if OFFERS.search(statement) or SOURCES_AS_SUBJECT.search(statement):
        return False
    terms = _content_terms(statement)
    has_name_or_number = re.search(r"\d|\s[A-Z]\w", statement) is not None  # "He died in 1850."
    least = _LEAST_TERMS - has_name_or_number
    return len(terms) >= least and not _is_headline(statement)


def _is_headline(statement: str) -> bool:
    """Whether all English words of content of a line without a full stop begin with a capital."""
    words_of_content = [word for word in statement.split() if not is_grammatical(word.lower())]
    is_capitalized = all(word[:1].isupper() for word in words_of_content if word[:1].isalpha())
    return statement.isascii() and statement[-1:].isalnum() and is_capitalized
