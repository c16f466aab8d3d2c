"""Finds the `[n]` in an answer, and the sentences that support them, without a model."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from lightrag_jsonl.markers import MARKER, Marker, markers
from lightrag_jsonl.text import is_cjk, search_terms, sentence_spans
from lightrag_jsonl.types import Chunk, Citation, Kind


@dataclass(frozen=True, slots=True)
class Citable:
    """What a number stood for in the prompt; `chunks` are where that was read."""

    kind: Kind
    label: str
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Cited:
    """The citations of an answer in reading order, and the numbers that were never shown."""

    citations: tuple[Citation, ...] = ()
    invented: tuple[int, ...] = ()


def resolve_citations(
    text: str, shown: Mapping[int, Citable], documents: Mapping[str, str] | None = None
) -> Cited:
    """Resolve every number that the answer cites; `documents` maps ids to titles.

    A citation is narrowed to the sentence of its chunk that shares most terms with the citing
    sentence; if no sentence shares enough, it is the whole chunk.
    """
    citations: dict[Citation, None] = {}
    invented: dict[int, None] = {}
    matchers: dict[str, _Matcher] = {}
    for claim, numbers in _claims(text):
        terms = _content_terms(claim)
        for number in numbers:
            if number not in shown:
                invented[number] = None
                continue
            for chunk in shown[number].chunks:
                if chunk.id not in matchers:
                    matchers[chunk.id] = _Matcher(chunk.text)
                start, end = matchers[chunk.id].best(terms)
                citations[_citation(number, shown[number], chunk, start, end, documents)] = None
    return Cited(tuple(citations), tuple(invented))


_LEADING = re.compile(rf"(?:\s|{MARKER.pattern})*")
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
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}


def _claims(text: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Each sentence that citation marks support, without the marks, and the numbers in them."""
    marks = markers(text)
    spans = sentence_spans(text) if marks else []
    starts = [start for start, _ in spans]
    handed_back: dict[int, int] = {}

    def home(mark: Marker) -> tuple[int, int]:
        index = max(bisect_right(starts, mark.start) - 1, 0)
        if index not in handed_back:
            handed_back[index] = _handed_back(text, spans, index)
        return spans[index - 1] if mark.start < handed_back[index] else spans[index]

    for (start, end), found in groupby(marks, key=home):
        numbers = dict.fromkeys(number for mark in found for number in mark.numbers)
        yield MARKER.sub(" ", text[start:end]), tuple(numbers)


def _handed_back(text: str, spans: Sequence[tuple[int, int]], index: int) -> int:
    """The end of the marks that open a sentence but belong to the previous one: "A claim. [1] B"."""
    start = spans[index][0]
    if index == 0 or "\n" in text[spans[index - 1][1] : start]:
        return start
    leading = _LEADING.match(text, start)
    return leading.end() if leading else start


def _content_terms(claim: str) -> tuple[str, ...]:
    """The distinct terms of a claim, without function words."""
    terms = dict.fromkeys(search_terms(claim))
    return tuple(term for term in terms if term not in _FUNCTION_WORDS)


def _citation(
    number: int,
    item: Citable,
    chunk: Chunk,
    start: int,
    end: int,
    documents: Mapping[str, str] | None,
) -> Citation:
    return Citation(
        number=number,
        kind=item.kind,
        label=item.label,
        document_id=chunk.document_id,
        document=(documents or {}).get(chunk.document_id, chunk.document_id),
        page=chunk.page,
        chunk_id=chunk.id,
        start=chunk.start + start,
        end=chunk.start + end,
        text=chunk.text[start:end],
    )


class _Matcher:
    """Finds the sentence of a text that shares most with a claim.

    A sentence shares no more than its paragraph does, so only paragraphs that could contain the
    best one are cut into sentences. Among equals the rarer terms decide, then the earlier sentence.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._folded = _folded(text)
        cuts = [found.end() for found in _BLANK_LINES.finditer(text)]
        self._starts = [0, *cuts]
        self._ends = [*cuts, len(text)]
        self._spans: dict[int, list[tuple[int, int]]] = {}

    def best(self, terms: tuple[str, ...]) -> tuple[int, int]:
        """The span of the best sentence, or of the whole text."""
        homes = self._homes(terms)
        best = (0, 0.0, 0)
        span = (0, len(self._text))
        for paragraph in sorted(homes, key=lambda index: (-len(homes[index]), index)):
            if len(homes[paragraph]) < best[0]:
                break
            for start, end, shared, worth in self._scored(paragraph, homes[paragraph]):
                if (shared, worth, -start) > best:
                    best, span = (shared, worth, -start), (start, end)
        enough = best[0] >= max(min(_ENOUGH_TERMS, len(terms)), _ENOUGH_SHARE * len(terms), 1)
        return span if enough else (0, len(self._text))

    def _homes(self, terms: tuple[str, ...]) -> dict[int, list[tuple[float, list[int]]]]:
        """For each paragraph the claim's terms in it: their values and positions."""
        homes: dict[int, list[tuple[float, list[int]]]] = {}
        for term in terms:
            places = list(_occurrences(self._folded, term))
            here: dict[int, list[int]] = {}
            for at in places:
                here.setdefault(bisect_right(self._starts, at) - 1, []).append(at)
            for index, found in here.items():
                homes.setdefault(index, []).append((1 / len(places), found))
        return homes

    def _scored(
        self, paragraph: int, terms: list[tuple[float, list[int]]]
    ) -> list[tuple[int, int, int, float]]:
        """The paragraph's sentences: start, end, number of the claim's terms, and the sum of their values."""
        base = self._starts[paragraph]
        if paragraph not in self._spans:
            self._spans[paragraph] = sentence_spans(self._text[base : self._ends[paragraph]])
        spans = self._spans[paragraph]
        starts = [start for start, _ in spans]
        shared, worth = [0] * len(spans), [0.0] * len(spans)
        for value, places in terms:
            for index in {bisect_right(starts, at - base) - 1 for at in places}:
                shared[index] += 1
                worth[index] += value
        return [
            (base + start, base + end, shared[index], worth[index])
            for index, (start, end) in enumerate(spans)
        ]


def _occurrences(folded: str, term: str) -> Iterator[int]:
    """Where the term occurs; in scripts with spaces, only as a whole word."""
    whole = not is_cjk(term[0])
    at = folded.find(term)
    while at >= 0:
        end = at + len(term)
        if not whole or not (folded[at - 1 : at].isalnum() or folded[end : end + 1].isalnum()):
            yield at
        at = folded.find(term, end)


def _folded(text: str) -> str:
    """Lower case and half width, character for character, so that offsets stay valid."""
    half = text.translate(_FULL_WIDTH) if not text.isascii() else text
    folded = half.casefold()
    if len(folded) == len(text):
        return folded
    return "".join(low if len(low := char.casefold()) == 1 else char for char in half)
