"""The description of each entity and relation: its fragments as they are, or a summary of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from lightrag_jsonl.ask import Ask
from lightrag_jsonl.concurrency import together
from lightrag_jsonl.errors import BudgetError, LightRAGError, LLMError
from lightrag_jsonl.indexing.hubs import Hubs, Owner
from lightrag_jsonl.indexing.merging import GRAPH_KINDS, Fragment, Plan
from lightrag_jsonl.indexing.tallies import winner
from lightrag_jsonl.options import IndexOptions
from lightrag_jsonl.protocols import Tokenizer
from lightrag_jsonl.slots import SUMMARY
from lightrag_jsonl.spending import Spending
from lightrag_jsonl.storage import claims, snapshot
from lightrag_jsonl.storage.rows import EntityRow, RelationRow
from lightrag_jsonl.types import Kind

LOOK_AHEAD = 4  # fragments read for each one shown, since many may have the same text
SEVERAL = 4  # with so many fragments, an owner is worth remembering for the next commit

Row = EntityRow | RelationRow


@dataclass(frozen=True, slots=True)
class Due:
    """An entity or relation whose summary must be written or renewed, and the fragments to write it from."""

    kind: Kind
    row: Row
    name: str
    fragments: tuple[str, ...]
    covered: int


@dataclass(frozen=True, slots=True)
class _Told:
    """The first fragments of a row that no summary covers; `covered` is how far the summary reached then."""

    row: Row
    covered: int
    fragments: tuple[Fragment, ...]


class Describer:
    """Decides each row's description, and which summaries the model must be asked for."""

    def __init__(
        self,
        options: IndexOptions,
        tokenizer: Tokenizer,
        *,
        summarize: bool,
        hubs: Hubs | None = None,
    ) -> None:
        self._options = options
        self._count = tokenizer.count
        self._summarize = summarize
        self._hubs = hubs or Hubs()
        self._told: dict[Owner, _Told] = {}

    def describe(self, connection: sqlite3.Connection, plan: Plan) -> list[Due]:
        """Set the description of every touched row from what is there; returns the summaries that are due."""
        due: list[Due] = []
        if plan.removed:
            self._hubs.clear()
        known = self._hubs.at(snapshot.generation(connection))
        limit = (self._options.summarize_fragments + 1) * LOOK_AHEAD
        for kind in GRAPH_KINDS:
            rows = plan.alive(kind)
            after = {
                row.id: row.covered
                for row in rows
                if _is_stored(plan, kind, row) and (kind, row.id) not in known
            }
            stored = claims.fragments(connection, kind, after, without=plan.removed, limit=limit)
            for row in rows:
                owner = kind, row.id
                before = known.get(owner) or stored.get(row.id, [])
                told = tuple(sorted([*before, *plan.fragments.get(owner, [])])[:limit])
                if len(told) >= SEVERAL:
                    self._told[owner] = _Told(row, row.covered, told)
                fresh = _distinct(told)
                if self._summarize and self._is_due(row, fresh):
                    due.append(self._due(connection, plan, kind, row))
                self.set_description(row, fresh)
        return due

    def remember(self, generation: int) -> None:
        """After the commit: remember the fragments of hubs for the next one."""
        uncovered = {
            owner: told.fragments
            for owner, told in self._told.items()
            if told.covered == told.row.covered
        }
        self._hubs.leave(generation, uncovered, instead_of=self._told)

    def set_description(self, row: Row, fresh: Sequence[str]) -> None:
        """Set a row's description: its summary, if it has one, and the fragments written since."""
        shown = [row.summary] if row.summary else []
        room = self._options.summarize_tokens
        for text in fresh[: self._options.summarize_fragments]:
            room -= self._at_most(text, room)
            if room < 0 and shown:
                break
            shown.append(text)
        row.description = "\n".join(shown)

    def _is_due(self, row: Row, fresh: Sequence[str]) -> bool:
        few = self._options.summarize_fragments
        if row.summary is None:
            return len(fresh) >= few or self._are_long(fresh)
        return row.mentions - row.covered_mentions >= max(few, row.mentions / 4)

    def _due(self, connection: sqlite3.Connection, plan: Plan, kind: Kind, row: Row) -> Due:
        stored = claims.fragments(connection, kind, {row.id: 0}, without=plan.removed)[row.id]
        new = plan.fragments.get((kind, row.id), [])
        covered = plan.last_claims.get((kind, row.id))
        if covered is None:
            covered = claims.last_claim(connection, kind, row.id, without=plan.removed)
        return Due(kind, row, title(row), tuple(_distinct(sorted([*stored, *new]))), covered)

    def _are_long(self, texts: Sequence[str]) -> bool:
        room = self._options.summarize_tokens
        for text in texts:
            room -= self._at_most(text, room)
        return room < 0 and len(texts) > 1

    def _at_most(self, text: str, room: int) -> int:
        """The tokens of a text; its length in bytes, if even that is small."""
        size = _bytes(text)
        return size if size <= room // self._options.summarize_fragments else self._count(text)


def _is_stored(plan: Plan, kind: Kind, row: Row) -> bool:
    """Whether the database may hold claims of this row that no summary covers."""
    return row.mentions - row.covered_mentions > len(plan.fragments.get((kind, row.id), ()))


def title(row: Row) -> str:
    """What to call a row in a prompt: the same in every index, so that cached summaries are found again."""
    if isinstance(row, EntityRow):
        return row.name
    return " — ".join(sorted((winner(row.low_names), winner(row.high_names))))


# ── asking for summaries ────────────────────────────────────────────────────────


async def summarize(
    ask: Ask,
    due: Due,
    *,
    language: str,
    group_tokens: int,
    count: Callable[[str], int],
    spending: Spending,
) -> str:
    """One description from all fragments, by map-reduce; never from an earlier summary.

    Groups are cut by content: a new fragment changes only its own group and those above it, and the
    other groups are answered from the cache. The groups of one level are summarized concurrently.
    """

    async def write(group: Sequence[str]) -> str | LightRAGError:
        if len(group) == 1:
            return group[0]
        variables = {"name": due.name, "descriptions": group, "language": language}
        try:
            reply = await ask.text(
                "summarize-descriptions", variables, spending=spending, turn=SUMMARY
            )
            if not reply.said.strip():
                await ask.forget(reply)
                raise LLMError(f"the model wrote an empty summary of {due.name!r}")
        except (LLMError, BudgetError) as error:  # the other groups finish: they are being paid for
            return error
        return reply.said.strip()

    texts = list(due.fragments)
    while len(texts) > 1:
        cut = groups(texts, limit=group_tokens, count=count)
        written = [_or_raised(done) for done in await together(write(group) for group in cut)]
        if len(written) >= len(texts):  # the texts are too long to be grouped further
            return "\n".join(written)
        texts = written
    return texts[0]


def _or_raised(done: str | LightRAGError) -> str:
    if isinstance(done, LightRAGError):
        raise done
    return done


def groups(texts: Sequence[str], *, limit: int, count: Callable[[str], int]) -> list[list[str]]:
    """Cut a list of texts into groups of at most `limit` tokens, at borders that depend on content.

    A group has `limit` bytes on average, about a quarter of what fits. So hardly any group has to
    be cut for its length, and two levels are enough for a hub of thousands of fragments.
    """
    whole = _Room(limit, count)
    if all(whole.takes(text) for text in texts):
        return [list(texts)]
    found: list[list[str]] = [[]]
    room = _Room(limit, count)
    for text in texts:
        group = found[-1]
        full = not room.takes(text)
        if group and (full or (len(group) > 1 and _is_border(text, limit))):
            group, room = [], _Room(limit, count)
            room.takes(text)
            found.append(group)
        group.append(text)
    return found


class _Room:
    """Room for a number of tokens. Texts are counted only if they might not fit by their bytes."""

    def __init__(self, limit: int, count: Callable[[str], int]) -> None:
        self._left = limit
        self._count = count
        self._uncounted: list[str] = []
        self._bytes = 0  # of the uncounted texts

    def takes(self, text: str) -> bool:
        """Add a text; returns whether everything still fits."""
        self._uncounted.append(text)
        self._bytes += _bytes(text)
        if self._bytes > self._left:
            self._left -= sum(map(self._count, self._uncounted))
            self._uncounted.clear()
            self._bytes = 0
        return self._left >= 0


def _bytes(text: str) -> int:
    """A text's length in bytes; it never has more tokens than that."""
    return len(text) if text.isascii() else len(text.encode())


def _is_border(text: str, every: int) -> bool:
    """Whether a group begins with this text; on average, once in `every` bytes of text."""
    return int.from_bytes(sha256(text.encode()).digest()[:4], "big") * every < _bytes(text) << 32


def _distinct(fragments: Sequence[Fragment]) -> list[str]:
    """The texts, without repetitions."""
    return list(dict.fromkeys(text for _, text in fragments))
