"""Selects what fits into the token budgets, exactly counted, and assembles the context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar

from lightrag_jsonl.languages import known_language
from lightrag_jsonl.options import QueryParam
from lightrag_jsonl.protocols import Tokenizer
from lightrag_jsonl.querying.writing import WORDS, Found, Item, Sections, Writer
from lightrag_jsonl.types import Chunk, Context, Dropped, Entity, Keywords, Relation

CLIP_SHARE = 0.25  # of its section's budget: the most that one description may take
LEAST_PASSAGE = 16  # tokens; a shorter beginning of a passage is not worth its heading
JOINT = 2  # tokens that may be added by joining an item to the text before it
NUMBER = "[99]"  # before each item
LONGEST_CODE = 4  # bytes of a character, and so its most tokens
HOPELESS = 40  # characters for each token of the budget; longer texts are cut before counting

Fact = TypeVar("Fact", Entity, Relation)
Part: TypeAlias = Literal["entities", "relations", "chunks"]


def build_context(
    question: str,
    found: Found,
    *,
    keywords: Keywords,
    param: QueryParam,
    tokenizer: Tokenizer,
    language: str,
) -> Context:
    """The context within `param`'s budgets, each reduced by the tokenizer's possible error.

    Items are numbered from 1: entities, then relations, then chunks. A description or passage that
    alone would exceed its budget is cut, both in the prompt and in the returned item.
    """
    writer = Writer(WORDS[known_language(language)], found.documents)
    room = _Room.of(param, tokenizer)
    kept, prompt, tokens = _fitted(found, writer, room, tokenizer)
    return Context(
        question=question,
        mode=param.mode,
        entities=kept.entities,
        relations=kept.relations,
        chunks=kept.chunks,
        keywords=keywords,
        tokens=tokens,
        dropped=Dropped(
            len(found.entities) - len(kept.entities),
            len(found.relations) - len(kept.relations),
            len(found.chunks) - len(kept.chunks),
        ),
        prompt=prompt,
        documents=found.documents,
        language=language,
    )


# ── the budget ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Room:
    """The token budgets: in total, for entities, for relations, and the part reserved for chunks."""

    total: int
    entities: int
    relations: int
    chunks: int

    @classmethod
    def of(cls, param: QueryParam, tokenizer: Tokenizer) -> _Room:
        sure = 1.0 - float(getattr(tokenizer, "error", 0.0))
        total = int(param.max_total_tokens * sure)
        return cls(
            total,
            min(int(param.max_entity_tokens * sure), total),
            min(int(param.max_relation_tokens * sure), total),
            int(total * param.chunk_share),
        )


def _fitted(
    found: Found, writer: Writer, room: _Room, tokenizer: Tokenizer
) -> tuple[Found, str, int]:
    """The ranked items that fit, their text, and its tokens.

    With an `additive` tokenizer the tokens of the parts are added up: those of chunks are known,
    and counting 30,000 tokens anew takes longer than the search. Any other tokenizer counts the
    whole text.
    """
    if getattr(tokenizer, "additive", False):
        kept, tokens = _chosen(found, writer, room, tokenizer)
        return kept, writer.prompt(kept, writer.sections(kept)), tokens
    kept = _chosen(found, writer, room, tokenizer)[0] if _hopeless(found, room) else found
    while not kept.empty:
        sections = writer.sections(kept)
        prompt = writer.prompt(kept, sections)
        tokens = tokenizer.count(prompt)
        over = _overfull(kept, sections, room, tokenizer, tokens)
        if over is None:
            return kept, prompt, tokens
        if kept is found:
            kept = _chosen(found, writer, room, tokenizer)[0]
        else:
            kept = _shortened(kept, over)
    return Found(), "", 0


def _hopeless(found: Found, room: _Room) -> bool:
    """Whether the whole is so long that there is no point in counting it."""
    told = [item.description for item in found.entities]
    told += [item.description for item in found.relations]
    texts = [chunk.text for chunk in found.chunks]
    return sum(map(len, [*told, *texts])) > HOPELESS * room.total


def _chosen(found: Found, writer: Writer, room: _Room, tokenizer: Tokenizer) -> tuple[Found, int]:
    """The items chosen by their single token counts, and the sum of these."""
    entities = _clipped(found.entities, int(room.entities * CLIP_SHARE), tokenizer)
    relations = _clipped(found.relations, int(room.relations * CLIP_SHARE), tokenizer)
    number = tokenizer.count(NUMBER) + JOINT
    entity_costs = [tokenizer.count(writer.entity(entity)) + number for entity in entities]
    relation_costs = [tokenizer.count(writer.relation(relation)) + number for relation in relations]
    frames = [tokenizer.count(writer.frame(chunk)) + 2 * JOINT for chunk in found.chunks]
    chunk_costs = [
        frame + (chunk.tokens or tokenizer.count(chunk.text))
        for frame, chunk in zip(frames, found.chunks, strict=True)
    ]
    headings = tokenizer.count(writer.headings())
    total = room.total - headings
    facts = total - min(room.chunks, sum(chunk_costs))
    need = min(sum(relation_costs), room.relations)
    fair = facts * room.entities // max(room.entities + room.relations, 1)
    for_entities = min(room.entities, max(fair, facts - need))
    some_entities, used = _greedy(entities, entity_costs, for_entities)
    for_relations = min(room.relations, facts - used)
    some_relations, more = _greedy(relations, relation_costs, for_relations)
    spare = total - used - more
    chunks, rest = _greedy(found.chunks, chunk_costs, spare)
    if found.chunks and not chunks:
        chunks = _beginning(found.chunks[0], spare - frames[0], tokenizer)
        rest = sum(frames[0] + chunk.tokens for chunk in chunks)
    kept = Found(some_entities, some_relations, chunks, found.documents)
    return kept, 0 if kept.empty else headings + used + more + rest


def _greedy(
    items: Sequence[Item], costs: Sequence[int], budget: int
) -> tuple[tuple[Item, ...], int]:
    """In order of rank, every item that still fits; and their cost."""
    kept: list[Item] = []
    used = 0
    for item, cost in zip(items, costs, strict=True):
        if used + cost <= budget:
            kept.append(item)
            used += cost
    return tuple(kept), used


def _clipped(items: Sequence[Fact], limit: int, tokenizer: Tokenizer) -> tuple[Fact, ...]:
    """The facts with long descriptions cut, so that one hub does not fill a whole section."""
    return tuple(
        replace(item, description=tokenizer.truncate(item.description, limit).rstrip() + "…")
        if len(item.description) * LONGEST_CODE > limit
        and tokenizer.count(item.description) > limit
        else item
        for item in items
    )


def _beginning(chunk: Chunk, limit: int, tokenizer: Tokenizer) -> tuple[Chunk, ...]:
    """The beginning of a chunk that fits, if it is long enough to be worth showing."""
    if limit < LEAST_PASSAGE:
        return ()
    text = tokenizer.truncate(chunk.text, limit)
    whole = replace(chunk, text=text, end=chunk.start + len(text), tokens=tokenizer.count(text))
    return (whole,) if text.strip() else ()


def _overfull(
    kept: Found,
    sections: Sections,
    room: _Room,
    tokenizer: Tokenizer,
    tokens: int,
) -> Part | None:
    """The section that must lose an item, if one must."""
    if tokens <= min(room.entities, room.relations, room.total):  # then every section fits, too
        return None
    entities, relations, passages = map("\n".join, sections)
    if kept.entities and tokenizer.count(entities) > room.entities:
        return "entities"
    if kept.relations and tokenizer.count(relations) > room.relations:
        return "relations"
    if tokens <= room.total:
        return None
    promised = tokenizer.count(passages) <= room.chunks
    if kept.chunks and not (promised and (kept.relations or kept.entities)):
        return "chunks"
    return "relations" if kept.relations else "entities"


def _shortened(kept: Found, part: Part) -> Found:
    """The same without the last item of one section."""
    if part == "entities":
        return replace(kept, entities=kept.entities[:-1])
    if part == "relations":
        return replace(kept, relations=kept.relations[:-1])
    return replace(kept, chunks=kept.chunks[:-1])
