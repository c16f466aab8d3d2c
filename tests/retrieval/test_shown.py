"""What is shown to the model reads as one world: one value for one thing, in the order of reading."""

from pathlib import Path

import pytest

from lightrag_jsonl import Context, Document, LightRAG, QueryParam
from lightrag_jsonl.testing import Request, ScriptedLLM
from tests.kit import entity, relation
from tests.retrieval.conftest import Given, Pipelines, Words, fill

NAMESAKES: list[Given] = [
    (
        Document("Mary Ann Evans, called George Eliot, wrote Middlemarch.", id="life"),
        [
            entity("Mary Ann Evans", "She edited a review.", aliases=["George Eliot"]),
            entity("Middlemarch", kind="book"),
            relation("Mary Ann Evans", "Middlemarch", "It has eight parts.", keywords=["wrote"]),
        ],
    ),
    (
        Document("George Eliot lived in Chelsea, where George Eliot had a house.", id="house"),
        [
            entity("George Eliot", "She had a house in Chelsea", attribute=["house number", "4"]),
            entity("Chelsea", kind="place"),
            relation("George Eliot", "Chelsea", "She died there.", keywords=["lived in"]),
        ],
    ),
]
QUESTION = "Who were Mary Ann Evans and George Eliot, and where is Chelsea?"


def names(context: Context) -> set[str]:
    return {entity.name for entity in context.entities}


@pytest.mark.parametrize("mode", ["mix", "local"])
async def test_entities_that_are_certainly_one_stand_in_one_line(
    tmp_path: Path, pipelines: Pipelines, mode: str
) -> None:
    """With the descriptions, values and passages of both; relations keep their names."""
    fill(tmp_path, NAMESAKES)
    context = await pipelines(tmp_path).retrieve(QUESTION, QueryParam(mode=mode))
    (author,) = [e for e in context.entities if e.name in ("Mary Ann Evans", "George Eliot")]
    assert {author.name, *author.aliases} == {"Mary Ann Evans", "George Eliot"}
    for sentence in ("She edited a review.", "She had a house in Chelsea"):
        assert sentence in author.description
    assert "Chelsea." in author.description or "review. She" in author.description
    assert f"(person; also called {author.aliases[0]}; house number: 4)" in context.prompt
    assert len(author.chunk_ids) == 2
    assert "George Eliot — lived in → Chelsea" in context.prompt
    assert "Mary Ann Evans — wrote → Middlemarch" in context.prompt
    assert context.dropped.entities == 0


async def test_names_that_may_be_two_people_stay_two(tmp_path: Path, pipelines: Pipelines) -> None:
    """An alias that two entities have joins neither, nor does one of another type."""
    rival: Given = (
        Document("Tom Brown signed as George Eliot, too.", id="rival"),
        [entity("Tom Brown", "He signed.", aliases=["George Eliot"])],
    )
    fill(tmp_path, [*NAMESAKES, rival])
    context = await pipelines(tmp_path).retrieve(QUESTION, QueryParam(mode="mix"))
    assert names(context) >= {"Mary Ann Evans", "George Eliot"}
    ship: Given = (
        Document("Anna Lee, called Kestrel, sailed the Kestrel.", id="ship"),
        [
            entity("Anna Lee", "She sailed.", aliases=["Kestrel"]),
            entity("Kestrel", "A sloop.", kind="ship"),
        ],
    )
    fill(tmp_path, [ship])
    context = await pipelines(tmp_path).retrieve("Who is Anna Lee? Kestrel?", QueryParam())
    assert names(context) >= {"Anna Lee", "Kestrel"}


async def test_a_filter_hides_who_is_one(tmp_path: Path, pipelines: Pipelines) -> None:
    """Only visible mentions count: a hidden alias joins nothing and is not shown, and a hidden rival
    does not keep apart what the visible texts say.
    """
    rival: Given = (
        Document("Tom Brown signed as George Eliot, too.", id="rival"),
        [entity("Tom Brown", "He signed.", aliases=["George Eliot"])],
    )
    plain: Given = (
        Document("Mary Ann Evans wrote.", id="plain"),
        [entity("Mary Ann Evans", "She wrote.")],
    )
    fill(tmp_path, [*NAMESAKES, rival, plain])
    pipeline = pipelines(tmp_path)
    without_alias = await pipeline.retrieve(QUESTION, QueryParam(where={"id": ["plain", "house"]}))
    assert names(without_alias) >= {"Mary Ann Evans", "George Eliot"}
    assert "also called" not in without_alias.prompt
    with_alias = await pipeline.retrieve(QUESTION, QueryParam(where={"id": ["life", "house"]}))
    assert len(names(with_alias) & {"Mary Ann Evans", "George Eliot"}) == 1


@pytest.mark.parametrize("filtered", [False, True])
async def test_descriptions_come_in_the_order_of_reading(
    tmp_path: Path, pipelines: Pipelines, filtered: bool
) -> None:
    """By date, the latest first; without a date in the order in which the documents came, whatever their
    ids.
    """
    words = ["zero", "one", "two", "three", "four", "five"]
    documents: list[Given] = [
        (Document("The brig 星 sailed.", id=f"log {word}"), [entity("星", f"Day {word}.")])
        for word in words
    ]
    for year in ("1902", "1901"):
        dated = Document("The brig 星 was built.", id=f"built {year}", date=year)
        documents.append((dated, [entity("星", f"Year {year}.")]))
    fill(tmp_path, documents)
    param = QueryParam(mode="local", where={"id": {"$gte": ""}} if filtered else {})
    context = await pipelines(tmp_path).retrieve("What is 星?", param)
    brig = next(entity for entity in context.entities if entity.name == "星")
    days = " ".join(f"Day {word}." for word in words)
    assert brig.description == f"Year 1902. Year 1901. {days}"


async def test_equal_titles_are_told_apart(tmp_path: Path, pipelines: Pipelines) -> None:
    """By the folder of the file, or else by the id; other titles stay as they are."""
    text = "Turnover of the {} branch rose."
    documents: list[Given] = [
        (Document(text.format(id), id=id, title=title, source=source), [])
        for id, title, source in [
            ("n", "report.txt", "/data/2023/north/report.txt"),
            ("s", "report.txt", "/data/2023/south/report.txt"),
            ("e", "minutes", "/data/2022/east/minutes.txt"),
            ("w", "minutes", "/data/2023/east/minutes.txt"),
            ("x", "summary", None),
            ("y", "summary", "/data/summary.txt"),
            ("z", "budget", "/data/budget.txt"),
        ]
    ]
    fill(tmp_path, documents)
    question = "How did the turnover of the branch develop?"
    context = await pipelines(tmp_path).retrieve(question, QueryParam(mode="naive"))
    assert context.documents == {
        "n": "report.txt (north)",
        "s": "report.txt (south)",
        "e": "minutes (2022/east)",
        "w": "minutes (2023/east)",
        "x": "summary (x)",
        "y": "summary (y)",
        "z": "budget",
    }
    assert "report.txt (south)" in context.prompt


NOTICE = "Read this before you start the pump. Close the green valve,  then wait for a minute."


def pumps(text: str, *, count: int) -> list[Given]:
    """Documents that begin with one text and have a page of their own."""
    return [
        (
            Document(
                "", id=f"pump {number}", pages=(text, f"Pump {number} starts with lever {number}.")
            ),
            [],
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("mode", ["naive", "mix"])
async def test_one_copy_of_a_text_stands_for_all(
    tmp_path: Path, pipelines: Pipelines, mode: str
) -> None:
    """Whatever its white space and capitals; with all sources, and with other passages in the room that
    the copies would have taken.
    """
    documents = pumps(NOTICE, count=12)
    loud = Document(NOTICE.upper().replace("  ", "\n"), id="loud")
    fill(tmp_path, [*documents, (loud, [])])
    param = QueryParam(mode=mode, chunk_top_k=6)
    context = await pipelines(tmp_path).retrieve("Which valve before I start the pump?", param)
    notices = [chunk for chunk in context.chunks if "valve" in chunk.text.casefold()]
    assert len(notices) == 1 and len(context.chunks) == 6
    (notice,) = notices
    owners = {f"pump {number}" for number in range(12)} | {"loud"}
    assert {notice.document_id, *context.copies[notice.id]} == owners
    number = context.chunks.index(notice) + 1
    sources = context.prompt.rpartition("Sources:")[2]
    assert all(f"- {owner}: [{number}]" in sources for owner in owners)


LICENCE = """You may copy and distribute this tale, modified or not, under this licence, if each copy
keeps the copyright notice of Hollow Oak. The tale of the miller comes without warranty; the authors are
not liable for damages. By law or agreement, other permissions may apply. Trademarks are not licensed."""


@pytest.mark.parametrize("mode", ["naive", "mix"])
async def test_a_clause_is_found_as_any_passage(
    tmp_path: Path, pipelines: Pipelines, mode: str
) -> None:
    """A licence or a contract is what some people ask about; others have the words of their question elsewhere."""
    lines = [
        "The miller had a daughter.",
        "The authors met, and spoke of the damages of the flood.",
        "The miller is liable to forget.",
    ]
    fill(tmp_path, [(Document("", id="tale", pages=(LICENCE, *lines)), [])])

    async def best_pages(question: str) -> list[int]:
        context = await pipelines(tmp_path).retrieve(question, QueryParam(mode=mode))
        return [chunk.page for chunk in context.chunks[:2]]

    assert 1 in await best_pages("Are the authors liable for damages?")
    assert (await best_pages("Who was the daughter of the miller?"))[0] == 2


def two_claims(request: Request) -> str:
    """An answer that cites the line of the joined entity and a passage, whatever their numbers."""
    if request.response_type == "json":
        return (
            '{"high_level_keywords": [], "low_level_keywords": ["Mary Ann Evans", "George Eliot"]}'
        )
    lines = request.text.split("\n")
    (line,) = [line for line in lines if "also called" in line]
    number = line.removeprefix("[").partition("]")[0]
    return f"She wrote Middlemarch [{number}]. She had a house in Chelsea [{number}]."


def test_what_is_joined_is_cited_and_traced(tmp_path: Path) -> None:
    """Citations of the one line lead to the sentences of both entities, and the trace holds."""
    fill(tmp_path, NAMESAKES)
    with LightRAG(tmp_path, llm=ScriptedLLM(two_claims), tokenizer=Words()) as rag:
        answer = rag.query(QUESTION, mode="mix")
        assert {citation.document_id for citation in answer.citations} == {"life", "house"}
        assert {claim.verdict for claim in answer.claims} == {"nearest"}
        assert answer.invented == ()
        assert rag.traces.verify() == ()
        trace = rag.traces.get(str(answer.trace_id))
        (author,) = [item for item in trace.shown if item.id in ("Mary Ann Evans", "George Eliot")]
        assert rag.entities.get(author.id).name == author.label
        assert len(author.chunk_ids) == 2


def test_a_copy_is_cited_as_one_of_its_documents(tmp_path: Path) -> None:
    """Also in the list of sources of an answer, and in the trace."""
    fill(tmp_path, pumps(NOTICE, count=4))
    script = ScriptedLLM(["Close the green valve [1]."])
    with LightRAG(tmp_path, llm=script, tokenizer=Words()) as rag:
        answer = rag.query("Which valve before I start the pump?", mode="naive")
        (citation,) = answer.citations
        assert citation.text and citation.document_id.startswith("pump ")
        assert rag.traces.verify() == ()
