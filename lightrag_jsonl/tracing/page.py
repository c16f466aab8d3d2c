"""A trace as one self-contained web page: question, answer, subgraph, chosen edges, sources."""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise

from lightrag_jsonl.core.citation_markers import marked_numbers, split_citations
from lightrag_jsonl.core.edges import Edge
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import (
    Chunk,
    Citation,
    known_language,
    source_lines,
    unsupported_lines,
)
from lightrag_jsonl.tracing.trace import Sources, Trace

_MOST_EDGES = 48  # more cannot be read in one drawing
_WIDTH, _ROW, _MARGIN = 920, 24, 72  # of the drawing, a node's row at least, and around all
_SPACIOUS = 440  # the height of the rows together, if few nodes leave room


@dataclass(frozen=True, slots=True)
class CitedNumber:
    """A number in an answer, and whether its passage supports the claim before it."""

    number: int
    supported: bool


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
        unsupported_lines=list(unsupported_lines(trace.answer or "", trace.claims, language)),
        answer=_answer_parts(trace),
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
    """The size of the drawing, and positions by name: each in a row and in a column of its own, so
    that labels stand apart.
    """
    import networkx as nx

    graph = nx.Graph([(edge.source, edge.target) for edge in edges])
    points = nx.spring_layout(graph, seed=1)
    row = max(_ROW, min(_SPACIOUS // max(len(graph), 1), 3 * _ROW))
    step = (_WIDTH - 2 * _MARGIN) / max(len(graph) - 1, 1)
    columns, rows = (sorted(graph, key=lambda name: points[name][axis]) for axis in (0, 1))
    found = {
        name: (round(_MARGIN + step * columns.index(name), 1), _MARGIN + row * rows.index(name))
        for name in graph
    }
    return (_WIDTH, 2 * _MARGIN + row * len(graph)), found


def _answer_parts(trace: Trace) -> Iterator[str | CitedNumber]:
    """The text between the citations of an answer, and the cited numbers.

    A trace that has no claims was recorded by an older version: it says only whether all claims of a
    number are supported.
    """
    doubtful = {citation.number for citation in trace.citations if not citation.supported}
    support = {(claim.marker, claim.number): claim.supported for claim in trace.claims}
    for piece in split_citations(trace.answer or "")[0]:
        if isinstance(piece, str):
            yield piece
            continue
        for number in marked_numbers(piece):
            supported = support.get((piece.start(), number), number not in doubtful)
            yield CitedNumber(number, supported)


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
