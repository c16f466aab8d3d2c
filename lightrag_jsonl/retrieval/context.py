"""Selects what fits into the token budgets of a context, without repetition."""

import hmac
import itertools
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache, partial
from typing import Generic

from msgspec import Struct

from lightrag_jsonl.core.answers import Context, Dropped
from lightrag_jsonl.core.headings import Outline, find_headings
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.types import Chunk, Entity, Excerpt, Page, Relation
from lightrag_jsonl.retrieval.context_writer import (
    ContextWriter,
    as_sentences,
    escaped,
    is_unstated,
    safe_line,
)
from lightrag_jsonl.retrieval.task import Fact, SearchResult
from lightrag_jsonl.text.names import nfkc_casefold
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.sentences import TABLE_ROW, sentence_spans
from lightrag_jsonl.text.terms import content_stems

# Shares and bounds by reason, not tuned on questions.
CLIP_SHARE = 0.25  # of its section's budget: the most that one description may take
LEAST_PASSAGE = 48  # tokens; a shorter beginning of a passage is not worth its heading
JOINT = 2  # tokens that may be added by joining an item to the text before it
ITEM_NUMBER = "[99]"  # before each item
MARK_LENGTH = 9  # digits: tokenizers make equally many tokens of all such marks, so that none leaves more room
_LINK_TARGET = pattern_of(r"\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)?\)")
_NO_MARKS = str.maketrans("", "", "[]`*_#|>-+•")  # of Markdown, in words, too
LABEL_LINE = pattern_of(  # of Markdown: a heading, or nothing but a link in a list
    r"^(?:#{1,6} .+|[ \t]*[-*+] \[[^\[\]\n]+\]\([^()\s]*\))$", re.MULTILINE
)
REDUCED = 0.9  # if a selection was too long, the next one has at most this share of its budgets


class Line(Struct, Generic[Fact], frozen=True):
    """An entity or a relation as the context shows it, with what is left of its description; `tokens` are those of
    the `text` with its number.
    """

    fact: Fact
    text: str
    tokens: int


class BarePassage(Struct, frozen=True):
    """A passage to compare texts with by what they say: `letters`, where lines end at the `borders`."""

    letters: str
    borders: frozenset[int]


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
    writer = ContextWriter(found_context, context_mark(found_context, secret))
    share = 1.0 - float(getattr(tokenizer, "error", 0.0))
    limit = int(param.max_total_tokens * share)
    while True:
        selection = ContextSelection(result, writer, param, share, tokenizer)
        prompt = writer.text(
            [line.text for line in selection.entity_lines],
            [line.text for line in selection.relation_lines],
            selection.chunks,
        )
        is_additive = getattr(tokenizer, "additive", False)
        tokens = selection.tokens if prompt and is_additive else tokenizer.count(prompt)
        if tokens <= limit:
            break
        share *= min(REDUCED, limit / tokens)
    dropped = Dropped(
        entities=len(found_context.entities) - len(selection.entity_lines),
        relations=len(found_context.relations) - len(selection.relation_lines),
        chunks=len(found_context.chunks) - len(selection.chunks),
    )
    return replace(
        found_context,
        entities=tuple([line.fact for line in selection.entity_lines]),
        relations=tuple([line.fact for line in selection.relation_lines]),
        chunks=tuple(selection.chunks),
        tokens=tokens,
        prompt=prompt,
        dropped=dropped,
    )


class ContextSelection:
    """The items that fit into a share of the budgets, by the tokens of the single items.

    Passages come first, the first passage and the guaranteed passage before the others. A fact takes
    a passage's place only if it has a word of the question that no passage has so far; such facts leave
    passages their promised part of the total. Other facts have what passages leave. Entities
    and relations divide their part in proportion to the two budgets; either kind may use the remainder
    of the other.

    `entity_lines`, `relation_lines` and `chunks` are in the order of rank; `tokens` are those of all items.
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
        frames = [writer.frame(chunk) for chunk in chunks]
        self._frame_costs = [tokenizer.count(frame) + 2 * JOINT for frame in frames]
        self._chunk_costs = [
            frame_cost + chunk_size(chunk, tokenizer)
            for chunk, frame_cost in zip(chunks, self._frame_costs, strict=True)
        ]
        chunk_budget = int(self._total * param.chunk_share)
        self._promised = min(chunk_budget, sum(self._chunk_costs))
        first_ids = [chunk.id for chunk in chunks[:1]]
        leading_ids = {result.guaranteed_chunk_id, *first_ids}
        self._positions = sorted(  # of the first chunk, of the guaranteed one, and of all the rest
            range(len(chunks)), key=lambda position: chunks[position].id not in leading_ids
        )
        self._entities: dict[int, Line[Entity]] = {}  # the selected ones by rank
        self._relations: dict[int, Line[Relation]] = {}
        self._line_texts: set[str] = set()  # of descriptions, in the selected lines
        self._labels: frozenset[str] = frozenset()  # in passages, for the descriptions of facts
        if self._context.entities or self._context.relations:
            texts = "\n".join([chunk.text for chunk in chunks])
            self._labels = frozenset(map(bare_text, LABEL_LINE.findall(texts)))
        self._number_tokens = tokenizer.count(ITEM_NUMBER) + JOINT
        self._select()
        self.entity_lines = [self._entities[rank] for rank in sorted(self._entities)]
        self.relation_lines = [self._relations[rank] for rank in sorted(self._relations)]

    def _select(self) -> None:
        """Select chunks and facts: those facts first that take the place of passages, as far as the other
        passages do not say the same.
        """
        heading_lines = self._writer.headings(self._writer.words.headings)
        headings = self._tokenizer.count("\n\n".join(heading_lines))
        room = self._total - headings
        all_entities = dict(enumerate(self._context.entities))
        all_relations = dict(enumerate(self._context.relations))
        certain_chunks, _ = self._passages(self._promised)
        entities, relations = self._telling_facts(certain_chunks)
        fact_tokens = self._add_facts(entities, relations, certain_chunks, room - self._promised)
        chunks, chunk_tokens = self._passages(room - fact_tokens)
        tokenizer = self._tokenizer
        self.chunks = [without_shared_end(chunk, chunks, tokenizer) for chunk in chunks]
        chunk_tokens -= sum(chunk.tokens for chunk in chunks)
        chunk_tokens += sum(chunk.tokens for chunk in self.chunks)
        for selected in (self._entities, self._relations, self._line_texts):
            selected.clear()
        room -= chunk_tokens
        fact_tokens = self._add_facts(entities, relations, self.chunks, room)
        fact_tokens += self._add_facts(all_entities, all_relations, self.chunks, room - fact_tokens)
        self.tokens = headings + chunk_tokens + fact_tokens

    def _telling_facts(
        self, chunks: Sequence[Chunk]
    ) -> tuple[dict[int, Entity], dict[int, Relation]]:
        """The entities and the relations, by rank, that may take the place of passages beside some chunks."""
        if not (self._context.entities or self._context.relations):
            return {}, {}
        text = nfkc_casefold("\n".join([chunk.text for chunk in chunks]))
        missing_stems = [stem for stem in self._writer.question_stems if stem not in text]
        entities = {
            rank: entity
            for rank, entity in enumerate(self._context.entities)
            if _has_stem(entity, missing_stems)
        }
        relations = {
            rank: relation
            for rank, relation in enumerate(self._context.relations)
            if _has_stem(relation, missing_stems)
        }
        return entities, relations

    def _add_facts(
        self,
        entities: Mapping[int, Entity],
        relations: Mapping[int, Relation],
        chunks: Sequence[Chunk],
        budget: int,
    ) -> int:
        """Select those of some facts, by rank, that fit into a budget for both kinds, beside the facts that are
        selected already; returns the tokens of the new lines. No line repeats the chunks.
        """
        if not (entities or relations):
            return 0
        passages = {
            chunk.id: (self._writer.heading(0, chunk), bare_passage(chunk.text)) for chunk in chunks
        }
        entity_tokens = sum(line.tokens for line in self._entities.values())
        relation_tokens = sum(line.tokens for line in self._relations.values())
        entity_room = self._entity_budget - entity_tokens
        relation_room = self._relation_budget - relation_tokens
        budgets = max(self._entity_budget + self._relation_budget, 1)
        fair_room = min(entity_room, budget * self._entity_budget // budgets)
        tokens = self._add_lines(self._entities, entities, fair_room, passages)
        relation_room = min(relation_room, budget - tokens)
        new_relation_tokens = self._add_lines(self._relations, relations, relation_room, passages)
        left_room = min(entity_room, budget - new_relation_tokens) - tokens
        tokens += self._add_lines(self._entities, entities, left_room, passages)
        return tokens + new_relation_tokens

    def _passages(self, budget: int) -> tuple[list[Chunk], int]:
        """The chunks within a budget, in the order of rank, and their tokens. Of the first that does not fit whole
        sentences are shown, before shorter ones of lower rank.
        """
        chosen: dict[int, Chunk] = {}
        room = budget
        for position in self._positions:
            chunk = self._context.chunks[position]
            cost = self._chunk_costs[position]
            if cost > room:
                part = self._part(chunk, room - self._frame_costs[position])
                if part is None:
                    continue
                chunk = part
                cost = self._frame_costs[position] + chunk_size(part, self._tokenizer)
            if cost <= room:
                chosen[position] = chunk
                room -= cost
        return [chosen[position] for position in sorted(chosen)], budget - room

    def _add_lines(
        self,
        selected: dict[int, Line[Fact]],
        facts: Mapping[int, Fact],
        room: int,
        passages: Mapping[str, tuple[str, BarePassage]],
    ) -> int:
        """Add a line for each fact that still fits into a room and says anything, by rank; returns the tokens
        of the new lines. No line repeats the passages or the texts of another line. The line of an
        entity is empty with nothing but its name beside passages, or its type beside one that it is from.
        """
        total = 0
        for rank, fact in facts.items():
            if rank in selected:
                continue
            if total + self._number_tokens > room:
                break
            new_description = without_repetition(fact, passages, self._labels, self._line_texts)
            texts = self._writer.relevant_texts(fact, new_description)
            description = as_sentences(texts)
            if not description and isinstance(fact, Relation) and is_unstated(fact):
                continue
            line = self._line(fact, texts, description)
            if isinstance(fact, Entity) and not (description or fact.aliases or fact.attributes):
                is_seen = not passages.keys().isdisjoint(fact.chunk_ids)
                if is_seen or (passages and line.text == safe_line(fact.name)):
                    line = Line(line.fact, "", 0)
            if total + line.tokens <= room:
                selected[rank] = line
                total += line.tokens
                if line.fact.description == description:  # not cut
                    for shown_text in texts:
                        self._line_texts.update(map(str.strip, _sentence_texts(shown_text)))
        return total

    def _line(self, fact: Fact, texts: Sequence[str], description: str) -> Line[Fact]:
        """The line of a fact with some texts of its description, which are the `description` without dates.
        A long description is cut, lest one hub fill a whole section.
        """
        is_entity = isinstance(fact, Entity)
        limit = int((self._entity_budget if is_entity else self._relation_budget) * CLIP_SHARE)
        dated_description = description
        periods: Sequence[str] = ()
        if self._context.claim_dates:
            dated_texts = self._writer.with_dates(texts, fact.description)
            dated_description = as_sentences(dated_texts)
            periods = self._writer.periods(fact.description) if not texts else ()
        text = self._writer.fact(fact, dated_description, periods)
        tokens = self._tokenizer.count(text)
        if tokens > limit and self._tokenizer.count(description) > limit:
            description = self._tokenizer.truncate(description, limit).rstrip() + "…"
            text = self._writer.fact(fact, description, periods)
            tokens = self._tokenizer.count(text)
        shown_fact = replace(fact, description=description)
        return Line(shown_fact, text, tokens + self._number_tokens)

    def _part(self, chunk: Chunk, limit: int) -> Chunk | None:
        """The run of whole sentences of a chunk that fits and has most of the question's words, or else the
        beginning; None if neither is worth its heading.
        """
        if limit < LEAST_PASSAGE:
            return None
        count = self._tokenizer.count
        start, end = best_run(chunk.text, limit, self._writer.question_stems, self._tokenizer)
        text = chunk.text[start:end]
        if not text or count(text) > limit:
            start = 0
            text = self._tokenizer.truncate(chunk.text, limit)
        if not text.strip():
            return None
        path = ""
        if start:
            outline = Outline([Page(chunk.document_id, 1, chunk.text)])
            path = outline.path_at(1, start)
        return replace(
            chunk,
            text=text,
            start=chunk.start + start,
            end=chunk.start + start + len(text),
            tokens=count(text),
            heading=path or chunk.heading,
        )


def best_run(text: str, limit: int, stems: Set[str], tokenizer: Tokenizer) -> Excerpt:
    """The first run of sentences of a text, within a limit of tokens, with the greatest share of the sentences that
    have some stems, each stem counted alike; the beginning, if no other has more. (0, 0) if the first sentence
    does not fit, and no other has a stem.

    Another run begins with a line that is not indented, and not within a table or the fields above a text. It does
    not end with a heading.
    """
    spans = sentence_spans(text)
    ends = [0, *[end for _, end in spans]]
    bounds = itertools.pairwise(ends)
    tokens = [tokenizer.count(text[start:end]) for start, end in bounds]
    tokens_before = [0, *itertools.accumulate(tokens)]
    sentences = [text[start:end] for start, end in spans]
    shared = [stems & content_stems(sentence) for sentence in sentences]
    frequencies = Counter(itertools.chain.from_iterable(shared))
    shares = [sum(1 / frequencies[stem] for stem in sentence_stems) for sentence_stems in shared]
    shares_before = [0.0, *itertools.accumulate(shares)]
    headings = {heading.start for heading in find_headings(text)}
    last_stop = 0
    stops = [0]  # for each number of sentences, how many of them end with no heading
    for number, (start, _) in enumerate(spans, 1):
        last_stop = last_stop if start in headings else number
        stops.append(last_stop)
    fields_end = text.find("\n---", 3) if text.startswith("---\n") else 0
    best = (0, 0)
    best_value = 0.0
    for first, (start, _) in enumerate(spans):
        stop = stops[bisect_right(tokens_before, tokens_before[first] + limit) - 1]
        value = shares_before[stop] - shares_before[first]
        if first == 0:
            best = (start, spans[stop - 1][1]) if stop else best
            best_value = value
            continue
        is_inside = text[start - 1] != "\n" or TABLE_ROW.match(text, start) or start < fields_end
        if stop > first and value > best_value and not is_inside:
            best = (start, spans[stop - 1][1])
            best_value = value
    return best


def _has_stem(fact: Entity | Relation, stems: Collection[str]) -> bool:
    """Whether the line of a fact would have a word with one of some stems."""
    if not stems:
        return False
    if isinstance(fact, Entity):
        names = [fact.name, *fact.aliases, *itertools.chain(*fact.attributes)]
    else:
        names = [fact.source, *fact.keywords, *fact.reverse_keywords, fact.target]
    texts = [" ".join(names), *fact.description.split("\n")]
    return any(not content_stems(text).isdisjoint(stems) for text in texts)


def without_shared_end(chunk: Chunk, chunks: Iterable[Chunk], tokenizer: Tokenizer) -> Chunk:
    """A chunk up to where the next chunk of the page begins, if that is shown, or to the end of the
    sentence that the next one begins in; and without headings at the end, below which nothing stands.
    """
    text = chunk.text
    for following in chunks:
        is_same_page = (chunk.document_id, chunk.page) == (following.document_id, following.page)
        if is_same_page and chunk.start < following.start < chunk.end <= following.end:
            text = _beginning_before(chunk.text, following.start - chunk.start)
            break
    text = text[: _end_of_content(text)]
    if text == chunk.text:
        return chunk
    return replace(
        chunk, text=text, end=chunk.start + len(text), tokens=tokenizer.count(escaped(text))
    )


@lru_cache(2_000)  # questions read the same passages again and again
def _end_of_content(text: str) -> int:
    """Where a text ends without the headings at its end, each below an empty line: other lines with a number sign
    may be comments. Where it ends, if it is nothing but headings.
    """
    end = len(text)
    if "#" not in text:
        return end
    for heading in reversed([*find_headings(text)]):
        _, _, below = text[heading.start : end].partition("\n")
        if below.strip() or not text[: heading.start].endswith("\n\n"):
            return end
        end = heading.start
    return end if text[:end].strip() else len(text)


@lru_cache(2_000)  # questions read the same passages again and again
def _beginning_before(text: str, shared_start: int) -> str:
    """A text up to the end of the sentence in which something begins."""
    paragraph_start = max(text.rfind("\n\n", 0, shared_start), 0)
    spans = sentence_spans(text[paragraph_start:])
    ends = [end for start, end in spans if paragraph_start + start < shared_start]
    return text[: paragraph_start + ends[-1] if ends else shared_start]


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
    data = repr((context.question, chunk_ids, facts)).encode("utf-8", "backslashreplace")
    digest = hmac.new(secret.encode(), data, "sha256")
    number = int(digest.hexdigest(), 16)
    return str(number % 10**MARK_LENGTH).zfill(MARK_LENGTH)


# ── descriptions do not repeat the passages ─────────────────────────────────────


def without_repetition(
    fact: Entity | Relation,
    passages: Mapping[str, tuple[str, BarePassage]],
    labels: Collection[str],
    line_texts: Set[str],
) -> str:
    """The description of a fact without labels, which state nothing, and without sentences of the passages that the
    fact is from and of other lines; but with them if a name of the fact occurs neither in these sentences nor in
    the headings of the passages. `passages` are the heading and the bare text of each chunk, by id.

    Neither marks nor white space count: a sentence of several lines, or with a heading in front, is on
    one line in a description.
    """
    names = (fact.name,) if isinstance(fact, Entity) else (fact.source, fact.target)
    own_passages = [passages[id] for id in fact.chunk_ids if id in passages]
    bare_passages = [bare for _, bare in own_passages]
    stands = partial(_stands_whole, passages=bare_passages, line_texts=line_texts, names=names)
    lines = fact.description.split("\n")
    texts = [line for line in lines if bare_text(line) not in labels]
    sentences_by_text = [(text,) if stands(text) else _sentence_texts(text) for text in texts]
    repeated = set(filter(stands, itertools.chain.from_iterable(sentences_by_text)))
    headings = [heading for heading, _ in own_passages]
    visible_text = "\n".join([*repeated, *headings]).casefold()
    if repeated and all(name.casefold() in visible_text for name in names):
        texts = [
            "".join([sentence for sentence in sentences if sentence not in repeated]).strip()
            for sentences in sentences_by_text
        ]
    return "\n".join(filter(None, texts))


@lru_cache(10_000)  # the statements about a hub are looked at for many questions
def _sentence_texts(text: str) -> Sequence[str]:
    """The sentences of a text, each with the white space before it."""
    ends = [0, *[end for _, end in sentence_spans(text)]]
    bounds = itertools.pairwise(ends)
    return [text[start:end] for start, end in bounds]


def _stands_whole(
    text: str, *, passages: Sequence[BarePassage], line_texts: Set[str], names: Sequence[str]
) -> bool:
    """Whether a text with all names is among the texts of lines, or is a whole sentence of passages, or several, or
    whole lines with a name.
    """
    if text.strip() in line_texts and all(name in text for name in names):
        return True
    sentence = bare_text(text).strip("…")
    if not sentence:
        return False
    for passage in passages:
        if sentence in passage.letters:
            start = passage.letters.index(sentence)
            is_line = {start, start + len(sentence)} <= passage.borders
            has_name = is_line and any(name in text for name in names)
            return has_name or text.endswith("…") or not sentence[-1].isalnum()
    return False


@lru_cache(2_000)  # questions read the same passages again and again
def bare_passage(text: str) -> BarePassage:
    """The letters of a passage, and where its lines end."""
    lines = list(map(bare_text, text.split("\n")))
    line_ends = itertools.accumulate(map(len, lines))
    return BarePassage("".join(lines), frozenset([0, *line_ends]))


@lru_cache(10_000)  # questions read the same passages again and again
def bare_text(text: str) -> str:
    """A text without marks, targets of links and white space, to compare texts by what they say."""
    return "".join(_LINK_TARGET.sub("", text).translate(_NO_MARKS).split())
