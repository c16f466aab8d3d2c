"""Bytes to text: what is read, what is refused, and that nothing becomes another text in silence."""

from __future__ import annotations

import re

import pytest

from lightrag_jsonl.decoding import PROBE_BYTES, decoded
from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.samples import sample_documents

SIMPLIFIED = "林黛玉自幼多病，住在潇湘馆。贾宝玉爱她，两人常在园中读书。"
TRADITIONAL = "林黛玉自幼多病，住在瀟湘館。賈寶玉愛她，兩人常在園中讀書。"
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"
KOREAN = "나는 고양이다. 이름은 아직 없다. 서울에 산다."
RUSSIAN = "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива."
FRENCH = "Café déjà vu à la mode, où l'été était très agréable."


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("text", ["Ann 中文 １２ 🙂", "中", "a"])
def test_a_mark_tells_the_encoding(text: str, encoding: str) -> None:
    """That of UTF-32, too, whose mark begins as that of UTF-16 does; in either order of bytes."""
    assert decoded(text.encode(encoding), "a.txt") == text
    if encoding != "utf-8-sig":
        big = f"{encoding}-be"
        assert decoded("\ufeff".encode(big) + text.encode(big), "a.txt") == text


@pytest.mark.parametrize(
    "text",
    [
        SIMPLIFIED,
        TRADITIONAL,
        '{"a":"刘备"}',
        '{"text":"刘备在涿郡。","id":"b","title":"蜀汉昭烈皇帝本纪之第一卷"}\n',
        "华为 (Huawei Technologies Co., Ltd.) was founded in Shenzhen in 1987 by 任正非.",
        "- [ ] migrate PostgreSQL 14, see http://wiki.example.com/pg/upgrade\n负责人：王磊 🙂\n",
        "阿保机、耶律德光，皆辽国之君。",  # with nothing of GB 2312's second half
    ],
)
@pytest.mark.parametrize("times", [1, 5_000])
def test_chinese_in_gb_18030_is_read(text: str, times: int) -> None:
    """However much of it is English, in traditional characters too, in big and small files alike."""
    assert decoded(text.encode("gb18030") * times, "a.txt") == text * times


def test_every_piece_of_real_chinese_is_read() -> None:
    """Cut into pieces of 40 characters, it is still known for what it is."""
    for document in sample_documents("zh"):
        for start in range(0, len(document.text), 40):
            piece = document.text[start : start + 40]
            assert decoded(piece.encode("gb18030"), "a.txt") == piece


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (TRADITIONAL, "big5"),
        (TRADITIONAL[:13], "big5"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (KOREAN, "euc_kr"),
        ("서울에 산다. 고양이다.", "euc_kr"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        (FRENCH, "latin-1"),
        ("“Café”, she said: “déjà vu”.", "cp1252"),
    ],
)
@pytest.mark.parametrize("times", [1, 5_000])
def test_other_encodings_are_refused(text: str, encoding: str, times: int) -> None:
    """They would be read as Chinese that nobody wrote; what is read is told, and what to do."""
    with pytest.raises(ConfigError, match=r"^a\.txt is no text file") as refused:
        decoded(text.encode(encoding) * times, "a.txt")
    for told in ("UTF-8, GB 18030, and UTF-16 or UTF-32", "convert others, such as Big5"):
        assert told in str(refused.value)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_zero_bytes_are_no_text(encoding: str) -> None:
    """UTF-16 without its mark is not guessed at."""
    with pytest.raises(ConfigError, match="it has zero bytes"):
        decoded(("Ann " * PROBE_BYTES).encode(encoding), "a.txt")


@pytest.mark.parametrize("cut", [1, 2])
def test_utf_8_that_ends_inside_a_character_is_refused(cut: int) -> None:
    """Wherever that is, also where the rest would do as GB 18030; it is told by byte and line."""
    text = "第一行。\n" + SIMPLIFIED
    for end in range(6, len(text)):
        data = text[:end].encode()
        whole = text[: end + 1].encode()
        if len(whole) - len(data) < 3:
            continue
        place = re.escape(f"as UTF-8 it is wrong at byte {len(data) + 1}, in line 2")
        with pytest.raises(ConfigError, match=place):
            decoded(whole[:-cut], "a.txt")


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"\xef\xbb\xbfab\nc\xffd", "as UTF-8 it is wrong at byte 8, in line 2"),
        (
            (SIMPLIFIED + "\n").encode() * 40 + b"\xff",
            "as UTF-8 it is wrong at byte 3,521, in line 41",
        ),
        (
            (SIMPLIFIED + "\n").encode("gb18030") + b"\xff",
            "as GB 18030 it is wrong at byte 60, in line 2",
        ),
    ],
)
def test_a_single_wrong_byte_is_refused_with_its_place(data: bytes, place: str) -> None:
    """In the encoding that came furthest, so that it can be mended."""
    with pytest.raises(ConfigError, match=re.escape(place)):
        decoded(data, "a.txt")
