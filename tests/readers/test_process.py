"""The process that reads files: it is ended at a limit, and the files that follow are read."""

import os
import subprocess
import sys
from pathlib import Path, PurePath

import pytest

pytest.importorskip("docx")
pytest.importorskip("openpyxl")

from lightrag_jsonl import ConfigError, Document, FileLimits, LightRAG
from lightrag_jsonl.readers import process as processes
from lightrag_jsonl.readers.process import ReadingProcess
from tests.conftest import CHECKOUT
from tests.processes import run_python

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # processes that read files

TABLE = b"Name,Born\nAda,1815\n"
LINES = "Name: Ada; Born: 1815"


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes in which files with certain words hang, need all memory, or kill what reads them."""
    module = tmp_path / "path" / "sitecustomize.py"
    module.parent.mkdir()
    module.write_text(
        """
import csv, os
plain = csv.reader
def reader(lines, **options):
    text = lines.read()
    lines.seek(0)
    while "hang" in text:
        pass
    if "memory" in text:
        text * (1 << 40)
    if "large" in text:
        bytearray(300 << 20)
    if "kill" in text:
        os._exit(7)
    if "secret" in text:
        return iter([["Name", "Key"], [str(sorted(os.environ)), "x"]])
    return plain(lines, **options)
csv.reader = reader
""",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(module.parent))


def test_one_process_reads_many_files_and_ends() -> None:
    """Its documents are those that are read here; plain text and a user's own formats need none."""
    own = {".abc": lambda data: Document(data.decode())}
    with ReadingProcess() as reading:
        assert reading.read(b"\xe5\xbc\xa0", PurePath("a.txt")).text == "张"
        assert reading.read(b"own", PurePath("a.abc"), own).text == "own"
        assert reading._process is None
        assert reading.read(TABLE, PurePath("甲.csv")) == Document(LINES, title="甲")
        first = reading._process
        assert first is not None
        text = "Name,Born\n張騫 １２ 🙂,1".encode()
        assert reading.read(text, PurePath("b.csv")).text == "Name: 張騫 １２ 🙂; Born: 1"
        assert reading._process is first and first.poll() is None
        first.kill()
        first.wait()
        assert reading.read(TABLE, PurePath("b.csv")).text == LINES
    assert first.poll() is not None and reading._process is None


def test_the_memory_of_the_caller_does_not_count() -> None:
    """A program with 700 MB in use reads all files by one process of 1 GB."""
    ballast = bytearray(b"x") * (700 << 20)
    with ReadingProcess(FileLimits(memory=1 << 30)) as reading:
        assert reading.read(TABLE, PurePath("a.csv")).text == LINES
        first = reading._process
        assert first is not None
        assert reading.read(TABLE, PurePath("b.csv")).text == LINES
        assert reading._process is first
    assert len(ballast) == 700 << 20


@pytest.mark.usefixtures("prepared")
def test_a_file_that_takes_too_long_is_given_up() -> None:
    """The reason names the limit, and the next file is read by another process."""
    late = pytest.raises(ConfigError, match=r"a\.csv takes more than 0\.5 seconds.*max-file-sec")
    with ReadingProcess(FileLimits(seconds=0.5)) as reading, late:
        reading.read(b"hang,b\n1,2", PurePath("a.csv"))
    with ReadingProcess() as reading:
        with pytest.raises(ConfigError, match=r"a\.csv cannot be read: .* ended \(status 7\)"):
            reading.read(b"kill,b\n1,2", PurePath("a.csv"))
        assert reading.read(TABLE, PurePath("b.csv")).text == LINES


@pytest.mark.usefixtures("prepared")
def test_memory_is_limited() -> None:
    """A file that needs too much of it is refused with the limit's name; the next one is read."""
    with ReadingProcess(FileLimits(memory=200 << 20)) as reading:
        for word in (b"memory", b"large") if sys.platform == "linux" else (b"memory",):
            with pytest.raises(ConfigError, match=r"a\.csv needs more than 200 MB of memory"):
                reading.read(word + b",b\n1,2", PurePath("a.csv"))
        assert reading.read(TABLE, PurePath("b.csv")).text == LINES


@pytest.mark.usefixtures("prepared")
def test_the_process_knows_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who finds a way into it by a file finds nothing there."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("LIGHTRAG_JSONL_TOKEN", "t")
    with ReadingProcess() as reading:
        names = reading.read(b"secret,b\n1,2", PurePath("a.csv")).text
    assert "PATH" in names and "OPENAI_API_KEY" not in names and "TOKEN" not in names


@pytest.mark.usefixtures("prepared")
def test_a_process_ends_with_the_one_that_started_it() -> None:
    """It does not go on reading for nobody, even if that was killed."""
    code = """if True:
        import os
        from pathlib import PurePath
        from lightrag_jsonl.readers.limits import FileLimits
        from lightrag_jsonl.readers import process, worker
        call = "answer_requests()"
        late = "from lightrag_jsonl.readers import worker; worker.LATE_SECONDS = 0.5; "
        process.CODE = process.CODE.rstrip().removesuffix(call) + late + call
        reading = process.ReadingProcess(FileLimits(seconds=1.0))
        reading._started()
        process._Alarm._ring = lambda self: os._exit(3)
        reading.read(b"hang,b", PurePath("a.csv"))
    """
    search_path = os.pathsep.join([*sys.path[:1], str(CHECKOUT)])
    done = run_python(code, PYTHONPATH=search_path)  # waits until nothing holds its stderr
    assert done.returncode == 3, done.stderr


def test_where_no_process_can_be_started_files_are_read_here(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning says once what is not limited then."""
    for executable in (str(CHECKOUT / "absent"), "/bin/false", ""):
        caplog.clear()
        monkeypatch.setattr(sys, "executable", executable)
        with ReadingProcess() as reading:
            for _ in range(2):
                assert reading.read(TABLE, PurePath("a.csv")).text == LINES
        warnings = [line for line in caplog.messages if "seconds and memory" in line]
        assert len(warnings) == 1


def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    """Not even one that inserts at its top level, in a daemonic process; nothing runs twice."""
    (tmp_path / "a.csv").write_bytes(TABLE)
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, sys\n"
        "from pathlib import Path\n"
        "from lightrag_jsonl import LightRAG\n"
        "def insert():\n"
        "    with LightRAG(Path(sys.argv[1], multiprocessing.current_process().name)) as rag:\n"
        "        print(len(rag.insert(Path(sys.argv[1], 'a.csv')).documents), flush=True)\n"
        "insert()\n"
        "child = multiprocessing.get_context('fork').Process(target=insert, daemon=True)\n"
        "child.start()\n"
        "child.join()\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.stdout == "1\n1\n", done.stderr


@pytest.mark.usefixtures("prepared")
def test_an_insert_reads_the_other_files(tmp_path: Path) -> None:
    """The file that is given up is a failure in the report."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name, data in (("a.csv", b"hang,b\n1,2"), ("b.csv", TABLE), ("c.csv", b"kill,b\n1,2")):
        (folder / name).write_bytes(data)
    with LightRAG(tmp_path / "kb") as rag:
        report = rag.insert(folder, file_limits=FileLimits(seconds=2.0))
    assert [PurePath(id).name for id in report.documents] == ["b.csv"]
    reasons = [failure.reason for failure in report.failures]
    assert "more than 2 seconds" in reasons[0] and "status 7" in reasons[1]


def test_messages_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that answers with more than a document can be is ended."""
    monkeypatch.setattr(processes, "EXIT_SECONDS", 0.1)  # this one does not end by itself
    monkeypatch.setattr(
        processes,
        "CODE",
        "import sys, time\n"
        "out = sys.stdout.buffer\n"
        "out.write(bytes(8)); out.flush()\n"
        "out.write((1 << 40).to_bytes(8, 'big')); out.flush()\n"
        "sys.stdin.buffer.read()\n",
    )
    with ReadingProcess() as reading, pytest.raises(ConfigError, match="the process that read it"):
        reading.read(TABLE, PurePath("a.csv"))
