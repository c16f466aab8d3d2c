"""The typed events of one query, in the order they happen, each with its URI and its triples."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias, cast

import msgspec

from lightrag_jsonl.core.options import Selection as Method
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import Citation, Json, Keywords, Kind, Mode, Rejection
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.retrieval.edge_selection import Edge, SelectedEdge
from lightrag_jsonl.tracing.prov import DEFAULT_BASES, Bases, derived_triples, source_uri, stage_uri
from lightrag_jsonl.tracing.rdf import Triple, iri, literal, term, triple_term, triples_of

Status: TypeAlias = Literal["complete", "failed", "incomplete"]
Stage: TypeAlias = Literal[
    "session", "keywords", "retrieval", "selection", "chunk", "answer", "end"
]

GENERATED = "prov:wasGeneratedBy"
MODES_WITHOUT_EDGES: frozenset[Mode] = frozenset({"naive", "bypass"})
MODES_WITH_CHUNKS: frozenset[Mode] = frozenset({"naive", "mix", "walk"})  # retrieved directly

_MESSAGE: Mapping[str, Json] = {
    "error": None,
    "response": "",
    "end_of_stream": False,
    "explain_id": None,
    "explain_collection": "explainability",
    "message_type": "chunk",
    "end_of_session": False,
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A numbered item of the answer's prompt.

    `id` is an edge id, a chunk id or an entity's name. `chunk_ids` are where the item was read (for
    a chunk, its own id). `text` is what was shown of an entity or relation, whose description may
    change later. Of a chunk, characters `start` to `end` of its page were shown.
    """

    number: int
    kind: Kind
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
        return stage_uri(self.stage, self.trace_id)

    @property
    def triples(self) -> tuple[Triple, ...]:
        """What the event adds to the graph of retrievals."""
        return ()

    def to_message(self) -> dict[str, Json]:
        """The event under the specification's field names."""
        return {**_MESSAGE, "message_type": "explain", "explain_id": self.uri}


class Session(_Event, frozen=True, tag="session"):
    """A question was asked; `generation` is the number of the index's last change."""

    question: str
    mode: Mode
    started_at: datetime
    generation: int = 0

    @property
    def triples(self) -> tuple[Triple, ...]:
        started_at = self.started_at.astimezone(UTC).isoformat().replace("+00:00", "Z")
        return triples_of(
            self.uri,
            ("rdf:type", term("prov:Activity")),
            ("rdfs:label", literal("Query session")),
            ("prov:startedAtTime", literal(started_at, "xsd:dateTime")),
            ("tg:query", literal(self.question)),
        )


class KeywordsFound(_Event, frozen=True, tag="keywords"):
    """The question's keywords were found."""

    keywords: Keywords

    @property
    def triples(self) -> tuple[Triple, ...]:
        concepts = dict.fromkeys((*self.keywords.high_level, *self.keywords.low_level))
        words = [("tg:concept", literal(word)) for word in concepts]
        session_uri = stage_uri("session", self.trace_id)
        return derived_triples(self.uri, "Keywords", session_uri, *words, link=GENERATED)


class Retrieval(_Event, frozen=True, tag="retrieval"):
    """The edges of the subgraph, and the chunks found directly, were retrieved; best first."""

    mode: Mode
    candidates: tuple[Edge, ...] = ()
    retrieved_chunks: tuple[str, ...] = ()

    @property
    def triples(self) -> tuple[Triple, ...]:
        counts = []
        if self.mode not in MODES_WITHOUT_EDGES:
            counts.append(("tg:edgeCount", literal(len(self.candidates), "xsd:integer")))
        if self.mode in MODES_WITH_CHUNKS:
            counts.append(("tg:chunkCount", literal(len(self.retrieved_chunks), "xsd:integer")))
        session_uri = stage_uri("session", self.trace_id)
        return derived_triples(self.uri, "Retrieval", session_uri, *counts, link=GENERATED)


class Selection(_Event, frozen=True, tag="selection"):
    """The edges and chunks for the answer were chosen; `shown` is all that its prompt contains.

    With `fallback` rank decided instead of the model; `selection_error` says why the model could
    not be asked.
    """

    method: Method
    selected: tuple[SelectedEdge, ...] = ()
    selected_chunks: tuple[str, ...] = ()
    shown: tuple[Shown, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    fallback: bool = False
    selection_error: str | None = None

    @property
    def triples(self) -> tuple[Triple, ...]:
        return self.triples_under(DEFAULT_BASES)

    def triples_under(self, bases: Bases) -> tuple[Triple, ...]:
        """The triples, with these bases for the URIs of entities and predicates."""
        edge_uri = stage_uri("edge", self.trace_id)
        nodes = [f"{edge_uri}:{index}" for index in range(len(self.selected))]
        links = [("tg:selectedEdge", iri(node)) for node in nodes]
        links += [("tg:selectedChunk", iri(source_uri("chunk", id))) for id in self.selected_chunks]
        if self.fallback:
            links.append(("tg:fallback", literal("true", "xsd:boolean")))
        retrieval_uri = stage_uri("retrieval", self.trace_id)
        found = derived_triples(self.uri, "Selection", retrieval_uri, *links)
        for node, chosen in zip(nodes, self.selected, strict=True):
            why = "tg:score", literal(float(chosen.score or 0.0), "xsd:double")
            if chosen.reasoning is not None:
                why = "tg:reasoning", literal(chosen.reasoning)
            found += triples_of(node, ("tg:edge", triple_term(bases.triple(chosen.edge))), why)
        return found


class AnswerChunk(_Event, frozen=True, tag="chunk"):
    """A piece of the answer was written; the last one ends the stream. Pieces are not stored."""

    text: str
    end_of_stream: bool = False

    def to_message(self) -> dict[str, Json]:
        """The piece under the specification's field names."""
        return {**_MESSAGE, "response": self.text, "end_of_stream": self.end_of_stream}


class Answered(_Event, frozen=True, tag="answer"):
    """The whole answer, with resolved citations; `invented` are cited numbers that were not shown.

    With `reused` it was written for an earlier question, from what is shown here. With `truncated`
    the model stopped at its token limit.
    """

    answer: str
    citations: tuple[Citation, ...] = ()
    invented: tuple[int, ...] = ()
    reused: bool = False
    truncated: bool = False

    @property
    def triples(self) -> tuple[Triple, ...]:
        text = "tg:document", iri(stage_uri("chunk", self.trace_id))
        return derived_triples(self.uri, "Answer", stage_uri("selection", self.trace_id), text)


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

    def to_message(self) -> dict[str, Json]:
        """The sources, or the error, under the specification's field names."""
        sources = "\n".join(self.sources)
        return {**_MESSAGE, "error": self.error, "response": sources, "end_of_session": True}


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
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
