"""Text files in any encoding."""

import binascii
import hashlib
import random
import re
import unicodedata
from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, LightRAG
from tests.readers.files import read, read_content
from tests.readers.texts import ENCODINGS, TEXTS

SIMPLIFIED = "林黛玉自幼多病，住在潇湘馆。贾宝玉爱她，两人常在园中读书。"
TRADITIONAL = "林黛玉自幼多病，住在瀟湘館。賈寶玉愛她，兩人常在園中讀書。"
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"
KOREAN = "나는 고양이다. 이름은 아직 없다. 서울에 산다."
RUSSIAN = "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива."
FRENCH = "Café déjà vu à la mode, où l'été était très agréable."


def plain_text(data: bytes) -> str:
    """The text of a file without markup."""
    return read(data, "a.txt").text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("text", ["Ann 中文 １２ 🙂", "中", "a"])
def test_unicode_is_read_with_and_without_a_byte_order_mark(text: str, encoding: str) -> None:
    """That of UTF-32, too, whose mark begins as that of UTF-16 does; in either order of bytes."""
    assert plain_text(text.encode(encoding)) == text
    if encoding in ("utf-16", "utf-32"):
        big = f"{encoding}-be"
        assert plain_text("\ufeff".encode(big) + text.encode(big)) == text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_alone_is_no_text(encoding: str) -> None:
    """A file with nothing behind it is empty."""
    with pytest.raises(ConfigError, match=r"a\.txt is empty"):
        plain_text("".encode(encoding))


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
    assert plain_text(text.encode(encoding)) == text


CASES = [(language, label) for language, labels in ENCODINGS.items() for label in labels]
# Without a declaration these bytes are as likely in another encoding, or are not looked for.
AMBIGUOUS = {
    ("Albanian", "windows-1252"),
    ("French", "macintosh"),
    ("Romanian", "iso-8859-16"),
    ("Russian", "x-mac-cyrillic"),
}
TONES = "\u0300\u0301\u0303\u0309\u0323"  # apart from their letters in Windows-1258


def encoded(text: str, label: str) -> bytes:
    """The text in an encoding by the name that HTML has for it."""
    if label == "windows-1258":
        letters = []
        for letter in text:
            parts = unicodedata.normalize("NFD", letter)
            tones = "".join(part for part in parts if part in TONES)
            base = "".join(part for part in parts if part not in TONES)
            letters.append(unicodedata.normalize("NFC", base) + tones)
        return "".join(letters).encode("cp1258")
    names = {"ibm866": "cp866", "x-mac-cyrillic": "mac_cyrillic", "macintosh": "mac_roman"}
    return text.encode(names.get(label, label.replace("windows-", "cp")))


@pytest.mark.parametrize(("language", "label"), CASES)
def test_a_declared_encoding_is_used(language: str, label: str) -> None:
    """By pages of HTML, in a tag or in the older form, and by XML; in 38 languages."""
    pytest.importorskip("trafilatura")
    text = TEXTS[language]
    for head in (
        f'<html><head><meta charset="{label}"></head>',
        f"<html><head><META HTTP-EQUIV=Content-Type CONTENT='text/html; charset={label.upper()}'>",
        f'<?xml version="1.0" encoding="{label}"?><html xmlns="http://www.w3.org/1999/xhtml">',
    ):
        page = f"{head}<body><p>".encode() + encoded(text, label) + b"</p></body></html>"
        assert read(page, "a.html").text == text


@pytest.mark.parametrize(("language", "label"), [case for case in CASES if case not in AMBIGUOUS])
def test_an_encoding_that_nobody_declares_is_detected(language: str, label: str) -> None:
    """From one or two sentences."""
    assert plain_text(encoded(TEXTS[language], label)) == TEXTS[language]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("25 °C ± 3 µm, © 2024", "latin-1"),
        ("“Quoted” – it’s", "cp1252"),
        ("Müller", "latin-1"),
        ("Łódź", "cp1250"),
        ("Москва", "cp1251"),
        ("Ann met Bob.", "utf-16-le"),
        ("Ann met 张骞.", "utf-16-be"),
    ],
)
def test_a_few_words_are_enough(text: str, encoding: str) -> None:
    """Signs are not taken for letters; UTF-16 needs no mark where every other byte is zero."""
    assert plain_text(text.encode(encoding)) == text


def test_a_declaration_that_is_wrong_is_not_used() -> None:
    """Valid UTF-8 is that, whatever an old tag says; an unknown name is none."""
    for declared in ("iso-8859-1", "utf-8", "no-such-thing", "rot13", "zip"):
        head = f'<html><head><meta charset="{declared}"></head><body><p>'.encode()
        assert read(head + TEXTS["Polish"].encode(), "a.html").text == TEXTS["Polish"]
        cyrillic = read(head + TEXTS["Russian"].encode("koi8-r"), "a.html").text
        assert declared == "iso-8859-1" or cyrillic == TEXTS["Russian"]


@pytest.mark.parametrize(
    ("data", "text", "damage"),
    [
        (
            b"\xef\xbb\xbfab\xc3\xa9\nc\xffd\xc3\xa9",
            "abé\nc\ufffddé",
            "1 character .* utf-8 .* line 2",
        ),
        ((SIMPLIFIED + "\n").encode() * 3 + b"\xff", (SIMPLIFIED + "\n") * 3 + "\ufffd", "line 4"),
        (SIMPLIFIED.encode()[:-1], SIMPLIFIED[:-1] + "\ufffd", "line 1"),
        (b"Ann\x00 met \x02Bob.\x0bThen", "Ann met Bob. Then", "2 control characters left out"),
    ],
)
def test_a_wrong_byte_costs_itself(data: bytes, text: str, damage: str) -> None:
    """With a report of how many there are, and in which line the first one is."""
    content = read_content(data, "a.txt")
    assert content.document.text == text
    assert re.search(damage, *content.notes)


@pytest.mark.slow
def test_the_report_names_the_damage(tmp_path: Path) -> None:
    """Of a text that is read here, and of a table that is read by the other process."""
    rows = TEXTS["Polish"].replace(" ", ",").encode()
    (tmp_path / "a.txt").write_bytes(TEXTS["Polish"].encode() + b"\xff")
    (tmp_path / "b.csv").write_bytes(rows + b"\n" + rows + b"\xff")
    (tmp_path / "c.txt").write_bytes(TEXTS["Thai"].encode())
    with LightRAG(tmp_path / "kb") as rag:
        report = rag.insert([tmp_path / name for name in ("a.txt", "b.csv", "c.txt")])
    assert len(report.documents) == 3 and not report.failures
    assert [(Path(note.path).name, note.text) for note in report.notes] == [
        ("a.txt", "1 character cannot be decoded as utf-8 (the first in line 1)"),
        ("b.csv", "1 character cannot be decoded as utf-8 (the first in line 2)"),
    ]


@pytest.mark.parametrize("data", [b"%PDF-1.4 text", bytes(range(256)) * 4, b"\0\1\2", bytes(600)])
def test_what_is_no_text_is_refused(data: bytes) -> None:
    """By the file's name."""
    with pytest.raises(ConfigError, match=r"^a\.txt is not a text file"):
        read(data, "a.txt")


DATA = random.Random(5).randbytes(3_000)
LINES = [DATA[start : start + 16] for start in range(0, len(DATA), 16)]


def ascii_column(line: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in line)


ENCODED = {
    "bytes": "\n".join(line.hex(" ") for line in LINES),
    "a line": DATA.hex(" "),
    "digits": DATA.hex(),
    "lines": "\n".join(line.hex() * 2 for line in LINES),
    "fingerprint": DATA.hex(":"),
    "dump": "\n".join(
        f"{16 * number:08x}: {line.hex(' ', 2)}  {ascii_column(line)}"
        for number, line in enumerate(LINES)
    ),
    "canonical dump": "\n".join(
        f"{16 * number:08x}  {line.hex(' ')}  |{ascii_column(line)}|"
        for number, line in enumerate(LINES)
    ),
    "source code": ",\n".join(", ".join(f"0x{byte:02x}" for byte in line) for line in LINES),
    "text in bytes": b"Dora lights the lamp, and the ship comes home. ".hex(" ") * 9,
    "firmware": "\n".join(
        f":10{16 * number:04X}00{line.hex().upper()}AB" for number, line in enumerate(LINES)
    ),
    "uuencode": "begin 644 lamp.bin\n"
    + "".join(binascii.b2a_uu(DATA[start : start + 45]).decode() for start in range(0, 3_000, 45))
    + "`\nend",
    "picture": f"<svg viewBox='0 0 9 9'><path d='{'M1.5 2 L3 4 ' * 300}'/></svg>",
}


@pytest.mark.parametrize("kind", ENCODED)
def test_encoded_data_is_no_text(kind: str) -> None:
    """It is left out between the sentences around it, and a note says how much."""
    source = f"Dora lights the lamp.\n\n{ENCODED[kind]}\n\nShe sells oil 油。\n"
    content = read_content(source, "a.txt")
    assert content.document.text.split() == [
        "Dora",
        "lights",
        "the",
        "lamp.",
        "She",
        "sells",
        "oil",
        "油。",
    ]
    assert "characters of embedded data left out" in content.notes[0]


def test_a_dump_in_octal_numbers_is_data() -> None:
    """As `od` writes bytes and words, in English and Chinese texts; a table of such numbers is none."""
    dump = "\n".join(
        f"{n * 16:07o} {' '.join(f'{(n * m) % 256:03o}' for m in range(16))}" for n in range(40)
    )
    content = read_content(f"灯塔亮了。\n\n{dump}\n0001200\n\n油。\n", "a.txt")
    assert content.document.text.split() == ["灯塔亮了。", "油。"]
    assert "characters of embedded data left out" in content.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"{n:07d} {n % 7}11 {n % 5}22" for n in range(300)).replace("0", "9"),
        "\n".join(f"{hashlib.sha256(bytes([n])).hexdigest()}  file{n}.txt" for n in range(30)),
        "\n".join(" ".join(str(10 + (n * m) % 90) for m in range(12)) for n in range(40)),
        "A decade faced a bad cafe, and a dead bee added a deed. " * 20,
        '<svg><circle r="4"/><text>A lamp</text></svg>',
        ",".join(f"{'abcdef'[n % 6]}{n}" for n in range(2_000)),  # rooms, commits, articles
        "\n".join(" ".join(f"{'ABCDEF'[n * m % 6]}{n % 10}" for m in range(9)) for n in range(40)),
        "\n".join(DATA[n : n + 40].hex(",", 4) for n in range(0, 2_000, 40)),  # short digests
        "\n".join(DATA[n : n + 28].hex(" ", 2) for n in range(0, 2_000, 28)),
        "; ".join(DATA.hex()[n : n + 7] for n in range(0, 3_000, 7)).replace(";", ","),
    ],
)
def test_digests_numbers_and_words_stay(text: str) -> None:
    """What only looks like data, or is short, is text."""
    assert read_content(text, "a.txt").document.text == text


def test_the_words_of_a_drawing_stay() -> None:
    """Its lines go, its labels do not."""
    drawing = (
        f"<svg><title>Quay</title><path d='{'M1 2 ' * 400}'/><text x='1'>灯塔 lamp</text></svg>"
    )
    assert read_content(drawing, "a.md").document.text.strip() == "Quay 灯塔 lamp"
