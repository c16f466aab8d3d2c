"""What a file holds is read, or its failure says why: nothing readable is taken for empty."""

import json

import pytest

pytest.importorskip("lxml")

from lightrag_jsonl import ConfigError
from tests.readers.files import read

WORDS = "凌晨 the lighthouse at Skagen went dark １２ 🙂."


def nested(levels: int, tag: str, root: str) -> bytes:
    inside = f"{f'<{tag}>' * levels}<p>{WORDS}</p>{f'</{tag}>' * levels}"
    return f"<{root}>{inside}<p>Nobody saw it.</p></{root}>".encode()


@pytest.mark.parametrize(("levels", "name"), [(257, "a.html"), (1_900, "a.html"), (300, "a.xml")])
def test_deep_pages_are_read(levels: int, name: str) -> None:
    """Pages from editors and generators stand in hundreds of elements."""
    text = read(nested(levels, "div", "html" if name == "a.html" else "log"), name).text
    assert WORDS in text and "Nobody saw it." in text


@pytest.mark.parametrize("name", ["a.html", "a.xml", "a.fb2", "a.enex"])
def test_what_is_nested_too_deeply_is_no_empty_file(name: str) -> None:
    """Beyond what can be read, the failure says so."""
    with pytest.raises(ConfigError, match="is nested too deeply"):
        read(nested(5_000, "section", "body"), name)


def test_references_to_entities_cost_no_text() -> None:
    """What the file declares, or nobody: the words behind stay, the reference as it is written."""
    declared = f'<!DOCTYPE l [<!ENTITY ship "Petrel">]><l><p>&ship; {WORDS}</p></l>'
    undeclared = f"<l><p>&ship; and <b>&crew;</b>: {WORDS}</p></l>"
    assert read(declared.encode(), "a.xml").text == f"&ship; {WORDS}"
    assert read(undeclared.encode(), "a.xml").text == f"&ship; and &crew;: {WORDS}"


@pytest.mark.parametrize("part", [{"cells": {"a": {"source": WORDS}}}, {"worksheets": "none"}])
def test_a_notebook_without_a_list_of_cells_is_refused(part: object) -> None:
    """It holds something, but not where notebooks have it."""
    with pytest.raises(ConfigError, match=r"its (cells|worksheets) are no list"):
        read(json.dumps(part).encode(), "a.ipynb")
