"""The words of a question that the full text is searched for, and the chunks that hold them."""

import itertools
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence

from lightrag_jsonl.retrieval.hits import Hits
from lightrag_jsonl.retrieval.task import TIES, SearchTask
from lightrag_jsonl.storage.tables.full_text import ANY_END
from lightrag_jsonl.storage.views import Snapshot
from lightrag_jsonl.text.cjk import FUNCTION_CHARACTERS, is_cjk, is_lone
from lightrag_jsonl.text.numbers import chinese_parts
from lightrag_jsonl.text.terms import GRAMMAR_WORDS, search_terms

# Parts of chunks that the words and bigrams searched for occur in, and those of the beginnings; the
# rarest come first. Of 346 questions over 1,140 similar Chinese reports, 1,000 bigrams are used up by
# the names of companies: recall@5 of BM25 is 56 %, 68 % with 5,000, and no more with 20,000.
POSTINGS = 5_000
BEGINNING_POSTINGS = 1_000

# A beginning ("父*") is searched for if the words of the question that hold the character are less
# than this part of its occurrences; else a name counts twice. On 100 of those questions recall@5 is
# 75 % with 0.1, 72 % with 0.2, 69 % with all beginnings, and 71 % without any.
WRITTEN_OTHERWISE = 0.1
COMMON = 0.5  # share of the parts; a term in more of them has no weight in BM25
# Likewise; "who" may tell much in a list of facts, not in a novel: with 0.5, 5 in place of 8 answering passages of 15
# questions are in contexts of 1,500 tokens on A Christmas Carol; the sets of short passages are the same.
COMMON_FUNCTION_WORD = 0.15
TERM_LIMIT = 256  # terms of a question that are used


def lexical_hits(task: SearchTask, limit: int) -> Hits:
    """The chunks that share words with the question."""
    terms = distinctive_terms(task.snapshot, task.query.question)
    allowed = None if task.filtered is None else task.filtered["chunk"].tolist()
    scored_rows = task.snapshot.search_terms(terms, limit + TIES, allowed)
    hits = Hits.of(
        [row for row, _ in scored_rows],
        [score for _, score in scored_rows],
        "shares words with the question",
    )
    return task.settled("chunk", hits, limit)


def distinctive_terms(snapshot: Snapshot, question: str) -> list[str]:
    """The terms to search for, at least one: the rarest words and bigrams within `POSTINGS`, then
    the rarest beginnings within `BEGINNING_POSTINGS`.
    """
    terms = question_terms(question)
    part_count, counts = snapshot.term_counts(terms)
    # Terms with accents may be counted under another spelling.
    stored = [term for term in terms if counts[term] or not (term.isascii() or is_cjk(term[0]))]
    by_rarity = sorted(stored, key=lambda term: (counts[term], term))
    rare: list[str] = []
    for term in by_rarity:
        largest_share = COMMON_FUNCTION_WORD if term in GRAMMAR_WORDS else COMMON
        if counts[term] <= largest_share * part_count:
            rare.append(term)
    rare = rare or by_rarity[:1]
    whole = [term for term in rare if not term.endswith(ANY_END)]
    beginnings = [term for term in rare if term.endswith(ANY_END)]
    selected = _within_allowance(whole, counts, POSTINGS)
    if beginnings:
        selected += _useful_beginnings(beginnings, counts)
    return selected or rare[:1]


def question_terms(question: str) -> list[str]:
    """The words and bigrams of a question, and of one in Chinese beginnings ("父*"). The number of a part (第22条)
    is a term of its own, and begins nothing.
    """
    terms = list(dict.fromkeys(search_terms(question)))
    if not "".join(terms).isascii():
        terms = _with_beginnings(terms, part_terms(question))
    return terms[:TERM_LIMIT]


def _with_beginnings(terms: Sequence[str], parts: Collection[str]) -> list[str]:
    """Terms with a beginning for each Chinese character that means something: older and shorter wordings share
    characters with the question, not bigrams.
    """
    unnumbered = [term for term in terms if term not in parts]
    lone = [term for term in unnumbered if is_lone(term)]
    chinese = [
        char for char in "".join(unnumbered) if unicodedata.name(char, "").startswith("CJK ")
    ]
    characters = [char for char in (*lone, *chinese) if char not in FUNCTION_CHARACTERS]
    beginnings = dict.fromkeys([f"{char}{ANY_END}" for char in characters])
    longer = [term for term in terms if f"{term}{ANY_END}" not in beginnings]
    return [*longer, *beginnings]


def part_terms(question: str) -> list[str]:
    """The terms of the Chinese parts that a question names by number, as the full text has them."""
    return [part.term for part in chinese_parts(question)]


def _useful_beginnings(beginnings: Iterable[str], counts: Mapping[str, int]) -> list[str]:
    """The rarest beginnings whose characters the documents write in other words."""
    useful = [term for term in beginnings if _is_written_otherwise(term, counts)]
    return _within_allowance(useful, counts, BEGINNING_POSTINGS)


def _is_written_otherwise(beginning: str, counts: Mapping[str, int]) -> bool:
    """Whether the documents mostly write the character of a beginning in other words than those of
    the question.
    """
    character = beginning.removesuffix(ANY_END)
    question_words = [term for term in counts if character in term and not term.endswith(ANY_END)]
    occurrences = sum(counts[word] for word in question_words)
    return occurrences < WRITTEN_OTHERWISE * counts[beginning]


def _within_allowance(terms: Sequence[str], counts: Mapping[str, int], allowance: int) -> list[str]:
    """The first terms, as long as they occur in no more parts of chunks than allowed."""
    totals = itertools.accumulate([counts[term] for term in terms])
    return [term for term, parts in zip(terms, totals, strict=True) if parts <= allowance]
