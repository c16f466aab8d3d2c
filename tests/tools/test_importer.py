"""Importing directories of LightRAG and nano-graphrag: what comes over, and what is reported."""

import gzip
from pathlib import Path

import networkx as nx
import pytest

from lightrag_jsonl import ConfigError, Document, LightRAG
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.tools.importer import ImportCounts, ImportReport, import_index
from tests.tools.foreign import Foreign, small

REAL = {
    "wd-nano-carol": ImportCounts(1, 42, 406, 329),
    "wd-lightrag0-carol": ImportCounts(1, 42, 378, 259),
    "wd-lightrag0-zh-anaesthesia": ImportCounts(3, 20, 559, 371),
    "wd-lightrag14-film": ImportCounts(1, 3, 135, 100),
    "wd-lightrag149-zh-recipes": ImportCounts(50, 50, 134, 83),
}


@pytest.fixture
def foreign(tmp_path: Path) -> Foreign:
    return small(tmp_path / "there")


def imported(folder: Path, tmp_path: Path) -> tuple[ImportReport, nx.Graph]:
    with LightRAG(tmp_path / "kb") as rag:
        report = rag.run(import_index, folder)
        assert rag.admin.check() == []
        return report, rag.graph.copy()


def unpacked(folder: Path, target: Path) -> Path:
    """A copy of a shared folder, whose larger files are gzipped."""
    target.mkdir()
    for path in folder.iterdir():
        data = path.read_bytes()
        packed = path.suffix == ".gz"
        name = path.stem if packed else path.name
        (target / name).write_bytes(gzip.decompress(data) if packed else data)
    return target


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_directories_come_through_whole(shared_data: Path, tmp_path: Path, name: str) -> None:
    """Every document, chunk, node and edge is there and can be queried, short forms at the names that they
    belong to; a deletion takes all of it out again.
    """
    folder = unpacked(shared_data / name, tmp_path / "there")
    with LightRAG(tmp_path / "kb", language="zh" if "-zh-" in name else "en") as rag:
        report = rag.run(import_index, folder)
        status = rag.status()
        joined = sum(len(entity.aliases) for entity in rag.entities.list(limit=None))
        assert report.read == REAL[name] and not report.failures
        assert (status.entities, status.relations) == (
            report.stored.entities,
            report.stored.relations,
        )
        assert status.entities + joined == report.read.entities
        assert status.relations <= report.read.relations
        assert not any(entity.startswith('"') for entity in rag.graph)
        numbered = "entity \" EBENEZER SCROOGE\": it is 'EBENEZER SCROOGE (2)' here"
        assert len(report.not_imported) == ("nano" in name)
        assert all(one.startswith(numbered) for one in report.not_imported)
        if "anaesthesia" in name:
            context = rag.retrieve("慢性阻塞性肺病患者如何使用支气管扩张剂？")
            assert "支气管扩张剂" in {one.name for one in context.entities} and context.chunks
        rag.delete(*report.documents)
        assert (rag.status().entities, rag.status().relations) == (0, 0)


def test_quotes_and_pages_do_not_get_in_the_way(foreign: Foreign, tmp_path: Path) -> None:
    """Names lose the quotes of old versions; a form feed does not cut the document."""
    report, graph = imported(foreign.write(), tmp_path)
    assert report.stored == report.read == ImportCounts(1, 2, 2, 1) and report.not_imported == ()
    assert dict(graph.nodes(data="entity_type")) == {"SCROOGE": "person", "MARLEY": "person"}
    descriptions = set(graph.nodes["SCROOGE"]["description"].split("\n"))
    assert descriptions == {"He kept a house.", "He was there."}
    assert graph.nodes["SCROOGE"]["chunk_ids"].count("chunk-") == 2
    assert graph.edges["SCROOGE", "MARLEY"]["weight"] == 8.0


def test_chunks_that_are_not_whole_in_the_text(foreign: Foreign, tmp_path: Path) -> None:
    """What a cut inside a character left at a chunk's ends does not matter; a chunk that is not in its
    document becomes a page and keeps its mentions.
    """
    foreign.chunk("doc-a-2", "doc-a", 2, "\ufffd骞出使西域\ufffd ")
    foreign.node("张骞", "doc-a-2", "张骞出使西域。")
    foreign.chunk("doc-a-3", "doc-a", 3, "Words that were never there.")
    foreign.node("Fezziwig", "doc-a-3", "He dances.")
    report, graph = imported(foreign.write(), tmp_path)
    assert report.stored == ImportCounts(1, 4, 4, 1) and report.not_imported == ()
    for name in ("张骞", "Fezziwig"):
        assert graph.nodes[name]["chunk_ids"].count("chunk-") == 1


def test_a_mark_of_files_is_no_text(foreign: Foreign, tmp_path: Path) -> None:
    """U+FEFF at the beginning of a document there is left out, also of the first chunk."""
    foreign.document("doc-b", "\ufeffAsh fled.", ["\ufeffAsh fled."])
    with LightRAG(tmp_path / "kb") as rag:
        report = rag.run(import_index, foreign.write())
        assert report.stored.chunks == 3 and rag.admin.check() == []
        assert "\ufeff" not in rag.retrieve("Who fled?").prompt


def test_documents_are_titled_as_files_read_here(foreign: Foreign, tmp_path: Path) -> None:
    """Without the suffix of a format, so that a question can name the title."""
    paths = {"C:\\notes\\The Mill.txt": "The Mill", "Version 1.2 of it": "Version 1.2 of it"}
    for path in paths:
        foreign.document(path, f"About {path}.", [f"About {path}."])
        foreign.stores["full_docs"][path] = {"content": f"About {path}.", "file_path": path}
    with LightRAG(tmp_path / "kb") as rag:
        rag.run(import_index, foreign.write())
        titles = {one.source: one.title for one in rag.documents() if one.source}
    assert titles == paths


def test_what_has_no_counterpart(foreign: Foreign, tmp_path: Path) -> None:
    """Documents without chunks, chunks without documents, loops, nameless nodes and names that are
    taken are listed; entities and relations without a known chunk get a document of their own.
    """
    foreign.stores["full_docs"]["doc-new"] = {"content": "Not processed yet."}
    foreign.chunk("stray", "doc-gone", 0, "A text whose document is gone.")
    foreign.node("Gone", "stray", "It is gone.")
    foreign.node("Tiny Tim", "", "He walks with a crutch.")
    foreign.node("tiny tim", "chunk-gone", "A nephew.")
    foreign.edge("Tiny Tim", "tiny tim", "manual_creation", 3.0)
    foreign.edge('"MARLEY"', '"MARLEY"', "doc-a-1")
    foreign.node('""', "doc-a-1")
    foreign.edge('""', '"MARLEY"', "doc-a-1")
    report, graph = imported(foreign.write(), tmp_path)
    assert sorted(one.split(":")[0] for one in report.not_imported) == [
        "document doc-gone",
        "document doc-new",
        'entity ""',
        "entity tiny tim",
        'relation "MARLEY" — ""',
        'relation "MARLEY" — "MARLEY"',
    ]
    assert report.stored == ImportCounts(3, 6, 5, 2)
    assert graph.nodes["Tiny Tim"]["description"] == "He walks with a crutch."
    assert graph.edges["Tiny Tim", "tiny tim (2)"]["weight"] == 3.0 and "Gone" in graph


def test_importing_twice_changes_nothing_and_can_be_undone(
    foreign: Foreign, tmp_path: Path
) -> None:
    """No model is asked, even where a summary is due; other documents keep their mentions."""
    foreign.node("Ghost", "doc-a-0<SEP>doc-a-1", "<SEP>".join(f"Fact {n}." for n in range(20)))
    folder, llm = foreign.write(), ScriptedLLM([])
    with LightRAG(tmp_path / "kb", llm=llm) as rag:
        record = {"type": "entity", "name": "Scrooge", "entity_type": "miser", "description": "x"}
        rag.insert_records(Document("Scrooge was a miser in London.", id="own"), [record])
        own = rag.admin.export_text("jsonl")
        first, before = rag.run(import_index, folder), rag.admin.export_text("jsonl")
        assert rag.run(import_index, folder) == first and rag.admin.export_text("jsonl") == before
        rag.delete(*first.documents)
        assert rag.admin.export_text("jsonl") == own
    assert llm.requests == []


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("kv_store_text_chunks.json", b"{", "invalid JSON"),
        ("kv_store_full_docs.json", b"[]", "not a key-value store"),
        ("graph_chunk_entity_relation.graphml", b"<graphml>", "not GraphML"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_damaged_files_are_named(
    foreign: Foreign, tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    """A broken file ends the import before anything is stored; so does a folder above the right one,
    with a hint.
    """
    folder = foreign.write()
    with LightRAG(tmp_path / "kb") as rag:
        with pytest.raises(ConfigError, match="there"):
            rag.run(import_index, tmp_path)
        (folder / name).write_bytes(content)
        with pytest.raises(ConfigError, match=words) as caught:
            rag.run(import_index, folder)
        assert name in str(caught.value) and rag.status().documents == {}


@pytest.mark.parametrize("name", ["graph_chunk_entity_relation.graphml", "kv_store_full_docs.json"])
def test_links_in_a_working_directory_are_refused(
    foreign: Foreign, tmp_path: Path, name: str
) -> None:
    """A working directory from somebody else cannot bring texts of this machine into an index."""
    foreign.write()
    elsewhere = (foreign.folder / name).rename(tmp_path / "elsewhere")
    (foreign.folder / name).symlink_to(elsewhere)
    with pytest.raises(ConfigError, match="is a symbolic link"):
        imported(foreign.folder, tmp_path)
