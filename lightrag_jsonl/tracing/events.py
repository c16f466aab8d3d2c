"""The typed events of a query in order, each with URI and triples."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias, cast

import msgspec

from lightrag_jsonl.core import types as t
from lightrag_jsonl.core.answers import Citation, CitedClaim, Keywords, Reading, UncitedClaim
from lightrag_jsonl.core.edges import Edge, SelectedEdge
from lightrag_jsonl.core.modes import MODES, Mode
from lightrag_jsonl.core.options import Selection
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.text.strings import sanitize
from lightrag_jsonl.tracing import rdf
from lightrag_jsonl.tracing.rdf import PropertyValue, Triple, iri, literal, triples_of

TraceStatus: TypeAlias = Literal["complete", "failed", "incomplete"]
Stage: TypeAlias = Literal[
    "session", "keywords", "progress", "reading", "retrieval", "selection", "chunk", "answer", "end"
]


@dataclass(frozen=True, slots=True)
class PromptItem:
    """A numbered item of the answer's prompt: an entity (the name is the `id`), an edge or a chunk.

    `text` is the description of an entity or an edge; a chunk is characters `start` to `end` of the
    page.
    """

    number: int
    kind: t.Kind
    id: str
    label: str
    chunk_ids: tuple[str, ...] = ()
    text: str = ""
    start: int = 0
    end: int = 0


def cited_items(
    items: Iterable[PromptItem], prompt_numbers: Iterable[int]
) -> dict[int, PromptItem]:
    """The items of a prompt by citation number: citation n is of the item `prompt_numbers[n - 1]`."""
    items_by_number = {item.number: item for item in items}
    return {
        citation_number: items_by_number[number]
        for citation_number, number in enumerate(prompt_numbers, 1)
        if number in items_by_number
    }


class _Event(msgspec.Struct, frozen=True, tag_field="stage"):
    """The common part of all events: the id of the query."""

    trace_id: str

    @property
    def stage(self) -> Stage:
        """The step of the query."""
        return cast(Stage, self.__struct_config__.tag)

    @property
    def uri(self) -> str:
        """The URI of the event's record."""
        return rdf.stage_uri(self.stage, self.trace_id)

    @property
    def triples(self) -> tuple[Triple, ...]:
        """The triples of the event in the graph of retrievals."""
        return ()

    def to_message(self, *, explain_collection: str = "explainability") -> dict[str, t.Json]:
        """The event under the specification's field names."""
        is_explaining = not isinstance(self, AnswerChunk | ReadingProgress | End)
        return {
            "error": getattr(self, "error", None),
            "response": getattr(self, "text", "\n".join(getattr(self, "sources", ()))),
            "end_of_stream": getattr(self, "end_of_stream", False),
            "explain_id": self.uri if is_explaining else None,
            "explain_collection": explain_collection,
            "message_type": "explain" if is_explaining else "chunk",
            "end_of_session": isinstance(self, End),
        }

    def _record(
        self, label: str, origin: Stage, properties: Iterable[PropertyValue] = ()
    ) -> tuple[Triple, ...]:
        """The triples of the event's record, derived from the record of an earlier stage."""
        link = "prov:wasGeneratedBy" if origin == "session" else "prov:wasDerivedFrom"
        origin_uri = rdf.stage_uri(origin, self.trace_id)
        return rdf.entity_triples(self.uri, label, origin_uri, properties, link=link)


class Session(_Event, frozen=True, tag="session"):
    """A question was asked; `generation` is the number of the index's last change."""

    question: str
    mode: Mode
    started_at: datetime
    generation: int = 0

    @property
    def triples(self) -> tuple[Triple, ...]:
        properties = [
            ("rdf:type", rdf.term("prov:Activity")),
            ("rdfs:label", literal("Query session")),
            ("prov:startedAtTime", literal(self.started_at)),
            ("tg:query", literal(self.question)),
        ]
        return triples_of(self.uri, properties)


class KeywordsFound(_Event, frozen=True, tag="keywords"):
    """The question's keywords were found."""

    keywords: Keywords

    @property
    def triples(self) -> tuple[Triple, ...]:
        words = dict.fromkeys((*self.keywords.high_level, *self.keywords.low_level))
        concepts = [("tg:concept", literal(word)) for word in words]
        return self._record("Keywords", "session", concepts)


class ReadingProgress(_Event, frozen=True, tag="progress"):
    """A model is reading chunks for the question: so many are done, of those known. It is not stored."""

    chunks_done: int
    chunks_known: int


class ChunksRead(_Event, frozen=True, tag="reading"):
    """A model has read chunks for the question."""

    reading: Reading

    @property
    def triples(self) -> tuple[Triple, ...]:
        chunks = [iri(rdf.source_uri("chunk", id)) for id in self.reading.chunk_ids]
        properties = [("tg:chunkCount", literal(len(chunks)))]
        return self._record(
            "Reading", "session", [*properties, *[("prov:used", chunk) for chunk in chunks]]
        )


class Retrieval(_Event, frozen=True, tag="retrieval"):
    """The edges of the subgraph, and the chunks found directly, were retrieved; best first."""

    mode: Mode
    candidates: tuple[Edge, ...] = ()
    retrieved_chunks: tuple[str, ...] = ()

    @property
    def triples(self) -> tuple[Triple, ...]:
        counts = []
        if MODES[self.mode].graph:
            counts.append(("tg:edgeCount", literal(len(self.candidates))))
        if MODES[self.mode].chunks:
            counts.append(("tg:chunkCount", literal(len(self.retrieved_chunks))))
        return self._record("Retrieval", "session", counts)


class SelectionMade(_Event, frozen=True, tag="selection"):
    """The edges and chunks for the answer were chosen; `shown` lists all items of the prompt.

    With `fallback`, rank decided, since the model chose nothing, or because of `selection_error`.
    """

    method: Selection
    selected: tuple[SelectedEdge, ...] = ()
    selected_chunks: tuple[str, ...] = ()
    shown: tuple[PromptItem, ...] = ()
    rejections: tuple[t.Rejection, ...] = ()
    fallback: bool = False
    selection_error: str | None = None

    @property
    def triples(self) -> tuple[Triple, ...]:
        links: list[PropertyValue] = []
        edge_triples: list[Triple] = []
        for index, selected in enumerate(self.selected):
            uri = f"{rdf.stage_uri('edge', self.trace_id)}:{index}"
            reason = ("tg:score", literal(float(selected.score or 0.0)))
            if selected.reasoning is not None:
                reason = ("tg:reasoning", literal(selected.reasoning))
            statement = ("tg:edge", rdf.triple_term(rdf.fact(selected.edge)))
            links.append(("tg:selectedEdge", iri(uri)))
            edge_triples += triples_of(uri, [statement, reason])
        for id in self.selected_chunks:
            links.append(("tg:selectedChunk", iri(rdf.source_uri("chunk", id))))
        if self.fallback:
            links.append(("tg:fallback", literal(True)))
        return (*self._record("Selection", "retrieval", links), *edge_triples)


class AnswerChunk(_Event, frozen=True, tag="chunk"):
    """A piece of the answer was written; the last one ends the stream. Pieces are not stored."""

    text: str
    end_of_stream: bool = False


class Answered(_Event, frozen=True, tag="answer"):
    """The whole answer, with resolved citations; `invented` are cited numbers of no item.

    Citation n is of the item with the number `prompt_numbers[n - 1]` in the prompt. A `reused` answer
    was written for an earlier question; a `truncated` answer was cut off. `claims` says what is known
    of the claim before each cited number, `uncited` of the statements without one.
    """

    answer: str
    citations: tuple[Citation, ...] = ()
    invented: tuple[int, ...] = ()
    reused: bool = False
    truncated: bool = False
    prompt_numbers: tuple[int, ...] = ()
    claims: tuple[CitedClaim, ...] = ()
    uncited: tuple[UncitedClaim, ...] = ()

    @property
    def triples(self) -> tuple[Triple, ...]:
        text = ("tg:document", iri(rdf.stage_uri("chunk", self.trace_id)))
        return self._record("Answer", "selection", [text])


class End(_Event, frozen=True, tag="end"):
    """The end of the session, exactly once: the sources in words, or the error, and the cost."""

    ended_at: datetime
    sources: tuple[str, ...] = ()
    error: str | None = None
    usage: Usage = Usage()

    @property
    def status(self) -> TraceStatus:
        """How the query went."""
        return "complete" if self.error is None else "failed"


Event: TypeAlias = (
    Session
    | KeywordsFound
    | ReadingProgress
    | ChunksRead
    | Retrieval
    | SelectionMade
    | AnswerChunk
    | Answered
    | End
)

_EVENT_DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def event_to_json(event: Event) -> str:
    """The event as a line of JSON; lone surrogates become U+FFFD."""
    try:
        return msgspec.json.encode(event).decode()
    except UnicodeEncodeError:
        return sanitize(json.dumps(msgspec.to_builtins(event), ensure_ascii=False))


def event_from_json(text: str) -> Event:
    """The event in a text by `event_to_json`; `ValueError` for any other text."""
    return _EVENT_DECODER.decode(text)
