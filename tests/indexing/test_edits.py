"""Entities and relations that people create, edit and delete by hand."""

from pathlib import Path

import pytest

from lightrag_jsonl import (
    AsyncLightRAG,
    ConfigError,
    Document,
    IndexOptions,
    LLMError,
    NotFoundError,
)
from lightrag_jsonl.testing import Request, ScriptedLLM
from tests.kit import entity, index, jsonl, problems, relation, view

TEXT = "Ann met Bob. Bob knows Cid."
RECORDS = [
    entity("Ann"),
    entity("Bob"),
    entity("Cid"),
    relation("Ann", "Bob"),
    relation("Bob", "Cid"),
]


async def fill(rag: AsyncLightRAG) -> None:
    await rag.insert_records(Document(TEXT, id="d1"), RECORDS)


async def test_an_edit_replaces_what_texts_say_and_survives_them(tmp_path: Path) -> None:
    """After a re-insert, a rebuild and the deletion of the document, the person's words stand."""
    async with index(tmp_path) as rag:
        await fill(rag)
        await rag.entities.edit("bob", type="dog", description="A dog.", by="Eve", reason="I saw")
        await rag.entities.edit_relation("Cid", "Bob", keywords=["feeds"], weight=2.5, by="Eve")
        for change in ("nothing", "insert", "rebuild", "delete"):
            if change == "insert":
                await rag.insert_records(Document(TEXT + " Again.", id="d1"), RECORDS * 2)
            elif change == "rebuild":
                await rag.admin.rebuild()
            elif change == "delete":
                await rag.delete("d1")
            bob, around = await rag.entities.neighbours("Bob")
            assert (bob.type, bob.description) == ("dog", "A dog."), change
            edited = next(one for one in around if "Cid" in (one.source, one.target))
            assert (edited.keywords, edited.weight) == (("feeds",), 2.5), change
            assert problems(tmp_path) == []
        with pytest.raises(NotFoundError):
            await rag.entities.get("Ann")


async def test_what_is_deleted_stays_away_until_that_is_undone(tmp_path: Path) -> None:
    """An entity goes with its relations, whatever texts come later; deleting the edit restores it."""
    async with index(tmp_path) as rag:
        await fill(rag)
        edit = await rag.entities.delete("Bob", by="Eve")
        await rag.insert_records(Document("Bob met Dan.", id="d2"), [relation("Bob", "Dan")])
        assert {one.name for one in await rag.entities.list()} == {"Ann", "Cid", "Dan"}
        assert not rag.graph.edges and problems(tmp_path) == []
        await rag.admin.rebuild()
        assert "Bob" not in rag.graph
        await rag.delete(edit)
        assert sorted(rag.graph.adj["Bob"]) == ["Ann", "Cid", "Dan"] and problems(tmp_path) == []


async def test_a_deleted_relation_can_be_created_again(tmp_path: Path) -> None:
    """Its ends stay all the while, with all that texts say about them."""
    async with index(tmp_path) as rag:
        await fill(rag)
        before = view(tmp_path)
        gone = await rag.entities.delete_relation("Bob", "Ann", by="Eve")
        assert not rag.graph.has_edge("Ann", "Bob") and rag.graph.has_edge("Bob", "Cid")
        new = await rag.entities.create_relation("Ann", "Bob", description="Wed.", by="Eve")
        assert "Wed." in rag.graph.edges["Ann", "Bob"]["description"]
        assert "About Ann." in (await rag.entities.get("Ann")).description
        assert problems(tmp_path) == []
        await rag.delete(new)
        assert not rag.graph.has_edge("Ann", "Bob") and problems(tmp_path) == []
        await rag.delete(gone)
        assert view(tmp_path) == before


@pytest.mark.parametrize(
    ("language", "lines"),
    [
        (
            "en",
            ["Created by Eve, 1970-01-02 00:00:00 UTC.", "Reason: letters", "Keywords: wed, 婚"],
        ),
        ("zh", ["由Eve新建，1970-01-02 00:00:00 UTC。", "理由：letters", "关键词：wed、婚"]),
    ],
)
async def test_an_edit_reads_like_a_text(tmp_path: Path, language: str, lines: list[str]) -> None:
    """Each part is a paragraph, so that an answer quotes the claim alone; its title has no date."""
    async with index(tmp_path, language=language, clock=lambda: 86_400.0) as rag:
        await rag.insert_records(Document(TEXT, id="d1"), RECORDS)
        claim = {"description": "They wed in 1895.", "keywords": ["wed", "婚"]}
        id = await rag.entities.create_relation("Ann", "Cid", **claim, by="Eve", reason="letters")
        (page,) = await rag.pages(id)
        assert {*lines} < {*page.text.split("\n\n")}
        (document,) = [one for one in await rag.documents() if one.id == id]
        assert "1970" not in (document.title or "") and document.date == "1970-01-02"
        answer = await rag.query("When did Ann wed Cid?")
        quoted = {one.text for one in answer.citations if one.document_id == id}
        assert quoted & {"Ann → Cid: They wed in 1895.", "Ann → Cid：They wed in 1895."}


async def test_the_last_edit_wins_also_within_one_moment(tmp_path: Path) -> None:
    """With a clock that stands still; undoing the last one brings the one before back."""
    async with index(tmp_path, clock=lambda: 5.0) as rag:
        await rag.entities.create("Ann", type="person", description="0", by="Eve")
        ids = [await rag.entities.edit("Ann", description=f"{n}", by="Eve") for n in (1, 2, 3)]
        for n in (3, 2, 1):
            assert (await rag.entities.get("Ann")).description == f"{n}"
            await rag.delete(ids[n - 1])
        assert (await rag.entities.get("Ann")).description == "0"


async def test_merges_and_deletions_by_hand_do_not_disturb_each_other(tmp_path: Path) -> None:
    """A merged name that was deleted with its entity is an entity again once it is unmerged."""
    async with index(tmp_path) as rag:
        await fill(rag)
        await rag.entities.merge(["Cid"], into="Ann")
        edit = await rag.entities.delete("Ann", by="Eve")
        assert set(rag.graph) == {"Bob"} and problems(tmp_path) == []
        await rag.entities.unmerge("Cid")
        assert set(rag.graph) == {"Bob", "Cid"} and problems(tmp_path) == []
        await rag.delete(edit)
        assert set(rag.graph) == {"Ann", "Bob", "Cid"} and problems(tmp_path) == []


async def test_impossible_edits_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    """What does not exist, exists already, has no name or no author, is an error in words."""
    async with index(tmp_path) as rag:
        await fill(rag)
        edits = rag.entities
        about = {"type": "person", "description": "x"}
        with pytest.raises(ConfigError, match="edit it instead"):
            await edits.create("ANN", **about, by="Eve")
        with pytest.raises(ConfigError, match="name"):
            await edits.create(" ", **about, by="Eve")
        with pytest.raises(ConfigError, match="who makes it"):
            await edits.create("Dan", **about, by=" ")
        with pytest.raises(NotFoundError, match="no such entity: Dan"):
            await edits.edit("Dan", description="x", by="Eve")
        with pytest.raises(NotFoundError, match="no such relation: Ann – Cid"):
            await edits.delete_relation("Ann", "Cid", by="Eve")
        with pytest.raises(ConfigError, match="edit it instead"):
            await edits.create_relation("Ann", "Bob", description="x", by="Eve")
        with pytest.raises(ConfigError, match="changes something"):
            await edits.edit("Ann", by="Eve")
        for weight in (0.0, -1.0, float("nan")):
            with pytest.raises(ConfigError, match="weight"):
                await edits.edit_relation("Ann", "Bob", weight=weight, by="Eve")
        assert [one.id for one in await rag.documents()] == ["d1"]


async def test_an_edit_is_replaced_while_a_document_is_read_to_its_end(tmp_path: Path) -> None:
    """The deleted place comes back, though its passage is joined anew to the longer name."""
    is_ill = True

    def read(request: Request) -> str | LLMError:
        if "Elizabeth Bennet came" in request.text:
            return LLMError("ill") if is_ill else jsonl(entity("Elizabeth Bennet"))
        if "Bennet lived" in request.text:
            return jsonl(entity("Bennet"), entity("Xandria", kind="place"))
        return jsonl(entity("Other Man"))

    novel = Document("Elizabeth Bennet came to the town.\fBennet lived in Xandria.", id="novel")
    options = IndexOptions(max_gleanings=0)
    async with index(tmp_path, ScriptedLLM(read), options=options) as rag:
        await rag.insert(novel)
        edit = await rag.entities.delete("Xandria", by="Ann")
        is_ill = False
        report = await rag.insert([Document("Other Man wrote.", id=edit), novel])
        assert set(report.documents) == {edit, "novel"} and not report.failures
        assert "Xandria" in {listed.name for listed in await rag.entities.list()}
    assert problems(tmp_path) == []


@pytest.mark.parametrize("half", ["Ida \ud83d", "艾达\udcff", "Ida\0"])
async def test_half_a_character_is_refused_before_anything_is_done(
    tmp_path: Path, half: str
) -> None:
    """In names, descriptions and reasons of edits, and in the name of a merge: it would be another one."""
    async with index(tmp_path) as rag:
        await rag.insert(Document("Ida Fenn met Bob Ash.", id="d"))
        before = await rag.entities.list()
        entities = rag.entities
        for change in (
            entities.create(half, type="person", description="A keeper.", by="Kai"),
            entities.create("Cy", type="person", description=half, by="Kai"),
            entities.edit("Ida Fenn", description="A keeper.", by="Kai", reason=half),
            entities.create_relation("Ida Fenn", half, description="Friends.", by="Kai"),
            entities.edit_relation("Ida Fenn", "Bob Ash", keywords=[half], by="Kai"),
            entities.merge(["Ida Fenn"], into=half),
        ):
            with pytest.raises(ConfigError, match="is no Unicode text"):
                await change
        assert await rag.entities.list() == before
        assert (await rag.status()).documents == {"done": 1}
