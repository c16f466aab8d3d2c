"""Retrievers for other programs, and spans for OpenTelemetry; each module imports what it is for."""

from lightrag_jsonl.core.types import Chunk, Context

PLACE = ("document_id", "page", "start", "end", "heading", "score")


def passages(context: Context) -> list[tuple[Chunk, dict[str, str | int | float]]]:
    """The chunks of a context, best first, each with what is known of where it stands.

    Values are plain: `document_id`, `document` (its title or source), `page` (from 1), `start` and
    `end` (characters of the page), `heading` and `score`.
    """
    found = []
    for chunk in context.chunks:
        place = {name: getattr(chunk, name) for name in PLACE}
        title = context.documents.get(chunk.document_id, chunk.document_id)
        found.append((chunk, {"document": title, **place}))
    return found
