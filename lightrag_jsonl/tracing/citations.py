"""Resolves the `[n]` of an answer to the sentences that support them, without a model."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial

from lightrag_jsonl.core.text import CITATION_MARKER, search_terms, sentence_spans
from lightrag_jsonl.core.types import Chunk, Citation, Context
from lightrag_jsonl.retrieval.pipeline import Cited
from lightrag_jsonl.storage.store import Reader, Store, read
from lightrag_jsonl.tracing.events import Shown
from lightrag_jsonl.tracing.recorder import numbered_items

CITED_CHUNKS = 5  # an entity or relation is cited by the first so many chunks

_RANGE = re.compile(r"(\d+)(?:\s*[-‐-―−~～－]\s*(\d+))?")
_LONGEST_RANGE = 100  # longer ranges count as their two ends: so many items are never shown
_LEADING = re.compile(rf"(?:\s|{CITATION_MARKER.pattern})*".replace("?P<numbers>", "?:"))
_ENOUGH_SHARE = 0.2
_ENOUGH_TERMS = 2
_FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be been but by did do does for from had has have he her his in into is "
        "it its not of on or s she so than that the their them then there these they this to was "
        "were what when where which who why will with "
        "这个 那个 一个 因为 所以 他的 她的 它的 我们 他们",
    )
)


def cite(store: Store) -> Callable[[str, Context], Awaitable[Cited]]:
    """A function that resolves the citations of an answer, given its text and its context."""

    async def cited(text: str, context: Context) -> Cited:
        return await read(store, partial(resolve_citations, text, context))

    return cited


def resolve_citations(text: str, context: Context, reader: Reader) -> Cited:
    """Resolve every number that an answer written from `context` cites.

    A fact is cited by the first of its chunks, as far as they are still stored. A citation is
    narrowed to the sentence of its chunk that shares most terms with the citing sentence; if no
    sentence shares enough, it is the whole chunk.
    """
    items = dict(enumerate(numbered_items(context, {}), 1))
    shown = {chunk.id: chunk for chunk in context.chunks}
    cited = _cited_numbers(text)
    known = [items[number] for number, _ in cited if number in items]
    stored = reader.chunks_by_id({id for item in known for id in item.chunk_ids[:CITED_CHUNKS]})
    citations: dict[Citation, None] = {}
    invented: dict[int, None] = {}
    for number, terms in cited:
        if number not in items:
            invented[number] = None
            continue
        chunks = shown if items[number].kind == "chunk" else stored
        for id in items[number].chunk_ids[:CITED_CHUNKS]:
            if id in chunks:
                citations[_citation(items[number], chunks[id], terms, context)] = None
    return tuple(citations), tuple(invented)


def marked_numbers(marker: re.Match[str]) -> tuple[int, ...]:
    """The numbers in a `CITATION_MARKER`: [1], [2, 5], [3-6]."""
    numbers: dict[int, None] = {}
    for first, last in _RANGE.findall(marker["numbers"]):
        start, end = int(first), int(last or first)
        within = 0 <= end - start < _LONGEST_RANGE
        numbers.update(dict.fromkeys(range(start, end + 1) if within else (start, end)))
    return tuple(numbers)


def _cited_numbers(text: str) -> list[tuple[int, tuple[str, ...]]]:
    """The numbers that each sentence cites, with the sentence's terms."""
    spans = sentence_spans(text)
    cited: dict[int, dict[int, None]] = {}
    for marker in CITATION_MARKER.finditer(text):
        index = max(bisect_right(spans, (marker.start(), len(text))) - 1, 0)
        start = spans[index][0]
        # Marks that open a sentence belong to the previous one, if that is on the same line.
        leading = _LEADING.match(text, start)
        joined = index > 0 and "\n" not in text[spans[index - 1][1] : start]
        if joined and leading and marker.start() < leading.end():
            index -= 1
        cited.setdefault(index, {}).update(dict.fromkeys(marked_numbers(marker)))
    found = []
    for index, numbers in cited.items():
        words = search_terms(CITATION_MARKER.sub(" ", text[slice(*spans[index])]))
        terms = tuple(dict.fromkeys(word for word in words if word not in _FUNCTION_WORDS))
        found += [(number, terms) for number in numbers]
    return found


def _citation(item: Shown, chunk: Chunk, terms: tuple[str, ...], context: Context) -> Citation:
    start, end = _best_sentence(chunk.text, terms)
    return Citation(
        number=item.number,
        kind=item.kind,
        label=item.id if item.kind == "chunk" else item.label,
        document_id=chunk.document_id,
        document=context.documents.get(chunk.document_id, chunk.document_id),
        page=chunk.page,
        chunk_id=chunk.id,
        start=chunk.start + start,
        end=chunk.start + end,
        text=chunk.text[start:end],
    )


def _best_sentence(text: str, terms: tuple[str, ...]) -> tuple[int, int]:
    """The span of the sentence that shares most terms, the earlier among equals, or of the whole
    text if none shares enough.
    """
    best, span = 0, (0, len(text))
    for start, end, words in _sentences(text):
        shared = len(words.intersection(terms))
        if shared > best:
            best, span = shared, (start, end)
    enough = max(min(_ENOUGH_TERMS, len(terms)), _ENOUGH_SHARE * len(terms), 1)
    return span if best >= enough else (0, len(text))


@lru_cache(100)  # a passage is often cited several times
def _sentences(text: str) -> list[tuple[int, int, frozenset[str]]]:
    """The span and the terms of each sentence."""
    spans = sentence_spans(text)
    return [(start, end, frozenset(search_terms(text[start:end]))) for start, end in spans]
