"""The extraction of one chunk by a model: ask, resume what was cut off, glean what was missed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.core.options import ENTITY_TYPES, IndexOptions
from lightrag_jsonl.core.types import (
    Chunk,
    ChunkState,
    Extraction,
    Message,
    Rejection,
    known_language,
)
from lightrag_jsonl.indexing.changes import LANGUAGE_NAMES
from lightrag_jsonl.indexing.mentions import ADAPTERS, MentionCollector
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
        self._adapter = ADAPTERS[options.extraction]
        is_graph = options.extraction == "extract-graph"
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
        conversation = _Conversation(
            MentionCollector(chunk.text, self._ontology),
            {**self._variables, "text": chunk.text},
            self._client.scheduler.next_priority(),
            (meter or UsageMeter()).child(),
            None if self._names_in is None else self._names_in(chunk.text),
        )
        try:
            await self._first_answer(conversation)
            if conversation.records and chunk.tokens >= self._options.glean_min_tokens:
                await self._glean(conversation)
        except LLMError as error:
            if error.permanent:
                raise
            conversation.error = str(error)
        return conversation.extraction()

    # ── turns ───────────────────────────────────────────────────────────────────

    async def _first_answer(self, conversation: _Conversation) -> None:
        answer = await self._ask(conversation)
        if _is_unreadable(answer):
            answer = await self._ask(conversation)
        if _is_unreadable(answer):
            conversation.error = "no line of the answer could be read as a record"
        self._add(conversation, answer)
        await self._resume(conversation, answer)

    async def _resume(self, conversation: _Conversation, answer: Records) -> None:
        """While the answer is cut off, let the model go on after its last whole record."""
        for _ in range(self._options.max_resumes):
            if not _is_cut_off(answer) or not answer.result.records:
                return
            whole = (json.dumps(record, ensure_ascii=False) for record in answer.result.records)
            conversation.add_turns("\n".join(whole), self._question("resume-extract"))
            conversation.resumed += 1
            answer = await self._ask(conversation)
            self._add(conversation, answer)

    async def _glean(self, conversation: _Conversation) -> None:
        """Ask for what was missed, until a round brings nothing new or nothing should be missing."""
        for _ in range(self._options.max_gleanings):
            if await self._nothing_is_missing(conversation):
                return
            conversation.add_turns(conversation.last_answer, self._question("glean-extract"))
            conversation.begin_round()
            answer = await self._ask(conversation)
            new = self._add(conversation, answer)
            await self._resume(conversation, answer)
            conversation.gleaned.append(new)
            if not new:
                return

    async def _nothing_is_missing(self, conversation: _Conversation) -> bool:
        """Whether as much was read as the model declared, and it also says that nothing is missing."""
        if conversation.collector.declared != conversation.new_mentions():
            return False
        reply = await self._client.text(
            self._options.extraction,
            conversation.variables,
            then=[
                *conversation.then,
                Message("assistant", conversation.last_answer),
                *self._question("glean-check"),
            ],
            meter=conversation.meter,
            priority=conversation.priority,
            skip_cache=conversation.paid,
        )
        return NO.match(reply.text_without_thinking) is not None

    def _question(self, prompt: str) -> Sequence[Message]:
        return self._client.prompts.render(prompt, {})

    async def _ask(self, conversation: _Conversation) -> Records:
        answer = await self._client.jsonl(
            self._options.extraction,
            conversation.variables,
            then=conversation.then,
            normalize=self._normalize,
            names=conversation.names,
            max_tokens=self._options.max_extract_tokens,
            meter=conversation.meter,
            priority=conversation.priority,
            skip_cache=conversation.paid,
        )
        if _is_unreadable(answer):
            await self._client.forget(answer.reply)
        return answer

    def _add(self, conversation: _Conversation, answer: Records) -> int:
        """Add an answer's mentions; returns how many new names and pairs they brought."""
        result = answer.result
        conversation.records += len(result.records)
        conversation.truncated += int(_is_cut_off(answer))
        conversation.rejections += result.rejections
        conversation.last_answer = answer.reply.text
        conversation.paid = not answer.reply.cached
        numbered = zip(result.line_numbers, result.records, strict=True)
        return conversation.collector.add(numbered, self._adapter)


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

    def add_turns(self, answer: str, question: Sequence[Message]) -> None:
        """Add the model's turn and the next question."""
        self.then += [Message("assistant", answer), *question]

    def begin_round(self) -> None:
        """Count mentions anew, since the numbers that the model will declare are of this round."""
        self.earlier_mentions = len(self.collector.entities), len(self.collector.relations)
        self.collector.declared = None

    def new_mentions(self) -> tuple[int, int]:
        """The numbers of entity and relation mentions since the round began."""
        entities, relations = self.earlier_mentions
        return len(self.collector.entities) - entities, len(self.collector.relations) - relations

    def extraction(self) -> Extraction:
        """Everything that was read."""
        return replace(
            self.collector.extraction(),
            state=self._state(),
            records=self.records,
            rejections=(*self.rejections, *self.collector.rejections),
            truncated=self.truncated,
            resumed=self.resumed,
            gleaned=tuple(self.gleaned),
            usage=self.meter.spent,
            error=self.error,
        )

    def _state(self) -> ChunkState:
        refused = any(one.reason != "repaired" for one in self.rejections)
        if not self.records and (self.error or refused):
            return "failed"
        if self.error or refused or self.collector.rejections:
            return "partial"
        return "ok" if self.collector.entities or self.collector.relations else "empty"


def _is_unreadable(answer: Records) -> bool:
    refused = any(one.reason != "repaired" for one in answer.result.rejections)
    return (refused or _is_cut_off(answer)) and not answer.result.records


def _is_cut_off(answer: Records) -> bool:
    return answer.result.truncated or answer.reply.cut_off
