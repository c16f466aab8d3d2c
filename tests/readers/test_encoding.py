"""Text files in any encoding."""

import pytest

from lightrag_jsonl.core.encoding import decoded
from lightrag_jsonl.core.errors import ConfigError

SIMPLIFIED = "林黛玉自幼多病，住在潇湘馆。贾宝玉爱她，两人常在园中读书。"
TRADITIONAL = "林黛玉自幼多病，住在瀟湘館。賈寶玉愛她，兩人常在園中讀書。"
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"
KOREAN = "나는 고양이다. 이름은 아직 없다. 서울에 산다."
RUSSIAN = "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива."
FRENCH = "Café déjà vu à la mode, où l'été était très agréable."


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("text", ["Ann 中文 １２ 🙂", "中", "a", ""])
def test_unicode_is_read_with_and_without_a_byte_order_mark(text: str, encoding: str) -> None:
    """That of UTF-32, too, whose mark begins as that of UTF-16 does; in either order of bytes."""
    assert decoded(text.encode(encoding)) == text
    if encoding in ("utf-16", "utf-32"):
        big = f"{encoding}-be"
        assert decoded("\ufeff".encode(big) + text.encode(big)) == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (SIMPLIFIED, "gb18030"),
        ('{"a":"刘备"}', "gb18030"),
        ("华为 (Huawei Technologies Co., Ltd.) was founded by 任正非.", "gb18030"),
        ("阿保机、耶律德光，皆辽国之君。", "gb18030"),
        (TRADITIONAL, "big5"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (KOREAN, "euc_kr"),
        (RUSSIAN, "cp1251"),
        (FRENCH, "latin-1"),
    ],
)
def test_other_encodings_are_recognized_in_short_files(text: str, encoding: str) -> None:
    """A line or two is enough, however much of it is English."""
    assert decoded(text.encode(encoding)) == text


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"%PDF-1.4 text", "no text file"),
        ("Ann".encode("utf-16-le"), "no text file"),
        (b"\xef\xbb\xbfab\xc3\xa9\nc\xffd\xc3\xa9", "wrong at byte 10, in line 2"),
        ((SIMPLIFIED + "\n").encode() * 40 + b"\xff", "wrong at byte 3,521, in line 41"),
        (SIMPLIFIED.encode()[:-1], "wrong at byte 85, in line 1"),
    ],
)
def test_what_is_no_text_or_damaged_is_refused(data: bytes, reason: str) -> None:
    """By the file's name, and with the position of the byte: nobody could see what was lost."""
    with pytest.raises(ConfigError, match=rf"^a\.txt .*{reason}"):
        decoded(data, "a.txt")
