"""Names of entities: keys for lookup, forms for display."""

import html
import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

from lightrag_jsonl.text.cjk import has_cjk, with_simple_characters
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import sanitize

LINKED_NAMES = "linked_names"  # in the metadata of a note: what its links to other notes are called


@lru_cache(10_000)  # the same names are looked up again and again
def name_key(name: str) -> str:
    """The common key of all spellings of a name: NFKC, casefolded, simplified, without outer
    punctuation (unless the name is only punctuation, or the sign tells names apart: C#, .NET, A*).
    Empty only without any visible character.
    """
    folded = _fold(name)
    has_bare_ends = folded[:1].isalnum() and folded[-1:].isalnum()
    if has_bare_ends or len(folded) > _LONGEST_NAME:
        return folded
    return _strip_outer(folded) or folded


def clean_name(name: str) -> str:
    """A name for display: without markup, wrapping quotes, 《》 and control characters.

    Full-width letters and digits become ASCII, letters with accents are composed, and white space is folded. Parts of the name stay
    ("42", "3.14", "C++", "AT&T", "Lilu (mythology)").
    """
    if not name or _PLAIN_NAME.fullmatch(name):
        return name
    text = sanitize(name)
    for _ in range(_MARKUP_ROUNDS):
        if "&" not in text and "<" not in text:
            break
        text = _HTML_ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
        text = _TAG.sub(" ", _PAIRED_TAG.sub(r" \2 ", text))
    text = _INVISIBLE.sub("", sanitize(text).translate(_HALF_WIDTH))
    text = unicodedata.normalize("NFC", " ".join(_CONTROL.sub(" ", text).split()))
    return text if len(text) > _LONGEST_NAME else _strip_quotes(text)


def folded_text(text: str) -> str:
    """A text folded like name keys, except at the ends: the keys of all names in the text occur in
    the result.
    """
    return _fold(html.unescape(text) if "&" in text else text)


def nfkc_casefold(text: str) -> str:
    """NFKC, casefold and simplified characters, repeated until nothing changes; 10² is 10^2, not 102."""
    if text.isascii():
        return text.casefold()
    if unicodedata.is_normalized("NFKC", text):  # found faster; English texts mostly are
        folded = text.casefold()
    else:
        with_exponents = _EXPONENT.sub(r"^\1", text) if _RAISED.search(text) else text
        folded = unicodedata.normalize("NFKC", with_exponents).casefold()
    if folded != text:
        return nfkc_casefold(folded)
    simple = with_simple_characters(text) if has_cjk(text) else text
    return simple if simple == text else nfkc_casefold(simple)


def letters_and_digits(text: str) -> str:
    """The letters and digits of a text in one form, for comparisons."""
    return _NO_LETTERS.sub("", nfkc_casefold(text))


_NO_LETTERS = pattern_of(r"[\W_]+")
_RAISED = pattern_of("[⁰¹²³⁴-⁹ⁿⁱ]")  # found in a tenth of the time
_EXPONENT = pattern_of(  # not ¹⁴C, Ca²⁺
    r"(?<=[\w)])(?<![⁰¹²³⁴-⁹⁺⁻])([⁻⁺]?[⁰¹²³⁴-⁹ⁿⁱ]+)(?![⁰¹²³⁴-⁹⁺⁻])"
)
_TAG = pattern_of(  # HTML tags only, since others may be part of a name: List<String>
    r"</?(?:a|abbr|b|big|blockquote|br|center|cite|code|dd|del|dfn|div|dl|dt|em|font|h[1-6]|hr|i|img"
    r"|ins|kbd|li|mark|nowiki|ol|p|pre|q|ref|s|samp|section|small|span|strike|strong|sub|sup|table"
    r"|tbody|td|th|thead|tr|tt|u|ul|var)(?=[\s/>])[^<>]{0,200}>"
)
_PAIRED_TAG = pattern_of(
    r"<([A-Za-z][\w:-]{0,40})(?:\s[^<>]{0,200})?>([^<>]*)</\1\s{0,9}>", re.IGNORECASE
)
_HTML_ENTITY = pattern_of(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_MARKUP_ROUNDS = 3  # markup escaped twice is common in scraped text; deeper is an attack
_CONTROL = pattern_of(  # without white space, which is found faster
    r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]"
)
_INVISIBLE = pattern_of("[\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_HALF_WIDTH = {
    code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F) if chr(code - 0xFEE0).isalnum()
}
_HALF_WIDTH |= {ord(char): ord(char) - 0xFEE0 for char in "＋＆＃＠％．－／＿＇"}
QUOTE_FORMS = dict.fromkeys("‘’ʼ‛′`´", "'")
_KEY_FORMS = QUOTE_FORMS | dict(
    zip("“”„‟″«»‐‑‒–—―−・•‧∙⋅", '"' * 7 + "-" * 7 + "·" * 5, strict=True)
)
_BRACKETS = {"(": ")", "[": "]", "{": "}", "<": ">", "《": "》", "〈": "〉", "「": "」", "『": "』"}
_BRACKETS |= {"【": "】", "〔": "〕", "“": "”", "‘": "’", "«": "»", "（": "）"}
_OPENER = {closer: opener for opener, closer in _BRACKETS.items()}
_QUOTES = frozenset("\"'`“”‘’«»《》〈〉「」『』„‟")
_PLAIN_NAME = pattern_of(r"[A-Za-z0-9]+(?: [A-Za-z0-9]+)*")  # nothing to clean
_LONGEST_NAME = 400  # characters; longer texts are not names, and keep their ends
_MEANINGFUL = frozenset("#%&@‰§")  # Unicode calls it punctuation, but "C#" is not "C"
_MARKDOWN_MARKS = frozenset("*_")  # of Markdown, on both sides of a name
_LEADING_SIGN = pattern_of(r"\.\w|-\d")  # of .NET, .5 and -40 °C
_TRAILING_SIGN = pattern_of(r"(?:^|\s)(?:[^\W_]{1,4}\*|[^\W_]{1,2}-)$")  # of RRT*, A- and Cl-


def with_plain_marks(text: str, forms: Mapping[str, str] = QUOTE_FORMS) -> str:
    """The text with the plain form of each mark, as by `str.translate`, which looks at every character and takes
    forty times as long.
    """
    for form, plain in forms.items():
        text = text.replace(form, plain)
    return text


def _fold(name: str) -> str:
    """A name key with the punctuation at the ends."""
    text = sanitize(name)
    if text.isascii():  # as below, in a tenth of the time
        return " ".join(_CONTROL.sub(" ", text.lower().replace("`", "'")).split())
    text = with_plain_marks(nfkc_casefold(text), _KEY_FORMS)
    text = " ".join(_INVISIBLE.sub("", _CONTROL.sub(" ", text)).split())
    return text if text == name else _fold(text)


def _strip_outer(text: str) -> str:
    """The text without punctuation at the ends; brackets with a partner inside the text stay."""
    while text:
        first = text[0]
        last = text[-1]
        is_wrapped = _BRACKETS.get(first) == last and _matched(text)
        if is_wrapped or (first == last and first in _MARKDOWN_MARKS and len(text) > 1):
            text = text[1:-1]
        elif _is_loose(first, opener=_BRACKETS.get(first), text=text) and not _LEADING_SIGN.match(
            text
        ):
            text = text.lstrip(first)
        elif _is_loose(last, opener=_OPENER.get(last), text=text) and not _TRAILING_SIGN.search(
            text
        ):
            text = text[:-1]
        else:
            break
    return text


def _is_loose(char: str, *, opener: str | None, text: str) -> bool:
    """Whether a character at an end of the text is punctuation without a partner inside."""
    punctuation = char.isspace() or unicodedata.category(char)[0] == "P"
    return punctuation and char not in _MEANINGFUL and (opener is None or opener not in text)


def _matched(text: str) -> bool:
    """Whether the last character of the text closes the first, an opening bracket."""
    depth = 0
    for position, char in enumerate(text):
        depth += (char == text[0]) - (char == text[-1])
        if depth == 0:
            return position == len(text) - 1
    return False


def _strip_quotes(text: str) -> str:
    """The text without outer quotes, paired or at one end only; the quote of 12" stays."""
    while len(text) > 1:
        first = text[0]
        last = text[-1]
        straight = first == last and first in "\"'`" and '"' not in text[1:-1]
        if straight or (first in _QUOTES and _BRACKETS.get(first) == last and _matched(text)):
            text = text[1:-1].strip()
        elif first in _QUOTES and (_BRACKETS.get(first, first) not in text[1:]):
            text = text[1:].strip()
        elif (
            last in _QUOTES
            and _OPENER.get(last, last) not in text[:-1]
            and not (last in "\"'’”" and text[-2].isdigit())
        ):
            text = text[:-1].strip()
        else:
            break
    return "" if text in _QUOTES else text


def without_accents(key: str) -> str:
    """A name key or a word without combining characters; the letters of Korean syllables stay joined."""
    if key.isascii():
        return key
    decomposed = unicodedata.normalize("NFD", key)
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    return unicodedata.normalize("NFC", letters)
