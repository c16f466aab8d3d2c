"""Turns ready-made records into the extractions of chunks."""

from collections.abc import Sequence
from dataclasses import replace

from lightrag_jsonl.core.types import PROVIDED, Chunk, ChunkState, Extraction, Record
from lightrag_jsonl.indexing.mentions import MentionCollector, dated_extraction
from lightrag_jsonl.llm.field_aliases import normalize_graph_record
from lightrag_jsonl.llm.schemas import Schema


def provided_extractions(
    chunks: Sequence[Chunk], records: Sequence[Record], schema: Schema | None
) -> tuple[Extraction, ...]:
    """The extraction of each chunk from ready-made records; the lines count from 1.

    A chunk with refused records is never "failed", since no model could be asked again. A record
    that is no mapping, or names a chunk that does not exist, is refused in the first chunk.
    """
    collectors = [MentionCollector(chunk.text) for chunk in chunks]
    counts = [0] * len(chunks)
    for line, record in enumerate(records, 1):
        if not isinstance(record, dict):
            detail = f"records[{line - 1}] is no mapping but {type(record).__name__}"
            collectors[0].reject(line, record, "not_object", detail)
            continue
        index = 0 if record.get("chunk") is None else record["chunk"]
        if type(index) is not int or not 0 <= index < len(chunks):
            detail = f"it names chunk {index!r}; there are chunks 0 to {len(chunks) - 1}"
            collectors[0].reject(line, record, "unknown_id", detail)
            continue
        counts[index] += _collect(collectors[index], line, record, schema)
    extractions = map(_provided_extraction, collectors, counts)
    return tuple(map(dated_extraction, extractions, chunks))


def _collect(collector: MentionCollector, line: int, record: Record, schema: Schema | None) -> int:
    """Add the mentions of a record; returns the number of valid normalized records."""
    fields = {key: value for key, value in record.items() if key != "chunk"}
    count = 0
    for normalized in normalize_graph_record(fields):
        problem = _problem(normalized, schema)
        if problem is None:
            collector.add([(line, normalized)])
            count += 1
        else:
            collector.reject(line, normalized, "schema", problem)
    return count


def _problem(record: Record, schema: Schema | None) -> str | None:
    """The reason to refuse a record; a list may be longer than the schema asks a model for."""
    return None if schema is None else schema.error(schema.with_short_lists(record))


def _provided_extraction(collector: MentionCollector, records: int) -> Extraction:
    extraction = collector.extraction()
    state: ChunkState = "ok" if extraction.entities else "empty"
    if collector.rejections:
        state = "partial"
    return replace(
        extraction,
        state=state,
        records=records,
        rejections=tuple(collector.rejections),
        extractor=PROVIDED,
    )
