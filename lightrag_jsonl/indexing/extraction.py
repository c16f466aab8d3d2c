"""The extraction of one chunk by a model: ask, resume what was cut off, glean what was missed."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
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
from lightrag_jsonl.indexing.examples import Examples
from lightrag_jsonl.indexing.mentions import GRAPH_PROMPT, MentionCollector, graph_records
from lightrag_jsonl.llm.client import ModelClient, Records, UsageMeter
from lightrag_jsonl.llm.field_aliases import normalize_graph_record
from lightrag_jsonl.storage.status import ALL_REFUSED

if TYPE_CHECKING:
    from lightrag_jsonl.indexing.ontology import Ontology

STATEMENTS = frozenset({"entity", "relationship"})  # records about the text, not about the answer
STILL_CUT_OFF = (
    "the answer was still cut off after {} continuations: raise max_extract_tokens or max_resumes, or "
    "use smaller chunks"
)
REPEATING = (
    "the model repeated itself until the answer was ended: use another model or smaller chunks"
)
LEAST_ANSWER = 1_024  # tokens that every answer may have, however short its chunk is
ANSWER_PER_TOKEN = 4  # tokens of an answer for each of its chunk; real ones have two
LEAST_RECORDS = 100  # that every chunk may have, however short it is
LOST = frozenset({"array", "multiline", "malformed", "too_deep", "schema"})  # a record was meant
INTENDED = frozenset(
    {"ontology", "self_relation", "limit"}
)  # refusals that a better answer repeats
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
        ontology: "Ontology | None" = None,
        names_in: Callable[[str], Sequence[str]] | None = None,
    ) -> None:
        self._client = client
        self._options = options
        self._ontology = ontology
        self._names_in = names_in
        types = options.entity_types or ENTITY_TYPES[known_language(language)]
        variables: dict[str, object] = {
            "entity_types": list(types),
            "language": LANGUAGE_NAMES.get(language, language),
            **({} if ontology is None else ontology.variables()),
        }
        inputs = client.prompts.prompt(options.extraction).inputs
        self._variables = {name: value for name, value in variables.items() if name in inputs}
        self._with_background = "background" in inputs

    @property
    def name(self) -> str:
        """The prompt with its revision, and the model."""
        prompt = self._options.extraction
        return f"{prompt} {self._client.prompts.prompt(prompt).revision}/{self._client.llm.name}"

    @cached_property
    def _examples(self) -> Examples:
        """What the prompt's own examples say, in whatever set of prompts."""
        prompt = self._options.extraction
        empty = {"text": "", "background": ""}
        inputs = self._client.prompts.prompt(prompt).inputs
        variables = {**self._variables, **{name: empty[name] for name in empty if name in inputs}}
        is_graph = prompt == GRAPH_PROMPT
        return Examples.of(
            self._client.prompts.render(prompt, variables),
            normalize_graph_record if is_graph else graph_records,
            with_terms=self._ontology is None,
        )

    async def extract(self, chunk: Chunk, meter: UsageMeter | None = None) -> Extraction:
        """Ask about one chunk; if the model fails, the extraction has an `error`, and nothing is raised.

        Only a permanent `LLMError` is raised, since every other chunk would fail, too.
        """
        variables = {**self._variables, "text": chunk.text}
        if self._with_background:
            variables["background"] = chunk.background
        chat = _Conversation(
            self._client,
            self._options,
            MentionCollector(
                text=chunk.text,
                prompt=self._options.extraction,
                ontology=self._ontology,
                limits=self._options.limits,
                examples=self._examples,
                background=chunk.background,
            ),
            variables,
            [*self._client.prompts.render(self._options.extraction, variables)],
            None if self._names_in is None else self._names_in(chunk.text),
            UsageMeter(meter),
            self._client.scheduler.next_priority(),
            chunk.document_id,
            max(LEAST_RECORDS, int(chunk.tokens * self._options.limits.records_per_token)),
            answer_limit(chunk.tokens, most=self._options.max_extract_tokens),
        )
        try:
            await chat.read_first()
            is_long = chunk.tokens >= self._options.glean_min_tokens
            if chat.found_something and is_long and not chat.error:
                await chat.glean()
        except LLMError as error:
            if error.permanent:
                raise
            chat.error = str(error)
        return chat.extraction()


@dataclass(slots=True)
class _Conversation:
    """The conversation about one chunk so far."""

    client: ModelClient
    options: IndexOptions
    collector: MentionCollector
    variables: dict[str, object]
    messages: list[Message]
    names: Sequence[str] | None
    meter: UsageMeter
    priority: int
    document: str
    most_records: int
    max_tokens: int | None
    last_answer: str = ""
    records: int = 0
    rejections: list[Rejection] = field(default_factory=list)
    truncated: int = 0
    resumed: int = 0
    unfinished: bool = False  # an answer was still cut off after the last resume
    gleaned: list[int] = field(default_factory=list)
    error: str = ""

    @property
    def found_something(self) -> bool:
        """Whether there is a record, and more than the statement that there is nothing."""
        none = self.collector.declared == (0, 0) and not self.collector.entities
        return self.records > 0 and not none

    async def read_first(self) -> None:
        """Ask for the mentions; an answer without a readable record is asked for once more."""
        answer = await self._ask()
        if self._problem(answer):
            if _is_cut_off(answer):  # a model that thinks at length needs more room
                self.max_tokens = self.options.max_extract_tokens
            answer = await self._ask()
        self.error = self._problem(answer)
        await self._read(answer)

    async def glean(self) -> None:
        """Ask for what was missed, until a round brings nothing new or nothing should be missing."""
        before = 0, 0  # the model declares the numbers of each round
        for _ in range(self.options.max_gleanings):
            now = len(self.collector.entities), len(self.collector.relations)
            is_complete = self.collector.declared == (now[0] - before[0], now[1] - before[1])
            if self.options.glean_check and is_complete and await self._nothing_is_missing():
                return
            self._go_on(self.last_answer, "glean-extract")
            self.collector.declared, before = None, now
            self.gleaned.append(await self._read(await self._ask()))
            if not self.gleaned[-1] or self.error:
                return

    def extraction(self) -> Extraction:
        """Everything that was read."""
        found = self.collector.extraction()
        lost = [one for one in self.rejections if self.unfinished or one.reason != "truncated"]
        state: ChunkState = "ok" if found.entities else "empty"
        if self.error and not found.entities:
            state = "failed"
        elif self.error or _some_are_refused(lost) or self.collector.rejections:
            state = "partial"
        return replace(
            found,
            state=state,
            records=self.records,
            rejections=self._stored([*self.rejections, *self.collector.rejections]),
            truncated=self.truncated,
            resumed=self.resumed,
            gleaned=tuple(self.gleaned),
            usage=self.meter.spent,
            error=self.error,
        )

    def _stored(self, rejections: list[Rejection]) -> tuple[Rejection, ...]:
        """As many as are stored, with the number of the others."""
        most = self.options.limits.rejections
        kept, others = rejections[:most], len(rejections) - most
        if others > 0:
            kept.append(Rejection(0, "", "limit", f"{others} further refused lines are not stored"))
        return tuple(kept)

    async def _ask(self) -> Records:
        """The next answer; an unusable one is not kept in the cache."""
        is_graph = self.options.extraction == GRAPH_PROMPT
        answer = await self.client.jsonl(
            self.options.extraction,
            self.variables,
            messages=self.messages,
            normalize=normalize_graph_record if is_graph else None,
            names=self.names,
            max_tokens=self.max_tokens,
            meter=self.meter,
            priority=self.priority,
            document=self.document,
        )
        if self._problem(answer):
            await self.client.forget(answer.reply)
        return answer

    def _problem(self, answer: Records) -> str:
        """Why an answer is unusable: no record about the text can be read, or the first one has no
        text, although the prompt asks for one record at least.
        """
        if self._statements(answer):
            return ""
        if answer.reply.broken_off:
            return answer.reply.broken_off
        is_first = len(self.messages) <= 2  # the system's turn and the user's
        asks = self.options.extraction == GRAPH_PROMPT and bool(self.collector.text.strip())
        if is_first and asks and not answer.reply.text_without_thinking.strip():
            return "the answer was empty, twice"
        if answer.result.records and not _is_cut_off(answer):
            return self._lost_records(answer, is_first=is_first)
        if _some_are_refused(answer.result.rejections) or _is_cut_off(answer):
            return ALL_REFUSED
        return ""

    def _lost_records(self, answer: Records, *, is_first: bool) -> str:
        """Which records are missing from an answer that only says that it is done.

        Later answers may count the records of all answers, so only the first one is held to that.
        """
        lost = sum(line.reason in LOST for line in answer.result.rejections)
        if lost:
            return f"none of the {lost} records of the answer could be read"
        declared = _declared(answer) if is_first else 0
        return f"the answer declares {declared} records and holds none" if declared else ""

    def _statements(self, answer: Records) -> int:
        """The number of records that say something about the text."""
        records = answer.result.records
        if self.options.extraction != GRAPH_PROMPT:
            return len(records)
        return sum(record.get("type") in STATEMENTS for record in records)

    async def _read(self, answer: Records) -> int:
        """Add an answer's mentions; while it is cut off, let the model go on after its last whole
        record. Returns how many new names and pairs that brought.
        """
        new = await self._add(answer)
        for _ in range(self.options.max_resumes):
            if self.error or _is_loop(answer):
                break
            if not _is_cut_off(answer) or not answer.result.records:
                break
            whole = (json.dumps(record, ensure_ascii=False) for record in answer.result.records)
            self._go_on("\n".join(whole), "resume-extract")
            self.resumed += 1
            answer = await self._ask()
            brought = await self._add(answer)
            new += brought
            if not brought:  # it only writes again what is there
                break
        if _is_cut_off(answer):
            self.unfinished = True
            reason = REPEATING if _is_loop(answer) else STILL_CUT_OFF.format(self.resumed)
            await self._fail(reason, answer)
        return new

    async def _fail(self, problem: str, answer: Records) -> None:
        """Note why the rest of the chunk is missing; a retry asks for this answer again."""
        self.error = self.error or problem
        if self.client.stores_answers:  # in a rehearsal the answer must stay for the real reading
            await self.client.forget(answer.reply)

    async def _add(self, answer: Records) -> int:
        """Add an answer's mentions; returns how many new names and pairs these are."""
        refused_before = len(self.collector.rejections)
        new = self._collect(answer)
        refused = self.collector.rejections[refused_before:]
        refused = [line for line in refused if line.reason not in INTENDED]
        lost = len(refused) + sum(line.reason in LOST for line in answer.result.rejections)
        total = lost + self._statements(answer) - len(refused)
        if answer.reply.broken_off:
            await self._fail(answer.reply.broken_off, answer)
        elif lost > total - lost:  # a single bad record costs itself alone
            await self._fail(f"{lost} of {total} records of the answer could not be read", answer)
        return new

    def _collect(self, answer: Records) -> int:
        result = answer.result
        records = [*zip(result.line_numbers, result.records, strict=True)]
        room = self.most_records - self.records
        if len(records) > room:
            detail = f"{len(records) - room} records beyond the first {self.most_records}"
            self.rejections.append(Rejection(records[room][0], "", "limit", detail))
        records = records[:room]
        self.records += len(records)
        self.truncated += int(_is_cut_off(answer))
        self.rejections += result.rejections
        self.last_answer = answer.reply.text
        return self.collector.add(records)

    async def _nothing_is_missing(self) -> bool:
        """Whether the model says so, once as much was read as it declared."""
        question = self.client.prompts.render("glean-check", {})
        reply = await self.client.text(
            self.options.extraction,
            self.variables,
            messages=[*self.messages, Message("assistant", self.last_answer), *question],
            max_tokens=self.max_tokens,
            meter=self.meter,
            priority=self.priority,
            document=self.document,
        )
        return NO.match(reply.text_without_thinking) is not None

    def _go_on(self, answer: str, prompt: str) -> None:
        self.messages += [Message("assistant", answer), *self.client.prompts.render(prompt, {})]


def _declared(answer: Records) -> int:
    """How many records the answer says it holds."""
    records = [record for record in answer.result.records if record.get("type") == "done"]
    counts = [record.get(kind) for record in records for kind in ("entities", "relationships")]
    return sum(count for count in counts if isinstance(count, int) and count > 0)


def _is_cut_off(answer: Records) -> bool:
    return answer.result.truncated or answer.reply.cut_off


def _is_loop(answer: Records) -> bool:
    """Whether the model repeated itself until the reading ended: it would go on doing so."""
    return any(rejection.reason == "repeated" for rejection in answer.result.rejections)


def answer_limit(tokens: int, *, most: int | None) -> int:
    """How long an answer about a chunk of so many tokens may be, `most` at most; in tokens."""
    limit = max(LEAST_ANSWER, ANSWER_PER_TOKEN * tokens)
    return limit if most is None else min(limit, most)


def _some_are_refused(rejections: Iterable[Rejection]) -> bool:
    return any(one.reason != "repaired" for one in rejections)
