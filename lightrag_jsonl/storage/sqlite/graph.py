"""Mentions, the entities and relations merged from them, the merges of names, and all vectors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from operator import attrgetter

import numpy as np
from msgspec.json import decode as parse

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Entity, EntityMention, Kind, Relation, RelationMention
from lightrag_jsonl.storage import rows as r
from lightrag_jsonl.storage.sqlite.connection import AMONG, TABLES, Row, Tables, decoded, json_text
from lightrag_jsonl.storage.vector_index import Ids

ENTITY = ", ".join(field.name for field in fields(r.EntityRow))
RELATION = ", ".join(field.name for field in fields(r.RelationRow))
ENTITY_MENTION = "id, entity, chunk, position, name, type, description, grounded, attributes"
RELATION_MENTION = (
    "id, relation, chunk, position, source, target, keywords, description, strength, forward"
)
FIRST_CHUNKS = """(SELECT json_group_array(chunk) FROM (SELECT chunk FROM {0}_mentions
    WHERE {0} = wanted.value ORDER BY position LIMIT ?))"""  # answered from an index alone
NEXT_IDS = ", ".join(
    f"(SELECT coalesce(max(id), 0) + 1 FROM {one.name})" for one in fields(r.NextIds)
)
UNCHANGING = ("key", "low", "high")  # setting them would write to their indexes, even if equal
MILLION = 1e6
HALF = "<f2"  # float16, little endian


class GraphTables(Tables):
    """Mentions, entities, relations and vectors; the methods are those of the port."""

    # ── mentions ────────────────────────────────────────────────────────────────

    def next_ids(self) -> r.NextIds:
        return r.NextIds(*self._rows(f"SELECT {NEXT_IDS}")[0])

    def entity_mentions(
        self, *, chunks: Collection[int] | None = None, entities: Collection[int] | None = None
    ) -> list[r.EntityMentionRow]:
        by = ("entity", entities) if chunks is None else ("chunk", chunks)
        found = []
        for row in self._select(ENTITY_MENTION, "entity_mentions", *by):
            *ids, name, type, text, grounded, attributes = row
            pairs = tuple(map(tuple, parse(attributes))) if attributes else ()
            mention = EntityMention(name, type, text, bool(grounded), pairs)
            found.append(r.EntityMentionRow(*(*ids, mention)))
        return found

    def relation_mentions(
        self, *, chunks: Collection[int] | None = None, relations: Collection[int] | None = None
    ) -> list[r.RelationMentionRow]:
        by = ("relation", relations) if chunks is None else ("chunk", chunks)
        found = []
        for row in self._select(RELATION_MENTION, "relation_mentions", *by):
            *ids, source, target, words, text, strength, forward = row
            mention = RelationMention(source, target, tuple(parse(words)), text, strength)
            found.append(r.RelationMentionRow(*(*ids, mention, bool(forward))))
        return found

    def mentioned_relations(self, chunks: Sequence[int]) -> list[int]:
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
        query = (
            "SELECT wanted.key, (SELECT json_group_array(json_array(position, description)) FROM ("
            f"SELECT position, description FROM {kind}_mentions WHERE {kind} = wanted.key "
            f"AND id > wanted.value AND NOT chunk {AMONG} AND description <> '' "
            "ORDER BY position LIMIT ?)) FROM json_each(?) wanted"
        )
        most = -1 if limit is None else limit
        rows = self._rows(query, json_text(sorted(without)), most, json_text(dict(after)))
        return {int(row): list(map(tuple, parse(texts))) for row, texts in rows}

    def put_mentions(
        self, entities: Sequence[r.EntityMentionRow], relations: Sequence[r.RelationMentionRow]
    ) -> None:
        self._upsert("entity_mentions", ENTITY_MENTION, map(_entity_mention, entities))
        self._upsert("relation_mentions", RELATION_MENTION, map(_relation_mention, relations))
        self.touched["chunk"].update(map(attrgetter("chunk"), entities))

    def delete_mentions(self, chunks: Collection[int]) -> None:
        self._delete("entity_mentions", "chunk", chunks)
        self._delete("relation_mentions", "chunk", chunks)
        self.touched["chunk"].update(chunks)

    # ── entities and relations ──────────────────────────────────────────────────

    def entity_rows(
        self, *, ids: Collection[int] | None = None, keys: Collection[str] | None = None
    ) -> dict[int, r.EntityRow]:
        by = ("key", keys) if ids is None else ("id", ids)
        rows = self._select(ENTITY, "entities", *by)
        return {row[0]: r.EntityRow(*decoded(row, 2, 3, 4)) for row in rows}

    def relation_rows(
        self,
        *,
        ids: Collection[int] | None = None,
        pairs: Collection[tuple[int, int]] | None = None,
    ) -> dict[int, r.RelationRow]:
        if pairs is None:
            rows = self._select(RELATION, "relations", "id", ids)
        else:
            wanted = "SELECT value ->> 0, value ->> 1 FROM json_each(?)"
            query = f"SELECT {RELATION} FROM relations WHERE (low, high) IN ({wanted}) ORDER BY id"
            rows = self._rows(query, json_text(sorted(pairs)))
        return {
            row[0]: r.RelationRow(*(*decoded(row, 3, 4, 5)[:-1], bool(row[-1]))) for row in rows
        }

    def put_entities(self, rows: Sequence[r.EntityRow]) -> None:
        self._put_merged("entity", ENTITY, rows, slice(2, 5))

    def put_relations(self, rows: Sequence[r.RelationRow]) -> None:
        self._put_merged("relation", RELATION, rows, slice(3, 6))

    def _put_merged(
        self, kind: Kind, columns: str, rows: Sequence[r.EntityRow | r.RelationRow], votes: slice
    ) -> None:
        """Store merged rows; the columns in the slice `votes` are objects."""
        values = list(map(list, map(attrgetter(*columns.split(", ")), rows)))
        for row in values:
            row[votes] = map(json_text, row[votes])
        self._upsert(TABLES[kind], columns, values)
        self.touched[kind].update(map(attrgetter("id"), rows))

    def delete_graph_rows(self, kind: Kind, rows: Collection[int]) -> None:
        self._delete(TABLES[kind], "id", rows)
        self.touched[kind].update(rows)

    def entities(self, rows: Collection[int], *, chunk_limit: int = 20) -> dict[int, Entity]:
        query = (
            f"SELECT e.id, {FIRST_CHUNKS.format('entity')}, e.name, e.type, e.description, "
            "e.created_at, e.attributes FROM json_each(?) wanted "
            "JOIN entities e ON e.id = wanted.value"
        )
        found = {}
        for row, chunks, name, type, text, seconds, votes in self._sourced(
            query, rows, chunk_limit
        ):
            pairs = (vote.partition("\0") for vote in parse(votes))  # of `name NUL value`
            attributes = tuple(sorted((name, value) for name, _, value in pairs))
            at = datetime.fromtimestamp(seconds, UTC)
            found[row] = Entity(name, type, text, chunks, 0, at, attributes)
        return found

    def relations(self, rows: Collection[int], *, chunk_limit: int = 20) -> dict[int, Relation]:
        query = (
            f"SELECT r.id, {FIRST_CHUNKS.format('relation')}, source.name, target.name, "
            "r.keywords, r.description, r.weight, r.created_at "
            "FROM json_each(?) wanted JOIN relations r ON r.id = wanted.value "
            "JOIN entities source ON source.id = iif(r.reversed, r.high, r.low) "
            "JOIN entities target ON target.id = iif(r.reversed, r.low, r.high)"
        )
        found = {}
        for row, chunks, source, target, votes, text, weight, seconds in self._sourced(
            query, rows, chunk_limit
        ):
            words, at = tuple(sorted(parse(votes))), datetime.fromtimestamp(seconds, UTC)
            found[row] = Relation(source, target, words, text, weight / MILLION, chunks, at)
        return found

    def _sourced(self, query: str, wanted: Collection[int], chunk_limit: int) -> list[Row]:
        """Rows (id, chunks, …), with the public ids of the first chunks that mention them."""
        rows = self._rows(query, chunk_limit, json_text(list(wanted)))
        chunks = [dict.fromkeys(parse(row[1])) for row in rows]
        names: dict[int, str] = dict(
            self._select("id, name", "chunks", "id", set[int]().union(*chunks))
        )
        named = [tuple(map(names.__getitem__, listed)) for listed in chunks]
        return [(row[0], ids, *row[2:]) for row, ids in zip(rows, named, strict=True)]

    # ── names ───────────────────────────────────────────────────────────────────

    def entity_ids(self, keys: Collection[str]) -> dict[str, int]:
        query = (
            "WITH RECURSIVE led (wanted, key) AS (SELECT value, value FROM json_each(?) UNION "
            "SELECT led.wanted, a.target FROM led JOIN aliases a USING (key)) "
            "SELECT led.wanted, e.id FROM led JOIN entities e USING (key) "
            "WHERE NOT EXISTS (SELECT 1 FROM aliases a WHERE a.key = led.key AND a.target <> a.key)"
        )
        return dict(self._rows(query, json_text(sorted(keys))))

    def aliases(self) -> r.Aliases:
        links, displays = {}, {}
        for key, target, display in self._rows("SELECT * FROM aliases ORDER BY key"):
            if target != key:
                links[key] = target
            if display is not None:
                displays[target] = display
        return r.Aliases(links, displays)

    def put_aliases(self, aliases: r.Aliases) -> None:
        alone = aliases.displays.keys() - set(aliases.links.values())
        leads = [*aliases.links.items(), *((key, key) for key in sorted(alone))]
        self.connection.execute("DELETE FROM aliases")
        self.connection.executemany(
            "INSERT INTO aliases VALUES (?, ?, ?)",
            [(key, target, aliases.displays.get(target)) for key, target in leads],
        )
        self.changed = True

    # ── vectors, stored as float16 ──────────────────────────────────────────────

    def vector_digests(self, kind: Kind, rows: Collection[int]) -> dict[int, bytes]:
        return dict(self._select("id, digest", f"{kind}_vectors", "id", rows))

    def vectors(self, kind: Kind, rows: Collection[int]) -> dict[int, Vectors]:
        found = self._select("id, data", f"{kind}_vectors", "id", rows)
        return {row: _unpacked(data) for row, data in found}

    def put_vectors(self, kind: Kind, vectors: Mapping[int, tuple[bytes, Vectors]]) -> None:
        rows = []
        for row, (digest, vector) in sorted(vectors.items()):
            rows.append((row, digest, vector.astype(HALF).tobytes()))
        self._upsert(f"{kind}_vectors", "id, digest, data", rows)
        self.touched[kind].update(vectors)

    def cached_vectors(self, digests: Collection[bytes]) -> dict[bytes, Vectors]:
        found = {}
        for digest in digests:
            for (data,) in self._rows("SELECT data FROM cached_vectors WHERE digest = ?", digest):
                found[digest] = _unpacked(data)
        return found

    def put_cached_vectors(self, vectors: Mapping[bytes, Vectors]) -> None:
        query = "INSERT INTO cached_vectors (digest, data) VALUES (?, ?) ON CONFLICT DO NOTHING"
        rows = [(digest, vector.astype(HALF).tobytes()) for digest, vector in vectors.items()]
        self.connection.executemany(query, rows)

    def delete_cached_vectors(self, digests: Collection[bytes] | None = None) -> int:
        if digests is None:
            return self.connection.execute("DELETE FROM cached_vectors").rowcount
        query = "DELETE FROM cached_vectors WHERE digest = ?"
        return self.connection.executemany(query, zip(digests, strict=True)).rowcount

    def dimension(self, kind: Kind) -> int:
        """The length of the vectors of a kind; 0 if there is none."""
        query = f"SELECT coalesce((SELECT length(data) / 2 FROM {kind}_vectors LIMIT 1), 0)"
        return int(self._value(query))

    def vector_rows(
        self, kind: Kind, dim: int, rows: Collection[int] | None = None
    ) -> tuple[Ids, Vectors]:
        """Row ids (n,), ascending, and vectors (n, dim) of all or some rows that have such ones."""
        columns = f"id, CASE WHEN length(data) = {2 * dim} THEN data END"
        found = [row for row in self._select(columns, f"{kind}_vectors", "id", rows) if row[1]]
        matrix = _unpacked(b"".join([row[1] for row in found])).reshape(len(found), dim)
        return np.array([row[0] for row in found], np.int64), matrix

    def _upsert(self, table: str, columns: str, rows: Iterable[Sequence[object]]) -> None:
        """Insert rows, or replace those with the same ids.

        Unlike INSERT OR REPLACE it deletes nothing, so that rows which refer to these stay.
        """
        names = columns.split(", ")
        changing = [name for name in names[1:] if name not in UNCHANGING]
        updated = ", ".join(f"{name} = excluded.{name}" for name in changing)
        marks = ", ".join("?" * len(names))
        query = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
        self.connection.executemany(f"{query} ON CONFLICT (id) DO UPDATE SET {updated}", rows)


def _entity_mention(row: r.EntityMentionRow) -> Row:
    one = row.mention
    attributes = json_text(one.attributes) if one.attributes else None
    texts = (one.name, one.type, one.description, one.grounded, attributes)
    return (row.id, row.entity, row.chunk, row.position, *texts)


def _relation_mention(row: r.RelationMentionRow) -> Row:
    one = row.mention
    texts = (one.source, one.target, json_text(one.keywords), one.description, one.strength)
    return (row.id, row.relation, row.chunk, row.position, *texts, row.forward)


def _unpacked(data: bytes) -> Vectors:
    return np.frombuffer(data, HALF).astype(np.float32)
