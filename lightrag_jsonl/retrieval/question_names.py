"""The entities that a question names, also by aliases stated in the visible documents."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from lightrag_jsonl.retrieval.hits import column
from lightrag_jsonl.retrieval.task import SearchTask
from lightrag_jsonl.storage.vector_index import Ids
from lightrag_jsonl.text.cjk import CJK
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.terms import search_terms

# Bounds of the time that a question takes: no name of the question sets is longer, and a question of
# a hundred words has no more spans.
LONGEST_NAME = 12  # words; names up to this length are looked for in the question
LONGEST_CJK_NAME = 16  # characters; likewise
NAME_LIMIT = 2_000  # spans of the question that are looked up as names

_SPAN_PART = pattern_of(rf"([{CJK}])|[^\s{CJK}]+")
_POSSESSIVE = pattern_of(r"['’]s?\W*$")
_SURROUNDINGS = "?!.,;:…？！。，、；：\"“”'‘’()（）[]《》〈〉「」『』【】"

NameSpan: TypeAlias = tuple[int, int, str]  # start, end, name key
AliasClaims: TypeAlias = Sequence[tuple[int, str]]  # an entity's row and the key of an alias


class QuestionNames(Struct, frozen=True):
    """Entities by the key of a name in the question or in a keyword; and the spelling of each entity
    whose name stands in the question itself.
    """

    rows_by_key: Mapping[str, int]
    spellings: Mapping[int, str]

    def contain(self, text: str) -> bool:
        """Whether a text is the whole or a part of a name in the question."""
        words = _bounded(text)
        return any(words in _bounded(spelling) for spelling in self.spellings.values())


def question_names(task: SearchTask) -> QuestionNames:
    """The names in the question and in its keywords that are names of visible entities."""
    spans = _name_spans(task.query.question)
    keys = {*map(name_key, task.query.low), *(key for _, _, key in spans)}
    rows_by_key = entities_called(task, keys)
    return QuestionNames(rows_by_key, _names_as_spelled(task.query.question, spans, rows_by_key))


def _names_as_spelled(
    question: str, spans: Sequence[NameSpan], rows_by_key: Mapping[str, int]
) -> dict[int, str]:
    """The names of entities as the question spells them, the longest first; no name inside a longer
    one.
    """
    taken: list[tuple[int, int]] = []
    spellings: dict[int, str] = {}
    for start, end, key in spans:
        if key in rows_by_key and all(
            start >= taken_end or taken_start >= end for taken_start, taken_end in taken
        ):
            taken.append((start, end))
            span = question[start:end]
            name = _POSSESSIVE.sub("", span).strip(_SURROUNDINGS)
            spellings.setdefault(rows_by_key[key], name or span)
    return spellings


def _name_spans(question: str) -> Sequence[NameSpan]:
    """Runs of words or of CJK characters that may be names, the longest first."""
    parts = list(_SPAN_PART.finditer(question))
    spans: list[NameSpan] = []
    for first, part in enumerate(parts):
        is_character = bool(part[1])
        longest = LONGEST_CJK_NAME if is_character else LONGEST_NAME
        is_common_word = not part[0].lstrip(_SURROUNDINGS)[:1].isupper()
        for last in range(first, min(first + longest, len(parts))):
            if first == last and (is_character or is_common_word):
                continue
            start = part.start()
            end = parts[last].end()
            key = name_key(_POSSESSIVE.sub("", question[start:end]))
            if key:
                spans.append((start, end, key))
    spans.sort(key=lambda span: (span[0] - span[1], span))
    return tuple(spans[:NAME_LIMIT])


def _bounded(name: str) -> str:
    return f" {' '.join(search_terms(name))} "


# ── aliases ─────────────────────────────────────────────────────────────────────


def entities_called(task: SearchTask, keys: Collection[str]) -> dict[str, int]:
    """For each key the visible entity of this name, or else the one that visible documents call so; of several,
    the best connected. An entity that the filter hides takes no name away from others.
    """
    rows_by_alias: dict[str, list[int]] = defaultdict(list)
    for row, key in _visible_claims(task, task.snapshot.alias_claims(keys=keys)):
        rows_by_alias[key].append(row)
    degrees = task.snapshot.graph.degrees
    called = {key: rows[degrees(column(rows)).argmax()] for key, rows in rows_by_alias.items()}
    named = task.snapshot.entity_ids(keys)
    visible = task.inside("entity", column(named.values()))
    return called | dict(itertools.compress(named.items(), visible))


def alias_pairs(task: SearchTask, entities: Ids) -> Ids:
    """Pairs of entities, one of each pair in `entities`, where one alone has the name of the other as an
    alias, shape (n, 2), ascending: an alias that several entities have may be of any of them.
    """
    claims = _visible_claims(task, task.snapshot.alias_claims(entities=entities.tolist()))
    rows_by_key = task.snapshot.entity_ids({key for _, key in claims})
    claims_of_names = _visible_claims(task, task.snapshot.alias_claims(keys=rows_by_key))
    claim_counts = Counter(key for _, key in claims_of_names)
    distinct_pairs: set[tuple[int, int]] = set()
    for row, key in claims:
        named_row = rows_by_key.get(key, row)
        if named_row != row and claim_counts[key] == 1:
            distinct_pairs.add((min(row, named_row), max(row, named_row)))
    pairs = np.array(sorted(distinct_pairs), np.int64).reshape(-1, 2)
    visible = task.inside("entity", pairs.ravel()).reshape(-1, 2).all(axis=1)
    return pairs[visible]


def _visible_claims(task: SearchTask, claims: AliasClaims) -> AliasClaims:
    """The claims of chunks that the question's filter lets through."""
    if task.filtered is None or not claims:
        return claims
    chunks = set(task.filtered["chunk"].tolist())
    mentions = task.snapshot.entity_mentions(entities={row for row, _ in claims})
    visible = {
        (mention_row.owner, name_key(alias))
        for mention_row in mentions
        if mention_row.chunk in chunks
        for alias in mention_row.mention.aliases
    }
    return [claim for claim in claims if claim in visible]
