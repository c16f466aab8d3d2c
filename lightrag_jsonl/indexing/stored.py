"""Stored documents with all that was extracted from them, as another index takes them over."""

from collections.abc import Mapping
from dataclasses import dataclass

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Chunk, Extraction, Kind
from lightrag_jsonl.storage.rows import EntityMentionRow, RelationMentionRow
from lightrag_jsonl.storage.views import StoreView


@dataclass(frozen=True, slots=True)
class StoredChunks:
    """The chunks of one document by row, what was extracted from each, and all their mentions."""

    chunks: Mapping[int, Chunk]
    extractions: Mapping[int, Extraction]
    entities: list[EntityMentionRow]
    relations: list[RelationMentionRow]


def stored_chunks(view: StoreView, document_id: str) -> StoredChunks:
    """The chunks of a document, in their order."""
    chunks = view.chunks(documents=[document_id])
    entities = view.entity_mentions(chunks=chunks)
    relations = view.relation_mentions(chunks=chunks)
    refused = view.rejections([document_id])
    extractions = {
        one.row: Extraction(
            entities=tuple(each.mention for each in entities if each.chunk == one.row),
            relations=tuple(each.mention for each in relations if each.chunk == one.row),
            rejections=tuple(line for _, id, line in refused if id == one.chunk_id),
            state=one.state,
            error=one.error,
            extractor=one.extractor,
            records=one.report.records,
            truncated=one.report.truncated,
            resumed=one.report.resumed,
            gleaned=one.report.gleaned,
            usage=one.report.usage,
        )
        for one in view.chunk_reports([document_id])
    }
    return StoredChunks(chunks, extractions, entities, relations)


def stored_vectors(view: StoreView, found: StoredChunks) -> dict[bytes, Vectors]:
    """The vectors of chunks and of the entities and relations in them, by digest."""
    kinds: dict[Kind, set[int]] = {
        "chunk": set(found.chunks),
        "entity": {one.owner for one in found.entities if one.owner is not None},
        "relation": {one.owner for one in found.relations if one.owner is not None},
    }
    vectors: dict[bytes, Vectors] = {}
    for kind, rows in kinds.items():
        digests = view.vector_digests(kind, rows)
        vectors |= {digests[row]: one for row, one in view.vectors(kind, rows).items()}
    return vectors
