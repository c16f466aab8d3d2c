"""The pairs of entities that are proposed as one, with what speaks for and against each."""

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from lightrag_jsonl import Document, LightRAG, NotFoundError
from lightrag_jsonl.curation.duplicates import PART, Duplicate, Evidence
from lightrag_jsonl.llm.pair_review import PAIRS_AT_ONCE
from lightrag_jsonl.testing import HashEmbedder, Request, ScriptedLLM
from tests.kit import Record, entity, index, view


def proposed(folder: Path, entities: Sequence[tuple[str, str]]) -> tuple[Duplicate, ...]:
    """The proposals for entities, each with a type, that one document mentions."""
    text = ". ".join(name for name, _ in entities)
    records = [entity(name, kind=kind) for name, kind in entities]
    with LightRAG(folder) as rag:
        rag.insert_records(Document(text, id="d"), records)
        take_apart(rag)
        return rag.entities.duplicates()


def take_apart(rag: LightRAG) -> None:
    """Undo what a document joins by itself, to see what would be proposed in its place."""
    for row in rag.entities.list():
        if row.aliases:
            with contextlib.suppress(NotFoundError):  # aliases that name no entity
                rag.entities.unmerge(row.name)


def evidence(found: Sequence[Duplicate], one: str, other: str) -> set[str]:
    """What speaks for a pair; empty where it was not proposed."""
    for pair in found:
        if {pair.name, pair.into} == {one, other}:
            return {item.kind for item in pair.evidence}
    return set()


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("Apple Inc.", "Apple", "variant"),
        ("The Beatles", "Beatles", "variant"),
        ("Québec City", "Quebec City", "variant"),
        ("Smith, John", "John Smith", "variant"),
        ("Guinea - Bissau", "Guinea-Bissau", "variant"),
        ("Mercury (planet)", "Mercury", "variant"),
        ("华为技术有限公司", "华为技术", "variant"),
        ("腾讯控股有限公司", "腾讯公司", "variant"),
        ("鲁迅先生", "鲁迅", "variant"),
        ("第1中学公司", "第1中学", "variant"),
        ("Mr. Fezziwig", "Fezziwig", "variant"),
        ("Ebenezer Scrooge", "Ebenezer Scrouge", "spelling"),
        ("Cratchit", "Cratchitt", "spelling"),
        ("Cratchit", "Crathcit", "spelling"),
        ("北京", "北京大学", ""),
        ("Ada", "Amy Dora Ann", ""),
        ("Marley", "Barley", ""),
        ("Marley", "Marlowe", ""),
        ("Terminal 1A", "Terminal 1B", ""),
        ("Henry IV", "Henry V", ""),
        ("第一医院", "第二医院", ""),
        ("5吨", "50万吨", ""),
        ("Mr. Smith", "Mrs. Smith", ""),
        ("The Lord Mayor", "The Lady Mayor", ""),
        ("王小明先生", "王小明女士", ""),
        ("한빛전자", "한빛 전자", "variant"),
        ("Beacon™", "Beacon", "variant"),
        ("利尿药物", "利尿药", "variant"),
        ("C", "C++", ""),
        ("C#", "C++", ""),
        (".NET", "Net", ""),
        ("A*", "A", ""),
        ("Bureau of Tides and Currents", "BTC", "short form"),
        ("U.S. Lighthouse Service", "United States Lighthouse Service", "short form"),
        ("抗利尿激素（ADH）", "ADH", "short form"),
        ("国立海洋大学", "海大", "short form"),
        ("世界气象组织", "世气组织", "short form"),
        ("海洋大学", "海交", ""),
        ("North Pier", "South Pier", ""),
        ("First Harbour Board", "Second Harbour Board", ""),
        ("Tide Table", "Tide Tables", "spelling"),
        ("The Tide", "The Tides", ""),
        ("👻 Lantern Inn", "👻 Lantren Inn", "spelling"),
        ("Argentina", "Argentine", ""),
        ("Argentina", "Argentinia", "spelling"),
    ],
)
def test_what_speaks_for_a_pair_is_reported(
    tmp_path: Path, one: str, other: str, kind: str
) -> None:
    """Other articles, titles, legal forms, accents, spaces, order and additions; a slip; initials and short
    forms. Nothing speaks for names of which one begins like the other, is one letter apart at its beginning
    or end, or apart by a number, a sign or a direction, or a couple's.
    """
    found = proposed(tmp_path, [(one, "x"), (other, "x"), ("Nobody Else", "x")])
    spoken = evidence(found, one, other)
    assert kind in spoken if kind else not spoken
    assert [pair.score for pair in found] == sorted((p.score for p in found), reverse=True)


def stated(folder: Path, text: str, *records: Record, language: str = "en") -> LightRAG:
    """An index of one document with these records."""
    rag = LightRAG(folder, language=language)
    rag.insert_records(Document(text, id="d"), list(records))
    take_apart(rag)
    return rag


CAROL = (
    "Ebenezer Scrooge", "Scrooge", "Scrooge's nephew", "Old Jacob Marley", "Marley",
    "Marley's Ghost", "Bob Cratchit", "Peter Cratchit", "Tim Cratchit", "Cratchit", "Scrooge and Marley",
)  # fmt: skip


def test_a_part_of_one_longer_name_is_proposed(tmp_path: Path) -> None:
    """Where both are mentioned; not what somebody owns, a surname of several, or a firm of two."""
    found = proposed(tmp_path, [(name, "person") for name in CAROL])
    pairs = {
        frozenset((pair.name, pair.into))
        for pair in found
        if "part" in {e.kind for e in pair.evidence}
    }
    assert pairs == {
        frozenset(("Ebenezer Scrooge", "Scrooge")),
        frozenset(("Old Jacob Marley", "Marley")),
        frozenset(("Marley's Ghost", "Marley")),
        frozenset(("Marley's Ghost", "Old Jacob Marley")),
    }
    assert not any(pair.certain for pair in found)


@pytest.mark.parametrize(
    ("names", "pair"),
    [
        (["J. R. Marsh", "John Robert Marsh", "Ann Marsh"], ("J. R. Marsh", "John Robert Marsh")),
        (["J. Marsh", "John Marsh", "Jane Marsh"], None),
        (["Bill", "William Marsh"], ("Bill", "William Marsh")),
        (["Robert Gale", "Bob Gale"], ("Robert Gale", "Bob Gale")),
        (["Mrs. Gale", "Bob Gale", "Gale"], ("Bob Gale", "Gale")),
    ],
)
def test_people_go_by_initials_and_nicknames(
    tmp_path: Path, names: list[str], pair: tuple[str, str] | None
) -> None:
    """With the only full name that fits; of two that fit, neither is proposed."""
    found = proposed(tmp_path, [(name, "person") for name in names])
    assert ({frozenset((p.name, p.into)) for p in found} & {frozenset(pair or ())}) == (
        {frozenset(pair)} if pair else set()
    )
    if pair is None:
        assert not found


def test_two_possible_full_names_leave_a_short_form_alone(tmp_path: Path) -> None:
    """海大 may be either of two universities, and BOT either of two bureaus."""
    names = ["海洋大学", "海南大学", "海大", "Bureau of Tides", "Board of Trade", "BOT"]
    found = proposed(tmp_path, [(name, "organization") for name in names])
    assert not any(name in (pair.name, pair.into) for pair in found for name in ("海大", "BOT"))


def test_a_given_name_in_another_passage_of_the_document_is_proposed(tmp_path: Path) -> None:
    """With a lower score than in the same passage; not in another document, nor for a common word."""
    with LightRAG(tmp_path) as rag:
        pages = ("Tess Harrow paid.", "The keeper and Tess slept.", "Keeper Odell woke.")
        names = ("Tess Harrow", "Tess", "Keeper", "Keeper Odell")
        records = [
            entity(name, chunk=chunk) for name, chunk in zip(names, (0, 1, 1, 2), strict=True)
        ]
        rag.insert_records(Document("", id="d", pages=pages), records)
        rag.insert_records(Document("Harrow sailed.", id="e"), [entity("Harrow")])
        rag.entities.unmerge("Tess")
        (pair,) = rag.entities.duplicates()
        assert {pair.name, pair.into} == {"Tess", "Tess Harrow"} and pair.score < PART


@pytest.mark.parametrize(
    ("text", "one", "other"),
    [
        ("Ann Lee, also known as Nan, rowed.", "Ann Lee", "Nan"),
        ("Ann Lee (a.k.a. “Nan”) rowed.", "Ann Lee", "Nan"),
        ("Ann Lee, who is better known as Nan, rowed.", "Ann Lee", "Nan"),
        ("Nan is another name for Ann Lee.", "Nan", "Ann Lee"),
        ("The Keeper is the same person as Ann Lee.", "The Keeper", "Ann Lee"),
        ("In 1901 the Harbour Board was renamed the Port Trust.", "Harbour Board", "Port Trust"),
        ("The Bureau of Tides (BOT) met.", "Bureau of Tides", "BOT"),
        ("Dr. Ann Lee, nicknamed Ｎａｎ, rowed. 😀", "Dr. Ann Lee", "Nan"),
        ("Ann Lee (3 May 1880 – 1 June 1952), also known as Nan, rowed.", "Ann Lee", "Nan"),
        ("Ann Lee (1880 – 1952), who was also known as Nan, rowed.", "Ann Lee", "Nan"),
        ("The Ann Lee (also sometimes called Nan) was a boat.", "Ann Lee", "Nan"),
    ],
)
def test_names_that_an_english_text_says_are_one_are_proposed(
    tmp_path: Path, text: str, one: str, other: str
) -> None:
    """With the words that say so, whether a passage or a description has these."""
    for number, records in enumerate(
        ([entity(one, "x"), entity(other, "y")], [entity(one, text), entity(other, "y")])
    ):
        passage = text if number == 0 else f"{one}. {other}."
        with stated(tmp_path / str(number), passage, *records) as rag:
            (pair,) = rag.entities.duplicates()
            assert {pair.name, pair.into} == {one, other}
            assert pair.evidence[0].kind == "stated"


@pytest.mark.parametrize(
    "text",
    [
        "Ann Lee is not also known as Nan.",
        "Ann Lee knew a man known as Tom. Nan rowed.",
        "Ann Lee called Nan.",
        "Ann Lee (Nan) rowed.",
        "Ann Lee met the captain, also known as Nan.",
    ],
)
def test_other_english_words_state_nothing(tmp_path: Path, text: str) -> None:
    """A denial, another bearer, a call, and brackets around something else than initials."""
    with stated(tmp_path, text, entity("Ann Lee"), entity("Nan")) as rag:
        assert "stated" not in evidence(rag.entities.duplicates(), "Ann Lee", "Nan")


@pytest.mark.parametrize(
    ("text", "certain"),
    [
        ("石桥中学，简称石中。", True),
        ("镇上有学校。石桥中学（简称“石中”）很小。", True),
        ("那一年，石桥中学，简称石中。", False),
        ("江北石桥中学，简称石中。", False),
        ("村里的石桥中学，简称石中。", False),
        ("石桥中学，简称石中分校。", False),
    ],
)
def test_what_a_chinese_text_says_of_more_than_a_name_is_only_proposed(
    tmp_path: Path, text: str, certain: bool
) -> None:
    """The bearer may be longer than what was read of it, or another; and so may the other name."""
    records = [entity("石桥中学", kind="organization"), entity("石中", kind="organization")]
    with stated(tmp_path, text, *records) as rag:
        (pair,) = rag.entities.duplicates()
        assert pair.evidence[0].kind == "stated" and pair.certain == certain


@pytest.mark.parametrize(
    ("text", "certain"),
    [
        ("Ann Lee, also known as Nan, rowed.", True),
        ("It rained. Ann Lee was also known as Nan.", True),
        ("Boats\n\nThe Ann Lee (born 1880) (nicknamed “Nan”) was a boat.", True),
        ("In 1901 Ann Lee, also known as Nan, rowed.", False),
        ("They lived in the north of Ann Lee, also known as Nan.", False),
        ("Tom Hart and Ann Lee, also known as Nan, rowed.", False),
        ("Alonzo W. Ann Lee, also known as Nan, rowed.", False),
        ("Ann Lee known as Nan rowed.", False),
        ("Ann Lee, also known as Nan of the Lakes, rowed.", False),
        ("Ann Lee, also known as Nan: Queen of Oars, rowed.", False),
    ],
)
def test_what_an_english_text_says_of_more_than_a_name_is_only_proposed(
    tmp_path: Path, text: str, certain: bool
) -> None:
    """Either of two names before may be the bearer, or none; and the other name may be longer."""
    with stated(tmp_path, text, entity("Ann Lee"), entity("Nan")) as rag:
        (pair,) = rag.entities.duplicates()
        assert pair.evidence[0].kind == "stated" and pair.certain == certain


def test_a_bracket_may_be_a_part_of_the_bearer(tmp_path: Path) -> None:
    """What is said of a film is not said of the town."""
    text = "Dunmore (film), also known as Low Tide, is of 1950. Dunmore lies by the sea."
    names = ("Dunmore (film)", "Dunmore", "Low Tide")
    with stated(tmp_path, text, *map(entity, names)) as rag:
        pairs = [{pair.name, pair.into} for pair in rag.entities.duplicates() if pair.certain]
        assert pairs == [{"Dunmore (film)", "Low Tide"}]


def test_roles_are_proposed_for_whom_descriptions_call_so(tmp_path: Path) -> None:
    """A relative of somebody, or a trade in the same passage; not where two people are called so."""
    descriptions = {
        "Fay Marsh": "Fay Marsh is Old Gale's niece, and sings.",
        "Mr. Gale's niece": "A singer.",
        "Tom Reed": "Tom Reed is a man described as a cooper.",
        "The Cooper": "He mends casks.",
        "Jo Hill": "Jo Hill is a sailor.",
        "Sam Hall": "Sam Hall was a sailor.",
        "The Sailor": "He is tired.",
    }
    records = [entity(name, text) for name, text in descriptions.items()]
    with stated(tmp_path, ". ".join(descriptions), *records) as rag:
        found = rag.entities.duplicates()
        described = {
            frozenset((pair.name, pair.into))
            for pair in found
            if "described" in {item.kind for item in pair.evidence}
        }
        assert described == {
            frozenset(("Fay Marsh", "Mr. Gale's niece")),
            frozenset(("Tom Reed", "The Cooper")),
        }


@pytest.mark.parametrize(
    ("text", "one", "other"),
    [
        ("那人姓刘名备，字玄德。", "刘备", "玄德"),
        ("那人姓刘名备，字玄德。", "刘备", "刘玄德"),
        ("吾姓关，名羽，字长生，后改云长，河东人也。", "关羽", "云长"),
        ("吾姓关，名羽，字长生，后改云长，河东人也。", "关羽", "关云长"),
        ("张角自称“天公将军”。", "张角", "天公将军"),
        ("鲁迅（原名周树人），浙江人。", "鲁迅", "周树人"),
        ("北京大学，简称北大。", "北京大学", "北大"),
        ("Ｋ１２中心，又称启明学校。", "K12中心", "启明学校"),
    ],
)
def test_names_that_a_text_says_are_one_are_proposed(
    tmp_path: Path, text: str, one: str, other: str
) -> None:
    """With the words that say so; they are certain, and merged only if asked for."""
    with stated(tmp_path, text, *(entity(name, kind="人物") for name in (one, other))) as rag:
        (pair,) = rag.entities.duplicates()
        assert {pair.name, pair.into} == {one, other} and pair.certain
        assert pair.evidence[0].kind == "stated" and len(rag.graph) == 2
        assert rag.entities.merge_stated() == (pair,) and list(rag.graph) == [pair.into]
        rag.entities.unmerge(pair.name)
        assert set(rag.graph) == {one, other}


@pytest.mark.parametrize(
    ("text", "one", "other"),
    [
        ("乃袁隗之侄，名绍，字本初。", "袁绍", "本初"),
        ("操小字阿瞒，一名吉利。", "曹操", "阿瞒"),
        ("操小字阿瞒，一名吉利。", "曹操", "吉利"),
        ("诸葛亮，琅琊人，字孔明，号卧龙先生。", "诸葛亮", "卧龙先生"),
    ],
)
def test_a_given_name_and_a_remark_leave_the_bearer_open(
    tmp_path: Path, text: str, one: str, other: str
) -> None:
    """The surname is not said, or something stands between: proposed, not merged."""
    with stated(tmp_path, text, *(entity(name, kind="人物") for name in (one, other))) as rag:
        (pair,) = rag.entities.duplicates()
        assert {pair.name, pair.into} == {one, other} and not pair.certain
        assert pair.evidence[0].kind == "stated" and rag.entities.merge_stated() == ()


@pytest.mark.parametrize(
    "text",
    [
        "他写了一个玄德字样。",
        "刘备不识字。玄德来了。",
        "Ｎｏ. 刘备，号令玄德。",
        "刘备看见一名叫玄德的学生。",
        "刘备收了，一名叫玄德的学生。",
        "刘备改名，玄德走了。",
        "二客乃大商：一名刘备，一名玄德。",
        "刘备去了远方，又称玄德来了。",
        "刘备人称之为玄德。",
    ],
)
def test_other_uses_of_the_words_state_nothing(tmp_path: Path, text: str) -> None:
    """字, 号 and 名 are also parts of other words; and the bearer stands right before them."""
    with stated(tmp_path, text, entity("刘备"), entity("玄德")) as rag:
        assert not any(pair.certain for pair in rag.entities.duplicates())


@pytest.mark.parametrize(
    ("titled", "bearer", "namesake"),
    [
        ("关公", "关羽", "关平"),
        ("林教头", "林冲", "林如海"),
        ("贾太太", "贾敏", "贾蓉"),
        ("陈厅长", "陈立言", "陈思"),
        ("陳董事長", "陳立言", "陳思"),
        ("周队长", "周明远", "周川"),
        ("玄真道长", "玄真", "玄妙"),
    ],
)
def test_a_title_is_proposed_for_whom_it_is_mentioned_with(
    tmp_path: Path, titled: str, bearer: str, namesake: str
) -> None:
    """Titles of the court, the army, the orders and of today, in both scripts; no namesake elsewhere."""
    chapters = [(f"{titled}、{bearer}。", (titled, bearer)), (f"{namesake}。", (namesake,))]
    with LightRAG(tmp_path, language="zh") as rag:
        for number, (text, names) in enumerate(chapters):
            records = [entity(name, kind="人物") for name in names]
            rag.insert_records(Document(text, id=f"d{number}"), records)
        take_apart(rag)
        (pair,) = rag.entities.duplicates()
        assert {pair.name, pair.into} == {titled, bearer} and not pair.certain


@pytest.mark.parametrize(
    ("records", "certain"),
    [
        ([entity("Ann Lee", aliases=["Nan"]), entity("Nan")], True),
        ([entity("Ann Lee", aliases=["Nan"]), entity("Nan", kind="unknown")], True),
        ([entity("Ann Lee", aliases=["Nan"]), entity("Nan", kind="ship")], False),
        (
            [entity("Ann Lee", aliases=["Nan"]), entity("Nan"), entity("Eve", aliases=["Nan"])],
            False,
        ),
        (
            [entity("Ann Lee", aliases=["Nan"]), entity("Nan", aliases=["Eve"]), entity("Eve")],
            False,
        ),
        ([entity("Ann Lee", aliases=["Ghost"]), entity("Ghost")], False),
        ([entity("Ann Lee", aliases=["the lady"]), entity("The Lady")], False),
    ],
)
def test_only_what_is_unambiguous_is_certain(
    tmp_path: Path, records: list[Record], certain: bool
) -> None:
    """One entity states the alias, which states no third name, has that type, and is no common word."""
    text = "Ann Lee, Nan, Eve, the lady, Ghost: a ghost."
    with stated(tmp_path, text, *records) as rag:
        found = [pair for pair in rag.entities.duplicates() if pair.evidence[0].kind == "stated"]
        assert {pair.certain for pair in found if "Ann Lee" in (pair.name, pair.into)} == {certain}
        before = rag.entities.list()
        merged = rag.entities.merge_stated()
        assert merged == tuple(pair for pair in found if pair.certain)
        if merged:
            rag.entities.unmerge(*(pair.name for pair in merged))
        assert rag.entities.list() == before


class MeaningEmbedder(HashEmbedder):
    """Vectors that are taken for those of a model of meaning."""

    lexical = False


def test_entities_of_one_sentence_are_not_alike_for_that(tmp_path: Path) -> None:
    """Without a model every name of a sentence is described by all of it; that makes no two one."""
    with LightRAG(tmp_path, embedder=MeaningEmbedder()) as rag:
        rag.insert("Werner Heisenberg taught Paul Dirac and Wolfgang Pauli in Leipzig for years.")
        assert {"Paul Dirac", "Wolfgang Pauli"} <= set(rag.graph)
        assert rag.entities.duplicates() == ()


@pytest.mark.parametrize(
    ("embedder", "kinds"), [(MeaningEmbedder(), {"meaning"}), (HashEmbedder(), set())]
)
def test_vectors_that_only_count_words_propose_nothing(
    tmp_path: Path, embedder: HashEmbedder, kinds: set[str]
) -> None:
    """Many names and descriptions have words in common, and are of different things."""
    words = "labourers carried heavy wooden crates between harbour warehouses every morning"
    names = ("Harbour Labourers", "Labourers Harbour")
    texts = (f"{words} singing", f"singing {words}")
    records = [entity(name, text, "x") for name, text in zip(names, texts, strict=True)]
    with LightRAG(tmp_path, embedder=embedder) as rag:
        rag.insert_records(Document(". ".join(names), id="d"), records)
        assert evidence(rag.entities.duplicates(), *names) == kinds


def test_what_was_merged_is_proposed_no_more(tmp_path: Path) -> None:
    """A pair that a person made one is settled, until it is unmerged; an empty index has none."""
    with LightRAG(tmp_path) as rag:
        assert rag.entities.duplicates() == ()
    assert proposed(tmp_path, [("Beatles", "group"), ("The Beatles", "group")])
    with LightRAG(tmp_path) as rag:
        rag.entities.merge(["Beatles"], into="The Beatles")
        assert not rag.entities.duplicates()
        rag.entities.unmerge("Beatles")
        assert rag.entities.duplicates()


# ── judged by a model ───────────────────────────────────────────────────────────

REVIEWED = ("刘备", "刘备先生", "Ｋ１２中心", "K12 中心公司")


def judge(request: Request) -> str:
    """A model that takes 刘备 for one, and says so in words; an unknown id and a broken line besides."""
    lines = [json.loads(line) for line in request.question.split("\n") if line.startswith("{")]
    judged = [
        {"id": int(one["id"]), "same": "刘备" in one["a"]["name"], "reason": "依据原文"}
        for one in lines
    ]
    return "\n".join(
        [*map(json.dumps, judged), '{"id": "99", "same": true}', '{"id": "1"']
    ).replace("false", '"否"')


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_what_the_model_accepts_is_merged_and_can_be_undone(
    tmp_path: Path, language: str
) -> None:
    """Only those pairs; the model reads names, descriptions and evidence, and a repeated review costs
    nothing.
    """
    llm = ScriptedLLM(judge)
    async with index(tmp_path, llm, language=language) as rag:
        for name in REVIEWED:
            await rag.insert_records(Document(name, id=name), [entity(name, f"关于{name}")])
        before, pairs = view(tmp_path), await rag.entities.duplicates()
        price = await rag.entities.estimate_review(pairs)
        assert not llm.requests and price.calls == 1 and price.input_tokens > 200
        found = await rag.entities.review(pairs)
        assert found.usage.calls == 1 and (await rag.entities.review(pairs)).usage.calls == 0
        assert {pair.name for pair in found.same} | {pair.into for pair in found.same} == set(
            REVIEWED[:2]
        )
        assert [one.same for one in found.judgements if one.pair not in found.same] == [False]
        assert all(
            text in llm.requests[0].question for text in ("关于刘备", pairs[0].evidence[0].detail)
        )
        await rag.entities.merge_pairs(found.same)
        assert len(await rag.entities.list()) == len(REVIEWED) - 1
        await rag.entities.unmerge(found.same[0].name)
    assert view(tmp_path) == before


async def test_pairs_go_to_the_model_in_batches(tmp_path: Path) -> None:
    """What is estimated is what is called; a pair that is not judged is neither one nor two."""
    llm = ScriptedLLM(lambda request: "")
    evidence = (Evidence("part", "a part of the longer name", 0.5),)
    pairs = [
        Duplicate(f"A{n}", f"B{n}", ("x", "x"), 0.5, evidence) for n in range(2 * PAIRS_AT_ONCE + 1)
    ]
    async with index(tmp_path, llm) as rag:
        price, found = await rag.entities.estimate_review(pairs), await rag.entities.review(pairs)
    assert price.calls == found.usage.calls == len(llm.requests) == 3
    assert [one.pair for one in found.judgements] == pairs
    assert found.same == () and {one.same for one in found.judgements} == {None}
