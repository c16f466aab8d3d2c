"""Splits English sentences into words and marks, with their parts of speech."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Protocol

from lightrag_jsonl.adapters.offline import english_words as tables
from lightrag_jsonl.adapters.offline.phrases import TAG

_TOKEN = re.compile(
    r"(?P<name>(?:Mrs?|Ms|Dr|St|Prof|Jr|Sr|Rev|Gen|Col|Capt|Lt|Sgt|Gov|Sen|Hon|Messrs|Mt|Ft|vs|Inc"
    r"|Ltd|Corp|Bros)\.|(?:[A-Z]\.){2,}|[A-Z]\.(?=\s+[A-Z]))"
    r"|(?P<number>[$£€¥]?\d+(?:[.,:]\d+)*(?:st|nd|rd|th|s|%)?(?![^\W_]))"
    r"|(?P<own>['’][sS]\b)"
    r"|(?P<word>[^\W_]+(?:(?:[-&+]|\.(?=[a-z]{2,3}\b)|['’](?![sS]\b))[^\W_]+)*\+{0,2})"
    rf"|(?P<tag>{TAG.pattern})|(?P<mark>\S)"
)
LEXICON = Path("en", "en-lexicon.txt")  # within TextBlob
_OPENERS = frozenset("\"'“‘([{:;—–-_*•|…!?.>")


@dataclass(frozen=True, slots=True)
class Token:
    """A word or mark with its place and part of speech.

    - `low`: the text casefolded. `tag`: its Penn Treebank tag.
    - `kind`: the group of `_TOKEN` that matched.
    - `initial`: any word would be capitalized there, at the beginning of a sentence or quotation.
    - `common`: the lexicon has the word in lower case, as a noun.
    """

    start: int
    end: int
    text: str
    low: str
    tag: str
    kind: str
    initial: bool
    common: bool

    @property
    def capital(self) -> bool:
        """Whether it is a word with a capital, but no contraction of a function word ("It's")."""
        if self.kind not in ("word", "name") or not any(char.isupper() for char in self.text):
            return False
        return "'" not in self.low or self.low.partition("'")[0] not in tables.STOP_WORDS


class Tagger(Protocol):
    """Tags the parts of speech of a sentence's words; `lexicon` has the usual tag of each word."""

    lexicon: Mapping[str, str]

    def find_tags(self, words: list[str]) -> Iterable[tuple[str, str | None]]:
        """Each word with its Penn Treebank tag, or None."""
        ...


_loading = threading.Lock()  # another thread must not tag with a half-loaded lexicon


class LexiconTagger:
    """Tags by TextBlob's lexicon alone, and words it does not have by their form.

    For questions, which are too short to be worth loading a tagger.
    """

    def __init__(self) -> None:
        self.lexicon = _lexicon()

    def find_tags(self, words: list[str]) -> Iterable[tuple[str, str | None]]:
        """Each word with its usual part of speech, regardless of its context."""
        return [(word, self._tag(word)) for word in words]

    def _tag(self, word: str) -> str:
        known = self.lexicon.get(word) or self.lexicon.get(word.lower())
        return known or next((tag for form, tag in _FORMS if form.search(word)), "NN")


_FORMS = tuple(
    (re.compile(form), tag)
    for form, tag in (
        (r"^\W+$", "."),
        (r"^[\d.,:%]+$", "CD"),
        (r"^[A-Z]", "NNP"),
        (r"ly$", "RB"),
        (r"ing$", "VBG"),
        (r"ed$", "VBN"),
        (r"(?:ous|ful|ible|able|al|ic|ish|ive|less)$", "JJ"),
        (r"[^s]s$", "NNS"),
    )
)


@cache
def _parser() -> Any:
    """The parser of `textblob.en`, a tagger, loaded from its own file: importing the package would
    import NLTK and scikit-learn, which takes seconds and is of no use here.
    """
    home = _textblob()
    spec = spec_from_file_location("textblob_text", home / "_text.py")
    if spec is None or spec.loader is None or not (home / "_text.py").is_file():
        from textblob.en import parser

        return parser
    pattern = module_from_spec(spec)
    spec.loader.exec_module(pattern)
    lines = (home / LEXICON).read_text(encoding="utf-8").split("\n")  # it would not close the file
    lexicon = pattern.Lexicon(path=iter(lines), language="en")
    return pattern.Parser(lexicon=lexicon, default=("NN", "NNP", "CD"), language="en")


def _textblob() -> Path:
    found = find_spec("textblob")
    return Path((found.submodule_search_locations or [""])[0]) if found else Path()


@cache
def _lexicon() -> Mapping[str, str]:
    text = (_textblob() / LEXICON).read_text(encoding="utf-8")
    lines = (line.partition(" ") for line in text.split("\n") if line and line[:3] != ";;;")
    return {word: tag for word, _, tag in lines}


def the_tagger(*, quick: bool = False) -> Tagger:
    """TextBlob's pattern tagger with its lexicon loaded; with `quick` a `LexiconTagger`."""
    if quick:
        return LexiconTagger()
    with _loading:
        parser: Tagger = _parser()
        parser.lexicon.get("the")  # loads the lexicon, which is lazy but not thread-safe
    return parser


def tokenized(text: str, start: int, end: int, tagger: Tagger) -> list[Token]:
    """The tagged words and marks of one sentence."""
    found = [m for m in _TOKEN.finditer(text, start, end) if m.lastgroup != "tag"]
    tagged = tagger.find_tags([m[0].replace("’", "'") for m in found])
    tokens: list[Token] = []
    initial = True
    for match, (_, tag) in zip(found, tagged, strict=True):
        kind = match.lastgroup or "mark"
        low = match[0].replace("’", "'").casefold()
        common = tagger.lexicon.get(low, "") in ("NN", "NNS")
        tokens.append(Token(*match.span(), match[0], low, tag or "NN", kind, initial, common))
        if kind != "mark":
            initial = False
        elif match[0] in _OPENERS:
            initial = True
    return tokens


def capitalized_inside(rows: Iterable[Sequence[Token]]) -> Counter[str]:
    """For each word (casefolded), how often more it is capitalized than not, where any word would
    not be; negative if less often.
    """
    seen: Counter[str] = Counter()
    for row in rows:
        if shouted(row):
            continue
        for token in row:
            if token.kind in ("word", "name") and not token.initial:
                seen[token.low] += 1 if token.capital else -1
    return seen


def shouted(row: Sequence[Token]) -> bool:
    """Whether all longer words are in capitals, as in headings: then capitals do not show names."""
    words = [token for token in row if token.kind == "word" and len(token.text) > 3]
    return len(words) > 1 and all(token.text.isupper() for token in words)
