"""Writes the dates from and until when the statement of a record holds in our form."""

from dataclasses import replace
from typing import TypeVar

from lightrag_jsonl.core.types import Chunk, EntityMention, Extraction, RelationMention
from lightrag_jsonl.text.dates import iso_date, resolved_date

NewMention = TypeVar("NewMention", EntityMention, RelationMention)


def dated_extraction(extraction: Extraction, chunk: Chunk) -> Extraction:
    """The extraction with the dates of each mention in our form; relative dates are resolved by the date
    of the document.
    """
    written = iso_date(chunk.date)
    entities = [_dated_mention(mention, written) for mention in extraction.entities]
    relations = [_dated_mention(mention, written) for mention in extraction.relations]
    return replace(extraction, entities=tuple(entities), relations=tuple(relations))


def _dated_mention(mention: NewMention, written: str) -> NewMention:
    if not (mention.valid_from or mention.valid_to):
        return mention
    return replace(
        mention,
        valid_from=resolved_date(mention.valid_from, written),
        valid_to=resolved_date(mention.valid_to, written),
    )
