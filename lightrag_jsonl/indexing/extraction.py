"""The extraction of one chunk by a model: ask, resume what was cut off, glean what was missed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.core.options import ENTITY_TYPES, LANGUAGE_NAMES, IndexOptions
from lightrag_jsonl.core.types import (
    Chunk,
    ChunkState,
    Extraction,
    Message,
    Rejection,
    known_language,
)
from lightrag_jsonl.indexing.mentions import GRAPH_PROMPT, MentionCollector
from lightrag_jsonl.llm.client import ModelClient, Records, UsageMeter
from lightrag_jsonl.llm.field_aliases import normalize_graph_record

if TYPE_CHECKING:
    from lightrag_jsonl.indexing.ontology import Ontology

NO = re.compile(r"^\W*(no\b|否|没有|無|无|不)", re.IGNORECASE)


class LLMExtractor:
    """Reads entities and relations with a model (the `Extractor` port).

    `names_in` finds the names in a text, for a model that can be limited to them.
    """

    def __init__(
        self,
        client: ModelClient,
        options: IndexOptions,
        *,
        language: str,
        ontology: Ontology | None = None,
        names_in: Callable[[str], Sequence[str]] | None = None,
    ) -> None:
        self._client = client
        self._options = options
        self._ontology = ontology
        self._names_in = names_in
        is_graph = options.extraction == GRAPH_PROMPT
        self._normalize = normalize_graph_record if is_graph else None
        types = options.entity_types or ENTITY_TYPES[known_language(language)]
        variables: dict[str, object] = {
            "entity_types": list(types),
            "language": LANGUAGE_NAMES.get(language, language),
            **({} if ontology is None else ontology.variables()),
        }
        inputs = client.prompts.prompt(options.extraction).inputs
        self._variables = {name: value for name, value in variables.items() if name in inputs}

    @property
    def name(self) -> str:
        """The prompt and the model."""
        return f"{self._options.extraction}/{self._client.llm.name}"

    async def extract(self, chunk: Chunk, meter: UsageMeter | None = None) -> Extraction:
        """Ask about one chunk; if the model fails, the extraction has an `error`, and nothing is raised.

        Only a permanent `LLMError` is raised, since every other chunk would fail, too.
        """
        chat = _Conversation(
            MentionCollector(chunk.text, self._options.extraction, self._ontology),
            {**self._variables, "text": chunk.text},
            self._client.scheduler.next_priority(),
            UsageMeter(meter),
            None if self._names_in is None else self._names_in(chunk.text),
        )
        try:
            answer = await self._ask(chat)
            if _is_unreadable(answer):
                answer = await self._ask(chat)
            if _is_unreadable(answer):
                chat.error = "no line of the answer could be read as a record"
            await self._read(chat, answer)
            if chat.records and chunk.tokens >= self._options.glean_min_tokens:
                await self._glean(chat)
        except LLMError as error:
            if error.permanent:
                raise
            chat.error = str(error)
        return chat.extraction()

    async def _ask(self, chat: _Conversation) -> Records:
        answer = await self._client.jsonl(
            self._options.extraction,
            chat.variables,
            then=chat.then,
            normalize=self._normalize,
            names=chat.names,
            max_tokens=self._options.max_extract_tokens,
            meter=chat.meter,
            priority=chat.priority,
            skip_cache=chat.paid,
        )
        if _is_unreadable(answer):
            await self._client.forget(answer.reply)
        return answer

    async def _read(self, chat: _Conversation, answer: Records) -> int:
        """Add an answer's mentions; while it is cut off, let the model go on after its last whole
        record. Returns how many new names and pairs that brought.
        """
        new = chat.add(answer)
        for _ in range(self._options.max_resumes):
            if not _is_cut_off(answer) or not answer.result.records:
                break
            whole = (json.dumps(record, ensure_ascii=False) for record in answer.result.records)
            self._go_on(chat, "\n".join(whole), "resume-extract")
            chat.resumed += 1
            answer = await self._ask(chat)
            new += chat.add(answer)
        return new

    async def _glean(self, chat: _Conversation) -> None:
        """Ask for what was missed, until a round brings nothing new or nothing should be missing."""
        for _ in range(self._options.max_gleanings):
            if await self._nothing_is_missing(chat):
                return
            self._go_on(chat, chat.last_answer, "glean-extract")
            chat.collector.declared = None
            chat.earlier_mentions = chat.mentions()  # the model declares the numbers of this round
            chat.gleaned.append(await self._read(chat, await self._ask(chat)))
            if not chat.gleaned[-1]:
                return

    async def _nothing_is_missing(self, chat: _Conversation) -> bool:
        """Whether as much was read as the model declared, and it also says that nothing is missing."""
        before, now = chat.earlier_mentions, chat.mentions()
        if chat.collector.declared != (now[0] - before[0], now[1] - before[1]):
            return False
        question = self._client.prompts.render("glean-check", {})
        reply = await self._client.text(
            self._options.extraction,
            chat.variables,
            then=[*chat.then, Message("assistant", chat.last_answer), *question],
            meter=chat.meter,
            priority=chat.priority,
            skip_cache=chat.paid,
        )
        return NO.match(reply.text_without_thinking) is not None

    def _go_on(self, chat: _Conversation, answer: str, prompt: str) -> None:
        """Add the model's turn and the next question."""
        chat.then += [Message("assistant", answer), *self._client.prompts.render(prompt, {})]


@dataclass(slots=True)
class _Conversation:
    """The conversation about one chunk so far; `paid` says that the last answer was not cached."""

    collector: MentionCollector
    variables: dict[str, object]
    priority: int
    meter: UsageMeter
    names: Sequence[str] | None = None
    then: list[Message] = field(default_factory=list)
    last_answer: str = ""
    paid: bool = False
    earlier_mentions: tuple[int, int] = (0, 0)  # before the present round
    records: int = 0
    rejections: list[Rejection] = field(default_factory=list)
    truncated: int = 0
    resumed: int = 0
    gleaned: list[int] = field(default_factory=list)
    error: str = ""

    def add(self, answer: Records) -> int:
        """Add an answer's mentions; returns how many new names and pairs they brought."""
        result = answer.result
        self.records += len(result.records)
        self.truncated += int(_is_cut_off(answer))
        self.rejections += result.rejections
        self.last_answer = answer.reply.text
        self.paid = not answer.reply.cached
        return self.collector.add(zip(result.line_numbers, result.records, strict=True))

    def mentions(self) -> tuple[int, int]:
        """The numbers of entity and relation mentions."""
        return len(self.collector.entities), len(self.collector.relations)

    def extraction(self) -> Extraction:
        """Everything that was read."""
        found, refused = self.collector.extraction(), _some_are_refused(self.rejections)
        state: ChunkState = "ok" if found.entities else "empty"
        if not self.records and (self.error or refused):
            state = "failed"
        elif self.error or refused or self.collector.rejections:
            state = "partial"
        return replace(
            found,
            state=state,
            records=self.records,
            rejections=(*self.rejections, *self.collector.rejections),
            truncated=self.truncated,
            resumed=self.resumed,
            gleaned=tuple(self.gleaned),
            usage=self.meter.spent,
            error=self.error,
        )


def _is_unreadable(answer: Records) -> bool:
    refused = _some_are_refused(answer.result.rejections)
    return not answer.result.records and (refused or _is_cut_off(answer))


def _is_cut_off(answer: Records) -> bool:
    return answer.result.truncated or answer.reply.cut_off


def _some_are_refused(rejections: Iterable[Rejection]) -> bool:
    return bool(set(map(attrgetter("reason"), rejections)) - {"repaired"})
