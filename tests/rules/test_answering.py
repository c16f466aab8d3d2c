"""Promises of the extractive answerer."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import Chunk, Context, Document, Entity, Keywords, LightRAG, Relation
from lightrag_jsonl.core.answers import Community
from lightrag_jsonl.rules import ExtractiveAnswerer
from lightrag_jsonl.rules.answering import sentence_limit
from lightrag_jsonl.text.citation_markers import CITATION_MARKER, CitationNumbering
from lightrag_jsonl.tracing.citations import resolve_citations
from lightrag_jsonl.tracing.statements import uncited_statements
from tests.kit import Language
from tests.tracing.conftest import stored

MARLEY = "Marley was dead. Old Marley was as dead as a door-nail [3]. The weather was foggy."
SCROOGE = "Scrooge was the partner of Marley. He was a squeezing, covetous old sinner."
FACTS = (Entity("Marley", "person", "Marley was the partner of Scrooge."),)
LINKS = (Relation("Scrooge", "Marley", ("partner",), "They shared a counting-house."),)


def context(*texts: str, facts: bool = True) -> Context:
    chunks = tuple(Chunk(str(at), "d", at, 1, 0, len(text), text) for at, text in enumerate(texts))
    return Context(chunks=chunks, entities=FACTS if facts else (), relations=LINKS if facts else ())


def answer(question: str, given: Context, language: Language = "en") -> str:
    return asyncio.run(ExtractiveAnswerer(language).answer(question, given))


def quoted_lines(text: str) -> list[str]:
    """The quotes of an answer, each with its number."""
    return [line.removeprefix("- ") for line in text.split("\n") if line.startswith("- ")]


def test_sentences_carry_the_number_of_their_passage() -> None:
    """The nearest sentence comes first; what has no word of the question is not shown."""
    lines = quoted_lines(answer("Who was the partner of Marley?", context(MARLEY, SCROOGE)))

    assert lines[0] == "Scrooge was the partner of Marley. [2]"
    assert "foggy" not in "".join(lines)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("Marley died [1-2]. He was old [1;2].", "Marley died."),
        ("Marley " + "x" * 388 + " [7](https://a.org) y", "Marley " + "x" * 388),
        ("Marley【1】死于［１２］伦敦【3，4】。", "Marley死于伦敦。"),
        ("Marley<sup>[<a>3</a>]</sup> was dead.", "Marley was dead."),
        ("[![Build][b]][c] ![Badge][d] Marley was dead.", "Marley was dead."),
        ("See `Marley <https://a.org/x>`__ and more.", "See Marley and more."),
        ("In `Marley[1]` or Marley[0] is 👻.", "In Marley[\u20601] or Marley[\u20600] is 👻."),
        ("Marley依国发【2024】5号文。", "Marley依国发【\u20602024】5号文。"),
        ("**Marley** is _dead_ <b>now</b>.", "Marley is dead now."),
        ("- [ ] Bury **Marley**.", "[ ] Bury Marley."),
        ("[On Scrooge etc. The end of Marley](https://a.org/x)", "The end of Marley"),
        ("☑ Marley was buried.", "☑ Marley was buried."),
        ("\uf0d8Marley was dead.", "Marley was dead."),
        ("> Marley of [the firm](https://example.org/a) died.", "Marley of the firm died."),
    ],
)
def test_quotes_are_clean_and_no_bracket_of_a_source_reads_as_a_citation(
    text: str, quoted: str
) -> None:
    """Markup and footnote marks go; years and indices keep their look, but no number is looked up."""
    line = quoted_lines(answer("Marley", context(text, facts=False)))[0]

    assert line.startswith(quoted) and "[1]" in line
    assert {mark["numbers"] for mark in CITATION_MARKER.finditer(line)} == {"1"}


@pytest.mark.parametrize(
    ("language", "text", "question", "line"),
    [
        (
            "en",
            "# Weir trip\n\nIt was long.\n\nWhat to bring:\n\n- a rope of ten meters\n- **two** lamps",
            "How long is the rope?",
            "What to bring: a rope of ten meters [1]",
        ),
        (
            "en",
            "## Dues\n\n| Member | Paid |\n|---|---|\n| Olsen | 40 |\n| Brandt | 35 |",
            "How much did Brandt pay?",
            "Dues: Member: Brandt; Paid: 35 [1]",
        ),
        (
            "en",
            "## Opening\n\n* Mondays from nine\n* closed on Fridays",
            "When is it closed?",
            "Opening: closed on Fridays [1]",
        ),
        (
            "en",
            "**Can I bring a dog?**\n\nYes, on a leash.\n\n**Is there parking?**\n\nNo.",
            "Is there parking?",
            "Is there parking? No. [1]",
        ),
        (
            "en",
            "## Tower\n\n- The stair\n  - of oak\n    1. from Tolva\n  - of 90 steps\n- The bell\n  - cast in 1911",
            "How many steps are there?",
            "The stair: of 90 steps [1]",
        ),
        (
            "en",
            "Prices in crowns\n- a lamp 9\n- a rope 4\n\nThe crowns of kings are not for sale.",
            "What crowns does a lamp cost?",
            "a lamp 9 [1]",
        ),
        (
            "zh",
            "## 灯塔\n\n- [ ] 换灯\n  - 买新灯💡\n  - 擦镜片\n- [x] 修楼梯",
            "镜片要擦吗？",
            "[ ] 换灯：擦镜片 [1]",
        ),
        (
            "zh",
            "## 出行\n\n需要带的东西：\n\n- 十米长的绳子\n- 两盏灯💡",
            "绳子多长？",
            "需要带的东西：十米长的绳子 [1]",
        ),
        (
            "zh",
            "## 分工\n\n1. 方敏负责彩排。\n2. 葛立负责灯光💡，费用由社团承担。",
            "灯光由谁负责？",
            "分工：葛立负责灯光💡，费用由社团承担。 [1]",
        ),
        (
            "zh",
            "| 成员 | 会费 |\n| --- | --- |\n| 方敏 | ４０元 |\n| 葛立 | ３５元 |",
            "葛立交了多少会费？",
            "成员：葛立；会费：３５元 [1]",
        ),
    ],
)
def test_a_point_is_shown_with_what_it_stands_under(
    language: Language, text: str, question: str, line: str
) -> None:
    """A point of a list with its lead-in or heading, a row with its columns, an answer with its question."""
    assert line in quoted_lines(answer(question, context(text, facts=False), language))


FORMS = "die died|died dies|live lived|living lives|marry married|marries marry|change changing"


@pytest.mark.parametrize("forms", FORMS.split("|"))
def test_the_forms_of_an_english_verb_meet(forms: str) -> None:
    """A question in one form is answered by a sentence in another."""
    asked, written = forms.split()
    given = context(f"He slept. Then she {written}. It was cold.", facts=False)

    assert quoted_lines(answer(f"Did they {asked}?", given)) == [f"Then she {written}. [1]"]


@pytest.mark.parametrize(
    ("question", "closing"),
    [("Is Marley dead?", "no model wrote them."), ("Marley死了吗？他怎么样", "并非由模型撰写。")],
)
def test_a_notice_says_that_no_model_wrote_it(question: str, closing: str, tmp_path: Path) -> None:
    """In the language of the question, not of the index or the sources; printed before the sources, and no
    part of the text.
    """
    with LightRAG(tmp_path) as rag:
        rag.insert(MARLEY)
        given = rag.query(question)
    assert given.citations and given.notice.endswith(closing)
    assert given.notice not in given.text
    assert f"{given.text}\n\n{given.notice}\n[1]" in str(given)


@pytest.mark.parametrize(
    ("question", "names", "said"),
    [
        ("What is the capital of Peru?", "Peru", "No sentence with “Peru” was found"),
        ("Who is Oddvar Brekke?", "", "No sentence with “Oddvar Brekke” was found"),
        ("quantum chromodynamics", "", "No sentence with "),
        ("", "", "No sentence with these words"),
        ("👻", "", "No sentence with these words"),
    ],
)
def test_nothing_with_these_words_is_said_so(question: str, names: str, said: str) -> None:
    """No sentence is quoted for the sake of quoting, and no other word stands for a name."""
    given = replace(
        context("He had a capital face. Marley was a partner.", SCROOGE),
        keywords=Keywords((), (names,) if names else ()),
    )
    text = answer(question, given)

    assert "[" not in text and "\n" not in text and text.startswith(said)
    assert "[" not in answer(question, Context())


def test_nothing_is_judged() -> None:
    """A sentence with the words is shown as near, whether or not it answers: nothing says which."""
    for question, text in (
        ("Who sold the barn?", "The barn was sold in spring."),
        ("Who sold the barn?", "Olaf Lind sold the barn in spring."),
        ("谁卖了谷仓？", "谷仓在春天卖了。"),
        ("谁卖了谷仓？", "赵凯卖了谷仓👻。"),
    ):
        language: Language = "zh" if question[0] > "z" else "en"
        lines = answer(question, context(text, facts=False), language).split("\n")
        assert lines[0].startswith(
            ("The sentences of the sources that are nearest", "资料中与问题")
        )
        assert lines[2] == f"- {text} [1]"


def test_the_three_nearest_are_shown_those_with_the_only_name_first() -> None:
    """A sentence about somebody else comes after all with the name, however many words it shares."""
    text = (
        "Ragna Holm sold the boat of her father. Ida Moe came late. Ida Moe likes tea. "
        "The boat of her father was sold by someone. It rained."
    )
    lines = quoted_lines(answer("Did Ida Moe sell her father's boat?", context(text)))

    assert len(lines) == 3
    assert all("Ida Moe" in line for line in lines[:2])
    assert "sold" in lines[2]


@pytest.mark.parametrize(
    ("name", "written", "is_found"),
    [
        ("Muller", "Müller", True),
        ("Müller", "Muller", True),
        ("Mark", "The market", False),
        ("Paris", "The parish", False),
        ("Rome", "Romeo", False),
    ],
)
def test_an_accent_refuses_no_answer(name: str, written: str, is_found: bool) -> None:
    """A name without its accents is the name; a word that only begins alike is another word."""
    text = f"{written} opened a school in 1990. It rained."
    said = answer(f"When did {name} open a school?", context(text, facts=False))

    assert ("1990" in said) == is_found


def test_a_word_in_latin_letters_is_the_name_of_a_chinese_question() -> None:
    """Names of programs are written small: what else was made tells nothing about them."""
    text = "管理员创建了一个仓库。创建仓库要三分钟。tmate 是林岳的作品。"
    lines = quoted_lines(answer("谁创建了 tmate？", context(text, facts=False), "zh"))

    assert lines[0] == "tmate 是林岳的作品。 [1]"
    assert (
        answer("谁创建了 zellij？", context(text, facts=False), "zh")
        == "资料中没有找到含有“zellij”的句子。"
    )


def test_a_sentence_under_the_name_counts_as_one_with_the_name() -> None:
    """The title and the headings above belong to each sentence."""
    under = "She was born in Warsaw. She found radium."
    given = context(f"# Marie Curie\n\n{under}", "Ole met Marie Curie. He was born in Oslo.")

    assert quoted_lines(answer("Where was Marie Curie born?", given))[0].startswith(
        "She was born in Warsaw."
    )


def test_a_heading_that_names_many_makes_no_sentence_one_about_them() -> None:
    """The titles of chapters name people whom few of their sentences are about."""
    text = "# 太史慈酣斗小霸王 孙伯符大战严白虎\n\n策笑曰：你是谁？众军大喊。东莱太史慈也来了👻。"

    lines = quoted_lines(answer("太史慈是谁？", context(text, facts=False), "zh"))
    assert lines[0] == "东莱太史慈也来了👻。 [1]"


def test_the_text_right_below_a_title_is_as_much_about_it_as_the_text_of_a_section() -> None:
    """The title stands above both, whatever stands between."""
    text = (
        "# Tarn Kettle\n\nThe Tarn Kettle is made in Oslo. It holds two litres. It costs 40 euros."
        "\n\n## Repairs\n\nPost it to the shop. Wait two weeks."
    )
    lines = quoted_lines(answer("What are the costs of the Tarn Kettle?", context(text)))

    assert lines[0] == "It costs 40 euros. [1]"


@pytest.mark.parametrize(
    ("text", "question", "language", "said"),
    [
        (
            "Ida Moe came late. Ida Moe likes tea. Ida Moe paints. The ladder of the barn fell on a goat.",
            "Which goat did the ladder of Ida Moe hit?",
            "en",
            "The ladder of the barn fell on a goat. [1]",
        ),
        (
            "《北岭晚报》在北岭。《北岭晚报》有八版。《北岭晚报》每天出版。总编辑由许闻达担任。",
            "《北岭晚报》的总编辑是谁？",
            "zh",
            "总编辑由许闻达担任。 [1]",
        ),
    ],
)
def test_what_is_asked_is_shown_beside_a_name_that_stands_in_many_sentences(
    text: str, question: str, language: Language, said: str
) -> None:
    """Prose does not repeat its subject in each sentence."""
    assert said in quoted_lines(answer(question, context(text, facts=False), language))


@pytest.mark.parametrize(
    ("text", "question", "said"),
    [
        (
            "3. Roof  10:00  Ada Orne\nTwo firms were asked.\n4. Board  10:30  Ivo Brack\n    - Una Keel follows Ivo Brack",
            "Who follows Ivo Brack?",
            "Board 10:30 Ivo Brack: Una Keel follows Ivo Brack [1]",
        ),
        (
            "# Votes\n\n**1. Ada Orne**\n\nIs for it.\n\n**2. Ivo Brack**\n\nIs against it.\n\n---\n\nQueries: Una Keel",
            "Who answers queries?",
            "Votes: Queries: Una Keel [1]",
        ),
        (
            "# Votes\n\n**1. Ada Orne**\n\nIs for it.\n\n***\n\nQueries: Una Keel",
            "Who answers queries?",
            "Votes: Queries: Una Keel [1]",
        ),
        (
            "1. Budget\n\nWe need these:\n\n1) chairs\n2) tables\n\nCost: nine crowns",
            "What is the cost?",
            "Budget: Cost: nine crowns [1]",
        ),
    ],
)
def test_a_heading_leads_nothing_behind_the_next_number_or_a_line(
    text: str, question: str, said: str
) -> None:
    """What stands there is about something else."""
    assert said in quoted_lines(answer(question, context(text, facts=False)))


@pytest.mark.parametrize(
    ("text", "question", "language", "line"),
    [
        (
            "- Repairs take two steps:\n  - Ada drains the pond.\n  - Ivo mends the wall.\n- Una sells the boat.",
            "Who sells the boat?",
            "en",
            "Una sells the boat. [1]",
        ),
        (
            "- Repairs take two steps:\n  - Ada drains the pond.\n- Una sells the boat.",
            "Who drains the pond?",
            "en",
            "Repairs take two steps: Ada drains the pond. [1]",
        ),
        (
            " 7. The gate is shut, and the\n   key is lost. Is it with Ada perhaps?\n\n 8. The pump is broken.",
            "What is broken?",
            "en",
            "8. The pump is broken. [1]",
        ),
        (
            "1. The tenant shall:\n- pay the rent\n- sweep the stairs\n2. The owner paints the door.",
            "Who sweeps the stairs?",
            "en",
            "The tenant shall: sweep the stairs [1]",
        ),
        (
            "2. The tenant shall:\n2.1 pay the rent\n2.2 sweep the stairs\n3. The owner paints the door.",
            "Who sweeps the stairs?",
            "en",
            "The tenant shall: 2.2 sweep the stairs [1]",
        ),
        (
            "{% link 'stairs' %} of the house. The tenant shall:\n- pay the rent\n- sweep it weekly",
            "Who sweeps it weekly?",
            "en",
            "The tenant shall: sweep it weekly [1]",
        ),
        (
            "1. The tenant shall:\n- pay the rent\n- sweep the stairs\n2. The owner paints the door.",
            "Who paints the door?",
            "en",
            "2. The owner paints the door. [1]",
        ),
        (
            "一、租户应当：\n- 按时付租金\n- 打扫楼梯\n二、房东粉刷大门👻。",
            "谁粉刷大门？",
            "zh",
            "二、房东粉刷大门👻。 [1]",
        ),
    ],
)
def test_what_leads_a_list_leads_no_point_beside_or_above_it(
    text: str, question: str, language: Language, line: str
) -> None:
    """The lead would say of such a point what its source does not say."""
    assert quoted_lines(answer(question, context(text, facts=False), language))[0] == line


def test_points_below_a_point_are_about_what_it_names() -> None:
    """As much as a sentence with the same words."""
    text = "- Chat tools\n  - Slack\n  - Zoom for calls\n- Oil\n\nThe harbor has old chat tools."
    lines = quoted_lines(answer("Which chat tools are there?", context(text, facts=False)))
    assert lines[:2] == ["Chat tools: Slack [1]", "Chat tools: Zoom for calls [1]"]


@pytest.mark.parametrize("heading", ["# Marie Curie", "### Marie Curie", "Marie Curie"])
def test_a_heading_is_not_quoted_unless_alone(heading: str) -> None:
    """It says nothing; without any text under it, it is all that there is."""
    under = "Marie Curie was a chemist in Paris."
    given = replace(context(f"{heading}\n\n{under}"), documents={"d": "Marie Curie"})
    alone = replace(context(heading), documents={"d": "Marie Curie"})

    assert quoted_lines(answer("Who is Marie Curie?", given)) == [f"{under} [1]"]
    assert len(quoted_lines(answer("Who is Marie Curie?", alone))) == 1


@pytest.mark.parametrize(
    ("question", "texts", "opening"),
    [
        (
            "Summarize the book.",
            ("The mill stood empty. Ada bought a map.", "Rain fell on the weir."),
            "The passages found begin as follows:",
        ),
        (
            "总结全书。",
            ("磨坊空了很久。阿岚买下了它。", "那年春天雨水很多。"),
            "检索到的段落开头如下：",
        ),
    ],
)
def test_a_question_about_the_whole_text_shows_the_passages(
    question: str, texts: tuple[str, ...], opening: str
) -> None:
    """Passages were found, so the answer shows how they begin."""
    text = answer(question, context(*texts, facts=False))

    assert text.startswith(opening)
    assert [line[-3:] for line in quoted_lines(text)] == ["[1]", "[2]"]


def test_what_a_follow_up_refers_to_is_in_the_keywords() -> None:
    """A name that only an earlier turn spelled out is a term of the question too."""
    given = context(MARLEY, SCROOGE, "刘备在涿郡。关羽在解县。", facts=False)
    known = replace(given, keywords=Keywords((), ("刘备",)))

    assert "[" not in answer("他在哪里？", given)
    assert quoted_lines(answer("他在哪里？", known))[0].startswith("刘备在涿郡。 [3]")


def test_no_sentence_is_shown_twice() -> None:
    """Overlapping chunks do not repeat themselves in the answer."""
    text = "".join(f"Marley owned house number {number}. " for number in range(20))
    lines = quoted_lines(answer("What did Marley own?", context(text, text, facts=False)))

    assert len(lines) == len(set(lines)) == 3


def test_code_is_not_quoted() -> None:
    """Blocks of code, badges and tags are no sentences."""
    text = "[![Click](a.svg)](b)\n\n```python\nimport Click\n```\n\nClick makes <b>Click</b> tools."
    lines = quoted_lines(answer("Does Click import?", context(text, facts=False)))

    assert lines == ["Click makes Click tools. [1]"]


@pytest.mark.parametrize(
    ("language", "question", "form", "line"),
    [
        ("en", "Where was Ada Moor born?", "One sentence", "Ada Moor was born in Vale. [1]"),
        ("zh", "沈知微出生在哪里？", "一句话", "沈知微出生在绍兴🐛。 [1]"),
    ],
)
def test_one_sentence_is_one_sentence(
    language: Language, question: str, form: str, line: str
) -> None:
    """The nearest one and nothing else."""
    text = "Ada Moor kept bees. Ada Moor was born in Vale. 沈知微养蚕。沈知微出生在绍兴🐛。"
    assert answer(question, replace(context(text), response_type=form), language) == line


PIECES = (
    "Ada Moor kept bees in Lund.",
    "She wrote two books on honey [3].",
    "# Ada Moor\n",
    "What to bring:\n\n- a rope\n- two lamps\n",
    "| Name | Paid |\n|---|---|\n| Ada Moor | 40 |\n",
    "**Who is Ada Moor?**\n\nA beekeeper.\n",
    "> “Bees,” said _Ada Moor_, `bee[1]`.",
    "沈知微在湖州养蚕🐛。",
    "她写过两本关于丝绸的书【2】。",
    "## 沈知微\n",
    "需要带：\n\n- 绳子\n- 两盏灯\n",
    "１２月，沈知微去了【2024】年的展览。",
)
texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("\n\n".join)


@given(
    st.lists(texts, min_size=1, max_size=4),
    st.sampled_from(["Who is Ada Moor?", "What did she bring?", "沈知微是谁？", "带什么灯？"]),
    st.sampled_from(["", "Two sentences"]),
    st.integers(0, 50),
)
def test_every_quote_is_cited_to_the_place_that_it_was_cut_from(
    passages: list[str], question: str, form: str, offset: int
) -> None:
    """No quote is marked, in either language: the citation has the passage, the page and the
    characters, and is not looked up by its words."""
    chunks = tuple(
        Chunk(f"c{at}", f"d{at % 2}", at, at + 1, offset, offset + len(text), text)
        for at, text in enumerate(passages)
    )
    found = Context(question=question, chunks=chunks, entities=FACTS, response_type=form)
    quoted = asyncio.run(ExtractiveAnswerer("en").quoted_answer(question, found))
    numbering = CitationNumbering(found.items)
    text = numbering.feed(quoted.text, last=True)
    cited = resolve_citations(stored({}), text, len(text), found, numbering.numbers, quoted.quotes)

    assert len(cited.claims) == len(quoted.quotes) and not cited.invented
    for claim, quote in zip(cited.claims, quoted.quotes, strict=True):
        (citation,) = [cited.citations[place] for place in claim.citations]
        chunk = chunks[int(quote.chunk_id[1:])]
        assert (citation.chunk_id, citation.document_id) == (chunk.id, chunk.document_id)
        assert (citation.page, citation.start, citation.end) == (chunk.page, quote.start, quote.end)
        assert citation.text == chunk.text[quote.start - offset : quote.end - offset] != ""
        assert claim.verdict == "nearest" and not claim.is_marked


@pytest.mark.parametrize(
    ("form", "most"),
    [
        ("One sentence", 1),
        ("a single short sentence", 1),
        ("At most 2 sentences.", 2),
        ("Two or three sentences", 3),
        ("2-3 sentences", 3),
        ("一句话", 1),
        ("用一句话回答", 1),
        ("不超过两句", 2),
        ("２个短句", 2),
        ("两三句话", 3),
        ("Multiple Paragraphs", None),
        ("一段话", None),
        ("A table with one row 🧮", None),
        ("", None),
    ],
)
def test_a_form_may_limit_the_sentences(form: str, most: int | None) -> None:
    """As people write it in both languages; other forms limit nothing."""
    assert sentence_limit(form) == most


def test_an_overview_is_answered_from_the_beginning_to_the_end() -> None:
    """A sentence of each section stands in the order of the text, with the number of its passage; of the
    excerpts only, whole sentences, in the language of the question."""
    texts = [
        f"Captain Ilse reached the quiet harbor {number} with her crew. Not quoted at all. and so on"
        for number in range(8)
    ]
    chunks = tuple(Chunk(str(at), "d", at, 1, 0, len(text), text) for at, text in enumerate(texts))
    excerpts = {chunk.id: ((0, chunk.text.index(".") + 1),) for chunk in chunks}
    overview = Context(chunks=chunks, excerpts=excerpts)

    lines = answer("Summarize the book.", overview).split("\n")
    numbers = [int(line.rpartition("[")[2].rstrip("]")) for line in lines if line.startswith("- ")]
    assert (
        len(numbers) == 6
        and numbers == sorted(set(numbers))
        and numbers[0] == 1
        and numbers[-1] >= 7
    )
    assert "Not quoted" not in "".join(lines)
    assert lines[0].startswith("Sentences from several places")
    assert answer("总结全书。", overview).startswith("按原文顺序")

    short = answer("Summarize it.", replace(overview, response_type="Two sentences"))
    assert short.count("[") == 2 and "\n" not in short


def test_an_overview_names_the_parts_and_the_central_names_without_being_marked_as_uncited() -> (
    None
):
    """Documents, or the chapters of a single one, and the names that the passages mention most."""
    text = "Captain Ilse Moor reached the quiet harbor of Wend with her whole tired crew."
    chunks = tuple(
        Chunk(f"{number}", "log", number, 1, 0, len(text), text, heading=f"The log › Day {number}")
        for number in range(3)
    )
    community = Community("Ilse Moor", entities=("Wend", "Ilse Moor", "Nobody"))
    excerpts = {chunk.id: ((0, len(text)),) for chunk in chunks}
    book = Context(chunks=chunks, excerpts=excerpts, communities=(community,))
    overview = answer("Summarize the book.", book)
    lines = overview.split("\n\n")
    assert lines[0] == "Parts: Day 0; Day 1; Day 2"
    assert lines[1] == "Names mentioned most: Wend; Ilse Moor"
    statements = [overview[start:end] for start, end in uncited_statements(overview)]
    assert statements == []

    letters = tuple(replace(chunk, document_id=f"letter {chunk.id}") for chunk in chunks)
    titles = {f"letter {number}": f"Letter {number}" for number in range(3)}
    collection = replace(book, chunks=letters, documents=titles)
    assert answer("总结这些信。", collection).startswith("各部分：Letter 0；Letter 1；Letter 2")


def test_a_quote_with_a_link_stands_once(tmp_path: Path) -> None:
    """The source below is not quoted again because a link of reStructuredText was left in it."""
    text = (
        "Marley is described in the `ledger of the firm <https://example.org/ledger>`_, page two."
    )
    with LightRAG(tmp_path, llm="none") as rag:
        rag.insert(Document(text, title="Ledger"))
        shown = str(rag.query("Where is Marley described?"))
    assert shown.count("ledger of the firm") == 1 and "_" not in shown


@pytest.mark.parametrize(
    ("question", "text", "first", "language"),
    [
        (
            "What is a bollard?",
            "The third bollard of the quay is red. A bollard holds the ropes of ships. Paint the bollard.",
            "A bollard holds the ropes of ships.",
            "en",
        ),
        (
            "What are bollards?",
            "Red bollards stand on the quay. Bollards (or posts) are thick posts for ropes.",
            "Bollards (or posts) are thick posts for ropes.",
            "en",
        ),
        ("什么是缆桩？", "红色的缆桩在码头。缆桩是系船用的柱子。", "缆桩是系船用的柱子。", "zh"),
        ("缆桩是什么？", "码头上有缆桩。系船用的柱子称为缆桩。", "系船用的柱子称为缆桩。", "zh"),
    ],
)
def test_what_says_what_something_is_comes_first(
    question: str, text: str, first: str, language: Language
) -> None:
    """To a question for a definition, before sentences that only hold the word."""
    lines = quoted_lines(answer(question, context(text, facts=False), language))

    assert lines[0] == f"{first} [1]"


def test_a_question_in_a_text_is_not_the_answer_to_it() -> None:
    """What follows it is, with the question before: in a paragraph, before a list, and below a heading."""
    paragraph = "The crane is old. Why does the crane stand still? It lacks oil."
    before_list = (
        "Why does the crane stand still? For two reasons:\n\n* It lacks oil.\n* Nobody pays."
    )
    heading = "## Why does the crane stand still?\n\nIt lacks oil. The crane of Leith is new."
    for text in (paragraph, before_list, heading):
        lines = quoted_lines(answer("Why does the crane stand still?", context(text, facts=False)))
        assert lines[0].startswith("Why does the crane stand still?")
        assert lines[0].endswith("It lacks oil. [1]")


def test_words_of_a_mail_stand_behind_their_sender() -> None:
    """The head is no sentence; what a mail repeats of another, and its signature, counts less."""
    mail = (
        "From: Dora Finch <dora at quay.example>\nSubject: Oil\n\nCid wrote:\n> Is the oil of the lamp out\n"
        "> again? The oil of the lamp is dear.\n\nThe oil of the lamp is cheap.\n\n--\nDora Finch, oil and lamps\n"
    )
    lines = quoted_lines(
        answer("What does Dora Finch say of the oil of the lamp?", context(mail, facts=False))
    )

    assert lines[0] == "Dora Finch: The oil of the lamp is cheap. [1]"
    assert not any("Subject:" in line or ">" in line for line in lines)
    chinese = "发件人：李明 <li@quay.example>\n主题：灯油\n\n灯油用完了。\n"
    assert (
        quoted_lines(answer("灯油怎么了？", context(chinese, facts=False), "zh"))[0]
        == "李明：灯油用完了。 [1]"
    )


@pytest.mark.parametrize(
    ("text", "question", "language", "first"),
    [
        (
            "## 校园网多少钱一个月?有额外收费吗？\n\n每月二十八元。",
            "校园网多少钱一个月？",
            "zh",
            "校园网多少钱一个月?有额外收费吗？每月二十八元。",
        ),
        (
            "高分子简史。\n\n1.聚合物的研发与应用\n\n它们用于造船。\n\n2.历史\n\n尼龙出现于1935年。",
            "聚合物的研发与应用",
            "zh",
            "它们用于造船。",
        ),
        ("会议结论：  \n1、同意毕业。  \n", "会议的结论是什么？", "zh", "会议结论：1、同意毕业。"),
        (
            "**Topic 2: the pump house**\n\nReporter: Ada Orne\n",
            "Who reported on the pump house?",
            "en",
            "Topic 2: the pump house: Reporter: Ada Orne",
        ),
        (
            "The pump is old. Who will repair the pump? Ivo Brack does.",
            "Who will repair the pump?",
            "en",
            "Who will repair the pump? Ivo Brack does.",
        ),
        (
            "- Is the pump old?\n  - Ada: the pump is from 1911.\n- The roof leaks.\n- The pump is loud.",
            "Does the roof leak?",
            "en",
            "The roof leaks.",
        ),
    ],
)
def test_headings_and_questions_are_shown_with_what_stands_below(
    text: str, question: str, language: Language, first: str
) -> None:
    """What only repeats the question comes not first: a heading, in bold or numbered, or a question."""
    assert quoted_lines(answer(question, context(text), language))[0] == f"{first} [1]"


def test_a_heading_at_the_end_of_a_passage_is_not_shown() -> None:
    """What stands below is in the next passage."""
    given = context("The pump is old.\n\n## Repair of the pump", "The pump was made in Tolva.")

    lines = quoted_lines(answer("Where was the pump made? The repair", given))

    assert "Repair" not in "".join(lines)


def test_quotes_of_one_passage_stand_behind_their_headings(tmp_path: Path) -> None:
    """Which of two motions was lost, only the headings may say, down from where they differ. They are of the source,
    so that they are no statements without a citation.
    """
    text = (
        "# June\n\n## Motion 4. A lamp\n\n### Vote\n\nThe board does not agree to the lamp.\n\n"
        "## Motion 3. The pier\n\n### Vote\n\nThe board agrees to the lamp of the pier.\n"
    )
    with LightRAG(tmp_path) as rag:
        rag.insert(Document(text, id="june"))
        said = rag.query("Does the board agree to a lamp?")
        about = rag.query("What is this about?", mode="naive")
    assert set(quoted_lines(said.text)) == {
        "Motion 4. A lamp › Vote: The board does not agree to the lamp. [1]",
        "Motion 3. The pier › Vote: The board agrees to the lamp of the pier. [1]",
    }
    assert not said.uncited
    assert "none of these sentences" not in about.text
    under_one = context(text.split("## Motion 3")[0], facts=False)
    lines = quoted_lines(answer("Does the board agree?", under_one))
    assert lines == ["The board does not agree to the lamp. [1]"]


def test_a_number_in_brackets_of_a_title_or_a_heading_cites_nothing(tmp_path: Path) -> None:
    """Neither in a list of parts nor before a quote."""
    lamps = "# Lamps [3]\n\nAda Orne lit the lamps of the yard each evening with Ivo.\n\n## Oil [2]\n\n- whale oil"
    with LightRAG(tmp_path) as rag:
        rag.insert([Document(lamps, title="Lamps [3]"), Document("Ada Orne slept.", title="B [1]")])
        overview = rag.query("Summarize everything", mode="overview")
        answer_with_heading = rag.query("Which oil?")
    assert "Lamps [\u20603]" in overview.text and "B [\u20601]" in overview.text
    assert {citation.number for citation in overview.citations} == {1}
    assert "- Oil: whale oil [1]" in answer_with_heading.text


@pytest.mark.parametrize(
    ("question", "text", "missing"),
    [
        (
            "How much did the oil press cost?",
            "The oil lamp was bought.",
            "none of these sentences has: press, cost.",
        ),
        ("灯塔有救生艇吗？", "村里有灯塔。", ""),
        ("怎样申请护照？", "小英申请了灯塔。", "均未出现问题里的这些词：护照。"),
        ("谁修建了 Seaview？", "小英看守 Seaview。", "均未出现问题里的这些词：修建。"),
        ("Who bought the oil lamp?", "The oil lamp was bought.", ""),
        (
            "When was Ada Orne baptized?",
            "Ada Orne sold lamps.",
            "none of these sentences has: baptized.",
        ),
        (
            "What did Ada Orne say about the drought?",
            "Ada Orne sold lamps.",
            "none of these sentences has: drought.",
        ),
        ("What did Ada Orne sell?", "Ada Orne sold lamps.", ""),
        ("Who kept Lamp 41?", "Ada kept Lamp 14.", "none of these sentences has: 41."),
        ("灯塔 Lamp 41 归谁管？", "小英管灯塔 Lamp 14。", "均未出现问题里的这些词：41。"),
        ("Who kept Lamp 41?", "Ada kept Lamp 41.", ""),
        ("What is new in lamp 3.9?", "The lamp 2.5 is new.", "none of these sentences has: 3.9."),
        ("灯塔 9.9 版有什么新功能？", "灯塔 2.5 版有新功能。", "均未出现问题里的这些词：9.9。"),
        ("What happened to Ada Orne?", "Ada Orne lost her lamps.", ""),
    ],
)
def test_words_of_a_question_that_no_quote_has_are_named(
    question: str, text: str, missing: str
) -> None:
    """If they are more than half of it beside its names: a quote that shares a name or one common word may be about
    something else.
    """
    language: Language = "en" if question.isascii() else "zh"
    said = answer(question, context(text, facts=False), language)
    assert missing in said
    assert (missing != "") == ("none of these sentences" in said or "均未出现" in said)


def test_documents_without_a_date_are_not_said_to_be_earlier(tmp_path: Path) -> None:
    """An answer as of a moment counts the sources that may be later."""
    with LightRAG(tmp_path) as rag:
        rag.insert(
            [
                Document("Ann signed the lease.", id="undated"),
                Document("Ann read the lease.", id="dated", date="2017-05-01"),
                Document("Ann burned the lease.", id="later", date="2021-05-01"),
            ]
        )
        said = rag.query("What did Ann do with the lease?", as_of="2018")
        overview = rag.query("What are these texts about?", as_of="2018")
    assert "may be later: 1 of 2" in said.text and "burned" not in said.text
    assert "may be later: 1 of 2" in overview.text
    assert not said.uncited
