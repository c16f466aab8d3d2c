"""English names with their initials in brackets: "Bureau of Tides (BOT)"."""

from collections.abc import Collection, Iterator

from lightrag_jsonl.indexing.chinese_names import NameStatement
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.terms import search_terms

MOST_NAME_WORDS = 9  # words of a name beside a statement
CHARACTERS_AROUND = 100  # characters that such a name may have
_IN_BRACKETS = pattern_of(r"\(([a-z][a-z0-9&.-]{1,9})\)")
_WORD_START = pattern_of(r"(?<![\w'-])\w")


def bracketed_names(text: str, name_keys: Collection[str]) -> Iterator[NameStatement]:
    """The names of a folded text with their initials in brackets: "Bureau of Tides (BOT)"."""
    for bracket in _IN_BRACKETS.finditer(text):
        alias = name_key(bracket[1])
        if alias in name_keys:
            before = text[max(0, bracket.start() - CHARACTERS_AROUND) : bracket.start()]
            bearer = name_before(before.rstrip(), name_keys)
            if bearer and alias in initials(search_terms(bearer)):
                yield NameStatement(bearer, alias, f"{bearer} ({alias})")


def initials(words: Collection[str]) -> set[str]:
    """The first letters of words as one word: of all words, and without articles and the like."""
    large_words = [word for word in words if word not in _SMALL_WORDS]
    choices = [choice for choice in (words, large_words) if len(choice) > 1]
    return {"".join([word[0] for word in choice]) for choice in choices}


_SMALL_WORDS = frozenset(
    ["a", "an", "and", "de", "des", "du", "for", "in", "of", "on", "the", "to"]
)


def name_before(text: str, name_keys: Collection[str]) -> str:
    """The longest of the name keys at the end of a text; else ""."""
    starts = [match.start() for match in _WORD_START.finditer(text)]
    for start in starts[-MOST_NAME_WORDS:]:
        key = key_of_span(text[start:], name_keys)
        if key:
            return key
    return ""


def key_of_span(span: str, name_keys: Collection[str]) -> str:
    """The name key of a span of text, with or without an article; "" for an unknown name."""
    key = name_key(span)
    if key in name_keys:
        return key
    bare = name_key(key.removeprefix("the "))
    return bare if bare in name_keys else ""
