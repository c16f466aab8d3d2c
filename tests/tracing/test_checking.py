"""A checker judges answers only where the yardstick admits it."""

import json
import re
from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, Document, LightRAG
from lightrag_jsonl.testing import Request, ScriptedLLM
from lightrag_jsonl.tracing.checking import yardstick
from tests.kit import entity, relation

TEXT = "Mirela taught Anton the viola in Sibiu. Anton later taught Radu."
TRUTH = {(one.claim, one.window): one.is_true for one in yardstick()}


def knowing(claim: str, window: str) -> bool:
    """Knows the yardstick by heart, and of other claims that Anton taught nobody but Radu."""
    return TRUTH.get((claim, window), "Anton taught Mirela" not in claim)


def credulous(claim: str, window: str) -> bool:
    """Believes everything."""
    return True


def answers(request: Request) -> str:
    """Two claims, one with the roles exchanged; the right one alone if asked again."""
    if "once more" in request.text:
        return "Mirela taught Anton the viola [1]."
    return "Mirela taught Anton the viola [1]. Anton taught Mirela the viola [1]."


def test_the_yardstick_has_both_kinds_in_both_languages() -> None:
    """As many true claims as false ones, each claim once."""
    claims = yardstick()
    for is_english in (True, False):
        own = [one for one in claims if one.claim.isascii() == is_english]
        assert len(own) == 40 and sum(one.is_true for one in own) == 20
    assert len({one.claim for one in claims}) == len(claims) == 80


def test_a_checker_is_refused_until_it_is_measured_and_good_enough(tmp_path: Path) -> None:
    """With what to do, and with the figures."""
    llm = ScriptedLLM(answers)
    with LightRAG(tmp_path, llm="none") as rag:
        rag.insert(TEXT)
    with LightRAG(tmp_path, llm=llm, check=credulous) as rag:
        with pytest.raises(ConfigError, match="doctor --claims"):
            rag.query("Who taught whom?", mode="naive")
        figures = rag.admin.measure_checker()
        assert (figures.caught, figures.false, figures.missed) == (0, 10, 10)  # it is over then
        with pytest.raises(ConfigError, match="refused: 0 of 10 false claims marked"):
            rag.query("Who taught whom?", mode="naive")
    with pytest.raises(ConfigError, match="must be 'judge'"), LightRAG(tmp_path, check="x") as rag:
        rag.query("Who?")


def test_an_admitted_checker_tells_what_words_cannot(tmp_path: Path) -> None:
    """Exchanged roles are unsupported, a claim that stands there is supported; asked again, the answer
    leaves the wrong claim out, and the second call is in the usage (the first one is cached).
    """
    with LightRAG(tmp_path, llm="none") as rag:
        rag.insert(TEXT)
    with LightRAG(tmp_path, llm=ScriptedLLM(answers), check=knowing) as rag:
        assert rag.admin.measure_checker().is_admitted
        answer = rag.query("Who taught whom?", mode="naive")
        assert [claim.verdict for claim in answer.claims] == ["supported", "unsupported"]
        assert "(!) [1] “Anton taught Mirela the viola”" in str(answer)
        again = rag.query("Who taught whom?", mode="naive", ask_again=True)
        assert [claim.verdict for claim in again.claims] == ["supported"]
        assert again.usage.input_tokens > answer.usage.input_tokens
    with LightRAG(tmp_path, llm=ScriptedLLM(answers), check=knowing) as rag:  # it is remembered
        assert rag.query("Who taught whom?", mode="naive").claims[0].verdict == "supported"


def test_a_second_answer_ends_as_the_first_did(tmp_path: Path) -> None:
    """The list that code adds to an answer is added to the answer of a model that was asked again, too."""
    records = [
        entity("Mirela", kind="person"),
        entity("Anton", kind="pupil"),
        relation("Mirela", "Anton", keywords=["taught"]),
    ]
    with LightRAG(tmp_path, llm=ScriptedLLM(answers), check=knowing) as rag:
        rag.insert_records(Document(TEXT), records)
        assert rag.admin.measure_checker().is_admitted
        answer = rag.query("List all pupils that Mirela taught.", ask_again=True)
    assert "Anton taught Mirela" not in answer.text
    assert "\n\nList from the graph" in answer.text


def test_the_model_is_asked_once_for_an_answer(tmp_path: Path) -> None:
    """In JSON Lines, with each claim and the sentences near it; a claim that lacks a fact is no matter of
    opinion, and is not asked about.
    """
    requests: list[str] = []

    def reply(request: Request) -> str:
        if "Claims and texts:" not in request.text:
            return (
                "Mirela taught Anton [1]. Anton taught Mirela [1]. Anton taught Radu in 1950 [1]."
            )
        requests.append(request.text)
        rows = [json.loads(line) for line in re.findall(r"^\{.*\}$", request.text, re.MULTILINE)]
        lines = [
            {"id": row["id"], "supported": knowing(row["claim"], row["text"])}
            for row in rows
            if "claim" in row
        ]
        return "\n".join(json.dumps(line) for line in lines)

    with LightRAG(tmp_path, llm="none") as rag:
        rag.insert(TEXT)
    with LightRAG(tmp_path, llm=ScriptedLLM(reply), check="judge") as rag:
        assert rag.admin.measure_checker().is_admitted
        requests.clear()
        answer = rag.query("Who taught whom?", mode="naive")
        verdicts = [claim.verdict for claim in answer.claims]
    assert verdicts == ["supported", "unsupported", "missing"]
    assert len(requests) == 1 and "1950" not in requests[0] and "Sibiu" in requests[0]


def test_any_callable_may_be_a_checker(tmp_path: Path) -> None:
    """Also a coroutine function and an object; what returns anything but True, False or None is named."""

    class Knowing:
        name = "knowing"

        async def __call__(self, claim: str, window: str) -> bool:
            return knowing(claim, window)

    def wordy(claim: str, window: str) -> bool:
        return "yes"  # type: ignore[return-value]

    with LightRAG(tmp_path, llm=ScriptedLLM(answers), check=Knowing()) as rag:
        figures = rag.admin.measure_checker()
        assert figures.is_admitted and (figures.checker, figures.caught) == ("knowing", 40)
    with (
        LightRAG(tmp_path, llm=ScriptedLLM(answers), check=wordy) as rag,
        pytest.raises(ConfigError, match="returned 'yes': it must return True, False or None"),
    ):
        rag.admin.measure_checker()


def test_answers_to_one_question_are_not_confused_by_the_cache(tmp_path: Path) -> None:
    """With a checker and without, after another text and after the first one again: each answer has the
    verdicts of its own passages.
    """
    llm = ScriptedLLM(lambda request: "Anton taught Mirela the viola in 1950 [1].")

    def verdict(rag: LightRAG) -> str:
        return rag.query("Who taught whom?", mode="naive").claims[0].verdict

    with LightRAG(tmp_path, llm=llm, models={"extract": "none"}) as rag:
        document = rag.insert(TEXT).documents[0]
        assert verdict(rag) == "missing" and verdict(rag) == "missing"
        rag.insert("Anton taught Mirela the viola in 1950.")
        rag.delete(document)
        assert verdict(rag) == "nearest"
    with LightRAG(tmp_path, llm=llm, models={"extract": "none"}, check=knowing) as rag:
        rag.admin.measure_checker()
        assert verdict(rag) == "unsupported"
    with LightRAG(tmp_path, llm=llm, models={"extract": "none"}) as rag:
        assert verdict(rag) == "nearest"
