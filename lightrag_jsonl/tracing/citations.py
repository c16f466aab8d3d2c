"""Resolves the `[n]` of an answer to the nearest sentences, and judges its claims, without a model."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from lightrag_jsonl.core.answers import (
    Citation,
    Cited,
    CitedClaim,
    Context,
    PlacedQuote,
    Span,
    UncitedClaim,
)
from lightrag_jsonl.core.headings import Outline, find_headings
from lightrag_jsonl.core.languages import known_language
from lightrag_jsonl.core.types import Chunk, Kind
from lightrag_jsonl.storage.status import with_documents
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.citation_markers import CITATION_MARKER
from lightrag_jsonl.tracing.cited_passages import JudgedPassage, Place
from lightrag_jsonl.tracing.events import PromptItem, cited_items
from lightrag_jsonl.tracing.judging import ClaimJudgement, judge_claim, words_of_names
from lightrag_jsonl.tracing.recorder import numbered_items
from lightrag_jsonl.tracing.statements import CitingClaim, citing_claims, uncited_statements

CITED_CHUNKS = 5  # an entity or relation is cited by the first so many chunks


def resolve_citations(
    view: StoreView,
    text: str,
    written_length: int,
    context: Context,
    prompt_numbers: Sequence[int],
    quotes: Sequence[PlacedQuote] = (),
) -> Cited:
    """Resolve every cited number to the sentence nearest to its claim, judge the claims, and find the
    nearest sentence of each statement without a citation.

    The sentence is in the cited chunk, or in the first stored chunks of a fact. Citation n cites the
    item with the number `prompt_numbers[n - 1]` in the prompt. The claims of one sentence are judged
    by all the passages that its numbers cite. The first numbers of an answer made of `quotes` are theirs: they
    cite the places that the quotes were cut from, and nothing is judged or looked up. What is behind the first
    `written_length` characters was appended by this package: only its numbers are resolved.
    """
    return _Resolver(view, text, written_length, context, prompt_numbers, quotes).cited()


class _Resolver:
    """One answer, and the passages behind the numbers in it."""

    def __init__(
        self,
        view: StoreView,
        text: str,
        written_length: int,
        context: Context,
        prompt_numbers: Sequence[int],
        quotes: Sequence[PlacedQuote],
    ) -> None:
        self._text = text
        self._written_text = text[:written_length]
        self._claims = citing_claims(text)
        markers = [marker for claim in self._claims for _, marker in claim.markers]
        self._quotes = dict(zip(markers, quotes, strict=False))
        self._items = cited_items(numbered_items(context, {}), prompt_numbers)
        self._context_chunks = {chunk.id: chunk for chunk in context.chunks}
        self._fact_chunks = _fact_chunks(view, self._items.values(), self._context_chunks)
        self._context = context
        if self._fact_chunks:
            self._context = _with_documents(view, context, self._fact_chunks)
        self._view = view
        self._outlines: dict[str, Outline] = {}
        names = [entity.name for entity in context.entities]
        for relation in context.relations:
            names += (relation.source, relation.target)
        self._known_words = words_of_names(names)  # which tell a name from a word
        self._citations: dict[Citation, int] = {}
        self._windows: list[str] = []

    def cited(self) -> Cited:
        """The citations and claims of the answer."""
        claims: list[CitedClaim] = []
        invented: dict[int, None] = {}
        for claim in self._claims:
            for number, _ in claim.markers:
                if number not in self._items:
                    invented.setdefault(number)
            claims += self._cited_claims(claim)
        uncited = () if self._quotes else tuple(self._uncited_claims())
        return Cited(
            citations=_with_boxes(self._view, self._citations),
            claims=tuple(claims),
            invented=tuple(invented),
            uncited=uncited,
            windows=tuple(self._windows),
        )

    def _cited_claims(self, claim: CitingClaim) -> Iterable[CitedClaim]:
        """A claim of its own for each cited number, with the judgement by all their passages."""
        markers = [(number, marker) for number, marker in claim.markers if number in self._items]
        chunks_by_number = {number: self._chunks_of(number) for number, _ in markers}
        chunks = [chunk for chunks in chunks_by_number.values() for chunk in chunks]
        if all(marker in self._quotes for _, marker in markers):
            for number, marker in markers:
                yield self._quoted_claim(claim, number, marker)
            return
        judgement = self._judgement(claim.start, claim.end, chunks)
        for number, marker in markers:
            own_chunks = chunks_by_number[number]
            own = judgement
            if own_chunks != chunks:
                own = self._judgement(claim.start, claim.end, own_chunks)
            citation = self._citation(number, own, own_chunks)
            self._windows.append(judgement.window)
            places = () if citation is None else (self._place(citation),)
            yield CitedClaim(
                number=number,
                start=claim.start,
                end=claim.end,
                marker=marker,
                verdict=judgement.verdict,
                reason=judgement.reason,
                differing=_moved(judgement.differing, claim.start),
                instead=_on_page(own.instead, own, own_chunks),
                citations=places,
            )

    def _quoted_claim(self, claim: CitingClaim, number: int, marker: int) -> CitedClaim:
        """The claim of a quote, at the place that it was cut from."""
        quote = self._quotes[marker]
        chunk = self._context_chunks[quote.chunk_id]
        start = quote.start - chunk.start
        end = quote.end - chunk.start
        citation = self._cite(number, "chunk", chunk.id, chunk, start, end)
        self._windows.append(citation.text)
        return CitedClaim(
            number=number,
            start=claim.start,
            end=claim.end,
            marker=marker,
            verdict="nearest",
            citations=(self._place(citation),),
        )

    def _uncited_claims(self) -> Iterable[UncitedClaim]:
        """The statements without a citation, each with its nearest sentence."""
        chunks = list(self._context_chunks.values()) or list(self._fact_chunks.values())
        if not chunks:
            return
        number = max(list(self._items), default=0)
        for start, end in uncited_statements(self._written_text):
            number += 1
            judgement = self._judgement(start, end, chunks)
            self._windows.append(judgement.window)
            nearest = None
            if judgement.nearest is not None:
                place = judgement.nearest
                chunk = chunks[place.passage]
                nearest = self._cite(number, "chunk", chunk.id, chunk, place.start, place.end)
            yield UncitedClaim(
                number=number,
                start=start,
                end=end,
                verdict=judgement.verdict,
                reason=judgement.reason,
                differing=_moved(judgement.differing, start),
                instead=_on_page(judgement.instead, judgement, chunks),
                nearest=nearest,
            )

    def _judgement(self, start: int, end: int, chunks: Sequence[Chunk]) -> ClaimJudgement:
        passages = [
            JudgedPassage(chunk.text, beside_passage(chunk, self._context)) for chunk in chunks
        ]
        claim = CITATION_MARKER.sub(lambda marker: " " * len(marker[0]), self._text[start:end])
        language = known_language(self._context.language)
        return judge_claim(claim, passages, known_words=self._known_words, language=language)

    def _chunks_of(self, number: int) -> list[Chunk]:
        item = self._items[number]
        chunks = self._fact_chunks
        if item.kind == "chunk":
            chunks = {**self._fact_chunks, **self._context_chunks}
        return [chunks[id] for id in item.chunk_ids[:CITED_CHUNKS] if id in chunks]

    def _citation(
        self, number: int, judgement: ClaimJudgement, chunks: Sequence[Chunk]
    ) -> Citation | None:
        """The nearest sentence under a number, or the start of the first chunk; None without a chunk."""
        if not chunks:
            return None
        item = self._items[number]
        place = judgement.nearest or Place(passage=0, start=0, end=0)
        label = item.id if item.kind == "chunk" else item.label
        chunk = chunks[place.passage]
        return self._cite(number, item.kind, label, chunk, place.start, place.end)

    def _cite(
        self, number: int, kind: Kind, label: str, chunk: Chunk, start: int, end: int
    ) -> Citation:
        context = self._context
        return Citation(
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
            heading=self._heading_at(chunk, start),
            date=context.dates.get(chunk.document_id),
            paged=chunk.document_id in context.paged,
        )

    def _heading_at(self, chunk: Chunk, start: int) -> str:
        """The headings above a quoted sentence: a chunk may go on under another heading."""
        if not start or not any(find_headings(f"\n\n{chunk.text[:start]}\n\n")):
            return chunk.heading
        id = chunk.document_id
        if id not in self._outlines:
            self._outlines[id] = Outline(self._view.pages([id]))
        return self._outlines[id].path_at(chunk.page, chunk.start + start)

    def _place(self, citation: Citation) -> int:
        return self._citations.setdefault(citation, len(self._citations))


def beside_passage(chunk: Chunk, context: Context) -> str:
    """What stands beside a passage: the title and the date of the document, and the headings."""
    title = context.documents.get(chunk.document_id, "")
    date = context.dates.get(chunk.document_id, "")
    return "\n".join(filter(None, (title, chunk.heading, date)))


def _moved(spans: Iterable[Span], offset: int) -> tuple[Span, ...]:
    return tuple([(start + offset, end + offset) for start, end in spans])


def _on_page(
    spans: Iterable[Span], judgement: ClaimJudgement, chunks: Sequence[Chunk]
) -> tuple[Span, ...]:
    """Characters of the passage of the nearest sentence as characters of its page."""
    if judgement.nearest is None:
        return ()
    return _moved(spans, chunks[judgement.nearest.passage].start)


def _with_boxes(view: StoreView, citations: Collection[Citation]) -> tuple[Citation, ...]:
    """The citations, with the index of the document, and the place of the picture for texts read by a model
    on a picture.
    """
    documents = view.documents({citation.document_id for citation in citations})
    documents_by_id = {document.id: document for document in documents}
    with_boxes: list[Citation] = []
    for citation in citations:
        document = documents_by_id.get(citation.document_id)
        for picture in document.seen_pictures if document else ():
            is_inside = picture.start <= citation.start and citation.end <= picture.end
            if picture.page == citation.page and is_inside:
                citation = replace(citation, box=picture.box)
        with_boxes.append(replace(citation, index=document.index if document else ""))
    return tuple(with_boxes)


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
    described = with_documents(view, replace(context, chunks=tuple(chunks.values())))
    return replace(
        context,
        documents={**described.documents, **context.documents},
        dates={**described.dates, **context.dates},
        paged=context.paged | described.paged,
    )
