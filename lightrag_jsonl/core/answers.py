"""The nouns of a question and its answer: keywords, context, citations; and the sources in words."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from lightrag_jsonl.core.claims import Conflict
from lightrag_jsonl.core.display import html_table, with_short_repr
from lightrag_jsonl.core.languages import FIXED_WORDS, FixedWords, known_language
from lightrag_jsonl.core.modes import Mode
from lightrag_jsonl.core.types import (
    HEADING_SEPARATOR,
    Chunk,
    Entity,
    Excerpt,
    Kind,
    Relation,
    relation_rows,
)
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.text.citation_markers import (
    CITATION_MARKER,
    marked_numbers,
    without_citations,
)
from lightrag_jsonl.text.markup import without_bullets, without_marks
from lightrag_jsonl.text.names import letters_and_digits
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import clipped_at_mark, clipped_at_word

QUOTE_LENGTH = 160  # characters of a quoted sentence

Verdict: TypeAlias = Literal["missing", "compare", "nearest", "supported", "unsupported"]
Span: TypeAlias = tuple[int, int]

_CLAIM_BORDER = " ,，、;；:：-–—.。*#|"
_LABEL = pattern_of(r"(?:question|answer|问题|答案|回答)[^\w:：]*[:：]", re.IGNORECASE)
_LABEL_LETTERS = ("question", "answer", "问题", "答案", "回答", "na", "不适用")
_NOT_APPLICABLE = pattern_of(r"\W*(?:n/a|不适用)\W*", re.IGNORECASE)


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Keywords:
    """The themes (`high_level`) and named things (`low_level`) of a question.

    `question` rewords a follow-up question to be understood without the conversation, and is
    searched for instead; empty if the question needs no conversation. `whole` says that the question
    asks about a text or a collection as a whole; `listed` that it asks for a complete list or a number.
    """

    high_level: tuple[str, ...] = ()
    low_level: tuple[str, ...] = ()
    question: str = ""
    whole: bool = False
    listed: "ListRequest | None" = None


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class ListRequest:
    """What a question wants listed or counted: `items` of a kind ("products", "people"), related to the
    entity `of` by a `relation` ("makes"); each may be empty.
    """

    items: str = ""
    of: str = ""
    relation: str = ""


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class ListedItem:
    """An item of a list by name, with its source passage; `kind` is "chunk" for a document."""

    name: str
    chunk_id: str
    kind: Kind = "entity"


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Listing:
    """A list from the records of the graph, as far as the graph knows: entities of `types`, related to the
    entity `of` by `predicates`; or documents, if `documents` is true. `total` counts all items; `items`
    are the first by name. `unread` counts the passages without records, which may hold more.
    """

    items: tuple[ListedItem, ...]
    total: int
    types: tuple[str, ...] = ()
    of: str = ""
    predicates: tuple[str, ...] = ()
    documents: bool = False
    unread: int = 0


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Dropped:
    """How many ranked items the token budget left out of a context."""

    entities: int = 0
    relations: int = 0
    chunks: int = 0


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Finding:
    """A statement of a report, and the ids of the chunks that say so."""

    text: str
    chunk_ids: tuple[str, ...] = ()


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class CommunityReport:
    """A model's report on a community: what it is about, the whole in a few sentences, and findings."""

    title: str
    summary: str
    findings: tuple[Finding, ...] = ()


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Community:
    """A part of the graph whose entities have more to do with each other than with the rest.

    `title` and `entities` (the most central first) are names; `chunk_ids` are the passages, in the
    order of the text. Each passage belongs to a single community of a level. `level` is 0 for the
    communities of the whole graph, 1 for their parts, and so on. `report` is a model's, if reports were
    written (`rag.communities.report`); `key` identifies the content.
    """

    title: str
    entities: tuple[str, ...] = ()
    chunk_ids: tuple[str, ...] = ()
    level: int = 0
    report: CommunityReport | None = None
    key: str = ""


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Reading:
    """What a model read for a question: chunks by id, and the cost of it; `problem` says why not more."""

    chunk_ids: tuple[str, ...] = ()
    usage: Usage = Usage()
    problem: str = ""

    def __add__(self, reading: "Reading") -> "Reading":
        return Reading(
            chunk_ids=(*self.chunk_ids, *reading.chunk_ids),
            usage=self.usage + reading.usage,
            problem=self.problem or reading.problem,
        )


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Context:
    """The retrieved items for a question, best first, and the `prompt` for the model.

    Descriptions leave out sentences of the passages in the same context; `entities.get` has the full
    description. `tokens` is the length of `prompt`, or of all parts together. `documents` maps
    document ids to titles (or sources) for readers, `dates` to dates; `paged` holds the ids of
    documents with more than one page; `copies` the ids of further documents with the same passage, by
    the id of the chunk. `language` is the index's. With `none_selected`, the model was
    asked to choose relations and chose nothing: the remaining items match the question's text.
    `response_type` is the requested form of the answer. An overview has `communities`, chunks in the
    order of the text, and in `excerpts`, by chunk id, the places in the chunk's text that the prompt
    shows. `listing` is the list that the question asks for, if the graph has records for one: `has_records`
    is false for a graph that rules alone have read. `where` is the filter of the question; `as_of` is the date that the question is about, or "". `claim_dates` says of lines of descriptions when they hold.
    `conflicts` are contradictions between two of the passages. `reading` is what a model has read for
    this question, in an index that is read when it is asked. `findings` are those of further lenses, by the
    name of the lens.
    """

    question: str = ""
    mode: Mode = "mix"
    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    keywords: Keywords = Keywords()
    tokens: int = 0
    dropped: Dropped = Dropped()
    prompt: str = ""
    documents: Mapping[str, str] = field(default_factory=dict)
    dates: Mapping[str, str] = field(default_factory=dict)
    paged: frozenset[str] = frozenset()
    copies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    language: str = "en"
    none_selected: bool = False
    response_type: str = ""
    communities: tuple[Community, ...] = ()
    excerpts: Mapping[str, tuple[Excerpt, ...]] = field(default_factory=dict)
    listing: Listing | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    as_of: str = ""
    claim_dates: Mapping[str, str] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()
    has_records: bool = True
    reading: Reading = Reading()
    findings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether nothing at all was found."""
        return not self.items

    @property
    def items(self) -> int:
        """The number of chunks, entities, relations and listed items, which are numbered in this order."""
        listed = len(self.listing.items) if self.listing else 0
        return len(self.chunks) + len(self.entities) + len(self.relations) + listed

    def _repr_html_(self) -> str:
        rows: list[tuple[str, ...]] = []
        for chunk in self.chunks:
            rows.append(("chunk", self.documents.get(chunk.document_id, ""), chunk.text))
        for entity in self.entities:
            rows.append(("entity", entity.name, entity.description))
        rows += relation_rows(self.relations)
        return html_table(f"{self.question} ({self.mode}, {self.tokens:,} tokens)", rows)


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Citation:
    """One `[number]` of an answer, resolved to the text behind the number.

    `text` is the sentence nearest to the claim, at characters `start` to `end` of the page: it shares
    most words with the claim, and need not say the same. If none shares a word, `text` is empty, and
    `start` and `end` are the start of the chunk. `heading` is the path of headings above the chunk;
    `paged` says whether the document has more than one page. `box` is the place of the picture that
    a model has read the text from: left, bottom, right and top, in points from the lower left corner
    of the page; None for other texts. `index` is the place of the document's index, if several are asked
    as one.
    """

    number: int
    kind: Kind
    label: str
    document_id: str
    document: str
    page: int
    chunk_id: str
    start: int
    end: int
    text: str
    heading: str = ""
    date: str | None = None
    paged: bool = False
    box: tuple[float, ...] | None = None
    index: str = ""


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class PlacedQuote:
    """A quote in an answer: characters `start` to `end` of the page that the chunk stands on."""

    chunk_id: str
    start: int
    end: int


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class QuotedAnswer:
    """An answer made of quotes, each before a citation: the place of the first, of the second, …"""

    text: str
    quotes: tuple[PlacedQuote, ...] = ()


@with_short_repr
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JudgedClaim:
    """A claim of an answer, at characters `start` to `end`, and what is known of it.

    The `verdict` is of words: "missing" (a number, date, name, quotation or "not" of the claim does
    not stand near its nearest sentence), "compare" (it may say more than its sentence: look yourself)
    or "nearest" (words tell no more); or of a checker that can tell: "supported" or "unsupported".
    `reason` says in words why a claim is marked. `differing` are the characters of the answer that
    differ, `instead` the characters of the page of the nearest sentence.
    """

    number: int
    start: int
    end: int
    verdict: Verdict = "nearest"
    reason: str = ""
    differing: tuple[Span, ...] = ()
    instead: tuple[Span, ...] = ()

    @property
    def is_marked(self) -> bool:
        """Whether a reader should look at the claim."""
        return self.verdict in ("missing", "compare", "unsupported")


@with_short_repr
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CitedClaim(JudgedClaim):
    """A claim with one of the cited numbers.

    `marker` is the place of the bracket with the number. `citations` are places in `Answer.citations`.
    Claims of one sentence with several numbers are judged by all their passages together.
    """

    marker: int
    citations: tuple[int, ...] = ()


@with_short_repr
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class UncitedClaim(JudgedClaim):
    """A statement without a citation. `number` is given by this package, and stands above the cited
    ones. `nearest` is the nearest sentence of the passages in the context, which the answer does not
    name as its source; None if no sentence shares a word.
    """

    nearest: Citation | None = None


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Cited:
    """The citations and claims of an answer, the statements without a citation, and the `invented`
    numbers of no item of the prompt. `windows` are the sentences near each claim and each statement, in
    this order, for a checker.
    """

    citations: tuple[Citation, ...] = ()
    claims: tuple[CitedClaim, ...] = ()
    invented: tuple[int, ...] = ()
    uncited: tuple[UncitedClaim, ...] = ()
    windows: tuple[str, ...] = ()


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """An answer with citations and context.

    Citations are numbered in the order of first use; citation n has the number
    `prompt_numbers[n - 1]` in `context.prompt`. `claims` says what is known of the claim before each
    number, `uncited` of the statements without a number. `invented` holds the cited numbers of no item
    of the prompt. `notice` says who wrote the text if it was no model: printed, but no part of the text.
    `truncated` means an incomplete answer: the model stopped at the token limit, or a content filter
    or an error cut the answer off. `str(answer)` is the text, followed by the sources, each place
    once, by the marked claims, and by the nearest sentences of uncited statements; documents with the same title are
    distinguished by id. Invented numbers are printed with a question mark: [9?].
    """

    text: str
    citations: tuple[Citation, ...] = ()
    context: Context = field(default_factory=Context)
    trace_id: str | None = None
    usage: Usage = Usage()
    invented: tuple[int, ...] = ()
    truncated: bool = False
    prompt_numbers: tuple[int, ...] = ()
    claims: tuple[CitedClaim, ...] = ()
    notice: str = ""
    uncited: tuple[UncitedClaim, ...] = ()

    @property
    def reading(self) -> Reading:
        """What a model read for this question; its cost is part of `usage`."""
        return self.context.reading

    @property
    def evidence(self) -> tuple[Relation, ...]:
        """The relations of the context that stand in a cited passage; the others were found, and not used."""
        cited_ids = {citation.chunk_id for citation in self.citations}
        return tuple(
            [
                relation
                for relation in self.context.relations
                if not cited_ids.isdisjoint(relation.chunk_ids)
            ]
        )

    def __str__(self) -> str:
        text = with_invented_marked(self.text, self.invented)
        lines = list(self._lines())
        return "\n".join([text, "", *lines]) if lines else text

    def _repr_html_(self) -> str:
        text = with_invented_marked(self.text, self.invented)
        return html_table(text, ([line] for line in self._lines()))

    def _lines(self) -> Iterator[str]:
        return answer_lines(self)


def has_words(answer: str, question: str) -> bool:
    """Whether a model's text may answer the question: it has more than citations and punctuation, is not
    only the question again, and not "N/A".
    """
    text = _LABEL.sub("", without_citations(answer))
    own_letters = letters_and_digits(text)
    asked_letters = letters_and_digits(question)
    if not own_letters or _NOT_APPLICABLE.fullmatch(text):
        return False
    return not asked_letters or own_letters.replace(asked_letters, "") != ""


def begins_to_answer(beginning: str, question: str) -> bool:
    """Whether a beginning is more than citations, the question, a label such as "Answer:" or "N/A"."""
    own_letters = letters_and_digits(_LABEL.sub("", without_citations(beginning)))
    silent_texts = (letters_and_digits(question), *_LABEL_LETTERS)
    return not any(text.startswith(own_letters) for text in silent_texts)


# ── the sources of an answer in words ───────────────────────────────────────────


def answer_lines(answer: Answer) -> Iterator[str]:
    """The sources of an answer, a line each, the marked claims, and the nearest sentences of uncited
    statements.
    """
    if answer.notice:
        yield answer.notice
    quotes = answer.text if answer.notice else ""  # an answer of sentences is not quoted again
    yield from source_lines(answer.citations, answer.context.language, beside=quotes)
    yield from note_lines(answer)


def note_lines(answer: Answer) -> Iterator[str]:
    """Why passages were not read, the marked claims of an answer, and the statements without a citation,
    a line each.
    """
    language = answer.context.language
    if answer.reading.problem:
        yield FIXED_WORDS[known_language(language)].unread.format(answer.reading.problem)
    yield from marked_lines(answer.text, answer.claims, answer.citations, language)
    if answer.uncited and not answer.citations:
        yield FIXED_WORDS[known_language(language)].cites_nothing
    yield from nearest_lines(answer.text, answer.uncited, language)


def source_lines(
    citations: Iterable[Citation], language: str = "en", *, beside: str = ""
) -> Iterator[str]:
    """The list of sources, each place once: numbers, title, heading path, page (of a document with
    pages), date, and the sentences nearest to the claims, except those that stand in the text `beside` the list.
    """
    words = FIXED_WORDS[known_language(language)]
    text = " ".join(beside.split())
    ordered = sorted(citations, key=lambda citation: citation.number)
    document_labels = [(citation.document_id, citation.document) for citation in ordered]
    labels = unique_labels(document_labels)
    quotes_by_place: dict[tuple[int, str], dict[str, None]] = {}
    for citation in ordered:
        place = _place(citation, labels[citation.document_id], words)
        quotes_by_place.setdefault((citation.number, place), {})[
            _quoted_sentence(citation, words, beside=text)
        ] = None
    numbers_by_line: dict[str, list[int]] = {}
    for (number, place), quotes in quotes_by_place.items():
        line = words.colon.join(filter(None, (place, " ".join(filter(None, quotes)))))
        numbers_by_line.setdefault(line, []).append(number)
    for line, numbers in numbers_by_line.items():
        marks = "".join([f"[{number}]" for number in numbers])
        yield f"{marks} {line}"


def _quoted_sentence(citation: Citation, words: FixedWords, *, beside: str) -> str:
    """The sentence of a citation in quotation marks; "" for none, and for one that the text `beside` it has."""
    sentence = clipped_at_word(without_bullets(citation.text), QUOTE_LENGTH)
    if not sentence or sentence.removesuffix("…") in beside:
        return ""
    return words.quote.format(sentence)


def _place(citation: Citation, label: str, words: FixedWords) -> str:
    """The document, the heading path, the page, the date and the index of a citation, on one line."""
    page = words.page.format(citation.page) if citation.paged else ""
    heading = citation.heading.removeprefix(f"{label}{HEADING_SEPARATOR}")
    parts = dict.fromkeys((label, heading, page, citation.date or "", citation.index))
    return " ".join(words.comma.join(filter(None, parts)).split())


def with_invented_marked(text: str, invented: Iterable[int]) -> str:
    """The text of an answer, with a question mark behind the numbers of no source."""
    numbers = frozenset(invented)

    def mark(marker: re.Match[str]) -> str:
        if numbers.isdisjoint(marked_numbers(marker)):
            return marker[0]
        return f"{marker[0][:-1]}?{marker[0][-1]}"

    return CITATION_MARKER.sub(mark, text) if numbers else text


def marked_lines(
    text: str,
    claims: Iterable[CitedClaim],
    citations: Sequence[Citation],
    language: str = "en",
) -> Iterator[str]:
    """The marked claims of an answer, each with its numbers, the reason and the differing words; a question mark
    where the reader has to compare.
    """
    words = FIXED_WORDS[known_language(language)]
    numbers: dict[tuple[str, str, str], dict[int, None]] = {}
    sentences: dict[tuple[str, str, str], str] = {}
    for claim in claims:
        if claim.is_marked:
            sign = "?" if claim.verdict == "compare" else "!"
            key = (sign, _claim_quote(text, claim, words), _reason(claim, words))
            numbers.setdefault(key, {})[claim.number] = None
            cited = [citations[place] for place in claim.citations]
            if claim.instead and cited:
                sentences.setdefault(key, _differing_quote(cited[0], claim, words))
    for key, cited_numbers in numbers.items():
        sign, quote, reason = key
        marks = "".join(f"[{number}]" for number in sorted(cited_numbers))
        line = words.marked_claim.format(sign, marks, quote, reason)
        sentence = sentences.get(key)
        yield line + (words.colon + sentence if sentence else "")


def nearest_lines(
    text: str, uncited: Iterable[UncitedClaim], language: str = "en"
) -> Iterator[str]:
    """The statements of an answer without a citation, each with its nearest sentence, which this
    package looked up.
    """
    words = FIXED_WORDS[known_language(language)]
    for claim in uncited:
        number = words.nearest_number.format(claim.number)
        parts = [_claim_quote(text, claim, words)]
        if claim.is_marked:
            parts.append(_reason(claim, words))
        if claim.nearest is not None:
            place = _place(claim.nearest, claim.nearest.document, words)
            quote = _differing_quote(claim.nearest, claim, words)
            parts.append(words.nearest.format(f"{place}{words.colon}{quote}"))
        yield f"{number} {words.dash.join(parts)}"


def _claim_quote(text: str, claim: JudgedClaim, words: FixedWords) -> str:
    """The words of a claim in quotation marks, the differing ones in brackets."""
    marked = _with_brackets(text[claim.start : claim.end], claim.start, claim.differing)
    plain = without_marks(without_citations(marked))
    return words.quote.format(
        clipped_at_mark(" ".join(plain.split()).strip(_CLAIM_BORDER), QUOTE_LENGTH, "⟨")
    )


def _differing_quote(citation: Citation, claim: JudgedClaim, words: FixedWords) -> str:
    """The sentence of a citation in quotation marks, the words that differ from the claim in brackets."""
    marked = without_marks(_with_brackets(citation.text, citation.start, claim.instead))
    return words.quote.format(clipped_at_mark(" ".join(marked.split()), QUOTE_LENGTH, "⟨"))


def _with_brackets(text: str, start: int, spans: Iterable[Span]) -> str:
    """A text that begins at `start`, with ⟨brackets⟩ around the spans of it."""
    for span_start, span_end in sorted(spans, reverse=True):
        first = span_start - start
        last = span_end - start
        if 0 <= first < last <= len(text):
            text = f"{text[:first]}⟨{text[first:last]}⟩{text[last:]}"
    return text


def _reason(claim: JudgedClaim, words: FixedWords) -> str:
    """Why a claim is marked, in words."""
    if claim.verdict == "compare":
        return words.compare.format(claim.reason)
    return claim.reason or words.unsupported


def unique_labels(labels: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Labels by id, from pairs of id and label; a label of several ids gets the id added."""
    labels_by_id = dict(labels)
    uses = Counter(labels_by_id.values())
    return {
        id: f"{label} ({id})" if uses[label] > 1 else label for id, label in labels_by_id.items()
    }
