"""Tokens: counts that are right or nearly so, and cuts that keep characters whole."""

import logging
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import ConfigError, Tokenizer
from lightrag_jsonl.core import tokens
from lightrag_jsonl.core.tokens import FittedTokenizer, TiktokenTokenizer, character_boundary
from tests.kit import rows_of, unzipped

FAMILY = "👩\u200d👩\u200d👧"
PARTS = ["word ", "的", "，", "中国", "１２", "é", "e\u0301", FAMILY, "🇨🇳", "👍🏽", "\r\n", "  "]
texts = st.lists(st.sampled_from([*PARTS, "<|endoftext|>"]) | st.text(max_size=5), max_size=40).map(
    "".join
)


@pytest.fixture
def no_encodings() -> Iterator[None]:
    """Forget whether ranks were found, before and after the test."""
    import tiktoken.registry

    loaded = dict(tiktoken.registry.ENCODINGS)
    tiktoken.registry.ENCODINGS.clear()
    tokens._encoding.cache_clear()
    yield
    tiktoken.registry.ENCODINGS |= loaded
    tokens._encoding.cache_clear()


@pytest.fixture(params=["fitted", "tiktoken"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    """Either tokenizer, for promises that hold for both."""
    if request.param == "fitted":
        return FittedTokenizer()
    exact: TiktokenTokenizer = request.getfixturevalue("o200k")
    return exact


@pytest.mark.slow
def test_both_tokenizers_keep_their_promises_on_real_texts(
    shared_data: Path, o200k: TiktokenTokenizer
) -> None:
    """tiktoken's counts are exact although texts are counted in pieces; the fitted ones are within
    10 % on English prose, code, classical and modern Chinese.
    """
    passages = rows_of(shared_data / "zh-cmrc2018" / "passages.jsonl.gz")[:300]
    library = Path(sysconfig.get_paths()["stdlib"])
    samples = {
        "novel": unzipped(shared_data / "text" / "christmas_carol.txt.gz"),
        "classical Chinese": unzipped(shared_data / "text" / "sanguo_yanyi.txt.gz")[:100_000],
        "modern Chinese": "\n".join(one["text"] for one in passages),
        "code": "\n".join((library / f"{n}.py").read_text("utf-8") for n in ("ast", "typing")),
    }
    fitted = FittedTokenizer()
    for kind, text in samples.items():
        exact = len(o200k._encoding.encode_ordinary(text))
        assert o200k.count(text) == exact, kind
        assert abs(fitted.count(text) - exact) <= 0.1 * exact, kind


@pytest.mark.parametrize("limit", [-1, 0, 1, 2, 7, 50])
def test_truncate_gives_a_prefix_within_the_limit(tokenizer: Tokenizer, limit: int) -> None:
    """For any text, also one that spells a control token: a prefix, never over the limit, whole where
    it fits, no character cut.
    """

    @given(texts)
    def check(text: str) -> None:
        cut = tokenizer.truncate(text, limit)
        assert text.startswith(cut)
        assert tokenizer.count(cut) <= max(limit, 0)
        assert character_boundary(text, len(cut)) == len(cut)
        if tokenizer.count(text) <= limit:
            assert cut == text

    check()
    assert tokenizer.count("<|endoftext|>") > 1 and tokenizer.count("") == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["a", "的", "。", " ", "\n", "ab ", "x=1;", "e\u0301", "\ud83d", "\x00"]
)
def test_long_runs_are_counted_and_cut(tokenizer: Tokenizer, unit: str) -> None:
    """A megabyte without a boundary (tiktoken alone panics on spaces) neither hangs nor fails."""
    text = unit * (1_000_000 // len(unit))

    assert tokenizer.count(text) > 1000
    cut = tokenizer.truncate(text, 1000)
    assert text.startswith(cut)
    assert 900 <= tokenizer.count(cut) <= 1000
    assert character_boundary("a" + "\u0301" * 1_000_000, 900_000) == 900_000


def test_the_default_without_ranks_is_the_fitted_counter(
    no_encodings: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No cache and no network: a working tokenizer, not an error."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))

    found = tokens.default_tokenizer()

    assert isinstance(found, FittedTokenizer) and found.error == 0.05
    with pytest.raises(ConfigError, match="TIKTOKEN_CACHE_DIR"):
        TiktokenTokenizer().count("a")
    with pytest.raises(ConfigError, match="no encoding 'o300k'"):
        TiktokenTokenizer("o300k").count("a")


def test_a_network_that_swallows_everything_costs_a_few_seconds_once(
    no_encodings: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A download that never answers is given up after the limit, and not tried again."""
    import threading

    import tiktoken

    calls = []
    end = threading.Event()

    def wait(name: str) -> object:
        calls.append(name)
        end.wait(10)
        raise OSError(name)

    monkeypatch.setattr(tiktoken, "get_encoding", wait)
    monkeypatch.setattr(tokens, "DOWNLOAD_SECONDS", 0.05)

    assert isinstance(tokens.default_tokenizer(), FittedTokenizer)
    assert isinstance(tokens.default_tokenizer(), FittedTokenizer)
    end.set()
    assert calls == ["o200k_base"]


def test_cached_ranks_are_read_however_long_that_takes(
    no_encodings: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine counts a new index's tokens like any other: only the network has a limit, and a
    download that has arrived is read without one, too.
    """
    import threading

    import tiktoken

    looks = []
    slow_reading_ends = threading.Event()
    are_ranks_cached = tokens._are_ranks_cached

    def look(name: str) -> bool:
        looks.append(name)
        if len(looks) == 3:
            hashed = "fb374d419588a4632f3f557e76b4b70aebbca790"  # tiktoken's file of o200k_base
            (tmp_path / hashed).write_bytes(b"")
        if len(looks) == 30:
            slow_reading_ends.set()
        return are_ranks_cached(name)

    encoding = tiktoken.Encoding(
        "o200k_base",
        pat_str=".",
        mergeable_ranks={bytes([code]): code for code in range(256)},
        special_tokens={},
    )
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tokens, "_are_ranks_cached", look)
    monkeypatch.setattr(tokens, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(tokens, "DOWNLOAD_SECONDS", 0.004)
    monkeypatch.setattr(
        tiktoken, "get_encoding", lambda name: slow_reading_ends.wait() and encoding
    )

    assert tokens.default_tokenizer().name == "o200k_base" and len(looks) >= 30


def test_ranks_are_looked_for_where_tiktoken_keeps_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In the folder of either variable or the temporary one, under the address that tiktoken reads;
    an empty variable means that nothing is kept.
    """
    import inspect
    import tempfile

    from tiktoken_ext import openai_public

    for name in ("o200k_base", "cl100k_base"):
        constructor = openai_public.ENCODING_CONSTRUCTORS[name]
        assert tokens.RANKS_URL.format(name) in inspect.getsource(constructor)
    (tmp_path / "data-gym-cache").mkdir()
    file = tmp_path / "data-gym-cache" / "fb374d419588a4632f3f557e76b4b70aebbca790"
    file.write_bytes(b"")
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    assert tokens._are_ranks_cached("o200k_base") and not tokens._are_ranks_cached("cl100k_base")
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(file.parent))
    assert tokens._are_ranks_cached("o200k_base")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert not tokens._are_ranks_cached("o200k_base")


def test_an_index_keeps_the_name_of_its_tokenizer(
    no_encodings: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A recorded tokenizer that is not available is replaced under its name, with a warning."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert (
        tokens.tokenizer_for(None).name
        == tokens.tokenizer_for("o200k_fitted_1").name
        == "o200k_fitted_1"
    )
    assert not caplog.records

    with caplog.at_level(logging.WARNING):
        found = tokens.tokenizer_for("o200k_base")

    assert (found.name, found.count("Merry Christmas")) == ("o200k_base", 2)
    assert "o200k_base" in caplog.text
    assert FittedTokenizer().name == "o200k_fitted_1"
