"""Promises of links between notes: what they link to has a name."""

from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG


@pytest.mark.slow
def test_what_a_note_links_to_is_a_name_without_a_model(tmp_path: Path) -> None:
    """Links of a vault, and links to files of Markdown, are entities; pictures, common
    words, numbers and links that a comment hides are not.
    """
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Tools.md").write_text(
        "# Tools\n\nPlugins of [[rosa-lind|Rosa Lind]]:\n\n- [[copper-clock|Copper Clock]]\n- [[Sundial]]\n"
        "- [Tide Table](tide.md)\n\n![[harbour-view.png]].\n"
        "%% [[Hidden Note]] %%\nSee [[2026-11-03]], [[copy|a copy]] and [the page](https://example.org/x).\n"
    )
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(vault)
        names = set(rag.graph)

    assert names >= {"Rosa Lind", "Copper Clock", "Sundial", "Tide Table"}
    assert not names & {"Hidden Note", "2026-11-03", "copy", "Copy"}


@pytest.mark.slow
def test_chinese_links_are_names(tmp_path: Path) -> None:
    """A linked note is an entity in Chinese as well, and stands beside the other names of its sentence."""
    note = tmp_path / "项目.md"
    note.write_text("潮汐表由[[林晚秋]]维护，后来并入[[白鹭船坞]]。\n", encoding="utf-8")
    with LightRAG(tmp_path / "kb", language="zh") as rag:
        rag.insert(note)

        assert {"林晚秋", "白鹭船坞"} <= set(rag.graph)
        assert rag.graph.has_edge("林晚秋", "白鹭船坞")


@pytest.mark.slow
def test_another_name_with_an_article_is_met_without_it(tmp_path: Path) -> None:
    """Readers of names leave out articles: a question about the note finds what is said of "The Lamp Lady"."""
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Ines Calder.md").write_text(
        '---\naliases: ["The Lamp Lady"]\n---\nInes Calder lives in Leith.\n'
    )
    (vault / "Quay.md").write_text("The Lamp Lady mended the crane of Heron Mill in 1931.\n")
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(vault)
        pairs = [{pair.name, pair.into} for pair in rag.entities.duplicates()]

    assert {"Lamp Lady", "Ines Calder"} in pairs
