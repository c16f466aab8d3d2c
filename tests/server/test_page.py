"""The page in a real browser, and its files as they are built from their sources."""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="needs the extra: pip install '.[server]'")
pytest.importorskip("selenium", reason="needs the package selenium")

from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from lightrag_jsonl import Document, LightRAG
from lightrag_jsonl.core.languages import STATING_NOTHING
from lightrag_jsonl.export.graph_formats import COLORS
from lightrag_jsonl.server.app import STATIC
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import Record, entity, relation
from tests.server.browsing import Page, install_packages, run_npm
from tests.server.running import (
    PacedLLM,
    Running,
    serving,
    serving_model,
    wait_for,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # a browser

HOSTILE = "<img src=x onerror=document.title='owned'>"
# Requests to addresses with this part wait until `held.go()`.
HOLD = """
    const [part] = arguments;
    window.held = {};
    const fetched = window.fetch;
    const going = new Promise((go) => { held.go = go; });
    window.fetch = async (url, ...rest) => {
      if (String(url).includes(part)) await going;
      return fetched(url, ...rest);
    };
"""
TOKEN = "a-token-for-this-test"
# Collects the names that a drawing writes on its canvas, with their places, in `window.written`.
WATCH_NAMES = """
window.written = [];
const {fillText, clearRect} = CanvasRenderingContext2D.prototype;
const isOfNames = (context) => context.canvas.classList.contains("sigma-labels");
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  if (isOfNames(this)) window.written.push([text, x, y, this.measureText(text).width]);
  fillText.call(this, text, x, y);
};
CanvasRenderingContext2D.prototype.clearRect = function (...place) {
  if (isOfNames(this)) window.written = [];
  clearRect.apply(this, place);
};
"""
LETTERS = 10  # pixels, at most, of the height that names of two lines need
TWO_LINES = 60  # the pixels of a button whose label is broken into two lines


def test_the_built_files_are_those_of_the_sources(tmp_path: Path) -> None:
    """Rebuilt with the versions of the lockfile, the files are the committed ones, byte for byte."""
    page = install_packages(tmp_path)
    run_npm(page, "run", "build")
    built = {path.name: path.read_bytes() for path in (tmp_path / "static").iterdir()}
    assert built == {path.name: path.read_bytes() for path in STATIC.iterdir()}


def test_a_citation_opens_its_passage_with_the_sentence_marked(kb: Path, page: Page) -> None:
    """At the right characters, also behind an emoji; Escape closes it; the record of the answer is a link."""
    text = "🧪🧪 A note. Ada Lovelace met Charles Babbage in London. It rained."
    with LightRAG(kb) as rag:
        rag.insert(Document(text, id="ada", title="Ada"))
    with serving(kb) as server:
        page.open(server)
        page.ask("Whom did Ada Lovelace meet?")
        page.wait(".answer button.number", "1").click()
        mark = page.wait("#passage mark").text
        assert mark == "Ada Lovelace met Charles Babbage in London."
        assert page.wait("#passage .passage").text == text
        page.press(Keys.ESCAPE)
        page.gone("#passage")
        link = page.wait("#ask .foot a").get_attribute("href")
        assert link is not None
        assert "Ada Lovelace" in server.client.get(link).text


def test_sources_name_the_page_of_a_document_with_pages(kb: Path, page: Page) -> None:
    """In the list of sources and above the passage, the first page, too."""
    pages = (
        "Grace Hopper met Howard Aiken in Harvard.",
        "Alan Turing met Joan Clarke in Bletchley.",
    )
    with LightRAG(kb) as rag:
        rag.insert(Document("", id="log", title="Log", pages=pages))
    with serving(kb) as server:
        for number, question in enumerate(
            ("Whom did Grace Hopper meet?", "Whom did Turing meet?"), 1
        ):
            page.open(server)
            page.ask(question)
            page.wait("#ask .foot .source-card b", f"Log › page {number}").click()
            page.wait("#passage .soft", f"page {number}")


def test_answers_are_streamed_and_the_conversation_is_sent(kb: Path, page: Page) -> None:
    """The first piece is there before the last is written; the next question comes with the turns."""
    llm = PacedLLM(["Ada **first** ", "then [99]"])
    with serving_model(kb, llm) as server:
        page.open(server)
        page.ask("Who was first?")
        llm.turns.release()
        assert page.wait(".answer", "first").text.strip() == "Ada **first**"
        llm.turns.release()
        page.wait(".answer b", "first")
        assert page.wait(".answer s").text == "99"
        page.gone("form.composer .main:not([data-t=ask])")
        page.ask("And then?")
        llm.turns.release(2)
        page.wait("article + article .answer b")
        assert any("Who was first?" in call for call in llm.calls[1:])


def test_errors_are_shown_in_words(kb: Path, page: Page) -> None:
    """A filter that makes no sense and a server that is gone are shown to the user."""
    with serving(kb) as server:
        page.open(server)
        page.wait("#index option")
        page.run("document.querySelector('textarea').value = '?'.repeat(20001)")
        page.wait("textarea").send_keys(Keys.ENTER)
        page.wait("article .warn", "20,000 characters")
        page.problems()  # the refusal itself
    page.ask("Who?")
    page.wait("article .warn", "The server cannot be reached.")
    page.problems()


def test_the_graph_is_drawn_and_expanded(server: Running, page: Page) -> None:
    """Before a choice, the communities; then search, neighbourhood and sources, by the keyboard; the
    drawing itself works under the policy. The header hides nothing.
    """
    page.open(server)
    page.wait("#index option")
    page.run("location.hash = '#graph'")
    page.wait("#graph aside h2", "Overview")
    page.wait("#graph .chips .chip", "place")
    page.wait("#graph aside .line", "Curie").click()
    page.wait("#graph aside h2", "Curie")
    header = page.run("document.querySelector('header').getBoundingClientRect().bottom")
    assert page.run("document.querySelector('#graph input').getBoundingClientRect().top") >= header
    page.wait("#graph .side .line", "Curie")
    page.wait("#graph input").send_keys("marie")
    page.wait("#graph [role=status]", "Found: 1")
    page.wait("#graph select").send_keys(Keys.TAB, Keys.ENTER)
    page.wait("#graph aside h2", "Marie Curie")
    page.wait("#graph button", "Clear").click()
    page.gone("#graph aside h2")
    page.wait("#graph input").send_keys(Keys.ENTER)
    page.wait("#graph aside h2", "Marie Curie")
    page.wait("#graph canvas")
    page.wait("#graph aside .line b", "Pierre Curie").click()
    page.wait("#graph aside h2", "Pierre Curie")
    assert "false" not in page.wait("#graph aside").text
    page.wait("#graph aside .link").click()
    page.wait("#passage .passage", "radium with Pierre Curie")
    page.press(Keys.ESCAPE)
    Select(page.wait("#graph select")).select_by_value("place")
    page.wait("#graph [role=status]", "Nothing matches")


def test_documents_are_uploaded_and_deleted(server: Running, page: Page, tmp_path: Path) -> None:
    """The jobs stand above the list: a file that cannot be read shows its reason, and one whose text
    is known says so. Deletion waits for the confirmation.
    """
    good, again, bad = [tmp_path / name for name in ("ada.txt", "again.txt", "bad.pdf")]
    for file in (good, again):
        file.write_text("Ada Lovelace met Charles Babbage.", encoding="utf-8")
    bad.write_bytes(b"no PDF")
    page.open(server, "documents")
    page.wait("#documents tbody a", "Curie")
    for files, name in ((f"{good}\n{bad}", "bad.pdf"), (str(again), "again.txt")):
        page.driver.find_element(By.CSS_SELECTOR, "input[type=file]").send_keys(files)
        page.wait("#documents details[open] .card", name)
    page.wait("#documents .rows .warn", "bad.pdf")
    page.wait(
        "#documents .reading + details .card, #documents details .card",
        "The index holds this text already.",
    )
    for is_sure, documents in ((False, 4), (True, 3)):  # the unread file waits
        if not page.all("#documents tbody input:checked"):
            page.click("#documents tbody tr", "ada", "input")
        page.wait("#documents button", "Delete 1").click()
        question = page.driver.switch_to.alert
        if is_sure:
            question.accept()
        else:
            question.dismiss()
        page.wait("#documents .facts", f"Documents: {documents}")
    items = server.get("/indexes/kb/documents", state="done")["items"]
    assert {one["id"] for one in items} == {"curie", "张骞"}


def test_what_a_job_has_done_is_shown_however_soon_it_ends(server: Running, page: Page) -> None:
    """Also where it ends between the page's requests for the documents and for the jobs."""
    page.open(server, "documents")
    page.wait("#documents tbody a", "Curie")
    page.driver.execute_script(HOLD, "/jobs")
    page.click("#documents tbody tr", "Curie", "input")
    page.wait("#documents button", "Delete 1").click()
    page.driver.switch_to.alert.accept()
    wait_for(lambda: server.get("/indexes/kb/documents")["total"] == 1)
    wait_for(lambda: server.get("/indexes/kb/jobs")["items"][0]["ended_at"])
    page.driver.execute_script("held.go();")
    page.wait("#documents .facts", "Documents: 1")


def test_data_never_becomes_markup(kb: Path, page: Page) -> None:
    """Hostile titles, texts and questions are shown as they are."""
    with LightRAG(kb) as rag:
        text = f"Ada Lovelace met {HOSTILE} in London."
        rag.insert(Document(text, id="x", title=HOSTILE))
    with serving(kb) as server:
        page.open(server)
        page.ask(f"Whom did Ada Lovelace meet? {HOSTILE}")
        page.wait(".answer button.number").click()
        page.wait("#passage", HOSTILE)
        page.press(Keys.ESCAPE)
        page.open(server, "documents")
        page.wait("#documents .rows", HOSTILE)
        assert page.run("document.querySelectorAll('img').length") == 0
        assert page.run("document.title") == "Documents · kb"


@pytest.mark.parametrize("width", [390, 1400])
def test_every_view_fits_in_both_languages(server: Running, page: Page, width: int) -> None:
    """No view is wider than the window; the switches of language and theme reach everything."""
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.open(server)
        page.ask("Curie")
        page.wait(".answer button.number")
        page.wait("main", "Sources")
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
        for view, (english, chinese) in {
            "ask": ("Questions to begin with", "不妨先问"),
            "graph": ("Namesakes", "同名"),
            "documents": ("Extraction", "抽取情况"),
        }.items():
            page.run(f"location.hash = '#{view}'")
            for words in (english, chinese):
                page.wait("main", words)
                assert page.run("document.documentElement.scrollWidth <= innerWidth")
                assert page.wait("#language").size["height"] < TWO_LINES
                page.wait("#language").click()
        before = page.run("getComputedStyle(document.body).backgroundColor")
        page.wait("#theme").click()
        assert page.run("getComputedStyle(document.body).backgroundColor") != before
        assert page.run("[...document.querySelectorAll('button, select, input')].every(one => "
                        "one.textContent || one.ariaLabel || one.labels.length || one.hidden)")  # fmt: skip
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_token_is_asked_for_once(kb: Path, page: Page) -> None:
    """A wrong one is asked for again; with the right one also the trace's page opens."""
    with serving(kb, token=TOKEN) as server:
        page.open(server)
        page.wait("#token input").send_keys("wrong", Keys.ENTER)
        page.wait("#token .warn", "does not accept")
        page.wait("#token input").send_keys(TOKEN, Keys.ENTER)
        page.ask("Curie")
        page.wait("#ask .foot a").click()
        first, second = page.driver.window_handles
        page.driver.switch_to.window(second)
        page.wait("#answer")
        page.run("document.querySelector('#answer a.cite').click()")
        page.wait("#panel mark.on")  # the trace's own script and style work
        page.driver.close()
        page.driver.switch_to.window(first)
        page.open(server, "documents")
        page.wait("#documents .rows", "Curie")
        page.problems()  # the refusals without the token


def test_escape_ends_an_answer(kb: Path, page: Page) -> None:
    """As the documentation says; the model's call ends, too."""
    llm = PacedLLM(["Ada ", "Lovelace"])
    with serving_model(kb, llm) as server:
        page.open(server)
        page.ask("Who was first?")
        llm.turns.release()
        page.wait(".answer", "Ada")
        page.press(Keys.ESCAPE)
        page.wait("article .warn", "Stopped.")


def test_answers_say_which_claims_are_marked_and_show_markdown(kb: Path, page: Page) -> None:
    """Headings, lists, tables and code of a model's answer are shown as such; code cites nothing."""
    written = """## **Marie** Curie
- She was born on Mars [1].
- See <b>`argv[1]`</b>.
- 关于**《镭》**的[注](/a)，180~190年，200~210年[1](她)。

| Born | Where |
|---|---|
| 1867 | Mars [1] |

[1]: Mars
"""
    llm = PacedLLM([written])
    llm.turns.release(9)
    with serving_model(kb, llm) as server:
        page.open(server)
        page.ask("Where was Marie Curie born?")
        page.wait("#ask .foot .claim .warn", "the passage does not name Mars")
        assert page.wait(".answer h4").text == "Marie Curie"
        assert [one.text for one in page.all(".answer li")] == [
            "She was born on Mars 1.",
            "See <b>argv[1]</b>.",
            "关于《镭》的[注](/a)，180~190年，200~210年1(她)。",
        ]
        assert page.wait(".answer code").text == "argv[1]"
        assert page.wait(".answer td:nth-child(2)").text == "Mars 1"
        assert len(page.all(".answer button.number")) == 4


def test_a_marked_claim_says_why_on_hover_and_by_keyboard(kb: Path, page: Page) -> None:
    """In words at its number, and beside its sentence below the answer; another claim has no such mark. A
    statement without a number gets one of the page's own, for its nearest sentence.
    """
    claims = "Marie Curie was born in Warsaw [1]. She was born on Mars [1]."
    llm = PacedLLM([f"{claims} She discovered radium in 1850."])
    llm.turns.release(9)
    with serving_model(kb, llm) as server:
        page.open(server)
        page.ask("Where was Marie Curie born?")
        mark = page.wait(".answer .number.missing", "1")
        differing = [one.text for one in page.all("#ask .foot .claim .differs")]
        assert differing == ["Mars", "1850"]
        assert page.wait(".answer .near").text.startswith("≈2")
        page.wait("#ask .foot summary", "Nearest sentences")
        assert not page.all("#tip") and len(page.all(".answer .number:not(.missing)")) == 1
        ActionChains(page.driver).move_to_element(mark).perform()
        page.wait("#tip", "Differs – the passage does not name Mars")
        ActionChains(page.driver).move_to_element(page.wait("header")).perform()
        page.gone("#tip")
        page.run("document.querySelector('.answer .number').focus()")
        page.press(Keys.TAB)
        page.wait("#tip", "does not name Mars")
        assert "does not name Mars" in str(mark.get_attribute("aria-label"))


def test_a_number_is_shown_once_a_sentence(kb: Path, page: Page) -> None:
    """At its last place; another sentence, and a marked claim, show it again."""
    written = (
        "Marie Curie was born in Warsaw [1], and she discovered radium with Pierre Curie in Paris [1]. "
        "She discovered radium [1]. 她生于华沙[1]，她发现了镭[1]。 She found it in 2099 [1], and she discovered radium with Pierre Curie [1]."
    )
    llm = PacedLLM([written])
    llm.turns.release(9)
    with serving_model(kb, llm) as server:
        page.open(server)
        page.ask("Where was Marie Curie born?")
        text = page.wait(".answer.written").text
        assert text.startswith("Marie Curie was born in Warsaw, and she discovered"), text
        assert text.count("1") == 5, text


def test_a_conversation_survives_a_reload(kb: Path, page: Page) -> None:
    """With its sources and evidence, and it goes on from there; a new conversation forgets it. What
    answers is said before the first question, and something moves while it works.
    """
    llm = PacedLLM(["Marie Curie was born in Warsaw [1]."])
    with serving_model(kb, llm) as server:
        page.open(server)
        page.wait("#ask .composer", "Answers are written by paced.")
        page.ask("Where was Curie born?")
        page.wait(".busy .dots")
        llm.turns.release()
        page.wait(".answer button.number")
        page.gone(".busy")
        page.driver.refresh()
        page.wait("article h2", "Where was Curie born?")
        page.wait(".answer button.number", "1").click()
        page.wait("#passage mark", "Warsaw")
        page.press(Keys.ESCAPE)
        page.ask("And where did she work?")
        llm.turns.release()
        page.wait("article + article .answer button.number")
        assert any("Where was Curie born?" in call for call in llm.calls[1:])
        page.wait("button", "New conversation").click()
        page.driver.refresh()
        page.wait("#ask h1")
        assert not page.all("article")


def test_without_a_model_the_page_says_so(server: Running, page: Page) -> None:
    """Before the first question."""
    page.open(server)
    page.wait("#ask .composer", "No model is set")


def test_modes_and_formats_are_listed_as_the_server_names_them(server: Running, page: Page) -> None:
    """In both languages, the default mode first."""
    settings = server.get("/indexes/kb/settings")
    page.open(server)
    page.wait("#ask .composer", "No model is set")
    for language, brackets in {"en": " ({})", "zh": "（{}）"}.items():
        listed = page.run("[...document.querySelectorAll('#ask option')].map((one) => one.text)")
        assert listed == [
            names[language] + brackets.format(mode) for mode, names in settings["modes"].items()
        ]
        kinds = page.run("document.querySelector('#documents .drop details p').textContent")
        for names in settings["formats"]:
            assert names[language] in kinds
        page.wait("#language").click()


def test_an_answer_is_copied_and_shown_as_it_was_written(kb: Path, page: Page) -> None:
    """With the list of its sources; the Markdown can be seen, and hidden again."""
    llm = PacedLLM(["**Marie Curie** was born in Warsaw [1]."])
    llm.turns.release(9)
    with serving_model(kb, llm) as server:
        page.open(server)
        permissions = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
        page.driver.execute_cdp_cmd("Browser.grantPermissions", permissions)
        page.ask("Where was Marie Curie born?")
        page.wait("#ask .foot button", "Copy").click()
        page.wait("#ask .foot button", "Copied")
        copied = page.run("navigator.clipboard.readText()")
        assert copied.startswith("**Marie Curie** was born in Warsaw [1].\n\n[1]")
        page.wait("#ask .foot button", "Markdown").click()
        page.wait("pre.source", "**Marie Curie**")
        assert not page.all(".answer")
        page.wait("#ask .foot button", "Markdown").click()
        page.wait(".answer b", "Marie Curie")


def test_an_entity_is_changed_merged_deleted_and_each_undone(kb: Path, page: Page) -> None:
    """In a dialog that asks for the author, with a button that undoes it at once."""

    def change(button: str, values: dict[str, str], send: str) -> None:
        page.wait("#graph aside .link", button).click()
        for name, value in values.items():
            entry = page.wait(f"#edit [name={name}]")
            entry.clear()
            entry.send_keys(value)
        page.wait("#edit .main", send).click()

    def undo() -> None:
        page.wait("#notice button", "Undo").click()
        page.wait("#notice", "Undone.")

    def choose(name: str) -> None:
        search = page.wait("#graph input")
        search.clear()
        search.send_keys(name)
        page.wait("#graph .side li:only-child .line", name).click()
        page.wait("#graph aside h2", name)

    with serving(kb) as server:
        page.open(server, "graph")
        page.wait("#graph aside h2")
        choose("Marie Curie")
        before = page.wait("#graph aside .description").text
        change("Edit", {"description": "A chemist. 化学家", "by": "Ada 😀"}, "Save")
        page.wait("#graph aside .description", "A chemist. 化学家")
        undo()
        page.wait("#graph aside .description", before)
        change("Merge", {"target": "Pierre Curie"}, "Merge")
        page.wait("#notice", "merged")
        assert server.get("/indexes/kb/entities", q="marie")["total"] == 0
        undo()
        page.wait("#graph aside h2", "Marie Curie")
        change("Delete", {"reason": "not needed"}, "Delete")
        page.wait("#notice", "deleted")
        assert server.get("/indexes/kb/entities", q="marie")["total"] == 0
        undo()
        page.wait("#graph aside h2", "Marie Curie")


def test_a_change_that_fails_says_why_and_keeps_what_was_written(
    server: Running, page: Page
) -> None:
    """In the dialog, which stays open: here somebody else has deleted the entity meanwhile."""
    page.open(server, "graph")
    page.wait("#graph aside .line")
    page.wait("#graph input").send_keys("pierre")
    page.wait("#graph .side li:only-child .line", "Pierre Curie").click()
    page.wait("#graph aside h2", "Pierre Curie")
    page.wait("#graph aside .link", "Edit").click()
    page.wait("#edit [name=description]").send_keys(" A physicist.")
    author = page.wait("#edit [name=by]")
    author.clear()
    author.send_keys("Ada")
    deletion = {"action": "delete", "name": "Pierre Curie", "by": "Bob"}
    server.job(server.post("/indexes/kb/edit", deletion, 202))
    page.wait("#edit .main", "Save").click()
    page.wait("#edit [role=alert]", "Pierre Curie")
    assert "A physicist." in page.wait("#edit [name=description]").get_attribute("value")


def test_a_neighbourhood_is_collapsed(tmp_path: Path, page: Page) -> None:
    """The entities that are drawn for its sake go; it stays itself."""
    records: list[Record] = [
        entity("Ida Moe", "Ida Moe lives in Leith.", "person"),
        entity("Leith", "Ida Moe lives in Leith.", "place"),
        relation("Ida Moe", "Leith", "Ida Moe lives in Leith."),
    ]
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert_records(Document("Ida Moe lives in Leith.", id="d"), records)
    with serving(tmp_path / "kb") as server:
        page.open(server, "graph/entity/Ida%20Moe")
        page.wait("#graph aside h2", "Ida Moe")
        page.wait("#graph .chips .chip", "place")
        page.wait("#graph aside .link", "Collapse").click()
        page.gone("#graph .chips .chip + .chip")
        page.wait("#graph aside h2", "Ida Moe")


def test_an_entity_with_hundreds_of_relations_says_how_many_are_shown(
    tmp_path: Path, page: Page
) -> None:
    """Its history, its relations, its passages and the list of entities name what is shown and what
    there is; more comes on demand, in both languages.
    """
    sentences = [f"Ida Holm repaired the light of Cape{number}." for number in range(130)]
    with LightRAG(tmp_path / "kb", embedder="hash") as rag:
        for number, sentence in enumerate(sentences):
            records: list[Record] = [
                entity("Ida Holm", sentence, "person"),
                entity(f"Cape{number}", sentence, "place"),
                relation("Ida Holm", f"Cape{number}", sentence),
            ]
            rag.insert_records(Document(sentence, id=f"d{number}"), records)
    with serving(tmp_path / "kb") as server:
        page.open(server, "graph/entity/Ida%20Holm")
        page.wait("#graph aside .soft", "The first 40 of 130")
        page.wait("#graph .side .soft", "The first 30 of 131")
        page.wait("#graph aside h3", "Documents of the first 20 passages")
        page.wait("#graph aside .link", "Sources").click()
        page.wait("#passage .soft", "The first 20 passages; there may be more.")
        assert len(page.all("#passage .card")) == 20
        page.press(Keys.ESCAPE)
        page.open(server, "graph/history/Ida%20Holm")
        page.wait("#graph aside .soft", "The first 100 of 130")
        assert len(page.all("#graph aside .timeline li")) == 100
        page.wait("#language").click()
        page.wait("#graph aside .soft", "前 100 条，共 130 条")
        page.wait("#graph aside button", "显示更多说法").click()
        page.wait("#graph aside .timeline li:nth-child(130)")
        page.wait("#language").click()


def test_a_failed_job_is_tried_again_on_the_page(
    server: Running, page: Page, tmp_path: Path
) -> None:
    """Its button starts it anew, with the same file."""
    bad = tmp_path / "bad.pdf"
    bad.write_bytes(b"no PDF")
    page.open(server, "documents")
    page.wait("#documents tbody a", "Curie")
    page.driver.find_element(By.CSS_SELECTOR, "input[type=file]").send_keys(str(bad))
    page.wait("#documents .rows .warn", "bad.pdf")
    (first,) = server.get("/indexes/kb/jobs")["items"]
    page.click("#documents details[open] .card", "bad.pdf", "[data-t=retry_job]")
    wait_for(
        lambda: (
            server.get("/indexes/kb/jobs")["items"][0]["ended_at"] not in (None, first["ended_at"])
        )
    )
    page.wait("#documents .rows .warn", "bad.pdf")


def test_files_that_could_not_be_read_are_named_on_the_first_screen(
    server: Running, page: Page, tmp_path: Path
) -> None:
    """With the reasons; the table of documents says that they have failed, also where it is asked for these."""
    page.open(server, "documents")
    page.wait("#documents tbody a", "Curie")
    for name in ("报告.pdf", "empty.md", "data.bin"):
        content = b"" if name == "empty.md" else bytes(range(256))
        (tmp_path / name).write_bytes(content)
        page.driver.find_element(By.CSS_SELECTOR, "input[type=file]").send_keys(
            str(tmp_path / name)
        )
        page.wait("#documents tbody tr:has(.badge.failed)", name)
    page.wait("#documents select option", "failed").click()
    page.gone("#documents .badge.done")
    page.wait("#documents tbody tr:has(.badge.failed)", "data.bin")
    failed = server.get("/indexes/kb/documents?state=failed")
    reasons = {document["source"]: document["failures"] for document in failed["items"]}
    for name in ("报告.pdf", "empty.md", "data.bin"):  # other tests use this server, too
        assert name in reasons[name][0]["reason"]
    page.wait("nav a", "Ask").click()
    page.wait("#ask details.warn summary", "Files that could not be read (").click()
    page.wait("#ask details.warn li", "empty.md is empty")


def test_a_retry_is_offered_where_something_failed(kb: Path, page: Page) -> None:
    """And no longer once it is done."""
    with LightRAG(kb, llm=ScriptedLLM(lambda request: "no record")) as rag:
        rag.insert(Document("Emmy Noether taught in Göttingen.", id="noether"))
    with serving(kb, models={"llm": "none"}) as server:
        page.open(server, "documents")
        page.wait("#documents .rows .warn")
        page.wait("#documents [data-t=retry]", "Retry what failed").click()
        page.wait("#documents details[open] .card", "Retrying")
        page.gone("#documents [data-t=retry]:not([hidden])")
        page.gone("#documents .rows .warn")


def test_reports_are_offered_where_a_model_could_write_some(kb: Path, page: Page) -> None:
    """Not without a model, nor when none is missing."""
    report = {"title": "x", "summary": "y", "findings": [{"text": "z", "passages": [1]}]}
    llm = ScriptedLLM(lambda request: json.dumps(report))
    with serving(kb) as server:
        page.open(server, "graph")
        page.wait("#graph aside .line")
        assert not page.all("[data-t=write_reports]")
    with serving_model(kb, llm) as server:
        page.open(server, "graph")
        page.wait("#graph aside [data-t=write_reports]", "Write the missing reports")
    with LightRAG(kb, llm=llm) as rag:
        rag.communities.report()
    with serving_model(kb, llm) as server:
        page.open(server, "graph")
        page.wait("#graph aside .line", "y")
        assert not page.all("[data-t=write_reports]")


# Properties that every object of JavaScript has, the prototype included.
PROPERTIES = ("__proto__", "constructor", "toString", "hasOwnProperty", "valueOf")


def test_names_in_a_drawing_never_lie_over_one_another(tmp_path: Path, page: Page) -> None:
    """However close the entities are; that with most relations is named, and so are some small ones."""
    names = [f"Elizabeth Montgomery-Featherstone {number}" for number in range(30)]
    records: list[Record] = [entity(name) for name in ("Hub", *names)]
    records += [relation("Hub", name) for name in names]
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert_records(Document("Hub knows all of them.", id="d"), records)

    def collide(first: Any, second: Any) -> bool:
        _, first_x, first_y, first_width = first
        _, second_x, second_y, second_width = second
        is_beside = first_x + first_width <= second_x or second_x + second_width <= first_x
        return not is_beside and abs(first_y - second_y) < LETTERS

    with serving(tmp_path / "kb") as server:
        page.open(server, "graph")
        page.run(f"(() => {{{WATCH_NAMES}}})()")
        page.wait("#graph aside .line", "Hub").click()
        page.wait("#graph aside h2", "Hub")
        written = wait_for(lambda: page.run("window.written"), lambda seen: len(seen) > 2)

    assert "Hub" in {name for name, *_ in written}
    assert [pair for pair in combinations(written, 2) if collide(*pair)] == []


def test_entities_may_have_the_names_of_properties(kb: Path, page: Page) -> None:
    """In the graph, the lists and the evidence they are entities like others; types and documents, too."""
    records: list[Record] = [
        {"type": "entity", "name": name, "entity_type": name, "description": f"{name} runs."}
        for name in PROPERTIES
    ]
    records += [
        {
            "type": "relationship",
            "source": first,
            "target": second,
            "keywords": ["calls"],
            "description": f"{first} calls {second}.",
        }
        for first, second in combinations(PROPERTIES, 2)
    ]
    text = " ".join(f"{first} calls {second}." for first, second in combinations(PROPERTIES, 2))
    with LightRAG(kb) as rag:
        report = rag.insert_records(Document(text, id="__proto__", title="__proto__"), records)
        assert not report.failures
    with serving(kb) as server:
        names = [one["name"] for one in server.get("/indexes/kb/entities", q="", limit=50)["items"]]
        assert {*PROPERTIES} <= {*names}
        page.open(server, "graph")
        page.wait("#graph aside h2")
        for name in PROPERTIES:
            page.wait("#graph button", "Clear").click()
            search = page.wait("#graph input")
            search.clear()
            search.send_keys(name)
            page.wait("#graph .side li:only-child .line", name)
            search.send_keys(Keys.ENTER)
            page.wait("#graph aside h2", name)
            rest = [one for one in PROPERTIES if one != name]
            assert all(page.wait("#graph aside .line", other) for other in rest)
            page.wait("#graph canvas")
            chips = {one.text for one in page.all("#graph .chips .chip")}
            assert {name.lower() for name in PROPERTIES} <= chips
        page.wait("#graph aside .link").click()
        page.wait("#passage h3", "__proto__")
        page.press(Keys.ESCAPE)
        page.run("location.hash = '#ask'")
        page.ask("What does constructor call, and what does __proto__ call?")
        page.wait("#ask .foot h3")
        page.wait("#ask .side .line", "constructor")
        assert not page.all("#notice") and not page.all("article .warn")


@pytest.mark.parametrize(
    ("text", "true", "false"),
    [
        (
            "The lighthouse of Norby was built in 1871. 🐧 Its lamp burns whale oil.",
            "🐧 The lighthouse of Norby was built in 1871",
            "The lighthouse of Norby was built in 1781",
        ),
        (
            "龙井茶产于杭州西湖一带。清明之前采摘的最为珍贵。",
            "🍵龙井茶产于杭州西湖一带",
            "清明之前采摘的不珍贵",
        ),
    ],
    ids=["English", "Chinese"],
)
def test_a_false_claim_is_marked_where_another_one_is_right(
    kb: Path, page: Page, text: str, true: str, false: str
) -> None:
    """The number behind the claim has a mark and words that say why, whatever else cites the passage,
    and opens the passage below claim and sentence; on the page of the trace as well.
    """
    with LightRAG(kb) as rag:
        rag.insert(Document(text, id="own", title="Own"))
    llm = PacedLLM([f"**{true} [1].** \n\n- {false} [1].\n- {true} [1].\n"])
    llm.turns.release(9)
    with serving_model(kb, llm) as server:
        page.open(server)
        page.run("document.querySelector('#ask .filters [name=title]').value = 'Own'")
        page.ask(f"{true}?")
        page.wait("#ask .foot .claim", false)
        marks = "[...document.querySelectorAll('.answer button.number')]"
        weak = page.run(f"{marks}.map(one => one.classList.contains('missing'))")
        assert weak == [False, True, False]
        shown = f"{marks}.map(one => getComputedStyle(one, '::after').content)"
        assert [mark for mark in page.run(shown) if "!" in mark] == ['" !"']
        labels = page.run(f"{marks}.map(one => /Differs|不符/.test(one.ariaLabel))")
        assert labels == weak
        page.all(".answer button.number")[1].click()
        page.wait("#passage .claim", false)
        assert page.all("#passage .claim .differs") and page.all("#passage mark")
        page.press(Keys.ESCAPE)
        page.all(".answer button.number")[2].click()
        page.wait("#passage mark", text[:10])
        assert not page.all("#passage .warn")
        page.press(Keys.ESCAPE)
        page.driver.get(page.wait("#ask .foot a").get_attribute("href") or "")
        page.wait("#answer .note", "⟨")  # around the words that differ
        trace = "[...document.querySelectorAll('#answer a.cite')]"
        assert page.run(f"{trace}.map(one => one.classList.contains('marked'))") == weak
        page.all("#answer a.cite")[1].click()
        page.wait("#panel p", "1871" if false.isascii() else "没有“不”")
        page.all("#answer a.cite")[2].click()
        page.wait("#panel mark.on", text[:10])


def test_the_first_file_is_added_and_asked_about_in_the_page(tmp_path: Path, page: Page) -> None:
    """An empty index says so; a pasted text is read, then questions are offered that it answers. The answer, an
    entity and the document each have an address that leads back to them.
    """
    LightRAG(tmp_path / "kb").close()
    with serving(tmp_path / "kb") as server:
        page.open(server)
        page.wait("#ask h1", "Drop your first file")
        page.wait("#ask .drop button", "Paste text").click()
        text = "Captain Mary Osgood commands the ferry Solveig. The Solveig sails to Lund Island."
        page.wait("#edit textarea").send_keys(text)
        page.wait("#edit [name=title]").send_keys("Ferry")
        page.wait("#edit .main", "Add").click()
        page.wait("#ask .questions button", "What is this about?").click()
        page.wait(".answer button.number")
        answer = page.run("location.href")
        assert "#ask/" in answer
        page.wait("nav a", "Documents").click()
        page.wait("#documents tbody a", "Ferry").click()
        page.wait("#documents .whole", "Mary Osgood")
        page.driver.back()
        page.wait("#documents tbody a", "Ferry")
        page.driver.get(f"{server.url}/#graph/entity/Mary%20Osgood")
        page.wait("#graph aside h2", "Mary Osgood")
        page.wait("#graph aside .links a", "Ferry")
        assert page.run("document.title").startswith("Mary Osgood")
        page.driver.get(answer)
        page.wait("article h2", "What is this about?")


def test_colors_of_types_are_those_of_the_export() -> None:
    """In the same order, the last one for all other types."""
    source = STATIC.with_name("page") / "drawing.js"
    if not source.is_file():
        pytest.skip("needs the page's sources")
    assert tuple(re.findall(r"#[0-9a-f]{6}", source.read_text(encoding="utf-8"))) == COLORS


def test_relations_that_state_nothing_are_known_to_the_page() -> None:
    """Their keywords are those of the index, in each language."""
    source = STATIC.with_name("page") / "strings.js"
    if not source.is_file():
        pytest.skip("needs the page's sources")
    (words,) = re.findall(r"STATING_NOTHING = new Set\((.*?)\)", source.read_text(encoding="utf-8"))
    assert set(json.loads(words)) >= STATING_NOTHING


def insert_heads(folder: Path) -> None:
    """Offices with one head each, by two documents; of one office the documents disagree."""
    with LightRAG(folder, embedder="hash") as rag:
        for number in range(6):
            for source in "ab":
                head = "Ida Moe" if (number, source) == (5, "b") else f"Head{number}"
                text = f"🏛️ {head} is the head of Office{number}."
                record: Record = {
                    "type": "relationship",
                    "source": head,
                    "target": f"Office{number}",
                    "keywords": ["head of"],
                    "description": text,
                }
                document = Document(text, id=f"{number}{source}", date="June 2020")
                rag.insert_records(document, [record])


def test_a_contradiction_is_listed_and_settled_and_a_history_shown(
    tmp_path: Path, page: Page
) -> None:
    """Each statement opens its passage with the sentence marked; a deletion with a reason settles the
    contradiction, and can be undone.
    """
    insert_heads(tmp_path / "kb")
    with serving(tmp_path / "kb") as server:
        page.open(server, "graph")
        page.wait("#graph aside h2", "Overview")
        page.wait("#graph button", "Contradictions").click()
        page.wait("#graph aside h3", "Office5")
        page.wait("#graph aside .claim-line", "Ida Moe").click()
        assert "Ida Moe is the head of Office5." in page.wait("#passage mark").text
        page.press(Keys.ESCAPE)
        page.gone("#passage")
        page.click("#graph aside li", "Ida Moe", "button.link")
        page.wait("#edit [name=by]").send_keys("Ada")
        page.wait("#edit [name=reason]").send_keys("see the register")
        page.wait("#edit .main", "Delete this relation").click()
        page.wait("#graph aside .soft", "No contradictions were found.")
        page.wait("#notice button", "Undo").click()
        page.wait("#graph aside h3", "Office5")
        page.wait("#graph input").send_keys("Office5")
        page.wait("#graph .side li:only-child .line", "Office5").click()
        page.wait("#graph aside .link", "History").click()
        page.wait("#graph aside .timeline", "says a text of June 2020")
        assert len(page.all("#graph aside .timeline .claim-line")) == 2


def insert_namesakes(folder: Path) -> None:
    """Two people of one name, born in different years, and another name of one bearer."""
    with LightRAG(folder, embedder="hash") as rag:
        for id, name, year in (("old", "Ada Gale", 1820), ("new", "Ada Gale", 1955)):
            text = f"{name} was born in {year}."
            record = entity(name, text, "person")
            rag.insert_records(Document(text, id=id, title=f"Register of {year}"), [record])
        for id in ("first", "second"):
            text = f"Ida Moe was born in 1901 in Leith. {id}"
            records = [entity("Ida Moe", text, "person"), relation("Ida Moe", "Leith", text)]
            rag.insert_records(Document(text, id=id), records)


def test_a_late_answer_does_not_cover_what_was_asked_for_after_it(
    tmp_path: Path, page: Page
) -> None:
    """The overview, which comes to begin with, is drawn; beside it stands what was clicked meanwhile."""
    insert_namesakes(tmp_path / "kb")
    with serving(tmp_path / "kb") as server:
        page.open(server)
        page.driver.execute_script(HOLD, "/overview")
        page.wait("nav a", "Graph").click()
        page.wait("#graph button", "Namesakes").click()
        page.wait("#graph aside h3", "Ada Gale")
        page.driver.execute_script("held.go();")
        page.wait("#graph .chip")
        assert page.wait("#graph aside h2").text == "Namesakes"
        page.wait("#graph button", "Overview").click()
        page.wait("#graph aside h2", "Overview")


def test_namesakes_are_listed_separated_and_rejoined(tmp_path: Path, page: Page) -> None:
    """With the reason, the passages of each bearer, and qualifiers that a person may change; undone at
    once, or later at each entity. A name of one bearer is not listed.
    """
    insert_namesakes(tmp_path / "kb")

    def names() -> set[str]:
        items = server.get("/indexes/kb/entities", q="gale")["items"]
        return {item["name"] for item in items}

    def separate() -> None:
        page.wait("#graph aside .card .link", "Separate").click()
        page.wait("#edit .main", "Separate").click()
        page.wait("#notice", "is separated")

    with serving(tmp_path / "kb") as server:
        page.open(server, "graph")
        page.wait("#graph aside h2", "Overview")
        page.wait("#graph button", "Namesakes").click()
        page.wait("#graph aside .card p", "1955 / 1820")
        assert [title.text for title in page.all("#graph aside h3")] == ["Ada Gale"]
        assert "Register of 1820" in page.wait("#graph aside .card .line", "(1820)").text
        page.wait("#graph aside .card .line", "(1820)").click()
        page.wait("#passage .passage", "born in 1820")
        assert len(page.all("#passage article")) == 1
        page.press(Keys.ESCAPE)
        page.gone("#passage")
        separate()
        assert names() == {"Ada Gale (1820)", "Ada Gale (1955)"}
        page.wait("#graph aside .soft", "No name seems to have several bearers.")
        page.wait("#notice button", "Undo").click()
        page.wait("#notice", "Undone.")
        assert names() == {"Ada Gale"}
        page.wait("#graph aside .card .link", "Separate").click()
        qualifier = page.wait("#edit [name=qualifier]")
        qualifier.clear()
        qualifier.send_keys("the elder")
        page.wait("#edit .main", "Separate").click()
        page.wait("#graph aside .soft", "No name seems to have several bearers.")
        assert "Ada Gale (the elder)" in names()
        page.wait("#graph input").send_keys("elder")
        page.wait("#graph .side li:only-child .line", "the elder").click()
        page.wait("#graph aside .link", "Rejoin").click()
        page.wait("#edit .main", "Rejoin").click()
        page.wait("#notice", "bare name again")
        assert "Ada Gale" in names()


def test_a_question_is_asked_as_of_a_date(tmp_path: Path, page: Page) -> None:
    """The filter takes a date as people write it; what is no date is refused in words."""
    insert_heads(tmp_path / "kb")
    with serving(tmp_path / "kb") as server:
        page.open(server)
        page.unfold("#ask .column > details")
        page.wait("[name=as_of]").send_keys("May 2020")
        page.ask("Who is the head of Office3?")
        page.wait(
            ".answer",
            "As of 2020-05, nothing was found in the indexed documents for this question.",
        )
        page.wait("[name=as_of]").clear()
        page.wait("[name=as_of]").send_keys("soon")
        page.ask("Who is the head of Office4?")
        page.wait(".foot [role=alert]", "as_of must be a date such as 2021")
    assert all("400 (Bad Request)" in line for line in page.problems())
