"""Questions and answers: keywords, what was retrieved, the answer with its citations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from lightrag_jsonl.places import told_apart, told_place
from lightrag_jsonl.types.graph import Entity, Kind, Relation
from lightrag_jsonl.types.texts import Chunk
from lightrag_jsonl.usage import Usage

Mode: TypeAlias = Literal["naive", "local", "global", "hybrid", "mix", "walk", "bypass"]


@dataclass(frozen=True, slots=True)
class Keywords:
    """What a question is about: themes (`high_level`) and named things (`low_level`)."""

    high_level: tuple[str, ...] = ()
    low_level: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dropped:
    """How many ranked items the token budget left out of a context."""

    entities: int = 0
    relations: int = 0
    chunks: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """What was retrieved for a question, best first, and the text the model reads.

    `tokens` counts `prompt` with the index's tokenizer; where only its parts were counted, their
    sum may be slightly more. `documents` maps document ids to the titles (or sources) that readers
    are shown. `language` is the index's language, in which places are written out.
    """

    question: str = ""
    mode: Mode = "mix"
    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    keywords: Keywords = Keywords()
    tokens: int = 0
    dropped: Dropped = Dropped()
    prompt: str = ""
    documents: Mapping[str, str] = field(default_factory=dict)
    language: str = "en"

    @property
    def empty(self) -> bool:
        """Whether nothing at all was found."""
        return not (self.entities or self.relations or self.chunks)


@dataclass(frozen=True, slots=True)
class Citation:
    """One `[number]` of an answer, resolved to the text behind it.

    `start` and `end` are characters of the page. For a chunk they cover the sentence that supports
    the claim, or the whole chunk where no sentence stands out. An entity or a relation is cited by
    the chunks it was read from: one `Citation` for each chunk, all with the same number.
    """

    number: int
    kind: Kind
    label: str
    document_id: str
    document: str
    page: int
    chunk_id: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and where it came from.

    `invented` holds the cited numbers that the model was never shown. `truncated` says that the
    model stopped at its token limit. `str(answer)` is the text followed by its sources, one a line;
    documents that share a title are told apart by their ids.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    context: Context = field(default_factory=Context)
    trace_id: str | None = None
    usage: Usage = Usage()
    invented: tuple[int, ...] = ()
    truncated: bool = False

    def __str__(self) -> str:
        if not self.citations:
            return self.text
        names = told_apart((one.document_id, one.document) for one in self.citations)
        sources = []
        for one in self.citations:
            place = told_place(
                names[one.document_id], one.page, one.start, one.end, self.context.language
            )
            sources.append(f"[{one.number}] {place}")
        return "\n".join([self.text, "", *dict.fromkeys(sources)])
