"""Makes a set of changes visible: folds claims, describes, embeds, and writes in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lightrag_jsonl.ask import Ask
from lightrag_jsonl.concurrency import together
from lightrag_jsonl.errors import BudgetError, LLMError
from lightrag_jsonl.indexing.embedding import Embeddings
from lightrag_jsonl.indexing.extraction import LANGUAGES
from lightrag_jsonl.indexing.hubs import Hubs, Owner
from lightrag_jsonl.indexing.kept_summaries import keep_summaries, restore_summaries
from lightrag_jsonl.indexing.merging import GRAPH_KINDS, NextIds, Plan, Said, fold, said_again
from lightrag_jsonl.indexing.steps import Steps
from lightrag_jsonl.indexing.summaries import Describer, Due, summarize
from lightrag_jsonl.indexing.tallies import entity_text, relation_text
from lightrag_jsonl.options import IndexOptions
from lightrag_jsonl.protocols import Tokenizer, Vectors
from lightrag_jsonl.spending import Paid, Spending
from lightrag_jsonl.storage import (
    aliases,
    claims,
    documents,
    fulltext,
    pending,
    rows,
    settings,
    snapshot,
    summarized,
)
from lightrag_jsonl.storage.aliases import Aliases
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.documents import StoredChunk, StoredDocument
from lightrag_jsonl.storage.embeddings import embedding_ids, put_embeddings
from lightrag_jsonl.storage.rows import EntityRow, RelationRow
from lightrag_jsonl.storage.summarized import Earlier, read_summaries
from lightrag_jsonl.text import digest
from lightrag_jsonl.types import Chunk, Document, Extraction, Page, Usage

POSITION_BITS = 22  # of a place: room for the index of a chunk in its document


@dataclass(frozen=True, slots=True)
class Ready:
    """A document with its extractions, waiting to become visible.

    `vectors` holds the vectors of chunks that the database has no vector for. On a retry, `stored`
    holds the row ids of the chunks that were asked about again; otherwise it is empty.
    """

    document: Document
    content: str
    characters: int
    created_at: float
    pages: tuple[Page, ...]
    chunks: tuple[Chunk, ...]
    extractions: tuple[Extraction, ...]
    vectors: Mapping[bytes, Vectors] = field(default_factory=dict)
    stored: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Committed:
    """What a transaction changed."""

    entities: frozenset[int] = frozenset()
    relations: frozenset[int] = frozenset()
    gone_entities: int = 0
    gone_relations: int = 0
    removed_chunks: int = 0
    usage: Usage = Usage()


@dataclass(slots=True)
class _Change:
    """One transaction in preparation.

    `keys` identify the vectors of the plan's rows. The plan holds for `generation` only.
    """

    ready: Sequence[Ready]
    plan: Plan
    due: list[Due]
    deleted: Collection[str] = ()
    documents: list[StoredDocument] = field(default_factory=list)
    chunks: list[StoredChunk] = field(default_factory=list)
    renewed: list[StoredChunk] = field(default_factory=list)
    old_documents: list[int] = field(default_factory=list)
    old_chunks: dict[int, Chunk] = field(default_factory=dict)
    aliases: Aliases | None = None
    replaced: list[Earlier] = field(default_factory=list)
    generation: int = -1
    keys: list[bytes] = field(default_factory=list)


class Committer:
    """The one place that changes what queries see; used by one writer at a time."""

    def __init__(
        self,
        database: Database,
        ask: Ask,
        embeddings: Embeddings,
        tokenizer: Tokenizer,
        options: IndexOptions,
        *,
        language: str,
        settings: Callable[[], Mapping[str, str]],
    ) -> None:
        self._database = database
        self._ask = ask
        self._embeddings = embeddings
        self._tokenizer = tokenizer
        self._options = options
        self._language = LANGUAGES.get(language, language)
        self._settings = settings
        self._hubs = Hubs()

    async def commit(
        self,
        ready: Sequence[Ready] = (),
        *,
        delete: Collection[str] = (),
        spending: Spending | None = None,
        summarize: bool = True,
        steps: Steps | None = None,
        put_off: set[Owner] | None = None,
    ) -> Committed:
        """Make documents visible, replacing earlier versions, and delete others: all in one transaction.

        Documents to delete may be visible or waiting. Summaries that are `put_off` are not asked
        for; those whose answer got lost are added to them.
        """
        steps = steps or Steps()
        describer = Describer(
            self._options,
            self._tokenizer,
            summarize=summarize and self._ask.has_model,
            hubs=self._hubs,
        )
        with steps.step("merging"):
            change = await self._planned(
                lambda connection: self._prepare(connection, ready, delete, describer)
            )
        return await self._carry_out(change, describer, spending, steps, put_off)

    async def rename(
        self, change: Callable[[Aliases], Aliases], keys: Collection[str]
    ) -> Committed:
        """Change which names stand for which entity; `keys` are those of all entities concerned."""
        describer = Describer(self._options, self._tokenizer, summarize=False)

        def prepare(connection: sqlite3.Connection) -> _Change:
            new = change(aliases.read(connection))
            chunks = aliases.chunks_naming(connection, keys)
            said, summaries = said_again(connection, chunks), read_summaries(connection, chunks)
            plan = fold(connection, said, chunks, NextIds.read(connection), new)
            keep_summaries(plan, summaries)
            describer.describe(connection, plan)
            return _Change((), plan, [], aliases=new)

        return await self._carry_out(await self._planned(prepare), describer)

    async def summarize_due(self, spending: Spending) -> Committed:
        """Write summaries that are due although there is no new claim: after a deletion, or a failed call."""
        describer = Describer(self._options, self._tokenizer, summarize=self._ask.has_model)

        def prepare(connection: sqlite3.Connection) -> _Change:
            plan = Plan(
                rows.entities_by_id(connection, claims.owners(connection, "entity")),
                rows.relations_by_id(connection, claims.owners(connection, "relation")),
            )
            due = describer.describe(connection, plan)
            kept = {(one.kind, one.row.id) for one in due}
            plan.entities = {k: v for k, v in plan.entities.items() if ("entity", k) in kept}
            plan.relations = {k: v for k, v in plan.relations.items() if ("relation", k) in kept}
            return _Change((), plan, due)

        return await self._carry_out(await self._planned(prepare), describer, spending)

    async def _planned(self, prepare: Callable[[sqlite3.Connection], _Change]) -> _Change:
        def plan(connection: sqlite3.Connection) -> _Change:
            change = prepare(connection)
            change.generation = snapshot.generation(connection)
            return change

        return await self._database.examined(plan)

    async def _carry_out(
        self,
        change: _Change,
        describer: Describer,
        spending: Spending | None = None,
        steps: Steps | None = None,
        put_off: set[Owner] | None = None,
    ) -> Committed:
        """Write the summaries that are due, embed what is new, and make the whole change visible at once."""
        steps = steps or Steps()
        put_off = set() if put_off is None else put_off
        change.due = [one for one in change.due if (one.kind, one.row.id) not in put_off]
        usage = await self._summarize(change, describer, spending, steps, put_off)
        keyed = await self._embeddings.keyed(_texts(change.plan))
        change.keys = [key for key, _ in keyed]
        vectors = await self._embeddings.missing(keyed, steps)
        for one in change.ready:
            vectors |= one.vectors
        with steps.step("writing"):
            generation = await self._database.committed(
                lambda connection: self._write(connection, change, vectors)
            )
        describer.remember(generation)
        return _committed(change, usage)

    # ── what will change ────────────────────────────────────────────────────────

    def _prepare(
        self,
        connection: sqlite3.Connection,
        ready: Sequence[Ready],
        delete: Collection[str],
        describer: Describer,
    ) -> _Change:
        ids = NextIds.read(connection)
        change = _Change(ready, Plan(), [], delete)
        whole = [one.document.id or "" for one in ready if not one.stored]
        old = documents.documents(connection, [*whole, *delete])
        change.old_documents = [document.row for document in old]
        change.old_chunks = documents.chunks_of(connection, change.old_documents)
        said = [part for one in ready for part in _number(connection, change, one, ids)]
        removed = [*change.old_chunks, *(again.row for again in change.renewed)]
        change.plan = fold(connection, said, removed, ids, aliases.read(connection))
        restore_summaries(connection, change.plan)
        change.due = describer.describe(connection, change.plan)
        return change

    async def _summarize(
        self,
        change: _Change,
        describer: Describer,
        spending: Spending | None,
        steps: Steps,
        put_off: set[Owner],
    ) -> Usage:
        """Write the summaries that are due; returns their cost, including that of failed ones.

        `BudgetError` if a limit is reached; the calls in flight are awaited first, as they are paid.
        """
        paid, ended = Paid(spending), list[BudgetError]()

        async def write(one: Due, add: Callable[[int], None]) -> None:
            try:
                text = await summarize(
                    self._ask,
                    one,
                    language=self._language,
                    group_tokens=self._options.summarize_group_tokens,
                    count=self._tokenizer.count,
                    spending=paid,
                )
            except LLMError as error:  # the fragments stand in; the next insert tries again
                if error.unheard:  # this one has a commit every few seconds
                    put_off.add((one.kind, one.row.id))
                return
            except BudgetError as error:
                ended.append(error)
                return
            finally:
                add(1)
            row = one.row
            if row.summary is not None:
                covers = row.covered, row.covered_mentions
                change.replaced.append(Earlier(one.kind, row.id, *covers, row.summary))
            row.summary, row.covered = text, one.covered
            row.covered_mentions = row.mentions
            describer.set_description(row, ())

        with steps.step("summarizing", len(change.due)) as add:
            await together(write(one, add) for one in change.due)
        if ended:
            raise ended[0]
        return paid.spent

    # ── the transaction ─────────────────────────────────────────────────────────

    def _write(
        self, connection: sqlite3.Connection, change: _Change, vectors: Mapping[bytes, Vectors]
    ) -> int:
        """Write the whole change; returns the new generation."""
        snapshot.check_generation(connection, change.generation, self._database.working_dir)
        stored = put_embeddings(connection, vectors)
        if change.aliases is not None:
            aliases.replace(connection, change.aliases)
        self._drop_old(connection, change)
        self._put_graph(connection, change, stored)
        self._put_documents(connection, change, stored)
        settings.record(connection, self._settings())
        return snapshot.note_commit(
            connection,
            entity=change.plan.entities,
            relation=change.plan.relations,
            chunk={new.row for new in change.chunks} | change.plan.removed,
        )

    def _drop_old(self, connection: sqlite3.Connection, change: _Change) -> None:
        if change.plan.removed:
            claims.drop_claims(connection, change.plan.removed)
        if change.old_documents:
            texts = [(row, chunk.text) for row, chunk in change.old_chunks.items()]
            fulltext.drop_terms(connection, texts)
            documents.drop_chunks(connection, change.old_chunks)
            documents.drop_documents(connection, change.old_documents)

    def _put_graph(
        self, connection: sqlite3.Connection, change: _Change, stored: dict[bytes, int]
    ) -> None:
        plan = change.plan
        entities = [row for row in plan.entities.values() if row.mentions]
        relations = [row for row in plan.relations.values() if row.mentions]
        changed: list[EntityRow | RelationRow] = [*entities, *relations]
        stored |= embedding_ids(connection, (key for key in change.keys if key not in stored))
        for row, key in zip(changed, change.keys, strict=True):
            row.embedding = stored.get(key)
        for kind in GRAPH_KINDS:
            rows.drop_rows(connection, kind, plan.gone(kind))
        for (kind, owner), claim in plan.uncovered.items():
            since = min(claim, plan.row(kind, owner).covered)
            summarized.drop_earlier(connection, kind, owner, from_claim=since)
        summarized.put_earlier(connection, change.replaced)
        rows.put_entities(connection, entities)
        rows.put_relations(connection, relations)
        claims.put_claims(connection, plan.entity_claims, plan.relation_claims)

    def _put_documents(
        self, connection: sqlite3.Connection, change: _Change, stored: dict[bytes, int]
    ) -> None:
        pages = {one.document.id: one.pages for one in change.ready}
        for document in change.documents:
            documents.put_document(connection, document, pages[document.id])
        keys = [self._embeddings.key(new.chunk.text) for new in change.chunks]
        stored |= embedding_ids(connection, (key for key in keys if key not in stored))
        documents.put_chunks(
            connection,
            [
                replace(new, embedding=stored.get(key))
                for new, key in zip(change.chunks, keys, strict=True)
            ],
        )
        fulltext.put_terms(connection, [(new.row, new.chunk.text) for new in change.chunks])
        documents.renew_chunks(connection, change.renewed)
        for row in sorted({renewed.document for renewed in change.renewed}):
            documents.set_state(connection, row, documents.state_of(connection, row))
        whole = [one.document.id or "" for one in change.ready if not one.stored]
        # of a retried document a newer version may be waiting: it is kept
        pending.drop(connection, [*whole, *change.deleted])


def _texts(plan: Plan) -> list[str]:
    """The texts to embed for a plan's entities, then for its relations."""
    texts = [entity_text(row) for row in plan.entities.values() if row.mentions]
    return texts + [relation_text(row) for row in plan.relations.values() if row.mentions]


def _number(
    connection: sqlite3.Connection, change: _Change, ready: Ready, ids: NextIds
) -> list[Said]:
    """Give a document and its chunks their row ids, and order its claims."""
    base = int(digest(ready.document.id or "")[:7], 16) << POSITION_BITS
    before = documents.read_before(connection, ready.stored)
    if ready.stored:
        row = documents.documents(connection, [ready.document.id or ""])[0].row
        numbers: Sequence[int] = ready.stored
        listed = change.renewed
    else:
        row = ids.documents
        ids.documents += 1
        change.documents.append(_stored(row, ready))
        numbers = range(ids.chunks, ids.chunks + len(ready.chunks))
        ids.chunks += len(ready.chunks)
        listed = change.chunks
    said = []
    for number, chunk, extraction in zip(numbers, ready.chunks, ready.extractions, strict=True):
        known = before.get(number, documents.Reading())
        found = len(extraction.entities) + len(extraction.relations)
        failed_now = extraction.state == "failed" and known.state != "failed"
        if extraction.unfinished and (found < known.claims or failed_now):
            continue  # keep the earlier reading: it found more
        told = replace(extraction, usage=known.usage + extraction.usage)
        listed.append(StoredChunk(number, row, chunk, ready.created_at, None, told))
        said.append(Said(number, base + chunk.index, ready.created_at, extraction))
    return said


def _stored(row: int, ready: Ready) -> StoredDocument:
    document = ready.document
    return StoredDocument(
        row=row,
        id=document.id or "",
        title=document.title,
        source=document.source,
        date=document.date,
        metadata=document.metadata,
        content=ready.content,
        state=documents.state_after(ready.extractions),
        characters=ready.characters,
        created_at=ready.created_at,
    )


def _committed(change: _Change, usage: Usage) -> Committed:
    plan = change.plan
    return Committed(
        entities=frozenset(row.id for row in plan.alive("entity")),
        relations=frozenset(row.id for row in plan.alive("relation")),
        gone_entities=len(plan.gone("entity")),
        gone_relations=len(plan.gone("relation")),
        removed_chunks=len(change.old_chunks),
        usage=usage,
    )
