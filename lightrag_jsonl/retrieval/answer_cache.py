"""Finds the stored answer of a similar question, while the index has not changed.

Used only with `QueryParam.similarity_reuse`: similar questions may want different answers.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
from msgspec import Struct

from lightrag_jsonl.core.answers import Answer
from lightrag_jsonl.core.errors import EmbeddingError, StorageError
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Embedder, Vectors
from lightrag_jsonl.core.types import ModelTask
from lightrag_jsonl.core.user_code import can_embed, embed_texts
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.storage.store import Store, read, write
from lightrag_jsonl.storage.views import Transaction
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import digest

SAME_MEANING = 0.8  # the least score by which the model says that two questions mean the same
ANSWER_TASKS: tuple[ModelTask, ...] = ("keywords", "select", "answer", "judge")
MOST_SIMILAR = 3  # at most so many similar questions are put to the model
_LIKENESS = pattern_of(r"\s*(0?\.\d+|0|1(?:\.0+)?)[.。]?\s*")  # from 0 to 1, and nothing else

log = logging.getLogger(__name__)


class AnswerCache(Struct, frozen=True):
    """Finds stored answers to give again, and stores new answers.

    `parts` are the further components behind an answer (reranker, answerer, …): with different parts,
    no stored answer is given again.
    """

    store: Store
    client: ModelClient
    embedder: Embedder
    parts: Sequence[object] = ()

    async def find(self, question: str, param: QueryParam, meter: UsageMeter) -> Answer | None:
        """The answer of the most similar question above the threshold; its `usage` is `meter`'s."""
        vector = await self._vector(question)
        if vector is None:
            return None
        signature = self._signature(param)
        stored = await read(self.store, lambda view: view.reusable_answers(signature))
        scores = np.array([stored_vector @ vector for _, stored_vector, _ in stored])
        for position in np.argsort(-scores, kind="stable")[:MOST_SIMILAR].tolist():
            if scores[position] < (param.similarity_reuse or 0.0):
                break
            stored_question, _, encoded_answer = stored[position]
            if not param.similarity_check or await self._mean_the_same(
                question, stored_question, meter
            ):
                answer = msgspec.json.decode(encoded_answer, type=Answer)
                return replace(answer, usage=meter.spent)
        return None

    async def keep(self, question: str, param: QueryParam, answer: Answer, generation: int) -> None:
        """Store an answer for reuse, unless the index has changed since this generation."""
        if self.store.read_only:
            return
        vector = await self._vector(question)
        if vector is None:
            return
        signature = self._signature(param)
        encoded_answer = msgspec.json.encode(answer).decode()

        def put(transaction: Transaction) -> None:
            transaction.put_reusable_answer(signature, question, vector, encoded_answer, generation)

        try:
            await write(self.store, put, durable=False)
        except StorageError as error:  # the caller still gets the answer
            log.warning("the answer is not stored for reuse: %s", error)

    async def _vector(self, question: str) -> Vectors | None:
        """The question's vector; None if the embedder refuses it."""
        try:
            (vector,) = await embed_texts(self.embedder, [question], "query")
        except EmbeddingError as error:
            if error.unavailable or not await can_embed(self.embedder, "query"):
                raise
            return None
        return vector  # type: ignore[no-any-return]

    async def _mean_the_same(self, question_a: str, question_b: str, meter: UsageMeter) -> bool:
        """Whether the model says that two questions mean the same; False without a model."""
        if not self.client.has_model("judge"):
            return False
        variables = {"question_a": question_a, "question_b": question_b}
        reply = await self.client.text("similarity-check", variables, meter=meter)
        score = _LIKENESS.fullmatch(reply.text_without_thinking)
        return score is not None and float(score[1]) >= SAME_MEANING

    def _signature(self, param: QueryParam) -> str:
        """A digest of everything except the question that an answer depends on."""
        models = [
            self.client.model(task).name if self.client.has_model(task) else "none"
            for task in ANSWER_TASKS
        ]
        parts = [str(getattr(part, "name", type(part).__qualname__)) for part in self.parts]
        settings = msgspec.json.encode(param).decode()
        prompts = self.client.prompts.text
        return digest(settings, *models, self.embedder.name, *parts, prompts)
