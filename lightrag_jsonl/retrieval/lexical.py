"""Decides which terms of a question the full text is searched for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from lightrag_jsonl.core.text import is_cjk, is_lone, search_terms
from lightrag_jsonl.storage.store import Snapshot

POSTINGS = 2_500  # chunks that the terms occur in; more frequent terms hardly count in BM25
LARGE = 1_000  # chunks; in a larger index, function words are not even counted
TERM_LIMIT = 256  # terms of a question that are used
ANY_END = "*"  # after a term: all terms that begin with it

_WORDS = (
    "a an and are as at be been but by can could did do does for from had has have he her his how "
    "i if in into is it its me my of on or our she so such than that the their them then there "
    "these they this those to us was we were what when where which who whom whose why will with "
    "would you your"
)
FUNCTION_WORDS = frozenset(_WORDS.split())


def distinctive_terms(snapshot: Snapshot, question: str, keywords: Iterable[str]) -> list[str]:
    """The terms to search for: the rarest, as far as `POSTINGS` allows, at least one.

    A single CJK character that is one of the keywords, or the whole question, becomes a beginning
    ("镭*"). Terms in more than half of the chunks have no weight in BM25.
    """
    total = len(snapshot.graph.chunks)
    terms = _terms(question, keywords)[:TERM_LIMIT]
    if total > LARGE:
        terms = [term for term in terms if term not in FUNCTION_WORDS] or terms
    counts = snapshot.term_counts(terms)
    # Terms with accents may be counted under another spelling.
    known = [term for term in terms if counts[term] or not (term.isascii() or is_cjk(term[0]))]
    ordered = sorted(known, key=lambda term: (counts[term], term))
    rare = [term for term in ordered if 2 * counts[term] <= total] or ordered[:1]
    used = itertools.accumulate([counts[term] for term in rare])
    kept = [term for term, chunks in zip(rare, used, strict=True) if chunks <= POSTINGS]
    return kept or rare[:1]


def _terms(question: str, keywords: Iterable[str]) -> list[str]:
    terms = dict.fromkeys(search_terms(question))
    lone = dict.fromkeys(filter(is_lone, keywords))
    if all(map(is_lone, terms)):
        lone |= terms
    return [f"{char}{ANY_END}" for char in lone] + [term for term in terms if term not in lone]
