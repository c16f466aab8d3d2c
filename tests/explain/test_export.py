"""RDF of a trace: the counts and queries of specification 2, section 8, and hostile texts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.candidates import SelectedEdge
from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.explain.events import Event
from lightrag_jsonl.explain.export import export
from lightrag_jsonl.explain.prov import Bases
from lightrag_jsonl.explain.rdf import Iri, Literal, Quad, Triple, to_nquads
from lightrag_jsonl.explain.trace import Trace, fold

Told = Callable[..., tuple[Event, ...]]


@pytest.mark.parametrize("format", ["turtle", "trig"])
@pytest.mark.parametrize("rdf", ["1.2", "star", "1.1"])
def test_every_form_is_written(trace: Trace, format: str, rdf: str) -> None:
    """Each format writes each form of a triple term, the same on repetition."""
    oxigraph = pytest.importorskip("pyoxigraph")
    hostile = replace(trace, question='<<( a )>> « "\\\n 居里夫人 \U0001f9ea')

    text = export(hostile, format=format, rdf=rdf)  # type: ignore[arg-type]

    assert ("<<( <urn:entity" in text) == (rdf == "1.2")
    assert ("<< <urn:entity" in text) == (rdf == "star")
    assert text == export(hostile, format=format, rdf=rdf)  # type: ignore[arg-type]
    read = oxigraph.RdfFormat.TURTLE if format == "turtle" else oxigraph.RdfFormat.TRIG
    found = {getattr(item.object, "value", None) for item in oxigraph.parse(text, read)}
    assert hostile.question in found


def test_the_star_form_of_nquads(trace: Trace) -> None:
    """The older notation has no parentheses."""
    text = export(trace, rdf="star")

    assert "<< <urn:entity:marie%20curie> <urn:predicate:discovered> <urn:entity:radium> >>" in text
    assert len(text.splitlines()) == 18


def test_json_ld_with_triple_terms_names_the_form_that_works(trace: Trace) -> None:
    """The error says which `rdf` to use."""
    with pytest.raises(ConfigError, match=r'rdf="1\.1"'):
        export(trace, format="jsonld")


@pytest.mark.parametrize("wrong", [{"format": "xml"}, {"rdf": "2.0"}])
def test_unknown_forms_are_errors(trace: Trace, wrong: dict[str, str]) -> None:
    """A misspelled option lists the known ones."""
    with pytest.raises(ConfigError, match="must be one of"):
        export(trace, **wrong)  # type: ignore[arg-type]


def test_without_pyoxigraph_the_error_names_the_extra(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N-Quads needs nothing; the other formats say what to install."""
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)

    assert export(trace)
    with pytest.raises(ConfigError, match=r"pip install .pyoxigraph"):
        export(trace, format="turtle")


def test_modes_count_what_they_look_for(trace: Trace) -> None:
    """Naive counts and selects chunks, mix both, bypass neither."""
    chunky = replace(trace, selected_chunks=("c 1",), retrieved_chunks=("c 1", "c2"))

    def counts(mode: str) -> list[bool]:
        text = export(replace(chunky, mode=mode))  # type: ignore[arg-type]
        return ["edgeCount" in text, "chunkCount" in text]

    assert counts("naive") == [False, True]
    assert counts("mix") == [True, True]
    assert counts("local") == [True, False]
    assert counts("bypass") == [False, False]
    assert "selectedChunk> <urn:chunk:c%201>" in export(chunky)


def test_a_choice_by_rank_has_a_score_and_no_reason(trace: Trace) -> None:
    """`tg:reasoning` is written only where a model wrote it; a fallback is said."""
    ranked = replace(
        trace, selected=(SelectedEdge(trace.candidates[0], score=0.25),), fallback=True
    )

    text = export(ranked)

    assert "ns/reasoning" not in text
    assert 'ns/score> "0.25"^^<http://www.w3.org/2001/XMLSchema#double>' in text
    assert 'ns/fallback> "true"^^<http://www.w3.org/2001/XMLSchema#boolean>' in text


def test_steps_that_were_not_reached_have_no_quads(told: Told) -> None:
    """A query that ended after the retrieval exports session and retrieval."""
    assert len(export(fold(told()[:2])).splitlines()) == 8


def test_bases_are_configurable(trace: Trace) -> None:
    """Entities and predicates can live under a namespace of one's own."""
    own = replace(trace, bases=Bases("https://kb.example/e/", "https://kb.example/p/"))

    assert "<https://kb.example/e/marie%20curie> <https://kb.example/p/discovered>" in export(own)


any_text = st.text(st.characters(codec=None), max_size=20)


@given(words=any_text, name=any_text)
def test_any_text_can_be_written_and_read_back(words: str, name: str) -> None:
    """Literals and IRIs made from any text parse, one line a quad."""
    oxigraph = pytest.importorskip("pyoxigraph")
    bases = Bases(entity=f"urn:x:{name}")
    term = Triple(bases.entity_uri(name), bases.predicate_uri(words), bases.entity_uri(words))
    quads = [
        Quad(Triple(Iri("urn:a"), Iri("urn:b"), Literal(words)), Iri("urn:g")),
        Quad(Triple(Iri("urn:a"), Iri("urn:c"), term)),
    ]

    text = to_nquads(quads)

    read = list(oxigraph.parse(text, oxigraph.RdfFormat.N_QUADS))
    assert text.count("\n") == len(read) == 2
    clean = "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in words)
    assert clean in {getattr(quad.object, "value", None) for quad in read}
