"""The comparison with other libraries: the same material for all, and a table that hides nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peers import worker
from benchmarks.peers.fakes import WordVectors
from benchmarks.peers.material import read, write
from benchmarks.peers.system import Clock
from benchmarks.peers.table import table
from benchmarks.readme import put

TITLES = {"quick": "Quick 1.0", "broken": "Broken 2.0", "ours": "ours"}
SIZES = {
    "200": {
        "ours": {"cpu_ms_per_chunk": 2.0, "delete_cpu_ms": 10.0},
        "quick": {"cpu_ms_per_chunk": 1500.0},
        "broken": {"error": "build: stopped after 600 s"},
    }
}


def test_our_side_of_the_comparison_runs(tmp_path: Path) -> None:
    """Every part of the measurement works on a small corpus, and contexts are not empty."""
    write(tmp_path / "corpus.json", 20)
    figures = {}
    for part in worker.PARTS.values():
        figures |= part("ours", tmp_path / "kb", read(tmp_path / "corpus.json"))
    assert figures["entities"] > 100 and figures["relations"] > 100
    assert figures["delete_bytes_written"] >= 0 and figures["cold_context_chars"] > 1_000
    assert all(mode["context_chars"] > 1_000 for mode in figures["modes"].values())


def test_every_library_reads_the_same_texts(tmp_path: Path) -> None:
    """The corpus file is the same on every run, and the model knows every piece of it."""
    write(tmp_path / "one.json", 20)
    write(tmp_path / "other.json", 20)
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "other.json").read_bytes()
    material = read(tmp_path / "one.json")
    assert material.chunks == 20
    assert {page for paper in material.papers for page in paper.pages} <= set(material.found)


def test_like_beginnings_have_like_vectors() -> None:
    """A name is near the text of its entity, in each library's way of writing it."""
    vectors = WordVectors(Clock())
    name, *texts = vectors.embed(
        ["Karo Ka", "Karo Ka\nKaro Ka took part", '"KARO KA""Karo Ka took', "[PERSON] KARO KA\nx y"]
    )
    assert all(name @ text > 0.7 for text in texts)
    assert vectors.embed(["Karo Ka", "Miten Mi"])[0] @ vectors.embed(["Miten Mi"])[0] < 0.3


def test_the_table_tells_what_failed_and_what_is_not_offered() -> None:
    """No empty cells: ours first, a failure with its reason, and what a library cannot do."""
    text = table(SIZES, TITLES, "en")
    assert "| 200 chunks | here | Quick 1.0 | Broken 2.0 |" in text
    assert "| indexing, CPU a chunk | 2.0 ms | 1,500 ms | failed |" in text
    assert "| one document deleted, CPU | 10.0 ms | not offered | failed |" in text
    assert "- Broken 2.0, 200 chunks: build: stopped after 600 s" in text
    assert "| 200 块 | 本项目 |" in table(SIZES, TITLES, "zh")


def test_the_table_is_put_between_its_marks(tmp_path: Path) -> None:
    """Twice gives the same file; what stands outside stays; without marks nothing is written."""
    readme = tmp_path / "README.md"
    readme.write_text(
        "# 标题\n\n<!-- peers:begin -->\nold\n<!-- peers:end -->\n\nafter\n", encoding="utf-8"
    )
    put(readme, "peers", "new")
    put(readme, "peers", "new")
    assert (
        readme.read_text(encoding="utf-8")
        == "# 标题\n\n<!-- peers:begin -->\nnew\n<!-- peers:end -->\n\nafter\n"
    )
    readme.write_text("no marks", encoding="utf-8")
    with pytest.raises(SystemExit, match="peers:begin"):
        put(readme, "peers", "new")
