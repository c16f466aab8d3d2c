"""What callers hand in, as documents: every kind of file, and every kind of thing that is none."""

import json
import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, Document, LightRAG
from tests.kit import loaded


def write(path: Path, data: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
    return path


def test_what_a_folder_skips_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """How many of which kind."""
    for name in ("a.txt", "b.png", "c.PNG", "d.xyz", "README"):
        write(tmp_path / name, "Ada")
    assert len(loaded(tmp_path).documents) == 1
    (message,) = caplog.messages
    assert message.endswith("of other kinds are skipped: 1 without suffix, 2 .png, 1 .xyz")
    caplog.clear()
    for name in ("b.png", "c.PNG", "d.xyz", "README"):
        (tmp_path / name).unlink()
    assert len(loaded(tmp_path).documents) == 1 and not caplog.messages


def test_the_folder_of_an_index_is_skipped_among_others(tmp_path: Path) -> None:
    """`insert -w kb *` names it, too; a folder that holds nothing readable is a failure."""
    write(tmp_path / "a.txt", "Ada")
    write(tmp_path / "kb" / "index.sqlite", b"SQLite format 3\0")
    (tmp_path / "empty").mkdir()
    found = loaded(sorted(tmp_path.iterdir()))
    assert [document.text for document in found.documents] == ["Ada"]
    (failure,) = found.failures
    assert "empty" in failure.reason
    with pytest.raises(ConfigError, match="no readable file"):
        loaded(tmp_path / "kb")


@pytest.mark.slow
def test_a_folder_gives_its_texts_in_order(tmp_path: Path) -> None:
    """Those of its folders too, each with its title and source; other files are skipped."""
    for name in ("b/same.txt", "a/same.txt", "c.MD", "d.png", "e.jsonl"):
        write(tmp_path / name, '{"text": "e"}' if name.endswith("jsonl") else name)
    documents = loaded(tmp_path).documents
    assert [document.text for document in documents] == ["a/same.txt", "b/same.txt", "c.MD", "e"]
    assert [document.title for document in documents[:2]] == ["same", "same"]
    assert {document.source for document in documents} == {
        str(tmp_path / name) for name in ("a/same.txt", "b/same.txt", "c.MD", "e.jsonl")
    }


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
    found = loaded(path).documents
    assert [one.id and one.id.startswith(f"{path}#line-") for one in found] == [1, 0, 1, 1]
    assert [replace(one, id=one.id if one.id == "7" else None) for one in found] == [
        Document("Ann sings.", source=str(path)),
        Document("Bob", id="7", title="B", source=str(path), metadata={"shelf": 3, "x": [1]}),
        Document("", source="elsewhere", pages=("one", "two")),
        Document("line\u2028separator", source=str(path)),
    ]


@pytest.mark.parametrize(
    "line", ["{", "[]", "[" * 100_000, '{"title": "no text"}', "7", '{"text": 7}']
)
def test_a_bad_line_is_named_and_costs_itself(tmp_path: Path, line: str) -> None:
    """The failure has the file and the number of the line; the other lines are read."""
    path = write(tmp_path / "a.jsonl", f'"fine"\n{line}\n"good"\n')
    found = loaded(path)
    assert [document.text for document in found.documents] == ["fine", "good"]
    (failure,) = found.failures
    assert "a.jsonl, line 2: " in failure.reason
    assert line not in ("[]", "7") or "expected a text" in failure.reason


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
    found = loaded(path)
    (failure,) = found.failures
    assert len(found.documents) == 1 and f"a.jsonl, line 2: {field}: " in failure.reason


def test_numbers_and_null_will_do_in_a_line(tmp_path: Path) -> None:
    """A number where a text names something; null is what is not there, but in the metadata."""
    line: dict[str, object] = {"text": "Ann", "id": 7, "title": 1.5, "date": 1900, "shelf": None}
    line |= dict.fromkeys(("pages", "metadata", "source"))
    path = write(tmp_path / "a.jsonl", json.dumps(line))
    (document,) = loaded(path).documents
    assert document == Document(
        "Ann", id="7", title="1.5", date="1900", source=str(path), metadata={"shelf": None}
    )


def test_what_is_no_document_is_a_mistake() -> None:
    """A number among the documents is a TypeError; a document and a text are taken as they are."""
    with pytest.raises(TypeError, match="got int"):
        loaded([7])
    for wrong in ({"text": "Ann"}, b"Ann", None):
        with pytest.raises(TypeError, match=f"got {type(wrong).__name__}"):
            loaded(wrong)
    document = Document("Ann", id="x")
    assert loaded([document, "Bob"]).documents == [document, Document("Bob")]


def test_a_closed_folder_and_a_bad_file_are_failures(tmp_path: Path) -> None:
    """What cannot be read of a folder is a failure each, and the rest is read."""
    (tmp_path / "good.txt").write_text("Ann met Bob.", encoding="utf-8")
    write(tmp_path / "bad.txt", b"\0\1\2")
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "b.txt").write_text("Cid met Dan.", encoding="utf-8")
    closed.chmod(0)
    try:
        found = loaded([tmp_path])
    finally:
        closed.chmod(0o700)
    assert "good" in [document.title for document in found.documents]
    failures = {Path(failure.document_id).name: failure.reason for failure in found.failures}
    assert "not a text file" in failures["bad.txt"]
    if os.getuid() != 0:  # whom no folder is closed to
        assert "Permission denied" in failures["closed"]


def test_the_name_of_a_file_as_a_text_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is a text, as it was given; texts that are no file's name are not reported."""
    name = str(write(tmp_path / "笔记.txt", "Ada"))
    texts = [name, "笔记", "\ud800", "a\0b", "x" * 5_000]
    assert loaded(texts).documents == [Document(text) for text in texts]
    (message,) = caplog.messages
    assert message.endswith(f"give Path({name!r})")


def odd_folder(tmp_path: Path) -> Path:
    """A folder with a text, and with all that a folder can hold besides files and folders."""
    secret = write(tmp_path / "outside" / "secret.txt", "the password")
    folder = tmp_path / "in"
    text = write(folder / "good.txt", "Ann met Bob.")
    (folder / "out.txt").symlink_to(secret)
    (folder / "twice.txt").symlink_to(text)
    (folder / "gone.txt").symlink_to(folder / "nothing.txt")
    (folder / "zero.txt").symlink_to("/dev/zero")
    (folder / "outside").symlink_to(secret.parent)
    (folder / "circle").symlink_to(folder)
    os.mkfifo(folder / "pipe.txt")
    return folder


def test_a_folder_is_read_without_its_links_and_pipes(tmp_path: Path) -> None:
    """Each is listed with the reason, whatever its name; the regular files are read."""
    folder = odd_folder(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(folder)  # the name of a socket is short
        try:
            listener.bind("socket.txt")
        finally:
            os.chdir(here)
        found = loaded(folder)
    assert [document.text for document in found.documents] == ["Ann met Bob."]
    reasons = {Path(file.path).name: file.reason for file in found.skipped}
    links = ("out.txt", "twice.txt", "gone.txt", "zero.txt", "outside", "circle")
    assert reasons == {
        **dict.fromkeys(links, "it is a link"),
        "pipe.txt": "it is a pipe, not a regular file",
        "socket.txt": "it is a socket, not a regular file",
    }
    assert not found.failures and not found.notes and len(found.skipped) == len(reasons)


def test_a_folder_of_links_alone_says_so(tmp_path: Path) -> None:
    """Nothing in it can be read, and the first link is named."""
    folder = tmp_path / "links"
    folder.mkdir()
    (folder / "a.txt").symlink_to(write(tmp_path / "a.txt", "Ada"))
    with pytest.raises(ConfigError, match=r"no readable file.*a\.txt: it is a link"):
        loaded(folder)


def test_a_file_that_is_named_may_be_a_link_but_not_a_pipe(tmp_path: Path) -> None:
    """A link to a text is read, under the id of that text; pipes and devices have no content."""
    folder = odd_folder(tmp_path)
    (document,) = loaded(folder / "out.txt").documents
    assert document.text == "the password"
    assert document.id == str(tmp_path / "outside" / "secret.txt")
    for name, kind in (("pipe.txt", "pipe"), ("zero.txt", "device")):
        with pytest.raises(ConfigError, match=f"cannot read .*{name}: it is a {kind}"):
            loaded(folder / name)
    with pytest.raises(ConfigError, match=r"no such file: .*gone\.txt"):
        loaded(folder / "gone.txt")
    found = loaded([folder / "pipe.txt", folder / "gone.txt"])
    assert len(found.failures) == 2 and not found.documents


def test_a_file_that_became_a_link_is_gone(tmp_path: Path) -> None:
    """`sync` removes its document, and those of a folder that a link now stands for."""
    folder = tmp_path / "in"
    for name in ("stays.txt", "file.txt", "sub/a.txt"):
        write(folder / name, f"Ada wrote {name} in Rome.")
    with LightRAG(tmp_path / "kb") as rag:
        assert len(rag.insert(folder, sync=True).documents) == 3
        (folder / "file.txt").rename(tmp_path / "file.txt")
        (folder / "file.txt").symlink_to(tmp_path / "file.txt")
        (folder / "sub").rename(tmp_path / "sub")
        (folder / "sub").symlink_to(tmp_path / "sub")
        report = rag.insert(folder, sync=True)
        assert [Path(item.path).name for item in report.skipped] == ["file.txt", "sub"]
        assert [Path(id).name for id in report.deleted] == ["file.txt", "a.txt"]
        assert [Path(one.id).name for one in rag.documents()] == ["stays.txt"]
