"""Cost before paying: the estimate beside the usage."""

from pathlib import Path

import pytest

from lightrag_jsonl import Document, IndexOptions, LightRAG, Usage
from lightrag_jsonl.testing import ReplayLLM, Request, ScriptedLLM
from lightrag_jsonl.tools.estimate import estimate
from tests.kit import TOKENIZER
from tests.replays import carol

RUNS = ("gpt-4o", "gpt-4o-mini", "gpt-4o-mini (LightRAG prompt)")
WHOLE = IndexOptions(chunk_tokens=2000)  # each recorded chunk stays one chunk
TEXT = "Marie Curie discovered radium in Paris. " * 40


def summary(request: Request) -> str:
    """What stands for a summary, which nobody recorded."""
    return " ".join(request.question.split()[:180])


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_the_estimate_is_close_to_what_is_used(shared_data: Path, tmp_path: Path, run: str) -> None:
    """On the replayed Carol calls, input and output tokens are each within ten per cent; answers that
    are cached cost nothing.
    """
    texts = carol.chunks(shared_data, "bom" if "prompt" in run else "nobom")
    pairs = dict(zip(texts, carol.answers(shared_data, run), strict=False))
    llm = ReplayLLM(pairs, otherwise=summary, count=TOKENIZER.count)
    documents = [Document(text, id=f"chunk {n}") for n, text in enumerate(texts)]
    with LightRAG(tmp_path, llm=llm, options=WHOLE) as rag:
        found = rag.run(estimate, documents)
        assert llm.requests == []
        used = rag.insert(documents).usage
        assert rag.run(estimate, documents).usage == Usage()
    assert (found.documents, found.chunks) == (42, 42)
    assert found.usage.cached_tokens > found.text_tokens  # each gleaning repeats its question
    for name in ("calls", "input_tokens", "output_tokens"):
        expected, paid = getattr(found.usage, name), getattr(used, name)
        assert abs(expected - paid) <= 0.1 * paid, name


def test_an_estimate_leaves_nothing_behind(tmp_path: Path) -> None:
    """No document waits, and no answer is cached, afterwards; one unreadable file is named."""
    llm = ScriptedLLM([])
    (tmp_path / "bad.txt").write_bytes(b"\0\1\2" * 100)
    with LightRAG(tmp_path / "kb", llm=llm) as rag:
        given = [TEXT * 3, Document("居里夫人发现了镭。" * 120), tmp_path / "bad.txt"]
        found = rag.run(estimate, given)
        assert rag.status().documents == {} and rag.admin.cache().completions == 0
    assert found.usage.calls == 4 and found.documents == 2
    assert [Path(one.document_id).name for one in found.failures] == ["bad.txt"]
    assert llm.requests == []


@pytest.mark.parametrize("extraction", ["extract-graph", "agent-kg-extract"])
@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_each_gleaning_round_is_a_call(tmp_path: Path, rounds: int, extraction: str) -> None:
    """The conversation is the real one: a short text takes one call, the same text is paid once."""
    options = IndexOptions(max_gleanings=rounds, extraction=extraction)  # type: ignore[arg-type]
    with LightRAG(tmp_path, llm=ScriptedLLM([]), options=options) as rag:
        assert rag.run(estimate, TEXT).usage.calls == 1 + rounds
        assert rag.run(estimate, [TEXT, TEXT]).usage.calls == 1 + rounds
        assert rag.run(estimate, "Marie Curie discovered radium.").usage.calls == 1


def test_a_check_before_each_round_costs_a_call(tmp_path: Path) -> None:
    """It repeats the conversation for one word; the longest course is estimated."""
    found = []
    for check in (False, True):
        options = IndexOptions(glean_check=check)
        with LightRAG(tmp_path / str(check), llm=ScriptedLLM([]), options=options) as rag:
            found.append(rag.run(estimate, TEXT).usage)
    plain, checked = found
    assert (plain.calls, checked.calls) == (2, 3)
    assert checked.input_tokens > 1.4 * plain.input_tokens
    assert checked.output_tokens == plain.output_tokens + 1


@pytest.mark.slow
def test_small_models_are_asked_once_a_chunk(tmp_path: Path) -> None:
    """With the shorter prompt, without gleaning, and for names only."""
    text = "".join(f"Marie Curie met Person{number} in Paris. " for number in range(40))
    usages: dict[str, Usage] = {}
    for extraction in ("extract-graph", "extract-small"):
        options = IndexOptions.from_mapping({"extraction": extraction, "chunk_tokens": 100})
        with LightRAG(tmp_path / extraction, llm=ScriptedLLM([]), options=options) as rag:
            estimated = rag.run(estimate, [text])
            usages[extraction] = estimated.extraction
            chunks = estimated.chunks
    assert usages["extract-small"].calls == chunks
    assert usages["extract-small"].input_tokens < usages["extract-graph"].input_tokens
    assert 0 < usages["extract-small"].output_tokens < usages["extract-graph"].output_tokens / 2
