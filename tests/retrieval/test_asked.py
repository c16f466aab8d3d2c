"""An index that is read when it is asked: a model reads what questions find, and nothing else."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import (
    AsyncLightRAG,
    Chunk,
    ConfigError,
    Document,
    IndexOptions,
    Limits,
    LLMError,
)
from lightrag_jsonl.testing import Request, Scripted, ScriptedLLM
from tests.kit import index, problems, read_names, view

TEXTS = {
    "mill": "Orla Finch rents the Grey Mill from Tobias Venn since the flood.",
    "bridge": "Tobias Venn paid for the bridge at Sallow Ford with a loan from Ruth Amberly.",
    "loan": "Ruth Amberly keeps her papers in the archive of Castle Dunmore.",
    "school": "The school of Hollow Green teaches weaving to children from Eastmere.",
    "ferry": "A ferry runs from Eastmere to Port Lorne every morning.",
}
QUESTION = "Who rents the Grey Mill?"
ANSWER = "Orla Finch rents it. [1]"


def documents() -> list[Document]:
    return [Document(text, id=id) for id, text in TEXTS.items()]


def is_reading(request: Request) -> bool:
    """Whether the model is asked to read a chunk."""
    return "Text:\n" in request.messages[-1].content


def answering(request: Request) -> Scripted:
    """A model that reads chunks, finds no keywords, and answers."""
    if is_reading(request):
        return read_names(request)
    if request.response_type == "json":
        return '{"high_level_keywords": [], "low_level_keywords": []}'
    return ANSWER


def read_texts(llm: ScriptedLLM) -> list[str]:
    """The ids of the texts that the model has read, as often as it has read them."""
    asked = [request.messages[-1].content for request in llm.requests if is_reading(request)]
    return [id for content in asked for id, text in TEXTS.items() if text in content]


async def asked_index(rag: AsyncLightRAG) -> None:
    await rag.insert(documents(), read="asked", progress=False)


async def test_an_insert_asks_a_model_for_nothing(tmp_path: Path) -> None:
    """Names, vectors and words are there at once, and nothing was spent."""
    llm = ScriptedLLM(answering)
    async with index(tmp_path, llm) as rag:
        report = await rag.insert(documents(), read="asked", progress=False)
        status = await rag.status()
    assert llm.requests == []
    assert report.usage.calls == 0
    assert report.entities > 5
    assert status.reading.read == "asked"
    assert (status.reading.chunks_read, status.reading.chunks_unread) == (0, 5)


async def test_a_question_has_the_best_unread_chunks_read(tmp_path: Path) -> None:
    """The answer says which chunks were read and what that cost, and its context has their records;
    a second round may follow names, within the number of chunks.
    """
    llm = ScriptedLLM(answering)
    async with index(tmp_path, llm) as rag:
        await asked_index(rag)
        answer = await rag.query(QUESTION, read_chunks=2)
        trace = await rag.traces.get(str(answer.trace_id))
        status = await rag.status()
    assert len(read_texts(llm)) == len(answer.reading.chunk_ids) == 2
    assert read_texts(llm)[0] == "mill"
    assert 0 < answer.reading.usage.input_tokens < answer.usage.input_tokens
    assert answer.reading.usage.calls == 2
    assert answer.text == ANSWER
    assert any(relation.keywords == ("knows",) for relation in answer.context.relations)
    assert trace.reading == answer.reading
    assert trace.stages.index("reading") < trace.stages.index("retrieval")
    assert (status.reading.chunks_read, status.reading.questions) == (2, 1)
    assert status.reading.tokens_for_rest > 0


async def test_nothing_is_read_twice(tmp_path: Path) -> None:
    """The same question again, and after opening the index again, reads only what was not read."""
    llm = ScriptedLLM(answering)
    async with index(tmp_path, llm) as rag:
        await asked_index(rag)
        await rag.query(QUESTION, read_chunks=3)
    async with index(tmp_path, llm) as rag:
        answer = await rag.query(QUESTION)
        await rag.query(QUESTION)
    assert sorted(read_texts(llm)) == sorted(TEXTS)
    assert len(answer.reading.chunk_ids) == 2


async def test_the_graph_is_the_one_of_a_complete_reading(tmp_path: Path) -> None:
    """Whatever questions had the chunks read, and in whatever order: with all chunks read, the index is
    equal to one that a model has read while inserting, and to one that was upgraded.
    """
    for name in ("all", "asked", "upgraded"):
        async with index(tmp_path / name, ScriptedLLM(answering)) as rag:
            await rag.insert(documents(), read="all" if name == "all" else "asked", progress=False)
            if name == "asked":
                for question in ("What runs to Port Lorne?", QUESTION, "Who keeps papers?"):
                    await rag.query(question, read_chunks=2)
                await rag.query(QUESTION)
            elif name == "upgraded":
                await rag.retry(upgrade=True, progress=False)
        assert problems(tmp_path / name) == []
    whole = view(tmp_path / "all")
    assert view(tmp_path / "asked") == whole
    assert view(tmp_path / "upgraded") == whole


async def test_a_deleted_document_leaves_nothing_of_what_was_read(tmp_path: Path) -> None:
    """Deletion is exact, also of chunks that a question had read."""
    for name in ("with", "without"):
        async with index(tmp_path / name, ScriptedLLM(answering)) as rag:
            texts = [one for one in documents() if name == "with" or one.id != "bridge"]
            await rag.insert(texts, read="asked", progress=False)
            await rag.query(QUESTION, read_chunks=8)
            if name == "with":
                await rag.delete("bridge")
    assert view(tmp_path / "with") == view(tmp_path / "without")


async def test_a_snapshot_brings_back_what_was_unread(tmp_path: Path) -> None:
    """A rollback takes back what was read since; the answers of the model are still there."""
    llm = ScriptedLLM(answering)
    async with index(tmp_path, llm) as rag:
        await asked_index(rag)
        before = view(tmp_path)
        await rag.admin.snapshot("unread")
        await rag.query(QUESTION)
        after = view(tmp_path)
        await rag.admin.rollback("unread")
        assert view(tmp_path) == before
        asked = len(read_texts(llm))
        await rag.query(QUESTION)
    assert view(tmp_path) == after
    assert len(read_texts(llm)) == asked
    assert problems(tmp_path) == []


async def test_a_filter_limits_what_is_read(tmp_path: Path) -> None:
    """What a question may not see is not read for it."""
    llm = ScriptedLLM(answering)
    async with index(tmp_path, llm) as rag:
        await asked_index(rag)
        await rag.query(QUESTION, where={"id": ["ferry", "school"]})
    assert set(read_texts(llm)) <= {"ferry", "school"}


@pytest.mark.parametrize("more", [{"read_chunks": 0}, {"mode": "naive"}, {"mode": "bypass"}])
async def test_some_questions_read_nothing(tmp_path: Path, more: dict[str, Any]) -> None:
    """0 chunks are none, and a search without the graph would not gain by it."""
    llm = ScriptedLLM(answering)
    async with index(tmp_path, llm) as rag:
        await asked_index(rag)
        await rag.query(QUESTION, **more)
    assert read_texts(llm) == []


@pytest.mark.parametrize("question", [{"mode": "overview"}, {"question": "What is this about?"}])
async def test_a_question_about_the_whole_says_what_was_not_read(
    tmp_path: Path, question: dict[str, Any]
) -> None:
    """Nothing is read for it; it says how much a model has read, on a listener, in the trace and in print,
    until everything was read.
    """
    llm = ScriptedLLM(answering)
    seen: list[Any] = []
    asked = {"question": QUESTION, **question}
    async with index(tmp_path, llm) as rag:
        await asked_index(rag)
        await rag.query(QUESTION, read_chunks=2)
        answer = await rag.query(**asked, listener=seen.append)
        trace = await rag.traces.get(str(answer.trace_id))
        assert len(read_texts(llm)) == 2
        assert answer.reading.chunk_ids == ()
        assert "2 of all 5" in answer.reading.problem
        assert answer.reading.problem in str(answer)
        assert trace.reading == answer.reading
        assert any(event.stage == "reading" for event in seen)
        assert (await rag.query(**asked, read_chunks=0)).reading.problem == ""
        await rag.retry(upgrade=True, progress=False)
        assert (await rag.query(**asked)).reading.problem == ""


async def test_the_number_of_chunks_is_an_option_of_the_index(tmp_path: Path) -> None:
    """A question that says nothing has as many read as the options of the index say."""
    llm = ScriptedLLM(answering)
    async with index(tmp_path, llm, options=IndexOptions(read_chunks=1)) as rag:
        await asked_index(rag)
        await rag.query(QUESTION)
    assert read_texts(llm) == ["mill"]


async def test_an_index_that_was_read_reads_nothing_more(tmp_path: Path) -> None:
    """Without `read="asked"` questions cost what they did, also where rules read some documents."""
    llm = ScriptedLLM(answering)
    async with index(tmp_path) as rag:
        await rag.insert(documents(), progress=False)
    async with index(tmp_path, llm) as rag:
        answer = await rag.query(QUESTION)
    assert read_texts(llm) == []
    assert answer.reading.usage.calls == 0


async def test_the_index_remembers_how_it_is_read(tmp_path: Path) -> None:
    """Later inserts read nothing either, until told otherwise; a wrong word is an error."""
    llm = ScriptedLLM(answering)
    mill, bridge, *others = documents()
    async with index(tmp_path, llm) as rag:
        await rag.insert(mill, read="asked", progress=False)
    async with index(tmp_path, llm) as rag:
        await rag.insert(bridge, progress=False)
        assert llm.requests == []
        with pytest.raises(ConfigError, match="'all' or 'asked'"):
            await rag.insert(bridge, read="later", progress=False)  # type: ignore[arg-type]
        await rag.insert(others, read="all", progress=False)
    assert sorted(read_texts(llm)) == ["ferry", "loan", "school"]


@pytest.mark.parametrize("permanent", [False, True])
async def test_a_failing_model_costs_the_reading_and_not_the_answer(
    tmp_path: Path, permanent: bool
) -> None:
    """The answer comes from what is there, and says so; what rules read stays, and is read later."""
    is_failing = True

    def failing(request: Request) -> Scripted:
        if is_failing and is_reading(request):
            return LLMError("no such luck", permanent=permanent)
        return answering(request)

    llm = ScriptedLLM(failing)
    async with index(tmp_path, llm) as rag:
        await asked_index(rag)
        before = view(tmp_path)
        answer = await rag.query(QUESTION)
        assert answer.text == ANSWER
        assert answer.reading.chunk_ids == ()
        assert "no such luck" in answer.reading.problem
        assert "no such luck" in str(answer)
        assert view(tmp_path) == before
        is_failing = False
        await rag.retry(upgrade=True, progress=False)
        status = await rag.status()
    assert status.reading.chunks_unread == 0


async def test_a_slow_model_is_not_waited_for(tmp_path: Path) -> None:
    """After `Limits.read_seconds` the answer is written from what is there."""

    class Slow(ScriptedLLM):
        async def complete(self, messages: Any, **more: Any) -> Any:
            if "Text:\n" in messages[-1].content:
                await asyncio.Event().wait()
            return await super().complete(messages, **more)

    options = IndexOptions(limits=Limits(read_seconds=0.05))
    async with index(tmp_path, Slow(answering), options=options) as rag:
        await asked_index(rag)
        answer = await rag.query(QUESTION)
    assert answer.text == ANSWER
    assert "after 0.05 seconds" in answer.reading.problem


def is_second_request(request: Request) -> bool:
    """Whether the model is asked once more about a chunk that it has answered."""
    return any(message.role == "assistant" for message in request.messages)


GLEANING = IndexOptions(max_gleanings=1, glean_min_tokens=0)


def let_time_pass(seconds: float) -> None:
    """Put the clock of the event loop forward."""
    loop = asyncio.get_running_loop()
    clock = loop.time
    loop.time = lambda: clock() + seconds  # type: ignore[method-assign]


@pytest.mark.parametrize("limits", [Limits(), Limits(read_tokens=1)])
async def test_what_was_answered_before_the_end_counts(tmp_path: Path, limits: Limits) -> None:
    """If time or tokens end between two answers about a chunk, the question has the records of the first,
    and a retry asks for the second alone.
    """
    is_slow = limits.read_tokens > 1

    class SlowAtSecond(ScriptedLLM):
        async def complete(self, messages: Any, **more: Any) -> Any:
            if is_slow and any(message.role == "assistant" for message in messages):
                let_time_pass(limits.read_seconds)
                await asyncio.Event().wait()
            return await super().complete(messages, **more)

    def twice(request: Request) -> Scripted:
        nothing_more = '{"type": "done", "entities": 0, "relationships": 0}'
        return nothing_more if is_second_request(request) else answering(request)

    llm = SlowAtSecond(twice)
    options = replace(GLEANING, limits=limits, max_concurrent_calls=1)
    async with index(tmp_path, llm, options=options) as rag:
        await rag.insert(Document(TEXTS["mill"], id="mill"), read="asked", progress=False)
        answer = await rag.query(QUESTION)
        assert len(answer.reading.chunk_ids) == 1
        assert any(relation.keywords == ("knows",) for relation in answer.context.relations)
        assert ("seconds" if is_slow else "tokens") in answer.reading.problem
        assert answer.text == ANSWER
    is_slow = False
    async with index(tmp_path, llm, options=GLEANING) as rag:
        asked = len(llm.requests)
        await rag.retry(progress=False)
        (only,) = llm.requests[asked:]
        assert is_second_request(only)
        (document,) = await rag.documents()
        assert document.state == "done"
    async with index(tmp_path / "all", ScriptedLLM(twice), options=GLEANING) as rag:
        await rag.insert(Document(TEXTS["mill"], id="mill"), progress=False)
    assert view(tmp_path) == view(tmp_path / "all")
    assert problems(tmp_path) == []


async def test_an_own_extractor_is_not_waited_for_either(tmp_path: Path) -> None:
    """A user's extractor has the same time as a model; the next question tries the chunk again."""
    calls: list[str] = []

    class Slow:
        name = "slow"

        async def extract(self, chunk: Chunk) -> Any:
            calls.append(chunk.text)
            await asyncio.Event().wait()
            raise AssertionError

    options = IndexOptions(limits=Limits(read_seconds=0.05))
    async with index(tmp_path, extractor=Slow(), options=options) as rag:
        await rag.insert(Document(TEXTS["mill"], id="mill"), read="asked", progress=False)
        for _ in range(2):
            answer = await rag.query(QUESTION)
            assert "after 0.05 seconds" in answer.reading.problem
            assert answer.context.chunks
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(read_seconds=0.05), "模型在 0.05 秒内没有读完，此前的结果已保留"),
        (Limits(read_tokens=1), "已达到提问时阅读的用量上限，此前的结果已保留"),
    ],
)
async def test_a_chinese_index_says_in_chinese_what_was_not_read(
    tmp_path: Path, limits: Limits, reason: str
) -> None:
    """Why a reading ended is told in the language of the words around it."""

    class Slow:
        name = "slow"

        async def extract(self, chunk: Chunk) -> Any:
            await asyncio.Event().wait()
            raise AssertionError

    options = IndexOptions(max_concurrent_calls=1, limits=limits)
    parts = {"extractor": Slow()} if limits.read_seconds < 1 else {"llm": ScriptedLLM(answering)}
    async with index(tmp_path, options=options, language="zh", **parts) as rag:
        await asked_index(rag)
        context = await rag.retrieve(QUESTION)
    assert context.reading.problem == reason


async def test_the_tokens_of_a_reading_are_limited(tmp_path: Path) -> None:
    """No further call is made after `Limits.read_tokens`; what was read until then counts."""
    llm = ScriptedLLM(answering)
    options = IndexOptions(max_concurrent_calls=1, limits=Limits(read_tokens=1))
    async with index(tmp_path, llm, options=options) as rag:
        await asked_index(rag)
        answer = await rag.query(QUESTION)
    assert len(read_texts(llm)) == len(answer.reading.chunk_ids) == 1
    assert "tokens" in answer.reading.problem


async def test_questions_at_once_read_a_chunk_once(tmp_path: Path) -> None:
    """Of one process, and of two, whoever is first; each gets the richer graph."""
    llm = ScriptedLLM(answering, seconds=0.01)
    async with index(tmp_path, llm) as rag, index(tmp_path, llm) as other:
        await asked_index(rag)
        questions = [one.query(QUESTION) for one in (rag, rag, other, other)]
        answers = await asyncio.gather(*questions)
    assert sorted(read_texts(llm)) == sorted(TEXTS)
    for answer in answers:
        assert answer.reading.problem == ""
        assert any(relation.keywords == ("knows",) for relation in answer.context.relations)
    assert problems(tmp_path) == []


async def test_a_question_that_is_given_up_leaves_the_reading_to_others(tmp_path: Path) -> None:
    """Whoever waited for its chunks reads them then, and nothing stays locked."""
    has_begun = asyncio.Event()
    is_held = True

    class Held(ScriptedLLM):
        async def complete(self, messages: Any, **more: Any) -> Any:
            if is_held and "Text:\n" in messages[-1].content:
                has_begun.set()
                await asyncio.Event().wait()
            return await super().complete(messages, **more)

    llm = Held(answering)
    async with index(tmp_path, llm) as rag:
        await asked_index(rag)
        first = asyncio.create_task(rag.query(QUESTION))
        await has_begun.wait()
        second = asyncio.create_task(rag.query(QUESTION))
        for _ in range(100):  # the second question gets as far as it can
            await asyncio.sleep(0)
        is_held = False
        first.cancel()
        answer = await second
        await rag.insert("Hal Dray built a mill.", progress=False)
    assert sorted(read_texts(llm)) == sorted(TEXTS)
    assert answer.reading.problem == ""
    assert problems(tmp_path) == []


async def test_a_trace_says_what_was_read_also_as_rdf(tmp_path: Path) -> None:
    """The chunks that were read are named, and the trace is sound."""
    async with index(tmp_path, ScriptedLLM(answering)) as rag:
        await asked_index(rag)
        answer = await rag.query(QUESTION, read_chunks=2)
        exported = await rag.traces.export(str(answer.trace_id))
        assert await rag.traces.verify() == ()
    for id in answer.reading.chunk_ids:
        assert f"<urn:chunk:{id}>" in exported


async def test_every_request_begins_with_the_same_words(tmp_path: Path) -> None:
    """The fixed part comes first, byte for byte, so that servers can cache it: the text comes last."""
    llm = ScriptedLLM(answering)
    async with index(tmp_path, llm) as rag:
        await rag.insert(documents(), progress=False)
    systems = {request.messages[0] for request in llm.requests if is_reading(request)}
    assert len(systems) == 1
    for request in filter(is_reading, llm.requests):
        assert request.messages[-1].content.endswith(tuple(TEXTS.values()))


async def test_a_question_does_not_wait_for_an_insert(tmp_path: Path) -> None:
    """While another process writes, a question is answered from what is there, and says so."""
    llm = ScriptedLLM(answering)
    options = IndexOptions(lock_timeout=0.01)
    async with index(tmp_path, llm, options=options) as rag, index(tmp_path, llm) as other:
        await asked_index(rag)
        async with other.engine.indexing.writer.exclusive():
            answer = await rag.query(QUESTION)
    assert answer.text == ANSWER
    assert "being written to" in answer.reading.problem
    assert read_texts(llm) == []


async def test_a_listener_sees_the_reading(tmp_path: Path) -> None:
    """How far it is, as it happens, and at the end what was read."""
    seen: list[Any] = []
    async with index(tmp_path, ScriptedLLM(answering)) as rag:
        await asked_index(rag)
        answer = await rag.query(QUESTION, read_chunks=3, listener=seen.append)
        stored = await rag.traces.get(str(answer.trace_id))
    progress = [
        (event.chunks_done, event.chunks_known) for event in seen if event.stage == "progress"
    ]
    assert progress[0] == (0, 3)
    assert progress[-1] == (3, 3)
    assert "progress" not in stored.stages


async def test_the_rest_is_read_by_worth_until_a_budget_ends(tmp_path: Path) -> None:
    """First what questions have found most often, then what has the most frequent names; what was
    read until the end of the budget stays.
    """
    llm = ScriptedLLM(answering)
    async with index(tmp_path, llm, options=IndexOptions(max_concurrent_calls=1)) as rag:
        await asked_index(rag)
        for _ in range(3):
            await rag.query("Which ferry runs to Port Lorne?", read_chunks=0, chunk_top_k=1)
        report = await rag.retry(upgrade=True, max_tokens=1, progress=False)
        assert read_texts(llm) == ["ferry"]
        assert report.stopped
        status = await rag.status()
        assert status.reading.chunks_unread == 4
        report = await rag.retry(upgrade=True, progress=False)
        assert not report.stopped
        status = await rag.status()
    assert status.reading.chunks_unread == 0
    assert set(read_texts(llm)[1:3]) == {"mill", "bridge"} or "loan" in read_texts(llm)[1:3]


async def test_an_answer_that_had_chunks_read_is_kept_for_similar_questions(tmp_path: Path) -> None:
    """The stored answer is about the state after the reading."""
    llm = ScriptedLLM(answering)
    async with index(tmp_path, llm) as rag:
        await asked_index(rag)
        await rag.query(QUESTION, similarity_reuse=0.99)
        asked = len(llm.requests)
        await rag.query(QUESTION, similarity_reuse=0.99)
    assert len(llm.requests) == asked


async def test_without_a_model_nothing_is_read(tmp_path: Path) -> None:
    """An index may be made before there is a model; a later one reads."""
    llm = ScriptedLLM(answering)
    async with index(tmp_path) as rag:
        await asked_index(rag)
        answer = await rag.query(QUESTION)
    assert answer.reading.problem == ""
    async with index(tmp_path, llm) as rag:
        await rag.query(QUESTION, read_chunks=1)
    assert read_texts(llm) == ["mill"]
