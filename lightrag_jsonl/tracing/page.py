"""A trace as one self-contained web page: question, answer, subgraph, chosen edges, sources."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from importlib import resources
from itertools import pairwise

from lightrag_jsonl.core.text import CITATION_MARKER, sanitize
from lightrag_jsonl.core.types import Chunk, Citation, known_language
from lightrag_jsonl.retrieval.edge_selection import Edge
from lightrag_jsonl.tracing.citations import marked_numbers
from lightrag_jsonl.tracing.trace import Sources, Trace

_MOST_EDGES = 48  # more cannot be read in one drawing
_WIDTH, _ROW, _MARGIN = 920, 24, 96  # of the drawing; each node's label has a row of its own


def render_page(trace: Trace, sources: Sources, *, language: str = "en") -> str:
    """The page; it loads nothing, and runs no script but its own."""
    from jinja2 import Environment

    style, script = _asset("page.css"), _asset("page.js")
    edges = drawn_edges(trace)
    size, points = layout(edges)
    present = [id for id in trace.chunk_ids if id in sources.chunks]
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(_asset("page.html.jinja")).render(
        trace=trace,
        sources=sources,
        language=known_language(language),
        style=style,
        script=script,
        hash=_hash,
        answer=_answer_parts(trace.answer or ""),
        cards={id: f"c{index}" for index, id in enumerate(present)},
        marked={id: list(_marked(sources.chunks[id], trace.citations)) for id in present},
        edges=edges,
        size=size,
        points=points,
    )
    return sanitize(page)


def drawn_edges(trace: Trace) -> list[Edge]:
    """The edges worth drawing: chosen ones first, then the best of the others."""
    chosen = {one.edge.id for one in trace.selected}
    return sorted(trace.candidates, key=lambda edge: edge.id not in chosen)[:_MOST_EDGES]


def layout(edges: Sequence[Edge]) -> tuple[tuple[int, int], dict[str, tuple[float, float]]]:
    """The size of the drawing, and positions in it by name: neighbors attract, all nodes repel.

    Each node has a row of its own, so that no labels overlap.
    """
    import networkx as nx

    graph = nx.Graph([(edge.source, edge.target) for edge in edges])
    points = nx.spring_layout(graph, seed=1)
    rows = {name: row for row, name in enumerate(sorted(graph, key=lambda name: points[name][1]))}
    space = (_WIDTH - 2 * _MARGIN) / 2
    found = {}
    for name, (x, _) in points.items():
        found[name] = round(_MARGIN + (float(x) + 1) * space, 1), float(_MARGIN + _ROW * rows[name])
    return (_WIDTH, 2 * _MARGIN + _ROW * len(graph)), found


def _answer_parts(answer: str) -> Iterator[str | int]:
    """The text between the citations of an answer, and the cited numbers."""
    end = 0
    for found in CITATION_MARKER.finditer(answer):
        yield answer[end : found.start()]
        yield from marked_numbers(found)
        end = found.end()
    yield answer[end:]


def _marked(chunk: Chunk, citations: Sequence[Citation]) -> Iterator[tuple[str, str]]:
    """The chunk's text, cut at the borders of citations: the numbers that cite a piece, and it."""
    size, cuts, spans = len(chunk.text), {0, len(chunk.text)}, []
    for one in citations:
        if one.chunk_id == chunk.id:
            start, end = max(one.start - chunk.start, 0), min(one.end - chunk.start, size)
            spans.append((start, end, str(one.number)))
            cuts |= {start, end}
    for start, end in pairwise(sorted(cuts)):
        numbers = dict.fromkeys(n for a, b, n in spans if a <= start and end <= b)
        yield " ".join(numbers), chunk.text[start:end]


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
