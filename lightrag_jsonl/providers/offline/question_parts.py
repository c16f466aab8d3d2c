"""The parts of a question that asks for two things: "Who wrote it, and when?"."""

import re
from typing import NamedTuple

from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.providers.offline.sentences import find_sentences, written_in

_QUESTION_WORD = (
    r"(?:(?:in|at|by|with|for|from|on|to)\s+)?(?:when|where|why|who|whom|whose|how(?:\s+(?:many|much|long|old))?"
    r"|(?:what|which)(?:\s+(?:year|day|date|month|city|town|country|place))?)"
)
_JOINED = re.compile(
    rf"\W*(?P<first>.*?\S),?\s+and\s+(?P<second>{_QUESTION_WORD}\b[^?]*)\?*\s*", re.IGNORECASE
)
_ASKS = re.compile(rf"\b{_QUESTION_WORD}\b\s*", re.IGNORECASE)
_PRONOUN = re.compile(r"\b(?:it|he|she|they|him|her|them)\b", re.IGNORECASE)
_UNKNOWN_PERSON = re.compile(  # "Who wrote it, and when was he born?"
    r"^\W*who(?:m|se)?\b.*\0.*\b(?:he|she|they|him|her|them|his|their)\b", re.IGNORECASE | re.DOTALL
)
_UNKNOWN_THING = re.compile(  # "Which element is rare, and who found it?"
    r"^\W*(?:what|which)\s+(?!(?:is|are|was|were|do|does|did|has|have|had|can|will)\b)\w.*\0.*"
    r"\b(?:it|its|they|them|their|he|she|him|her|his)\b",
    re.IGNORECASE | re.DOTALL,
)
_CHINESE_UNKNOWN = re.compile("(?:谁|何人|[哪那]|什么(?!时候|地方)).*\0.*[他她它其该]", re.DOTALL)
_CHINESE_QUESTION_WORD = re.compile(
    "在?(?:什么时候|何时|哪一?年|哪一?天|什么地方|哪里|哪儿|何处|何地)|谁|何人|为什么|为何|多少|什么"
)
_CHINESE_CLAUSE = re.compile("[，；,;？?、]")


class QuestionPart(NamedTuple):
    """A part in the words of the question, and as a question of its own.

    `subject` is what a pronoun of the part means, so that an answer must be about it.
    """

    words: str
    question: str
    subject: str = ""


def question_parts(question: str, language: Language) -> list[QuestionPart]:
    """The questions joined in one question, such as those before and after "and"; without a join, one part."""
    if written_in(question, language) == "zh":
        parts = _chinese_parts(question)
    else:
        parts = _english_parts(question)
    return parts if len(parts) > 1 else [QuestionPart(question, question)]


def _english_parts(question: str) -> list[QuestionPart]:
    """The two parts around "and" before a question word; each is completed by the other one."""
    joined = _JOINED.fullmatch(question)
    if joined is None:
        return []
    first = joined["first"].rstrip(" ,")
    second = joined["second"].strip()
    first_asks = _ASKS.match(first)
    second_asks = _ASKS.match(second)
    if first_asks is None or second_asks is None or _asks_of_the_unknown(first, second):
        return []
    first_rest = first[first_asks.end() :]
    second_rest = second[second_asks.end() :]
    if not (first_rest or second_rest):
        return []
    complete_first = first if first_rest else f"{first} {second_rest}"
    complete_second = second if second_rest else f"{second} {first_rest}"
    subject = ""
    if first_rest and _PRONOUN.search(second_rest):
        subject = _subject(first)
        complete_second = _PRONOUN.sub(subject, second, count=1)
    return [
        QuestionPart(f"{first}?", f"{complete_first}?"),
        QuestionPart(f"{second}?", f"{complete_second}?", subject),
    ]


def _asks_of_the_unknown(first: str, second: str) -> bool:
    """Whether a pronoun of the second part means what the first part asks for: the parts have a single
    answer together.
    """
    joined_parts = f"{first}\0{second}"
    patterns = (_UNKNOWN_PERSON, _UNKNOWN_THING, _CHINESE_UNKNOWN)
    return any(pattern.search(joined_parts) for pattern in patterns)


def _subject(question: str) -> str:
    """The last name of a question, or else the last noun or verb: what a pronoun after it may mean."""
    sentences = find_sentences(question, "en", question=True)
    names = [phrase.name for sentence in sentences for phrase in sentence.phrases]
    content = [word.text for sentence in sentences for word in sentence.words]
    return (names or content or [""])[-1]


def _chinese_parts(question: str) -> list[QuestionPart]:
    """A part for each question word: the clause without the other ones, with a name if it has none."""
    sentences = find_sentences(question, "zh", question=True)
    names = [phrase.name for sentence in sentences for phrase in sentence.phrases]
    parts: list[QuestionPart] = []
    clauses = [clause for clause in _CHINESE_CLAUSE.split(question) if clause]
    if _asks_of_the_unknown(clauses[0] if clauses else "", " ".join(clauses[1:])):
        return []
    for clause in clauses:
        matches = list(_CHINESE_QUESTION_WORD.finditer(clause))
        for question_word in matches:
            text = clause
            for match in reversed(matches):
                if match is not question_word:
                    text = text[: match.start()] + text[match.end() :]
            has_name = any(name in text for name in names)
            complete = text if has_name or not names else names[0] + text
            parts.append(QuestionPart(f"{text}？", f"{complete}？"))
    return parts
