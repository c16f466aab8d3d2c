"""Promises about which sentences count as an answer, by kinds of questions."""

import asyncio
from dataclasses import replace

import pytest

from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.core.types import Chunk
from lightrag_jsonl.providers.offline import ExtractiveAnswerer

FILLER_EN = " ".join(f"Ida swept room {number} on the usual day." for number in range(200))
FILLER_ZH = "".join(f"第{number}间屋子照旧打扫过。" for number in range(200))


def context(*texts: str) -> Context:
    chunks = tuple(Chunk(str(at), "d", at, 1, 0, len(text), text) for at, text in enumerate(texts))
    return Context(chunks=chunks)


def first_line(question: str, given: Context) -> str:
    language: Language = "zh" if question[0] > "z" else "en"
    return asyncio.run(ExtractiveAnswerer(language).answer(question, given)).split("\n")[0]


def is_abstention(line: str) -> bool:
    """Whether no sentence is quoted as an answer."""
    return "No sentence clearly answers" in line or "没有" in line


@pytest.mark.parametrize(
    ("question", "text", "quoted"),
    [
        (
            "Which Rust edition does Pellworm need?",
            "List the needed editions in a file. Pellworm needs Rust edition 2021.",
            "Pellworm needs Rust edition 2021.",
        ),
        ("Who had mended the clock?", "Rita Noll mended the clock. The clock is old.", "Rita Noll"),
        ("谁负责浇花？", "钥匙由田静保管，浇花由吴昊负责。", "钥匙由田静保管，浇花由吴昊负责。"),
        ("班车由谁安排？", "班车由后勤组安排。", "班车由后勤组安排。"),
        ("谁写了《溪边集》？", "《石塘记》由何其远撰写。《溪边集》是许若写的。", "《溪边集》"),
        ("九月有哪些展览？", "八月有摄影展览。九月有两个展览👻。", "九月有两个展览"),
        ("郑遥去了哪里？", "郑遥在杭州去世。郑遥去了敦煌。", "郑遥去了敦煌。"),
        (
            "Where did Ola Berg go?",
            "Ola Berg died in Narvik. Ola Berg went to Peru.",
            "Ola Berg went",
        ),
        ("How old is Ola Berg?", "The 34-year-old Ola Berg sails.", "The 34-year-old"),
        ("晚饭由谁来做？", "晚饭是面条，由阿昌来做。", "晚饭是面条"),
        ("账本在谁手里？", "账本在柏舟手里。", "账本在柏舟手里"),
        ("季明的祖父是谁？", "季明祖郑文，父郑礼。", "季明祖郑文"),
    ],
)
def test_a_sentence_that_says_it_is_quoted_first(question: str, text: str, quoted: str) -> None:
    """The verb of the question, its passive, and its titles decide, not single words."""
    assert first_line(question, context(text)).startswith(quoted)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("谁写了《溪边集》？", "他写了《溪边集》。《石塘记》由何其远撰写。"),
        ("沈微字什么？", "时有陆安，字子平；沈微敬礼甚厚。"),
        ("谁打败了吴通？", "陈锐被吴通打败了。"),
        ("Where did Ola Berg go?", "Ola Berg died in Narvik."),
        ("田静今年几岁？", "来福是一条五岁的牧羊犬，主人是田静。"),
        ("What was the gate made of?", "The gate opened to a street of red brick."),
    ],
)
def test_a_sentence_about_something_else_is_no_answer(question: str, text: str) -> None:
    """Another title, another person's name, the roles reversed, another place."""
    assert is_abstention(first_line(question, context(text)))


@pytest.mark.parametrize(
    ("question", "text", "filler"),
    [
        ("How many swans swam in the pond?", "Seven white swans swam past.", FILLER_EN),
        ("What color was Ida's scarf?", "She wore a purple scarf in the rain.", FILLER_EN),
        ("What were the plates made of?", "The plates were made of tin and wood.", FILLER_EN),
        ("一共来了几个木匠？", "门口来了九个木匠。", FILLER_ZH),
        ("白石岭又叫什么？", "白石岭又名望乡岭。", FILLER_ZH),
        ("谁吃了阿宝的烧饼？", "那狐狸吃了阿宝的烧饼，跑进林中。", FILLER_ZH),
    ],
)
def test_a_clear_answer_is_found_among_many_sentences(
    question: str, text: str, filler: str
) -> None:
    """A number, a color or another name right at its word, or the doer before the verb."""
    assert first_line(question, context(filler, text)).startswith(text)


@pytest.mark.parametrize(
    ("question", "text", "filler"),
    [
        ("How many swans swam in the pond?", "The swans swam over the pond at six.", FILLER_EN),
        ("Where did Ida live?", "'As I live and breathe!' cried Ida in the end.", FILLER_EN),
        ("三姐的母亲住在哪里？", "三姐听得母言，留住客人在屋里。", FILLER_ZH),
    ],
)
def test_a_chance_meeting_of_words_among_many_sentences_is_no_answer(
    question: str, text: str, filler: str
) -> None:
    """The words are there, but the number counts something else, or no place follows the verb."""
    assert is_abstention(first_line(question, context(filler, text)))


def test_an_answer_about_two_companies_quotes_no_third_one() -> None:
    """Neither in a sentence of its own nor in a passage of its own."""
    reports = (
        "Aldgate Yarn Company sold 57 tons of wool in 2022.",
        "Corvin Textile Company sold 61 tons of wool in 2022.",
        "Dunmore Mill Company sold 42 tons of wool in 2022.",
    )
    question = "Which sold more wool in 2022, Aldgate Yarn Company or Dunmore Mill Company?"
    line = first_line(question, context(*reports))
    assert "Aldgate" in line and "Dunmore" in line and "Corvin" not in line


def test_who_somebody_is_begins_with_the_entry_under_the_name() -> None:
    """And not with the last thing that happened, where no sentence says "X was a …"."""
    text = "# Ida Moor\n\nIda Moor was born in Vale. She kept bees. Ida Moor died in 1902."
    given = replace(context(text), documents={"d": "Ida Moor"})
    assert first_line("Who was Ida Moor?", given).startswith("Ida Moor was born in Vale.")


FAQ_EN = """**May I bring a bicycle?** Yes. It travels in the last car.
Q: Where are tickets sold? At the kiosk.

Is there a toilet?
Behind the shed."""
FAQ_ZH = "**可以带自行车吗？** 可以，放在最后一节车厢。\n**储物柜在哪里？** 在候车室东侧。\n问：几点发车？\n答：上午九点。"


@pytest.mark.parametrize(
    ("question", "text", "quoted"),
    [
        ("May I bring a bicycle?", FAQ_EN, "Yes. [1] It travels in the last car."),
        ("Where are tickets sold?", FAQ_EN, "At the kiosk."),
        ("Is there a toilet?", FAQ_EN, "Behind the shed."),
        ("可以带自行车吗？", FAQ_ZH, "可以，放在最后一节车厢。"),
        ("储物柜在哪里？", FAQ_ZH, "在候车室东侧。"),
        ("几点发车？", FAQ_ZH, "答：上午九点。"),
        ("What did Eva Dahl sell?", "Eva Dahl moved. She sold two boats.", "She sold two boats."),
        ("What did Eva Dahl buy?", "Eva Dahl bought a mill.", "Eva Dahl bought a mill."),
        ("What did Eva Dahl claim?", "Eva Dahl claimed that it sank.", "Eva Dahl claimed that"),
    ],
)
def test_forms_of_verbs_and_questions_in_the_text_lead_to_the_answer(
    question: str, text: str, quoted: str
) -> None:
    """A question of an FAQ counts for the sentence under it; "bought" answers what somebody did buy."""
    assert first_line(question, context(text)).startswith(quoted)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("停车场在哪里？", "停车要排队。大桥通车以后，渡船停开，船工在茶馆说书。"),
        ("What did Eva Dahl sell?", "Eva Dahl had a boat. Eva Dahl sold it in May."),
    ],
)
def test_scattered_characters_and_names_alone_are_no_answer(question: str, text: str) -> None:
    """The characters of a word, or the names without the verb, may stand in any sentence."""
    assert is_abstention(first_line(question, context(text)))
