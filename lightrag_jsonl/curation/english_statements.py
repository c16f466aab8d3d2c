"""Statements on two names of the same bearer, in English texts and descriptions, and roles that name people.

"Robert, also known as Bob Cratchit", "Ebenezer is another name for Scrooge", "Bureau of Tides (BOT)".
"""

import re
from collections.abc import Collection, Iterator
from typing import TypeAlias

from lightrag_jsonl.indexing.chinese_names import NameStatement
from lightrag_jsonl.indexing.english_names import (
    CHARACTERS_AROUND,
    MOST_NAME_WORDS,
    bracketed_names,
    key_of_span,
    name_before,
)
from lightrag_jsonl.text.names import folded_text, name_key
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.terms import search_terms

# The words of an owner's name, and what somebody is to the owner.
PersonRole: TypeAlias = tuple[frozenset[str], str]

_STATES = pattern_of(
    r"\b(?:(?:(?:also|better|best|commonly|widely|popularly|formally|formerly|originally|otherwise|previously"
    r"|sometimes|often|generally|locally|first|later|now)\s+)+"
    r"(?:known|called|named|spelled|written|referred\s+to|renamed)(?:\s+(?:simply\s+)?as)?"
    r"|(?<=\()called|known\s+(?:simply\s+)?as|nicknamed|a\.k\.a\.?|aka|alias|renamed(?:\s+(?:as|to))?|short\s+for"
    r"|abbreviated\s+(?:as|to)|(?:an?(?:other)?|the)\s+(?:alternative\s+|former\s+|full\s+|short\s+|shorter\s+"
    r"|old\s+|older\s+|earlier\s+|new\s+|pen\s+|stage\s+|birth\s+)?(?:name|nickname|pseudonym|abbreviation"
    r"|acronym|term|spelling)(?:\s+used)?(?:\s+to\s+refer)?\s+(?:for|of|to)"
    r"|(?:is|are|was|were)\s+the\s+same\s+(?:\w+\s+)?as)(?!\w)"
)
_BEFORE = pattern_of(
    r"(?<![\s,;:(\[\"'-])(?:[\s,;:(\[\"'-]|(?<=[\s,(])(?:who|which|that|is|was|are|were|being))+$"
)
_BRACKET_BEHIND = pattern_of(r"\([^()]*\)$")  # "Ada Moe (1815 – 1852), also known as Ada Byron"
_JOINT = pattern_of(r"\s*(?:[,(\[-]|(?:is|are|was|were)\b)")  # between a bearer and a statement
_ALIAS_END = pattern_of(r"[,;()\[\]\"!?]")  # no colon, which a title may have
_AFTER = pattern_of(r"[\s:,\"'(\[]*(?:simply\s+)?")
_DENIES = pattern_of(r"\b(?:not|never|n't)\W+(?:\w+\W+)?$")
_IS = pattern_of(r"\b(?:is|was)\s+")
_PERSON_ROLE = pattern_of(
    r"\b(?:is|was|described\s+as|depicted\s+as|noted\s+as|identified\s+as)\s+"
    r"(?:(?P<owner>(?!one\s)(?:[\w.-]+\s){0,3}[\w.-]+(?:'s|s'))\s|(?:an?|the)\s)(?P<nouns>[a-z][a-z -]{1,60})(?!'s|\w)"
)
_PHRASE_END = pattern_of(
    r"\b(?:and|at|by|for|from|in|of|on|or|that|to|when|where|which|while|who|whose|with)\b"
)
_OWNER = pattern_of(r"(?<=\w)(?:'s|s')\s")
_WORD_END = pattern_of(r"\w(?![\w'-])|\.(?=\s|$)|[+#*](?!\w)")
_SENTENCE = pattern_of(
    r"(?<=[a-z)\"'])(?<!\bmr)(?<!\bmrs)(?<!\bms)(?<!\bdr)(?<!\bst)(?<!\b\w)[.!?]\s"
)


def english_name_statements(sentence: str, name_keys: Collection[str]) -> Iterator[NameStatement]:
    """The statements in a folded sentence about two of the name keys; the bearer stands first.

    One is open unless the bearer alone is the subject of the sentence, joined to the statement by a comma,
    a bracket or "is", and punctuation ends the other name.
    """
    for verb in _STATES.finditer(sentence):
        clause = sentence[max(0, verb.start() - CHARACTERS_AROUND) : verb.start()]
        if _DENIES.search(clause):
            continue
        with_bracket = _BEFORE.sub("", clause)
        subject = with_bracket
        if not key_of_span(with_bracket, name_keys):
            subject = _BEFORE.sub("", _BRACKET_BEHIND.sub("", with_bracket))
        bearer = name_before(subject, name_keys)
        start = _end_of(_AFTER, sentence, verb.end())
        after = sentence[start : start + CHARACTERS_AROUND]
        alias = _name_after(after, name_keys)
        if bearer and alias and bearer != alias:
            is_subject = len(clause) == verb.start() and key_of_span(subject, name_keys) == bearer
            is_joined = _JOINT.match(sentence, verb.start() - len(clause) + len(with_bracket))
            is_whole = key_of_span(_ALIAS_END.split(after)[0], name_keys) == alias
            statement = f"{clause[-CHARACTERS_AROUND // 2 :]}{verb[0]} {alias}"
            is_open = not (is_subject and is_joined and is_whole)
            yield NameStatement(bearer, alias, statement.strip(), is_open)
    yield from bracketed_names(sentence, name_keys)


def described_roles(description: str, own_keys: Collection[str]) -> Iterator[PersonRole]:
    """The role of the subject of a description: "is Scrooge's late partner" gives the words of the
    owner and "partner", "is a character described as a laundress" gives no words and "laundress".
    """
    for sentence in _SENTENCE.split(folded_text(description)):
        copula = _IS.search(sentence)
        if copula and name_key(sentence[: copula.start()]) in own_keys:
            for phrase in _PERSON_ROLE.finditer(sentence, copula.start()):
                nouns = search_terms(_PHRASE_END.split(phrase["nouns"])[0])
                if nouns:
                    yield frozenset(search_terms(phrase["owner"] or "")), nouns[-1]


def name_role(name: str) -> PersonRole | None:
    """The owner and the noun of a role as a name: "Mr. Scrooge's partner", "The Laundress"."""
    owner, has_owner, noun = _OWNER.sub("'s ", folded_text(name)).partition("'s ")
    if has_owner:
        nouns = search_terms(noun)
        return (frozenset(search_terms(owner)), nouns[-1]) if len(nouns) == 1 else None
    nouns = search_terms(name)
    if len(nouns) == 2 and nouns[0] == "the":
        return frozenset(), nouns[1]
    return None


def _name_after(text: str, name_keys: Collection[str]) -> str:
    """The longest of the name keys at the beginning of a text; else ""."""
    ends = [match.end() for match in _WORD_END.finditer(text)]
    for end in reversed(ends[:MOST_NAME_WORDS]):
        key = key_of_span(text[:end], name_keys)
        if key:
            return key
    return ""


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start
