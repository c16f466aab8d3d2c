"""A trace as one self-contained web page: question, answer, subgraph, chosen edges, sources."""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from typing import TypeAlias

from lightrag_jsonl.core.answers import Citation, marked_lines, nearest_lines, source_lines
from lightrag_jsonl.core.edges import Edge
from lightrag_jsonl.core.errors import required_packages
from lightrag_jsonl.core.languages import STATING_NOTHING, known_language
from lightrag_jsonl.core.types import Chunk
from lightrag_jsonl.text.citation_markers import split_citations
from lightrag_jsonl.text.markup import without_markdown
from lightrag_jsonl.text.strings import sanitize
from lightrag_jsonl.tracing.events import cited_items
from lightrag_jsonl.tracing.trace import Sources, Trace

_MOST_EDGES = 48  # more cannot be read in one drawing
_WIDTH = 920  # of the drawing, in pixels like all of these
_MARGIN = 84  # around the drawing
_ROW = 24  # the least height of a node's row
_SPACIOUS = 440  # the height of the rows together, if few nodes leave room


Size: TypeAlias = tuple[int, int]  # width and height
Point: TypeAlias = tuple[float, int]


@dataclass(frozen=True, slots=True)
class CitedNumber:
    """A number in an answer; the verdict on the claim before the number and its reason, "" for no mark."""

    number: int
    verdict: str = ""
    reason: str = ""


def render_page(trace: Trace, sources: Sources, *, language: str = "en") -> str:
    """The page of a trace, which loads nothing and runs no script but the embedded one."""
    from jinja2 import Environment

    selected_ids = {selected.edge.id for selected in trace.selected}
    cited_ids = {citation.chunk_id for citation in trace.citations}
    evidence = [edge for edge in trace.candidates if not cited_ids.isdisjoint(edge.chunk_ids)]
    edges = sorted(evidence, key=lambda edge: edge.id not in selected_ids)[:_MOST_EDGES]
    size, points = layout(edges)
    items_by_citation = cited_items(trace.shown, trace.prompt_numbers)
    cited = {item.number: number for number, item in items_by_citation.items()}
    items = sorted(trace.shown, key=lambda item: cited.get(item.number, len(cited) + 1))
    stored_ids = [id for id in trace.chunk_ids if id in sources.chunks]
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(_asset("page.html.jinja")).render(
        trace=trace,
        sources=sources,
        language=known_language(language),
        undirected=STATING_NOTHING,
        cited=cited,
        shown=items,
        source_lines=list(source_lines(trace.citations, language)),
        style=_asset("page.css"),
        script=_asset("page.js"),
        hash=_hash,
        notes=[
            *marked_lines(trace.answer or "", trace.claims, trace.citations, language),
            *nearest_lines(trace.answer or "", trace.uncited, language),
        ],
        answer=_answer_parts(trace),
        cards={id: f"c{index}" for index, id in enumerate(stored_ids)},
        marked={id: list(_cited_pieces(sources.chunks[id], trace.citations)) for id in stored_ids},
        edges=edges,
        used_edges=[selected for selected in trace.selected if selected.edge in evidence],
        other_edges=[selected for selected in trace.selected if selected.edge not in evidence],
        size=size,
        points=points,
    )
    return sanitize(page)


def source_hashes() -> tuple[str, str]:
    """The style and the script of every page, as a content security policy names them."""
    return _hash(_asset("page.css")), _hash(_asset("page.js"))


def layout(edges: Sequence[Edge]) -> tuple[Size, dict[str, Point]]:
    """The size of the drawing, and positions by name, each in a row and a column of its own to keep
    labels apart.
    """
    with required_packages():
        import networkx as nx

    graph = nx.Graph([(edge.source, edge.target) for edge in edges])
    points = nx.spring_layout(graph, seed=1)
    row = max(_ROW, min(_SPACIOUS // max(len(graph), 1), 3 * _ROW))
    step = (_WIDTH - 2 * _MARGIN) / max(len(graph) - 1, 1)
    columns = sorted(graph, key=lambda name: points[name][0])
    rows = sorted(graph, key=lambda name: points[name][1])
    positions: dict[str, Point] = {}
    for name in graph:
        x = round(_MARGIN + step * columns.index(name), 1)
        y = _MARGIN + row * rows.index(name)
        positions[name] = (x, y)
    height = 2 * _MARGIN + row * len(graph)
    return (_WIDTH, height), positions


def _answer_parts(trace: Trace) -> Iterator[str | CitedNumber]:
    """The text between the citations of an answer, and the cited numbers."""
    marked = {(claim.marker, claim.number): claim for claim in trace.claims if claim.is_marked}
    pieces, _ = split_citations(trace.answer or "")
    for piece in pieces:
        if isinstance(piece, str):
            yield without_markdown(piece)
            continue
        for number in piece.numbers:
            claim = marked.get((piece.start, number))
            if claim is None:
                yield CitedNumber(number)
            else:
                yield CitedNumber(number, claim.verdict, claim.reason or claim.verdict)


def _cited_pieces(chunk: Chunk, citations: Sequence[Citation]) -> Iterator[tuple[str, str]]:
    """The pieces of a chunk's text between the borders of citations, each after its numbers."""
    cuts = {0, len(chunk.text)}
    spans: list[tuple[int, int, str]] = []
    for citation in citations:
        start = max(citation.start - chunk.start, 0)
        end = min(citation.end - chunk.start, len(chunk.text))
        if citation.chunk_id == chunk.id and start < end:
            spans.append((start, end, str(citation.number)))
            cuts |= {start, end}
    for start, end in pairwise(sorted(cuts)):
        numbers = dict.fromkeys(
            number
            for span_start, span_end, number in spans
            if span_start <= start and end <= span_end
        )
        yield " ".join(numbers), chunk.text[start:end]


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
