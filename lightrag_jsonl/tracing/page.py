"""A trace as one self-contained web page: question, answer, subgraph, chosen edges, sources."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from importlib import resources
from itertools import pairwise

from lightrag_jsonl.core.text import CITATION_MARKER, sanitize
from lightrag_jsonl.core.types import Chunk, Citation, known_language, source_lines
from lightrag_jsonl.retrieval.edge_selection import Edge
from lightrag_jsonl.retrieval.numbering import marked_numbers
from lightrag_jsonl.tracing.trace import Sources, Trace

_MOST_EDGES = 48  # more cannot be read in one drawing
_WIDTH, _ROW, _MARGIN = 920, 24, 96  # of the drawing; each node's label has a row of its own


def render_page(trace: Trace, sources: Sources, *, language: str = "en") -> str:
    """The page; it loads nothing, and runs no script but its own."""
    from jinja2 import Environment

    style, script = _asset("page.css"), _asset("page.js")
    chosen = {one.edge.id for one in trace.selected}
    edges = sorted(trace.candidates, key=lambda edge: edge.id not in chosen)[:_MOST_EDGES]
    size, points = layout(edges)
    cited = {number: n for n, number in enumerate(trace.prompt_numbers, 1)}
    shown = sorted(trace.shown, key=lambda item: cited.get(item.number, len(cited) + 1))
    supported = {one.number for one in trace.citations if one.supported}
    present = [id for id in trace.chunk_ids if id in sources.chunks]
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(_asset("page.html.jinja")).render(
        trace=trace,
        sources=sources,
        language=known_language(language),
        cited=cited,
        shown=shown,
        unsupported={one.number for one in trace.citations} - supported,
        source_lines=list(source_lines(trace.citations, language)),
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


def source_hashes() -> tuple[str, str]:
    """The style and the script of every page, as a content security policy names them."""
    return _hash(_asset("page.css")), _hash(_asset("page.js"))


def layout(edges: Sequence[Edge]) -> tuple[tuple[int, int], dict[str, tuple[float, int]]]:
    """The size of the drawing, and positions by name, each in a row of its own for its label."""
    import networkx as nx

    graph = nx.Graph([(edge.source, edge.target) for edge in edges])
    points = nx.spring_layout(graph, seed=1)
    rows = {name: row for row, name in enumerate(sorted(graph, key=lambda name: points[name][1]))}
    columns = {name: _MARGIN + (x + 1) * (_WIDTH / 2 - _MARGIN) for name, (x, _) in points.items()}
    found = {name: (round(float(x), 1), _MARGIN + _ROW * rows[name]) for name, x in columns.items()}
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
            if start < end:
                spans.append((start, end, str(one.number)))
                cuts |= {start, end}
    for start, end in pairwise(sorted(cuts)):
        numbers = dict.fromkeys(n for a, b, n in spans if a <= start and end <= b)
        yield " ".join(numbers), chunk.text[start:end]


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
