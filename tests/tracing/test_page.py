"""The page of a trace: self-contained, and safe with hostile texts."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl.core.types import Chunk, Citation, Keywords
from lightrag_jsonl.retrieval.edge_selection import Edge, SelectedEdge
from lightrag_jsonl.tracing.events import Shown
from lightrag_jsonl.tracing.page import drawn_edges, layout, render_page
from lightrag_jsonl.tracing.source_lookup import Sources
from lightrag_jsonl.tracing.trace import Trace, assemble_trace

from .conftest import NOON, Events, sources_of

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
        """The values of these attributes."""
        return [value for name, value in self.attributes if name in names]


def test_the_page_fetches_nothing(trace: Trace, sources: Sources) -> None:
    """No address but its own anchors, and a policy that allows its own style and script alone."""
    page = render_page(trace, sources)

    links = ParsedPage(page).values("href", "src")
    assert links and all(link.startswith("#") for link in links)
    assert "default-src 'none'" in page
    for tag in ("style", "script"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in page
    assert not re.search(r"https?://|@import|url\((?!#)", page)


def test_every_link_has_its_target(trace: Trace, sources: Sources) -> None:
    """Citations and sources lead somewhere on the page, and ids are used once."""
    parsed = ParsedPage(render_page(trace, sources))

    ids = parsed.values("id")
    assert len(set(ids)) == len(ids)
    assert {value[1:] for value in parsed.values("href")} <= set(ids)
    assert set(" ".join(parsed.values("data-chunks")).split()) <= set(ids)


def test_equal_traces_give_equal_pages(events: Events, sources: Sources) -> None:
    """The drawing is laid out without chance."""
    first, second = (render_page(assemble_trace(events()), sources) for _ in range(2))
    assert first == second


def test_both_languages(trace: Trace, sources: Sources) -> None:
    """The page is in the language of the index."""
    assert '<html lang="en">' in render_page(trace, sources)
    for language in ("zh", "zh-CN"):
        chinese = render_page(trace, sources, language=language)
        assert '<html lang="zh-CN">' in chinese and "模型看到的内容" in chinese
        assert "分块 1 → 第 1 页 → d1.txt" in chinese


def test_an_edge_is_shown_with_reason_and_source(trace: Trace, sources: Sources) -> None:
    """Chosen edges are drawn, listed with their reason or score, and lead to their chunk."""
    page = render_page(trace, sources)
    by_rank = replace(trace, selected=(SelectedEdge(trace.candidates[0], score=0.25),))

    assert '<a class="cite" href="#n1"><g class="edge on" data-edge="66bd5bed">' in page
    assert "2 of 2 edges drawn; highlighted: 1 chosen for the answer." in page
    assert "Names the discovered element" in page
    assert '<a href="#c0">Chunk 1 → Page 1 → d1.txt</a>' in page
    assert "chosen by rank, score 0.25" in render_page(by_rank, sources)


def test_a_deleted_source_is_reported(trace: Trace) -> None:
    """The page of an old trace still loads, says what is gone, and keeps the quotation."""
    page = render_page(trace, Sources())

    assert "source deleted" in page
    assert "Marie Curie discovered radium." in page


def test_failures_and_inventions_are_reported(events: Events, sources: Sources) -> None:
    """Invented numbers, fallbacks, unfinished and failed queries are in plain sight."""
    trace = assemble_trace(events(answer="Radium [1] and gold [8].")[:-1])
    page = render_page(trace, sources)
    failed = replace(trace, status="failed", error="no route", answer=None, fallback=True)

    assert "Cited, but never shown: [8]" in page
    assert "did not finish" in page
    assert '<span class="cite number invented">8</span>' in page
    for words in ("The query failed: no route", "No answer is on record.", "The model chose no"):
        assert words in render_page(failed, sources)


def test_bold_and_headings_are_shown(events: Events, sources: Sources) -> None:
    """The little markup that models write is rendered; an odd pair of stars is left alone."""
    answer = "# Result\n\nIt was **radium [1]** and ** nothing\n\nelse"

    page = render_page(assemble_trace(events(answer=answer)), sources)

    assert '<p class="heading">Result</p>' in page
    assert '<strong>radium <a class="cite number" href="#n1">1</a></strong> and ** nothing' in page


def test_a_marker_torn_by_a_blank_line_stays_text(events: Events, sources: Sources) -> None:
    """No word of the answer is lost or doubled, whatever is between brackets."""
    page = render_page(assemble_trace(events(answer="Radium [1,\n\n2] and [1].")), sources)

    number = '<a class="cite number" href="#n1">1</a>'
    assert f"<p>Radium [1,</p>\n<p>2] and {number}.</p>" in page


def test_exactly_the_cited_span_is_marked(events: Events) -> None:
    """The chunk is cut at the borders of the citation, and nothing of its text is lost."""
    text = "A note 🧪 first. Marie Curie discovered radium. She liked <b>chemistry</b> & physics."
    sources = sources_of(text, "Marie Curie was born in Warsaw.")
    trace = assemble_trace(events(sources=sources, answer="Marie Curie discovered radium [1]."))

    assert (
        '<p class="text">A note 🧪 first. '
        '<mark data-n="1" data-w="">Marie Curie discovered radium.</mark>'
        " She liked &lt;b&gt;chemistry&lt;/b&gt; &amp; physics.</p>"
    ) in render_page(trace, sources)


hostile = st.lists(
    st.sampled_from(
        ["<", ">", "&", '"', "'", "[1]", "**", "#", "]]>", "{x}", "{{ 1 }}", "\n", "中", "\ud800"]
    ),
    max_size=12,
).map("".join)


@settings(max_examples=40)
@given(texts=st.lists(hostile, min_size=8, max_size=8))
def test_hostile_texts_stay_texts(texts: list[str]) -> None:
    """Whatever a document or a model writes, no tag, attribute or script comes of it."""
    benign = ParsedPage(render_page(*filled_with(["a"] * 8)))
    page = render_page(*filled_with([*texts[:7], texts[7] + "</script>"]))
    parsed = ParsedPage(page)

    assert not parsed.stack
    assert set(parsed.tags) <= {*benign.tags, "strong", "mark"}
    assert parsed.tags.count("script") == 1
    assert {name for name, _ in parsed.attributes} <= {name for name, _ in benign.attributes}
    page.encode("utf-8")


def filled_with(texts: list[str]) -> tuple[Trace, Sources]:
    """A trace that carries the eight texts wherever a text can stand."""
    edge = Edge(texts[7], texts[0], texts[1], texts[2] + "x", ("c",), 0.5)
    chunk = Chunk("c", texts[3], 0, 1, 0, len(texts[4]) + 1, texts[4] + "x")
    shown = Shown(1, "relation", edge.id, texts[5], ("c",), texts[6])
    citation = Citation(1, "relation", texts[5], texts[3], texts[3], 1, "c", 0, 1, chunk.text[:1])
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
        answer="# a\n\n" + texts[6] + " [1][2]",
        citations=(citation,),
        invented=(2,),
    )
    return trace, Sources({"c": chunk})


@given(st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=60))
@settings(max_examples=25)
def test_every_node_has_a_place_for_its_label(pairs: list[tuple[int, int]]) -> None:
    """Any graph is laid out within the drawing, and no two labels share a line."""
    size, points = layout([Edge("e", str(a), "p", str(b)) for a, b in pairs])

    assert set(points) == {str(name) for pair in pairs for name in pair}
    assert all(0 <= x <= size[0] and 0 <= y <= size[1] for x, y in points.values())
    heights = sorted(y for _, y in points.values())
    assert all(after - before > 16 for before, after in pairwise(heights))


def test_the_best_edges_are_drawn(trace: Trace) -> None:
    """The chosen come first, then the others by rank; far too many of either are left out."""
    edges = tuple(Edge(f"{number:08x}", "a", "b", "c") for number in range(1_000))

    def drawn(chosen: tuple[Edge, ...]) -> list[Edge]:
        selected = tuple(SelectedEdge(edge) for edge in chosen)
        return drawn_edges(replace(trace, candidates=edges, selected=selected))

    few, every = drawn(edges[900:910]), drawn(edges)

    assert few == [*edges[900:910], *edges[: len(few) - 10]] and len(few) < 100
    assert every == list(edges[: len(every)]) and len(few) < len(every) < 500
