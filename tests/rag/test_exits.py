"""An exit (`SystemExit`, `KeyboardInterrupt`) in a user's code reaches the caller, and the index stays usable."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG
from lightrag_jsonl.testing import HashEmbedder, ScriptedLLM
from tests.kit import Vectors

TEXTS = ("Émilie du Châtelet translated Newton 🙂.", "沈括写了《梦溪笔谈》。")
EXITS = (SystemExit(3), KeyboardInterrupt())


class ExitingEmbedder:
    """An embedder that exits once it is told to."""

    name = "exiting"
    dim = 16

    def __init__(self, error: BaseException) -> None:
        self.exits = False
        self._error = error

    async def embed(self, texts: Sequence[str], *, kind: str) -> Vectors:
        if self.exits:
            raise self._error
        return await HashEmbedder(dim=self.dim).embed(texts, kind="passage")


def test_an_exit_of_a_model_reaches_the_caller(tmp_path: Path) -> None:
    """Nobody waits for a model that exited, and the document waits for a better one."""
    with LightRAG(tmp_path, llm=ScriptedLLM(lambda request: sys.exit(3))) as rag:
        with pytest.raises(SystemExit):
            rag.insert(TEXTS[0])
        assert rag.status().documents == {"pending": 1}


@pytest.mark.parametrize("error", EXITS, ids=lambda error: type(error).__name__)
def test_an_exit_of_an_embedder_or_a_callback_ends_one_call(
    tmp_path: Path, error: BaseException
) -> None:
    """Questions and inserts go on afterwards, also while several texts were read at once."""

    def exit_of_callback(progress: object) -> None:
        raise error

    embedder = ExitingEmbedder(error)
    with LightRAG(tmp_path, embedder=embedder) as rag:
        rag.insert(TEXTS[0])
        embedder.exits = True
        with pytest.raises(type(error)):
            rag.query("Who translated Newton?")
        with pytest.raises(type(error)):
            rag.insert(TEXTS)
        embedder.exits = False
        with pytest.raises(type(error)):
            rag.insert(TEXTS, progress=exit_of_callback)
        assert "Newton" in rag.query("Who translated Newton?").text
        assert rag.insert(TEXTS[1]).documents
