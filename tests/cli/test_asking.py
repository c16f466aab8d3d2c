"""query and retrieve: questions from arguments and stdin, filters, history, streams, prompts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lightrag_jsonl.options import MODES
from tests.cli.conftest import Run, RunJson
from tests.servers import ScriptedServer, chat_reply, error_reply, stream_reply


def test_an_answer_with_its_sources(run: Run, kb: Path) -> None:
    """The answer is on stdout, and below it the places it was taken from."""
    result = run("query", "-w", kb, "Where was Marie Curie born?")

    assert result.exit_code == 0
    assert "Marie Curie was born in Warsaw." in result.stdout
    assert "Curie, page 1, characters 0–" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "bypass"])
def test_every_mode_answers(run_json: RunJson, kb: Path, mode: str) -> None:
    """Every mode that looks anywhere finds the sentence, in Chinese too."""
    answer = run_json("query", "-w", kb, "--mode", mode, "谁联络大月氏？")

    assert "张骞" in answer["text"]
    assert answer["context"]["mode"] == mode
    assert answer["citations"][0]["document_id"] == "张骞"


def test_a_question_from_stdin(run: Run, kb: Path) -> None:
    """Without an argument, and with -, the question is read from stdin."""
    for words in ([], ["-"]):
        result = run("query", "-w", kb, *words, stdin="Where was Marie Curie born?\n")
        assert result.exit_code == 0 and "Warsaw" in result.stdout


@pytest.mark.parametrize("question", ["", "  ", "\n"])
def test_an_empty_question_is_wrong_usage(run: Run, kb: Path, question: str) -> None:
    """Nothing to ask: status 2, and one sentence that says so."""
    assert run("query", "-w", kb, stdin=question).exit_code == 2
    assert "the question is empty" in run("query", "-w", kb, question, stdin="").stderr


def test_streaming_prints_the_same_as_waiting(run: Run, kb: Path) -> None:
    """--stream changes when the answer is printed, not what."""
    words = ("-w", kb, "Where was Marie Curie born?")

    assert run("query", "--stream", *words).stdout == run("query", "--no-stream", *words).stdout


def test_streaming_with_a_model(run: Run, kb: Path) -> None:
    """The pieces of a model's answer are printed, then the sources of what it cites."""
    pieces = stream_reply(["In Warsaw ", "[1]", "."])
    with ScriptedServer([pieces]) as server:
        words = ("--llm", "m", "--base-url", server.base_url, "--mode", "naive", "--stream")
        result = run("query", "-w", kb, *words, "Where was Marie Curie born?")
        bodies = server.bodies

    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("In Warsaw [1].\n\n[1] ")
    assert bodies[-1]["stream"] is True


@pytest.mark.parametrize("how", ["--stream", "--no-stream"])
def test_a_cut_answer_is_told_as_cut(run: Run, run_json: RunJson, kb: Path, how: str) -> None:
    """On stderr, also where it comes from the cache, and in the JSON."""
    streamed, whole = (
        stream_reply(["In War"], finish="length"),
        chat_reply("In War", finish="length"),
    )
    with ScriptedServer([streamed if how == "--stream" else whole]) as server:
        words = ("-w", kb, "--llm", "m", "--base-url", server.base_url, "--mode", "naive", "Where?")
        results = [run("query", how, *words) for _ in range(2)]
        told = run_json("query", *words)
        assert len(server.bodies) == 1

    for result in results:
        assert result.stdout.startswith("In War")
        assert "note: the answer is not complete" in result.stderr
    shown = run("explain", "show", "-w", kb, told["trace_id"]).stdout
    assert told["truncated"] is True and "not complete" in shown


def test_what_was_paid_for_no_answer_is_told(run: Run, kb: Path) -> None:
    """On stderr, after the error."""
    keywords = '{"high_level_keywords": [], "low_level_keywords": ["Warsaw"]}'
    with ScriptedServer([chat_reply(keywords), error_reply(401, "no such key")]) as server:
        words = ("--llm", "m", "--base-url", server.base_url, "--no-stream")
        result = run("query", "-w", kb, *words, "Where?")

    error, paid = result.stderr.splitlines()[-2:]
    assert result.exit_code == 1 and error.startswith("error: ") and "no such key" in error
    assert paid == "model: 1 call, 7 tokens in, 5 out"


def test_history_and_instructions_reach_the_model(run: Run, kb: Path, tmp_path: Path) -> None:
    """The conversation, the form and the further instruction are part of what the model reads."""
    history = tmp_path / "before.json"
    turns = [{"role": "user", "content": "我们谈到居里"}, {"role": "assistant", "content": "Yes."}]
    history.write_text(json.dumps(turns), encoding="utf-8")
    with ScriptedServer(respond=lambda request: chat_reply("Fine [1].")) as server:
        words = ("--llm", "m", "--base-url", server.base_url, "--mode", "naive", "--no-stream")
        more = ("--response-type", "One Haiku", "--user-prompt", "Name the city.")
        result = run("query", "-w", kb, *words, *more, "--history", history, "Where?")
        sent = json.dumps(server.bodies[-1], ensure_ascii=False)

    assert result.exit_code == 0, result.output
    assert all(text in sent for text in ("我们谈到居里", "One Haiku", "Name the city."))


@pytest.mark.parametrize("text", ["{", "{}x", '{"role":"user"}', '[{"role":"king","content":""}]'])
def test_a_history_that_is_none_is_an_error(run: Run, kb: Path, tmp_path: Path, text: str) -> None:
    """A file of another shape is refused with the shape that is meant."""
    history = tmp_path / "before.json"
    history.write_text(text, encoding="utf-8")
    result = run("query", "-w", kb, "--history", history, "Where?")

    assert result.exit_code == 1
    assert "before.json" in result.stderr


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        (["id=curie"], {"curie"}),
        (["title=张骞传"], {"张骞"}),
        (["year=1934"], {"curie"}),
        (["year>=1900"], {"curie"}),
        (["year<1900"], {"张骞"}),
        (["year=1934", "year=100"], {"curie", "张骞"}),
        (["date>=1934-01-01", "date<1935-01-01"], {"curie"}),
        (["id!=curie"], {"张骞"}),
        (["id!=curie", "id!=张骞"], set()),
        (["year!=1934", "year!=7", "year>0"], {"张骞"}),
        (["id=nobody"], set()),
        (["year=１９３４"], set()),
        (["year=" + "9" * 5_000], set()),
        (["year=99999999999999999999"], set()),
        (["year=01934"], set()),
    ],
)
def test_where_narrows_the_documents(
    run_json: RunJson, kb: Path, conditions: list[str], found: set[str]
) -> None:
    """Only chunks of documents that meet every condition are found; one key twice means either."""
    where = [word for condition in conditions for word in ("--where", condition)]
    context = run_json("retrieve", "-w", kb, "--mode", "naive", *where, "Marie Curie 张骞")

    assert {chunk["document_id"] for chunk in context["chunks"]} == found


@pytest.mark.parametrize(
    "conditions",
    [["year"], ["year>1", "year>2"], ["year=1934", "year!=7"], ["year!=7", "year=1934"]],
)
def test_conditions_that_say_nothing_together_are_wrong_usage(
    run: Run, kb: Path, conditions: list[str]
) -> None:
    """A filter must say what it compares, and none of several is passed over in silence."""
    where = [word for condition in conditions for word in ("--where", condition)]
    result = run("retrieve", "-w", kb, *where, "Who?")

    assert result.exit_code == 2 and conditions[-1] in result.stderr


def test_retrieve_shows_what_was_found(run: Run, kb: Path) -> None:
    """Entities, relations and chunks with their scores, then the size of the context."""
    result = run("retrieve", "-w", kb, "--top-k", "3", "Marie Curie")

    assert result.exit_code == 0
    assert "entities\n" in result.stdout and "chunks\n" in result.stdout
    assert "Marie Curie" in result.stdout and "tokens;" in result.stdout


def test_retrieve_prompt_is_what_a_model_would_read(run: Run, run_json: RunJson, kb: Path) -> None:
    """--prompt prints the context's text, the same that --json has."""
    text = run("retrieve", "-w", kb, "--prompt", "Marie Curie").stdout

    assert text.rstrip("\n") == run_json("retrieve", "-w", kb, "Marie Curie")["prompt"].rstrip("\n")


def test_a_budget_is_kept(run_json: RunJson, kb: Path) -> None:
    """--max-tokens limits what is shown."""
    context = run_json("retrieve", "-w", kb, "--max-tokens", "60", "Marie Curie 张骞")

    assert context["tokens"] <= 60


def test_an_endpoint_that_fails_is_one_line(run: Run, kb: Path) -> None:
    """A model that cannot be reached is an error, not a traceback."""
    with ScriptedServer([error_reply(400, "no such model")]) as server:
        words = ("--llm", "m", "--base-url", server.base_url, "--mode", "bypass")
        result = run("query", "-w", kb, *words, "Hi?")

    assert result.exit_code == 1
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("where", "told"),
    [("titel=Curie", "no document has 'titel'"), ("title=Nobody", "only documents that match")],
)
@pytest.mark.parametrize("command", ["query", "retrieve"])
def test_a_filter_that_leaves_nothing_is_told(
    run: Run, kb: Path, command: str, where: str, told: str
) -> None:
    """A misspelt name is said to be none, with those there are; else that the filter was at work."""
    result = run(command, "-w", kb, "--where", where, "Where was Marie Curie born?")

    assert result.exit_code == 0
    assert told in result.stderr
    assert ("date, id, source, title, year" in result.stderr) == ("titel" in where)


def test_a_budget_that_holds_nothing_is_told(run: Run, kb: Path) -> None:
    """What was found but has no room is not the same as nothing found."""
    result = run("query", "-w", kb, "--max-tokens", "5", "Where was Marie Curie born?")

    assert result.exit_code == 0
    assert result.stderr == "note: what was found does not fit into 5 tokens\n"
