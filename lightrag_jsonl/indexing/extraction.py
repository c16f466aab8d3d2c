"""Reads the entities and relations of chunks, with a model or with an extractor of a user's own."""

import asyncio
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from lightrag_jsonl.core.aio import abandonable
from lightrag_jsonl.core.errors import BudgetError, LLMError, described
from lightrag_jsonl.core.languages import known_language
from lightrag_jsonl.core.options import ENTITY_TYPES, LANGUAGE_NAMES, IndexOptions
from lightrag_jsonl.core.protocols import Extractor
from lightrag_jsonl.core.telemetry import span
from lightrag_jsonl.core.types import Chunk, Extraction
from lightrag_jsonl.indexing.budget import Budget
from lightrag_jsonl.indexing.conversation import Conversation
from lightrag_jsonl.indexing.examples import Examples
from lightrag_jsonl.indexing.incoming import storable_json
from lightrag_jsonl.indexing.mentions import (
    GRAPH_PROMPT,
    SMALL_PROMPT,
    MentionCollector,
    dated_extraction,
    graph_records,
)
from lightrag_jsonl.indexing.progress import ProgressCounter
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.llm.context_window import ContextWindow
from lightrag_jsonl.llm.field_aliases import normalize_graph_record
from lightrag_jsonl.rules import text_names
from lightrag_jsonl.text.names import name_key

if TYPE_CHECKING:
    from lightrag_jsonl.indexing.ontology import Ontology

LEAST_ANSWER = 1_024  # tokens that every answer may have, however short the chunk is
ANSWER_PER_TOKEN = 4  # tokens of an answer for each token of the chunk; real answers have two
LEAST_NAMES = 128  # tokens of a list of names; long ones have a fifth of the tokens of the chunk
LONG_CHUNK = 600  # tokens; models miss records of such chunks, also if every name has one
LEAST_RECORDS = 100  # that every chunk may have, however short it is


class LLMExtractor:
    """Reads entities and relations with a model (the `Extractor` port).

    A name of the text without a record is a reason to ask again, and a `grounded` model is limited to the names
    of the text. Conversations are kept within the model's `window`.
    """

    def __init__(
        self,
        client: ModelClient,
        options: IndexOptions,
        *,
        language: str,
        ontology: "Ontology | None" = None,
        window: ContextWindow,
        grounded: bool = False,
    ) -> None:
        self._client = client
        self._options = options
        self._ontology = ontology
        self._window = window
        self._grounded = grounded
        self._language = known_language(language)
        types = options.entity_types or ENTITY_TYPES[self._language]
        variables: dict[str, object] = {
            "entity_types": list(types),
            "language": LANGUAGE_NAMES.get(language, language),
        }
        if options.entity_types:
            variables[
                "type_notes"
            ] = []  # the notes of the prompt are about the language's own types
        if ontology is not None:
            variables |= ontology.variables()
        self._inputs = client.prompts.prompt(options.extraction).inputs
        self._variables = {name: value for name, value in variables.items() if name in self._inputs}

    @property
    def name(self) -> str:
        """The prompt with the revision, and the model; also whether descriptions are quotes of the text."""
        prompt = self._options.extraction
        revision = self._client.prompts.prompt(prompt).revision
        quoting = ", descriptions quoted" if prompt == SMALL_PROMPT else ""
        return f"{prompt} {revision}/{self._client.model('extract').name}{quoting}"

    async def extract(self, chunk: Chunk, meter: UsageMeter | None = None) -> Extraction:
        """Ask about a chunk; if the model fails, or has not answered when the meter ends, the extraction has
        an `error` beside what was read before, and nothing is raised.

        Only a permanent `LLMError` or a rate limit is raised: further chunks would fail, too.
        """
        conversation = self._conversation(chunk, UsageMeter(meter))
        try:
            async with asyncio.timeout_at(conversation.meter.ends_at):
                await conversation.read_first()
                if self._may_lack_records(conversation, chunk):
                    await conversation.glean()
        except TimeoutError:
            conversation.error = "the model was too slow: an answer was not waited for"
        except LLMError as error:
            if error.permanent or error.rate_limited:
                raise
            conversation.error = str(error)
        return conversation.extraction()

    def _may_lack_records(self, conversation: Conversation, chunk: Chunk) -> bool:
        """Whether it pays to ask for missed records."""
        options = self._options
        if conversation.error or not conversation.has_statements:
            return False
        if chunk.tokens < options.glean_min_tokens:
            return False
        if options.max_gleanings is not None:
            return True
        if options.extraction == SMALL_PROMPT:  # small models repeat themselves
            return False
        if chunk.tokens >= LONG_CHUNK:
            return True
        return conversation.truncated > 0 or conversation.collector.lacks_a_name()

    def _conversation(self, chunk: Chunk, meter: UsageMeter) -> Conversation:
        options = self._options
        variables = {**self._variables, "text": chunk.whole_text}
        if "background" in self._inputs:
            variables["background"] = chunk.background
        if "date" in self._inputs:
            variables["date"] = chunk.date
        collector = MentionCollector(
            text=chunk.whole_text,
            prompt=options.extraction,
            language=self._language,
            ontology=self._ontology,
            limits=options.limits,
            examples=self._examples,
            background=chunk.background,
        )
        return Conversation(
            client=self._client,
            options=options,
            window=self._window,
            variables=variables,
            names=text_names(chunk.whole_text, self._language) if self._grounded else None,
            meter=meter,
            priority=self._client.next_priority(),
            document=chunk.document_id,
            collector=collector,
            messages=[*self._client.prompts.render(options.extraction, variables)],
            most_records=max(LEAST_RECORDS, int(chunk.tokens * options.limits.records_per_token)),
            max_tokens=answer_limit(
                chunk.tokens,
                ceiling=options.max_extract_tokens,
                names_only=options.extraction == SMALL_PROMPT,
            ),
        )

    @cached_property
    def _examples(self) -> Examples:
        """The statements of the prompt's own examples, in whatever set of prompts."""
        prompt = self._options.extraction
        variables = dict(self._variables)
        for name in ("text", "background", "date"):
            if name in self._inputs:
                variables[name] = ""
        messages = self._client.prompts.render(prompt, variables)
        is_graph = prompt in (GRAPH_PROMPT, SMALL_PROMPT)
        return Examples.of(
            messages,
            normalize_graph_record if is_graph else graph_records,
            with_terms=self._ontology is None,
        )


def answer_limit(tokens: int, *, ceiling: int | None, names_only: bool = False) -> int:
    """The most tokens of an answer about a chunk of so many tokens; never more than the `ceiling`."""
    limit = max(LEAST_ANSWER, ANSWER_PER_TOKEN * tokens)
    if names_only:
        limit = max(LEAST_NAMES, tokens // 3)
    return limit if ceiling is None else min(limit, ceiling)


# ── within a budget ─────────────────────────────────────────────────────────────


class ChunkReader(Struct):
    """Reads chunks within a budget.

    After `most_unanswered` chunks in a row without an answer the budget stops; None is no limit.
    `unanswered` counts the chunks without an answer since the last answer.
    """

    extractor: Extractor
    budget: Budget
    progress: ProgressCounter
    most_unanswered: int | None
    unanswered: int = 0

    async def read(self, chunk: Chunk) -> Extraction | None:
        """The extraction of a chunk; None if the insert has to end."""
        if self.budget.stopped:
            return None
        try:
            extraction = await extract_chunk(self.extractor, chunk, self.budget)
        except BudgetError as error:
            self.budget.exhaust(error)
            return None
        except LLMError as error:  # permanent, or a rate limit that did not pass
            self.budget.stop(error)
            return None
        self._count_unanswered(extraction)
        self.progress.chunks_done += 1
        self.progress.tell()
        return extraction

    def _count_unanswered(self, extraction: Extraction) -> None:
        """End the insert if too many chunks in a row got no answer."""
        has_answer = extraction.records or extraction.rejections or extraction.truncated
        if extraction.state != "failed" or not extraction.error or has_answer:
            self.unanswered = 0
            return
        self.unanswered += 1
        if self.most_unanswered is not None and self.unanswered >= self.most_unanswered:
            chunks = f"{self.unanswered} chunks in a row got no answer"
            self.budget.stop(LLMError(f"{chunks} ({extraction.error})", transient=True))


async def extract_chunk(extractor: Extractor, chunk: Chunk, meter: UsageMeter) -> Extraction:
    """The extraction of a chunk; a permanent `LLMError` or a rate limit is raised."""
    with span("lightrag_jsonl.extract", {"lightrag_jsonl.chunk": chunk.id}) as open_span:
        if isinstance(extractor, LLMExtractor):
            extraction = await extractor.extract(chunk, meter)
        elif getattr(extractor, "is_trusted", False):
            extraction = await extractor.extract(chunk)
        else:
            extraction = await _extract_by_user(extractor, chunk, meter)
            meter.add(extraction.usage)
        open_span.add(
            {
                "lightrag_jsonl.state": extraction.state,
                "lightrag_jsonl.entities": len(extraction.entities),
                "lightrag_jsonl.relations": len(extraction.relations),
            }
        )
    return replace(dated_extraction(extraction, chunk), extractor=extractor.name)


async def _extract_by_user(extractor: Extractor, chunk: Chunk, meter: UsageMeter) -> Extraction:
    """The result of a user's extractor, or a `failed` extraction; a permanent `LLMError` or a rate
    limit is raised.
    """
    try:
        async with asyncio.timeout_at(meter.ends_at):
            result = await abandonable(extractor.extract(chunk))
        extraction = msgspec.convert(storable_json(msgspec.to_builtins(result)), Extraction)
        _check_names(extraction)
        return extraction
    except LLMError as error:
        if error.permanent or error.rate_limited:
            raise
        return Extraction(state="failed", error=str(error))
    except Exception as error:  # noqa: BLE001 - the user's own code may raise anything
        reason = f"{extractor.name} failed: {described(error)}"
        return Extraction(state="failed", error=reason)


def _check_names(extraction: Extraction) -> None:
    names = {name_key(mention.name) for mention in extraction.entities}
    sources = {name_key(mention.source) for mention in extraction.relations}
    targets = {name_key(mention.target) for mention in extraction.relations}
    if "" in names or (sources | targets) - names:
        raise ValueError("an entity has no name, or an end of a relation is no entity")
