"""RDF of a trace: every form, and hostile texts."""

import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import ConfigError, Trace
from lightrag_jsonl.core.edges import Edge, SelectedEdge
from lightrag_jsonl.tracing.export import export_trace
from lightrag_jsonl.tracing.rdf import fact, literal, serialize, triple_term, triples_of


@pytest.mark.parametrize("format", ["nquads", "turtle", "trig"])
@pytest.mark.parametrize("rdf", ["1.2", "star", "1.1"])
def test_every_form_is_written(trace: Trace, format: str, rdf: str) -> None:
    """Each format writes each form of a triple term, the same on repetition."""
    oxigraph = pytest.importorskip("pyoxigraph")
    hostile = replace(trace, question='<<( a )>> « "\\\n 居里夫人 \U0001f9ea')

    text = export_trace(hostile, format=format, version=rdf)  # type: ignore[arg-type]

    assert ("<<( <urn:entity" in text) == (rdf == "1.2")
    assert ("<< <urn:entity" in text) == (rdf == "star")
    assert text == export_trace(hostile, format=format, version=rdf)  # type: ignore[arg-type]
    if (format, rdf) == ("nquads", "star"):
        return  # pyoxigraph reads the older notation in Turtle and TriG only
    syntax = {"nquads": "nq", "turtle": "ttl", "trig": "trig"}[format]
    read = oxigraph.RdfFormat.from_extension(syntax)
    found = {getattr(item.object, "value", None) for item in oxigraph.parse(text, read)}
    assert hostile.question in found


def test_what_cannot_be_written_is_an_error_that_says_what_to_do(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON-LD names the form that works; without pyoxigraph N-Quads work, and the other formats say
    what to install.
    """
    with pytest.raises(ConfigError, match=r'rdf="1\.1"'):
        export_trace(trace, format="jsonld")
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    assert export_trace(trace)
    with pytest.raises(ConfigError, match=r"pip install .pyoxigraph"):
        export_trace(trace, format="turtle")


def test_bases_are_configurable(trace: Trace) -> None:
    """Entities and predicates can live under a namespace of one's own, given with its scheme; texts
    that look like URIs stay as they are. A choice by rank has a score and no reason.
    """
    by_rank = SelectedEdge(trace.candidates[0], score=0.25)
    asked = replace(trace, question="What is <urn:entity:x>?", selected=(by_rank,), fallback=True)
    bases = {"entity_base": "https://kb.example/é/", "predicate_base": "https://kb.example/p/"}

    text = export_trace(asked, **bases)  # type: ignore[arg-type]

    subject = "<https://kb.example/%C3%A9/marie%20curie>"
    assert f"{subject} <https://kb.example/p/discovered>" in text
    assert '"What is <urn:entity:x>?"' in text and text.count("urn:entity:") == 1
    assert "ns/reasoning" not in text
    assert 'ns/score> "0.25"^^<http://www.w3.org/2001/XMLSchema#double>' in text
    assert 'ns/fallback> "true"^^<http://www.w3.org/2001/XMLSchema#boolean>' in text
    with pytest.raises(ConfigError, match="scheme"):
        export_trace(trace, entity_base="kb/")


any_text = st.text(st.characters(codec=None), max_size=20)


@given(words=any_text, name=any_text)
def test_any_text_can_be_written_and_read_back(words: str, name: str) -> None:
    """Literals and IRIs made from any text parse, one line a quad."""
    oxigraph = pytest.importorskip("pyoxigraph")
    stated = fact(Edge("e", name, words, words))
    graphs = {
        "urn:g": triples_of("urn:a", [("tg:query", literal(words))]),
        "": triples_of("urn:a", [("tg:edge", triple_term(stated))]),
    }

    text = serialize(graphs)

    read = list(oxigraph.parse(text, oxigraph.RdfFormat.N_QUADS))
    assert text.count("\n") == len(read) == 2
    clean = "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in words)
    assert clean in {getattr(quad.object, "value", None) for quad in read}


def test_labels_are_in_the_language_of_the_index(trace: Trace) -> None:
    """A step's label is Chinese in a Chinese index; what people wrote stays as it is."""
    asked = replace(trace, question="Answer")
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    english = export_trace(asked)
    chinese = export_trace(asked, language="zh-CN")
    for words, text in (("Answer Selection", english), ("回答 筛选", chinese)):
        for word in words.split():
            assert f'{label} "{word}"' in text
    assert 'query> "Answer"' in chinese and f'{label} "Answer"' not in chinese
    assert english.count(label) == chinese.count(label)
