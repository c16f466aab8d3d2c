"""The page of a trace: self-contained, safe with hostile texts, and usable in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl.candidates import Edge, SelectedEdge
from lightrag_jsonl.explain.drawing import LARGE, drawn_edges, layout
from lightrag_jsonl.explain.events import Event, Shown
from lightrag_jsonl.explain.html import trace_page
from lightrag_jsonl.explain.sources import Sources
from lightrag_jsonl.explain.trace import Trace, fold
from lightrag_jsonl.types import Chunk, Citation, Keywords

from .conftest import NOON, Shelf
from .webdriver import Browser, browser, installed

Told = Callable[..., tuple[Event, ...]]
VOID = {"meta", "br", "hr", "link", "img"}


class Reading(HTMLParser):
    """What a page holds: tags, attributes, and whether every tag is closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.stack: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


def test_the_page_fetches_nothing(trace: Trace, shelf: Shelf) -> None:
    """No address but its own anchors, and a policy that forbids the rest."""
    page = trace_page(trace, shelf.sources())
    reading = Reading(page)

    links = [value for name, value in reading.attributes if name in ("href", "src")]
    assert links and all(link.startswith("#") for link in links)
    assert "default-src 'none'" in page
    assert not re.search(r"https?://|@import|url\((?!#)", page)


def test_every_link_has_its_target(trace: Trace, shelf: Shelf) -> None:
    """Citations and sources lead somewhere on the page, and ids are used once."""
    reading = Reading(trace_page(trace, shelf.sources()))

    ids = [value for name, value in reading.attributes if name == "id"]
    assert len(set(ids)) == len(ids)
    assert {value[1:] for name, value in reading.attributes if name == "href"} <= set(ids)


def test_equal_traces_give_equal_pages(told: Told, shelf: Shelf) -> None:
    """The drawing is laid out without chance."""
    assert trace_page(fold(told()), shelf.sources()) == trace_page(fold(told()), shelf.sources())


def test_both_languages(trace: Trace, shelf: Shelf) -> None:
    """The page speaks the language of the index."""
    assert '<html lang="en">' in trace_page(trace, shelf.sources())
    for language in ("zh", "zh-CN"):
        chinese = trace_page(trace, shelf.sources(), language=language)
        assert '<html lang="zh-CN">' in chinese and "模型看到的内容" in chinese


def test_a_deleted_source_is_said(trace: Trace, shelf: Shelf) -> None:
    """The page of an old trace still loads, says what is gone, and keeps the quotation."""
    shelf.remove("d1")

    page = trace_page(trace, shelf.sources())

    assert "source deleted" in page
    assert "Marie Curie discovered radium." in page


def test_failures_and_inventions_are_said(told: Told, shelf: Shelf) -> None:
    """Invented numbers, fallbacks and unfinished queries are in plain sight."""
    page = trace_page(fold(told(answer="Radium [1] and gold [8].")[:-1]), shelf.sources())

    assert "Cited, but never shown: [8]" in page
    assert "did not finish" in page
    assert '<span class="cite number invented">8</span>' in page


def test_bold_and_headings_are_shown(told: Told, shelf: Shelf) -> None:
    """The little markup that models write is rendered; an odd pair of stars is left alone."""
    answer = "# Result\n\nIt was **radium [1]** and ** nothing\n\nelse"

    page = trace_page(fold(told(answer=answer)), shelf.sources())

    assert "<p class=heading>Result</p>" in page
    assert '<strong>radium <a class="cite number" href="#n1">1</a></strong> and ** nothing' in page


def test_a_marker_torn_by_a_blank_line_stays_text(told: Told, shelf: Shelf) -> None:
    """No word of the answer is lost or doubled, whatever stands between brackets."""
    page = trace_page(fold(told(answer="Radium [1,\n\n2] and [1].")), shelf.sources())

    number = '<a class="cite number" href="#n1">1</a>'
    assert f"<p>Radium [1,</p><p>2] and {number}.</p>" in page


hostile = st.lists(
    st.sampled_from(
        ["<", ">", "&", '"', "'", "[1]", "**", "#", "]]>", "{x}", "\n", "中", "\ud800", "</script>"]
    ),
    max_size=12,
).map("".join)


@settings(max_examples=60)
@given(texts=st.lists(hostile, min_size=8, max_size=8))
def test_hostile_texts_stay_texts(texts: list[str]) -> None:
    """Whatever a document or a model writes, no tag, attribute or script comes of it."""
    benign = Reading(trace_page(*dressed(["a"] * 8)))
    reading = Reading(trace_page(*dressed(texts)))

    assert not reading.stack
    assert set(reading.tags) <= {*benign.tags, "strong", "mark"}
    assert reading.tags.count("script") == 1
    assert {name for name, _ in reading.attributes} <= {name for name, _ in benign.attributes}
    trace_page(*dressed(texts)).encode("utf-8")


def dressed(texts: list[str]) -> tuple[Trace, Sources]:
    """A trace that carries the eight texts wherever a text can stand."""
    edge = Edge(texts[7], texts[0], texts[1], texts[2], ("c",), 0.5)
    chunk = Chunk("c", texts[3], 0, 1, 0, len(texts[4]) + 1, texts[4] + "x")
    shown = Shown(1, "relation", edge.id, texts[5], ("c",), texts[6])
    text = chunk.text[:1]
    citation = Citation(1, "relation", texts[5], texts[3], texts[3], 1, "c", 0, 1, text)
    trace = Trace(
        "1",
        texts[7],
        "mix",
        NOON,
        error=texts[0],
        status="failed",
        keywords=Keywords((texts[1],), (texts[2],)),
        candidates=(edge,),
        selected=(SelectedEdge(edge, texts[3]),),
        shown=(shown,),
        answer=texts[6] + " [1][2]",
        citations=(citation,),
        invented=(2,),
    )
    return trace, Sources({"c": chunk})


@given(
    st.integers(1, 40).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=60),
        )
    )
)
@settings(max_examples=25)
def test_every_node_is_inside_the_drawing(graph: tuple[int, list[tuple[int, int]]]) -> None:
    """Any graph is laid out in finite positions within the drawing."""
    points = layout(*graph)

    assert np.isfinite(points).all()
    assert ((points >= 0) & (points <= np.array(LARGE))).all()


def test_the_best_edges_are_drawn() -> None:
    """The chosen come first, then the others by rank; far too many of either are left out."""
    edges = [Edge(f"{number:08x}", "a", "b", "c") for number in range(1_000)]
    ids = [edge.id for edge in edges]

    few = [edge.id for edge in drawn_edges(edges, frozenset(ids[900:910]))]
    every = [edge.id for edge in drawn_edges(edges, frozenset(ids))]

    assert few == [*ids[900:910], *ids[: len(few) - 10]] and len(few) < 100
    assert every == ids[: len(every)] and len(few) < len(every) < 500


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A real browser, where one is installed."""
    if not installed():
        pytest.skip("no chromium and chromedriver on this machine")
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


PANEL = """
const panel = document.getElementById('panel');
const box = panel.getBoundingClientRect();
return {
  hidden: panel.hidden,
  title: document.getElementById('panel-title').textContent,
  text: [...panel.querySelectorAll('.text')].map(t => t.textContent),
  marked: [...panel.querySelectorAll('mark.on')].map(m => m.textContent),
  color: [...panel.querySelectorAll('mark.on')].map(m => getComputedStyle(m).backgroundColor),
  inside: box.left >= 0 && box.right <= innerWidth && box.bottom <= innerHeight && box.height > 80,
  scrolls: document.documentElement.scrollWidth > innerWidth,
};
"""


@pytest.mark.parametrize("width", [390, 1200])
def test_a_clicked_citation_opens_its_chunk_with_the_span_marked(
    window: Browser, shelf: Shelf, told: Told, tmp_path: Path, width: int
) -> None:
    """In Chromium: the click opens the chunk, exactly the cited sentence is marked, Escape closes."""
    text = "A note 🧪 first. Marie Curie discovered radium. She liked <b>chemistry</b> & physics."
    shelf.add("d1", text, "Marie Curie was born in Warsaw.")
    page = tmp_path / "trace.html"
    trace = fold(told(answer="Marie Curie discovered radium [1]."))
    page.write_text(trace_page(trace, shelf.sources()), encoding="utf-8")
    window.resize(width, 800)
    window.open(page)

    assert window.run(PANEL)["hidden"]
    window.click("a.cite.number")
    opened = window.run(PANEL)

    assert not opened["hidden"] and opened["inside"] and not opened["scrolls"]
    assert opened["title"] == "[1] Marie Curie — discovered → radium"
    assert opened["text"] == [text]
    assert opened["marked"] == ["Marie Curie discovered radium."]
    assert opened["color"][0] not in ("rgba(0, 0, 0, 0)", "transparent")
    window.run("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))")
    assert window.run(PANEL)["hidden"]


def test_edges_of_the_drawing_and_their_sources_open_too(
    window: Browser, shelf: Shelf, trace: Trace, tmp_path: Path
) -> None:
    """A chosen edge in the list opens its source; the drawn edge opens its item."""
    page = tmp_path / "trace.html"
    page.write_text(trace_page(replace(trace), shelf.sources()), encoding="utf-8")
    window.resize(1200, 900)
    window.open(page)

    window.click("#edges .where a")
    assert window.run(PANEL)["title"] == "Chunk 1 → Page 1 → d1.txt"
    window.click("#panel-close")
    window.run(
        "document.querySelector('svg a').dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))"
    )
    assert window.run(PANEL)["title"] == "[1] Marie Curie — discovered → radium"
