"""Which of the passages found are shown: one of several copies, and front matter last or not at all."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from lightrag_jsonl.core.types import Chunk
from lightrag_jsonl.retrieval.asked_dates import with_asked_dates
from lightrag_jsonl.retrieval.hits import Hits, column
from lightrag_jsonl.retrieval.task import SearchTask
from lightrag_jsonl.storage.graph_index import is_among
from lightrag_jsonl.storage.vector_index import Ids
from lightrag_jsonl.text.front_matter import asks_for_front_matter
from lightrag_jsonl.text.question_kinds import TEXT_WORDS, content_words
from lightrag_jsonl.text.terms import stem

# Bounds by reason, not tuned on questions.
SPARE_CHUNKS = 20  # found beyond the limit, to take the place of copies and of front matter
ENOUGH = 10  # passages without front matter, from which on front matter is left out


class Passages(Struct, frozen=True):
    """The passages of a search, each text once: by the walk and by text, and the copies of each by row.

    Front matter stands last in both lists, and in neither if they are long.
    """

    walked: Hits
    by_text: Hits
    copies: Mapping[int, Sequence[int]]


def arrange_passages(task: SearchTask, walked: Hits, text_hits: Hits) -> Passages:
    """The passages in the order to show them; of several copies, the one that the walk ranks best.

    The passages of a date in the question come first. Front matter keeps its place if the question asks for such, or has a word that only it has. Of the
    hits by text, those that may be shown are looked at.
    """
    if any(map(str.isnumeric, task.query.question)):  # as in every date
        walked, text_hits = with_asked_dates(task, walked, text_hits)
    text_limit = SPARE_CHUNKS
    if len(walked) == 0 or task.chunk_limit > task.param.chunk_top_k:
        text_limit += task.chunk_limit
    leading = text_hits[:text_limit]
    rows = dict.fromkeys([*walked.ids.tolist(), *leading.ids.tolist()])
    fingerprints = task.snapshot.fingerprints(rows)
    copies_by_text: dict[str, list[int]] = {}
    for row in rows:
        if row in fingerprints:
            copies_by_text.setdefault(fingerprints[row].text_digest, []).append(row)
    original_by_row = {row: copies[0] for copies in copies_by_text.values() for row in copies}
    copies_by_original = {copies[0]: copies[1:] for copies in copies_by_text.values()}
    front_rows = [row for row in copies_by_original if fingerprints[row].is_front_matter]
    unasked_rows = column(())
    if front_rows:
        proper_rows = copies_by_original.keys() - set(front_rows)
        unasked_rows = column(_unasked_front_matter(task, front_rows, proper_rows))
    return Passages(
        walked=_arranged(walked, original_by_row, unasked_rows),
        by_text=_arranged(text_hits, original_by_row, unasked_rows),
        copies=copies_by_original,
    )


def _arranged(hits: Hits, original_by_row: Mapping[int, int], unasked_rows: Ids) -> Hits:
    """The hits with each original once, in the place of the best copy; some rows come last, and not at all
    if enough others are left.
    """
    ids = column([original_by_row.get(row, row) for row in hits.ids.tolist()])
    _, first_places = np.unique(ids, return_index=True)
    first_places.sort()
    is_unasked = is_among(ids[first_places], unasked_rows)
    places = first_places[np.argsort(is_unasked, kind="stable")]
    proper_count = len(places) - int(is_unasked.sum())
    places = places[:proper_count] if proper_count >= ENOUGH else places
    falling_scores = np.minimum.accumulate(hits.scores[places])
    return Hits(ids[places], falling_scores, hits.why[places])


# ── front matter ────────────────────────────────────────────────────────────────


def _unasked_front_matter(
    task: SearchTask, front_rows: Sequence[int], proper_rows: Collection[int]
) -> list[int]:
    """The rows of front matter that the question neither asks for nor has a word of that no proper row has."""
    question = task.query.question
    if asks_for_front_matter(question):
        return []
    words = [stem(word) for word in content_words(question) if word not in TEXT_WORDS]
    proper_words = _words_in(task.snapshot.chunks(proper_rows).values(), words)
    front_chunks = task.snapshot.chunks(front_rows)
    return [row for row in front_rows if _words_in([front_chunks[row]], words) <= proper_words]


def _words_in(chunks: Iterable[Chunk], words: Collection[str]) -> frozenset[str]:
    """Those of some words that the texts of the chunks have."""
    text = "\n".join([chunk.text for chunk in chunks]).casefold()
    return frozenset([word for word in words if word in text])
