"""Finds the first hits: entities by name and vector, relations by vector, chunks by vector and words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.text import CJK, name_key
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.retrieval.fusion import NO_HITS, Hits, SearchTask, Seeds, fuse, joined
from lightrag_jsonl.retrieval.lexical import distinctive_terms

SURE = 0.75  # the least cosine at which the nearest entity counts as named (spec 3, sec. 4)
LONGEST_NAME = 6  # words; names up to this length are looked for in the question
LONGEST_CJK_NAME = 8  # characters; likewise
NAME_LIMIT = 600  # spans of the question that are looked up as names
TEXT_HITS = 100  # the least number of chunks that each text search returns
PASSAGES = 20  # without vectors, entities and relations are taken from so many passages
QUESTION_WEIGHT = 2.0  # weight of the whole question, where each keyword has 1, among relations
_WORD = re.compile(rf"([{CJK}])|[^\s{CJK}]+")
_POSSESSIVE = re.compile(r"['’]s?\W*$")
_AROUND = "?!.,;:…？！。，、；：\"“”'‘’()（）[]《》〈〉「」『』【】"


def find_seeds(task: SearchTask) -> Seeds:
    """What the question and its keywords hit, best first for each kind."""
    query, limit = task.query, max(TEXT_HITS, task.chunk_limit)
    words = NO_HITS
    if task.param.lexical or query.vectors is None:
        words = _lexical_hits(task, limit)
    entities, named = _entity_hits(task)
    if query.vectors is None:  # then the graph is entered through passages
        passages = words.ids[: PASSAGES if task.mode.graph else 0]
        stated = _in_passages(task, task.snapshot.mentioned_relations(passages.tolist()))
        if not len(entities):
            entities = _in_passages(task, task.snapshot.graph.entities_of(passages)[1].tolist())
        return Seeds(entities, named, stated, NO_HITS, words)
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


def _lexical_hits(task: SearchTask, limit: int) -> Hits:
    terms = distinctive_terms(task.snapshot, task.query.question, task.query.low)
    allowed = None if task.filtered is None else task.filtered.chunk.tolist()
    rows = task.snapshot.search_terms(terms, limit, allowed)
    ids, scores = zip(*rows, strict=True) if rows else ((), ())
    return Hits.of(ids, scores, "shares words with the question")


def _in_passages(task: SearchTask, rows: Iterable[int]) -> Hits:
    found = list(dict.fromkeys(rows))[: task.param.top_k]
    return Hits.of(found, 1 / np.arange(1, len(found) + 1), "in a passage found by its words")


def _nearest(
    task: SearchTask, kind: Kind, vectors: Vectors, limit: int, reasons: Sequence[str]
) -> list[Hits]:
    """The nearest rows of each vector, with its reason."""
    allowed = None if task.filtered is None else getattr(task.filtered, kind)
    ids, scores = task.snapshot.search_vectors(kind, vectors, limit, allowed)
    return [Hits.of(*found) for found in zip(ids, scores, reasons, strict=True)]


# ── entities ────────────────────────────────────────────────────────────────────


def _entity_hits(task: SearchTask) -> tuple[Hits, dict[int, float]]:
    """Entities by name and by vector: the best of every keyword, then the second of every keyword,
    and so on. Besides, those that the question names, each with the likeness of the names.
    """
    query, near = task.query, [NO_HITS] * len(task.query.low)
    if not query.low:
        return NO_HITS, {}
    if query.vectors is not None:
        vectors, reasons = query.vectors[1 : 1 + len(near)], [f"near “{one}”" for one in query.low]
        near = _nearest(task, "entity", vectors, task.param.top_k, reasons)
    spans, keys = _name_spans(query.question), [name_key(text) for text in query.low]
    exact = task.snapshot.entity_ids({*keys, *(key for _, _, key in spans)})
    if task.filtered is not None:
        inside = set(task.filtered.entity.tolist())
        exact = {key: row for key, row in exact.items() if row in inside}
    spelled = _names_in(query.question, spans, exact)
    named = dict.fromkeys(spelled, 1.0)
    lists = [_named(spelled)]
    for text, key, found in zip(query.low, keys, near, strict=True):
        if (same := exact.get(key)) is not None:
            named[same] = 1.0
            found = joined([_named({same: text}), found[found.ids != same]])[0]
        elif len(found) and found.scores[0] >= SURE:
            named.setdefault(int(found.ids[0]), float(found.scores[0]))
        lists.append(found)
    every, ranks = joined(lists)
    every = every[np.lexsort((every.ids, -every.scores, ranks))]
    first = np.sort(np.unique(every.ids, return_index=True)[1])
    return every[first[: task.param.top_k]], named


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
