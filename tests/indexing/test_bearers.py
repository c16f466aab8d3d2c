"""Which names of a document are one bearer's, and which stay apart."""

import itertools
import json
import unicodedata
from pathlib import Path

import pytest

from lightrag_jsonl import Document, LightRAG, NotFoundError
from lightrag_jsonl.testing import Request, ScriptedLLM
from tests.kit import Record, entity, index, jsonl, problems, relation, text_of, view


def nodes(folder: Path, *records: Record, text: str = "") -> dict[str, tuple[str, ...]]:
    """The entities of one document with these records, each with its other names."""
    document = Document(text or ". ".join(str(record["name"]) for record in records), id="d")
    with LightRAG(folder) as rag:
        rag.insert_records(document, list(records))
        return {found.name: found.aliases for found in rag.entities.list()}


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("Okafor", "Chidi Okafor"),
        ("Chidi", "Chidi Okafor"),
        ("Mr. Okafor", "Chidi Okafor"),
        ("Professor Okafor", "Chidi Okafor"),
        ("Sir Chidi", "Chidi Okafor"),
        ("Sir Chidi Okafor", "Chidi Okafor"),
        ("C. Okafor", "Chidi Okafor"),
        ("Chidi B. Okafor", "Chidi Bem Okafor"),
        ("C.B. Okafor", "Chidi Bem Okafor"),
        ("Okafor's", "Chidi Okafor"),
        ("OKAFOR", "Chidi Okafor"),
        ("Okáfor", "Chidi Okafor"),
        ("van der Meer", "Joost van der Meer"),
        ("Queen Ranavalona", "Ranavalona III"),
        ("奥卡福", "奇迪·奥卡福"),
        ("奇迪", "奇迪·奥卡福"),
        ("奥卡福教授", "奇迪·奥卡福"),
        ("沈德明先生", "沈德明"),
    ],
)
def test_a_short_form_belongs_to_the_only_longer_name(
    short: str, full: str, tmp_path: Path
) -> None:
    """Surnames, given names, titles, initials, possessives, capitals and accents, in both languages."""
    found = nodes(tmp_path, entity(full), entity(short), entity("Nobody Else"))
    assert found[full] == (() if short == full else (short,))
    assert found.keys() == {full, "Nobody Else"}


@pytest.mark.parametrize(
    "names",
    [
        ("Okafor", "Chidi Okafor", "Ada Okafor"),
        ("Okafor", "Chidi Okafor", "Mrs. Okafor"),
        ("Mrs. Okafor", "Chidi Okafor"),
        ("Aunt Okafor", "Chidi Okafor"),
        ("Chidi", "Chidi Okafor", "Chidi Bello"),
        ("Chidi", "Chidi Okafor", "Old Chidi"),
        ("C. Okafor", "Chidi Okafor", "Chima Okafor"),
        ("Prince Chidi", "Chidi Okafor"),
        ("King Bello", "Prince Bello"),
        ("Dr. Chidi", "Chidi Okafor"),
        ("Okafor", "Chidi and Ada Okafor", "Chidi Okafor"),
        ("Okafor", "Friends of Okafor"),
        ("Okafor", "Okafor's Nephew"),
        ("Chidi Okafor", "Chidi Okafor Bello"),
        ("10²", "102"),
        ("2⁸ bits", "28 bits"),
        ("x³", "x3"),
        ("Henry IV", "Henry V"),
        ("沈夫人", "沈德明"),
        ("沈教授", "沈德明"),
        ("德明", "沈德明", "李德明"),
    ],
)
def test_what_cannot_be_decided_stays_apart(names: tuple[str, ...], tmp_path: Path) -> None:
    """Two bearers of a surname or a given name, a wife, an owner, a king, another number."""
    assert nodes(tmp_path, *map(entity, names)) == dict.fromkeys(names, ())


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("Wilcox", "Charles Wilcox"), "Charles Wilcox met the Wilcoxes. Wilcox slept."),
        (("Wilson", "Jane Wilson"), "Jane Wilson met Mrs. Wilson. Wilson slept."),
        (("Tamsin", "Orla Tamsin"), "Orla Tamsin knew the Tamsin, Varga, and Hale families."),
        (("Varga", "Ilona Varga"), "Ilona Varga met the Hale and Varga brothers. Varga slept."),
        (("Walter Elliot", "William Walter Elliot"), "William Walter Elliot and Walter Elliot."),
        (("King John", "John"), "King John and John met."),
        (("Edric Varga", "Oswin Edric Varga"), "Oswin Edric Varga was born. Edric Varga slept."),
        (("德明", "沈德明"), "沈德明与王德明相识。德明睡了。"),
        (("巴列奥略", "米哈伊尔·巴列奥略"), "米哈伊尔·巴列奥略开创了巴列奥略王朝。"),
        (("奥卡福", "奇迪·奥卡福"), "奇迪·奥卡福经营剧院。奥卡福家族住在城里。"),
        (("海澄公", "海澄"), "海澄公驻守海澄。"),
        (("英文", "YUN"), "云港大学（英文简称YUN）招生。"),
        (("沈德明", "Norby"), "沈德明（Norby）到会。"),
    ],
)
def test_names_of_families_and_parts_of_other_names_stay_apart(
    names: tuple[str, str], text: str, tmp_path: Path
) -> None:
    """A surname that a relative has, a given name, a place beside its duke, a language."""
    found = nodes(tmp_path, *(entity(name) for name in names), text=text)
    assert found == dict.fromkeys(names, ())


@pytest.mark.parametrize(
    ("title", "word", "text"),
    [
        (
            "怎样把脚本从 Perl 换成 Lua",
            "Lua",
            "# 怎样把脚本从 Perl 换成 Lua\n\n作者很喜欢 Lua 这门语言。",
        ),
        ("B I I", "I I", "The tags of one row are “B I I”, those of the other are “I I”."),
    ],
)
def test_only_the_words_of_a_person_have_short_forms(
    title: str, word: str, text: str, tmp_path: Path
) -> None:
    """A Chinese title with words in Latin letters is no full name, nor are marks of one letter."""
    untyped = [entity(name, kind="unknown") for name in (title, word)]
    assert nodes(tmp_path, *untyped, text=text) == {title: (), word: ()}


def test_a_word_that_may_be_a_given_name_makes_no_person(tmp_path: Path) -> None:
    """Roman is an adjective, Charity a thing."""
    for number, name in enumerate(("Roman Pillars", "Charity Pillars")):
        untyped = [entity(one, kind="unknown") for one in (name, "Pillars")]
        assert len(nodes(tmp_path / str(number), *untyped)) == 2


def test_what_is_no_person_has_no_surname(tmp_path: Path) -> None:
    """A college beside another."""
    untyped = [entity(name, kind="unknown") for name in ("Mary College London", "College London")]
    text = "Mary College London and College London wrote."
    assert len(nodes(tmp_path, *untyped, text=text)) == 2


def test_types_that_contradict_each_other_stay_apart(tmp_path: Path) -> None:
    """A city is no person; what has no type may be either, if no other longer name has the word."""
    found = nodes(tmp_path, entity("Lincoln", kind="place"), entity("Abe Lincoln"))
    assert found == {"Lincoln": (), "Abe Lincoln": ()}
    found = nodes(
        tmp_path / "2", entity("Lena Odum", kind="unknown"), entity("Odum", kind="unknown")
    )
    assert found == {"Lena Odum": ("Odum",)}
    untyped = [entity(name, kind="unknown") for name in ("Lena Odum", "Odum", "Odum Street")]
    assert len(nodes(tmp_path / "3", *untyped)) == 3
    before = [entity(name, kind="unknown") for name in ("Odum", "Lena Odum")]
    assert len(nodes(tmp_path / "4", *before)) == 2  # who Odum is was known before Lena came


def test_the_surname_of_a_known_person_needs_no_type(tmp_path: Path) -> None:
    """Where the full name is a person's, whatever the given name."""
    names = (entity("Ruvane Odum"), entity("Odum", kind="unknown"))
    assert nodes(tmp_path, *names) == {"Ruvane Odum": ("Odum",)}


@pytest.mark.parametrize(
    ("names", "text", "joined"),
    [
        (("Old Orle Road", "Orle Road"), "Old Orle Road crosses Orle Road.", False),
        (("Orle Co", "Orle"), "Orle lies in Orle Co.", False),
        (("Ruvane Odum", "Odum"), "Ruvane Odum came. In 1999 Odum moved away.", True),
        (("Ruvane Odum", "Odum"), "芬兰人 Ruvane Odum 来了。Odum 走了。", True),
        (("Ruvane Odum", "Odum"), "Ruvane Odum came. We saw maps of Odum.", False),
        (("Ruvane Odum", "Odum"), "Ruvane Odum came. In Odum it rained. Odum was full.", False),
        (("George Odum", "Odum"), "George Odum came. Odum is far, and we slept in Odum.", False),
        (("Stone Odum", "Odum"), "Stone Odum came. Odum moved away.", False),
        (("Ruvane Odum", "Ilse Odum", "Odum"), "Ruvane Odum, Ilse Odum. Odum moved away.", False),
    ],
)
def test_a_last_word_that_acts_is_a_surname(
    names: tuple[str, ...], text: str, joined: bool, tmp_path: Path
) -> None:
    """Of a full name without ordinary words and without a type, where a verb follows the word, and nothing is in it."""
    found = nodes(tmp_path, *(entity(name, kind="unknown") for name in names), text=text)
    assert found == ({names[0]: names[1:]} if joined else dict.fromkeys(names, ()))


def test_middle_names_are_left_out(tmp_path: Path) -> None:
    """One bearer with and without them, by the plain name, which other documents have, too."""
    names = ("George Odum", "George Bem Odum", "Odum")
    found = nodes(tmp_path, *(entity(name, kind="unknown") for name in names))
    assert found == {"George Odum": ("George Bem Odum", "Odum")}
    with LightRAG(tmp_path) as rag:
        rag.entities.unmerge("George Bem Odum")
        assert "George Bem Odum" in rag.graph
    assert problems(tmp_path) == []


def test_a_middle_name_tells_relatives_apart(tmp_path: Path) -> None:
    """Where the document has somebody else of the family."""
    names = ("George Odum", "George Bem Odum", "Lena Odum")
    assert len(nodes(tmp_path, *(entity(name, kind="unknown") for name in names))) == 3


def test_a_given_name_of_two_people_is_nobody(tmp_path: Path) -> None:
    """Whether or not both are known to be people."""
    records = [entity("George"), entity("George Odum"), entity("George Bello", kind="unknown")]
    assert len(nodes(tmp_path, *records)) == 3


def test_names_in_one_sentence_have_two_bearers(tmp_path: Path) -> None:
    """With and without a middle name, as father and son are told apart."""
    names = [entity(name) for name in ("Tobin Odum", "Tobin Bem Odum")]
    text = "Tobin Odum left the mill to his son Tobin Bem Odum. Tobin Bem Odum sold it."
    assert len(nodes(tmp_path / "1", *names, text=text)) == 2
    text = "Tobin Odum ran the mill. In 1902, Tobin Bem Odum sold it."
    assert len(nodes(tmp_path / "2", *names, text=text)) == 1


def test_a_latin_name_in_brackets_is_another_name(tmp_path: Path) -> None:
    """Of what stands before the brackets in a Chinese text, with the language named or not."""
    names = ("奇迪·奥卡福", "Chidi Okafor")
    assert nodes(
        tmp_path / "1", *map(entity, names), text="奇迪·奥卡福（英语：Chidi Okafor，1931年—）"
    ) == {names[0]: names[1:]}
    towns = [entity(name, kind="place") for name in ("云港", "Port Yun")]
    assert nodes(tmp_path / "2", *towns, text="云港（Port Yun）很大。") == {"云港": ("Port Yun",)}
    for number, text in enumerate(
        ("云港（Port Yun：PY）", "云港（Port Yun, Yun Bay）", "北山·云港（Port Yun）")
    ):
        assert len(nodes(tmp_path / f"part-{number}", *towns, text=text)) == 2
    unknown = [entity(name, kind="unknown") for name in ("李明", "Norbix")]
    assert len(nodes(tmp_path / "3", *unknown, text="李明（Norbix）来了。")) == 2
    assert len(nodes(tmp_path / "4", *unknown, text="李明（任职：Norbix）来了。")) == 2
    assert len(nodes(tmp_path / "5", *unknown, text="李明（英文：Norbix）来了。")) == 1


def test_a_company_in_word_only_is_not_what_it_is_called_for(tmp_path: Path) -> None:
    """Linux公司 makes Linux no organization; a legal form adds nothing, nor does the word beside a company."""
    names = [entity("Norbix", kind="unknown"), entity("Norbix公司", kind="组织")]
    assert len(nodes(tmp_path, *names, text="Norbix 很好。Norbix公司成立了。")) == 2
    names = [entity(name, kind="组织") for name in ("云港", "云港公司")]
    assert nodes(tmp_path / "2", *names, text="云港很好。云港公司成立了。") == {
        "云港": ("云港公司",)
    }


def test_a_common_word_is_no_short_form(tmp_path: Path) -> None:
    """A name that the text also has as a word in lower case."""
    records = [entity("Jonah Keeper"), entity("Keeper")]
    assert len(nodes(tmp_path, *records, text="Jonah Keeper left. The keeper, Keeper, slept.")) == 2


@pytest.mark.parametrize(
    ("text", "full", "short"),
    [
        ("The Tidal Energy Board met.", "Tidal Energy Board", "TEB"),
        ("Quay Works (QW) paid.", "Quay Works", "QW"),
        ("云港大学（简称云大）招生。云大很大。", "云港大学", "云大"),
        ("Heron Mills Ltd. closed.", "Heron Mills", "Heron Mills Ltd."),
    ],
)
def test_initials_and_stated_short_forms_of_organizations(
    text: str, full: str, short: str, tmp_path: Path
) -> None:
    """Of three letters or more, or as the text states; a legal form adds nothing."""
    records = [entity(name, kind="organization") for name in (full, short)]
    assert nodes(tmp_path, *records, text=f"{text} {short}") == {full: (short,)}


def test_an_alias_in_a_record_joins_what_it_names_alone(tmp_path: Path) -> None:
    """By the record of one bearer; two bearers leave it alone."""
    ann = entity("Ann Lee", aliases=["The Raven"])
    assert nodes(tmp_path, ann, entity("The Raven")) == {"Ann Lee": ("The Raven",)}
    eve = entity("Eve Hall", aliases=["The Raven"])
    assert len(nodes(tmp_path / "2", ann, eve, entity("The Raven"))) == 3


def test_relations_lead_to_the_bearer(tmp_path: Path) -> None:
    """And none leads from a bearer to itself."""
    records = [
        entity("Chidi Okafor"),
        entity("Okafor"),
        entity("Heron Mill", kind="organization"),
        relation("Okafor", "Heron Mill"),
        relation("Chidi Okafor", "Heron Mill"),
        relation("Okafor", "Chidi Okafor", keywords=["mentioned together"]),
    ]
    with LightRAG(tmp_path) as rag:
        rag.insert_records(Document("Chidi Okafor. Okafor. Heron Mill", id="d"), records)
        (found,) = rag.entities.relations()
        assert {found.source, found.target} == {"Chidi Okafor", "Heron Mill"} and found.weight == 10


def test_documents_join_by_themselves(tmp_path: Path) -> None:
    """Okafor is Chidi in one document and Ada in another, and nobody in a third; the two do not become one, and a
    deleted document takes its join away.
    """
    with LightRAG(tmp_path) as rag:
        for id, full in (("a", "Chidi Okafor"), ("b", "Ada Okafor")):
            rag.insert_records(
                Document(f"{full}. Okafor.", id=id), [entity(full), entity("Okafor")]
            )
        assert set(rag.graph) == {"Chidi Okafor", "Ada Okafor"}
        rag.insert_records(Document("Okafor slept.", id="c"), [entity("Okafor")])
        assert set(rag.graph) == {"Chidi Okafor", "Ada Okafor", "Okafor"}
        assert not any(pair.certain for pair in rag.entities.duplicates())
        rag.delete("a")
        assert {row.name: row.aliases for row in rag.entities.list()} == {
            "Ada Okafor": ("Okafor",),
            "Okafor": (),
        }


def test_an_entity_is_reached_by_the_name_of_a_document(tmp_path: Path) -> None:
    """If it is that of one entity; otherwise the error says whose it is."""
    with LightRAG(tmp_path) as rag:
        for id, full in (("a", "Chidi Okafor"), ("b", "Ada Okafor")):
            rag.insert_records(
                Document(f"{full}. Okafor.", id=id), [entity(full), entity("Okafor")]
            )
            if id == "a":
                assert rag.entities.get("okafor").name == "Chidi Okafor"
        with pytest.raises(NotFoundError, match="Ada Okafor, Chidi Okafor"):
            rag.entities.get("Okafor")


@pytest.mark.parametrize("undone", ["Okafor", "Chidi Okafor"])
def test_unmerge_undoes_a_join_for_good(undone: str, tmp_path: Path) -> None:
    """By either name, in documents inserted later, too; a merge of names by hand stays possible."""
    text = "Chidi Okafor. Okafor."
    records = [entity("Chidi Okafor"), entity("Okafor"), relation("Okafor", "Mill")]
    with LightRAG(tmp_path) as rag:
        rag.insert_records(Document(text, id="a"), records)
        rag.entities.unmerge(undone)
        assert set(rag.graph) == {"Chidi Okafor", "Okafor", "Mill"}
        assert rag.graph.has_edge("Okafor", "Mill")
        rag.insert_records(Document(text + " Again.", id="b"), records)
        assert set(rag.graph) == {"Chidi Okafor", "Okafor", "Mill"}
        with pytest.raises(NotFoundError):
            rag.entities.unmerge("Chidi Okafor")
        rag.entities.merge(["Okafor"], into="Chidi Okafor")
        assert set(rag.graph) == {"Chidi Okafor", "Mill"}
        rag.entities.unmerge("Okafor")
        assert set(rag.graph) == {"Chidi Okafor", "Okafor", "Mill"}
    assert problems(tmp_path) == []


async def test_a_retry_decides_with_all_chunks(tmp_path: Path) -> None:
    """A chunk that is read later may bring the longer name, or a second bearer."""
    pages = ("Okafor slept.", "Chidi Okafor woke.", "Ada Okafor sang.")
    names = {"Okafor slept.": "Okafor", pages[1]: "Chidi Okafor", pages[2]: "Ada Okafor"}
    failing = {pages[1], pages[2]}

    def read(request: Request) -> str:
        page = next(page for page in pages if page in text_of(request))
        return "no JSON at all" if page in failing else jsonl(entity(names[page]))

    async with index(tmp_path, ScriptedLLM(read)) as rag:
        await rag.insert(Document("", id="d", pages=pages))
        assert set(view(tmp_path).entities) == {"okafor"}
        failing.remove(pages[1])
        await rag.retry()
        assert set(view(tmp_path).entities) == {"chidi okafor"}
        failing.clear()
        await rag.retry()
        assert set(view(tmp_path).entities) == {"okafor", "chidi okafor", "ada okafor"}
    assert problems(tmp_path) == []


def test_exported_records_have_the_names_of_the_text(tmp_path: Path) -> None:
    """So that another index joins them anew."""
    with LightRAG(tmp_path) as rag:
        rag.insert_records(
            Document("Chidi Okafor. Okafor.", id="d"), [entity("Chidi Okafor"), entity("Okafor")]
        )
        records = [json.loads(line) for line in rag.admin.export_text("jsonl").splitlines()]
    assert {record["name"] for record in records} == {"Chidi Okafor", "Okafor"}
    assert not any("aliases" in record for record in records)


def test_decomposed_letters_are_those_of_the_text(tmp_path: Path) -> None:
    """As files of macOS have them."""
    decomposed = unicodedata.normalize("NFD", "Zoë Brontë")
    found = nodes(tmp_path, entity("Zoë Brontë"), entity(decomposed), entity("Brontë"))
    assert found == {"Zoë Brontë": ("Brontë",)}


@pytest.mark.parametrize(
    ("language", "note", "subject", "others", "question"),
    [
        (
            "en",
            "---\naliases: [The Tide Bureau, Saltmarsh Office]\n---\nThe Bureau of Tides opened in 1911. "
            "The Saltmarsh Office stands beside [[Heron Mill|the Mill]].",
            "Bureau of Tides",
            {"The Tide Bureau", "Saltmarsh Office"},
            "What stands beside the Saltmarsh Office?",
        ),
        (
            "zh",
            "---\naliases:\n  - 沈怀瑾\n  - 听潮居士\n---\n沈德明生于宁波。沈怀瑾后来去了上海。",
            "沈德明",
            {"沈怀瑾", "听潮居士"},
            "沈怀瑾去了哪里？",
        ),
    ],
)
def test_the_aliases_of_a_note_are_names_of_its_title(
    language: str, note: str, subject: str, others: set[str], question: str, tmp_path: Path
) -> None:
    """The front matter states them for the note's subject: one node with the other names, which questions
    and people reach by each of them; a deleted note leaves nothing.
    """
    path = tmp_path / f"{subject}.md"
    path.write_text(note, encoding="utf-8")
    with LightRAG(tmp_path / "kb", language=language) as rag:
        before = view(tmp_path / "kb")
        rag.insert(path)
        entity = rag.entities.get(subject)
        assert others <= {*entity.aliases}
        assert others.isdisjoint(rag.graph)
        for name in others:
            assert rag.entities.get(name).name == subject
        assert subject in [found.name for found in rag.retrieve(question, mode="local").entities]
        rag.delete(rag.documents()[0].id)
        assert view(tmp_path / "kb") == before
    assert problems(tmp_path / "kb") == []


def test_a_note_is_about_its_title_even_if_the_text_has_only_the_alias(tmp_path: Path) -> None:
    """The alias is the title's, and no address of a page (`aliases` of Hugo) is a name."""
    document = Document(
        "Okafor slept at Heron Mill.",
        id="d",
        title="Chidi Okafor",
        metadata={"aliases": ["Okafor", "/posts/old-address/"]},
    )
    with LightRAG(tmp_path) as rag:
        rag.insert(document)
        assert rag.entities.get("Chidi Okafor").aliases == ("Okafor",)
        assert "Okafor" not in rag.graph


@pytest.mark.parametrize(
    ("language", "text", "bearer", "alias"),
    [
        (
            "en",
            "We met [[Ada Lindqvist|Quillfeather]] in [[Bergen]].",
            "Ada Lindqvist",
            "Quillfeather",
        ),
        (
            "en",
            "We met [[People/Ada Lindqvist#Life|Quillfeather]] today.",
            "Ada Lindqvist",
            "Quillfeather",
        ),
        ("zh", "[[北京大学|北大]]位于[[北京]]。", "北京大学", "北大"),
    ],
)
def test_the_text_of_a_link_is_another_name_of_the_linked_note(
    language: str, text: str, bearer: str, alias: str, tmp_path: Path
) -> None:
    """Where both are read as names; a word such as "there" is none."""
    records = [entity(bearer), entity(alias)]
    other = text.replace(alias, "there")
    with LightRAG(tmp_path, language=language) as rag:
        rag.insert_records(Document(text, id="d"), records)
        rag.insert_records(Document(other, id="e"), [entity(bearer)])
        assert [(found.name, found.aliases) for found in rag.entities.list()] == [
            (bearer, (alias,))
        ]


def test_the_order_of_notes_does_not_matter(tmp_path: Path) -> None:
    """Notes with aliases, a link with a text and a plain name give one graph in any order."""
    notes = [
        Document(
            "Okafor slept at Heron Mill.",
            id="a",
            title="Chidi Okafor",
            metadata={"aliases": "Okafor, Bem"},
        ),
        Document("[[Chidi Okafor|Bem]] met Ada Lindqvist.", id="b", title="Ada Lindqvist"),
        Document(
            "Bem sang in Bergen.", id="c", title="Bem", metadata={"aliases": ["Bem of Bergen"]}
        ),
    ]
    views = []
    for number, order in enumerate(itertools.permutations(notes)):
        folder = tmp_path / str(number)
        with LightRAG(folder) as rag:
            for note in order:
                rag.insert(note)
        views.append(view(folder))
    assert all(found == views[0] for found in views)


@pytest.mark.parametrize(
    ("short", "full", "predicate"),
    [
        ("Marlow", "Marlow Grammar School", "located in"),
        ("Okafor", "Chidi Okafor", "daughter of"),
        ("宁溪", "宁溪中学", "位于"),
    ],
)
def test_names_with_a_stated_relation_are_two_bearers(
    short: str, full: str, predicate: str, tmp_path: Path
) -> None:
    """The relation is kept: nobody is in a relation with himself."""
    records = [entity(full), entity(short), relation(full, short, keywords=[predicate])]
    with LightRAG(tmp_path) as rag:
        rag.insert_records(Document(f"{full}. {short}."), records)
        (found,) = rag.entities.relations()
    assert (found.source, found.target) == (full, short)


def test_a_company_is_not_the_place_that_it_is_named_for(tmp_path: Path) -> None:
    """A company and its name without the legal form are one, but not a company and a railway."""
    company = entity("云岭铁路股份有限公司", kind="组织")
    text = "云岭铁路股份有限公司管理云岭铁路。"
    railway = entity("云岭铁路", kind="地点")
    assert len(nodes(tmp_path / "a", company, railway, text=text)) == 2
    assert len(nodes(tmp_path / "b", company, entity("云岭铁路", kind="组织"), text=text)) == 1
