"""The documentation: its code runs, its links lead somewhere, and the site builds."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import permutations
from pathlib import Path
from typing import Any, get_args

import click
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
from lightrag_jsonl.core import modes
from lightrag_jsonl.export.graph_formats import SUFFIXES, GraphFormat
from lightrag_jsonl.readers.formats import FILE_FORMATS, READERS
from lightrag_jsonl.readers.old_office import OLD_FORMATS
from lightrag_jsonl.testing import HashEmbedder
from tests.cli.conftest import PROGRAM, run
from tests.conftest import CHECKOUT
from tests.kit import DEFAULT_MODE, MODES, TOKENIZER, entity, jsonl, relation
from tests.servers import Reply, Request, ScriptedServer, chat_reply, embedding_reply, stream_reply

DOCS = CHECKOUT / "docs"
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_blocks_of_a_readme_run_in_any_order(
    name: str,
    model: ScriptedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A reader copies the one that is of use: each brings its imports, and needs nothing of another."""
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
    blocks = code_of(CHECKOUT / name)
    assert len(blocks) > 1
    for number, order in enumerate(permutations(blocks)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        for block in order:
            exec(ADDRESS.sub(model.base_url, block), {"__name__": "__main__"})
            assert ("镭" if ".zh" in name else "radium") in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["migration.md", "migration.zh.md"])
def test_every_replacement_of_a_lightrag_call_works(name: str, tmp_path: Path) -> None:
    """The expressions in the middle column of the migration table, evaluated in order."""
    folders = {"dir": tmp_path / "kb"} | {f"dir{n}": tmp_path / str(n) for n in range(2, 9)}
    names: dict[str, Any] = {
        **folders,
        **{"f": _model, "e": HashEmbedder(dim=64), "nx": nx, "prompts": PromptManager.load("en")},
        **{"text": "Ada lives in London.", "q": "Where does Ada live?"},
        **{"reranker": _reranker, "tokenizer": TOKENIZER},
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


def test_chinese_has_one_word_for_a_thing() -> None:
    """The documentation, the page, the traces and the prompts say token, 追溯记录 and 社区, and nothing else for these."""
    package = CHECKOUT / "lightrag_jsonl"
    files = ("server/page/strings.js", "tracing/page.html.jinja", "core/languages.py")
    prompts = (CHECKOUT / "prompts_zh").glob("*.md")
    paths = [*PAGES, *[package / file for file in files], *prompts]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    for word in ("词元", "跟踪记录", "群组"):
        assert not any(word in text for text in texts), word


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_readmes_stay_short(name: str) -> None:
    """A README is a first screen: at most 150 lines."""
    assert len((CHECKOUT / name).read_text(encoding="utf-8").split("\n")) <= 150


@pytest.mark.slow
@pytest.mark.timeout(900)
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


# ── lists that are written once in the code and named elsewhere ─────────────────

SUFFIX = re.compile(r"(?<![\w.*/-])\.[a-z]{2,8}\b")
COMMAND_LINE = re.compile(r"lightrag-jsonl((?: [^\s`#|;&，。、；）]+)+)")


def help_of(*words: str) -> str:
    """The help text of a command on one line."""
    result = run(*words, "--help")
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def first_column(page: Path, heading: str) -> list[str]:
    """The code words in the first column of the table whose header begins with `heading`."""
    text = page.read_text(encoding="utf-8")
    _, _, rows = text.partition(f"\n| {heading} |")
    table, _, _ = rows.partition("\n\n")
    cells = [line.split("|")[1] for line in table.split("\n")[2:]]
    return [word for cell in cells for word in re.findall(r"`(\.?\w+)", cell)]


def between(path: Path, start: str, end: str) -> str:
    """The text of a file from the first `start` to the next `end`."""
    text = path.read_text(encoding="utf-8")
    assert start in text, f"{path} has no {start!r}"
    return text.partition(start)[2].partition(end)[0]


def test_the_modes_have_one_list() -> None:
    """The type of `mode`, and the table of modes; the guide promises them in this order."""
    assert get_args(modes.Mode) == MODES
    assert QueryParam().mode == DEFAULT_MODE
    assert all(plan.summary for plan in modes.MODES.values())


@pytest.mark.parametrize(("name", "heading"), [("guide.md", "mode"), ("guide.zh.md", "模式")])
def test_the_guide_has_every_mode_once(name: str, heading: str) -> None:
    """Its table holds exactly the promised modes."""
    named_modes = first_column(DOCS / name, heading)

    assert sorted(named_modes) == sorted(MODES)
    assert named_modes[0] == DEFAULT_MODE


@pytest.mark.parametrize(
    ("name", "heading"), [("README.md", "\n## Modes\n"), ("README.zh.md", "\n## 检索模式\n")]
)
def test_the_readme_names_the_default_mode_and_others_that_exist(name: str, heading: str) -> None:
    """The words in code of its section are modes, the default first."""
    named_modes = re.findall(r"`(\w+)`", between(CHECKOUT / name, heading, "\n## "))

    assert named_modes[0] == DEFAULT_MODE
    assert set(named_modes) <= set(MODES)


@pytest.mark.parametrize("command", ["query", "retrieve"])
def test_the_help_of_a_command_has_every_mode(command: str) -> None:
    """`--mode` offers exactly the modes, and says of each what it searches."""
    text = help_of(command)

    assert f"[{'|'.join(MODES)}]" in text
    assert all(f"{mode} ({plan.summary})" in text for mode, plan in modes.MODES.items())


async def test_the_tools_for_agents_offer_every_mode(tmp_path: Path) -> None:
    """The schemas of `search` and `ask` hold exactly the modes, with a summary of each."""
    pytest.importorskip("mcp")
    from lightrag_jsonl.mcp import mcp_server

    async with AsyncLightRAG(tmp_path / "kb") as rag:
        tools = await mcp_server(rag).list_tools()
    schemas = {tool.name: tool.input_schema["properties"].get("mode") for tool in tools}

    assert {name for name, schema in schemas.items() if schema} == {"search", "ask"}
    for name in ("search", "ask"):
        assert set(schemas[name]["enum"]) == set(MODES)
        assert schemas[name]["default"] == DEFAULT_MODE
        assert modes.mode_summaries() in schemas[name]["description"]


@pytest.mark.parametrize(
    ("name", "start", "end"),
    [
        ("README.md", "Written: ", "traces"),
        ("README.zh.md", "导出：", "；"),
        ("docs/guide.md", "`rag.admin.export(path)`, writes ", "\n"),
        ("docs/guide.zh.md", "`rag.admin.export(path)` 可写出 ", "\n"),
    ],
)
def test_a_page_names_formats_of_exports(name: str, start: str, end: str) -> None:
    """By suffixes of the table: the guide all formats, the README what it will."""
    named = SUFFIX.findall(between(CHECKOUT / name, start, end))

    assert set(named) <= set(SUFFIXES)
    if "guide" in name:
        assert {SUFFIXES[suffix] for suffix in named} == set(SUFFIXES.values())


def test_the_help_of_export_names_every_format() -> None:
    """By its suffix in the text, and by its name in `--format`."""
    text = help_of("export")

    assert {SUFFIXES.get(suffix) for suffix in SUFFIX.findall(text)} >= set(SUFFIXES.values())
    assert f"[{'|'.join(get_args(GraphFormat))}]" in text


@pytest.mark.parametrize("heading", ["tool", "工具"])
async def test_the_page_on_agents_names_every_tool(heading: str, tmp_path: Path) -> None:
    """Its tables and the help of `mcp` hold exactly the tools, with their parameters."""
    pytest.importorskip("mcp")
    from lightrag_jsonl.mcp import INSTRUCTIONS, mcp_server

    async with AsyncLightRAG(tmp_path / "kb") as rag:
        tools = await mcp_server(rag, allow_write=True).list_tools()
        reading = {tool.name for tool in await mcp_server(rag).list_tools()}
    signatures = [f"{tool.name}({', '.join(tool.input_schema['properties'])})" for tool in tools]
    table = between(DOCS / "mcp.md", f"\n| {heading} |", "\n\n")

    assert sorted(re.findall(r"`(\w+\([\w, ]+\))`", table)) == sorted(signatures)
    assert set(re.findall(r"`(\w+)`", INSTRUCTIONS)) == reading
    sentence = help_of("mcp").partition("The tools are ")[2].partition(".")[0]
    assert set(re.split(r", | and ", sentence)) == reading


def command_lines() -> Iterator[tuple[str, str]]:
    """Every command line in the documentation and in the help texts, with its place."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for match in COMMAND_LINE.finditer(text):
            yield page.name, match[1]
    for name in PROGRAM.list_commands(click.Context(PROGRAM)):
        for match in COMMAND_LINE.finditer(help_of(name)):
            yield f"{name} --help", match[1]


def test_command_lines_of_the_documentation_exist() -> None:
    """Every command that a page or a help text shows exists, and has the options shown."""
    lines = list(command_lines())
    for place, line in lines:
        words = line.split()
        command: click.Command = PROGRAM
        while isinstance(command, click.Group) and words:
            subcommand = command.get_command(click.Context(command), words[0])
            if subcommand is None:
                break
            command = subcommand
            words.pop(0)
        assert command is not PROGRAM or words[:1] in (["--help"], []), f"{place}: {line}"
        options = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        shown = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert shown <= options, f"{place}: {line}: no such option: {shown - options}"
    assert len(lines) > 50


@pytest.mark.skipif(find_spec("uvicorn") is None, reason="needs the extra `server`")
def test_the_page_on_the_server_names_every_route() -> None:
    """Its table of REST and its sections on the chat protocols leave out no path."""
    from lightrag_jsonl.server.app import AGENT_ROUTE, ROUTES

    text = (DOCS / "server.md").read_text(encoding="utf-8")
    text = (
        text.replace("`, `…/", "`, `GET /indexes/{index}/")
        .replace("`GET ", "`")
        .replace("`POST ", "`")
    )
    paths = {route.path for route in (*ROUTES, AGENT_ROUTE)}

    assert {path for path in paths if path.startswith(("/indexes", "/health", "/mcp"))} <= set(
        re.findall(r"/[^\s`?]*", text)
    )


@pytest.mark.parametrize(
    ("page", "extra", "end"),
    [
        ("README.md", "the extra `files`", "others"),
        ("README.zh.md", "可选依赖 `files`", "等"),
        ("docs/guide.md", "the extra `files`", "others"),
        ("docs/guide.zh.md", "可选依赖（extra）`files`", "等"),
    ],
)
def test_the_formats_that_a_page_names_are_read(page: str, extra: str, end: str) -> None:
    """Before or after the extra, as their readers need it; `help formats` lists all."""
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    listed = re.search(rf"\.txt[^()]*?{re.escape(extra)}[^()。;]*?{end}", " ".join(text.split()))
    assert listed, page
    plain, _, others = listed[0].partition(extra)
    lines = {".jsonl"}  # a file of documents, which no reader reads
    assert set(SUFFIX.findall(plain)) <= suffixes(needs_extra=False) | lines
    assert set(SUFFIX.findall(others)) <= suffixes(needs_extra=True)


def test_the_help_has_every_format() -> None:
    """With its suffixes, before or after the extra, as its reader needs it."""
    result = run("help", "formats")
    plain, _, others = result.output.partition("the extra `files`")

    assert suffixes(needs_extra=False) <= set(plain.split())
    assert suffixes(needs_extra=True) <= set(others.split())


def suffixes(*, needs_extra: bool) -> set[str]:
    """The suffixes of the formats that need the extra `files`, or of those that do not."""
    formats = [format for format in FILE_FORMATS if format.needs_extra == needs_extra]
    return {suffix for format in formats for suffix in format.suffixes}


@pytest.mark.parametrize("language", [0, 1], ids=["en", "zh"])
def test_every_format_has_a_row_in_the_guide_to_files(language: int) -> None:
    """With all its suffixes."""
    guide = (DOCS / "files.md").read_text(encoding="utf-8").split("\n# 文件\n")[language]
    rows = re.findall(r"^\| ((?:`\.[a-z0-9]+`,? ?)+)\|", guide, flags=re.MULTILINE)
    documented = {suffix for row in rows for suffix in re.findall(r"\.[a-z0-9]+", row)}
    assert documented == {*READERS, *OLD_FORMATS, ".jsonl"}
