"""Which of the passages found are shown: one of several copies, and front matter last."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
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
REPEATED = 3  # documents with the same passage, from which on the passage is boilerplate

_NUMERAL = re.compile(r"[\d〇零一二三四五六七八九十百千万亿两]")


@dataclass(frozen=True, slots=True)
class Passages:
    """The passages of a search, each text once: by the walk and by text, and the copies of each by row.

    Front matter stands last in both lists.
    """

    walked: Hits
    by_text: Hits
    copies: Mapping[int, Sequence[int]]


def arrange_passages(task: SearchTask, walked: Hits, text_hits: Hits) -> Passages:
    """The passages in the order to show them; of several copies, the one that the walk ranks best.

    Front matter keeps its place if the question asks for such, or has a word that only it has. Of the
    hits by text, those that may be shown are looked at.
    """
    is_by_text = not len(walked) or task.chunk_limit > task.param.chunk_top_k
    text_limit = SPARE_CHUNKS + (task.chunk_limit if is_by_text else 0)
    leading = text_hits[:text_limit]
    rows = dict.fromkeys([*walked.ids.tolist(), *leading.ids.tolist()])
    stored_chunks = task.snapshot.chunks(rows)
    chunks = {row: stored_chunks[row] for row in rows if row in stored_chunks}
    originals = find_originals(task, chunks)
    copies: dict[int, list[int]] = {}
    for row, original in originals.items():
        copies.setdefault(original, []).append(row)
    last = column(_unasked_boilerplate(task.query.question, chunks, copies))
    return Passages(
        walked=_arranged(walked, originals, last),
        by_text=_arranged(text_hits, originals, last),
        copies={original: rows[1:] for original, rows in copies.items() if len(rows) > 1},
    )


def folded_passage(text: str) -> str:
    """The text as it is compared: without differences of white space and of case."""
    return " ".join(text.casefold().split())


def _arranged(hits: Hits, originals: Mapping[int, int], last: Ids) -> Hits:
    """The hits with each original once, in the place of the best copy, and some rows at the end."""
    ids = column([originals.get(row, row) for row in hits.ids.tolist()])
    first_places = np.sort(np.unique(ids, return_index=True)[1])
    ids = ids[first_places]
    order = np.argsort(np.isin(ids, last), kind="stable")
    scores = hits.scores[first_places][order]
    return Hits(ids[order], np.minimum.accumulate(scores), hits.why[first_places][order])


# ── copies ──────────────────────────────────────────────────────────────────────


def find_originals(task: SearchTask, chunks: Mapping[int, Chunk]) -> dict[int, int]:
    """For each row the first row with the same text; or with nearly the same words, the same numbers
    and the same entities.
    """
    rows_by_text: dict[str, int] = {}
    originals: dict[int, int] = {}
    for row, chunk in chunks.items():
        originals[row] = rows_by_text.setdefault(folded_passage(chunk.text), row)
    near_copies = _near_copies(task, {row: text for text, row in rows_by_text.items()})
    return {row: near_copies.get(original, original) for row, original in originals.items()}


def _near_copies(task: SearchTask, texts: Mapping[int, str]) -> dict[int, int]:
    """The rows of near copies, each with the first row of the same kind."""
    entities_by_row: dict[int, frozenset[int]] = {}
    near_copies: dict[int, int] = {}
    firsts_by_numbers: defaultdict[str, list[int]] = defaultdict(list)
    for row, text in texts.items():
        firsts = firsts_by_numbers["".join(_NUMERAL.findall(text))]
        for first in firsts:
            if _is_alike(text, texts[first]):
                for member in (row, first):
                    if member not in entities_by_row:
                        entities_by_row[member] = _mentioned_entities(task, member)
                if entities_by_row[row] == entities_by_row[first]:
                    near_copies[row] = first
                    break
        else:
            firsts.append(row)
    return near_copies


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


def _mentioned_entities(task: SearchTask, chunk: int) -> frozenset[int]:
    return frozenset(task.snapshot.graph.entities_of(column([chunk]))[1].tolist())


# ── front matter ────────────────────────────────────────────────────────────────


def _unasked_boilerplate(
    question: str, chunks: Mapping[int, Chunk], copies: Mapping[int, Sequence[int]]
) -> list[int]:
    """The rows of front matter and of passages that many documents repeat, unless asked for."""
    if asks_for_front_matter(question):
        return []
    boilerplate = [
        row
        for row, rows in copies.items()
        if len({chunks[row].document_id for row in rows}) >= REPEATED
        or is_front_matter(chunks[row].text)
    ]
    if not boilerplate:
        return []
    proper_texts = [chunks[row].text.casefold() for row in copies.keys() - frozenset(boilerplate)]
    missing_words = _missing_words(question, proper_texts)
    return [row for row in boilerplate if not _has_any(chunks[row].text.casefold(), missing_words)]


def _missing_words(question: str, texts: Collection[str]) -> list[str]:
    """The words of a question that none of the texts has, without words for texts and their parts."""
    stems = [stem(word) for word in content_words(question) if word not in TEXT_WORDS]
    return [word for word in stems if not any(word in text for text in texts)]


def _has_any(text: str, words: Iterable[str]) -> bool:
    return any(word in text for word in words)
