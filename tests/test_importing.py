"""Importing working directories of LightRAG and nano-graphrag: what comes over, and what is said of the rest."""

from __future__ import annotations

import gzip
import itertools
import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import networkx as nx
import pytest
from click.testing import CliRunner

from lightrag_jsonl import ConfigError, Document, LightRAG
from lightrag_jsonl.cli import main
from lightrag_jsonl.importing import ImportReport
from lightrag_jsonl.migration import folder
from lightrag_jsonl.migration.answers import pair, subject
from lightrag_jsonl.migration.folder import read_folder
from lightrag_jsonl.migration.mapping import Counts
from lightrag_jsonl.testing import ScriptedLLM

REAL = {
    "wd-nano-carol": Counts(1, 42, 406, 329),
    "wd-lightrag0-carol": Counts(1, 42, 378, 259),
    "wd-lightrag0-zh-anaesthesia": Counts(3, 20, 559, 371),
    "wd-lightrag14-film": Counts(1, 3, 135, 100),
    "wd-lightrag149-zh-recipes": Counts(50, 50, 134, 83),
}
TEXT = "Scrooge kept a counting house.\fMarley was dead. 张骞出使西域。"


class Foreign:
    """A small working directory, written as the other packages write theirs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.graph = nx.Graph()
        self.stores: dict[str, dict[str, object]] = {"full_docs": {}, "text_chunks": {}}

    def document(self, id: str, text: str, chunks: Iterable[str]) -> None:
        """A document with its chunks, whose ids are its own with a number."""
        self.stores["full_docs"][id] = {"content": text}
        for order, chunk in enumerate(chunks):
            self.chunk(f"{id}-{order}", id, order, chunk)

    def chunk(self, id: str, document: str, order: int, text: str) -> None:
        """One chunk."""
        entry = {"content": text, "chunk_order_index": order, "full_doc_id": document}
        self.stores["text_chunks"][id] = entry

    def node(self, name: str, chunks: str, description: str = "") -> None:
        """One node; parts are joined by <SEP>."""
        self.graph.add_node(name, entity_type="person", description=description, source_id=chunks)

    def edge(self, source: str, target: str, chunks: str, weight: float = 1.0) -> None:
        """One edge."""
        self.graph.add_edge(
            source, target, weight=weight, description="They met.", source_id=chunks
        )

    def write(self) -> Path:
        """All files."""
        self.folder.mkdir(exist_ok=True)
        nx.write_graphml(self.graph, self.folder / "graph_chunk_entity_relation.graphml")
        for name, store in self.stores.items():
            text = json.dumps(store, ensure_ascii=False)
            (self.folder / f"kv_store_{name}.json").write_text(text, encoding="utf-8")
        return self.folder


@pytest.fixture
def foreign(tmp_path: Path) -> Foreign:
    """A directory with one document of two chunks and two connected nodes."""
    made = Foreign(tmp_path / "there")
    made.document("doc-a", TEXT, ["Scrooge kept a counting house.", "Marley was dead."])
    made.node('"SCROOGE"', "doc-a-0<SEP>doc-a-1", '"He kept a house."<SEP>"He was there."')
    made.node('"MARLEY"', "doc-a-1", '"Marley was dead."')
    made.edge('"SCROOGE"', '"MARLEY"', "doc-a-1", 8.0)
    return made


def imported(folder: Path, tmp_path: Path) -> tuple[ImportReport, nx.Graph]:
    """The report and the graph of an import into a new index."""
    with LightRAG(tmp_path / "kb") as rag:
        report = rag.import_index(folder)
        assert "entities (+0)" in rag.repair()[1]
        return report, rag.graph


# ── real directories ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", REAL)
def test_real_directories_come_through_whole(shared_data: Path, tmp_path: Path, name: str) -> None:
    """Every document, chunk, node and edge is there, and a deletion takes all of it out again."""
    with LightRAG(tmp_path) as rag:
        report = rag.import_index(shared_data / name)
        status = rag.status()
        assert report.read == report.stored == REAL[name] and not report.failures
        assert (status.entities, status.relations) == (report.read.entities, report.read.relations)
        assert {one.kind for one in report.unmapped} <= {"weight", "reports"}
        assert not any(chunk.startswith('"') for chunk in rag.graph)
        rag.delete(*report.documents)
        assert (rag.status().entities, rag.status().relations) == (0, 0)


def test_names_that_fold_to_one_stay_apart_and_are_named(shared_data: Path, tmp_path: Path) -> None:
    """nano-graphrag held Ebenezer Scrooge twice: two entities here, and the report says so."""
    report, graph = imported(shared_data / "wd-nano-carol", tmp_path)
    assert report.kept_apart == (('" EBENEZER SCROOGE"', "EBENEZER SCROOGE (2)"),)
    assert {"EBENEZER SCROOGE", "EBENEZER SCROOGE (2)"} <= set(graph)


def test_many_spellings_of_one_name_are_numbered(foreign: Foreign, tmp_path: Path) -> None:
    """However many names fold to one, each gets the next number, past those that are taken."""
    foreign.node("Ali (3)", "")
    for letters in itertools.product("aA", "lL", "iI"):
        foreign.node("".join(letters), "")
    report, graph = imported(foreign.write(), tmp_path)
    numbered = [f"({number})" for number in (2, 4, 5, 6, 7, 8, 9)]
    assert [here.rsplit(" ", 1)[1] for _, here in report.kept_apart] == numbered
    assert len(graph) == len(foreign.graph)


def test_descriptions_stand_in_the_chunk_that_gave_them(shared_data: Path, tmp_path: Path) -> None:
    """With the cached answers at hand every description is said by the chunk it was read from."""
    folder = shared_data / "wd-lightrag14-film"
    index = read_folder(folder)
    said: dict[int, str] = {}
    for answer in index.answers:
        if answer.chunk is not None:
            order = index.chunks[answer.chunk].order
            said[order] = said.get(order, "") + answer.text
    with LightRAG(tmp_path) as rag:
        rag.import_index(folder)
        described = [r for r in rag.records() if r["description"]]
    assert len(described) == 271
    assert all(str(r["description"]) in said[int(str(r["chunk"]))] for r in described)


def test_old_caches_tell_the_chunk_by_what_an_answer_names(shared_data: Path) -> None:
    """Without chunk ids in the cache an answer belongs to the one chunk that all its names share."""
    index = read_folder(shared_data / "wd-lightrag0-carol")
    pairing = pair(index)
    paired = [
        set(pairing.of(subject(node.name), text)) <= set(node.chunks)
        for node in index.nodes
        for text in node.descriptions
        if pairing.of(subject(node.name), text)
    ]
    assert all(paired) and len(paired) > 0.95 * sum(len(n.descriptions) for n in index.nodes)


@pytest.mark.parametrize("noise", ['"', " ", "*", "\n"])
def test_an_answer_that_went_wild_is_read_all_the_same(foreign: Foreign, noise: str) -> None:
    """A model that repeated one sign without end is waited for no longer than for any answer."""
    said = f'("entity"<|>SCROOGE<|>person<|>A miser.{noise * 200_000}end)##{noise * 200_000}'
    foreign.node("SCROOGE", "d-0")
    foreign.document("d", TEXT, [TEXT])
    foreign.stores["llm_response_cache"] = {"key": {"return": said, "chunk_id": "d-0"}}
    pairing = pair(read_folder(foreign.write()))
    assert list(pairing.of(subject("SCROOGE"), "person")) == ["d-0"]


def test_an_imported_index_answers_questions(shared_data: Path, tmp_path: Path) -> None:
    """What came over is found, with its sources."""
    with LightRAG(tmp_path, language="zh") as rag:
        rag.import_index(shared_data / "wd-lightrag0-zh-anaesthesia")
        context = rag.retrieve("慢性阻塞性肺病患者如何使用支气管扩张剂？")
    assert "支气管扩张剂" in {entity.name for entity in context.entities} and context.chunks


# ── what is odd ─────────────────────────────────────────────────────────────────


def test_gzipped_files_are_read_alike(foreign: Foreign, tmp_path: Path) -> None:
    """A store may be gzipped, whatever its name was."""
    plain = foreign.write()
    before = read_folder(plain)
    for path in list(plain.iterdir()):
        packed = path.with_name(path.name + ".gz")
        with path.open("rb") as source, gzip.open(packed, "wb") as target:
            shutil.copyfileobj(source, target)
        path.unlink()
    assert read_folder(plain) == before


def test_a_gzipped_file_that_would_fill_the_memory_is_refused(
    foreign: Foreign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never unpacked whole: the error names the file."""
    plain = foreign.write()
    (store,) = plain.glob("kv_store_full_docs.json")
    store.unlink()
    store.with_name(store.name + ".gz").write_bytes(gzip.compress(b" " * 100_000 + b"{}"))
    monkeypatch.setattr(folder, "MOST_BYTES", 100_002)
    assert read_folder(plain).documents == {}
    monkeypatch.setattr(folder, "MOST_BYTES", 100_001)
    with pytest.raises(ConfigError, match=r"full_docs\.json\.gz holds more than 100,001 bytes"):
        read_folder(plain)


def test_quotes_and_pages_do_not_get_in_the_way(foreign: Foreign, tmp_path: Path) -> None:
    """Names lose the quotes of old versions; a form feed does not cut the document."""
    report, graph = imported(foreign.write(), tmp_path)
    assert report.stored == report.read == Counts(1, 2, 2, 1) and report.unmapped == ()
    assert dict(graph.nodes(data="entity_type")) == {"SCROOGE": "person", "MARLEY": "person"}
    assert set(graph.nodes["SCROOGE"]["description"].split("\n")) == {
        "He kept a house.",
        "He was there.",
    }
    assert len(graph.nodes["SCROOGE"]["chunk_ids"]) == 2
    assert graph.edges["SCROOGE", "MARLEY"]["weight"] == 8.0


def test_a_chunk_cut_inside_a_character_is_found(foreign: Foreign, tmp_path: Path) -> None:
    """What the cut left at a chunk's ends does not matter; the chunk is cut where the text is."""
    foreign.chunk("doc-a-2", "doc-a", 2, "\ufffd骞出使西域\ufffd ")
    foreign.node("张骞", "doc-a-2", "张骞出使西域。")
    report, graph = imported(foreign.write(), tmp_path)
    assert report.unmapped == () and report.stored.chunks == 3
    assert len(graph.nodes["张骞"]["chunk_ids"]) == 1


def test_a_chunk_that_is_not_in_its_document_becomes_a_page(
    foreign: Foreign, tmp_path: Path
) -> None:
    """It keeps its claims, and is listed."""
    foreign.chunk("doc-a-2", "doc-a", 2, "Words that were never there.")
    foreign.node("Fezziwig", "doc-a-2", "He dances.")
    report, graph = imported(foreign.write(), tmp_path)
    assert [(one.kind, one.name) for one in report.unmapped] == [("chunk", "doc-a-2")]
    assert report.stored == Counts(1, 3, 3, 1) and "Fezziwig" in graph


def test_what_names_no_known_chunk_gets_a_document_of_its_own(
    foreign: Foreign, tmp_path: Path
) -> None:
    """Entities and relations that were made by hand come over too, and can be deleted."""
    foreign.node("Tiny Tim", "", "He walks with a crutch.")
    foreign.node("Fred", "chunk-gone", "A nephew.")
    foreign.edge("Tiny Tim", "Fred", "manual_creation", 3.0)
    report, graph = imported(foreign.write(), tmp_path)
    assert (report.stored.entities, report.stored.relations) == (4, 2)
    assert report.without_source == 3 and report.stored.documents == 2
    assert graph.nodes["Tiny Tim"]["description"] == "He walks with a crutch."
    assert graph.edges["Tiny Tim", "Fred"]["weight"] == 3.0


def test_loops_nameless_nodes_and_heavy_edges_are_listed(foreign: Foreign, tmp_path: Path) -> None:
    """What our model has no room for is counted as read, and named with its reason."""
    foreign.edge('"MARLEY"', '"MARLEY"', "doc-a-1")
    foreign.node('""', "doc-a-1")
    foreign.edge('""', '"MARLEY"', "doc-a-1")
    foreign.graph.edges['"SCROOGE"', '"MARLEY"']["weight"] = 30.0
    report, _ = imported(foreign.write(), tmp_path)
    kinds = sorted(one.kind for one in report.unmapped)
    assert kinds == ["entity", "relation", "relation", "weight"]
    assert (report.read.entities, report.read.relations) == (3, 3)
    assert (report.stored.entities, report.stored.relations) == (2, 1)


def test_documents_without_chunks_and_chunks_without_documents_are_listed(
    foreign: Foreign, tmp_path: Path
) -> None:
    """The one is left out; of the other the chunks become pages."""
    foreign.stores["full_docs"]["doc-new"] = {"content": "Not processed yet."}
    foreign.chunk("stray", "doc-gone", 0, "A text whose document is gone.")
    foreign.node("Gone", "stray", "It is gone.")
    report, graph = imported(foreign.write(), tmp_path)
    assert {one.name for one in report.unmapped} == {"doc-new", "doc-gone"}
    assert "Gone" in graph and report.stored.documents == 2


def test_no_model_is_asked_even_where_a_summary_would_be_due(
    foreign: Foreign, tmp_path: Path
) -> None:
    """An import costs nothing, whatever model the index has."""
    llm = ScriptedLLM([])
    foreign.node("Ghost", "doc-a-0<SEP>doc-a-1", "<SEP>".join(f"Fact {n}." for n in range(20)))
    with LightRAG(tmp_path / "kb", llm=llm) as rag:
        assert rag.import_index(foreign.write()).stored.entities == 3
    assert llm.requests == []


def test_importing_twice_changes_nothing(foreign: Foreign, tmp_path: Path) -> None:
    """The second import finds everything there."""
    folder = foreign.write()
    with LightRAG(tmp_path / "kb") as rag:
        first, before = rag.import_index(folder), rag.records()
        assert rag.import_index(folder) == first and rag.records() == before


def test_an_import_can_be_undone_beside_other_documents(foreign: Foreign, tmp_path: Path) -> None:
    """Deleting what was imported leaves the claims that were there before."""
    folder = foreign.write()
    with LightRAG(tmp_path / "kb") as rag:
        record = {"type": "entity", "name": "Scrooge", "entity_type": "miser", "description": "x"}
        rag.insert_records(Document("Scrooge was a miser in London.", id="own"), [record])
        before = rag.records()
        rag.delete(*rag.import_index(folder).documents)
        assert rag.records() == before


BOMB = (  # ten billion letters, where entities are expanded without a limit
    '<!DOCTYPE g [<!ENTITY e0 "aaaaaaaaaa">'
    + "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    + "]><graphml>&e9;</graphml>"
).encode()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("kv_store_text_chunks.json", b"{", "no JSON"),
        ("kv_store_full_docs.json", b"[]", "no key-value store"),
        ("kv_store_full_docs.json", b"\xff\xfe\xfa", "no JSON"),
        ("graph_chunk_entity_relation.graphml", b"<graphml>", "no GraphML"),
        ("graph_chunk_entity_relation.graphml", b"", "no GraphML"),
        (
            "graph_chunk_entity_relation.graphml",
            b'<?xml version="1.0" encoding="none"?><graphml/>',
            "no GraphML",
        ),
        ("graph_chunk_entity_relation.graphml", BOMB, "no GraphML"),
        (
            "graph_chunk_entity_relation.graphml",
            b'<!DOCTYPE g [<!ENTITY e SYSTEM "file:///etc/hostname">]><graphml>&e;</graphml>',
            "undefined entity",
        ),
    ],
)
def test_damaged_files_are_named(
    foreign: Foreign, tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    """A broken file ends the import before anything is stored, and the error names it."""
    folder = foreign.write()
    (folder / name).write_bytes(content)
    with LightRAG(tmp_path / "kb") as rag:
        with pytest.raises(ConfigError, match=words) as caught:
            rag.import_index(folder)
        assert name in str(caught.value) and rag.status().documents == {}


def test_another_folder_is_refused_with_a_hint(foreign: Foreign, tmp_path: Path) -> None:
    """Where the files lie one folder below, the error says so."""
    foreign.write()
    with LightRAG(tmp_path / "kb") as rag, pytest.raises(ConfigError, match="there"):
        rag.import_index(tmp_path)


def test_the_command_tells_what_was_read_and_stored(foreign: Foreign, tmp_path: Path) -> None:
    """Counts side by side for people, the whole report for programs."""
    folder = foreign.write()
    asked = CliRunner().invoke(main, ["import", str(folder), "-w", str(tmp_path / "kb")])
    assert asked.exit_code == 0 and "entities      2       2" in asked.output
    asked = CliRunner().invoke(main, ["import", str(folder), "-w", str(tmp_path / "kb"), "--json"])
    report = json.loads(asked.stdout)
    assert report["read"] == report["stored"] and report["unmapped"] == []


def test_the_command_makes_no_index_for_what_it_cannot_read(
    foreign: Foreign, tmp_path: Path
) -> None:
    """Another folder, or one with a damaged file; an index that is there stays."""
    kb, folder = tmp_path / "kb", foreign.write()
    (tmp_path / "other").mkdir()
    (folder / "kv_store_full_docs.json").write_bytes(b"{")
    for given, words in ((tmp_path / "other", "no working directory of"), (folder, "is no JSON")):
        asked = CliRunner().invoke(main, ["import", str(given), "-w", str(kb)])
        assert asked.exit_code == 1 and words in asked.stderr and not kb.exists()
        LightRAG(kb).close()
        assert CliRunner().invoke(main, ["import", str(given), "-w", str(kb)]).exit_code == 1
        shutil.rmtree(kb)
