"""Divides documents into pages, and pages into overlapping chunks at exact character offsets."""

from collections.abc import Iterable, Sequence

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import Chunk, Document, Page, chunk_id
from lightrag_jsonl.indexing.headings import Outline
from lightrag_jsonl.indexing.page_cutting import PageCutter, Span, unchanged_spans

MOST_CHARACTERS = 8  # for each token of `size`; longer pages are not tried as a single chunk
NO_PAGE = Page("", 0, "")


def document_pages(document_id: str, document: Document) -> tuple[Page, ...]:
    """The pages given with the document, or the text divided at form feeds; numbered from 1.

    Characters that cannot be stored are replaced by single characters, so that offsets stay valid.
    """
    texts = map(sanitize, document.pages or document.text.split("\f"))
    return tuple([Page(document_id, number, text) for number, text in enumerate(texts, 1)])


def chunk_pages(
    pages: Sequence[Page],
    old_pages: Sequence[Page] = (),
    old_chunks: Sequence[Chunk] = (),
    *,
    tokenizer: Tokenizer,
    size: int,
    overlap: int,
) -> tuple[Chunk, ...]:
    """Chunks of at most `size` tokens, each repeating up to `overlap` tokens of the previous chunk.

    A page has as many chunks as the text needs, of about equal sizes: each ends at the border nearest
    to an even share, of a paragraph if one is near, or else of a sentence, or else between words,
    never inside a character. The chunks cover each page, except for runs of white space that would
    fill much of a chunk; blank pages have no chunks. A chunk exceeds `size` only if a single
    character has more tokens than `size`. `ValueError` unless 0 <= overlap < size.

    Of an edited document, given the old pages and chunks, the chunks before the first and after the
    last change of a page stay as before. A page is compared with the old page of the same text, or
    else of the same number. An id depends on the place of the chunk: a moved chunk gets a new id.
    """
    if not 0 <= overlap < size:
        raise ValueError(f"overlap {overlap} must be at least 0 and below size {size}")
    old_pages_by_text = {page.text: page for page in reversed(old_pages)}
    old_pages_by_number = {page.number: page for page in old_pages}
    spans: list[tuple[Page, Span]] = []
    for page in pages:
        same_text = old_pages_by_text.get(page.text)
        old_page = same_text or old_pages_by_number.get(page.number) or NO_PAGE
        chunks = [chunk for chunk in old_chunks if chunk.page == old_page.number]
        page_spans = unchanged_spans(page.text, old_page.text, chunks, size=size)
        if page.text != old_page.text or len(page_spans) < len(chunks):
            page_spans = _cut_around(
                page_spans, page.text, tokenizer=tokenizer, size=size, overlap=overlap
            )
        spans += [(page, span) for span in page_spans]
    return _chunks(spans, pages)


def provided_chunks(
    pages: Sequence[Page], pieces: Sequence[str], tokenizer: Tokenizer
) -> tuple[Chunk, ...]:
    """The pieces as chunks; each is searched in the pages after the start of the previous piece.

    `ConfigError` names a piece that does not occur.
    """
    spans: list[tuple[Page, Span]] = []
    page_index = 0
    start = -1  # of the previous piece
    for number, piece in enumerate(map(sanitize, pieces)):
        start = pages[page_index].text.find(piece, start + 1)
        while start < 0 and page_index + 1 < len(pages):
            page_index += 1
            start = pages[page_index].text.find(piece)
        if start < 0 or not piece:
            raise ConfigError(f"chunks[{number}] does not occur in the document, in this order")
        span = Span(start, start + len(piece), tokenizer.count(piece))
        spans.append((pages[page_index], span))
    return _chunks(spans, pages)


def _cut_around(
    spans: Sequence[Span], text: str, *, tokenizer: Tokenizer, size: int, overlap: int
) -> list[Span]:
    """All spans of a page: unchanged ones, and new ones between and around them."""
    if not spans and text.strip() and len(text) <= size * MOST_CHARACTERS:
        tokens = tokenizer.count(text)
        if 0 < tokens <= size:
            return [Span(0, len(text), tokens)]
    cutter = PageCutter(text, tokenizer, size=size, overlap=overlap)
    all_spans: list[Span] = []
    previous = Span(0, 0)
    for span in spans:
        all_spans += cutter.spans(previous, until=span.start)
        all_spans.append(span)
        previous = span
    all_spans += cutter.spans(previous, until=len(text))
    return all_spans


def _chunks(spans: Iterable[tuple[Page, Span]], pages: Iterable[Page]) -> tuple[Chunk, ...]:
    """A document's spans, in order, as chunks numbered from 0, with the headings above each."""
    outline = Outline(pages)
    chunks: list[Chunk] = []
    for index, (page, span) in enumerate(spans):
        text = page.text[span.start : span.end]
        first_visible = span.end - len(text.lstrip())
        chunk = Chunk(
            id=chunk_id(page.document_id, page.number, span.start, text),
            document_id=page.document_id,
            index=index,
            page=page.number,
            start=span.start,
            end=span.end,
            text=text,
            tokens=span.tokens,
            heading=outline.path_at(page.number, first_visible),
        )
        chunks.append(chunk)
    return tuple(chunks)
