"""The extractor that reads the entities and relations of a chunk with a model."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.core.languages import known_language
from lightrag_jsonl.core.options import ENTITY_TYPES, LANGUAGE_NAMES, IndexOptions
from lightrag_jsonl.core.types import Chunk, Extraction
from lightrag_jsonl.indexing.conversation import ChunkCalls, Conversation
from lightrag_jsonl.indexing.examples import Examples
from lightrag_jsonl.indexing.mentions import GRAPH_PROMPT, MentionCollector, graph_records
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.llm.field_aliases import normalize_graph_record

if TYPE_CHECKING:
    from lightrag_jsonl.indexing.ontology import Ontology

LEAST_ANSWER = 1_024  # tokens that every answer may have, however short the chunk is
ANSWER_PER_TOKEN = 4  # tokens of an answer for each token of the chunk; real answers have two
LEAST_RECORDS = 100  # that every chunk may have, however short it is


class LLMExtractor:
    """Reads entities and relations with a model (the `Extractor` port).

    `names_in` finds the names in a text, for a model that can be limited to these names.
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
        }
        if ontology is not None:
            variables |= ontology.variables()
        self._inputs = client.prompts.prompt(options.extraction).inputs
        self._variables = {name: value for name, value in variables.items() if name in self._inputs}

    @property
    def name(self) -> str:
        """The prompt with the revision, and the model."""
        prompt = self._options.extraction
        return f"{prompt} {self._client.prompts.prompt(prompt).revision}/{self._client.llm.name}"

    async def extract(self, chunk: Chunk, meter: UsageMeter | None = None) -> Extraction:
        """Ask about a chunk; if the model fails, the extraction has an `error`, and nothing is raised.

        Only a permanent `LLMError` or a rate limit is raised: further chunks would fail, too.
        """
        conversation = self._conversation(chunk, UsageMeter(meter))
        try:
            await conversation.read_first()
            is_long = chunk.tokens >= self._options.glean_min_tokens
            if conversation.has_statements and is_long and not conversation.error:
                await conversation.glean()
        except LLMError as error:
            if error.permanent or error.rate_limited:
                raise
            conversation.error = str(error)
        return conversation.extraction()

    def _conversation(self, chunk: Chunk, meter: UsageMeter) -> Conversation:
        options = self._options
        variables = {**self._variables, "text": chunk.text}
        if "background" in self._inputs:
            variables["background"] = chunk.background
        calls = ChunkCalls(
            client=self._client,
            prompt=options.extraction,
            variables=variables,
            names=None if self._names_in is None else self._names_in(chunk.text),
            meter=meter,
            priority=self._client.scheduler.next_priority(),
            document=chunk.document_id,
        )
        collector = MentionCollector(
            text=chunk.text,
            prompt=options.extraction,
            ontology=self._ontology,
            limits=options.limits,
            examples=self._examples,
            background=chunk.background,
        )
        return Conversation(
            calls=calls,
            options=options,
            collector=collector,
            messages=[*self._client.prompts.render(options.extraction, variables)],
            most_records=max(LEAST_RECORDS, int(chunk.tokens * options.limits.records_per_token)),
            max_tokens=answer_limit(chunk.tokens, ceiling=options.max_extract_tokens),
        )

    @cached_property
    def _examples(self) -> Examples:
        """The statements of the prompt's own examples, in whatever set of prompts."""
        prompt = self._options.extraction
        variables = dict(self._variables)
        for name in ("text", "background"):
            if name in self._inputs:
                variables[name] = ""
        messages = self._client.prompts.render(prompt, variables)
        is_graph = prompt == GRAPH_PROMPT
        return Examples.of(
            messages,
            normalize_graph_record if is_graph else graph_records,
            with_terms=self._ontology is None,
        )


def answer_limit(tokens: int, *, ceiling: int | None) -> int:
    """The most tokens of an answer about a chunk of so many tokens; never more than the `ceiling`."""
    limit = max(LEAST_ANSWER, ANSWER_PER_TOKEN * tokens)
    return limit if ceiling is None else min(limit, ceiling)
