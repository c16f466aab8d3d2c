"""Mentions, the entities and relations merged from them, the merges of names, and all vectors."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

import numpy as np
from msgspec.json import decode as parse

from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Entity, EntityMention, Kind, Relation, RelationMention
from lightrag_jsonl.storage import rows as r
from lightrag_jsonl.storage.rows import Names, RowIds
from lightrag_jsonl.storage.sqlite.tables import (
    AMONG,
    TABLES,
    Row,
    Tables,
    decoded,
    json_text,
    paged,
)
from lightrag_jsonl.storage.vector_index import Ids

ENTITY = ", ".join(field.name for field in fields(r.EntityRow))
RELATION = ", ".join(field.name for field in fields(r.RelationRow))
ENTITY_MENTION = (
    "id, entity, chunk, position, name, type, description, grounded, attributes, aliases, claim"
)
RELATION_MENTION = (
    "id, relation, chunk, position, source, target, keywords, description, strength, forward, claim"
)
FIRST_CHUNKS = """SELECT c.name FROM (SELECT chunk, position FROM {0}_mentions WHERE {0} = ?
    ORDER BY position LIMIT ?) m JOIN chunks c ON c.id = m.chunk ORDER BY m.position"""
DESCRIPTIONS = f"""SELECT position, description FROM {{0}}_mentions WHERE {{0}} = ? AND id > ?
    AND NOT chunk {AMONG} AND description <> '' ORDER BY position LIMIT ?"""
CLAIMS_AROUND = """WITH RECURSIVE own (key) AS (SELECT key FROM entities WHERE id {0} UNION
    SELECT a.key FROM own JOIN aliases a ON a.target = own.key)
    SELECT entity, key FROM stated_aliases WHERE entity {0} OR key IN (SELECT key FROM own)
    ORDER BY entity, key"""
RELATIONS = """(SELECT id, low, high, coalesce(CAST(edited{} ->> 'weight' AS bigint), weight) weight
    FROM relations) r"""
LISTED: dict[Kind, str] = {
    "entity": """SELECT id FROM entities WHERE {in_text}(key, ?1) > 0
        AND (type = ?2 OR ?2 = '') ORDER BY name, id""",
    "relation": """SELECT r.id FROM {relations} JOIN entities a ON a.id = r.low
        JOIN entities b ON b.id = r.high WHERE {in_text}(a.key, ?1) > 0
        OR {in_text}(b.key, ?1) > 0 ORDER BY r.weight DESC,
        CASE WHEN a.key < b.key THEN a.key ELSE b.key END,
        CASE WHEN a.key < b.key THEN b.key ELSE a.key END""",
}
NEXT_IDS = ", ".join(
    f"(SELECT coalesce(max(id), 0) + 1 FROM {one.name})" for one in fields(r.NextIds)
)
HALF = "<f2"  # float16, little endian


class GraphTables(Tables):
    """Mentions, entities, relations and vectors; the methods are those of the port."""

    IN_TEXT = "instr"
    NO_VECTOR = "x'0000'"

    def next_ids(self) -> r.NextIds:
        return r.NextIds(*self._rows(f"SELECT {NEXT_IDS}")[0])

    def entity_mentions(
        self, *, chunks: RowIds = None, entities: RowIds = None, deleted: bool = False
    ) -> list[r.EntityMentionRow]:
        by = ("entity", entities) if chunks is None else ("chunk", chunks)
        table = "(SELECT * FROM entity_mentions WHERE entity IS NULL)"
        found = []
        for row in self._select(ENTITY_MENTION, table if deleted else "entity_mentions", *by):
            *ids, name, type, text, grounded, attributes, aliases, claim = row
            pairs = tuple(map(tuple, parse(attributes))) if attributes else ()
            others = tuple(parse(aliases)) if aliases else ()
            mention = EntityMention(name, type, text, bool(grounded), pairs, others, claim)
            found.append(r.EntityMentionRow(*(*ids, mention)))
        return found

    def relation_mentions(
        self, *, chunks: RowIds = None, relations: RowIds = None
    ) -> list[r.RelationMentionRow]:
        by = ("relation", relations) if chunks is None else ("chunk", chunks)
        found = []
        for row in self._select(RELATION_MENTION, "relation_mentions", *by):
            *ids, source, target, words, text, strength, forward, claim = row
            mention = RelationMention(source, target, tuple(parse(words)), text, strength, claim)
            found.append(r.RelationMentionRow(*(*ids, mention, bool(forward))))
        return found

    def mentioned_relations(self, chunks: Sequence[int]) -> list[int]:
        order = "position, relation"
        rows = self._select("relation", "relation_mentions", "chunk", chunks, order)
        return [row for row in dict.fromkeys(row for (row,) in rows) if row is not None]

    def descriptions(
        self,
        kind: Kind,
        after: Mapping[int, int],
        *,
        without: Collection[int] = (),
        limit: int | None = None,
    ) -> dict[int, list[tuple[int, str]]]:
        query, most = DESCRIPTIONS.format(kind), -1 if limit is None else limit
        gone = json_text(sorted(without))
        return {id: self._rows(query, id, past, gone, most) for id, past in after.items()}

    def put_mentions(
        self, entities: Sequence[r.EntityMentionRow], relations: Sequence[r.RelationMentionRow]
    ) -> None:
        self._put("entity_mentions", ENTITY_MENTION, map(_entity_mention, entities))
        self._put("relation_mentions", RELATION_MENTION, map(_relation_mention, relations))
        self.touched["chunk"].update(map(attrgetter("chunk"), entities))

    def entity_rows(self, *, ids: RowIds = None, keys: Names = None) -> dict[int, r.EntityRow]:
        by = ("key", keys) if ids is None else ("id", ids)
        rows = self._select(ENTITY, "entities", *by)
        return {row[0]: r.EntityRow(*decoded(row, 2, 3, 4, 5, -1)) for row in rows}

    def relation_rows(
        self,
        *,
        ids: RowIds = None,
        pairs: Collection[tuple[int, int]] | None = None,
        ends: RowIds = None,
    ) -> dict[int, r.RelationRow]:
        if pairs is not None:
            wanted, *values = self._pairs(pairs)
            query = f"SELECT {RELATION} FROM relations WHERE (low, high) IN ({wanted}) ORDER BY id"
            rows = self._rows(query, *values)
        elif ends is not None:
            among = self.AMONG.replace("?", "?1")
            query = (
                f"SELECT {RELATION} FROM relations WHERE low {among} OR high {among} ORDER BY id"
            )
            rows = self._rows(query, self._list(ends))
        else:
            rows = self._select(RELATION, "relations", "id", ids)
        found = (r.RelationRow(*decoded(row, 3, 4, 5, -1)) for row in rows)
        return {one.id: replace(one, reversed=bool(one.reversed)) for one in found}

    def put_graph_rows(self, kind: Kind, rows: Sequence[r.EntityRow | r.RelationRow]) -> None:
        columns = ENTITY if kind == "entity" else RELATION
        values = []
        for row in map(attrgetter(*columns.split(", ")), rows):
            values.append([json_text(one) if isinstance(one, dict) else one for one in row])
        self._put(TABLES[kind], columns, values)
        self.touched[kind].update(map(attrgetter("id"), rows))
        entities = [row for row in rows if isinstance(row, r.EntityRow)]
        self._delete("stated_aliases", "entity", list(map(attrgetter("id"), entities)))
        stated = {(row.id, name_key(alias)) for row in entities for alias in row.aliases}
        self._put("stated_aliases", "entity, key", sorted(stated), None)

    def delete_graph_rows(self, kind: Kind, rows: Collection[int]) -> None:
        self._delete(TABLES[kind], "id", rows)
        self.touched[kind].update(rows)

    def listed(
        self,
        kind: Kind,
        *,
        search: str = "",
        type: str = "",
        limit: int | None = None,
        offset: int = 0,
    ) -> list[int]:
        relations = RELATIONS.format(self.AS_JSON)
        listed = LISTED[kind].format(relations=relations, in_text=self.IN_TEXT)
        query = f"{listed} LIMIT {paged(limit, offset)}"
        values = (search, type) if kind == "entity" else (search,)
        return [row for (row,) in self._rows(query, *values)]

    def entities(self, rows: Collection[int], *, chunk_limit: int = 20) -> dict[int, Entity]:
        stored = self.entity_rows(ids=rows)
        chunks = self._first_chunks("entity", rows, chunk_limit)
        return {id: stored[id].entity(chunks[id]) for id in rows if id in stored}

    def entity_names(self, rows: Collection[int]) -> dict[int, str]:
        return dict(self._select("id, name", "entities", "id", rows))

    def relations(self, rows: Collection[int], *, chunk_limit: int = 20) -> dict[int, Relation]:
        stored = self.relation_rows(ids=rows)
        ends = {end for one in stored.values() for end in (one.low, one.high)}
        names = self.entity_names(ends)
        chunks = self._first_chunks("relation", rows, chunk_limit)
        return {id: stored[id].relation(names, chunks[id]) for id in rows if id in stored}

    def _first_chunks(
        self, kind: Kind, rows: Collection[int], limit: int
    ) -> dict[int, tuple[str, ...]]:
        """The public ids of the first chunks that mention each row."""
        query = FIRST_CHUNKS.format(kind)
        names = {row: [name for (name,) in self._rows(query, row, limit)] for row in rows}
        return {row: tuple(dict.fromkeys(listed)) for row, listed in names.items()}

    def entity_ids(self, keys: Collection[str]) -> dict[str, int]:
        ends, unread = {key: key for key in keys}, set(keys)
        query = f"SELECT key, target FROM aliases WHERE target <> key AND key {self.AMONG}"
        while unread:
            links: dict[str, str] = dict(self._rows(query, self._list(unread)))
            ends = {key: links.get(end, end) for key, end in ends.items()}
            unread = set(links.values())
        ids: dict[str, int] = dict(self._select("key, id", "entities", "key", set(ends.values())))
        return {key: ids[end] for key, end in ends.items() if end in ids}

    def alias_claims(self, *, entities: RowIds = None, keys: Names = None) -> list[tuple[int, str]]:
        if entities is not None:
            query = CLAIMS_AROUND.format(self.AMONG.replace("?", "?1"))
            return self._rows(query, self._list(entities))
        return self._select("entity, key", "stated_aliases", "key", keys, "entity, key")

    def _pairs(self, pairs: Collection[tuple[int, int]]) -> list[object]:
        """A query for these pairs, and its parameters."""
        return ["SELECT value ->> 0, value ->> 1 FROM json_each(?)", json_text(sorted(pairs))]

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
        rows = [(key, target, aliases.displays.get(target)) for key, target in leads]
        self._put("aliases", "key, target, display", rows, None)
        self.changed = True

    def vector_digests(self, kind: Kind, rows: Collection[int]) -> dict[int, bytes]:
        return dict(self._select("id, digest", f"{kind}_vectors", "id", rows))

    def vectors(self, kind: Kind, rows: Collection[int]) -> dict[int, Vectors]:
        found = self._select("id, data", f"{kind}_vectors", "id", rows)
        return {row: self._unpacked(data) for row, data in found}

    def refused_rows(self, kind: Kind) -> list[int]:
        query = f"SELECT id FROM {kind}_vectors WHERE data = {self.NO_VECTOR} ORDER BY id"
        return [row for (row,) in self._rows(query)]

    def put_vectors(self, kind: Kind, vectors: Mapping[int, tuple[bytes, Vectors]]) -> None:
        rows = []
        for row, (digest, vector) in sorted(vectors.items()):
            rows.append((row, digest, self._packed(vector)))
        self._put(f"{kind}_vectors", "id, digest, data", rows)
        self.touched[kind].update(vectors)

    def cached_vectors(self, digests: Collection[bytes] | None = None) -> dict[bytes, Vectors]:
        query = "SELECT digest, data FROM cached_vectors"
        rows = self._rows(f"{query} ORDER BY id") if digests is None else []
        for digest in digests or ():
            rows += self._rows(f"{query} WHERE digest = ?", digest)
        return {digest: self._unpacked(data) for digest, data in rows}

    def put_cached_vectors(self, vectors: Mapping[bytes, Vectors]) -> None:
        rows = [(digest, self._packed(vector)) for digest, vector in vectors.items()]
        self._put("cached_vectors", "digest, data", rows, None)

    def delete_cached_vectors(self, digests: Collection[bytes] | None = None) -> int:
        return self._delete("cached_vectors", "digest", digests)

    def dimension(self, kind: Kind) -> int:
        """The length of the vectors of a kind; 0 if there is none."""
        rows = f"{kind}_vectors WHERE data <> {self.NO_VECTOR} LIMIT 1"
        query = f"SELECT coalesce((SELECT length(data) / 2 FROM {rows}), 0)"
        return int(self._rows(query)[0][0])

    def vector_rows(
        self, kind: Kind, dim: int, rows: Collection[int] | None = None
    ) -> tuple[Ids, Vectors]:
        """Row ids (n,), ascending, and vectors (n, dim) of all or some rows that have such ones."""
        is_one = f"length(data) = {2 * dim} AND data <> {self.NO_VECTOR}"
        columns = f"id, CASE WHEN {is_one} THEN data END"
        found = [row for row in self._select(columns, f"{kind}_vectors", "id", rows) if row[1]]
        matrix = self._unpacked(b"".join([row[1] for row in found])).reshape(len(found), dim)
        return np.array([row[0] for row in found], np.int64), matrix

    def _packed(self, vector: Vectors) -> object:
        return vector.astype(HALF).tobytes()

    def _unpacked(self, data: Any) -> Vectors:
        return np.frombuffer(data, HALF).astype(np.float32)


def _entity_mention(row: r.EntityMentionRow) -> Row:
    one = row.mention
    attributes = json_text(one.attributes) if one.attributes else None
    aliases = json_text(one.aliases) if one.aliases else None
    texts = (one.name, one.type, one.description, one.grounded, attributes, aliases)
    return (row.id, row.entity, row.chunk, row.position, *texts, one.claim)


def _relation_mention(row: r.RelationMentionRow) -> Row:
    one = row.mention
    texts = (one.source, one.target, json_text(one.keywords), one.description, one.strength)
    return (row.id, row.relation, row.chunk, row.position, *texts, row.forward, one.claim)
