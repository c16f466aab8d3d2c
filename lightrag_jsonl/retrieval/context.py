"""Selects what fits into the token budgets of a context, without repetition."""

import hmac
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic

from lightrag_jsonl.core.answers import Context, Dropped
from lightrag_jsonl.core.languages import FIXED_WORDS, known_language
from lightrag_jsonl.core.names import nfkc_casefold
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.sentences import sentence_spans
from lightrag_jsonl.core.types import Chunk, Entity, Relation
from lightrag_jsonl.retrieval.context_writer import (
    ContextWriter,
    as_sentences,
    escaped,
    is_unstated,
)
from lightrag_jsonl.retrieval.excerpts import content_stems
from lightrag_jsonl.retrieval.task import Fact, SearchResult

# Shares and bounds by reason, not tuned on questions.
CLIP_SHARE = 0.25  # of its section's budget: the most that one description may take
LEAST_PASSAGE = 48  # tokens; a shorter beginning of a passage is not worth its heading
JOINT = 2  # tokens that may be added by joining an item to the text before it
ITEM_NUMBER = "[99]"  # before each item
MARK_LENGTH = 8  # hex digits
REDUCED = 0.9  # if a selection was too long, the next one has at most this share of its budgets


@dataclass(frozen=True, slots=True)
class Line(Generic[Fact]):
    """An entity or a relation as the context shows it: its `description` may be cut.

    `texts` are the lines of the stored description that are shown; `tokens` are those of `text`.
    """

    fact: Fact
    description: str
    text: str
    texts: Sequence[str]
    tokens: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as it will be in the prompt; `letters` is the text without white space."""

    heading: str
    letters: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """What lines of facts do not say again: passages, by the id of the chunk, and texts of other lines."""

    passages: Mapping[str, Passage]
    texts: set[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactLines:
    """Selected entities and relations by rank, and the sums of their tokens."""

    entities: Mapping[int, Line[Entity]]
    relations: Mapping[int, Line[Relation]]
    entity_tokens: int
    relation_tokens: int

    @property
    def tokens(self) -> int:
        """The tokens of both kinds."""
        return self.entity_tokens + self.relation_tokens


NO_FACTS: Final = FactLines(entities={}, relations={}, entity_tokens=0, relation_tokens=0)


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
        entities=tuple(map(shown_fact, fit.entities)),
        relations=tuple(map(shown_fact, fit.relations)),
        chunks=tuple(fit.chunks),
        tokens=tokens,
        prompt=prompt,
        dropped=dropped,
    )


class ContextSelection:
    """Selects items for a share of the budgets, by the tokens of the single items.

    Passages come first, the first passage and the guaranteed passage before the others. A fact takes
    a passage's place only if it joins two things that the question names, or has a word of the
    question that no passage has so far; such facts leave passages their promised part of the total.
    Other facts have what passages leave. Entities and relations divide their part in proportion to
    the two budgets; either kind may use the remainder of the other.
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
        room = self._total - headings
        telling = NO_FACTS
        if self._context.entities or self._context.relations:
            certain_chunks, _ = self._passages(self._promised)
            telling = self._telling_facts(certain_chunks, room - self._promised)
        chunks, chunk_tokens = self._passages(room - telling.tokens)
        facts = self._further_facts(telling, chunks, room - telling.tokens - chunk_tokens)
        return Fit(
            entities=[line for _, line in sorted(facts.entities.items(), key=rank_of)],
            relations=[line for _, line in sorted(facts.relations.items(), key=rank_of)],
            chunks=chunks,
            tokens=headings + chunk_tokens + facts.tokens,
        )

    def _telling_facts(self, chunks: Sequence[Chunk], budget: int) -> FactLines:
        """The facts that may take the place of passages, within a budget, beside some certain chunks."""
        text = nfkc_casefold("\n".join([chunk.text for chunk in chunks]))
        missing_stems = [stem for stem in self._writer.question_stems if stem not in text]
        entities: dict[int, Entity] = {}
        relations: dict[int, Relation] = {}
        for rank, entity in enumerate(self._context.entities):
            if missing_stems and not content_stems(entity_text(entity)).isdisjoint(missing_stems):
                entities[rank] = entity
        for rank, relation in enumerate(self._context.relations):
            if self._writer.names_both_ends(relation) or (
                missing_stems
                and not content_stems(relation_text(relation)).isdisjoint(missing_stems)
            ):
                relations[rank] = relation
        return self._with_facts(NO_FACTS, entities, relations, chunks, budget)

    def _further_facts(self, telling: FactLines, chunks: Sequence[Chunk], budget: int) -> FactLines:
        """The telling facts, and those of the other facts that fit into a budget of their own."""
        entities = dict(enumerate(self._context.entities))
        relations = dict(enumerate(self._context.relations))
        for rank in telling.entities:
            del entities[rank]
        for rank in telling.relations:
            del relations[rank]
        return self._with_facts(telling, entities, relations, chunks, budget)

    def _with_facts(
        self,
        selected: FactLines,
        entities: Mapping[int, Entity],
        relations: Mapping[int, Relation],
        chunks: Sequence[Chunk],
        budget: int,
    ) -> FactLines:
        """Some selected facts, and those of further facts, by rank, that fit into a budget for both kinds.

        Nothing in the lines of the further facts repeats the chunks.
        """
        if not (entities or relations):
            return selected
        repeated = Repeated(
            passages={
                chunk.id: Passage(self._writer.heading(0, chunk), without_spaces(chunk.text))
                for chunk in chunks
            },
            texts={
                *[text for line in selected.entities.values() for text in line.texts],
                *[text for line in selected.relations.values() for text in line.texts],
            },
        )
        entity_room = self._entity_budget - selected.entity_tokens
        relation_room = self._relation_budget - selected.relation_tokens
        budgets = max(self._entity_budget + self._relation_budget, 1)
        fair_room = min(entity_room, budget * self._entity_budget // budgets)
        first_entities, tokens = self._fitting(entities, fair_room, repeated)
        new_relations, relation_tokens = self._fitting(
            relations, min(relation_room, budget - tokens), repeated
        )
        left_entities = {
            rank: entity for rank, entity in entities.items() if rank not in first_entities
        }
        more_entities, more_tokens = self._fitting(
            left_entities, min(entity_room, budget - relation_tokens) - tokens, repeated
        )
        return FactLines(
            entities={**selected.entities, **first_entities, **more_entities},
            relations={**selected.relations, **new_relations},
            entity_tokens=selected.entity_tokens + tokens + more_tokens,
            relation_tokens=selected.relation_tokens + relation_tokens,
        )

    def _passages(self, budget: int) -> tuple[Sequence[Chunk], int]:
        """The chunks within a budget, in the order of rank, and their tokens. The first that does not fit is
        shown to the end of a sentence, before shorter ones of lower rank.
        """
        chosen: dict[int, Chunk] = {}
        room = budget
        for position in self._positions:
            chunk = self._context.chunks[position]
            cost = self._chunk_costs[position]
            if cost > room:
                beginning = self._beginning(chunk, room - self._frame_costs[position])
                if beginning is None:
                    continue
                chunk = beginning
                cost = self._frame_costs[position] + chunk_size(beginning, self._tokenizer)
            if cost <= room:
                chosen[position] = chunk
                room -= cost
        return [chosen[position] for position in sorted(chosen)], budget - room

    def _fitting(
        self, facts: Mapping[int, Fact], room: int, repeated: Repeated
    ) -> tuple[dict[int, Line[Fact]], int]:
        """A line for each fact that still fits into a room and says anything, by rank; and their tokens.

        Lines repeat neither the passages nor the texts of other lines, and add their own to these.
        """
        number_tokens = self._tokenizer.count(ITEM_NUMBER) + JOINT
        lines: dict[int, Line[Fact]] = {}
        total = 0
        for rank, fact in facts.items():
            texts = self._writer.relevant_texts(fact, without_repetition(fact, repeated))
            description = as_sentences(texts)
            if not description and isinstance(fact, Relation) and is_unstated(fact):
                continue
            line = self._line(fact, texts, description)
            tokens = line.tokens + number_tokens
            if total + tokens <= room:
                lines[rank] = line
                total += tokens
                repeated.texts.update(texts)
        return lines, total

    def _line(self, fact: Fact, texts: Sequence[str], description: str) -> Line[Fact]:
        """The line of a fact with these texts of its description, which are its `description` without dates;
        a long one is cut, lest one hub fill a whole section.
        """
        is_entity = isinstance(fact, Entity)
        limit = int((self._entity_budget if is_entity else self._relation_budget) * CLIP_SHARE)
        dated_texts = list(map(self._writer.with_date, texts))
        dated_description = description if dated_texts == texts else as_sentences(dated_texts)
        text = self._writer.fact(fact, dated_description)
        tokens = self._tokenizer.count(text)
        if tokens > limit and self._tokenizer.count(description) > limit:
            description = self._tokenizer.truncate(description, limit).rstrip() + "…"
            text = self._writer.fact(fact, description)
            tokens = self._tokenizer.count(text)
        return Line(fact, description, text, texts, tokens)

    def _beginning(self, chunk: Chunk, limit: int) -> Chunk | None:
        """The beginning of a chunk that fits, to the end of a sentence if one ends there, or of a character;
        None if it is not worth its heading.
        """
        text = self._tokenizer.truncate(chunk.text, limit) if limit >= LEAST_PASSAGE else ""
        paragraph = (
            text.rstrip().rfind("\n\n") + 1
        )  # the beginning of the last one; it ends a sentence
        ends = [
            end for _, end in sentence_spans(text[paragraph:])[:-1]
        ]  # the last sentence was cut
        end = paragraph + ends[-1] if ends else len(text[:paragraph].rstrip())
        if end and self._tokenizer.count(text[:end]) >= LEAST_PASSAGE:
            text = text[:end]
        if not text.strip():
            return None
        tokens = self._tokenizer.count(text)
        return replace(chunk, text=text, end=chunk.start + len(text), tokens=tokens)


def shown_fact(line: Line[Fact]) -> Fact:
    """The fact as its line says it."""
    return replace(line.fact, description=line.description)


def rank_of(item: tuple[int, object]) -> int:
    """The rank of an item with its rank."""
    return item[0]


def entity_text(entity: Entity) -> str:
    """What an entity's line says."""
    statements = [text for attribute in entity.attributes for text in attribute]
    return " ".join([entity.name, *entity.aliases, *statements, entity.description])


def relation_text(relation: Relation) -> str:
    """What a relation's line says."""
    predicates = (*relation.keywords, *relation.reverse_keywords)
    return " ".join([relation.source, *predicates, relation.target, relation.description])


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


def without_repetition(fact: Fact, repeated: Repeated) -> str:
    """A fact's description without the sentences of the fact's own passages (by chunk id), and the
    texts of other lines that have the fact's names.
    """
    names = (fact.name,) if isinstance(fact, Entity) else (fact.source, fact.target)
    texts = [
        text
        for text in fact.description.split("\n")
        if text not in repeated.texts or not all(name in text for name in names)
    ]
    description = "\n".join(texts)
    own_passages = [repeated.passages[id] for id in fact.chunk_ids if id in repeated.passages]
    return _without_sentences_of(own_passages, description, names) if own_passages else description


def _without_sentences_of(
    passages: Sequence[Passage], description: str, names: Sequence[str]
) -> str:
    """A description without the sentences of the passages; the whole description if a name occurs
    neither in the sentences to leave out nor in the headings of the passages.

    White space does not count: a sentence of several lines, or with a heading in front, is on one line in
    a description.
    """
    lines: list[list[str]] = []  # the sentences of each line, each with the white space before it
    repeated: set[str] = set()
    letters = "\n".join([passage.letters for passage in passages])
    for line in description.split("\n"):
        if _stands_whole(line, letters):  # as most lines are, whole
            repeated.add(line)
            lines.append([line])
            continue
        ends = [0, *[end for _, end in sentence_spans(line)]]
        sentences = [line[start:end] for start, end in itertools.pairwise(ends)]
        repeated.update([sentence for sentence in sentences if _stands_whole(sentence, letters)])
        lines.append(sentences)
    visible_text = "\n".join([*repeated, *[passage.heading for passage in passages]])
    if not repeated or not all(name in visible_text for name in names):
        return description
    new_lines = [
        "".join([sentence for sentence in line if sentence not in repeated]).strip()
        for line in lines
    ]
    return "\n".join(filter(None, new_lines))


def _stands_whole(text: str, letters: str) -> bool:
    """Whether a text is a whole sentence, or several, of one of the passages with these letters."""
    sentence = without_spaces(text)
    return bool(sentence) and not sentence[-1].isalnum() and sentence in letters


def without_spaces(text: str) -> str:
    """The text without white space."""
    return "".join(text.split())
