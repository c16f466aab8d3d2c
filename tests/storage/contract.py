"""What the package requires of a store, as tests; sample documents, and all that a store holds.

docs/stores.md says how to write a store; its tests inherit `StoreContract`.
"""

import contextlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from lightrag_jsonl import Completion, LockedError, StorageError, Usage
from lightrag_jsonl.core import types as t
from lightrag_jsonl.core.types import TraceSummary
from lightrag_jsonl.storage import rows as r
from lightrag_jsonl.storage.filters import parse_where
from lightrag_jsonl.storage.opening import has_index, open_store
from lightrag_jsonl.storage.store import FORMAT, Store
from lightrag_jsonl.storage.vector_index import NO_VECTOR
from lightrag_jsonl.storage.views import Transaction
from tests.kit import Kind, filled

TEXTS = ("Marie Curie discovered radium.", "居里夫人发现了镭。", "１２ 🙂", " ", "")
SHORTEST_SECRET = 16  # characters that nobody guesses
ROWS = np.eye(4, dtype=np.float32)
ALL_ROWS: Mapping[Kind, Sequence[int]] = {"entity": (1, 2), "relation": (1,), "chunk": (3, 4)}
REJECTION = t.Rejection(2, "oops", "not_json", "no object")
EXTRACTION = t.Extraction(rejections=(REJECTION,), gleaned=(3, 1), usage=Usage(7, 5, 1, 2))
BORN = (("born", "1867"),)
CURIE = t.EntityMention("Curie", "person", "a chemist", attributes=BORN, aliases=("居里",))
RADIUM = t.EntityMention("radium", "element", "an element", grounded=False)
DISCOVERY = t.RelationMention(
    "Curie", "radium", ("discovery",), "she found it", 2.0, valid_from="1898"
)

# Every field has another value than its default.
FULL_ENTITY = filled(
    t.EntityMention(
        name="Ann",
        type="person",
        description="Ann sings.",
        grounded=False,
        attributes=(("born", "1867"),),
        aliases=("安",),
        valid_from="1901",
        valid_to="1902-03",
        quoted=True,
    )
)
FULL_RELATION = filled(
    t.RelationMention(
        source="Ann",
        target="Bob",
        keywords=("knows", "认识"),
        description="Ann knows Bob.",
        strength=2.5,
        valid_from="1901",
        valid_to="1902-03",
    )
)


def sample_entities() -> list[r.EntityRow]:
    """The entities that every sample document mentions."""
    curie = r.EntityRow(
        id=1,
        key="curie",
        names={"Curie": 4},
        types={"person": 4},
        attributes={"born": {"1867": 4}},
        aliases={"居里": 4},
        mentions=4,
        quoted=1,
        description="a chemist",
        summary="her summary",
        summarized_to=3,
        summarized_mentions=2,
        created_at=1.5,
        name="Curie",
        type="person",
    )
    radium = r.EntityRow(
        id=2,
        key="radium",
        names={"radium": 4},
        types={"element": 4},
        name="radium",
        type="element",
    )
    return [curie, radium]


def sample_relation() -> r.RelationRow:
    """The relation that every sample document mentions."""
    return r.RelationRow(
        id=1,
        low=1,
        high=2,
        keywords={"discovery": 4},
        backward_keywords={"发现者": 1, "discovery": 1},
        low_names={"Curie": 4},
        high_names={"radium": 4},
        forward=4,
        weight=8_000_000,
        mentions=4,
        description="she found it",
        created_at=1.5,
    )


def put_sample(transaction: Transaction, number: int, text: str = TEXTS[0]) -> None:
    """Store document `number`: two chunks, which mention the same two entities."""
    document_id = f"d{number}"
    document = r.StoredDocument(
        row=number,
        id=document_id,
        title=f"Title {number}",
        source=None,
        date=None,
        metadata={"year": 2000 + number, "tags": ["a", number]},
        content="digest",
        state="done",
        characters=99,
        created_at=1.0,
    )
    pages = [t.Page(document_id, 1, text), t.Page(document_id, 2, "第二页")]
    transaction.put_documents([(document, pages)])
    chunk_rows = (2 * number - 1, 2 * number)
    for index, row in enumerate(chunk_rows):
        chunk = t.Chunk(
            id=f"{document_id}-{index}",
            document_id=document_id,
            index=index,
            page=1,
            start=0,
            end=len(text),
            text=text,
            tokens=5,
            heading="Report › 第一章",
        )
        extraction = EXTRACTION
        if number == 2:
            extraction = replace(EXTRACTION, content_keywords=("化学", f"part {index}"))
        transaction.put_chunks([r.StoredChunk(row, number, chunk, 2.0, extraction)])
        put_sample_mentions(transaction, row)
    transaction.put_graph_rows("entity", sample_entities())
    transaction.put_graph_rows("relation", [sample_relation()])
    for kind, ids in {**ALL_ROWS, "chunk": chunk_rows}.items():
        vectors = {id: (f"{kind} {id}".encode(), ROWS[(id - 1) % 4]) for id in ids}
        transaction.put_vectors(kind, vectors)


def put_sample_mentions(transaction: Transaction, chunk: int) -> None:
    """Store what a chunk says: two entities and their relation."""
    position = 1000 * chunk
    curie = r.MentionRow(id=2 * chunk - 1, owner=1, chunk=chunk, position=position, mention=CURIE)
    radium = r.MentionRow(id=2 * chunk, owner=2, chunk=chunk, position=position, mention=RADIUM)
    discovery = r.MentionRow(
        id=chunk, owner=1, chunk=chunk, position=position, mention=DISCOVERY, forward=True
    )
    transaction.put_mentions([curie, radium], [discovery])


OVERRIDE = r.Override(
    chunk_id="d1-1",
    action="edit",
    names=("镭", "Curie"),
    changes={"weight": 5_000_000, "keywords": ["镭"]},
    by="Eve 🙂",
    at=2.000001,
    reason="１２",
)


def stored_content(store: Store) -> list[object]:
    """All that a store holds of documents, graph and vectors, to be compared."""
    with store.snapshot() as snapshot:
        graph = snapshot.graph
        relation_ids = graph.relations_of(graph.entities)[1]
        columns = [
            graph.entities,
            graph.chunks,
            graph.all_ends,
            graph.weights(relation_ids),
            *graph.all_mentions,
        ]
        digests: list[object] = []
        for kind in ALL_ROWS:
            vectors = snapshot.vectors_by_kind[kind]
            dim = vectors.matrix(np.array([1])).shape[1]
            columns += vectors.search(np.ones((1, dim), np.float32), 99)
            digests.append(snapshot.vector_digests(kind, range(9)))
        return [
            *digests,
            *[column.tolist() for column in columns],
            snapshot.documents(),
            snapshot.chunks(),
            snapshot.chunk_reports(),
            snapshot.extraction_totals(range(1_000)),
            snapshot.document_labels(),
            snapshot.new_pending_ids(),
            snapshot.existing_ids(["d1", "none"]),
            snapshot.rejections(),
            snapshot.aliases(),
            snapshot.alias_claims(),
            snapshot.next_ids(),
            snapshot.entity_mentions(),
            snapshot.relation_mentions(),
            snapshot.entity_rows(),
            snapshot.relation_rows(),
            snapshot.search_terms(["radium", "curie", "镭*"], 99),
        ]


class StoreContract:
    """What the package requires of a store. Inherit from this in your tests, and override `make`."""

    def make(self, folder: Path) -> Store:
        """A store in this folder: a second call with the same folder opens the same index again."""
        raise TypeError("override make() to return your store")

    def filled(self, folder: Path, *documents: int) -> Store:
        """A store with these sample documents; the text of the second one is Chinese."""
        store = self.make(folder)
        with store.transaction() as transaction:
            for number in documents:
                put_sample(transaction, number, TEXTS[number - 1])
        return store

    def test_documents_and_chunks_are_read_as_they_were_stored(self, tmp_path: Path) -> None:
        """All that describes a document, and how its chunks were read, comes back."""
        assert self.make(tmp_path).is_empty()
        store = self.filled(tmp_path, 1, 2)
        assert not store.is_empty() and store.size() > 0 and store.location and not store.read_only
        with store.view() as view:
            first, second = view.documents()
            assert (first.row, first.id, first.title, first.source) == (1, "d1", "Title 1", None)
            assert first.metadata == {"year": 2001, "tags": ["a", 1]} and first.state == "done"
            assert view.documents(["d2", "unknown"]) == [second]
            assert view.pages(["d1"]) == (t.Page("d1", 1, TEXTS[0]), t.Page("d1", 2, "第二页"))
            assert view.pages(["d1"], 2) == view.pages(["d1"])[1:]
            assert not view.pages(["d1"], 3) and not view.pages([])
            chunks = view.chunks()
            assert [chunk.id for chunk in chunks.values()] == ["d1-0", "d1-1", "d2-0", "d2-1"]
            assert (chunks[3].text, chunks[3].tokens) == (TEXTS[1], 5)
            assert (chunks[3].heading, chunks[3].title) == ("Report › 第一章", "Title 2")
            assert view.chunks([3, 99]) == view.chunks(ids=["d2-0", "?"]) == {3: chunks[3]}
            assert list(view.chunks(documents=["d2", "?"])) == [3, 4] and not view.chunks([])
            report = view.chunk_reports(["d1"])[1]
            assert (report.chunk_id, report.report.rejections) == ("d1-1", {"not_json": 1})
            assert report.report.usage == Usage(7, 5, 1, 2) and report.report.gleaned == (3, 1)
            assert view.rejections(["d1"])[0] == ("d1", "d1-0", REJECTION)
            assert view.counts() == r.Counts({"done": 2}, 4, 2, 1)

    def test_a_chunk_that_is_read_again_replaces_what_was_read(self, tmp_path: Path) -> None:
        """Its refused lines and mentions go, its terms stay, and its document gets another state."""
        store, states = self.filled(tmp_path, 1), []
        failed = t.Extraction(state="failed")
        partial = t.Extraction(state="partial", error="no credit")
        for extraction in (failed, partial, t.Extraction(rejections=(REJECTION, REJECTION))):
            with store.transaction() as transaction:
                for row, chunk in transaction.chunks().items():
                    transaction.put_chunks([r.StoredChunk(row, 1, chunk, 2.0, extraction)])
                states += [document.state for document in transaction.documents()]
        assert states == ["failed", "partial", "done"]
        with store.snapshot() as snapshot:
            assert len(snapshot.rejections()) == 4 and not snapshot.entity_mentions()
            assert not snapshot.relation_mentions() and not len(snapshot.graph.all_mentions[0])
            assert snapshot.term_counts(["curie"]) == (2, {"curie": 2})

    def test_every_field_is_read_as_it_was_stored(self, tmp_path: Path) -> None:
        """Of mentions and of merged rows; the samples leave no field at its default."""
        store = self.filled(tmp_path, 1)
        entity = filled(structs.replace(sample_entities()[0], edited={"type": "人物"}))
        relation = filled(structs.replace(sample_relation(), edited={"weight": 5}))
        entity_mention = r.MentionRow(1, 1, 1, 1000, FULL_ENTITY, written=("镭元素",))
        relation_mention = r.MentionRow(
            1, 1, 1, 1000, FULL_RELATION, forward=False, written=("居里", "镭元素")
        )
        with store.transaction() as transaction:
            transaction.put_mentions([entity_mention], [relation_mention])
            transaction.put_graph_rows("entity", [entity])
            transaction.put_graph_rows("relation", [relation])
        with store.view() as view:
            assert view.entity_mentions(chunks=[1])[0] == entity_mention
            assert view.relation_mentions(chunks=[1])[0] == relation_mention
            assert view.entity_rows(ids=[1]) == {1: entity}
            assert view.relation_rows(ids=[1]) == {1: relation}

    def test_waiting_documents_are_kept_in_order(self, tmp_path: Path) -> None:
        """A document waits, with all it was given, until it is deleted or replaced."""
        document = t.Document("猫", "w1", "T", "s", "2024", {"n": [1, None]}, pages=("猫", ""))
        records: tuple[t.Record, ...] = ({"type": "entity", "name": "猫"},)
        first = r.PendingDocument(document, 5.0, records, ("猫",), (9, 1))
        second = r.PendingDocument(t.Document("x", "w2"), 4.0)
        with self.make(tmp_path).transaction() as transaction:
            for pending in (first, second, r.PendingDocument(t.Document("old", "w1"), 3.0), first):
                transaction.put_pending(pending)
            assert transaction.pending() == [second, first]
            assert transaction.counts().documents == {"pending": 2}
            row = transaction.pending(["w2"])[0].row
            assert row is not None
            transaction.delete_pending([row, 99])
            assert transaction.pending() == [first]

    def test_a_later_version_of_a_waiting_document_is_not_lost(self, tmp_path: Path) -> None:
        """What is stored again, or waits no longer, replaces and deletes only its own version."""
        early = r.PendingDocument(t.Document("早", "w"), 5.0, job="a")
        late = r.PendingDocument(t.Document("晚", "w"), 4.0, job="b")
        with self.make(tmp_path).transaction() as transaction:
            transaction.put_pending(early)
            (waiting,) = transaction.pending(job="a")
            assert transaction.put_pending(late) is not None
            assert transaction.put_pending(waiting) is None and waiting.row is not None
            transaction.delete_pending([waiting.row])
            assert transaction.pending() == [late] and transaction.pending(job="a") == []
            (kept,) = transaction.pending()
            again = transaction.put_pending(kept)
            assert again is not None and kept.row is not None and again > kept.row
            transaction.delete_pending([again])
            assert transaction.put_pending(kept) is None and transaction.pending() == []

    def test_files_wait_with_their_bytes(self, tmp_path: Path) -> None:
        """Whatever the bytes are; two files of one name do not replace each other."""
        document = t.Document("", None, "T", "水 １２ 😀.pdf")
        contents = {"a": b"\0\xff%PDF", "b": b""}
        with self.make(tmp_path).transaction() as transaction:
            for job, content in contents.items():
                waiting = r.PendingDocument(document, 1.0, job=job, is_file=True)
                transaction.put_pending(waiting, content)
            files = transaction.pending()
            assert [file.is_file for file in files] == [True, True]
            stored = {file.job: transaction.pending_file(file.row or 0) for file in files}
            assert stored == contents and transaction.pending_file(99) is None

    def test_jobs_are_kept_in_order(self, tmp_path: Path) -> None:
        """Open ones until they end, failed ones as long as a document of theirs waits."""

        def job(id: str, state: str) -> r.StoredJob:
            return r.StoredJob(id=id, state=state, size=3, record='{"report":{"n":"猫"},"id":1}')

        with self.make(tmp_path).transaction() as transaction:
            for id, state in (("z", "waiting"), ("b", "failed"), ("c", "done"), ("y", "running")):
                transaction.put_job(job(id, state))
            document = r.PendingDocument(t.Document("x", "w"), 1.0, job="b")
            transaction.put_pending(document)
            transaction.put_pending(r.PendingDocument(t.Document("u", "v"), 1.0, job="z"))
            assert [row.id for row in transaction.newest_jobs(2, 1)] == ["c", "b"]
            assert [row.id for row in transaction.open_jobs()] == ["z", "y"]
            assert transaction.job_bytes() == 9 and transaction.job("x") is None
            assert len(transaction.pending_rows(["w", "v"])) == 1
            transaction.delete_ended_jobs(1)
            assert transaction.job_states() == {"waiting": 1, "failed": 1, "done": 1, "running": 1}
            transaction.purge_jobs()
            assert [row.id for row in transaction.newest_jobs()] == ["y", "b", "z"]
            assert transaction.job("b") == structs.replace(
                job("b", "failed"), record='{"report":{},"id":1}'
            )
            transaction.delete_job("b")
            assert transaction.job("b") is None

    def test_filters_find_the_chunks_of_documents(self, tmp_path: Path) -> None:
        """A condition on the metadata, on a document's own fields or on its themes finds its chunks."""
        cases: list[tuple[dict[str, Any], list[int]]] = [
            ({}, [1, 2, 3, 4]),
            ({"id": "d2"}, [3, 4]),
            ({"title": "Title 1", "source": None}, [1, 2]),
            ({"year": {"$gte": 2002}}, [3, 4]),
            ({"year": "2002"}, []),
            ({"tags": 1}, [1, 2]),
            ({"content_keywords": ["none", "part 1"]}, [3, 4]),
            ({"content_keywords": "化学"}, [3, 4]),
            ({"content_keywords": {"$ne": "化学"}}, []),
            ({"content_keywords": None}, [1, 2]),
            ({"absent": {"$ne": 1}}, []),
            ({"absent": [None, 1]}, [1, 2, 3, 4]),
        ]
        with self.filled(tmp_path, 1, 2).view() as view:
            for where, chunk_rows in cases:
                assert view.matching_chunks(parse_where(where)) == chunk_rows, where
            assert view.metadata_fields() == {"tags", "year"}

    def test_mentions_and_merged_rows_are_read_as_they_were_stored(self, tmp_path: Path) -> None:
        """Facts and what was merged from them come back, by any of their keys."""
        with self.filled(tmp_path, 1, 2).view() as view:
            assert view.next_ids() == r.NextIds(3, 5, 3, 2, 9, 5)
            assert [row.mention for row in view.entity_mentions(chunks=[1])] == [CURIE, RADIUM]
            assert view.entity_mentions(entities=[1]) == view.entity_mentions()[::2]
            assert [row.mention for row in view.relation_mentions(relations=[1])] == [DISCOVERY] * 4
            assert view.relation_mentions(chunks=[4])[0].position == 4000
            assert view.mentioned_relations([4, 1]) == [1]
            assert [row.chunk for row in view.dated_mentions("relation")] == [1, 2, 3, 4]
            of_chunk = view.dated_mentions("relation", chunks=[1])
            assert [(row.chunk, row.valid_from) for row in of_chunk] == [(1, "1898")]
            assert view.dated_mentions("relation", chunks=[9]) == []
            assert view.dated_mentions("entity") == []
            assert view.has_dates()
            assert view.chunk_documents([1, 4]) == {1: (1, ""), 4: (2, "")}
            assert list(view.entity_rows().values()) == sample_entities()
            assert view.entity_rows(ids=[2, 9]) == view.entity_rows(keys=["radium", "?"])
            assert view.relation_rows(pairs=[(1, 2), (2, 9)]) == {1: sample_relation()}
            descriptions = view.descriptions("entity", {1: 0, 2: 6}, without=[1], limit=2)
            assert descriptions[1] == [(2000, "a chemist"), (3000, "a chemist")]
            assert descriptions[2] == [(4000, "an element")]
            in_order = view.descriptions_as_they_came("entity", [1, 2, 9], 3)
            assert in_order == {1: ["a chemist"] * 3, 2: ["an element"] * 3, 9: []}
            entity, relation = view.entities([1], chunk_limit=3)[1], view.relations([1])[1]
            assert (entity.name, entity.attributes) == ("Curie", BORN)
            assert entity.aliases == ("居里",) and view.entity_ids(["居里"]) == {}
            assert view.entity_names([1, 9]) == {1: "Curie"}
            assert view.alias_claims() == view.alias_claims(keys=["居里"]) == [(1, "居里")]
            assert view.alias_claims(entities=[1, 9]) == [(1, "居里")]
            assert not view.alias_claims(entities=[2])
            assert entity.chunk_ids == ("d1-0", "d1-1", "d2-0")
            assert (relation.source, relation.target, relation.weight) == ("Curie", "radium", 8.0)
            assert relation.keywords == ("discovery",) and len(relation.chunk_ids) == 4
            assert view.entity_ids(["curie", "unknown"]) == {"curie": 1}

    def test_lists_come_in_pages(self, tmp_path: Path) -> None:
        """Documents as they were stored, entities by name, relations by weight, all within limits."""
        with self.filled(tmp_path, 1, 2, 3).view() as view:
            assert [document.id for document in view.documents(limit=1, offset=1)] == ["d2"]
            assert [document.id for document in view.documents(offset=2)] == ["d3"]
            assert view.documents(limit=0) == [] == view.documents(offset=3)
            assert view.listed("entity") == [1, 2] == view.listed("entity", limit=9)
            assert view.listed("entity", limit=1, offset=1) == [2]
            assert view.listed("entity", search="uri") == [1]
            assert view.listed("entity", search="u", type="element") == [2]
            assert view.listed("relation") == view.listed("relation", search="rad") == [1]
            assert not view.listed("relation", search="?")
            assert not view.listed("relation", offset=1)
            assert view.relation_rows(ends=[2, 9]).keys() == {1}
            assert not view.relation_rows(ends=[9])

    def test_totals_are_the_sums_of_reports(self, tmp_path: Path) -> None:
        """Added up by the database, for chunks with and without rejections; themes are no numbers."""
        store = self.filled(tmp_path, 2)
        with store.view() as view:
            reports = [chunk.report for chunk in view.chunk_reports()]
            expected = replace(sum(reports, t.ExtractionReport()), content_keywords={})
            assert view.extraction_totals(range(1_000)) == expected
            assert view.extraction_totals(range(1)) == t.ExtractionReport()
            assert view.last_chunk() == 4

    def test_what_rules_read_is_told_from_records(self, tmp_path: Path) -> None:
        """By row ids and by names, with the tokens of the texts; edits by hand are neither."""
        store = self.filled(tmp_path, 1, 2)
        extractors = {1: f"{t.BY_RULES}en-1", 2: t.PERSON, 3: f"{t.BY_RULES}zh-1", 4: "model"}
        with store.transaction() as transaction:
            for row, extractor in extractors.items():
                chunk = transaction.chunks([row])[row]
                extraction = replace(EXTRACTION, extractor=extractor)
                transaction.put_chunks([r.StoredChunk(row, (row + 1) // 2, chunk, 2.0, extraction)])
        with store.view() as view:
            assert view.chunks_by_rules() == {1: "d1-0", 3: "d2-0"}
            assert view.chunks_by_rules(["d2-0", "d2-1"]) == {3: "d2-0"}
            assert view.chunks_by_rules(rows=[1, 2]) == {1: "d1-0"}
            assert view.chunks_by_rules(rows=[]) == {}
            assert view.text_tokens() == (3, 15)
            assert view.text_tokens(by_rules=True) == (2, 10)

    def test_edits_by_hand_are_found(self, tmp_path: Path) -> None:
        """Their chunks by time, what they changed with its row, and mentions that count no longer; an
        override goes with the chunk of the edit.
        """
        store, edited = self.filled(tmp_path, 1), {"weight": 5_000_000, "keywords": ["镭"]}
        by_hand = replace(EXTRACTION, extractor=t.PERSON)
        with store.transaction() as transaction:
            mentions = transaction.entity_mentions(chunks=[2])
            chunk = r.StoredChunk(2, 1, transaction.chunks([2])[2], 2.0, by_hand)
            transaction.put_chunks([chunk])
            uncounted = [structs.replace(row, owner=None) for row in mentions]
            transaction.put_mentions(uncounted, [])
            transaction.put_overrides({2: OVERRIDE})
            transaction.put_graph_rows(
                "relation", [structs.replace(sample_relation(), edited=edited)]
            )
            transaction.put_graph_rows("entity", [structs.replace(sample_entities()[1], name="Ra")])
        with store.snapshot() as snapshot:
            assert snapshot.edited_chunks() == [2]
            assert [report.extractor for report in snapshot.chunk_reports()] == ["", t.PERSON]
            assert snapshot.overrides() == snapshot.overrides([2, 9]) == {2: OVERRIDE}
            assert snapshot.overrides([1]) == {}
            assert snapshot.entity_mentions(deleted=True) == uncounted
            assert snapshot.graph.chunks_of(np.array([1]))[1].tolist() == [1]
            assert snapshot.relation_rows()[1].edited == edited
            assert snapshot.entity_names([1, 2]) == {1: "Curie", 2: "Ra"}
            assert snapshot.relations([1])[1].weight == 5.0 == snapshot.graph.weights(np.array([1]))
            assert snapshot.relations([1])[1].keywords == ("镭",)
        with store.transaction() as transaction:
            transaction.delete_documents([1])
        with store.view() as view:
            assert view.overrides() == {}

    def test_mentions_can_move_to_another_entity(self, tmp_path: Path) -> None:
        """A merge of names gives mentions to another entity; then the first one can be deleted."""
        store = self.filled(tmp_path, 1)
        displays = {"ra": "Ra", "curie": "Curie", "x": "X"}
        aliases = r.Aliases({"radium": "ra", "ra": "curie"}, displays, frozenset("xy"))
        with store.transaction() as transaction:
            entities, relations = transaction.entity_mentions(), transaction.relation_mentions()
            transaction.delete_graph_rows("relation", [1])
            transaction.delete_graph_rows("entity", [2])
            moved = [structs.replace(row, owner=1) for row in entities]
            transaction.put_mentions(moved, [structs.replace(row, owner=None) for row in relations])
            transaction.put_aliases(aliases)
            rays = r.EntityRow(3, "rays", aliases={"Radium": 1})
            transaction.put_graph_rows("entity", [rays])
        with store.snapshot() as snapshot:
            assert snapshot.graph.entities.tolist() == [1, 3] and not len(snapshot.graph.all_ends)
            assert snapshot.graph.chunks_of(np.array([1, 2]))[1].tolist() == [1, 2]
            assert {row.owner for row in snapshot.relation_mentions()} == {None}
            assert snapshot.alias_claims(entities=[1]) == [(1, "居里"), (3, "radium")]
            ids = snapshot.entity_ids(["radium", "ra", "x"])
            assert snapshot.aliases() == aliases and ids == {"radium": 1, "ra": 1}

    def test_refused_texts_have_no_vector(self, tmp_path: Path) -> None:
        """They are listed, and no search by vectors finds them; a vector takes their place."""
        store = self.filled(tmp_path, 1)
        with store.transaction() as transaction:
            assert transaction.refused_rows("entity") == []
            transaction.put_vectors("entity", {1: (b"refused", NO_VECTOR)})
        queries = np.stack([ROWS[0], ROWS[1]])
        rows = np.array([1, 2])
        with store.snapshot() as snapshot:
            assert snapshot.refused_rows("entity") == [1] and snapshot.refused_rows("chunk") == []
            assert snapshot.vector_digests("entity", [1]) == {1: b"refused"}
            vectors = snapshot.vectors_by_kind["entity"]
            assert 1 not in vectors.search(queries, 9)[0]
            assert np.isnan(vectors.scores(queries, rows)[:, 0]).all()
            matrix = vectors.matrix(rows)
            assert not matrix[0].any() and np.allclose(matrix[1], ROWS[1], atol=1e-3)
        assert store.check() == []
        with store.transaction() as transaction:
            transaction.put_vectors("entity", {1: (b"new", ROWS[2])})
            assert transaction.refused_rows("entity") == []

    def test_vectors_are_replaced_and_found(self, tmp_path: Path) -> None:
        """A vector takes the place of the earlier one, and search finds it by inner product."""
        store = self.filled(tmp_path, 1)
        with store.transaction() as transaction:
            transaction.put_vectors("entity", {1: (b"new", ROWS[2])})
            without_relation = [
                structs.replace(row, owner=None) for row in transaction.relation_mentions()
            ]
            transaction.put_mentions([], without_relation)
            transaction.delete_graph_rows("relation", [1])
        with store.snapshot() as snapshot:
            assert snapshot.vector_digests("entity", [1, 2, 9]) == {1: b"new", 2: b"entity 2"}
            vector = snapshot.vectors("entity", [1])[1]
            assert vector.dtype == np.float32 and np.allclose(vector, ROWS[2], atol=1e-3)
            queries, rows = np.stack([ROWS[2], ROWS[0]]), np.array([2, 9])
            vectors = snapshot.vectors_by_kind["entity"]
            ids, scores = vectors.search(queries, 5)
            assert ids.tolist() == [[1, 2], [1, 2]] and np.allclose(scores[0], [1, 0], atol=1e-3)
            assert vectors.search(queries, 1, rows)[0].tolist() == [[2], [2]]
            scores = vectors.scores(queries, rows)
            assert scores[0, 0] == 0 and np.isnan(scores[:, 1]).all()
            assert np.allclose(vectors.matrix(rows), [ROWS[1], ROWS[1] * 0])
            assert snapshot.vectors_by_kind["relation"].search(queries, 5)[0].shape == (2, 0)

    def test_chunks_are_found_by_their_terms(self, tmp_path: Path) -> None:
        """The full text finds words and beginnings, only where it may, and not what was deleted."""
        store = self.filled(tmp_path, 1, 2)
        with store.snapshot() as snapshot:
            hits = snapshot.search_terms(["radium", "镭*"], 10)
            assert sorted(row for row, _ in hits) == [1, 2, 3, 4]
            assert hits == sorted(hits, key=lambda hit: (-hit[1], hit[0]))
            assert [row for row, _ in snapshot.search_terms(["镭*"], 1)] == [3]
            assert [row for row, _ in snapshot.search_terms(["镭*"], 9, allowed=[1, 4])] == [4]
            assert not snapshot.search_terms([], 9) and not snapshot.search_terms(["none"], 9)
        with store.transaction() as transaction:
            transaction.delete_documents([2])
            transaction.rebuild_terms()
        with store.snapshot() as snapshot:
            assert snapshot.term_counts(["radium", "镭*"]) == (2, {"radium": 2, "镭*": 0})

    def test_english_words_are_found_in_other_forms(self, tmp_path: Path) -> None:
        """With another ending, in the question or in the text; short words keep their endings."""
        store = self.make(tmp_path)
        with store.transaction() as transaction:
            put_sample(transaction, 1, "The ghosts painted his walls.")
        with store.snapshot() as snapshot:
            for term in ("ghost", "ghosts", "painting", "paints", "wall"):
                assert snapshot.search_terms([term], 9), term
                assert snapshot.term_counts([term]) == (2, {term: 2})
            assert not snapshot.search_terms(["hi"], 9)
            assert snapshot.search_terms(["ghost", "ghosts"], 9) == snapshot.search_terms(
                ["ghost"], 9
            )
        assert store.check(full=True) == []

    def test_chunks_with_all_words_of_a_name_are_found(self, tmp_path: Path) -> None:
        """In any form and order, in one part of a chunk; the first by row id."""
        store, filler = self.make(tmp_path), " ".join([f"word{n}" for n in range(300)])
        with store.transaction() as transaction:
            put_sample(transaction, 1, "The mines of radium, and Curie, of Paris.")
            put_sample(transaction, 2, f"Radium {filler} {filler} and Curie. Curie")
            put_sample(transaction, 3, "居里夫人发现了镭。")
        with store.snapshot() as snapshot:
            assert snapshot.chunks_with_terms(["curie", "radium", "curie"], 9) == [1, 2]
            assert snapshot.chunks_with_terms(["curie", "radium"], 1) == [1]
            assert snapshot.chunks_with_terms(["居里", "里夫"], 9) == [5, 6]
            assert snapshot.chunks_with_terms(["curie", "wolfram"], 9) == []

    def test_a_long_chunk_is_found_by_its_best_part(self, tmp_path: Path) -> None:
        """Two words in one sentence count more than both of them pages apart; all parts are deleted."""
        store, filler = self.make(tmp_path), " ".join([f"word{n}" for n in range(300)])
        with store.transaction() as transaction:
            put_sample(transaction, 1, f"radium {filler} polonium {filler}")
            put_sample(transaction, 2, f"{filler} {filler} radium and polonium")
        with store.snapshot() as snapshot:
            hits = snapshot.search_terms(["radium", "polonium"], 9)
            assert [row for row, _ in hits] == [3, 4, 1, 2] and hits[1][1] > hits[2][1]
            assert snapshot.term_counts(["word7"])[1]["word7"] > 0
        assert store.check(full=True) == []
        with store.transaction() as transaction:
            transaction.delete_documents([1, 2])
        with store.snapshot() as snapshot:
            assert snapshot.term_counts(["word7"]) == (0, {"word7": 0})

    def test_what_is_undone_leaves_nothing(self, tmp_path: Path) -> None:
        """Deleting a document, and a transaction that raises, leave exactly what was there."""
        store = self.filled(tmp_path, 1)
        before = stored_content(store)
        with pytest.raises(KeyError), store.transaction() as transaction:
            put_sample(transaction, 2)
            transaction.delete_documents([1])
            assert [document.id for document in transaction.documents()] == ["d2"]
            raise KeyError
        with pytest.raises(StorageError), store.transaction() as transaction:
            put_sample(transaction, 2)
            transaction.put_vectors("entity", {99: (b"of no entity", ROWS[0])})
        assert stored_content(store) == before
        self.filled(tmp_path, 2)
        with store.transaction() as transaction:
            transaction.delete_documents([2])
        assert stored_content(store) == before and store.check() == []

    def test_changes_are_seen_by_later_readers(self, tmp_path: Path) -> None:
        """A reader sees one state; what is in memory follows what other open stores commit, also
        vectors of another length.
        """
        store = self.make(tmp_path)
        second_store = self.make(tmp_path)
        with store.view() as view, store.snapshot() as snapshot:
            assert view.generation == snapshot.generation == 0
            self.filled(tmp_path, 1)
            assert not view.documents() and not len(snapshot.graph.entities)
        with store.view() as view:
            assert view.generation == 1
        assert stored_content(store) == stored_content(second_store)
        with second_store.transaction() as transaction:
            put_sample(transaction, 2)
            transaction.put_vectors("chunk", {1: (b"new", ROWS[3])})
        assert stored_content(store) == stored_content(second_store)
        longer = np.eye(5, dtype=np.float32)
        with store.transaction() as transaction:
            transaction.delete_documents([1])
            for kind, rows in ALL_ROWS.items():
                transaction.put_vectors(kind, {row: (b"", longer[row]) for row in rows})
        assert (
            stored_content(store)
            == stored_content(second_store)
            == stored_content(self.make(tmp_path))
        )

    def test_two_folders_know_nothing_of_each_other(self, tmp_path: Path) -> None:
        """Isolation: what one index holds, and its lock, do not concern another one."""
        store = self.filled(tmp_path / "one", 1)
        second_store = self.make(tmp_path / "other")
        same_store = self.make(tmp_path / "one")
        with store.writer_lock(0), second_store.writer_lock(0), store.transaction() as transaction:
            transaction.put_settings({"language": "en", "embedder": "hash"})
            transaction.put_settings({"language": "zh"})
            assert transaction.settings().items() >= {("language", "zh"), ("embedder", "hash")}
            with pytest.raises(LockedError), same_store.writer_lock(0):
                pass
        with same_store.writer_lock(0), second_store.view() as view:
            assert not view.documents() and "language" not in view.settings()

    def test_each_index_has_a_format_and_a_secret_of_its_own(self, tmp_path: Path) -> None:
        """A new index has the current format, and a secret that opening it again does not change."""
        store = self.make(tmp_path / "one")
        second_store = self.make(tmp_path / "other")
        with store.view() as view:
            assert view.settings()["format"] == str(FORMAT)
        assert len(store.mark_secret) >= SHORTEST_SECRET
        assert store.mark_secret != second_store.mark_secret
        assert store.mark_secret == self.make(tmp_path / "one").mark_secret

    def test_a_snapshot_is_searched_by_several_threads(self, tmp_path: Path) -> None:
        """Threads that search one snapshot at the same time get what one thread gets."""

        def hits(query: int) -> list[object]:
            vector = ROWS[query % 4][None]
            ids, scores = snapshot.vectors_by_kind["chunk"].search(vector, 9)
            terms = snapshot.search_terms(["radium", "镭*"], 1 + query)
            names = list(snapshot.chunks([1 + query % 4]).values())
            return [ids.tolist(), scores.tolist(), terms, names]

        queries = range(24)
        with self.filled(tmp_path, 1, 2).snapshot() as snapshot:
            expected = [hits(query) for query in queries]
            with ThreadPoolExecutor(6) as threads:
                assert list(threads.map(hits, queries)) == expected

    def test_a_transaction_inside_another_is_refused(self, tmp_path: Path) -> None:
        """It would wait for the outer one for ever; that one goes on, and is stored."""
        store = self.make(tmp_path)
        with store.transaction() as transaction:
            with pytest.raises(StorageError, match="inside another"), store.transaction():
                pass
            put_sample(transaction, 1)
        with store.view() as view:
            assert [document.id for document in view.documents()] == ["d1"]

    def test_what_was_paid_for_is_kept_until_it_is_deleted(self, tmp_path: Path) -> None:
        """Answers by their keys, of which the last one counts; vectors by the digests of texts."""
        keys = [bytes([number]) * 32 for number in range(4)]
        answers = [Completion("是🙂", "length", Usage(3, 2, 1, 1)), Completion(""), Completion("b")]
        with self.make(tmp_path).transaction(durable=False) as transaction:
            for key, answer in zip(keys, answers, strict=False):
                transaction.put_completion(key, Completion("earlier"))
                transaction.put_completion(key, answer)
            assert [transaction.completion(key) for key in keys] == [*answers, None]
            answers, size = transaction.completion_stats()
            assert answers == 3 and 0 < size < 99
            assert transaction.completion_keys() == dict.fromkeys(keys[:3])
            assert transaction.delete_completions([keys[0], keys[3]]) == 1
            assert transaction.completion(keys[0]) is None
            assert transaction.delete_completions() == 2 and transaction.generation == 0
            transaction.put_cached_vectors({b"one": ROWS[0], b"two": ROWS[1], b"three": ROWS[2]})
            vectors = transaction.cached_vectors([b"one", b"none"])
            assert list(transaction.cached_vectors()) == [b"one", b"two", b"three"]
            assert list(vectors) == [b"one"] and np.allclose(vectors[b"one"], ROWS[0], atol=1e-3)
            assert transaction.delete_cached_vectors([b"one", b"none"]) == 1
            assert transaction.delete_cached_vectors() == 2

    def test_a_purge_leaves_what_quotes_documents_that_are_there(self, tmp_path: Path) -> None:
        """Answers about such a document stay, and queries that show no deleted chunk or name."""
        store = self.filled(tmp_path, 1, 2)
        events = [{"id": "d1-0"}, {"chunk_ids": [f"chunk-{'0' * 16}"]}, {"label": '"Curie" 镭'}, {}]
        with store.transaction() as transaction:
            for key, document in ((b"1", "d1"), (b"2", "d2"), (b"w", "w"), (b"0", None)):
                transaction.put_completion(key, Completion("镭"), document)
            transaction.put_pending(r.PendingDocument(t.Document("x", "w"), 1.0))
            transaction.put_cached_vectors({b"one": ROWS[0]})
            transaction.put_reusable_answer("s", "Who?", ROWS[1], "{}", transaction.generation)
            for number, event in enumerate(events):
                trace = TraceSummary(f"t{number}", "complete", "mix", "Who?", 1.0)
                text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
                transaction.put_trace(trace, [text])
            transaction.delete_documents([2])
            assert transaction.purge(['"Curie" 镭', "radium"]) == (2, 2)
            remaining_keys = [
                key for key in (b"1", b"2", b"w", b"0") if transaction.completion(key)
            ]
            assert remaining_keys == [b"1", b"w"] and not transaction.cached_vectors([b"one"])
            assert [trace.id for trace in transaction.traces()] == ["t3", "t0"]
            assert not transaction.reusable_answers("s")

    def test_answers_are_reused_in_their_generation(self, tmp_path: Path) -> None:
        """A stored answer is given for its signature until documents or graph change."""
        store = self.make(tmp_path)
        with store.transaction() as transaction:
            transaction.put_reusable_answer("s", "Who?", ROWS[1], '{"text": "猫"}', 0)
            transaction.put_reusable_answer("t", "Who?", ROWS[1], "{}", 7)
            ((question, vector, answer),) = transaction.reusable_answers("s")
            assert (question, answer) == ("Who?", '{"text": "猫"}') and (vector == ROWS[1]).all()
            assert not transaction.reusable_answers("t")
        with self.filled(tmp_path, 1).view() as view:
            assert not view.reusable_answers("s")

    def test_traces_are_listed_newest_first(self, tmp_path: Path) -> None:
        """A query has its events in order; only the newest queries are kept."""
        events = ['{"stage":"keywords"}', '{"stage":"answer","text":"猫"}']
        traces = [TraceSummary(f"t{n}", "incomplete", "mix", "Who?", float(n)) for n in range(3)]
        with self.make(tmp_path).transaction(durable=False) as transaction:
            for trace in traces:
                transaction.put_trace(trace, events[:1])
                transaction.put_trace(trace, events[1:])
            done = replace(traces[0], status="complete")
            transaction.put_trace(done, [])
            assert transaction.traces() == [traces[2], traces[1], done]
            assert transaction.traces(prefix="t1") == [traces[1]]
            assert transaction.traces(limit=1) == traces[2:]
            assert transaction.trace_events(trace_id="t1") == [("t1", event) for event in events]
            answers = [(f"t{n}", events[1]) for n in (2, 1, 0)]
            assert transaction.trace_events(stage="answer") == answers
            assert transaction.delete_traces(keep=1) == 2
            assert transaction.traces() == traces[2:]
            assert not transaction.trace_events(trace_id="t0")

    def test_vacuum_leaves_a_copy_that_is_used(self, tmp_path: Path) -> None:
        """Another process may compare it: vacuum says what it left, and whole it stays; when the other has
        ended, nothing is left.
        """
        store = self.filled(tmp_path, 1)
        second_store = self.make(tmp_path)
        before = stored_content(store)
        with store.temporary_copy() as address:
            with second_store.transaction() as transaction:
                transaction.delete_documents([1])
            with pytest.raises(LockedError, match="run vacuum"):
                second_store.vacuum()
            with contextlib.closing(open_store(address, create=False)) as copy:
                assert stored_content(copy) == before and copy.check() == []
        second_store.vacuum()
        assert not has_index(address)

    def test_what_is_closed_stays_closed(self, tmp_path: Path) -> None:
        """Closing twice does nothing; using a closed store raises; what was stored is still there."""
        store = self.filled(tmp_path, 1)
        before = stored_content(store)
        store.vacuum()
        store.close()
        store.close()
        for use in (store.view, store.snapshot, store.transaction):
            with pytest.raises(StorageError), use():
                pass
        assert stored_content(self.make(tmp_path)) == before
