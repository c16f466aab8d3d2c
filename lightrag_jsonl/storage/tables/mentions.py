"""Mentions: what each chunk says about entities and relations."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lightrag_jsonl.core.types import EntityMention, Kind, RelationMention
from lightrag_jsonl.storage.rows import (
    DatedMention,
    EntityMentionRow,
    MentionRow,
    RelationMentionRow,
    RowIds,
    reading_order,
)
from lightrag_jsonl.storage.tables.base import (
    ColumnValues,
    Tables,
    column_parsers,
    column_values,
    field_names,
    json_text,
    only_column,
    read_as,
)
from lightrag_jsonl.storage.tables.dialect import Cursor
from lightrag_jsonl.storage.tables.kept_rows import KeepingTables

# The place of a mention, then the fields of the class of mentions.
ENTITY_MENTION = ", ".join(
    ["id", "entity", "chunk", "position", "true", "written", *field_names(EntityMention)]
)
RELATION_MENTION = ", ".join(
    ["id", "relation", "chunk", "position", "forward", "written", *field_names(RelationMention)]
)
DATED = "valid_from <> '' OR valid_to <> ''"


class MentionReads(Tables):
    """Reads mentions."""

    def entity_mentions(
        self, *, chunks: RowIds = None, entities: RowIds = None, deleted: bool = False
    ) -> list[EntityMentionRow]:
        """The mentions in some chunks, or of some entities, or all; by row id. With `deleted`, only
        mentions of entities that a person deleted.
        """
        table = "entity_mentions"
        if deleted:
            table = f"(SELECT * FROM {table} WHERE entity IS NULL) m"
        if chunks is not None:
            cursor = self._select(ENTITY_MENTION, table, "chunk", chunks)
        else:
            cursor = self._select(ENTITY_MENTION, table, "entity", entities)
        return _mention_rows(EntityMention, cursor)

    def relation_mentions(
        self, *, chunks: RowIds = None, relations: RowIds = None
    ) -> list[RelationMentionRow]:
        """The mentions in some chunks, or of some relations, or all; by row id."""
        table = "relation_mentions"
        if chunks is not None:
            cursor = self._select(RELATION_MENTION, table, "chunk", chunks)
        else:
            cursor = self._select(RELATION_MENTION, table, "relation", relations)
        return _mention_rows(RelationMention, cursor)

    def has_dates(self) -> bool:
        """Whether any document has a date, or any mention says from when or until when it holds."""
        tables = [f"{kind}_mentions WHERE {DATED}" for kind in ("entity", "relation")]
        tables.append("documents WHERE date IS NOT NULL")
        tests = " OR ".join([f"EXISTS (SELECT 1 FROM {table})" for table in tables])
        (has_dates,) = only_column(self.dialect.execute(f"SELECT {tests}"))
        return bool(has_dates)

    def dated_mentions(self, kind: Kind, *, chunks: RowIds = None) -> list[DatedMention]:
        """The mentions for which a text says from when or until when they hold, by row id: all of a kind,
        or those in some chunks.
        """
        columns = f"id, {kind} AS owner, chunk, description, valid_from, valid_to"
        table = f"(SELECT * FROM {kind}_mentions WHERE {DATED}) m"
        return read_as(DatedMention, self._select(columns, table, "chunk", chunks))

    def mentioned_relations(self, chunks: Sequence[int]) -> list[int]:
        """Row ids of the relations that chunks mention, each once, in the order of the text."""
        order = "position, relation"
        cursor = self._select("relation", "relation_mentions", "chunk", chunks, order=order)
        return [row for row in dict.fromkeys(only_column(cursor)) if row is not None]

    def descriptions(
        self,
        kind: Kind,
        after: Mapping[int, int],
        *,
        without: Collection[int] = (),
        limit: int | None = None,
    ) -> dict[int, list[tuple[int, str]]]:
        """The first `limit` descriptions (position, text) of each row in `after`, by position: of
        mentions with a row id above `after[row]`, outside the chunks in `without`, and not empty.
        """
        descriptions: dict[int, list[tuple[int, str]]] = {row: [] for row in after}
        for row, position, _, text in self.dialect.descriptions(kind, after, without, limit):
            descriptions[row].append((position, text))
        return descriptions

    def description_chunks(
        self, kind: Kind, rows: Collection[int], limit: int
    ) -> dict[int, list[tuple[int, str]]]:
        """The first `limit` descriptions of each row by position, each after the row id of its chunk."""
        descriptions: dict[int, list[tuple[int, str]]] = {row: [] for row in rows}
        after = dict.fromkeys(rows, 0)
        for row, _, chunk, text in self.dialect.descriptions(kind, after, (), limit):
            descriptions[row].append((chunk, text))
        return descriptions

    def descriptions_as_they_came(
        self, kind: Kind, rows: Collection[int], limit: int
    ) -> dict[int, list[str]]:
        """The first `limit` descriptions of each row by position, in the order for reading."""
        texts_by_row: dict[int, list[tuple[tuple[int, ...], str]]] = {row: [] for row in rows}
        if not rows:
            return {}
        after = dict.fromkeys(rows, 0)
        for row, position, chunk, text in self.dialect.descriptions(kind, after, (), limit):
            texts_by_row[row].append((reading_order(position, chunk), text))
        return {row: [text for _, text in sorted(texts)] for row, texts in texts_by_row.items()}


class MentionWrites(MentionReads, KeepingTables):
    """Writes mentions."""

    def put_mentions(
        self, entities: Sequence[EntityMentionRow], relations: Sequence[RelationMentionRow]
    ) -> None:
        """Store mentions, in place of mentions with the same row ids."""
        chunks = {row.chunk for row in entities} | {row.chunk for row in relations}
        self.keep(chunks, "entity_mentions", "relation_mentions")
        entity_rows = [_mention_columns(row, entity=row.owner) for row in entities]
        self._put("entity_mentions", entity_rows)
        relation_rows = [
            _mention_columns(
                row,
                relation=row.owner,
                forward=row.forward,
                keywords=json_text(row.mention.keywords),
            )
            for row in relations
        ]
        self._put("relation_mentions", relation_rows)
        self.touched["chunk"].update({row.chunk for row in entities})


def _mention_rows(kind: Any, cursor: Cursor) -> list[MentionRow[Any]]:
    """The mentions in rows with the columns of a place and of a class of mentions; NULL stands for no texts."""
    names = field_names(kind)
    parsers = [(names.index(name), parse) for name, parse in column_parsers(kind).items()]
    parse_written = column_parsers(MentionRow)["written"]
    rows: list[MentionRow[Any]] = []
    for id, owner, chunk, position, forward, written, *values in cursor:
        for index, parse in parsers:
            values[index] = () if values[index] is None else parse(values[index])
        rows.append(
            MentionRow(
                id=id,
                owner=owner,
                chunk=chunk,
                position=position,
                mention=kind(*values),
                forward=bool(forward),
                written=parse_written(written) if written else (),
            )
        )
    return rows


def _mention_columns(row: EntityMentionRow | RelationMentionRow, **columns: Any) -> ColumnValues:
    """The fields of a mention, its place and its spelling as columns, with the `columns` of its kind."""
    place = {"id": row.id, "chunk": row.chunk, "position": row.position, "written": row.written}
    return column_values(row.mention, **place, **columns)
