"""Decodes text files in any common encoding."""

import codecs

from lightrag_jsonl.core.errors import ConfigError

_OTHER_FORMATS = (b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"{\\rtf", b"\x1f\x8b")
_ENCODINGS = ["gb18030", "big5", "shift_jis", "euc_jp", "euc_kr", "cp1252", "cp1251", "koi8_r"]


def decoded(data: bytes, name: str = "the file") -> str:
    """The text of a file's bytes: UTF-8, UTF-16 or UTF-32 with a byte order mark, or else the
    likeliest encoding. `ConfigError`, with the file's `name`, if no encoding fits.
    """
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):  # begins like that of UTF-16
        return data.decode("utf-32", errors="replace")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    if data.startswith(_OTHER_FORMATS) or b"\0" in data:
        raise ConfigError(f"{name} is no text file: convert it to text, .pdf or .docx")
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        if (text := _decoded_by_guess(data)) is not None:
            return text
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{name} cannot be read: as UTF-8 it is wrong at byte {error.start + 1:,}, in line "
            f"{line:,}, and no other encoding fits. Convert it to UTF-8 first"
        ) from error


def _decoded_by_guess(data: bytes) -> str | None:
    """The text in the likeliest encoding; None if no encoding fits, or for UTF-8 with a few errors."""
    from charset_normalizer import from_bytes

    repaired = data.decode(errors="replace")
    wrong = repaired.count("\ufffd")
    if 2 * wrong < len(repaired) - len(repaired.encode("ascii", "ignore")):
        return None
    chinese = data.decode("gb18030", errors="replace")
    if _is_chinese(chinese):
        return chinese
    best = from_bytes(data, cp_isolation=_ENCODINGS).best()
    return None if best is None else str(best)


def _is_chinese(text: str) -> bool:
    """Whether a text decoded from GB 18030 consists of frequent characters, unlike Korean."""
    rows = [char.encode("gb2312", "ignore")[:1] for char in set(text) if not char.isascii()]
    frequent = sum(row in b"\xa1\xa3" or b"\xb0" <= row <= b"\xd7" for row in rows if row)
    korean = len(rows) >= 8 and max(rows) <= b"\xc8" and min(rows) >= b"\xb0"
    return frequent > 0.6 * len(rows) and not korean and "\ufffd" not in text
