"""Questions as of a date: neither later documents nor what did not hold then is seen."""

from pathlib import Path

import pytest

from lightrag_jsonl import AsyncLightRAG, ConfigError, Document, IndexOptions, QueryParam
from tests.kit import SEARCHING_MODES, Mode, Record, entity, index, relation

QUESTION = "Who heads the Harbor Museum?"
HEADS = {"keywords": ["head of"]}


async def insert(rag: AsyncLightRAG, text: str, records: list[Record], **fields: str) -> None:
    await rag.insert_records(Document(text, **fields), records)


async def insert_versions(rag: AsyncLightRAG) -> None:
    """A museum, its heads one after the other, and what a note without a date says."""
    await insert(
        rag,
        "The Harbor Museum stands in Bergen.",
        [
            entity("Harbor Museum", "The Harbor Museum stands in Bergen.", "organization"),
            entity("Bergen", "Bergen has a harbor.", "place"),
            relation("Harbor Museum", "Bergen", "The Harbor Museum stands in Bergen."),
        ],
        id="note",
    )
    await insert(
        rag,
        "Anna Berg is the head of the Harbor Museum. It was founded by Ole Vik.",
        [
            entity("Anna Berg", "Anna Berg is the head of the Harbor Museum."),
            relation(
                "Anna Berg",
                "Harbor Museum",
                "Anna Berg is the head of the Harbor Museum.",
                valid_from="March 2019",
                valid_to="May 2021",
                **HEADS,
            ),
            relation("Ole Vik", "Harbor Museum", "Ole Vik founded the Harbor Museum."),
        ],
        id="first",
        date="March 2019",
    )
    await insert(
        rag,
        "Carl Dorn is the head of the Harbor Museum.",
        [
            entity("Carl Dorn", "Carl Dorn is the head of the Harbor Museum."),
            relation(
                "Carl Dorn",
                "Harbor Museum",
                "Carl Dorn is the head of the Harbor Museum.",
                valid_from="2021-06",
                **HEADS,
            ),
        ],
        id="second",
        date="2021年6月",
    )


@pytest.mark.parametrize("mode", SEARCHING_MODES)
@pytest.mark.parametrize(
    ("as_of", "visible", "hidden"),
    [("2020", "Anna Berg", "Carl Dorn"), ("2022-01", "Carl Dorn", "Anna Berg is the head")],
)
async def test_nothing_of_another_time_is_seen(
    tmp_path: Path, mode: Mode, as_of: str, visible: str, hidden: str
) -> None:
    """Neither in entities, relations and descriptions, nor in passages, the prompt or the answer."""
    async with index(tmp_path) as rag:
        await insert_versions(rag)
        answer = await rag.query(QUESTION, mode=mode, as_of=as_of)
    context = answer.context
    assert hidden not in f"{context.entities}{context.relations}{context.chunks}"
    assert hidden not in context.prompt and hidden not in str(answer)
    assert visible in context.prompt
    assert "stands in Bergen" in context.prompt
    assert context.as_of == as_of
    assert f"As of {as_of}" in context.prompt


async def test_a_date_before_all_documents_leaves_those_without_a_date(tmp_path: Path) -> None:
    """What nobody dated always counts."""
    async with index(tmp_path) as rag:
        await insert_versions(rag)
        context = await rag.retrieve(QUESTION, as_of="1066")
    assert {chunk.document_id for chunk in context.chunks} == {"note"}
    assert {entity.name for entity in context.entities} == {"Harbor Museum", "Bergen"}


async def test_an_end_of_a_relation_keeps_its_name(tmp_path: Path) -> None:
    """A relation that held is shown, also if nothing else held that is said of its ends."""
    async with index(tmp_path) as rag:
        records = [
            entity("Ann", "Ann is mayor since 2021.", valid_from="2021"),
            relation("Ann", "Ben", "Ann is a sister of Ben."),
        ]
        await insert(rag, "Ann is a sister of Ben.", records, id="family")
        context = await rag.retrieve("Who is Ann?", as_of="2020")
    (sisters,) = context.relations
    assert (sisters.source, sisters.target) == ("Ann", "Ben")
    assert "mayor" not in str(context.entities)


@pytest.mark.parametrize(
    ("language", "text", "ended", "after", "hidden", "visible"),
    [
        (
            "en",
            "Nils Orre became cox of the pilot boat in 1912 and gave it up in 1926. The boat lies in Sund.",
            relation(
                "Nils Orre",
                "pilot boat",
                "Nils Orre was cox of the pilot boat.",
                valid_from="1912",
                valid_to="1926",
            ),
            "1935",
            "Nils Orre",
            "lies in Sund",
        ),
        (
            "en",
            "The bridge stands in Hale. Its toll was 40 cents; in 1931 it was lifted.",
            entity("bridge", "The toll was 40 cents.", "place", valid_to="1931"),
            "1940",
            "40 cents",
            "stands in Hale",
        ),
        (
            "zh",
            "顾维新1922年出任海关监督，1930年卸任。海关设在江口👻。",
            relation(
                "顾维新", "海关", "顾维新任海关监督。", valid_from="1922年", valid_to="1930年"
            ),
            "1934",
            "顾维新",
            "设在江口",
        ),
        (
            "zh",
            "梅静之1924年出任灯塔主任，1931年去职。灯塔刷成白色。",
            relation(
                "梅静之", "灯塔", "梅静之1924年出任灯塔主任", valid_from="1924", valid_to="1931"
            ),
            "1934",
            "任灯塔主任，",
            "刷成白色",
        ),
    ],
)
async def test_a_record_hides_the_sentence_that_it_stands_on(
    tmp_path: Path,
    language: str,
    text: str,
    ended: Record,
    after: str,
    hidden: str,
    visible: str,
) -> None:
    """Whatever words say that something ended: the end of the record decides for the passage, too; places
    in the text stay right."""
    async with index(tmp_path, language=language) as rag:
        await rag.insert_records(Document(text, id="d"), [ended])
        question = f"{hidden} {visible}"
        later = await rag.query(question, mode="naive", as_of=after)
        whole = await rag.query(question, mode="naive")
    assert hidden in str(whole) and hidden in whole.context.prompt
    quotes = [line for line in str(later).split("\n") if line.startswith("- ")]
    assert hidden not in str(quotes) and hidden not in later.context.prompt
    assert visible in later.context.prompt and "…" in later.context.prompt
    assert [len(chunk.text) for chunk in later.context.chunks] == [len(text)]


async def test_a_sentence_with_a_record_that_held_is_shown(tmp_path: Path) -> None:
    """Of two records on one sentence, the one that held keeps it; its own words say the rest."""
    text = "Until 2020 Ann Berg led the inn, since then Carl Dorn has."
    records = [
        relation("Ann Berg", "inn", "Ann Berg led the inn.", valid_to="2020"),
        relation("Carl Dorn", "inn", "Carl Dorn has led the inn.", valid_from="2020"),
    ]
    async with index(tmp_path) as rag:
        await insert(rag, text, records, id="inn")
        context = await rag.retrieve("Who led the inn?", as_of="2022")
    assert [chunk.text for chunk in context.chunks] == [text]
    assert {relation.source for relation in context.relations} == {"Carl Dorn"}


@pytest.mark.parametrize(
    ("language", "text", "note"),
    [
        (
            "en",
            "Ann Berg led the inn until 2010:\n    - alone",
            "is not known without the records of a model",
        ),
        ("zh", "张三任海港局局长，2010年卸任。", "没有模型抽取的记录"),
    ],
)
async def test_without_records_only_the_dates_of_documents_count(
    tmp_path: Path, language: str, text: str, note: str
) -> None:
    """Rules do not read when a statement held: they say so, and hide later documents alone. Indented lines
    are not taken for something hidden.
    """
    async with index(tmp_path, language=language) as rag:
        await rag.insert(Document(text, id="old", date="2005"))
        await rag.insert(Document(f"{text} 👻", id="new", date="2021"))
        answer = await rag.query(text, as_of="2015")
    assert {chunk.document_id for chunk in answer.context.chunks} == {"old"}
    assert note in answer.text and note in answer.context.prompt
    assert "…" not in answer.context.prompt


async def test_a_daily_note_has_its_day(tmp_path: Path) -> None:
    """By its file, its title or its first heading; a date that was given counts before. A title with its
    date stands without it a second time.
    """
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "2026-11-03.md").write_text("The pump was oiled.", encoding="utf-8")
    async with index(tmp_path / "kb") as rag:
        await rag.insert(notes / "2026-11-03.md")
        await rag.insert(Document("# 2026-11-04\n\nThe pump leaks.", id="heading"))
        await rag.insert(Document("水泵修好了。", id="title", title="2026年11月5日"))
        await rag.insert(Document("# 2026-11-06\n\nThe pump runs.", id="given", date="2026-12"))
        dates = {document.date for document in await rag.documents()}
        context = await rag.retrieve("pump", as_of="2026-11-03", mode="naive")
    assert dates == {"2026-11-03", "2026-11-04", "2026-11-05", "2026-12"}
    assert {chunk.text for chunk in context.chunks} == {"The pump was oiled."}
    assert (
        context.prompt.count("2026-11-03") == 3
    )  # at the top, above the passage, among the sources


@pytest.mark.parametrize(
    ("name", "date"),
    [
        ("minutes-2026-11-03.md", "2026-11-03"),
        ("条例（2026-11-03修订）🐟.md", "2026-11-03"),
        ("pump_2026_11_03_log.md", "2026-11-03"),
        ("leave-2026-11-03-to-2026-11-09.md", None),
        ("2026-11-03_2026-11-09.md", None),
        ("part-2026-13-45.md", None),
        ("order-12026-11-03.md", None),
        ("pump-2026-11.md", None),
    ],
)
async def test_a_file_with_one_day_in_its_name_has_this_day(
    tmp_path: Path, name: str, date: str | None
) -> None:
    """As minutes and versions of rules are named; two days, or a number that is none, tell no date."""
    (tmp_path / name).write_text("The pump was oiled.", encoding="utf-8")
    async with index(tmp_path / "kb") as rag:
        await rag.insert(tmp_path / name)
        (document,) = await rag.documents()
    assert document.date == date


async def test_a_hidden_document_replaces_nothing(tmp_path: Path) -> None:
    """Under a filter, a later claim of a document that the filter hides does not count."""
    options = IndexOptions(functional_kinds=("^head of",))
    async with index(tmp_path, options=options) as rag:
        for name, year, shelf in (("Anna Berg", "2019", "open"), ("Carl Dorn", "2021", "closed")):
            text = f"{name} is the head of the Harbor Museum."
            head = relation(name, "Harbor Museum", text, **HEADS)
            await rag.insert_records(
                Document(text, id=year, date=year, metadata={"shelf": shelf}), [head]
            )
        unfiltered = await rag.retrieve(QUESTION, as_of="2022")
        filtered = await rag.retrieve(QUESTION, as_of="2022", where={"shelf": "open"})
    assert "Carl Dorn" in unfiltered.prompt and "Anna Berg" not in unfiltered.prompt
    assert "Anna Berg" in filtered.prompt and "Carl Dorn" not in filtered.prompt


async def test_an_edit_counts_at_every_time(tmp_path: Path) -> None:
    """What a person adds today is no claim of today's date."""
    async with index(tmp_path) as rag:
        await insert_versions(rag)
        await rag.entities.create("Eva Falk", type="person", description="A guard.", by="me")
        context = await rag.retrieve("Who is Eva Falk?", as_of="2020")
    assert "Eva Falk" in {entity.name for entity in context.entities}


async def test_without_dates_nothing_changes(tmp_path: Path) -> None:
    """The prompt is the same, and as of any date it has the same passages and facts."""
    async with index(tmp_path) as rag:
        records = [entity("Ann"), entity("Ben"), relation("Ann", "Ben")]
        await insert(rag, "Ann knows Ben.", records, id="family")
        plain = await rag.retrieve("Who is Ann?")
        dated = await rag.retrieve("Who is Ann?", as_of="1900")
    assert plain.claim_dates == {}
    assert (plain.entities, plain.chunks) == (dated.entities, dated.chunks)
    assert [item.description for item in plain.relations] == [
        item.description for item in dated.relations
    ]


@pytest.mark.parametrize(
    ("language", "said", "unsaid", "label"),
    [
        ("en", "In May 2020 the pass was renewed.", "The pass is free.", "(since 2020-05) "),
        ("zh", "通行证于2020年5月更新。", "通行证免费。", "（2020-05 起）"),
    ],
)
async def test_a_date_is_not_said_twice(
    tmp_path: Path, language: str, said: str, unsaid: str, label: str
) -> None:
    """A statement whose own words say when it holds stands without the date, another one with it."""
    name = "pass" if language == "en" else "通行证"
    async with index(tmp_path, language=language) as rag:
        for text in (said, unsaid):
            stated = entity(name, text, "product", valid_from="2020-05")
            await insert(rag, f"{name} {len(text)}", [stated], id=text)
        question = f"{name}?" if language == "en" else f"{name}怎么样？"
        prompt = (await rag.retrieve(question, mode="local")).prompt
    assert f"{label}{unsaid}" in prompt
    assert said in prompt and f"{label}{said}" not in prompt


async def test_a_context_says_from_when_a_statement_is(tmp_path: Path) -> None:
    """By the words of the text, or else by the date of the document; the latest comes first."""
    async with index(tmp_path) as rag:
        for year in ("2019", "2021"):
            fee = entity("Fee", f"The fee was set in the year of {year}.", "quantity")
            await insert(rag, f"The fee of {year}.", [fee], id=year, date=year)
        pass_ = entity("Pass", "The pass is free.", "product", valid_from="2020", valid_to="2022")
        await insert(rag, "The pass.", [pass_], id="pass")
        prompt = (await rag.retrieve("What is the fee of the pass?", mode="local")).prompt
    later = prompt.index("(says a text of 2021) The fee was set in the year of 2021.")
    assert later < prompt.index("(says a text of 2019) The fee was set in the year of 2019.")
    assert "(2020 to 2022) The pass is free." in prompt


def test_what_is_no_date_is_refused() -> None:
    """The error names the field and shows how a date looks."""
    with pytest.raises(ConfigError, match="as_of must be a date such as 2021"):
        QueryParam(as_of="some day")
    assert QueryParam(as_of="2021年6月").as_of == "2021-06"
