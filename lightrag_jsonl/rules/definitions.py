"""What something is: the quotes that say so come first for "What is a trigger?" and 什么是触发器？"""

import re
from collections.abc import Sequence

from lightrag_jsonl.rules.quotes import Quote
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import words
from lightrag_jsonl.text.terms import stem

_ENGLISH_QUESTION = pattern_of(
    r"\W*what(?:'s|’s|\s+(?:is|are|was|were))\s+(?P<term>[^?]{2,80}?)\W*\Z"
    r"|\W*what\s+(?:do|does)\s+(?P<meant>[^?]{2,80}?)\s+mean\W*\Z",
    re.IGNORECASE,
)
_CHINESE_QUESTION = pattern_of(
    r"(?:请问)?(?:什么是|何谓|何为)(?P<term>[^？?]{1,30})[？?]?\Z"
    r"|(?P<subject>[^？?，,]{1,30}?)(?:指的)?(?:是什么(?:意思|东西)?|是指什么|指什么)[？?]?\Z"
)
_PLAIN_WORD = pattern_of(r"[^\W_]+(?:['’.-][^\W_]+)*")
_ARTICLES = ("a", "an", "the")
_SAYS_WHAT = words(
    "is are was were means mean refers refer denotes denote describes describe represents"
)
_REMARK = pattern_of(r"\([^()]{1,60}\)")


def defining_first(question: str, quotes: Sequence[Quote]) -> list[Quote]:
    """The quotes, those first that say what the subject of a question for a definition is."""
    chinese = _CHINESE_QUESTION.match(question.strip())
    if chinese is not None:
        term = re.escape((chinese["term"] or chinese["subject"]).strip(' “”"「」《》'))
        defines = re.compile(
            rf"\A[「『《“\"`*]*{term}[」』》”\"`*]*(?:[（(][^（）()]{{1,40}}[）)])?[，,]?(?:就是|是|指|即|为|表示|：)"
            rf"|(?:称之?为|称作|叫做|叫作|叫)[「『《“\"`*]*{term}",
            re.IGNORECASE,
        ).search
        return sorted(quotes, key=lambda quote: defines(quote.text) is None)
    english = _ENGLISH_QUESTION.match(question)
    if english is None:
        return list(quotes)
    stems = _stems(english["term"] or english["meant"])
    return sorted(quotes, key=lambda quote: not _defines(quote.text, stems))


def _stems(term: str) -> list[str]:
    tokens = _PLAIN_WORD.findall(term.casefold())
    return [
        stem(token) for token in (tokens[1:] if tokens[:1] and tokens[0] in _ARTICLES else tokens)
    ]


def _defines(sentence: str, stems: Sequence[str]) -> bool:
    """Whether a sentence begins with the term and says what it is ("A trigger contains …")."""
    tokens = _PLAIN_WORD.findall(_REMARK.sub("", sentence).casefold())[: len(stems) + 2]
    article = tokens[0] if tokens[:1] and tokens[0] in _ARTICLES else ""
    subject = tokens[1:] if article else tokens
    if not stems or [stem(token) for token in subject[: len(stems)]] != list(stems):
        return False
    verb = subject[len(stems)] if len(subject) > len(stems) else ""
    is_of_any = article in ("a", "an")
    return verb in _SAYS_WHAT or (is_of_any and len(verb) > 3 and verb.endswith("s"))
