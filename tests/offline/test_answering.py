"""Promises of the extractive answerer."""

import asyncio
import re
from dataclasses import replace

import pytest

from lightrag_jsonl.core.answers import Community, Context, Keywords
from lightrag_jsonl.core.citation_markers import CITATION_MARKER
from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.core.types import Chunk, Entity, Relation
from lightrag_jsonl.providers.offline import ExtractiveAnswerer
from lightrag_jsonl.providers.offline.answering import sentence_limit
from lightrag_jsonl.tracing.statements import uncited_statements

MARLEY = "Marley was dead. Old Marley was as dead as a door-nail [3]. The weather was foggy."
SCROOGE = "Scrooge was the partner of Marley. He was a squeezing, covetous old sinner."
FACTS = (Entity("Marley", "person", "Marley was the partner of Scrooge."),)
LINKS = (Relation("Scrooge", "Marley", ("partner",), "They shared a counting-house."),)


def context(*texts: str, facts: bool = True) -> Context:
    chunks = tuple(Chunk(str(at), "d", at, 1, 0, len(text), text) for at, text in enumerate(texts))
    return Context(chunks=chunks, entities=FACTS if facts else (), relations=LINKS if facts else ())


def answer(question: str, given: Context, language: Language = "en") -> str:
    return asyncio.run(ExtractiveAnswerer(language).answer(question, given))


def test_sentences_carry_the_number_of_their_chunk() -> None:
    """Chunks are numbered before the entities and the relations; the best sentence comes first."""
    text = answer("Who was the partner of Marley?", context(MARLEY, SCROOGE))

    assert text.startswith("Scrooge was the partner of Marley. [2]")
    assert set(re.findall(r"\[(\d+)\]", text)) <= {"1", "2"}
    assert "foggy" not in text


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("Marley died [1-2]. He was old [1;2].", "Marley died."),
        ("Marley " + "x" * 388 + " [7](https://a.org) y", "Marley " + "x" * 388),
        ("Marley【1】死于［１２］伦敦【3，4】。", "Marley死于伦敦。"),
        ("Marley<sup>[<a>3</a>]</sup> was dead.", "Marley was dead."),
        ("In `Marley[1]` or Marley[0] is 👻.", "In `Marley[\u20601]` or Marley[\u20600] is 👻."),
        ("Marley依国发【2024】5号文。", "Marley依国发【\u20602024】5号文。"),
        ("Marley: [1](https://example.org/a).", "Marley: [1](https://example.org/a)."),
    ],
)
def test_no_bracket_of_a_source_reads_as_a_citation(text: str, quoted: str) -> None:
    """Footnote marks go; code and years keep their look, but no number is looked up for them."""
    line = answer("Marley", context(text, facts=False)).split("\n")[0]

    assert line.startswith(quoted) and "[1]" in line
    assert {mark["numbers"] for mark in CITATION_MARKER.finditer(line)} == {"1"}


def test_a_traditional_question_asks_for_a_definition() -> None:
    """Of a text in either script; and characters far apart are no name."""
    text = "諸葛亮六出祁山。諸葛亮字孔明，琅琊陽都人。"
    assert answer("諸葛亮是誰？", context(text), "zh").startswith("諸葛亮字孔明")
    assert "[" not in answer("雷军是谁？", context("吴懿保雷铜二人为副将，点二万军马。"), "zh")


FORMS = "die died|died dies|live lived|living lives|marry married|marries marry|change changing"


@pytest.mark.parametrize("forms", FORMS.split("|"))
def test_the_forms_of_an_english_verb_meet(forms: str) -> None:
    """A question in one form is answered by a sentence in another."""
    asked, written = forms.split()
    given = context(f"He slept. Then she {written}. It was cold.", facts=False)

    assert answer(f"Did they {asked}?", given).startswith(f"Then she {written}. [1]")


@pytest.mark.parametrize(
    ("question", "closing"),
    [("Is Marley dead?", "no model wrote them."), ("Marley死了吗？他怎么样", "并非由模型撰写。")],
)
def test_the_last_line_says_that_no_model_wrote_it(question: str, closing: str) -> None:
    """The note is in the language of the question, not of the index or the sources."""
    assert answer(question, context(MARLEY)).split("\n")[-1].endswith(closing)


@pytest.mark.parametrize(
    ("question", "keywords", "expected"),
    [
        ("什么是镭？", Keywords((), ("镭",)), "他们发现了镭。 [2]"),
        ("居里的镭呢？", Keywords(("镭",), ("居里",)), "他们发现了镭。 [2]"),
        ("哪里产茶？", Keywords((), ("产茶",)), "茶产于云南。 [1]"),
        ("镭", Keywords(), "他们发现了镭。 [2]"),
    ],
)
def test_a_character_is_found_wherever_it_stands(
    question: str, keywords: Keywords, expected: str
) -> None:
    """A keyword of one character has no bigram, and two may stand apart or the other way round."""
    given = replace(context("茶产于云南。", "他们发现了镭。", facts=False), keywords=keywords)

    assert answer(question, given, "zh").startswith(expected)
    assert "[" not in answer(question, context("猫是一种动物。产量很大。"), "zh")


def test_what_a_follow_up_refers_to_is_in_the_keywords() -> None:
    """A name that only an earlier turn spelled out is a term of the question too."""
    given = context(MARLEY, SCROOGE, "刘备在涿郡。关羽在解县。", facts=False)
    known = replace(given, keywords=Keywords((), ("刘备",)))

    assert "[" not in answer("他在哪里？", given)
    assert answer("他在哪里？", known).startswith("刘备在涿郡。 [3]")


def test_without_chunks_facts_are_cited() -> None:
    """Relations and entities speak where no chunk does, under their own numbers."""
    text = answer("Who shared a counting-house with Scrooge?", context())

    assert "They shared a counting-house. [2]" in text
    assert "Marley was the partner of Scrooge. [1]" in text


@pytest.mark.parametrize(
    ("question", "texts", "notice"),
    [
        (
            "Summarize the book.",
            ("The mill stood empty. Ada bought a book of maps.", "Rain fell on the weir."),
            "No single sentence answers this question about the whole text.",
        ),
        (
            "What are the main themes?",
            ("The main street was under water.", "Ada sold the mill."),
            "No single sentence answers this question about the whole text.",
        ),
        (
            "总结全书。",
            ("磨坊空了很久。阿岚买下了它。", "那年春天雨水很多。"),
            "这个问题问的是全文，没有哪一句能直接回答。",
        ),
    ],
)
def test_a_question_about_the_whole_text_shows_the_passages(
    question: str, texts: tuple[str, ...], notice: str
) -> None:
    """Passages were found, so the answer shows their beginnings, and says that none is an answer."""
    lines = answer(question, context(*texts, facts=False)).split("\n")

    assert lines[0].startswith(notice)
    assert lines[2:4] == [f"- {text} [{number}]" for number, text in enumerate(texts, 1)]


def test_a_sentence_with_most_words_of_a_question_about_the_whole_text_is_quoted() -> None:
    """The author of a text may be named in it; and without passages nothing is shown."""
    given = context("The mill stood empty.", "The author is Ada Wren.", facts=False)

    assert answer("Who is the author?", given).startswith("The author is Ada Wren. [2]")
    assert "[" not in answer("Summarize the book.", Context())


@pytest.mark.parametrize("question", ["quantum chromodynamics", "", "👻"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_relevant_gives_an_answer_that_says_so(question: str, language: Language) -> None:
    """No sentence is quoted for the sake of quoting."""
    for given in (Context(), context(MARLEY, SCROOGE)):
        text = answer(question, given, language)
        assert "[" not in text and text.strip() and "\n" not in text


@pytest.mark.parametrize(
    ("question", "named", "language"),
    [
        ("What is the capital of Peru?", ("Peru",), "en"),
        ("Who was the partner in Heinkel HD 23?", ("Heinkel HD 23",), "en"),
        ("谁写了红楼梦？", ("红楼梦",), "zh"),
    ],
)
def test_a_question_about_what_no_source_names_is_not_answered_by_its_other_words(
    question: str, named: tuple[str, ...], language: Language
) -> None:
    """A part of a name in passing is not the name; descriptions are tried before that answer is given."""
    text = "He had a capital face. Marley was the partner of 23 others. 滕皇后亲自为他写了哀悼文。"
    given = replace(context(text, SCROOGE), keywords=Keywords((), named))
    description = f"{named[0]}: capital Lima, partner Ann Lee, 赵凯写了。"
    known = replace(given, entities=(Entity(named[0], "", description),))

    assert "[" not in answer(question, given, language)
    assert answer(question, known, language).startswith(f"{description} [3]")


@pytest.mark.parametrize(
    ("question", "answered"),
    [
        ("What did Marie Lund paint?", "She painted"),
        ("What does Marie Lund paint?", "She painted"),
        ("Which town did Marie Lund leave?", "Marie Lund left"),
    ],
)
def test_the_subject_of_a_question_is_not_its_verb(question: str, answered: str) -> None:
    """The name after "did" says who acts; the answer needs the verb after the name."""
    text = "Marie Lund was born in Bergen. She painted fishing boats. Marie Lund left Oslo."

    assert answer(question, context(text), "en").startswith(answered)


def test_a_name_with_another_number_is_another_name() -> None:
    """Who runs one of several numbered places is no answer to who runs another one."""
    text = "Harbour14 is a busy place. Harbour15 is closed. Ada Lund runs Harbour13."

    assert "Ada" not in answer("Who runs Harbour14?", context(text), "en").split("\n")[0]
    assert answer("Who runs Harbour13?", context(text), "en").startswith("Ada Lund runs")


def test_chinese_sentences_are_quoted_whole_and_found_by_what_they_say() -> None:
    """是谁 is no word to look for; half of all words asked are as sure as a name."""
    given = context("曹操大怒。刘备是汉室宗亲，字玄德。", "天下大势，分久必合。", facts=False)
    assert answer("刘备的字是什么？", given, "zh").startswith("刘备是汉室宗亲，字玄德。 [1]")
    given = context("貂蝉拜王允为父。未知此人是谁，且听下文分解。", facts=False)
    assert "是谁" not in answer("貂蝉的父亲是谁？", given, "zh")
    given = replace(context("戚务生当年以迅疾的速度著称。"), keywords=Keywords((), ("特点",)))
    assert answer("戚务生当年以什么著称？", given, "zh").startswith("戚务生当年以迅疾的")


@pytest.mark.parametrize("heading", ["# Marie Curie", "### Marie Curie", "Marie Curie"])
def test_a_heading_is_not_quoted_but_counts_for_the_sentence_under_it(heading: str) -> None:
    """It repeats what is asked, and says nothing of it; alone it is no answer, but shown."""
    under = "She was born in Warsaw. She found radium. Marie Curie was a chemist in Paris."
    given = replace(context(f"{heading}\n\n{under}", facts=False), documents={"d": "Marie Curie"})
    alone = replace(context(heading, facts=False), documents={"d": "Marie Curie"})

    clause = context("2. Price\n\n2.1 The price is 900 euros.", facts=False)
    assert answer("What is the price?", clause).startswith("2.1 The price is 900 euros. [1]\n")
    line = answer("Who is Marie Curie?", given)
    assert line.startswith("Marie Curie was a chemist in Paris. [1] She was born in Warsaw. [1]\n")
    assert answer("Who is Marie Curie?", alone).split("\n")[2] == f"- {heading} [1]"


def test_at_most_five_sentences_and_none_twice() -> None:
    """Overlapping chunks do not repeat themselves in the answer."""
    text = "".join(f"Marley owned house number {number}. " for number in range(20))
    quoted = answer("What did Marley own?", context(text, text, facts=False)).split("\n")[0]

    sentences = re.findall(r"Marley owned house number \d+", quoted)
    assert 2 <= len(sentences) == len(set(sentences)) <= 5


@pytest.mark.parametrize(
    ("question", "text", "first"),
    [
        (
            "What is h11?",
            "h11\n===\n\nThis is a little library. h11 has no IO.",
            "This is a little",
        ),
        (
            "Who is Fred?",
            "'Fred!' cried he. Fred, Scrooge's nephew, came.",
            "Fred, Scrooge's nephew",
        ),
        ("刘备是谁？", "刘备大怒。此人姓刘名备，字玄德。刘备是谁？", "此人姓刘名备"),
        ("什么是👻机？", "👻机坏了。他买了👻机。👻机是一种２级机器。", "👻机是一种２级机器"),
    ],
)
def test_what_something_is_comes_first(question: str, text: str, first: str) -> None:
    """A defining sentence is quoted before others that hold the name as well."""
    assert answer(question, context(text, facts=False)).startswith(first)


def test_code_is_not_quoted() -> None:
    """Blocks of code, badges and tags are no sentences."""
    text = "[![Click](a.svg)](b)\n\n```python\nimport Click\n```\n\nClick makes <b>Click</b> tools."
    assert answer("Does Click import?", context(text, facts=False)).startswith("Click makes Click")


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


@pytest.mark.parametrize(
    ("language", "text", "question", "form", "line"),
    [
        (
            "en",
            "Ada Moor kept bees in Lund. She was born in Vale. She wrote two books on honey.",
            "Where was Ada Moor born?",
            "One sentence",
            "She was born in Vale. [1]",
        ),
        (
            "zh",
            "沈知微在湖州养蚕。她出生在绍兴🐛。她写过两本关于丝绸的书。",
            "沈知微出生在哪里？",
            "一句话",
            "她出生在绍兴🐛。 [1]",
        ),
    ],
)
def test_one_sentence_is_one_sentence(
    language: Language, text: str, question: str, form: str, line: str
) -> None:
    """The best one and nothing else, also where a pronoun stands for what the text is about."""
    title = text[:8] if language == "en" else text[:3]
    found = replace(context(text, facts=False), documents={"d": title}, response_type=form)
    assert answer(question, found, language) == line


def test_a_name_leads_from_one_sentence_to_the_next() -> None:
    """What a first sentence names is looked for in a second one, before what only shares words with
    the question, in both languages; and what adds nothing is left out.
    """
    english = context(
        "At the Arden Works they invented a new glaze.",
        "Tom Reed was born in Selby. Tom Reed died in 1902.",
        "Ann Holt invented a glaze there, and called it Selby white.",
        facts=False,
    )
    names = replace(english, entities=(Entity("Selby", "place", ""),))
    text = answer("Which glaze is called after the town where Tom Reed was born?", names)
    assert text.startswith("Tom Reed was born in Selby. [2] Ann Holt invented a glaze there")
    assert "Arden" not in text and "1902" not in text
    chinese = context(
        "青石镇的匠人发明了一种釉料。",
        "陆文衡出生在白沙镇。",
        "何氏在白沙镇发明了釉料，名叫雪釉。",
        facts=False,
    )
    names = replace(chinese, entities=(Entity("白沙镇", "place", ""),))
    text = answer("陆文衡出生的地方发明了什么釉料？", names, "zh")
    assert "雪釉" in text and "青石镇" not in text


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
    assert lines[0].startswith("From the beginning")
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


@pytest.mark.parametrize(
    ("question", "text", "answered"),
    [
        ("Who sold the barn?", "The barn was sold in spring.", False),
        ("Who sold the barn?", "Olaf Lind sold the barn in spring.", True),
        ("When was the barn sold?", "Olaf Lind sold the barn.", False),
        ("When was the barn sold?", "Olaf Lind sold the barn in May.", True),
        ("How long did the repair take?", "The repair took 500 nails.", False),
        ("How long did the repair take?", "The repair took three weeks.", True),
        ("Where is the ladder?", "The ladder is long and red.", False),
        ("Where is the ladder?", "The ladder is behind the shed.", True),
        ("Did Olaf sell the barn?", "'Did Olaf sell the barn?' asked she.", False),
        ("Who repairs the pump?", "The pump broke; Tomas Reyl asked two firms.", False),
        ("Who owns the barn?", "Ask Olaf Lind, the owner of the barn.", True),
        (
            "What is the telephone number of Mr. Lind?",
            "Mr. Lind has the telephone of the hall, number 77.",
            False,
        ),
        ("What did Olaf send to the barn?", "'I will send it to the barn', said Olaf.", False),
        ("How large was the fire?", "The fire looked like 20 small coals.", True),
        ("旧沙发给了谁？", "旧沙发送给了表姐阿珍。", True),
        ("赵凯借了什么书？", "赵凯上周借了《青溪夜话》👻。", True),
        ("赵凯不能吃什么？", "赵凯每天喂两次猫。", False),
        ("罗一鸣有几本书？", "罗一鸣有很多书。", False),
        ("谁打碎了花瓶？", "花瓶被赵凯打碎了。", True),
        ("谁打碎了花瓶？", "赵凯来了，花瓶被人打碎了。", False),
        ("谁卖了谷仓？", "谷仓在春天卖了。", False),
        ("谁卖了谷仓？", "赵凯卖了谷仓👻。", True),
        ("修理用了多久？", "修理用了５００个钉子。", False),
        ("修理用了多久？", "修理用了三周。", True),
        ("谷仓什么时候卖的？", "谷仓卖给了邻居。", False),
        ("谷仓什么时候卖的？", "谷仓五月卖的。", True),
    ],
)
def test_an_answer_has_what_the_question_asks_for(question: str, text: str, answered: bool) -> None:
    """A sentence with the words alone is shown as the nearest one, and not as an answer."""
    language: Language = "zh" if question[0] > "z" else "en"
    lines = answer(question, context(text, facts=False), language).split("\n")

    if answered:
        assert lines[0] == f"{text} [1]"
    else:
        assert lines[0].startswith(("No sentence clearly answers", "没有哪一句能明确回答"))
        assert lines[2] == f"- {text} [1]"


def test_one_of_many_sentences_that_fit_as_well_is_no_answer() -> None:
    """Nor is a sentence with less than half of the question."""
    alike = (
        "Ann Lee left the mill. Max Roe left the barn. Tom Fox left the farm. Ida Ray left the inn."
    )
    given = context(alike, facts=False)

    assert answer("Who left the harbor?", given).startswith("No sentence clearly answers")
    assert answer("Who left the barn?", given).startswith("Max Roe left the barn. [1]\n")


def test_nothing_off_topic_follows_a_good_sentence() -> None:
    """Sentences that share a word with the question are left out after the answer."""
    text = "Belle, a comely matron, kept bees. Ring the bell, bell, bell! Bees sleep in the winter."
    assert answer("Who is Belle?", context(text, facts=False)).startswith(
        "Belle, a comely matron, kept bees. [1]\n"
    )
