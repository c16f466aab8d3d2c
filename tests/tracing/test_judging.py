"""What words tell of a claim: facts that do not stand near its sentence, and nothing more."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lightrag_jsonl.tracing.checking import LabelledClaim, yardstick
from lightrag_jsonl.tracing.cited_passages import JudgedPassage
from lightrag_jsonl.tracing.judging import judge_claim

MILL = JudgedPassage(
    "# The mill\n\nThe mill at Brenn was built in 1764 by Jonas Falk. Since 12 May 1802 it has had two wheels "
    "of 3.5 m, which grind about 2,000 kg a day. It opens at 7:30 a.m. and may close early. Ms Anna "
    "Wieland does not sell the flour. She said: “Nobody has ever asked me for the recipe.” Three quarters "
    "of the grain come from the Upper Brenn Farmers Union.",
    "Mills of the valley\n2019-04-02",
)
MINE = JudgedPassage(
    "石桥煤矿一九五八年建成，年产煤约三十五万吨。二〇〇三年四月二日，矿长陆振邦宣布停产。停产后没有工人受伤，"
    "六成工人转到青岭市工作。竖井深420米，可能于明年封闭。陆振邦说：“煤矿养活了三代人。”",
    "石桥志",
)
PORTS = JudgedPassage(
    "新版把Redis 7换成Valkey，仍在Ubuntu 24.04上运行。A组的程序员用Rust重写了调度器。"
)
LEASE = JudgedPassage(
    "合同于 2019 年 4 月 5 日 签订，押金为 1500 元。房东没有发现任何损坏，约 69.6% 的租金已付清。",
    "",
)
REEVE = JudgedPassage(
    "Neither the reeve nor the abbot commented on the toll. The toll was raised in June. The ferry must not "
    "run in fog, and the reeve shall have no duty to pay for delays. A levy on salt was proposed."
)
GUILD = JudgedPassage("开会之前，行会未以书面或者其他形式通知船主。船主自己买的缆绳在仓库里。")
TERMS = JudgedPassage(
    "Either party may end the lease with twenty-one (21) days’ notice; the crate weighs 1500 kg."
)
FAIR = JudgedPassage(
    "The fair of Lund opened on the twenty-second of March, 1874. It closed on July the ninth. "
    "The town kept its hundred and fifteenth anniversary."
)
DYKE = JudgedPassage(
    "１９８７．０６．１５，堤长１，２５０．５米，投资￥３，０００，０００。９：３０开闸，蓄水率为６５％。水位不超过３０ｃｍ。"
)
TRUE = [
    ("全年修缮费3200万元。", JudgedPassage("公司全年支出了3,200万元修缮费。")),
    ("The fair of Lund opened on 22 March 1874.", FAIR),
    ("It closed on July 9th.", FAIR),
    ("The town kept the 115th anniversary.", FAIR),
    ("The mill is from 1764.", MILL),
    ("Jonas Falk built the mill at Brenn.", MILL),
    ("It has had two wheels since 1802-05-12.", MILL),
    ("Each wheel measures 350 cm.", MILL),
    ("The wheels grind two tonnes a day.", MILL),
    ("The mill opens at 07:30.", MILL),
    ("75% of the grain come from the UBFU.", MILL),
    ("Wieland does not sell flour.", MILL),
    ("J. Falk built the mill.", MILL),
    ("1. The mill at Brenn was built by Falk.", MILL),
    ("石桥煤矿建于1958年。", MINE),
    ("煤矿年产煤35万吨。", MINE),
    ("2003年4月2日宣布停产。", MINE),
    ("60%的工人转到了青岭市。", MINE),
    ("竖井深0.42公里。", MINE),
    ("停产后无工人受伤。", MINE),
    ("Valkey取代了Redis7。", PORTS),
    ("A组用Rust重写调度器。", PORTS),
    ("合同于2019年4月5日签订。", LEASE),
    ("房东没有发现损坏。", LEASE),
    ("七成左右的租金已付清。", LEASE),
    ("The lease may end with three weeks’ notice.", TERMS),
    ("The crate weighs 1.5 tonnes.", TERMS),
    ("The abbot gave no comment on the toll.", REEVE),
    ("The reeve does not pay for delays.", REEVE),
    ("The salt was not raised with a levy in June.", REEVE),
    ("行会在开会之前没有通知船主。", GUILD),
    ("堤长1,250.5米。", DYKE),
    ("1987年6月15日投资300万元。", DYKE),
    ("9:30开闸，蓄水率为65%。", DYKE),
    ("水位不超过30厘米。", DYKE),
    ("堤长１，２５０．５米。", JudgedPassage("堤长1250.5米。")),
]
FALSE = [
    ("The fair of Lund opened on 21 March 1874.", FAIR, "says “twenty-second of March, 1874”"),
    ("It closed on July the eighth.", FAIR, "says “July the ninth”, not “July the eighth”"),
    ("The mill at Brenn was built in 1746.", MILL, "says “1764”, not “1746”"),
    ("Since 12 June 1802 it has had two wheels.", MILL, "says “12 May 1802”, not “12 June 1802”"),
    ("The two wheels of 4.5 m grind grain.", MILL, "says “3.5 m”, not “4.5 m”"),
    ("The wheels grind about 2,500 kg a day.", MILL, "not “2,500 kg”"),
    ("The mill opens at 8:30 a.m.", MILL, "says “7:30 a.m.”"),
    ("The mill at Brenn was built by Jonas Hirt.", MILL, "does not name Hirt"),
    ("Ms Anna Wieland does sell the flour.", MILL, "says “not”"),
    ("The mill was not built in 1764.", MILL, "without “not”"),
    (
        "Ivar gave the key to Olga.",
        JudgedPassage("Ivar did not give the key to Olga."),
        "says “not”",
    ),
    (
        "She said: “Somebody has often asked me for the recipe.”",
        MILL,
        "do not stand in the passage",
    ),
    ("石桥煤矿一九八五年建成。", MINE, "原文写的是“一九五八年”"),
    ("石桥煤矿年产煤约五十三万吨。", MINE, "五十三万吨"),
    ("停产后工人受伤。", MINE, "没有"),
    ("矿长陆振邦没有宣布停产。", MINE, "没有“没有”"),
    ("六成工人转到龙口市工作。", MINE, "龙口市"),
    ("陆振邦说：“煤矿养活了四代人。”", MINE, "原话"),
    ("新版把Redis换成了Dragonfly。", PORTS, "没有提到Dragonfly"),
    ("合同于2019年4月6日签订。", LEASE, "2019 年 4 月 5 日"),
    ("押金为1500美元。", LEASE, "美元"),
    ("堤长1,350.5米。", DYKE, "原文写的是“１，２５０．５米”"),
    ("1987年6月16日投资300万元。", DYKE, "１９８７．０６．１５"),
    ("The crate weighs 1500 g.", TERMS, "not “1500 g”"),
    ("The toll was not raised in June.", REEVE, "without “not”"),
    ("Erlang是重写调度器的语言。", PORTS, "没有提到Erlang"),
]


def test_reasons_are_in_the_language_of_the_index() -> None:
    """Also for a claim without a Chinese character, beside the other words of a Chinese index."""
    passage = JudgedPassage("Tern号于１８９８年下水🚢。")
    judgements = [judge_claim("Tern 1899", [passage], language=name) for name in ("en", "zh")]
    assert [judgement.reason for judgement in judgements] == [
        "the passage says “１８９８年”, not “1899”",
        "原文写的是“１８９８年”，不是“1899”",
    ]


@pytest.mark.parametrize(("claim", "passage"), TRUE)
def test_the_same_fact_in_another_form_is_not_marked(claim: str, passage: JudgedPassage) -> None:
    """Other digits, units, dates, hours, shares, initials, acronyms and list numbers, names in Latin letters
    inside Chinese; and it is never called supported.
    """
    judgement = judge_claim(claim, [passage])
    assert (judgement.verdict, judgement.reason) == ("nearest", "")
    assert judgement.nearest is not None


@pytest.mark.parametrize(("claim", "passage", "reason"), FALSE)
def test_a_fact_that_does_not_stand_there_is_named(
    claim: str, passage: JudgedPassage, reason: str
) -> None:
    """With what stands there instead, where the sentence has something of the kind; the places are those
    of the differing words.
    """
    judgement = judge_claim(claim, [passage])
    assert judgement.verdict == "missing" and reason in judgement.reason
    for start, end in judgement.differing:
        assert claim[start:end].strip() == claim[start:end] != ""
    for start, end in judgement.instead:
        assert passage.text[start:end] in judgement.reason


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ("All grain comes from the Farmers Union.", "does not say “all”"),
        ("It opens at 7:30 a.m. and closes early.", "says “may”"),
        ("Zebras quickly jump sideways.", "shares no word"),
    ],
)
def test_what_words_cannot_decide_is_only_to_be_compared(claim: str, reason: str) -> None:
    """A stronger word, a lost "may", and a claim without a common word."""
    judgement = judge_claim(claim, [MILL])
    assert judgement.verdict == "compare" and reason in judgement.reason


@pytest.mark.parametrize("labelled", yardstick(), ids=lambda labelled: labelled.claim)
def test_words_never_call_a_claim_supported(labelled: LabelledClaim) -> None:
    """Neither a false claim nor a true one, whatever it shares with its sentences."""
    judgement = judge_claim(labelled.claim, [JudgedPassage(labelled.window)])
    assert judgement.verdict in ("missing", "compare", "nearest")


def test_words_never_call_a_claim_of_other_texts_supported(shared_data: Path) -> None:
    """On labelled claims that are no part of the package."""
    path = shared_data / "claims-a.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").strip().split("\n")]
    marked = {"true": 0, "false": 0}
    for row in rows:
        passage = JudgedPassage(row["passage"], row["heading"])
        verdict = judge_claim(row["claim"], [passage]).verdict
        assert verdict in ("missing", "compare", "nearest")
        marked[row["label"]] += verdict == "missing"
    assert marked["false"] >= 23 and marked["true"] <= 3


@pytest.mark.parametrize(
    ("claim", "background", "verdict", "reason"),
    [
        ("“Valley Mills”", "Mills of the valley\n2019-04-02", "nearest", ""),
        ("“石桥志”", "石桥志", "nearest", ""),
        (
            "“Harbour Cranes”",
            "Mills of the valley\n2019-04-02",
            "compare",
            "the passage shares no word with it",
        ),
    ],
)
def test_a_title_is_known_though_no_sentence_has_its_words(
    claim: str, background: str, verdict: str, reason: str
) -> None:
    """A list of documents names their titles, which no passage needs to say."""
    passage = JudgedPassage(
        "新版仍在运行。" if claim == "“石桥志”" else "It opens at noon.", background
    )
    judgement = judge_claim(claim, [passage])
    assert (judgement.verdict, judgement.reason) == (verdict, reason)


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("Ada Orne married Ivo Brack.", "nearest"),
        ("Una Keel married Ivo Brack.", "compare"),
        ("Nils Tarn married Ivo Brack.", "missing"),
        ("沈砚秋先生在一九三一年建造了渡口。", "nearest"),
        ("梁月桥先生在一九三一年建造了渡口。", "compare"),
        ("陆文衡先生在一九三一年建造了渡口。", "missing"),
    ],
)
def test_a_name_of_another_passage_is_to_be_compared(claim: str, verdict: str) -> None:
    """It stands among the passages, but not in those that the claim is nearest to."""
    passages = [
        JudgedPassage("Ada Orne is a potter. In 1990 she married Ivo Brack."),
        JudgedPassage("Una Keel runs the mill. The mill is old. It has two wheels and a dry pond."),
    ]
    if not claim.isascii():
        passages = [
            JudgedPassage("渡口有两条船。沈砚秋先生在一九三一年将它建成。"),
            JudgedPassage("磨坊很旧。梁月桥经营它多年。"),
        ]
    assert judge_claim(claim, passages).verdict == verdict


def test_roles_are_not_judged() -> None:
    """Who did what to whom, words cannot tell: the sentence is shown, and nothing is said of it."""
    passage = JudgedPassage("The board of Lund sued the council of Malmo. The court met in spring.")
    judgement = judge_claim("The council of Malmo sued the board of Lund.", [passage])
    assert judgement.verdict == "nearest" and judgement.nearest is not None
    assert passage.text[: judgement.nearest.end].endswith("Malmo.")


def test_a_heading_is_no_nearest_sentence() -> None:
    """Though it shares most words."""
    passage = JudgedPassage(
        "# The lamp of Norby\n\nIts lamp burns whale oil.\n\n## Keepers of the lamp"
    )
    nearest = judge_claim("The lamp of Norby burns.", [passage]).nearest
    assert nearest is not None
    assert passage.text[nearest.start : nearest.end] == "Its lamp burns whale oil."


def test_a_quotation_keeps_its_place() -> None:
    """Word for word, over several sentences and a line break: nothing in it is judged."""
    passage = JudgedPassage("It began. No pump may run\nfor 24 hours. Not even at night! It ended.")
    judgement = judge_claim("No pump may run for 24 hours. Not even at night!", [passage])
    assert judgement.verdict == "nearest" and judgement.nearest is not None
    place = judgement.nearest
    assert passage.text[place.start : place.end] == passage.text[10:58]


@given(st.text("百分之成半一三十零点万亿12./ ", max_size=12))
@example("百分之一点点")
@example("百分之点")
@example("百分之三点十")
def test_any_row_of_numerals_can_be_read(numerals: str) -> None:
    """A passage may say 百分之一点点, 三分之点 or worse."""
    judgement = judge_claim(f"只有{numerals}的人。", [JudgedPassage(f"约{numerals}的人来了。")])
    assert judgement.verdict != "unsupported"


@given(
    st.text("ab 12 not 不 “”.。三个天\n|#-ßİ🍵", max_size=60),
    st.text("ab 12 no 不。三个天\n#|🍵", max_size=90),
)
def test_places_lie_in_claim_and_passage(claim: str, text: str) -> None:
    """Whatever the texts are."""
    judgement = judge_claim(claim, [JudgedPassage(text)])
    if judgement.nearest is not None:
        assert 0 <= judgement.nearest.start < judgement.nearest.end <= len(text)
    assert all(0 <= start < end <= len(claim) for start, end in judgement.differing)
    assert all(0 <= start < end <= len(text) for start, end in judgement.instead)
    assert judgement.verdict not in ("supported", "unsupported")
