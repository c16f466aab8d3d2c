"""Loads the question sets of the benchmarks from the shared data folder into one form."""

import ast
import csv
import gzip
import io
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Triple = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage, and the names and triples that a model read in it, or its whole records, if they were
    recorded.
    """

    id: str
    title: str
    text: str
    entities: tuple[str, ...] = ()
    triples: tuple[Triple, ...] = ()
    recorded: tuple[Record, ...] = ()

    @property
    def content(self) -> str:
        """Title and text, which are indexed as one chunk."""
        return f"{self.title}\n{self.text}".strip()

    def records(self) -> tuple[Record, ...]:
        """The recorded names and triples as records in the form of `extract-graph`."""
        if self.recorded:
            return self.recorded
        names = dict.fromkeys((*self.entities, *(n for s, _, o in self.triples for n in (s, o))))
        entities: list[Record] = [
            {"type": "entity", "name": name, "entity_type": "", "description": ""} for name in names
        ]
        return (*entities, *(_relation(*triple) for triple in self.triples))


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the passages that support its answer, and the names recorded for it.

    Of each group of passages, if there are groups, one is enough.
    """

    id: str
    text: str
    answer: str
    supporting: tuple[str, ...]
    names: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Dataset:
    """A corpus and questions whose supporting passages are known."""

    name: str
    passages: tuple[Passage, ...]
    questions: tuple[Question, ...] = ()
    language: str = "en"

    @property
    def has_records(self) -> bool:
        """Whether a model's triples were recorded."""
        return any(passage.triples or passage.recorded for passage in self.passages)

    def without_records(self) -> "Dataset":
        """The data set as if no model had read it."""
        passages = [
            replace(passage, entities=(), triples=(), recorded=()) for passage in self.passages
        ]
        return replace(self, passages=tuple(passages))


def data_folder() -> Path:
    """LIGHTRAG_JSONL_DATA, or the shared folder beside the checkout."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("LIGHTRAG_JSONL_DATA") or beside)


def load(folder: str | Path) -> Dataset:
    """The data set in `folder`, whose name tells which one; a bare name is looked up."""
    path = Path(folder)
    path = path if path.is_dir() else data_folder() / path
    if path.name not in LOADERS:
        raise SystemExit(f"{path.name}: not one of {', '.join(sorted(LOADERS))}")
    if not path.is_dir():
        raise SystemExit(f"{path}: no such folder; set LIGHTRAG_JSONL_DATA or give --data")
    return LOADERS[path.name](path)


def load_together(names: str, count: int | None = None) -> Dataset:
    """The sets of names like "musique-a+hotpotqa-train" as one, of the first so many passages; with the questions all of
    whose supporting passages are there. Of several sets, ids begin with the name of their set.
    """
    datasets = [load(name) for name in names.split("+")]
    if len(datasets) > 1:
        datasets = [_with_own_ids(dataset) for dataset in datasets]
    passages = [passage for dataset in datasets for passage in dataset.passages][:count]
    ids = {passage.id for passage in passages}
    questions = [
        question
        for dataset in datasets
        for question in dataset.questions
        if ids.issuperset(question.supporting)
    ]
    return Dataset(names, tuple(passages), tuple(questions), datasets[0].language)


def _with_own_ids(dataset: Dataset) -> Dataset:
    """A data set whose ids begin with its name."""

    def own(ids: Iterable[str]) -> tuple[str, ...]:
        return tuple([f"{dataset.name}/{id}" for id in ids])

    return replace(
        dataset,
        passages=tuple(
            replace(passage, id=f"{dataset.name}/{passage.id}") for passage in dataset.passages
        ),
        questions=tuple(
            replace(
                question,
                supporting=own(question.supporting),
                groups=tuple(map(own, question.groups)),
            )
            for question in dataset.questions
        ),
    )


# ── a loader for each set ───────────────────────────────────────────────────────


def multi_hop(folder: Path) -> Dataset:
    """Questions that need several passages; names and triples of each passage, if any, are given:
    those of musique-a by gpt-3.5-turbo, those of 2wiki-101-a by rule.
    """
    passages = tuple(
        Passage(
            id=str(row["id"]),
            title=str(row["title"]),
            text=str(row["text"]),
            entities=tuple(map(str, row["entities"])),
            triples=tuple(triples_of(row["triples"])),
        )
        for row in _lines(folder / "passages_openie.jsonl.gz")
    )
    questions = tuple(_questions(folder / "questions.jsonl"))
    return Dataset(name=folder.name, passages=passages, questions=questions)


def dragonball(folder: Path) -> Dataset:
    """Questions over many similar reports, in English or Chinese; their answers are sentences of
    one's own, which stand in no passage, so they are left out.
    """
    dataset = multi_hop(folder)
    questions = tuple(replace(question, answer="") for question in dataset.questions)
    language = "zh" if "-zh-" in folder.name else "en"
    return replace(dataset, questions=questions, language=language)


def hotpotqa(folder: Path) -> Dataset:
    """Two-hop questions with the names a model found in them; a passage's id is its title."""
    corpus = json.loads(_read(folder / "hotpotqa_train_corpus.json.gz"))
    passages = tuple(Passage(title, title, "".join(texts)) for title, texts in corpus.items())
    names = _question_names(folder / "hotpotqa_train_queries.named_entity_output.tsv")
    questions = tuple(
        Question(
            row["_id"],
            row["question"],
            row["answer"],
            tuple(dict.fromkeys(title for title, _ in row["supporting_facts"])),
            names.get(row["question"], ()),
        )
        for row in json.loads(_read(folder / "hotpotqa_train.json.gz"))
    )
    return Dataset("hotpotqa-train", passages, questions)


def cmrc(folder: Path) -> Dataset:
    """Chinese questions, each about one passage."""
    rows = _lines(folder / "passages.jsonl.gz")
    passages = tuple(Passage(str(row["id"]), str(row["title"]), str(row["text"])) for row in rows)
    questions = tuple(_questions(folder / "questions.jsonl.gz"))
    return Dataset("zh-cmrc2018", passages, questions, language="zh")


def chinese_news(folder: Path) -> Dataset:
    """Chinese questions about the news, half of them about two facts that many passages state."""
    return replace(multi_hop(folder), language="zh")


def wiki(folder: Path) -> Dataset:
    """A larger corpus without questions."""
    rows = json.loads(_read(folder / "corpus.json.gz"))
    passages = (Passage(str(n), row["title"], row["text"]) for n, row in enumerate(rows))
    return Dataset("bench-2wiki-corpus", tuple(passages))


LOADERS = {
    "2wiki-101-a": multi_hop,
    "dragonball-en-multi-a": dragonball,
    "dragonball-zh-multi-a": dragonball,
    "multihoprag-a": multi_hop,
    "musique-a": multi_hop,
    "popqa-a": multi_hop,
    "rgb-zh-a": chinese_news,
    "hotpotqa-train": hotpotqa,
    "zh-cmrc2018": cmrc,
    "bench-2wiki-corpus": wiki,
}


# ── reading ─────────────────────────────────────────────────────────────────────


def _read(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")


def _lines(path: Path) -> Iterator[Record]:
    return (json.loads(line) for line in _read(path).split("\n") if line.strip())


def _questions(path: Path) -> Iterator[Question]:
    for row in _lines(path):
        answer = row["answer"] if "answer" in row else row["answers"][0]
        yield Question(
            id=str(row["id"]),
            text=str(row["question"]),
            answer=str(answer),
            supporting=tuple(map(str, row["supporting"])),
            groups=tuple(tuple(map(str, group)) for group in row.get("groups", ())),
        )


def _question_names(path: Path) -> dict[str, tuple[str, ...]]:
    """The names in each question; none for a recorded answer that is not a Python literal."""
    found: dict[str, tuple[str, ...]] = {}
    for row in csv.DictReader(io.StringIO(_read(path)), delimiter="\t"):
        with suppress(ValueError, SyntaxError):
            recorded = ast.literal_eval(row["triples"])
            found[row["question"]] = tuple(map(str, recorded["named_entities"]))
    return found


def triples_of(rows: Iterable[Sequence[object]]) -> Iterator[Triple]:
    """The triples with exactly three fields, none of them blank; others are skipped."""
    for row in rows:
        fields = [str(field) for field in row]
        if len(fields) == 3 and all(field.strip() for field in fields):
            yield fields[0], fields[1], fields[2]


def _relation(source: str, predicate: str, target: str) -> Record:
    return {
        "type": "relationship",
        "source": source,
        "target": target,
        "keywords": [predicate],
        "description": f"{source} {predicate} {target}",
        "strength": 1,
    }
