"""Tokens: counts that are right or nearly so, and cuts that keep characters whole."""

from __future__ import annotations

import gzip
import json
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import tokens
from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.protocols import Tokenizer
from lightrag_jsonl.tokens import (
    FittedTokenizer,
    TiktokenTokenizer,
    character_boundary,
    default_tokenizer,
)

O200K = "fb374d419588a4632f3f557e76b4b70aebbca790"  # tiktoken's own name for the cached file
FAMILY = "👩\u200d👩\u200d👧"
PARTS = [
    "word ",
    "的",
    "，",
    "中国",
    "１２",
    "é",
    "e\u0301",
    FAMILY,
    "🇨🇳",
    "👍🏽",
    "\r\n",
    "  ",
    "<|endoftext|>",
]
texts = st.lists(st.sampled_from(PARTS) | st.text(max_size=5), max_size=40).map("".join)


@pytest.fixture(scope="session")
def o200k(shared_data: Path) -> TiktokenTokenizer:
    """The exact tokenizer, from the shared rank file."""
    return TiktokenTokenizer(ranks=shared_data / "tiktoken" / O200K)


@pytest.fixture(params=["fitted", "tiktoken"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    """Either tokenizer, for promises that hold for both."""
    if request.param == "fitted":
        return FittedTokenizer()
    exact: TiktokenTokenizer = request.getfixturevalue("o200k")
    return exact


@pytest.fixture
def fresh_cache() -> Iterator[None]:
    """Forget whether ranks were found, before and after the test."""
    tokens._cached_encoding.cache_clear()
    yield
    tokens._cached_encoding.cache_clear()


def read(path: Path) -> str:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read()


def samples(data: Path) -> dict[str, str]:
    """Real texts of the kinds for which an error is promised."""
    passages = read(data / "zh-cmrc2018" / "passages.jsonl.gz").split("\n")
    english = read(data / "musique-a" / "passages_openie.jsonl.gz").split("\n")
    library = Path(sysconfig.get_paths()["stdlib"])
    names = ("argparse", "typing", "ast", "inspect", "shutil", "tarfile")
    return {
        "novel": read(data / "text" / "christmas_carol.txt.gz"),
        "classical Chinese": read(data / "text" / "sanguo_yanyi.txt.gz")[:200_000],
        "modern Chinese": "\n".join(json.loads(line)["text"] for line in passages if line),
        "encyclopedia": "\n".join(json.loads(line)["text"] for line in english if line),
        "code": "\n".join((library / f"{name}.py").read_text("utf-8") for name in names),
    }


def test_the_fitted_counter_keeps_its_promise_on_real_texts(
    shared_data: Path, o200k: TiktokenTokenizer
) -> None:
    """Within 15 % of o200k on English prose, code, classical and modern Chinese."""
    fitted = FittedTokenizer()
    for kind, text in samples(shared_data).items():
        exact = o200k.count(text)
        assert abs(fitted.count(text) - exact) <= fitted.error * exact, kind


@given(st.text(st.characters(max_codepoint=127), max_size=300))
def test_ascii_is_counted_as_any_other_text(text: str) -> None:
    """The shorter way for ASCII finds the tokens of the longer one, which a Han character calls for."""
    assert FittedTokenizer().count(text + "的") == FittedTokenizer().count(text) + 1


def test_tiktoken_counts_are_those_of_tiktoken(shared_data: Path, o200k: TiktokenTokenizer) -> None:
    """Counting in pieces gives exactly what tiktoken gives for the whole text."""
    whole = o200k._encoding
    for kind, text in samples(shared_data).items():
        assert o200k.count(text) == len(whole.encode_ordinary(text)), kind


@pytest.mark.parametrize("limit", [0, 1, 2, 7, 50])
def test_truncate_gives_a_prefix_within_the_limit(tokenizer: Tokenizer, limit: int) -> None:
    """For any text: a prefix, never over the limit, whole where it fits, no character cut."""

    @given(texts)
    def check(text: str) -> None:
        cut = tokenizer.truncate(text, limit)
        assert text.startswith(cut)
        assert tokenizer.count(cut) <= limit
        assert character_boundary(text, len(cut)) == len(cut)
        if tokenizer.count(text) <= limit:
            assert cut == text

    check()


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


def test_a_cut_uses_most_of_its_room(tokenizer: Tokenizer) -> None:
    """Truncating ordinary text leaves at most a character's tokens unused."""
    text = "Scrooge was his sole friend, and sole mourner. 玄德曰：「公言是也。」" * 300
    for limit in (1, 10, 100, 1000):
        assert tokenizer.count(tokenizer.truncate(text, limit)) >= limit - 3


def test_special_tokens_are_ordinary_text(tokenizer: Tokenizer) -> None:
    """A text that spells a control token is neither refused nor counted as one."""
    assert tokenizer.count("<|endoftext|>") > 1
    assert tokenizer.truncate("<|endoftext|> and more", 100) == "<|endoftext|> and more"


def test_nothing_has_no_tokens(tokenizer: Tokenizer) -> None:
    """The empty text counts 0, and a limit of 0 or less leaves the empty text."""
    assert tokenizer.count("") == 0
    assert tokenizer.truncate("", 5) == ""
    assert tokenizer.truncate("abc", 0) == ""
    assert tokenizer.truncate("abc", -1) == ""


@given(
    st.text(st.sampled_from("ab \r\ne\u0301\u200d👩👧🏽🇨🇳的ᄀ각ᆨ\ufe0f"), max_size=30),
    st.integers(0, 30),
)
def test_boundaries_agree_with_unicode(text: str, position: int) -> None:
    """Where a text may be cut, Unicode's grapheme clusters end too."""
    ends = {0, *(match.end() for match in regex.finditer(r"\X", text))}

    place = character_boundary(text, position)
    assert place <= position
    assert place in ends


def test_a_boundary_is_found_in_a_hostile_run_of_marks() -> None:
    """A million marks on one letter do not send the search to the beginning."""
    text = "a" + "\u0301" * 1_000_000
    assert character_boundary(text, 900_000) == 900_000


def test_the_default_without_ranks_is_the_fitted_counter(
    fresh_cache: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No cache and no network: a working tokenizer, not an error."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))

    tokenizer = default_tokenizer()

    assert isinstance(tokenizer, FittedTokenizer)
    assert tokenizer.error == 0.15


def test_the_default_with_cached_ranks_is_tiktoken(
    fresh_cache: None, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranks in tiktoken's own cache folder are used without any network."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(shared_data / "tiktoken"))

    tokenizer = default_tokenizer()

    assert isinstance(tokenizer, TiktokenTokenizer)
    assert (tokenizer.name, tokenizer.error) == ("o200k_base", 0.0)
    assert tokenizer.count("Merry Christmas, 乔峰!") == 8


def test_a_network_that_swallows_everything_costs_a_few_seconds_once(
    fresh_cache: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A download that never answers is given up after the limit, and not tried again."""
    import socket

    import tiktoken.load

    calls = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/o200k_base.tiktoken"

        def read_slowly(_: str, expected_hash: str | None = None) -> bytes:
            calls.append(expected_hash)
            return tiktoken.load.read_file(url)

        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr(tiktoken.load, "read_file_cached", read_slowly)
        monkeypatch.setattr(tokens, "DOWNLOAD_SECONDS", 0.2)

        assert isinstance(default_tokenizer(), FittedTokenizer)
        assert isinstance(default_tokenizer(), FittedTokenizer)
    assert len(calls) == 1


def test_missing_ranks_say_what_to_do(
    fresh_cache: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking for tiktoken by name where it cannot work names the ways out."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))

    with pytest.raises(ConfigError, match="TIKTOKEN_CACHE_DIR"):
        TiktokenTokenizer().count("a")


def test_wrong_rank_files_are_refused(tmp_path: Path) -> None:
    """A missing file, another encoding's file and an unknown encoding are each named."""
    wrong = tmp_path / "ranks.tiktoken"
    wrong.write_bytes(b"IQ== 0\n")

    with pytest.raises(ConfigError, match="not the rank file"):
        TiktokenTokenizer(ranks=wrong).count("a")
    with pytest.raises(ConfigError, match="cannot read"):
        TiktokenTokenizer(ranks=tmp_path / "absent").count("a")
    with pytest.raises(ConfigError, match="unknown encoding 'o300k'"):
        TiktokenTokenizer("o300k", ranks=wrong).count("a")
