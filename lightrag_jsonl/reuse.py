"""Gives the stored answer of a similar question again, while the index has not changed.

Off unless `QueryParam.similarity_reuse` is set: similar questions may still want different answers.
With `similarity_check` the model is asked whether both mean the same.
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

SURE = 0.5  # the least score by which the model says that two questions mean the same
CANDIDATES = 3  # at most so many similar questions are put to the model
NUMBER = re.compile(r"\d*\.?\d+")

log = logging.getLogger(__name__)


class Reuse:
    """Finds a stored answer that can be given again, and stores new ones.

    `parts` are the other components that influence an answer (reranker, answerer, …): an answer is
    not reused under different ones.
    """

    def __init__(
        self, database: Database, ask: Ask, embedder: Embedder, parts: Sequence[object] = ()
    ) -> None:
        self._database = database
        self._ask = ask
        self._embedder = embedder
        self._parts = [str(getattr(part, "name", type(part).__qualname__)) for part in parts]

    async def find(self, question: str, param: QueryParam, spending: Spending) -> Answer | None:
        """The stored answer of the most similar question above the threshold, if there is one.

        Its `usage` is what asking the model about the similarity cost.
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
        """Store an answer for reuse; `at` is the generation of the index that it was written from."""
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
        except StorageError as error:  # the caller still gets the answer
            log.warning("the answer is not kept to be given again: %s", error)

    async def replay(self, answer: Answer, recorder: Recorder) -> None:
        """Record the trace of a reused answer: what it was based on is still in the index."""
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
        """Whether the model says that two questions mean the same; False without a model."""
        if not self._ask.has_model:
            return False
        variables = {"question_a": question, "question_b": other}
        reply = await self._ask.text("similarity-check", variables, spending=spending)
        found: Sequence[str] = NUMBER.findall(reply.said)
        return bool(found) and float(found[0]) >= SURE

    def _signature(self, param: QueryParam) -> str:
        """A digest of everything except the question that an answer depends on."""
        name = self._ask.llm.name if self._ask.has_model else "none"
        return digest(
            to_json(param), name, self._embedder.name, *self._parts, self._ask.prompts.text
        )
