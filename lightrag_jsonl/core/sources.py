"""The sources of an answer in words, for readers: places, quotes and unsupported claims."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from lightrag_jsonl.core.citation_markers import without_citations
from lightrag_jsonl.core.languages import Language, known_language
from lightrag_jsonl.core.text import clipped

if TYPE_CHECKING:
    from lightrag_jsonl.core.types import Citation, CitedClaim

QUOTE_LENGTH = 160  # characters of a quoted sentence


def source_lines(citations: Iterable["Citation"], language: str = "en") -> Iterator[str]:
    """The list of sources, each place once: numbers, title, heading path, page (of a document with
    pages), date, and the sentences in support of the answer.
    """
    words = _SOURCE_WORDS[known_language(language)]
    ordered = sorted(citations, key=lambda citation: citation.number)
    labels = unique_labels((citation.document_id, citation.document) for citation in ordered)
    quotes_by_place: dict[tuple[int, str], dict[str, None]] = {}  # "" for an unsupported citation
    for citation in ordered:
        place = _place(citation, labels[citation.document_id], words)
        text = clipped(citation.text, QUOTE_LENGTH)
        quote = words.quote.format(text) if citation.supported else ""
        quotes_by_place.setdefault((citation.number, place), {})[quote] = None
    numbers_by_line: dict[str, list[int]] = {}
    for (number, place), quotes in quotes_by_place.items():
        quoted = " ".join(filter(None, quotes))
        line = f"{place}{words.colon}{quoted}" if quoted else place
        if "" in quotes:
            line += words.partly_unsupported if quoted else words.unsupported
        numbers_by_line.setdefault(line, []).append(number)
    for line, numbers in numbers_by_line.items():
        yield f"{''.join(f'[{number}]' for number in numbers)} {line}"


def _place(citation: "Citation", label: str, words: "SourceWords") -> str:
    """The document, the heading path, the page and the date of a citation, on one line."""
    page = words.page.format(citation.page) if citation.paged else ""
    parts = dict.fromkeys((label, citation.heading, page, citation.date or ""))
    return " ".join(words.comma.join(filter(None, parts)).split())


class SourceWords(NamedTuple):
    """The words and the punctuation of lists of sources in a language."""

    page: str
    colon: str
    quote: str
    comma: str
    unsupported: str
    partly_unsupported: str


_SOURCE_WORDS: Mapping[Language, SourceWords] = {
    "en": SourceWords(
        page="page {}",
        colon=": ",
        quote="“{}”",
        comma=", ",
        unsupported=" (unsupported: no sentence here supports this)",
        partly_unsupported=" (another claim that cites this is unsupported)",
    ),
    "zh": SourceWords(
        page="第 {} 页",
        colon="：",
        quote="“{}”",
        comma="，",
        unsupported="（未获支持：此处没有这样说的句子）",
        partly_unsupported="（另有引用此处的说法未获支持）",
    ),
}


def unsupported_lines(
    text: str, claims: Iterable["CitedClaim"], language: str = "en"
) -> Iterator[str]:
    """The claims of an answer without support by the cited passages, each with the numbers."""
    numbers: dict[str, dict[int, None]] = {}
    for claim in claims:
        if not claim.supported:
            words = without_citations(text[claim.start : claim.end]).replace("**", "")
            quote = clipped(" ".join(words.split()).strip(_CLAIM_BORDER), QUOTE_LENGTH)
            numbers.setdefault(quote, {})[claim.number] = None
    for quote, cited in numbers.items():
        marks = "".join(f"[{number}]" for number in sorted(cited))
        yield _UNSUPPORTED_CLAIM[known_language(language)].format(marks, quote)


_CLAIM_BORDER = " ,，、;；:：-–—.。*#|"
_UNSUPPORTED_CLAIM: Mapping[Language, str] = {
    "en": "(!) not supported by {}: “{}”",
    "zh": "(!) {}不支持此说法：“{}”",
}


def unique_labels(labels: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Labels by id, from pairs of id and label; a label of several ids gets the id added."""
    labels_by_id = dict(labels)
    uses = Counter(labels_by_id.values())
    return {
        id: f"{label} ({id})" if uses[label] > 1 else label for id, label in labels_by_id.items()
    }
