"""entities, cache, vacuum, reembed, rebuild, doctor, demo: whether an index is sound, and keeping it so."""

import contextlib
import os
import shlex
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import Document, LightRAG
from lightrag_jsonl.cli.samples import sample_documents, sample_records
from tests.cli.conftest import columns, run, run_json
from tests.conftest import CHECKOUT
from tests.kit import Language, entity, view


@pytest.mark.slow
def test_the_command_to_undo_a_merge_works(kb: Path) -> None:
    """If one of the names is the one they all get, it is not among those to unmerge."""
    before = view(kb)
    merge = ("entities", "merge", "-w", kb, "Marie Curie", "Pierre Curie", "--into", "Marie Curie")
    merged = run(*merge)
    undo = merged.stderr.split("lightrag-jsonl ")[1]

    assert merged.exit_code == 0 and view(kb).entities.keys() < before.entities.keys()
    assert shlex.split(undo)[4:] == ["Pierre Curie"]
    assert run(*shlex.split(undo)).exit_code == 0
    assert view(kb) == before
    assert isinstance(run_json("entities", "duplicates", "-w", kb), list)
    assert run("entities", "merge", "-w", kb, "Nobody", "--into", "X").exit_code == 1


@pytest.mark.slow
def test_duplicates_are_merged_only_if_asked(kb: Path) -> None:
    """Without --merge nothing changes; a text that states it is reason enough; a review needs a model
    and asks before it costs anything.
    """
    with LightRAG(kb) as rag:
        stated = [entity("Marie Curie", aliases=["Manya Ｓ１"])]
        rag.insert_records(Document("Marie Curie, once Manya Ｓ１.", id="names"), stated)
        rag.insert_records(Document("Manya Ｓ１ came.", id="visitors"), [entity("Manya Ｓ１")])
    before, duplicates = view(kb), ("entities", "duplicates", "-w", kb)
    assert "Manya S1" in run(*duplicates).stdout and view(kb) == before
    model = ("--llm", "m", "--base-url", "http://127.0.0.1:9/v1")
    asked = run(*duplicates, "--review", *model, stdin="n\n")
    assert asked.exit_code == 1 and "tokens" in asked.stderr
    asked = run(*duplicates, "--review", stdin="y\n")  # the error comes before the price
    assert asked.stderr.startswith("Error: this needs a model") and view(kb) == before
    merged = run(*duplicates, "--merge")
    assert merged.exit_code == 0 and view(kb).entities.keys() < before.entities.keys()
    assert run(*shlex.split(merged.stderr.split("lightrag-jsonl ")[1])).exit_code == 0
    assert view(kb) == before


def test_reports_are_estimated_before_they_are_paid(kb: Path) -> None:
    """Communities are listed without a model; reports need one, and a consent to the estimate."""
    before = view(kb)
    assert isinstance(run_json("communities", "list", "-w", kb), list)
    report = ("communities", "report", "-w", kb)
    without_model = run(*report, stdin="y\n")
    assert without_model.stderr.startswith("Error: this needs a model")
    records = [entity("Marie Curie"), entity("Pierre Curie"), entity("Paris", kind="place")]
    with LightRAG(kb) as rag:
        rag.insert_records(Document("Marie Curie and Pierre Curie in Paris.", id="more"), records)
    asked = run(*report, "--llm", "m", "--base-url", "http://127.0.0.1:9/v1", stdin="n\n")
    assert asked.exit_code == 1 and "tokens" in asked.stderr
    run("delete", "-w", kb, "more")
    assert view(kb) == before


@pytest.mark.slow
def test_a_sound_index(kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """doctor finds nothing, and says what will be used and where; it never shows a key, and makes no
    index. Cache and disk can be cleared without a change to what is stored.
    """
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-shown")
    found, url, before = run_json("doctor", "-w", kb), "http://127.0.0.1:9/v1", view(kb)
    shown = run("doctor", "-w", tmp_path / "none", "--llm", "m", "--base-url", url)

    assert found["problems"] == [] and found["index"] is True
    assert found["llm"] == "none" and found["embedder"] == "hash"
    assert shown.exit_code == 0 and "sk-never-shown" not in shown.output
    used = run_json("doctor", "-w", tmp_path / "none", "--llm", "m", "--base-url", url)
    assert (used["llm"], used["llm_from"], used["llm_endpoint"]) == ("m", "argument", url)
    assert used["llm_key"] == "none"  # it is a server of one's own
    known = run_json("doctor", "-w", tmp_path / "none", "--embedder", "openai:e")
    assert known["embedder_key"] == "from OPENAI_API_KEY" and known["llm_from"] == "default"
    assert not (tmp_path / "none").exists()
    assert run_json("cache", "-w", kb)["completions"] == 0
    assert run_json("cache", "--clear", "-w", kb).keys() == {"deleted"}
    assert "freed_bytes" in run_json("vacuum", "-w", kb) and view(kb) == before


def test_damage_is_found_and_what_is_derived_is_made_anew(kb: Path, tmp_path: Path) -> None:
    """doctor exits with 1 and names the problem, also of a file that is no database; after `rebuild`
    all is as it was.
    """
    (tmp_path / "index.sqlite").write_bytes(b"no database at all" * 100)
    result = run("doctor", "-w", tmp_path)
    assert result.exit_code == 1 and "problem: " in result.stderr
    before = view(kb)
    with contextlib.closing(sqlite3.connect(kb / "index.sqlite")) as connection, connection:
        connection.execute("INSERT INTO chunk_terms (chunk_terms) VALUES ('delete-all')")

    broken = run("doctor", "-w", kb)
    assert broken.exit_code == 1 and "problem: " in broken.stderr
    assert run("rebuild", "-w", kb).exit_code == 0
    assert run("doctor", "-w", kb).exit_code == 0
    assert view(kb) == before


@dataclass(frozen=True)
class Demo:
    """What the demo prints first, and what it returns when everything is there."""

    folder: Path
    screen: str
    tours: list[Any]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The demo in both languages, made once for all that look at it."""
    folder = tmp_path_factory.mktemp("demo") / "two words"
    result = run("demo", "-w", folder)
    assert result.exit_code == 0
    return Demo(folder, result.stdout, run_json("demo", "-w", folder))


@pytest.mark.slow
def test_demo_shows_both_languages(demo: Demo) -> None:
    """Counts, relations, an answer with its sources, no model; a second run finds all there."""
    assert "12 articles, 92 entities, 121 relations" in demo.screen
    assert "12 篇文章，82 个实体，98 条关系" in demo.screen
    assert "\nQ: " in demo.screen and "\n问：" in demo.screen
    assert "[1] Lise Meitner\n" in demo.screen and "[1] 玄奘\n" in demo.screen
    assert [tour["language"] for tour in demo.tours] == ["en", "zh"]
    assert all(answer["citations"] for tour in demo.tours for answer in tour["answers"].values())
    for language in ("en", "zh"):
        assert str(demo.folder / language) in demo.screen
        assert run("status", "-w", demo.folder / language).exit_code == 0


@pytest.mark.slow
def test_demo_fits_a_screen_and_says_nothing_twice(demo: Demo) -> None:
    """Some twenty lines, each once; a sentence of the answer is not quoted again below it."""
    lines = [line.strip() for line in demo.screen.splitlines() if line.strip()]

    assert len(lines) <= 26
    assert len(lines) == len(set(lines))
    assert demo.screen.count("Dirk Coster helped her across the border") == 1
    assert demo.screen.count("麴文泰与他结为兄弟") == 1


@pytest.mark.slow
def test_demo_shows_both_ends_of_a_relation(demo: Demo) -> None:
    """Where a line is too long for the screen, the keywords are cut, not the entity they lead to."""
    lines = demo.screen.splitlines()
    relations = [line for line in lines if line.startswith("  ") and " — " in line]

    assert relations
    assert all(line.count(" — ") == 2 for line in relations)
    assert all(columns(line) <= 80 for line in relations)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("way", "line", "word"), [("script", -3, "Thomson"), ("module", -2, "东汉的军事家")]
)
def test_demo_prints_commands_that_run(demo: Demo, way: str, line: int, word: str) -> None:
    """Started by a path or as a module, where no folder of programs has it: the next command, copied
    into a shell, works, for the English index and the Chinese one.
    """
    script = Path(sys.executable).with_name("lightrag-jsonl")
    if way == "script" and not script.exists():
        pytest.skip("the package is not installed")
    start = [script] if way == "script" else [sys.executable, "-m", "lightrag_jsonl"]
    environment = {**os.environ, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(CHECKOUT)}
    where = {
        "cwd": demo.folder.parent,
        "env": environment,
        "encoding": "utf-8",
        "capture_output": True,
    }
    shown = subprocess.run([*start, "demo", "-w", demo.folder.name], check=True, **where).stdout
    command = shown.rstrip().split("\n")[line]
    done = subprocess.run(command.strip(), shell=True, **where)
    assert done.returncode == 0, done.stderr
    assert word in done.stdout


@pytest.mark.slow
def test_demo_answers_its_questions_from_its_samples(demo: Demo) -> None:
    """Each answer on the first screen holds what the samples say."""
    answers = [answer for tour in demo.tours for answer in tour["answers"].values()]
    for words in (
        ["Dirk Coster"],
        ["麴文泰"],
    ):
        assert any(all(word in answer["text"] for word in words) for answer in answers), words
    assert not any("protactinium" in answer["text"] for answer in answers)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_records_of_the_samples_say_what_the_articles_say(
    language: Language, tmp_path: Path
) -> None:
    """Each description is a sentence of the article; no record is refused; every article has some."""
    records = sample_records(language)
    with LightRAG(tmp_path, language=language, llm="none", embedder="hash") as rag:
        for document in sample_documents(language):
            text = " ".join(document.text.split())
            for record in records[document.id or ""]:
                assert record["description"] in text
            report = rag.insert_records(document, records[document.id or ""])
            assert not report.extraction.rejections
    assert len(records) == len(sample_documents(language)) == 12


def test_doctor_names_no_address_for_a_model_of_a_program(tmp_path: Path) -> None:
    """Nothing is asked there: only a program can make this model."""
    with LightRAG(tmp_path, llm=lambda prompt: "") as rag:
        rag.insert_records("Ann", [])
    found = run_json("doctor", "-w", tmp_path)
    assert found["llm"].startswith("custom:") and not {"llm_endpoint", "llm_key"} & found.keys()
