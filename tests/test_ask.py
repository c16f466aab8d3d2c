"""The one door to the model: cached, shared, limited, tried again, and never losing what was paid."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import IndexOptions, OpenAILLM
from lightrag_jsonl.adapters import FunctionLLM
from lightrag_jsonl.ask import Ask, Reply, request_key
from lightrag_jsonl.errors import BudgetError, ConfigError, LLMError, PromptError, ResponseError
from lightrag_jsonl.indexing.runs import Budget
from lightrag_jsonl.spending import Spending
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.writer import Job, Result
from lightrag_jsonl.testing import Request, Script, ScriptedLLM
from lightrag_jsonl.types import Completion, Message, Usage
from tests.indexing.kit import entity, jsonl, prompts, stored
from tests.servers import ScriptedServer, chat_reply, stream_reply

TEXT = {"text": "Ann met Bob."}


@contextlib.asynccontextmanager
async def asking(
    folder: Path, script: Script, *, slots: int = 16, name: str = "scripted", seconds: float = 0.0
) -> AsyncIterator[tuple[Ask, ScriptedLLM]]:
    llm = ScriptedLLM(script, name=name, seconds=seconds)
    with contextlib.closing(Database(folder)) as database:
        yield Ask(llm, prompts(), database, max_concurrent_calls=slots), llm


def test_an_answer_is_paid_once(tmp_path: Path) -> None:
    """In one process and in the next; a cached reply costs nothing and says so."""

    async def ask_once() -> tuple[bool, Usage, int]:
        async with asking(tmp_path, lambda request: jsonl(entity("Ann"))) as (ask, llm):
            reply = (await ask.jsonl("extract-graph", TEXT)).reply
            return reply.cached, reply.usage, len(llm.requests)

    cached, usage, calls = asyncio.run(ask_once())
    assert (cached, usage.calls, calls) == (False, 1, 1) and usage.input_tokens > 0
    assert asyncio.run(ask_once()) == (True, Usage(), 0)


async def test_another_request_is_another_answer(tmp_path: Path) -> None:
    """Model, variables, further turns, limit and response type are all part of the key."""
    async with asking(tmp_path, lambda request: "x") as (ask, llm):
        await ask.text("extract-graph", TEXT)
        await ask.text("extract-graph", {"text": "Ann met Cid."})
        await ask.text("extract-graph", TEXT, then=[Message("user", "more")])
        await ask.text("extract-graph", TEXT, max_tokens=7)
        await ask.jsonl("extract-graph", TEXT)
        assert len(llm.requests) == 5
        await ask.text("extract-graph", TEXT)
        assert len(llm.requests) == 5
    async with asking(tmp_path, lambda request: "x", name="other") as (ask, llm):
        await ask.text("extract-graph", TEXT)
        assert len(llm.requests) == 1


@given(st.lists(st.tuples(st.sampled_from(("system", "user", "assistant")), st.text()), min_size=1))
def test_answers_paid_for_earlier_are_found_again(turns: list[tuple[str, str]]) -> None:
    """The key of a request never changes: the hash of its JSON, as the standard library writes it."""
    turns = [*turns, ("user", "".join(map(chr, range(160))) + "\u2028\ufffd中文😀")]
    written = json.dumps(["gpt-ü", "jsonl", 7, turns], ensure_ascii=False).encode()
    messages = [Message(role, text) for role, text in turns]

    assert request_key("gpt-ü", messages, "jsonl", 7) == sha256(written).digest()


async def test_what_no_utf8_can_hold_reaches_no_model(tmp_path: Path) -> None:
    """A lone surrogate, in a variable or in a further turn, ends no question."""
    async with asking(tmp_path, lambda request: "x") as (ask, llm):
        await ask.text("extract-graph", {"text": "Ann \ud800."}, then=[Message("user", "b\udfff")])
        await ask.chat([Message("user", "\ud83d")])
        said = [message.content for request in llm.requests for message in request.messages]
        assert "Ann \ufffd." in said[-3] and said[-2:] == ["b\ufffd", "\ufffd"]


async def test_equal_requests_at_once_share_one_call(tmp_path: Path) -> None:
    """The others wait for its answer, and have it for nothing; also where it is an error."""
    async with asking(tmp_path, ["yes", LLMError("no")], seconds=0.01) as (ask, llm):
        replies = await asyncio.gather(*(ask.text("extract-graph", TEXT) for _ in range(9)))
        assert len(llm.requests) == 1 and {reply.text for reply in replies} == {"yes"}
        assert sum(reply.usage.calls for reply in replies) == 1
        other = [ask.text("extract-graph", {"text": "z"}) for _ in range(5)]
        errors = await asyncio.gather(*other, return_exceptions=True)
        assert len(llm.requests) == 2 and all(isinstance(e, LLMError) for e in errors)


async def test_who_waits_goes_on_where_the_payer_was_cancelled(tmp_path: Path) -> None:
    """The call is made again by the next one, once."""
    async with asking(tmp_path, lambda request: "yes", seconds=0.01) as (ask, llm):
        first = asyncio.create_task(ask.text("extract-graph", TEXT))
        await asyncio.sleep(0)
        others = [asyncio.create_task(ask.text("extract-graph", TEXT)) for _ in range(3)]
        await asyncio.sleep(0)
        first.cancel()
        replies = await asyncio.gather(*others)
        assert {reply.text for reply in replies} == {"yes"} and len(llm.requests) == 2
        with pytest.raises(asyncio.CancelledError):
            await first


async def test_who_is_cancelled_while_waiting_for_anothers_call_is(tmp_path: Path) -> None:
    """Cancelled together, nobody pays on behalf of the others."""
    async with asking(tmp_path, lambda request: "yes", seconds=30) as (ask, llm):
        asked = [asyncio.create_task(ask.text("extract-graph", TEXT)) for _ in range(5)]
        await asyncio.sleep(0.01)
        for task in asked:
            task.cancel()
        ended = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 10)
        assert all(isinstance(end, asyncio.CancelledError) for end in ended)
        assert len(llm.requests) == 1


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (Completion("yes", usage=Usage(np.int64(3), 2.0)), Usage(3, 2, calls=1)),  # type: ignore[arg-type]
        (Completion("yes", usage=None), Usage(calls=1)),  # type: ignore[arg-type]
        (Completion("yes", usage=Usage(None, 7)), Usage(0, 7, calls=1)),  # type: ignore[arg-type]
        (Completion("yes", finish=None), Usage(calls=1)),  # type: ignore[arg-type]
        (Completion("yes", finish="stop_sequence"), Usage(calls=1)),  # type: ignore[arg-type]
    ],
)
def test_completions_are_kept_as_plain_values(
    tmp_path: Path, given: Completion, kept: Usage
) -> None:
    """Counts of other kinds, none at all, other ends: an answer is an answer."""

    async def run() -> None:
        async with asking(tmp_path, lambda request: given) as (ask, _):
            reply = await ask.text("extract-graph", TEXT)
            assert (reply.text, reply.completion.finish, reply.usage) == ("yes", "stop", kept)
            assert (await ask.text("extract-graph", TEXT)).completion == reply.completion

    asyncio.run(run())


@pytest.mark.parametrize(
    "given",
    [Completion(None), Completion(b"yes"), Completion("yes", usage=Usage("many"))],  # type: ignore[arg-type]
)
def test_a_completion_that_is_none_is_an_error_of_its_own(
    tmp_path: Path, given: Completion
) -> None:
    """The content of a refusal is None: that chunk has failed, not the insert."""

    async def run() -> None:
        async with asking(tmp_path, lambda request: given) as (ask, _):
            with pytest.raises(LLMError, match="scripted"):
                await ask.text("extract-graph", TEXT)

    asyncio.run(run())


async def test_an_answer_that_arrived_is_kept_though_nobody_waits(tmp_path: Path) -> None:
    """Cancelling after the model has answered does not lose what was paid."""
    arrived = asyncio.Event()

    def answer(request: Request) -> str:
        arrived.set()
        return "yes"

    async with asking(tmp_path, answer) as (ask, _):
        task = asyncio.create_task(ask.text("extract-graph", TEXT))
        await arrived.wait()
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    async with asking(tmp_path, []) as (ask, _llm):
        assert (await ask.text("extract-graph", TEXT)).text == "yes"


async def test_an_answer_is_committed_before_anyone_sees_it(tmp_path: Path) -> None:
    """Whoever has the answer can find it in the database."""
    async with asking(tmp_path, lambda request: "yes") as (ask, _):
        reply = await ask.text("extract-graph", TEXT)
        kept = stored(tmp_path, "SELECT key, text, model, prompt FROM completions")
        assert kept == [(reply.key, "yes", "scripted", "extract-graph")]


async def test_what_goes_on_from_a_paid_answer_is_new(tmp_path: Path) -> None:
    """It is not looked for, so it is paid for; kept it is all the same, and found by who looks."""
    async with asking(tmp_path, lambda request: "x") as (ask, llm):
        more = [Message("assistant", "x"), Message("user", "more")]
        for new, calls in ((True, 1), (False, 1), (True, 2)):
            await ask.text("extract-graph", TEXT, then=more, new=new)
            assert len(llm.requests) == calls
        (kept,) = stored(tmp_path, "SELECT count(*) FROM completions")
        assert kept == (1,)


async def test_answers_wait_for_company_that_may_come(tmp_path: Path) -> None:
    """An answer is committed at once where every call in flight has its own already."""

    class Watched(Database):
        urgent: ClassVar[list[bool]] = []

        def committed(self, job: Job[Result], **how: bool) -> asyncio.Future[Result]:
            self.urgent.append(how["urgent"])
            return super().committed(job, **how)

    with contextlib.closing(Watched(tmp_path)) as database:
        llm = ScriptedLLM(lambda request: "x")
        ask = Ask(llm, prompts(), database, max_concurrent_calls=3)
        await asyncio.gather(*(ask.text("extract-graph", {"text": str(n)}) for n in range(3)))
        await ask.text("extract-graph", TEXT)
    assert Watched.urgent == [False, False, True, True]


@pytest.mark.parametrize("slots", [1, 3, 16])
async def test_never_more_calls_than_slots(tmp_path: Path, slots: int) -> None:
    """And as many as there are slots, where there is enough to do."""
    async with asking(tmp_path, lambda r: "x", slots=slots, seconds=0.002) as (ask, llm):
        await asyncio.gather(*(ask.text("extract-graph", {"text": str(n)}) for n in range(40)))
        assert llm.most_in_flight == slots


async def test_a_passing_error_is_tried_again_and_others_are_not(tmp_path: Path) -> None:
    """Three tries at most, after the pause the server asks for; nothing of a failure is cached."""
    busy = LLMError("busy", transient=True, retry_after=0.001)
    script = [busy, busy, "yes", busy, busy, busy, LLMError("no such model"), "now"]
    async with asking(tmp_path, script) as (ask, llm):
        assert (await ask.text("extract-graph", TEXT)).text == "yes"
        with pytest.raises(LLMError, match="busy"):
            await ask.text("extract-graph", {"text": "a"})
        with pytest.raises(LLMError, match="no such model"):
            await ask.text("extract-graph", {"text": "a"})
        assert (await ask.text("extract-graph", {"text": "a"})).text == "now"
        assert len(llm.requests) == 8


async def test_an_answer_that_got_lost_is_counted_and_not_paid_again(tmp_path: Path) -> None:
    """One call of unknown tokens: a model that is slower than its timeout is not asked on and on."""
    lost = LLMError("no answer in time", transient=True, unheard=True)
    async with asking(tmp_path, [lost, "now"]) as (ask, llm):
        with pytest.raises(LLMError, match="in time"):
            await ask.text("extract-graph", TEXT, spending=(spending := Spending()))
        assert spending.spent == Usage(calls=1) and len(llm.requests) == 1
        assert (await ask.text("extract-graph", TEXT)).text == "now"


@pytest.mark.parametrize(
    "error", [TimeoutError("slow"), ConnectionResetError(), type("ReadTimeout", (Exception,), {})()]
)
async def test_a_model_of_ones_own_whose_time_is_up_is_not_asked_on(
    tmp_path: Path, error: Exception
) -> None:
    """Whatever its client calls that, as a function and as a model."""

    async def slow(prompt: str) -> str:
        requests.append(prompt)
        raise error

    requests: list[str] = []
    with contextlib.closing(Database(tmp_path)) as database:
        for llm in (FunctionLLM(slow), ScriptedLLM([error])):
            ask = Ask(llm, prompts(), database, max_concurrent_calls=1)
            with pytest.raises(LLMError):
                await ask.text("extract-graph", TEXT, spending=(spending := Spending()))
            assert spending.spent == Usage(calls=1)
    assert len(requests) == 1


async def test_what_cannot_be_used_is_counted_and_asked_for_within_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every try that was paid is one of the calls that may be made."""
    monkeypatch.setattr("lightrag_jsonl.ask.FIRST_PAUSE", 0.0)
    useless = LLMError("no choices", transient=True, cost=Usage(7, 5, calls=1))
    async with asking(tmp_path, lambda request: useless) as (ask, llm):
        with pytest.raises(LLMError, match="no choices"):
            await ask.text("extract-graph", TEXT, spending=(spending := Spending()))
        assert spending.spent == Usage(21, 15, calls=3) and len(llm.requests) == 3
        budget = Budget(IndexOptions(max_calls=2))
        with pytest.raises(BudgetError, match="2 of 2 calls"):
            await ask.text("extract-graph", TEXT, spending=budget)
        assert budget.spent.calls == 2 and len(llm.requests) == 5


async def test_requests_that_were_sent_again_use_up_the_limit(tmp_path: Path) -> None:
    """A client says how many of them it took to get an answer."""
    answer = Completion("yes", usage=Usage(7, 5, calls=3))
    async with asking(tmp_path, lambda request: answer) as (ask, _):
        budget = Budget(IndexOptions(max_calls=3))
        assert (await ask.text("extract-graph", TEXT, spending=budget)).usage.calls == 3
        with pytest.raises(BudgetError, match="3 of 3 calls"):
            await ask.text("extract-graph", {"text": "a"}, spending=budget)


async def test_an_unreadable_json_answer_is_asked_for_once_more(tmp_path: Path) -> None:
    """Then it is an error with the text in it, and neither answer stays in the cache."""
    good = '{"high_level_keywords": ["a"], "low_level_keywords": ["b"]}'
    variables = {"query": "who?", "history": ""}
    async with asking(tmp_path, ["nonsense", good]) as (ask, _):
        value = await ask.json("keywords", variables, spending := Spending())
        assert value == {"high_level_keywords": ["a"], "low_level_keywords": ["b"]}
        assert spending.spent.calls == 2
    async with asking(tmp_path, ["bad", "worse"]) as (ask, _):
        with pytest.raises(ResponseError) as caught:
            await ask.json("keywords", {"query": "what?", "history": ""}, spending)
        assert caught.value.text == "worse" and spending.spent.calls == 4
    assert stored(tmp_path, "SELECT text FROM completions") == [(good,)]


async def test_a_spent_budget_stops_calls_but_not_cached_answers(tmp_path: Path) -> None:
    """The limit is asked before each call, and told what each one cost."""

    class Two(Spending):
        def check(self) -> None:
            if self.spent.calls >= 2:
                raise BudgetError("enough")

    async with asking(tmp_path, lambda r: "x") as (ask, llm):
        budget = Two()
        for number in (1, 2, 1, 2):
            await ask.text("extract-graph", {"text": str(number)}, spending=budget)
        with pytest.raises(BudgetError):
            await ask.text("extract-graph", {"text": "3"}, spending=budget)
        assert len(llm.requests) == 2


async def test_a_stream_is_kept_whole_and_read_from_the_cache(tmp_path: Path) -> None:
    """The pieces put together are the answer; the second time it costs nothing."""
    variables = {
        "context": "c",
        "history": "",
        "response_type": "t",
        "query": "q",
        "user_prompt": "",
    }
    needed = {name: variables[name] for name in prompts().prompt("answer").inputs}
    async with asking(tmp_path, ["one two three"]) as (ask, _):
        for pieces in (["one", " two", " three"], ["one two three"]):
            replies: list[Reply] = []
            stream = ask.stream("answer", needed, replies)
            assert [piece async for piece in stream] == pieces
            assert [reply.usage.calls for reply in replies] == [int(len(pieces) > 1)]


def test_who_is_spoken_to_gets_a_text(tmp_path: Path) -> None:
    """An empty answer is asked for again, and not kept; where the limit left none, it is told."""

    async def run() -> None:
        script = ["", " \n", "She."]
        async with asking(tmp_path, script) as (ask, llm):
            hello = [Message("user", "Who discovered radium?")]
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("lightrag_jsonl.ask.FIRST_PAUSE", 0.0)
                assert (await ask.chat(hello)).text == "She."
            assert len(llm.requests) == 3
            assert [piece async for piece in ask.stream_chat(hello)] == ["She."]

    async def cut() -> None:
        async with asking(tmp_path, lambda request: Completion("", "length")) as (ask, llm):
            with pytest.raises(LLMError, match="nothing before its token limit"):
                await ask.chat([Message("user", "What?")])
            assert len(llm.requests) == 1
            assert (await ask.text("extract-graph", TEXT)).text == ""
            with pytest.raises(LLMError, match="nothing"):
                await ask.text("extract-graph", TEXT, spoken=True)

    asyncio.run(run())
    asyncio.run(cut())


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_a_cut_answer_is_known_as_cut(
    reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Streamed or whole, it is kept as what it is, and the log tells who could ask for more."""
    spoken = stream_reply(["She ", "dis"], finish=reason)
    whole = chat_reply("She dis", finish=reason)

    async def run(address: str) -> None:
        llm = OpenAILLM("m", base_url=address, api_key="k")
        with contextlib.closing(Database(tmp_path)) as database:
            ask = Ask(llm, prompts(), database, max_concurrent_calls=1)
            for number in ("1", "2"):
                messages = [Message("user", number)]
                if number == "1":
                    assert "".join([piece async for piece in ask.stream_chat(messages)])
                reply = await ask.chat(messages)
                assert reply.cached == (number == "1") and reply.text == "She dis"
                assert reply.completion.finish == reason

    with ScriptedServer([spoken, whole]) as server:
        asyncio.run(run(server.base_url))
    told = [record for record in caplog.records if "cut at the token limit of m" in record.message]
    assert len(told) == (2 if reason == "length" else 0)


async def test_an_answer_cut_inside_a_character_is_kept(tmp_path: Path) -> None:
    """Half a surrogate pair, as a cut emoji leaves it, is replaced, and the answer is not lost."""
    async with asking(tmp_path, lambda request: "so \ud83c") as (ask, llm):
        assert (await ask.text("extract-graph", TEXT)).text == "so \ufffd"
        assert [piece async for piece in ask.stream("extract-graph", {"text": "Cid"})]
        assert (await ask.text("extract-graph", TEXT)).cached
        assert (await ask.text("extract-graph", {"text": "Cid"})).text == "so \ufffd"
        assert len(llm.requests) == 2


async def test_records_are_checked_and_cuts_are_told(tmp_path: Path) -> None:
    """A JSONL answer is read by the prompt's own schema; its finish is kept in the cache too."""
    answer = Completion(jsonl(entity("Ann"), {"type": "entity"}) + '\n{"type"', "length")
    async with asking(tmp_path, [answer]) as (ask, _):
        for _ in range(2):
            asked = await ask.jsonl("extract-graph", TEXT)
            assert asked.result.records == (entity("Ann"),) and asked.result.truncated
            assert [one.reason for one in asked.result.rejections] == ["schema", "truncated"]
            assert asked.reply.completion.finish == "length"


async def test_rows_are_held_to_the_table_that_comes_with_the_question(tmp_path: Path) -> None:
    """Where a variable holds the schema it counts here too; one that is none costs no call."""
    table = {"fields": [{"name": "item", "required": True}, {"name": "price", "type": "int"}]}
    answer = '{"item":"chair","price":3}\n{"colour":"red"}\n{"item":"table","price":"dear"}'
    async with asking(tmp_path, [answer]) as (ask, llm):
        result = (await ask.jsonl("extract-rows", {"text": "…", "schema": table})).result
        assert result.records == ({"item": "chair", "price": 3},)
        assert [one.reason for one in result.rejections] == ["schema", "schema"]
        with pytest.raises(PromptError, match="schema"):
            await ask.jsonl("extract-rows", {"text": "…", "schema": {}})
        assert len(llm.requests) == 1


async def test_without_a_model_the_error_says_what_to_pass(tmp_path: Path) -> None:
    """A call that needs one is a `ConfigError`."""
    with contextlib.closing(Database(tmp_path)) as database:
        ask = Ask(None, prompts(), database, max_concurrent_calls=1)
        assert not ask.has_model
        with pytest.raises(ConfigError, match="llm="):
            await ask.text("extract-graph", TEXT)
