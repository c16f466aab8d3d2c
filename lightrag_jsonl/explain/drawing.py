"""Draws the subgraph of a trace as SVG, with a force-directed layout; equal traces give equal drawings."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from html import escape
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.candidates import Edge

Points = npt.NDArray[np.float64]

SMALL, LARGE = (560, 320), (920, 540)
_FEW = 8  # up to so many nodes the drawing is small enough for a phone
_MARGIN_X, _MARGIN_Y = 96, 44
_ROUNDS = 160
_LABEL_WIDTH = 22  # in half-width letters; a Chinese character is two
_LABEL_GAP = 30
_DOT, _NAME_TOP, _NAME_BOTTOM = 8, 10, 26  # from a node's center: its rim, its name's two edges
_MOST_PREDICATES = 16  # with more lines, labels would overlap; they are shown on hover only
_MOST_EDGES = 48  # more cannot be read in one drawing
_MOST_CHOSEN = 150  # of the chosen edges, which come first; their layout takes about a second


def drawn_edges(candidates: Iterable[Edge], selected: frozenset[str]) -> tuple[Edge, ...]:
    """The edges worth drawing: chosen ones first, then the best of the others."""
    ordered = sorted(candidates, key=lambda edge: edge.id not in selected)
    return tuple(ordered[: max(_MOST_EDGES, min(len(selected), _MOST_CHOSEN))])


def draw(
    edges: Iterable[Edge], selected: frozenset[str], numbers: Mapping[str, int], *, title: str
) -> str:
    """The SVG; an edge with a number links to the item of that number."""
    edges = tuple(edges)
    names = list(dict.fromkeys(name for edge in edges for name in (edge.source, edge.target)))
    place = {name: index for index, name in enumerate(names)}
    pairs = [(place[edge.source], place[edge.target]) for edge in edges]
    size = SMALL if len(names) <= _FEW else LARGE
    points = layout(len(names), pairs, size)
    chosen = {name for e in edges if e.id in selected for name in (e.source, e.target)}
    spoken = selected if len(selected) <= _MOST_PREDICATES else frozenset[str]()
    lines = [
        _edge(edge, points[a], points[b], edge.id in selected, numbers.get(edge.id), spoken)
        for edge, (a, b) in reversed(list(zip(edges, pairs, strict=True)))
    ]
    nodes = [_node(name, points[place[name]], name in chosen) for name in names]
    return (
        f'<svg class="{"small" if size == SMALL else "large"}" viewBox="0 0 {size[0]} {size[1]}" '
        f'role="img" aria-label="{escape(title)}">'
        f"{_ARROWS}{''.join(lines)}{''.join(nodes)}</svg>"
    )


def layout(count: int, pairs: list[tuple[int, int]], size: tuple[int, int] = LARGE) -> Points:
    """Positions in the drawing: neighbors attract, all nodes repel, labels are kept apart."""
    if count == 0:
        return np.zeros((0, 2))
    angles = np.arange(count) * 2.399963  # the golden angle: no two starts on one ray
    radius = np.sqrt((np.arange(count) + 0.5) / count)
    points = np.stack([radius * np.cos(angles), radius * np.sin(angles)], axis=1)
    spring = 1.6 / np.sqrt(count)
    adjacent = np.zeros((count, count))
    for a, b in pairs:
        adjacent[a, b] = adjacent[b, a] = float(a != b)
    for step in range(_ROUNDS):
        reach = 0.2 * (1 - step / _ROUNDS) + 0.005
        points = points + _moves(points, adjacent, spring, reach)
    return _apart(_boxed(points, size), size[1])


def _moves(points: Points, adjacent: Points, spring: float, reach: float) -> Points:
    """One step of forces, none longer than `reach`."""
    away = points[:, None, :] - points[None, :, :]
    distance = np.maximum(np.sqrt((away**2).sum(axis=2)), 0.01)
    strength = spring**2 / distance**2 - adjacent * distance / spring
    np.fill_diagonal(strength, 0.0)
    force = (away * strength[:, :, None]).sum(axis=1) - 0.6 * points
    length = np.maximum(np.sqrt((force**2).sum(axis=1, keepdims=True)), 1e-9)
    moved: Points = force / length * np.minimum(length, reach)
    return moved


def _boxed(points: Points, area: tuple[int, int]) -> Points:
    """Scale the points to the area, half by distance and half by rank, so that an outlier leaves no gap."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = np.where(high - low > 1e-6, high - low, 1.0)
    share = np.where(high - low > 1e-6, (points - low) / size, 0.5)
    order = points.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    share = (share + order / max(len(points) - 1, 1)) / 2 if len(points) > 2 else share
    inner = np.array(area) - 2 * np.array([_MARGIN_X, _MARGIN_Y])
    boxed: Points = share * inner + np.array([_MARGIN_X, _MARGIN_Y])
    return boxed


def _apart(points: Points, height: int) -> Points:
    """Move nodes whose labels would overlap up or down, inside the drawing."""
    for _ in range(40):
        moved = False
        order = np.lexsort((points[:, 0], points[:, 1]))
        for above, below in pairwise(order):
            gap = points[below, 1] - points[above, 1]
            if abs(points[below, 0] - points[above, 0]) < 120 and gap < _LABEL_GAP - 0.5:
                shift = (_LABEL_GAP - gap) / 2
                points[above, 1] -= shift
                points[below, 1] += shift
                moved = True
        points[:, 1] = np.clip(points[:, 1], _MARGIN_Y / 2, height - _MARGIN_Y)
        if not moved:
            break
    return points


_ARROW = (
    '<marker id="{0}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" '
    'markerUnits="userSpaceOnUse" orient="auto"><path class="{0}" d="M0 0 8 4 0 8z"/></marker>'
)
_ARROWS = f"<defs>{_ARROW.format('arrow')}{_ARROW.format('arrow-on')}</defs>"


def _edge(
    edge: Edge,
    start: Points,
    end: Points,
    chosen: bool,
    number: int | None,
    spoken: frozenset[str],
) -> str:
    along = end - start
    length = max(float(np.hypot(*along)), 1.0)
    ahead = along / length
    gaps = _clearance(edge.source, ahead) + 3, _clearance(edge.target, -ahead) + 5
    fit = min(1.0, 0.7 * length / sum(gaps))  # between close neighbors some of the line remains
    first, last = start + ahead * gaps[0] * fit, end - ahead * gaps[1] * fit
    arrow = "arrow-on" if chosen else "arrow"
    words = escape(" — ".join(edge.labels))
    drawn = (
        f"<title>{words}</title>"
        f'<line x1="{first[0]:.1f}" y1="{first[1]:.1f}" x2="{last[0]:.1f}" y2="{last[1]:.1f}" '
        f'marker-end="url(#{arrow})"/>'
    )
    if edge.id in spoken:
        x, y = (start + end) / 2
        drawn += f'<text x="{x:.1f}" y="{y - 5:.1f}">{escape(short(edge.predicate))}</text>'
    group = f'<g class="edge{" on" if chosen else ""}" data-edge="{escape(edge.id)}">{drawn}</g>'
    return f'<a class="cite" href="#n{number}">{group}</a>' if number is not None else group


def _clearance(name: str, direction: Points) -> float:
    """How far a line must keep from a node's center: past its dot, and past the label below it."""
    across, down = abs(float(direction[0])), float(direction[1])
    half = 4 + 3.6 * _width(short(name))
    if down <= 0 or _NAME_TOP * across >= half * down:
        return _DOT
    return min(half / max(across, 1e-6), _NAME_BOTTOM / down)


def _node(name: str, point: Points, chosen: bool) -> str:
    x, y = point
    return (
        f'<g class="node{" on" if chosen else ""}"><title>{escape(name)}</title>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_DOT if chosen else _DOT - 2}"/>'
        f'<text x="{x:.1f}" y="{y + 22:.1f}">{escape(short(name))}</text></g>'
    )


def short(label: str) -> str:
    """The label, cut to a width that fits the drawing."""
    if _width(label) <= _LABEL_WIDTH:
        return label
    kept = label[:_LABEL_WIDTH]
    while _width(kept) > _LABEL_WIDTH:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def _width(label: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in label)
