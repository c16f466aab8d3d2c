"""Entities and relations: rows merged from mentions, merges of names, and the values that people set by hand."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from msgspec.json import decode as parse

from lightrag_jsonl.core.types import Entity, Kind, Relation
from lightrag_jsonl.storage.graph_index import GraphRows
from lightrag_jsonl.storage.rows import (
    MILLION,
    Aliases,
    EntityRow,
    GraphRow,
    Names,
    NextIds,
    Override,
    RelationRow,
    RowIds,
)
from lightrag_jsonl.storage.tables.base import (
    TABLE_NAMES,
    Tables,
    column_values,
    field_names,
    integer_columns,
    json_text,
    only_column,
    read_as,
)
from lightrag_jsonl.storage.tables.dialect import Cursor, Dialect
from lightrag_jsonl.storage.tables.kept_rows import ALIASES_KEY, KeepingTables
from lightrag_jsonl.text.names import name_key

ENTITY = ", ".join(field_names(EntityRow))
RELATION = ", ".join(field_names(RelationRow))


def weighted_relations(dialect: Dialect) -> str:
    """A table of all relations with both ends, and the weights by a person or by merging."""
    edited = f"CAST({dialect.json_field('edited', 'weight')} AS bigint)"
    return f"(SELECT id, low, high, coalesce({edited}, weight) weight FROM relations) r"


class GraphReads(Tables):
    """Reads entities and relations, merges of names, and the values that people set."""

    def next_ids(self) -> NextIds:
        """The next free row ids, for the one writer."""
        columns = [
            f"(SELECT coalesce(max(id), 0) + 1 FROM {table}) AS {table}"
            for table in field_names(NextIds)
        ]
        (next_ids,) = read_as(NextIds, self.dialect.execute(f"SELECT {', '.join(columns)}"))
        return next_ids

    def entity_rows(self, *, ids: RowIds = None, keys: Names = None) -> dict[int, EntityRow]:
        """Entities by row id: all entities, or some by row ids or name keys."""
        if ids is not None:
            cursor = self._select(ENTITY, "entities", "id", ids)
        else:
            cursor = self._select(ENTITY, "entities", "key", keys)
        return {row.id: row for row in read_as(EntityRow, cursor)}

    def lasting_names(self, kind: Kind, rows: Collection[int]) -> dict[int, str]:
        """What a row is, whatever its row id: the id of a chunk, the name key of an entity, both keys of a
        relation.
        """
        if kind == "entity":
            return self.entity_keys(rows)
        if kind == "chunk":
            return dict(self._select("id, name", "chunks", "id", rows))
        tables = "relations r JOIN entities a ON a.id = r.low JOIN entities b ON b.id = r.high"
        cursor = self._select("r.id, a.key, b.key AS further", tables, "r.id", rows, order="r.id")
        return {row: "\n".join(sorted(keys)) for row, *keys in cursor}

    def entity_types(self) -> set[str]:
        """The types of all entities."""
        return set(only_column(self.dialect.execute("SELECT DISTINCT type FROM entities")))

    def count_relations(self, limit: int) -> int:
        """The number of relations, counted no further than `limit`."""
        statement = "SELECT count(*) FROM (SELECT 1 FROM relations LIMIT ?) counted"
        (count,) = only_column(self.dialect.execute(statement, limit))
        return int(count)

    def relation_rows(
        self,
        *,
        ids: RowIds = None,
        pairs: Collection[tuple[int, int]] | None = None,
        ends: RowIds = None,
    ) -> dict[int, RelationRow]:
        """Relations by row id: all relations, or some by row ids, by (low, high) pairs, or by an end
        among some entities.
        """
        if pairs is not None:
            query, parameters = self.dialect.pairs(pairs)
            statement = (
                f"SELECT {RELATION} FROM relations WHERE (low, high) IN ({query}) ORDER BY id"
            )
            cursor = self.dialect.execute(statement, *parameters)
        elif ends is not None:
            cursor = self._relations_at(ends)
        else:
            cursor = self._select(RELATION, "relations", "id", ids)
        return {row.id: row for row in read_as(RelationRow, cursor)}

    def _relations_at(self, ends: Collection[int]) -> Cursor:
        among = self.dialect.among("?1")
        test = f"low {among} OR high {among}"
        statement = f"SELECT {RELATION} FROM relations WHERE {test} ORDER BY id"
        return self.dialect.execute(statement, self.dialect.array(ends))

    def listed(
        self,
        kind: Kind,
        *,
        search: str = "",
        type: str = "",
        limit: int | None = None,
        offset: int = 0,
    ) -> list[int]:
        """Row ids of a page of the entities by name, or of the relations, the heaviest first. A name
        key must hold `search`, and an entity be of `type`, unless these are empty.
        """
        page = self._page(limit, offset)
        if kind == "entity":
            contains = self.dialect.contains("key", "?1")
            statement = f"""SELECT id FROM entities WHERE {contains} AND (type = ?2 OR ?2 = '')
                ORDER BY name, id {page}"""
            return only_column(self.dialect.execute(statement, search, type))
        low = self.dialect.contains("a.key", "?1")
        high = self.dialect.contains("b.key", "?1")
        statement = f"""SELECT r.id FROM {weighted_relations(self.dialect)}
            JOIN entities a ON a.id = r.low JOIN entities b ON b.id = r.high
            WHERE {low} OR {high} ORDER BY r.weight DESC,
            CASE WHEN a.key < b.key THEN a.key ELSE b.key END,
            CASE WHEN a.key < b.key THEN b.key ELSE a.key END {page}"""
        return only_column(self.dialect.execute(statement, search))

    def entities(self, rows: Collection[int], *, chunk_limit: int = 20) -> dict[int, Entity]:
        """Entities for readers, each with the public ids of its first chunks; degree not set."""
        chunk_ids = self.first_chunks("entity", rows, chunk_limit)
        entities = self.entity_rows(ids=rows)
        return {row: entities[row].entity(chunk_ids[row]) for row in rows if row in entities}

    def entity_names(self, rows: Collection[int]) -> dict[int, str]:
        """The names of entities by row id."""
        return dict(self._select("id, name", "entities", "id", rows))

    def entity_names_with_types(self, rows: Collection[int]) -> dict[int, tuple[str, str]]:
        """The names and types of entities by row id."""
        cursor = self._select("id, name, type", "entities", "id", rows)
        return {row: (name, type) for row, name, type in cursor}

    def entity_keys(self, rows: RowIds = None) -> dict[int, str]:
        """The name keys of entities by row id: of all entities, or of some."""
        return dict(self._select("id, key", "entities", "id", rows))

    def relations(self, rows: Collection[int], *, chunk_limit: int = 20) -> dict[int, Relation]:
        """Relations for readers, each with the public ids of its first chunks."""
        chunk_ids = self.first_chunks("relation", rows, chunk_limit)
        relations = self.relation_rows(ids=rows)
        ends = {end for relation in relations.values() for end in (relation.low, relation.high)}
        names = self.entity_names(ends)
        return {
            row: relations[row].relation(names, chunk_ids[row]) for row in rows if row in relations
        }

    def first_chunks(
        self, kind: Kind, rows: Collection[int], limit: int
    ) -> dict[int, tuple[str, ...]]:
        """The public ids of the chunks of the first mentions of entities or relations, each once."""
        ids: dict[int, dict[str, None]] = {row: {} for row in rows}
        for row, chunk_id in self.dialect.first_chunks(kind, rows, limit):
            ids[row].setdefault(chunk_id)
        return {row: tuple(chunk_ids) for row, chunk_ids in ids.items()}

    def graph_rows(self, touched: Mapping[Kind, RowIds] | None = None) -> GraphRows:
        """The shape of the graph: all rows, or only the touched rows, of a kind with None all."""
        rows: Mapping[Kind, RowIds] = dict.fromkeys(TABLE_NAMES) if touched is None else touched
        entities = integer_columns(self._select("id", "entities", "id", rows["entity"]))
        chunks = integer_columns(self._select("id", "chunks", "id", rows["chunk"]))
        relations = integer_columns(
            self._select(
                "id, low, high, weight",
                weighted_relations(self.dialect),
                "id",
                rows["relation"],
            )
        )
        mentioned = "(SELECT entity, chunk FROM entity_mentions WHERE entity IS NOT NULL) m"
        mentions = integer_columns(
            self._select("entity, chunk", mentioned, "chunk", rows["chunk"], order="chunk, entity")
        )
        return GraphRows(
            entities=entities["id"],
            chunks=chunks["id"],
            relations=np.stack([relations[name] for name in ("id", "low", "high")], axis=1),
            weights=relations["weight"] / MILLION,
            mentions=np.stack([mentions["entity"], mentions["chunk"]], axis=1),
        )

    # ── merges of names, and stated aliases ─────────────────────────────────────

    def entity_ids(self, keys: Collection[str]) -> dict[str, int]:
        """Row ids of the entities with these name keys; merged names count, too."""
        if not keys:
            return {}
        among = self.dialect.among("?1")
        statement = f"""WITH RECURSIVE ends (key, target) AS (
            SELECT key, target FROM aliases WHERE target <> key AND key {among} UNION
            SELECT e.key, a.target FROM ends e JOIN aliases a ON a.key = e.target AND a.target <> a.key)
            SELECT key, id FROM entities n WHERE key {among} AND NOT EXISTS (
            SELECT 1 FROM ends e WHERE e.key = n.key) UNION ALL
            SELECT e.key, n.id FROM ends e JOIN entities n ON n.key = e.target WHERE NOT EXISTS (
            SELECT 1 FROM aliases a WHERE a.key = e.target AND a.target <> a.key)"""
        ids: dict[str, int] = dict(self.dialect.execute(statement, self.dialect.array(keys)))
        return {key: ids[key] for key in keys if key in ids}

    def alias_claims(self, *, entities: RowIds = None, keys: Names = None) -> list[tuple[int, str]]:
        """Which entity states which alias, as (row id, name key): all claims, or the claims of some
        keys, or those by some entities or about the names of these.
        """
        if entities is not None and not entities:
            return []
        if entities is not None:
            among = self.dialect.among("?1")
            statement = f"""WITH RECURSIVE own (key) AS (SELECT key FROM entities WHERE id {among} UNION
                SELECT a.key FROM own JOIN aliases a ON a.target = own.key)
                SELECT entity, key FROM stated_aliases WHERE entity {among}
                OR key IN (SELECT key FROM own) ORDER BY entity, key"""
            cursor = self.dialect.execute(statement, self.dialect.array(entities))
        else:
            cursor = self._select("entity, key", "stated_aliases", "key", keys, order="entity, key")
        return [(entity, key) for entity, key in cursor]

    def aliases(self) -> Aliases:
        """The merges of names, and the names that are entities of their own."""
        links: dict[str, str] = {}
        displays: dict[str, str] = {}
        apart: set[str] = set()
        statement = "SELECT key, target, display FROM aliases ORDER BY key"
        for key, target, display in self.dialect.execute(statement):
            if target != key:
                links[key] = target
            else:
                apart.add(key)
            if display is not None:
                displays[target] = display
        return Aliases(links, displays, apart)

    # ── set by hand ─────────────────────────────────────────────────────────────

    def overrides(self, chunks: RowIds = None) -> dict[int, Override]:
        """The overrides in the edits of people, by row id of the edit's chunk: all, or of some chunks."""
        columns = "o.chunk, c.name, o.action, o.names, o.changes, o.author, o.made_at, o.reason"
        table = "overrides o JOIN chunks c ON c.id = o.chunk"
        cursor = self._select(columns, table, "o.chunk", chunks, order="o.chunk")
        overrides: dict[int, Override] = {}
        for chunk, chunk_id, action, names, changes, author, made_at, reason in cursor:
            overrides[chunk] = Override(
                chunk_id=chunk_id,
                action=action,
                names=tuple(parse(names)),
                changes=parse(changes),
                by=author,
                at=made_at,
                reason=reason,
            )
        return overrides


class GraphWrites(GraphReads, KeepingTables):
    """Writes entities and relations, merges of names, and the values that people set."""

    def put_graph_rows(self, kind: Kind, rows: Sequence[GraphRow]) -> None:
        """Store entities or relations, in place of rows with the same ids."""
        self.keep([row.id for row in rows], TABLE_NAMES[kind])
        self._put(TABLE_NAMES[kind], list(map(column_values, rows)))
        self._put_stated_aliases([row for row in rows if isinstance(row, EntityRow)])
        self.touched[kind].update({row.id for row in rows})

    def _put_stated_aliases(self, entities: Sequence[EntityRow]) -> None:
        """Store the keys of the aliases of entities, to look them up."""
        self._delete("stated_aliases", "entity", [row.id for row in entities])
        aliases = {(row.id, name_key(alias)) for row in entities for alias in row.aliases}
        stated = [{"entity": entity, "key": key} for entity, key in sorted(aliases)]
        self._insert("stated_aliases", stated)

    def delete_graph_rows(self, kind: Kind, rows: Collection[int]) -> None:
        """Delete entities or relations with all vectors; mentions stay."""
        self.keep(rows, TABLE_NAMES[kind], f"{kind}_vectors")
        self._delete(TABLE_NAMES[kind], "id", rows)
        self.touched[kind].update(rows)

    def put_aliases(self, aliases: Aliases) -> None:
        """Store merges of names in place of all earlier merges."""
        targets = dict(aliases.links)
        for key in sorted(aliases.apart):
            targets.setdefault(key, key)
        self.keep([ALIASES_KEY], "aliases")
        self._delete_all("aliases")
        rows = [
            {"key": key, "target": target, "display": aliases.displays.get(target)}
            for key, target in targets.items()
        ]
        self._insert("aliases", rows)
        self.changed = True

    def put_overrides(self, overrides: Mapping[int, Override]) -> None:
        """Store overrides, by row id of the edit's chunk; deleting the chunk deletes the override."""
        rows = [_override_columns(chunk, override) for chunk, override in overrides.items()]
        self.keep(overrides, "overrides")
        self._put("overrides", rows, key="chunk")


def _override_columns(chunk: int, override: Override) -> dict[str, object]:
    return {
        "chunk": chunk,
        "action": override.action,
        "names": json_text(override.names),
        "changes": json_text(override.changes),
        "author": override.by,
        "made_at": override.at,
        "reason": override.reason,
    }
