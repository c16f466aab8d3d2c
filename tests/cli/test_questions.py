"""query, retrieve and eval: questions from arguments and stdin, filters, streams, prompts, measures."""

import json
from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG
from lightrag_jsonl.cli.samples import sample_documents
from tests.cli.conftest import run, run_json
from tests.kit import SEARCHING_MODES
from tests.servers import ScriptedServer, chat_reply, error_reply, stream_reply


@pytest.mark.parametrize("mode", SEARCHING_MODES)
def test_every_mode_answers(kb: Path, mode: str) -> None:
    """Every mode that searches finds the sentence; below it are the documents it was taken from."""
    answer = run_json("query", "-w", kb, "--mode", mode, "谁联络大月氏？")
    assert "张骞" in answer["text"] and answer["context"]["mode"] == mode
    assert answer["citations"][0]["document_id"] == "张骞"

    shown = run("query", "-w", kb, "--mode", mode, "Where was Marie Curie born?")
    assert shown.exit_code == 0 and shown.stderr == ""
    assert "Marie Curie was born in Warsaw." in shown.stdout
    assert "] Curie, 1934-07-04\n" in shown.stdout


def test_a_question_from_stdin(kb: Path) -> None:
    """Without an argument, and with -, the question is read from stdin; an empty one is wrong usage."""
    for words in ([], ["-"]):
        result = run("query", "-w", kb, *words, stdin="Where was Marie Curie born?\n")
        assert result.exit_code == 0 and "Warsaw" in result.stdout
    for words in ([], ["  "]):
        result = run("query", "-w", kb, *words, stdin="\n")
        assert result.exit_code == 2 and "the question is empty" in result.stderr


def test_streaming_with_a_model(kb: Path) -> None:
    """The pieces of a model's answer are printed, then the sources of what it cites; a number that
    was not shown is pointed out.
    """
    with ScriptedServer([stream_reply(["In Warsaw ", "[", "2", "]", "[99]."])]) as server:
        words = ("--llm", "m", "--base-url", server.base_url, "--mode", "naive")
        result = run("query", "-w", kb, *words, "--response-type", "One Haiku", "Where?")
        body = server.bodies[-1]

    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("In Warsaw [1][99].\n\n[1] ")
    assert body["stream"] is True and "One Haiku" in json.dumps(body)
    assert "note: [99] in the answer" in result.stderr


def test_a_claim_that_its_passage_lacks_is_marked(kb: Path) -> None:
    """Below the sources, with its words and the reason, also where another claim cites the same passage
    rightly; with --json each claim has its verdict.
    """
    written = "Marie Curie was born in Warsaw [1]. She was not born in Paris in 1999 [1]."
    with ScriptedServer([stream_reply([written])]) as server:
        words = ("-w", kb, "--llm", "m", "--base-url", server.base_url, "--mode", "naive")
        result = run("query", *words, "--where", "id=curie", "Where?")
        answer = run_json("query", *words, "--where", "id=curie", "Where?")

    assert result.stdout.startswith(written)
    assert "\n(!) [1] “She was not born in" in result.stdout
    assert "the passage does not say: 1999" in " ".join(result.stdout.split())
    assert [one["verdict"] for one in answer["claims"]] == ["nearest", "missing"]


def test_a_truncated_answer_is_marked(kb: Path) -> None:
    """On stderr, and in the JSON of the cached answer."""
    with ScriptedServer([stream_reply(["In War"], finish="length")]) as server:
        words = ("-w", kb, "--llm", "m", "--base-url", server.base_url, "--mode", "naive", "Where?")
        result, answer = run("query", *words), run_json("query", *words)

    assert result.stdout.startswith("In War")
    assert "note: the answer is incomplete" in result.stderr
    assert answer["truncated"] is True


def test_notes_below_an_answer_are_in_the_language_of_the_index(tmp_path: Path) -> None:
    """A Chinese index tells in Chinese what its answer lacks."""
    kb = tmp_path / "kb"
    file = tmp_path / "灯塔.txt"
    file.write_text("鸥角的灯塔建于１９３１年🗼。", encoding="utf-8")
    assert run("insert", "-w", kb, "-l", "zh", file).exit_code == 0
    with ScriptedServer([stream_reply(["建于[7]"], finish="length")]) as server:
        words = ("-w", kb, "--llm", "m", "--base-url", server.base_url, "--mode", "naive")
        result = run("query", *words, "鸥角的灯塔建于哪一年？")

    assert "注意：回答不完整" in result.stderr and "注意：回答中的 [7]" in result.stderr
    assert "note:" not in result.stderr
    over_budget = run("query", "-w", kb, "--max-tokens", "5", "灯塔？")
    assert "检索到的内容均超出 5 个 token 的上限。" in over_budget.stdout


def test_what_a_failed_question_cost_is_reported(kb: Path) -> None:
    """On stderr, after the error, which is one line."""
    keywords = '{"high_level_keywords": [], "low_level_keywords": ["Warsaw"]}'
    with ScriptedServer([chat_reply(keywords), error_reply(401, "no such key")]) as server:
        words = ("--llm", "m", "--base-url", server.base_url)
        result = run("query", "-w", kb, *words, "Where?")

    error, paid = result.stderr.rstrip("\n").split("\n")[-2:]
    assert result.exit_code == 1 and error.startswith("Error: ") and "no such key" in error
    assert paid == "usage  input_tokens 7, output_tokens 5, calls 1"


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        (["year>=1900"], {"curie"}),
        (["year=1934", "year=100"], {"curie", "张骞"}),
        (["date>=1934-01-01", "date<1935-01-01"], {"curie"}),
        (["id!=curie", "id!=张骞"], set()),
        (["year=01934"], set()),
    ],
)
def test_where_narrows_the_documents(kb: Path, conditions: list[str], found: set[str]) -> None:
    """Only chunks of documents that meet every condition are found; one key twice means either."""
    where = [word for condition in conditions for word in ("--where", condition)]
    context = run_json("retrieve", "-w", kb, "--mode", "naive", *where, "Marie Curie 张骞")

    assert {chunk["document_id"] for chunk in context["chunks"]} == found


@pytest.mark.parametrize(
    ("words", "status", "reason"),
    [
        ("--where year", 2, "is not KEY=VALUE"),
        ("--where date>=soon", 1, "where['date']: the value after >= must be a date such as 2021"),
    ],
)
def test_the_reason_why_nothing_was_found_is_printed(
    kb: Path, words: str, status: int, reason: str
) -> None:
    """A condition that is none, or none for dates."""
    for command in ("query", "retrieve"):
        result = run(command, "-w", kb, *words.split(), "Where was Marie Curie born?")
        assert result.exit_code == status and reason in result.stderr


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--max-tokens 5", "Nothing of what was found fits into the budget of tokens (5)."),
        (
            "--where titel=x",
            "No document passes the filter (titel = x). No document has titel; the fields are "
            "content_keywords, date, id, source, title, year.",
        ),
        ("--where title=Nobody", "No document passes the filter (title = Nobody)."),
    ],
)
def test_the_reason_is_told_once_by_the_answer_itself(kb: Path, option: str, told: str) -> None:
    """A filter that no document passes, a misspelt field, a budget that holds nothing: in the answer, and by
    `retrieve`; no note says it again.
    """
    for command in ("query", "retrieve"):
        result = run(command, "-w", kb, *option.split(), "Where was Marie Curie born?")
        assert result.exit_code == 0 and not result.stderr
        assert result.stdout.startswith(f"{told}\n")


def test_retrieve_shows_what_was_found(kb: Path) -> None:
    """Entities and chunks with their scores, then the size; --prompt: what a model reads."""
    words = ("retrieve", "-w", kb, "--top-k", "3", "Marie Curie")
    shown, found = run(*words).stdout, run_json(*words)

    assert shown.startswith("entities\n") and "\nchunks\n" in shown
    assert ["tokens", str(found["tokens"])] in [line.split() for line in shown.split("\n")]
    assert run(*words, "--prompt").stdout.rstrip("\n") == found["prompt"].rstrip("\n")


@pytest.mark.slow
def test_generated_questions_are_measured_and_kept(tmp_path: Path) -> None:
    """Questions over two chunks each, a row a mode; the same questions can be asked again."""
    made, samples = tmp_path / "made.jsonl", tmp_path / "kb"
    with LightRAG(samples) as rag:
        rag.insert(sample_documents("en")[:6])
    first = run_json("eval", "-w", samples, "--generate", "3", "-m", "mix", "--save", made)
    lines = [json.loads(line) for line in made.read_text(encoding="utf-8").split("\n") if line]
    assert len(lines) == 3 and all(len(line["supporting"]) == 2 for line in lines)
    again = run_json("eval", made, "-w", samples, "-m", "mix")

    assert [row["metrics"] for row in first["rows"]] == [row["metrics"] for row in again["rows"]]
    assert [row["name"] for row in first["rows"]] == ["dense", "bm25", "naive", "mix"]
    shown = run("eval", made, "-w", samples, "-m", "naive").stdout
    assert "gain r@5" in shown and "dense" in shown and "questions  3" in shown


def test_several_indexes_are_asked_as_one(kb: Path, tmp_path: Path) -> None:
    """Each -w is an index; answers cite all of them and tell which, and lists show what all hold."""
    more = tmp_path / "more.txt"
    more.write_text("Pierre Curie taught physics in Paris. Marie Curie was his student.", "utf-8")
    assert run("insert", "-w", tmp_path / "lectures", more).exit_code == 0
    both = ("-w", kb, "-w", tmp_path / "lectures")

    answer = run_json("query", *both, "What did Pierre Curie teach in Paris?")
    assert {citation["index"] for citation in answer["citations"]} == {"kb", "lectures"}
    shown = run("query", *both, "What did Pierre Curie teach in Paris?")
    assert "] more, lectures\n" in shown.stdout and "] Curie, 1934-07-04, kb\n" in shown.stdout
    assert "张骞" in run_json("query", *both, "谁联络大月氏？")["text"]
    assert {row["id"] for row in run_json("documents", *both)} >= {"curie", "张骞"}
    assert len(run_json("documents", *both)) == 3
    names = [row["name"] for row in run_json("entities", "list", *both)]
    assert names.count("Marie Curie") == 1
    events = run("query", *both, "--explain", "What did Pierre Curie teach in Paris?").stderr
    assert "more.txt" in events and "Curie" in events

    refused = run("insert", *both, more)
    assert refused.exit_code == 1
    assert "nothing is written to them: open one of them alone to change it" in refused.stderr
    missing = run("query", "-w", kb, "-w", tmp_path / "absent", "Who?")
    assert missing.exit_code == 1 and f"no index in {tmp_path / 'absent'}" in missing.stderr
