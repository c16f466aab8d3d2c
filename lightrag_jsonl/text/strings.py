"""Basic text functions: storable texts, digests, and short forms for display."""

import hashlib

from lightrag_jsonl.text.patterns import pattern_of

# White space that texts do not use, in place of each character that is not to be seen.
UNSEEN = "\u2008"


def sanitize(text: str) -> str:
    """The text with U+FFFD for lone surrogates and NUL, for UTF-8 and SQLite; of the same length."""
    try:
        text.encode()  # much faster than looking at each character
    except UnicodeEncodeError:
        return _UNSTORABLE.sub("\ufffd", text)
    return text.replace("\0", "\ufffd")


def digest(*parts: str) -> str:
    """16 hex digits of SHA-256 over the parts, each after the length in bytes."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        sha.update(len(data).to_bytes(8, "big") + data)
    return sha.hexdigest()[:16]


def counted(number: int, nouns: str) -> str:
    """A number before a noun in the plural, which becomes singular after 1: "1 new entity", "2,000 chunks"."""
    if number == 1:
        nouns = f"{nouns[:-3]}y" if nouns.endswith("ies") else nouns.removesuffix("s")
    return f"{number:,} {nouns}"


def single_spaced(text: str | None) -> str:
    """The words of a text on one line, with single spaces; "" for None."""
    return " ".join((text or "").split())


def clipped(text: str, limit: int) -> str:
    """The text on one line, cut to at most `limit` characters and "…"."""
    return cut(" ".join(text.split()), limit)


def clipped_at_word(text: str, limit: int) -> str:
    """The text on one line, cut like `clipped`, but not within a word of letters with spaces around; wrapped
    lines of Chinese are joined without a space.
    """
    line = joined_lines(text)
    if len(line) > limit and line[limit].isalnum():
        half_word = _HALF_WORD.search(line, max(limit - _LONGEST_CUT_WORD, 0), limit)
        if half_word:
            return line[: half_word.start()].rstrip() + "…"
    return cut(line, limit)


def clipped_at_mark(text: str, limit: int, mark: str) -> str:
    """The text on one line, cut like `clipped_at_word`, and at its beginning, too, if the first `mark`
    could not be seen otherwise.
    """
    line = joined_lines(text)
    start = line.find(mark) - limit // 2
    if start <= limit // 4:
        return clipped_at_word(line, limit)
    space = line.find(" ", start, start + limit // 4)
    return "…" + clipped_at_word(line[max(space + 1, start) :], limit)


def cut(text: str, limit: int, *, ending: int = 0) -> str:
    """A text of at most `limit` characters as it is; of a longer one the beginning, "…", and the
    last `ending` characters.
    """
    if len(text) <= limit:
        return text
    return text[: limit - ending].rstrip() + "…" + text[len(text) - ending :].lstrip()


def joined_lines(text: str) -> str:
    """A text with single spaces; wrapped lines of Chinese are joined without a space."""
    if "\n" in text:
        text = _BREAK_IN_CHINESE.sub("", text)
    return " ".join(text.split())


def on_one_line(text: str) -> str:
    """A text without line breaks."""
    return text if text.isprintable() else " ".join(text.split())


def fingerprint(text: str) -> str:
    """A digest of the text of a passage, whatever the white space and the case, which its copies share; it is
    stored, so other rules need a new `FORMAT` of the storage.
    """
    return digest(" ".join(text.casefold().split()))


def words(listed: str) -> frozenset[str]:
    """The words of a list in a single string."""
    return frozenset(listed.split())


_LONGEST_CUT_WORD = 24  # characters: longer ones are cut
_UNSPACED = r"[\u3001-\u303f\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff65]"
_BREAK_IN_CHINESE = pattern_of(
    rf"(?<={_UNSPACED})[^\S\n]*\n\s*(?={_UNSPACED})|(?<=[，、；：])[^\S\n]*\n\s*"
)
_HALF_WORD = pattern_of(r"(?<=\s)[A-Za-zÀ-ɏ0-9'’-]+$")
_UNSTORABLE = pattern_of("[\x00\ud800-\udfff]")
