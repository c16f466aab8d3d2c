"""Questions that only the conversation before them explains."""

import contextlib
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import LLM, AsyncLightRAG, Document, Message, QueryParam
from lightrag_jsonl.testing import HashEmbedder, Request, ScriptedLLM
from tests.kit import GRAPH_MODES, RANKING_MODES, Mode, index, unzipped

FIRST_ZH, THEN_ZH = "曹操是谁？", "他的父亲原来姓什么"
FIRST, THEN = "Who is Scrooge?", "Who was his partner?"
TALK = (Message("user", FIRST), Message("assistant", "An old miser."))
CAROL = {
    "partner": "Jacob Marley had been the partner of Scrooge, and was his sole friend.",
    "clerk": "Bob Cratchit was a clerk. His wife Martha was his partner in all his troubles.",
    "fezziwig": "Old Fezziwig danced with Mrs. Fezziwig, who was worthy to be his partner.",
    "tim": "Tiny Tim was the son of Bob Cratchit, and walked with a crutch.",
}


def sanguo(data: Path) -> list[Document]:
    """The paragraphs of the first chapter of 三国."""
    text = unzipped(data / "text" / "sanguo_yanyi.txt.gz")
    text = text[text.index("第一回") : text.index("第二回 ")]
    pieces = [re.sub(r"<.*?>", "", piece).strip() for piece in text.split("</p>")]
    return [Document(piece, id=f"p{n}") for n, piece in enumerate(pieces) if len(piece) > 20]


@contextlib.asynccontextmanager
async def carol(folder: Path, llm: LLM | None = None, **more: Any) -> AsyncIterator[AsyncLightRAG]:
    """Four passages, read without a model; asked with one."""
    more.setdefault("embedder", HashEmbedder())
    async with index(folder, embedder=more["embedder"]) as rag:
        await rag.insert([Document(text, id=id) for id, text in CAROL.items()])
    async with index(folder, llm, **more) as rag:
        yield rag


@pytest.mark.parametrize("mode", RANKING_MODES)
async def test_without_a_model_rules_make_a_follow_up_searchable(
    tmp_path: Path, mode: Mode
) -> None:
    """It takes the names of the turns before; asked alone, it leads elsewhere."""
    param = QueryParam(mode=mode, conversation_history=TALK)
    async with carol(tmp_path) as rag:
        context = await rag.retrieve(THEN, param)
        alone = await rag.retrieve(THEN, QueryParam(mode="naive"))
    assert context.chunks[0].document_id == "partner"
    assert context.question == THEN and context.keywords.question.startswith("Scrooge ")
    assert alone.chunks[0].document_id != "partner" and not alone.keywords.question


@pytest.mark.slow
@pytest.mark.parametrize("in_chunks", [True, False])
async def test_a_chinese_follow_up_finds_the_passage_first(
    tmp_path: Path, shared_data: Path, in_chunks: bool
) -> None:
    """他 is 曹操, whose father's name was another; no other paragraph of the chapter is nearer, and
    two chunks of it at most, though each has a father and a 曹操 somewhere.
    """
    talk = [Message("user", FIRST_ZH), Message("assistant", "曹操是骑都尉。")]
    async with index(tmp_path, language="zh", embedder=HashEmbedder()) as rag:
        paragraphs = sanguo(shared_data)
        text = "\n\n".join([paragraph.text for paragraph in paragraphs])
        await rag.insert([text] if in_chunks else paragraphs)
        for mode in RANKING_MODES:
            context = await rag.retrieve(THEN_ZH, mode=mode, conversation_history=talk)
            best = context.chunks[: 3 if in_chunks else 1]
            assert any("本姓夏侯氏" in chunk.text for chunk in best), mode


def found(request: Request, question: object = "Who was Scrooge's partner?") -> str:
    """A model that makes the question whole, and answers."""
    if request.response_type == "json":
        lists = {"high_level_keywords": [], "low_level_keywords": []}
        return json.dumps({**lists, "question": question})
    return "Marley [1]."


@pytest.mark.parametrize("mode", RANKING_MODES)
async def test_the_model_makes_the_question_whole_and_answers_the_users_own(
    tmp_path: Path, mode: Mode
) -> None:
    """Every search uses the whole question; the answer's prompt holds what the user wrote. Without
    a history nothing is rewritten, and `naive` makes no such call.
    """
    llm = ScriptedLLM(found)
    async with carol(tmp_path, llm) as rag:
        param = QueryParam(mode=mode, conversation_history=TALK, user_prompt="Be brief.")
        answer = await rag.query(THEN, param)
        assert answer.context.chunks[0].document_id == "partner"
        assert answer.context.keywords.question == "Who was Scrooge's partner?"
        asked, answered = llm.requests
        assert '"question"' in asked.text and FIRST in asked.text and answer.usage.calls == 2
        assert FIRST in answered.text and "Be brief." in answered.text
        assert answered.question.endswith(f"Question: {THEN}")
        assert "Scrooge's partner?" not in answered.question
        trace = await rag.traces.get(str(answer.trace_id))
        assert trace.keywords == answer.context.keywords
        llm.requests.clear()
        answer = await rag.query(THEN, QueryParam(mode=mode))
        assert len(llm.requests) == 1 + (mode in GRAPH_MODES)
        assert '"question"' not in llm.requests[0].text and not answer.context.keywords.question


@pytest.mark.parametrize("question", [None, "", "  ", 7, ["Who?"], "谁\n是他？ \ud800"])
async def test_whatever_the_model_gives_as_question_is_no_error(
    tmp_path: Path, question: object
) -> None:
    """What is no text leaves the user's own words to search with."""
    async with carol(tmp_path, ScriptedLLM(lambda request: found(request, question))) as rag:
        param = QueryParam(mode="naive", conversation_history=TALK)
        context = await rag.retrieve(THEN, param)
        assert context.chunks and context.keywords.question in ("", "谁 是他？ \ufffd")
