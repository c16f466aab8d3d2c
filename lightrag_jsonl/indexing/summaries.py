"""One description for each entity and relation: its fragments as they are, or a summary of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from lightrag_jsonl.ask import Ask, Spending
from lightrag_jsonl.errors import LLMError
from lightrag_jsonl.indexing.merging import GRAPH_KINDS, Fragment, Plan, winner
from lightrag_jsonl.options import IndexOptions
from lightrag_jsonl.protocols import Tokenizer
from lightrag_jsonl.storage import claims
from lightrag_jsonl.storage.rows import EntityRow, RelationRow
from lightrag_jsonl.types import Kind, Usage

LOOK_AHEAD = 4  # fragments read for each one that is shown: the same text may stand many times
CUT_EVERY = 32  # a group of fragments ends, on average, after this many (content-defined)

Row = EntityRow | RelationRow


@dataclass(frozen=True, slots=True)
class Due:
    """An entity or relation whose summary must be written (anew), and from what."""

    kind: Kind
    row: Row
    name: str
    fragments: tuple[str, ...]
    covered: int


class Describer:
    """Decides what a row's description is, and when a model must be asked for a summary."""

    def __init__(self, options: IndexOptions, tokenizer: Tokenizer, *, summarize: bool) -> None:
        self._options = options
        self._count = tokenizer.count
        self._summarize = summarize

    def describe(self, connection: sqlite3.Connection, plan: Plan) -> list[Due]:
        """Set the description of every touched row, fragments as they are; tell which are due."""
        due: list[Due] = []
        for kind in GRAPH_KINDS:
            for row in plan.alive(kind):
                fresh = self._first_fragments(connection, plan, kind, row)
                if self._summarize and self._is_due(connection, plan, kind, row, fresh):
                    due.append(self._due(connection, plan, kind, row))
                self.set_description(row, fresh)
        return due

    def set_description(self, row: Row, fresh: Sequence[str]) -> None:
        """The summary, where there is one, with the fragments written since beside it."""
        shown = [row.summary] if row.summary else []
        room = self._options.summarize_tokens
        for text in fresh[: self._options.summarize_fragments]:
            room -= self._at_most(text, room)
            if room < 0 and shown:
                break
            shown.append(text)
        row.description = "\n".join(shown)

    def _first_fragments(
        self, connection: sqlite3.Connection, plan: Plan, kind: Kind, row: Row
    ) -> list[str]:
        """The first distinct descriptions in order of place that no summary covers."""
        limit = (self._options.summarize_fragments + 1) * LOOK_AHEAD
        new = plan.fragments.get((kind, row.id), [])
        stored: list[Fragment] = []
        if row.mentions > len(new):
            going = plan.removed_claims[kind, row.id]
            stored = claims.first_fragments(
                connection, kind, row.id, after=row.covered, limit=limit + going
            )
        return _distinct(stored, new, plan, limit=limit)

    def _is_due(
        self,
        connection: sqlite3.Connection,
        plan: Plan,
        kind: Kind,
        row: Row,
        fresh: Sequence[str],
    ) -> bool:
        few = self._options.summarize_fragments
        if row.summary is None:
            return len(fresh) >= few or self._are_long(fresh)
        since = claims.count_claims(connection, kind, row.id, after=row.covered)
        since += len(plan.fragments.get((kind, row.id), ()))
        return since >= max(few, row.mentions / 4)

    def _due(self, connection: sqlite3.Connection, plan: Plan, kind: Kind, row: Row) -> Due:
        stored = claims.first_fragments(connection, kind, row.id, after=0, limit=-1)
        new = plan.fragments.get((kind, row.id), [])
        covered = plan.last_claims.get((kind, row.id))
        if covered is None:
            covered = claims.last_claim(connection, kind, row.id, without=plan.removed)
        return Due(kind, row, title(row), tuple(_distinct(stored, new, plan)), covered)

    def _are_long(self, texts: Sequence[str]) -> bool:
        room = self._options.summarize_tokens
        for text in texts:
            room -= self._at_most(text, room)
        return room < 0 and len(texts) > 1

    def _at_most(self, text: str, room: int) -> int:
        """The tokens of a text; its length in bytes, while that fits."""
        size = _bytes(text)
        return size if size <= room // self._options.summarize_fragments else self._count(text)


def title(row: Row) -> str:
    """What to call a row in a prompt."""
    if isinstance(row, EntityRow):
        return row.name
    return f"{winner(row.low_names)} — {winner(row.high_names)}"


# ── asking for summaries ────────────────────────────────────────────────────────


async def summarize(
    ask: Ask,
    due: Due,
    *,
    language: str,
    group_tokens: int,
    count: Callable[[str], int],
    spending: Spending | None = None,
) -> tuple[str, Usage]:
    """One description from all fragments, map-reduce; never from an earlier summary.

    The groups are content-defined: a new fragment changes its own group and the levels above,
    the other groups are answered from the cache.
    """
    texts, usage = list(due.fragments), Usage()
    while len(texts) > 1:
        written = []
        for group in groups(texts, limit=group_tokens, count=count):
            if len(group) == 1 and len(texts) > 1:
                written.append(group[0])
                continue
            variables = {"name": due.name, "descriptions": group, "language": language}
            reply = await ask.text("summarize-descriptions", variables, spending=spending)
            if not reply.text.strip():
                await ask.forget(reply)
                raise LLMError(f"the model wrote an empty summary of {due.name!r}")
            written.append(reply.text.strip())
            usage += reply.usage
        if len(written) >= len(texts):  # fragments too long to be grouped
            return "\n".join(written), usage
        texts = written
    return texts[0], usage


def groups(texts: Sequence[str], *, limit: int, count: Callable[[str], int]) -> list[list[str]]:
    """Cut a list where the content says so, once it is too long for one group of `limit` tokens."""
    if sum(map(_bytes, texts)) <= limit:
        return [list(texts)]
    sizes = [count(text) for text in texts]
    if sum(sizes) <= limit:
        return [list(texts)]
    found: list[list[str]] = []
    group: list[str] = []
    used = 0
    for text, size in zip(texts, sizes, strict=True):
        if group and (used + size > limit or (len(group) > 1 and _is_border(text))):
            found.append(group)
            group, used = [], 0
        group.append(text)
        used += size
    found.append(group)
    return found


def _bytes(text: str) -> int:
    """A text's length in bytes, which no token count exceeds."""
    return len(text) if text.isascii() else len(text.encode())


def _is_border(text: str) -> bool:
    return int.from_bytes(sha256(text.encode()).digest()[:4], "big") % CUT_EVERY == 0


def _distinct(
    stored: Iterable[Fragment],
    new: Iterable[Fragment],
    plan: Plan,
    *,
    limit: int | None = None,
) -> list[str]:
    """Texts in order of place, each once; what is stored of a chunk that goes (or is folded anew) is left out."""
    kept = sorted([*(f for f in stored if f[1] not in plan.removed), *new])
    return list(dict.fromkeys(text for _, _, text in kept[:limit]))
