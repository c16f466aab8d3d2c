"""Which of the passages found are shown: one of several copies, and front matter last or not at all."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lightrag_jsonl.core.cjk import has_cjk
from lightrag_jsonl.core.front_matter import asks_for_front_matter
from lightrag_jsonl.core.question_scope import TEXT_WORDS, content_words
from lightrag_jsonl.core.terms import stem
from lightrag_jsonl.core.text import folded_passage
from lightrag_jsonl.core.types import Chunk
from lightrag_jsonl.retrieval.hits import Hits, column
from lightrag_jsonl.retrieval.task import SearchTask
from lightrag_jsonl.storage.rows import Fingerprint
from lightrag_jsonl.storage.vector_index import Ids

# Bounds by reason, not tuned on questions.
SPARE_CHUNKS = 20  # found beyond the limit, to take the place of copies and of front matter
ALIKE = 0.95  # share of words that near copies have in common, and of their lengths
ENOUGH = 10  # passages without front matter, from which on front matter is left out
REPEATED = 3  # documents with the same passage, from which on the passage is boilerplate


@dataclass(frozen=True, slots=True)
class Passages:
    """The passages of a search, each text once: by the walk and by text, and the copies of each by row.

    Front matter stands last in both lists, and in neither if they are long.
    """

    walked: Hits
    by_text: Hits
    copies: Mapping[int, Sequence[int]]


def arrange_passages(task: SearchTask, walked: Hits, text_hits: Hits) -> Passages:
    """The passages in the order to show them; of several copies, the one that the walk ranks best.

    Front matter keeps its place if the question asks for such, or has a word that only it has. Of the
    hits by text, those that may be shown are looked at.
    """
    text_limit = SPARE_CHUNKS
    if len(walked) == 0 or task.chunk_limit > task.param.chunk_top_k:
        text_limit += task.chunk_limit
    leading = text_hits[:text_limit]
    rows = dict.fromkeys([*walked.ids.tolist(), *leading.ids.tolist()])
    stored = task.snapshot.fingerprints(rows)
    fingerprints = {row: stored[row] for row in rows if row in stored}
    originals = find_originals(task, fingerprints)
    rows_by_original: defaultdict[int, list[int]] = defaultdict(list)
    for row, original in originals.items():
        rows_by_original[original].append(row)
    last_rows = column(_unasked_boilerplate(task, fingerprints, rows_by_original))
    return Passages(
        walked=_arranged(walked, originals, last_rows),
        by_text=_arranged(text_hits, originals, last_rows),
        copies={original: rows[1:] for original, rows in rows_by_original.items()},
    )


def _arranged(hits: Hits, originals: Mapping[int, int], unasked_rows: Ids) -> Hits:
    """The hits with each original once, in the place of the best copy; some rows come last, and not at all
    if enough others are left.
    """
    ids = column([originals.get(row, row) for row in hits.ids.tolist()])
    _, first_places = np.unique(ids, return_index=True)
    first_places.sort()
    is_unasked = np.isin(ids[first_places], unasked_rows)
    places = first_places[np.argsort(is_unasked, kind="stable")]
    proper_count = len(places) - int(is_unasked.sum())
    places = places[:proper_count] if proper_count >= ENOUGH else places
    falling_scores = np.minimum.accumulate(hits.scores[places])
    return Hits(ids[places], falling_scores, hits.why[places])


# ── copies ──────────────────────────────────────────────────────────────────────


def find_originals(task: SearchTask, fingerprints: Mapping[int, Fingerprint]) -> dict[int, int]:
    """For each row the first row with the same text; or with nearly the same words, the same numbers
    and the same entities.
    """
    first_rows: dict[str, int] = {}
    for row, fingerprint in fingerprints.items():
        first_rows.setdefault(fingerprint.text_digest, row)
    near_originals = _originals_of_near_copies(task, fingerprints, [*first_rows.values()])
    originals: dict[int, int] = {}
    for row, fingerprint in fingerprints.items():
        first_row = first_rows[fingerprint.text_digest]
        originals[row] = near_originals.get(first_row, first_row)
    return originals


def _originals_of_near_copies(
    task: SearchTask, fingerprints: Mapping[int, Fingerprint], rows: Sequence[int]
) -> dict[int, int]:
    """For each near copy among rows with different texts, the first row that it is like."""
    groups: defaultdict[tuple[str, frozenset[int]], list[int]] = defaultdict(list)
    for row, entities in _mentioned_entities(task, rows).items():
        groups[fingerprints[row].numeral_digest, entities].append(row)
    compared_rows = [row for group in groups.values() if len(group) > 1 for row in group]
    if not compared_rows:
        return {}
    chunks = task.snapshot.chunks(compared_rows)
    originals: dict[int, int] = {}
    for group in groups.values():
        first_texts: dict[int, FoldedWords] = {}
        for row in group if len(group) > 1 else ():
            text = FoldedWords.of(chunks[row].text)
            like_rows = [
                first for first, first_text in first_texts.items() if text.is_like(first_text)
            ]
            if like_rows:
                originals[row] = like_rows[0]
            else:
                first_texts[row] = text
    return originals


def _mentioned_entities(task: SearchTask, rows: Sequence[int]) -> dict[int, frozenset[int]]:
    """The entities that each chunk mentions."""
    positions, entities = task.snapshot.graph.entities_of(column(rows))
    ends = np.searchsorted(positions, np.arange(len(rows)), side="right").tolist()
    starts = [0, *ends]
    return {
        row: frozenset(entities[start:end].tolist())
        for row, start, end in zip(rows, starts, ends, strict=False)
    }


@dataclass(frozen=True, slots=True)
class FoldedWords:
    """A folded text for comparisons: its length, and its words or, in Chinese, pairs of characters."""

    length: int
    words: frozenset[str]

    @classmethod
    def of(cls, text: str) -> "FoldedWords":
        """The words of a text."""
        folded = folded_passage(text)
        if has_cjk(folded):
            characters = "".join(filter(str.isalnum, folded))
            return cls(len(folded), frozenset(map("".join, pairwise(characters))))
        return cls(len(folded), frozenset(folded.split()))

    def is_like(self, further: "FoldedWords") -> bool:
        """Whether two texts have nearly the same words."""
        shorter, longer = sorted((self.length, further.length))
        if shorter < ALIKE * longer:
            return False
        return len(self.words & further.words) >= ALIKE * len(self.words | further.words)


# ── front matter ────────────────────────────────────────────────────────────────


def _unasked_boilerplate(
    task: SearchTask,
    fingerprints: Mapping[int, Fingerprint],
    rows_by_original: Mapping[int, Sequence[int]],
) -> list[int]:
    """The rows of front matter and of passages that many documents repeat, unless asked for."""
    question = task.query.question
    if asks_for_front_matter(question):
        return []
    boilerplate = {
        original
        for original, rows in rows_by_original.items()
        if fingerprints[original].is_front_matter or _is_repeated(task, rows)
    }
    if not boilerplate:
        return []
    words = [stem(word) for word in content_words(question) if word not in TEXT_WORDS]
    words_by_row = {
        row: _words_in([chunk], words) for row, chunk in task.snapshot.chunks(boilerplate).items()
    }
    proper_words: frozenset[str] = frozenset()
    if any(words_by_row.values()):
        proper_rows = rows_by_original.keys() - boilerplate
        proper_words = _words_in(task.snapshot.chunks(proper_rows).values(), words)
    return [
        row for row in rows_by_original if row in boilerplate and words_by_row[row] <= proper_words
    ]


def _is_repeated(task: SearchTask, rows: Sequence[int]) -> bool:
    """Whether copies of a passage stand in many documents."""
    if len(rows) < REPEATED:
        return False
    documents = {document for document, _ in task.snapshot.chunk_documents(rows).values()}
    return len(documents) >= REPEATED


def _words_in(chunks: Iterable[Chunk], words: Collection[str]) -> frozenset[str]:
    """Those of some words that the texts of the chunks have."""
    text = "\n".join([chunk.text for chunk in chunks]).casefold()
    return frozenset([word for word in words if word in text])
