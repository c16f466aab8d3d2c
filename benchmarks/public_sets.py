"""Loads question sets in the formats in which they are published, and sets of one's own.

A folder or a file is recognized by what is in it:

- HotpotQA and 2WikiMultihopQA: a JSON list of questions with `supporting_facts` and `context`.
- MuSiQue: JSON or JSONL rows with `paragraphs`.
- MultiHop-RAG: a folder with questions that have an `evidence_list`, and a corpus with `body`.
- GraphRAG-Bench: a folder with questions that have `evidence`, and a corpus with `context`.
- One's own: a folder with `passages.jsonl` (`id`, `text`, and optionally `title`, `entities`,
  `triples`) and `questions.jsonl` (`question`, `supporting`, and optionally `answer`, `names`).
"""

import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.datasets import Dataset, Passage, Question, triples_of

Record = Mapping[str, Any]
PASSAGE = 1_200  # characters of a passage that a long text is cut into
SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")


class UnknownFormatError(ValueError):
    """No format fits a file or folder; the message says which files were read."""


def load_public(path: Path) -> Dataset:
    """The question set in a file or a folder."""
    files = [path] if path.is_file() else _data_files(path)
    rows_by_file = {file.name: _rows(file) for file in files}
    for fits, load in _FORMATS:
        if fits(rows_by_file):
            return load(path.name.partition(".")[0], rows_by_file)
    names = ", ".join(rows_by_file) or "no data file"
    raise UnknownFormatError(f"{path}: {names}: none of the formats of benchmarks.public_sets")


def _data_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.name.endswith(SUFFIXES))


def _rows(file: Path) -> list[Record]:
    """The records of a JSON or JSONL file; a mapping of lists is one list."""
    data = file.read_bytes()
    text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode("utf-8")
    if ".jsonl" in file.name:
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    value = json.loads(text)
    if isinstance(value, dict):
        lists = [item for item in value.values() if isinstance(item, list)]
        return [row for rows in lists for row in rows] or [value]
    return list(value)


# ── HotpotQA, 2WikiMultihopQA, MuSiQue ──────────────────────────────────────────


def _context(name: str, files: Mapping[str, Sequence[Record]]) -> Dataset:
    """Each title is a passage; questions share passages with the same title and text."""
    passages: dict[str, Passage] = {}
    questions: list[Question] = []
    for row in _with_key(files, "supporting_facts"):
        ids: dict[str, str] = {}
        for title, sentences in _titled(row["context"], "sentences"):
            passage = _passage(passages, title, " ".join(sentences))
            ids[title] = passage.id
        titles = [title for title, _ in _titled(row["supporting_facts"], "sent_id")]
        supporting = tuple(dict.fromkeys([ids[title] for title in titles if title in ids]))
        if supporting:
            id = str(row.get("_id") or row.get("id"))
            questions.append(Question(id, row["question"], str(row["answer"]), supporting))
    return Dataset(name, tuple(passages.values()), tuple(questions))


def _titled(value: Any, column: str) -> Iterable[tuple[str, Any]]:
    """Pairs of a title and what belongs to it, from pairs or from columns."""
    if isinstance(value, Mapping):
        return list(zip(value["title"], value[column], strict=True))
    return [(title, content) for title, content in value]


def _passage(passages: dict[str, Passage], title: str, text: str) -> Passage:
    """The passage with this title and text; the id of a second text of a title has a number."""
    id = title
    number = 1
    while id in passages and passages[id].text != text:
        number += 1
        id = f"{title} ({number})"
    return passages.setdefault(id, Passage(id, title, text))


def _musique(name: str, files: Mapping[str, Sequence[Record]]) -> Dataset:
    passages: dict[str, Passage] = {}
    questions: list[Question] = []
    for row in _with_key(files, "paragraphs"):
        supporting = []
        for paragraph in row["paragraphs"]:
            text = paragraph.get("paragraph_text") or paragraph.get("text", "")
            passage = _passage(passages, paragraph["title"], text)
            if paragraph.get("is_supporting"):
                supporting.append(passage.id)
        if supporting:
            ids = tuple(dict.fromkeys(supporting))
            questions.append(Question(str(row["id"]), row["question"], str(row["answer"]), ids))
    return Dataset(name, tuple(passages.values()), tuple(questions))


# ── MultiHop-RAG, GraphRAG-Bench ────────────────────────────────────────────────


def _multihop_rag(name: str, files: Mapping[str, Sequence[Record]]) -> Dataset:
    """Articles are cut into passages; those that hold a fact of the evidence support the answer."""
    articles = [
        (str(row["title"]), str(row["title"]), str(row["body"])) for row in _with_key(files, "body")
    ]
    passages = _cut_articles(articles)
    questions: list[Question] = []
    for number, row in enumerate(_with_key(files, "evidence_list")):
        facts = [
            (str(evidence["title"]), str(evidence["fact"])) for evidence in row["evidence_list"]
        ]
        supporting = _holding(passages, facts)
        if supporting:
            questions.append(Question(str(number), row["query"], str(row["answer"]), supporting))
    return Dataset(name, tuple(passages), tuple(questions))


def _graphrag_bench(name: str, files: Mapping[str, Sequence[Record]]) -> Dataset:
    """Texts are cut into passages; those that hold a sentence of the evidence support the answer."""
    texts = [
        (str(row["corpus_name"]), str(row["corpus_name"]), str(row["context"]))
        for row in _with_key(files, "corpus_name")
    ]
    passages = _cut_articles(texts)
    questions: list[Question] = []
    for row in _with_key(files, "evidence"):
        evidence = row["evidence"]
        sentences = [evidence] if isinstance(evidence, str) else list(evidence)
        facts = [(str(row.get("source", "")), str(sentence)) for sentence in sentences]
        supporting = _holding(passages, facts)
        if supporting:
            id = str(row.get("id", len(questions)))
            questions.append(Question(id, row["question"], str(row["answer"]), supporting))
    return Dataset(name, tuple(passages), tuple(questions))


def _cut_articles(articles: Iterable[tuple[str, str, str]]) -> list[Passage]:
    """Passages of about `PASSAGE` characters, cut at the ends of sentences, from id, title and text."""
    passages = []
    for id, title, text in articles:
        for number, piece in enumerate(_pieces(text)):
            passages.append(Passage(f"{id}#{number}", title, piece))
    return passages


def _pieces(text: str) -> Iterator[str]:
    piece = ""
    for sentence in re.split(r"(?<=[.!?。！？])\s+|\n+", text):
        if piece and len(piece) + len(sentence) > PASSAGE:
            yield piece
            piece = ""
        piece = f"{piece} {sentence}".strip()
    if piece:
        yield piece


def _holding(passages: Iterable[Passage], facts: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The passages of a source that hold a fact word for word; () if a fact is in none."""
    ids: dict[str, None] = {}
    by_source: dict[str, list[tuple[str, str]]] = {}
    for passage in passages:
        source = passage.id.rpartition("#")[0]
        by_source.setdefault(source, []).append((passage.id, _folded(passage.text)))
    for source, fact in facts:
        words = _folded(fact)
        holders = [id for id, text in by_source.get(source, ()) if words and words in text]
        if not holders:
            return ()
        ids[holders[0]] = None
    return tuple(ids)


def _folded(text: str) -> str:
    return " ".join(re.sub(r"[\W_]+", " ", text.casefold()).split())


# ── one's own ───────────────────────────────────────────────────────────────────


def _own(name: str, files: Mapping[str, Sequence[Record]]) -> Dataset:
    passages = [
        Passage(
            id=str(row["id"]),
            title=str(row.get("title") or ""),
            text=str(row["text"]),
            entities=tuple(row.get("entities", ())),
            triples=tuple(triples_of(row.get("triples", ()))),
        )
        for row in _of_file(files, "passages")
    ]
    questions = [
        Question(
            id=str(number),
            text=row["question"],
            answer=str(row.get("answer") or ""),
            supporting=tuple(map(str, row["supporting"])),
            names=tuple(row.get("names", ())),
        )
        for number, row in enumerate(_of_file(files, "questions"))
    ]
    texts = "".join([passage.text for passage in passages[:20]])
    language = "zh" if re.search(r"[\u4e00-\u9fff]", texts) else "en"
    return Dataset(name, tuple(passages), tuple(questions), language)


def _of_file(files: Mapping[str, Sequence[Record]], beginning: str) -> Sequence[Record]:
    return next((rows for name, rows in files.items() if name.startswith(beginning)), ())


def _with_key(files: Mapping[str, Sequence[Record]], key: str) -> list[Record]:
    """The records of all files that have a key."""
    return [row for rows in files.values() for row in rows if key in row]


def _has(*keys: str) -> Callable[[Mapping[str, Sequence[Record]]], bool]:
    """Whether for each key some record has it."""
    return lambda files: all(_with_key(files, key) for key in keys)


def _is_own(files: Mapping[str, Sequence[Record]]) -> bool:
    return bool(_of_file(files, "passages") and _of_file(files, "questions"))


_FORMATS: Sequence[
    tuple[
        Callable[[Mapping[str, Sequence[Record]]], bool],
        Callable[[str, Mapping[str, Sequence[Record]]], Dataset],
    ]
] = (
    (_is_own, _own),
    (_has("supporting_facts", "context"), _context),
    (_has("paragraphs"), _musique),
    (_has("evidence_list", "body"), _multihop_rag),
    (_has("evidence", "corpus_name"), _graphrag_bench),
)
