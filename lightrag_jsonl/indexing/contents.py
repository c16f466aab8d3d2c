"""The contents of a stored document: chunks, extractions, mentions and vectors, for another index."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Chunk, Extraction, Kind, Rejection
from lightrag_jsonl.indexing.bearers import as_written
from lightrag_jsonl.storage.rows import ChunkReport, EntityMentionRow, RelationMentionRow
from lightrag_jsonl.storage.views import StoreView


@dataclass(frozen=True, slots=True)
class DocumentContents:
    """The chunks of a document and the extraction of each, by row id, and all mentions."""

    chunks: Mapping[int, Chunk]
    extractions: Mapping[int, Extraction]
    entities: list[EntityMentionRow]
    relations: list[RelationMentionRow]


def document_contents(view: StoreView, document_id: str) -> DocumentContents:
    """The contents of a document, with the chunks in the order of the text."""
    chunks = view.chunks(documents=[document_id])
    entities = view.entity_mentions(chunks=chunks)
    relations = view.relation_mentions(chunks=chunks)
    rejections = view.rejections([document_id])
    extractions: dict[int, Extraction] = {}
    for report in view.chunk_reports([document_id]):
        extractions[report.row] = _extraction(
            report,
            entities=[mention for mention in entities if mention.chunk == report.row],
            relations=[mention for mention in relations if mention.chunk == report.row],
            rejections=[line for _, chunk_id, line in rejections if chunk_id == report.chunk_id],
        )
    return DocumentContents(
        chunks=chunks, extractions=extractions, entities=entities, relations=relations
    )


def _extraction(
    report: ChunkReport,
    *,
    entities: Sequence[EntityMentionRow],
    relations: Sequence[RelationMentionRow],
    rejections: Sequence[Rejection],
) -> Extraction:
    return Extraction(
        entities=tuple(map(as_written, entities)),
        relations=tuple(map(as_written, relations)),
        rejections=tuple(rejections),
        state=report.state,
        error=report.error,
        extractor=report.extractor,
        records=report.report.records,
        truncated=report.report.truncated,
        resumed=report.report.resumed,
        gleaned=report.report.gleaned,
        usage=report.report.usage,
        content_keywords=tuple(report.report.content_keywords),
    )


def content_vectors(view: StoreView, contents: DocumentContents) -> dict[bytes, Vectors]:
    """The vectors of the chunks and of the entities and relations mentioned in them, by digest."""
    entity_rows = {mention.owner for mention in contents.entities if mention.owner is not None}
    relation_rows = {mention.owner for mention in contents.relations if mention.owner is not None}
    rows_by_kind: dict[Kind, set[int]] = {
        "chunk": set(contents.chunks),
        "entity": entity_rows,
        "relation": relation_rows,
    }
    vectors: dict[bytes, Vectors] = {}
    for kind, rows in rows_by_kind.items():
        digests = view.vector_digests(kind, rows)
        for row, vector in view.vectors(kind, rows).items():
            vectors[digests[row]] = vector
    return vectors
