"""The table of readers: gzip, archives, a user's own reader, folders, and a missing extra."""

import gzip
import os
from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, Document, LightRAG
from lightrag_jsonl.readers import compression
from tests.conftest import CHECKOUT
from tests.kit import loaded
from tests.processes import run_python
from tests.readers.files import read


@pytest.mark.slow
def test_gzip_is_opened(tmp_path: Path) -> None:
    """The suffix below it says what it is, and the title has neither; lines are documents."""
    (tmp_path / "三国.txt.gz").write_bytes(gzip.compress("刘备".encode()))
    (tmp_path / "two.jsonl.GZ").write_bytes(gzip.compress(b'"Ann"\n"Bob"'))
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2"))
    documents = loaded(tmp_path).documents
    assert [(document.text, document.title) for document in documents] == [
        ("a: 1; b: 2", "rows"),
        ("Ann", None),
        ("Bob", None),
        ("刘备", "三国"),
    ]


@pytest.mark.slow
def test_a_gzip_file_may_be_broken_or_a_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is uncompression to its limit only."""
    name = "a.txt.gz"
    for data in (b"", b"no gzip", gzip.compress(b"text")[:-4], gzip.compress(b"t")[:-1] + b"x"):
        with pytest.raises(ConfigError, match=r"a\.txt\.gz is (not a valid gzip file|empty)"):
            read(data, name)
    with pytest.raises(ConfigError, match="unpacks to more than"):
        read(gzip.compress(bytes(compression.UNSUSPICIOUS + 1)), name)
    assert compression.largest_content(10**12) == compression.LARGEST


def test_archives_are_refused() -> None:
    """With what to do instead."""
    for name in ("a.tar", "a.tar.gz", "a.tgz", "a.7z", "a.RAR"):
        with pytest.raises(ConfigError, match=f"{name} is an archive: unpack it"):
            read(b"PK\x03\x04", name)


def test_a_user_reads_a_format_of_their_own(tmp_path: Path) -> None:
    """For a new suffix, in folders, too, or for one that the package reads otherwise."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.abc").write_bytes(b"cba")
    (tmp_path / "in" / "b.txt").write_bytes(b"txt")
    (tmp_path / "in" / "~$b.docx").write_bytes(b"what Office leaves while a file is open")
    readers = {".abc": lambda data: Document(data[::-1].decode(), title="ABC")}
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(tmp_path / "in", readers=readers)
        assert {(one.title, one.characters) for one in rag.documents()} == {("ABC", 3), ("b", 3)}
        (tmp_path / "in" / "a.abc").write_bytes(b"")
        report = rag.insert([tmp_path / "in"], readers=readers)
        assert "it is empty" in [file.reason for file in report.skipped] and not report.failures
    own = {".txt": lambda data: Document("mine", source="elsewhere")}
    path = tmp_path / "in" / "b.txt"
    (document,) = loaded(path, own).documents
    assert document == Document("mine", id=str(path), title="b", source="elsewhere")


def test_a_users_reader_that_fails_is_named(tmp_path: Path) -> None:
    """So is one that gives something else, and a suffix that is none."""
    name = "a.abc"
    with pytest.raises(ConfigError, match=r"a\.abc cannot be read: ZeroDivisionError"):
        read(b"x", name, {".abc": lambda data: Document(str(1 / 0))})
    with pytest.raises(ConfigError, match=r"a\.abc: its reader gave str, not a Document"):
        read(b"x", name, {".abc": lambda data: "text"})
    with pytest.raises(ConfigError, match=r"a reader's suffix is like '\.abc', not 'abc'"):
        loaded(tmp_path, {"abc": lambda data: Document("text")})


@pytest.mark.slow
def test_without_the_extra_it_says_which_one(tmp_path: Path) -> None:
    """A PDF names the extra, once for all files; texts and CSV are read without it."""
    for name in ("a.pdf", "b.pdf", "c.csv"):
        (tmp_path / name).write_bytes(b"a,b\n1,2")
    absent = tmp_path / "path" / "sitecustomize.py"
    absent.parent.mkdir()
    absent.write_text("import sys\nsys.modules['pypdfium2'] = None\n", encoding="utf-8")
    code = """if True:
        from pathlib import Path
        from tests.kit import loaded
        found = loaded(Path())
        print(*[failure.reason for failure in found.failures], *found.documents, sep="\\n")
    """
    search_path = os.pathsep.join(map(str, (absent.parent, CHECKOUT)))
    done = run_python(code, cwd=tmp_path, PYTHONPATH=search_path, PYTHONDONTWRITEBYTECODE="1")
    needs = ".pdf files need the package pypdfium2: pip install '.[files]'"
    assert done.stdout.split("\n")[:2] == [needs, needs], done.stderr
    assert "Document(text='a: 1; b: 2'" in done.stdout


def test_titles_above_a_table_are_no_names_of_columns() -> None:
    """Rows with the first cell only, above the first fuller row, are texts of their own."""
    table = "船队 2024\nas of May\n\nShip,Captain\nPetrel,Rosa Delmar\nHeron,\n"
    expected = ["船队 2024", "as of May", "Ship: Petrel; Captain: Rosa Delmar", "Ship: Heron"]
    for text, rows in ((table, expected), ("Name\nAda\nBo\n", ["Name: Ada", "Name: Bo"])):
        assert read(text, "a.csv").text.split("\n\n") == rows
