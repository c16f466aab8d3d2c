"""Counting and listing: complete lists from the graph, each item with its source, and never a guess."""

import re
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import AsyncLightRAG, Document, Keywords
from lightrag_jsonl.core.answers import ListRequest
from lightrag_jsonl.core.languages import FIXED_WORDS, known_language
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import entity, index, relation

PRODUCTS = ("Anvil １", "Bellows", "Crucible 😀", "铁砧")


async def _insert(rag: AsyncLightRAG) -> None:
    """Two makers of things, a city, and people who work there or founded the firms."""
    for product in PRODUCTS:
        records = [
            entity("Tolva", kind="company"),
            entity(product, kind="product"),
            relation("Tolva", product, keywords=["makes"]),
        ]
        text = f"Tolva makes the {product} in Dunmere."
        await rag.insert_records(Document(text, id=f"makes-{product}", title="catalogue"), records)
    records = [
        entity("Brisk", kind="company"),
        entity("Kettle", kind="product"),
        entity("Ada Orne", kind="person"),
        entity("Odo Lind", kind="person"),
        entity("Dunmere", kind="place"),
        entity("Lindow", kind="location"),
        relation("Brisk", "Kettle", keywords=["makes"]),
        relation("Tolva", "Kettle", keywords=["repairs"]),
        relation("Ada Orne", "Tolva", keywords=["founded"]),
        relation("Ada Orne", "Brisk", keywords=["founded"]),
        relation("Odo Lind", "Tolva", keywords=["works for"]),
        relation("Tolva", "Brisk", keywords=["owns"]),
        relation("Guildhall", "Tolva", keywords=["owns"]),
        entity("Guildhall", kind="company"),
    ]
    text = "Ada Orne founded Tolva and Brisk in Dunmere. Odo Lind works for Tolva. Brisk makes a Kettle."
    await rag.insert_records(Document(text, id="people", title="people"), records)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("How many products does Tolva make?", PRODUCTS),
        ("List all products that Tolva makes.", PRODUCTS),
        ("How many products are there?", (*PRODUCTS, "Kettle")),
        ("Which companies are there?", ("Brisk", "Guildhall", "Tolva")),
        ("Which companies did Ada Orne found?", ("Brisk", "Tolva")),
        ("How many people work for Tolva?", ("Odo Lind",)),
        ("What are the products of Brisk?", ("Kettle",)),
        ("Which companies does Tolva own?", ("Brisk",)),
        ("Which companies own Tolva?", ("Guildhall",)),
        ("List the founders of Tolva.", ("Ada Orne",)),
        ("How many people are mentioned?", ("Ada Orne", "Odo Lind")),
        ("How many people are related to Tolva?", ("Ada Orne", "Odo Lind")),
        ("Which places are there?", ("Dunmere", "Lindow")),
        ("How many documents mention Ada Orne?", ("people",)),
        ("Who is related to Tolva?", ("Ada Orne", "Odo Lind")),
        ("Who is related to Tolva by founding?", ("Ada Orne",)),
        ("What is connected to Kettle by repairs?", ("Tolva",)),
        ("列出所有公司。", ("Brisk", "Guildhall", "Tolva")),
        ("谁与 Tolva 有关？", ("Ada Orne", "Odo Lind")),
    ],
)
async def test_lists_are_complete_and_hold_nothing_else(
    tmp_path: Path, question: str, names: tuple[str, ...]
) -> None:
    """The list has all that the question asks for, by type, predicate and direction, with sources."""
    async with index(tmp_path) as rag:
        await _insert(rag)
        answer = await rag.query(question)
        listing = answer.context.listing
        assert listing is not None
        stored = await rag.entities.list()
    cleaned = {item.name for item in stored} | {"people"}
    assert {item.name for item in listing.items} <= cleaned
    assert sorted(item.name for item in listing.items) == sorted(
        name.replace("１", "1") for name in names
    )
    assert listing.total == len(names)
    assert f"{len(names)} as far as the graph knows" in answer.text
    assert {citation.label for citation in answer.citations} >= {"people"} or all(
        citation.document_id for citation in answer.citations
    )
    assert len({citation.number for citation in answer.citations}) == len(names)
    assert not answer.invented


@pytest.mark.parametrize(
    "question",
    [
        "How many people live in Tolva?",  # no such predicate
        "How many people died?",
        "Which products are the best?",
        "List the main products.",
        "How many ships did Zorro own?",
        "How many years did Tolva exist?",
        "Who founded Tolva?",
        "How many people are related to 24?",
        "Which 3 products are there?",
        "How many products do Tolva and Brisk make?",  # of both, or of each?
        "What does Tolva make?",
    ],
)
async def test_in_doubt_there_is_no_list(tmp_path: Path, question: str) -> None:
    """A question with a word that the graph cannot account for is answered like any other."""
    async with index(tmp_path) as rag:
        await _insert(rag)
        assert (await rag.retrieve(question)).listing is None


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("天工坊制造哪些产品？", ("玻璃", "铁锅")),
        ("有多少个产品？", ("玻璃", "铁锅")),
        ("列出所有人物。", ("周师傅", "李娘子")),
        ("周师傅创办了哪些公司？", ("天工坊",)),
        ("天工坊有多少人工作？", ("李娘子",)),
        ("天工坊的产品有哪些？", ("玻璃", "铁锅")),
        ("天工坊最好的产品有哪些？", None),
        ("天工坊是谁创办的？", None),
    ],
)
async def test_chinese_lists(tmp_path: Path, question: str, names: tuple[str, ...] | None) -> None:
    """Chinese questions list and count by the same rules, in Chinese."""
    async with index(tmp_path, language="zh") as rag:
        records = [
            entity("天工坊", kind="公司"),
            entity("周师傅", kind="人物"),
            entity("李娘子", kind="人物"),
            entity("铁锅", kind="产品"),
            entity("玻璃", kind="产品"),
            relation("天工坊", "铁锅", keywords=["制造"]),
            relation("天工坊", "玻璃", keywords=["制造"]),
            relation("周师傅", "天工坊", keywords=["创办"]),
            relation("李娘子", "天工坊", keywords=["工作"]),
        ]
        text = "周师傅创办天工坊，制造铁锅和玻璃。李娘子在天工坊工作。１２ 😀"
        await rag.insert_records(Document(text, id="坊"), records)
        answer = await rag.query(question)
    listing = answer.context.listing
    if names is None:
        assert listing is None
    else:
        assert listing is not None
        assert sorted(item.name for item in listing.items) == sorted(names)
        assert f"共 {len(names)} 项" in answer.text


async def test_a_filter_hides_items_of_other_documents(tmp_path: Path) -> None:
    """Under a filter the list and the number are those of the visible documents alone."""
    async with index(tmp_path) as rag:
        await _insert(rag)
        where = {"title": "people"}
        listing = (await rag.retrieve("How many products are there?", where=where)).listing
        assert listing is not None
        assert [item.name for item in listing.items] == ["Kettle"]
        await rag.delete("people")
        listing = (await rag.retrieve("How many products are there?")).listing
        assert listing is not None and listing.total == len(PRODUCTS)


@pytest.mark.parametrize(
    ("language", "question", "param", "heading"),
    [
        ("en", "How many documents are there?", {}, "Documents, 2 in all:"),
        (
            "en",
            "How many documents are there?",
            {"where": {"id": "铁"}, "as_of": "2022"},
            "Documents (under the filter, as of 2022), 1 in all:",
        ),
        (
            "en",
            "Which products are there?",
            {"where": {"id": "oak"}},
            "List from the graph (type product, under the filter), 1 as far as the graph knows:",
        ),
        ("zh", "有多少篇文档？", {"as_of": "2021"}, "文档（截至 2021），共 1 篇："),
        (
            "zh",
            "列出所有产品。",
            {"where": {"id": "铁"}},
            "图谱列表（类型：产品，符合过滤条件），据图谱所知共 1 项：",
        ),
    ],
)
async def test_a_list_says_what_limits_it(
    tmp_path: Path, language: str, question: str, param: dict[str, Any], heading: str
) -> None:
    """A filter and a moment leave documents out: what is left is not all."""
    kind = "product" if language == "en" else "产品"
    async with index(tmp_path, language=language) as rag:
        for year, name in ((2021, "oak"), (2022, "铁")):
            records = [entity(f"Hinge {name} 🔩", kind=kind)]
            document = Document(f"Hinge {name} 🔩.", id=name, date=str(year))
            await rag.insert_records(document, records)
        assert heading in (await rag.query(question, param)).text.split("\n")


async def test_a_model_says_what_is_to_be_listed(tmp_path: Path) -> None:
    """The model's fields are looked up in the graph; the list is appended to the model's answer, and its
    section in the prompt takes no place from passages."""
    reply = (
        '{"high_level_keywords": [], "low_level_keywords": ["Tolva"],'
        ' "list": {"items": "products", "of": "Tolva", "relation": "makes"}}'
    )
    llm = ScriptedLLM(lambda request: reply if request.response_type == "json" else "Four [1].")
    async with index(tmp_path, llm) as rag:
        await _insert(rag)
        answer = await rag.query("What comes out of the workshop of Tolva?")
        assert answer.text.startswith("Four [1].\n\nList from the graph")
        assert all(name.replace("１", "1") in answer.text for name in PRODUCTS)
        assert "4 as far as the graph knows" in llm.requests[-1].question
        full = await rag.retrieve("What comes out of the workshop of Tolva?")
        for budget in (20, 60, 150, 400):
            context = await rag.retrieve("How many products are there?", max_total_tokens=budget)
            assert context.tokens <= budget
            assert context.listing is not None and context.listing.total == 4
        assert full.tokens == rag.engine.tokenizer.count(full.prompt)


async def test_the_users_extractor_may_ask_for_a_list(tmp_path: Path) -> None:
    """A keyword extractor of the user's own says what is to be listed, too."""

    class Lists:
        async def keywords(self, question: str, history: object) -> Keywords:
            return Keywords(low_level=("Tolva",), listed=ListRequest(items="people", of="Tolva"))

    async with index(tmp_path, keyword_extractor=Lists()) as rag:
        await _insert(rag)
        listing = (await rag.retrieve("Tolva?")).listing
    assert listing is not None
    assert {item.name for item in listing.items} == {"Ada Orne", "Odo Lind"}


async def test_a_list_is_asked_for_by_another_name(tmp_path: Path) -> None:
    """By an alias, also where a hidden document has an entity of that name."""

    class Lists:
        async def keywords(self, question: str, history: object) -> Keywords:
            return Keywords(low_level=("Rook",), listed=ListRequest(items="products", of="Rook"))

    firm = entity("Rook Brothers", kind="company", aliases=["Rook"])
    records = [firm, entity("Ladder 🪜", kind="product"), relation("Rook Brothers", "Ladder 🪜")]
    async with index(tmp_path, keyword_extractor=Lists()) as rag:
        text = "Rook Brothers, called Rook, make the Ladder 🪜."
        await rag.insert_records(Document(text, id="firm"), records)
        whole = (await rag.retrieve("Rook?")).listing
        await rag.insert_records(Document("A Rook flew.", id="bird"), [entity("Rook", kind="bird")])
        filtered = (await rag.retrieve("Rook?", where={"id": "firm"})).listing
    for listing in (whole, filtered):
        assert listing is not None
        assert [item.name for item in listing.items] == ["Ladder 🪜"]


@pytest.mark.slow
@pytest.mark.parametrize("count", [5, 50, 500])
async def test_long_lists_are_complete(tmp_path: Path, count: int) -> None:
    """Lists of any length up to the limit have full recall and precision, whatever the budget shows."""
    members = [f"Member {number:03}" for number in range(count)]
    records = [relation("Guild", member, keywords=["admits"]) for member in members]
    records += [entity(member) for member in members]
    records += [entity("Guild", kind="company"), entity("Stranger"), entity("Loom", kind="product")]
    async with index(tmp_path) as rag:
        await rag.insert_records(Document(f"The Guild admits {'; '.join(members)}."), records)
        context = await rag.retrieve("How many people does Guild admit?", max_total_tokens=2_000)
    assert context.listing is not None
    assert [item.name for item in context.listing.items] == members
    assert context.tokens <= 2_000


@pytest.mark.parametrize(
    ("question", "ids"),
    [
        ("How many documents are from 2024?", ("b", "c")),
        ("Which documents mention Ada Orne in 2024?", ("b",)),
        ("２０２３年的文档有哪些？", ("a",)),
        ("How many documents are there?", ("a", "b", "c")),
        ("How many documents are from 1999?", ()),
        ("How many people are there in 2024?", None),
    ],
)
async def test_a_year_limits_documents_and_is_never_ignored(
    tmp_path: Path, question: str, ids: tuple[str, ...] | None
) -> None:
    """By their dates; a list of anything else has no years, so there is none."""
    dates = {"a": "2023-05-01", "b": "2024-01-09", "c": "2024-02-02"}
    async with index(tmp_path) as rag:
        for id, date in dates.items():
            text = f"Ada Orne writes {id}. 😀" if id != "c" else "Odo Lind writes."
            name = "Odo Lind" if id == "c" else "Ada Orne"
            await rag.insert_records(Document(text, id=id, date=date), [entity(name)])
        listing = (await rag.retrieve(question)).listing
        if ids is None:
            assert listing is None
        else:
            assert listing is not None and listing.total == len(ids)
            assert {item.chunk_id for item in listing.items} == {
                chunk.id for id in ids for chunk in await _chunks(rag, id)
            }
        await rag.insert_records(Document("Undated.", id="d"), [entity("Ada Orne")])
        undated = (await rag.retrieve("How many documents are from 2024?")).listing
        assert undated is None


async def _chunks(rag: AsyncLightRAG, id: str) -> list[Any]:
    """The chunks of a document."""
    context = await rag.retrieve("writes", where={"id": id})
    return list(context.chunks)


@pytest.mark.parametrize(
    ("language", "text", "question", "names", "note"),
    [
        (
            "en",
            "Ada Orne studied at Tolva College. Ivo Brack graduated from Tolva College in 1990. "
            "Una Keel was educated at Tolva College.",
            "How many people studied at Tolva College?",
            ("Ada Orne", "Ivo Brack", "Una Keel"),
            "Whether this is all is not known",
        ),
        (
            "zh",
            "沈知微就读于湖山大学。周牧野毕业于湖山大学。陆文衡曾在湖山大学求学🎓。",
            "哪些人曾就读于湖山大学？",
            ("沈知微", "周牧野", "陆文衡"),
            "以上未必是全部",
        ),
    ],
)
async def test_rules_make_no_list_and_no_number(
    tmp_path: Path, language: str, text: str, question: str, names: tuple[str, ...], note: str
) -> None:
    """What rules read may be a part of what the texts say: the passages are shown, and what is missing."""
    async with index(tmp_path, language=language) as rag:
        await rag.insert(Document(text, id="school"))
        answer = await rag.query(question)
    assert answer.context.listing is None and not answer.context.has_records
    assert all(name in answer.text for name in names)
    assert note in answer.text
    assert not re.search(r"\b3\b|三[人项]", answer.text.replace("[3]", ""))


@pytest.mark.parametrize(
    ("question", "may_miss_items"),
    [
        ("What are all the orchards of Tolva?", True),
        ("How many people own an orchard in Tolva?", True),
        ("How many orchards are mentioned?", True),
        ("How many acres does the orchard in Tolva have?", False),
        ("How many dollars did the orchard in Tolva cost?", False),
        ("How many inhabitants does Tolva have?", False),
        ("柳溪有哪些果园？", True),
        ("柳溪有多少个果园？", True),
        ("柳溪有多少人种果树？", True),
        ("柳溪的果园有多少亩？🍐", False),
        ("柳溪有多少人口？", False),
        ("柳溪的果园种了几个月？", False),
        ("柳溪的果园得过几次奖？", False),
        ("柳溪的果园排第几名？", False),
        ("柳溪的果园名单是谁写的？", False),
    ],
)
async def test_a_measure_is_no_list(tmp_path: Path, question: str, may_miss_items: bool) -> None:
    """That a list may not be whole is said where the form of a question asks for things, not for acres, 亩 or 第几."""
    language = "en" if question.isascii() else "zh"
    texts = {
        "en": "Ivo Brack owns an orchard in Tolva. The orchard in Tolva has １２ acres and cost 900 dollars.",
        "zh": "柳溪有两个果园，果园占地１２亩，种果树的人有３０个。名单由村长写成。",
    }
    async with index(tmp_path, language=language) as rag:
        await rag.insert(texts[language])
        answer = await rag.query(question)
    assert answer.citations
    assert (
        FIXED_WORDS[known_language(language)].lists_need_records in answer.text
    ) is may_miss_items


@pytest.mark.parametrize(
    ("question", "is_list"),
    [
        ("In which harbour did Ada Orne work?", False),
        ("Which boat has the taller mast, the Tern or the Smew?", False),
        ("What year did the mill at Tolva burn?", False),
        ("Which member of the Orne Sisters did Ivo Brack marry?", False),
        ("Which bridge crosses the Tolva?", False),
        ("Which bridges cross the Tolva?", True),
        ("What kinds of boats were built at Tolva?", True),
        ("Which old mills of the valley have burnt?", True),
    ],
)
async def test_what_one_thing_did_is_no_list(tmp_path: Path, question: str, is_list: bool) -> None:
    """A question for one of a kind ("which harbour did ...") is not told that lists need records."""
    async with AsyncLightRAG(tmp_path, llm="none") as rag:
        await rag.insert(
            "Ada Orne worked at the harbour of Tolva, where mills and boats were built."
        )
        answer = await rag.query(question)
    assert ("complete lists" in answer.text) == is_list


async def test_what_is_read_when_asked_makes_a_list_once_all_of_it_is_read(tmp_path: Path) -> None:
    """While a model has read only some passages about Tolva, a list would say more than anybody knows;
    passages that do not name Tolva matter to a list of all companies only.
    """
    async with index(tmp_path) as rag:
        await _insert(rag)
        await rag.insert(Document("Mr. Ivo Brack lives in Eastmere.", id="other"), read="asked")
        about_tolva = await rag.retrieve("How many products does Tolva make?")
        about_all = await rag.retrieve("Which companies are there?")
        await rag.insert(Document("Ivo Brack sold Tolva an iron gate.", id="gate"))
        half_read = await rag.retrieve("How many products does Tolva make?")
    assert about_tolva.listing is not None
    assert about_all.listing is None
    assert half_read.listing is None


async def test_beside_what_rules_read_only_records_are_listed(tmp_path: Path) -> None:
    """An index may have both, and the list says how many passages may hold more; documents are counted without
    records.
    """
    async with index(tmp_path) as rag:
        await rag.insert(
            Document("Mr. Ivo Brack repairs kettles. Mrs. Una Keel sells them.", id="rules")
        )
        records = [entity("Ada Orne", kind="person"), entity("Tolva", kind="company")]
        await rag.insert_records(Document("Ada Orne founded Tolva.", id="records"), records)
        people = (await rag.retrieve("How many people are there?")).listing
        documents = (await rag.query("How many documents are there?")).text
        naming = (await rag.retrieve("Which documents mention Ada Orne?")).listing
    assert people is not None and [item.name for item in people.items] == ["Ada Orne"]
    assert people.unread == 1
    assert naming is not None and naming.documents and naming.unread == 0
    assert "Documents, 2 in all" in documents
