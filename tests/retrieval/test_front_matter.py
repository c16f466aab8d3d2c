"""Front matter: known by its words and its shape, and by no publisher's name."""

import pytest

from lightrag_jsonl.lenses.front_matter import is_front_matter, is_label

LICENCE = """You may copy and distribute this work, modified or not, under the terms of this licence,
provided that each copy keeps the copyright notice. The work comes without any warranty; the authors
are not liable for damages, direct or consequential. By law or agreement, other permissions may apply.
Trademarks are not licensed. All rights not granted here are reserved."""
LICENCE_ZH = """本作品依据本许可协议提供。您可以复制、转载和修改本作品，但不得去除版权声明，并须注明署名。
未经书面许可，禁止用于商业发行。作者不提供任何担保，对使用本作品造成的损失不承担赔偿责任。
违反本条款者，著作权人保留依法追究侵权责任的权利。"""
IMPRINT = """Second edition, revised. Published by Hollow Oak. Printed in Leeds by Marsh & Daughter.
Editor: Joan Pike. Translator: Emil Rask. Copyright 1998. ISBN 0-00-000000-0"""
IMPRINT_ZH = """责任编辑：林可 封面设计：周行 出版：青石出版社 发行：青石书店
印刷：南山印刷厂 版次：2011年3月第1版 印次：2011年3月第1次印刷 书号：ISBN 000 定价：28.00元"""
CONTENTS = """CONTENTS

The Mill in Winter ........ 3
A Letter from Riga ........ 19
What the Miller Knew ...... 31
Two Journeys .............. 58
The Flood ................. 77
Rebuilding ................ 102"""
CONTENTS_ZH = """目录
第一章 渡口
第二章 夜雨
第三章 故人来
第四章 一封信
第五章 北上
第六章 归途
第七章 尾声"""
LISTED = """LIST OF PICTURES

  The miller on the bridge,
    with his dog                                 12

  Snow                                           18

  A crowd before the
    burgomaster's house                          27

  "Who goes there?"                              40

  The letter                                     55

  Spring at last                                 90"""

CONTRACT = """The supplier delivers forty pumps by 1 March. The buyer pays within thirty days. If the
supplier is late, he is liable for damages of one percent a week. This agreement ends in 2027 unless the
parties agree otherwise. The law of Norway applies. Disputes go to the court in Bergen."""
PRIZE = """The publisher Ida Holm founded her house in 1921. The first edition of her atlas sold out in
a week, and she wrote to the printer for more. Her brother thought little of the trade and sailed to
Chile, where he kept sheep and learned to fly."""
CHRONICLE = """Bridge built in 1841
Mill burned in 1853
Railway reached the town in 1870
School opened in 1888
Flood in 1902
Town hall built in 1911
Harbor closed in 1954"""
PRICES = """Bolt 12
Nut 4
Washer 2
Hinge 30
Handle 18
Lock 95
Key 6
Chain 40
Rope 22
Hook 9
Nail 1"""
VERSES = """第一回合，红队先攻，打得很顺。
中场休息时教练换了两个人。
第二回合双方都没有得分。
观众开始离场，天也黑了。
最后三分钟，蓝队追平了比分。
加时赛里，红队的队长受了伤。
比赛在点球中结束。"""


@pytest.mark.parametrize(
    "text", [LICENCE, LICENCE_ZH, IMPRINT, IMPRINT_ZH, CONTENTS, CONTENTS_ZH, LISTED]
)
def test_licences_imprints_and_lists_of_contents_are_front_matter(text: str) -> None:
    """In both languages, also in full-width letters and with an emoji in it."""
    assert is_front_matter(text)
    assert is_front_matter(f"📚 ＡＢＣ\n{text}")


@pytest.mark.parametrize("text", ["", CONTRACT, PRIZE, CHRONICLE, PRICES, VERSES, LICENCE[:60]])
def test_what_only_speaks_of_such_things_is_none(text: str) -> None:
    """A contract, a life of a publisher, a chronicle, a price list and a match report are content."""
    assert not is_front_matter(text)


@pytest.mark.parametrize("text", [LICENCE, IMPRINT_ZH, CONTENTS])
def test_front_matter_on_the_margin_of_a_text_does_not_hide_the_text(text: str) -> None:
    """A passage counts by what most of it is."""
    story = "The miller went down to the river and saw that the ice had gone. " * 40
    assert not is_front_matter(f"{text}\n\n{story}")


@pytest.mark.parametrize(
    "sentence",
    [
        "[Illustration: THE MILLER AT THE RIVER]",
        "[插图：渡口 😀]",
        "_PART ONE_",
        "FIRST PRINTED AT DUNMERE １９１２",
        "Language: English",
        "Heading to Part One                              12\n  The mill      30-31",
        "The ice goes ........ 40",
    ],
)
def test_captions_headings_and_entries_are_labels(sentence: str) -> None:
    """They say nothing by themselves, so no overview quotes them."""
    assert is_label(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "The miller went down to the river in 1912.",
        "STOP THE MILL!",
        "磨坊主走到河边。",
        "He paid 40",
        "Title deeds: the miller had none.",
        "A picture [of the mill] hung there.",
    ],
)
def test_sentences_are_no_labels(sentence: str) -> None:
    """Nor are cries in capitals, Chinese sentences, and sentences that end in a number."""
    assert not is_label(sentence)


def test_a_page_stands_behind_dots_a_tab_or_blanks() -> None:
    """However long the row of dots or blanks is; a number behind one blank is part of a sentence."""
    for line in (
        "The mill ... 40",
        "The mill… 40",
        "The mill\txii",
        "The mill   40-41",
        f"X{'.' * 5_000}7",
    ):
        assert is_label(line)
    for line in ("The mill 40", "He paid .. 40", "The mill   12345", "..." * 2_000):
        assert not is_label(line)
