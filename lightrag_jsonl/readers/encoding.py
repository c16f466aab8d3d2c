"""Decodes text files in any common encoding."""

import codecs
import logging
import re
import unicodedata
from typing import NamedTuple

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import counted

OTHER_FORMATS = (b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"{\\rtf", b"\x1f\x8b")
# Encodings of texts without a declaration: those of the web, and those of DOS for Cyrillic.
DETECTED_ENCODINGS = (
    *("gb18030", "big5", "big5hkscs", "cp932", "shift_jis", "euc-jp", "cp949", "euc-kr"),
    *(f"windows-125{number}" for number in range(9)),
    *(f"iso-8859-{number}" for number in (1, 2, 5, 6, 7, 8, 9, 13, 15, 16)),
    *("windows-874", "tis-620", "koi8-r", "koi8-u", "cp866"),
)
# The encoding behind a declared name, where it is not the one that Python has under this name
# (WHATWG Encoding Standard, section 4.2).
ENCODINGS_BY_LABEL = {
    **dict.fromkeys(("ascii", "us-ascii", "iso-8859-1", "iso8859-1", "latin1", "l1"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk", "x-gbk", "gb_2312-80", "chinese"), "gb18030"),
    **dict.fromkeys(("big5", "big5-hkscs", "x-x-big5", "cn-big5"), "big5hkscs"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis", "windows-31j"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987", "ksc5601", "korean", "windows-949"), "cp949"),
    **dict.fromkeys(("iso-8859-9", "latin5", "l5"), "cp1254"),
    **dict.fromkeys(("tis-620", "iso-8859-11", "windows-874", "dos-874"), "cp874"),
    **dict.fromkeys(("macintosh", "x-mac-roman", "mac"), "mac_roman"),
    **dict.fromkeys(("x-mac-cyrillic", "x-mac-ukrainian"), "mac_cyrillic"),
    **dict.fromkeys(("iso-8859-8-i", "iso-8859-8-e", "logical"), "iso-8859-8"),
    **dict.fromkeys(("unicode", "utf8", "unicode-1-1-utf-8"), "utf-8"),
}
WESTERN = "cp1252"
# These are chosen above a likelier encoding if they are so likely in proportion: short western texts
# decode as Central European or Cyrillic, two Chinese characters as Korean.
USUAL_ENCODINGS = ("gb18030", "windows-1252")
USUAL_SHARE = 0.65
MOST_CONTROLS = 0.02  # control characters in a text; binary files have more
MOST_WRONG = 0.02  # wrong bytes among those beyond ASCII, in a text of a declared encoding

_CONTROLS = pattern_of("[\x00-\x08\x0e-\x1f\x7f]")
_JAPANESE_ESCAPE = re.compile(rb"\x1b(?:\$[@B]|\([BJI])")
# Letters of Windows-1252 and most other encodings: a text without any has signs only, as in "25 °C".
_WESTERN_LETTER = re.compile(rb"[\x8a\x8c\x8e\x9a\x9c\x9e\x9f\xbc-\xbe\xc0-\xff]")

log = logging.getLogger(__name__)


class DecodedText(NamedTuple):
    """The text of a file; `damage` says in words which bytes are not part of it, or is empty."""

    text: str
    encoding: str
    damage: str = ""


def decoded(data: bytes, name: str = "the file") -> str:
    """The text of a file's bytes, as by `decode_text`; damage is a warning in the log."""
    result = decode_text(data, name)
    if result.damage:
        log.warning("%s: %s", name, result.damage)
    return result.text


def decode_text(data: bytes, name: str = "the file", *, declared: str = "") -> DecodedText:
    """The text of a file's bytes, without control characters.

    The encoding is that of the byte order mark, UTF-8 where the bytes are valid, the `declared` one,
    or else the likeliest one for the bytes. A wrong byte becomes U+FFFD. `ConfigError`, with the
    file's `name`, for bytes of other formats.
    """
    text, encoding = _decoded_by_mark(data) or _decoded_without_mark(data, name, declared)
    wrong = text.count("\ufffd")
    damage = []
    if wrong:
        line = text.count("\n", 0, text.index("\ufffd")) + 1
        damage.append(
            f"{counted(wrong, 'characters')} cannot be decoded as {encoding} (the first in line {line:,})"
        )
    text = text.replace("\x0b", " ")  # a line break of Word
    controls = len(_CONTROLS.findall(text))
    few_controls = min(8, len(text) / 4)
    if controls > max(few_controls, MOST_CONTROLS * len(text)):
        raise ConfigError(f"{name} is not a text file: convert it to text, .pdf or .docx")
    if controls:
        text = _CONTROLS.sub("", text)
        damage.append(f"{counted(controls, 'control characters')} left out")
    return DecodedText(text, encoding, "; ".join(damage))


def _decoded_by_mark(data: bytes) -> tuple[str, str] | None:
    """The text after a byte order mark, and its encoding; None without such a mark."""
    marks = (  # that of UTF-32 begins like that of UTF-16
        ((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE), "utf-32"),
        ((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), "utf-16"),
    )
    for starts, encoding in marks:
        if data.startswith(starts):
            return data.decode(encoding, errors="replace"), encoding
    return None


def _decoded_without_mark(data: bytes, name: str, declared: str) -> tuple[str, str]:
    if data.startswith(OTHER_FORMATS):
        raise ConfigError(f"{name} is not a text file: convert it to text, .pdf or .docx")
    if b"\0" in data and (encoding := _utf16_order(data)):
        return data.decode(encoding, errors="replace"), encoding
    if _JAPANESE_ESCAPE.search(data) and data.isascii():
        return data.decode("iso2022_jp_2", errors="replace"), "iso-2022-jp"
    try:
        return data.decode().removeprefix("\ufeff"), "utf-8"
    except UnicodeDecodeError:
        encoding = _encoding_by_label(declared) or ""
    if encoding not in ("", "utf-8") and _fits(data, encoding):
        return _composed(data.decode(encoding, errors="replace"), encoding), encoding
    repaired = data.decode(errors="replace").removeprefix("\ufeff")
    beyond_ascii = len(repaired) - len(repaired.encode("ascii", "ignore"))
    if 2 * repaired.count("\ufffd") < beyond_ascii:
        return repaired, "utf-8"
    encoding = _detected_encoding(data)
    return _composed(data.decode(encoding, errors="replace"), encoding), encoding


def _utf16_order(data: bytes) -> str:
    """The encoding of UTF-16 without a byte order mark: every other byte of ASCII text is zero."""
    sample = data[: 1 << 16]
    zeros_first = sample[0::2].count(0)
    zeros_second = sample[1::2].count(0)
    smaller, larger = sorted((zeros_first, zeros_second))
    if len(data) % 2 or larger < len(sample) / 5 or smaller > larger / 20:
        return ""
    return "utf-16-be" if zeros_first > zeros_second else "utf-16-le"


def _encoding_by_label(label: str) -> str | None:
    """Python's name of a declared encoding; None for an unknown or absent one."""
    label = label.strip().lower()
    if not label:
        return None
    name = ENCODINGS_BY_LABEL.get(label, label)
    try:
        b" ".decode(name)
    except (LookupError, ValueError):
        return None
    return name


def _fits(data: bytes, encoding: str) -> bool:
    """Whether few bytes beyond ASCII are wrong in this encoding."""
    text = data.decode(encoding, errors="replace")
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    return text.count("\ufffd") <= max(1, MOST_WRONG * beyond_ascii)


def _composed(text: str, encoding: str) -> str:
    """The text with Vietnamese letters and their tones made one, which are two in Windows-1258."""
    if encoding.lower().endswith("1258"):
        return unicodedata.normalize("NFC", text)
    return text


def _detected_encoding(data: bytes) -> str:
    """The likeliest encoding but UTF-8; Windows-1252 where none is likely."""
    from chardet import detect_all

    if not _WESTERN_LETTER.search(data):
        return WESTERN
    candidates = detect_all(data, ignore_threshold=True, include_encodings=DETECTED_ENCODINGS)
    likelihoods: dict[str, float] = {}
    for candidate in candidates:
        name = candidate["encoding"] or WESTERN
        likelihoods.setdefault(name.lower(), candidate["confidence"])
    least = USUAL_SHARE * max(likelihoods.values(), default=0.0)
    for usual_encoding in USUAL_ENCODINGS:
        if likelihoods.get(usual_encoding, 0.0) >= least:
            return ENCODINGS_BY_LABEL.get(usual_encoding, usual_encoding)
    likeliest = max(likelihoods, key=lambda name: likelihoods[name])
    return ENCODINGS_BY_LABEL.get(likeliest, likeliest)
