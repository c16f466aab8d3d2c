"""The page of a trace: self-contained, and safe with hostile texts."""

import base64
import hashlib
import re
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl import Chunk, Citation, Keywords, Trace
from lightrag_jsonl.core.edges import Edge, SelectedEdge
from lightrag_jsonl.tracing.events import PromptItem
from lightrag_jsonl.tracing.page import render_page
from lightrag_jsonl.tracing.trace import Sources
from tests.processes import installed_browser

from .conftest import NOON, Events, trace_of
from .curie import ENGLISH, opened

VOID = {"meta", "br", "hr", "link", "img"}


class ParsedPage(HTMLParser):
    """What a page holds: tags, attributes, and whether every tag is closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.stack: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def values(self, *names: str) -> list[str]:
        return [value for name, value in self.attributes if name in names]


def hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_page_fetches_nothing_and_every_link_has_its_target(
    trace: Trace, sources: Sources
) -> None:
    """No address but its own anchors, and a policy that allows its own style and script alone;
    equal traces give equal pages.
    """
    page = render_page(trace, sources)
    parsed = ParsedPage(page)

    links, ids = parsed.values("href", "src"), parsed.values("id")
    assert links and all(link.startswith("#") for link in links)
    assert len(set(ids)) == len(ids) and {link[1:] for link in links} <= set(ids)
    assert set(" ".join(parsed.values("data-chunks")).split()) <= set(ids)
    assert "default-src 'none'" in page
    for tag in ("style", "script"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert f"{tag}-src {hash_of(text)}" in page
    assert not re.search(r"https?://|@import|url\((?!#)", page)
    assert page == render_page(trace, sources)


@pytest.mark.slow
def test_an_edge_is_shown_with_reason_and_source(trace: Trace, sources: Sources) -> None:
    """Chosen edges of cited passages are drawn, and chosen ones listed with their reason or score, and lead to their chunk; of a
    deleted chunk the page keeps the quotation. The page is in the language of the index.
    """
    chinese = render_page(trace, sources, language="zh-CN")
    assert '<html lang="zh-CN">' in chinese and "分块 1 → 第 1 页 → d1.txt" in chinese
    page, bare = render_page(trace, sources), render_page(trace, Sources())
    by_rank = replace(trace, selected=(SelectedEdge(trace.candidates[0], score=0.25),))

    assert '<a class="cite" href="#n2"><g class="edge on" data-edge="66bd5bed">' in page
    assert "1 of 2 edges drawn; highlighted: 1 chosen for the answer." in page
    assert "Names the discovered element" in page
    assert '<a href="#c0">Chunk 1 → Page 1 → d1.txt</a>' in page
    assert "chosen by rank, score 0.25" in render_page(by_rank, sources)
    assert "source deleted" in bare and "Marie Curie discovered radium." in bare


@pytest.mark.slow
def test_failures_and_inventions_are_reported(events: Events, sources: Sources) -> None:
    """Invented numbers, fallbacks, unfinished and failed queries are in plain sight."""
    trace = trace_of(events[:-1])
    page = render_page(trace, sources)
    failed = replace(trace, status="failed", error="no route", answer=None, fallback=True)

    assert "Cited, but never shown: [9]" in page
    assert "did not finish" in page
    assert '<span class="cite number invented">9</span>' in page
    reused = render_page(replace(trace, reused=True), sources)
    assert "written for an earlier, similar question" in reused
    for words in ("The query failed: no route", "No answer is on record.", "The model chose no"):
        assert words in render_page(failed, sources)


def test_exactly_the_cited_span_is_marked(tmp_path: Path) -> None:
    """The chunk is cut at the borders of the citation, and nothing of its text is lost."""
    text = "A note 🧪 first. Marie Curie discovered radium. She liked <b>chemistry</b> & physics."
    with opened(tmp_path, ENGLISH) as rag:
        rag.insert_records(ENGLISH.document(text=text), ENGLISH.records_of(0, *ENGLISH.found))
        page = rag.traces.page(rag.query(ENGLISH.question, mode="naive").trace_id)

    assert (
        '<p class="text">A note 🧪 first. '
        '<mark data-numbers="1">Marie Curie discovered radium.</mark>'
        " She liked &lt;b&gt;chemistry&lt;/b&gt; &amp; physics.</p>"
    ) in page


def test_an_answer_is_shown_without_raw_markdown(trace: Trace, sources: Sources) -> None:
    """Neither stars nor bars; citations stay where they are."""
    answer = "**She** found it [1].\n\n- 在巴黎👻 [1]\n\n| what | where |\n|---|---|\n| radium [1] | Paris |"
    page = render_page(replace(trace, answer=answer, claims=(), uncited=()), sources)
    (shown,) = re.findall(r'<section id="answer">.*?</p>', page, re.DOTALL)
    plain = re.sub(r"<[^>]+>", "", shown.partition("<p>")[2])
    assert plain == "She found it 1.\n\n• 在巴黎👻 1\n\nwhat · where\nradium 1 · Paris"


CLICK = 'document.querySelector("#answer a.cite").click()'


@pytest.mark.slow
def test_a_click_on_a_citation_opens_its_passage(
    trace: Trace, sources: Sources, tmp_path: Path
) -> None:
    """In a real browser, under the page's own policy, with the cited sentence marked."""
    browser = installed_browser()
    if browser is None:
        pytest.skip("no browser: apt-get install chromium")
    page = render_page(trace, sources).replace("script-src ", f"script-src {hash_of(CLICK)} ")
    file = tmp_path / "page.html"
    file.write_text(page.replace("</body>", f"<script>{CLICK}</script></body>"), encoding="utf-8")

    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/user"]
    command = [browser, *options, "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=240)

    (panel,) = re.findall(r'<aside id="panel".*?</aside>', done.stdout, re.DOTALL)
    assert " hidden" not in panel.partition(">")[0]
    assert '<mark data-numbers="1 2" class="on">Marie Curie discovered radium.</mark>' in panel


hostile = st.lists(
    st.sampled_from(
        ["<", ">", "&", '"', "'", "[1]", "**", "#", "]]>", "{x}", "{{ 1 }}", "\n", "中", "\ud800"]
    ),
    max_size=12,
).map("".join)


@pytest.fixture(scope="module")
def benign() -> ParsedPage:
    """A page without any markup in its texts."""
    return ParsedPage(render_page(*filled_with(["a"] * 8)))


@pytest.mark.slow
@settings(max_examples=40)
@given(texts=st.lists(hostile, min_size=8, max_size=8))
def test_hostile_texts_stay_texts(benign: ParsedPage, texts: list[str]) -> None:
    """Whatever a document or a model writes, no tag, attribute or script comes of it."""
    page = render_page(*filled_with([*texts[:7], texts[7] + "</script>"]))
    parsed = ParsedPage(page)

    assert not parsed.stack
    assert set(parsed.tags) <= {*benign.tags, "mark"}
    assert parsed.tags.count("script") == 1
    assert {name for name, _ in parsed.attributes} <= {name for name, _ in benign.attributes}
    page.encode("utf-8")


def filled_with(texts: list[str]) -> tuple[Trace, Sources]:
    """A trace that carries the eight texts wherever a text can stand."""
    edge = Edge(texts[7], texts[0], texts[1], texts[2] + "x", ("c",), 0.5)
    chunk = Chunk("c", texts[3], 0, 1, 0, len(texts[4]) + 1, texts[4] + "x")
    shown = PromptItem(1, "relation", edge.id, texts[5], ("c",), texts[6])
    citation = Citation(1, "relation", texts[5], texts[3], texts[3], 1, "c", 0, 1, chunk.text[:1])
    answer, keywords = f"# a\n\n{texts[6]} [1][2]", Keywords((texts[1],), (texts[2],))
    asked = Trace("1", texts[7], "mix", NOON, status="failed", error=texts[0], keywords=keywords)
    chosen = replace(asked, candidates=(edge,), selected=(SelectedEdge(edge, texts[3]),))
    trace = replace(chosen, shown=(shown,), answer=answer, citations=(citation,), invented=(2,))
    return trace, Sources({"c": chunk})
