"""The description of each entity and relation: its mentions' descriptions, or a summary of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from lightrag_jsonl.core.aio import gather_all
from lightrag_jsonl.core.errors import BudgetError, LightRAGError, LLMError
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.indexing.changes import (
    GRAPH_KINDS,
    LANGUAGE_NAMES,
    GraphChange,
    GraphKey,
    GraphRow,
    IndexParts,
    winner,
)
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.llm.scheduler import SUMMARY
from lightrag_jsonl.storage.rows import EntityRow
from lightrag_jsonl.storage.store import Reader

READ_FOR_EACH = 4  # descriptions read for each one shown, since many may be the same


@dataclass(frozen=True, slots=True)
class DueSummary:
    """An entity or relation whose summary must be written or renewed, from these descriptions."""

    kind: Kind
    row: GraphRow
    descriptions: tuple[str, ...]
    last_mention: int

    @property
    def title(self) -> str:
        """What to call it in a prompt: the same in every index, so that the cache has the answer."""
        if isinstance(self.row, EntityRow):
            return self.row.name
        return " — ".join(sorted((winner(self.row.low_names), winner(self.row.high_names))))


class Describer:
    """Decides each row's description, and asks the model for the summaries that are due."""

    def __init__(self, parts: IndexParts) -> None:
        self._client = parts.client
        self._options = parts.options
        self._count = parts.tokenizer.count
        self._language = LANGUAGE_NAMES.get(parts.language, parts.language)

    def describe(
        self, reader: Reader, change: GraphChange, deferred: Collection[GraphKey] | None
    ) -> list[DueSummary]:
        """Set the description of every touched row; returns the summaries that are due.

        One can be due of those that got a mention and are not `deferred`, none if that is None.
        """
        due = []
        limit = (self._options.summarize_fragments + 1) * READ_FOR_EACH
        for kind in GRAPH_KINDS:
            rows, after = change.rows(kind), {}
            for id, row in rows.items():
                added = change.descriptions.get((kind, id), ())
                if row.mentions - row.summarized_mentions > len(added):
                    after[id] = row.summarized_to
            stored = reader.descriptions(kind, after, without=change.without, limit=limit)
            for id, row in rows.items():
                added = change.descriptions.get((kind, id), ())
                texts = _distinct(sorted([*stored.get(id, ()), *added])[:limit])
                self._set_description(row, texts)
                if deferred is None or (kind, id) in deferred:
                    continue
                if (kind, id) in change.last_mentions and self._is_due(row, texts):
                    due.append(_due_summary(reader, change, kind, row))
        return due

    async def summarize(self, due: DueSummary, meter: UsageMeter) -> None:
        """Write one summary from all descriptions, by map-reduce; never from an earlier summary.

        Groups are cut by content: a new description changes only its own group and those above it,
        and the other groups are answered from the cache. The groups of a level are summarized
        concurrently; if one fails, the others are awaited, since they are paid for.
        """
        texts = list(due.descriptions)
        while len(texts) > 1:
            cut = groups(texts, limit=self._options.summarize_group_tokens, count=self._count)
            written = []
            for text in await gather_all(self._summary(due.title, one, meter) for one in cut):
                if isinstance(text, LightRAGError):
                    raise text
                written.append(text)
            too_long = len(written) >= len(texts)  # to be grouped further
            texts = ["\n".join(written)] if too_long else written
        row = due.row
        row.summary, row.summarized_to, row.summarized_mentions = (
            texts[0],
            due.last_mention,
            row.mentions,
        )
        self._set_description(row, ())

    async def _summary(
        self, title: str, texts: Sequence[str], meter: UsageMeter
    ) -> str | LightRAGError:
        if len(texts) == 1:
            return texts[0]
        variables = {"name": title, "descriptions": texts, "language": self._language}
        try:
            reply = await self._client.text(
                "summarize-descriptions", variables, meter=meter, priority=SUMMARY
            )
            if not reply.text_without_thinking.strip():
                await self._client.forget(reply)
                raise LLMError(f"the model wrote an empty summary of {title!r}")
        except (LLMError, BudgetError) as error:
            return error
        return reply.text_without_thinking.strip()

    def _set_description(self, row: GraphRow, texts: Sequence[str]) -> None:
        """Set a row's description: its summary, if it has one, and what came since."""
        shown = [row.summary] if row.summary else []
        room = self._options.summarize_tokens
        for text in texts[: self._options.summarize_fragments]:
            room -= self._most_tokens(text, room)
            if room < 0 and shown:
                break
            shown.append(text)
        row.description = "\n".join(shown)

    def _is_due(self, row: GraphRow, texts: Sequence[str]) -> bool:
        few, room = self._options.summarize_fragments, self._options.summarize_tokens
        if row.summary is not None:
            return row.mentions - row.summarized_mentions >= max(few, row.mentions / 4)
        for text in texts:
            room -= self._most_tokens(text, room)
        return len(texts) >= few or (len(texts) > 1 and room < 0)

    def _most_tokens(self, text: str, room: int) -> int:
        """The tokens of a text; its length in bytes, if even that is small."""
        size = _byte_count(text)
        return size if size <= room // self._options.summarize_fragments else self._count(text)


def _due_summary(reader: Reader, change: GraphChange, kind: Kind, row: GraphRow) -> DueSummary:
    stored = reader.descriptions(kind, {row.id: 0}, without=change.without).get(row.id, [])
    texts = _distinct(sorted([*stored, *change.descriptions.get((kind, row.id), [])]))
    return DueSummary(kind, row, tuple(texts), change.last_mentions[kind, row.id])


def _distinct(descriptions: Iterable[tuple[int, str]]) -> list[str]:
    return list(dict.fromkeys([text for _, text in descriptions]))


# ── groups of texts ─────────────────────────────────────────────────────────────


def groups(texts: Sequence[str], *, limit: int, count: Callable[[str], int]) -> list[list[str]]:
    """Cut a list of texts into groups of at most `limit` tokens, at borders that depend on content.

    A group has `limit` bytes on average, about a quarter of what fits. So hardly any group has to
    be cut for its length, and two levels are enough for thousands of descriptions.
    """
    if sum(map(_byte_count, texts)) <= limit or sum(map(count, texts)) <= limit:
        return [list(texts)]
    found: list[list[str]] = [[]]
    tokens = 0
    for text in texts:
        size, group = count(text), found[-1]
        if group and (tokens + size > limit or (len(group) > 1 and _is_border(text, limit))):
            found.append([])
            tokens = 0
        found[-1].append(text)
        tokens += size
    return found


def _byte_count(text: str) -> int:
    """A text's length in bytes; it never has more tokens than that."""
    return len(text) if text.isascii() else len(text.encode())


def _is_border(text: str, every: int) -> bool:
    """Whether a group begins with this text; on average, once in `every` bytes of text."""
    number = int.from_bytes(sha256(text.encode()).digest()[:4], "big")
    return number * every < _byte_count(text) << 32
