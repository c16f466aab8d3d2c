"""Answers of nearly the same question over the same generation of the index, given again if asked for.

Off unless `QueryParam.similarity_reuse` is set: two questions may be near each other and still
want different answers. `similarity_check` also asks the model whether they mean the same.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from lightrag_jsonl.ask import Ask
from lightrag_jsonl.calls import embedded
from lightrag_jsonl.errors import StorageError
from lightrag_jsonl.explain.codec import from_json, to_json
from lightrag_jsonl.explain.recorder import Recorder
from lightrag_jsonl.options import QueryParam
from lightrag_jsonl.protocols import Embedder, Vectors
from lightrag_jsonl.querying.edges import ranked
from lightrag_jsonl.spending import Spending
from lightrag_jsonl.storage import answers, snapshot
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.text import digest
from lightrag_jsonl.types import Answer

SURE = 0.5  # what the model's own judgment of two questions must reach
CANDIDATES = 3  # similar questions the model is asked about at the most
NUMBER = re.compile(r"\d*\.?\d+")

log = logging.getLogger(__name__)


class Reuse:
    """Looks for an answer that may be given again, and keeps new ones.

    `parts` are what else has a hand in an answer: given by others, it is another answer.
    """

    def __init__(
        self, database: Database, ask: Ask, embedder: Embedder, parts: Sequence[object] = ()
    ) -> None:
        self._database = database
        self._ask = ask
        self._embedder = embedder
        self._parts = [str(getattr(part, "name", type(part).__qualname__)) for part in parts]

    async def find(self, question: str, param: QueryParam, spending: Spending) -> Answer | None:
        """The stored answer of the most similar question over the threshold, if there is one.

        What asking a model about it cost is what such an answer costs.
        """
        threshold = param.similarity_reuse
        if threshold is None:
            return None
        vector = await self._vector(question)
        with self._database.reading() as connection:
            generation = snapshot.generation(connection)
            found, matrix = answers.kept(connection, self._signature(param), generation)
        if not found:
            return None
        scores = matrix @ vector
        for place in np.argsort(-scores, kind="stable")[:CANDIDATES]:
            if scores[place] < threshold:
                break
            other, answer = found[place]
            if not param.similarity_check or await self._same(question, other, spending):
                return replace(from_json(Answer, answer), usage=spending.spent)
        return None

    async def keep(self, question: str, param: QueryParam, answer: Answer, at: int) -> None:
        """Store an answer for reuse, written over generation `at` of the index."""
        if param.similarity_reuse is None or not self._database.takes_notes():
            return
        write = partial(
            answers.keep,
            signature=self._signature(param),
            generation=at,
            question=question,
            vector=await self._vector(question),
            answer=to_json(answer),
        )
        try:
            await self._database.committed(write, flush=False)
        except StorageError as error:  # it was given all the same
            log.warning("the answer is not kept to be given again: %s", error)

    async def replay(self, answer: Answer, recorder: Recorder) -> None:
        """Record a reused answer's trace: what it once rested on, which is still what is stored."""
        context = answer.context
        await recorder.keywords_found(context.keywords)
        await recorder.retrieved(context.relations, context.chunks)
        chosen = ranked("all", context.relations, len(context.relations))
        await recorder.selected(chosen, context)
        await recorder.piece(answer.text)
        await recorder.answered(answer, reused=True)

    async def _vector(self, question: str) -> Vectors:
        (row,) = await embedded(self._embedder, [question], "query")
        return np.ascontiguousarray(row)

    async def _same(self, question: str, other: str, spending: Spending) -> bool:
        """Whether the model takes two questions for the same; without a model nothing is."""
        if not self._ask.has_model:
            return False
        variables = {"question_a": question, "question_b": other}
        reply = await self._ask.text("similarity-check", variables, spending=spending)
        found: Sequence[str] = NUMBER.findall(reply.said)
        return bool(found) and float(found[0]) >= SURE

    def _signature(self, param: QueryParam) -> str:
        """Everything but the question that an answer depends on."""
        name = self._ask.llm.name if self._ask.has_model else "none"
        return digest(
            to_json(param), name, self._embedder.name, *self._parts, self._ask.prompts.text
        )
