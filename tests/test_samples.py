"""The sample collection: whole, in both languages, and connected enough to ask about."""

from __future__ import annotations

import pytest

from lightrag_jsonl.cli.samples import sample_documents, sample_questions
from lightrag_jsonl.core.text import has_cjk
from lightrag_jsonl.core.types import Language


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_dozen_titled_articles_in_each_language(language: Language) -> None:
    """Twelve articles with ids, titles and file names of their own, in the language asked for."""
    documents = sample_documents(language)

    assert len(documents) == 12
    assert len({document.id for document in documents}) == 12
    for document in documents:
        assert document.title and document.text.startswith(f"# {document.title}\n")
        assert document.source and document.source.endswith(".md")
        assert has_cjk(document.text) == (language == "zh")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_questions_need_several_articles(language: Language) -> None:
    """Eight questions, each answered by two articles or more that exist."""
    names = {document.source for document in sample_documents(language)}
    questions = sample_questions(language)

    assert len(questions) == 8
    for question in questions:
        assert len(question.files) >= 2
        assert names >= set(question.files)
        assert question.answer


@pytest.mark.parametrize("language", ["en", "zh"])
def test_articles_name_each_other(language: Language) -> None:
    """Every article's subject occurs in another article, so that the graph hangs together."""
    documents = sample_documents(language)
    for document in documents:
        others = (other.text for other in documents if other is not document)
        assert document.title and any(
            document.title.casefold() in text.casefold() for text in others
        )
