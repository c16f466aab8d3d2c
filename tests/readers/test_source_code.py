"""Promises of source code: every line is kept, below the names that Python itself knows."""

import re
from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG
from tests.readers.files import headings_in, read

PUMP = '''"""Pumps of the quay 码头."""

import math

# Not a heading
LIMIT = 3


@traced
class Pump:
    """Lifts water."""

    rate = 2

    @property
    def level(self):
        """
        ```
        an example
        ```
        """
        return self.rate


async def drain(pump):
    def inner():
        pass

    return inner
'''


def test_classes_and_functions_of_python_are_headings() -> None:
    """With their decorators, and nothing else is: no comment, no example, no inner function."""
    document = read(PUMP, "pump.py")
    headings = [(heading.level, heading.title) for heading in headings_in(document)]

    assert document.title == "pump.py"
    assert headings == [(2, "Pump"), (3, "Pump.level"), (2, "drain")]
    assert document.text.index("## Pump\n") < document.text.index("@traced")


@pytest.mark.parametrize("name", ["pump.py", "pump.go", "pump.JS", "pump.h"])
def test_no_line_of_code_is_lost(name: str) -> None:
    """In order and as they are, below the name of the file; of a documentation string only the quotes."""
    document = read(PUMP, name)
    lines = iter(document.text.split("\n"))
    written = PUMP if name != "pump.py" else re.sub(r'"""(.+)"""', r"\1", PUMP)
    expected = [
        line.strip() if name == "pump.py" and line.strip() == "Lifts water." else line
        for line in written.split("\n")
    ]

    assert [line for line in expected if line.strip() and line not in lines] == []
    assert document.title == name


@pytest.mark.parametrize(
    "text", ["print 'two'", "def (:", "x = 1\0", "(" * 5_000, "no code at all"]
)
def test_what_python_cannot_parse_is_one_block(text: str) -> None:
    """Code of other versions, and any text, is read as it is."""
    document = read(text, "old.py")

    assert text.replace("\0", "") in document.text.replace("\0", "").replace("\ufffd", "")
    assert headings_in(document) == []


@pytest.mark.slow
def test_words_of_code_are_no_names(tmp_path: Path) -> None:
    """Without a model, blocks of code give no entities; the text around them does."""
    note = "Ada Brook wrote it:\n\n```python\nreturn HeaderTypes if Limit is None else True\n```\n\nBob Crane read it.\n"
    (tmp_path / "note.md").write_text(note)
    (tmp_path / "pump.py").write_text(
        PUMP.replace("return inner", "return None if Level else True")
    )
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert([tmp_path / "note.md", tmp_path / "pump.py"])

        assert {"Ada Brook", "Bob Crane"} <= set(rag.graph)
        assert not {"HeaderTypes", "None", "True", "Limit", "Level"} & set(rag.graph)
        assert rag.retrieve("drain").chunks


def test_documentation_strings_of_python_are_prose() -> None:
    """They stand where they stood, their parameters in a list; the code around stays in blocks."""
    text = '''"""Tides of the quay."""\n\ndef rise(hours):
    """Says how high the water stands.

    :param hours: since the ebb
    :return: metres
    """
    return hours / 6
'''
    assert read(text, "tides.py").text == (
        "Tides of the quay.\n\n## rise\n\n```python\ndef rise(hours):\n```\n\nSays how high the water stands.\n\n"
        "- :param hours: since the ebb\n- :return: metres\n\n```python\n    return hours / 6\n```"
    )


@pytest.mark.parametrize(
    "code",
    [
        'def rise(): "Says how high."',
        'def rise():\n    "说明"; water = 1',
        'def rise():\n    """Says\n\n    # how high\n    """',
        'def rise():\n    """Says\n\n    ```\n    rise()\n    ```\n    """',
    ],
)
def test_a_documentation_string_that_would_cost_code_or_make_headings_stays_code(code: str) -> None:
    """Beside code on its line, and with marks of headings or of blocks, it is unchanged."""
    document = read(code, "tides.py")

    assert code in document.text
    assert [heading.title for heading in headings_in(document)] == ["rise"]


@pytest.mark.slow
def test_code_is_not_quoted_without_a_model_but_what_documents_it_is(tmp_path: Path) -> None:
    """Also where a passage begins within the code."""
    code = "".join(f"    tide_{n} = water(hours={n}, metres={n})\n" for n in range(400))
    (tmp_path / "tides.py").write_text(
        f'def tide(hours):\n    """Water rises for six hours."""\n{code}'
    )
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(tmp_path / "tides.py")
        answer = str(rag.query("For how many hours does water rise?"))

    assert "Water rises for six hours." in answer and "metres=" not in answer
