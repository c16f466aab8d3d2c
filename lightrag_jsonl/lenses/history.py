"""The claims about an entity over time, with the sentences, documents and dates."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from lightrag_jsonl.core.claims import DatedClaim, StatementPlaces
from lightrag_jsonl.core.types import EntityMention, Kind, RelationMention
from lightrag_jsonl.storage.rows import MentionRow
from lightrag_jsonl.storage.status import titles
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.dates import first_day, iso_date

AFTER_ALL_DAYS = 10**7  # after all days


class ClaimWords(Struct, frozen=True, kw_only=True):
    """The words of a claim, and the row id of the chunk."""

    chunk: int
    kind: Kind
    subject: str
    predicate: str = ""
    value: str = ""
    description: str
    valid_from: str
    valid_to: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names in a sentence for the claim."""
        return (self.subject, self.value) if self.value else (self.subject,)


def entity_history(view: StoreView, entity: int) -> tuple[DatedClaim, ...]:
    """All claims about an entity (row id) in the order of time, by beginning or else by the date of the
    document; claims without a date last, in the order of the texts. A sentence that states a relation is
    not said again as the description of its end.
    """
    entity_rows = view.entity_mentions(entities=[entity])
    relations = view.relation_rows(ends=[entity])
    relation_rows = view.relation_mentions(relations=relations)
    words = [
        *(words for row in entity_rows for words in _entity_words(row)),
        *(words for row in relation_rows for words in _relation_words(row)),
    ]
    claims = _without_repetitions(dated_claims(view, words))
    return tuple(sorted(claims, key=_time_of))


def _without_repetitions(claims: Sequence[DatedClaim]) -> list[DatedClaim]:
    """The claims without those that say a sentence again: of a description and a relation with the same
    sentence the one with dates stays, and if both have the same dates or none, the relation.
    """
    descriptions = [claim for claim in claims if claim.kind == "entity" and not claim.predicate]
    relations = [claim for claim in claims if claim.kind == "relation"]
    told_by_relations = {(_place_of_claim(claim), _dates(claim)) for claim in relations}
    told_by_relations |= {(_place_of_claim(claim), ("", "")) for claim in relations}
    dated_descriptions = {_place_of_claim(claim) for claim in descriptions if any(_dates(claim))}
    repeated = {
        claim
        for claim in descriptions
        if (_place_of_claim(claim), _dates(claim)) in told_by_relations
    }
    repeated |= {
        claim
        for claim in relations
        if not any(_dates(claim)) and _place_of_claim(claim) in dated_descriptions
    }
    return [claim for claim in claims if claim not in repeated]


def _place_of_claim(claim: DatedClaim) -> tuple[str, int, int, str]:
    return claim.chunk_id, claim.start, claim.end, claim.text


def _dates(claim: DatedClaim) -> tuple[str, str]:
    return claim.valid_from, claim.valid_to


def dated_claims(view: StoreView, statements: Sequence[ClaimWords]) -> list[DatedClaim]:
    """The claims with sentences, documents and dates."""
    chunks = view.chunks({statement.chunk for statement in statements})
    documents = view.documents({chunk.document_id for chunk in chunks.values()})
    titles_by_id = titles(view, documents)
    labels = {
        document.id: titles_by_id[document.id] or document.source or document.id
        for document in documents
    }
    places = {row: StatementPlaces(chunk.text) for row, chunk in chunks.items()}
    claims: list[DatedClaim] = []
    for statement in statements:
        chunk = chunks[statement.chunk]
        span = places[statement.chunk].span(statement.names, statement.description)
        start, end = span or (0, 0)
        claim = DatedClaim(
            kind="relation" if statement.kind == "relation" else "entity",
            subject=statement.subject,
            predicate=statement.predicate,
            value=statement.value,
            text=chunk.text[start:end] or statement.description,
            valid_from=statement.valid_from,
            valid_to=statement.valid_to,
            written=chunk.date,
            document_id=chunk.document_id,
            document=labels[chunk.document_id],
            chunk_id=chunk.id,
            page=chunk.page,
            start=chunk.start + start,
            end=chunk.start + end,
        )
        claims.append(claim)
    return claims


def _entity_words(row: MentionRow[EntityMention]) -> Iterator[ClaimWords]:
    """The description of an entity, and each of its statements with a value."""
    mention = row.mention
    statements = [*mention.attributes]
    if mention.description and not statements:
        statements.append(("", ""))
    for attribute, value in statements:
        yield ClaimWords(
            chunk=row.chunk,
            kind="entity",
            subject=mention.name,
            predicate=attribute,
            value=value,
            description=mention.description,
            valid_from=mention.valid_from,
            valid_to=mention.valid_to,
        )


def _relation_words(row: MentionRow[RelationMention]) -> Iterator[ClaimWords]:
    mention = row.mention
    yield ClaimWords(
        chunk=row.chunk,
        kind="relation",
        subject=mention.source,
        predicate=", ".join(mention.keywords),
        value=mention.target,
        description=mention.description,
        valid_from=mention.valid_from,
        valid_to=mention.valid_to,
    )


def _time_of(claim: DatedClaim) -> tuple[int, str, int, int, str]:
    begin = claim.valid_from or iso_date(claim.written) or claim.valid_to
    day = first_day(begin) if begin else AFTER_ALL_DAYS
    return day, claim.document_id, claim.page, claim.start, claim.value
