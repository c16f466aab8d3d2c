"""Bytes to text: the encodings that are read, and how others are told from them."""

from __future__ import annotations

import codecs
from collections import Counter
from typing import Final

from lightrag_jsonl.errors import ConfigError

OTHERWISE = {  # how files begin that hold texts in another way; a PDF may even look like plain text
    b"%PDF-": "a PDF; save its text first, for example with pdftotext, which keeps its pages apart",
    b"PK\x03\x04": "an archive or an office document; unpack it, or save it as plain text, first",
    b"\xd0\xcf\x11\xe0": "an office document; save it as plain text first",
    b"{\\rtf": "rich text; save it as plain text first",
    b"\x1f\x8b": "compressed; unpack it first",
}
MARKS = {  # that of UTF-32 may begin as that of UTF-16 does, and is looked for first
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
PROBE_BYTES = 8_192
NAMES = {"utf-8": "UTF-8", "gb18030": "GB 18030"}

# Measured over pieces of 40 characters: Chinese in GB 18030, and others that were taken for it.
PRIVATE: Final = 0.02  # of all beyond ASCII are private characters: Chinese 0, Big5 0.2 and more
FREQUENT: Final = 0.4  # of the Han characters: Chinese 0.86 and more, traditional 0.4, Shift-JIS 0
KANA: Final = 0.5  # to a Han character: Chinese 0, Japanese in EUC-JP mostly more than 1
FEWEST: Final = 8  # different Han characters of which one at least stands beyond EUC-KR's Hangul


def decoded(data: bytes, name: str) -> str:
    """A text: UTF-8, UTF-16 or UTF-32 with its mark, or GB 18030 where that gives Chinese.

    `ConfigError` says of anything else what it is, and what to do; `name` is what it calls it. So
    it does of UTF-8 that is wrong anywhere: what was lost there, nobody could see in an answer.
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
    """Whether a text that was decoded from GB 18030 was meant so.

    Other encodings give characters that Chinese hardly has: Big5 private ones, Shift-JIS and Latin
    letters rare ones, EUC-JP kana. EUC-KR gives frequent ones, but of the first half only, and
    the full-width punctuation between them is missing.
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
    """Where a character stands in GB 2312, whose frequent ones are in the order of their sounds."""
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
    """Where the encoding went wrong that came furthest."""
    line = data.count(b"\n", 0, wrong.start) + 1
    return f"as {NAMES[wrong.encoding]} it is wrong at byte {wrong.start + 1:,}, in line {line:,}"


def _refusal(name: str, why: str) -> ConfigError:
    return ConfigError(
        f"{name} is no text file that can be read ({why}): UTF-8, GB 18030, and UTF-16 or UTF-32 "
        "with a byte order mark can; convert others, such as Big5 or Shift-JIS, to UTF-8 first"
    )
