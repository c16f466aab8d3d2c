"""Several indexes asked as one: what they hold and find is what one index of all holds and finds."""

import asyncio
import contextlib
import inspect
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from lightrag_jsonl import (
    AsyncLightRAG,
    ConfigError,
    Document,
    LightRAG,
    NotFoundError,
    SettingsError,
    StorageError,
)
from lightrag_jsonl.storage.joined.rows import JoinedRows, joined_entity, joined_relation
from lightrag_jsonl.storage.joined.views import JoinedView
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.testing import HashEmbedder, Request, ScriptedLLM
from tests.indexing.libraries import libraries, pending, slow
from tests.kit import RANKING_MODES, Record, View, entity, filled, index, relation, view
from tests.storage.contract import sample_entities, sample_relation

FERRIES = (
    "The ferry Halcyon sails from Port Ellory to Saint Brannock. Captain Ines Falk commands the Halcyon.",
    "Ines Falk was born in Saint Brannock. Her brother Tomas Falk keeps the lighthouse of Skarn.",
    "The lighthouse of Skarn was built by Odo Renning in 1871. It stands above Port Ellory.",
    "Odo Renning also built the mole of Kessington. The stone came from the quarry of Belwater.",
    "The quarry of Belwater belongs to the Merrow family. Lena Merrow sold a part of it in 1902.",
    "Lena Merrow founded the Kessington Gazette. Its first editor was Tomas Falk.",
    "Port Ellory has a market every Tuesday. Fishers from Skarn sell herring there.",
    "The Halcyon was repaired in Kessington. The yard of Arvid Holm did the work.",
)
QUESTIONS = (
    "Who commands the Halcyon?",
    "Who built the lighthouse of Skarn?",
    "Who was the first editor of the Kessington Gazette?",
    "Where was Ines Falk born?",
)
SHIPS = (
    "望海号从青石港开往云岛。船长林岚指挥望海号。",
    "林岚出生在云岛。她的弟弟林峰看守白崖灯塔。",
    "白崖灯塔由周恒于1871年建造。灯塔在青石港旁边。",
    "周恒还建造了东陵码头。石料来自北溪采石场。",
)


def documents(texts: Sequence[str] = FERRIES) -> list[Document]:
    return [
        Document(
            text,
            id=f"d{number}",
            title=f"Note {number}",
            date=f"{1990 + number}-01-01",
            metadata={"shelf": number % 2},
        )
        for number, text in enumerate(texts)
    ]


def made(folder: Path, texts: Sequence[Document], **parts: Any) -> Path:
    """The folder of an index of these documents."""
    with LightRAG(folder, **parts) as rag:
        rag.insert(texts, progress=False)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of all documents, `all`, and four of two documents each."""
    root = tmp_path_factory.mktemp("several")
    made(root / "all", documents())
    for part in range(4):
        made(root / f"part{part}", documents()[part::4])
    return root


@pytest.fixture
def one(folders: Path) -> Iterator[LightRAG]:
    with LightRAG(folders / "all") as rag:
        yield rag


@pytest.fixture
def several(folders: Path) -> Iterator[LightRAG]:
    with LightRAG([folders / f"part{part}" for part in range(4)]) as rag:
        yield rag


def without_order(stored: View) -> dict[str, Any]:
    """What an index holds, but for its vectors and for the order of the lines in a description."""

    def sorted_lines(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            [sorted(text.split("\n")) if isinstance(text, str) else text for text in values]
        )

    return {
        "documents": stored.documents,
        "chunks": stored.chunks,
        "entities": {key: sorted_lines(row) for key, row in stored.entities.items()},
        "relations": {ends: sorted_lines(row) for ends, row in stored.relations.items()},
        "dates": stored.dates,
        "terms": {
            term: (count, sorted(id for id, _ in hits))
            for term, (count, hits) in stored.terms.items()
        },
    }


# ── what they hold ──────────────────────────────────────────────────────────────


@slow
@given(libraries, st.integers(1, 3))
def test_parts_hold_what_one_index_of_all_holds(library: list[list[Record]], parts: int) -> None:
    """Documents, passages, entities, relations, dates and the counts of terms, whatever the documents say."""
    every = [pending(number, records) for number, records in enumerate(library)]

    async def run(root: Path) -> None:
        folders = [root / f"part{part}" for part in range(parts + 1)]
        for folder, some in [
            (root / "once", every),
            *[(folder, every[part :: parts + 1]) for part, folder in enumerate(folders)],
        ]:
            async with index(folder) as rag:
                await rag.engine.indexing.insert(some)
        joined = view(folders)
        assert without_order(joined) == without_order(view(root / "once"))

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=4),
    st.lists(st.integers(1, 20), max_size=10),
    st.randoms(use_true_random=False),
)
def test_each_row_of_a_part_is_found_again(sizes: list[int], rows: list[int], random: Any) -> None:
    """A joined row leads to all rows that count as it, and to no other, whichever rows are one."""
    total = sum(sizes)
    owners = np.array([0, *[random.randint(1, row) for row in range(1, total + 1)]])
    joined = JoinedRows(sizes, owners)
    wanted = np.array(rows, np.int64)
    for part, size in enumerate(sizes):
        positions, own_rows = joined.in_part(part, wanted)
        found = set(zip(positions.tolist(), own_rows.tolist(), strict=True))
        expected = {
            (position, row)
            for position, owner in enumerate(rows)
            for row in range(1, size + 1)
            if owners[joined.starts[part] + row] == owner
        }
        assert found == expected


def test_every_read_of_documents_and_graph_is_joined() -> None:
    """A new method of a view must say how several indexes answer it: it would ask an empty one."""
    left_in_a_store_of_its_own = {
        *("traces", "trace_events", "completion", "completion_keys", "completion_stats"),
        *("reusable_answers", "job", "newest_jobs", "open_jobs", "job_states", "job_bytes"),
        *("saved_states", "saved_state", "kept_bytes", "kept_rows"),
        *("rows_to_restore", "rows_at", "documents_at", "rows_by_key"),
    }
    of_writers = {
        *("next_ids", "pending_file", "pending_rows", "purge_marks", "descriptions"),
        *("vectors", "vector_digests", "cached_vectors", "vector_length", "vector_matrix"),
    }
    of_other_reads = {"entities", "relations"}
    reads = {name for name, _ in inspect.getmembers(StoreView) if not name.startswith("_")}
    joined = {name for name in vars(JoinedView) if not name.startswith("_")}
    assert reads - joined == left_in_a_store_of_its_own | of_writers | of_other_reads


def test_names_in_two_parts_are_one(several: LightRAG, one: LightRAG) -> None:
    """An entity has the passages and relations of all parts, and stands in lists once."""
    falk = several.entities.neighbours("ines falk")
    assert set(falk.entity.chunk_ids) == set(one.entities.get("Ines Falk").chunk_ids)
    assert len(falk.entity.chunk_ids) == 2
    assert [entity.name for entity in several.entities.list()] == [
        entity.name for entity in one.entities.list()
    ]
    assert [
        {relation.source, relation.target, relation.weight}
        for relation in several.entities.relations(limit=5)
    ] == [
        {relation.source, relation.target, relation.weight}
        for relation in one.entities.relations(limit=5)
    ]
    assert several.status().entities == one.status().entities
    assert several.graph.number_of_edges() == one.graph.number_of_edges()
    assert json.loads(several.admin.export_text("json")) != {}
    assert several.admin.export_text("csv").count("\n") == one.admin.export_text("csv").count("\n")


async def test_a_name_merged_in_one_part_stands_for_its_entity_in_all(tmp_path: Path) -> None:
    """The merge of names in one part joins the names of another, also if that is named first."""
    async with index(tmp_path / "a") as rag:
        await rag.insert_records("Bess met Ann.", [entity("Bess"), entity("Ann")])
        await rag.entities.merge(["Bess"], into="Elizabeth")
    async with index(tmp_path / "b") as rag:
        await rag.insert_records(
            "Bess lives in York.",
            [entity("Bess"), entity("York"), relation("York", "Bess", "Bess lives in York.")],
        )
    for order in (("a", "b"), ("b", "a")):
        async with index([tmp_path / name for name in order]) as rag:
            assert [found.name for found in await rag.entities.list()] == [
                "Ann",
                "Elizabeth",
                "York",
            ]
            bess = await rag.entities.neighbours("Bess")
            assert bess.entity.name == "Elizabeth" and len(bess.entity.chunk_ids) == 2
            (lives,) = bess.relations
            assert (lives.source, lives.target) == ("York", "Elizabeth")


# ── what they find ──────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("mode", RANKING_MODES)
def test_questions_find_the_same(several: LightRAG, one: LightRAG, mode: Any) -> None:
    """The same passages, the same entities and relations, and the same first passage."""
    for question in QUESTIONS:
        ours, theirs = several.retrieve(question, mode=mode), one.retrieve(question, mode=mode)
        assert {chunk.id for chunk in ours.chunks} == {chunk.id for chunk in theirs.chunks}
        assert ours.chunks[0].id == theirs.chunks[0].id
        assert {found.name for found in ours.entities} == {found.name for found in theirs.entities}
        assert ours.documents == theirs.documents


def test_citations_tell_their_index_and_lead_to_the_text(several: LightRAG) -> None:
    """An answer cites passages of several parts; each citation names its index, and its text stands there."""
    answer = several.query(QUESTIONS[2])
    assert len({citation.index for citation in answer.citations}) > 1
    for citation in answer.citations:
        number = int(citation.document_id.removeprefix("d"))
        assert citation.index == f"part{number % 4}"
        (page,) = several.pages(citation.document_id)
        assert page.text[citation.start : citation.end] == citation.text
    assert f", {answer.citations[0].index}" in str(answer)


def test_traces_are_whole(several: LightRAG, folders: Path) -> None:
    """A question leaves a trace with all its sources; it ends with the instance, and no index keeps it."""
    answer = several.query(QUESTIONS[0])
    trace = several.traces.get(answer.trace_id or "")
    assert trace.citations == answer.citations and trace.status == "complete"
    assert several.traces.verify() == ()
    assert set(several.traces.sources(trace).chunks) == set(trace.chunk_ids)
    assert answer.citations[0].text in several.traces.page(trace.id)
    with LightRAG(folders / "part0") as rag:
        assert rag.traces.list() == ()


@pytest.mark.slow
def test_filters_and_moments_hold_in_all_parts(several: LightRAG, one: LightRAG) -> None:
    """`where` and `as_of` let through the same passages as in one index."""
    for limits in (
        {"where": {"shelf": 1}},
        {"where": {"date": {"$gte": "1993"}}},
        {"as_of": "1994-06"},
    ):
        for mode in RANKING_MODES:
            ours = several.retrieve(QUESTIONS[1], mode=mode, **limits)
            theirs = one.retrieve(QUESTIONS[1], mode=mode, **limits)
            assert {chunk.id for chunk in ours.chunks} == {chunk.id for chunk in theirs.chunks}
            assert 0 < len(ours.chunks) < len(FERRIES)


def test_filters_know_the_ids_that_are_listed(tmp_path: Path) -> None:
    """Where two indexes have a document of one id, each id that is shown means one document."""
    texts = {"east": "The heron nests in the reeds.", "west": "鹭 🪶 The heron fishes at noon."}
    for name, text in texts.items():
        with LightRAG(tmp_path / name) as rag:
            rag.insert(Document(text, id="heron"))
    with LightRAG([tmp_path / "east", tmp_path / "west"]) as rag:
        ids = [document.id for document in rag.documents()]
        assert len({*ids}) == 2
        for id, text in zip(ids, texts.values(), strict=True):
            (chunk,) = rag.retrieve("heron", mode="naive", where={"id": id}).chunks
            assert (chunk.document_id, chunk.text) == (id, text)
        assert rag.retrieve("heron", mode="naive", where={"id": {"$nin": ids}}).empty
        told = rag.query("heron", mode="naive", where={"shelf": 1}).text
        assert "No document has shelf; the fields are content_keywords, date, id" in told


async def test_what_no_longer_holds_is_hidden_in_each_part(tmp_path: Path) -> None:
    """A later document in one part takes the place of an earlier claim in another."""
    texts = {
        "a": ("Rosa Lind heads the yard.", "2001-01-01", "Rosa Lind"),
        "b": ("Ivo Quist heads the yard.", "2010-01-01", "Ivo Quist"),
    }
    for name, (text, date, person) in texts.items():
        records = [
            entity(person),
            entity("the yard", kind="company"),
            relation(person, "the yard", text, keywords=["heads"], valid_from=date),
        ]
        async with index(tmp_path / name) as rag:
            await rag.insert_records(Document(text, id=name, date=date), records)
    async with index([tmp_path / "a", tmp_path / "b"]) as rag:
        early = await rag.retrieve("Who heads the yard?", as_of="2005")
        assert [chunk.document_id for chunk in early.chunks] == ["a"]
        assert [found.source for found in early.relations] == ["Rosa Lind"]
        conflicts = await rag.conflicts(functional_kinds=["^heads"], explained=True)
        assert len(conflicts) == 1


@pytest.mark.slow
def test_a_model_reads_the_passages_of_all_parts(folders: Path) -> None:
    """A streamed answer by a model cites by number what the prompt has of each part."""

    def answer(request: Request) -> str:
        return "It was Tomas Falk [1], and she founded it [2]."

    with LightRAG(
        [folders / f"part{part}" for part in range(4)],
        llm=ScriptedLLM(answer),
        models={"keywords": "none"},
    ) as rag:
        pieces = rag.stream(QUESTIONS[2])
        assert "".join(pieces) == pieces.answer.text
        assert [citation.number for citation in pieces.answer.citations] == [1, 2]


@pytest.mark.slow
def test_chinese_names_join(tmp_path: Path) -> None:
    """林岚 in two parts is one entity, and a Chinese question finds both passages."""
    made(tmp_path / "全部", documents(SHIPS), language="zh")
    parts = [
        made(tmp_path / f"部分{part}", documents(SHIPS)[part::2], language="zh")
        for part in range(2)
    ]
    with LightRAG(parts) as several, LightRAG(tmp_path / "全部") as one:
        assert several.status().language == "zh"
        assert [found.name for found in several.entities.list()] == [
            found.name for found in one.entities.list()
        ]
        for mode in RANKING_MODES:
            ours = several.retrieve("谁建造了白崖灯塔？", mode=mode)
            theirs = one.retrieve("谁建造了白崖灯塔？", mode=mode)
            assert ours.chunks[0].id == theirs.chunks[0].id
            assert {chunk.id for chunk in ours.chunks} == {chunk.id for chunk in theirs.chunks}
        citation = several.query("谁建造了白崖灯塔？").citations[0]
        assert citation.index == "部分0" and "周恒" in citation.text


def test_a_part_of_two_passages_counts_beside_a_large_one(tmp_path: Path) -> None:
    """A word that all passages of a small part have is as rare there as in all."""
    made(tmp_path / "large", [Document(f"Barge {n} carries salt.", id=f"l{n}") for n in range(60)])
    made(tmp_path / "small", [Document("The zeppelin carries mail.", id="s")])
    with LightRAG([tmp_path / "large", tmp_path / "small"]) as rag:
        context = rag.retrieve("Which zeppelin carries mail?", mode="naive")
        assert context.chunks[0].document_id == "s"


def test_documents_of_the_same_id_are_told_apart(tmp_path: Path) -> None:
    """Two indexes may have different documents of one id: both are found, cited and opened."""
    made(tmp_path / "a", [Document("Ulla Brand drives a red tram.", id="notes")])
    made(tmp_path / "b", [Document("Ulla Brand drives a blue lorry.", id="notes")])
    with LightRAG([tmp_path / "a", tmp_path / "b"]) as rag:
        assert [document.id for document in rag.documents()] == ["notes", "notes (b)"]
        context = rag.retrieve("What does Ulla Brand drive?")
        assert {chunk.document_id for chunk in context.chunks} == {"notes", "notes (b)"}
        answer = rag.query("What does Ulla Brand drive?")
        for citation in answer.citations:
            (page,) = rag.pages(citation.document_id)
            assert page.text[citation.start : citation.end] == citation.text
            assert citation.index == ("b" if citation.document_id == "notes (b)" else "a")
        assert rag.traces.verify() == ()


def test_a_change_of_a_part_is_seen(tmp_path: Path) -> None:
    """What is inserted into a part, and deleted, while several are open counts for the next question."""
    a = made(tmp_path / "a", documents()[:1])
    b = made(tmp_path / "b", documents()[1:2])
    with LightRAG([a, b]) as rag, LightRAG(a) as writer:
        _ = rag.retrieve(QUESTIONS[1])
        writer.insert(documents()[2:3], progress=False)
        assert rag.retrieve(QUESTIONS[1]).chunks[0].document_id == "d2"
        writer.delete("d2")
        found = rag.retrieve(QUESTIONS[1]).chunks
        assert {chunk.document_id for chunk in found} == {"d0", "d1"}


# ── what is refused ─────────────────────────────────────────────────────────────


def test_writing_is_refused_with_what_to_do(several: LightRAG) -> None:
    """Every way to change an index says that one must be opened alone; nothing is changed."""
    before = several.status()
    for write in (
        lambda: several.insert("A text."),
        lambda: several.insert_records("A text.", []),
        lambda: several.resume(),
        lambda: several.retry(),
        lambda: several.delete("d0"),
        lambda: several.delete("d0", purge=True),
        lambda: several.entities.merge(["Skarn"], into="Port Ellory"),
        lambda: several.entities.create("Ada", type="person", description="", by="me"),
        lambda: several.admin.snapshot("now"),
        lambda: several.admin.rebuild(),
        lambda: several.admin.vacuum(),
    ):
        with pytest.raises(
            ConfigError, match=r"nothing is written to them: open one of them alone"
        ):
            write()
    assert several.status() == before


def test_a_missing_or_broken_index_is_named(folders: Path, tmp_path: Path) -> None:
    """A folder without an index, one named twice, a damaged file and another embedder: the error names it."""
    part = folders / "part0"
    with pytest.raises(StorageError, match=r"no index in .*absent"):
        LightRAG([part, tmp_path / "absent"])
    assert not (tmp_path / "absent").exists()
    with pytest.raises(ConfigError, match="part0 is named twice"):
        LightRAG([part, str(part)])
    with pytest.raises(ConfigError, match="no index is named"):
        LightRAG([])
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "index.sqlite").write_bytes(b"no database" * 1_000)
    with pytest.raises(StorageError, match="broken"):
        LightRAG([part, tmp_path / "broken"])
    made(tmp_path / "other", documents()[:1], embedder=HashEmbedder(dim=32))
    with pytest.raises(SettingsError, match=r"part0 has .*other has .*reembed"):
        LightRAG([part, tmp_path / "other"])


def test_each_part_is_checked_and_named(several: LightRAG, folders: Path, tmp_path: Path) -> None:
    """Sound parts have no problems, though a name in two has another description than in each; those of a
    damaged part name it.
    """
    assert several.admin.check(full=True) == []
    damaged = shutil.copytree(folders / "part1", tmp_path / "damaged")
    with contextlib.closing(sqlite3.connect(damaged / "index.sqlite")) as connection:
        connection.execute("UPDATE entities SET description = 'It is elsewhere.'")
        connection.commit()
    with LightRAG([folders / "part0", damaged]) as rag:
        problems = rag.admin.check(full=True)
    assert problems and all(problem.startswith(f"{damaged}: ") for problem in problems)


def test_an_unknown_name_is_unknown_to_all(several: LightRAG) -> None:
    """Names and documents that no part has are not found."""
    with pytest.raises(NotFoundError):
        several.entities.get("Nobody Known")
    with pytest.raises(NotFoundError):
        several.pages("d99")


def test_a_list_of_one_is_that_index(tmp_path: Path) -> None:
    """A single address in a list opens the index itself, for writing, too."""
    with LightRAG([tmp_path / "kb"]) as rag:
        assert rag.insert(FERRIES[0], progress=False).documents


async def test_the_temporary_store_goes_with_the_instance(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing leaves no file behind, and further calls say that it is closed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(tmp_path.glob("lightrag-*"))
    rag = AsyncLightRAG([folders / "part0", folders / "part1"])
    await rag.query(QUESTIONS[0])
    await rag.close()
    assert set(tmp_path.glob("lightrag-*")) <= before
    with contextlib.suppress(StorageError):
        await rag.query(QUESTIONS[0])
        raise AssertionError("a closed index answered")


@pytest.mark.parametrize("order", [1, -1])
def test_an_index_without_vectors_of_names_is_asked_beside_one_with_them(
    tmp_path: Path, order: int
) -> None:
    """Names that only quote their passages have no vectors, and an index read by rules has no others."""
    by_rules = made(tmp_path / "rules", documents(FERRIES[:4]))
    with LightRAG(tmp_path / "read") as rag:
        for document, name in zip(documents(FERRIES)[4:], ("Lena Merrow", "Skarn"), strict=False):
            rag.insert_records(document, [entity(name, f"{name} is known here.")])
    with LightRAG([by_rules, tmp_path / "read"][::order]) as several:
        context = several.retrieve("Where were Ines Falk and Lena Merrow?", mode="mix")
        assert {chunk.document_id for chunk in context.chunks} >= {"d1", "d4"}


def test_a_field_of_a_part_is_one_of_the_whole() -> None:
    """A field that a row is given one day must be joined, too; summaries belong to one index."""
    own = {"summary", "summarized_to", "summarized_mentions", "reversed"}
    entity_row = filled(structs.replace(sample_entities()[0], edited={"type": "person"}))
    relation_row = filled(structs.replace(sample_relation(), edited={"weight": 5}))
    entities = joined_entity(7, "curie", "Curie", [entity_row, entity_row])
    relations = joined_relation(7, (1, 2), [relation_row, relation_row])
    unset = type(entities)(id=0, key=""), type(relations)(id=0, low=0, high=0)
    for joined, empty in zip((entities, relations), unset, strict=True):
        names = [item.name for item in structs.fields(joined) if item.name not in own]
        assert [name for name in names if getattr(joined, name) == getattr(empty, name)] == []
