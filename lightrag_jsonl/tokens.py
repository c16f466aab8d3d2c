"""Counts tokens, and cuts texts to a number of tokens, with tiktoken or a fitted counter."""

from __future__ import annotations

import binascii
import functools
import hashlib
import re
import threading
import unicodedata
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING

from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.indexfiles import check_not_of_index
from lightrag_jsonl.protocols import Tokenizer
from lightrag_jsonl.text import sanitize

if TYPE_CHECKING:
    from tiktoken import Encoding

DEFAULT_ENCODING = "o200k_base"
DOWNLOAD_SECONDS = 5.0


def default_tokenizer() -> Tokenizer:
    """o200k by tiktoken if its ranks are cached or can be fetched within 5 s, else the fitted counter.

    The network is tried once in each process.
    """
    if _cached_encoding(DEFAULT_ENCODING) is None:
        return FittedTokenizer()
    return TiktokenTokenizer()


class TiktokenTokenizer:
    """Exact tokens of one of OpenAI's encodings; special tokens in a text count as ordinary text.

    `ranks` is a downloaded rank file (`o200k_base.tiktoken`). Without it, tiktoken's own cache
    (`TIKTOKEN_CACHE_DIR`) is used, then the network. Nothing is loaded before the first count,
    which raises `ConfigError` if the ranks are not available. Runs of thousands of characters
    without a word boundary are counted in pieces.
    """

    error = 0.0
    additive = True

    def __init__(
        self, encoding: str = DEFAULT_ENCODING, *, ranks: Path | str | None = None
    ) -> None:
        self.name = encoding
        self._ranks = None if ranks is None else Path(ranks)

    def count(self, text: str) -> int:
        """The number of tokens of a text of any length, in linear time."""
        return sum(len(self._ids(text[start:end])) for start, end in _pieces(text))

    def truncate(self, text: str, limit: int) -> str:
        """A longest prefix that has at most `limit` tokens and ends between characters."""
        used = 0
        for start, end in _pieces(text):
            ids = self._ids(text[start:end])
            if used + len(ids) > limit:
                return text[:start] + self._fit(text[start:end], ids, limit - used)
            used += len(ids)
        return text

    def _fit(self, piece: str, ids: list[int], room: int) -> str:
        """The prefix that a piece's first `room` tokens cover; shorter, if on its own it has more tokens."""
        for kept in range(room, 0, -1):
            known = self._encoding.decode_bytes(ids[:kept]).decode("utf-8", errors="ignore")
            prefix = piece[: character_boundary(piece, len(known))]
            if len(self._ids(prefix)) <= room:
                return prefix
        return ""

    def _ids(self, text: str) -> list[int]:
        return list(self._encoding.encode_ordinary(sanitize(text)))

    @functools.cached_property
    def _encoding(self) -> Encoding:
        if self._ranks is not None:
            return _build(self.name, functools.partial(_given_ranks, self._ranks))
        encoding = _cached_encoding(self.name)
        if encoding is None:
            raise ConfigError(
                f"the ranks of {self.name} are neither cached nor downloadable here: pass"
                " ranks=<file>, set TIKTOKEN_CACHE_DIR, or use FittedTokenizer()"
            )
        return encoding


class FittedTokenizer:
    """Approximates o200k without its ranks: each match of a pattern counts as one token.

    It is within 10 % of o200k on the English prose, source code, and classical and modern Chinese
    it was measured on; `error` is the share it promises. Other scripts are less exact, and random
    letters and digits are undercounted by a fifth.
    """

    name = "o200k_fitted_1"
    error = 0.15
    additive = True

    def count(self, text: str) -> int:
        """The estimated number of tokens, in linear time."""
        return (_ASCII_TOKEN if text.isascii() else _TOKEN).subn("", text)[1]

    def truncate(self, text: str, limit: int) -> str:
        """The longest prefix of at most `limit` tokens that ends between characters."""
        for kept in range(limit, 0, -1):
            last = deque(islice(_TOKEN.finditer(text), kept), maxlen=1)
            prefix = text[: character_boundary(text, last[0].end() if last else 0)]
            if self.count(prefix) <= limit:
                return prefix
        return ""


class RememberingTokenizer:
    """Caches another tokenizer's counts of short texts, since the lines of contexts recur."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.name = tokenizer.name
        self.error = getattr(tokenizer, "error", 0.0)
        self.additive = getattr(tokenizer, "additive", False)
        self.truncate = tokenizer.truncate
        self._count = tokenizer.count
        self._remembered = functools.lru_cache(_REMEMBERED)(tokenizer.count)

    def count(self, text: str) -> int:
        """What the other tokenizer counts."""
        return self._remembered(text) if len(text) <= _SHORT else self._count(text)


_REMEMBERED, _SHORT = 20_000, 1_000  # texts, and characters of the longest of them


def character_boundary(text: str, position: int) -> int:
    """The last place at or before `position` that is not inside what readers see as one character.

    Combining marks, joined and coloured emoji, flags, Hangul letters, surrogate pairs and CR LF are
    kept together; sequences of more than 32 code points, which no script has, are not.
    """
    position = max(0, min(position, len(text)))
    for place in range(position, max(position - _LONGEST_CHARACTER, 0), -1):
        if place == len(text) or not _joined(text, place):
            return place
    return 0 if position <= _LONGEST_CHARACTER else position


# ── characters ──────────────────────────────────────────────────────────────────

_LONGEST_CHARACTER = 32
_ZWJ = "\u200d"
_JOINERS = ("\u200c", _ZWJ)
_FIRST_MARK = "\u0300"
_UNMARKED = ("Cc", "Cf", "Zl", "Zp")  # controls and line ends, to which marks do not attach


def _joined(text: str, place: int) -> bool:
    """Whether the characters on both sides of a place belong together."""
    before, after = text[place - 1], text[place]
    if after < _FIRST_MARK:
        return before == "\r" and after == "\n"
    if unicodedata.category(before) in _UNMARKED and not _is_joiner(before):
        return False
    kind = unicodedata.category(after)
    if after in _JOINERS or kind[0] == "M" or (before == _ZWJ and kind == "So"):
        return True
    if _is_flag_letter(after):
        letters = place
        while letters > 0 and place - letters < 2 * _LONGEST_CHARACTER:
            if not _is_flag_letter(text[letters - 1]):
                break
            letters -= 1
        return (place - letters) % 2 == 1
    return (
        "\U0001f3fb" <= after <= "\U0001f3ff"  # skin colours
        or _is_tag(after)
        or _in_syllable(before, after)
        or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
    )


def _in_syllable(before: str, after: str) -> bool:
    """Whether two Hangul letters belong to one syllable."""
    if "\u1160" <= after <= "\u11ff":  # vowels and finals
        return "\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3"
    initial = "\u1100" <= before <= "\u115f"
    return initial and ("\u1100" <= after <= "\u115f" or "\uac00" <= after <= "\ud7a3")


def _is_joiner(char: str) -> bool:
    return char in _JOINERS or _is_tag(char)


def _is_tag(char: str) -> bool:
    """Whether a character is one of the invisible ones that spell the region in a flag."""
    return "\U000e0020" <= char <= "\U000e007f"


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


# ── tiktoken ────────────────────────────────────────────────────────────────────

# tiktoken is slow on long runs without boundaries, and crashes on a megabyte of spaces. After a
# word, in front of what begins a new token, a text can be cut without changing any token.
_PIECE = 4_000
_SEARCH = 1_000
_BREAK = re.compile(r"(?<=[^\W_])[ \n，。、；：！？“”《》（）]")


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Spans of at most `_PIECE` characters whose tokens add up to those of the text."""
    start = 0
    while len(text) - start > _PIECE:
        limit = start + _PIECE
        last = deque(_BREAK.finditer(text, limit - _SEARCH, limit), maxlen=1)
        end = last[0].start() if last else character_boundary(text, limit)
        yield start, end
        start = end
    if start < len(text):
        yield start, len(text)


@functools.cache
def _cached_encoding(name: str) -> Encoding | None:
    """The encoding, with ranks from tiktoken's cache or the network; None if there are none."""
    try:
        return _build(name, _fetched_ranks)
    except (OSError, ValueError, ImportError):
        return None


def _build(name: str, read: Callable[[str, str], bytes]) -> Encoding:
    """tiktoken's encoding of that name, with `read(url, sha256)` in place of its own download.

    Its constructor is run with another `load_tiktoken_bpe` among its globals, since tiktoken's own
    accepts neither a file nor a time limit, and holds a process-wide lock while it waits.
    """
    import tiktoken
    from tiktoken_ext import openai_public

    constructor = openai_public.ENCODING_CONSTRUCTORS.get(name)
    if constructor is None:
        known = ", ".join(sorted(openai_public.ENCODING_CONSTRUCTORS))
        raise ConfigError(f"unknown encoding {name!r}; tiktoken has {known}")

    def load(url: str, expected_hash: str = "") -> dict[bytes, int]:
        return _parse_ranks(read(url, expected_hash))

    patched = FunctionType(constructor.__code__, vars(openai_public) | {"load_tiktoken_bpe": load})
    return tiktoken.Encoding(**patched())


def _parse_ranks(data: bytes) -> dict[bytes, int]:
    words = data.split()
    return dict(zip(map(binascii.a2b_base64, words[::2]), map(int, words[1::2]), strict=True))


def _given_ranks(path: Path, url: str, expected_hash: str) -> bytes:
    check_not_of_index(path)
    try:
        data = path.read_bytes()
    except OSError as cause:
        raise ConfigError(f"cannot read the ranks {path}: {cause}") from cause
    if expected_hash and hashlib.sha256(data).hexdigest() != expected_hash:
        raise ConfigError(f"{path} is not the rank file of this encoding; it is at {url}")
    return data


def _fetched_ranks(url: str, expected_hash: str) -> bytes:
    """The ranks from tiktoken's cache or the network; `TimeoutError` after 5 s."""
    from tiktoken.load import read_file_cached

    fetched: list[bytes] = []
    failed: list[OSError | ValueError | ImportError] = []

    def fetch() -> None:
        try:
            fetched.append(read_file_cached(url, expected_hash))
        except (OSError, ValueError, ImportError) as error:
            failed.append(error)

    thread = threading.Thread(target=fetch, name="token-ranks", daemon=True)
    thread.start()
    thread.join(DOWNLOAD_SECONDS)
    if failed:
        raise failed[0]
    if not fetched:
        raise TimeoutError(f"{url} did not arrive within {DOWNLOAD_SECONDS:g} s")
    return fetched[0]


# ── the fitted counter ──────────────────────────────────────────────────────────

# Lengths per token were chosen by counting against o200k: eight letters of a Latin word, six
# Cyrillic ones, one Han character but for the pairs that modern prose repeats. No alternative
# looks ahead, so the text before the end of a match has the same matches; all are bounded, so
# no run of one character is quadratic or counts as one.
_PAIRS = (
    "我们|他们|一个|中国|可以|没有|自己|什么|这个|就是|因为|所以|如果|但是|以及|由于|其中|主要|成为|开始"
    "|使用|进行|通过|发现|认为|发展|研究|国家|政府|公司|大学|世界|社会|经济|历史|文化|时间|工作|生活|问题"
    "|可能|影响|管理|系统|服务|技术|地区|美国|日本|国际|不同|重要|第一|一些|还有|已经|现在|不能|如此|今日"
    "|包括|作为|之后|目前|其他|部分|组织|提供|出现|情况|需要|建议|继续|增加|功能|根据|导致|关系|活动|学校"
    "|成立|获得|作品|电影|音乐|城市|风险|阶段|的人|的一|中的|是一|年的|他的|我的"
)
_HAN = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3040-\u30ff"
_HANGUL = "\uac00-\ud7ff"
_TOKEN = re.compile(
    "|".join(
        (
            f"(?=[{_HAN}])(?:{_PAIRS}|.)",
            r"[\u3000-\u303f\uff00-\uffef][\r\n]{0,8}",
            r"[^\w\r\n]?_?[A-ZÀ-ÖØ-Þ]?[a-zß-öø-ÿ]{1,8}",
            r"[^\w\r\n]?_?[A-ZÀ-ÖØ-Þ]{1,3}",
            r"\d{1,3}",
            f"[{_KANA}]{{1,2}}",
            f" ?[{_HANGUL}]{{1,2}}",
            r" ?[\u0370-\u052f]{1,6}",
            rf" ?[^\W\d_{_HAN}{_KANA}{_HANGUL}]{{1,4}}",
            r" ?[!-/:-@\[-`{-~]{1,2}[\r\n/]{0,8}",
            r"\s{0,40}[\r\n]{1,8}",
            r"\s{1,40}",
            r"(?s:.)",
        )
    )
)
_SPACE = r"[\t-\r\x1c-\x20]"
_NO_WORD = r"[^0-9A-Za-z_\r\n]"
_ASCII_TOKEN = re.compile(  # the same where there is nothing but ASCII, in two thirds of the time
    "|".join(
        (
            rf"{_NO_WORD}?_?[A-Z]?[a-z]{{1,8}}",
            rf"{_NO_WORD}?_?[A-Z]{{1,3}}",
            r"[0-9]{1,3}",
            r" ?[!-/:-@\[-`{-~]{1,2}[\r\n/]{0,8}",
            rf"{_SPACE}{{0,40}}[\r\n]{{1,8}}",
            rf"{_SPACE}{{1,40}}",
            r"(?s:.)",
        )
    )
)
