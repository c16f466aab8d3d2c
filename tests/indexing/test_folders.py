"""Folders, archives and mailboxes: what is read of them, what is left out, and that the report says so."""

import gzip
import io
import logging
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, FileLimits, LightRAG
from tests.kit import loaded
from tests.readers.files import read


def folder(root: Path, files: Mapping[str, str]) -> Path:
    """A folder with these files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def names_in(root: Path, limits: FileLimits | None = None) -> list[str]:
    """The names of the documents of a folder."""
    ids = [document.id for document in loaded(root, limits=limits).documents]
    return sorted(Path(id or "").relative_to(root.resolve()).as_posix() for id in ids)


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


NUMBERED = (
    "第二章 码头.md",
    "第十章 灯塔.md",
    "第十一章 归航.md",
    "log-2.md",
    "log-10.md",
    "log-9.md",
)


def test_numbered_files_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """A folder and an archive are read as people number files, in digits and in Chinese: 2, 9, 10."""
    in_order = ["log-2", "log-9", "log-10", "第二章 码头", "第十章 灯塔", "第十一章 归航"]
    root = folder(tmp_path / "logs", {name: f"Entry {name}." for name in NUMBERED})
    archive = tmp_path / "logs.zip"
    archive.write_bytes(zipped({name: f"Entry {name}." for name in NUMBERED}))

    for source in (root, archive):
        texts = [document.text for document in loaded(source).documents]
        assert texts == [f"Entry {name}.md." for name in in_order]


TREE = {
    "crew.md": "Dora Finch lights the lamp.",
    ".git/description.txt": "Unnamed repository",
    ".trash/old.md": "Dora was dismissed.",
    ".venv/lib/notes.txt": "A package",
    "app/node_modules/left/readme.md": "A package",
    "app/__pycache__/cache.txt": "A cache",
    ".gitignore": "build/\n*.log.txt\n",
    "build/out.txt": "Built",
    "run.log.txt": "started",
    "docs/.gitignore": "!keep.log.txt\n草稿*\n",
    "docs/keep.log.txt": "The lamp burned.",
    "docs/草稿一.md": "A draft",
    "docs/quay.md": "The quay is long.",
}


def test_a_folder_is_read_as_its_people_see_it(tmp_path: Path) -> None:
    """Hidden files, packages, caches and what Git ignores are left out, and named with the reason."""
    root = folder(tmp_path / "quay", TREE)
    assert names_in(root) == ["crew.md", "docs/keep.log.txt", "docs/quay.md"]
    reasons = {
        Path(file.path).relative_to(root).as_posix(): file.reason for file in loaded(root).skipped
    }
    assert reasons == {
        ".git": "it is hidden",
        ".trash": "it is hidden",
        ".venv": "it is hidden",
        "app/node_modules": "it belongs to a program",
        "app/__pycache__": "it belongs to a program",
        "build": "a .gitignore ignores it",
        "run.log.txt": "a .gitignore ignores it",
        "docs/草稿一.md": "a .gitignore ignores it",
    }


def test_a_file_without_a_text_is_skipped_and_no_failure(tmp_path: Path) -> None:
    """A note with properties only and an empty module are usual in folders; given alone, they are named."""
    files = {
        "quay.md": "The quay is long.",
        "rope.md": "---\nmaker: Rask\n---\n",
        "__init__.py": "",
    }
    root = folder(tmp_path / "quay", files)
    with LightRAG(tmp_path / "kb") as rag:
        report = rag.insert(root)
        assert len(report.documents) == 1 and not report.failures
        skipped = {Path(item.path).name: item.reason for item in report.skipped}
        assert skipped == {"rope.md": "it is empty", "__init__.py": "it is empty"}
        with pytest.raises(ConfigError, match=r"rope\.md is empty"):
            rag.insert(root / "rope.md")


def test_a_file_with_a_text_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    """It is not passed over with those that are empty."""
    files = {"quay.md": "The quay is long.", "码头.ipynb": '{"cells": {"a": "灯"}}'}
    with LightRAG(tmp_path / "kb") as rag:
        report = rag.insert(folder(tmp_path / "quay", files))
    assert not report.skipped
    assert [failure.reason.partition(".ipynb ")[2] for failure in report.failures] == [
        "is not a valid notebook: its cells are no list"
    ]


def test_patterns_leave_out_and_take_in(tmp_path: Path) -> None:
    """What is excluded is left out though it is included; the rest of a folder is as before."""
    root = folder(tmp_path / "quay", TREE)
    assert names_in(root, FileLimits(exclude=("docs/",))) == ["crew.md"]
    limits = FileLimits(include=(".trash/", "*.log.txt"), exclude=("keep*",))
    assert names_in(root, limits) == [".trash/old.md", "crew.md", "docs/quay.md", "run.log.txt"]


def test_an_archive_is_a_folder(tmp_path: Path) -> None:
    """Its readable files are documents with its name; a broken one costs itself, others are counted."""
    inner = zipped({"deep.md": "never"})
    files = {
        "crew/dora.md": "Dora Finch lights the lamp.",
        "../码头.txt": "码头很长。",
        "broken.docx": "no package",
        ".hidden/x.md": "x",
        "__MACOSX/x.md": "x",
        "inner.zip": inner,
        "lines.jsonl": '{"text": "one"}\n{"text": "two"}\n',
    }
    path = tmp_path / "quay.zip"
    path.write_bytes(zipped(files))
    found = loaded(path)
    documents = {document.id or "": document.text for document in found.documents}
    root = path.resolve().as_posix()

    assert documents.pop(f"{root}#/crew/dora.md") == "Dora Finch lights the lamp."
    assert documents.pop(f"{root}#/码头.txt") == "码头很长。"
    assert sorted(documents.values()) == ["one", "two"]
    (failure,) = found.failures
    assert failure.document_id.endswith("broken.docx") and "not a valid .docx" in failure.reason
    (note,) = found.notes
    assert note.text == "not read, of the files inside: 2 .md, 1 .zip"


def test_an_archive_that_grows_is_refused(tmp_path: Path) -> None:
    """Neither many files of nothing nor one that is far larger than its archive is unpacked."""
    large = tmp_path / "large.zip"
    large.write_bytes(zipped({f"{number}.txt": "0" * (8 << 20) for number in range(3)}))
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(b"PK\x03\x04 and no more")
    for path, reason in ((large, "unpacks to"), (damaged, r"is not a valid \.zip file")):
        with pytest.raises(ConfigError, match=rf"{path.name} {reason}"):
            loaded(path)


def test_a_damaged_file_in_an_archive_costs_itself(tmp_path: Path) -> None:
    """The others are read."""
    data = bytearray(zipped({"a.txt": "Dora " * 50, "b.txt": "The quay is long."}))
    data[40:44] = b"\xff\xff\xff\xff"  # in the compressed bytes of the first file
    path = tmp_path / "quay.zip"
    path.write_bytes(data)
    found = loaded(path)
    assert [document.text for document in found.documents] == ["The quay is long."]
    (failure,) = found.failures
    assert "a.txt cannot be unpacked" in failure.reason


MAILBOX = """From dora@quay.example Mon Jan  6 07:00:00 2025
From: Dora <dora@quay.example>
Subject: =?utf-8?B?54Gv?=
Date: Mon, 06 Jan 2025 07:00:00 +0000
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

The lamp costs =E2=82=AC 5.

>From now on it burns.

From cid@quay.example Tue Jan  7 07:00:00 2025
From: Cid <cid@quay.example>
Subject: Oil

I sell oil.
"""


def test_a_mailbox_is_its_messages(tmp_path: Path) -> None:
    """Each a document with subject and date; a line that only begins with From begins none."""
    path = tmp_path / "quay.mbox"
    path.write_text(MAILBOX, encoding="utf-8")
    documents = loaded(path).documents
    assert [(item.title, item.date) for item in documents] == [("灯", "2025-01-06"), ("Oil", None)]
    assert documents[0].text.endswith("The lamp costs € 5.\n\nFrom now on it burns.")
    assert documents[1].id == f"{path.resolve().as_posix()}#/2.eml"
    packed_path = tmp_path / "quay.mbox.gz"
    packed_path.write_bytes(gzip.compress(path.read_bytes()))
    packed = loaded(packed_path).documents
    assert [item.text for item in packed] == [item.text for item in documents]
    path.write_text("Dear Dora,\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="is not a mailbox"):
        loaded(path)


def test_the_beginnings_of_messages_in_a_mailbox_are_told_from_its_text(tmp_path: Path) -> None:
    """A message begins with a time and a year even without a blank line before; words and a name with a colon
    begin none. A name behind an address, as in archives of lists, is the sender's.
    """
    path = tmp_path / "list.mbox"
    path.write_text(
        "From dora at quay.example  Tue Aug  2 05:13:44 2005\nFrom: dora at quay.example (Dora Finch)\n"
        "Subject: Oil\n\nFrom here on\nCid: no oil.\n\nFrom what I see:\nnone.\n"
        "From cid at quay.example  Tue Aug  2 06:13:44 2005\nFrom: cid@quay.example (=?utf-8?B?5p2O5piO?=)\n"
        "Subject: Re: Oil\n\nBuy some.\n",
        encoding="utf-8",
    )
    first, second = loaded(path).documents
    assert first.text.startswith("From: Dora Finch <dora at quay.example>\nSubject: Oil\n")
    assert first.text.endswith("From what I see:\nnone.")
    assert second.text == "From: 李明 <cid@quay.example>\nSubject: Re: Oil\n\nBuy some."


@pytest.mark.parametrize("name", ["quay.mbox", "quay.zip", "quay.mbox.gz"])
def test_one_document_of_a_file_that_holds_several_is_refused(name: str) -> None:
    """Instead of headers and encoded words as its text."""
    data = MAILBOX.encode()
    with pytest.raises(ConfigError, match="holds several documents"):
        read(gzip.compress(data) if name.endswith(".gz") else data, name)


def test_a_folder_of_a_link_is_not_left(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A link is named, and its target is not read."""
    caplog.set_level(logging.ERROR)
    root = folder(tmp_path / "quay", {"a.md": "Dora"})
    outside = folder(tmp_path / "secret", {"b.md": "Cid"})
    (root / "link").symlink_to(outside, target_is_directory=True)
    assert names_in(root) == ["a.md"]
    (file,) = loaded(root).skipped
    assert file.reason == "it is a link"
