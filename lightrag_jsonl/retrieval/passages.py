"""Which of the passages found are shown: one of several copies, and front matter last or not at all."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from lightrag_jsonl.core.cjk import has_cjk
from lightrag_jsonl.core.front_matter import asks_for_front_matter, is_front_matter
from lightrag_jsonl.core.question_scope import TEXT_WORDS, content_words
from lightrag_jsonl.core.terms import stem
from lightrag_jsonl.core.types import Chunk
from lightrag_jsonl.retrieval.hits import Hits, column
from lightrag_jsonl.retrieval.task import SearchTask
from lightrag_jsonl.storage.vector_index import Ids

# Bounds by reason, not tuned on questions.
SPARE_CHUNKS = 20  # found beyond the limit, to take the place of copies and of front matter
ALIKE = 0.95  # share of words that near copies have in common, and of their lengths
ENOUGH = 10  # passages without front matter, from which on front matter is left out
REPEATED = 3  # documents with the same passage, from which on the passage is boilerplate

_NUMERAL = re.compile(r"[\d〇零一二三四五六七八九十百千万亿两]")


@dataclass(frozen=True, slots=True)
class Passages:
    """The passages of a search, each text once: by the walk and by text, and the copies of each by row.

    Front matter stands last in both lists, and in neither if they are long. `chunks` are those that were looked at.
    """

    walked: Hits
    by_text: Hits
    chunks: Mapping[int, Chunk]
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
    stored_chunks = task.snapshot.chunks(rows)
    chunks = {row: stored_chunks[row] for row in rows if row in stored_chunks}
    originals = find_originals(task, chunks)
    rows_by_original: defaultdict[int, list[int]] = defaultdict(list)
    for row, original in originals.items():
        rows_by_original[original].append(row)
    last_rows = column(_unasked_boilerplate(task.query.question, chunks, rows_by_original))
    return Passages(
        walked=_arranged(walked, originals, last_rows),
        by_text=_arranged(text_hits, originals, last_rows),
        chunks=chunks,
        copies={original: rows[1:] for original, rows in rows_by_original.items()},
    )


def folded_passage(text: str) -> str:
    """The text as it is compared: without differences of white space and of case."""
    return " ".join(text.casefold().split())


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


def find_originals(task: SearchTask, chunks: Mapping[int, Chunk]) -> dict[int, int]:
    """For each row the first row with the same text; or with nearly the same words, the same numbers
    and the same entities.
    """
    rows_by_numbers: defaultdict[str, list[int]] = defaultdict(list)
    for row, chunk in chunks.items():
        rows_by_numbers["".join(_NUMERAL.findall(chunk.text))].append(row)
    originals = {row: row for row in chunks}
    for rows in rows_by_numbers.values():
        if len(rows) > 1:
            texts = {row: folded_passage(chunks[row].text) for row in rows}
            originals |= _originals_of_copies(task, texts)
    return originals


def _originals_of_copies(task: SearchTask, texts: Mapping[int, str]) -> dict[int, int]:
    """For each row of some folded texts with the same numbers, the first row with the same text, or a
    near copy.
    """
    originals: dict[int, int] = {}
    rows_by_text: dict[str, int] = {}
    first_rows: list[int] = []
    for row, text in texts.items():
        if text in rows_by_text:
            originals[row] = originals[rows_by_text[text]]
            continue
        rows_by_text[text] = row
        originals[row] = row
        for first_row in first_rows:
            if _is_alike(text, texts[first_row]) and _mention_the_same(task, row, first_row):
                originals[row] = first_row
                break
        else:
            first_rows.append(row)
    return originals


def _is_alike(text: str, further_text: str) -> bool:
    """Whether two folded texts have nearly the same words."""
    lengths = sorted((len(text), len(further_text)))
    if lengths[0] < ALIKE * lengths[1]:
        return False
    words = _words_or_pairs(text)
    further_words = _words_or_pairs(further_text)
    return len(words & further_words) >= ALIKE * len(words | further_words)


@lru_cache(1_000)  # most are compared several times
def _words_or_pairs(text: str) -> frozenset[str]:
    """The words of a folded text; of a text in Chinese, pairs of characters."""
    if has_cjk(text):
        characters = "".join(filter(str.isalnum, text))
        return frozenset(map("".join, pairwise(characters)))
    return frozenset(text.split())


def _mention_the_same(task: SearchTask, chunk: int, further_chunk: int) -> bool:
    """Whether two chunks mention the same entities."""
    _, entities = task.snapshot.graph.entities_of(column([chunk]))
    _, further_entities = task.snapshot.graph.entities_of(column([further_chunk]))
    return set(entities.tolist()) == set(further_entities.tolist())


# ── front matter ────────────────────────────────────────────────────────────────


def _unasked_boilerplate(
    question: str, chunks: Mapping[int, Chunk], rows_by_original: Mapping[int, Sequence[int]]
) -> list[int]:
    """The rows of front matter and of passages that many documents repeat, unless asked for."""
    if asks_for_front_matter(question):
        return []
    boilerplate: dict[int, str] = {}
    proper_texts: list[str] = []
    for original, rows in rows_by_original.items():
        text = chunks[original].text
        document_ids = {chunks[row].document_id for row in rows}
        if len(document_ids) >= REPEATED or is_front_matter(text):
            boilerplate[original] = text.casefold()
        else:
            proper_texts.append(text)
    if not boilerplate:
        return []
    missing_words = _missing_words(question, "\n".join(proper_texts).casefold())
    return [
        row for row, text in boilerplate.items() if not any(word in text for word in missing_words)
    ]


def _missing_words(question: str, text: str) -> list[str]:
    """The words of a question that a text does not have, without words for texts and their parts."""
    words = [stem(word) for word in content_words(question) if word not in TEXT_WORDS]
    return [word for word in words if word not in text]
