"""Generates two-hop questions from the graph: two relations in two chunks, joined by an unnamed entity."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from lightrag_jsonl.evaluation.lookup import Lookup
from lightrag_jsonl.evaluation.questions import EvalQuestion
from lightrag_jsonl.languages import known_language
from lightrag_jsonl.storage import reading
from lightrag_jsonl.storage.snapshot import Snapshot
from lightrag_jsonl.text import digest, name_key
from lightrag_jsonl.types import Relation

BRIDGE_CHUNKS = range(2, 9)  # the number of chunks that mention the entity between
RELATIONS = 16  # the most relations of one entity that are tried
TEMPLATES = {
    "en": "Take what “{start}” is linked to by “{first}”: what is that linked to by “{second}”?",
    "zh": "与“{start}”有“{first}”这一联系的，又与什么有“{second}”这一联系？",
}


def generate_questions(
    lookup: Lookup, count: int, *, language: str = "en", seed: int = 0
) -> tuple[EvalQuestion, ...]:
    """Up to `count` questions whose two supporting chunks are known; no model is asked.

    Each leads from an entity, over one that is not named, to the answer; no chunk alone mentions
    both ends. The same index and seed give the same questions.
    """
    template = TEMPLATES[known_language(language)]
    mentions = lookup.mentions()
    bridges = [row for row, chunks in mentions.items() if len(chunks) in BRIDGE_CHUNKS]
    bridges.sort(key=lambda row: (digest(str(seed), str(row)), row))
    with lookup.snapshot() as snapshot:
        made = (_question(snapshot, row, mentions, template) for row in bridges)
        return tuple(itertools.islice((one for one in made if one is not None), count))


# ── helpers ─────────────────────────────────────────────────────────────────────

Mentions = dict[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Step:
    """A relation, stated in a chunk, between the unnamed entity and another one."""

    relation: Relation
    end: int
    name: str
    chunk: int


def _question(
    snapshot: Snapshot, bridge: int, mentions: Mentions, template: str
) -> EvalQuestion | None:
    for first, second in itertools.permutations(_steps(snapshot, bridge), 2):
        apart = first.chunk not in mentions.get(second.end, ())
        if apart and second.chunk not in mentions.get(first.end, ()):
            text = template.format(
                start=first.name,
                first=first.relation.keywords[0],
                second=second.relation.keywords[0],
            )
            names = snapshot.chunk_names([first.chunk, second.chunk])
            supporting = (names[first.chunk], names[second.chunk])
            return EvalQuestion(text, supporting, second.name)
    return None


def _steps(snapshot: Snapshot, bridge: int) -> list[_Step]:
    rows = snapshot.graph.relations_of([bridge])[1][:RELATIONS].tolist()
    relations = reading.relations(snapshot.connection, rows)
    between = reading.entity_names(snapshot.connection, [bridge])[bridge]
    return list(_told(snapshot, bridge, name_key(between), relations))


def _told(
    snapshot: Snapshot, bridge: int, key: str, relations: dict[int, Relation]
) -> Iterator[_Step]:
    """The relations whose wording does not give away the unnamed entity."""
    chunks = dict[int, int]()
    for row, chunk in reading.mention_chunks(snapshot.connection, "relation", relations):
        chunks.setdefault(row, chunk)
    pairs = snapshot.graph.ends(relations).tolist()
    ends = {
        row: high if low == bridge else low
        for row, (low, high) in zip(relations, pairs, strict=True)
    }
    names = reading.entity_names(snapshot.connection, ends.values())
    for row, relation in relations.items():
        name = names.get(ends[row], "")
        revealing = (name_key(word) for word in (name, *relation.keywords))
        if row in chunks and name and relation.keywords and not any(key in t for t in revealing):
            yield _Step(relation, ends[row], name, chunks[row])
