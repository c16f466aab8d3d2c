"""What is shown to the model reads as one world: one value for one thing, in the order of reading."""

from pathlib import Path

import pytest

from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.types import Document
from tests.kit import entity, relation
from tests.retrieval.conftest import Given, Pipelines, fill

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


@pytest.mark.parametrize("mode", ["mix", "local", "walk"])
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
    """By date; without a date in the order in which the documents came, whatever their ids."""
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
    assert brig.description == f"Year 1901. Year 1902. {days}"


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
