"""Contradictions and histories: what texts say of one subject, when, and where."""

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from lightrag_jsonl import AsyncLightRAG, ConfigError, Document, IndexOptions, NotFoundError
from lightrag_jsonl.core.claims import Conflict
from lightrag_jsonl.lenses import claims
from lightrag_jsonl.lenses.claims import is_same_value, kind_of
from lightrag_jsonl.testing import Request, ScriptedLLM
from tests.kit import entity, index, problems, relation

OFFICES = 6


async def say(rag: AsyncLightRAG, person: str, office: str, id: str, **more: str) -> None:
    """A document that names the head of an office."""
    text = f"{person} is the head of {office}."
    dates = {name: more.pop(name) for name in ("valid_from", "valid_to") if name in more}
    record = relation(person, office, text, keywords=["head of"], **dates)
    await rag.insert_records(Document(text, id=id, **more), [record])


async def agree(rag: AsyncLightRAG, offices: int = OFFICES) -> None:
    """Two documents of one year on each office, which say the same."""
    for number in range(offices):
        for source in "ab":
            await say(rag, f"Head{number}", f"Office{number}", f"{number}{source}", date="2020")


def people(conflicts: tuple[Conflict, ...]) -> Iterator[set[str]]:
    for conflict in conflicts:
        yield {conflict.first.subject, conflict.second.subject}


async def test_a_contradiction_is_found_with_both_sentences(tmp_path: Path) -> None:
    """That an office has one head at a time is learned from the documents that agree."""
    async with index(tmp_path) as rag:
        await agree(rag)
        assert await rag.conflicts() == ()
        await say(rag, "Zoe", "Office3", "other", date="June 2020")
        (conflict,) = await rag.conflicts()
    assert conflict.subject == "Office3" and not conflict.explained
    claims = {claim.subject: claim for claim in (conflict.first, conflict.second)}
    assert claims["Zoe"].text == "Zoe is the head of Office3."
    assert claims["Zoe"].document_id == "other" and claims["Zoe"].written == "June 2020"
    assert claims["Head3"].text == "Head3 is the head of Office3."


async def test_time_explains_a_later_value(tmp_path: Path) -> None:
    """A later document, or a time that the text names, explains another value; a pair that time explains
    is listed on demand only, the earlier claim first.
    """
    async with index(tmp_path) as rag:
        await agree(rag)
        await say(rag, "Zoe", "Office3", "later", date="2021-03")
        await say(rag, "Yan", "Office4", "early", date="2020", valid_from="2001", valid_to="2010")
        assert await rag.conflicts() == ()
        explained = await rag.conflicts(explained=True)
    assert [conflict.subject for conflict in explained if conflict.explained] == [
        "Office3",
        "Office4",
    ]
    assert [explained[0].first.subject, explained[0].second.subject] == ["Head3", "Zoe"]
    assert [explained[1].first.subject, explained[1].second.subject] == ["Yan", "Head4"]


async def test_kinds_with_several_values_are_no_contradictions(tmp_path: Path) -> None:
    """People visit many places; nobody says that they visit one at a time."""
    async with index(tmp_path) as rag:
        for number in range(OFFICES):
            for place in ("Bern", "Rome", "Oslo"):
                text = f"Ann{number} visited {place}."
                record = relation(f"Ann{number}", place, text, keywords=["visited"])
                await rag.insert_records(Document(text, id=f"{number}{place}"), [record])
        assert await rag.conflicts() == ()
        stated = await rag.conflicts(functional_kinds=["visited"])
    assert {conflict.subject for conflict in stated} == {
        f"Ann{number}" for number in range(OFFICES)
    }


async def test_values_of_attributes_contradict(tmp_path: Path) -> None:
    """A stated kind counts with few claims; the same number in other words is the same value."""
    options = IndexOptions(functional_kinds=("票价",))
    async with index(tmp_path, options=options, language="zh") as rag:
        for number, price in enumerate(("12元", "12", "１５元")):
            text = f"博物馆的票价为{price}。"
            record = entity("博物馆", text, "组织", attribute=["票价", price])
            await rag.insert_records(Document(text, id=str(number)), [record])
        (conflict,) = await rag.conflicts()
    assert conflict.subject == "博物馆" and conflict.predicate == "票价"
    assert "15" in unicodedata.normalize("NFKC", conflict.first.value + conflict.second.value)


async def test_full_width_digits_are_the_same_number(tmp_path: Path) -> None:
    """３０ metres and 30 metres of a description are one value, 31 another."""
    async with index(tmp_path, language="zh") as rag:
        for height in ("３０", "30", "31"):
            text = f"水塔高{height}米。"
            await rag.insert_records(Document(text, id=height), [entity("水塔", text, "地点")])
        conflicts = await rag.conflicts(functional_kinds=["米 高"])
    assert [{conflict.first.value, conflict.second.value} for conflict in conflicts] == [
        {"30", "31"}
    ]


async def test_an_edit_settles_a_contradiction(tmp_path: Path) -> None:
    """Whether a person deletes one relation or changes the other; undoing the edit brings it back."""
    async with index(tmp_path) as rag:
        await agree(rag)
        await say(rag, "Zoe", "Office3", "other", date="2020")
        reason = "see the register"
        deletion = await rag.entities.delete_relation("Zoe", "Office3", by="me", reason=reason)
        assert await rag.conflicts() == ()
        await rag.delete(deletion)
        assert list(people(await rag.conflicts())) == [{"Head3", "Zoe"}]
        await rag.entities.edit_relation("Head3", "Office3", weight=9.0, by="me", reason=reason)
        assert await rag.conflicts() == ()


@pytest.mark.slow
async def test_deleting_the_newer_document_gives_the_old_answers(tmp_path: Path) -> None:
    """As of a date, and in lists of contradictions, nothing remains of it."""
    async with index(tmp_path) as rag:
        await agree(rag)
        before = await rag.retrieve("Who is the head of Office3?", as_of="2022")
        await say(rag, "Zoe", "Office3", "later", date="2021")
        later = await rag.retrieve("Who is the head of Office3?", as_of="2022")
        assert "Zoe" in later.prompt and "Head3 is the head of" not in later.prompt
        await rag.delete("later")
        after = await rag.retrieve("Who is the head of Office3?", as_of="2022")
    assert (after.entities, after.relations, after.chunks) == (
        before.entities,
        before.relations,
        before.chunks,
    )
    assert problems(tmp_path) == []


async def test_a_history_has_all_claims_in_the_order_of_time(tmp_path: Path) -> None:
    """By the time that the text names, or else the date of the document; undated claims come last."""
    async with index(tmp_path) as rag:
        await say(rag, "Ann", "Office", "c")
        await say(rag, "Ben", "Office", "b", date="2021-05")
        await say(rag, "Cid", "Office", "a", date="2021", valid_from="2001", valid_to="2010")
        history = await rag.entities.history("office")
        with pytest.raises(NotFoundError, match="no such entity: Nobody"):
            await rag.entities.history("Nobody")
    assert [claim.subject for claim in history] == ["Cid", "Ben", "Ann"]
    assert (history[0].valid_from, history[0].valid_to) == ("2001", "2010")
    assert history[1].text == "Ben is the head of Office."
    assert (history[1].start, history[1].end) == (0, len(history[1].text))


@pytest.mark.parametrize(
    ("value", "further_value", "same"),
    [
        ("12 euros", "12 €", True),
        ("12", "12 euros", True),
        ("12 euros", "15 euros", False),
        ("12 euros", "12 dollars", False),
        ("berg", "anna berg", True),
        ("anna berg", "carl dorn", False),
        ("张三", "局长张三", True),
        ("张三", "李四", False),
    ],
)
def test_values_are_compared_by_numbers_and_names(
    value: str, further_value: str, same: bool
) -> None:
    """A part of a name is the same value; another number is not."""
    assert is_same_value(value, further_value) is same
    assert is_same_value(further_value, value) is same


def test_forms_of_a_predicate_are_one_kind() -> None:
    """Endings and words of grammar do not count, the direction does."""
    assert kind_of("is the head of") == kind_of("Heads")
    assert kind_of("^head of") == "^" + kind_of("head of")
    assert kind_of("任局长") != kind_of("任校长")


@pytest.mark.slow
async def test_an_answer_that_rests_on_a_contradicted_claim_says_so(tmp_path: Path) -> None:
    """With both sentences, their dates and the numbers of both sources; other answers do not."""
    async with index(tmp_path) as rag:
        await agree(rag)
        await say(rag, "Zoe", "Office3", "other", date="June 2020")
        answer = await rag.query("Who is the head of Office3?")
        plain = await rag.query("Who is Head4?")
    assert "The sources differ on Office3, head of" in answer.text
    assert "“Zoe is the head of Office3.” (June 2020) [" in answer.text
    assert "“Head3 is the head of Office3.” (2020) [" in answer.text
    cited = {citation.document_id for citation in answer.citations}
    assert "other" in cited and cited & {"3a", "3b"}
    assert "Contradictions:" in answer.context.prompt
    assert "contradict" not in plain.text


@pytest.mark.slow
async def test_a_citation_at_the_very_end_counts(tmp_path: Path) -> None:
    """An answer that ends with its marker is told of the contradiction too."""
    llm = ScriptedLLM(lambda request: "{}" if request.response_type == "json" else "Zoe [1]")
    async with index(tmp_path, llm) as rag:
        await agree(rag)
        await say(rag, "Zoe", "Office3", "other", date="June 2020")
        answer = await rag.query("Who is the head of Office3?", mode="naive")
    assert answer.text.startswith("Zoe [1]\n\nThe sources differ on Office3")


@pytest.mark.slow
async def test_a_filter_hides_a_contradiction(tmp_path: Path) -> None:
    """Nothing is said of a document that the filter leaves out, or that is later than the date asked."""
    async with index(tmp_path) as rag:
        await agree(rag)
        await say(rag, "Zoe", "Office3", "other", date="2020-06")
        question = "Who is the head of Office3?"
        filtered = await rag.query(question, where={"id": {"$ne": "other"}})
        earlier = await rag.query(question, as_of="2020-05")
    assert "Zoe" not in f"{filtered.text}{filtered.context}"
    assert "Zoe" not in f"{earlier.text}{earlier.context}"


async def test_a_model_judges_pairs_for_a_price_that_is_known_before(tmp_path: Path) -> None:
    """It is asked once for many pairs; without a model there is neither a price nor a judgement."""

    def judge(request: Request) -> str:
        assert "Zoe is the head of Office3." in request.question
        return '{"id": "1", "contradictory": "no", "reason": "another office"}'

    llm = ScriptedLLM(judge)
    async with index(tmp_path, llm) as rag:
        await agree(rag)
        await say(rag, "Zoe", "Office3", "other", date="2020")
        conflicts = await rag.conflicts()
        estimate = await rag.entities.estimate_conflict_review(conflicts)
        review = await rag.entities.review_conflicts(conflicts)
    assert (estimate.calls, review.usage.calls) == (1, 1)
    assert review.compatible == conflicts and review.contradictory == ()
    async with index(tmp_path / "without") as rag:
        with pytest.raises(ConfigError, match="model"):
            await rag.entities.estimate_conflict_review(conflicts)


@pytest.mark.slow
async def test_a_large_graph_is_asked_for_named_kinds_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is learned from all claims is not learned anew for each answer; the list has all."""
    monkeypatch.setattr(claims, "RELATIONS_LEARNED_FROM", 3)
    for name, kinds in (("learned", ()), ("named", ("^head of",))):
        options = IndexOptions(functional_kinds=kinds)
        async with index(tmp_path / name, options=options) as rag:
            await agree(rag)
            await say(rag, "Zoe", "Office3", "other", date="2020")
            answer = await rag.query("Who is the head of Office3?")
            assert len(await rag.conflicts()) == 1
        assert ("sources differ on" in answer.text) is bool(kinds)


async def test_an_ontology_states_functional_kinds(tmp_path: Path) -> None:
    """As OWL has them: of a functional property a subject has one value, of an inverse one an object has
    one subject.
    """
    ontology = {
        "classes": ["Person", "Office"],
        "object_properties": {
            "ex:heads": {"type": ["owl:ObjectProperty", "owl:InverseFunctionalProperty"]},
            "knows": {"domain": "Person"},
        },
        "datatype_properties": {"born": {"rdf:type": "owl:FunctionalProperty"}},
    }
    options = IndexOptions(ontology=ontology)
    async with index(tmp_path, options=options) as rag:
        for person in ("Ann", "Ben"):
            text = f"{person} heads Office7."
            record = relation(person, "Office7", text, keywords=["heads"])
            await rag.insert_records(Document(text, id=person), [record])
        (conflict,) = await rag.conflicts()
        assert rag.engine.claims.predicates == ("^heads", "born")
    assert conflict.subject == "Office7"


async def test_a_history_says_a_sentence_once(tmp_path: Path) -> None:
    """A sentence that states a relation is not listed again as the description of its end; of the two the
    one with dates stays. Two relations of one sentence are two statements.
    """
    born = "Ilse Gant was born in Norby in 1901."
    led = "She led the mill and the ferry."
    described = entity("Ilse Gant", born, "person", valid_from="1901")
    relations = [
        relation("Ilse Gant", "Norby", born),
        relation("Ilse Gant", "mill", led),
        relation("Ilse Gant", "ferry", led),
    ]
    document = Document(f"{born} {led}", id="d")
    async with index(tmp_path) as rag:
        await rag.insert_records(document, [described, entity("mill", led, "place"), *relations])
        ilse = await rag.entities.history("Ilse Gant")
        mill = await rag.entities.history("mill")
    assert [(claim.text, claim.value) for claim in ilse] == [
        (born, ""),
        (led, "ferry"),
        (led, "mill"),
    ]
    assert [(claim.kind, claim.text) for claim in mill] == [("relation", led)]
