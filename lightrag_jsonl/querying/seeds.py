"""Finds the first hits: entities by name and vector, relations by vector, chunks by vector and words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from lightrag_jsonl.protocols import Vectors
from lightrag_jsonl.querying.fusion import fuse
from lightrag_jsonl.querying.hits import NO_HITS, Hits, Ids, Probe, Scope, Seeds, joined
from lightrag_jsonl.querying.recipes import Recipe
from lightrag_jsonl.sorting import each_first
from lightrag_jsonl.storage import fulltext, reading
from lightrag_jsonl.storage.snapshot import Snapshot
from lightrag_jsonl.text import CJK, name_key
from lightrag_jsonl.types import Kind

SURE = 0.75  # the least cosine at which the nearest entity counts as named (spec 3, sec. 4)
LONGEST_NAME = 6  # words; names up to this length are looked for in the question
LONGEST_CJK_NAME = 8  # characters; likewise
NAME_LIMIT = 600  # spans of the question that are looked up as names
TEXT_HITS = 100  # the least number of chunks that each text search returns
_WORD = re.compile(rf"([{CJK}])|[^\s{CJK}]+")
_POSSESSIVE = re.compile(r"['’]s?\W*$")
_AROUND = "?!.,;:…？！。，、；：\"“”'‘’()（）[]《》〈〉「」『』【】"
PASSAGES = 20  # without vectors, facts are taken from so many passages
QUESTION_WEIGHT = 2.0  # weight of the whole question, where each keyword has 1, among relations


def find_seeds(
    snapshot: Snapshot,
    probe: Probe,
    recipe: Recipe,
    *,
    scope: Scope | None,
    top_k: int,
    chunk_limit: int,
    lexical: bool,
) -> Seeds:
    """What the question and its keywords hit, best first for each kind."""
    entities, named = _entity_hits(snapshot, probe, scope, top_k)
    handed_over = bool(probe.high)  # see `lookups`: the other kind of keywords was missing
    relations, asked = (
        _relation_hits(snapshot, probe, scope, top_k)
        if recipe.relations or handed_over
        else (NO_HITS, NO_HITS)
    )
    limit = max(TEXT_HITS, chunk_limit)
    dense = _dense_hits(snapshot, probe, scope, limit)
    by_words = lexical or probe.vectors is None
    words = _lexical_hits(snapshot, probe, scope, limit) if by_words else NO_HITS
    if probe.vectors is None and recipe.facts:  # then the graph is entered through passages
        relations = _mentioned(snapshot, "relation", words, top_k)
        entities = entities if len(entities) else _mentioned(snapshot, "entity", words, top_k)
    return Seeds(entities, named, relations, dense, words, asked)


# ── entities ────────────────────────────────────────────────────────────────────


def _entity_hits(
    snapshot: Snapshot, probe: Probe, scope: Scope | None, limit: int
) -> tuple[Hits, dict[int, float]]:
    """Entities by name and by vector: the best of every keyword, then the second of every keyword,
    and so on.
    """
    if not probe.low:
        return NO_HITS, {}
    allowed = None if scope is None else scope.entities
    spans, keys = _spans(probe.question), [name_key(text) for text in probe.low]
    exact = _exact(snapshot, [*keys, *(key for _, _, key in spans)], allowed)
    spelled = _names_in(probe.question, spans, exact)
    named = dict.fromkeys(spelled, 1.0)
    lists = [_named(spelled)]
    reasons = [f"near “{text}”" for text in probe.low]
    near = _nearest(snapshot, "entity", probe.low_vectors, limit, allowed, reasons)
    for text, key, found in zip(probe.low, keys, near or [NO_HITS] * len(keys), strict=True):
        same = exact.get(key)
        if same is not None:
            named[same] = 1.0
            found = joined([_named({same: text}), found[found.ids != same]])
        elif len(found) and found.scores[0] >= SURE:
            named.setdefault(int(found.ids[0]), float(found.scores[0]))
        lists.append(found)
    return _best_rank_first(lists)[:limit], named


def _named(names: Mapping[int, str]) -> Hits:
    return Hits.of(names, np.ones(len(names)), [f"named “{name}”" for name in names.values()])


def _best_rank_first(lists: Sequence[Hits]) -> Hits:
    hits, ranks = joined(lists), np.concatenate([np.arange(len(hits)) for hits in lists])
    ordered = hits[np.lexsort((hits.ids, -hits.scores, ranks))]
    return ordered[each_first(ordered.ids)]


def _exact(snapshot: Snapshot, keys: Sequence[str], allowed: Ids | None) -> dict[str, int]:
    found = reading.entity_ids(snapshot.connection, keys)
    return {key: row for key, row in sorted(found.items()) if _contains(allowed, row)}


def _names_in(
    question: str, spans: Sequence[tuple[int, int, str]], known: Mapping[str, int]
) -> dict[int, str]:
    """Entities whose names occur in the question, the longest first; no name inside a longer one."""
    taken: list[tuple[int, int]] = []
    names: dict[int, str] = {}
    for start, end, key in spans:
        if key in known and not any(start < right and left < end for left, right in taken):
            taken.append((start, end))
            names.setdefault(known[key], _as_named(question[start:end]))
    return names


def _as_named(span: str) -> str:
    """A name without what only the question puts around it."""
    return _POSSESSIVE.sub("", span).strip(_AROUND) or span


def _spans(question: str) -> list[tuple[int, int, str]]:
    """Runs of words or of CJK characters that may be names, as (start, end, key), the longest first."""
    words = _word_spans(question)
    may_own = "'" in question or "’" in question
    spans: dict[tuple[int, int], str] = {}
    for first, (start, _, cjk) in enumerate(words):
        longest = LONGEST_CJK_NAME if cjk else LONGEST_NAME
        for last in range(first, min(first + longest, len(words))):
            end = words[last][1]
            plain = question[start:end]
            if first == last and (cjk or not plain[:1].isupper()):
                continue  # one character, or a common word
            key = name_key(_POSSESSIVE.sub("", plain) if may_own else plain)
            if key:
                spans[start, end] = key
    ordered = sorted(spans.items(), key=lambda item: (item[0][0] - item[0][1], item[0]))
    return [(start, end, key) for (start, end), key in ordered[:NAME_LIMIT]]


def _word_spans(text: str) -> list[tuple[int, int, bool]]:
    """Words, and single CJK characters, as (start, end, is CJK)."""
    return [(*found.span(), bool(found.lastindex)) for found in _WORD.finditer(text)]


# ── relations and chunks ────────────────────────────────────────────────────────


def _relation_hits(
    snapshot: Snapshot, probe: Probe, scope: Scope | None, limit: int
) -> tuple[Hits, Hits]:
    """Relations near the whole question and each text for relations; and the one nearest to the question."""
    if probe.vectors is None:
        return NO_HITS, NO_HITS
    allowed = None if scope is None else scope.relations
    vectors = np.concatenate([probe.vectors[:1], probe.vectors[1 + len(probe.low) :]])
    reasons = ["near the question", *(f"near “{text}”" for text in probe.high)]
    lists = _nearest(snapshot, "relation", vectors, limit, allowed, reasons)
    weights = [QUESTION_WEIGHT, *[1.0] * len(probe.high)][: len(lists)]
    return fuse(lists, weights=weights, limit=limit), lists[0][:1] if lists else NO_HITS


def _dense_hits(snapshot: Snapshot, probe: Probe, scope: Scope | None, limit: int) -> Hits:
    vectors = None if probe.vectors is None else probe.vectors[:1]
    allowed = None if scope is None else scope.chunks
    near = _nearest(snapshot, "chunk", vectors, limit, allowed, ["near the question"])
    return near[0] if near else NO_HITS


def _lexical_hits(snapshot: Snapshot, probe: Probe, scope: Scope | None, limit: int) -> Hits:
    allowed = None if scope is None else scope.chunks.tolist()
    rows = fulltext.search(
        snapshot.connection,
        probe.question,
        limit,
        keywords=probe.low,
        allowed=allowed,
        counted=snapshot.term_counts,
        total=snapshot.chunk_count,
    )
    ids, scores = zip(*rows, strict=True) if rows else ((), ())
    return Hits.of(ids, scores, "shares words with the question")


def _mentioned(snapshot: Snapshot, kind: Kind, chunks: Hits, limit: int) -> Hits:
    """What the best chunks mention: without vectors, the way into the graph."""
    best = chunks.ids[:PASSAGES].tolist()
    found = reading.mentioned(snapshot.connection, kind, best)[:limit]
    return Hits.of(found, 1 / np.arange(1, len(found) + 1), "in a passage found by its words")


# ── helpers ─────────────────────────────────────────────────────────────────────


def _nearest(
    snapshot: Snapshot,
    kind: Kind,
    vectors: Vectors | None,
    limit: int,
    allowed: Ids | None,
    reasons: Sequence[str],
) -> list[Hits]:
    """The nearest rows of each vector, with its reason; an empty list if there is nothing to search."""
    index = snapshot.vectors[kind]
    if vectors is None or not len(vectors) or not len(index):
        return []
    ids, scores = index.search(vectors, min(limit, len(index)), allowed=allowed)
    found = np.count_nonzero(ids[0] >= 0)  # the same for each row; unused places hold -1
    return [
        Hits.of(rows[:found], near[:found], why)
        for rows, near, why in zip(ids, scores, reasons, strict=True)
    ]


def _contains(allowed: Ids | None, row: int) -> bool:
    if allowed is None:
        return True
    place = int(np.searchsorted(allowed, row))
    return place < len(allowed) and int(allowed[place]) == row
