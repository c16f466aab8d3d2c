"""Counts tokens, and cuts texts to a number of tokens, with tiktoken or a fitted counter."""

import contextlib
import functools
import hashlib
import logging
import math
import os
import threading
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from lightrag_jsonl.core.errors import ConfigError, required_packages
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import sanitize

if TYPE_CHECKING:
    from tiktoken import Encoding

log = logging.getLogger(__name__)

DEFAULT_ENCODING = "o200k_base"
DOWNLOAD_SECONDS = 5.0
LOOK_SECONDS = 0.05  # between two looks whether the ranks have arrived
RANKS_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"  # tiktoken's own


def default_tokenizer() -> Tokenizer:
    """o200k by tiktoken if the ranks are cached, or fetched within 5 s; else `FittedTokenizer`."""
    return FittedTokenizer() if _encoding(DEFAULT_ENCODING) is None else TiktokenTokenizer()


def tokenizer_for(recorded_name: str | None) -> Tokenizer:
    """The tokenizer with the recorded name; if missing, the default under this name, with a warning."""
    if recorded_name == FittedTokenizer.name:
        return FittedTokenizer()
    tokenizer = default_tokenizer()
    if recorded_name is None or tokenizer.name == recorded_name:
        return tokenizer
    words = "this index counts tokens with %s, which is missing here; %s may differ a little"
    log.warning(words, recorded_name, tokenizer.name)
    tokenizer.name = recorded_name  # type: ignore[misc]  # the index's settings must not change
    return tokenizer


class TiktokenTokenizer:
    """Exact tokens of an encoding of OpenAI's; special tokens in a text count as ordinary text.

    The first count reads the ranks from tiktoken's cache (`TIKTOKEN_CACHE_DIR`) or from the network,
    and raises `ConfigError` without both after 5 s.
    """

    additive = True

    def __init__(self, encoding: str = DEFAULT_ENCODING) -> None:
        self.name = self._encoding_name = encoding

    def count(self, text: str) -> int:
        """The number of tokens of a text of any length, in linear time."""
        if len(text) <= _PIECE:
            return len(self._ids(text))
        return sum(len(self._ids(piece)) for piece in _pieces(text))

    def truncate(self, text: str, limit: int) -> str:
        """A longest prefix that has at most `limit` tokens and ends between characters."""
        prefix = ""
        for piece in _pieces(text):
            ids = self._ids(piece)
            if len(ids) > limit:
                return prefix + self._fit(piece, ids, limit)
            prefix += piece
            limit -= len(ids)
        return text

    def _fit(self, piece: str, ids: list[int], limit: int) -> str:
        """The text of a piece's first `limit` tokens, or of fewer if alone it has more tokens."""
        for size in range(limit, 0, -1):
            whole = self._encoding.decode_bytes(ids[:size]).decode("utf-8", errors="ignore")
            prefix = piece[: character_boundary(piece, len(whole))]
            if len(self._ids(prefix)) <= limit:
                return prefix
        return ""

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._encoding.encode_ordinary(sanitize(text))
        return ids

    @functools.cached_property
    def _encoding(self) -> "Encoding":
        encoding = _encoding(self._encoding_name)
        if encoding is None:
            raise ConfigError(
                f"tiktoken has no encoding {self._encoding_name!r}, or its ranks are neither cached "
                "nor downloadable here: set TIKTOKEN_CACHE_DIR, or use FittedTokenizer()"
            )
        return encoding


class FittedTokenizer:
    """Approximates o200k without its ranks: each match of a pattern counts as one token.

    Counts are within 10 % of o200k on English prose, source code, and classical and modern Chinese;
    of lists and tables of one company after another, up to a quarter too many. `error` is what a budget
    holds back: a novel has 5 % more tokens than counted here. Random letters and digits are undercounted
    by a fifth.
    """

    name = "o200k_fitted_1"
    error = 0.05
    additive = True

    def count(self, text: str) -> int:
        """The estimated number of tokens, in linear time."""
        return _TOKEN.subn("", text)[1]

    def truncate(self, text: str, limit: int) -> str:
        """The longest prefix that has at most `limit` tokens and ends between characters."""
        if len(text) <= limit:  # each token has a character
            return text
        for size in range(limit, 0, -1):
            last = deque(islice(_TOKEN.finditer(text), size), maxlen=1)
            prefix = text[: character_boundary(text, last[0].end() if last else 0)]
            if self.count(prefix) <= limit:
                return prefix
        return ""


def character_boundary(text: str, position: int) -> int:
    """The last position at or before `position` outside a grapheme cluster, a character in the eyes
    of readers: a family emoji, a letter with accents, CR LF.

    Clusters of more than 64 code points, more than in any script, are cut.
    """
    position = max(0, min(position, len(text)))
    if position == len(text) or _SIMPLE.match(text, position - 1):
        return position
    start = max(0, position - _LONGEST_CHARACTER)
    for cluster in _CHARACTER.finditer(text, start, position + _LONGEST_CHARACTER):
        if cluster.end() > position:
            return position if 0 < start == cluster.start() else cluster.start()
    return position


_CHARACTER = pattern_of(r"\X", module="regex")
_LONGEST_CHARACTER = 64  # code points
_SIMPLE = pattern_of("[\n -~\u3000-\u3029\u3400-\u9fff\uff01-\uff60]{2}")  # a boundary is between


# tiktoken is slow on long runs without boundaries, and crashes on a megabyte of spaces. After a
# word, in front of what begins a new token, a text can be cut without changing any token.
_PIECE = 4_000
_SEARCH = 1_000
_BREAK = pattern_of(r"(?<=[^\W_])[ \n，。、；：！？“”《》（）]")


def _pieces(text: str) -> Iterator[str]:
    """Parts of at most `_PIECE` characters; the tokens of the text are the tokens of the parts."""
    start = 0
    while len(text) - start > _PIECE:
        limit = start + _PIECE
        last = deque(_BREAK.finditer(text, limit - _SEARCH, limit), maxlen=1)
        end = last[0].start() if last else character_boundary(text, limit)
        yield text[start:end]
        start = end
    yield text[start:]


@functools.cache
def _encoding(name: str) -> "Encoding | None":
    """tiktoken's encoding, with ranks from the cache or the network; None after 5 s without ranks.

    Only the network has a time limit, as tiktoken sets no limit. Cached ranks are read to the end: a
    busy machine must not decide the tokenizer of a new index.
    """
    with required_packages():
        import tiktoken  # before the clock runs

    encodings: list[Encoding] = []

    def load() -> None:
        with contextlib.suppress(OSError, ValueError, ImportError):
            encodings.append(tiktoken.get_encoding(name))

    thread = threading.Thread(target=load, name="token-ranks", daemon=True)
    thread.start()
    waits = math.ceil(DOWNLOAD_SECONDS / LOOK_SECONDS)
    while thread.is_alive() and waits > 0:
        thread.join(LOOK_SECONDS)
        if not _are_ranks_cached(name):
            waits -= 1
    return encodings[0] if encodings else None


def _are_ranks_cached(name: str) -> bool:
    """Whether the file with an encoding's ranks exists in tiktoken's folder."""
    from tempfile import gettempdir

    default = str(Path(gettempdir()) / "data-gym-cache")
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR", default))
    file = hashlib.sha1(RANKS_URL.format(name).encode(), usedforsecurity=False).hexdigest()
    return bool(folder) and (Path(folder) / file).exists()


# Lengths per token were chosen by counting against o200k: eight letters of a Latin word, six of a
# Cyrillic word, a Han character but for the frequent pairs of modern prose. No alternative looks
# ahead, so the text before the end of a match has the same matches; all are bounded, so no run of
# the same character is quadratic or counts as a single token.
_HAN_PAIRS = (
    "我们|他们|一个|中国|可以|没有|自己|什么|这个|就是|因为|所以|如果|但是|以及|由于|其中|主要|成为|开始"
    "|使用|进行|通过|发现|认为|发展|研究|国家|政府|公司|大学|世界|社会|经济|历史|文化|时间|工作|生活|问题"
    "|可能|影响|管理|系统|服务|技术|地区|美国|日本|国际|不同|重要|第一|一些|还有|已经|现在|不能|如此|今日"
    "|包括|作为|之后|目前|其他|部分|组织|提供|出现|情况|需要|建议|继续|增加|功能|根据|导致|关系|活动|学校"
    "|成立|获得|作品|电影|音乐|城市|风险|阶段|的人|的一|中的|是一|年的|他的|我的"
)
_HAN = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3040-\u30ff"
_HANGUL = "\uac00-\ud7ff"
_TOKEN = pattern_of(
    f"(?=[{_HAN}])(?:{_HAN_PAIRS}|.)"
    r"|[\u3000-\u303f\uff00-\uffef][\r\n]{0,8}"
    r"|[^\w\r\n]?_?[A-ZÀ-ÖØ-Þ]?[a-zß-öø-ÿ]{1,8}"
    r"|[^\w\r\n]?_?[A-ZÀ-ÖØ-Þ]{1,3}"
    r"|\d{1,3}"
    f"|[{_KANA}]{{1,2}}"
    f"| ?[{_HANGUL}]{{1,2}}"
    r"| ?[\u0370-\u052f]{1,6}"
    rf"| ?[^\W\d_{_HAN}{_KANA}{_HANGUL}]{{1,4}}"
    r"| ?[!-/:-@\[-`{-~]{1,2}[\r\n/]{0,8}"
    r"|\s{0,40}[\r\n]{1,8}"
    r"|\s{1,40}"
    r"|(?s:.)"
)
