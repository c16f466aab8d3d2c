"""Mentions, the entities and relations merged from them, and the merges of names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache, lru_cache
from operator import attrgetter

from msgspec.json import decode as parse

from lightrag_jsonl.core.types import Entity, EntityMention, Kind, Relation, RelationMention
from lightrag_jsonl.storage.rows import (
    Aliases,
    EntityMentionRow,
    EntityRow,
    NextIds,
    RelationMentionRow,
    RelationRow,
)
from lightrag_jsonl.storage.sqlite.connection import (
    AMONG,
    TABLES,
    ConnectionReader,
    ConnectionWriter,
    Row,
    json_text,
)

ENTITY = ", ".join(field.name for field in fields(EntityRow))
RELATION = ", ".join(field.name for field in fields(RelationRow))
ENTITY_VALUES, RELATION_VALUES = attrgetter(*ENTITY.split(", ")), attrgetter(*RELATION.split(", "))
ENTITY_MENTION = "id, entity, chunk, position, name, type, description, grounded, attributes"
RELATION_MENTION = (
    "id, relation, chunk, position, source, target, keywords, description, strength, forward"
)
FIRST_CHUNKS = """(SELECT json_group_array(chunk) FROM (SELECT chunk FROM {0}_mentions
    WHERE {0} = wanted.value ORDER BY position LIMIT ?))"""  # answered from an index alone
NEXT_IDS = ", ".join(
    f"(SELECT coalesce(max(id), 0) + 1 FROM {one.name})" for one in fields(NextIds)
)
MILLION = 1e6


class GraphReader(ConnectionReader):
    """Reads mentions, entities and relations."""

    def next_ids(self) -> NextIds:
        """The next free row ids, for the one writer."""
        return NextIds(*self._rows(f"SELECT {NEXT_IDS}")[0])

    def entity_mentions(
        self, *, chunks: Collection[int] | None = None, entities: Collection[int] | None = None
    ) -> list[EntityMentionRow]:
        """The mentions in these chunks, or of these entities, or all; by row id."""
        by = ("entity", entities) if chunks is None else ("chunk", chunks)
        rows = self._select(ENTITY_MENTION, "entity_mentions", *by)
        return list(map(_stored_entity_mention, rows))

    def relation_mentions(
        self, *, chunks: Collection[int] | None = None, relations: Collection[int] | None = None
    ) -> list[RelationMentionRow]:
        """The mentions in these chunks, or of these relations, or all; by row id."""
        by = ("relation", relations) if chunks is None else ("chunk", chunks)
        rows = self._select(RELATION_MENTION, "relation_mentions", *by)
        return list(map(_stored_relation_mention, rows))

    def mentioned_relations(self, chunks: Sequence[int]) -> list[int]:
        """Row ids of the relations that these chunks mention, each once, in the order of `chunks`."""
        query = (
            "SELECT m.relation FROM json_each(?) wanted JOIN relation_mentions m "
            "ON m.chunk = wanted.value WHERE m.relation IS NOT NULL GROUP BY m.relation "
            "ORDER BY min(wanted.key), min(m.position), m.relation"
        )
        return [row[0] for row in self._rows(query, json_text(list(chunks)))]

    def descriptions(
        self,
        kind: Kind,
        after: Mapping[int, int],
        *,
        without: Collection[int] = (),
        limit: int | None = None,
    ) -> dict[int, list[tuple[int, str]]]:
        """The first descriptions in later mentions of each row, as (position, text)."""
        query = (
            "SELECT wanted.key, (SELECT json_group_array(json_array(position, description)) FROM ("
            f"SELECT position, description FROM {kind}_mentions WHERE {kind} = wanted.key "
            f"AND id > wanted.value AND NOT chunk {AMONG} AND description <> '' "
            "ORDER BY position LIMIT ?)) FROM json_each(?) wanted"
        )
        most = -1 if limit is None else limit
        found = {}
        values = (json_text(sorted(without)), most, json_text(dict(after)))
        for row, texts in self._rows(query, *values):
            found[int(row)] = list(map(tuple, parse(texts)))
        return found

    def entity_rows(
        self, *, ids: Collection[int] | None = None, keys: Collection[str] | None = None
    ) -> dict[int, EntityRow]:
        """Entities by row id: those with these row ids or name keys, or all."""
        by = ("key", keys) if ids is None else ("id", ids)
        found = {}
        for row in self._select(ENTITY, "entities", *by):
            found[row[0]] = EntityRow(*row[:2], *map(parse, row[2:5]), *row[5:])
        return found

    def relation_rows(
        self,
        *,
        ids: Collection[int] | None = None,
        pairs: Collection[tuple[int, int]] | None = None,
    ) -> dict[int, RelationRow]:
        """Relations by row id: those with these row ids or (low, high) pairs, or all."""
        if pairs is None:
            rows = self._select(RELATION, "relations", "id", ids)
        else:
            wanted = "SELECT value ->> 0, value ->> 1 FROM json_each(?)"
            query = f"SELECT {RELATION} FROM relations WHERE (low, high) IN ({wanted}) ORDER BY id"
            rows = self._rows(query, json_text(sorted(pairs)))
        found = {}
        for row in rows:
            one = RelationRow(*row[:3], *map(parse, row[3:6]), *row[6:])
            one.reversed = bool(one.reversed)
            found[one.id] = one
        return found

    def entities(self, rows: Collection[int], *, chunk_limit: int = 20) -> dict[int, Entity]:
        """Entities for readers, each with the public ids of its first chunks; degree not set."""
        query = (
            f"SELECT e.id, {FIRST_CHUNKS.format('entity')}, e.name, e.type, e.description, "
            "e.created_at, e.attributes FROM json_each(?) wanted "
            "JOIN entities e ON e.id = wanted.value"
        )
        rows_found = self._rows(query, chunk_limit, json_text(list(rows)))
        chunks, found = self._sources(rows_found), {}
        for row, _, name, kind, text, created_at, votes in rows_found:
            at = _time(created_at)
            found[row] = Entity(name, kind, text, chunks[row], 0, at, _attributes(votes))
        return found

    def relations(self, rows: Collection[int], *, chunk_limit: int = 20) -> dict[int, Relation]:
        """Relations for readers, each with the public ids of its first chunks."""
        query = (
            f"SELECT r.id, {FIRST_CHUNKS.format('relation')}, source.name, target.name, "
            "r.keywords, r.description, r.weight, r.created_at "
            "FROM json_each(?) wanted JOIN relations r ON r.id = wanted.value "
            "JOIN entities source ON source.id = iif(r.reversed, r.high, r.low) "
            "JOIN entities target ON target.id = iif(r.reversed, r.low, r.high)"
        )
        rows_found = self._rows(query, chunk_limit, json_text(list(rows)))
        chunks, found = self._sources(rows_found), {}
        for row, _, source, target, votes, text, weight, created_at in rows_found:
            words, at = tuple(sorted(parse(votes))), _time(created_at)
            found[row] = Relation(source, target, words, text, weight / MILLION, chunks[row], at)
        return found

    def entity_ids(self, keys: Collection[str]) -> dict[str, int]:
        """Row ids of the entities with these name keys; merged names lead to their entity."""
        query = (
            "WITH RECURSIVE led (wanted, key) AS (SELECT value, value FROM json_each(?) UNION "
            "SELECT led.wanted, a.target FROM led JOIN aliases a USING (key)) "
            "SELECT led.wanted, e.id FROM led JOIN entities e USING (key) "
            "WHERE NOT EXISTS (SELECT 1 FROM aliases a WHERE a.key = led.key AND a.target <> a.key)"
        )
        return dict(self._rows(query, json_text(sorted(keys))))

    def aliases(self) -> Aliases:
        """The merges of names."""
        links, displays = {}, {}
        for key, target, display in self._rows("SELECT * FROM aliases ORDER BY key"):
            if target != key:
                links[key] = target
            if display is not None:
                displays[target] = display
        return Aliases(links, displays)

    def _sources(self, rows: Sequence[Row]) -> dict[int, tuple[str, ...]]:
        """For each row (id, JSON list of chunks, …) the public ids of these chunks."""
        listed: dict[int, dict[int, None]] = {}
        for row, chunks, *_ in rows:
            listed[row] = dict.fromkeys(parse(chunks))
        wanted: set[int] = set().union(*listed.values())
        names: dict[int, str] = dict(self._select("id, name", "chunks", "id", wanted))
        found = {}
        for row, chunks in listed.items():
            found[row] = tuple(map(names.__getitem__, chunks))
        return found


class GraphWriter(GraphReader, ConnectionWriter):
    """Writes mentions, entities and relations."""

    def put_mentions(
        self, entities: Sequence[EntityMentionRow], relations: Sequence[RelationMentionRow]
    ) -> None:
        """Store mentions, replacing those with the same row ids."""
        self.connection.executemany(
            _upsert("entity_mentions", ENTITY_MENTION), map(_entity_mention, entities)
        )
        self.connection.executemany(
            _upsert("relation_mentions", RELATION_MENTION), map(_relation_mention, relations)
        )
        self._touch("chunk", map(attrgetter("chunk"), entities))

    def delete_mentions(self, chunks: Collection[int]) -> None:
        """Delete the mentions of chunks."""
        self._delete("entity_mentions", "chunk", chunks)
        self._delete("relation_mentions", "chunk", chunks)
        self._touch("chunk", chunks)

    def put_entities(self, rows: Sequence[EntityRow]) -> None:
        """Store entities, replacing those with the same row ids."""
        self.connection.executemany(_upsert("entities", ENTITY), map(_values, rows))
        self._touch("entity", map(attrgetter("id"), rows))

    def put_relations(self, rows: Sequence[RelationRow]) -> None:
        """Store relations, replacing those with the same row ids."""
        self.connection.executemany(_upsert("relations", RELATION), map(_values, rows))
        self._touch("relation", map(attrgetter("id"), rows))

    def delete_graph_rows(self, kind: Kind, rows: Collection[int]) -> None:
        """Delete entities or relations, with their vectors."""
        self._delete(TABLES[kind], "id", rows)
        self._touch(kind, rows)

    def put_aliases(self, aliases: Aliases) -> None:
        """Store these merges of names and no others."""
        alone = aliases.displays.keys() - set(aliases.links.values())
        leads = [*aliases.links.items(), *((key, key) for key in sorted(alone))]
        self.connection.execute("DELETE FROM aliases")
        self.connection.executemany(
            "INSERT INTO aliases VALUES (?, ?, ?)",
            [(key, target, aliases.displays.get(target)) for key, target in leads],
        )
        self.changed = True


# ── values and columns ──────────────────────────────────────────────────────────


@cache
def _upsert(table: str, columns: str) -> str:
    """The statement that inserts a row, or replaces the one with the same id.

    Unlike INSERT OR REPLACE it deletes nothing, so that rows which refer to this one stay.
    """
    names = columns.split(", ")
    updated = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
    marks = ", ".join("?" * len(names))
    return (
        f"INSERT INTO {table} ({columns}) VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET {updated}"
    )


def _stored_entity_mention(row: Row) -> EntityMentionRow:
    id, entity, chunk, position, name, kind, text, grounded, attributes = row
    mention = EntityMention(name, kind, text, bool(grounded), _pairs(attributes))
    return EntityMentionRow(id, entity, chunk, position, mention)


def _stored_relation_mention(row: Row) -> RelationMentionRow:
    id, relation, chunk, position, source, target, keywords, text, strength, forward = row
    words = tuple(parse(keywords))
    mention = RelationMention(source, target, words, text, strength)
    return RelationMentionRow(id, relation, chunk, position, mention, bool(forward))


def _entity_mention(row: EntityMentionRow) -> Row:
    one = row.mention
    attributes = json_text(one.attributes) if one.attributes else None
    texts = (one.name, one.type, one.description, one.grounded, attributes)
    return (row.id, row.entity, row.chunk, row.position, *texts)


def _relation_mention(row: RelationMentionRow) -> Row:
    one = row.mention
    texts = (one.source, one.target, json_text(one.keywords), one.description, one.strength)
    return (row.id, row.relation, row.chunk, row.position, *texts, row.forward)


def _values(row: EntityRow | RelationRow) -> list[object]:
    """The columns of a merged row; its votes, three columns after the keys, are objects."""
    is_entity = isinstance(row, EntityRow)
    values = list(ENTITY_VALUES(row) if is_entity else RELATION_VALUES(row))
    votes = slice(2, 5) if is_entity else slice(3, 6)
    values[votes] = map(json_text, values[votes])
    return values


def _pairs(text: str | None) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in parse(text)) if text else ()


def _attributes(votes: str) -> tuple[tuple[str, str], ...]:
    """(name, value) pairs from votes for `name NUL value`."""
    if votes == "{}":
        return ()
    pairs = (vote.partition("\0") for vote in parse(votes))
    return tuple(sorted((name, value) for name, _, value in pairs))


@lru_cache(1_000)
def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
