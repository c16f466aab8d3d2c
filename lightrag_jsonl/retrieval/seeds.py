"""Finds the first hits: entities by name and vector, relations by vector, chunks by vector and words."""

import itertools
import re
import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np

from lightrag_jsonl.core.cjk import CJK, FUNCTION_CHARACTERS, has_cjk, is_cjk, is_lone
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.stop_words import GRAMMAR_WORDS
from lightrag_jsonl.core.terms import search_terms
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.retrieval import facts
from lightrag_jsonl.retrieval.fusion import NO_HITS, Hits, SearchTask, Seeds, column, fuse, joined
from lightrag_jsonl.storage.vector_index import Ids
from lightrag_jsonl.storage.views import Snapshot

SURE = 0.75  # the least cosine at which the nearest entity counts as named (spec 3, sec. 4)
LONGEST_NAME = 12  # words; names up to this length are looked for in the question
LONGEST_CJK_NAME = 8  # characters; likewise
NAME_LIMIT = 1_200  # spans of the question that are looked up as names
TEXT_HITS = 100  # the least number of chunks that each text search returns
QUESTION_WEIGHT = 2.0  # weight of the whole question, where each keyword has 1, among relations

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
COMMON_FUNCTION_WORD = 0.15  # likewise; "who" may tell much in a list of facts, not in a novel
TERM_LIMIT = 256  # terms of a question that are used
ANY_END = "*"  # after a term: all terms that begin with it
_WORD = re.compile(rf"([{CJK}])|[^\s{CJK}]+")
_POSSESSIVE = re.compile(r"['’]s?\W*$")
_AROUND = "?!.,;:…？！。，、；：\"“”'‘’()（）[]《》〈〉「」『』【】"


def find_seeds(task: SearchTask) -> Seeds:
    """What the question and its keywords hit, best first for each kind."""
    query, limit = task.query, max(TEXT_HITS, task.chunk_limit)
    words = lexical_hits(task, limit) if task.param.lexical else NO_HITS
    entities, named = _entity_hits(task)
    question = query.vectors[:1]
    (dense,) = _nearest(task, "chunk", question, limit, ["near the question"])
    if not (task.mode.relations or query.high):  # `high` may stand in for low-level keywords
        return Seeds(entities, named, NO_HITS, dense, words)
    vectors = np.concatenate([question, query.vectors[1 + len(query.low) :]])
    reasons = ["near the question", *(f"near “{text}”" for text in query.high)]
    lists = _nearest(task, "relation", vectors, task.param.top_k, reasons)
    weights = [QUESTION_WEIGHT, *[1.0] * len(query.high)]
    relations = fuse(lists, weights=weights, limit=task.param.top_k)
    return Seeds(entities, named, relations, dense, words, asked=lists[0][:1])


def _nearest(
    task: SearchTask, kind: Kind, vectors: Vectors, limit: int, reasons: Sequence[str]
) -> list[Hits]:
    """The nearest rows of each vector, with its reason."""
    if not task.query.embedded:
        return [NO_HITS] * len(reasons)
    allowed = None if task.filtered is None else task.filtered[kind]
    ids, scores = task.snapshot.search_vectors(kind, vectors, limit, allowed)
    return [Hits.of(*found) for found in zip(ids, scores, reasons, strict=True)]


# ── entities ────────────────────────────────────────────────────────────────────


def _entity_hits(task: SearchTask) -> tuple[Hits, dict[int, float]]:
    """Entities by name and by vector: the best of every keyword, then the second of every keyword,
    and so on. Besides, those that the question names, each with the likeness of the names.
    """
    if not task.query.low:
        return NO_HITS, {}
    known, spelled = _names_asked(task)
    lists, named = [_named(spelled)], dict.fromkeys(spelled, 1.0)
    whole = list(map(_bounded, spelled.values()))
    vectors, reasons = task.query.vectors[1:], [f"near “{text}”" for text in task.query.low]
    near = _nearest(task, "entity", vectors[: len(reasons)], task.param.top_k, reasons)
    for text, found in zip(task.query.low, near, strict=True):
        same = known.get(name_key(text))
        if same not in spelled and any(_bounded(text) in name for name in whole):
            pass  # a part of a longer name is none of its own
        elif same is not None:
            named[same] = 1.0
            spelled.setdefault(same, text)
            found = joined([_named({same: text}), found[found.ids != same]])[0]
        elif len(found) and found.scores[0] >= SURE:
            named.setdefault(int(found.ids[0]), float(found.scores[0]))
        lists.append(found)
    named = proper(task, named, spelled)
    others = _also_called(task, column(named))
    named |= dict.fromkeys(others.ids.tolist(), 1.0)
    every, ranks = joined([*lists, others])
    every = every[np.lexsort((every.ids, -every.scores, ranks))]
    first = np.sort(np.unique(every.ids, return_index=True)[1])
    return every[first[: task.param.top_k]], named


def _names_asked(task: SearchTask) -> tuple[dict[str, int], dict[int, str]]:
    """The entities with names of the question or of its keywords, by name key; and those whose
    names stand in the question, as it spells them.
    """
    spans = _name_spans(task.query.question)
    keys = {*map(name_key, task.query.low), *(key for _, _, key in spans)}
    known = {**facts.entities_called(task, keys), **task.snapshot.entity_ids(keys)}
    inside = task.inside("entity", column(known.values()))
    known = dict(itertools.compress(known.items(), inside))
    return known, _names_in(task.query.question, spans, known)


def _also_called(task: SearchTask, named: Ids) -> Hits:
    """Entities that surely are one of those named, by an alias that a text states."""
    pairs, certainties = facts.also_called(task, named)
    others = np.setdiff1d(pairs[certainties == 1], named)
    return Hits.of(others, np.ones(len(others)), "has another name of an entity named")


def _bounded(name: str) -> str:
    return f" {' '.join(search_terms(name))} "


def proper(
    task: SearchTask, named: dict[int, float], spelled: Mapping[int, str]
) -> dict[int, float]:
    """Without common words ("area code"), which the question and the index write small; all if there
    are no others.
    """
    small = [row for row, text in spelled.items() if text.islower() and not has_cjk(text)]
    stored = task.snapshot.entity_names(small)
    common = {row for row in small if stored[row].islower()}
    return {row: alike for row, alike in named.items() if row not in common} or named


def names_an_entity(task: SearchTask) -> bool:
    """Whether the name of an entity occurs in the question; words in small letters are none."""
    _, spelled = _names_asked(task)
    return not all(text.islower() for text in spelled.values())


def _named(names: Mapping[int, str]) -> Hits:
    return Hits.of([*names], np.ones(len(names)), [f"named “{name}”" for name in names.values()])


def _names_in(
    question: str, spans: Sequence[tuple[int, int, str]], known: Mapping[str, int]
) -> dict[int, str]:
    """Entities whose names occur in the question, the longest first; no name inside a longer one."""
    taken: list[tuple[int, int]] = []
    names: dict[int, str] = {}
    for start, end, key in spans:
        if key in known and all(start >= right or left >= end for left, right in taken):
            taken.append((start, end))
            span = question[start:end]
            names.setdefault(known[key], _POSSESSIVE.sub("", span).strip(_AROUND) or span)
    return names


def _name_spans(question: str) -> list[tuple[int, int, str]]:
    """Runs of words or of CJK characters that may be names, as (start, end, key), the longest first."""
    words = [(*found.span(), bool(found[1])) for found in _WORD.finditer(question)]
    spans = []
    for first, (start, _, cjk) in enumerate(words):
        longest = LONGEST_CJK_NAME if cjk else LONGEST_NAME
        for last, (_, end, _) in enumerate(words[first : first + longest], first):
            if first == last and (cjk or not question[start].isupper()):
                continue  # one character, or a common word
            if key := name_key(_POSSESSIVE.sub("", question[start:end])):
                spans.append((start, end, key))
    return sorted(spans, key=lambda span: (span[0] - span[1], span))[:NAME_LIMIT]


# ── words ───────────────────────────────────────────────────────────────────────


def lexical_hits(task: SearchTask, limit: int) -> Hits:
    """The chunks that share words with the question."""
    terms = distinctive_terms(task.snapshot, task.query.question)
    allowed = None if task.filtered is None else task.filtered["chunk"].tolist()
    rows = task.snapshot.search_terms(terms, limit, allowed)
    ids, scores = [row for row, _ in rows], [score for _, score in rows]
    return Hits.of(ids, scores, "shares words with the question")


def distinctive_terms(snapshot: Snapshot, question: str) -> list[str]:
    """The terms to search for, at least one: the rarest words and bigrams within `POSTINGS`, then
    the rarest beginnings within `BEGINNING_POSTINGS`.
    """
    terms = _terms(question)
    total, counts = snapshot.term_counts(terms)

    def is_rare(term: str) -> bool:
        share = COMMON_FUNCTION_WORD if term in GRAMMAR_WORDS else COMMON
        return counts[term] <= share * total

    # Terms with accents may be counted under another spelling.
    stored = [term for term in terms if counts[term] or not (term.isascii() or is_cjk(term[0]))]
    by_rarity = sorted(stored, key=lambda term: (counts[term], term))
    rare = list(filter(is_rare, by_rarity)) or by_rarity[:1]
    whole = [term for term in rare if not term.endswith(ANY_END)]
    begun = [term for term in rare if term.endswith(ANY_END) and _is_otherwise(term, counts)]
    selected = [
        *_within(whole, counts, POSTINGS),
        *_within(begun, counts, BEGINNING_POSTINGS),
    ]
    return selected or rare[:1]


def _is_otherwise(beginning: str, counts: Mapping[str, int]) -> bool:
    """Whether the documents mostly write the character of a beginning in other words than those of
    the question.
    """
    character = beginning.removesuffix(ANY_END)
    words = [term for term in counts if character in term and not term.endswith(ANY_END)]
    return sum(counts[word] for word in words) < WRITTEN_OTHERWISE * counts[beginning]


def _within(terms: Sequence[str], counts: Mapping[str, int], allowance: int) -> list[str]:
    """The first terms, as long as they occur in no more parts of chunks than allowed."""
    sums = itertools.accumulate([counts[term] for term in terms])
    return [term for term, parts in zip(terms, sums, strict=True) if parts <= allowance]


def _terms(question: str) -> list[str]:
    """The words and bigrams of a question, and beginnings ("父*").

    Each Chinese character that means something is a beginning: older and shorter wordings share
    characters with the question, not bigrams.
    """
    words = list(dict.fromkeys(search_terms(question)))
    chinese = [char for char in "".join(words) if unicodedata.name(char, "").startswith("CJK ")]
    single = [
        char for char in (*filter(is_lone, words), *chinese) if char not in FUNCTION_CHARACTERS
    ]
    begun = dict.fromkeys([f"{char}{ANY_END}" for char in single])
    return [*(word for word in words if f"{word}{ANY_END}" not in begun), *begun][:TERM_LIMIT]
