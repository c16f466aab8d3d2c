"""Promises of what values look like in a console and in a notebook."""

import importlib
import inspect
import pydoc
import re
import typing
from pathlib import Path

import pytest

import lightrag_jsonl
from lightrag_jsonl import (
    Answer,
    Citation,
    Context,
    Document,
    Entity,
    InsertReport,
    LightRAG,
    QueryParam,
    Usage,
)
from lightrag_jsonl.core.address import Address
from lightrag_jsonl.core.types import Failure
from lightrag_jsonl.rag.admin import Admin
from lightrag_jsonl.rag.namespaces import Entities, Traces
from lightrag_jsonl.text.markup import without_bullets, without_markdown
from lightrag_jsonl.tracing.events import Event

TEXT = "刘备👻 <script>alert(1)</script> １２。" * 9_000


def test_reprs_are_short() -> None:
    """However long a text is, the repr of what holds it fits on a few lines; what is usual is left
    out, what is not is shown.
    """
    entity = Entity("刘备", "person", TEXT)
    context = Context(question=TEXT, entities=(entity,) * 999, prompt=TEXT, documents={"d": TEXT})
    citation = Citation(1, "chunk", "c", "d", "d", 1, "c", 0, 9, TEXT, heading="A")
    for value in (Document(TEXT), context, Answer(TEXT, (citation,) * 99, context)):
        assert len(repr(value)) < 1_200
    assert repr(Entity("Ann", "person", "She.")) == (
        "Entity(name='Ann', type='person', description='She.')"
    )
    assert "heading='A'" in repr(citation)


def test_a_notebook_shows_small_escaped_tables(tmp_path: Path) -> None:
    """Answers, contexts, traces and neighbourhoods: no markup of a text reaches the page."""
    with LightRAG(tmp_path, language="zh") as rag:
        rag.insert("刘备<script>alert(1)</script>与关羽在涿郡结义。" + "张飞来了。" * 900)
        answer = rag.query("刘备在哪里？", QueryParam(mode="mix"))
        assert answer.trace_id is not None
        around = rag.entities.neighbours("刘备")
        values = (answer, answer.context, rag.traces.get(answer.trace_id), around)
        pages = [one._repr_html_() for one in values]
    assert around == (around.entity, around.relations) and len(repr(around)) < 600
    for page in pages:
        assert "刘备" in page and "<script" not in page and len(page) < 20_000


def test_every_type_of_a_public_signature_is_public() -> None:
    """Whoever annotates their own code finds each type in the package or in a module that docs/api.md names;
    `dir` of the package shows no modules.
    """
    ours = dir(lightrag_jsonl)
    assert not any(inspect.ismodule(getattr(lightrag_jsonl, name)) for name in ours)
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    table = "".join(line for line in page.splitlines() if line.startswith("| `"))
    modules = [importlib.import_module(name) for name in re.findall(r"`([\w.]+)`", table)]
    documented = {name for module in modules for name in dir(module)}
    internal = {"Loop", "Meta", "Method", "ServerSilence", "UsageMeter"}
    aliases = typing.get_args(Address) + typing.get_args(Event)
    named = {one.__name__ for one in aliases}  # an annotation shows what an alias stands for
    known = {*ours, *documented, *dir(typing), *internal, *named, "Graph", "None", "Path", "Result"}
    classes = [
        getattr(lightrag_jsonl, name) for name in ours if name not in ("ChatStream", "Engine")
    ]
    missing = {
        word
        for one in (*classes, Admin, Entities, Traces)
        if inspect.isclass(one)
        for name, member in inspect.getmembers(one)
        if name == "__init__" or name[0] != "_"
        for hint in getattr(getattr(member, "fget", member), "__annotations__", {}).values()
        for word in re.findall(r"\b[A-Z]\w+", str(hint))
    }
    assert missing <= known


def test_a_report_prints_a_field_a_line(tmp_path: Path) -> None:
    """`print(report)` fits a terminal: what is there, numbers with thousands, nothing that is empty."""
    report = InsertReport(
        documents=tuple(f"notes/{number}.txt" for number in range(2000)),
        chunks=12_345,
        failures=(Failure("a.pdf", None, "no text " * 50),),
        usage=Usage(input_tokens=1500, calls=2),
    )
    lines = str(report).split("\n")
    assert lines[0] == "documents  notes/0.txt; notes/1.txt; notes/2.txt; and 1,997 more"
    assert lines[1] == "chunks     12,345"
    assert lines[3] == "usage      input tokens 1,500, calls 2"
    assert all(len(line) < 110 for line in lines) and len(lines) == 4
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert("Marie Curie discovered radium.")
        status = str(rag.status())
    assert "documents      done 1\n" in status and "language       en\n" in status


def test_help_shows_the_constructor_and_the_namespaces() -> None:
    """`help(LightRAG)` has the arguments with types and what they do, and what `rag.entities` and others are for."""
    page = pydoc.plaintext.document(LightRAG)
    assert "llm: lightrag_jsonl.core.protocols.LLM |" in page
    assert "`models` names or holds models for single tasks" in page
    for namespace in ("entities", "communities", "traces", "admin"):
        assert f" |  {namespace}\n" in page


@pytest.mark.parametrize(
    ("sentence", "plain"),
    [
        ("| Pay | You are paid in *June*. |", "Pay · You are paid in June."),
        ("It is on [the shelf][8], says [Ann](a.md).", "It is on the shelf, says Ann."),
        ("- 船在 **渡口**👻 [见此][二]", "船在 渡口👻 见此"),
        ("It was cited [1][2], and a|b is one word.", "It was cited [1][2], and a|b is one word."),
        (
            "Call `mail --to=<name>@<host>` and `_exit(*codes)`.",
            "Call mail --to=<name>@<host> and _exit(*codes).",
        ),
        ("`Map<K, V>` 存放<b>船名</b><br/>，``a_*_b`` 不变", "Map<K, V> 存放船名，a_*_b 不变"),
        ("Write to <port> in <span class='x'>Norby</span>.", "Write to <port> in Norby."),
        (
            "See :ref:`the crew <crew>` and `the list <https://a.example>`_.",
            "See :ref:the crew and the list.",
        ),
    ],
)
def test_a_sentence_for_people_has_no_marks(sentence: str, plain: str) -> None:
    """Neither bars of a table, tags nor the addresses of links; numbers of citations, single bars, placeholders and
    whatever stands in code stay.
    """
    assert without_bullets(sentence) == plain


def test_an_answer_without_its_markdown_keeps_its_lines() -> None:
    """Points have bullets, the cells of a table are parts of a line, and its rule goes."""
    answer = "**Ida** built it:\n\n- in 1871\n  - 在诺比👻\n\n| place | year |\n|---|---:|\n| Norby | 1871 |"
    assert without_markdown(answer) == (
        "Ida built it:\n\n• in 1871\n  • 在诺比👻\n\nplace · year\nNorby · 1871"
    )
