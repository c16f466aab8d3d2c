"""A small bilingual collection written for this project, with questions over several of its texts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from lightrag_jsonl.core.types import Document, Language


@dataclass(frozen=True, slots=True)
class SampleQuestion:
    """A question, the names of the files that are needed to answer it, and the answer."""

    question: str
    files: tuple[str, ...]
    answer: str


def sample_documents(language: Language) -> tuple[Document, ...]:
    """The articles of one language, by file name: on physicists ("en"), the Silk Road ("zh")."""
    articles = (file for file in _folder().joinpath(language).iterdir() if file.name[-3:] == ".md")
    return tuple(_document(language, file) for file in sorted(articles, key=lambda file: file.name))


def sample_questions(language: Language) -> tuple[SampleQuestion, ...]:
    """The questions of one language."""
    lines = _folder().joinpath("questions.jsonl").read_text(encoding="utf-8").split("\n")
    rows = (json.loads(line) for line in lines if line)
    return tuple(
        SampleQuestion(row["question"], tuple(row["files"]), row["answer"])
        for row in rows
        if row["language"] == language
    )


def _folder() -> Traversable:
    return files("lightrag_jsonl.cli").joinpath("samples")


def _document(language: Language, file: Traversable) -> Document:
    text = file.read_text(encoding="utf-8")
    title = text.partition("\n")[0].removeprefix("# ")
    return Document(text, id=f"{language}/{file.name[:-3]}", title=title, source=file.name)
