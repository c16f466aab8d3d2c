"""A trace as one self-contained web page: question, answer, subgraph, chosen edges, sources."""

from __future__ import annotations

import base64
import hashlib
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from importlib import resources
from itertools import pairwise

from lightrag_jsonl.candidates import SelectedEdge
from lightrag_jsonl.explain.drawing import draw, drawn_edges
from lightrag_jsonl.explain.events import Shown
from lightrag_jsonl.explain.prov import session_uri, xsd_time
from lightrag_jsonl.explain.sources import Sources
from lightrag_jsonl.explain.trace import Trace
from lightrag_jsonl.languages import Language, known_language
from lightrag_jsonl.markers import Marker, markers
from lightrag_jsonl.text import sanitize
from lightrag_jsonl.types import Citation

PHRASES: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "lang": "en",
        "head": "How this answer came about",
        "answer": "Answer",
        "graph": "What was found",
        "legend": "{drawn} of {all} edges drawn; highlighted: {chosen} chosen for the answer.",
        "edges": "Chosen edges",
        "score": "chosen by rank, score {score}",
        "shown": "What the model was shown",
        "sources": "Sources",
        "where": "Chunk {chunk} → Page {page} → {document}",
        "deleted": "source deleted",
        "none": "No answer is on record.",
        "invented": "Cited, but never shown: {numbers}",
        "fallback": "The model chose no edge; the best by rank were taken.",
        "truncated": "The answer is not complete: the model reached its token limit.",
        "reused": "This answer was written for an earlier, similar question.",
        "unchosen": "The model could not be asked to choose ({error}); the best by rank were taken.",
        "rejected": "Refused lines of the selection: {reasons}",
        "failed": "The query failed: {error}",
        "incomplete": "The query did not finish.",
        "close": "Close",
        "mode": "mode {mode}",
    },
    "zh": {
        "lang": "zh-CN",
        "head": "这个回答从何而来",
        "answer": "回答",
        "graph": "检索到的子图",
        "legend": "共 {all} 条边，画出 {drawn} 条；高亮的 {chosen} 条用于回答。",
        "edges": "选中的边",
        "score": "按排名选取，得分 {score}",
        "shown": "模型看到的内容",
        "sources": "来源",
        "where": "分块 {chunk} → 第 {page} 页 → {document}",
        "deleted": "来源已删除",
        "none": "没有记录到回答。",
        "invented": "引用了但从未展示过：{numbers}",
        "fallback": "模型没有选出任何边，改用排名最高的边。",
        "truncated": "回答不完整：模型达到了 token 上限。",
        "reused": "这个回答原是为先前一个相似的问题写的。",
        "unchosen": "无法请模型选边（{error}），改用排名最高的边。",
        "rejected": "选择结果中被拒绝的行：{reasons}",
        "failed": "查询失败：{error}",
        "incomplete": "查询没有进行到底。",
        "close": "关闭",
        "mode": "模式 {mode}",
    },
}

_LONG = 600  # characters; longer chunks that are cited whole are tinted instead of marked


def trace_page(trace: Trace, sources: Sources, *, language: str = "en") -> str:
    """The page; it loads nothing, and runs no script but its own."""
    return sanitize(_Page(trace, sources, PHRASES[known_language(language)]).render())


class _Page:
    """The parts of one page; every text passes through `escape`."""

    def __init__(self, trace: Trace, sources: Sources, words: Mapping[str, str]) -> None:
        self.trace = trace
        self.sources = sources
        self.words = words
        present = [name for name in trace.chunk_ids if name in sources.chunks]
        self.cards = {name: f"c{index}" for index, name in enumerate(present)}
        self.numbers = {item.number for item in trace.shown}
        self.cited: dict[str, list[Citation]] = {}
        for citation in trace.citations:
            self.cited.setdefault(citation.chunk_id, []).append(citation)

    def render(self) -> str:
        """The whole document."""
        style, script = _asset("page.css"), _asset("page.js")
        policy = (
            f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
            "base-uri 'none'; form-action 'none'"
        )
        return (
            f'<!doctype html>\n<html lang="{self.words["lang"]}">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self.trace.question)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
            f"{self._header()}\n<main>\n{self._answer()}\n{self._graph()}\n{self._edges()}\n"
            f"{self._shown()}\n{self._chunks()}\n</main>\n{self._panel()}\n"
            f"<footer>{escape(session_uri(self.trace.id))}</footer>\n"
            f"<script>{script}</script>\n</body>\n</html>\n"
        )

    def _header(self) -> str:
        trace = self.trace
        asked = xsd_time(trace.started_at)[:16].replace("T", " ") + " UTC"
        facts = [self._say("mode", mode=trace.mode), asked, trace.status]
        facts += [*trace.keywords.high_level, *trace.keywords.low_level]
        items = "".join(f"<li>{escape(fact)}</li>" for fact in facts)
        return (
            f'<header><p class="eyebrow">{self.words["head"]}</p>'
            f'<h1>{escape(trace.question)}</h1><ul class="facts">{items}</ul></header>'
        )

    def _answer(self) -> str:
        text = self.trace.answer
        body = "".join(self._paragraphs(text)) if text else f"<p>{self.words['none']}</p>"
        notes = "".join(f'<p class="note">{escape(note)}</p>' for note in self._notes())
        return self._section("answer", f'<div class="card answer">{body}</div>{notes}')

    def _notes(self) -> Iterator[str]:
        trace = self.trace
        if trace.status == "failed":
            yield self._say("failed", error=trace.error or "")
        if trace.status == "incomplete":
            yield self.words["incomplete"]
        if trace.invented:
            yield self._say("invented", numbers=", ".join(f"[{n}]" for n in trace.invented))
        if trace.truncated:
            yield self.words["truncated"]
        if trace.reused:
            yield self.words["reused"]
        if trace.selection_error:
            yield self._say("unchosen", error=trace.selection_error)
        elif trace.fallback:
            yield self.words["fallback"]
        if trace.rejections:
            reasons = dict.fromkeys(rejection.reason for rejection in trace.rejections)
            yield self._say("rejected", reasons=", ".join(reasons))

    def _paragraphs(self, text: str) -> Iterator[str]:
        """The answer as paragraphs, headings and bold words, with a link for each number."""
        marks = markers(text)
        starts = [mark.start for mark in marks]
        for found in re.finditer(r"\S(?:.|\n(?!\s*\n))*", text):
            start, end = found.span()
            heading = re.match(r"#{1,6}\s+", found.group())
            within = marks[bisect_left(starts, start) : bisect_left(starts, end)]
            inner = self._pieces(
                text,
                start + (heading.end() if heading else 0),
                end,
                [mark for mark in within if mark.end <= end],
            )
            yield f"{'<p class=heading>' if heading else '<p>'}{_bold(inner)}</p>"

    def _pieces(
        self, text: str, start: int, end: int, marks: Iterable[Marker]
    ) -> list[tuple[bool, str]]:
        """Pieces of HTML; the flag distinguishes words of the answer from links."""
        pieces = []
        for mark in marks:
            pieces.append((True, escape(text[start : mark.start])))
            pieces.append((False, "".join(self._number(number) for number in mark.numbers)))
            start = mark.end
        return [*pieces, (True, escape(text[start:end]))]

    def _number(self, number: int) -> str:
        if number in self.numbers:
            return f'<a class="cite number" href="#n{number}">{number}</a>'
        return f'<span class="cite number invented">{number}</span>'

    def _graph(self) -> str:
        trace = self.trace
        if not trace.candidates:
            return ""
        selected = frozenset(chosen.edge.id for chosen in trace.selected)
        drawn = drawn_edges(trace.candidates, selected)
        numbers = {item.id: item.number for item in trace.shown if item.kind == "relation"}
        chosen = sum(edge.id in selected for edge in drawn)
        legend = self._say("legend", drawn=len(drawn), all=len(trace.candidates), chosen=chosen)
        drawing = draw(drawn, selected, numbers, title=trace.question)
        return self._section(
            "graph", f'<div class="card graph">{drawing}</div><p class="legend">{legend}</p>'
        )

    def _edges(self) -> str:
        if not self.trace.selected:
            return ""
        items = "".join(self._edge(chosen) for chosen in self.trace.selected)
        return self._section("edges", f'<ol class="edges">{items}</ol>')

    def _edge(self, chosen: SelectedEdge) -> str:
        source, predicate, target = (escape(label) for label in chosen.edge.labels)
        why = chosen.reasoning
        if why is None and chosen.score is not None:
            why = self._say("score", score=f"{chosen.score:.3g}")
        reason = f'<p class="why">{escape(why)}</p>' if why else ""
        places = "".join(self._place(name) for name in dict.fromkeys(chosen.edge.chunk_ids))
        return (
            f'<li class="card"><p class="fact">{source} <i>{predicate}</i> → {target}</p>'
            f'{reason}<p class="where">{places}</p></li>'
        )

    def _place(self, chunk_id: str) -> str:
        if chunk_id not in self.cards:
            return f'<span class="gone">{self.words["deleted"]}</span>'
        return f'<a href="#{self.cards[chunk_id]}">{escape(self._where(chunk_id))}</a>'

    def _shown(self) -> str:
        if not self.trace.shown:
            return ""
        items = "".join(self._item(item) for item in self.trace.shown)
        return self._section("shown", f'<ul class="card shown">{items}</ul>')

    def _item(self, item: Shown) -> str:
        """One numbered item, with what the panel needs to open it."""
        cards = " ".join(self.cards[name] for name in item.chunk_ids if name in self.cards)
        note = item.text
        if lost := [name for name in item.chunk_ids if name not in self.cards]:
            cited = (c for name in lost for c in self.cited.get(name, ()))
            quoted = (c.text for c in cited if c.number == item.number)
            note = "\n".join(filter(None, [note, self.words["deleted"], *quoted]))
        placed = item.kind == "chunk" and item.id in self.cards
        label = escape(self._where(item.id) if placed else item.label)
        return (
            f'<li id="n{item.number}" data-number="{item.number}" data-chunks="{cards}" '
            f'data-title="[{item.number}] {label}" data-note="{escape(note)}">'
            f"{self._number(item.number)}<p>{label}</p></li>"
        )

    def _chunks(self) -> str:
        if not self.cards:
            return ""
        cards = "".join(
            f'<details class="card chunk" id="{card}"><summary>{escape(self._where(name))}</summary>'
            f'<p class="text">{self._marked(name)}</p></details>'
            for name, card in self.cards.items()
        )
        return self._section("sources", cards)

    def _marked(self, chunk_id: str) -> str:
        """The chunk's text, cut at the borders of citations; each cited part has their numbers.

        A long chunk that is cited whole is only tinted (`data-w`).
        """
        chunk = self.sources.chunks[chunk_id]
        size = len(chunk.text)
        spans = [
            (max(c.start - chunk.start, 0), min(c.end - chunk.start, size), c.number)
            for c in self.cited.get(chunk_id, ())
        ]
        cuts = sorted({0, size, *(at for a, b, _ in spans if a < b for at in (a, b))})
        parts = []
        for start, end in pairwise(cuts):
            over = [(b - a == size > _LONG, n) for a, b, n in spans if a <= start and end <= b]
            parts.append(_mark(escape(chunk.text[start:end]), over))
        return "".join(parts)

    def _section(self, name: str, body: str) -> str:
        return f'<section id="{name}"><h2>{self.words[name]}</h2>{body}</section>'

    def _panel(self) -> str:
        return (
            '<aside id="panel" role="dialog" aria-labelledby="panel-title" hidden><div class="bar">'
            '<h2 id="panel-title"></h2>'
            f'<button id="panel-close" type="button">{self.words["close"]}</button></div>'
            '<div id="panel-body"></div></aside>'
        )

    def _where(self, chunk_id: str) -> str:
        chunk = self.sources.chunks[chunk_id]
        document = self.sources.documents.get(chunk.document_id)
        name = document.name if document else chunk.document_id
        return self._say("where", chunk=chunk.index + 1, page=chunk.page, document=name)

    def _say(self, phrase: str, **values: object) -> str:
        return self.words[phrase].format(**values)


def _mark(piece: str, over: Iterable[tuple[bool, int]]) -> str:
    """A piece that is cited; the flag marks citations of the whole chunk."""
    names: dict[bool, dict[str, None]] = {False: {}, True: {}}
    for whole, number in over:
        names[whole][str(number)] = None
    if not any(names.values()):
        return piece
    narrow, wide = (" ".join(names[whole]) for whole in (False, True))
    kind = "" if narrow else ' class="whole"'
    return f'<mark{kind} data-n="{narrow}" data-w="{wide}">{piece}</mark>'


def _bold(pieces: list[tuple[bool, str]]) -> str:
    """Turn pairs of `**` in the answer's words into bold; an unpaired one stays as it is."""
    pairs = sum(piece.count("**") for words, piece in pieces if words) // 2 * 2
    seen = 0
    html: list[str] = []
    for words, piece in pieces:
        first, *others = piece.split("**", pairs - seen) if words and seen < pairs else [piece]
        html.append(first)
        for part in others:
            html += ("</strong>" if seen % 2 else "<strong>", part)
            seen += 1
    return "".join(html)


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
