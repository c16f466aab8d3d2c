"""The group and the real process: help, errors in one line, exit statuses, pipes, Ctrl-C."""

import inspect
import json
import re
import signal
import subprocess
import threading
from pathlib import Path

import click
import pytest

import lightrag_jsonl
from lightrag_jsonl.cli.options import INDEX_OPTIONS
from lightrag_jsonl.providers.settings import SETUP
from tests.cli.conftest import PROGRAM, process, run
from tests.processes import heed_interrupts, run_python
from tests.servers import Reply, Request, ScriptedServer, chat_reply

PROMISED = (  # by the README
    "insert query retrieve status documents delete retry resume rejections export extract mcp parse "
    "prompts explain eval entities relations conflicts communities estimate batch import merge split copy cache doctor "
    "vacuum reembed rebuild snapshot diff rollback serve demo show help"
)


def commands(group: click.Group = PROGRAM, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The path of every command, those of groups included."""
    found = []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            found += commands(command, (*prefix, name))
        else:
            found.append((*prefix, name))
    return found


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_every_command_has_help_and_json(path: tuple[str, ...]) -> None:
    """Each command explains itself in sentences, and can print JSON."""
    result = run(*path, "--help")

    assert result.exit_code == 0
    assert "--json" in result.stdout
    assert result.stdout.split("\n\n")[1].strip().endswith(".")


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_no_command_has_an_option_named_as_one_of_the_index(path: tuple[str, ...]) -> None:
    """Options with names of `Setup` and `IndexOptions` fields go there, and never reach a function."""
    command: click.Command = PROGRAM
    for name in path:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), name) or PROGRAM
    assert command.callback is not None

    arguments = set(inspect.signature(command.callback).parameters)

    assert arguments.isdisjoint({*SETUP, *INDEX_OPTIONS})


def test_the_overview_shows_whole_sentences() -> None:
    """The commands are those of the README; no summary is cut off; --version is the package's."""
    assert PROGRAM.list_commands(click.Context(PROGRAM)) == sorted(PROMISED.split())
    listed = run("--help").stdout.partition("Start:")[2].partition("Examples:")[0]
    assert "..." not in listed
    names = re.findall(r"^  ([a-z]+)  ", listed, re.MULTILINE)
    assert sorted(names) == PROGRAM.list_commands(click.Context(PROGRAM)) and names[0] == "insert"
    assert run("--version").stdout == f"lightrag-jsonl {lightrag_jsonl.__version__}\n"


def test_help_of_insert_fits_a_screen_and_topics_have_the_rest() -> None:
    """24 lines of 80 columns, one of them the prompt; each option left out is on the page of a topic."""
    lines = run("help", "insert").stdout.splitlines()
    assert len(lines) <= 23 and max(map(len, lines)) <= 80

    topics = "".join([run("help", topic).stdout for topic in ("models", "reading", "limits")])
    insert = PROGRAM.get_command(click.Context(PROGRAM), "insert")
    assert insert is not None
    hidden = [option for option in insert.params if getattr(option, "hidden", False)]
    missing = [option.opts[0] for option in hidden if option.opts[0] not in topics]
    further = ("--allow-empty", "--watch", "--ray", "--shard-characters", "--restore-purged")
    assert missing == [*further]  # which the docs explain
    assert run("help", "nothing").exit_code == 2 and "models" in run("help", "nothing").stderr


EXISTING = (
    "query Who?|retrieve Who?|status|documents|rejections|retry|resume|delete x|export|cache|"
    "cache --clear|vacuum|rebuild|reembed --embedder hash|entities duplicates|explain list|"
    "explain show x|explain verify|explain gc --keep 1|batch export -o out.jsonl|eval --generate 1"
)


@pytest.mark.parametrize("command", EXISTING.split("|"))
def test_no_index_is_a_clear_error_and_creates_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """What needs an index says how to make one; no folder appears by asking."""
    monkeypatch.chdir(tmp_path)
    result = run(*command.split(), "-w", "none")

    assert (result.exit_code, result.stdout) == (1, "")
    expected = "no index in none; make one with: lightrag-jsonl insert -w none FILES"
    assert result.stderr == f"Error: {expected}\n"
    assert list(tmp_path.iterdir()) == []


MODEL = ("--llm", "m", "--base-url", "http://127.0.0.1:9/v1")
WRONG = [
    (("insert", "a.txt", "-w", " "), 2, "the name of a file or folder is empty"),
    (("insert", ""), 2, "the name of a file or folder is empty"),
    (("copy", "a.txt", ""), 2, "the name of a file or folder is empty"),
    (("merge", "", "-w", "kb"), 2, "the name of a file or folder is empty"),
    (("split", "d", "--into", " ", "-w", "kb"), 2, "the name of a file or folder is empty"),
    (("export", ""), 2, "the name of a file or folder is empty"),
    (("delete", "Zoë\udcff"), 2, "is not UTF-8"),
    (("documents", "-n", "9" * 20), 2, "is not in the range"),
    (("query", "Who?", "--chunk-top-k", "0"), 2, "is not in the range"),
    (("entities", "merge", "Zoë", "--into", "\udcff 雪"), 2, "is not UTF-8"),
    (("relations", "create", "Zoë", "\udcff", "--by", "me"), 2, "is not UTF-8"),
    (("insert", "a.txt", "--llm", "\udce9"), 2, "is not UTF-8"),
    (("insert", "a.txt", "-w", "b.txt"), 1, "b.txt: it is a file"),
    (("insert", "a.txt", "--language", "../xx"), 1, "fr or French"),
    (("insert", "a.txt", "--base-url", "http://me:pw@host", "--llm", "m"), 1, "holds a password"),
    (("insert", "a.txt", "--chunk-tokens", "9", "--chunk-overlap", "9"), 1, "chunk_overlap (9)"),
    (("insert", "a.txt", "b.txt", "--id", "x"), 2, "names one document, but 2 were given"),
    (("insert", "a.txt", "--embedder", "st:"), 1, "st:NAME_OR_FOLDER"),
    (("insert", "none.txt"), 1, "no such file: none.txt"),
    (("batch", "export", "a.txt", "-o", "requests.jsonl"), 1, "this needs a model"),
    (("extract", "extract-topics", "a.txt"), 2, "name it with --llm"),
    (("extract", "extract-rows", "a.txt", "--set", "schema=@none", *MODEL), 1, "no such file"),
    (("extract", "extract-rows", "a.txt", "--set", "schema", *MODEL), 2, "expected NAME=VALUE"),
    (("reembed",), 2, "--embedder"),
    (("entities", "-w", "kb"), 2, "-w belongs after a command"),
    (("-w", "kb", "status"), 2, "-w belongs after a command"),
    (("--keep", "3"), 2, "--keep belongs after a command"),
    (("explain", "-q"), 2, "No such option '-q'"),
    (("--nonsense",), 2, "No such option '--nonsense'"),
    (("eval",), 2, "give either a file of QUESTIONS or --generate"),
]


@pytest.mark.parametrize(("words", "status", "reason"), WRONG, ids=lambda value: str(value)[:60])
def test_mistakes_are_explained_and_nothing_is_made(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    status: int,
    reason: str,
) -> None:
    """Status 2 for wrong usage, 1 for an error, in words that say what is wrong; no folder is made."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt"):
        Path(name).write_text("Ada met Bob.", encoding="utf-8")
    if words[0] == "eval":
        assert run("insert", "a.txt").exit_code == 0
    before = sorted(tmp_path.iterdir())
    result = run(*words)

    assert result.exit_code == status and reason in result.stderr, result.output
    assert "pw" not in result.output
    if words[:2] != ("batch", "export"):
        assert sorted(tmp_path.iterdir()) == before


HEAVY = (
    "faiss networkx openai opencc rapidfuzz rjieba scipy sentence_transformers tiktoken torch tqdm"
)


@pytest.mark.slow
def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    """--help needs no package that takes long to import, nor does a model before its first call."""
    code = (
        "import sys; from lightrag_jsonl.cli import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "from lightrag_jsonl import providers as p\n"
        "p.OpenAILLM('m'), p.OpenAIEmbedder('m'), p.SentenceTransformerEmbedder('m')\n"
        "p.CrossEncoderReranker('m')\n"
        f"print([name for name in {HEAVY!r}.split() if name in sys.modules])"
    )
    done = run_python(code, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("[]")


@pytest.mark.slow
def test_pipes(environment: dict[str, str], kb: Path) -> None:
    """A pipe gets the answer alone, in UTF-8, with no escape sequence; JSON stays readable where the
    encoding has no Chinese.
    """
    line, question = process(["query", "-w", kb]), "谁联络大月氏？".encode()
    done = subprocess.run(line, env=environment, input=question, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "张骞" in done.stdout.decode("utf-8") and b"\x1b" not in done.stdout

    latin = {**environment, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = subprocess.run(
        process(["documents", "-w", kb, "--json"]), env=latin, capture_output=True
    )
    assert "张骞" in {one["id"] for one in json.loads(done.stdout.decode("ascii"))}


@pytest.mark.slow
def test_a_closed_output_is_no_error(environment: dict[str, str]) -> None:
    """`parse | head -1` ends quietly, with the status that the shell has for it."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(process(["parse"]), env=environment, **pipes) as child:  # type: ignore[call-overload]
        assert child.stdin and child.stdout and child.stderr
        child.stdout.close()
        child.stdin.write(b'{"a":1}\n')
        child.stdin.close()
        assert child.stderr.read() == b""
    assert child.returncode == 141


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no device that is always full")
def test_an_output_without_room_is_named(environment: dict[str, str], kb: Path) -> None:
    """`export > FILE` on a full disk says what cannot be written, and what to do."""
    with Path("/dev/full").open("wb") as full:
        line = process(["export", "-w", kb])
        done = subprocess.run(line, env=environment, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr.decode().startswith("Error: nothing more can be written (No space left")


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_read(
    environment: dict[str, str], texts: Path, tmp_path: Path
) -> None:
    """Status 130, one line on how to continue; `resume` repeats only calls that were in flight."""
    asked, stuck = threading.Event(), True

    def respond(request: Request) -> Reply:
        if stuck and "张骞" in json.dumps(request.json, ensure_ascii=False):
            asked.set()
            return Reply(chat_reply("").body, delay=60)
        return chat_reply('{"type":"done","entities":0,"relationships":0}')

    with ScriptedServer(respond=respond) as server:
        model = ("--llm", "m", "--base-url", server.base_url)
        insert = process(("insert", "-w", tmp_path / "kb", *model, texts))
        child = subprocess.Popen(
            insert, env=environment, stderr=subprocess.PIPE, preexec_fn=heed_interrupts
        )
        assert asked.wait(240)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=240)
        stuck, before = False, len(server.requests)
        resumed = run("resume", "-w", tmp_path / "kb", *model[2:])

        assert child.returncode == 130
        assert errors.decode().endswith("run the same command again\n")
        assert resumed.exit_code == 0, resumed.output
        assert len(server.requests) - before <= 2


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["documents", "-w", "none"], 1, "StorageError"),
        (["query", "-w", "none"], 2, "UsageError"),
        (["query", "--no-such-option"], 2, "NoSuchOption"),
        (["insert", "-w", "kb", "没有👻.txt"], 1, "ConfigError"),
    ],
)
def test_json_covers_errors(
    arguments: list[str], status: int, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --json an error is one object on stderr; stdout stays empty, the status the same."""
    monkeypatch.chdir(tmp_path)
    plain, result = run(*arguments), run(*arguments, "--json")
    assert (plain.exit_code, result.exit_code, result.stdout) == (status, status, "")
    error = json.loads(result.stderr)["error"]
    assert error["code"] == code and error["message"]


def test_an_address_is_no_file(tmp_path: Path) -> None:
    """The error says what to do instead, before an index is created."""
    done = run("insert", "-w", tmp_path / "kb", "https://example.org/page")
    assert done.exit_code == 1 and "save the page" in done.stderr
    assert not (tmp_path / "kb").exists()


def test_a_question_that_nobody_can_answer_names_its_option(tmp_path: Path) -> None:
    """Without a terminal and without input, a confirmation says how to give it."""
    run("insert", "-w", tmp_path, "-", stdin="Ada met Byron.")
    run("snapshot", "create", "-w", tmp_path, "one")
    done = run("rollback", "-w", tmp_path, "one")
    assert done.exit_code == 2 and "--yes" in done.stderr
    assert run("rollback", "-w", tmp_path, "one", stdin="n\n").exit_code == 1
    assert run("rollback", "-w", tmp_path, "one", stdin="y\n").exit_code == 0


@pytest.mark.parametrize("command", ["reembed", "retry", "query", "eval", "doctor", "insert"])
def test_options_that_a_help_names_are_explained(command: str) -> None:
    """In its own list, or in that of a topic that it points to."""
    page = run(command, "--help").stdout
    explained = set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", page, re.MULTILINE))
    for topic in re.findall(r"help\s+(models|reading|limits)\b", page):
        topic_page = run("help", topic).stdout
        explained |= set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", topic_page, re.MULTILINE))
    description, _ = page.split("\nOptions:")
    assert set(re.findall(r"(?<![\w-])--[a-z-]+", description)) <= explained
