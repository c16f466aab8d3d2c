"""Files are written as a whole: what was there stays until all of the new text is on the disk."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("resource")

import resource

from lightrag_jsonl import Document, LightRAG, StorageError
from lightrag_jsonl.core.files import write_whole

ROOM = 50_000  # bytes of a file


@contextlib.contextmanager
def little_room() -> Iterator[None]:
    """No file may grow beyond `ROOM`, as on a full disk."""
    _, hard_limit = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    former_handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, hard_limit))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, former_handler)


def test_a_file_stays_if_the_new_one_does_not_fit(tmp_path: Path) -> None:
    """The error names the path and what to do, and nothing else is left in the folder."""
    path = tmp_path / "图.json"
    write_whole(path, b"{}")
    message = r"图\.json cannot be written .*make room"
    with pytest.raises(StorageError, match=message) as caught, little_room():
        write_whole(path, b"x" * (ROOM + 1))
    assert caught.value.path == path
    assert [*tmp_path.iterdir()] == [path] and path.read_bytes() == b"{}"


def test_permissions_links_and_pipes_are_respected(tmp_path: Path) -> None:
    """A file keeps its permissions, a link leads to the new content, and a pipe is no file."""
    path = tmp_path / "graph.json"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    write_whole(link, b"new")
    assert link.is_symlink() and path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    write_whole(Path(os.devnull), b"gone")
    assert not Path(os.devnull).is_file()


def test_exports_stay_on_a_full_disk(tmp_path: Path) -> None:
    """What could not be written, and a folder that is not there, are named."""
    text = "\n\n".join(f"Nils Aas {n} met Berit Lund {n} in Bodø. " for n in range(400))
    former = tmp_path / "graph.json"
    former.write_text("former", encoding="utf-8")
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(Document(text, id="a"))
        with pytest.raises(StorageError, match=r"graph\.json cannot be written"), little_room():
            rag.admin.export(former)
        with pytest.raises(StorageError, match=r"cannot be written .*check the folder"):
            rag.admin.export(tmp_path / "absent" / "graph.json")
    assert former.read_text(encoding="utf-8") == "former"
