"""Places where SQLite cannot work: the error says what is wrong with them, not with the disk or with others."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lightrag_jsonl.errors import StorageError
from lightrag_jsonl.storage.database import Database
from tests.conftest import CHECKOUT
from tests.limits import no_files

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
OPEN = """
import os, sys
from pathlib import Path
from lightrag_jsonl.errors import StorageError
from lightrag_jsonl.storage import database, opening
opening.BUSY_SECONDS = 0.1
for name in ("new", "known"):
    try:
        database.Database(Path(sys.argv[1]) / name)
    except StorageError as error:
        print(error)
"""


@pytest.mark.skipif(
    COMPILER is None or sys.platform != "linux", reason="no C compiler for the odd file system"
)
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("NO_LOCKS", errno.ENOLCK),
        ("NO_LOCKS", errno.ENOSYS),
        ("NO_LOCKS", errno.EOPNOTSUPP),
        ("NO_MEMORY", errno.ENODEV),
    ],
)
def test_a_file_system_without_locks_or_shared_memory(
    name: str, error: int, tmp_path: Path
) -> None:
    """As networks and containers have them: no disk is full, and nobody else is writing."""
    library = tmp_path / "share.so"
    source = Path(__file__).with_name("share.c")
    command = [COMPILER or "cc", "-O1", "-shared", "-fPIC", str(source), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True)
    Database(tmp_path / "known").close()
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=CHECKOUT,
        env={**os.environ, "LD_PRELOAD": str(library), name: str(error)},
    )
    told = done.stdout.strip().split("\n")
    assert len(told) == 2 and all("put the folder on a local disk" in line for line in told), done


def test_too_many_open_files(tmp_path: Path) -> None:
    """It is not the folder that is at fault; with fewer open it can be opened."""
    with no_files(), pytest.raises(StorageError, match=r"Too many open files: close some.*ulimit"):
        Database(tmp_path)
    Database(tmp_path).close()


def test_a_path_that_is_too_long_for_sqlite(tmp_path: Path) -> None:
    """Whatever the system takes."""
    folder = tmp_path.joinpath(*["x" * 120] * 5)
    with pytest.raises(StorageError, match="path is longer than SQLite takes"):
        Database(folder)
