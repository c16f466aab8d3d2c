"""Questions over a small index: what is found, what is asked of a model, what is said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lightrag_jsonl import AsyncLightRAG, LightRAG
from lightrag_jsonl.errors import ConfigError, EmbeddingError, LLMError
from lightrag_jsonl.options import MODES, QueryParam
from lightrag_jsonl.protocols import Vectors
from lightrag_jsonl.querying.observing import Silent
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.types import Answer, Context, Document, Json, Keywords, Message, Mode
from tests.processes import run_python
from tests.querying.conftest import Pipelines, entity, fill, relation

QUESTION = "Who was Scrooge's partner?"
SEARCHING = [mode for mode in MODES if mode != "bypass"]
GRAPH = [mode for mode in SEARCHING if mode != "naive"]


@pytest.mark.parametrize("mode", SEARCHING)
@pytest.mark.parametrize("embedded", [True, False], ids=["dense", "lexical only"])
async def test_every_mode_ranks_what_it_finds_with_scores(
    carol: Path, pipelines: Pipelines, mode: Mode, embedded: bool
) -> None:
    """The passage that answers comes first, scores fall, and each hit says why it is there."""
    context = await pipelines(carol, embedded=embedded).retrieve(QUESTION, QueryParam(mode=mode))
    assert context.chunks[0].document_id == "partners"
    for items in (context.entities, context.relations, context.chunks):
        assert [i.score for i in items] == sorted((i.score for i in items), reverse=True)
        assert all(item.why for item in items)
    assert bool(context.relations) == (mode != "naive")


@pytest.mark.parametrize("mode", ["local", "mix"])
async def test_the_partner_is_among_the_first_entities(
    carol: Path, pipelines: Pipelines, mode: Mode
) -> None:
    """An entity that only the right relation leads to ranks beside the one that was named."""
    context = await pipelines(carol).retrieve(QUESTION, QueryParam(mode=mode))
    assert "Marley" in [entity.name for entity in context.entities[:3]]


@pytest.mark.parametrize("mode", SEARCHING)
async def test_the_same_question_gives_the_same_bytes(
    carol: Path, pipelines: Pipelines, mode: Mode
) -> None:
    """Two pipelines over one index agree in every score and every character."""
    param = QueryParam(mode=mode)
    one = await pipelines(carol).retrieve(QUESTION, param)
    assert one == await pipelines(carol).retrieve(QUESTION, param)


ASKING = """
import sys
from lightrag_jsonl import LightRAG
with LightRAG(sys.argv[1]) as rag:
    print([rag.retrieve(sys.argv[2], mode=mode) for mode in sys.argv[3:]])
"""


def test_other_processes_give_the_same_bytes(carol: Path) -> None:
    """Neither the process nor its hash seed makes a difference in any mode."""
    one, other = (
        run_python(ASKING, carol, QUESTION, *SEARCHING, PYTHONHASHSEED=seed).stdout
        for seed in ("0", "1")
    )
    assert "Marley" in one and one == other


async def test_chinese_names_in_a_question_are_found(carol: Path, pipelines: Pipelines) -> None:
    """北京大学 stands in the question without spaces, and is not mistaken for 北京."""
    param = QueryParam(mode="local", ll_keywords=("创办",))
    context = await pipelines(carol).retrieve("北京大学创办于哪一年？", param)
    assert context.entities[0].name == "北京大学"
    assert context.chunks[0].document_id == "pku"


@pytest.mark.parametrize("mode", GRAPH)
async def test_a_name_of_one_character_is_found_by_its_words(
    tmp_path: Path, pipelines: Pipelines, mode: Mode
) -> None:
    """The keyword 镭 leads to the passage that tells of it, though no bigram of the question does."""
    texts = ["居里夫妇发现镭以后，又研究它。", "云南产茶，福建也产。", "六国为秦所灭，天下一统。"]
    fill(tmp_path, [(Document(t, id=t[:2]), [entity(t[:2], "概念", t)]) for t in texts])
    pipeline = pipelines(tmp_path, embedded=False)
    context = await pipeline.retrieve("什么是镭？", QueryParam(mode=mode))
    assert [chunk.document_id for chunk in context.chunks] == ["居里"]


# ── hubs ────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One entity with 600 neighbours."""
    folder = tmp_path_factory.mktemp("hub")
    records = [
        relation("Hub", "knows", f"Neighbour {n}", f"Hub knows Neighbour {n}.") for n in range(600)
    ]
    fill(folder, [(Document("Hub knows many.", id="hub"), records)])
    return folder


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


# ── filters ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", SEARCHING)
@pytest.mark.parametrize("where", [{"id": "clerk"}, {"date": {"$gte": "1844"}}])
async def test_what_other_documents_said_does_not_leak(
    carol: Path, pipelines: Pipelines, mode: Mode, where: dict[str, str]
) -> None:
    """A filter holds for chunks, entities, relations, and for merged descriptions and counts."""
    param = QueryParam(mode=mode, where=where)
    context = await pipelines(carol).retrieve(QUESTION, param)
    assert {chunk.document_id for chunk in context.chunks} == {"clerk"}
    assert "Marley" not in context.prompt and "miser" not in context.prompt
    if mode != "naive":
        scrooge = next(entity for entity in context.entities if entity.name == "Scrooge")
        assert scrooge.description == "Scrooge pays his clerk badly."
        assert scrooge.degree == 1
        assert len(scrooge.chunk_ids) == 1


async def test_filters_on_metadata_and_without_a_match(carol: Path, pipelines: Pipelines) -> None:
    """User metadata filters too; where nothing is left, nothing is found."""
    pipeline = pipelines(carol)
    shelf = await pipeline.retrieve(QUESTION, QueryParam(where={"shelf": "b"}))
    assert {chunk.document_id for chunk in shelf.chunks} == {"clerk", "son"}
    assert (await pipeline.retrieve(QUESTION, QueryParam(where={"shelf": "z"}))).empty


@pytest.mark.parametrize(
    "where",
    [
        {"shelf": 10**30},
        {"shelf": ["z", -(10**400)]},
        {"shelf": "\ud800"},
        {"shelf": {"$lt": -(10**400)}},
        {"\ud800": 1},
    ],
)
async def test_a_filter_that_no_database_can_hold_leaves_nothing(
    carol: Path, pipelines: Pipelines, where: dict[str, Json]
) -> None:
    """Numbers past 64 bits and half surrogate pairs are compared like any value."""
    context = await pipelines(carol).retrieve(QUESTION, QueryParam(where=where))
    assert context.empty


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"$gt": 2030}, set()),
        ({"$lt": "1000"}, set()),
        ({"$gte": 2020, "$lt": 2022.5}, {2020, 2022}),
        ({"$gte": [2022, "2021"]}, {2022, "2021"}),
        ({"$ne": 2020}, {"2021", 2022}),
        ({"$eq": 2020}, {2020}),
        ({"$in": [2020, "2021"]}, {2020, "2021"}),
        ({"$nin": [2020, "2021"]}, {2022}),
        ({"$in": [2020, "2021"], "$ne": 2020}, {"2021"}),
        ({"$ne": [2020, "2021"]}, {2022}),
        ({"$ne": None}, {2020, "2021", 2022}),
        ({"$ne": [None, 2022]}, {2020, "2021"}),
        (None, {None}),
        ([None, 2022], {None, 2022}),
        ([], set()),
    ],
)
def test_values_are_compared_with_those_of_their_kind(
    tmp_path: Path, wanted: Json, found: set[Json]
) -> None:
    """No text is greater than any number; a fact that is not there is none, and meets no comparison."""
    years: list[Json] = [2020, "2021", None, 2022]
    with LightRAG(tmp_path) as rag:
        rag.insert([Document(f"Ann met Bob {y}.", id=str(y), metadata={"year": y}) for y in years])
        hits = rag.retrieve("Ann", QueryParam(mode="naive", where={"year": wanted}))

    assert {chunk.document_id for chunk in hits.chunks} == set(map(str, found))


@pytest.mark.parametrize("key", ["tags", 'a"b', "标签"])
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("red", {"a", "c"}),
        (["red", 7], {"a", "b", "c"}),
        (7, {"b"}),
        ("[", {"b"}),
        ({"$ne": "red"}, {"b"}),
        ({"$nin": [7]}, {"a", "c"}),
        (None, {"d"}),
    ],
)
def test_of_a_list_of_facts_one_will_do(
    tmp_path: Path, key: str, wanted: Json, found: set[str]
) -> None:
    """A document with several tags is found by each of them, as one whose only fact it is."""
    facts: dict[str, Json] = {"a": ["red", "round"], "b": ["[", 7, {"x": "red"}], "c": "red"}
    given = [Document("Ann met Bob.", id=id, metadata={key: fact}) for id, fact in facts.items()]
    with LightRAG(tmp_path) as rag:
        rag.insert([*given, Document("Ann met Bob.", id="d")])
        hits = rag.retrieve("Ann", QueryParam(mode="naive", where={key: wanted}))

    assert {chunk.document_id for chunk in hits.chunks} == found


@pytest.mark.parametrize("wanted", [{"$gt": None}, {"$gt": []}, {"$ne": {}}, {"$lt": [[1]]}, {}])
def test_a_comparison_with_what_cannot_be_compared_is_refused(tmp_path: Path, wanted: Json) -> None:
    """The error names the field, and not the database."""
    with LightRAG(tmp_path) as rag:
        rag.insert("Ann met Bob.")
        with pytest.raises(ConfigError, match=r"^where\['year'\]"):
            rag.retrieve("Ann", QueryParam(where={"year": wanted}))


@pytest.mark.parametrize(
    "key", ["shelf", "a.b", "$", "", "a]b", "'", '"', 'a"b', "\\", "a\nb", "架"]
)
def test_any_metadata_can_be_asked_for(tmp_path: Path, key: str) -> None:
    """Whatever it is called."""
    with LightRAG(tmp_path) as rag:
        rag.insert([Document("Ann met Bob.", id=id, metadata={key: id}) for id in ("a", "b")])
        found = rag.retrieve("Ann", QueryParam(mode="naive", where={key: "a"}))

    assert {chunk.document_id for chunk in found.chunks} == {"a"}


# ── keywords ────────────────────────────────────────────────────────────────────


def keywords(high: Sequence[str], low: Sequence[str]) -> str:
    """The answer of a model that was asked for keywords."""
    quoted = [", ".join(f'"{word}"' for word in words) for words in (high, low)]
    return f'{{"high_level_keywords":[{quoted[0]}],"low_level_keywords":[{quoted[1]}]}}'


async def test_the_conversation_goes_to_keywords_and_answer(
    carol: Path, pipelines: Pipelines
) -> None:
    """A follow-up question is understood from its history."""
    llm = ScriptedLLM([keywords(["employment"], ["Bob Cratchit"]), "A clerk [1]."])
    param = QueryParam(
        conversation_history=(Message("user", "Tell me of Bob Cratchit."),), user_prompt="Be brief."
    )
    answer = await pipelines(carol, llm=llm).answer("What does he do?", param)
    assert answer.text == "A clerk [1]."
    assert all("Tell me of Bob Cratchit." in request.text for request in llm.requests)
    assert "Be brief." in llm.requests[1].text
    assert answer.usage.calls == 2


async def test_given_keywords_skip_the_call(carol: Path, pipelines: Pipelines) -> None:
    """The model is asked for nothing but the answer."""
    llm = ScriptedLLM(["Marley."])
    param = QueryParam(mode="local", ll_keywords=("Scrooge", " scrooge ", ""))
    answer = await pipelines(carol, llm=llm).answer(QUESTION, param)
    assert answer.context.keywords == Keywords((), ("Scrooge",))
    assert len(llm.requests) == 1


@pytest.mark.parametrize("mode", GRAPH)
@pytest.mark.parametrize(
    "keywords",
    [Keywords(("partnership",), ()), Keywords((), ("Scrooge",))],
    ids=["themes", "names"],
)
async def test_one_kind_of_keywords_is_enough_in_every_mode(
    carol: Path, pipelines: Pipelines, mode: Mode, keywords: Keywords
) -> None:
    """A lane without keywords of its own hands over to the other one, and that one searches."""
    param = QueryParam(mode=mode, hl_keywords=keywords.high_level, ll_keywords=keywords.low_level)
    context = await pipelines(carol).retrieve(QUESTION, param)
    assert context.chunks[0].document_id == "partners"
    assert {context.relations[0].source, context.relations[0].target} == {"Marley", "Scrooge"}


async def test_keywords_under_chinese_names_are_keywords(carol: Path, pipelines: Pipelines) -> None:
    """As a model that answers in Chinese names them; nothing is asked again."""
    llm = ScriptedLLM(['{"高级关键词":["生意"],"低级关键词":"斯克鲁奇、马利"}'])
    context = await pipelines(carol, llm=llm).retrieve(QUESTION, QueryParam(mode="local"))
    assert context.keywords == Keywords(("生意",), ("斯克鲁奇", "马利"))
    assert len(llm.requests) == 1


async def test_unreadable_keywords_do_not_fail_the_query(carol: Path, pipelines: Pipelines) -> None:
    """The question itself is searched with."""
    llm = ScriptedLLM(["no JSON", "still none"])
    context = await pipelines(carol, llm=llm).retrieve(QUESTION, QueryParam(mode="global"))
    assert context.keywords == Keywords()
    assert context.relations


async def test_naive_asks_for_no_keywords(carol: Path, pipelines: Pipelines) -> None:
    """A mode that looks for no facts pays for no keywords."""
    llm = ScriptedLLM([])
    assert (await pipelines(carol, llm=llm).retrieve(QUESTION, QueryParam(mode="naive"))).chunks


# ── answers ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", SEARCHING)
async def test_an_empty_index_answers_without_a_model(
    tmp_path: Path, pipelines: Pipelines, mode: Mode
) -> None:
    """Nothing found is said as such, in the caller's words where there are any."""
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
    return re.findall("(?:Form of the answer: |回答的形式：)(.*?)[.。]", llm.requests[0].text)[0]


@pytest.mark.parametrize(("language", "own"), [("en", "several paragraphs"), ("zh", "分为几段")])
@pytest.mark.parametrize(("mode", "unsaid"), [("naive", None), ("local", ""), ("mix", None)])
def test_the_form_of_an_answer_is_told_in_the_language_of_the_prompt(
    tmp_path: Path, mode: Mode, unsaid: str | None, language: str, own: str
) -> None:
    """Unless the caller names one, which goes out as it is."""
    with LightRAG(tmp_path, language=language) as rag:
        rag.insert("Scrooge was the partner of Marley.")
    param = QueryParam(mode=mode, ll_keywords=("Scrooge",), response_type=unsaid)
    assert form_of_the_answer(tmp_path, param, language=language) == own
    for form in ("Multiple Paragraphs", "一句话"):
        named = replace(param, response_type=form)
        assert form_of_the_answer(tmp_path, named, language=language) == form


def test_a_prompt_of_ones_own_need_not_name_a_form(carol: Path, tmp_path: Path) -> None:
    """It may ask for the variable, as TrustGraph's do, whether anybody gives it or not."""
    template = "---\nresponse-type: text\n---\n# user\n\nForm of the answer: {{ response_type }}.\n"
    (tmp_path / "answer-mix.md").write_text(template, encoding="utf-8")
    assert form_of_the_answer(carol, prompts=tmp_path) == "Multiple Paragraphs"


async def test_bypass_is_the_model_alone(carol: Path, pipelines: Pipelines) -> None:
    """History and question go out as they are, and nothing is retrieved."""
    llm = ScriptedLLM(["Hello."])
    history = (Message("user", "Hi."), Message("assistant", "Yes?"))
    param = QueryParam(mode="bypass", conversation_history=history)
    answer = await pipelines(carol, llm=llm).answer("Who are you?", param)
    assert answer.text == "Hello." and answer.context.empty
    assert llm.requests[0].messages == (*history, Message("user", "Who are you?"))


async def test_bypass_without_a_model_says_what_is_missing(
    carol: Path, pipelines: Pipelines
) -> None:
    """There is nobody to ask."""
    with pytest.raises(ConfigError, match="model"):
        await pipelines(carol).answer(QUESTION, QueryParam(mode="bypass"))


async def test_a_given_context_is_answered_from_as_it_is(carol: Path, pipelines: Pipelines) -> None:
    """No second search, so what was looked at is what is answered from."""
    llm = ScriptedLLM(["Marley [1]."])
    pipeline = pipelines(carol, llm=llm)
    context = await pipeline.retrieve(QUESTION, QueryParam(mode="naive"))
    altered = replace(context, prompt="[1] Something else.")
    answer = await pipeline.answer(QUESTION, QueryParam(mode="naive"), altered)
    assert "[1] Something else." in llm.requests[0].text
    assert answer.context == altered


class Watching(Silent):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    async def keywords_found(self, keywords: Keywords) -> None:
        """Note it."""
        self.steps.append("keywords")

    async def retrieved(self, relations: object, chunks: object) -> None:
        """Note it."""
        self.steps.append("retrieved")

    async def selected(self, selection: object, context: Context) -> None:
        """Note it."""
        self.steps.append("selected")

    async def piece(self, text: str) -> None:
        """Note it."""
        self.steps.append("piece")

    async def answered(self, answer: Answer) -> None:
        """Note it."""
        self.steps.append("answered")

    async def failed(self, error: BaseException) -> None:
        """Note it."""
        self.steps.append("failed")


async def test_an_observer_is_told_of_each_step_in_order(carol: Path, pipelines: Pipelines) -> None:
    """Keywords, retrieval, selection, the pieces, the answer."""
    watching = Watching()
    await pipelines(carol).answer(QUESTION, QueryParam(), observer=watching)
    assert watching.steps == ["keywords", "retrieved", "selected", "piece", "answered"]


async def test_an_observer_is_told_once_of_a_failure(carol: Path, pipelines: Pipelines) -> None:
    """The error reaches the caller too."""
    watching = Watching()
    llm = ScriptedLLM([keywords(["x"], ["y"]), LLMError("the server is gone")])
    with pytest.raises(LLMError, match="gone"):
        await pipelines(carol, llm=llm).answer(QUESTION, QueryParam(), observer=watching)
    assert watching.steps == ["keywords", "retrieved", "selected", "failed"]


# ── rerank ──────────────────────────────────────────────────────────────────────


class Longest:
    """A reranker that likes long texts, wrongly."""

    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """The length."""
        return [float(len(text)) for text in texts]


async def test_the_reranker_orders_direct_hits(carol: Path, pipelines: Pipelines) -> None:
    """In naive mode its order is the order; `enable_rerank=False` leaves it out."""
    pipeline = pipelines(carol, reranker=Longest())
    chunks = (await pipeline.retrieve(QUESTION, QueryParam(mode="naive"))).chunks
    assert [len(c.text) for c in chunks] == sorted((len(c.text) for c in chunks), reverse=True)
    param = QueryParam(mode="naive", enable_rerank=False)
    assert (await pipeline.retrieve(QUESTION, param)).chunks[0].document_id == "partners"


class Worst:
    """A reranker that throws out the passages a given text occurs in."""

    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Not a number for what it dislikes."""
        return [float("nan") if "Marley" in text else 1.0 for text in texts]


async def test_what_the_graph_reached_keeps_its_share(carol: Path, pipelines: Pipelines) -> None:
    """A passage that the reranker throws out stays, because facts led to it."""
    param = QueryParam(mode="mix", chunk_top_k=2)
    chunks = (await pipelines(carol, reranker=Worst()).retrieve(QUESTION, param)).chunks
    assert "partners" in [chunk.document_id for chunk in chunks]


# ── bad input ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("question", ["", "   \n"])
async def test_an_empty_question_is_an_error(
    carol: Path, pipelines: Pipelines, question: str
) -> None:
    """The message says what is wrong."""
    with pytest.raises(ConfigError, match="empty"):
        await pipelines(carol).retrieve(question, QueryParam())


@pytest.mark.parametrize(
    "question",
    ["Scrooge " * 200_000, "问" * 300_000, "\ud800\x00?", '"*:^(AND OR NOT', "?", "😀"],
    ids=["long", "long without spaces", "unstorable", "query syntax", "a mark", "emoji"],
)
@pytest.mark.parametrize("mode", ["naive", "mix", "walk"])
async def test_strange_questions_are_answered_within_the_budget(
    carol: Path, pipelines: Pipelines, mode: Mode, question: str
) -> None:
    """Longer than any budget, without words, full of syntax: no crash, and no overflow."""
    llm = ScriptedLLM(lambda request: "…")
    param = QueryParam(mode=mode, max_total_tokens=400, ll_keywords=("Scrooge",))
    answer = await pipelines(carol, llm=llm).answer(question, param)
    assert answer.context.tokens <= 400
    assert len(answer.context.question) <= 40_000


class Broken:
    """An embedder that gives one vector, whatever it is asked."""

    name, dim = "broken", 3

    async def embed(self, texts: Sequence[str], *, kind: str) -> np.ndarray:
        """One row."""
        return np.zeros((1, 3), np.float32)


async def test_an_embedder_of_the_wrong_shape_is_named(carol: Path, pipelines: Pipelines) -> None:
    """The error says who, what came and what was wanted."""
    pipeline = pipelines(carol, embedder=Broken())
    with pytest.raises(EmbeddingError, match=r"broken.* \(3, 3\), got \(1, 3\)"):
        await pipeline.retrieve(QUESTION, QueryParam())


async def test_changes_of_the_index_are_seen_by_the_walk(
    tmp_path: Path, pipelines: Pipelines
) -> None:
    """The cached matrix follows an insert."""
    pipeline = pipelines(tmp_path)
    param = QueryParam(mode="walk", ll_keywords=("Scrooge",))
    fill(tmp_path, [(Document("Scrooge is old.", id="a"), [entity("Scrooge", "person", "old")])])
    assert len((await pipeline.retrieve(QUESTION, param)).chunks) == 1
    told = [relation("Marley", "partner", "Scrooge", "Marley was his partner.")]
    fill(tmp_path, [(Document("Marley was his partner.", id="b"), told)])
    context = await pipeline.retrieve(QUESTION, param)
    assert {chunk.document_id for chunk in context.chunks} == {"a", "b"}
    assert "Marley" in {entity.name for entity in context.entities}


async def test_a_deleted_chunk_leaves_no_name_behind(tmp_path: Path, pipelines: Pipelines) -> None:
    """Sources are named by the chunks that are there, also where a row is used again."""
    pipeline = pipelines(tmp_path)
    param = QueryParam(mode="local", ll_keywords=("Scrooge",))
    fill(tmp_path, [(Document("Scrooge is old.", id="a"), [entity("Scrooge", "person", "old")])])
    (before,) = (await pipeline.retrieve(QUESTION, param)).entities[0].chunk_ids
    with LightRAG(tmp_path) as rag:
        rag.delete("a")
    fill(tmp_path, [(Document("Scrooge is rich.", id="b"), [entity("Scrooge", "person", "rich")])])
    context = await pipeline.retrieve(QUESTION, param)
    (after,) = context.entities[0].chunk_ids
    assert after == context.chunks[0].id != before


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
    async with AsyncLightRAG(tmp_path, embedder=Misled(lexical=lexical)) as rag:
        await rag.insert([Document(text, id=f"d{n}") for n, text in enumerate(texts)])
        context = await rag.retrieve("Was Marley dead?", mode="naive")
    assert context.chunks[0].document_id == first
