"""Promises of what values look like in a console and in a notebook."""

import inspect
import re
import typing
from pathlib import Path

import lightrag_jsonl
from lightrag_jsonl import (
    Address,
    Answer,
    Citation,
    Context,
    Document,
    Entity,
    Event,
    LightRAG,
    QueryParam,
)
from lightrag_jsonl.rag.admin import Admin
from lightrag_jsonl.rag.namespaces import Entities, Traces

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
    """Whoever annotates their own code imports from the package, and `dir` shows no modules."""
    ours = dir(lightrag_jsonl)
    assert not any(inspect.ismodule(getattr(lightrag_jsonl, name)) for name in ours)
    internal = {"Loop", "Meta", "Method", "ServerSilence", "UsageMeter"}
    aliases = typing.get_args(Address) + typing.get_args(Event)
    named = {one.__name__ for one in aliases}  # an annotation shows what an alias stands for
    known = {*ours, *dir(typing), *internal, *named, "Graph", "None", "Path", "Result"}
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
