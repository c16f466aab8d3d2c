"""Calls a user's own extractor so that an error costs one chunk and no more."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import get_args

from lightrag_jsonl.calls import answered, is_cancelled
from lightrag_jsonl.errors import BudgetError, LLMError, StorageError
from lightrag_jsonl.protocols import Extractor
from lightrag_jsonl.text import name_key, sanitize
from lightrag_jsonl.types import (
    Chunk,
    ChunkState,
    EntityMention,
    Extraction,
    RelationMention,
    Usage,
)

STATES = get_args(ChunkState)


async def extracted(extractor: Extractor, chunk: Chunk) -> Extraction:
    """What an extractor finds in a chunk; any error gives a `failed` extraction with the reason.

    A permanent `LLMError` is raised, since every other chunk would fail, too.
    """
    cancelled = LLMError(f"{extractor.name} cancelled its own call")
    try:
        return _sound(await answered(extractor.extract(chunk), cancelled))
    except (BudgetError, StorageError):
        raise
    except LLMError as error:
        if error.permanent:
            raise
        return Extraction(state="failed", error=str(error))
    except (Exception, BaseExceptionGroup) as error:  # the user's own extractor may raise anything
        if is_cancelled():
            raise
        told = f"{extractor.name} failed: {type(error).__name__}: {error}"
        return Extraction(state="failed", error=sanitize(told))


def _sound(found: object) -> Extraction:
    """The extraction with texts that can be stored; `ValueError` if the graph cannot hold it."""
    if not isinstance(found, Extraction):
        raise ValueError(f"it gave {type(found).__name__}, not an Extraction")
    if found.state not in STATES:
        raise ValueError(f"the state of a chunk is one of {', '.join(STATES)}, not {found.state!r}")
    if not isinstance(found.usage, Usage):
        raise ValueError(f"usage is a Usage, not {found.usage!r}")
    entities = tuple(map(_entity, found.entities))
    keys = {name_key(entity.name) for entity in entities}
    relations = tuple(_relation(relation, keys) for relation in found.relations)
    return replace(found, entities=entities, relations=relations, keywords=_texts(found.keywords))


def _entity(mention: EntityMention) -> EntityMention:
    name, kind, description = _texts((mention.name, mention.type, mention.description))
    if not name_key(name):
        raise ValueError("an entity has no name")
    attributes = tuple((_text(key), _text(value)) for key, value in mention.attributes)
    return EntityMention(name, kind, description, bool(mention.grounded), attributes)


def _relation(mention: RelationMention, keys: set[str]) -> RelationMention:
    source, target, description = _texts((mention.source, mention.target, mention.description))
    for end in (source, target):
        if name_key(end) not in keys:
            raise ValueError(f"{end!r}, an end of a relation, is none of the entities")
    strength = float(mention.strength)
    if not math.isfinite(strength):
        raise ValueError(f"the strength of {source!r} — {target!r} is {strength}")
    return RelationMention(source, target, _texts(mention.keywords), description, strength)


def _texts(values: Iterable[object]) -> tuple[str, ...]:
    return tuple(map(_text, values))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return sanitize(value)
