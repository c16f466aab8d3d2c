"""The extraction of one chunk by a model: ask, resume what was cut off, glean what was missed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lightrag_jsonl.ask import Ask, Records
from lightrag_jsonl.drift import normalize_graph_record
from lightrag_jsonl.errors import LLMError
from lightrag_jsonl.indexing.records import ADAPTERS, MentionCollector, OntologyCheck
from lightrag_jsonl.languages import known_language
from lightrag_jsonl.options import ENTITY_TYPES, IndexOptions
from lightrag_jsonl.spending import Paid, Spending
from lightrag_jsonl.types import (
    Chunk,
    ChunkState,
    Extraction,
    Message,
    Record,
    Rejection,
)

NO = re.compile(r"^\W*(no\b|否|没有|無|无|不)", re.IGNORECASE)
LANGUAGES = {"en": "English", "zh": "中文"}


class LLMExtractor:
    """Reads entities and relations with a model (the `Extractor` port)."""

    def __init__(
        self,
        ask: Ask,
        options: IndexOptions,
        *,
        language: str,
        ontology: OntologyCheck | None = None,
        ontology_variables: Mapping[str, object] | None = None,
        candidates: Callable[[str], Sequence[str]] | None = None,
    ) -> None:
        self._ask = ask
        self._options = options
        self._ontology = ontology
        self._candidates = candidates
        types = options.entity_types or ENTITY_TYPES[known_language(language)]
        fixed = {"entity_types": list(types), "language": LANGUAGES.get(language, language)}
        declared = ask.prompts.prompt(options.extraction).inputs
        known = {**fixed, **(ontology_variables or {})}
        self._fixed = {name: value for name, value in known.items() if name in declared}

    @property
    def name(self) -> str:
        """The prompt and the model."""
        return f"{self._options.extraction}/{self._ask.llm.name}"

    async def extract(self, chunk: Chunk, spending: Spending | None = None) -> Extraction:
        """Ask about one chunk; if the model fails, the extraction has an `error`, and nothing is raised.

        Only a permanent `LLMError` is raised, since every other chunk would fail, too.
        """
        variables = {**self._fixed, "text": chunk.text}
        names = None if self._candidates is None else self._candidates(chunk.text)
        found = MentionCollector(chunk.text, self._ontology)
        talk = _Talk(found, variables, self._ask.slots.turn(), Paid(spending), names)
        try:
            await self._first(talk)
            if talk.records and chunk.tokens >= self._options.glean_min_tokens:
                await self._glean(talk)
        except LLMError as error:
            if error.permanent:
                raise
            talk.error = str(error)
        return talk.extraction()

    # ── turns ───────────────────────────────────────────────────────────────────

    async def _first(self, talk: _Talk) -> None:
        asked = await self._turn(talk)
        if _unreadable(asked):
            asked = await self._turn(talk)
        if _unreadable(asked):
            talk.error = "no line of the answer could be read as a record"
        self._take(talk, asked)
        await self._resume(talk, asked)

    async def _resume(self, talk: _Talk, asked: Records) -> None:
        """While the answer is cut off, let the model go on after its last whole record."""
        for _ in range(self._options.max_resumes):
            if not _cut(asked) or not asked.result.records:
                return
            talk.say(_whole_part(asked), self._ask.prompts.render("resume-extract", {}))
            talk.resumed += 1
            asked = await self._turn(talk)
            self._take(talk, asked)

    async def _glean(self, talk: _Talk) -> None:
        """Ask again for what was missed, until a round brings nothing new or nothing should be missing."""
        for _ in range(self._options.max_gleanings):
            if await self._nothing_is_missing(talk):
                return
            talk.say(talk.last, self._ask.prompts.render("glean-extract", {}))
            talk.begin_round()
            asked = await self._turn(talk)
            brought = self._take(talk, asked)
            await self._resume(talk, asked)
            talk.gleaned.append(brought)
            if not brought:
                return

    async def _nothing_is_missing(self, talk: _Talk) -> bool:
        """Whether the model's declared counts match what was read, and it also says that nothing is
        missing.
        """
        if talk.mentions.declared != talk.new_claims():
            return False
        then = [*talk.then, Message("assistant", talk.last)]
        then += self._ask.prompts.render("glean-check", {})
        reply = await self._ask.text(
            self._options.extraction,
            talk.variables,
            then=then,
            spending=talk.spending,
            turn=talk.turn,
            new=talk.paid,
        )
        return NO.match(reply.said) is not None

    async def _turn(self, talk: _Talk) -> Records:
        drift = normalize_graph_record if self._options.extraction == "extract-graph" else None
        asked = await self._ask.jsonl(
            self._options.extraction,
            talk.variables,
            then=talk.then,
            normalize=drift,
            names=talk.names,
            max_tokens=self._options.max_extract_tokens,
            spending=talk.spending,
            turn=talk.turn,
            new=talk.paid,
        )
        if _unreadable(asked):
            await self._ask.forget(asked.reply)
        return asked

    def _take(self, talk: _Talk, asked: Records) -> int:
        result = asked.result
        talk.records += len(result.records)
        talk.truncated += int(_cut(asked))
        talk.rejections += result.rejections
        talk.last, talk.paid = asked.reply.text, not asked.reply.cached
        pairs = zip(result.line_numbers, result.records, strict=True)
        return talk.mentions.add(pairs, ADAPTERS[self._options.extraction])


@dataclass(slots=True)
class _Talk:
    """The conversation about one chunk so far."""

    mentions: MentionCollector
    variables: dict[str, object]
    turn: int
    spending: Paid
    names: Sequence[str] | None = None
    then: list[Message] = field(default_factory=list)
    last: str = ""
    paid: bool = False  # whether the last answer was paid for, not cached
    before: tuple[int, int] = (0, 0)
    records: int = 0
    rejections: list[Rejection] = field(default_factory=list)
    truncated: int = 0
    resumed: int = 0
    gleaned: list[int] = field(default_factory=list)
    error: str = ""

    def say(self, answer: str, question: Sequence[Message]) -> None:
        """Add the model's turn and the next question."""
        self.then += [Message("assistant", answer), *question]

    def begin_round(self) -> None:
        """Count claims anew, since the counts that the model declares in this round are of this round."""
        self.before = len(self.mentions.entities), len(self.mentions.relations)
        self.mentions.declared = None

    def new_claims(self) -> tuple[int, int]:
        """The numbers of entity and relation claims since the round began."""
        found = len(self.mentions.entities), len(self.mentions.relations)
        return found[0] - self.before[0], found[1] - self.before[1]

    def extraction(self) -> Extraction:
        found = self.mentions
        found.finish()
        return Extraction(
            entities=tuple(found.entities),
            relations=tuple(found.relations),
            keywords=tuple(found.keywords),
            state=self._state(),
            records=self.records,
            rejections=(*self.rejections, *found.rejections),
            truncated=self.truncated,
            resumed=self.resumed,
            gleaned=tuple(self.gleaned),
            usage=self.spending.spent,
            error=self.error,
        )

    def _state(self) -> ChunkState:
        refused = [r for r in self.rejections if r.reason != "repaired"]
        if not self.records and (self.error or refused):
            return "failed"
        if self.error or refused or self.mentions.rejections:
            return "partial"
        return "ok" if self.mentions.entities else "empty"


def _unreadable(asked: Records) -> bool:
    refused = any(refused.reason != "repaired" for refused in asked.result.rejections)
    return (refused or _cut(asked)) and not asked.result.records


def _cut(asked: Records) -> bool:
    return asked.result.truncated or asked.reply.completion.finish == "length"


def _whole_part(asked: Records) -> str:
    """The whole records of an answer, after which the model is to go on."""
    return "\n".join(json.dumps(record, ensure_ascii=False) for record in asked.result.records)


def from_records(
    chunk: Chunk, records: Sequence[tuple[int, Record]], rejections: Sequence[Rejection] = ()
) -> Extraction:
    """The extraction that ready-made (line, record) pairs of one chunk give."""
    found = MentionCollector(chunk.text)
    found.add(records, ADAPTERS["extract-graph"])
    found.finish()
    refused = (*rejections, *found.rejections)
    state: ChunkState = "ok" if found.entities else "empty"
    if any(one.reason != "repaired" for one in refused):
        state = "partial"  # never "failed": no model could be asked again
    return Extraction(
        entities=tuple(found.entities),
        relations=tuple(found.relations),
        keywords=tuple(found.keywords),
        state=state,
        records=len(records),
        rejections=refused,
    )
