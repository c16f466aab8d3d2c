"""The documentation: its code runs, its links lead somewhere, and the site builds."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from lightrag_jsonl import (
    AsyncLightRAG,
    Document,
    IndexOptions,
    LightRAG,
    OpenAILLM,
    PromptManager,
    QueryParam,
)
from lightrag_jsonl.cli.documents import insert
from lightrag_jsonl.core.tokens import FittedTokenizer
from lightrag_jsonl.readers import FILE_FORMATS, READERS, FileFormat
from lightrag_jsonl.testing import HashEmbedder
from tests.conftest import CHECKOUT
from tests.kit import entity, jsonl, relation
from tests.servers import Reply, Request, ScriptedServer, chat_reply, embedding_reply, stream_reply

DOCS = CHECKOUT / "docs"
TSV = [".tsv"]  # a second suffix that people look for
PAGES = [*CHECKOUT.glob("README*.md"), *DOCS.glob("*.md")]
SETUP = {  # what a page takes for granted
    "files.md": "Path('films').mkdir(); Path('films/a.srt').write_text('1\\n00:00 --> 00:02\\nHello.'); "
    "Path('reports').mkdir(); Path('reports/a.csv').write_text('Name,Born\\nAda,1815')",
    "scale.md": "Path('requests.jsonl').touch()",  # the recipe itself runs in tests/tools
    "mcp.md": "rag, question = AsyncLightRAG('kb'), 'Who?'",
}
RECORDS = jsonl(
    entity("Marie Curie", "A chemist."),
    entity("radium", "An element.", "concept"),
    relation("Marie Curie", "radium", "She discovered it.", keywords=["discovered"]),
)
EMBEDDERS = {"bge-m3": HashEmbedder(dim=1024)}
USUAL = HashEmbedder(dim=1536)
ADDRESS = re.compile(r"https?://[\w.:]+/[\w/-]*v1")


def respond(request: Request) -> Reply:
    """A model that extracts two entities, names keywords, and cites the first item; and vectors."""
    if "input" in request.json:
        texts, embedder = request.json["input"], EMBEDDERS.get(request.json["model"], USUAL)
        vectors = asyncio.run(embedder.embed(texts, kind="passage"))
        return embedding_reply(vectors.tolist())
    prompt = str(request.json["messages"])
    if request.json.get("stream"):
        return stream_reply(["She discovered radium 镭 [1]."])
    if "high_level_keywords" in prompt:
        return chat_reply('{"high_level_keywords": [], "low_level_keywords": ["Marie Curie"]}')
    return chat_reply(RECORDS if '"relationship"' in prompt else "She discovered radium 镭 [1].")


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer(respond=respond) as server:
        yield server


def code_of(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if code_of(page)], ids=lambda p: p.name)
def test_the_code_of_a_page_runs(
    page: Path,
    model: ScriptedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every Python block runs as written, in order, with a scripted server in place of models."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
    given = {one.__name__: one for one in (AsyncLightRAG, LightRAG, Path, QueryParam)}
    names: dict[str, Any] = {"__name__": "__main__", **given}
    missing = []
    for block in (SETUP.get(page.name, ""), *code_of(page)):
        try:
            exec(ADDRESS.sub(model.base_url, block), names)
        except ModuleNotFoundError as error:
            assert not str(error.name).startswith("lightrag_jsonl")
            missing.append(str(error.name))
    if page.name.startswith("README"):
        assert ("镭" if ".zh" in page.name else "radium") in capsys.readouterr().out
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}; the other blocks ran")


@pytest.mark.parametrize("name", ["migration.md", "migration.zh.md"])
def test_every_replacement_of_a_lightrag_call_works(name: str, tmp_path: Path) -> None:
    """The expressions in the middle column of the migration table, evaluated in order."""
    folders = {"dir": tmp_path / "kb"} | {f"dir{n}": tmp_path / str(n) for n in range(2, 9)}
    names: dict[str, Any] = {
        **folders,
        **{"f": _model, "e": HashEmbedder(dim=64), "nx": nx, "prompts": PromptManager.load("en")},
        **{"text": "Ada lives in London.", "q": "Where does Ada live?"},
        **{"reranker": _reranker, "tokenizer": FittedTokenizer()},
        **{one.__name__: one for one in (AsyncLightRAG, Document, IndexOptions, LightRAG)},
        **{"OpenAILLM": OpenAILLM, "QueryParam": QueryParam},
    }
    page = DOCS / name
    exec(code_of(page)[0], names)
    names["rag"] = rag = LightRAG(folders["dir"], embedder=names["e"])
    found = re.findall(
        r"^\|.*?\| `(.+?)` \|[^|]*\|$", page.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    with pytest.MonkeyPatch.context() as patch, rag:
        patch.chdir(tmp_path)
        patch.setenv("OPENAI_API_KEY", "key")
        for expression in found:
            if not expression.startswith("LightRAG(dir, "):
                made = eval(expression, names)
                assert made is not None or ".close" in expression or "merge(" in expression
                if isinstance(made, LightRAG):
                    made.close()
            if expression == "rag.close()":
                names["rag"] = LightRAG(folders["dir"], embedder=names["e"])
        names["rag"].close()
    assert len(found) > 40


async def _model(prompt: str, system_prompt: str | None = None, **more: object) -> str:
    return "fine"


def _reranker(*given: object) -> list[float]:
    return []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Files that a page links to or shows exist."""
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    assert [one for one in targets if "://" not in one and not (page.parent / one).exists()] == []


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_readmes_stay_short(name: str) -> None:
    """A README is a first screen: at most 150 lines."""
    assert len((CHECKOUT / name).read_text(encoding="utf-8").split("\n")) <= 150


def test_the_site_builds(tmp_path: Path) -> None:
    """No page, link, anchor or documented name is missing: `mkdocs build --strict`."""
    for name in ("mkdocs", "material", "mkdocstrings_handlers"):
        if find_spec(name) is None:
            pytest.skip("needs the packages mkdocs-material and mkdocstrings[python]")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q"]
    place = ["-f", str(DOCS / "site" / "mkdocs.yml"), "-d", str(tmp_path / "site")]
    done = subprocess.run([*command, *place], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "LightRAG" in (tmp_path / "site" / "api" / "index.html").read_text(encoding="utf-8")


def suffixes(formats: Iterable[FileFormat]) -> list[str]:
    """The usual suffix of each format."""
    return sorted(format.suffixes[0] for format in formats)


@pytest.mark.parametrize(
    ("page", "extra"),
    [
        ("README.md", "the extra `files`"),
        ("README.zh.md", "附加项 `files`"),
        ("docs/guide.md", "extra `files`"),
        ("docs/guide.zh.md", "附加项 `files`"),
        ("insert --help", "the extra `files`"),
    ],
)
def test_every_format_is_listed(page: str, extra: str) -> None:
    """By its usual suffix, before or after the extra, as its reader needs it."""
    help_text = insert.help or ""
    text = help_text if page == "insert --help" else (CHECKOUT / page).read_text(encoding="utf-8")
    text = " ".join(text.split())
    listed = re.search(rf"\.txt[^()]*?{re.escape(extra)}[^()。;]*?\.epub", text)
    assert listed, page
    plain, _, others = listed[0].partition(extra)
    names = r"\.[a-z]+"
    without_extra = [format for format in FILE_FORMATS if not format.needs_extra]
    with_extra = [format for format in FILE_FORMATS if format.needs_extra]
    lines = [".jsonl"]  # a file of documents, which no reader reads
    assert sorted(re.findall(names, plain)) == sorted([*suffixes(without_extra), *lines, *TSV])
    assert sorted(re.findall(names, others)) == suffixes(with_extra)


@pytest.mark.parametrize("language", [0, 1], ids=["en", "zh"])
def test_every_format_has_a_row_in_the_guide_to_files(language: int) -> None:
    """With all its suffixes; the page of a server lists its name."""
    guide = (DOCS / "files.md").read_text(encoding="utf-8").split("\n# 文件\n")[language]
    rows = re.findall(r"^\| ((?:`\.[a-z]+`,? ?)+)\|", guide, flags=re.MULTILINE)
    documented = {suffix for row in rows for suffix in re.findall(r"\.[a-z]+", row)}
    assert documented == {*READERS, ".jsonl"}
    strings = CHECKOUT / "lightrag_jsonl/server/page/strings.js"
    kinds = re.search(r"kinds: (\[.*?\])", strings.read_text(encoding="utf-8"))
    assert kinds
    names = re.split(", |、", json.loads(kinds[1])[language])
    assert sorted(names) == sorted(format.names[language] for format in FILE_FORMATS)
