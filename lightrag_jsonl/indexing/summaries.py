"""One description for each entity and relation: its fragments as they are, or a summary of them."""

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

LOOK_AHEAD = 4  # fragments read for each one that is shown: the same text may stand many times
SEVERAL = 4  # fragments that are worth remembering

Row = EntityRow | RelationRow


@dataclass(frozen=True, slots=True)
class Due:
    """An entity or relation whose summary must be written (anew), and from what."""

    kind: Kind
    row: Row
    name: str
    fragments: tuple[str, ...]
    covered: int


@dataclass(frozen=True, slots=True)
class _Told:
    """The first fragments of a row that no summary covers; `covered` is how far one did then."""

    row: Row
    covered: int
    fragments: tuple[Fragment, ...]


class Describer:
    """Decides what a row's description is, and when a model must be asked for a summary."""

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
        """Set the description of every touched row, fragments as they are; tell which are due."""
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
        """Keep what hubs were told for the next commit, once this one is done."""
        uncovered = {
            owner: told.fragments
            for owner, told in self._told.items()
            if told.covered == told.row.covered
        }
        self._hubs.leave(generation, uncovered, instead_of=self._told)

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
        """The tokens of a text; its length in bytes, while that fits."""
        size = _bytes(text)
        return size if size <= room // self._options.summarize_fragments else self._count(text)


def _is_stored(plan: Plan, kind: Kind, row: Row) -> bool:
    """Whether there may be claims beside the new ones that no summary covers."""
    return row.mentions - row.covered_mentions > len(plan.fragments.get((kind, row.id), ()))


def title(row: Row) -> str:
    """What to call a row in a prompt: alike in every index, so that its answers are found again."""
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
    """One description from all fragments, map-reduce; never from an earlier summary.

    The groups are content-defined: a new fragment changes its own group and the levels above,
    the other groups are answered from the cache. Those of one level are written at the same time.
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
        except (LLMError, BudgetError) as error:  # the others come to their end: they are paid for
            return error
        return reply.said.strip()

    texts = list(due.fragments)
    while len(texts) > 1:
        cut = groups(texts, limit=group_tokens, count=count)
        written = [_or_raised(done) for done in await together(write(group) for group in cut)]
        if len(written) >= len(texts):  # fragments too long to be grouped
            return "\n".join(written)
        texts = written
    return texts[0]


def _or_raised(done: str | LightRAGError) -> str:
    if isinstance(done, LightRAGError):
        raise done
    return done


def groups(texts: Sequence[str], *, limit: int, count: Callable[[str], int]) -> list[list[str]]:
    """Cut a list where the content says so, once it is too long for one group of `limit` tokens.

    A group ends, on average, after `limit` bytes: about a quarter of what fits, so that hardly one
    has to be cut elsewhere, and two levels do for a hub of thousands of fragments.
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
    """Room for so many tokens. Texts are counted only where their bytes alone might not fit."""

    def __init__(self, limit: int, count: Callable[[str], int]) -> None:
        self._left = limit
        self._count = count
        self._uncounted: list[str] = []
        self._bytes = 0  # of those

    def takes(self, text: str) -> bool:
        """Put a text in, whether it fits or not; tells whether it does."""
        self._uncounted.append(text)
        self._bytes += _bytes(text)
        if self._bytes > self._left:
            self._left -= sum(map(self._count, self._uncounted))
            self._uncounted.clear()
            self._bytes = 0
        return self._left >= 0


def _bytes(text: str) -> int:
    """A text's length in bytes, which no token count exceeds."""
    return len(text) if text.isascii() else len(text.encode())


def _is_border(text: str, every: int) -> bool:
    """Whether a group begins with this text, as it does once in so many bytes of text."""
    return int.from_bytes(sha256(text.encode()).digest()[:4], "big") * every < _bytes(text) << 32


def _distinct(fragments: Sequence[Fragment]) -> list[str]:
    """The texts, each once."""
    return list(dict.fromkeys(text for _, text in fragments))
