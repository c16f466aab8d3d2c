"""Conversations about a chunk: what is asked when, and what an answer of each kind leaves behind."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import (
    Chunk,
    Completion,
    Document,
    DocumentStatus,
    EntityMention,
    IndexOptions,
    InsertReport,
    Limits,
    LLMError,
    Message,
    RelationMention,
    Usage,
)
from lightrag_jsonl.testing import Request, Script, ScriptedLLM
from tests.indexing import test_ontology as kitchen
from tests.kit import (
    Record,
    entity,
    extraction,
    index,
    jsonl,
    problems,
    prompts,
    reading,
    relation,
    text_of,
)

TEXT = "Ann met Bob in Bern. Cid was there too."
DONE = {"type": "done", "entities": 2, "relationships": 1}
FIRST = jsonl(entity("Ann"), entity("Bob"), relation("Ann", "Bob"), DONE)
NOTHING = jsonl({"type": "done", "entities": 0, "relationships": 0})
DONE_LINE = jsonl(DONE)
NAMES_OF_FIRST = "Then Ann met Bob, and Bob greeted Ann."
GLEAN = prompts().render("glean-extract", {})[-1].content
CHECK = prompts().render("glean-check", {})[-1].content
RESUME = prompts().render("resume-extract", {})[-1].content


def options(**more: Any) -> IndexOptions:
    return IndexOptions(**{"max_gleanings": 0, "glean_min_tokens": 1, **more})


def extract(
    folder: Path, script: Script, given: IndexOptions, text: str = TEXT
) -> tuple[ScriptedLLM, InsertReport, DocumentStatus]:
    """Index one text with a scripted model."""
    llm = ScriptedLLM(script)

    async def run() -> tuple[InsertReport, DocumentStatus]:
        async with index(folder, llm, options=given) as rag:
            report = await rag.insert(Document(text, id="x"))
            return report, (await rag.documents())[0]

    return llm, *asyncio.run(run())


def turns(llm: ScriptedLLM) -> list[str]:
    """What each call asked for."""
    names = {GLEAN: "glean", CHECK: "check", RESUME: "resume"}
    return [names.get(request.question, "extract") for request in llm.requests]


def names(folder: Path) -> set[str]:
    with reading(folder) as reader:
        return {row.name for row in reader.entity_rows().values()}


# ── gleaning ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_gleaning_makes_as_many_rounds_as_it_may(tmp_path: Path, rounds: int) -> None:
    """Rounds that each bring something new go on to the limit: 0 means none, 3 means three."""
    answers = [FIRST.replace("2", "9"), *(jsonl(entity(f"New{n}")) for n in range(9))]
    llm, report, _ = extract(tmp_path, answers, options(max_gleanings=rounds))

    assert turns(llm) == ["extract"] + ["glean"] * rounds
    assert report.extraction.gleaned == (1,) * rounds
    assert names(tmp_path) == {"Ann", "Bob", *(f"New{n}" for n in range(rounds))}


@pytest.mark.parametrize("second", [jsonl(entity("ANN", "Again."), entity("bob")), NOTHING])
def test_gleaning_ends_with_a_round_that_brings_nothing_new(tmp_path: Path, second: str) -> None:
    """What was read before is nothing new, however it is spelled. The round is asked for at once,
    also where as much was read as was declared.
    """
    llm, report, _ = extract(tmp_path, [FIRST, second], options(max_gleanings=3))
    assert turns(llm) == ["extract", "glean"] and report.extraction.gleaned == (0,)


LOST = FIRST.replace('"name": "Bob"', '"name": Bob')
MORE = jsonl(entity("Cid"), {"type": "done", "entities": 1, "relationships": 0})
NOES = ("NO", "No.", "no, nothing", "**No**", "否", "没有")


@pytest.mark.parametrize(
    ("answers", "asked", "gleaned"),
    [
        *(([FIRST, no], "extract check", ()) for no in NOES),
        ([FIRST, "YES", MORE, "NO"], "extract check glean check", (1,)),
        ([LOST, NOTHING], "extract glean", (0,)),
    ],
)
def test_with_a_check_declared_counts_that_match_are_asked_about(
    tmp_path: Path, answers: list[str], asked: str, gleaned: tuple[int, ...]
) -> None:
    """Where as much was read as was declared, a short question replaces the round, or is followed by
    it, also in later rounds; where a line was lost, no check is needed.
    """
    llm, report, _ = extract(tmp_path, answers, options(max_gleanings=3, glean_check=True))
    assert turns(llm) == asked.split() and report.extraction.gleaned == gleaned
    assert ("Cid" in names(tmp_path)) == (MORE in answers)


def test_short_chunks_and_empty_answers_are_not_gleaned(tmp_path: Path) -> None:
    """Below `glean_min_tokens`, or where there was nothing, no second look is paid."""
    short, _, _ = extract(tmp_path / "a", [FIRST], options(max_gleanings=1, glean_min_tokens=50))
    empty, _, status = extract(tmp_path / "b", [NOTHING], options(max_gleanings=1))
    assert turns(short) == turns(empty) == ["extract"]
    assert (status.state, status.extraction.empty, status.failures) == ("done", 1, ())


def test_the_prefix_of_all_requests_is_the_same_byte_for_byte(tmp_path: Path) -> None:
    """Over chunks, rounds, checks and resumed answers everything before the text is equal, and each turn adds."""
    text = "\n\n".join(
        f"Person{n} met Ann in the old town, and they talked. " * 3 for n in range(4)
    )

    def answer(request: Request) -> str | Completion:
        name = text_of(request).split()[0]
        turns_before = len(request.messages)
        if turns_before == 2:
            return Completion(jsonl(entity(name)) + '\n{"type": "ent', "length")
        return jsonl(entity(f"{name}Turn{turns_before}"))

    given = options(max_gleanings=2, chunk_tokens=45, chunk_overlap=0)
    llm, report, _ = extract(tmp_path, answer, given, text)

    assert report.chunks == 4 and len(llm.requests) == 4 * (1 + 1 + 2)
    heads = {
        r.messages[0].content + r.messages[1].content.partition("Person")[0] for r in llm.requests
    }
    assert len(heads) == 1
    for number in range(4):
        talk = [r for r in llm.requests if text_of(r).startswith(f"Person{number} ")]
        for before, after in itertools.pairwise(talk):
            assert after.messages[: len(before.messages)] == before.messages
            assert [m.role for m in after.messages[len(before.messages) :]] == ["assistant", "user"]


# ── cut answers ─────────────────────────────────────────────────────────────────

CUT = jsonl(entity("Ann")) + '\n{"type": "entity", "name": "Bo'


@pytest.mark.parametrize("cut", [Completion(jsonl(entity("Ann")), "length"), CUT])
def test_a_cut_answer_is_resumed_after_its_last_whole_record(
    tmp_path: Path, cut: Completion | str
) -> None:
    """Whether the model or the reader says that it was cut; the half record is not a fact."""
    rest = jsonl(entity("Bob"), relation("Ann", "Bob"), DONE)
    llm, report, status = extract(tmp_path, [cut, rest], options())

    assert turns(llm) == ["extract", "resume"]
    assert llm.requests[1].messages[-2] == Message("assistant", jsonl(entity("Ann")))
    assert names(tmp_path) == {"Ann", "Bob"} and status.state == "done"
    assert (report.extraction.truncated, report.extraction.resumed) == (1, 1)
    assert report.extraction.partial == 0


def test_resuming_ends_at_its_limit(tmp_path: Path) -> None:
    """`max_resumes` answers that are cut again are enough; what was whole is kept."""
    cuts = [jsonl(entity(f"Name{n}")) + '\n{"type": "ent' for n in range(9)]
    llm, report, _ = extract(tmp_path, cuts, options(max_resumes=2))
    assert report.extraction.partial == 1
    assert turns(llm) == ["extract", "resume", "resume"] and len(names(tmp_path)) == 3
    assert (report.extraction.truncated, report.extraction.resumed) == (3, 2)


def test_a_gleaning_round_is_resumed_too(tmp_path: Path) -> None:
    """A cut in the second look is gone on with like one in the first."""
    cut = Completion(jsonl(entity("Bob")), "length")
    answers = [jsonl(entity("Ann")), cut, jsonl(entity("Cid"))]
    llm, _, _ = extract(tmp_path, answers, options(max_gleanings=1))
    assert turns(llm) == ["extract", "glean", "resume"] and "Cid" in names(tmp_path)


def test_an_answer_cut_before_its_first_record_is_not_an_empty_one(tmp_path: Path) -> None:
    """Nothing whole within the limit: asked once more, then failed, never silently empty."""
    cut = Completion("", "length")
    llm, report, status = extract(tmp_path, [cut, cut], options())
    assert turns(llm) == ["extract", "extract"]
    assert status.state == "failed" and report.extraction.failed == 1 and report.failures


# ── answers that fail ───────────────────────────────────────────────────────────

GARBAGE = "I am sorry, but I cannot do that."


@pytest.mark.parametrize("text", [TEXT, "曹操字孟德，生于１５５年 🙂。"])
@pytest.mark.parametrize("bad", [GARBAGE, "", " \n", "<think>Hm.</think>\n"])
def test_an_unreadable_answer_is_asked_for_once_more(tmp_path: Path, bad: str, text: str) -> None:
    """The second one counts, and both are paid. Then the chunk has failed, with the text kept for
    review, and no answer is cached as good: silence does not say that there is nothing.
    """
    llm, report, status = extract(tmp_path / "a", [bad, FIRST], options(), text)
    assert turns(llm) == ["extract", "extract"] and status.state == "done"
    assert report.usage.calls == 2 and report.extraction.records == 4
    llm, report, status = extract(tmp_path / "b", [bad, bad], options(), text)
    assert turns(llm) == ["extract", "extract"]
    assert (status.state, report.extraction.failed) == ("failed", 1)
    assert ("could be read" if bad == GARBAGE else "empty") in report.failures[0].reason
    with reading(tmp_path / "b") as reader:
        kept = [(one.text, one.reason) for _, _, one in reader.rejections()]
        assert kept == [(GARBAGE, "not_json")][: bad == GARBAGE]
        assert reader.completion_stats() == (0, 0)


async def test_answers_that_get_lost_are_counted_and_end_the_insert(tmp_path: Path) -> None:
    """Each chunk is asked about once, and sixteen in a row are enough; the others wait."""
    lost = LLMError("no answer in time", cost=Usage(calls=1))
    llm = ScriptedLLM(lambda request: lost)
    one_by_one = IndexOptions(max_concurrent_calls=1)
    async with index(tmp_path, llm, options=one_by_one) as rag:
        with pytest.raises(LLMError, match="16 chunks in a row got no answer") as caught:
            await rag.insert([Document(f"Ann met Bob on day {n}.") for n in range(30)])
    report = caught.value.report
    assert report is not None and report.usage == caught.value.usage
    assert report.usage == Usage(calls=len(llm.requests)) and 16 <= report.usage.calls <= 17
    assert report.extraction.usage.calls == report.extraction.failed


# ── other prompts ───────────────────────────────────────────────────────────────


async def test_an_ontology_is_kept_to(tmp_path: Path) -> None:
    """`extract-with-ontologies`: what fits feeds the graph, what does not is a rejection with its reason."""
    answer = jsonl(
        kitchen.entity("Cornish pasty", "Pastry"),
        kitchen.entity("beef", "Food"),
        kitchen.relation("Cornish pasty:Pastry", "has_ingredient", "beef:Food"),
        kitchen.attribute("Cornish pasty", "Pastry", "serves", 4),
        kitchen.relation("beef:Food", "has_ingredient", "Cornish pasty:Pastry"),
        kitchen.entity("Cornwall", "County"),
    )
    llm = ScriptedLLM([answer])
    given = options(extraction="extract-with-ontologies", ontology=kitchen.KITCHEN)
    async with index(tmp_path, llm, options=given) as rag:
        await rag.insert(Document("A Cornish pasty, with beef, serves 4.", id="x"))
        graph = rag.graph
        assert set(graph) == {"Cornish pasty", "beef"}
        assert graph.nodes["Cornish pasty"]["attributes"] == "serves: 4"
        assert graph.nodes["Cornish pasty"]["entity_type"] == "Pastry"
        assert graph.edges["Cornish pasty", "beef"]["keywords"] == "has_ingredient"
        refused = [rejection for _, _, rejection in await rag.rejections()]
        assert [(one.line, one.reason) for one in refused] == [(5, "ontology"), (6, "ontology")]
        assert "County" in refused[1].detail
    assert "has_ingredient: Recipe -> Food" in llm.requests[0].messages[0].content


async def test_definitions_feed_the_graph(tmp_path: Path) -> None:
    """`agent-kg-extract`: definitions are entities, values are attributes, the rest are relations."""
    told: Record = {"type": "relationship", "subject": "sextant", "predicate": "made of"}
    john: Record = {**told, "predicate": "was perfected by", "object": "John Campbell"}
    answer = jsonl(
        {"type": "definition", "entity": "sextant", "definition": "An instrument."},
        {**john, "object-entity": True},
        {**told, "object": "brass", "object-entity": False},
        {**told, "object": "x"},
    )
    llm = ScriptedLLM([answer])
    async with index(tmp_path, llm, options=options(extraction="agent-kg-extract")) as rag:
        await rag.insert(Document("A sextant, of brass, perfected by John Campbell.", id="x"))
        graph = rag.graph
        assert set(graph) == {"sextant", "John Campbell"}
        assert graph.nodes["sextant"]["attributes"] == "made of: brass"
        edge = graph.edges["sextant", "John Campbell"]
        assert edge["keywords"] == "was perfected by" and edge["source"] == "sextant"
        assert edge["description"] == "sextant was perfected by John Campbell"
        assert [r.detail for _, _, r in await rag.rejections()] == [
            "relationship: 'object-entity' is missing"
        ]


# ── extractors that users bring ─────────────────────────────────────────────────

ANN = EntityMention("Ann", "person", "A woman.")


class Reader:
    """Finds Ann everywhere, but in the text that is bad it gives or raises something else."""

    name = "reader"

    def __init__(self, otherwise: object) -> None:
        self._otherwise = otherwise

    async def extract(self, chunk: Chunk) -> Any:
        if "bad" not in chunk.text:
            return extraction((ANN,))
        if isinstance(self._otherwise, Exception):
            raise self._otherwise
        return self._otherwise


@pytest.mark.parametrize(
    "otherwise",
    [
        ValueError("boom"),
        LLMError("ill"),
        None,
        extraction((ANN,), (RelationMention("Ann", "Bob", (), ""),)),
        extraction((EntityMention("", "person", ""),)),
        extraction((EntityMention("Ann", None, ""),)),  # type: ignore[arg-type]
        extraction((ANN,), state="fine"),
        extraction((ANN,), usage=None),
        extraction(
            (ANN, EntityMention("Bob", "", "")),
            (RelationMention("Ann", "Bob", (), "", float("nan")),),
        ),
    ],
)
async def test_one_bad_chunk_is_a_failure_of_its_own(tmp_path: Path, otherwise: object) -> None:
    """The others are there, nothing is passed over in silence, and a retry asks again."""
    async with index(tmp_path, extractor=Reader(otherwise)) as rag:
        report = await rag.insert([Document(text, id=text) for text in ("good", "bad", "fine")])
        assert report.documents == ("bad", "fine", "good") and report.stopped == ""
        assert [failure.document_id for failure in report.failures] == ["bad"]
        assert report.failures[0].reason
    async with index(tmp_path, extractor=Reader(extraction((ANN,)))) as rag:
        assert (await rag.retry()).failures == ()
        assert {document.state for document in await rag.documents()} == {"done"}
    assert problems(tmp_path) == []


async def test_texts_are_kept_as_they_can_be(tmp_path: Path) -> None:
    """Half an emoji is replaced, as in what a model writes; what was spent is reported."""
    found = extraction((EntityMention("Ann", "person", "half \ud83d"),), usage=Usage(calls=1))
    async with index(tmp_path, extractor=Reader(found)) as rag:
        report = await rag.insert(Document("bad", id="bad"))
        assert report.failures == () and report.usage.calls == 1
        assert rag.graph.nodes["Ann"]["description"] == "half \ufffd"


def test_what_exceeds_a_limit_is_left_out_and_reported(tmp_path: Path) -> None:
    """Records of a short text, long names and keywords, and refused lines; the rest is kept."""
    far, word = "n" * 501, "长" * 501
    known = [entity("Ann"), entity("Bob"), relation("Ann", "Bob", keywords=["knows", word])]
    answer = jsonl(*known, entity(far), relation("Ann", far), *map(entity, map(str, range(200))))
    limits = Limits(rejections=4)
    _, report, status = extract(tmp_path, [answer + "\nno record" * 300], options(limits=limits))

    assert (report.extraction.records, report.failures, status.state) == (100, (), "done")
    with reading(tmp_path) as snapshot:
        names = {row.key for row in snapshot.entity_rows().values()}
        (edge,) = snapshot.relations(list(snapshot.relation_rows())).values()
        stored = [(one.reason, one.detail) for _, _, one in snapshot.rejections()]
    assert len(names) == 97 and names >= {"ann", "bob"} and edge.keywords == ("knows",)
    assert [reason for reason, _ in stored] == ["limit", *["not_json"] * 3, "limit"]
    assert stored[-1][1] == "300 further refused lines are not stored"

    roomy = options(limits=Limits(rejections=1000))
    extract(tmp_path / "all", [answer], roomy)
    with reading(tmp_path / "all") as snapshot:
        refused = [one.detail for _, _, one in snapshot.rejections() if one.reason == "limit"]
    assert refused == [
        "105 records beyond the first 100",
        "kept without a keyword that has more than 500 characters",
        "a name has more than 500 characters",
        "a name has more than 500 characters",
    ]


@pytest.mark.parametrize(
    ("answers", "rounds", "asked"),
    [
        ([FIRST], None, "extract"),
        ([FIRST, NOTHING], 1, "extract glean"),
        ([jsonl(entity("Ann"), relation("Ann", "Cid")), NOTHING], None, "extract glean"),
        ([Completion(FIRST, "length"), DONE_LINE, NOTHING], None, "extract resume glean"),
    ],
)
def test_a_short_chunk_is_gleaned_only_where_something_may_be_missing(
    tmp_path: Path, answers: Script, rounds: int | None, asked: str
) -> None:
    """By default: where a name of the text has no record, or the first answer was cut off. If rounds
    are asked for, they are made.
    """
    llm, _, _ = extract(tmp_path, answers, options(max_gleanings=rounds), text=NAMES_OF_FIRST)
    assert turns(llm) == asked.split()


def test_a_long_chunk_is_gleaned_by_default(tmp_path: Path) -> None:
    """Models miss records there, also where every name has one."""
    text = "They talked on, and the rain went on, too. " * 70
    llm, _, _ = extract(tmp_path, [FIRST, NOTHING], options(max_gleanings=None), text=text)
    assert turns(llm) == ["extract", "glean"]
