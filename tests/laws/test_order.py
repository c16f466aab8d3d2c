"""Law `order`: the same input gives the same index and answers, whatever order the model answers in."""

import asyncio
import itertools
import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import (
    Completion,
    Document,
    IndexOptions,
    LLMError,
    Message,
    QueryParam,
    ResponseType,
)
from lightrag_jsonl.indexing import insertion
from lightrag_jsonl.testing import Request
from tests.kit import MODES, fingerprint, index, problems, read_names, text_of

QUESTIONS = ("Who met Person3 in Town2?", "Town1 and Person17")
TIMES = ("created_at", "first_seen")


def documents() -> list[Document]:
    """More chunks than one commit holds, some of them alike, and the same text twice."""
    chance = random.Random(5)
    texts = []
    for _ in range(70):
        said = [f"Person{chance.randrange(25)} met Person{chance.randrange(25)}." for _ in range(9)]
        texts.append(f"Town{chance.randrange(4)}. " + "\n\n".join(said))
    return [Document(text, id=f"d{n}") for n, text in enumerate([*texts, texts[0]])]


class Shuffled:
    """A model whose answers arrive in an order of their own; while `ill`, it fails for one person."""

    name = "shuffled"

    def __init__(self, seed: int, *, ill: bool) -> None:
        self.ill = ill
        self.calls = self.summaries = 0
        self._chance = random.Random(seed)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        for _ in range(self._chance.randrange(50)):
            await asyncio.sleep(0)
        request = Request(tuple(messages), response_type, max_tokens)
        self.calls += 1
        self.summaries += request.question.startswith("Subject:")
        if response_type == "text" and not request.question.startswith("Subject:"):
            return Completion(f"An answer to {fingerprint(messages[-1].content)} [1].")
        if self.ill and "Person3 " in request.question:
            raise LLMError("the model is ill")
        found = f"is in text {fingerprint(text_of(request))[:2]}"
        return Completion(read_names(request).replace("is in the text", found))


async def outcome(folder: Path, seed: int, slots: int, *, ill: bool) -> tuple[Any, ...]:
    """All rows without times, rankings and prompts of every mode, answers, and numbers of calls."""
    model = Shuffled(seed, ill=ill)
    options = IndexOptions(
        chunk_tokens=40, chunk_overlap=0, summarize_fragments=9, max_concurrent_calls=slots
    )
    # With ids of its own, an index marks the items of a prompt without a secret.
    ids = map("trace-{}".format, itertools.count())
    async with index(folder, model, options=options, new_id=ids.__next__) as rag:
        report = await rag.insert(documents())
        model.ill = False
        again = await rag.retry()
        counts = model.calls, model.summaries, len(report.failures), again.chunks
        assert again.failures == () and bool(report.failures) == ill
        shown: list[Any] = []
        for question in QUESTIONS:
            for mode in MODES:
                param = QueryParam(mode=mode, hl_keywords=["met"], ll_keywords=["Person3", "Town1"])
                answer = await rag.query(question, param)
                context = answer.context
                names = [entity.name for entity in context.entities]
                ends = [(relation.source, relation.target) for relation in context.relations]
                chunks = [chunk.id for chunk in context.chunks]
                shown.append((names, ends, chunks, context.prompt, answer.text))
        listed = [one.id for one in await rag.documents()]
    assert problems(folder) == []
    return rows(folder), counts, shown, listed


def rows(folder: Path) -> dict[str, list[Any]]:
    """The rows of all tables, but for times, settings, and what was asked and answered."""
    with closing(sqlite3.connect(folder / "index.sqlite")) as connection:
        tables = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")
        found = {}
        for table, sql in tables.fetchall():
            if table in ("completions", "settings", "traces", "trace_events") or "VIRTUAL" in sql:
                continue
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            kept = ", ".join(column for column in columns if column not in TIMES)
            found[table] = connection.execute(f"SELECT {kept} FROM {table}").fetchall()
        return found


@pytest.mark.slow
@pytest.mark.parametrize("ill", [False, True], ids=["well", "failed and retried"])
async def test_the_order_of_answers_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ill: bool
) -> None:
    """Rows and their ids, rankings, prompts, answers, calls and summaries: one slot or many."""
    monkeypatch.setattr(insertion, "FIRST_GROUP", 100)
    first = await outcome(tmp_path / "one", 0, 1, ill=ill)
    assert first[3] == [one.id for one in documents()], "documents stand in the order given"
    assert first[1][1] > 0 and len(first[0]["commits"]) > 1
    for seed in (1,) if ill else (1, 2):
        other = await outcome(tmp_path / str(seed), seed, 16, ill=ill)
        for left, right in zip(first, other, strict=True):
            assert left == right
