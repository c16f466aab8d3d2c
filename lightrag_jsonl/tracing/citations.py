"""Resolves the `[n]` of an answer to the sentences that support them, without a model."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

from lightrag_jsonl.core.text import CITATION_MARKER, is_cjk, search_terms, sentence_spans
from lightrag_jsonl.core.types import Chunk, Citation, Context, Entity, Kind, Relation
from lightrag_jsonl.storage.store import Store, read

Item: TypeAlias = Entity | Relation | Chunk
Cited: TypeAlias = tuple[tuple[Citation, ...], tuple[int, ...]]
"""The citations of an answer in reading order, and the cited numbers that were never shown."""

CITED_CHUNKS = 5  # an entity or relation is cited by the first so many chunks

_RANGE = re.compile(r"(\d+)(?:\s*[-‐-―−~～－]\s*(\d+))?")
_LONGEST_RANGE = 100  # longer ranges count as their two ends: so many items are never shown
_LEADING = re.compile(rf"(?:\s|{CITATION_MARKER.pattern})*".replace("?P<numbers>", "?:"))
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")
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
        items = _numbered_items(context)
        numbers = [n for found in CITATION_MARKER.finditer(text) for n in cited_numbers(found)]
        ids = [id for n in numbers if n in items for id in _cited_ids(items[n])]
        return await read(
            store, lambda reader: resolve_citations(text, context, reader.chunks_by_id(set(ids)))
        )

    return cited


def resolve_citations(text: str, context: Context, chunks: Mapping[str, Chunk]) -> Cited:
    """Resolve every number that an answer written from `context` cites.

    A fact is cited by those of its chunks that are in `chunks`, by id. A citation is narrowed to
    the sentence of its chunk that shares most terms with the citing sentence; if no sentence shares
    enough, it is the whole chunk.
    """
    items = _numbered_items(context)
    citations: dict[Citation, None] = {}
    invented: dict[int, None] = {}
    for sentence, numbers in _citing_sentences(text):
        terms = [term for term in dict.fromkeys(sentence) if term not in _FUNCTION_WORDS]
        for number in numbers:
            if number not in items:
                invented[number] = None
                continue
            item = items[number]
            kind, label = _kind_and_label(item)
            own = [item] if isinstance(item, Chunk) else map(chunks.get, _cited_ids(item))
            for chunk in filter(None, own):
                start, end = _best_sentence(chunk.text, terms)
                citation = Citation(
                    number=number,
                    kind=kind,
                    label=label,
                    document_id=chunk.document_id,
                    document=context.documents.get(chunk.document_id, chunk.document_id),
                    page=chunk.page,
                    chunk_id=chunk.id,
                    start=chunk.start + start,
                    end=chunk.start + end,
                    text=chunk.text[start:end],
                )
                citations[citation] = None
    return tuple(citations), tuple(invented)


def cited_numbers(marker: re.Match[str]) -> tuple[int, ...]:
    """The numbers in a `CITATION_MARKER`: [1], [2, 5], [3-6]."""
    numbers: dict[int, None] = {}
    for first, last in _RANGE.findall(marker["numbers"]):
        start, end = int(first), int(last or first)
        within = 0 <= end - start < _LONGEST_RANGE
        numbers.update(dict.fromkeys(range(start, end + 1) if within else (start, end)))
    return tuple(numbers)


def _kind_and_label(item: Item) -> tuple[Kind, str]:
    if isinstance(item, Chunk):
        return "chunk", item.id
    if isinstance(item, Entity):
        return "entity", item.name
    return "relation", f"{item.source} — {item.predicate} → {item.target}"


def _numbered_items(context: Context) -> dict[int, Item]:
    return dict(enumerate((*context.entities, *context.relations, *context.chunks), 1))


def _cited_ids(item: Item) -> tuple[str, ...]:
    """The chunks to look up; a chunk of the context is there already."""
    return () if isinstance(item, Chunk) else item.chunk_ids[:CITED_CHUNKS]


def _citing_sentences(text: str) -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """The terms of each sentence that cites something, and the numbers it cites."""
    spans = sentence_spans(text)
    starts = [start for start, _ in spans]
    cited: dict[int, dict[int, None]] = {}
    # Marks that open a sentence belong to the previous one, if that is on the same line.
    leading = [found.end() for start in starts if (found := _LEADING.match(text, start))]
    for marker in CITATION_MARKER.finditer(text):
        index = max(bisect_right(starts, marker.start()) - 1, 0)
        joined = index > 0 and "\n" not in text[spans[index - 1][1] : starts[index]]
        if joined and marker.start() < leading[index]:
            index -= 1
        cited.setdefault(index, {}).update(dict.fromkeys(cited_numbers(marker)))
    for index, numbers in cited.items():
        start, end = spans[index]
        yield search_terms(CITATION_MARKER.sub(" ", text[start:end])), tuple(numbers)


def _best_sentence(text: str, terms: list[str]) -> tuple[int, int]:
    """The span of the sentence that shares most terms, or of the whole text if none shares enough.

    Among equals the rarer terms decide, then the earlier sentence. Only paragraphs that could hold
    the best sentence are cut into sentences.
    """
    folded_text, paragraphs = _paragraphs(text)
    rarities = {term: 1 / count for term in terms if (count := folded_text.count(term))}
    shared = []
    for base, paragraph, folded in paragraphs:
        found = [term for term in rarities if term in folded]
        shared.append((-len(found), base, found, paragraph))
    best, span = (0, 0.0, 0), (0, len(text))
    for _, base, found, paragraph in sorted(shared):
        if len(found) < max(best[0], 1):
            break
        for start, end, folded in _sentences(paragraph):
            here = _shared(folded, found)
            rank = len(here), sum(map(rarities.__getitem__, here)), -base - start
            if rank > best:
                best, span = rank, (base + start, base + end)
    enough = max(min(_ENOUGH_TERMS, len(terms)), _ENOUGH_SHARE * len(terms), 1)
    return span if best[0] >= enough else (0, len(text))


@lru_cache(100)  # a passage is often cited several times
def _paragraphs(text: str) -> tuple[str, list[tuple[int, str, str]]]:
    """The text folded; and the start of each paragraph, its text, and this folded."""
    cuts = [0, *[found.end() for found in _BLANK_LINES.finditer(text)], len(text)]
    spans = pairwise(cuts)
    return _folded(text), [(a, text[a:b], _folded(text[a:b])) for a, b in spans]


@lru_cache(1_000)
def _sentences(paragraph: str) -> list[tuple[int, int, str]]:
    """The span of each sentence, and its folded text."""
    spans = sentence_spans(paragraph)
    return [(start, end, _folded(paragraph[start:end])) for start, end in spans]


def _folded(text: str) -> str:
    """Lower case and half width, as in search terms."""
    return unicodedata.normalize("NFKC", text).casefold()


def _shared(folded: str, terms: Iterable[str]) -> list[str]:
    """The terms that occur in the text; in scripts with spaces, only as whole words."""
    return [
        term
        for term in terms
        if term in folded
        and (is_cjk(term[0]) or re.search(rf"(?<![^\W_]){re.escape(term)}(?![^\W_])", folded))
    ]
