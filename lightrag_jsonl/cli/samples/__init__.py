"""A small bilingual collection written for this project, with questions over several of its texts.

`records.jsonl` holds records as read by a good model from the articles: an AI assistant wrote the
records in November 2026, and each was checked against the sentence of the description.
"""

import json
from importlib.resources import files

from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.core.types import Document, Record

SAMPLES = files("lightrag_jsonl.cli").joinpath("samples")


def sample_documents(language: Language) -> tuple[Document, ...]:
    """The articles of a language, by file name: on physicists ("en"), the Silk Road ("zh")."""
    files_of_language = SAMPLES.joinpath(language).iterdir()
    articles = {
        file.name: file.read_text("utf-8")
        for file in files_of_language
        if file.name.endswith(".md")
    }
    return tuple(
        Document(
            text,
            id=f"{language}/{name.removesuffix('.md')}",
            title=text.partition("\n")[0].removeprefix("# "),
            source=name,
        )
        for name, text in sorted(articles.items())
    )


def sample_records(language: Language) -> dict[str, list[Record]]:
    """The records of entities and relations, by the id of the article."""
    lines = SAMPLES.joinpath(language, "records.jsonl").read_text("utf-8").split("\n")
    records_by_document: dict[str, list[Record]] = {}
    for line in filter(None, lines):
        record: Record = json.loads(line)
        document_id = f"{language}/{record.pop('document')}"
        records_by_document.setdefault(document_id, []).append(record)
    return records_by_document


def sample_questions(language: Language) -> tuple[str, ...]:
    """The questions of a language."""
    lines = SAMPLES.joinpath("questions.jsonl").read_text("utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    return tuple(row["question"] for row in rows if row["language"] == language)
