"""Promises of source code: every line is kept, below the names that Python itself knows."""

from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG
from lightrag_jsonl.core.headings import find_headings
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers import read_document

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


def read(text: str, name: str) -> Document:
    return read_document(text.encode(), Path(name))


def test_classes_and_functions_of_python_are_headings() -> None:
    """With their decorators, and nothing else is: no comment, no example, no inner function."""
    document = read(PUMP, "pump.py")
    headings = [(heading.level, heading.title) for heading in find_headings(document.text)]

    assert document.title == "pump.py"
    assert headings == [(2, "Pump"), (3, "Pump.level"), (2, "drain")]
    assert document.text.index("## Pump\n") < document.text.index("@traced")


@pytest.mark.parametrize("name", ["pump.py", "pump.go", "pump.JS", "pump.h"])
def test_no_line_of_code_is_lost(name: str) -> None:
    """In order and as they are, below the name of the file."""
    document = read(PUMP, name)
    lines = iter(document.text.split("\n"))

    assert [line for line in PUMP.split("\n") if line.strip() and line not in lines] == []
    assert document.title == name


@pytest.mark.parametrize(
    "text", ["print 'two'", "def (:", "x = 1\0", "(" * 5_000, "no code at all"]
)
def test_what_python_cannot_parse_is_one_block(text: str) -> None:
    """Code of other versions, and any text, is read as it is."""
    document = read(text, "old.py")

    assert text.replace("\0", "") in document.text.replace("\0", "").replace("\ufffd", "")
    assert list(find_headings(document.text)) == []


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
