"""What an insert, a deletion or a merge did, and the state of documents and index: frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lightrag_jsonl.core.claims import GraphDifference
from lightrag_jsonl.core.display import with_field_lines, with_short_repr
from lightrag_jsonl.core.options import ReadMode
from lightrag_jsonl.core.types import (
    DocumentState,
    Entity,
    ExtractionReport,
    Failure,
    Json,
    ModelTask,
    Relation,
)
from lightrag_jsonl.core.usage import Usage


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class SkippedFile:
    """A file in a given folder that is not read, and why: a link, a pipe or a device."""

    path: str
    reason: str


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class FileNote:
    """A part of a file that is not in its text, such as bytes that cannot be decoded."""

    path: str
    text: str


@with_field_lines
@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class InsertReport:
    """The result of an insert; `entities` and `relations` count created and changed ones.

    - `documents`: the ids of new or changed documents, now visible to searches.
    - `unchanged`: the ids of documents already in the index.
    - `purged`: the ids of documents that were left out, since their texts were purged from the index.
    - `deleted`: the ids of documents whose files are gone.
    - `skipped`: the unread files in the folders: links, pipes and devices.
    - `shortened`: the chunks that are too long for the embedder, which reads only the beginning;
      these are no failures, since a retry would not help.
    - `notes`: the parts of read files that are not in the texts.
    - `stopped`: empty, or the reason for an early end.
    - `difference`: with `sync`, what is new, gone and contradicted in the graph.
    """

    documents: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    purged: tuple[str, ...] = ()
    chunks: int = 0
    entities: int = 0
    relations: int = 0
    failures: tuple[Failure, ...] = ()
    usage: Usage = Usage()
    extraction: ExtractionReport = ExtractionReport()
    stopped: str = ""
    deleted: tuple[str, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()
    shortened: tuple[Failure, ...] = ()
    notes: tuple[FileNote, ...] = ()
    difference: GraphDifference | None = None


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class MergedRecords:
    """What the records of several texts say together, each entity and relation once.

    `rejections` counts refused records by reason.
    """

    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]
    rejections: Mapping[str, int]


@with_field_lines
@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class MergeReport:
    """The result of a merge of indexes; `entities` and `relations` as in `InsertReport`.

    - `documents`: the ids of new documents; `unchanged`: of documents already in this index.
    - `purged`: of documents that were left out, since they were purged from this index.
    - `pending`: the number of waiting documents in the merged indexes, which are not taken over.
    - `answers`: the number of cached answers.
    - `summaries_due`: the number of entities and relations whose summary nobody has paid for yet.
    """

    documents: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    purged: tuple[str, ...] = ()
    pending: int = 0
    chunks: int = 0
    entities: int = 0
    relations: int = 0
    answers: int = 0
    summaries_due: int = 0


@with_field_lines
@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class DeleteReport:
    """The result of a deletion: the ids of the documents, and the numbers of everything removed.

    Cached answers and traces are only removed by a purge.
    """

    documents: tuple[str, ...] = ()
    chunks: int = 0
    entities: int = 0
    relations: int = 0
    answers: int = 0
    traces: int = 0


@with_field_lines
@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class DocumentStatus:
    """A document and the state of extraction; the title of an untitled text is the first sentence.

    `content_keywords` are its themes, the most frequent first.
    """

    id: str
    title: str | None
    source: str | None
    date: str | None
    state: DocumentState
    chunks: int
    characters: int
    created_at: datetime
    extraction: ExtractionReport = ExtractionReport()
    failures: tuple[Failure, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)
    content_keywords: tuple[str, ...] = ()


@with_field_lines
@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class ReadingState:
    """How much of an index a model has read, or a user has given records for.

    - `read`: "all" if a model reads chunks when they are inserted, "asked" if when questions find them.
    - `chunks_read`, `chunks_unread`: of all chunks; unread are those that rules have read alone.
    - `questions`: that had chunks read.
    - `tokens`: input and output tokens of the reading so far; `tokens_for_rest`: what the unread chunks
      would cost, about: as much for each token of their texts as was spent so far, or usually is.
    """

    read: ReadMode = "all"
    chunks_read: int = 0
    chunks_unread: int = 0
    questions: int = 0
    tokens: int = 0
    tokens_for_rest: int = 0


@with_field_lines
@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Status:
    """The index as a whole; `documents` maps states to counts, `dim` is the length of vectors.

    `models` has the names of models for single tasks, where those differ from `llm`.
    """

    working_dir: str
    documents: Mapping[str, int]
    chunks: int
    entities: int
    relations: int
    language: str
    llm: str
    embedder: str
    dim: int
    tokenizer: str
    format: int
    bytes_on_disk: int
    extraction: ExtractionReport = ExtractionReport()
    models: Mapping[ModelTask, str] = field(default_factory=dict)
    reading: ReadingState = ReadingState()
