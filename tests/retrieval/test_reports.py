"""Reports on communities: written on request, cited, renewed only after a change, gone with their sources."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from lightrag_jsonl import AsyncLightRAG, ConfigError, Document
from lightrag_jsonl.lenses.reports import normalized_report
from lightrag_jsonl.testing import Request, ScriptedLLM
from tests.conftest import CHECKOUT
from tests.kit import entity, index, reading, relation

CREWS = {
    "sea": ("Petrel", "Ostrom", "Gannet"),
    "mill": ("Hedda", "Osric", "Millrace"),
    "玻璃": ("周师傅", "熔炉", "窑厂"),
}


WHOLE = '{"high_level_keywords": [], "low_level_keywords": [], "whole": true}'


def _report(request: Request) -> str:
    """A report on the first entity listed, with one finding that cites the last passage."""
    if "Passages:" not in request.question:
        return WHOLE
    names = request.question.partition(": ")[2].partition("\n")[0]
    last = request.question.rpartition("\n[")[2].partition("]")[0]
    name = sorted(names.split("; "))[0]
    findings = [
        {"text": f"{name} signed the treaty.", "passages": [int(last)]},
        {"text": "Invented.", "passages": [99]},
    ]
    return json.dumps({"title": f"On {name}", "summary": f"All of {name}.", "findings": findings})


async def _insert(rag: AsyncLightRAG, group: str, number: int = 0) -> None:
    names = CREWS[group]
    text = f"{names[0]} met {names[1]} and {names[2]} on day {number}. １２ 😀"
    records: list[Any] = [entity(name) for name in names]
    records += [relation(names[0], names[1]), relation(names[1], names[2])]
    await rag.insert_records(Document(text, id=f"{group}-{number}", title=group), records)


async def test_reports_are_paid_once_and_renewed_where_something_changed(tmp_path: Path) -> None:
    """The estimate names the calls; a second request costs nothing; a change renews one report."""
    llm = ScriptedLLM(_report)
    async with index(tmp_path, llm) as rag:
        for group in CREWS:
            await _insert(rag, group)
        estimate = await rag.communities.estimate_report()
        run = await rag.communities.report()
        assert (estimate.calls, run.usage.calls, len(run.communities)) == (3, 3, 3)
        assert (await rag.communities.report()).communities == ()
        await _insert(rag, "mill", 1)
        renewed = await rag.communities.report()
        assert [set(community.entities) for community in renewed.communities] == [
            set(CREWS["mill"])
        ]
        await rag.delete("mill-1")
        again = await rag.communities.report()
        assert again.communities == () and again.usage.calls == 0
    assert len(llm.requests) == 4
    async with index(tmp_path, "none") as rag:  # without a model the reports are still there
        listed = await rag.communities.list()
        assert all(community.report for community in listed)
        with pytest.raises(ConfigError, match="needs a model"):
            await rag.communities.report()


async def test_an_overview_shows_reports_with_numbers_that_resolve(tmp_path: Path) -> None:
    """Findings cite passages of the prompt; what cites no passage of the report's prompt is left out."""

    def script(request: Request) -> str:
        if request.response_type == "json":
            return _report(request)
        line = next(line for line in request.question.split("\n") if "Hedda signed" in line)
        number = line.partition("signed the treaty. [")[2].partition("]")[0]
        return f"Hedda met Osric and Millrace [{number}]."

    async with index(tmp_path, ScriptedLLM(script)) as rag:
        for group in CREWS:
            await _insert(rag, group)
        await rag.communities.report()
        answer = await rag.query("What is this about?", mode="overview")
    prompt = answer.context.prompt
    assert "On Hedda: All of Hedda. Hedda signed the treaty. [" in prompt
    assert "Invented" not in prompt
    assert [citation.document_id for citation in answer.citations] == ["mill-0"]
    assert answer.citations[0].text


async def test_a_report_takes_no_place_from_the_sentence_that_is_asked_for(tmp_path: Path) -> None:
    """A sentence with the words of the question is quoted in a small budget, though a report is there on its
    community and none on others with enough sentences to fill the budget.
    """
    colors = ("red", "blue", "gray", "green", "black", "white", "pink", "brown")
    async with index(tmp_path, ScriptedLLM(_report)) as rag:
        for number, color in enumerate(colors):
            sentences = [f"Unna {color} walked over {noun} field {number}." for noun in CREWS]
            document = Document(" ".join(sentences), id=f"field-{number}")
            await rag.insert_records(document, [entity("Unna"), entity("Unna's field")])
        await _insert(rag, "sea")
        text = "Petrel met Ostrom and Gannet. The captain lost 😀 his anchor at Skarsund."
        names = [entity(name) for name in CREWS["sea"]]
        await rag.insert_records(Document(text, id="anchor"), names)
        assert len((await rag.communities.report()).communities) == 1
        question = "What is said in the whole text about a captain and an anchor?"
        context = await rag.retrieve(question, mode="overview", max_total_tokens=300)
    assert "lost 😀 his anchor" in context.prompt


async def test_a_deletion_and_a_purge_leave_no_report(tmp_path: Path) -> None:
    """A report on a deleted text is not shown, and after a purge not stored either; others stay."""
    async with index(tmp_path, ScriptedLLM(_report)) as rag:
        for group in CREWS:
            await _insert(rag, group)
        await rag.communities.report()
        await rag.delete("mill-0")
        overview = await rag.retrieve("What is this about?", mode="overview")
        assert "Hedda" not in overview.prompt
        assert "On Gannet" in overview.prompt
        await rag.delete(purge=True)
        assert {community.entities[0] for community in await rag.communities.list()} == {
            community.entities[0]
            for community in await rag.communities.list()
            if community.report is not None
        }
    with reading(tmp_path) as snapshot:
        texts = [snapshot.completion(key) for key in snapshot.completion_keys()]
    assert not any("Hedda" in completion.text for completion in texts if completion)


async def test_a_filter_shows_reports_of_visible_passages_only(tmp_path: Path) -> None:
    """A report that was written from a hidden passage, too, is not shown under a filter."""
    async with index(tmp_path, ScriptedLLM(_report)) as rag:
        await _insert(rag, "sea")
        await _insert(rag, "sea", 1)
        await _insert(rag, "mill")
        await rag.communities.report()
        where = {"id": ["sea-0", "mill-0"]}
        prompt = (await rag.retrieve("Summarize it.", mode="overview", where=where)).prompt
    assert "On Hedda" in prompt
    assert "On Gannet" not in prompt


async def test_an_unreadable_report_is_named_and_asked_for_again(tmp_path: Path) -> None:
    """What is no report, or cites nothing, is a failure with a reason, and is not stored."""
    uncited = '{"title": "x", "summary": "", "findings": [{"text": "y", "passages": [9]}]}'
    replies = iter(['{"title": "x"}', "no", uncited, uncited])

    def script(request: Request) -> str:
        return next(replies, None) or _report(request)

    async with index(tmp_path, ScriptedLLM(script)) as rag:
        await _insert(rag, "sea")
        unreadable = await rag.communities.report()
        assert len(unreadable.failures) == 1 and "Petrel" in unreadable.failures[0]
        assert len((await rag.communities.report()).failures) == 1
        assert len((await rag.communities.report()).communities) == 1


def test_findings_in_other_shapes_are_read() -> None:
    """Numbers in the text, as words or in a nested list, are the numbers of the finding."""
    findings = [
        "A dam broke [1][4].",
        {"text": "堤坝溃决【２】。", "passages": []},
        {"text": "Plain.", "passages": ["[3]", "5", 6]},
        {"text": "Uncited.", "passages": [6]},
    ]
    value = normalized_report({"title": "t", "summary": "s", "findings": findings}, passages=5)
    assert isinstance(value, dict)
    assert value["findings"] == [
        {"text": "A dam broke.", "passages": [1, 4]},
        {"text": "堤坝溃决。", "passages": [2]},
        {"text": "Plain.", "passages": [3, 5]},
    ]


@pytest.mark.parametrize("text", ["…", "", "[1]", "1, 4."])
def test_a_finding_without_words_is_left_out(text: str) -> None:
    """Such as a copy of the form that the prompt shows."""
    findings = [{"text": text, "passages": [1]}, {"text": "A dam broke.", "passages": [1]}]
    value = normalized_report({"title": "t", "summary": "s", "findings": findings}, passages=2)
    assert isinstance(value, dict)
    assert value["findings"] == findings[1:]


@pytest.mark.parametrize("finding", ["A dam broke.", {"text": "A dam broke.", "passages": []}])
def test_the_only_passage_read_needs_no_number(finding: Any) -> None:
    """Nothing else can have said what was found; a number that there is not is invented, though."""
    wrong: Any = {"text": "The dam held.", "passages": [7]}
    report: Any = {"title": "t", "summary": "s", "findings": [finding, wrong]}
    value = normalized_report(report, passages=1)
    assert isinstance(value, dict)
    assert value["findings"] == [{"text": "A dam broke.", "passages": [1]}]


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_copy_of_the_example_is_no_report(tmp_path: Path, language: str) -> None:
    """Small models cite a passage for the example's facts: these are left out, and a report of nothing
    else is named as a failure. What a passage says may be in the example, too.
    """
    prompt = (CHECKOUT / f"prompts_{language}" / "community-report.md").read_text(encoding="utf-8")
    example = json.loads(yaml.safe_load(prompt.split("---")[1])["examples"])
    copied = [{**finding, "passages": [1]} for finding in example["findings"]]
    own = {"text": "Petrel 😀 Ostrom", "passages": [1]}
    replies = [example, example, {"title": "t", "summary": "s", "findings": [*copied, own]}]
    answers = iter([json.dumps(reply, ensure_ascii=False) for reply in replies])

    async with index(
        tmp_path, ScriptedLLM(lambda request: next(answers)), language=language
    ) as rag:
        await _insert(rag, "sea")
        assert len((await rag.communities.report()).failures) == 1
        (community,) = (await rag.communities.report()).communities
    assert community.report is not None
    assert [finding.text for finding in community.report.findings] == [own["text"]]
    said = normalized_report(replies[-1], passages=1)
    assert isinstance(said, dict)
    assert said["findings"] == [*copied, own]  # no word is foreign


async def test_edits_by_hand_renew_no_report(tmp_path: Path) -> None:
    """A description and a type by hand: communities are those of the texts."""
    async with index(tmp_path, ScriptedLLM(_report)) as rag:
        for group in CREWS:
            await _insert(rag, group)
        await rag.communities.report()
        before = await rag.communities.list()
        await rag.entities.edit("Hedda", description="熔炉 Ostrom １２ 😀", by="me")
        await rag.entities.edit("Petrel", type="ship", by="me")
        assert await rag.communities.list() == before
        assert (await rag.communities.estimate_report()).calls == 0
        overview = await rag.retrieve("What is this about?", mode="overview")
        assert "On Gannet" in overview.prompt
