"""Decodes bytes to text: the encodings that are supported, and how others are recognized."""

from __future__ import annotations

import codecs
from collections import Counter
from typing import Final

from lightrag_jsonl.errors import ConfigError

OTHERWISE = {  # the first bytes of files that are no plain text; a PDF may look like one
    b"%PDF-": "a PDF; save its text first, for example with pdftotext, which keeps its pages apart",
    b"PK\x03\x04": "an archive or an office document; unpack it, or save it as plain text, first",
    b"\xd0\xcf\x11\xe0": "an office document; save it as plain text first",
    b"{\\rtf": "rich text; save it as plain text first",
    b"\x1f\x8b": "compressed; unpack it first",
}
MARKS = {  # byte order marks; UTF-32 first, since its mark may begin with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
PROBE_BYTES = 8_192
NAMES = {"utf-8": "UTF-8", "gb18030": "GB 18030"}

# Measured on pieces of 40 characters: Chinese in GB 18030, and other encodings decoded as that.
PRIVATE: Final = 0.02  # share of private-use characters beyond ASCII: Chinese 0, Big5 0.2 or more
FREQUENT: Final = (
    0.4  # share of frequent Han characters: Chinese 0.86, traditional 0.4, Shift-JIS 0
)
KANA: Final = 0.5  # kana for each Han character: Chinese 0, Japanese in EUC-JP mostly above 1
FEWEST: Final = 8  # in so many different Han characters, one at least is outside EUC-KR's Hangul


def decoded(data: bytes, name: str) -> str:
    """A text: UTF-8, UTF-16 or UTF-32 with a byte order mark, or GB 18030 if that gives Chinese.

    For anything else `ConfigError` says what it is and what to do; `name` is the file's name in it.
    UTF-8 with any invalid byte is refused, too: nobody could see in an answer what was lost.
    """
    for beginning, what in OTHERWISE.items():
        if data.startswith(beginning):
            raise ConfigError(f"{name} is no text file but {what}")
    for mark, encoding in MARKS.items():
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    if b"\0" in data[:PROBE_BYTES]:
        raise _refusal(name, "it has zero bytes")
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        wrong = error
    try:
        text = data.decode("gb18030")
    except UnicodeDecodeError as error:
        wrong = max(wrong, error, key=lambda one: one.start)
    else:
        if is_chinese(text):
            return text
    raise _refusal(name, _place(wrong, data))


def is_chinese(text: str) -> bool:
    """Whether a text that was decoded from GB 18030 really is Chinese.

    Other encodings decode to characters that are rare in Chinese: Big5 to private-use characters,
    Shift-JIS and Latin letters to rare ones, EUC-JP to kana. EUC-KR gives frequent ones, but only
    those in the first half of the table, and without full-width punctuation between them.
    """
    kinds: Counter[str] = Counter()
    different: Counter[str] = Counter()
    for char, count in Counter(text).items():
        kind = _kind(char)
        kinds[kind] += count
        different[kind] += 1
    frequent = kinds["first"] + kinds["second"]
    han = frequent + kinds["rare"]
    korean = different["first"] >= FEWEST and not kinds["second"] and not kinds["punctuation"]
    return (
        frequent > han * FREQUENT
        and kinds["kana"] < han * KANA
        and kinds["private"] <= (kinds.total() - kinds["ascii"]) * PRIVATE
        and not korean
    )


def _kind(char: str) -> str:
    """The area of GB 2312 a character is in; its frequent characters are in the order of their sounds."""
    if char.isascii():
        return "ascii"
    if "\ue000" <= char <= "\uf8ff":
        return "private"
    if "\u3041" <= char <= "\u30ff":
        return "kana"
    if char in "，。、：；！？":
        return "punctuation"
    if not ("\u3400" <= char <= "\u9fff" or char >= "\U00020000"):
        return "other"
    row = char.encode("gb2312", errors="ignore")[:1]
    if b"\xb0" <= row <= b"\xc8":  # as the Hangul of EUC-KR
        return "first"
    return "second" if b"\xc9" <= row <= b"\xd7" else "rare"


def _place(wrong: UnicodeDecodeError, data: bytes) -> str:
    """Where decoding failed, by the encoding that got furthest."""
    line = data.count(b"\n", 0, wrong.start) + 1
    return f"as {NAMES[wrong.encoding]} it is wrong at byte {wrong.start + 1:,}, in line {line:,}"


def _refusal(name: str, why: str) -> ConfigError:
    return ConfigError(
        f"{name} is no text file that can be read ({why}): UTF-8, GB 18030, and UTF-16 or UTF-32 "
        "with a byte order mark can; convert others, such as Big5 or Shift-JIS, to UTF-8 first"
    )
