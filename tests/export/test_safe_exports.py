"""Exports harm nobody: no cell that a spreadsheet runs, and nothing written through a link."""

import csv
from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, Document, LightRAG, NotFoundError
from tests.cli.conftest import run
from tests.kit import entity, relation

FORMULA = "=HYPERLINK(A1)"


def test_no_cell_of_a_csv_is_a_formula(tmp_path: Path) -> None:
    """Neither a name nor a description, in half or full width; numbers and other texts stay."""
    names = [FORMULA, "+44 Ida", "-Bob", "@cy", "＝水", "Ida-Bob"]
    records = [entity(name) for name in names] + [relation(FORMULA, "Ida-Bob")]
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert_records(Document(" met ".join(names), id="d"), records)
        rag.admin.export(tmp_path / "g.csv")
    with (tmp_path / "g.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    cells = [cell for row in rows for cell in row.values()]
    assert not [cell for cell in cells if cell.startswith(tuple("=+-@＝＋－＠\t\r\n"))]
    assert {f"'{FORMULA}", "'＝水", "Ida-Bob"} <= {row["name"] for row in rows}
    assert float(next(row["weight"] for row in rows if row["kind"] == "relation")) > 0


@pytest.mark.slow
@pytest.mark.parametrize("place", ["page", "dangling", "folder", "manifest", "draft"])
def test_a_wiki_is_not_written_through_a_link(tmp_path: Path, place: str) -> None:
    """In the place of a page of this or of the last export, of a folder of pages, or of the manifest."""
    wiki = tmp_path / "wiki"
    outside = tmp_path / "outside"
    outside.mkdir()
    precious = outside / "precious"
    precious.write_text("珍贵", encoding="utf-8")
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(Document("Ida Fenn met Bob Ash in Rome.", id="d"))
        rag.admin.export(wiki)
        manifest = next(path for path in wiki.iterdir() if path.name.startswith("."))
        page = wiki / "index.md"
        if place == "folder":
            link = wiki / "documents"
            for path in link.iterdir():
                path.rename(outside / path.name)
            link.rmdir()
            link.symlink_to(outside)
        else:
            link = {"manifest": manifest, "draft": manifest.with_name(f"{manifest.name}.new")}.get(
                place, page
            )
            link.unlink(missing_ok=True)
            link.symlink_to(outside / "absent" if place == "dangling" else precious)
        before = {path: path.read_bytes() for path in outside.iterdir()}
        rag.insert(Document("Cy Moor met Ida Fenn.", id="e"))
        if place == "draft":  # replaced, as what a killed export left
            rag.admin.export(wiki)
        else:
            with pytest.raises(ConfigError, match="symbolic link"):
                rag.admin.export(wiki)
    assert {path: path.read_bytes() for path in outside.iterdir()} == before


@pytest.mark.slow
def test_what_only_a_snapshot_holds_is_purged_by_its_id(tmp_path: Path) -> None:
    """On the command line, too; without a purge, and for an unknown id, it is no document."""
    kb = tmp_path / "kb"
    with LightRAG(kb) as rag:
        rag.insert(
            [Document("Ida hides a zebrawood box.", id="d"), Document("Bob met Cy.", id="e")]
        )
        rag.admin.snapshot("before")
        rag.delete("d")
        with pytest.raises(NotFoundError):
            rag.delete("d")
    assert run("delete", "-w", kb, "d").exit_code == 1
    assert run("delete", "-w", kb, "--purge", "x").exit_code == 1
    assert run("delete", "-w", kb, "--purge", "d").exit_code == 0
    assert all(b"zebrawood" not in path.read_bytes() for path in kb.rglob("*") if path.is_file())
