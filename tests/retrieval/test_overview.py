"""Overviews: the whole text, from its beginning to its end, within the budget."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from lightrag_jsonl import Chunk, Document, Keywords, QueryParam
from lightrag_jsonl.lenses.excerpts import (
    ExcerptChoice,
    split_sentences,
    whole_sentences,
)
from lightrag_jsonl.lenses.overview import chunk_weights
from lightrag_jsonl.lenses.reports import FRAME_TOKENS
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.text.question_kinds import asks_about_course
from tests.kit import index

PLACES = (
    "Aldermoor",
    "Birkhaven",
    "Corran",
    "Dunmere",
    "Eskdale",
    "Farholm",
    "Gillsand",
    "Hexwick",
)


def _voyage() -> Document:
    """A text of eight sections, each about a place of its own, with words that add nothing."""
    sections = []
    for number, place in enumerate(PLACES):
        filler = " ".join(
            f"It was a day like all the days before, number {day}." for day in range(40)
        )
        sections.append(f"Captain Ilse reached {place} in year {1800 + number}. {filler}")
    return Document("\n\n".join(sections), id="voyage", title="The voyage")


async def test_excerpts_reach_from_the_beginning_to_the_end(tmp_path: Path) -> None:
    """Each place of the voyage is quoted, in the order of the text, in a context of a few hundred tokens."""
    async with index(tmp_path, options={"chunk_tokens": 300}) as rag:  # type: ignore[arg-type]
        await rag.insert(_voyage())
        context = await rag.retrieve("What is this about?", mode="overview", max_total_tokens=900)
    excerpts = context.prompt.partition("order of the text")[2]
    positions = [excerpts.find(f"reached {place}") for place in PLACES]
    assert -1 not in positions
    assert positions == sorted(positions)
    assert [chunk.index for chunk in context.chunks] == sorted(
        chunk.index for chunk in context.chunks
    )
    assert any("Ilse" in name for community in context.communities for name in community.entities)


@pytest.mark.parametrize(
    ("language", "listed", "said"),
    [
        (
            "en",
            "Present: Ada Lind, Bo Hart, Cy Moss, Di Penn, Ed Vale, Flo Wynn.",
            "Ada Lind asked for a lamp.",
        ),
        (
            "zh",
            "到会的有王小明、李大勇、陈玉兰、赵国强、周文斌、孙丽华。",
            "王小明提出更换灯塔的灯。",
        ),
    ],
)
async def test_a_list_of_names_is_no_excerpt(
    tmp_path: Path, language: str, listed: str, said: str
) -> None:
    """Who was present says nothing of what minutes are about."""
    async with index(tmp_path, language=language) as rag:
        await rag.insert(Document(f"{listed}\n\n{said}", id="minutes"))
        context = await rag.retrieve("What is this about?", mode="overview")

    assert said in context.prompt
    assert listed not in context.prompt


async def test_documents_of_one_title_are_told_apart_by_their_files(tmp_path: Path) -> None:
    """The folder if that is enough, or else the file; never the whole path."""
    async with index(tmp_path / "kb") as rag:
        for file in ("one/log.md", "two/log.md", "three/bell.md", "three/lamp.md"):
            source = str(tmp_path / "texts" / file)
            title = "Log" if file.endswith("log.md") else "Notes"
            await rag.insert(Document(f"{file} is about Ada.", title=title, source=source, id=file))
        context = await rag.retrieve("What is this about?", mode="overview")

    assert sorted(context.documents.values()) == [
        "Log (one)",
        "Log (two)",
        "Notes (bell.md)",
        "Notes (lamp.md)",
    ]


@pytest.mark.parametrize("budget", [1, 20, 60, 150, 400, 2_000, 30_000])
async def test_the_budget_holds(tmp_path: Path, budget: int) -> None:
    """No overview is longer than the budget, and each number leads to the chunk that is quoted."""
    async with index(tmp_path, options={"chunk_tokens": 300}) as rag:  # type: ignore[arg-type]
        await rag.insert(
            [_voyage(), Document("周师傅在窑厂烧玻璃。１２ 😀 [3] is no number.", id="玻璃")]
        )
        context = await rag.retrieve("Summarize it.", mode="overview", max_total_tokens=budget)
        assert context.tokens == rag.engine.tokenizer.count(context.prompt) <= budget
    for number, chunk in enumerate(context.chunks, start=1):
        for start, end in context.excerpts[chunk.id]:
            assert 0 <= start < end <= len(chunk.text)
        first_start, first_end = context.excerpts[chunk.id][0]
        line = re.search(rf"^\[{number}\] (.*)$", context.prompt, re.MULTILINE)
        assert line is not None
        assert " ".join(chunk.text[first_start:first_end].split())[:10] in line[1]
    assert f"\n[{len(context.chunks) + 1}]" not in context.prompt


@pytest.mark.slow
async def test_mix_answers_questions_about_the_whole_from_an_overview(tmp_path: Path) -> None:
    """The words of a question, or the model that names its keywords, say that the whole is asked about."""
    reply = '{"high_level_keywords": ["voyage"], "low_level_keywords": [], "whole": true}'
    llm = ScriptedLLM(
        lambda request: reply if request.response_type == "json" else "She sailed [1]."
    )
    async with index(tmp_path) as rag:
        await rag.insert(_voyage())
        assert (await rag.retrieve("Summarize the book.", mode="mix")).communities
        assert (await rag.retrieve("How did the ship of Ilse change?", mode="mix")).communities
        assert not (await rag.retrieve("Who reached Corran?", mode="mix")).communities
        assert not (await rag.retrieve("Summarize the book.", mode="local")).communities
    async with index(tmp_path, llm) as rag:
        answer = await rag.query("What kind of voyage is it?", mode="mix")
        assert answer.context.communities
        assert answer.citations[0].document_id == "voyage"
        assert "in the order of the text" in llm.requests[-1].question


async def test_an_extractor_of_keywords_may_ask_for_the_whole(tmp_path: Path) -> None:
    """The user's own keyword extractor says by `whole` that a question asks about everything."""

    class Whole:
        async def keywords(self, question: str, history: object) -> Keywords:
            return Keywords(high_level=("voyage",), whole=True)

    async with index(tmp_path, keyword_extractor=Whole()) as rag:
        await rag.insert(_voyage())
        assert (await rag.retrieve("Corran?", mode="mix")).communities


@pytest.mark.parametrize(
    ("title", "question", "is_whole"),
    [
        ("The Heron Log", "What is The Heron Log about?", True),
        ("The Heron Log", "what are the main themes of “the heron log”?", True),
        ("The Heron Log", "What role does the sea play in The Heron Log?", True),
        ("Heron Log 1931", "Give me an overview of Heron Log 1931.", True),
        ("The Heron Log", "Who wrote The Heron Log?", False),
        ("The Heron Log", "How many chapters does The Heron Log have?", False),
        ("The Heron Log", "What is the heron about?", False),
        ("The Heron Log", "Where is Corran in The Heron Log?", False),
        ("The Heron Log", "When did The Heron Log happen?", False),
        ("The Heron Log", "Where did the events of The Heron Log start?", False),
        ("鹭鸶号日志", "《鹭鸶号日志》讲了什么？", True),
        ("鹭鸶号日志", "鹭鸶号日志的主要人物有哪些？", True),
        ("鹭鸶号日志", "大海在《鹭鸶号日志》中起什么作用？", True),
        ("鹭鸶号日志", "总结这批资料的要点。", True),
        ("鹭鸶号日志", "鹭鸶号的船长是谁？", False),
        ("鹭鸶号日志", "鹭鸶号日志有多少章？", False),
        ("鹭鸶号日志", "鹭鸶号日志的作者是哪里人？", False),
        ("鹭鸶号日志", "鹭鸶号日志的事发生在什么时候？", False),
        ("鹭鸶号日志", "这两份资料讲什么？", True),
    ],
)
async def test_a_title_is_a_name_for_the_whole(
    tmp_path: Path, title: str, question: str, *, is_whole: bool
) -> None:
    """A question that names a document by its title and asks for what any text has leads to an overview,
    whatever keywords the caller gives; and the context says so by its mode.
    """
    async with index(tmp_path) as rag:
        await rag.insert(replace(_voyage(), title=title))
        context = await rag.retrieve(question, QueryParam(ll_keywords=("Corran",)))
        assert context.mode == ("overview" if is_whole else "mix")
        assert bool(context.excerpts) == is_whole


@pytest.mark.parametrize(
    ("text", "question", "mode"),
    [
        (
            "The Mill Street Fire burned down twelve houses.",
            "What is the Mill Street Fire about?",
            "mix",
        ),
        (
            "The Mill Street Fire burned twelve houses.",
            "What were the results of the Mill Street Fire?",
            "mix",
        ),
        ("Twelve houses burned down.", "What is the Mill Street Fire about?", "overview"),
        ("磨坊街大火烧毁房屋十二间。", "磨坊街大火的结果是什么？", "mix"),
        ("烧毁房屋十二间。", "磨坊街大火的结果是什么？", "overview"),
    ],
)
async def test_the_title_of_one_passage_is_searched_for(
    tmp_path: Path, text: str, question: str, mode: str
) -> None:
    """A page of an encyclopedia that is one passage with its title is found among others, not lost in an
    overview of all of them; where no word leads to the page, the overview has it.
    """
    title = "磨坊街大火" if "磨坊街" in question else "Mill Street Fire"
    others = [Document(f"{place} is a port.", id=place, title=place) for place in PLACES]
    page = Document(text, id="fire", title=title)
    async with index(tmp_path) as rag:
        await rag.insert([*others, page])
        context = await rag.retrieve(question, mode="mix")
    assert context.mode == mode
    assert "fire" in [chunk.document_id for chunk in context.chunks[: 1 if mode == "mix" else None]]


CHANGES = (
    "How does Scrooge's attitude to money change?",
    "How does the narrator's view of the sea change over the years?",
    "In what ways does Hedda change throughout?",
    "How has the company developed since 2001?",
    "How did the relationship between Ilse and Odo evolve?",
    "How have prices changed over time?",
    "What changes does the mill undergo?",
    "Describe the captain from the beginning to the end.",
    "他对金钱的态度如何变化？",
    "主人公的性格是怎么变的？",
    "公司的战略是如何演变的？",
    "曹操的势力如何一步步壮大？",
    "请说明这家公司的发展历程。",
    "窑厂是怎样发展壮大起来的？",
    "What part does the river play in the novel?",
    "What kind of role did Odo play in these reports?",
    "友情在书中扮演了怎样的角色？",
)
NO_CHANGES = (
    "How do I change the password?",
    "How can I change my e-mail address?",
    "How do you develop photographs?",
    "How do users change settings?",
    "How does the editor change the font?",
    "How did the king change the law?",
    "How does the team develop new products?",
    "How did Einstein develop his theory?",
    "Who changed the rules?",
    "How did the balance change between 2020 and 2021?",
    "What role does the pump play in the cooling of the hall?",
    "What part does Odo play in the crew?",
    "北闸起什么作用？",
    "老罗在维修中起了什么作用？",
    "What is the exchange rate?",
    "What is the development budget?",
    "怎么改密码？",
    "如何改变字体大小？",
    "我该如何成长？",
    "怎样发展新客户？",
    "系统如何发生错误的？",
    "谁改变了计划？",
    "刘备是谁？",
    "１２月的汇率是多少？😀",
)


@pytest.mark.parametrize("question", CHANGES)
def test_questions_about_a_change(question: str) -> None:
    """What changes in the course of a text is asked for by the shape of the question."""
    assert asks_about_course(question)


@pytest.mark.parametrize("question", NO_CHANGES)
def test_instructions_and_single_acts_are_no_change(question: str) -> None:
    """Who changes something, and how one does it, is an ordinary question, though its words are those
    of a change."""
    assert not asks_about_course(question)


def test_wrapped_lines_are_one_sentence() -> None:
    """A line break within a sentence does not end it; headings, lists and Chinese lines stay apart."""
    line = "The captain sailed on, and " * 5
    text = f"# Title\n\n{line}\nreached the harbor. 她到了港口。\n他没有。"
    spans = whole_sentences(text)
    assert [text[start:end][-8:] for start, end in spans][1:] == [
        "harbor.",
        "她到了港口。",
        "他没有。",
    ] or any("and \nreached" in text[start:end] for start, end in spans)
    assert all(text[start:end].strip() for start, end in spans)


def test_the_choice_does_not_repeat_itself() -> None:
    """Of sentences that say the same, one is chosen before a sentence about something else is missed."""
    texts = [
        f"Captain Ilse sailed to the harbor of {place}." for place in ("Corran", "Corran", "Corran")
    ]
    texts += ["The smith Odo forged anchors in Dunmere.", "周师傅在窑厂烧玻璃。"]
    chunks = [_chunk(text, number) for number, text in enumerate(texts)]
    names = [{1: "Ilse"}] * 3 + [{2: "Odo"}, {3: "周师傅"}]
    choice = ExcerptChoice(
        split_sentences(chunks, names),
        question_terms=frozenset(),
        chunk_weights=chunk_weights(chunks),
    )
    chosen = choice.choose(45, 3)
    assert {0, 3, 4} >= set(chosen) and len(chosen) >= 2


def test_what_fits_is_chosen_whole() -> None:
    """A budget for all sentences leaves none out, and one token less does."""
    chunks = [
        _chunk("Ilse sailed. Odo forged anchors."),
        _chunk("周师傅在窑厂烧玻璃。他卖玻璃。", 1),
    ]
    sentences = split_sentences(chunks, [{}, {}])
    choice = ExcerptChoice(sentences, question_terms=frozenset(), chunk_weights=[1.0, 1.0])
    tokens = sentences.rows["tokens"].sum()
    whole = math.ceil(tokens) + 2 * FRAME_TOKENS

    everything = choice.choose(whole, FRAME_TOKENS)
    less = choice.choose(whole - 2, FRAME_TOKENS)

    assert [len(spans) for spans in everything.values()] == [2, 2]
    assert sum([len(spans) for spans in less.values()]) < 4


def _chunk(text: str, index: int = 0) -> Chunk:
    return Chunk(f"chunk-{index}", "d", index, 1, 0, len(text), text, len(text.split()) + 4)


async def test_a_question_about_some_documents_gets_more_of_these(tmp_path: Path) -> None:
    """Within a small budget, most sentences are of the document that is like the question."""
    topics = {"bees": "bees honey hives", "ships": "ships harbor sails", "glass": "glass kiln sand"}
    documents = [
        Document(
            " ".join([f"In year {1700 + year} the {words} changed again." for year in range(60)]),
            id=id,
        )
        for id, words in topics.items()
    ]
    async with index(tmp_path) as rag:
        await rag.insert(documents)
        context = await rag.retrieve(
            "How did ships, harbor and sails change?", mode="overview", max_total_tokens=500
        )
    lengths = dict.fromkeys(topics, 0)
    for chunk in context.chunks:
        lengths[chunk.document_id] += len(context.excerpts[chunk.id])
    assert lengths["ships"] > lengths["bees"] + lengths["glass"]
