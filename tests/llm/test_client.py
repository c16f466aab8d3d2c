"""The client: answers are cached, shared, limited, tried again, and never lost once they are paid."""

import asyncio
import itertools
from collections.abc import Collection, Iterable

import numpy as np
import pytest

from lightrag_jsonl import (
    BudgetError,
    Completion,
    ConfigError,
    Limits,
    LLMError,
    Message,
    ResponseError,
    StorageError,
    Usage,
)
from lightrag_jsonl.core import retrying
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.llm.requests import request_key
from lightrag_jsonl.llm.scheduler import SUMMARY
from lightrag_jsonl.testing import Request, Script, ScriptedLLM
from tests.kit import prompts

TEXT = {"text": "Ann met Bob."}
HELLO = [Message("user", "Who discovered radium?")]


class MemoryCache:
    """Keeps answers in a dict; with `full`, it cannot store any more."""

    def __init__(self) -> None:
        self.answers: dict[bytes, Completion] = {}
        self.full = False

    async def get(self, key: bytes) -> Completion | None:
        return self.answers.get(key)

    async def put(self, key: bytes, completion: Completion, document: str | None = None) -> None:
        await asyncio.sleep(0)
        if self.full:
            raise StorageError("the disk is full")
        self.answers[key] = completion

    async def delete(self, keys: Collection[bytes]) -> None:
        for key in keys:
            self.answers.pop(key, None)


def make_client(
    script: Script, cache: MemoryCache | None = None, *, limit: int = 16, seconds: float = 0.0
) -> tuple[ModelClient, ScriptedLLM]:
    """A client of a model with prepared answers."""
    llm = ScriptedLLM(script, seconds=seconds)
    return connect(llm, cache, limit=limit), llm


def connect(
    llm: object, cache: MemoryCache | None = None, *, limit: int = 16, **more: object
) -> ModelClient:
    cache = MemoryCache() if cache is None else cache
    return ModelClient(llm, prompts(), cache, max_concurrent_calls=limit, **more)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits before another try."""
    monkeypatch.setattr(retrying, "FIRST_PAUSE", 0.0)


# ── the cache ───────────────────────────────────────────────────────────────────


async def test_another_request_is_another_answer() -> None:
    """Model, variables, further turns, limit and response type are all part of the key; a client
    that does not store answers leaves the cache as it is."""
    cache = MemoryCache()
    client, llm = make_client(lambda request: "x", cache)
    for _ in range(2):
        await client.text("extract-graph", TEXT)
        await client.text("extract-graph", {"text": "Ann met Cid."})
        await client.text("extract-graph", TEXT, messages=[Message("user", "more")])
        await client.text("extract-graph", TEXT, max_tokens=7)
        await client.jsonl("extract-graph", TEXT)
        assert len(llm.requests) == 5
    rehearsal = MemoryCache()
    await connect(llm, rehearsal, store_answers=False).text("extract-graph", TEXT)
    assert rehearsal.answers == {}
    other = ScriptedLLM(lambda request: "x", name="other")
    await connect(other, cache).text("extract-graph", TEXT)
    assert len(other.requests) == 1


async def test_no_call_begins_before_an_answer_is_kept() -> None:
    """However slow the store is, a kill loses no more answers than calls may be in flight."""

    class SlowCache(MemoryCache):
        may_store = asyncio.Event()

        async def put(
            self, key: bytes, completion: Completion, document: str | None = None
        ) -> None:
            await self.may_store.wait()
            await super().put(key, completion, document)

    cache = SlowCache()
    client, llm = make_client(lambda request: "x", cache, limit=2)
    asked = [
        asyncio.create_task(client.text("extract-graph", {"text": f"Ann met {name}."}))
        for name in ("Bo", "Cid", "Dee", "Eve")
    ]
    for _ in range(50):  # as far as they come
        await asyncio.sleep(0)
    assert len(llm.requests) == 2
    cache.may_store.set()
    await asyncio.gather(*asked)
    assert len(llm.requests) == len(cache.answers) == 4


def test_a_key_depends_on_the_request_alone() -> None:
    """It never changes for a release: cached answers are found again by it."""
    key = request_key("gpt-ü", [Message("user", "中文\u2028😀")], "jsonl", 7)
    assert key.hex() == "1da6e500babe73e12e3c7c2c3ea36f9b1d8f38d13756e83b0459f2fe577b14c5"
    parts = [Message("user", "a"), Message("user", "b")]
    assert request_key("m", parts, "text", None) != request_key("m", parts[::-1], "text", None)


async def test_an_answer_that_arrived_is_stored_though_nobody_waits() -> None:
    """Cancelling after the model has answered does not lose what was paid."""
    cache, arrived = MemoryCache(), asyncio.Event()

    def answer(request: Request) -> str:
        arrived.set()
        return "yes"

    client, _ = make_client(answer, cache)
    task = asyncio.create_task(client.text("extract-graph", TEXT))
    await arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [completion.text for completion in cache.answers.values()] == ["yes"]


async def test_an_answer_to_a_question_is_given_even_if_it_cannot_be_stored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Answers for an insert must be stored, or each of them would be paid again."""
    cache = MemoryCache()
    cache.full = True
    client, _ = make_client(lambda request: "yes", cache)
    assert (await client.text("extract-graph", TEXT)).text == "yes"
    assert "the disk is full" in caplog.text
    with pytest.raises(StorageError, match="disk is full"):
        await client.text("extract-graph", TEXT, priority=SUMMARY)


async def test_what_utf8_cannot_hold_reaches_no_model_and_no_cache() -> None:
    """Lone surrogates, as a cut emoji leaves them, end neither a question nor an answer."""
    client, llm = make_client(lambda request: "so \ud83c")
    reply = await client.text("extract-graph", {"text": "\ud800."})
    await client.chat([Message("user", "\ud83d")])
    sent = [message.content for request in llm.requests for message in request.messages]
    assert sent[1].endswith("\ufffd.") and sent[2:] == ["\ufffd"]
    assert reply.text == "so \ufffd"
    assert "".join(await put_all(client)) == "so \ufffd"


# ── calls at the same time ──────────────────────────────────────────────────────


async def test_those_who_wait_go_on_if_the_first_is_cancelled() -> None:
    """The call is made again by the next one, once."""
    client, llm = make_client(lambda request: "yes", seconds=0.01)
    first, *others = [asyncio.create_task(client.text("extract-graph", TEXT)) for _ in range(4)]
    while not llm.requests:
        await asyncio.sleep(0)
    first.cancel()
    replies = await asyncio.gather(*others)
    assert {reply.text for reply in replies} == {"yes"} and len(llm.requests) == 2
    with pytest.raises(asyncio.CancelledError):
        await first


# ── failures ────────────────────────────────────────────────────────────────────


async def test_a_transient_error_is_retried_and_others_are_not() -> None:
    """Three tries at most, after the pause the server asks for; nothing of a failure is cached.

    Whatever a model raises becomes an error that names it and keeps the cause; so does no model.
    """
    busy = LLMError("busy", transient=True, retry_after=0.001)
    client, llm = make_client([busy, busy, "yes", busy, busy, busy, LLMError("no model"), "now"])
    assert (await client.text("extract-graph", TEXT)).text == "yes"
    for words in ("busy", "no model"):
        with pytest.raises(LLMError, match=words):
            await client.text("extract-graph", {"text": "a"})
    assert (await client.text("extract-graph", {"text": "a"})).text == "now"
    assert len(llm.requests) == 8
    client, _ = make_client([KeyError("choices"), OSError("no route"), "yes"])
    with pytest.raises(LLMError, match="scripted failed: KeyError: 'choices'") as caught:
        await client.text("extract-graph", TEXT)
    assert isinstance(caught.value.__cause__, KeyError) and not caught.value.transient
    assert (await client.text("extract-graph", TEXT)).text == "yes"
    client = connect(None)
    assert not client.has_model("extract")
    with pytest.raises(ConfigError, match="llm="):
        await client.text("extract-graph", TEXT)


@pytest.mark.parametrize(
    "error", [TimeoutError("slow"), ConnectionResetError(), type("ReadTimeout", (Exception,), {})()]
)
async def test_an_answer_that_was_lost_is_counted_and_not_paid_again(error: Exception) -> None:
    """A model that is slower than its own client's timeout is not asked again and again."""
    client, llm = make_client([error, "yes"])
    with pytest.raises(LLMError, match=type(error).__name__):
        await client.text("extract-graph", TEXT, meter=(meter := UsageMeter()))
    assert meter.spent == Usage(calls=1) and len(llm.requests) == 1


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (Usage(np.int64(3), 2.0), Usage(3, 2, calls=1)),  # type: ignore[arg-type]
        (None, Usage(calls=1)),
        (Usage(None, 7), Usage(0, 7, calls=1)),  # type: ignore[arg-type]
        (Usage(3, 2, calls=3), Usage(3, 2, calls=3)),
    ],
)
async def test_completions_are_kept_as_plain_values(usage: Usage, counted: Usage) -> None:
    """Counts of other types, none at all, other ends: an answer is an answer."""
    client, _ = make_client([Completion("yes", usage=usage, finish="stop_sequence")])  # type: ignore[arg-type]
    reply = await client.text("extract-graph", TEXT)
    assert (reply.text, reply.completion.finish, reply.usage) == ("yes", "stop", counted)
    assert (await client.text("extract-graph", TEXT)).completion == reply.completion


@pytest.mark.parametrize("given", [Completion(None), Completion(b"yes"), object()])  # type: ignore[arg-type]
async def test_a_completion_that_cannot_be_used_is_an_error(given: object) -> None:
    """The content of a refusal is None: the error names the model, and the call is counted."""

    class Model(ScriptedLLM):
        async def complete(self, messages: object, **more: object) -> object:  # type: ignore[override]
            return given

    meter = UsageMeter()
    with pytest.raises(LLMError, match="scripted"):
        await connect(Model([])).text("extract-graph", TEXT, meter=meter)
    assert meter.spent.calls == 1


# ── usage and limits ────────────────────────────────────────────────────────────


class Limited(UsageMeter):
    """Allows two calls."""

    def check(self) -> None:
        if self.spent.calls >= 2:
            raise BudgetError("enough")


async def test_a_limit_stops_calls_but_not_cached_answers() -> None:
    """The meter is asked before each call, failed ones included, and learns what each one cost."""
    useless = LLMError("no choices", transient=True, cost=Usage(7, 5, calls=1))
    client, llm = make_client(["x", useless, "y"])
    meter = Limited()
    await client.text("extract-graph", TEXT, meter=meter)
    with pytest.raises(BudgetError):
        await client.text("extract-graph", {"text": "a"}, meter=meter)
    assert (await client.text("extract-graph", TEXT, meter=meter)).cached
    assert meter.spent.calls == len(llm.requests) == 2 and meter.spent.output_tokens == 6


async def test_a_cancelled_call_counts_as_a_call() -> None:
    """Nobody knows its tokens, but it may have been paid."""
    client, llm = make_client(["x"], seconds=30)
    meter = UsageMeter()
    task = asyncio.create_task(client.text("extract-graph", TEXT, meter=meter))
    while not llm.requests:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert meter.spent == Usage(calls=1)


# ── what is asked for ───────────────────────────────────────────────────────────


async def test_an_unreadable_json_answer_is_asked_for_once_more() -> None:
    """Then it is an error that holds the text, and neither answer stays in the cache."""
    cache, meter = MemoryCache(), UsageMeter()
    good = '{"high_level_keywords": ["a"], "low_level_keywords": ["b"]}'
    client, _ = make_client(["nonsense", good, "bad", "worse"], cache)
    value = await client.json("keywords", {"query": "who?", "history": ""}, meter)
    assert value == {"high_level_keywords": ["a"], "low_level_keywords": ["b"]}
    with pytest.raises(ResponseError) as caught:
        await client.json("keywords", {"query": "what?", "history": ""}, meter)
    assert caught.value.text == "worse" and meter.spent.calls == 4
    assert [completion.text for completion in cache.answers.values()] == [good]


async def test_readers_get_a_text() -> None:
    """An empty answer is asked for again, and not taken from the cache."""
    cache = MemoryCache()
    client, llm = make_client(["", " \n", "She."], cache)
    assert (await client.chat(HELLO)).text == "She." and len(llm.requests) == 3
    nothing = make_client(lambda request: Completion("", "length"))[0]
    assert (await nothing.text("extract-graph", TEXT)).text == ""
    with pytest.raises(LLMError, match="nothing before its token limit"):
        await nothing.chat(HELLO)


# ── streams ─────────────────────────────────────────────────────────────────────


async def put_all(client: ModelClient, question: str = "q", **more: UsageMeter) -> list[str]:
    """The pieces of an answer."""
    pieces: list[str] = []

    async def put(piece: str) -> None:
        pieces.append(piece)

    await client.chat([Message("user", question)], on_piece=put, **more)
    return pieces


async def test_a_stream_begins_after_the_thinking() -> None:
    """Readers are shown none of it."""
    client = connect(PiecesModel(["<thi", "nk>She?", "</think>", "\nRadium", "."]))
    assert await put_all(client) == ["Radium", "."]


async def test_a_reader_is_told_that_a_model_thought_until_its_limit() -> None:
    """Thoughts that were cut off are no answer, whole or in pieces; the message names the setting."""
    client, _ = make_client([Completion("<think>She may", "length")])
    with pytest.raises(LLMError, match="reasoning_effort"):
        await client.chat([Message("user", "q")])
    with pytest.raises(LLMError, match="reasoning_effort"):
        await put_all(connect(PiecesModel(["<think>", "So"])))


async def test_a_reader_sees_the_thoughts_of_a_model_that_only_thought() -> None:
    """A model that ended there had nothing else to say."""
    client, _ = make_client([Completion("<think>She may")])
    assert await put_all(client) == ["<think>She may"]


class Pieces:
    """A stream that is no generator, as that of `OpenAILLM`."""

    usage, finish = Usage(5, 2), "length"

    def __init__(self, pieces: Iterable[str]) -> None:
        self._pieces = iter(pieces)
        self.read = self.closed = 0

    def __aiter__(self) -> "Pieces":
        return self

    async def __anext__(self) -> str:
        self.read += 1
        for piece in self._pieces:
            return piece
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.closed += 1


class PiecesModel(ScriptedLLM):
    """Streams the same pieces, or answers 1,000 characters at once."""

    def __init__(self, pieces: Iterable[str]) -> None:
        super().__init__(lambda request: "长" * 1000)
        self.pieces = Pieces(pieces)

    def stream(self, messages: object, **more: object) -> Pieces:  # type: ignore[override]
        return self.pieces


async def test_a_models_own_iterator_reports_its_usage_and_finish() -> None:
    """Read at its end, where they are given; it is closed."""
    cache, meter = MemoryCache(), UsageMeter()
    model = PiecesModel("ab")
    assert await put_all(connect(model, cache), meter=meter) == ["a", "b"]
    assert meter.spent == Usage(5, 2, calls=1) and model.pieces.closed
    assert (await connect(model, cache).chat([Message("user", "q")])).cut_off


# ── limits ──────────────────────────────────────────────────────────────────────


async def test_an_answer_is_cut_off_at_its_limit() -> None:
    """In one piece or streamed, it counts as cut off there; what is shown is what is stored, and the
    stream is closed: its connection would else stay open.
    """
    model = PiecesModel(itertools.repeat("words "))
    client = connect(model, limits=Limits(answer_characters=100))
    reply = await client.text("extract-graph", TEXT)
    assert (reply.text, reply.cut_off) == ("长" * 100, True)
    shown = "".join(await put_all(client))
    streamed = await client.chat([Message("user", "q")])
    assert streamed.cached and streamed.cut_off and streamed.text == shown
    assert len(shown) == 100 and model.pieces.read < 20 and model.pieces.closed


async def test_a_call_fails_after_its_time_and_costs_a_call() -> None:
    """Also where the model ignores that it is cancelled; an answer it gives then still counts."""
    stubborn = False

    class Hanging:
        name = "hanging"

        async def complete(self, messages: object, **more: object) -> Completion:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if not stubborn:
                    raise
            return Completion("late")

    meter = UsageMeter()
    client = connect(Hanging(), limits=Limits(call_seconds=0.01))
    with pytest.raises(LLMError, match=r"hanging failed: TimeoutError: no answer in 0.01 seconds"):
        await client.text("extract-graph", TEXT, meter=meter)
    assert meter.spent.calls == 1
    stubborn = True
    assert (await client.text("extract-graph", TEXT)).text == "late"
