"""Dates of the statements in a context, and an order with later statements first."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from msgspec import Struct, structs

from lightrag_jsonl.core.languages import FIXED_WORDS, FixedWords, known_language
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.retrieval.lens import Lens
from lightrag_jsonl.retrieval.task import Fact, SearchResult, SearchTask
from lightrag_jsonl.storage.views import Snapshot, StoreView
from lightrag_jsonl.text.dates import find_dates, first_day

DESCRIPTIONS_DATED = 50  # of an entity or a relation: bounds the time


class LineDates(Struct, frozen=True, kw_only=True):
    """The dates in a line of a description, and the date of the document behind the line."""

    valid_from: str = ""
    valid_to: str = ""
    written: str = ""

    @property
    def begin(self) -> str:
        """The known beginning of the line's time, or else the end."""
        return self.valid_from or self.written or self.valid_to

    def label(self, words: FixedWords) -> str:
        """The dates in words."""
        if self.valid_from and self.valid_to:
            return words.period.format(self.valid_from, self.valid_to)
        if self.valid_from:
            return words.since.format(self.valid_from)
        if self.valid_to:
            return words.until.format(self.valid_to)
        return words.written.format(self.written)


class ClaimDates(Lens):
    """The dates of the lines of descriptions, with later lines before earlier ones."""

    def find(self, task: SearchTask, result: SearchResult) -> SearchResult | None:
        """The result with the dates; that of a document only where lines of one description have different
        dates.
        """
        snapshot = task.snapshot if task.part is None else task.part.snapshot
        has_facts = len(result.facts.entities) or len(result.facts.relations)
        return _dated(snapshot, result) if has_facts and snapshot.has_dates() else None


def _dated(snapshot: Snapshot, result: SearchResult) -> SearchResult | None:
    """The result with the dates of the lines, if there are any."""
    lines = {
        **_line_dates(snapshot, "entity", result.facts.entities.ids.tolist()),
        **_line_dates(snapshot, "relation", result.facts.relations.ids.tolist()),
    }
    if not lines:
        return None
    context = result.context
    words = FIXED_WORDS[known_language(context.language)]
    labels: dict[str, str] = {}
    descriptions = [entity.description for entity in context.entities]
    descriptions += [relation.description for relation in context.relations]
    for description in descriptions:
        labels |= _date_labels(description.split("\n"), lines, words)
    dated_context = replace(
        context,
        entities=tuple([_later_first(entity, lines) for entity in context.entities]),
        relations=tuple([_later_first(relation, lines) for relation in context.relations]),
        claim_dates=labels,
    )
    return structs.replace(result, context=dated_context)


def _line_dates(view: StoreView, kind: Kind, rows: list[int]) -> dict[str, LineDates]:
    """The dates of the lines of the descriptions of some entities or relations; of a line in several
    documents, the latest.
    """
    if not rows:
        return {}
    descriptions = view.description_chunks(kind, rows, DESCRIPTIONS_DATED)
    chunks = {chunk for texts in descriptions.values() for chunk, _ in texts}
    documents = view.chunk_documents(chunks)
    stated = {
        (row.owner, row.chunk, row.description): row
        for row in view.dated_mentions(kind, chunks=chunks)
    }
    lines: dict[str, LineDates] = {}
    for row, texts in descriptions.items():
        for chunk, text in texts:
            written = documents[chunk][1]
            mention = stated.get((row, chunk, text))
            dates = LineDates(written=written)
            if mention is not None:
                dates = LineDates(
                    valid_from=mention.valid_from, valid_to=mention.valid_to, written=written
                )
            if dates.begin and (text not in lines or _day(lines[text]) < _day(dates)):
                lines[text] = dates
    return lines


def _day(dates: LineDates) -> int:
    return first_day(dates.begin)


def _date_labels(
    texts: list[str], lines: Mapping[str, LineDates], words: FixedWords
) -> dict[str, str]:
    """The dates in words of the lines of one description, but for lines that say them."""
    dated = [text for text in texts if text in lines]
    begins = {lines[text].begin for text in dated}
    return {
        text: lines[text].label(words)
        for text in dated
        if (lines[text].valid_from or lines[text].valid_to or len(begins) > 1)
        and not _says_dates(text, lines[text])
    }


def _says_dates(text: str, dates: LineDates) -> bool:
    """Whether the words of a line say from when and until when it holds."""
    limits = {dates.valid_from, dates.valid_to} - {""}
    dates_in_words = {iso for date in find_dates(text) for iso in (date.first, date.last)}
    return bool(limits) and limits <= dates_in_words


def _later_first(fact: Fact, lines: Mapping[str, LineDates]) -> Fact:
    """A fact with the dated lines in the order of time, the latest first; lines without a date stay."""
    if "\n" not in fact.description:
        return fact
    texts = fact.description.split("\n")
    dated = [text for text in texts if text in lines]
    dated.sort(key=lambda text: -_day(lines[text]))
    latest: Iterator[str] = iter(dated)
    ordered = [next(latest) if text in lines else text for text in texts]
    return replace(fact, description="\n".join(ordered))
