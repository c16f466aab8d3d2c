"""Says of each mention of a chunk from when and until when its statement holds."""

from dataclasses import replace
from typing import TypeVar

from lightrag_jsonl.core.dates import iso_date
from lightrag_jsonl.core.time_expressions import resolved_date, stated_dates
from lightrag_jsonl.core.types import Chunk, EntityMention, Extraction, RelationMention

AnyMention = TypeVar("AnyMention", EntityMention, RelationMention)


def dated_extraction(extraction: Extraction, chunk: Chunk) -> Extraction:
    """The extraction with the dates of each mention in our form.

    Dates that the extractor gave are resolved by the date of the document; where it gave none, rules read
    the description, or, without a description, the sentences of the chunk with all names.
    """
    written = iso_date(chunk.date)
    return replace(
        extraction,
        entities=tuple([_dated(mention, chunk, written) for mention in extraction.entities]),
        relations=tuple([_dated(mention, chunk, written) for mention in extraction.relations]),
    )


def _dated(mention: AnyMention, chunk: Chunk, written: str) -> AnyMention:
    valid_from = ""
    valid_to = ""
    if mention.valid_from or mention.valid_to:
        valid_from = resolved_date(mention.valid_from, written)
        valid_to = resolved_date(mention.valid_to, written)
    if not (valid_from or valid_to):
        valid_from, valid_to = stated_dates(mention, chunk.whole_text, written)
    if (valid_from, valid_to) == (mention.valid_from, mention.valid_to):
        return mention
    return replace(mention, valid_from=valid_from, valid_to=valid_to)
