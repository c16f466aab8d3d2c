"""Selects what fits into the token budgets, and assembles the context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.types import Chunk, Context, Dropped, Entity, Relation, known_language
from lightrag_jsonl.retrieval.context_format import WORDS, ContextFormatter

CLIP_SHARE = 0.25  # of its section's budget: the most that one description may take
LEAST_PASSAGE = 16  # tokens; a shorter beginning of a passage is not worth its heading
JOINT = 2  # tokens that may be added by joining an item to the text before it
NUMBER = "[99]"  # before each item
REDUCED = 0.9  # if a selection was too long, the next one has at most this share of its budgets

Fact = TypeVar("Fact", Entity, Relation)
Item = TypeVar("Item")


def fit_context(found: Context, param: QueryParam, tokenizer: Tokenizer) -> Context:
    """The part of what was found that fits into `param`'s budgets, each reduced by the tokenizer's
    possible error; with the prompt.

    Items are numbered from 1: entities, then relations, then chunks. A description or passage that
    alone would exceed its budget is cut, both in the prompt and in the returned item. The tokens of
    items are added up; unless the tokenizer is `additive`, the whole is counted, too, and if it is
    too long the items are selected anew with smaller budgets.
    """
    formatter = ContextFormatter(WORDS[known_language(found.language)], found.documents)
    share = 1.0 - float(getattr(tokenizer, "error", 0.0))
    limit = int(param.max_total_tokens * share)
    while True:
        entities, relations, chunks, tokens = _select(found, formatter, param, share, tokenizer)
        lines = [line for _, line in entities], [line for _, line in relations]
        prompt = formatter.prompt(*lines, chunks)
        if not (prompt and getattr(tokenizer, "additive", False)):
            tokens = tokenizer.count(prompt) if prompt else 0
        if tokens <= limit:
            break
        share *= min(REDUCED, limit / tokens)
    return replace(
        found,
        entities=tuple([entity for entity, _ in entities]),
        relations=tuple([relation for relation, _ in relations]),
        chunks=tuple(chunks),
        tokens=tokens,
        dropped=Dropped(
            len(found.entities) - len(entities),
            len(found.relations) - len(relations),
            len(found.chunks) - len(chunks),
        ),
        prompt=prompt,
    )


def _select(
    found: Context,
    formatter: ContextFormatter,
    param: QueryParam,
    share: float,
    tokenizer: Tokenizer,
) -> tuple[list[tuple[Entity, str]], list[tuple[Relation, str]], list[Chunk], int]:
    """What fits into this share of the budgets, by the tokens of the single items, and their sum.

    Passages have a promised part of the total, and take what entities and relations leave. These
    two divide theirs by their own budgets, and what one does not need the other may use.
    """
    count, total = tokenizer.count, int(param.max_total_tokens * share)
    most_entities = min(int(param.max_entity_tokens * share), total)
    most_relations = min(int(param.max_relation_tokens * share), total)
    entities = _lines(found.entities, formatter.entity, most_entities, tokenizer)
    relations = _lines(found.relations, formatter.relation, most_relations, tokenizer)
    frames = [count(formatter.frame(chunk)) + 2 * JOINT for chunk in found.chunks]
    sizes = [chunk.tokens or count(chunk.text) for chunk in found.chunks]
    chunks = [(c, f + s) for c, f, s in zip(found.chunks, frames, sizes, strict=True)]
    headings = count(formatter.headings())
    promised = min(int(total * param.chunk_share), sum([cost for _, cost in chunks]))
    facts = total - headings - promised
    fair = facts * most_entities // max(most_entities + most_relations, 1)
    unneeded = facts - min(sum([cost for _, cost in relations]), most_relations)
    kept, used = _greedy(entities, min(most_entities, max(fair, unneeded)))
    joining, more = _greedy(relations, min(most_relations, facts - used))
    left = total - headings - used - more
    passages, rest = _greedy(chunks, left)
    if chunks and not passages:
        passages = _beginning(found.chunks[0], left - frames[0], tokenizer)
        rest = sum([frames[0] + chunk.tokens for chunk in passages])
    return kept, joining, passages, headings + used + more + rest


def _lines(
    items: Sequence[Fact], write: Callable[[Fact], str], budget: int, tokenizer: Tokenizer
) -> list[tuple[tuple[Fact, str], int]]:
    """Items with their lines and the tokens of these; long descriptions are cut, so that one hub
    does not fill a whole section.
    """
    limit, number = int(budget * CLIP_SHARE), tokenizer.count(NUMBER) + JOINT
    lines = []
    for item in items:
        line = write(item)
        tokens = tokenizer.count(line)
        if tokens > limit and tokenizer.count(item.description) > limit:
            text = tokenizer.truncate(item.description, limit).rstrip() + "…"
            item = replace(item, description=text)
            line = write(item)
            tokens = tokenizer.count(line)
        lines.append(((item, line), tokens + number))
    return lines


def _greedy(items: Sequence[tuple[Item, int]], budget: int) -> tuple[list[Item], int]:
    """In order of rank, every item that still fits; and their cost."""
    kept: list[Item] = []
    used = 0
    for item, cost in items:
        if used + cost <= budget:
            kept.append(item)
            used += cost
    return kept, used


def _beginning(chunk: Chunk, limit: int, tokenizer: Tokenizer) -> list[Chunk]:
    """The beginning of a chunk that fits, if it is long enough to be worth showing."""
    text = tokenizer.truncate(chunk.text, limit) if limit >= LEAST_PASSAGE else ""
    if not text.strip():
        return []
    tokens = tokenizer.count(text)
    return [replace(chunk, text=text, end=chunk.start + len(text), tokens=tokens)]
