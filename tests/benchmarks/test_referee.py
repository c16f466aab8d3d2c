"""The referee asks everybody the same, and says first where others are ahead."""

import json
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from benchmarks.referee.contestants.base import FILTER_BY_NAMES, SETTINGS
from benchmarks.referee.environments import PEERS
from benchmarks.referee.faults import (
    CUT,
    copied_example,
    cut_answers,
    deletion,
    same_insert,
    small_material,
)
from benchmarks.referee.formats import FORMATS, Kind, Prompt, filtered_facts
from benchmarks.referee.material import Material, Question, read_material
from benchmarks.referee.own_corpus import (
    is_index,
    material_of_index,
    material_of_whole_text,
)
from benchmarks.referee.page import page
from benchmarks.referee.quality import averages
from benchmarks.referee.records import Records
from benchmarks.referee.report import Report
from benchmarks.referee.server import Behavior, ModelServer, ScriptedModel
from benchmarks.referee.sessions import Arena
from benchmarks.referee.vectors import CachedVectors
from lightrag_jsonl import Document as OurDocument
from lightrag_jsonl import LightRAG
from lightrag_jsonl.testing import HashEmbedder, ScriptedLLM
from lightrag_jsonl.tools.evaluation import generate_questions, write_questions
from tests.conftest import CHECKOUT
from tests.processes import session_here

MATERIAL = small_material()
HARBOR = MATERIAL.documents[0].text
EXTRACTION = {  # the marks of each contestant's extraction prompt, in words of our own
    "ours": Prompt("A graph, written as JSON Lines: each line one object.", (HARBOR,)),
    "lightrag": Prompt("Rows of entity<|#|>name.", (f"Read:\n{HARBOR}",)),
    "nano": Prompt("", (f'Rows like ("entity"<|>"name"). Read:\n{HARBOR}',)),
    "graphrag": Prompt("", (f'Rows like ("entity"<|>name). Read:\n{HARBOR}',)),
    "fast": Prompt('Lists "entities", "relationships", "other_relationships".', (HARBOR,)),
    "hipporag": Prompt("Triples.", (f'Read:\n{HARBOR}\n{{"named_entities": []}}',)),
}


def scripted(contestant: str) -> ScriptedModel:
    records = Records()
    records.add(MATERIAL)
    return ScriptedModel(FORMATS[contestant], records)


@pytest.mark.parametrize("contestant", EXTRACTION)
def test_a_prompt_is_answered_from_records(contestant: str) -> None:
    """The relations of the text in the prompt are in the answer, and those of no other text."""
    text, finish = scripted(contestant).answer(EXTRACTION[contestant])
    assert finish == "stop"
    assert "Northlight Shipping" in text and "the ferry Gannet" in text
    assert "Brackmoor" not in text and "Clara Venn" not in text


@pytest.mark.parametrize("contestant", EXTRACTION)
def test_a_cut_answer_ends_in_the_middle_of_a_row(contestant: str) -> None:
    """The beginning is the same, and the model says that it was cut."""
    model = scripted(contestant)
    whole, _ = model.answer(EXTRACTION[contestant])
    model.behavior = Behavior(cut=CUT)
    cut, finish = model.answer(EXTRACTION[contestant])
    assert finish == "length"
    assert whole.startswith(cut) and 0 < len(cut) < len(whole)


def test_what_records_cannot_answer_is_counted() -> None:
    """An unknown prompt gets a plain answer, and is kept for the report."""
    model = scripted("lightrag")
    model.answer(Prompt("", ("Write a poem.",)))
    assert model.counts.calls[Kind.OTHER.value] == 1
    assert model.unanswered == ["\nWrite a poem."]


def test_a_part_of_a_text_gives_the_rows_that_it_names() -> None:
    """However a contestant cuts its texts, each piece is read with what stands in it."""
    records = Records()
    records.add(MATERIAL)
    sentences = HARBOR.split(". ")
    rows = records.rows_about(sentences[1] + ".")
    names = {row.get("name") or f"{row['source']}-{row['target']}" for row in rows}
    assert names == {"Ida Holm", "Northlight Shipping", "Ida Holm-Northlight Shipping"}


def test_a_report_is_made_of_the_data_and_not_of_the_example() -> None:
    """Prompts for reports show an example with data of its own before the real data."""
    lines = "Example\n1,VERDANT,A plaza.\n\n# Real Data\n5,OSTRA,A river."
    prompt = Prompt("", (f'Answer with "findings".\n{lines}',))
    text, _ = scripted("nano").answer(prompt)
    assert "OSTRA,A river." in text and "VERDANT" not in text


def test_a_summary_is_made_of_descriptions_and_not_of_instructions() -> None:
    """The instructions of a prompt end in periods, too."""
    described = json.dumps({"Description": "Ida Holm founded it."})
    prompt = Prompt("", (f"Write in full sentences.\nDescription List:\n{described}",))
    assert scripted("lightrag").answer(prompt)[0] == "Ida Holm founded it."


def test_facts_are_filtered_by_the_names_of_a_question() -> None:
    """Facts with a name of the question stay; without such a fact all of them do."""
    facts = [["ida holm", "founded", "northlight shipping"], ["tomas reyl", "designed", "it"]]
    listed = json.dumps({"fact": facts})
    prompt = Prompt("", (f"[[ ## fact_before_filter ## ]]\n{listed}",), FILTER_BY_NAMES)
    named = Question("Who?", names=("Ida Holm",))
    chosen = filtered_facts(prompt, named, by_names=True)
    assert "northlight" in chosen and "tomas" not in chosen
    assert "tomas" in filtered_facts(prompt, Question("Who?"), by_names=True)
    assert "tomas" in filtered_facts(prompt, named, by_names=False)


def test_material_survives_its_file(tmp_path: Path) -> None:
    """Contestants read in their processes what the referee wrote."""
    path = tmp_path / "material.json"
    MATERIAL.write(path)
    assert read_material(path) == MATERIAL


def test_every_peer_has_settings_in_the_report() -> None:
    """A table of versions and settings has a line for each."""
    assert {peer.name for peer in PEERS} | {"ours"} == set(SETTINGS)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("extract-graph", Kind.EXTRACTION),
        ("keywords", Kind.KEYWORDS),
        ("summarize-descriptions", Kind.SUMMARY),
        ("community-report", Kind.REPORT),
    ],
)
def test_the_package_s_prompts_are_known_by_their_words(
    name: str, kind: Kind, language: str
) -> None:
    """The model of a benchmark answers what it is asked, also after a prompt was written anew."""
    text = (CHECKOUT / f"prompts_{language}" / f"{name}.md").read_text(encoding="utf-8")
    system = text.partition("# system")[2].partition("# user")[0]
    assert FORMATS["ours"].kind(Prompt(system, ("a text",))) == kind


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Arena]:
    vectors = CachedVectors("hash", tmp_path / "vectors.sqlite")
    server = ModelServer(Records(), vectors)
    yield Arena({"ours": Path(sys.executable)}, server, tmp_path, timeout=300)
    server.close()
    vectors.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_faults_are_measured_on_a_real_index(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cut answer loses nothing, an example is refused, nothing is left of a deleted document, and
    the same insert costs no call. The first session has a process of its own, as all in a benchmark.
    """
    assert (
        arena.session("ours", "first", MATERIAL, [{"do": "insert"}])["steps"][0]["do"] == "insert"
    )
    monkeypatch.setattr(Arena, "session", session_here)
    assert cut_answers(arena, "ours")["relations_lost"] == 0
    assert copied_example(arena, "ours")["entities"] == 0
    left = deletion(arena, "ours")
    assert left["graph"] == left["contexts"] == 0
    assert same_insert(arena, "ours") == {
        "calls": 0,
        "texts_embedded": 0,
        "graph_changed": False,
    }
    assert arena.server.models["ours"].unanswered == []


def test_an_index_of_ones_own_becomes_a_set(tmp_path: Path) -> None:
    """What its model has read is replayed, and its generated questions are asked."""
    folder = tmp_path / "kb"
    with LightRAG(folder, llm=ScriptedLLM([]), embedder=HashEmbedder()) as rag:
        for document, (text, rows) in zip(MATERIAL.documents, MATERIAL.readings, strict=True):
            rag.insert_records(OurDocument(text, id=document.id), rows, chunks=[text])
        questions = rag.run(generate_questions, 5)
    write_questions(folder / "questions.jsonl", questions)
    assert is_index(folder)
    material = material_of_index(folder)
    assert [document.text for document in material.documents] == [
        document.text for document in MATERIAL.documents
    ]
    ids = {document.id for document in material.documents}
    assert material.questions and all(ids >= set(item.supporting) for item in material.questions)
    records = Records()
    records.add(material)
    rows = records.rows_about(material.documents[0].text)
    assert {"Ida Holm", "Port Varen"} <= {row.get("name") for row in rows}


def test_texts_of_an_overview_become_a_material(tmp_path: Path) -> None:
    """The chunks of the index with what was read in them, and both groups of questions with key points."""
    folder = tmp_path / "docs"
    with LightRAG(folder, llm="none", embedder=HashEmbedder()) as rag:
        rag.insert(OurDocument("Ada Fenn founded Port Works. 😀", id="d"))
    material = material_of_whole_text(folder, "docs")
    assert [document.text for document in material.documents] == ["Ada Fenn founded Port Works. 😀"]
    ((_, rows),) = material.readings
    assert {"Ada Fenn", "Port Works"} <= {row.get("name") for row in rows}
    assert [question.group for question in material.questions] == ["tuned"] * 5 + ["fresh"] * 5
    assert all(question.points and question.themes for question in material.questions)


def test_overlapping_texts_give_each_row_to_its_own_text() -> None:
    """The sentence that two texts share brings no rows of the second into a prompt with the first."""
    shared = "Ada Fenn founded Port Works in Leith."
    first = f"It rained for a whole week there. {shared}"
    second = f"{shared} Bo Lind was a cook of Ada Fenn."
    row = {"type": "entity", "name": "Ada Fenn", "entity_type": "person"}
    readings = ((first, ({**row, "description": "1"},)), (second, ({**row, "description": "2"},)))
    records = Records()
    records.add(Material("overlap", "en", (), readings))
    assert [row["description"] for row in records.rows_about(first)] == ["1"]
    assert [row["description"] for row in records.rows_about(shared)] == ["1", "2"]


# ── the report ──────────────────────────────────────────────────────────────────


def _scores(recall: float) -> list[dict[str, float]]:
    ranks = (2, 5, 10)
    row = {f"recall@{rank}": recall for rank in ranks} | {f"all@{rank}": recall for rank in ranks}
    return [row] * 4


def _set(way: str, recall: float) -> dict[str, Any]:
    scores = _scores(recall)
    figures = {"questions": scores, "averages": averages(scores), "context_tokens": 900}
    return {"ways": {way: figures}, "default": way, "best": way}


def _coverage(way: str, percents: dict[str, float]) -> dict[str, Any]:
    groups = {group: {way: {"4000": percent}} for group, percent in percents.items()}
    return {"groups": groups, "default": way}


FIGURES: dict[str, Any] = {
    "commands": {"sets": "python -m benchmarks.referee --measures sets"},
    "versions": {
        "ours": {"title": "lightrag_jsonl", "version": "1", "settings": "defaults"},
        "nano": {"title": "Nano", "version": "2", "settings": "defaults"},
    },
    "sets": {"set": {"ours": _set("mix", 0.5), "nano": _set("local", 0.75)}},
    "published": {"set": {"Nano by its authors": averages(_scores(0.25))}},
    "whole": {
        "book": {
            "beginning": _coverage("first pages", {"tuned": 10.0, "fresh": 20.0}),
            "ours": _coverage("overview", {"tuned": 50.0, "fresh": 40.0}),
            "nano": _coverage("local", {"tuned": 30.0, "fresh": 60.0}),
        },
        "notes": {"ours": _coverage("overview", {"tuned": 70.0, "fresh": 60.0})},
    },
    "sizes": {
        "200": {
            "ours": {"cpu_ms_per_chunk": 3.0, "bytes_written": 2e6},
            "nano": {"cpu_ms_per_chunk": 2.0, "bytes_written": 3e6},
        }
    },
    "faults": {
        "equal file names": {"ours": {"indexed": 2, "of": 2}, "nano": {"error": "insert: it broke"}}
    },
    "not_installed": {},
    "unanswered": {"nano": 3},
}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_report_begins_with_where_others_are_ahead(language: str) -> None:
    """A lead in recall and in costs comes first, before all tables; a failure is not hidden."""
    text = Report(FIGURES, language).markdown()
    ahead, _, tables = text.partition("\n\n### ")
    colon = "：" if language == "zh" else ": "
    assert f"recall@5{colon}Nano 2 (local) +25.0 [+25.0, +25.0]" in ahead
    assert "2 ms" in ahead and "3 ms" in ahead
    assert "`python -m benchmarks.referee --measures sets`" in tables
    assert "Nano by its authors" in tables
    assert "Nano 2, equal file names: insert: it broke" in tables
    assert "Nano 2: 3" in tables


def test_whole_texts_stand_in_a_table_for_each_group_of_questions() -> None:
    """Texts side by side, with the mean where all were measured; who covers more on fresh questions comes
    first, and the beginning of a text is no peer with a version.
    """
    text = Report(FIGURES, "en").markdown()
    ahead, _, tables = text.partition("\n\n### ")
    lead = "- book, fresh questions, 4,000 tokens: Nano 2 (local) 60.0 %, here 40.0 %"
    assert lead in ahead
    assert "tuned" not in ahead
    assert "| questions tuned on | way | book | notes | mean |" in tables
    assert "| here | overview (default) | 50.0 | 70.0 | 60.0 |" in tables
    assert "| Nano 2 | local (default, scripted) | 60.0 | – | – |" in tables
    assert "| the text | first pages (default) | 20.0 | – | – |" in tables


def test_the_page_is_whole_and_draws_intervals() -> None:
    """Every opened element is closed, and each bar of recall has its interval."""
    text = page(FIGURES)
    assert text.count('class="interval"') == 2 * 2 * 3
    assert _open_elements(text) == []


def _open_elements(text: str) -> list[str]:
    class Elements(HTMLParser):
        stack: list[str] = []

        def handle_starttag(self, tag: str, attributes: object) -> None:
            if tag not in ("meta", "hr"):
                self.stack.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.stack.pop() == tag

        def handle_startendtag(self, tag: str, attributes: object) -> None:
            """An element without content."""

    parser = Elements()
    parser.feed(text)
    return parser.stack
