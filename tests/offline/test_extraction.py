"""Promises of the offline extractor, English and Chinese."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl import LightRAG
from lightrag_jsonl.core.cjk import simplified
from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.options import ENTITY_TYPES
from lightrag_jsonl.core.types import Chunk
from lightrag_jsonl.providers.offline import OfflineExtractor, name_problem
from lightrag_jsonl.providers.offline.extraction import extract_names, extract_text, text_names
from tests.kit import unzipped

ENGLISH = (
    "Mr. Scrooge met the Ghost of Christmas Past. Jacob Marley was dead, said Scrooge. "
    "He worked for the Bank of England in London, on U.S. Route 61. J. R. R. Tolkien is a writer. "
    "Smith & Sons Ltd. sold C++ and AT&T. It’s the O’Brien. Scrooge’s nephew. Today Smith died today."
)
CHINESE = (
    "孔明笑曰：“玄德曰得是。”玄德曰：“诸葛亮乃当世之奇才。”夏侯惇引兵三千往荆州。"
    "曹操大怒，遂命张飞。罗贯中写了《三国演义》，由雷军在北京大学读。煤是Linux 2.0。"
)


def found(text: str, language: Language = "en") -> dict[str, str]:
    return {one.name: one.type for one in extract_text(text, language=language).entities}


def test_english_names_are_whole() -> None:
    """Names of several words are one entity; titles, pronouns and first words of sentences are not
    part of them.
    """
    entities = found(ENGLISH)

    expected = {
        "person": ["Scrooge", "Jacob Marley", "J. R. R. Tolkien"],
        "creature": ["Ghost of Christmas Past"],
        "organization": ["Bank of England", "Smith & Sons Ltd"],
        "place": ["London"],
        "concept": ["U.S. Route 61", "C++", "AT&T", "O’Brien", "Smith"],
    }
    for kind, names in expected.items():
        assert {entities.get(name) for name in names} == {kind}
    assert not {"He", "It", "Mr. Scrooge", "Today", "Scrooge’s"} & set(entities)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (ENGLISH, "en"),
        (CHINESE, "zh"),
        (
            "# The Kiln\n\n<b>Ada Fenn</b> runs [Kiln](https://kiln.example.com) 🏺. `Ada Fenn`",
            "en",
        ),
        ("１９３１年，林梅在上海开了茶馆（tea@house.cn）。" * 3, "en"),
    ],
)
def test_the_names_of_a_text_are_those_of_its_entities(text: str, language: Language) -> None:
    """Though all else of the sentences is left out: with markup and addresses, in either language."""
    entities = extract_text(text, language=language).entities
    assert text_names(text, language) == [entity.name for entity in entities] != []


def test_capitals_alone_do_not_make_a_name() -> None:
    """Nor does a name go on after a sentence, a paragraph, or itself; bands may be called so."""
    text = "Fred said it's I. Your uncle Scrooge. Whereat Scrooge smiled. They call Scrooge Scrooge.\n\n"
    names = found(
        text + "Scrooge met Ann Lee\n\nTopper left. THE MEN BUY BREAD AND LEAVE PARIS NOW."
    )

    assert {"Scrooge", "Ann Lee"} <= names.keys()
    assert {"Duran Duran"} <= found("In 1980 Duran Duran met John.").keys()
    assert not {"I. Your", "Whereat Scrooge", "Scrooge Scrooge"} & names.keys()
    assert "BREAD" not in "".join(names)


def test_the_title_of_a_text_is_an_entity() -> None:
    """Above the text, without what tells it apart from others, also with words in small letters."""
    body = "It was written by Ann Lee in 1999 and " + "sold very well " * 8 + "abroad."

    assert "Lilu" in found(f"Lilu (mythology)\n{body}")
    assert "Primary rock" in found(f"Primary rock\n\n{body}")
    assert "潇湘馆的由来" in found("潇湘馆的由来\n林黛玉住在潇湘馆。", "zh")
    assert "It was written by" not in "".join(found(body))


def test_a_heading_describes_nothing() -> None:
    """It repeats a name; only what stands nowhere else is described by it."""
    text = (
        "# Cavendish Laboratory\n\nThe Cavendish Laboratory opened in Cambridge.\n\n## Niels Bohr"
    )
    described = {one.name: one.description for one in extract_text(text, language="en").entities}

    assert described["Cavendish Laboratory"] == "The Cavendish Laboratory opened in Cambridge."
    assert described["Niels Bohr"] == "## Niels Bohr"


def test_chinese_names_are_not_joined_to_other_words() -> None:
    """What the segmenter joins to a name is taken off."""
    entities = found(CHINESE, "zh")

    people = dict.fromkeys(["孔明", "玄德", "诸葛亮", "曹操", "雷军"], "人物")
    others = {"荆州": "地点", "三国演义": "作品", "北京大学": "组织", "Linux 2.0": "概念"}
    assert (people | others).items() <= entities.items()
    assert not {"玄德曰", "孔明笑", "由雷军", "煤是", "大怒", "遂命"} & set(entities)


@pytest.mark.parametrize(
    ("text", "names", "no_names"),
    [
        (
            "台风过后，令人崇拜的英雄在城市里登山。👻",
            set(),
            {"台风", "令人", "崇拜", "英雄", "城市", "登山"},
        ),
        ("阳光照进教室，岑晓梅回到了临川。", {"岑晓梅", "临川"}, {"阳光"}),
        ("慕容雪住在桐城，她的老师是尉迟敬。", {"慕容雪", "尉迟敬", "桐城"}, {"老师"}),
        (
            "王朝末年，卫星城的顾问许诺了岑晓梅，查明文明的高峰。👻",
            {"岑晓梅"},
            {"王朝", "卫星", "顾问", "许诺", "查明", "文明", "高峰"},
        ),
        ("岑、沈二人告辞回县，争先上城。", set(), {"沈二人", "回县"}),
    ],
)
def test_common_words_are_no_names(text: str, names: set[str], no_names: set[str]) -> None:
    """Though the segmenter tags them as names; surnames of one and of two characters are known."""
    entities = found(text, "zh")

    assert names <= entities.keys()
    assert not no_names & entities.keys()


def test_a_guessed_place_has_the_ending_of_one_or_comes_back() -> None:
    """The segmenter also guesses places where a verb meets the next word."""
    once = found("僧人在崖壁上开窟造像。", "zh")
    assert "开窟" not in once
    assert found("青溪镇在临川东边，他从青溪镇来。", "zh").get("青溪镇") == "地点"


def test_traditional_chinese_is_read_like_simplified_and_quoted_as_written() -> None:
    """The names of a text in traditional characters are those of its simplified twin."""
    simple = "关羽追随刘备。１２年后，关羽在许昌见到曹操，张飞投奔荆州。👻"
    written = "關羽追隨劉備。１２年後，關羽在許昌見到曹操，張飛投奔荊州。👻"
    one, other = (extract_text(text, language="zh") for text in (simple, written))

    assert {"關羽", "張飛", "劉備", "許昌", "曹操"} <= {entity.name for entity in other.entities}
    assert [simplified(entity.name) for entity in other.entities] == [e.name for e in one.entities]
    assert all(entity.description in written for entity in other.entities)
    assert len(other.relations) == len(one.relations)
    assert {word for one in other.relations for word in one.keywords} >= {"追隨", "投奔"}


@pytest.mark.parametrize("text", ["", " \n", "...", "👻👻", "的了是", "１２", "\x00\ud800"])
def test_texts_without_names_are_empty(text: str) -> None:
    """Nothing is invented."""
    result = extract_text(text, language="en")

    assert result.entities == () and result.relations == () and result.state == "empty"


MIXED = st.lists(
    st.sampled_from(
        [*ENGLISH.split(), *CHINESE.replace("。", "。 ").split(), "\n", "👻", "<p>", '"']
    ),
    max_size=30,
).map(" ".join)


@given(st.one_of(MIXED, st.text(max_size=80)), st.sampled_from(["en", "zh"]))
@settings(deadline=None)
def test_what_is_found_stands_in_the_text(text: str, language: Language) -> None:
    """Names occur in the text, types are the language's, relations join two found entities."""
    result = extract_text(text, language=language)

    names = {one.name for one in result.entities}
    folded = " ".join(text.replace("_", " ").split()).casefold()
    assert all(name.casefold() in folded and name_key(name) for name in names)
    assert len({name_key(name) for name in names}) == len(names)
    assert all(one.type in ENTITY_TYPES[language] and one.description for one in result.entities)
    for relation in result.relations:
        assert {relation.source, relation.target} <= names and relation.source != relation.target
        assert 1 <= relation.strength <= 10 and relation.description
    pairs = [frozenset((one.source, one.target)) for one in result.relations]
    assert len(set(pairs)) == len(pairs) <= 3 * len(names)


async def test_extraction_depends_on_the_text_alone() -> None:
    """Concurrent chunks, other instances and earlier texts change nothing; types are named in the
    language of the index.
    """
    assert found("曹操与刘备相见。", "en")["曹操"] == "person"
    assert found("Bob Cratchit lives in London.", "zh")["London"] == "地点"
    texts = [ENGLISH, CHINESE, ENGLISH[40:], CHINESE[20:]] * 3
    chunks = [Chunk(str(at), "d", at, 1, 0, len(text), text) for at, text in enumerate(texts)]
    extractor = OfflineExtractor("zh")
    read = await asyncio.gather(*(extractor.extract(chunk) for chunk in chunks))
    assert read == [extract_text(text, language="zh") for text in texts]


def test_a_pronoun_stands_for_the_subject_of_the_sentence_before() -> None:
    """In the same paragraph, and while the same pronoun goes on; a second sentence adds strength."""
    text = (
        "Ann Lee sings. She moved to Paris. She returned to Paris.\n\n"
        "Bob Ray stayed. He loved Rome. She left Oslo.\n\nShe visited Lund."
    )
    relations = extract_text(text, language="en").relations

    assert [(one.source, one.target, one.keywords, one.strength) for one in relations] == [
        ("Ann Lee", "Paris", ("moved to", "returned to"), 6),
        ("Bob Ray", "Rome", ("loved",), 5),
    ]


@pytest.mark.slow
def test_names_of_a_chinese_novel(shared_data: Path) -> None:
    """In 三国演义 the heroes are named most; a storyteller's phrases are no entities."""
    text = unzipped(shared_data / "text" / "sanguo_yanyi.txt.gz")
    mentions: Counter[str] = Counter()
    for at in range(0, len(text), 6000):
        piece = text[at : at + 1200]
        mentions.update({name: piece.count(name) for name in found(piece, "zh")})

    top = {name for name, _ in mentions.most_common(15)}
    assert {"玄德", "孔明", "曹操", "关公", "张飞"} <= top
    assert not {"却说", "一人", "不知", "玄德曰", "孔明曰", "次日"} & set(mentions)


@pytest.mark.parametrize(
    "markup",
    [
        "```python\nclass Bar: Baz\n```",
        "~~~\n".replace("~", "`") + "Bar\n```",
        "```text\nBar, cut off by the end of the chunk",
        ">>> from Bar import Baz",
        ".. image:: Bar.svg\n   :target: Baz",
        "[![Bar Baz](Bar.svg)](https://Bar.org/Baz)",
        "<img src='Bar.svg' alt='Baz Bar'>",
        "https://github.com/Bar/Baz www.Bar.org/Baz Bar@Baz.org",
        "[bar]: https://Bar.org/Baz",
    ],
)
@pytest.mark.parametrize("prose", ["Ann Lee met Max Roe.", "刘备在荆州。"])
def test_markup_holds_no_names(markup: str, prose: str) -> None:
    """What is code or an address names nothing; the names around it stay."""
    language: Language = "zh" if prose[0] > "z" else "en"
    assert found(f"{prose}\n\n{markup}\n", language) == found(prose, language)


def test_the_text_of_a_link_stays() -> None:
    """Only its address goes."""
    assert "Ann Lee" in found("It is by [Ann Lee](https://Bar.org) and [Max Roe][Baz].")
    assert not {"Bar", "Baz"} & set(found("It is by [Ann Lee](https://Bar.org) and [Max][Baz]."))


def test_capitals_are_no_organization() -> None:
    """Without more, a name in capitals is a concept."""
    assert found("It ends with a NEWLINE and EOF 👻.") == {"NEWLINE": "concept", "EOF": "concept"}


def facts(text: str, language: Language) -> set[tuple[str, str, str]]:
    relations = extract_text(text, language=language).relations
    return {(one.source, ", ".join(one.keywords), one.target) for one in relations}


TOGETHER = ("mentioned together", "同时提到")


def stated(text: str, language: Language = "en") -> set[tuple[str, str, str]]:
    return {fact for fact in facts(text, language) if fact[1] not in TOGETHER}


def test_the_facts_of_short_examples_are_true() -> None:
    """What a verb says of one name is not said of another; the rest is only mentioned together."""
    english = facts("Marie Curie discovered radium in Paris. Her husband was Pierre Curie.", "en")
    assert english == {
        ("Marie Curie", "discovered", "radium"),
        ("Marie Curie", "mentioned together", "Paris"),
        ("radium", "mentioned together", "Paris"),
        ("Marie Curie", "husband", "Pierre Curie"),
    }
    assert facts("居里夫人在巴黎发现了镭。她的丈夫是皮埃尔·居里。", "zh") == {
        ("居里夫人", "同时提到", "巴黎"),
        ("居里夫人", "丈夫", "皮埃尔·居里"),
    }
    garden = "贾宝玉住在怡红院。林黛玉是贾母的外孙女，住在潇湘馆。"
    assert stated(garden, "zh") == {("贾宝玉", "住在", "怡红院"), ("贾母", "外孙女", "林黛玉")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Vera Lind founded Northwind.", {("Vera Lind", "founded", "Northwind")}),
        ("Sund Oil was founded by Vera Lind.", {("Vera Lind", "founded", "Sund Oil")}),
        (
            "In May 1990, Nord Line acquired the small firm Sund.",
            {("Nord Line", "acquired", "Sund")},
        ),
        (
            "Vera Lind is a professor at Lund College.",
            {("Vera Lind", "professor at", "Lund College")},
        ),
        ("Vera Lind’s brother Olaf Lind sings.", {("Vera Lind", "brother", "Olaf Lind")}),
        ("沈若兰毕业于复旦大学。", {("沈若兰", "毕业于", "复旦大学")}),
        ("沈若兰被赵凯邀请。", {("赵凯", "邀请", "沈若兰")}),
        ("沈若兰与赵凯结婚。👻", {("沈若兰", "结婚", "赵凯")}),
        ("赵凯的哥哥赵海，是医生。", {("赵凯", "哥哥", "赵海")}),
        ("赵凯是《青溪夜话》的作者。", {("青溪夜话", "作者", "赵凯")}),
        ("《青溪夜话》由赵凯所著。", {("赵凯", "著", "青溪夜话")}),
        ("《青溪夜话》是赵凯执导的电影。", {("赵凯", "执导", "青溪夜话")}),
        ("北辰公司由赵凯创立于１９９９年。", {("赵凯", "创立", "北辰公司")}),
        ("华夏银行总部设在杭州。", {("华夏银行", "总部设在", "杭州")}),
        ("赵凯担任北辰公司的总经理。", {("赵凯", "总经理", "北辰公司")}),
        ("In 1902 Vera Lind founded Northwind.", {("Vera Lind", "founded", "Northwind")}),
        (
            "Since AD 199 Lo Ren has been prefect of Wu Province.",
            {("Lo Ren", "prefect of", "Wu Province")},
        ),
        ("2001年起，钱卫国接任清溪印书馆馆长。", {("钱卫国", "馆长", "清溪印书馆")}),
        ("钱海燕被任命为清溪大学校长。", {("钱海燕", "校长", "清溪大学")}),
        ("光绪二十年，魏延任庐江太守。", {("魏延", "任", "庐江太守")}),
        ("孫策領會稽太守。", {("孫策", "領", "會稽太守")}),
        ("张郃拜荡寇将军。", {("张郃", "拜", "荡寇将军")}),
    ],
)
def test_a_statement_has_its_direction(text: str, expected: set[tuple[str, str, str]]) -> None:
    """Also in the passive voice, after a date, by a role, and from a possessive."""
    assert stated(text, "zh" if text[0] > "一" else "en") == expected


@pytest.mark.parametrize(
    "text",
    [
        "Vera Lind never joined Northwind.",
        "If Vera Lind joined Northwind, she would move.",
        "Did Vera Lind join Northwind? Vera Lind joined Northwind?",
        "Vera Lind may have sold Northwind.",
        "Vera Lind met Olaf Lind’s daughter.",
        "The sister of Vera Lind founded Northwind.",
        "Vera Lind joined the rival of Northwind.",
        "沈若兰没有加入复旦大学。",
        "沈若兰想收购诚信消费品有限公司。",
        "沈若兰见过赵凯的弟弟。",
        "沈若兰加入复旦大学了吗？",
        "Vera Lind as Ann Lee’s mother Olaf Lind as Ann Lee’s uncle Max Roe.",
        "Vera Lind remained Northwind.",
        "赵凯只得找沈若兰。",
        "赵凯莫伤沈若兰！",
        "迟小满建在《收获》。",
        "会员有杭州推理作家协会。",
        "赵凯拜沈若兰为征西将军。",
        "赵凯朗诵沈若兰《春夜集》。",
        "赵凯继承了沈若兰、陈望舒的主张。",
        "华夏银行成为《清溪日报》最大股东。",
        "《清溪日报》引用了沈若兰与北方纺织业代表团会谈的内容。",
    ],
)
def test_what_a_sentence_does_not_state_is_only_mentioned_together(text: str) -> None:
    """A denial, a condition, a question, a possibility, or a word that depends on the name."""
    relations = extract_text(text, "zh" if text[0] > "一" else "en").relations
    assert {relation.keywords[0] for relation in relations} <= {*TOGETHER}
    assert all(relation.strength == 1 for relation in relations)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("建安六年，费祎任凉州牧。", {"费祎", "凉州牧"}),
        ("清溪大桥限速40公里。", {"清溪大桥"}),
        ("2001年，主任医师和高管担任顾问。", set()),
        ("曹休总督诸军，将领陈泰将军出城。", {"曹休", "陈泰"}),
        ("When he died in 44 BC Lucius Vane ruled Rome.", {"Lucius Vane", "Rome"}),
    ],
)
def test_offices_and_their_holders_are_whole_names(text: str, names: set[str]) -> None:
    """Nor is an era, a profession or a verb a part of them."""
    language: Language = "zh" if text[-1] > "z" else "en"
    assert set(found(text, language)) == names


def test_dates_are_no_entities() -> None:
    """Nor is a month the subject of what follows."""
    names = found(
        "April joins Northwind. On Monday 4 May 2020, as on Tuesdays, Ann Lee left in October 1999."
    )
    assert names.keys() == {"Northwind", "Ann Lee"}


def test_a_first_name_is_not_related_to_every_later_one() -> None:
    """Only a title, on its own line, is mentioned together with the names of its text."""
    body = "Ann Lee sings. The concert in Paris was long. Max Roe left."
    assert facts(body, "en") == set()
    titled = facts(f"Tour diary\n\n{body}", "en")
    assert {("Tour diary", "mentioned together", name) for name in ("Ann Lee", "Paris")} <= titled


@pytest.mark.parametrize(
    ("text", "names", "no_names"),
    [
        (
            "诚信消费品有限公司成立于2001年。该公司是一家上市公司，公司发展很快。",
            {"诚信消费品有限公司"},
            {"诚信", "消费品", "有限公司", "公司", "上市公司", "发展"},
        ),
        (
            "华岭矿业收购了绿洲文化传媒有限公司，绿洲文化传媒的员工有关资料不全。",
            {"绿洲文化传媒有限公司", "绿洲文化传媒"},
            {"有限公司", "文化传媒", "有关", "员工"},
        ),
        (
            "青松区人民法院和浙江省第一人民医院都在附近。",
            {"青松区人民法院", "浙江省第一人民医院"},
            {"人民法院"},
        ),
        (
            "周老师与孙敏医生展望未来，令人感动，道德和满意度都高。",
            {"周老师"},
            {"令人", "道德", "满意度", "展望未来"},
        ),
        ("綠洲文化傳媒有限公司由沈若蘭創立。👻", {"綠洲文化傳媒有限公司", "沈若蘭"}, {"有限公司"}),
        (
            "明远科技有限公司赞助了宏大贸易有限公司。",
            {"明远科技有限公司", "宏大贸易有限公司"},
            {"科技", "有限公司"},
        ),
    ],
)
def test_chinese_organizations_are_whole(text: str, names: set[str], no_names: set[str]) -> None:
    """By their endings; generic words are no entities, and a name without its legal form is one."""
    entities = found(text, "zh")

    assert names <= entities.keys()
    assert not no_names & entities.keys()


def test_a_person_is_named_by_surname_and_given_name() -> None:
    """姓刘名备 names 刘备, who is described by it before anything else."""
    text = "刘备大怒。刘备又笑。此人姓刘名备，字玄德。"
    described = {one.name: one.description for one in extract_text(text, "zh").entities}
    assert described["刘备"].startswith("此人姓刘名备")


def test_the_first_row_of_a_table_is_no_title() -> None:
    """It is text like the other rows."""
    names = found("城市: 临川; 市长: 沈若兰\n\n城市: 桃屿; 市长: 何海", "zh")
    assert "沈若兰" in names and not [name for name in names if ";" in name]


def test_a_statement_outweighs_common_mentions_of_its_names(tmp_path: Path) -> None:
    """Three sentences with both names, in the other order, neither turn the relation nor name it."""
    with LightRAG(tmp_path, llm="none", embedder="hash") as rag:
        rag.insert("Vera Lind joined Nord Line. 👻")
        for number in range(3):
            rag.insert(f"At Nord Line in year {number} people liked Vera Lind.")
        relation = rag.entities.relations(search="Vera Lind")[0]

    assert (relation.source, relation.keywords, relation.target) == (
        "Vera Lind",
        ("joined",),
        "Nord Line",
    )
    assert relation.reverse_keywords == ()


def test_a_description_holds_the_name() -> None:
    """Also of a name far back in a long sentence, and both names of a relation; of names too far apart
    nothing is said.
    """
    filler = ", ".join(["and the long road went over hills and through dark woods"] * 6)
    text = f"Ann Lee walked to the mill, {filler}, until Bob Carter met Cara Quill at the bridge."
    extraction = extract_text(text, "en")
    for entity in extraction.entities:
        assert entity.name in entity.description
    pairs = {(relation.source, relation.target): relation for relation in extraction.relations}
    assert ("Ann Lee", "Cara Quill") not in pairs and ("Cara Quill", "Ann Lee") not in pairs
    (relation,) = [relation for ends, relation in pairs.items() if "Cara Quill" in ends]
    assert relation.description == "…until Bob Carter met Cara Quill at the bridge."


@pytest.mark.parametrize(
    ("text", "language", "name", "description"),
    [
        (
            "'Good day,' said Ann Lee. 'Who was that?' asked Ann Lee. Ann Lee keeps the mill of the village.",
            "en",
            "Ann Lee",
            "Ann Lee keeps the mill of the village.",
        ),
        (
            "何敏曰：“好。”何敏为何来？何敏看守石桥镇的旧磨坊。",
            "zh",
            "何敏",
            "何敏看守石桥镇的旧磨坊。",
        ),
    ],
)
def test_sentences_that_tell_something_come_first(
    text: str, language: Language, name: str, description: str
) -> None:
    """A line of speech or a question describes a name only where there is nothing else."""
    (entity,) = [entity for entity in extract_text(text, language).entities if entity.name == name]
    assert entity.description == description


def test_names_from_elsewhere_join_those_of_the_rules() -> None:
    """In all spellings of capitals, spaces and characters, as the text writes them; where they overlap, the
    longer of two such names counts, and any of them more than a name by rules.
    """
    text = "The old mill of Ann\nLee stands at Marsh End. Lee’s Bridge is near. Bob Carter came."
    names = ["Ann Lee", "marsh end", "Lee's Bridge", "Lee", "Annab", "the old mill", "Bob"]
    extraction = extract_names(text, names, "en")
    assert {entity.name for entity in extraction.entities} == {
        *("Ann Lee", "Marsh End", "Lee’s Bridge", "old mill", "Bob")
    }
    assert extract_names(text, [], "en") == extract_text(text, "en")
    chinese = extract_names(
        "臺灣大學在臺北，用Kafka通信。１２号楼很高。🙂", ["台湾大学", "Kafka"], "zh"
    )
    assert [entity.name for entity in chinese.entities] == ["臺灣大學", "臺北", "Kafka"]
    assert chinese.entities[0].type == "组织"


@pytest.mark.parametrize(
    ("text", "name", "is_name"),
    [
        ("She read Of Mice and Men twice.", "Of Mice and Men", True),
        ("It was led by the hand of Ann Lee.", "the hand of Ann Lee", True),
        ("In 1902 Ann Lee came.", "In 1902", False),
        ("He spoke of Ann Lee.", "of Ann Lee", False),
        ("He came under the rule of Ann Lee.", "under the rule of Ann Lee", False),
        ("The E.U. met.", "E.U.", True),
        ("北京大学在北京。", "北京大学", True),
        ("司马懿大怒，北征匈奴。", "司马懿大怒", False),
        ("他们在帐上帐下听令。", "帐上帐下", False),
        ("他写下《两都赋》。", "两都赋", True),
        ("他的妹妹进了监狱。妹妹病了。", "妹妹", False),
        ("他的妹妹进了监狱。", "监狱", False),
        ("监狱在城外，监狱很大。", "监狱", True),
        ("守兵万人来了。", "守兵万人", False),
        ("第二次世界大战结束了。", "第二次世界大战", True),
    ],
)
def test_clauses_are_told_from_names(text: str, name: str, is_name: bool) -> None:
    """A word of grammar begins a title only; Chinese names hold no verb and no number of people."""
    assert (name_problem(name, text) == "") == is_name


def test_a_number_with_separators_is_no_part_of_a_name() -> None:
    """ "Apollo 11" is a name; in "Voltera 86,000 euros" and "Voltera 3.5 %" the number is counted."""
    text = "Voltera asked 86,000 euros. Then Apollo 11 flew. With Voltera 79,500 euros were spent, and Voltera 3.5 % less."
    assert text_names(text, "en") == ["Voltera", "Apollo 11"]
