"""Compares two states of an index, or two indexes: their contents in words, and what answers rest on."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace

from lightrag_jsonl.core.address import Address
from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.languages import known_language
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.snapshots import AnswerDifference, Difference, StateDifference
from lightrag_jsonl.core.types import EntityMention, RelationMention
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.rag.engine import Engine
from lightrag_jsonl.rules import ExtractiveAnswerer, OfflineKeywords
from lightrag_jsonl.storage.opening import copy_of_state, open_store
from lightrag_jsonl.storage.store import read
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.strings import clipped_at_word, on_one_line

ClaimText = tuple[str, str]  # the subject, and what is said about it


@dataclass(frozen=True, slots=True, kw_only=True)
class StateContents:
    """Documents, entities, relations and merges of names in words, by name; and the number of each claim."""

    documents: Mapping[str, str]
    entities: Mapping[str, str]
    relations: Mapping[str, str]
    merges: Mapping[str, str]
    claims: Counter[ClaimText]

    def since(self, before: "StateContents") -> StateDifference:
        """What differs from an earlier state."""
        return StateDifference(
            documents=_item_differences(before.documents, self.documents),
            entities=_item_differences(before.entities, self.entities),
            relations=_item_differences(before.relations, self.relations),
            merges=_item_differences(before.merges, self.merges),
            claims=tuple(_claim_differences(before.claims, self.claims)),
        )


def read_contents(view: StoreView) -> StateContents:
    """The contents of one state."""
    entity_rows = view.entity_rows()
    names = {row: entity.name for row, entity in entity_rows.items()}
    relations = view.relations(list(view.relation_rows()))
    return StateContents(
        documents={
            document.id: f"{document.title or document.source or document.id}, "
            f"{document.characters:,} characters, version {document.content[:8]}"
            for document in view.documents()
        },
        entities={
            entity.name: f"{entity.type}: {entity.description}" for entity in entity_rows.values()
        },
        relations={
            f"{relation.source} → {relation.target}": f"{', '.join(relation.keywords)}: "
            f"{relation.description}"
            for relation in relations.values()
        },
        merges=dict(_merged_names(view)),
        claims=Counter(_claims(view, names)),
    )


def _merged_names(view: StoreView) -> Iterator[tuple[str, str]]:
    aliases = view.aliases()
    for key, target in aliases.targets.items():
        yield key, aliases.displays.get(target, target)


def _claims(view: StoreView, names: Mapping[int, str]) -> Iterator[ClaimText]:
    """The mentions with a description, without mentions of deleted entities and relations."""
    documents = {row: chunk.document_id for row, chunk in view.chunks().items()}
    for entity in view.entity_mentions():
        if entity.owner is not None and entity.mention.description:
            yield names[entity.owner], _said(entity.mention, documents[entity.chunk])
    for relation in view.relation_mentions():
        if relation.owner is not None and relation.mention.description:
            ends = f"{relation.mention.source} → {relation.mention.target}"
            yield ends, _said(relation.mention, documents[relation.chunk])


def _said(mention: EntityMention | RelationMention, document_id: str) -> str:
    """The description, the time for which it holds, and the document."""
    dates = ""
    if mention.valid_from or mention.valid_to:
        dates = f" ({mention.valid_from or '…'} – {mention.valid_to or '…'})"
    return f"{mention.description}{dates} [{document_id}]"


def _item_differences(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[Difference, ...]:
    names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    return tuple(
        Difference(name=name, before=before.get(name, ""), after=after.get(name, ""))
        for name in names
    )


def _claim_differences(
    before: Counter[ClaimText], after: Counter[ClaimText]
) -> Iterator[Difference]:
    """Claims that are made less often than before, and those that are made more often."""
    for subject, statement in sorted((before - after).keys() | (after - before).keys()):
        is_new = after[subject, statement] > before[subject, statement]
        yield Difference(
            name=subject, before="" if is_new else statement, after=statement if is_new else ""
        )


# ── two states ────────────────────────────────────────────────────────────────

EVIDENCE_CHARACTERS = 120  # that are shown of a passage, an entity or a relation
COMPARED_ANSWER_TOKENS = 300  # written for an answer, as estimated
KEYWORD_TOKENS = 400  # read and written for the keywords of a question, as estimated


@dataclass(frozen=True, slots=True)
class ComparedStates:
    """The engines of two states of an index, or of two indexes."""

    before: Engine
    after: Engine

    async def compare(
        self, questions: Sequence[str], param: QueryParam, *, answers: bool
    ) -> StateDifference:
        """What differs; the model is asked only with `answers`, and only where evidence differs."""
        difference = (await _contents(self.after)).since(await _contents(self.before))
        meter = UsageMeter()
        estimate = Usage()
        answer_differences: list[AnswerDifference] = []
        for question in questions:
            context_before = await _evidence(self.before, question, param)
            context_after = await _evidence(self.after, question, param)
            answer_difference = _evidence_difference(question, context_before, context_after)
            if not (answer_difference.new_evidence or answer_difference.gone_evidence):
                continue
            if self.asks_a_model:
                estimate += _answer_cost(context_before) + _answer_cost(context_after)
            if answers or not self.asks_a_model:
                before = await self.before.retrieval.answer(question, param, meter=meter)
                after = await self.after.retrieval.answer(question, param, meter=meter)
                answer_difference = replace(answer_difference, before=before.text, after=after.text)
            answer_differences.append(answer_difference)
        return replace(
            difference,
            answers=tuple(answer_differences),
            questions=len(questions),
            estimate=estimate,
            usage=meter.spent,
        )

    @property
    def asks_a_model(self) -> bool:
        """Whether answers need a model, or a function of the user."""
        return not isinstance(self.after.answerer, ExtractiveAnswerer)


@contextmanager
def compared_states(
    engine: Engine, before: str | None, after: str | None, index: Address | None
) -> Iterator[ComparedStates]:
    """The engines of two snapshots, or of a snapshot and of now (`after` is None), or of another index and
    of this one, in temporary copies where necessary.
    """
    if (before is None) == (index is None) or (index is not None and after is not None):
        raise ConfigError(
            "a difference is that from a snapshot to now or to another snapshot, or from another "
            "index to this one: name a snapshot, or an index"
        )
    with ExitStack() as stack:
        if index is not None:
            address = index
        else:
            address = stack.enter_context(copy_of_state(engine.store, str(before)))
        before_engine = stack.enter_context(_engine_at(engine, address))
        after_engine = engine
        if after is not None:
            later_address = stack.enter_context(copy_of_state(engine.store, after))
            after_engine = stack.enter_context(_engine_at(engine, later_address))
        yield ComparedStates(before_engine, after_engine)


@contextmanager
def _engine_at(engine: Engine, address: Address) -> Iterator[Engine]:
    """An engine of the same models at another address; answers are cached where they always are."""
    with closing(open_store(address, create=False)) as store:
        other_engine = replace(engine, working_dir=address, store=store)
        vars(other_engine)["client"] = engine.client  # in place of the one made at first use
        yield other_engine


async def _contents(engine: Engine) -> StateContents:
    return await read(engine.store, read_contents)


async def _evidence(engine: Engine, question: str, param: QueryParam) -> Context:
    """What a question is answered from, by the language rules for keywords; no model is asked."""
    with engine.store.view() as view:
        embedder = view.settings().get("embedder", engine.embedder.name)
    if embedder != engine.embedder.name:
        raise ConfigError(
            f"{engine.store.location} was made with the embedder {embedder!r}, not "
            f"{engine.embedder.name!r}: their answers cannot be compared; leave out the questions"
        )
    rules = known_language(engine.language)
    offline_engine = replace(
        engine,
        llm=None,
        models={},
        keyword_extractor=engine.keyword_extractor or OfflineKeywords(rules),
        answerer=ExtractiveAnswerer(rules, engine.embedder),
    )
    return await offline_engine.retrieval.retrieve(question, replace(param, selection="score"))


def _evidence_difference(question: str, before: Context, after: Context) -> AnswerDifference:
    evidence_before = _evidence_lines(before)
    evidence_after = _evidence_lines(after)
    return AnswerDifference(
        question=question,
        new_evidence=_lines_without(evidence_after, evidence_before),
        gone_evidence=_lines_without(evidence_before, evidence_after),
    )


def _lines_without(lines: Sequence[str], other_lines: Sequence[str]) -> tuple[str, ...]:
    """The lines that are not among others, shortened."""
    return tuple(
        clipped_at_word(on_one_line(line), EVIDENCE_CHARACTERS)
        for line in lines
        if line not in other_lines
    )


def _evidence_lines(context: Context) -> Sequence[str]:
    """Entities, relations and passages of a context, the best first."""
    lines = [f"{entity.name}: {entity.description}" for entity in context.entities]
    lines += [
        f"{relation.source} → {relation.target}: {relation.description}"
        for relation in context.relations
    ]
    lines += [f"{chunk.document_id}: {chunk.text}" for chunk in context.chunks]
    return lines


def _answer_cost(context: Context) -> Usage:
    """The cost of the keywords and the answer of a question, as estimated."""
    return Usage(
        input_tokens=context.tokens + KEYWORD_TOKENS, output_tokens=COMPARED_ANSWER_TOKENS, calls=2
    )
