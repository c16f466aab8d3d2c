"""Where the databases differ: parameters, arrays, texts, JSON, vectors and the full text."""

import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Protocol, TypeAlias

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.tables.full_text import FullText
from lightrag_jsonl.storage.vector_index import Halves
from lightrag_jsonl.text.patterns import pattern_of

PARAMETER = pattern_of(r"\?(\d*)")

Keys: TypeAlias = Collection[int] | Collection[str] | Collection[bytes]


class Cursor(Protocol):
    """The result of a statement, which can be read on while other statements run."""

    @property
    def description(self) -> Any:
        """A sequence for each column, whose first item is the name."""

    @property
    def rowcount(self) -> int:
        """The number of changed rows."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows."""


class Dialect(ABC):
    """A connection in a transaction, and the SQL in which a database differs.

    Parameters of statements are `?`, or `?1` for the first parameter again. A connection for reading
    refuses to write. Several threads call the dialect of a snapshot at once.
    """

    FOR_UPDATE: ClassVar[
        str
    ]  # after SELECT: nobody else changes these rows; empty if one writes at a time
    NO_VECTOR: ClassVar[str]  # the vector that stands for a refused text
    # Patterns in the SQL of SQLite that makes tables, and what this database writes there, in this order.
    SCHEMA_WORDS: ClassVar[Sequence[tuple[str, str]]] = ()
    full_text: FullText

    @classmethod
    def schema_words(cls, statements: str) -> str:
        """Statements that make tables, in the words of this database."""
        for pattern, words in cls.SCHEMA_WORDS:
            statements = re.sub(pattern, words, statements)
        return statements

    @abstractmethod
    def execute(self, statement: str, *parameters: object) -> Cursor:
        """Run one statement."""

    @abstractmethod
    def execute_many(self, statement: str, rows: Iterable[Sequence[object]]) -> int:
        """Run one statement for each row of parameters; returns the number of changed rows."""

    # ── arrays ──────────────────────────────────────────────────────────────────────

    @abstractmethod
    def among(self, parameter: str = "?") -> str:
        """A test after a column: whether the value is in the array of a parameter."""

    @abstractmethod
    def array(self, keys: Keys) -> object:
        """The parameter for `among`."""

    @abstractmethod
    def pairs(self, pairs: Collection[tuple[int, int]]) -> tuple[str, Sequence[object]]:
        """A query for pairs, and the parameters of the query."""

    # ── texts and JSON ──────────────────────────────────────────────────────────────

    @abstractmethod
    def byte_length(self, column: str) -> str:
        """The number of bytes of a value that `pack_text`, or `pack` as bytes, made."""

    @abstractmethod
    def pack_text(self, text: str) -> object:
        """A long text that only `unpack_text` reads again, as small as the database can store it."""

    @abstractmethod
    def unpack_text(self, value: Any) -> str:
        """A text of `pack_text`."""

    @abstractmethod
    def contains(self, column: str, parameter: str) -> str:
        """A test whether a text contains the text of a parameter."""

    @abstractmethod
    def json_field(self, column: str, field: str) -> str:
        """A field of the JSON object in a column, as text."""

    # ── the first rows for each of many ids ─────────────────────────────────────────

    @abstractmethod
    def descriptions(
        self, kind: Kind, after: Mapping[int, int], without: Collection[int], limit: int | None
    ) -> Iterable[tuple[int, int, int, str]]:
        """For each id in `after`, the first descriptions in mentions with a greater row id than
        `after[id]`, outside some chunks, as (id, position, row id of the chunk, description), ordered
        by position.
        """

    @abstractmethod
    def first_chunks(
        self, kind: Kind, ids: Collection[int], limit: int
    ) -> Iterable[tuple[int, str]]:
        """For each entity or relation, the public ids of the chunks of its first mentions, as
        (id, chunk id), in order.
        """

    # ── vectors ─────────────────────────────────────────────────────────────────────

    @abstractmethod
    def pack(self, vector: Vectors) -> object:
        """A vector as the parameter of a statement."""

    @abstractmethod
    def unpack(self, data: Any) -> Halves:
        """A vector in half precision, from the value in a column."""


@lru_cache(maxsize=1_000)
def numbered_parameters(statement: str) -> str:
    """The statement with parameters called $1, $2, for a database that knows no `?1`."""
    numbers = itertools.count(1)
    return PARAMETER.sub(lambda match: f"${match[1] or next(numbers)}", statement)
