"""Files of Office before 2007: read if LibreOffice is there; otherwise a sentence says what to do."""

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath

import pytest

pytest.importorskip("docx")

import docx

from lightrag_jsonl import ConfigError, Document, FileLimits
from lightrag_jsonl.readers.old_office import office_program
from lightrag_jsonl.readers.process import ReadingProcess
from tests.kit import loaded
from tests.readers.files import read, saved

has_office = pytest.mark.skipif(office_program() is None, reason="LibreOffice is not installed")
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="scripts of the shell")


def letter() -> bytes:
    made = docx.Document()
    made.add_heading("The quay 码头", 1)
    made.add_paragraph("Dora Finch keeps the log.")
    return saved(made)


def program(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program in the place of LibreOffice."""
    path = folder / "soffice"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.mark.parametrize(
    ("name", "newer"), [("a.doc", ".docx"), ("a.XLS", ".xlsx"), ("a.ppt", ".pptx")]
)
def test_without_libreoffice_a_sentence_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, newer: str
) -> None:
    """A file is refused, one in a folder is skipped and reported, and a user's own reader reads it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    sentence = f"is in an older format: install LibreOffice, or save it as {newer}"
    with pytest.raises(ConfigError, match=f"{name} {sentence}"):
        read(b"\xd0\xcf\x11\xe0", name)
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / name).write_bytes(b"\xd0\xcf\x11\xe0")
    (folder / "b.txt").write_text("The lamp burns.", encoding="utf-8")
    found = loaded(folder)
    assert [file.reason for file in found.skipped] == [sentence]
    assert [document.text for document in found.documents] == ["The lamp burns."]
    readers = {Path(name).suffix.lower(): lambda data: Document("by a reader of one's own")}
    assert read(b"x", name, readers).text == "by a reader of one's own"


@posix_only
@pytest.mark.slow
def test_a_conversion_that_hangs_ends_with_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the limit of the file; the next file is read."""
    mark = tmp_path / "pid"
    program(tmp_path, f"sleep 600 & echo $! > {mark}; wait", monkeypatch)
    with ReadingProcess(FileLimits(seconds=2)) as reading:
        with pytest.raises(ConfigError, match=r"takes more than 2 seconds to convert"):
            reading.read(b"\xd0\xcf\x11\xe0", PurePath("a.doc"))
        assert reading.read(letter(), PurePath("a.docx")).title == "The quay 码头"
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", mark.read_text().strip()], capture_output=True, text=True
    ).stdout
    assert state.strip()[:1] in ("", "Z")


@posix_only
@pytest.mark.slow
def test_what_libreoffice_gives_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a profile of its own, without macros; without a result, the file is refused."""
    newer = tmp_path / "newer.docx"
    newer.write_bytes(letter())
    script = f"""
for word in "$@"; do
  case "$word" in -env:UserInstallation=file://*) profile="${{word#*file://}}";; esac
  [ "$last" = --outdir ] && results="$word"
  last="$word"
done
grep -q DisableMacrosExecution "$profile/user/registrymodifications.xcu" || exit 0
grep -q broken "$last" || {{ mkdir -p "$results"; cp {newer} "$results/file.docx"; }}
"""
    program(tmp_path, script, monkeypatch)
    assert read(b"old", "a.doc").text == "# The quay 码头\n\nDora Finch keeps the log."
    with pytest.raises(ConfigError, match=r"a\.doc cannot be converted by LibreOffice"):
        read(b"broken", "a.doc")


@has_office
@pytest.mark.slow
def test_files_are_converted_by_libreoffice_two_at_once(tmp_path: Path) -> None:
    """Beside each other, and after a broken one."""
    source = tmp_path / "letter.docx"
    source.write_bytes(letter())
    profile = (tmp_path / "profile").as_uri()
    arguments = [
        *(office_program() or "", "--headless", f"-env:UserInstallation={profile}"),
        *("--convert-to", "doc", "--outdir", str(tmp_path), str(source)),
    ]
    subprocess.run(arguments, check=True, capture_output=True, timeout=120)
    data = (tmp_path / "letter.doc").read_bytes()
    shutil.rmtree(tmp_path / "profile")

    def text_by_process(_: int) -> str:
        with ReadingProcess() as reading:
            return reading.read(data, PurePath("letter.doc")).text

    with pytest.raises(ConfigError, match=r"cannot be converted|cannot be read|is empty"):
        read(data[:600], "letter.doc")
    with ThreadPoolExecutor(2) as pool:
        texts = list(pool.map(text_by_process, range(2)))
    assert texts == ["# The quay 码头\n\nDora Finch keeps the log."] * 2
