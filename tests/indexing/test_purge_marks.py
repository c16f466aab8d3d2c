"""Purged means purged: a text that is somewhere else does not come back unasked, on either store."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from lightrag_jsonl import Document, LightRAG
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.tools.batch import export_batch
from lightrag_jsonl.tools.copying import copy_index
from lightrag_jsonl.tools.importer import import_index
from tests.cli.conftest import run, run_json
from tests.kit import Record, entity
from tests.tools.foreign import Foreign, small

Place: TypeAlias = Callable[[str], str]  # the folder or URL of an index, by a name

KEPT = Document("Ludwig Roth runs the mill in Aarau.", id="mill")
PURGED = Document("Mira Sand lives in Chur, 王芳住在成都 🏠.", id="mira")
RENAMED = Document(PURGED.text, id="another name")
REWRITTEN = Document("Somebody lives in Chur.", id="mira")
RECORDS: list[Record] = [entity("Mira Sand")]

pytestmark = pytest.mark.slow


def make_index(place: str, *documents: Document) -> str:
    with LightRAG(place) as rag:
        rag.insert(documents)
    return place


def make_purged_index(place: str) -> str:
    """An index from which `PURGED` was purged, beside another document."""
    with LightRAG(make_index(place, PURGED, Document("Bob met Cy.", id="other"))) as rag:
        rag.delete("mira", purge=True)
    return place


def names(rag: LightRAG) -> set[str]:
    return {entity.name for entity in rag.entities.list()}


class TestPurges:
    """In folders; `tests/storage/postgres` has the same in a database."""

    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return lambda name: str(tmp_path / name)

    def test_a_merge_does_not_bring_back_what_was_purged(self, place: Place) -> None:
        """By id or by text, also in a copy of the index; named in the report; it comes back on request."""
        part = make_index(place("part"), PURGED, KEPT)
        other_part = make_index(place("other"), RENAMED)
        whole = make_purged_index(place("whole"))
        copy_index(whole, place("copy"))
        for index in (whole, place("copy")):
            with LightRAG(index) as rag:
                report = rag.merge_from(part, other_part)
                assert report.purged == ("another name", "mira")
                assert report.documents == ("mill",)
                assert "Mira Sand" not in names(rag)
        with LightRAG(whole) as rag:
            report = rag.merge_from(part, restore_purged=True)
            assert report.documents == ("mira",) and report.purged == ()
            assert "Mira Sand" in names(rag)

    def test_an_insert_does_not_bring_back_what_was_purged(self, place: Place) -> None:
        """Under no name, and with no records; what is restored has left no mark."""
        with LightRAG(make_purged_index(place("whole"))) as rag:
            report = rag.insert([PURGED, RENAMED, KEPT])
            assert report.purged == ("another name", "mira") and report.documents == ("mill",)
            assert rag.insert_records(PURGED, RECORDS).purged == ("mira",)
            assert "Mira Sand" not in names(rag)
            assert rag.insert(PURGED, restore_purged=True).documents == ("mira",)
            rag.delete("mira")
            assert rag.insert_records(PURGED, RECORDS).documents == ("mira",)
            assert "Mira Sand" in names(rag)

    def test_a_new_text_may_have_an_old_name(self, place: Place) -> None:
        """It was not purged, and the purged version still stays out."""
        part = make_index(place("part"), PURGED)
        with LightRAG(make_purged_index(place("whole"))) as rag:
            assert rag.insert(REWRITTEN).documents == ("mira",)
            assert rag.merge_from(part).purged == ("mira",)
            assert rag.insert(PURGED).purged == ("mira",)

    def test_an_import_does_not_bring_back_what_was_purged(
        self, place: Place, tmp_path: Path
    ) -> None:
        """From a folder of LightRAG; the graph that only the purged text states stays out, too."""
        folder = small(tmp_path / "there").write()
        with LightRAG(place("whole")) as rag:
            rag.run(import_index, folder)
            rag.delete("doc-a", purge=True)
            report = rag.run(import_index, folder)
            assert report.purged == ("doc-a",) and "doc-a" not in report.documents
            assert not {"Scrooge", "SCROOGE", "Marley", "MARLEY"} & names(rag)
            report = rag.run(import_index, folder, restore_purged=True)
            assert "doc-a" in report.documents and report.purged == ()

    def test_a_batch_does_not_bring_back_what_was_purged(
        self, place: Place, tmp_path: Path
    ) -> None:
        """A model is not asked about a purged text, unless it is to come back."""
        make_purged_index(place("whole"))
        with LightRAG(place("whole"), llm=ScriptedLLM("")) as rag:
            requests = tmp_path / "requests.jsonl"
            report = rag.run(export_batch, requests, [PURGED])
            assert report.purged == ("mira",) and report.requests == 0
            report = rag.run(export_batch, requests, [PURGED], restore_purged=True)
            assert report.purged == () and report.requests == 1

    def test_marks_go_with_a_merge(self, place: Place) -> None:
        """What was purged from a merged index stays out later, unless another one had it."""
        part = make_index(place("part"), PURGED)
        holder = make_index(place("holder"), PURGED)
        whole = make_purged_index(place("whole"))
        with LightRAG(place("first")) as rag:
            rag.merge_from(whole)
            assert rag.merge_from(part).purged == ("mira",)
        with LightRAG(place("second")) as rag:
            assert "mira" in rag.merge_from(whole, holder).documents
            rag.delete("mira")
            assert rag.merge_from(part).documents == ("mira",)
        with LightRAG(holder) as rag:
            rag.merge_from(whole)
            rag.delete("mira")
            assert rag.merge_from(part).documents == ("mira",)

    def test_a_split_removes_only_what_has_arrived(self, place: Place) -> None:
        """Documents that were purged at the target stay at the source."""
        make_purged_index(place("target"))
        with LightRAG(make_index(place("source"), PURGED, KEPT)) as rag:
            report = rag.split(["mira", "mill"], place("target"), remove=True)
            assert report.purged == ("mira",)
            assert [document.id for document in rag.documents()] == ["mira"]

    def test_what_waited_is_purged_for_good(self, place: Place, tmp_path: Path) -> None:
        """A document that was accepted and not read yet leaves its marks."""
        make_index(place("whole"), KEPT)
        with LightRAG(place("whole"), llm=ScriptedLLM("")) as rag:
            rag.run(export_batch, tmp_path / "requests.jsonl", [PURGED])
            rag.delete("mira", purge=True)
            assert rag.insert([RENAMED]).purged == ("another name",)

    def test_a_snapshot_is_purged_for_good(self, place: Place) -> None:
        """A version that only a snapshot holds is no less purged than the present one."""
        with LightRAG(make_index(place("whole"), PURGED, KEPT)) as rag:
            rag.admin.snapshot("before")
            rag.insert(REWRITTEN)
            rag.delete("mira", purge=True)
            assert rag.insert([RENAMED, REWRITTEN]).purged == ("another name", "mira")

    def test_a_deletion_leaves_no_mark(self, place: Place) -> None:
        """Only a purge is for good: a deleted document is merged and inserted again."""
        part = make_index(place("part"), PURGED)
        with LightRAG(make_index(place("whole"), PURGED)) as rag:
            rag.delete("mira")
            assert rag.merge_from(part).documents == ("mira",)
            rag.delete("mira")
            assert rag.insert(PURGED).documents == ("mira",)

    def test_the_command_line_says_what_stays_out(self, place: Place, tmp_path: Path) -> None:
        """For files, merges and imports, with the option that brings it back; no failure."""
        text = tmp_path / "texts" / "mira.txt"
        text.parent.mkdir()
        text.write_text(PURGED.text, encoding="utf-8")
        foreign = Foreign(tmp_path / "there")
        foreign.document("doc-m", PURGED.text, [PURGED.text])
        part = make_index(place("part"), PURGED)
        whole = make_purged_index(place("whole"))
        for arguments in (
            ["insert", text.parent, "--sync"],
            ["import", foreign.write()],
            ["merge", part],
        ):
            result = run(*arguments, "-w", whole)
            assert result.exit_code == 0, result.output
            assert "purged from this index earlier; --restore-purged" in result.stderr
        report = run_json("insert", text.parent, "-w", whole, "--restore-purged")
        assert report["purged"] == [] and len(report["documents"]) == 1


def test_a_mark_holds_no_text(tmp_path: Path) -> None:
    """Neither a word nor a name is left in the file, after a merge was refused, either."""
    part = make_index(str(tmp_path / "part"), PURGED)
    whole = make_purged_index(str(tmp_path / "whole"))
    with LightRAG(whole) as rag:
        assert rag.merge_from(part).purged and rag.insert(PURGED).purged
    with sqlite3.connect(tmp_path / "whole" / "index.sqlite") as connection:
        stored = json.dumps(list(connection.iterdump()), ensure_ascii=False)
    assert "Mira" not in stored and "王芳" not in stored
