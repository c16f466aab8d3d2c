"""Selects what fits into the token budgets, and assembles the context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.types import (
    Chunk,
    Context,
    Dropped,
    Entity,
    Keywords,
    Relation,
    known_language,
)
from lightrag_jsonl.retrieval.context_format import WORDS, ContextFormatter
from lightrag_jsonl.retrieval.search import RetrievalResult

CLIP_SHARE = 0.25  # of its section's budget: the most that one description may take
LEAST_PASSAGE = 16  # tokens; a shorter beginning of a passage is not worth its heading
JOINT = 2  # tokens that may be added by joining an item to the text before it
NUMBER = "[99]"  # before each item
LONGEST_CODE = 4  # bytes of a character, and so its most tokens
REDUCED = 0.9  # of its budgets, at most, is a selection made again with if it was too long

Fact = TypeVar("Fact", Entity, Relation)
Item = TypeVar("Item", Entity, Relation, Chunk)


def build_context(
    question: str,
    found: RetrievalResult,
    *,
    keywords: Keywords,
    param: QueryParam,
    tokenizer: Tokenizer,
    language: str,
) -> Context:
    """The context within `param`'s budgets, each reduced by the tokenizer's possible error.

    Items are numbered from 1: entities, then relations, then chunks. A description or passage that
    alone would exceed its budget is cut, both in the prompt and in the returned item. The tokens of
    items are added up; unless the tokenizer is `additive`, the whole is counted, too, and if it is
    too long the items are selected anew with smaller budgets.
    """
    formatter = ContextFormatter(WORDS[known_language(language)], found.documents)
    share = 1.0 - float(getattr(tokenizer, "error", 0.0))
    limit = int(param.max_total_tokens * share)
    while True:
        kept, tokens = _select(found, formatter, _Budget.of(param, share), tokenizer)
        prompt = formatter.prompt(kept.entities, kept.relations, kept.chunks)
        if prompt and not getattr(tokenizer, "additive", False):
            tokens = tokenizer.count(prompt)
        if tokens <= limit or not prompt:
            break
        share *= min(REDUCED, limit / tokens)
    dropped = Dropped(
        len(found.entities) - len(kept.entities),
        len(found.relations) - len(kept.relations),
        len(found.chunks) - len(kept.chunks),
    )
    return Context(
        question=question,
        mode=param.mode,
        entities=kept.entities,
        relations=kept.relations,
        chunks=kept.chunks,
        keywords=keywords,
        tokens=tokens if prompt else 0,
        dropped=dropped,
        prompt=prompt,
        documents=found.documents,
        language=language,
    )


@dataclass(frozen=True, slots=True)
class _Budget:
    """Tokens in total, for entities, for relations, and those reserved for chunks."""

    total: int
    entities: int
    relations: int
    chunks: int

    @classmethod
    def of(cls, param: QueryParam, share: float) -> _Budget:
        total = int(param.max_total_tokens * share)
        return cls(
            total,
            min(int(param.max_entity_tokens * share), total),
            min(int(param.max_relation_tokens * share), total),
            int(total * param.chunk_share),
        )


def _select(
    found: RetrievalResult, formatter: ContextFormatter, budget: _Budget, tokenizer: Tokenizer
) -> tuple[RetrievalResult, int]:
    """The items chosen by their single token counts, and the sum of these."""
    entities = _clipped(found.entities, int(budget.entities * CLIP_SHARE), tokenizer)
    relations = _clipped(found.relations, int(budget.relations * CLIP_SHARE), tokenizer)
    number = tokenizer.count(NUMBER) + JOINT
    entity_costs = [tokenizer.count(formatter.entity(one)) + number for one in entities]
    relation_costs = [tokenizer.count(formatter.relation(one)) + number for one in relations]
    frames = [tokenizer.count(formatter.frame(chunk)) + 2 * JOINT for chunk in found.chunks]
    chunk_costs = [
        frame + (chunk.tokens or tokenizer.count(chunk.text))
        for frame, chunk in zip(frames, found.chunks, strict=True)
    ]
    headings = tokenizer.count(formatter.headings())
    total = budget.total - headings
    for_facts = total - min(budget.chunks, sum(chunk_costs))
    relation_need = min(sum(relation_costs), budget.relations)
    fair = for_facts * budget.entities // max(budget.entities + budget.relations, 1)
    for_entities = min(budget.entities, max(fair, for_facts - relation_need))
    some_entities, used = _greedy(entities, entity_costs, for_entities)
    for_relations = min(budget.relations, for_facts - used)
    some_relations, more = _greedy(relations, relation_costs, for_relations)
    spare = total - used - more
    chunks, rest = _greedy(found.chunks, chunk_costs, spare)
    if found.chunks and not chunks:
        chunks = _beginning(found.chunks[0], spare - frames[0], tokenizer)
        rest = sum(frames[0] + chunk.tokens for chunk in chunks)
    kept = replace(found, entities=some_entities, relations=some_relations, chunks=chunks)
    return kept, headings + used + more + rest


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


def _clipped(items: Sequence[Fact], limit: int, tokenizer: Tokenizer) -> list[Fact]:
    """The facts with long descriptions cut, so that one hub does not fill a whole section."""
    clipped = []
    for item in items:
        text = item.description
        if len(text) * LONGEST_CODE > limit and tokenizer.count(text) > limit:
            item = replace(item, description=tokenizer.truncate(text, limit).rstrip() + "…")
        clipped.append(item)
    return clipped


def _beginning(chunk: Chunk, limit: int, tokenizer: Tokenizer) -> tuple[Chunk, ...]:
    """The beginning of a chunk that fits, if it is long enough to be worth showing."""
    text = tokenizer.truncate(chunk.text, limit) if limit >= LEAST_PASSAGE else ""
    if not text.strip():
        return ()
    tokens = tokenizer.count(text)
    return (replace(chunk, text=text, end=chunk.start + len(text), tokens=tokens),)
