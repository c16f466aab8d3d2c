"""The view of several indexes as one: what each holds, by joined rows and ids."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from msgspec import structs

from lightrag_jsonl.core.types import (
    Chunk,
    ExtractionReport,
    Kind,
    Page,
    Rejection,
)
from lightrag_jsonl.storage.filters import Condition, meeting_rows
from lightrag_jsonl.storage.graph_index import GraphRows
from lightrag_jsonl.storage.joined.rows import (
    NO_ROW,
    IndexPart,
    JoinedState,
    joined_entity,
    joined_relation,
    turned_relation,
)
from lightrag_jsonl.storage.rows import (
    Aliases,
    ChunkReport,
    Counts,
    DatedMention,
    DocumentLabel,
    EntityMentionRow,
    EntityRow,
    Names,
    Override,
    PendingDocument,
    RelationMentionRow,
    RelationRow,
    RowIds,
    StoredDocument,
)
from lightrag_jsonl.storage.tables.base import TABLE_NAMES
from lightrag_jsonl.storage.tables.dialect import Dialect
from lightrag_jsonl.storage.views import StoreView

JoinedValue = TypeVar("JoinedValue")
AnyMention = TypeVar("AnyMention", EntityMentionRow, RelationMentionRow, DatedMention)

OWN = (
    "read",
    "read.questions",
)  # settings of a single index: questions of several have nothing read


class JoinedView(StoreView):
    """A view of several indexes; how their rows are joined is asked for when a row is read. What is not
    read here, such as traces, is in a store of its own, to which the dialect leads.
    """

    def __init__(
        self,
        dialect: Dialect,
        views: Sequence[StoreView],
        names: Sequence[str],
        state: Callable[[Sequence[StoreView]], JoinedState],
    ) -> None:
        super().__init__(dialect)
        self._views = views
        self._index_names = names
        self._state = state

    @property
    def state(self) -> JoinedState:
        """How the rows are joined."""
        return self._state(self._views)

    @property
    def parts(self) -> list[IndexPart]:
        """The indexes."""
        state = self.state
        return [
            IndexPart(number, view, name, state)
            for number, (view, name) in enumerate(zip(self._views, self._index_names, strict=True))
        ]

    # ── settings ────────────────────────────────────────────────────────────────

    @property
    def generation(self) -> int:
        """A number that grows with every visible change of one of the indexes."""
        return sum(view.generation for view in self._views)

    def touched_since(self, generation: int) -> dict[Kind, set[int]] | None:
        """None: any row may have been touched, since rows of later parts move."""
        return None

    def settings(self) -> dict[str, str]:
        """The settings of the first index with documents, and those of the store for what questions leave."""
        settings_by_part = [view.settings() for view in self._views]
        built = [settings for settings in settings_by_part if "embedder" in settings]
        first = (built or settings_by_part)[0]
        of_part = {name: value for name, value in first.items() if name not in OWN}
        return of_part | super().settings()

    # ── documents and chunks ────────────────────────────────────────────────────

    def documents(
        self, ids: Names = None, *, limit: int | None = None, offset: int = 0
    ) -> list[StoredDocument]:
        documents = [
            structs.replace(
                document,
                row=part.joined_rows("document", [document.row])[0],
                id=part.id(document.id),
                index=part.name,
            )
            for part in self.parts
            for document in part.view.documents(part.own_ids(ids))
        ]
        return documents if ids is not None else _rows_of_page(documents, limit, offset)

    def pages(self, document_ids: Collection[str], number: int | None = None) -> tuple[Page, ...]:
        pages: list[Page] = []
        for part in self.parts:
            for page in part.view.pages(part.own_ids(document_ids) or (), number):
                pages.append(replace(page, document_id=part.id(page.document_id)))
        return tuple(pages)

    def pending(self, ids: Names = None, *, job: str | None = None) -> list[PendingDocument]:
        return [pending for view in self._views for pending in view.pending(ids, job=job)]

    def new_pending_ids(self) -> list[str]:
        return [id for view in self._views for id in view.new_pending_ids()]

    def document_labels(self, *, titled: bool = False) -> list[DocumentLabel]:
        return [
            label._replace(id=part.id(label.id))
            for part in self.parts
            for label in part.view.document_labels(titled=titled)
        ]

    def existing_ids(self, ids: Collection[str]) -> set[str]:
        existing = [part.view.existing_ids(part.own_ids(ids) or ()) for part in self.parts]
        return {part.id(id) for part, own in zip(self.parts, existing, strict=True) for id in own}

    def counts(self) -> Counts:
        counts = [view.counts() for view in self._views]
        documents: Counter[str] = Counter()
        for part_counts in counts:
            documents.update(part_counts.documents)
        shared = {kind: self._shared_rows(kind) for kind in ("entity", "relation")}
        return Counts(
            documents=dict(documents),
            chunks=sum(part_counts.chunks for part_counts in counts),
            entities=sum(part_counts.entities for part_counts in counts) - shared["entity"],
            relations=sum(part_counts.relations for part_counts in counts) - shared["relation"],
        )

    def _shared_rows(self, kind: str) -> int:
        """The number of rows that count as an earlier one, or as none."""
        owners = self.state.rows[kind].owners
        return 0 if owners is None else int((owners != np.arange(len(owners))).sum())

    def has_chunks(self) -> bool:
        return any(view.has_chunks() for view in self._views)

    def newest_document_at(self) -> float:
        return max(view.newest_document_at() for view in self._views)

    def chunks(
        self, rows: RowIds = None, *, ids: Names = None, documents: Names = None
    ) -> dict[int, Chunk]:
        chunks: dict[int, Chunk] = {}
        for part in self.parts:
            own = part.view.chunks(
                part.own_rows("chunk", rows),
                ids=part.own_ids(ids),
                documents=part.own_ids(documents),
            )
            for row, chunk in _by_joined_row(part, "chunk", own):
                chunks[row] = part.chunk(chunk)
        return chunks

    def fingerprints(self, rows: RowIds = None) -> dict[int, str]:
        return self._by_chunk(rows, lambda part, own_rows: part.view.fingerprints(own_rows))

    def chunk_names(self, rows: RowIds = None) -> dict[int, str]:
        names = self._by_chunk(
            rows,
            lambda part, own_rows: {
                row: part.id(name) for row, name in part.view.chunk_names(own_rows).items()
            },
        )
        dates = self.chunk_documents(rows)
        return dict(sorted(names.items(), key=lambda name: dates[name[0]][1]))

    def chunk_reports(self, document_ids: Names = None) -> list[ChunkReport]:
        return [
            structs.replace(
                report,
                row=part.joined_rows("chunk", [report.row])[0],
                chunk_id=part.id(report.chunk_id),
                document_id=part.id(report.document_id),
            )
            for part in self.parts
            for report in part.view.chunk_reports(part.own_ids(document_ids))
        ]

    def last_chunk(self) -> int:
        return self.state.rows["chunk"].starts[-1]

    def extraction_totals(self, rows: range) -> ExtractionReport:
        starts = self.state.rows["chunk"].starts
        totals = [
            view.extraction_totals(
                range(max(rows.start - start, 0), min(rows.stop, end + 1) - start)
            )
            for view, (start, end) in zip(self._views, itertools.pairwise(starts), strict=True)
        ]
        return sum(totals, ExtractionReport())

    def edited_chunks(self) -> list[int]:
        return self._rows("chunk", lambda part: part.view.edited_chunks())

    def chunks_by_rules(self, names: Names = None, *, rows: RowIds = None) -> dict[int, str]:
        return self._by_chunk(
            rows,
            lambda part, own_rows: {
                row: part.id(name)
                for row, name in part.view.chunks_by_rules(
                    part.own_ids(names), rows=own_rows
                ).items()
            },
        )

    def text_tokens(self, *, by_rules: bool = False) -> tuple[int, int]:
        sums = [view.text_tokens(by_rules=by_rules) for view in self._views]
        return sum(count for count, _ in sums), sum(tokens for _, tokens in sums)

    def has_records(self) -> bool:
        return any(view.has_records() for view in self._views)

    def rejections(self, document_ids: Names = None) -> list[tuple[str, str, Rejection]]:
        return [
            (part.id(document_id), part.id(chunk_id), rejection)
            for part in self.parts
            for document_id, chunk_id, rejection in part.view.rejections(part.own_ids(document_ids))
        ]

    def matching_chunks(self, conditions: Sequence[Condition]) -> list[int]:
        """As in one index; ids are those among all, as they are listed."""
        on_ids = [condition for condition in conditions if condition.field == "id"]
        on_others = [condition for condition in conditions if condition.field != "id"]
        chunks = self._rows("chunk", lambda part: part.view.matching_chunks(on_others))
        if not on_ids:
            return chunks
        ids = {document.row: document.id for document in self.documents()}
        documents = set.intersection(*[meeting_rows(condition, ids) for condition in on_ids])
        documents_by_chunk = self.chunk_documents(chunks)
        return [chunk for chunk in chunks if documents_by_chunk[chunk][0] in documents]

    def metadata_fields(self) -> set[str]:
        return {field for view in self._views for field in view.metadata_fields()}

    def chunk_documents(self, rows: RowIds = None) -> dict[int, tuple[int, str]]:
        return self._by_chunk(
            rows,
            lambda part, own_rows: {
                row: (part.joined_rows("document", [document])[0], date)
                for row, (document, date) in part.view.chunk_documents(own_rows).items()
            },
        )

    def wrong_terms(self, limit: int | None) -> list[str]:
        return [fault for view in self._views for fault in view.wrong_terms(limit)]

    def overrides(self, chunks: RowIds = None) -> dict[int, Override]:
        return self._by_chunk(
            chunks,
            lambda part, own_rows: {
                row: structs.replace(override, chunk_id=part.id(override.chunk_id))
                for row, override in part.view.overrides(own_rows).items()
            },
        )

    def _rows(self, kind: str, load: Callable[[IndexPart], Iterable[int]]) -> list[int]:
        """The rows that each part loads, as joined rows."""
        return [row for part in self.parts for row in part.joined_rows(kind, load(part))]

    def _by_chunk(
        self, rows: RowIds, load: Callable[[IndexPart, RowIds], Mapping[int, JoinedValue]]
    ) -> dict[int, JoinedValue]:
        """What each part loads of some chunks or of all, by joined row."""
        return {
            row: value
            for part in self.parts
            for row, value in _by_joined_row(
                part, "chunk", load(part, part.own_rows("chunk", rows))
            )
        }

    # ── entities and relations ──────────────────────────────────────────────────

    def entity_rows(self, *, ids: RowIds = None, keys: Names = None) -> dict[int, EntityRow]:
        if keys is not None:
            ids = set(self.entity_ids(keys).values())
        members: defaultdict[int, list[EntityRow]] = defaultdict(list)
        for part in self.parts:
            own = part.view.entity_rows(ids=part.own_rows("entity", ids))
            for row, member in _by_joined_row(part, "entity", own):
                members[row].append(member)
        aliases = self.state.aliases
        entities: dict[int, EntityRow] = {}
        for row in sorted(members):
            own_key = members[row][0].key
            key = aliases.targets.get(own_key, own_key)
            display = aliases.displays.get(key, "")
            entities[row] = joined_entity(row, key, display, members[row])
        return entities

    def entity_keys(self, rows: RowIds = None) -> dict[int, str]:
        targets = self.state.aliases.targets
        keys: dict[int, str] = {}
        for part in self.parts:
            own = part.view.entity_keys(part.own_rows("entity", rows))
            for row, key in _by_joined_row(part, "entity", own):
                keys.setdefault(row, targets.get(key, key))
        return dict(sorted(keys.items()))

    def lasting_names(self, kind: Kind, rows: Collection[int]) -> dict[int, str]:
        if kind == "entity":
            return self.entity_keys(rows)
        targets = self.state.aliases.targets
        names: dict[int, str] = {}
        for part in self.parts:
            own = part.view.lasting_names(kind, part.own_rows(kind, rows) or ())
            for row, name in _by_joined_row(part, kind, own):
                if kind == "relation":
                    keys = [targets.get(key, key) for key in name.split("\n")]
                    name = "\n".join(sorted(keys))
                names.setdefault(row, part.id(name))
        return names

    def entity_types(self) -> set[str]:
        return {type for view in self._views for type in view.entity_types()}

    def count_relations(self, limit: int) -> int:
        return min(limit, sum(view.count_relations(limit) for view in self._views))

    def relation_rows(
        self,
        *,
        ids: RowIds = None,
        pairs: Collection[tuple[int, int]] | None = None,
        ends: RowIds = None,
    ) -> dict[int, RelationRow]:
        members: defaultdict[int, list[RelationRow]] = defaultdict(list)
        ends_by_row: dict[int, tuple[int, int]] = {}
        for part in self.parts:
            if pairs is not None:
                own = part.view.relation_rows(pairs=list(_own_pairs(part, pairs)))
            elif ends is not None:
                own = part.view.relation_rows(ends=part.own_rows("entity", ends))
            else:
                own = part.view.relation_rows(ids=part.own_rows("relation", ids))
            for row, member in _by_joined_row(part, "relation", own):
                low, high = part.joined_rows("entity", [member.low, member.high])
                ends_by_row[row] = min(low, high), max(low, high)
                members[row].append(turned_relation(member) if low > high else member)
        return {
            row: joined_relation(row, ends_by_row[row], members[row]) for row in sorted(members)
        }

    def listed(
        self,
        kind: Kind,
        *,
        search: str = "",
        type: str = "",
        limit: int | None = None,
        offset: int = 0,
    ) -> list[int]:
        rows = set(
            self._rows(kind, lambda part: part.view.listed(kind, search=search, type=type))
        ) - {NO_ROW}
        if kind == "entity":
            names = self.entity_names(rows)
            ordered = sorted(rows, key=lambda row: (names[row], row))
        else:
            weights = self.state.weights
            names = self.lasting_names("relation", rows)
            ordered = sorted(rows, key=lambda row: (-weights[row], names[row]))
        return _rows_of_page(ordered, limit, offset)

    def entity_names(self, rows: Collection[int]) -> dict[int, str]:
        names = self.entity_names_with_types(rows)
        return {row: name for row, (name, _) in names.items()}

    def entity_names_with_types(self, rows: Collection[int]) -> dict[int, tuple[str, str]]:
        names: dict[int, tuple[str, str]] = {}
        in_several: set[int] = set()
        for part in self.parts:
            own = part.view.entity_names_with_types(part.own_rows("entity", rows) or ())
            for row, name_and_type in _by_joined_row(part, "entity", own):
                if row in names:
                    in_several.add(row)
                names[row] = name_and_type
        joined = self.entity_rows(ids=in_several).items()
        names |= {row: (entity.name, entity.type) for row, entity in joined}
        return dict(sorted(names.items()))

    def graph_rows(self, touched: Mapping[Kind, RowIds] | None = None) -> GraphRows:
        rows = touched or {}
        graphs: list[GraphRows] = []
        for part in self.parts:
            own = {kind: part.own_rows(kind, rows.get(kind)) for kind in TABLE_NAMES}
            graphs.append(part.view.graph_rows(own))
        return self.state.graph_rows(graphs)

    def first_chunks(
        self, kind: Kind, rows: Collection[int], limit: int
    ) -> dict[int, tuple[str, ...]]:
        """As in one index; those of the first part first."""
        ids: dict[int, dict[str, None]] = {row: {} for row in rows}
        for part in self.parts:
            own_rows = part.own_rows(kind, rows) or ()
            for own_row, chunk_id in part.view.dialect.first_chunks(kind, own_rows, limit):
                ids[part.joined_rows(kind, [own_row])[0]].setdefault(part.id(chunk_id))
        return {row: tuple(chunk_ids)[:limit] for row, chunk_ids in ids.items()}

    def entity_ids(self, keys: Collection[str]) -> dict[str, int]:
        targets = {key: self.state.aliases.targets.get(key, key) for key in keys}
        rows: dict[str, int] = {}
        for part in self.parts:
            own = part.view.entity_ids({*targets, *targets.values()})
            joined = dict(zip(own, part.joined_rows("entity", own.values()), strict=True))
            for key, target in targets.items():
                for spelling in (target, key):
                    if spelling in joined:
                        rows.setdefault(key, joined[spelling])
        return {key: rows[key] for key in keys if key in rows}

    def alias_claims(self, *, entities: RowIds = None, keys: Names = None) -> list[tuple[int, str]]:
        claims: set[tuple[int, str]] = set()
        names = None if entities is None else self.entity_keys(entities).values()
        for part in self.parts:
            own = part.view.alias_claims(entities=part.own_rows("entity", entities), keys=keys)
            if names is not None:  # about names that this part has no entity of
                own = [*own, *part.view.alias_claims(keys=names)]
            rows = part.joined_rows("entity", [row for row, _ in own])
            claims.update(zip(rows, [key for _, key in own], strict=True))
        return sorted(claims)

    def aliases(self) -> Aliases:
        return self.state.aliases

    # ── mentions ────────────────────────────────────────────────────────────────

    def entity_mentions(
        self, *, chunks: RowIds = None, entities: RowIds = None, deleted: bool = False
    ) -> list[EntityMentionRow]:
        mentions: list[EntityMentionRow] = []
        for part in self.parts:
            own = part.view.entity_mentions(
                chunks=part.own_rows("chunk", chunks),
                entities=part.own_rows("entity", entities),
                deleted=deleted,
            )
            mentions += _joined_mentions(part, "entity", own)
        return mentions

    def relation_mentions(
        self, *, chunks: RowIds = None, relations: RowIds = None
    ) -> list[RelationMentionRow]:
        mentions: list[RelationMentionRow] = []
        for part in self.parts:
            own = part.view.relation_mentions(
                chunks=part.own_rows("chunk", chunks),
                relations=part.own_rows("relation", relations),
            )
            start = self.state.rows["relation"].starts[part.number]
            for mention in own:
                if mention.owner is not None and self.state.turned[start + mention.owner]:
                    mention.forward = not mention.forward
            mentions += _joined_mentions(part, "relation", own)
        return mentions

    def has_dates(self) -> bool:
        return any(view.has_dates() for view in self._views)

    def dated_mentions(self, kind: Kind, *, chunks: RowIds = None) -> list[DatedMention]:
        mentions: list[DatedMention] = []
        for part in self.parts:
            own = part.view.dated_mentions(kind, chunks=part.own_rows("chunk", chunks))
            mentions += _joined_mentions(part, kind, own)
        return mentions

    def mentioned_relations(self, chunks: Sequence[int]) -> list[int]:
        rows = self._rows(
            "relation",
            lambda part: part.view.mentioned_relations(part.own_rows("chunk", chunks) or []),
        )
        return [row for row in dict.fromkeys(rows) if row != NO_ROW]

    def description_chunks(
        self, kind: Kind, rows: Collection[int], limit: int
    ) -> dict[int, list[tuple[int, str]]]:
        descriptions: dict[int, list[tuple[int, str]]] = {row: [] for row in rows}
        for part in self.parts:
            own = part.view.description_chunks(kind, part.own_rows(kind, rows) or (), limit)
            for row, texts in _by_joined_row(part, kind, own):
                chunks = part.joined_rows("chunk", [chunk for chunk, _ in texts])
                descriptions[row] += zip(chunks, [text for _, text in texts], strict=True)
        return {row: texts[:limit] for row, texts in descriptions.items()}

    def descriptions_as_they_came(
        self, kind: Kind, rows: Collection[int], limit: int
    ) -> dict[int, list[str]]:
        descriptions: dict[int, list[str]] = {row: [] for row in rows}
        for part in self.parts:
            own = part.view.descriptions_as_they_came(kind, part.own_rows(kind, rows) or (), limit)
            for row, texts in _by_joined_row(part, kind, own):
                descriptions[row] += texts
        return {row: texts[:limit] for row, texts in descriptions.items()}

    def refused_rows(self, kind: Kind) -> list[int]:
        return self._rows(kind, lambda part: part.view.refused_rows(kind))


def _by_joined_row(
    part: IndexPart, kind: str, values: Mapping[int, JoinedValue]
) -> Iterator[tuple[int, JoinedValue]]:
    """What a part holds by row, by joined row; without what counts as none."""
    rows = part.joined_rows(kind, values)
    return ((row, value) for row, value in zip(rows, values.values(), strict=True) if row != NO_ROW)


def _own_pairs(part: IndexPart, pairs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The pairs of rows of a part that count as joined pairs, low first."""
    for low, high in pairs:
        own_lows = part.own_rows("entity", [low]) or ()
        own_highs = part.own_rows("entity", [high]) or ()
        for first, second in itertools.product(own_lows, own_highs):
            yield min(first, second), max(first, second)


def _joined_mentions(
    part: IndexPart, kind: Kind, mentions: Sequence[AnyMention]
) -> list[AnyMention]:
    """The mentions of a part, by joined rows."""
    ids = part.joined_rows(f"{kind}_mention", [mention.id for mention in mentions])
    chunks = part.joined_rows("chunk", [mention.chunk for mention in mentions])
    owners = part.joined_rows(kind, [mention.owner or NO_ROW for mention in mentions])
    return [
        structs.replace(
            mention, id=id, chunk=chunk, owner=owner if mention.owner and owner else None
        )
        for mention, id, chunk, owner in zip(mentions, ids, chunks, owners, strict=True)
    ]


def _rows_of_page(rows: list[Any], limit: int | None, offset: int) -> list[Any]:
    """A page of a list, without the first `offset` and at most `limit`."""
    end = None if limit is None else max(offset, 0) + max(limit, 0)
    return rows[max(offset, 0) : end]
