"""Resolves the `[n]` of an answer to the sentences in support, without a model."""

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from lightrag_jsonl.core.answers import Citation, Cited, CitedClaim, Context, PlacedQuote
from lightrag_jsonl.core.citation_markers import (
    CITATION_MARKER,
    CitationMarker,
    find_citations,
    without_citations,
)
from lightrag_jsonl.core.headings import Outline, find_headings
from lightrag_jsonl.core.sentences import sentence_spans
from lightrag_jsonl.core.stop_words import GRAMMAR_WORDS
from lightrag_jsonl.core.terms import search_terms, stem
from lightrag_jsonl.core.types import Chunk
from lightrag_jsonl.storage.status import with_documents
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.tracing.events import PromptItem, cited_items
from lightrag_jsonl.tracing.recorder import numbered_items

CITED_CHUNKS = 5  # an entity or relation is cited by the first so many chunks

_LEADING = re.compile(rf"(?:[\s\"'”’」』]|{CITATION_MARKER.pattern})*".replace("?P<numbers>", "?:"))
_JOINTS = ",，、;；。."
_ENOUGH_SHARE = 0.2
_ENOUGH_TERMS = 2


_ClaimKey: TypeAlias = tuple[int, frozenset[str], PlacedQuote | None]
_Sentence: TypeAlias = tuple[int, int, frozenset[str]]  # start, end and terms


@dataclass(frozen=True, slots=True)
class _CitingClaim:
    """A claim of an answer with one of the cited numbers, and the terms of the claim.

    `start` and `end` are the characters of the claim, `marker` is the place of the citation.
    """

    number: int
    start: int
    end: int
    marker: int
    terms: frozenset[str]
    quote: PlacedQuote | None = None

    @property
    def key(self) -> "_ClaimKey":
        """Equal for claims with the same support."""
        return self.number, self.terms, self.quote


def resolve_citations(
    view: StoreView,
    text: str,
    context: Context,
    prompt_numbers: Sequence[int],
    quotes: Sequence[PlacedQuote] = (),
) -> Cited:
    """Resolve every cited number to the sentence that shares most terms with the claim.

    The first citations of an answer made of `quotes` are of these, at the places that they were cut
    from. Any other sentence is in the cited chunk, or in the first stored chunks of a fact. Citation n cites the
    item with the number `prompt_numbers[n - 1]` in the prompt. Each claim has support of its own: a
    number may be right for one claim and wrong for another.
    """
    items = cited_items(numbered_items(context, {}), prompt_numbers)
    passages = {chunk.id: chunk for chunk in context.chunks}
    fact_chunks = _fact_chunks(view, items.values(), passages)
    described_context = _with_documents(view, context, fact_chunks)
    headings = _Headings(view)
    claims = [
        replace(claim, quote=quotes[place]) if place < len(quotes) else claim
        for place, claim in enumerate(_citing_claims(text))
    ]
    resolved: dict[_ClaimKey, list[Citation]] = {}
    for claim in claims:
        item = items.get(claim.number)
        if claim.quote is not None:
            citation = _quoted(claim.number, claim.quote, passages, context)
            resolved[claim.key] = [headings.at_quote(citation)]
        elif item is not None and claim.key not in resolved:
            chunks = {**fact_chunks, **passages} if item.kind == "chunk" else fact_chunks
            cited_chunks = [chunks[id] for id in item.chunk_ids[:CITED_CHUNKS] if id in chunks]
            resolved[claim.key] = [
                headings.at_quote(citation)
                for citation in _support(claim, item, cited_chunks, described_context)
            ]
    places: dict[Citation, int] = {}
    for citations in resolved.values():
        for citation in citations:
            places.setdefault(citation, len(places))
    numbers = dict.fromkeys(claim.number for claim in claims)
    cited_claims: list[CitedClaim] = []
    for claim in claims:
        if claim.number in items:
            citations = resolved[claim.key]
            cited_claim = CitedClaim(
                number=claim.number,
                start=claim.start,
                end=claim.end,
                marker=claim.marker,
                supported=any(citation.supported for citation in citations),
                citations=tuple([places[citation] for citation in citations]),
            )
            cited_claims.append(cited_claim)
    return Cited(
        citations=_with_boxes(view, places),
        claims=tuple(cited_claims),
        invented=tuple(number for number in numbers if number not in items),
    )


def _with_boxes(view: StoreView, citations: Iterable[Citation]) -> tuple[Citation, ...]:
    """The citations, with the place of the picture for texts read by a model on a picture."""
    citations = tuple(citations)
    documents = view.documents({citation.document_id for citation in citations})
    pictures_by_id = {document.id: document.seen_pictures for document in documents}
    with_boxes: list[Citation] = []
    for citation in citations:
        for picture in pictures_by_id.get(citation.document_id, ()):
            is_inside = picture.start <= citation.start and citation.end <= picture.end
            if picture.page == citation.page and is_inside:
                citation = replace(citation, box=picture.box)
        with_boxes.append(citation)
    return tuple(with_boxes)


class _Headings:
    """The headings above quoted sentences: a chunk may go on under another heading."""

    def __init__(self, view: StoreView) -> None:
        self._view = view
        self._outlines: dict[str, Outline] = {}

    def at_quote(self, citation: Citation) -> Citation:
        """The citation with the headings above the quoted sentence."""
        for chunk in self._view.chunks(ids=[citation.chunk_id]).values():
            before = chunk.text[: citation.start - chunk.start]
            if any(find_headings(f"\n\n{before}\n\n")):
                heading = self._outline(citation.document_id).path_at(citation.page, citation.start)
                return replace(citation, heading=heading)
        return citation

    def _outline(self, document_id: str) -> Outline:
        if document_id not in self._outlines:
            self._outlines[document_id] = Outline(self._view.pages([document_id]))
        return self._outlines[document_id]


def _fact_chunks(
    view: StoreView, items: Iterable[PromptItem], passages: Collection[str]
) -> dict[str, Chunk]:
    """The stored chunks behind cited entities, relations and documents, by id; without passages of the
    prompt that are cited themselves.
    """
    ids: set[str] = set()
    for item in items:
        if item.kind != "chunk" or item.id not in passages:
            ids.update(item.chunk_ids[:CITED_CHUNKS])
    return {chunk.id: chunk for chunk in view.chunks(ids=ids).values()}


def _with_documents(view: StoreView, context: Context, chunks: Mapping[str, Chunk]) -> Context:
    """The context, with the documents of further chunks described, too."""
    if not chunks:
        return context
    described = with_documents(view, replace(context, chunks=tuple(chunks.values())))
    return replace(
        context,
        documents={**described.documents, **context.documents},
        dates={**described.dates, **context.dates},
        paged=context.paged | described.paged,
    )


def _support(
    claim: _CitingClaim, item: PromptItem, chunks: Iterable[Chunk], context: Context
) -> list[Citation]:
    """The citations in support of a claim, or the unsupported citation of the first chunk."""
    citations = [_citation(claim, item, chunk, context) for chunk in chunks]
    return [citation for citation in citations if citation.supported] or citations[:1]


def _citing_claims(text: str) -> Iterator[_CitingClaim]:
    """Each cited number with the claim before the marker: the part of the sentence since the
    previous markers, or the whole sentence if the part has too few terms.
    """
    spans = sentence_spans(text)
    sentence_terms: dict[tuple[int, int], frozenset[str]] = {}
    claim_start = claim_end = marker_end = 0
    terms = frozenset[str]()
    for marker in find_citations(text):
        if marker_end == 0 or text[marker_end : marker.start].strip():
            start, end = _cited_sentence(text, spans, marker)
            claim_start = max(start, marker_end)
            claim_end = marker.start
            terms = _stems(text[claim_start:claim_end])
            if len(terms) < _ENOUGH_TERMS:
                claim_start = start
                claim_end = end
                if (start, end) not in sentence_terms:
                    sentence_terms[start, end] = _stems(without_citations(text[start:end]))
                terms = sentence_terms[start, end]
            claim_start, claim_end = _trimmed(text, claim_start, claim_end)
        marker_end = marker.end
        for number in marker.numbers:
            yield _CitingClaim(
                number=number,
                start=claim_start,
                end=claim_end,
                marker=marker.start,
                terms=terms,
            )


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without white space, and without punctuation at the start."""
    while start < end and (text[start].isspace() or text[start] in _JOINTS):
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _cited_sentence(
    text: str, spans: Sequence[tuple[int, int]], marker: CitationMarker
) -> tuple[int, int]:
    """The span of the sentence of a marker.

    A marker at the start of a sentence belongs to the previous sentence on the same line.
    """
    index = max(bisect_right(spans, (marker.start, len(text))) - 1, 0)
    start = spans[index][0]
    leading = _LEADING.match(text, start)
    joined = index > 0 and "\n" not in text[spans[index - 1][1] : start]
    if joined and leading and marker.start < leading.end():
        index -= 1
    return spans[index]


def _citation(claim: _CitingClaim, item: PromptItem, chunk: Chunk, context: Context) -> Citation:
    """The citation of a chunk by a claim, with the sentence in support, if there is one."""
    span = supporting_sentence(chunk.text, claim.terms)
    start, end = span or (0, 0)
    return Citation(
        number=claim.number,
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


def _quoted(
    number: int, quote: PlacedQuote, passages: Mapping[str, Chunk], context: Context
) -> Citation:
    """The citation of a quote at the place that it was cut from."""
    chunk = passages[quote.chunk_id]
    return Citation(
        number=number,
        kind="chunk",
        label=chunk.id,
        document_id=chunk.document_id,
        document=context.documents.get(chunk.document_id, chunk.document_id),
        page=chunk.page,
        chunk_id=chunk.id,
        start=quote.start,
        end=quote.end,
        text=chunk.text[quote.start - chunk.start : quote.end - chunk.start],
        heading=chunk.heading,
        date=context.dates.get(chunk.document_id),
        paged=chunk.document_id in context.paged,
    )


def sentence_in_support(claim: str, text: str) -> tuple[int, int] | None:
    """The span of the sentence of a text in support of a claim, or None."""
    return supporting_sentence(text, _stems(claim))


def supporting_sentence(text: str, terms: Collection[str]) -> tuple[int, int] | None:
    """The span of the first sentence with the most of these terms, each weighted by rarity among the
    sentences of the text; None if no sentence has enough.
    """
    sentences, rarity = _sentence_terms(text)
    best_score = 0.0
    best_span = (0, 0)
    best_count = 0
    for start, end, sentence_terms in sentences:
        common = sorted(sentence_terms.intersection(terms))
        score = sum([rarity[term] for term in common])
        if score > best_score:
            best_score = score
            best_span = (start, end)
            best_count = len(common)
    enough = max(min(_ENOUGH_TERMS, len(terms)), _ENOUGH_SHARE * len(terms), 1)
    return best_span if best_count >= enough else None


@lru_cache(100)  # a passage is often cited several times
def _sentence_terms(text: str) -> tuple[list[_Sentence], dict[str, float]]:
    """The sentences of a text, and the rarity of each term."""
    sentences = [(start, end, _stems(text[start:end])) for start, end in sentence_spans(text)]
    counts = Counter(term for _, _, terms in sentences for term in terms)
    rarity = {term: math.log(1 + len(sentences) / count) for term, count in counts.items()}
    return sentences, rarity


def _stems(text: str) -> frozenset[str]:
    """The terms of a text without words of grammar, English ones without their endings."""
    return frozenset(stem(term) for term in search_terms(text) if term not in GRAMMAR_WORDS)
