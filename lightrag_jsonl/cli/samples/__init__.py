"""A small bilingual collection written for this project, with questions over several of its texts."""

import json
from importlib.resources import files

from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.core.types import Document

SAMPLES = files("lightrag_jsonl.cli").joinpath("samples")


def sample_documents(language: Language) -> tuple[Document, ...]:
    """The articles of one language, by file name: on physicists ("en"), the Silk Road ("zh")."""
    articles = {file.name: file.read_text("utf-8") for file in SAMPLES.joinpath(language).iterdir()}
    return tuple(
        Document(
            text,
            id=f"{language}/{name.removesuffix('.md')}",
            title=text.partition("\n")[0].removeprefix("# "),
            source=name,
        )
        for name, text in sorted(articles.items())
    )


def sample_questions(language: Language) -> tuple[str, ...]:
    """The questions of one language."""
    lines = SAMPLES.joinpath("questions.jsonl").read_text("utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    return tuple(row["question"] for row in rows if row["language"] == language)
