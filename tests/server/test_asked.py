"""A server for an index that is read when it is asked: what streams show, and what visitors may spend."""

from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra: pip install '.[server]'")

from lightrag_jsonl import AsyncLightRAG, IndexOptions, LightRAG
from lightrag_jsonl.testing import ScriptedLLM
from tests.retrieval.test_asked import QUESTION, TEXTS, answering, documents, read_texts
from tests.server.running import serving

MOST = 2


def test_a_stream_shows_the_reading_and_its_cost(tmp_path: Path) -> None:
    """How far the reading is, then what was read; no visitor has more read than the index allows."""
    llm = ScriptedLLM(answering)

    def opener(folder: Path) -> AsyncLightRAG:
        return AsyncLightRAG(folder, llm=llm, options=IndexOptions(read_chunks=MOST))

    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(documents(), read="asked", progress=False)
    with serving(tmp_path / "kb", opener=opener) as server:
        asked = {"question": QUESTION, "read_chunks": 100}
        events = server.events("/indexes/kb/stream", asked)
        status = server.get("/indexes/kb")
    names = list(dict.fromkeys(name for name, _ in events))
    assert names[:5] == ["session", "keywords", "progress", "reading", "retrieval"]
    progress = [value for name, value in events if name == "progress"]
    assert (progress[0]["chunks_done"], progress[0]["chunks_known"]) == (0, MOST)
    answer = events[-1][1]
    assert len(answer["reading"]["chunk_ids"]) == len(read_texts(llm)) == MOST
    assert answer["reading"]["usage"]["calls"] == MOST
    assert status["reading"]["chunks_unread"] == len(TEXTS) - MOST
