"""Questions over a small index: what is found, what is asked of a model, what is answered."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lightrag_jsonl import ConfigError, Document, Keywords, LightRAG, Message, QueryParam
from lightrag_jsonl.testing import HashEmbedder, ScriptedLLM
from tests.kit import (
    GRAPH_MODES,
    RANKING_MODES,
    SEARCHING_MODES,
    Mode,
    Vectors,
    entity,
    fingerprint,
    index,
    relation,
    rows_of,
)
from tests.processes import run_python
from tests.retrieval.conftest import Pipelines, fill

QUESTION = "Who was Scrooge's partner?"


@pytest.mark.parametrize("mode", RANKING_MODES)
async def test_every_mode_ranks_what_it_finds_with_scores(
    carol: Path, pipelines: Pipelines, mode: Mode
) -> None:
    """The passage that answers comes first, scores fall, each hit says why it is there, and a
    second pipeline over the index agrees in every score and every character.
    """
    param = QueryParam(mode=mode)
    context = await pipelines(carol).retrieve(QUESTION, param)
    assert context.chunks[0].document_id == "partners"
    for items in (context.entities, context.relations, context.chunks):
        assert [i.score for i in items] == sorted((i.score for i in items), reverse=True)
        assert all(item.why for item in items)
    assert bool(context.relations) == (mode in GRAPH_MODES)
    if mode in ("local", "mix"):
        assert "Marley" in [entity.name for entity in context.entities[:3]]
    assert context == await pipelines(carol).retrieve(QUESTION, param)


ASKING = """
import sys
from lightrag_jsonl import LightRAG
with LightRAG(sys.argv[1]) as rag:
    print([rag.retrieve(sys.argv[2], mode=mode) for mode in sys.argv[3:]])
"""


@pytest.mark.slow
def test_other_processes_give_the_same_bytes(carol: Path) -> None:
    """Neither the process nor its hash seed makes a difference in any mode."""
    other = run_python(ASKING, carol, QUESTION, *SEARCHING_MODES, PYTHONHASHSEED="12345").stdout
    with LightRAG(carol) as rag:
        assert (
            "Marley" in other
            and other == f"{[rag.retrieve(QUESTION, mode=mode) for mode in SEARCHING_MODES]}\n"
        )


@pytest.mark.parametrize("question", ["北京大学创办于哪一年？", "北京大學創辦於哪一年？"])
async def test_chinese_names_in_a_question_are_found(
    carol: Path, pipelines: Pipelines, question: str
) -> None:
    """北京大学 stands in the question without spaces, in either script, and is not mistaken for 北京."""
    param = QueryParam(mode="local", ll_keywords=("创办",))
    context = await pipelines(carol).retrieve(question, param)
    assert context.entities[0].name == "北京大学"
    assert context.chunks[0].document_id == "pku"


@pytest.mark.parametrize("mode", GRAPH_MODES)
async def test_a_name_of_one_character_is_found_by_its_words(
    tmp_path: Path, pipelines: Pipelines, mode: Mode
) -> None:
    """The keyword 镭 leads first to the passages about it, though no bigram of the question does; also
    where it ends a sentence.
    """
    texts = ["居里夫妇发现镭以后，又研究它。", "云南产茶，福建也产。", "她研究镭。"]
    texts += ["六国为秦所灭，天下一统。", "长江流入东海。"]
    given = [(Document(t, id=t[:2]), [entity(t[:2], t, kind="概念")]) for t in texts]
    fill(tmp_path, given)
    context = await pipelines(tmp_path).retrieve("什么是镭？", QueryParam(mode=mode))
    assert {chunk.document_id for chunk in context.chunks[:2]} == {"她研", "居里"}


async def test_characters_find_an_older_wording(tmp_path: Path, pipelines: Pipelines) -> None:
    """操父曹嵩 shares no two characters in a row with 父亲 and 姓什么."""
    texts = [
        "操父曹嵩，本姓夏侯氏。",
        "云南产茶，福建也产。",
        "六国为秦所灭。",
        "长江流入东海。",
        "她研究镭。",
    ]
    fill(tmp_path, [(Document(text, id=text[:2]), [entity(text[:2], text)]) for text in texts])
    context = await pipelines(tmp_path).retrieve("曹孟德的父亲姓什么？", QueryParam(mode="naive"))
    assert context.chunks[0].document_id == "操父"
    assert "shares words" in context.chunks[0].why


@pytest.mark.parametrize("mode", ["local", "hybrid", "mix"])
async def test_a_named_entity_without_relations_comes_before_its_neighbours(
    tmp_path: Path, mode: Mode
) -> None:
    """Relations bring others a vote that it cannot get; and the budget cuts from the end."""
    others = [entity(f"Liu B{n}", f"The {n}th of the Lius.") for n in range(9)]
    joined = [relation("Liu B0", f"Liu B{n}", "They are cousins.") for n in range(1, 9)]
    async with index(tmp_path) as rag:
        await rag.insert_records(Document("Lius", id="a"), [*others, *joined])
        await rag.insert_records(Document("Liu Bei", id="b"), [entity("Liu Bei", "A king.")])
        param = QueryParam(mode=mode, ll_keywords=("Liu Bei",), max_entity_tokens=40)
        context = await rag.retrieve("What did Liu Bei do?", param)
        assert context.entities[0].name == "Liu Bei"


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Who is Liu Bei?", "Liu Bei"),
        ("What is “Liu Bei’s”, then?", "Liu Bei"),
        ("谁是（刘备）？", "刘备"),
        ("Is C++, or C, older?", "C++"),
    ],
)
async def test_why_quotes_the_name_and_not_what_stands_around_it(
    tmp_path: Path, question: str, name: str
) -> None:
    """Marks of the question are no part of the name, marks of the name are."""
    async with index(tmp_path) as rag:
        await rag.insert_records(Document(name, id="a"), [entity(name, "Known.")])
        context = await rag.retrieve(question, mode="local")
        assert f"named “{name}”" in context.entities[0].why


@pytest.mark.parametrize(
    ("name", "part", "question"),
    [
        (
            "Alexander and the Terrible, Horrible, No Good, Very Bad Day",
            "Alexander",
            "Who wrote {name}?",
        ),
        ("蓝鲸远洋海运服务有限公司", "蓝鲸", "{name}的总部设在哪里？"),
        ("青螺渡水文地质与潮汐观测研究中心", "潮汐", "谁领导{name}？"),
    ],
)
async def test_a_long_name_is_one_name(tmp_path: Path, name: str, part: str, question: str) -> None:
    """Its commas and small words do not cut it, and keywords inside it name nothing else."""
    async with index(tmp_path) as rag:
        for known_name in (part, name):
            await rag.insert_records(
                Document(known_name, id=known_name[:9]), [entity(known_name, "Known.")]
            )
        given = QueryParam(mode="local", ll_keywords=(part,))
        context = await rag.retrieve(question.format(name=name), given)
        whys = {one.name: one.why for one in context.entities}
        assert f"named “{name}”" in whys[name] and "named" not in whys.get(part, "")


# ── hubs ────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One entity with 600 neighbours."""
    folder = tmp_path_factory.mktemp("hub")
    records = [relation("Hub", f"Neighbour {n}", f"Hub knows Neighbour {n}.") for n in range(600)]
    fill(folder, [(Document("Hub knows many.", id="hub"), records)])
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["local", "hybrid", "mix"])
async def test_the_asked_edge_of_a_hub_ranks_first(
    hub: Path, pipelines: Pipelines, mode: Mode
) -> None:
    """With seeds at both ends, 599 other relations of the hub do not bury the one asked about."""
    param = QueryParam(mode=mode, ll_keywords=("Hub", "Neighbour 417"))
    context = await pipelines(hub).retrieve("How is Hub related to Neighbour 417?", param)
    assert {context.relations[0].source, context.relations[0].target} == {"Hub", "Neighbour 417"}


async def test_ranking_by_degree_puts_well_connected_relations_first(
    carol: Path, pipelines: Pipelines
) -> None:
    """The overview's own rule: the sum of the degrees of both ends."""
    param = QueryParam(mode="local", ranking="degree", ll_keywords=("Bob Cratchit",))
    context = await pipelines(carol).retrieve("Bob Cratchit", param)
    assert context.relations[0].predicate == "employment"


# ── keywords ────────────────────────────────────────────────────────────────────


def keywords(high: Sequence[str], low: Sequence[str]) -> str:
    """The answer of a model that was asked for keywords."""
    quoted = [", ".join(f'"{word}"' for word in words) for words in (high, low)]
    return f'{{"high_level_keywords":[{quoted[0]}],"low_level_keywords":[{quoted[1]}]}}'


async def test_given_keywords_skip_the_call(carol: Path, pipelines: Pipelines) -> None:
    """The model is asked for nothing but the answer; so it is in a mode that searches no graph."""
    assert (
        await pipelines(carol, llm=ScriptedLLM([])).retrieve(QUESTION, QueryParam(mode="naive"))
    ).chunks
    llm = ScriptedLLM(["Marley."])
    param = QueryParam(mode="local", ll_keywords=("Scrooge", " scrooge ", ""))
    answer = await pipelines(carol, llm=llm).answer(QUESTION, param)
    assert answer.context.keywords == Keywords((), ("Scrooge",))
    assert len(llm.requests) == 1


@pytest.mark.parametrize("mode", GRAPH_MODES)
@pytest.mark.parametrize(
    "keywords",
    [Keywords(("partnership",), ()), Keywords((), ("Scrooge",))],
    ids=["themes", "names"],
)
async def test_one_kind_of_keywords_is_enough_in_every_mode(
    carol: Path, pipelines: Pipelines, mode: Mode, keywords: Keywords
) -> None:
    """A mode without keywords of its own kind searches with the others."""
    param = QueryParam(mode=mode, hl_keywords=keywords.high_level, ll_keywords=keywords.low_level)
    context = await pipelines(carol).retrieve(QUESTION, param)
    assert context.chunks[0].document_id == "partners"
    assert {context.relations[0].source, context.relations[0].target} == {"Marley", "Scrooge"}


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        (
            ['{"高级关键词":["生意"],"低级关键词":"斯克鲁奇、马利"}'],
            Keywords(("生意",), ("斯克鲁奇", "马利")),
        ),
        (["no JSON", "still none"], Keywords()),
        (['{"high_level_keywords": [1, "  a  b ", "A b"], "low_level_keywords": "Hub"}'], None),
    ],
    ids=["Chinese", "unreadable", "odd"],
)
async def test_any_answer_about_keywords_leads_to_a_context(
    carol: Path, pipelines: Pipelines, answers: list[str], found: Keywords | None
) -> None:
    """Chinese names of the fields are understood; without readable keywords the question itself is
    searched with.
    """
    pipeline = pipelines(carol, llm=ScriptedLLM(answers))
    context = await pipeline.retrieve(QUESTION, QueryParam(mode="global"))
    assert context.keywords == (found or Keywords(("1", "a b"), ("Hub",)))
    assert context.relations


# ── answers ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", SEARCHING_MODES)
async def test_an_empty_index_answers_without_a_model(
    tmp_path: Path, pipelines: Pipelines, mode: Mode
) -> None:
    """Nothing found is reported as such, in the caller's words where there are any."""
    llm = ScriptedLLM([])
    pipeline = pipelines(tmp_path, llm=llm)
    plain = await pipeline.answer(QUESTION, QueryParam(mode=mode))
    given = await pipeline.answer(QUESTION, QueryParam(mode=mode, fail_response="No idea."))
    assert plain.text and plain.context.empty
    assert given.text == "No idea."
    assert llm.requests == []


def form_of_the_answer(folder: Path, param: QueryParam | None = None, **more: Any) -> str:
    """What the model is told in the line that says how the answer should look."""
    llm = ScriptedLLM(["[1]"])
    with LightRAG(folder, llm=llm, **more) as rag:
        rag.query(QUESTION, param or QueryParam(ll_keywords=("Scrooge",)))
    return re.findall("(?:Form(?: of the answer)?: |。形式：)(.*?)[.。]", llm.requests[0].text)[0]


@pytest.mark.parametrize(
    ("language", "own"),
    [
        ("en", "what the question asks for; several paragraphs only for a broad question"),
        ("zh", "视问题而定，问题宽泛时才分为几段"),
    ],
)
@pytest.mark.parametrize(("mode", "absent"), [("naive", None), ("local", ""), ("mix", None)])
def test_the_form_of_an_answer_is_in_the_language_of_the_prompt(
    tmp_path: Path, mode: Mode, absent: str | None, language: str, own: str
) -> None:
    """Unless the caller names one, which goes out as it is."""
    with LightRAG(tmp_path, language=language) as rag:
        rag.insert("Scrooge was the partner of Marley.")
    param = QueryParam(mode=mode, ll_keywords=("Scrooge",), response_type=absent)
    assert form_of_the_answer(tmp_path, param, language=language) == own
    named = replace(param, response_type="一句话")
    assert form_of_the_answer(tmp_path, named, language=language) == "一句话"


def test_a_prompt_of_ones_own_need_not_name_a_form(carol: Path, tmp_path: Path) -> None:
    """It may ask for the variable, as TrustGraph's do, whether anybody gives it or not."""
    template = "---\nresponse-type: text\n---\n# user\n\nForm of the answer: {{ response_type }}.\n"
    (tmp_path / "answer-mix.md").write_text(template, encoding="utf-8")
    assert form_of_the_answer(carol, prompts=tmp_path) == "Multiple Paragraphs"


async def test_bypass_is_the_model_alone(carol: Path, pipelines: Pipelines) -> None:
    """History and question go out as they are, and nothing is retrieved; it needs a model."""
    llm = ScriptedLLM(["Hello."])
    history = (Message("user", "Hi."), Message("assistant", "Yes?"))
    param = QueryParam(mode="bypass", conversation_history=history)
    answer = await pipelines(carol, llm=llm).answer("Who are you?", param)
    assert answer.text == "Hello." and answer.context.empty
    assert llm.requests[0].messages == (*history, Message("user", "Who are you?"))
    with pytest.raises(ConfigError, match="model"):
        await pipelines(carol).answer(QUESTION, QueryParam(mode="bypass"))


# ── rerank ──────────────────────────────────────────────────────────────────────


class Ranked:
    """A reranker that likes the texts of which a function says more."""

    def __init__(self, like: Callable[[str], float]) -> None:
        self._like = like

    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """What the function says."""
        return [self._like(text) for text in texts]


@pytest.mark.parametrize("mode", RANKING_MODES)
async def test_the_reranker_decides_as_far_as_it_is_let(
    carol: Path, pipelines: Pipelines, mode: Mode
) -> None:
    """In every mode its order is the order, whatever the graph says; with less weight both count,
    and with none it is not asked.
    """
    likes = Ranked(lambda text: -1.0 if "Marley" in text else len(text))
    pipeline, orders = pipelines(carol, reranker=likes), []
    for weight in (1.0, 0.5, 0.0):
        param = QueryParam(mode=mode, chunk_top_k=4, rerank_weight=weight)
        context = await pipeline.retrieve(QUESTION, param)
        assert [c.score for c in context.chunks] == sorted([c.score for c in context.chunks])[::-1]
        orders.append([chunk.document_id for chunk in context.chunks])
        if weight == 1:
            lengths = [len(chunk.text) for chunk in context.chunks[:-1]]
            assert len(lengths) and lengths == sorted(lengths, reverse=True)
    assert orders[0][-1] == orders[2][0] == "partners" != orders[1][-1]
    off = QueryParam(mode=mode, chunk_top_k=4, enable_rerank=False)
    unasked = pipelines(carol, reranker=Ranked(lambda text: 1 / 0))
    none = replace(off, enable_rerank=True, rerank_weight=0.0)
    contexts = [await unasked.retrieve(QUESTION, param) for param in (off, none)]
    assert contexts[0] == contexts[1]


@pytest.mark.slow
async def test_what_vectors_and_words_show_first_is_always_shown(
    tmp_path: Path, shared_data: Path
) -> None:
    """The first passage of `naive` is among the few of `mix`, with a reranker or without, also if
    only two of them fit into the prompt.
    """
    folder, likes = shared_data / "zh-cmrc2018", Ranked(lambda text: int(fingerprint(text)[:4], 16))
    texts = [one["text"] for one in rows_of(folder / "passages.jsonl.gz")[:20]]
    questions = [one["question"] for one in rows_of(folder / "questions.jsonl.gz")[:12]]
    few = QueryParam(chunk_top_k=3, max_total_tokens=2500, chunk_share=0.8)
    async with index(tmp_path, language="zh") as rag:
        await rag.insert([Document(text) for text in texts])
    for like in (None, likes):
        async with index(tmp_path, language="zh", reranker=like) as rag:
            for question in questions:
                first = (await rag.retrieve(question, few, mode="naive")).chunks[:1]
                shown = await rag.retrieve(question, few, mode="mix")
                assert {chunk.id for chunk in first} <= {chunk.id for chunk in shown.chunks}
                assert len(shown.chunks) <= 3


# ── bad input ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "question",
    ["Scrooge " * 20_000, "问" * 30_000, "\ud800\x00?", '"*:^(AND OR NOT', "?", "😀"],
    ids=["long", "long without spaces", "unstorable", "query syntax", "a mark", "emoji"],
)
@pytest.mark.parametrize("mode", ["naive", "mix"])
async def test_strange_questions_are_answered_within_the_budget(
    carol: Path, pipelines: Pipelines, mode: Mode, question: str
) -> None:
    """Longer than any budget, without words, full of syntax: no crash, and no overflow."""
    llm = ScriptedLLM(lambda request: "…")
    param = QueryParam(mode=mode, max_total_tokens=400, ll_keywords=("Scrooge",))
    answer = await pipelines(carol, llm=llm).answer(question, param)
    assert answer.context.tokens <= 400
    assert len(answer.context.question) <= 4_000


class Misled:
    """Says that one passage is nearest to any question, and the one that answers it farthest."""

    name, dim = "misled", 2

    def __init__(self, *, lexical: bool) -> None:
        self.lexical = lexical

    async def embed(self, texts: Sequence[str], *, kind: str) -> Vectors:
        angles = [1.0 + ("Marley" in text) + 0.5 * ("dead" in text) for text in texts]
        for place, text in enumerate(texts):
            if kind == "query" or "at 9." in text:
                angles[place] = 0.0
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


@pytest.mark.parametrize(("lexical", "first"), [(True, "d0"), (False, "d9")])
async def test_words_decide_where_vectors_only_count_them(
    tmp_path: Path, lexical: bool, first: str
) -> None:
    """An embedder that calls itself lexical cannot outvote the full text; any other can."""
    texts = ["Marley was dead, quite dead.", *(f"Marley came at {n}." for n in range(1, 10))]
    texts += [f"Fog came in at {n}." for n in range(20, 50)]
    async with index(tmp_path, embedder=Misled(lexical=lexical)) as rag:
        await rag.insert([Document(text, id=f"d{n}") for n, text in enumerate(texts)])
        param = QueryParam(mode="naive", least_likeness=0)
        context = await rag.retrieve("Was Marley dead?", param)
    assert context.chunks[0].document_id == first


class Topics:
    """An embedder of three topics that compares meanings."""

    name, dim, lexical = "topics", 4, False

    async def embed(self, texts: Sequence[str], *, kind: str) -> Vectors:
        rows = [
            [word in text for word in ("rain", "trade", "bread")] + [1 + len(text) % 7 / 9]
            for text in texts
        ]
        vectors = np.array(rows, np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("mode", ["naive", "mix"])
async def test_a_question_about_something_else_finds_nothing(tmp_path: Path, mode: Mode) -> None:
    """Without a passage that is clearly nearer than usual, and without a name, nothing is found."""
    async with index(tmp_path, embedder=Topics()) as rag:
        await rag.insert(
            [Document(f"news of rain {n}" + "." * (n % 5), id=f"d{n}") for n in range(50)]
        )
        assert (await rag.retrieve("will bread rise", mode=mode)).empty
        forced = await rag.retrieve("will bread rise", QueryParam(mode=mode, least_likeness=0))
    assert forced.chunks


@pytest.mark.parametrize(
    ("question", "found"),
    [("hello", False), ("hello rain", True), ("谁是石官", False), ("谁是春雨", True)],
)
async def test_words_that_do_not_occur_find_nothing(
    tmp_path: Path, question: str, found: bool
) -> None:
    """With an embedder that only counts words, some word of the question must occur, or half of its
    Chinese characters.
    """
    async with index(tmp_path, embedder=HashEmbedder()) as rag:
        await rag.insert([Document(f"news of rain {n}，春雨", id=f"d{n}") for n in range(50)])
        for mode in ("naive", "mix"):
            assert (await rag.retrieve(question, mode=mode)).empty is not found


async def test_a_name_makes_a_question_one_about_the_index(tmp_path: Path) -> None:
    """Also if it is only another name of an entity."""
    named = {**entity("刘备"), "aliases": ["玄德"]}
    async with index(tmp_path, embedder=Topics()) as rag:
        await rag.insert([Document(f"rain {n}" + "." * (n % 5), id=f"d{n}") for n in range(50)])
        await rag.insert_records(Document("刘备，字玄德。", id="name"), [named])
        for mode in ("naive", "mix"):
            assert not (await rag.retrieve("what of 玄德", mode=mode)).empty


@pytest.mark.parametrize("mode", RANKING_MODES)
async def test_there_may_be_nothing_to_rank(
    carol: Path, tmp_path: Path, pipelines: Pipelines, mode: Mode
) -> None:
    """With limits of 0 nothing is found; without any entity, only modes that search passages find
    some.
    """
    none = QueryParam(mode=mode, top_k=0, chunk_top_k=0)
    context = await pipelines(carol).retrieve(QUESTION, none)
    assert not context.chunks and not context.relations
    fill(tmp_path, [(Document("Rain fell. Nobody spoke.", id="rain"), [])])
    context = await pipelines(tmp_path).retrieve("rain", QueryParam(mode=mode))
    assert len(context.chunks) == (mode in ("naive", "mix"))
    assert not context.entities and not context.relations
