"""Cost before paying: the estimate beside the use, and limits that stop an insert without loss."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from lightrag_jsonl import Document, IndexOptions, LightRAG
from lightrag_jsonl.cli import main
from lightrag_jsonl.estimating import Estimate
from lightrag_jsonl.testing import ReplayLLM, Request, ScriptedLLM
from lightrag_jsonl.tokens import FittedTokenizer
from lightrag_jsonl.types import Usage
from tests.replays import carol

RUNS = ("gpt-4o", "gpt-4o-mini", "gpt-4o-mini (LightRAG prompt)")
WHOLE = IndexOptions(chunk_tokens=2000)  # each recorded chunk stays one chunk
TEXT = "Marie Curie discovered radium in Paris. " * 40


def summary(request: Request) -> str:
    """What stands for a summary, which nobody recorded."""
    return " ".join(request.question.split()[:180])


def replay(data: Path, run: str, most: int = 42) -> tuple[ReplayLLM, list[Document]]:
    """A model that repeats what was recorded, counting real tokens, and its texts."""
    answers = carol.answers(data, run)
    texts = carol.chunks(data, "bom" if "prompt" in run else "nobom")[:most]
    pairs = dict(zip(texts, answers, strict=False))
    llm = ReplayLLM(pairs, otherwise=summary, count=FittedTokenizer().count)
    return llm, [Document(text, id=f"chunk {n}") for n, text in enumerate(texts)]


def within(estimate: int, used: int, share: float) -> bool:
    """Whether an estimate is off by at most this share."""
    return abs(estimate - used) <= share * used


# ── the estimate ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("run", RUNS)
def test_the_estimate_is_close_to_what_is_used(shared_data: Path, tmp_path: Path, run: str) -> None:
    """On the replayed Carol calls, input and output tokens are each within ten per cent."""
    llm, texts = replay(shared_data, run)
    with LightRAG(tmp_path, llm=llm, options=WHOLE) as rag:
        foreseen = rag.estimate(texts)
        assert llm.requests == []
        used = rag.insert(texts).usage
    assert (foreseen.documents, foreseen.chunks) == (42, 42)
    assert within(foreseen.usage.calls, used.calls, 0.1)
    assert within(foreseen.usage.input_tokens, used.input_tokens, 0.1)
    assert within(foreseen.usage.output_tokens, used.output_tokens, 0.1)


def test_answers_that_are_kept_cost_nothing(shared_data: Path, tmp_path: Path) -> None:
    """What was asked before is found by the estimate as it would be by an insert."""
    llm, texts = replay(shared_data, "gpt-4o", most=4)
    with LightRAG(tmp_path, llm=llm, options=WHOLE) as rag:
        rag.insert(texts[:2])
        assert rag.estimate(texts[:2]).usage == Usage()
        assert rag.estimate(texts).usage.calls == 4


def test_an_estimate_leaves_nothing_behind(tmp_path: Path) -> None:
    """No document waits, and no answer is kept, afterwards."""
    llm = ScriptedLLM([])
    with LightRAG(tmp_path, llm=llm) as rag:
        assert rag.estimate([TEXT, Document("居里夫人发现了镭。" * 60)]).usage.calls == 4
        assert rag.status().documents == {} and rag.cache_stats().completions == 0
    assert llm.requests == []


@pytest.mark.parametrize("extraction", ["extract-graph", "agent-kg-extract"])
@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_each_gleaning_round_is_a_call(tmp_path: Path, rounds: int, extraction: str) -> None:
    """The conversation is the real one: its rounds follow the options, whatever the prompt."""
    options = IndexOptions(max_gleanings=rounds, extraction=extraction)  # type: ignore[arg-type]
    with LightRAG(tmp_path, llm=ScriptedLLM([]), options=options) as rag:
        assert rag.estimate(TEXT).usage.calls == 1 + rounds


def test_short_chunks_are_not_gleaned(tmp_path: Path) -> None:
    """A text below `glean_min_tokens` takes one call."""
    with LightRAG(tmp_path, llm=ScriptedLLM([])) as rag:
        assert rag.estimate("Marie Curie discovered radium.").usage.calls == 1


def test_the_same_text_is_paid_once(tmp_path: Path) -> None:
    """A text that comes twice takes the calls of one, as the cache would have it."""
    with LightRAG(tmp_path, llm=ScriptedLLM([])) as rag:
        assert rag.estimate([TEXT, TEXT]).usage.calls == rag.estimate([TEXT]).usage.calls


def test_cacheable_tokens_are_the_shared_beginnings(tmp_path: Path) -> None:
    """The first request shares nothing, the next one its instructions, a gleaning its question."""
    once = IndexOptions(max_gleanings=0)
    with LightRAG(tmp_path / "a", llm=ScriptedLLM([]), options=once) as rag:
        assert rag.estimate(TEXT).usage.cached_tokens == 0
        two = rag.estimate([TEXT, TEXT + "More."])
        assert 300 < two.usage.cached_tokens < 1000
    with LightRAG(tmp_path / "b", llm=ScriptedLLM([])) as rag:
        both = rag.estimate(TEXT)
    assert both.usage.cached_tokens > both.text_tokens


def test_an_index_that_has_read_texts_goes_by_its_own_measure(tmp_path: Path) -> None:
    """A model that writes more than the rule expects is expected to go on so."""
    said = [
        json.dumps({"type": "entity", "name": f"N{n}", "entity_type": "x", "description": TEXT})
        for n in range(2)
    ]
    texts = {f"{n}. {TEXT}": said for n in range(8)}
    llm = ReplayLLM(texts, otherwise=summary, count=FittedTokenizer().count)
    given = list(texts)
    with LightRAG(tmp_path, llm=llm) as rag:
        assert rag.estimate(given).scale == 1.0
        rag.insert(given[:4])
        found = rag.estimate(given[4:])
        used = rag.insert(given[4:]).extraction.usage
    assert found.scale > 1.5 and within(found.extraction.output_tokens, used.output_tokens, 0.1)


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    """One file that cannot be read does not spoil the estimate of the others."""
    good = tmp_path / "good.txt"
    good.write_text(TEXT, encoding="utf-8")
    (tmp_path / "bad.txt").write_bytes(b"\0\1\2" * 100)
    with LightRAG(tmp_path / "kb") as rag:
        found = rag.estimate([good, tmp_path / "bad.txt"])
    assert found.documents == 1 and [Path(f.document_id).name for f in found.failures] == [
        "bad.txt"
    ]


def test_money_follows_the_prices() -> None:
    """Prices are for a million tokens; cached input may have its own."""
    found = Estimate(extraction=Usage(1_000_000, 500_000, 400_000, 10))
    assert found.cost(input=2.0, output=8.0) == pytest.approx(2.0 + 4.0)
    assert found.cost(input=2.0, output=8.0, cached=1.0) == pytest.approx(1.2 + 0.4 + 4.0)


def test_the_command_makes_no_folder(tmp_path: Path) -> None:
    """`estimate` needs no index and no model, and leaves no trace of itself."""
    text, folder = tmp_path / "text.txt", tmp_path / "kb"
    text.write_text(TEXT, encoding="utf-8")
    prices = ["--price-input", "1", "--price-output", "2"]
    asked = CliRunner().invoke(main, ["estimate", str(text), "-w", str(folder), *prices, "--json"])
    found = json.loads(asked.stdout)
    assert found["usage"]["calls"] == 2 and found["cost"] > 0 and not folder.exists()
    asked = CliRunner().invoke(main, ["estimate", str(text), "-w", str(folder), *prices[:2]])
    assert asked.exit_code == 2 and "go together" in asked.output


# ── limits ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "limit", [{"max_calls": 5}, {"max_input_tokens": 9_000}, {"max_output_tokens": 3_000}]
)
def test_a_limit_stops_between_calls_and_nothing_is_paid_twice(
    shared_data: Path, tmp_path: Path, limit: dict[str, int]
) -> None:
    """What is whole is visible, what was paid for is kept, and the rest goes on where it stopped."""
    llm, texts = replay(shared_data, "gpt-4o", most=6)
    options = IndexOptions(chunk_tokens=2000, max_concurrent_calls=1, **limit)  # type: ignore[arg-type]
    with LightRAG(tmp_path / "a", llm=llm, options=options) as rag:
        report = rag.insert(texts)
        assert report.stopped and not report.failures and len(report.documents) < 6
        assert rag.status().documents.get("pending") == 6 - len(report.documents)
    paid = len(llm.requests)
    assert 0 < paid < 12
    with LightRAG(tmp_path / "a", llm=llm, options=WHOLE) as rag:
        assert not rag.resume().stopped and rag.status().documents == {"done": 6}
        stopped = rag.records()
    assert len(llm.requests) == 12
    with LightRAG(tmp_path / "b", llm=llm, options=WHOLE) as rag:
        rag.insert(texts)
        straight = rag.records()
    assert sorted(map(repr, stopped)) == sorted(map(repr, straight))


def test_a_call_limit_is_never_passed(shared_data: Path, tmp_path: Path) -> None:
    """Also with many calls in flight no more are made than were allowed."""
    llm, texts = replay(shared_data, "gpt-4o", most=8)
    options = IndexOptions(chunk_tokens=2000, max_calls=7)
    with LightRAG(tmp_path, llm=llm, options=options) as rag:
        report = rag.insert(texts)
    assert "7 of 7 calls" in report.stopped
    assert len(llm.requests) == report.usage.calls == 7
