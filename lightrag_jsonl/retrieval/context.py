"""Selects what fits into the token budgets, and writes it: passages, entities, relations, sources."""

import hmac
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias, TypeVar

from lightrag_jsonl.core import types
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.sentences import sentence_spans
from lightrag_jsonl.core.text import on_one_line
from lightrag_jsonl.core.types import Chunk, Context, Entity, Relation

CLIP_SHARE = 0.25  # of its section's budget: the most that one description may take
LEAST_PASSAGE = 16  # tokens; a shorter beginning of a passage is not worth its heading
JOINT = 2  # tokens that may be added by joining an item to the text before it
NUMBER = "[99]"  # before each item
LABEL_LENGTH = 200  # characters; longer titles are cut
MARK_LENGTH = 8  # hex digits
MARK_SECRET = "mark_secret"  # the setting from which marks are derived
REDUCED = 0.9  # if a selection was too long, the next one has at most this share of its budgets

Fact = TypeVar("Fact", Entity, Relation)
Item = TypeVar("Item")
Passage: TypeAlias = tuple[str, str]  # heading and text


def fit_context(
    found: Context, param: QueryParam, tokenizer: Tokenizer, keep: str = "", secret: str = ""
) -> Context:
    """The part of what was found that fits into `param`'s budgets, each reduced by the tokenizer's
    possible error; with the prompt. `keep` is the id of a chunk that others make room for, except
    the first.

    Items are numbered from 1: chunks, then entities, then relations. Each section and each passage
    begins with a mark, which is derived from the question, what was found and the index's `secret`,
    so that no document can know it, but an equal prompt has an equal one. In texts, a bracket before
    a number is escaped by a backslash, so that nothing there looks like the number of an item. A
    description does not repeat a passage that is shown, and one that alone would exceed its budget
    is cut, like a passage, both in the prompt and in the returned item. The tokens of
    items are added up; unless the tokenizer is `additive`, the whole is counted, too, and if it is
    too long the items are selected anew with smaller budgets.
    """
    writer = Writer(WORDS[types.known_language(found.language)], found, _mark(found, secret))
    share = 1.0 - float(getattr(tokenizer, "error", 0.0))
    limit = int(param.max_total_tokens * share)
    while True:
        entities, relations, chunks, tokens = _select(found, writer, param, share, tokenizer, keep)
        lines = [line for _, line in entities], [line for _, line in relations]
        prompt = writer.prompt(*lines, chunks)
        if not (prompt and getattr(tokenizer, "additive", False)):
            tokens = tokenizer.count(prompt) if prompt else 0
        if tokens <= limit:
            break
        share *= min(REDUCED, limit / tokens)
    shown = replace(
        found,
        entities=tuple([entity for entity, _ in entities]),
        relations=tuple([relation for relation, _ in relations]),
        chunks=tuple(chunks),
        tokens=tokens,
        prompt=prompt,
    )
    kinds = ("entities", "relations", "chunks")
    lost = [len(getattr(found, kind)) - len(getattr(shown, kind)) for kind in kinds]
    return replace(shown, dropped=types.Dropped(*lost))


def _select(
    found: Context,
    writer: "Writer",
    param: QueryParam,
    share: float,
    tokenizer: Tokenizer,
    keep: str,
) -> tuple[list[tuple[Entity, str]], list[tuple[Relation, str]], list[Chunk], int]:
    """What fits into this share of the budgets, by the tokens of the single items, and their sum.

    Passages have a promised part of the total, and take what entities and relations leave, the first
    one and `keep` before the others. These two divide theirs by their own budgets, and what one does
    not need the other may use.
    """
    count, total = tokenizer.count, int(param.max_total_tokens * share)
    most_entities = min(int(param.max_entity_tokens * share), total)
    most_relations = min(int(param.max_relation_tokens * share), total)
    frames = [count(writer.frame(chunk)) + 2 * JOINT for chunk in found.chunks]
    costs = [f + _size(c, tokenizer) for c, f in zip(found.chunks, frames, strict=True)]
    ranks = sorted(range(len(costs)), key=lambda n: (n > 0 and found.chunks[n].id != keep, n))
    headings = count("\n\n".join(writer.headings()))
    promised = min(int(total * param.chunk_share), sum(costs))
    sums = itertools.accumulate([costs[n] for n in ranks])
    sure = {
        found.chunks[n].id: (writer.heading(0, found.chunks[n]), found.chunks[n].text)
        for n, used in zip(ranks, sums, strict=True)
        if used <= promised
    }
    entities = _lines(found.entities, writer.entity, most_entities, tokenizer, sure)
    relations = _lines(found.relations, writer.relation, most_relations, tokenizer, sure)
    facts = total - headings - promised
    fair = facts * most_entities // max(most_entities + most_relations, 1)
    unneeded = facts - min(sum([cost for _, cost in relations]), most_relations)
    kept, used = _greedy(entities, min(most_entities, max(fair, unneeded)))
    joining, more = _greedy(relations, min(most_relations, facts - used))
    left = total - headings - used - more
    numbers, rest = _greedy([(n, costs[n]) for n in ranks], left)
    passages = [found.chunks[n] for n in sorted(numbers)]
    if found.chunks and not passages:
        passages = _beginning(found.chunks[0], left - frames[0], tokenizer)
        rest = sum([frames[0] + _size(chunk, tokenizer) for chunk in passages])
    return kept, joining, passages, headings + used + more + rest


def _lines(
    items: Sequence[Fact],
    write: Callable[[Fact], str],
    budget: int,
    tokenizer: Tokenizer,
    passages: Mapping[str, Passage],
) -> list[tuple[tuple[Fact, str], int]]:
    """Items with their lines and the tokens of these. Lines do not repeat what these passages say;
    long descriptions are cut, so that one hub does not fill a whole section.
    """
    limit, number = int(budget * CLIP_SHARE), tokenizer.count(NUMBER) + JOINT
    lines = []
    for item in items:
        item = _without_repeated(item, passages)
        line = write(item)
        tokens = tokenizer.count(line)
        if tokens > limit and tokenizer.count(item.description) > limit:
            text = tokenizer.truncate(item.description, limit).rstrip() + "…"
            item = replace(item, description=text)
            line = write(item)
            tokens = tokenizer.count(line)
        lines.append(((item, line), tokens + number))
    return lines


def _without_repeated(item: Fact, passages: Mapping[str, Passage]) -> Fact:
    """The item without what its description repeats of its own passages."""
    names = (item.name,) if isinstance(item, Entity) else (item.source, item.target)
    own = [passages[id] for id in item.chunk_ids if id in passages]
    return replace(item, description=_unrepeated(item.description, names, own)) if own else item


def _unrepeated(text: str, names: Sequence[str], passages: Sequence[Passage]) -> str:
    """A description without those sentences that stand in one of these passages word for word; with
    all of them if neither they nor the headings of the passages have the names.
    """
    lines = [_sentences(line) for line in text.split("\n")]
    every = [one for line in lines for one in line if not one[-1].isalnum()]  # whole sentences
    shown = {one for one in every if any(one.strip() in passage for _, passage in passages)}
    known = "\n".join([*shown, *[heading for heading, _ in passages]])
    if not shown or not all(name in known for name in names):
        return text
    kept = ["".join([one for one in line if one not in shown]).strip() for line in lines]
    return "\n".join(filter(None, kept))


def _sentences(line: str) -> list[str]:
    """The sentences of a line, each with the white space before it."""
    ends = [0, *[end for _, end in sentence_spans(line)]]
    return [line[start:end] for start, end in itertools.pairwise(ends)]


def _greedy(items: Sequence[tuple[Item, int]], budget: int) -> tuple[list[Item], int]:
    """In order of rank, every item that still fits; and their cost."""
    kept: list[Item] = []
    used = 0
    for item, cost in items:
        if used + cost <= budget:
            kept.append(item)
            used += cost
    return kept, used


def _size(chunk: Chunk, tokenizer: Tokenizer) -> int:
    """The tokens of a chunk as it is shown."""
    shown = escaped(chunk.text)
    return chunk.tokens if chunk.tokens and shown == chunk.text else tokenizer.count(shown)


def _mark(found: Context, secret: str) -> str:
    """New for each question and for all that is found for it; not to be known without the secret."""
    facts = [(one.name, one.description) for one in found.entities]
    facts += [(one.source + one.target, one.description) for one in found.relations]
    text = repr((found.question, [chunk.id for chunk in found.chunks], facts))
    data = text.encode("utf-8", "backslashreplace")
    return hmac.new(secret.encode(), data, "sha256").hexdigest()[:MARK_LENGTH]


def _beginning(chunk: Chunk, limit: int, tokenizer: Tokenizer) -> list[Chunk]:
    """The beginning of a chunk that fits, if it is long enough to be worth showing."""
    text = tokenizer.truncate(chunk.text, limit) if limit >= LEAST_PASSAGE else ""
    if not text.strip():
        return []
    tokens = tokenizer.count(text)
    return [replace(chunk, text=text, end=chunk.start + len(text), tokens=tokens)]


# ── writing ─────────────────────────────────────────────────────────────────────


_NUMBERED = re.compile(r"(?<!\\)[\[［【](?=[^\w\[\]］】]{0,9}\d)")


def escaped(text: str) -> str:
    """A document's text with a backslash before each bracket that opens a number."""
    return _NUMBERED.sub(r"\\\g<0>", text) if "[" in text or "［" in text or "【" in text else text


class Words(NamedTuple):
    """The fixed words and the punctuation of a context in one language, by default English."""

    headings: tuple[str, str, str, str] = ("Passages", "Entities", "Relations", "Sources")
    first: str = "Mark of this context: "
    page: str = "page {}"
    weight: str = "weight {:g}"
    related: str = "related to"
    comma: str = ", "
    listed: str = ", "
    colon: str = ": "
    brackets: str = " ({})"


WORDS: Mapping[types.Language, Words] = {
    "en": Words(),
    "zh": Words(
        ("原文", "实体", "关系", "来源"),
        "本资料的标记：",
        "第 {} 页",
        "权重 {:g}",
        "有关",
        "，",
        "、",
        "：",
        "（{}）",
    ),
}


class Writer(NamedTuple):
    """Writes items, without their numbers, and complete contexts in one language.

    `found` knows what readers call the documents, and their dates; `mark` begins what we write.
    """

    words: Words
    found: Context
    mark: str

    def entity(self, entity: Entity) -> str:
        """An entity on one line."""
        known = entity.type and entity.type != types.UNKNOWN_TYPE
        kind = self.words.brackets.format(_line(entity.type)) if known else ""
        return f"{_line(entity.name)}{kind}{self._described(entity.description)}"

    def relation(self, relation: Relation) -> str:
        """A relation on one line."""
        source, target = _line(relation.source), _line(relation.target)
        ends = f"{source} — {self._predicate(relation.keywords)} → {target}"
        if relation.reverse_keywords:
            back = f"{target} — {self._predicate(relation.reverse_keywords)} → {source}"
            ends += f"{self.words.comma}{back}"
        weight = self.words.brackets.format(self.words.weight.format(relation.weight))
        return f"{ends}{weight}{self._described(relation.description)}"

    def frame(self, chunk: Chunk) -> str:
        """The text around a chunk's own: its heading, and its entry among the sources."""
        return (
            f"{self.heading(99, chunk)}\n- {self._title(chunk.document_id)}{self.words.colon}[99]"
        )

    def headings(self) -> list[str]:
        """The first line, and the headings of all sections."""
        heads = [f"{self.mark} {head}{self.words.colon}" for head in self.words.headings]
        return [f"{self.words.first}{self.mark}", *heads]

    def prompt(
        self, entities: Sequence[str], relations: Sequence[str], chunks: Sequence[Chunk]
    ) -> str:
        """The complete text, from lines and chunks; a section without items has no heading."""
        numbered = enumerate([*entities, *relations], len(chunks) + 1)
        facts = [f"[{number}] {text}" for number, text in numbered]
        passages, cited = [], dict[str, str]()
        for number, chunk in enumerate(chunks, 1):
            passages.append(f"{self.heading(number, chunk)}\n{escaped(chunk.text)}")
            cited[chunk.document_id] = f"{cited.get(chunk.document_id, '')}[{number}]"
        sections = (
            passages,
            facts[: len(entities)],
            facts[len(entities) :],
            [f"- {self._title(id)}{self.words.colon}{numbers}" for id, numbers in cited.items()],
        )
        first, *heads = self.headings()
        headed = zip(heads, sections, strict=True)
        texts = ["\n".join([head.rstrip(), *lines]) for head, lines in headed if lines]
        return "\n\n".join([first, *texts]) if texts else ""

    def _predicate(self, keywords: Sequence[str]) -> str:
        return _line(self.words.listed.join(keywords)) or self.words.related

    def heading(self, number: int, chunk: Chunk) -> str:
        """The line above a chunk: number, title and date, heading path, page."""
        page = self.words.page.format(chunk.page) if chunk.document_id in self.found.paged else ""
        parts = [self._title(chunk.document_id), _line(chunk.heading)[:LABEL_LENGTH], page]
        where = (
            self.words.comma.join(filter(None, dict.fromkeys(parts))) + self.words.colon.rstrip()
        )
        return f"{self.mark} [{number}] {where}"

    def _title(self, document: str) -> str:
        """A document's title with its date."""
        title = _line(self.found.documents.get(document, document))[:LABEL_LENGTH]
        date = _line(self.found.dates.get(document, ""))[:LABEL_LENGTH]
        return title + (self.words.brackets.format(date) if date else "")

    def _described(self, description: str) -> str:
        text = _line(description)
        return f"{self.words.colon}{text}" if text else ""


def _line(text: str) -> str:
    """A text without line breaks and numbers of items."""
    return escaped(on_one_line(text))
