"""Resolves the `[n]` of an answer to the sentences that support them, without a model."""

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lightrag_jsonl.core.citation_markers import CITATION_MARKER, marked_numbers, split_citations
from lightrag_jsonl.core.sentences import sentence_spans
from lightrag_jsonl.core.stop_words import GRAMMAR_WORDS
from lightrag_jsonl.core.terms import search_terms, stem
from lightrag_jsonl.core.types import Chunk, Citation, Cited, CitedClaim, Context
from lightrag_jsonl.storage.status import with_documents
from lightrag_jsonl.storage.store import Reader
from lightrag_jsonl.tracing.events import PromptItem
from lightrag_jsonl.tracing.recorder import numbered_items

CITED_CHUNKS = 5  # an entity or relation is cited by the first so many chunks

_LEADING = re.compile(rf"(?:[\s\"'”’」』]|{CITATION_MARKER.pattern})*".replace("?P<numbers>", "?:"))
_JOINTS = ",，、;；。."
_ENOUGH_SHARE = 0.2
_ENOUGH_TERMS = 2


@dataclass(frozen=True, slots=True)
class _Claim:
    """A claim in the text of an answer with one of its numbers, and the terms of the claim."""

    number: int
    start: int
    end: int
    marker: int
    terms: frozenset[str]


def resolve_citations(
    reader: Reader, text: str, context: Context, prompt_numbers: Sequence[int]
) -> Cited:
    """Resolve every number that an answer cites to the sentence that shares most with the citing
    one: of a chunk, or of the first stored chunks of a fact. Citation n cites the item that has the
    number `prompt_numbers[n - 1]` in the prompt. Each claim has its own support: a number may be
    right for one claim and wrong for another.
    """
    shown = numbered_items(context, {})
    items = {n: shown[number - 1] for n, number in enumerate(prompt_numbers, 1)}
    passages = {chunk.id: chunk for chunk in context.chunks}
    claims = list(_claims(text))
    facts = [item for item in items.values() if item.kind != "chunk"]
    ids = {id for item in facts for id in item.chunk_ids[:CITED_CHUNKS]}
    stored = {chunk.id: chunk for chunk in reader.chunks(ids=ids).values()}
    context = _with_documents(reader, context, stored)
    citations: dict[Citation, int] = {}
    resolved: dict[tuple[int, frozenset[str]], tuple[int, ...]] = {}
    supported: set[tuple[int, frozenset[str]]] = set()
    for claim in claims:
        key = (claim.number, claim.terms)
        item = items.get(claim.number)
        if item is None or key in resolved:
            continue
        chunks = passages if item.kind == "chunk" else stored
        named = [chunks[id] for id in item.chunk_ids[:CITED_CHUNKS] if id in chunks]
        candidates = [_citation(claim.number, item, chunk, claim.terms, context) for chunk in named]
        supporting = [citation for citation in candidates if citation.supported]
        if supporting:
            supported.add(key)
        cited = supporting or candidates[:1]
        resolved[key] = tuple(citations.setdefault(one, len(citations)) for one in cited)
    return Cited(
        citations=tuple(citations),
        claims=tuple(
            CitedClaim(
                number=claim.number,
                start=claim.start,
                end=claim.end,
                marker=claim.marker,
                supported=(claim.number, claim.terms) in supported,
                citations=resolved[claim.number, claim.terms],
            )
            for claim in claims
            if claim.number in items
        ),
        invented=tuple(dict.fromkeys(one.number for one in claims if one.number not in items)),
    )


def _with_documents(reader: Reader, context: Context, stored: dict[str, Chunk]) -> Context:
    """The context, in which the documents of stored chunks are described, too."""
    if not stored:
        return context
    other = with_documents(reader, replace(context, chunks=tuple(stored.values())))
    return replace(
        context,
        documents={**other.documents, **context.documents},
        dates={**other.dates, **context.dates},
        paged=context.paged | other.paged,
    )


def _claims(text: str) -> Iterator[_Claim]:
    """Each cited number with the claim before it: the part of the sentence since the previous
    markers, or the sentence if the part has too few terms.
    """
    spans = sentence_spans(text)
    claim_start = claim_end = end = 0
    terms = frozenset[str]()
    markers = [one for one in split_citations(text)[0] if not isinstance(one, str)]
    for marker in markers:
        if end == 0 or text[end : marker.start()].strip():
            start, stop = _cited_sentence(text, spans, marker)
            claim_start = max(start, end)
            claim_end = marker.start()
            terms = _stems(text[claim_start:claim_end])
            if len(terms) < _ENOUGH_TERMS:
                claim_start = start
                claim_end = stop
                terms = _stems(CITATION_MARKER.sub(" ", text[start:stop]))
            claim_start, claim_end = _trimmed(text, claim_start, claim_end)
        end = marker.end()
        for number in marked_numbers(marker):
            yield _Claim(
                number=number, start=claim_start, end=claim_end, marker=marker.start(), terms=terms
            )


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without white space, and without what joins it to the part before it."""
    while start < end and (text[start].isspace() or text[start] in _JOINTS):
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _cited_sentence(
    text: str, spans: Sequence[tuple[int, int]], marker: re.Match[str]
) -> tuple[int, int]:
    """The span of the sentence that a marker belongs to.

    Marks that open a sentence belong to the previous one, if that is on the same line.
    """
    index = max(bisect_right(spans, (marker.start(), len(text))) - 1, 0)
    start = spans[index][0]
    leading = _LEADING.match(text, start)
    joined = index > 0 and "\n" not in text[spans[index - 1][1] : start]
    if joined and leading and marker.start() < leading.end():
        index -= 1
    return spans[index]


def _citation(
    number: int, item: PromptItem, chunk: Chunk, terms: Collection[str], context: Context
) -> Citation:
    span = supporting_sentence(chunk.text, terms)
    start, end = span or (0, 0)
    return Citation(
        number=number,
        kind=item.kind,
        label=item.id if item.kind == "chunk" else item.label,
        document_id=chunk.document_id,
        document=context.documents.get(chunk.document_id, chunk.document_id),
        page=chunk.page,
        chunk_id=chunk.id,
        start=chunk.start + start,
        end=chunk.start + end,
        text=chunk.text[start:end],
        supported=span is not None,
        heading=chunk.heading,
        date=context.dates.get(chunk.document_id),
        paged=chunk.document_id in context.paged,
    )


def supporting_sentence(text: str, terms: Collection[str]) -> tuple[int, int] | None:
    """The span of the first sentence that shares most terms, each weighted by its rarity among the
    sentences of the text; None if none shares enough.
    """
    sentences, rarity = _sentences(text)
    best, span, shared = 0.0, (0, 0), 0
    for start, end, words in sentences:
        common = sorted(words.intersection(terms))
        if (score := sum([rarity[term] for term in common])) > best:
            best, span, shared = score, (start, end), len(common)
    enough = max(min(_ENOUGH_TERMS, len(terms)), _ENOUGH_SHARE * len(terms), 1)
    return span if shared >= enough else None


@lru_cache(100)  # a passage is often cited several times
def _sentences(text: str) -> tuple[list[tuple[int, int, frozenset[str]]], dict[str, float]]:
    """The sentences with their terms, and the rarity of each term."""
    sentences = [(start, end, _stems(text[start:end])) for start, end in sentence_spans(text)]
    counts = Counter(term for _, _, terms in sentences for term in terms)
    rarity = {term: math.log(1 + len(sentences) / count) for term, count in counts.items()}
    return sentences, rarity


def _stems(text: str) -> frozenset[str]:
    """The terms of a text without words of grammar, English ones without their endings."""
    return frozenset(stem(term) for term in search_terms(text) if term not in GRAMMAR_WORDS)
