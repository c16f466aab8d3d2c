"""Selects what fits into the token budgets of a context, without repetition."""

import hmac
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from lightrag_jsonl.core.answers import Context, Dropped
from lightrag_jsonl.core.languages import FIXED_WORDS, known_language
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.sentences import sentence_spans
from lightrag_jsonl.core.types import Chunk, Entity, Relation
from lightrag_jsonl.retrieval.context_writer import (
    ContextWriter,
    as_sentences,
    escaped,
)
from lightrag_jsonl.retrieval.task import Fact, SearchResult

# Shares and bounds by reason, not tuned on questions.
CLIP_SHARE = 0.25  # of its section's budget: the most that one description may take
LEAST_PASSAGE = 16  # tokens; a shorter beginning of a passage is not worth its heading
JOINT = 2  # tokens that may be added by joining an item to the text before it
ITEM_NUMBER = "[99]"  # before each item
MARK_LENGTH = 8  # hex digits
REDUCED = 0.9  # if a selection was too long, the next one has at most this share of its budgets

RankedItem = TypeVar("RankedItem")


@dataclass(frozen=True, slots=True)
class Line(Generic[Fact]):
    """An entity or a relation as the context shows it: its description may be cut."""

    fact: Fact
    text: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as it will be in the prompt; `letters` is the text without white space."""

    heading: str
    letters: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What fits into the budgets, and the sum of the tokens of the items."""

    entities: Sequence[Line[Entity]]
    relations: Sequence[Line[Relation]]
    chunks: Sequence[Chunk]
    tokens: int


def fit_context(
    result: SearchResult, param: QueryParam, tokenizer: Tokenizer, secret: str = ""
) -> Context:
    """The best part of a search result within `param`'s budgets, with the prompt.

    - Budgets are reduced by the tokenizer's possible error. Every chunk but the first makes room for
      the guaranteed chunk.
    - Items are numbered from 1: chunks, then entities, then relations.
    - Sections and passages begin with a mark, derived from the question, the items found and the
      index's `secret`: no document can know the mark, and equal prompts have equal marks.
    - In texts, a bracket before a number is escaped by a backslash, lest text look like an item.
    - Descriptions repeat neither the passages nor a relation's own triple, and are on one line. Too long descriptions and passages are cut, both in the
      prompt and in the returned items.
    - The tokens of items are added up. Unless the tokenizer is `additive`, the tokens of the prompt are
      counted, too; if the prompt is too long, items are selected anew with smaller budgets.
    """
    found_context = result.context
    words = FIXED_WORDS[known_language(found_context.language)]
    writer = ContextWriter(words, found_context, context_mark(found_context, secret))
    share = 1.0 - float(getattr(tokenizer, "error", 0.0))
    limit = int(param.max_total_tokens * share)
    while True:
        fit = ContextSelection(result, writer, param, share, tokenizer).fit()
        prompt = writer.text(
            [line.text for line in fit.entities],
            [line.text for line in fit.relations],
            fit.chunks,
        )
        tokens = fit.tokens
        if not (prompt and getattr(tokenizer, "additive", False)):
            tokens = tokenizer.count(prompt) if prompt else 0
        if tokens <= limit:
            break
        share *= min(REDUCED, limit / tokens)
    dropped = Dropped(
        entities=len(found_context.entities) - len(fit.entities),
        relations=len(found_context.relations) - len(fit.relations),
        chunks=len(found_context.chunks) - len(fit.chunks),
    )
    return replace(
        found_context,
        entities=tuple([line.fact for line in fit.entities]),
        relations=tuple([line.fact for line in fit.relations]),
        chunks=tuple(fit.chunks),
        tokens=tokens,
        prompt=prompt,
        dropped=dropped,
    )


class ContextSelection:
    """Selects items for a share of the budgets, by the tokens of the single items.

    Passages have a promised part of the total, and the remainder of entities and relations. The first
    passage and the guaranteed passage have precedence. Entities and relations divide their part in
    proportion to the two budgets; either kind may use the remainder of the other.
    """

    def __init__(
        self,
        result: SearchResult,
        writer: ContextWriter,
        param: QueryParam,
        share: float,
        tokenizer: Tokenizer,
    ) -> None:
        self._context = result.context
        self._writer = writer
        self._tokenizer = tokenizer
        self._total = int(param.max_total_tokens * share)
        self._entity_budget = min(int(param.max_entity_tokens * share), self._total)
        self._relation_budget = min(int(param.max_relation_tokens * share), self._total)
        chunks = self._context.chunks
        self._frame_costs = [tokenizer.count(writer.frame(chunk)) + 2 * JOINT for chunk in chunks]
        self._chunk_costs = [
            frame_cost + chunk_size(chunk, tokenizer)
            for chunk, frame_cost in zip(chunks, self._frame_costs, strict=True)
        ]
        self._promised = min(int(self._total * param.chunk_share), sum(self._chunk_costs))
        leading_ids = {result.guaranteed_chunk_id, *[chunk.id for chunk in chunks[:1]]}
        self._positions = sorted(  # of the first chunk, of the guaranteed one, and of all the rest
            range(len(chunks)), key=lambda position: chunks[position].id not in leading_ids
        )

    def fit(self) -> Fit:
        """The selected items, each kind in the order of rank."""
        headings = self._tokenizer.count("\n\n".join(self._writer.headings()))
        entities, relations, fact_tokens = self._facts(self._total - headings - self._promised)
        chunks, chunk_tokens = self._passages(self._total - headings - fact_tokens)
        return Fit(
            entities=entities,
            relations=relations,
            chunks=chunks,
            tokens=headings + fact_tokens + chunk_tokens,
        )

    def _facts(self, budget: int) -> tuple[Sequence[Line[Entity]], Sequence[Line[Relation]], int]:
        """Entities and relations within a budget for both, and their tokens."""
        passages = self._certain_passages()
        entity_lines = self._lines(
            self._context.entities, self._writer.entity, self._entity_budget, passages
        )
        relation_lines = self._lines(
            self._context.relations, self._writer.relation, self._relation_budget, passages
        )
        budgets = max(self._entity_budget + self._relation_budget, 1)
        fair = budget * self._entity_budget // budgets
        relation_tokens = sum([cost for _, cost in relation_lines])
        unneeded = budget - min(relation_tokens, self._relation_budget)
        entities, entity_tokens = within(
            entity_lines, min(self._entity_budget, max(fair, unneeded))
        )
        relations, relation_tokens = within(
            relation_lines, min(self._relation_budget, budget - entity_tokens)
        )
        return entities, relations, entity_tokens + relation_tokens

    def _passages(self, budget: int) -> tuple[Sequence[Chunk], int]:
        """The chunks within a budget, and their tokens; at least the beginning of the first."""
        chunks = self._context.chunks
        costs = [(position, self._chunk_costs[position]) for position in self._positions]
        positions, tokens = within(costs, budget)
        if positions or not chunks:
            return [chunks[position] for position in sorted(positions)], tokens
        beginning = self._beginning(chunks[0], budget - self._frame_costs[0])
        if beginning is None:
            return [], 0
        return [beginning], self._frame_costs[0] + chunk_size(beginning, self._tokenizer)

    def _certain_passages(self) -> dict[str, Passage]:
        """The chunks that will be in the prompt whatever the facts need, by id."""
        total = 0
        passages: dict[str, Passage] = {}
        for position in self._positions:
            chunk = self._context.chunks[position]
            total += self._chunk_costs[position]
            if total <= self._promised:
                passages[chunk.id] = Passage(
                    self._writer.heading(0, chunk), without_spaces(chunk.text)
                )
        return passages

    def _lines(
        self,
        facts: Sequence[Fact],
        write: Callable[[Fact, str], str],
        budget: int,
        passages: Mapping[str, Passage],
    ) -> list[tuple[Line[Fact], int]]:
        """A line for each fact, and the tokens of the line.

        Lines do not repeat the passages; long descriptions are cut, lest one hub fill a whole section.
        """
        limit = int(budget * CLIP_SHARE)
        number_tokens = self._tokenizer.count(ITEM_NUMBER) + JOINT
        lines: list[tuple[Line[Fact], int]] = []
        for fact in facts:
            texts = self._writer.relevant_texts(without_repetition(fact, passages))
            description = as_sentences(texts)
            text = write(fact, as_sentences(list(map(self._writer.with_date, texts))))
            tokens = self._tokenizer.count(text)
            if tokens > limit and self._tokenizer.count(description) > limit:
                description = self._tokenizer.truncate(description, limit).rstrip() + "…"
                text = write(fact, description)
                tokens = self._tokenizer.count(text)
            visible = replace(fact, description=description)
            lines.append((Line(visible, text), tokens + number_tokens))
        return lines

    def _beginning(self, chunk: Chunk, limit: int) -> Chunk | None:
        """The beginning of a chunk that fits, if it is long enough to be worth showing."""
        text = self._tokenizer.truncate(chunk.text, limit) if limit >= LEAST_PASSAGE else ""
        if not text.strip():
            return None
        tokens = self._tokenizer.count(text)
        return replace(chunk, text=text, end=chunk.start + len(text), tokens=tokens)


def within(costs: Sequence[tuple[RankedItem, int]], budget: int) -> tuple[list[RankedItem], int]:
    """In order of rank, every value whose cost still fits; and the sum of their costs."""
    values: list[RankedItem] = []
    total = 0
    for value, cost in costs:
        if total + cost <= budget:
            values.append(value)
            total += cost
    return values, total


def chunk_size(chunk: Chunk, tokenizer: Tokenizer) -> int:
    """The tokens of a chunk in the prompt."""
    text = escaped(chunk.text)
    if chunk.tokens and text == chunk.text:
        return chunk.tokens
    return tokenizer.count(text)


def context_mark(context: Context, secret: str) -> str:
    """New for each question and all items found for it; not to be known without the secret."""
    facts = [(entity.name, entity.description) for entity in context.entities]
    facts += [
        (relation.source + relation.target, relation.description) for relation in context.relations
    ]
    chunk_ids = [chunk.id for chunk in context.chunks]
    text = repr((context.question, chunk_ids, facts))
    data = text.encode("utf-8", "backslashreplace")
    return hmac.new(secret.encode(), data, "sha256").hexdigest()[:MARK_LENGTH]


# ── descriptions do not repeat the passages ─────────────────────────────────────


def without_repetition(fact: Fact, passages: Mapping[str, Passage]) -> Fact:
    """A fact whose description leaves out the sentences of the fact's own passages (by chunk id)."""
    names = (fact.name,) if isinstance(fact, Entity) else (fact.source, fact.target)
    own_passages = [passages[id] for id in fact.chunk_ids if id in passages]
    if not own_passages:
        return fact
    description = _without_sentences_of(own_passages, fact.description, names)
    return replace(fact, description=description)


def _without_sentences_of(
    passages: Sequence[Passage], description: str, names: Sequence[str]
) -> str:
    """A description without the sentences of the passages; the whole description if a name occurs
    neither in the sentences to leave out nor in the headings of the passages.

    White space does not count: a sentence of several lines, or with a heading in front, is on one line in
    a description.
    """
    lines: list[list[str]] = []  # the sentences of each line, each with the white space before it
    for line in description.split("\n"):
        ends = [0, *[end for _, end in sentence_spans(line)]]
        lines.append([line[start:end] for start, end in itertools.pairwise(ends)])
    sentences = [sentence for line in lines for sentence in line]
    repeated = {
        sentence
        for sentence in sentences
        if not sentence[-1].isalnum()  # a whole sentence
        and any(without_spaces(sentence) in passage.letters for passage in passages)
    }
    visible_text = "\n".join([*repeated, *[passage.heading for passage in passages]])
    if not repeated or not all(name in visible_text for name in names):
        return description
    new_lines = [
        "".join([sentence for sentence in line if sentence not in repeated]).strip()
        for line in lines
    ]
    return "\n".join(filter(None, new_lines))


def without_spaces(text: str) -> str:
    """The text without white space."""
    return "".join(text.split())
