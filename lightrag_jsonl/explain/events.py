"""The typed events of one query, in the order they happen, each with its URI and its triples."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Literal, TypeAlias

from lightrag_jsonl.candidates import Edge, SelectedEdge
from lightrag_jsonl.explain import prov
from lightrag_jsonl.explain.prov import Bases
from lightrag_jsonl.explain.rdf import Iri, Triple
from lightrag_jsonl.options import Selection as Method
from lightrag_jsonl.types import Citation, Json, Keywords, Kind, Mode, Rejection, Usage

COLLECTION = "explainability"

Status: TypeAlias = Literal["complete", "failed", "incomplete"]
Stage: TypeAlias = Literal[
    "session", "keywords", "retrieval", "selection", "chunk", "answer", "end"
]


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


@dataclass(frozen=True, slots=True)
class _Event:
    """What every event has: the id of the query it belongs to."""

    stage: ClassVar[Stage]
    trace_id: str

    @property
    def uri(self) -> Iri:
        """The URI of the record that this event is about."""
        return prov.prov_uri(self.stage, self.trace_id)

    @property
    def triples(self) -> tuple[Triple, ...]:
        """What the event adds to the graph of retrievals."""
        return ()

    def to_message(self) -> dict[str, Json]:
        """The event under the specification's field names."""
        return _message(message_type="explain", explain_id=str(self.uri))


@dataclass(frozen=True, slots=True)
class Session(_Event):
    """A question was asked; `generation` is the number of the index's last change."""

    stage: ClassVar[Stage] = "session"
    question: str
    mode: Mode
    started_at: datetime
    generation: int = 0

    @property
    def uri(self) -> Iri:
        return prov.session_uri(self.trace_id)

    @property
    def triples(self) -> tuple[Triple, ...]:
        return prov.session_triples(self.trace_id, self.question, self.started_at)


@dataclass(frozen=True, slots=True)
class KeywordsFound(_Event):
    """The question's keywords were found."""

    stage: ClassVar[Stage] = "keywords"
    keywords: Keywords

    @property
    def triples(self) -> tuple[Triple, ...]:
        concepts = (*self.keywords.high_level, *self.keywords.low_level)
        return prov.keyword_triples(self.trace_id, concepts)


@dataclass(frozen=True, slots=True)
class Retrieval(_Event):
    """The edges of the subgraph, and the chunks found directly, were retrieved; best first."""

    stage: ClassVar[Stage] = "retrieval"
    mode: Mode
    edges: tuple[Edge, ...] = ()
    chunk_ids: tuple[str, ...] = ()

    @property
    def triples(self) -> tuple[Triple, ...]:
        return prov.retrieval_triples(
            self.trace_id, self.mode, len(self.edges), len(self.chunk_ids)
        )


@dataclass(frozen=True, slots=True)
class Selection(_Event):
    """The edges and chunks for the answer were chosen; `shown` is all that its prompt contains.

    With `fallback` rank decided instead of the model; `error` says why the model could not be
    asked.
    """

    stage: ClassVar[Stage] = "selection"
    method: Method
    edges: tuple[SelectedEdge, ...] = ()
    chunk_ids: tuple[str, ...] = ()
    shown: tuple[Shown, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    fallback: bool = False
    bases: Bases = field(default_factory=Bases)
    error: str | None = None

    @property
    def triples(self) -> tuple[Triple, ...]:
        return prov.selection_triples(
            self.trace_id, self.edges, self.chunk_ids, fallback=self.fallback, bases=self.bases
        )


@dataclass(frozen=True, slots=True)
class AnswerChunk(_Event):
    """A piece of the answer was written; the last one ends the stream."""

    stage: ClassVar[Stage] = "chunk"
    text: str
    end_of_stream: bool = False

    @property
    def uri(self) -> Iri:
        return prov.answer_text_uri(self.trace_id)

    def to_message(self) -> dict[str, Json]:
        return _message(response=self.text, end_of_stream=self.end_of_stream)


@dataclass(frozen=True, slots=True)
class Answered(_Event):
    """The whole answer, with resolved citations; `invented` are cited numbers that were not shown.

    With `reused` it was written for an earlier question, from what is shown here. With `truncated`
    the model stopped at its token limit.
    """

    stage: ClassVar[Stage] = "answer"
    text: str
    citations: tuple[Citation, ...] = ()
    invented: tuple[int, ...] = ()
    usage: Usage = field(default_factory=Usage)
    reused: bool = False
    truncated: bool = False

    @property
    def triples(self) -> tuple[Triple, ...]:
        return prov.answer_triples(self.trace_id)


@dataclass(frozen=True, slots=True)
class End(_Event):
    """The end of the session, exactly one: with the sources in words, or with the error.

    `usage` is what was paid if there is no answer.
    """

    stage: ClassVar[Stage] = "end"
    ended_at: datetime
    sources: tuple[str, ...] = ()
    error: str | None = None
    usage: Usage = field(default_factory=Usage)

    @property
    def uri(self) -> Iri:
        return prov.session_uri(self.trace_id)

    @property
    def status(self) -> Status:
        """How the query went."""
        return "complete" if self.error is None else "failed"

    def to_message(self) -> dict[str, Json]:
        return _message(error=self.error, response="\n".join(self.sources), end_of_session=True)


Event: TypeAlias = Session | KeywordsFound | Retrieval | Selection | AnswerChunk | Answered | End


def _message(
    *,
    message_type: str = "chunk",
    explain_id: str | None = None,
    response: str = "",
    error: str | None = None,
    end_of_stream: bool = False,
    end_of_session: bool = False,
) -> dict[str, Json]:
    return {
        "error": error,
        "response": response,
        "end_of_stream": end_of_stream,
        "explain_id": explain_id,
        "explain_collection": COLLECTION,
        "message_type": message_type,
        "end_of_session": end_of_session,
    }
