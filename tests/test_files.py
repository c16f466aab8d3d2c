"""What callers hand in, as documents: every kind of file, and every kind of thing that is none."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG
from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.files import check_target, document_from, read_all, read_one, read_text
from lightrag_jsonl.types import Document, Failure


def write(path: Path, data: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
    return path


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("中文 🙂 text\r\n".encode(), "中文 🙂 text\r\n"),
        ("中文".encode("utf-8-sig"), "中文"),
        ("Ann 中文".encode("utf-16"), "Ann 中文"),
        ("三国演义，话说天下大势".encode("gb18030"), "三国演义，话说天下大势"),
        (b"", ""),
    ],
)
def test_a_text_file_is_decoded(tmp_path: Path, data: bytes, text: str) -> None:
    """UTF-8 with or without a mark, UTF-16 with one, GB 18030 where it gives Chinese."""
    assert read_text(write(tmp_path / "a.txt", data)) == text


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0\0", bytes(range(128, 256)), b"abc\0def"])
def test_a_binary_file_is_refused(tmp_path: Path, data: bytes) -> None:
    """The error names the file and what it should have been."""
    with pytest.raises(ConfigError, match=r"a\.txt is no text file"):
        read_text(write(tmp_path / "a.txt", data))


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (b"%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj\n(Ada) Tj\n", "pdftotext"),
        (b"PK\x03\x04\x14\0", "unpack it"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "office document"),
        (b"{\\rtf1\\ansi Ada}", "rich text"),
        (gzip.compress(b"Ada Lovelace", mtime=0), "compressed; unpack it"),
    ],
)
def test_what_holds_its_text_in_another_way_is_told_by_name(
    tmp_path: Path, data: bytes, hint: str
) -> None:
    """Whatever it is called, and even where it reads like plain text: with what to do."""
    with pytest.raises(ConfigError, match=r"a\.txt is no text file but") as refused:
        read_text(write(tmp_path / "a.txt", data))
    assert hint in str(refused.value)


def test_what_a_folder_passes_over_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """How many of which kind, the most frequent first; nothing of what is hidden."""
    for name in ("a.txt", "b.pdf", "c.PDF", "d.docx", "README", ".DS_Store", ".git/config"):
        write(tmp_path / name, "Ada")
    assert len(list(read_one(tmp_path))) == 1
    (told,) = caplog.messages
    assert "passed over 2 .pdf, 1 without suffix, 1 .docx; only .txt" in told
    caplog.clear()
    for name in ("b.pdf", "c.PDF", "d.docx", "README"):
        (tmp_path / name).unlink()
    assert len(list(read_one(tmp_path))) == 1 and not caplog.messages


def test_nobody_reads_the_files_of_an_index(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """By their names, and while it is open by any other; alone an error, among others passed over."""
    write(tmp_path / "a.txt", "Ada")
    with LightRAG(tmp_path) as rag:
        rag.insert("Grace Hopper met Howard Aiken.")
        os.link(tmp_path / "index.sqlite-shm", tmp_path / "b.txt")
        (tmp_path / "中文.md").symlink_to("index.sqlite")
        own = sorted(set(tmp_path.iterdir()) - {tmp_path / "a.txt"})
        assert len(own) == 6
        for path in own:
            for use in (
                read_text,
                lambda path: list(read_all(path)),
                lambda path: check_target(str(path)),
            ):
                with pytest.raises(ConfigError, match="belongs to an index"):
                    use(path)
        for given in (tmp_path, [tmp_path / "a.txt", *own]):
            assert [found.text for found in read_all(given)] == ["Ada"]
    assert not caplog.messages
    assert list(read_all(write(tmp_path / "中" / "index.sqlite" / "a.txt", "Ada")))


def test_the_folder_of_an_index_is_passed_over_among_others(tmp_path: Path) -> None:
    """`insert -w kb *` names it, too; one without an index that holds nothing readable is told."""
    write(tmp_path / "a.txt", "Ada")
    with LightRAG(tmp_path / "kb"):
        (tmp_path / "empty").mkdir()
        found = list(read_all(sorted(tmp_path.iterdir())))
        assert [getattr(one, "text", None) for one in found] == ["Ada", None]
        assert isinstance(found[1], Failure) and "empty" in found[1].reason
        with pytest.raises(ConfigError, match="no readable file"):
            list(read_all(tmp_path / "kb"))


def test_a_missing_file_is_an_error_alone_and_a_failure_in_company(tmp_path: Path) -> None:
    """One of several does not keep the others from being read."""
    missing, there = tmp_path / "none.txt", write(tmp_path / "a.txt", "Ann")
    with pytest.raises(ConfigError, match="no such file"):
        list(read_all(missing))
    first, second = read_all([missing, there])
    assert first == Failure(str(missing), None, f"no such file: {missing}")
    assert isinstance(second, Document) and second.text == "Ann"


def test_a_folder_gives_its_texts_in_order(tmp_path: Path) -> None:
    """Those of its folders too, each with its title and source; other files are passed over."""
    for name in ("b/same.txt", "a/same.txt", "c.MD", "d.png", "e.jsonl"):
        write(tmp_path / name, '{"text": "e"}' if name.endswith("jsonl") else name)
    found = list(read_one(tmp_path))
    assert [d.text for d in found if isinstance(d, Document)] == [
        "a/same.txt",
        "b/same.txt",
        "c.MD",
        "e",
    ]
    assert [d.title for d in found[:2] if isinstance(d, Document)] == ["same", "same"]
    assert {d.source for d in found if isinstance(d, Document)} == {
        str(tmp_path / name) for name in ("a/same.txt", "b/same.txt", "c.MD", "e.jsonl")
    }


def test_a_folder_with_a_bad_file_gives_the_others(tmp_path: Path) -> None:
    """The bad one is a failure."""
    write(tmp_path / "a.txt", b"\0\1\2")
    write(tmp_path / "b.txt", "Bob")
    bad, good = read_one(tmp_path)
    assert isinstance(bad, Failure) and "no text file" in bad.reason
    assert isinstance(good, Document) and good.text == "Bob"


def test_a_folder_without_texts_is_an_error(tmp_path: Path) -> None:
    """It says what would have been read."""
    write(tmp_path / "a.png", "x")
    with pytest.raises(ConfigError, match=r"no readable file \(\.txt"):
        list(read_all(tmp_path))


def test_a_file_of_lines_has_a_document_a_line(tmp_path: Path) -> None:
    """A text, or an object: known fields are the document's, others its metadata."""
    lines = [
        '"Ann sings."',
        "",
        json.dumps({"text": "Bob", "id": 7, "title": "B", "shelf": 3, "metadata": {"x": [1]}}),
        json.dumps({"text": "", "pages": ["one", "two"], "source": "elsewhere"}),
        '"line\u2028separator"',
    ]
    path = write(tmp_path / "a.jsonl", "\n".join(lines))
    assert list(read_one(path)) == [
        Document("Ann sings.", source=str(path)),
        Document("Bob", id="7", title="B", source=str(path), metadata={"shelf": 3, "x": [1]}),
        Document("", source="elsewhere", pages=("one", "two")),
        Document("line\u2028separator", source=str(path)),
    ]


@pytest.mark.parametrize("line", ["{", "[" * 100_000, '{"title": "no text"}', "7", '{"text": 7}'])
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    """The error has the file and the number of the line."""
    path = write(tmp_path / "a.jsonl", f'"fine"\n{line}\n')
    with pytest.raises(ConfigError, match=r"a\.jsonl, line 2: "):
        list(read_one(path))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", True),
        ("date", {"year": 1900}),
        ("title", ["甲", "乙"]),
        ("source", ["a"]),
        ("pages", "第一页"),
        ("pages", ["第一页。", None]),
        ("pages", ["第一页。", 5]),
        ("metadata", ["x"]),
        ("metadata", "x"),
    ],
)
def test_a_field_of_another_kind_is_named(tmp_path: Path, field: str, value: object) -> None:
    """With the file and the line: nothing of what was given is lost, or becomes something else."""
    line = json.dumps({"text": "Ann", field: value}, ensure_ascii=False)
    path = write(tmp_path / "a.jsonl", f'"fine"\n{line}\n')
    with pytest.raises(ConfigError, match=rf"a\.jsonl, line 2: {field} must be .*, not "):
        list(read_one(path))


def test_numbers_and_null_will_do_in_a_line() -> None:
    """A number where a text names something; null is what is not there, but in the metadata."""
    line: dict[str, object] = {"text": "Ann", "id": 7, "title": 1.5, "date": 1900, "shelf": None}
    line |= dict.fromkeys(("pages", "metadata", "source"))
    assert document_from(line, where="here", source="there") == Document(  # type: ignore[arg-type]
        "Ann", id="7", title="1.5", date="1900", source="there", metadata={"shelf": None}
    )


def test_the_name_of_a_file_as_a_text_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A `str` is a text even where it names a file, but hardly anyone means that."""
    name = str(write(tmp_path / "a.txt", "Ann"))
    assert list(read_all([name, "none.txt"])) == [Document(name), Document("none.txt")]
    assert [record.getMessage() for record in caplog.records] == [
        f"{name!r} is read as a text; to read the file, give Path({name!r})"
    ]


def test_what_is_no_document_is_a_mistake() -> None:
    """A number among the documents is a TypeError; a document and a text are taken as they are."""
    with pytest.raises(TypeError, match="got int"):
        list(read_all([7]))  # type: ignore[list-item]
    for wrong in ({"text": "Ann"}, b"Ann", None):
        with pytest.raises(TypeError, match=f"got {type(wrong).__name__}"):
            list(read_all(wrong))  # type: ignore[arg-type]
    document = Document("Ann", id="x")
    assert list(read_all([document, "Bob"])) == [document, Document("Bob")]
    with pytest.raises(ConfigError, match="here: expected a text"):
        document_from([], where="here")


def test_a_closed_folder_and_a_broken_link_are_told(tmp_path: Path) -> None:
    """What cannot be read of a folder is a failure each, and the rest is read."""
    (tmp_path / "good.txt").write_text("Ann met Bob.", encoding="utf-8")
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nothing.txt")
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "b.txt").write_text("Cid met Dan.", encoding="utf-8")
    closed.chmod(0)
    try:
        found = list(read_all([tmp_path]))
    finally:
        closed.chmod(0o700)
    assert "good" in [one.title for one in found if isinstance(one, Document)]
    failures = {Path(one.document_id).name: one.reason for one in found if isinstance(one, Failure)}
    assert "no such file" in failures["gone.txt"]
    if os.getuid() != 0:  # whom no folder is closed to
        assert "Permission denied" in failures["closed"]
