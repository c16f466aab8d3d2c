"""Fakes and contract tests for your own model, embedder, tokenizer, reranker or extractor."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar, get_args

import numpy as np

from lightrag_jsonl.core import types as t
from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.core.protocols import LLM, Embedder, Extractor, Reranker, Tokenizer
from lightrag_jsonl.core.types import Completion, Finish, Message, ResponseType
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.rules import HashEmbedder

__all__ = ["EmbedderContract", "ExtractorContract", "HashEmbedder", "LLMContract", "ReplayLLM"]
__all__ += ["Request", "RerankerContract", "ScriptedLLM", "TokenizerContract"]

TEXTS = ("Marie Curie discovered radium.", "居里夫人发现了镭。", "１２ 🙂", " ", "")


@dataclass(frozen=True, slots=True)
class Request:
    """A call of a fake model."""

    messages: tuple[Message, ...]
    response_type: ResponseType
    max_tokens: int | None

    @property
    def text(self) -> str:
        """All turns in order."""
        return "\n\n".join(message.content for message in self.messages)

    @property
    def question(self) -> str:
        """The last turn."""
        return self.messages[-1].content


Scripted: TypeAlias = str | Completion | Exception
Script: TypeAlias = Iterable[Scripted] | Callable[[Request], Scripted]


class ScriptedLLM:
    """A model with prepared answers: in turn, or by a function of the request.

    `.requests` holds all requests. `seconds` is the duration of a call. Words count as tokens. After
    the last answer, a call raises `LLMError`.
    """

    def __init__(self, script: Script, *, name: str = "scripted", seconds: float = 0.0) -> None:
        self.name = name
        self.requests: list[Request] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self._seconds = seconds
        self._answer = script if callable(script) else _in_turn(script)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        """The next answer of the script."""
        request = Request(tuple(messages), response_type, max_tokens)
        self.requests.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self._seconds)
            answer = self._answer(request)
        finally:
            self.in_flight -= 1
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Completion):
            return answer
        return Completion(answer, usage=Usage(_word_count(request.text), _word_count(answer)))

    async def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> AsyncIterator[str]:
        """The next answer of the script, word by word."""
        completion = await self.complete(messages, max_tokens=max_tokens)
        for number, word in enumerate(completion.text.split(" ")):
            yield word if number == 0 else " " + word


def _in_turn(script: Iterable[Scripted]) -> Callable[[Request], Scripted]:
    answers = iter(script)

    def answer(request: Request) -> Scripted:
        ended = LLMError(f"the script has no further answer; request: {request.question[:200]!r}")
        return next(answers, ended)

    return answer


def _word_count(text: str) -> int:
    return len(text.split())


class ReplayLLM(ScriptedLLM):
    """A model with recorded answers: for each text, the answers in turn.

    The text is the end of the first question; the turn is the number of answers already in the
    conversation. After the last recorded answer, the reply is that nothing is missing. `otherwise`
    answers about texts without a recording. Tokens are counted by `count`, or as words.
    """

    nothing_more = '{"type":"done","entities":0,"relationships":0}'

    def __init__(
        self,
        answers: Mapping[str, Sequence[str]],
        *,
        otherwise: Callable[[Request], str] | None = None,
        count: Callable[[str], int] = _word_count,
    ) -> None:
        super().__init__(self._replayed, name="replay")
        self.answers = answers
        self._otherwise = otherwise
        self._count = count

    def _replayed(self, request: Request) -> Scripted:
        question = next(m.content for m in request.messages if m.role == "user")
        answers = self._recorded_answers(question)
        if answers is not None:
            turn = sum(message.role == "assistant" for message in request.messages)
            answer = answers[turn] if turn < len(answers) else self.nothing_more
        elif self._otherwise is not None:
            answer = self._otherwise(request)
        else:
            return LLMError(f"nothing was recorded for {question[-80:]!r}")
        return Completion(answer, usage=Usage(self._count(request.text), self._count(answer)))

    def _recorded_answers(self, question: str) -> Sequence[str] | None:
        for text, answers in self.answers.items():
            if question.endswith(text):
                return answers
        return None


Subject = TypeVar("Subject")


class Contract(Generic[Subject]):
    """The requirements for a part. In your tests, inherit from a contract and override `make`;
    pytest runs the rest.
    """

    def make(self) -> Subject:
        """The part under test."""
        raise TypeError("override make() to return what is to be tested")


class LLMContract(Contract[LLM]):
    """The requirements for a model."""

    def test_it_has_a_stable_name(self) -> None:
        """The name, a part of cache keys, is not empty and always the same."""
        name = self.make().name
        assert name
        assert self.make().name == name

    def test_it_answers_with_text_and_usage(self) -> None:
        """An answer is a Completion; tokens are never negative."""
        answer = asyncio.run(self.make().complete([Message("user", "Say yes.")], max_tokens=16))
        assert isinstance(answer.text, str)
        assert answer.finish in get_args(Finish)
        assert answer.usage.input_tokens >= 0
        assert answer.usage.output_tokens >= 0


class EmbedderContract(Contract[Embedder]):
    """The requirements for an embedder."""

    def test_rows_are_unit_vectors_of_the_promised_shape(self) -> None:
        """float32, one row of length 1 for each text, even for unusual texts."""
        embedder = self.make()
        rows = asyncio.run(embedder.embed(TEXTS, kind="passage"))
        assert rows.shape == (len(TEXTS), embedder.dim)
        assert rows.dtype == np.float32
        assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-3)

    def test_it_is_deterministic(self) -> None:
        """A text always has the same vector, whatever texts are embedded with it."""
        embedder = self.make()
        alone = asyncio.run(embedder.embed(TEXTS[:1], kind="passage"))
        together = asyncio.run(embedder.embed(TEXTS, kind="passage"))
        assert np.allclose(alone[0], together[0], atol=1e-4)

    def test_nothing_gives_no_rows(self) -> None:
        """No texts give no rows, of the right width."""
        embedder = self.make()
        assert asyncio.run(embedder.embed([], kind="query")).shape == (0, embedder.dim)


class TokenizerContract(Contract[Tokenizer]):
    """The requirements for a tokenizer."""

    def test_truncation_keeps_a_prefix_within_the_limit(self) -> None:
        """For any text and limit, the result is a prefix within the limit."""
        tokenizer = self.make()
        for text in (*TEXTS, "北京大学位于北京。" * 40, "word " * 200, "x" * 500):
            for limit in (0, 1, 7, 100, 10_000):
                prefix = tokenizer.truncate(text, limit)
                assert text.startswith(prefix)
                assert tokenizer.count(prefix) <= limit

    def test_empty_text_has_no_tokens(self) -> None:
        """An empty text has no tokens."""
        assert self.make().count("") == 0


class RerankerContract(Contract[Reranker]):
    """The requirements for a reranker."""

    def test_one_finite_score_a_text(self) -> None:
        """As many scores as texts, all finite."""
        scores = asyncio.run(self.make().score("Who discovered radium?", TEXTS[:2]))
        assert len(scores) == 2
        assert np.isfinite(np.asarray(scores, np.float64)).all()


class ExtractorContract(Contract[Extractor]):
    """The requirements for an extractor."""

    def extract(self, text: str) -> t.Extraction:
        """The extraction of a text."""
        chunk = t.Chunk(id="c", document_id="d", index=0, page=1, start=0, end=len(text), text=text)
        return asyncio.run(self.make().extract(chunk))

    def test_ends_of_relations_are_entities(self) -> None:
        """A relation joins two different entities of the same chunk."""
        for text in TEXTS:
            extraction = self.extract(text)
            names = {mention.name for mention in extraction.entities}
            for relation in extraction.relations:
                assert {relation.source, relation.target} <= names
                assert relation.source != relation.target

    def test_the_same_text_gives_the_same_claims(self) -> None:
        """Extraction depends on the text alone."""
        assert self.extract(TEXTS[0]) == self.extract(TEXTS[0])

    def test_nothing_in_nothing_out(self) -> None:
        """A blank text has no entities."""
        assert self.extract(" ").entities == ()
