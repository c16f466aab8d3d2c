"""The description of each entity and relation: its mentions' descriptions, or a summary of them."""

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from lightrag_jsonl.core.aio import finish_all
from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.core.options import LANGUAGE_NAMES, IndexOptions
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.indexing.merging import GRAPH_KINDS, GraphChange, GraphKey, StepCallback
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.llm.scheduler import SUMMARY
from lightrag_jsonl.storage.rows import EntityRow, GraphRow, winner
from lightrag_jsonl.storage.views import StoreView

READ_FOR_EACH = 4  # descriptions read for each one shown, since many may be the same


@dataclass(frozen=True, slots=True)
class DueSummary:
    """An entity or relation whose summary must be written or renewed, from these descriptions."""

    key: GraphKey
    row: GraphRow
    descriptions: list[str]
    last_mention: int


class Describer:
    """Decides each row's description, and asks the model for the summaries that are due."""

    def __init__(
        self, client: ModelClient, options: IndexOptions, tokenizer: Tokenizer, language: str
    ) -> None:
        self._client = client
        self._options = options
        self._count = tokenizer.count
        self._language = LANGUAGE_NAMES.get(language, language)

    def describe(
        self, view: StoreView, change: GraphChange, deferred: Collection[GraphKey] | None
    ) -> list[DueSummary]:
        """Set the description of every touched row; returns the summaries that are due.

        One can be due of those that got a mention and are not `deferred`; none is if that is None,
        or if there is no model.
        """
        due, asks = [], deferred is not None and self._client.has_model
        limit = (self._options.summarize_fragments + 1) * READ_FOR_EACH
        for kind in GRAPH_KINDS:
            rows, after = change.rows(kind), {}
            for id, row in rows.items():
                added = change.descriptions.get((kind, id), ())
                if row.mentions - row.summarized_mentions > len(added):
                    after[id] = row.summarized_to
            stored = view.descriptions(kind, after, without=change.without, limit=limit)
            for id, row in rows.items():
                key = kind, id
                pairs = [*stored.get(id, ()), *change.descriptions.get(key, ())]
                is_due = self._set_description(row, _distinct(pairs, limit))
                last = change.last_mentions.get(key)
                if is_due and asks and last is not None and key not in (deferred or ()):
                    every = view.descriptions(kind, {id: 0}, without=change.without).get(id, ())
                    texts = _distinct([*every, *change.descriptions.get(key, ())])
                    due.append(DueSummary(key, row, texts, last))
        return due

    async def summarize(
        self, due: Sequence[DueSummary], meter: UsageMeter, step: StepCallback
    ) -> set[GraphKey]:
        """Write the summaries that are due; returns those that failed.

        `BudgetError` if a limit is reached, once those in flight are written.
        """
        failed: set[GraphKey] = set()
        done = itertools.count(1)

        async def write_one(one: DueSummary) -> None:
            try:
                await self._summarize(one, meter)
            except LLMError:  # the descriptions stand in; the next insert tries again
                failed.add(one.key)
            step(next(done), len(due))

        step(0, len(due))
        await finish_all(map(write_one, due))
        return failed

    async def _summarize(self, due: DueSummary, meter: UsageMeter) -> None:
        """Write one summary from all descriptions, by map-reduce; never from an earlier summary."""
        texts, title = due.descriptions, _title(due.row)
        while len(texts) > 1:
            cut = groups(texts, limit=self._options.summarize_group_tokens, count=self._count)
            work = (self._summary(title, group, meter) for group in cut)
            written = await finish_all(work)  # all are paid for
            too_long = len(written) >= len(texts)  # to be grouped further
            texts = ["\n".join(written)] if too_long else written
        row = due.row
        row.summary, row.summarized_to = texts[0], due.last_mention
        row.summarized_mentions = row.mentions
        self._set_description(row, ())

    async def _summary(self, title: str, texts: Sequence[str], meter: UsageMeter) -> str:
        if len(texts) == 1:
            return texts[0]
        variables = {"name": title, "descriptions": texts, "language": self._language}
        reply = await self._client.text(
            "summarize-descriptions", variables, meter=meter, priority=SUMMARY
        )
        if not reply.text_without_thinking.strip():
            await self._client.forget(reply)
            raise LLMError(f"the model wrote an empty summary of {title!r}")
        if reply.broken_off:
            raise LLMError(f"the summary of {title!r}: {reply.broken_off}")
        return reply.text_without_thinking.strip()

    def _set_description(self, row: GraphRow, texts: Sequence[str]) -> bool:
        """Set a row's description: its summary, if it has one, and what came since, as far as there
        is room. Returns whether a summary is due.
        """
        if "description" in row.edited:
            row.description = row.edited["description"]
            return False
        few, room = self._options.summarize_fragments, self._options.summarize_tokens
        summary, shown = [row.summary] if row.summary else [], list(texts[:few])
        if sum(len(text.encode()) for text in shown) > room:  # a token has a byte or more
            sums = itertools.accumulate(map(self._count, shown))
            fitting = [text for text, used in zip(shown, sums, strict=True) if used <= room]
            shown = fitting or ([] if summary else shown[:1])
        row.description = "\n".join([*summary, *shown])
        if row.summary is not None:
            return row.mentions - row.summarized_mentions >= max(few, row.mentions / 4)
        return len(texts) >= few or len(shown) < len(texts)


def _title(row: GraphRow) -> str:
    """What to call it in a prompt: the same in every index, so that the cache has the answer."""
    if isinstance(row, EntityRow):
        return row.name
    return " — ".join(sorted((winner(row.low_names), winner(row.high_names))))


def _distinct(pairs: Iterable[tuple[int, str]], limit: int | None = None) -> list[str]:
    """The different texts of the first (position, text) pairs, in their order."""
    return list(dict.fromkeys([text for _, text in sorted(pairs)[:limit]]))


def groups(texts: Sequence[str], *, limit: int, count: Callable[[str], int]) -> list[list[str]]:
    """Cut a list of texts into groups of at most `limit` tokens, at borders that depend on content.

    A group has `limit` bytes on average, about a quarter of what fits. So hardly any group has to
    be cut for its length, and two levels are enough for thousands of descriptions.
    """
    if sum(map(count, texts)) <= limit:
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


def _is_border(text: str, every: int) -> bool:
    """Whether a group begins with this text; on average, once in `every` bytes of text."""
    data = text.encode()
    return int.from_bytes(sha256(data).digest()[:4], "big") * every < len(data) << 32
