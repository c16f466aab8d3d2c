"""Promises of names that are only mentioned together: no vector, and a rank by how telling they are."""

from pathlib import Path

import numpy as np

from lightrag_jsonl import LightRAG
from lightrag_jsonl.retrieval.association import association
from lightrag_jsonl.testing import HashEmbedder


def relation_vectors(rag: LightRAG) -> int:
    with rag.engine.store.view() as view:
        return len(view.vector_digests("relation", list(view.relation_rows())))


def test_neighbours_have_no_vector_and_statements_have_one(tmp_path: Path) -> None:
    """When the statement goes, so does the vector: a deletion leaves what was there before."""
    statement = {
        "type": "relationship",
        "source": "Ada Fenn",
        "target": "Kiln",
        "keywords": ["owns"],
        "description": "Ada Fenn owns Kiln.",
        "strength": 5,
    }
    with LightRAG(tmp_path, llm="none", embedder=HashEmbedder()) as rag:
        rag.insert("Ada Fenn runs Kiln. 陶器 😀")
        assert relation_vectors(rag) == 0
        report = rag.insert_records("Ada Fenn owns Kiln.", [statement])
        assert relation_vectors(rag) == 1
        assert rag.entities.neighbours("Kiln").relations[0].keywords == ("owns",)
        rag.delete(report.documents[0])
        assert relation_vectors(rag) == 0
        assert rag.entities.neighbours("Kiln").relations[0].keywords == ("mentioned together",)


def test_every_mode_finds_neighbours_without_vectors(tmp_path: Path) -> None:
    """`global` searches relations: those of names near the question stand in."""
    with LightRAG(tmp_path, llm="none", embedder="hash") as rag:
        rag.insert(["Ada Fenn runs Kiln in Delft.", "Bob Ray sails to Ystad.", "林梅住在苏州。"])
        for mode in ("local", "global", "hybrid", "mix"):
            context = rag.retrieve("Who runs Kiln?", mode=mode)
            assert context.relations or context.dropped.relations
            assert context.chunks[0].text == "Ada Fenn runs Kiln in Delft."


def test_telling_neighbours_come_first(tmp_path: Path) -> None:
    """A name that is always beside this one comes before a name that is beside everything."""
    texts = [f"Ada Fenn met Person{n} Oak in Delft. Kiln{n} Ltd is in Delft." for n in range(6)]
    texts += ["Ada Fenn met Bob Ray in Delft.", "Bob Ray wrote to Ada Fenn from Delft."]
    texts += [f"Nora{n} Elm lives in Delft." for n in range(8)] + [
        "Cara Quill left.",
        "Dan Moss left.",
    ]
    with LightRAG(tmp_path, llm="none", embedder="hash") as rag:
        rag.insert(texts)
        names = [
            {relation.source, relation.target} - {"Ada Fenn"}
            for relation in rag.entities.neighbours("Ada Fenn").relations
        ]
    assert {"Delft"} in names and names.index({"Bob Ray"}) < names.index({"Delft"})


def test_association_is_frequency_against_chance() -> None:
    """0 for what chance would bring together, more the more often; a name in every text tells nothing."""
    assert association([1, 50], [10, 50], [10, 100], 100).tolist() == [0, 0]
    rising = association([2, 4, 8], [8, 8, 8], [8, 8, 8], 100)
    assert (np.diff(rising) > 0).all()
    assert association([], [], [], 0).tolist() == []
    assert association([1], [1], [1], 1).tolist() == [0]
