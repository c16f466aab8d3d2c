"""Retrievers for other programs, and spans for OpenTelemetry, each in a module of its own."""

from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.types import Chunk

CHUNK_FIELDS = ("document_id", "page", "start", "end", "heading", "score")


def passages(context: Context) -> list[tuple[Chunk, dict[str, str | int | float]]]:
    """The chunks of a context, best first, each with its place as plain values.

    The place has `document_id`, `document` (the title or source), `page` (from 1), `start` and
    `end` (characters of the page), `heading` and `score`.
    """
    chunks = []
    for chunk in context.chunks:
        title = context.documents.get(chunk.document_id, chunk.document_id)
        fields = {name: getattr(chunk, name) for name in CHUNK_FIELDS}
        chunks.append((chunk, {"document": title, **fields}))
    return chunks
