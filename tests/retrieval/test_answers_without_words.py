"""What small models write in place of an answer is no answer, and the reader gets the passages."""

from pathlib import Path

import pytest

from lightrag_jsonl import Document, QueryParam
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import Language, index

TEXTS: dict[Language, str] = {
    "en": "Ann Lee keeps the mill at Marsh End.",
    "zh": "李安看守沼泽村的磨坊。",
}
QUESTIONS: dict[Language, str] = {"en": "Who keeps the mill?", "zh": "谁看守磨坊？"}
NOTES: dict[Language, str] = {"en": "no answer in words", "zh": "没有给出文字回答"}
NAIVE = QueryParam(mode="naive")


@pytest.mark.parametrize("streamed", [False, True], ids=["query", "stream"])
@pytest.mark.parametrize(
    ("language", "reply"),
    [
        ("en", "[1]"),
        ("en", "**[1][7]** ."),
        ("en", "Who keeps the mill? [1]"),
        ("en", "Question: Who keeps the mill?\nAnswer:"),
        ("en", "N/A"),
        ("zh", "【1】。"),
        ("zh", "答案：[1]"),
        ("zh", "谁看守磨坊"),
        ("zh", "不适用。"),
    ],
)
async def test_the_passages_stand_in_for_an_answer_without_words(
    language: Language, reply: str, streamed: bool, tmp_path: Path
) -> None:
    """The answer says so, and quotes the sources with their numbers; the next question asks anew."""
    llm = ScriptedLLM([reply, "Ann Lee [1]."])
    async with index(tmp_path, llm, language=language) as rag:
        await rag.insert_records(Document(TEXTS[language]), [])
        question = QUESTIONS[language]
        if streamed:
            stream = rag.stream(question, NAIVE)
            pieces = [piece async for piece in stream]
            answer = stream.answer
            assert "".join(pieces) == answer.text
        else:
            answer = await rag.query(question, NAIVE)
        note, _, quotes = answer.text.partition(NOTES[language])
        assert reply.strip() not in note and TEXTS[language].rstrip(".。") in quotes
        assert answer.citations and not str(answer).count("(!)")
        assert (await rag.query(question, NAIVE)).text == "Ann Lee [1]."


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("How many mills are there?", "2"),
        ("Is there a mill?", "No."),
        ("Is there a mill at Marsh End?", "无 [1]"),
        ("Which mills burned down?", "None [1]."),
        ("Is Ann Lee the miller?", "Ann Lee is the miller [1]."),
        ("What is the symbol of the mill?", "Na"),
        ("Ann Lee", "Ann Lee keeps the mill."),
    ],
)
async def test_short_answers_are_answers(question: str, reply: str, tmp_path: Path) -> None:
    """They stay as the model wrote them, whole or streamed."""
    async with index(tmp_path, ScriptedLLM([reply, reply])) as rag:
        await rag.insert_records(Document(TEXTS["en"]), [])
        assert (await rag.query(question, NAIVE)).text == reply
        pieces = [piece async for piece in rag.stream(question, NAIVE)]
        assert "".join(pieces) == reply
