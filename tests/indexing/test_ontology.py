"""What an ontology promises: read in any usual spelling, and enforced on every record."""

import json
import os

import pytest

from lightrag_jsonl import ConfigError
from lightrag_jsonl.indexing.ontology import Ontology
from tests.kit import Record

KITCHEN = {
    "classes": {
        "Recipe": {"comment": "How a dish is made"},
        "Pastry": {"subclass_of": "Recipe"},
        "Food": None,
        "Meat": "Food",
    },
    "object_properties": {"has_ingredient": {"domain": "Recipe", "range": "Food"}},
    "datatype_properties": {
        "serves": {"domain": "Recipe", "range": "xsd:integer"},
        "vegan": {"domain": ["Recipe", "Food"], "range": "boolean"},
        "origin": {},
    },
}
TRUSTGRAPH = {
    "metadata": {"name": "kitchen"},
    "classes": {
        "fo/Recipe": {
            "uri": "http://x.org/fo/Recipe",
            "rdfs:label": [{"value": "recipe", "lang": "en"}],
        },
        "fo/Food": {"rdfs:label": [{"value": "食物", "lang": "zh"}]},
        "fo/Meat": {"rdfs:subClassOf": "http://x.org/fo/Food"},
    },
    "objectProperties": {
        "fo/has_ingredient": {"rdfs:domain": "http://x.org/fo/Recipe", "rdfs:range": "fo/Food"}
    },
    "datatypeProperties": {"fo/serves": {"rdfs:domain": "fo/Recipe", "rdfs:range": "xsd:string"}},
}


def entity(name: str, kind: str) -> Record:
    return {"type": "entity", "entity": name, "entity_type": kind}


def relation(subject: str, relation: str, target: str) -> Record:
    """Ends are written as name:class."""
    (subject, subject_type), (target, object_type) = subject.split(":"), target.split(":")
    return {
        "type": "relationship",
        "subject": subject,
        "subject_type": subject_type,
        "relation": relation,
        "object": target,
        "object_type": object_type,
    }


def attribute(name: str, kind: str, attribute: str, value: object) -> Record:
    return {
        "type": "attribute",
        "entity": name,
        "entity_type": kind,
        "attribute": attribute,
        "value": value,
    }


@pytest.fixture(scope="module")
def kitchen() -> Ontology:
    return Ontology.load(KITCHEN)


def test_records_that_fit_pass(kitchen):
    """Classes, domains and ranges hold for subclasses too, in any spelling of a name."""
    types = {"Cornish pasty": "Pastry", "beef": "Meat"}
    for record in (
        entity("Cornish pasty", "Recipe"),
        entity("beef", "meat"),
        relation("Cornish pasty:Recipe", "has_ingredient", "beef:Food"),
        relation("Cornish pasty:Pastry", "hasIngredient", "beef:Meat"),
        attribute("Cornish pasty", "Pastry", "serves", 4),
        attribute("Cornish pasty", "Pastry", "serves", "４人份"),
        attribute("beef", "Food", "vegan", "否"),
        attribute("beef", "Food", "origin", "Cornwall 🐄"),
    ):
        assert kitchen.check(record, types) is None


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (entity("Bob", "Person"), "'Person' is no class"),
        (entity("pie", "Recipy"), "did you mean 'Recipe'"),
        (relation("a:Recipe", "eats", "b:Food"), "'eats' is no object property"),
        (
            relation("a:Food", "has_ingredient", "b:Recipe"),
            "Food -> Recipe does not fit has_ingredient",
        ),
        (relation("a:Recipe", "has_ingredient", "b:Recipe"), "Recipe -> Food"),
        (relation("a:Recipe", "has_ingredient", "b:Person"), "'Person' is no class"),
        (relation("a:Recipe", "serves", "b:Food"), "'serves' is no object property"),
        (relation("beef:Recipe", "has_ingredient", "b:Food"), "'beef' was declared as Meat"),
        (relation("BEEF:Recipe", "has_ingredient", "b:Food"), "was declared as Meat"),
        (attribute("a", "Food", "serves", 4), "Food -> 4 does not fit serves"),
        (attribute("a", "Recipe", "serves", "many"), "'many' does not fit"),
        (attribute("a", "Recipe", "serves", True), "True does not fit"),
        (attribute("a", "Recipe", "vegan", "perhaps"), "'perhaps' does not fit"),
        (attribute("a", "Recipe", "origin", " "), "' ' does not fit"),
        (attribute("a", "Recipe", "has_ingredient", "beef"), "no datatype property"),
        ({"type": "definition"}, "'definition' is not entity"),
        ({}, "None is not entity"),
        ({"type": "entity", "entity": "x"}, "'' is no class"),
    ],
)
def test_records_that_break_the_ontology_are_told_why(kitchen, record, words):
    """Unknown names, ends outside domain or range, and changed classes are refused in words."""
    assert words in str(kitchen.check(record, {"beef": "Meat"}))


def test_the_trustgraph_layout_is_read():
    """Its spellings, URIs, labels and prefixed names all lead to the declared class."""
    ontology = Ontology.load(TRUSTGRAPH)

    assert ontology.class_of("食物") == "fo/Food"
    for fits in (
        relation("pasty:fo/Recipe", "fo/has_ingredient", "beef:fo/Meat"),
        relation("pasty:Recipe", "has_ingredient", "beef:Food"),
        attribute("pasty", "fo/Recipe", "fo/serves", "1-2 people"),
    ):
        assert ontology.check(fits, {}) is None
    assert ontology.check(relation("beef:fo/Food", "fo/has_ingredient", "x:fo/Food"), {})


def test_variables_are_one_line_a_term(kitchen):
    """The prompt is given classes with their superclasses and properties with their ends."""
    assert kitchen.variables() == {
        "classes": ["Recipe (How a dish is made)", "Pastry < Recipe", "Food", "Meat < Food"],
        "object_properties": ["has_ingredient: Recipe -> Food"],
        "datatype_properties": [
            "serves: Recipe -> integer",
            "vegan: Recipe | Food -> boolean",
            "origin: * -> *",
        ],
    }


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_files_are_read(tmp_path, kitchen, suffix):
    """JSON and YAML files give the same ontology as the mapping."""
    import yaml

    path = tmp_path / f"厨房.{suffix}"
    text = json.dumps(KITCHEN) if suffix == "json" else yaml.safe_dump(KITCHEN, sort_keys=False)
    path.write_text(text, encoding="utf-8")

    assert Ontology.load(path) == Ontology.load(str(path)) == kitchen


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({}, "needs at least one class"),
        ({"classes": "Recipe"}, "classes: must be a list of names"),
        ({"classes": ["A", 3]}, "classes: must be a list of names"),
        ({"classes": {"A": 3}}, r"classes.A: must be a mapping"),
        ({"classes": {"A": {"subclass_of": "Bee"}}}, "classes.A: subclass_of: 'Bee' is no class"),
        (
            {
                "classes": ["Food"],
                "object_properties": {"eats": {"domain": "Food", "range": "Fod"}},
            },
            r"object_properties.eats: range: 'Fod' is no class; did you mean 'Food'",
        ),
        (
            {"classes": ["Food"], "datatype_properties": {"price": {"domain": "Foot"}}},
            "datatype_properties.price: domain: 'Foot'",
        ),
    ],
)
def test_an_ontology_that_makes_no_sense_is_refused(content, words):
    """The error names the place and what is wrong there."""
    with pytest.raises(ConfigError, match=words):
        Ontology.load(content)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    """Missing, binary, broken and empty files, and impossible values, are `ConfigError`s with the path."""
    contents = (None, b"\xff\xfe\x00", b"{: [", b"", b"classes: {A: 2024-13-45}", b"a: !!int x")
    for name, content in zip("abcdef", contents, strict=True):
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ConfigError, match=f"/{name}: "):
            Ontology.load(path)


def test_a_pipe_is_no_ontology(tmp_path):
    """A path that an index remembers may lead to a pipe; it is refused instead of waited for."""
    os.mkfifo(tmp_path / "ontology.json")
    with pytest.raises(ConfigError, match="not a regular file"):
        Ontology.load(tmp_path / "ontology.json")


def test_classes_in_a_circle_do_not_hang():
    """Superclasses that lead back to a class make the classes equal, and nothing worse."""
    ontology = Ontology.load({"classes": {"A": "B", "B": "A", "C": "owl:Thing"}})

    assert ontology.is_a("A", "B")
    assert not ontology.is_a("A", "C")


def test_identifiers_are_spelled_as_the_ontology_spells_them(kitchen):
    """Two spellings of a class are one type of the graph, and the upper case of identifiers stays."""
    record = kitchen.declared(relation("pie:recipe", "hasIngredient", "beef:MEAT"))
    assert record == relation("pie:Recipe", "has_ingredient", "beef:Meat")
    foreign = Ontology.load(TRUSTGRAPH)
    assert foreign.declared(entity("牛肉", "食物")) == entity("牛肉", "fo/Food")
    assert foreign.declared(attribute("pie", "Recipe", "SERVES", 4))["attribute"] == "fo/serves"
