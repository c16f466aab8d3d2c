"""Questions that ask for two things: both are answered, or the missing one is named."""

from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG
from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.providers.offline.question_parts import question_parts

ENGLISH = (
    "Mira Holm founded the rowing club in 1931. Rolf Steen painted the boathouse.\n\n"
    "The club moved to Dover in 1948. A season ticket costs nine pounds."
)
CHINESE = (
    "1931年，孟海棠创办了划船俱乐部。船库是石磊粉刷的。\n\n1948年俱乐部迁到了无锡。季票九元一张。"
)


@pytest.mark.parametrize(
    ("question", "language", "parts"),
    [
        ("Who wrote Emma and when?", "en", ["Who wrote Emma?", "when wrote Emma?"]),
        ("When and where did it sink?", "en", ["When did it sink?", "where did it sink?"]),
        (
            "Who founded Acme, and when did it move?",
            "en",
            ["Who founded Acme?", "when did Acme move?"],
        ),
        ("Who met Ann and Bob?", "en", ["Who met Ann and Bob?"]),
        *[
            (whole, language, [whole])
            for whole, language in (
                ("Which river floods the town where Ann lives, and who dammed it?", "en"),
                ("Who wrote the hymn, and when was she born?", "en"),
                ("哪条河流经安娜住的城市，谁给它修了大坝？", "zh"),
            )
        ],
        ("What did he say?", "en", ["What did he say?"]),
        ("谁在何时写了《边城》？", "zh", ["谁写了《边城》？", "在何时写了《边城》？"]),
        ("《边城》是谁写的，１２ 🌍？", "zh", ["《边城》是谁写的，１２ 🌍？"]),
        ("", "en", [""]),
    ],
)
def test_the_parts_of_a_question(question: str, language: Language, parts: list[str]) -> None:
    """Each part is complete: it has the verb, the names and the pronoun's meaning of the other one."""
    assert [part.question for part in question_parts(question, language)] == parts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parts")


@pytest.mark.parametrize(
    ("question", "held", "missing"),
    [
        ("Who founded the rowing club and when?", ("Mira Holm", "1931"), ""),
        ("When and where did the club move?", ("Dover", "1948"), ""),
        ("Who painted the boathouse and when?", ("Rolf Steen",), "this part: when?"),
        (
            "Who painted the boathouse, and how much did it cost?",
            ("Rolf Steen",),
            "how much did it cost?",
        ),
        ("谁在哪一年创办了划船俱乐部？", ("孟海棠", "1931"), ""),
        ("俱乐部什么时候搬迁，迁到了哪里？", ("无锡", "1948"), ""),
        ("船库是谁粉刷的，花了多少钱？", ("石磊",), "其中一问：花了多少钱？"),
    ],
)
def test_both_halves_are_answered_or_the_missing_one_is_named(
    question: str, held: tuple[str, ...], missing: str, folder: Path
) -> None:
    """The sentences of both halves are cited; a half without a sentence is named, in its own words, and
    is no claim without a source.
    """
    language = "zh" if question[-1] == "？" else "en"
    with LightRAG(folder / language, language=language, llm="none") as rag:
        rag.insert(CHINESE if language == "zh" else ENGLISH)
        answer = rag.query(question)
    assert all(text in answer.text for text in held)
    if missing:
        assert missing in answer.text
    else:
        assert "this part" not in answer.text and "其中一问" not in answer.text
    assert "no source given" not in str(answer)
