"""The examples: each script runs as its docstring says, and the notebook from top to bottom."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from lightrag_jsonl import Document, LightRAG
from tests.conftest import CHECKOUT
from tests.servers import ScriptedServer
from tests.test_docs import respond

EXAMPLES = CHECKOUT / "examples"
NOVEL = """第一回 宴桃园豪杰三结义

刘备，字玄德，涿县人。刘备是汉室宗亲。关羽，字云长，河东解良人。张飞，字翼德，涿县人。
刘备、关羽、张飞三人在桃园结义，结为兄弟。

第二回 张翼德怒鞭督邮

玄德任安喜县尉。张飞怒鞭督邮。
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(name: str, *arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What an example prints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def test_ollama(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The model and the embedder at a local address are asked, and the answer is printed."""
    with ScriptedServer(respond=respond) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        printed = run("ollama.py", capsys=capsys)
    assert {body["model"] for body in server.bodies} == {"qwen3:8b", "bge-m3"}
    assert "radium" in printed and "failed" not in printed


def test_dashscope(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The models of the service are asked with its key; texts go in the sizes that it takes."""
    with ScriptedServer(respond=respond) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("DASHSCOPE_API_KEY", "key")
        printed = run("dashscope.py", capsys=capsys)
    assert {body["model"] for body in server.bodies} == {"qwen-plus", "text-embedding-v4"}
    assert "次调用" in printed and "失败" not in printed


@pytest.mark.slow
def test_an_agent(folder: Path) -> None:
    """The tools are listed, and two of them answer."""
    pytest.importorskip("mcp", reason="needs the extra `mcp`")
    script = str(EXAMPLES / "agent_mcp.py")
    printed = subprocess.run(
        [sys.executable, script, "What", "did", "Marie", "Curie", "discover?"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        check=True,
        capture_output=True,
        encoding="utf-8",
    ).stdout

    assert "search: " in printed and "ask: " in printed
    assert "Marie Curie discovered polonium and radium. [1]" in printed


@pytest.mark.slow
async def test_a_fastapi_app() -> None:
    """A question by HTTP gets an answer with its sentence; one without a text is refused."""
    pytest.importorskip("fastapi", reason="needs the package fastapi")
    httpx = pytest.importorskip("httpx2", reason="needs the package httpx2")
    app = runpy.run_path(str(EXAMPLES / "fastapi_app.py"))["app"]
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app") as client,
    ):
        reply = await client.get("/ask", params={"q": "What did Marie Curie discover?"})
        refused = await client.get("/ask", params={"q": ""})

    assert reply.json()["sources"][0]["text"] == "Marie Curie discovered polonium and radium."
    assert refused.status_code == 422


@pytest.mark.slow
def test_a_celery_worker(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker with a broker in memory takes both tasks: a file is read, and a question about it answered."""
    pytest.importorskip("celery", reason="needs the package celery")
    from celery.contrib.testing.worker import start_worker

    monkeypatch.setenv("BROKER", "memory://")
    monkeypatch.setenv("RESULTS", "cache+memory://")
    (folder / "notes.md").write_text("Ada Wren founded Northwind in Bristol.", encoding="utf-8")
    tasks = runpy.run_path(str(EXAMPLES / "celery_tasks.py"))
    tasks["app"].conf.broker_transport_options = {"polling_interval": 0.05}
    with start_worker(tasks["app"], pool="solo", perform_ping_check=False, shutdown_timeout=60):
        report = tasks["insert"].delay("notes.md").get(timeout=120)
        answer = tasks["ask"].delay("Who founded Northwind?").get(timeout=120)
    tasks["index"]().close()

    assert report["failures"] == {} and len(report["documents"]) == 1
    assert "Ada Wren" in answer["answer"]
    assert answer["sources"] == ["notes, page 1: Ada Wren founded Northwind in Bristol."]


@pytest.mark.slow
def test_dify(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The request that Dify sends gets the passage, with its title and page, from a running server."""
    pytest.importorskip("starlette", reason="needs the extra `server`")
    from tests.server.running import serving

    with LightRAG(folder / "kb") as rag:
        rag.insert(Document("Ada Wren founded Northwind in Bristol.", id="a", title="Founders"))
    with serving(folder / "kb") as server:
        question = "Who founded Northwind?"
        printed = run("dify_knowledge.py", server.url, "kb", question, capsys=capsys)

    assert printed.startswith("1.00  Founders, page 1: Ada Wren founded Northwind in Bristol.")


def test_synchronizing_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """New files are inserted, unchanged ones recognized, those that are gone deleted."""
    notes = folder / "notes"
    notes.mkdir()
    (notes / "a.txt").write_text("Ada met Charles Babbage.", encoding="utf-8")
    (notes / "b.txt").write_text("Grace Hopper wrote a compiler.", encoding="utf-8")
    first = run("sync_folder.py", "notes", capsys=capsys)
    (notes / "b.txt").unlink()
    second = run("sync_folder.py", "notes", capsys=capsys)

    assert "inserted: a.txt b.txt" in first.replace(f"{notes}{os.sep}", "")
    assert "unchanged: a.txt\ndeleted: b.txt" in second.replace(f"{notes}{os.sep}", "")


def test_chinese_novel(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Aliases in the text are merged, and a question is answered with its source."""
    (folder / "小说.txt").write_text(NOVEL, encoding="utf-8")
    printed = run("chinese_novel.py", "小说.txt", capsys=capsys)

    assert "别名：张飞 = 张翼德" in printed
    assert "刘备是汉室宗亲" in printed and "[1]" in printed
    assert (folder / "novel.html").is_file()


@pytest.mark.slow
def test_pdf_with_page_citations(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page that holds the sentence is cited, with its characters."""
    pytest.importorskip("pypdfium2", reason="needs the extra `files`")
    pytest.importorskip("reportlab", reason="needs the package reportlab")
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(folder / "a.pdf"))
    for text in ("Warsaw lies on the Vistula.", "Marie Curie discovered polonium."):
        canvas.drawString(50, 700, text)
        canvas.showPage()
    canvas.save()
    printed = run("pdf_citations.py", "a.pdf", "What did Marie Curie discover?", capsys=capsys)

    assert "[1] page 2, characters 0 to 32: Marie Curie discovered polonium." in printed


def test_evaluating_a_corpus(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every mode gets a line; the only supporting document is found."""
    (folder / "corpus").mkdir()
    (folder / "corpus" / "a.txt").write_text("Ada Lovelace met Charles Babbage.", encoding="utf-8")
    question = {
        "question": "Whom did Ada Lovelace meet?",
        "supporting": [str(folder / "corpus" / "a.txt")],
    }
    (folder / "q.jsonl").write_text(json.dumps(question), encoding="utf-8")
    printed = run("evaluate.py", "corpus", "q.jsonl", capsys=capsys)

    assert [line.split()[:2] for line in printed.split("\n")[1:-1]] == [
        [name, "100.0%"] for name in ("dense", "bm25", "naive", "local", "mix")
    ]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_notebook_runs(folder: Path) -> None:
    """Every cell runs, in order, in a kernel of its own."""
    nbformat = pytest.importorskip("nbformat", reason="needs the package nbformat")
    nbclient = pytest.importorskip("nbclient", reason="needs the package nbclient")
    pytest.importorskip("ipykernel", reason="needs the package ipykernel")
    notebook = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(CHECKOUT))
        done = nbclient.NotebookClient(notebook, timeout=240, kernel_name="python3").execute()

    outputs = [output for cell in done.cells for output in cell.get("outputs", ())]
    assert "She was born in Warsaw" in json.dumps([*outputs])
