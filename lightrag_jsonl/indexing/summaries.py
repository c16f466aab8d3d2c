"""The description of each entity and relation: the mentions' descriptions, or a summary."""

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from hashlib import sha256

from msgspec import Struct

from lightrag_jsonl.core.aio import finish_all
from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.core.options import LANGUAGE_NAMES, IndexOptions
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.indexing.merging import GRAPH_KINDS, GraphChange, GraphKey, StepCallback
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.llm.scheduler import SUMMARY
from lightrag_jsonl.storage.rows import EntityRow, GraphRow, winner
from lightrag_jsonl.storage.views import StoreView

READ_FOR_EACH = 4  # descriptions read for each displayed one, since many may be the same


class DueSummary(Struct, frozen=True):
    """An entity or relation whose summary must be written or renewed, with the descriptions."""

    key: GraphKey
    row: GraphRow
    descriptions: list[str]
    last_mention: int


class Describer:
    """Decides each row's description, and asks the model for due summaries."""

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
        """Set the description of every touched row; returns the due summaries.

        A summary can be due for rows with a new mention that are not `deferred`; no summary is due
        if `deferred` is None, or if there is no model.
        """
        due_summaries: list[DueSummary] = []
        asks_model = deferred is not None and self._client.has_model("summarize")
        for kind in GRAPH_KINDS:
            for row in self._describe_kind(view, change, kind):
                key = (kind, row.id)
                last_mention = change.last_mentions.get(key)
                if asks_model and last_mention is not None and key not in (deferred or ()):
                    descriptions = _all_descriptions(view, change, row)
                    due_summaries.append(DueSummary(key, row, descriptions, last_mention))
        return due_summaries

    async def summarize(
        self, due_summaries: Sequence[DueSummary], meter: UsageMeter, step: StepCallback
    ) -> set[GraphKey]:
        """Write the due summaries; returns the keys of failed summaries.

        `BudgetError` if a limit is reached, once the summaries in flight are written.
        """
        failed: set[GraphKey] = set()
        numbers = itertools.count(1)

        async def write_summary(due: DueSummary) -> None:
            try:
                await self._summarize(due, meter)
            except LLMError:  # the descriptions stand in; the next insert tries again
                failed.add(due.key)
            step(next(numbers), len(due_summaries))

        step(0, len(due_summaries))
        await finish_all(map(write_summary, due_summaries))
        return failed

    def _describe_kind(self, view: StoreView, change: GraphChange, kind: Kind) -> list[GraphRow]:
        """Set the descriptions of the touched rows of a kind; returns the rows to be summarized."""
        limit = (self._options.summarize_fragments + 1) * READ_FOR_EACH
        rows = change.rows(kind)
        read_after: dict[int, int] = {}  # the last mention in the summary, by row id
        for id, row in rows.items():
            added = change.descriptions.get((kind, id), ())
            if row.mentions - row.summarized_mentions > len(added):
                read_after[id] = row.summarized_to
        stored = view.descriptions(kind, read_after, without=change.without, limit=limit)
        rows_to_summarize: list[GraphRow] = []
        for id, row in rows.items():
            pairs = [*stored.get(id, ()), *change.descriptions.get((kind, id), ())]
            texts = _different_texts(pairs, limit)
            if self._set_description(row, texts):
                rows_to_summarize.append(row)
        return rows_to_summarize

    async def _summarize(self, due: DueSummary, meter: UsageMeter) -> None:
        """Write a summary from all descriptions, by map-reduce; never from an earlier summary."""
        texts = due.descriptions
        title = _row_title(due.row)
        while len(texts) > 1:
            groups = text_groups(
                texts, limit=self._options.summarize_group_tokens, count=self._count
            )
            work = (self._summary(title, group, meter) for group in groups)
            summaries = await finish_all(work)  # every call is paid for
            too_long = len(summaries) >= len(texts)  # to be grouped further
            texts = ["\n".join(summaries)] if too_long else summaries
        row = due.row
        row.summary = texts[0]
        row.summarized_to = due.last_mention
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
        """Set a row's description: the summary, if there is one, and later texts as far as there is
        room. Returns whether a summary is due.
        """
        if "description" in row.edited:
            row.description = row.edited["description"]
            return False
        most_texts = self._options.summarize_fragments
        fitting = self._fitting(texts[:most_texts], has_summary=bool(row.summary))
        summary = [row.summary] if row.summary else []
        row.description = "\n".join([*summary, *fitting])
        if row.summary is not None:
            return row.mentions - row.summarized_mentions >= max(most_texts, row.mentions / 4)
        return len(texts) >= most_texts or len(fitting) < len(texts)

    def _fitting(self, texts: Sequence[str], *, has_summary: bool) -> Sequence[str]:
        """The first texts within the limit of tokens; without a summary at least one."""
        limit = self._options.summarize_tokens
        if _bytes_of(texts) <= limit:
            return texts
        sums = itertools.accumulate(map(self._count, texts))
        fitting = [text for text, tokens in zip(texts, sums, strict=True) if tokens <= limit]
        if fitting or has_summary:
            return fitting
        return texts[:1]


def text_groups(
    texts: Sequence[str], *, limit: int, count: Callable[[str], int]
) -> list[list[str]]:
    """The texts in groups of at most `limit` tokens, with borders that depend on content.

    A group has `limit` bytes on average, about a quarter of what fits. So hardly any group has to
    be cut for its length, and two levels are enough for thousands of descriptions.
    """
    if _bytes_of(texts) <= limit or sum(map(count, texts)) <= limit:
        return [list(texts)]
    groups: list[list[str]] = [[]]
    group_tokens = 0
    for text in texts:
        tokens = count(text)
        group = groups[-1]
        is_full = group_tokens + tokens > limit
        if group and (is_full or (len(group) > 1 and _begins_group(text, limit))):
            groups.append([])
            group_tokens = 0
        groups[-1].append(text)
        group_tokens += tokens
    return groups


def _all_descriptions(view: StoreView, change: GraphChange, row: GraphRow) -> list[str]:
    """All different descriptions of a row, stored and new."""
    kind: Kind = "entity" if isinstance(row, EntityRow) else "relation"
    id = row.id
    stored = view.descriptions(kind, {id: 0}, without=change.without).get(id, ())
    return _different_texts([*stored, *change.descriptions.get((kind, id), ())])


def _row_title(row: GraphRow) -> str:
    """The name of a row in a prompt: the same in every index, so that the cache has the answer."""
    if isinstance(row, EntityRow):
        return row.name
    return " — ".join(sorted((winner(row.low_names), winner(row.high_names))))


def _different_texts(pairs: Iterable[tuple[int, str]], limit: int | None = None) -> list[str]:
    """The different texts of the first (position, text) pairs, in order."""
    return list(dict.fromkeys([text for _, text in sorted(pairs)[:limit]]))


def _bytes_of(texts: Iterable[str]) -> int:
    """The bytes of texts, of which every token has at least one."""
    return sum(len(text.encode()) for text in texts)


def _begins_group(text: str, bytes_per_group: int) -> bool:
    """Whether a group begins with a text; on average, once in so many bytes of text."""
    data = text.encode()
    number = int.from_bytes(sha256(data).digest()[:4], "big")
    return number * bytes_per_group < len(data) << 32
