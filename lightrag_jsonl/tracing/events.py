"""The typed events of one query, in the order they happen, each with its URI and its triples."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias, cast

import msgspec

from lightrag_jsonl.core import types as t
from lightrag_jsonl.core.options import Selection as Method
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.retrieval.edge_selection import Edge, SelectedEdge
from lightrag_jsonl.tracing import rdf
from lightrag_jsonl.tracing.rdf import Triple, iri, literal, triples_of

Status: TypeAlias = Literal["complete", "failed", "incomplete"]
Stage: TypeAlias = Literal[
    "session", "keywords", "retrieval", "selection", "chunk", "answer", "end"
]

MODES_WITHOUT_EDGES: frozenset[t.Mode] = frozenset({"naive", "bypass"})
MODES_WITH_CHUNKS: frozenset[t.Mode] = frozenset({"naive", "mix", "walk"})  # retrieved directly


@dataclass(frozen=True, slots=True)
class Shown:
    """A numbered item of the answer's prompt.

    `id` is an edge id, a chunk id or an entity's name. `chunk_ids` are where the item was read (for
    a chunk, its own id). `text` is what was shown of an entity or relation, whose description may
    change later. Of a chunk, characters `start` to `end` of its page were shown.
    """

    number: int
    kind: t.Kind
    id: str
    label: str
    chunk_ids: tuple[str, ...] = ()
    text: str = ""
    start: int = 0
    end: int = 0


class _Event(msgspec.Struct, frozen=True, tag_field="stage"):
    """What every event has: the id of the query it belongs to."""

    trace_id: str

    @property
    def stage(self) -> Stage:
        """Which step of the query this is."""
        return cast(Stage, self.__struct_config__.tag)

    @property
    def uri(self) -> str:
        """The URI of the record that this event is about."""
        return rdf.stage_uri(self.stage, self.trace_id)

    @property
    def triples(self) -> tuple[Triple, ...]:
        """What the event adds to the graph of retrievals."""
        return ()

    def to_message(self) -> dict[str, t.Json]:
        """The event under the specification's field names."""
        piece = self if isinstance(self, AnswerChunk) else None
        end = self if isinstance(self, End) else None
        return {
            "error": end.error if end else None,
            "response": piece.text if piece else "\n".join(end.sources if end else ()),
            "end_of_stream": piece is not None and piece.end_of_stream,
            "explain_id": None if piece or end else self.uri,
            "explain_collection": "explainability",
            "message_type": "chunk" if piece or end else "explain",
            "end_of_session": end is not None,
        }

    def _described(self, label: str, origin: Stage, *more: tuple[str, str]) -> tuple[Triple, ...]:
        """The triples of a record that comes from that of an earlier stage."""
        link = "prov:wasGeneratedBy" if origin == "session" else "prov:wasDerivedFrom"
        origin_uri = rdf.stage_uri(origin, self.trace_id)
        return rdf.entity_triples(self.uri, label, origin_uri, *more, link=link)


class Session(_Event, frozen=True, tag="session"):
    """A question was asked; `generation` is the number of the index's last change."""

    question: str
    mode: t.Mode
    started_at: datetime
    generation: int = 0

    @property
    def triples(self) -> tuple[Triple, ...]:
        return triples_of(
            self.uri,
            ("rdf:type", rdf.term("prov:Activity")),
            ("rdfs:label", literal("Query session")),
            ("prov:startedAtTime", literal(self.started_at)),
            ("tg:query", literal(self.question)),
        )


class KeywordsFound(_Event, frozen=True, tag="keywords"):
    """The question's keywords were found."""

    keywords: t.Keywords

    @property
    def triples(self) -> tuple[Triple, ...]:
        words = dict.fromkeys((*self.keywords.high_level, *self.keywords.low_level))
        concepts = [("tg:concept", literal(word)) for word in words]
        return self._described("Keywords", "session", *concepts)


class Retrieval(_Event, frozen=True, tag="retrieval"):
    """The edges of the subgraph, and the chunks found directly, were retrieved; best first."""

    mode: t.Mode
    candidates: tuple[Edge, ...] = ()
    retrieved_chunks: tuple[str, ...] = ()

    @property
    def triples(self) -> tuple[Triple, ...]:
        counts = []
        if self.mode not in MODES_WITHOUT_EDGES:
            counts.append(("tg:edgeCount", literal(len(self.candidates))))
        if self.mode in MODES_WITH_CHUNKS:
            counts.append(("tg:chunkCount", literal(len(self.retrieved_chunks))))
        return self._described("Retrieval", "session", *counts)


class Selection(_Event, frozen=True, tag="selection"):
    """The edges and chunks for the answer were chosen; `shown` is all that its prompt contains.

    With `fallback` rank decided instead of the model; `selection_error` says why the model could
    not be asked.
    """

    method: Method
    selected: tuple[SelectedEdge, ...] = ()
    selected_chunks: tuple[str, ...] = ()
    shown: tuple[Shown, ...] = ()
    rejections: tuple[t.Rejection, ...] = ()
    fallback: bool = False
    selection_error: str | None = None

    @property
    def triples(self) -> tuple[Triple, ...]:
        links, edges = [], list[Triple]()
        for index, chosen in enumerate(self.selected):
            node = f"{rdf.stage_uri('edge', self.trace_id)}:{index}"
            why = "tg:score", literal(float(chosen.score or 0.0))
            if chosen.reasoning is not None:
                why = "tg:reasoning", literal(chosen.reasoning)
            links.append(("tg:selectedEdge", iri(node)))
            edges += triples_of(node, ("tg:edge", rdf.triple_term(rdf.fact(chosen.edge))), why)
        for id in self.selected_chunks:
            links.append(("tg:selectedChunk", iri(rdf.source_uri("chunk", id))))
        if self.fallback:
            links.append(("tg:fallback", literal(True)))
        return *self._described("Selection", "retrieval", *links), *edges


class AnswerChunk(_Event, frozen=True, tag="chunk"):
    """A piece of the answer was written; the last one ends the stream. Pieces are not stored."""

    text: str
    end_of_stream: bool = False


class Answered(_Event, frozen=True, tag="answer"):
    """The whole answer, with resolved citations; `invented` are cited numbers that were not shown.

    With `reused` it was written for an earlier question, from what is shown here. With `truncated`
    the model stopped at its token limit.
    """

    answer: str
    citations: tuple[t.Citation, ...] = ()
    invented: tuple[int, ...] = ()
    reused: bool = False
    truncated: bool = False

    @property
    def triples(self) -> tuple[Triple, ...]:
        text = "tg:document", iri(rdf.stage_uri("chunk", self.trace_id))
        return self._described("Answer", "selection", text)


class End(_Event, frozen=True, tag="end"):
    """The end of the session, exactly one: with the sources in words, or with the error.

    `usage` is what the query paid, whether it was answered or failed.
    """

    ended_at: datetime
    sources: tuple[str, ...] = ()
    error: str | None = None
    usage: Usage = Usage()

    @property
    def status(self) -> Status:
        """How the query went."""
        return "complete" if self.error is None else "failed"


Event: TypeAlias = Session | KeywordsFound | Retrieval | Selection | AnswerChunk | Answered | End

_DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def event_to_json(event: Event) -> str:
    """The event as one line of JSON; what UTF-8 cannot hold becomes U+FFFD."""
    try:
        return msgspec.json.encode(event).decode()
    except UnicodeEncodeError:
        return sanitize(json.dumps(msgspec.to_builtins(event), ensure_ascii=False))


def event_from_json(text: str) -> Event:
    """The event in text written by `event_to_json`; `ValueError` for any other text."""
    return _DECODER.decode(text)
