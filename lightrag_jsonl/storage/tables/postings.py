"""Terms for a full text in a table of postings, one row for each term of a part of a chunk.

A database without a full text of its own scores them by BM25 in SQL, as `postgres/full_text.py` does.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

from lightrag_jsonl.storage.tables.full_text import ANY_END, ChunkTexts, term_parts
from lightrag_jsonl.text.patterns import pattern_of

LONGEST_TERM = 200  # characters; of longer ones the beginning counts, so that an index takes them
LAST_CHARACTER = chr(0x10FFFF)
ACCENTS = pattern_of("([A-Za-z])[\u0300-\u036f]+")


def term_ranges(terms: Sequence[str]) -> tuple[list[str], list[str]]:
    """The first and the last of the stored terms that each term stands for."""
    first_terms = []
    last_terms = []
    for term in terms:
        first = stored_term(term.removesuffix(ANY_END))
        has_any_end = term.endswith(ANY_END) and len(term) > 1
        first_terms.append(first)
        last_terms.append(first + LAST_CHARACTER if has_any_end else first)
    return first_terms, last_terms


def stored_term(term: str) -> str:
    """A term without the accents of Latin letters, and not too long."""
    if not term.isascii():
        letters = ACCENTS.sub(r"\1", unicodedata.normalize("NFD", term))
        term = unicodedata.normalize("NFC", letters)
    return term[:LONGEST_TERM]


def counted_parts(chunks: ChunkTexts) -> Iterator[tuple[int, Counter[str]]]:
    """The parts of chunks, and how often each of their terms occurs."""
    for part, terms in term_parts(chunks):
        yield part, Counter(map(stored_term, terms))
