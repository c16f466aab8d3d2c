"""The conversation about a chunk: the question, cut-off answers resumed, missed mentions gleaned."""

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from msgspec import Struct, field

from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.core.loops import ends_in_a_loop, repeats_a_record
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.core.types import ChunkState, Extraction, Json, Message, Rejection
from lightrag_jsonl.indexing.mentions import GRAPH_PROMPT, SMALL_PROMPT, MentionCollector
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.llm.context_window import ContextWindow
from lightrag_jsonl.llm.field_aliases import name_records, repair_graph_record
from lightrag_jsonl.llm.reader import Normalize
from lightrag_jsonl.llm.requests import Records
from lightrag_jsonl.llm.thinking import ONLY_THINKING, is_only_thinking
from lightrag_jsonl.storage.status import ALL_REFUSED
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import counted

STILL_CUT_OFF = (
    "the answer was still cut off after {} continuations: raise max_extract_tokens or max_resumes, or "
    "use smaller chunks"
)
AFTER_LOOPS = (
    "for a small model use the prompt extract-small (--extraction extract-small), otherwise another model or "
    "smaller chunks"
)
REPEATING = f"the model repeated itself until the answer was ended; what it wrote before is kept: {AFTER_LOOPS}"
ONLY_REPEATING = f"the model repeated itself before the end of the first record: {AFTER_LOOPS}"
NORMALIZE: Mapping[str, Normalize] = {  # by prompt; records of other prompts are read as they are
    GRAPH_PROMPT: repair_graph_record,
    SMALL_PROMPT: name_records,
}
SHARES_OF_NAMES = (1.0, 0.5, 0.25)  # kept in turn, as long as a model of unknown window refuses
STATEMENTS = frozenset({"entity", "relationship"})  # records about the text, not about the answer
LOST = frozenset({"array", "multiline", "malformed", "too_deep", "schema"})  # instead of a record
INTENDED = frozenset(
    {"ontology", "self_relation", "limit", "unsupported"}
)  # refusals that a better answer repeats
NO = pattern_of(r"^\W*(no\b|否|没有|無|无|不)", re.IGNORECASE)


class Conversation(Struct, kw_only=True):
    """The conversation about a chunk so far; `names` limits entity names if the server can enforce that."""

    client: ModelClient
    options: IndexOptions
    window: ContextWindow
    variables: Mapping[str, object]
    names: Sequence[str] | None
    meter: UsageMeter
    priority: int
    document: str
    collector: MentionCollector
    messages: list[Message]
    most_records: int
    max_tokens: int | None
    last_answer: str = ""
    records: int = 0
    rejections: list[Rejection] = field(default_factory=list)
    truncated: int = 0
    resumed: int = 0
    unfinished: bool = False  # an answer was still cut off after the last continuation
    gleaned: list[int] = field(default_factory=list)
    error: str = ""

    @property
    def has_statements(self) -> bool:
        """Whether there is a record, and more than the statement that there is nothing."""
        is_empty = self.collector.declared == (0, 0) and not self.collector.entities
        return self.records > 0 and not is_empty

    async def read_first(self) -> None:
        """Ask for the mentions; an answer without a readable record is asked for once more."""
        answer = await self._ask()
        self.error = self._problem(answer)
        if self.error:
            if _is_cut_off(answer):  # a model that thinks at length needs more room
                self.max_tokens = self.options.max_extract_tokens
            answer = await self._ask()
            self.error = self._problem(answer)
        await self._read(answer)

    async def glean(self) -> None:
        """Ask for missed mentions, until a round brings nothing new or nothing should be missing."""
        counts_before = (0, 0)  # the model declares the numbers of each round
        rounds = self.options.max_gleanings
        for _ in range(1 if rounds is None else rounds):
            entities = len(self.collector.entities)
            relations = len(self.collector.relations)
            brought = (entities - counts_before[0], relations - counts_before[1])
            is_complete = self.collector.declared == brought
            if self.options.glean_check and is_complete and await self._nothing_is_missing():
                return
            self._go_on(self.last_answer, "glean-extract")
            self.collector.declared = None
            counts_before = (entities, relations)
            self.gleaned.append(await self._read(await self._ask()))
            if not self.gleaned[-1] or self.error:
                return

    def extraction(self) -> Extraction:
        """Everything that was read."""
        has_answer = self.records > 0 or not self.error
        extraction = self.collector.extraction() if has_answer else Extraction()
        return replace(
            extraction,
            state=self._state(has_entities=bool(extraction.entities)),
            records=self.records,
            rejections=self._stored_rejections(),
            truncated=self.truncated,
            resumed=self.resumed,
            gleaned=tuple(self.gleaned),
            usage=self.meter.spent,
            error=self.error,
        )

    def _state(self, *, has_entities: bool) -> ChunkState:
        lost = [
            rejection
            for rejection in self.rejections
            if self.unfinished or rejection.reason != "truncated"
        ]
        if self.error and not has_entities:
            return "failed"
        if self.error or _some_are_refused(lost) or self.collector.rejections:
            return "partial"
        return "ok" if has_entities else "empty"

    def _stored_rejections(self) -> tuple[Rejection, ...]:
        """As many rejections as are stored, with the number of the others."""
        rejections = [*self.rejections, *self.collector.rejections]
        limit = self.options.limits.rejections
        surplus = len(rejections) - limit
        rejections = rejections[:limit]
        if surplus > 0:
            detail = f"{surplus} further refused lines are not stored"
            rejections.append(Rejection(0, "", "limit", detail))
        return tuple(rejections)

    @property
    def _is_graph(self) -> bool:
        """Whether the records are those of `extract-graph`."""
        return self.options.extraction in NORMALIZE

    @property
    def _is_list(self) -> bool:
        """Whether the model lists names only; the repetition of a list is its end."""
        return self.options.extraction == SMALL_PROMPT

    async def _ask(self) -> Records:
        """The next answer; an unusable answer leaves the cache.

        Where the conversation is too long for the model, names stand for the earlier answers.
        """
        if not self.window.has_room(self.messages):
            self._shorten()
        for share in (*SHARES_OF_NAMES, None):
            try:
                answer = await self._send()
                break
            except LLMError as error:
                if not error.too_long or share is None or not self._shorten(share):
                    raise
        if self._problem(answer):
            await self.client.forget(answer.reply)
        return answer

    async def _send(self) -> Records:
        """The model's answer to the conversation so far, of the length for which there is room."""
        return await self.client.jsonl(
            self.options.extraction,
            self.variables,
            messages=self.messages,
            normalize=NORMALIZE.get(self.options.extraction),
            names=self.names,
            max_tokens=self.window.answer_limit(self.messages, self.max_tokens),
            meter=self.meter,
            priority=self.priority,
            document=self.document,
        )

    def _shorten(self, share: float = 1.0) -> bool:
        """Put the names that were read in the place of all answers; whether that shortens the
        conversation. Of the names a `share` is kept, or as many as fit, the last ones.
        """
        turns = self.messages
        opening = [*itertools.takewhile(lambda turn: turn.role != "assistant", turns)]
        if len(opening) == len(turns):
            return False
        lines = self.collector.name_lines()
        lines = lines[-max(1, int(share * len(lines))) :]
        shorter = [*opening, Message("assistant", "\n".join(lines)), turns[-1]]
        while len(lines) > 1 and not self.window.has_room(shorter):
            lines = lines[len(lines) // 2 :]
            shorter = [*opening, Message("assistant", "\n".join(lines)), turns[-1]]
        if _length(shorter) >= _length(turns):
            return False
        self.messages = shorter
        return True

    def _problem(self, answer: Records) -> str:
        """The reason why an answer is unusable: no record about the text can be read, or the first
        answer has no text, although the prompt asks for a record at least.
        """
        if self._statements(answer):
            return ""
        return self._problem_of_silence(answer)

    def _problem_of_silence(self, answer: Records) -> str:
        """The reason why an answer without a statement is unusable; "" if there may be nothing to state."""
        if answer.reply.broken_off:
            return answer.reply.broken_off
        is_first = len(self.messages) <= 2  # the system's turn and the user's
        asks = self._is_graph and bool(self.collector.text.strip())
        if is_first and is_only_thinking(answer.reply.text):
            return ONLY_THINKING
        if is_first and asks and not answer.reply.text_without_thinking.strip():
            return "the answer was empty, twice"
        if answer.result.records and not _is_cut_off(answer):
            return _lost_records(answer, is_first=is_first)
        if _is_loop(answer):
            return ONLY_REPEATING
        if _some_are_refused(answer.result.rejections) or _is_cut_off(answer):
            return ALL_REFUSED
        return ""

    def _statements(self, answer: Records) -> int:
        """The number of records that state something about the text."""
        records = answer.result.records
        if not self._is_graph:
            return len(records)
        return len([record for record in records if record.get("type") in STATEMENTS])

    async def _read(self, answer: Records) -> int:
        """Add an answer's mentions; after a cut-off answer, let the model go on. Returns the number of new names
        and pairs.
        """
        new = await self._add(answer)
        if _is_cut_off(answer):
            new += await self._read_on(answer)
        return new

    async def _read_on(self, answer: Records) -> int:
        """Let the model go on after the last whole record of a cut-off answer; returns the number of new names and
        pairs.
        """
        new = 0
        for _ in range(self.options.max_resumes):
            if self.error or not _is_cut_off(answer) or not answer.result.records:
                break
            if _is_loop(answer):
                break
            self._go_on(self._records_so_far(answer), "resume-extract")
            self.resumed += 1
            answer = await self._ask()
            brought = await self._add(answer)
            new += brought
            if not brought:  # the model only repeats what is there
                break
        if _is_cut_off(answer) and not (self._is_list and _is_loop(answer)):
            self.unfinished = True
            reason = REPEATING if _is_loop(answer) else STILL_CUT_OFF.format(self.resumed)
            await self._fail(reason, answer)
        return new

    def _records_so_far(self, answer: Records) -> str:
        """The whole records of an answer, in the form in which the model writes them."""
        records: Iterable[Json] = answer.result.records
        if self._is_list:
            records = [record.get("name") for record in answer.result.records]
        return "\n".join(json.dumps(record, ensure_ascii=False) for record in records)

    async def _fail(self, problem: str, answer: Records) -> None:
        """Note why the rest of the chunk is missing; a retry asks for the answer again."""
        self.error = self.error or problem
        if self.client.stores_answers:  # a rehearsal leaves the answer for the real reading
            await self.client.forget(answer.reply)

    async def _add(self, answer: Records) -> int:
        """Add an answer's mentions; returns the number of new names and pairs."""
        refused_before = len(self.collector.rejections)
        new = self._collect(answer)
        refused = [
            rejection
            for rejection in self.collector.rejections[refused_before:]
            if rejection.reason not in INTENDED
        ]
        unreadable = [line for line in answer.result.rejections if line.reason in LOST]
        lost = len(refused) + len(unreadable)
        total = len(unreadable) + self._statements(answer)
        if answer.reply.broken_off:
            await self._fail(answer.reply.broken_off, answer)
        elif lost > total - lost:  # a single bad record costs no further record
            await self._fail(
                f"{lost} of {counted(total, 'records')} of the answer could not be read", answer
            )
        return new

    def _collect(self, answer: Records) -> int:
        result = answer.result
        records = [*zip(result.line_numbers, result.records, strict=True)]
        room = self.most_records - self.records
        if len(records) > room:
            line, _ = records[room]
            detail = f"{len(records) - room} records beyond the first {self.most_records}"
            self.rejections.append(Rejection(line, "", "limit", detail))
        records = records[:room]
        self.records += len(records)
        self.truncated += int(_is_cut_off(answer))
        self.rejections += result.rejections
        self.last_answer = answer.reply.text
        return self.collector.add(records)

    async def _nothing_is_missing(self) -> bool:
        """Whether the model says so, once as much was read as the model declared."""
        question = self.client.prompts.render("glean-check", {})
        messages = [*self.messages, Message("assistant", self.last_answer), *question]
        reply = await self.client.text(
            self.options.extraction,
            self.variables,
            messages=messages,
            max_tokens=self.max_tokens,
            meter=self.meter,
            priority=self.priority,
            document=self.document,
        )
        return NO.match(reply.text_without_thinking) is not None

    def _go_on(self, answer: str, prompt: str) -> None:
        self.messages.append(Message("assistant", answer))
        self.messages += self.client.prompts.render(prompt, {})


def _length(messages: Iterable[Message]) -> int:
    """The number of characters in a conversation."""
    return sum(len(turn.content) for turn in messages)


def _lost_records(answer: Records, *, is_first: bool) -> str:
    """The records missing from an answer that only says that it is done.

    Later answers may count the records of all answers, so only the first answer is checked.
    """
    lost = sum(line.reason in LOST for line in answer.result.rejections)
    if lost:
        return f"none of the {lost} records of the answer could be read"
    if not is_first:
        return ""
    counts = [
        record.get(kind)
        for record in answer.result.records
        if record.get("type") == "done"
        for kind in ("entities", "relationships")
    ]
    declared = sum(count for count in counts if isinstance(count, int) and count > 0)
    return f"the answer declares {declared} records and holds none" if declared else ""


def _is_cut_off(answer: Records) -> bool:
    """Whether the end of the answer is missing."""
    return answer.result.truncated or answer.reply.cut_off


def _is_loop(answer: Records) -> bool:
    """Whether the model repeated itself until the answer or the reading ended: it would go on."""
    is_repeated = any(rejection.reason == "repeated" for rejection in answer.result.rejections)
    text = answer.reply.text
    return is_repeated or repeats_a_record(text) or ends_in_a_loop(text)


def _some_are_refused(rejections: Iterable[Rejection]) -> bool:
    """Whether a line was refused, not only repaired."""
    return any(rejection.reason != "repaired" for rejection in rejections)
