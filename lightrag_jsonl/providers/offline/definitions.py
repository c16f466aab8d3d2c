"""Sentences that define a name: "X is a …", "X, the …", 姓刘名备，字玄德."""

import re

from lightrag_jsonl.core.cjk import has_cjk


def is_defined(text: str, start: int, end: int) -> bool:
    """Whether a definition follows or precedes the name at this place of a sentence."""
    return (
        _DEFINITION_AFTER.match(text, end) is not None
        or _DEFINITION_BEFORE.search(text, max(start - 20, 0), start) is not None
        or text[start] == "姓"
    )


def defines(sentence: str, name: str) -> bool:
    """Whether a sentence defines a name."""
    if sentence.endswith(("?", "？")):
        return False
    pattern = name if has_cjk(name) else rf"(?<!\w){re.escape(name)}"
    for place in re.finditer(pattern, sentence, re.IGNORECASE):
        if is_defined(sentence, place.start(), place.end()):
            return True
    return any(_names_in_parts(sentence, name, length) for length in (1, 2) if length < len(name))


def _names_in_parts(sentence: str, name: str, length: int) -> bool:
    """Whether a sentence gives the surname, of so many characters, and the given name: 姓刘名备."""
    surname = re.escape(name[:length])
    given_name = re.escape(name[length:])
    return re.search(f"姓{surname}，?名{given_name}", sentence) is not None


_DEFINITION_AFTER = re.compile(
    r"[*_`\"'”’)]*(?:\s*\([^()]{0,160}\))?,?\s+(?:is|was|are|were)\s+(?:an?|the|one\s+of)\b"
    r"|[*_`\"'”’)]*,\s+(?:an?|the|[A-Z]\w+['’]s|(?:[a-z]+\s){1,2}(?:of|to))\s"
    r"|，?(?:字|乃|者，|(?:本|原)?是(?![谁也否何]|什么|\w{0,6}(?:之人|好人)))|(?:，[^，。！？]{0,10})?人也"
)
_DEFINITION_BEFORE = re.compile(
    r"(?:名曰|号曰|名为|号为|唤作|名唤|乃[^，。！？]{2,12})$|\bwhose\s+name\s+(?:is|was)\s+$"
)
