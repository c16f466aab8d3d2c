"""A trace as one self-contained web page: question, answer, subgraph, chosen edges, sources."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from lightrag_jsonl.core.text import CITATION_MARKER, sanitize
from lightrag_jsonl.core.types import Chunk, Citation, known_language
from lightrag_jsonl.retrieval.edge_selection import Edge
from lightrag_jsonl.tracing.citations import cited_numbers
from lightrag_jsonl.tracing.source_lookup import Sources
from lightrag_jsonl.tracing.trace import Trace

if TYPE_CHECKING:
    from jinja2 import Template

Token: TypeAlias = tuple[str, str | int]

_FEW_NODES = 8  # up to so many the drawing is small enough for a phone
_MARGINS = 96, 44
_ROW = 18  # the height of a node's label
_MOST_EDGES = 48  # more cannot be read in one drawing
_MOST_CHOSEN = 150  # of the chosen edges, which come first
_LONG = 600  # characters; longer chunks that are cited whole are tinted instead of marked


def render_page(trace: Trace, sources: Sources, *, language: str = "en") -> str:
    """The page; it loads nothing, and runs no script but its own."""
    style, script = _asset("page.css"), _asset("page.js")
    edges = drawn_edges(trace)
    size, points = layout(edges)
    present = [id for id in trace.chunk_ids if id in sources.chunks]
    page = _template().render(
        trace=trace,
        sources=sources,
        language=known_language(language),
        style=style,
        script=script,
        hash=_hash,
        paragraphs=list(_paragraphs(trace.answer or "")),
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
    ordered = sorted(trace.candidates, key=lambda edge: edge.id not in chosen)
    return ordered[: max(_MOST_EDGES, min(len(chosen), _MOST_CHOSEN))]


def layout(edges: Sequence[Edge]) -> tuple[tuple[int, int], dict[str, tuple[float, float]]]:
    """The size of the drawing, and positions in it by name: neighbors attract, all nodes repel.

    Each node has a row of its own, so that no labels overlap. Columns are given half by distance
    and half by rank, so that an outlier leaves no gap.
    """
    import networkx as nx

    graph = nx.Graph([(edge.source, edge.target) for edge in edges])
    size = 560 if len(graph) <= _FEW_NODES else 920, max(320, _ROW * len(graph) + 2 * _MARGINS[1])
    points = np.array([*nx.spring_layout(graph, seed=1).values()]).reshape(-1, 2)
    shares = points.argsort(axis=0, kind="stable").argsort(axis=0) / max(len(graph) - 1, 1)
    columns = points[:, 0] - points[:, 0].min(initial=1)
    shares[:, 0] += columns / max(columns.max(initial=0), 1e-6)
    shares[:, 0] /= 2
    placed = (shares * np.subtract(size, np.multiply(_MARGINS, 2)) + _MARGINS).round(1).tolist()
    return size, {name: (x, y) for name, (x, y) in zip(graph, placed, strict=True)}


def _paragraphs(answer: str) -> Iterator[tuple[bool, list[Token]]]:
    """Whether each paragraph of an answer is a heading, and its tokens."""
    for text in filter(None, re.split(r"\n\s*\n", answer.strip())):
        words = re.sub(r"^#{1,6}\s+", "", text)
        yield words != text, _tokens(words)


def _tokens(paragraph: str) -> list[Token]:
    """A paragraph of the answer as ("text", words), ("number", n), and ("strong", "") at each end of
    bold words; an unpaired `**` stays in the text.
    """
    tokens: list[Token] = []
    end, stars = 0, paragraph.count("**") // 2 * 2
    for found in re.finditer(rf"\*\*|{CITATION_MARKER.pattern}", paragraph):
        strong = found[0] == "**"
        stars -= strong
        if stars >= 0 or not strong:
            tokens.append(("text", paragraph[end : found.start()]))
            numbers = () if strong else cited_numbers(found)
            tokens += [("strong", "")] if strong else [("number", number) for number in numbers]
            end = found.end()
    return [*tokens, ("text", paragraph[end:])]


def _marked(chunk: Chunk, citations: Sequence[Citation]) -> Iterator[tuple[str, str, str]]:
    """The chunk's text, cut at the borders of citations: the numbers that cite a piece closely,
    those that cite the whole of a long chunk, and the piece.
    """
    size = len(chunk.text)
    own = [one for one in citations if one.chunk_id == chunk.id]
    spans = [(max(c.start - chunk.start, 0), min(c.end - chunk.start, size), c.number) for c in own]
    cuts = sorted({0, size, *(at for a, b, _ in spans if a < b for at in (a, b))})
    for start, end in pairwise(cuts):
        over = [(b - a == size > _LONG, str(n)) for a, b, n in spans if a <= start and end <= b]
        narrow = dict.fromkeys(number for whole, number in over if not whole)
        wide = dict.fromkeys(number for whole, number in over if whole)
        yield " ".join(narrow), " ".join(wide), chunk.text[start:end]


@cache
def _template() -> Template:
    from jinja2 import Environment

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_asset("page.html.jinja"))


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
