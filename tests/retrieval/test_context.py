"""What is shown: budgets, numbers, and what was left out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.tokens import FittedTokenizer
from lightrag_jsonl.core.types import Chunk, Context, Entity, Relation
from lightrag_jsonl.retrieval.context import fit_context
from tests.retrieval.conftest import Words

DAY = datetime(2024, 5, 17, tzinfo=UTC)


class Pairs:
    """A tokenizer that counts two characters as one: joining texts changes the sum."""

    name = "pairs"
    error = 0.1

    def count(self, text: str) -> int:
        """Half the characters, rounded up."""
        return (len(text) + 1) // 2

    def truncate(self, text: str, limit: int) -> str:
        """Twice as many characters as tokens."""
        return text[: 2 * limit]


class Bytes:
    """An additive tokenizer: a token is a byte."""

    name = "bytes"
    additive = True

    def count(self, text: str) -> int:
        """The bytes of the text."""
        return len(text.encode())

    def truncate(self, text: str, limit: int) -> str:
        """As many whole characters as fit."""
        return text.encode()[:limit].decode(errors="ignore")


class Squares:
    """A tokenizer by which the whole has many more tokens than its parts together."""

    name = "squares"

    def count(self, text: str) -> int:
        """The square of the number of words."""
        return len(text.split()) ** 2

    def truncate(self, text: str, limit: int) -> str:
        """Nothing: that always fits."""
        return ""


def chunk(number: int, text: str, document: str = "d") -> Chunk:
    """A chunk at the start of its page."""
    return Chunk(f"c{number}", document, number, 1, 0, len(text), text, Words().count(text))


def found(facts: int = 2, chunks: int = 2, words: int = 5) -> Context:
    """Some of everything, each with so many words."""
    text = " ".join(["word"] * words)
    return Context(
        entities=tuple(Entity(f"E{n}", "thing", text) for n in range(facts)),
        relations=tuple(
            Relation(f"E{n}", "X", ("joins",), text, 2.0, (), DAY) for n in range(facts)
        ),
        chunks=tuple(chunk(n, text) for n in range(chunks)),
        documents={"d": "The title"},
    )


def fitted(
    what: Context,
    param: QueryParam | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    language: str = "en",
) -> Context:
    """The context of a question."""
    return fit_context(
        replace(what, language=language), param or QueryParam(), tokenizer or Words()
    )


def test_the_prompt_numbers_entities_then_relations_then_chunks() -> None:
    """Chunk i (from 0) has the number entities + relations + i + 1; sources name the documents."""
    context = fitted(found())
    lines = context.prompt.split("\n")
    assert lines[0] == "Entities:"
    assert lines[1] == "[1] E0 (thing): word word word word word"
    assert "[3] E0 — joins → X (weight 2, 2024-05-17): word word word word word" in lines
    assert "[5] The title, page 1:" in lines
    assert lines[-2:] == ["Sources:", "- The title: [5][6]"]


@pytest.mark.parametrize("language", ["zh", "zh-CN"])
def test_headings_are_in_the_language_of_the_index(language: str) -> None:
    """A Chinese index shows Chinese headings."""
    prompt = fitted(found(), language=language).prompt
    assert prompt.startswith("实体:") and "The title，第 1 页:" in prompt and "权重 2" in prompt


def test_nothing_found_is_an_empty_prompt() -> None:
    """No headings without items."""
    context = fitted(Context())
    assert (context.prompt, context.tokens, context.empty) == ("", 0, True)


def test_facts_cannot_take_the_share_promised_to_chunks() -> None:
    """With half promised, passages fill half although the facts alone would fill everything."""
    what = found(facts=100, chunks=20, words=20)
    context = fitted(what, QueryParam(max_total_tokens=400))
    shown = sum(item.tokens for item in context.chunks)
    assert 120 <= shown <= 400
    assert context.entities and context.relations
    assert context.dropped.entities == 100 - len(context.entities)
    assert context.dropped.chunks == 20 - len(context.chunks)


def test_facts_may_take_what_passages_do_not_need() -> None:
    """A promise to chunks that are not there binds nothing."""
    what = found(facts=10, chunks=0, words=20)
    assert len(fitted(what, QueryParam(max_total_tokens=600)).relations) == 10


def test_sections_keep_to_their_own_budgets() -> None:
    """`max_entity_tokens` and `max_relation_tokens` bind although the total has room."""
    param = QueryParam(max_entity_tokens=60, max_relation_tokens=100)
    context = fitted(found(facts=50, words=10), param)
    entities, relations, *_ = context.prompt.split("\n\n")
    assert 0 < Words().count(entities) <= 60
    assert 0 < Words().count(relations) <= 100


def test_a_hub_does_not_fill_the_section_alone() -> None:
    """A long description is shown, and returned, from its beginning."""
    hub = Entity("Hub", "thing", " ".join(["word"] * 5_000))
    what = Context(entities=(hub, Entity("Other", "thing", "small")))
    context = fitted(what, QueryParam(max_entity_tokens=400))
    assert [entity.name for entity in context.entities] == ["Hub", "Other"]
    assert context.entities[0].description.endswith("…")
    assert context.entities[0].description in context.prompt


def test_a_passage_longer_than_the_budget_is_shown_from_its_beginning() -> None:
    """Something is shown, and the returned chunk is exactly what was shown."""
    context = fitted(Context(chunks=(chunk(0, "word " * 1_000),)), QueryParam(max_total_tokens=200))
    (only,) = context.chunks
    assert 50 < only.tokens < 200
    assert only.end - only.start == len(only.text)
    assert only.text in context.prompt


texts = st.text(st.characters(codec="utf-8"), max_size=300) | st.text(
    "a 中，\n\t😀１", max_size=300
)


TOKENIZERS = [Words(), Pairs(), FittedTokenizer(), Bytes(), Squares()]


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda one: one.name)
@given(
    written=st.lists(texts, max_size=8),
    limit=st.integers(1, 400),
    share=st.floats(0, 1),
    cap=st.integers(0, 300),
)
def test_the_budget_holds_for_any_text(
    tokenizer: Tokenizer, written: list[str], limit: int, share: float, cap: int
) -> None:
    """The prompt has at most `max_total_tokens`, `tokens` is never too few, and what is left out is counted."""
    what = Context(
        entities=tuple(Entity(text or "x", text, text) for text in written),
        relations=tuple(Relation(text, text, (text,), text) for text in written),
        chunks=tuple(replace(chunk(n, text), tokens=0) for n, text in enumerate(written)),
        documents={"d": "".join(written)},
    )
    param = QueryParam(
        max_total_tokens=limit, chunk_share=share, max_entity_tokens=cap, max_relation_tokens=cap
    )
    context = fitted(what, param, tokenizer=tokenizer)
    real = tokenizer.count(context.prompt)
    assert max(real, context.tokens) <= limit
    assert real <= context.tokens or getattr(tokenizer, "error", 0.0)
    assert len(context.entities) + context.dropped.entities == len(written)
    assert len(context.relations) + context.dropped.relations == len(written)
    assert len(context.chunks) + context.dropped.chunks == len(written)
    assert all(item.text in context.prompt for item in context.chunks)
