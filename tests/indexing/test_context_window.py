"""Models with a small window: chunks, conversations about chunks, and contexts of questions fit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import Completion, Document, IndexOptions, LLMError, Message
from lightrag_jsonl.llm.context_window import ContextWindow, fitted_options
from lightrag_jsonl.testing import Request, ScriptedLLM
from tests.kit import TOKENIZER, entity, index, jsonl, relation

TEXT = "Ann keeps the mill at Marsh End. Bob brings her the grain. " * 12
WINDOW = 2_048
RESUMING = IndexOptions(max_gleanings=1, max_resumes=4)


class WindowedLLM(ScriptedLLM):
    """A model that says how large its window is, and holds callers to it."""

    def __init__(self, *, context_tokens: int | None, limit: int) -> None:
        super().__init__(self._answer_within, name="windowed")
        self.context_tokens = context_tokens
        self._limit = limit

    def _answer_within(self, request: Request) -> Completion | LLMError:
        if used_tokens(request.messages) > self._limit:
            return LLMError("the request is too long", refused=True, too_long=True)
        turn = len(self.requests)
        names = [f"Person {turn}-{number}" for number in range(8)]
        records = [entity(name, f"{name} works at the mill, day after day. " * 3) for name in names]
        pairs = [relation(names[0], name, f"{names[0]} pays {name}.") for name in names[1:]]
        is_last = turn > 3
        return Completion(jsonl(*records, *pairs), "stop" if is_last else "length")


def used_tokens(messages: Sequence[Message]) -> int:
    """The tokens of a request, by the counter that the index uses."""
    return sum(TOKENIZER.count(turn.content) for turn in messages)


async def extraction_by(llm: ScriptedLLM, folder: Path, options: IndexOptions) -> Any:
    """What the model reads in the text, which is one chunk."""
    async with index(folder, llm, options=options) as rag:
        (extraction,) = await rag.extract(TEXT)
    return extraction


async def test_a_resumed_and_gleaned_conversation_fits_the_window(tmp_path: Path) -> None:
    """With the room for an answer; names stand for what was written, and nothing that was read is lost."""
    llm = WindowedLLM(context_tokens=WINDOW, limit=WINDOW)
    extraction = await extraction_by(llm, tmp_path / "kb", RESUMING)

    assert len(llm.requests) == 5 and not extraction.error
    for request in llm.requests:
        assert request.max_tokens is not None
        assert used_tokens(request.messages) + request.max_tokens <= WINDOW
    assert len(extraction.entities) == 8 * len(llm.requests)
    assert '{"type": "entity", "name": "Person 2-7"}' in llm.requests[2].text
    assert "day after day" not in llm.requests[2].text


async def test_a_refused_conversation_is_shortened(tmp_path: Path) -> None:
    """If nobody said how large the window is, the refusal says that it is too small; what was read
    before counts in any case.
    """
    llm = WindowedLLM(context_tokens=None, limit=1_900)
    extraction = await extraction_by(llm, tmp_path / "kb", RESUMING)
    refused = [request for request in llm.requests if used_tokens(request.messages) > 1_900]

    assert refused and not extraction.error
    assert len(extraction.entities) == 8 * (len(llm.requests) - len(refused))


async def test_a_text_too_long_for_the_window_is_a_failure(tmp_path: Path) -> None:
    """It is asked about once or twice, not for ever."""
    llm = WindowedLLM(context_tokens=None, limit=100)
    extraction = await extraction_by(llm, tmp_path / "kb", RESUMING)
    assert extraction.state == "failed" and "too long" in extraction.error
    assert len(llm.requests) == 1


async def test_chunks_are_cut_for_the_window(tmp_path: Path) -> None:
    """So that instructions, chunk and an answer twice as long fit; a large window changes nothing."""
    for window, has_one_chunk in ((WINDOW, False), (32_768, True)):
        llm = WindowedLLM(context_tokens=window, limit=window)
        async with index(tmp_path / str(window), llm) as rag:
            await rag.insert(Document(TEXT * 4, id="mill"))
            (document,) = await rag.documents()
        assert (document.chunks == 1) == has_one_chunk


@pytest.mark.parametrize("window", [600, 2_048, 4_096, 8_192, 131_072])
def test_fitted_options_leave_room(window: int) -> None:
    """Whatever the window; sizes never grow."""
    options = fitted_options(IndexOptions(), extract=window, summarize=window)
    assert options.chunk_tokens <= min(1_200, window // 2)
    assert options.chunk_overlap <= options.chunk_tokens // 2
    assert options.summarize_group_tokens <= min(12_000, window // 2)
    assert fitted_options(IndexOptions(), extract=None, summarize=None) == IndexOptions()


@pytest.mark.slow
async def test_the_context_of_a_question_fits_the_window(tmp_path: Path) -> None:
    """Although many more passages were found."""
    window = 3_000

    def answer(request: Request) -> str:
        return "Ann keeps the mill [1]." if "Question:" in request.text else ""

    llm = ScriptedLLM(answer)
    documents = [Document(f"Mill {number}. {TEXT}", id=f"mill-{number}") for number in range(30)]
    async with index(tmp_path / "kb") as rag:
        await rag.insert(documents)
    llm.context_tokens = window  # type: ignore[attr-defined]
    async with index(tmp_path / "kb", llm) as rag:
        await rag.query("Who keeps the mill?", mode="naive")
    assert used_tokens(llm.requests[-1].messages) < window - 200


def test_room_counts_more_than_the_counter() -> None:
    """The model's own tokenizer may need more tokens; without a window there is no limit."""
    messages = [Message("user", "x" * 1_000)]
    window = ContextWindow(tokens=2_000, count=len)
    room = window.room(messages)
    assert room is not None and 700 < room < 1_000
    assert window.answer_limit(messages, 500) == 500
    assert window.answer_limit(messages, None) == room
    unknown = ContextWindow(tokens=None, count=len)
    assert unknown.has_room(messages) and unknown.answer_limit(messages, None) is None
