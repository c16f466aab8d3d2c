"""Purged means purged: a part that still holds a document does not bring it back."""

import sqlite3
from pathlib import Path

import pytest

from lightrag_jsonl import Document, LightRAG
from lightrag_jsonl.tools.copying import copy_index

KEPT = Document("Ludwig Roth runs the mill in Aarau.", id="mill")
PURGED = Document("Mira Sand lives in Chur, 王芳住在成都 🏠.", id="mira")
RENAMED = Document(PURGED.text, id="another name")

pytestmark = pytest.mark.slow


def make_index(folder: Path, *documents: Document) -> Path:
    with LightRAG(folder) as rag:
        rag.insert(documents)
    return folder


def names(rag: LightRAG) -> set[str]:
    return {entity.name for entity in rag.entities.list()}


def test_a_merge_does_not_bring_back_what_was_purged(tmp_path: Path) -> None:
    """By id or by content, also in a copy of the index; named in the report; it comes back on request."""
    part = make_index(tmp_path / "part", PURGED, KEPT)
    other_part = make_index(tmp_path / "other", RENAMED)
    whole = make_index(tmp_path / "whole", PURGED)
    with LightRAG(whole) as rag:
        rag.delete("mira", purge=True)
    copy_index(str(whole), str(tmp_path / "copy"))
    for index in (whole, tmp_path / "copy"):
        with LightRAG(index) as rag:
            report = rag.merge_from(str(part), str(other_part))
            assert report.purged == ("another name", "mira")
            assert report.documents == ("mill",)
            assert "Mira Sand" not in names(rag)
            with sqlite3.connect(index / "index.sqlite") as connection:
                stored = "\n".join(connection.iterdump())
            assert "Mira" not in stored and "王芳" not in stored
    with LightRAG(whole) as rag:
        report = rag.merge_from(str(part), restore_purged=True)
        assert report.documents == ("mira",) and report.purged == ()
        assert "Mira Sand" in names(rag)


def test_a_deletion_leaves_no_mark(tmp_path: Path) -> None:
    """Only a purge is for good: a deleted document is merged again."""
    part = make_index(tmp_path / "part", PURGED)
    with LightRAG(make_index(tmp_path / "whole", PURGED)) as rag:
        rag.delete("mira")
        assert rag.merge_from(str(part)).documents == ("mira",)


def test_a_purged_document_that_is_sent_again_is_indexed(tmp_path: Path) -> None:
    """Who inserts the text itself means it."""
    with LightRAG(make_index(tmp_path / "whole", PURGED)) as rag:
        rag.delete("mira", purge=True)
        assert rag.insert(PURGED).documents == ("mira",)
