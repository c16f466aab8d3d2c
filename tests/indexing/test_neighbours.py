"""Promises of names without a model: what only quotes the chunks has no vector, and names that are mentioned
together rank by how telling they are.
"""

from pathlib import Path

import numpy as np

from lightrag_jsonl import Document, LightRAG, parse_jsonl
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


def entity_vectors(rag: LightRAG) -> list[str]:
    """The names of the entities that have a vector."""
    with rag.engine.store.view() as view:
        rows = view.entity_rows()
        return [rows[id].name for id in view.vector_digests("entity", rows)]


def test_names_described_by_sentences_of_the_text_have_no_vector(tmp_path: Path) -> None:
    """Chunks have vectors of the same sentences. What a record says has one, until it is deleted."""
    record = {
        "type": "entity",
        "name": "林梅",
        "entity_type": "person",
        "description": "１２ 岁起学习制陶。",
    }
    with LightRAG(tmp_path, llm="none", embedder=HashEmbedder()) as rag:
        text = Document("《陶工记》写林梅在苏州开窑。😀 Ada Fenn met 林梅 in Delft.", id="text")
        rag.insert(text)
        assert rag.entities.list() and entity_vectors(rag) == []
        report = rag.insert_records("林梅的生平。", [record])
        assert entity_vectors(rag) == ["林梅"]
        rag.delete("text")
        assert entity_vectors(rag) == ["林梅"]
        rag.delete(report.documents[0])
        assert entity_vectors(rag) == []


def test_records_of_quotes_stay_quotes(tmp_path: Path) -> None:
    """An index made from exported records has the vectors of the index that they come from."""
    text = "Ada Fenn runs Kiln in Delft. 陶器 😀"
    with LightRAG(tmp_path / "a", llm="none", embedder="hash") as rag:
        rag.insert(text)
        exported = rag.admin.export_text("jsonl")
        names = [entity.name for entity in rag.entities.list()]
    with LightRAG(tmp_path / "b", llm="none", embedder="hash") as rag:
        rag.insert_records(text, parse_jsonl(exported).records)
        assert [entity.name for entity in rag.entities.list()] == names
        assert entity_vectors(rag) == []


def test_a_question_without_a_known_name_finds_the_names_of_its_passages(tmp_path: Path) -> None:
    """No vector is near, so the passages that the words find lead to names, best first."""
    with LightRAG(tmp_path, llm="none", embedder="hash") as rag:
        rag.insert(["Ada Fenn runs Kiln.", "Bob Ray sails to Ystad.", "林梅在苏州开窑。"])
        for question, name in (("who sails?", "Bob Ray"), ("谁开窑？", "林梅")):
            for mode in ("local", "hybrid", "mix"):
                context = rag.retrieve(question, mode=mode)
                assert name in [entity.name for entity in context.entities][:2]
                assert name in context.chunks[0].text


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
