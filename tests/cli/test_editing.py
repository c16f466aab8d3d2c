"""Edits by hand, upgrades and folders kept in step, on the command line."""

import re
import shlex
from pathlib import Path

import pytest

from lightrag_jsonl import Document, LightRAG
from tests.cli.conftest import columns, run, run_json
from tests.cli.test_documents import ANSWER
from tests.kit import entity, relation
from tests.servers import ScriptedServer, chat_reply


@pytest.mark.slow
def test_edits_and_how_to_undo_them(kb: Path) -> None:
    """Each prints the command that undoes it; lists show what there is; nonsense is refused."""
    about = ("--description", "西汉人。", "--by", "小明", "--reason", "补充")
    edit = run_json("entities", "edit", "-w", kb, "张骞", "--type", "使者", *about)["edit"]
    (found,) = run_json("entities", "list", "-w", kb, "--search", "张", "--type", "使者")
    assert (found["name"], found["description"]) == ("张骞", "西汉人。")
    run_json("entities", "create", "-w", kb, "Zoe", "--type", "person")
    ends = (kb, "Zoe", "张骞")
    run_json("relations", "create", "-w", *ends, "--keyword", "reads", "--weight", 99)
    assert run_json("relations", "list", "-w", kb, "-n", 1)[0]["keywords"] == ["reads"]
    run_json("relations", "edit", "-w", *ends, "--keyword", "likes")
    assert run_json("relations", "list", "-w", kb, "-n", 1)[0]["keywords"] == ["likes"]
    run_json("relations", "delete", "-w", *ends)
    assert not run_json("relations", "list", "-w", kb, "--search", "zoe")
    gone = run("entities", "delete", "-w", kb, "张骞")
    undo = gone.stderr.strip().partition("lightrag-jsonl ")[2].split()
    assert not run_json("entities", "list", "-w", kb, "--search", "张骞")
    assert run(*undo).exit_code == 0 and run("delete", "-w", kb, edit).exit_code == 0
    assert run_json("entities", "list", "-w", kb, "--search", "张骞")[0]["type"] != "使者"
    assert run("entities", "edit", "-w", kb, "Zoe").exit_code == 2
    missing = run("entities", "delete", "-w", kb, "Nobody")
    assert missing.exit_code == 1 and "no such entity: Nobody" in missing.stderr
    nothing = run("relations", "create", "-w", kb, "Warsaw", "张骞", "--weight", "0")
    assert nothing.exit_code == 1 and "a weight is a number above 0" in nothing.stderr
    assert run("relations", "create", "-w", kb, "Warsaw", "张骞").exit_code == 0
    assert len(run_json("documents", "-w", kb, "-n", 1, "--offset", 1)) == 1


def test_homonyms_are_separated_and_joined_by_the_command_printed(tmp_path: Path) -> None:
    """The list has the bearers with their documents; the printed command undoes the separation."""
    kb = tmp_path / "kb"
    with LightRAG(kb) as rag:
        for id, year in (("a", 1820), ("b", 1955)):
            text = f"John Gale (born {year}) rowed. １２ 😀"
            rag.insert_records(Document(text, id=id), [entity("John Gale", text)])
    (homonym,) = run_json("entities", "homonyms", "-w", kb)
    assert homonym["bearers"] == {"1820": ["a"], "1955": ["b"]}
    separated = run("entities", "homonyms", "-w", kb, "--separate", "John Gale")
    names = [item["name"] for item in run_json("entities", "list", "-w", kb)]
    assert names == ["John Gale (1820)", "John Gale (1955)"]
    undo = shlex.split(separated.stderr.strip().partition("lightrag-jsonl ")[2])
    assert run(*undo).exit_code == 0
    assert [item["name"] for item in run_json("entities", "list", "-w", kb)] == ["John Gale"]


@pytest.mark.slow
def test_a_price_that_is_known_is_named_in_money(texts: Path, tmp_path: Path) -> None:
    """In the question before an upgrade, whose line ends also where nobody can answer, and in the status after it."""
    pytest.importorskip("genai_prices", reason="needs the extra prices")
    kb = tmp_path / "kb"
    assert run("insert", "-w", kb, texts / "a.txt").exit_code == 0
    with ScriptedServer(respond=lambda request: chat_reply(ANSWER)) as server:
        model = ("--llm", "gpt-4o-mini", "--base-url", server.base_url)
        asked = run("retry", "-w", kb, "--upgrade", *model)
        assert asked.exit_code == 2 and not server.requests
        assert asked.stderr.endswith("Error: nobody can answer here: confirm with --yes\n")
        assert "Usage" not in asked.stderr
        assert re.search(r"upgrade 1 chunk, .* \d\.\d{4} USD\? \[y/N\]: \n", asked.stderr)
        assert run("retry", "-w", kb, "--upgrade", "--yes", *model).exit_code == 0
    assert re.search(r"spent on extraction: \d\.\d{4} USD", run("status", "-w", kb).stderr)


@pytest.mark.slow
def test_an_upgrade_names_its_price_first(texts: Path, tmp_path: Path) -> None:
    """Refused, nothing is asked; without a model it is an error; afterwards the model is remembered."""
    kb = tmp_path / "kb"
    assert run("insert", "-w", kb, texts / "a.txt").exit_code == 0
    assert "this needs a model" in run("retry", "-w", kb, "--upgrade").stderr
    with ScriptedServer(respond=lambda request: chat_reply(ANSWER)) as server:
        model = ("--llm", "m", "--base-url", server.base_url)
        asked = run("retry", "-w", kb, "--upgrade", *model, stdin="n\n")
        assert asked.exit_code == 1 and "upgrade 1 chunk, about 1 call" in asked.stderr
        assert not server.requests and run_json("status", "-w", kb)["llm"] == "none"
        done = run("insert", "-w", kb, texts, "--sync", "--upgrade", "--yes", *model)
        assert done.exit_code == 0, done.output
        assert "upgrade: 1 chunk," in done.stderr
        names = {one["name"] for one in run_json("entities", "list", "-w", kb)}
        assert names == {"Marie Curie", "Warsaw"} and run_json("status", "-w", kb)["llm"] == "m"
        again = run("retry", "-w", kb, "--upgrade", *model)
        assert again.stdout == "nothing to upgrade\n"
    (texts / "b.md").unlink()
    report = run_json("insert", "-w", kb, texts, "--sync")
    assert report["deleted"] == [str(texts / "b.md")]


def test_conflicts_are_listed_on_the_terminal(tmp_path: Path) -> None:
    """Two texts do not show that a relation has one value: the command says how to name such ones, and that
    what rules read contradicts nothing.
    """
    with LightRAG(tmp_path / "kb") as rag:
        for town in ("Tallinn", "Turku"):
            text = f"Mara Voss was born in {town}."
            rag.insert_records(text, [relation("Mara Voss", town, text, keywords=["born in"])])
        rag.insert("Mara Voss was born in Riga.")

    unknown = run("conflicts", "-w", tmp_path / "kb")
    birthplaces = run("conflicts", "-w", tmp_path / "kb", "--functional", "born in")

    assert "no contradictions" in unknown.stdout
    assert '--functional "born in"' in unknown.stdout
    assert "Mara Voss was born in Tallinn." in birthplaces.stdout
    assert "Mara Voss was born in Turku." in birthplaces.stdout
    assert "Riga" not in birthplaces.stdout
    assert "what was read without a model has none" in unknown.stdout


def test_a_history_shows_each_sentence_once(tmp_path: Path) -> None:
    """A sentence about an entity and a relation of it is one line for people and in JSON."""
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(Document("Mara Voss was born in Riga in 1901.", title="life"))

    table = run("entities", "history", "Mara Voss", "-w", tmp_path / "kb").stdout
    claims = run_json("entities", "history", "Mara Voss", "-w", tmp_path / "kb")

    assert claims
    assert table.count("Mara Voss was born in Riga in 1901.") == 1


def test_an_entity_is_shown_with_its_relations_and_documents(kb: Path) -> None:
    """In lines of 80 columns; names of one sentence are joined without a direction."""
    shown = run("show", "-w", kb, "Marie Curie").stdout

    assert shown.startswith("Marie Curie")
    assert "\ndocuments\n  Curie" in shown and "Pierre Curie" in shown
    relations = shown.split("\n\n")[2]
    assert max(map(columns, relations.splitlines())) <= 80 and "→" not in relations
    assert run_json("show", "-w", kb, "Marie Curie")["entity"]["name"] == "Marie Curie"
    assert "no such entity" in run("show", "-w", kb, "Nobody").stderr
