"""Basic text functions: ids, keys of names, cleaning, sentences, search terms."""

import hashlib
import html
import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opencc import OpenCC


def sanitize(text: str) -> str:
    """Replace what UTF-8 or SQLite cannot hold (lone surrogates, NUL) by U+FFFD; keeps the length."""
    try:
        text.encode()  # much faster than looking at each character
    except UnicodeEncodeError:
        return _UNSTORABLE.sub("\ufffd", text)
    return text.replace("\0", "\ufffd")


def digest(*parts: str) -> str:
    """16 hex digits of SHA-256 over the parts, each prefixed by its length in bytes."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        sha.update(len(data).to_bytes(8, "big") + data)
    return sha.hexdigest()[:16]


@lru_cache(10_000)  # the same names are looked up again and again
def name_key(name: str) -> str:
    """The key that all spellings of a name share: NFKC, casefolded, simplified, without outer
    punctuation (unless there is nothing else). It is empty only without any visible character.
    """
    folded = _fold(name)
    if len(folded) > _LONGEST_NAME:
        return folded
    return _strip_outer(folded) or folded


def clean_name(name: str) -> str:
    """A name for display: without markup, wrapping quotes, 《》 and control characters.

    Full-width letters and digits become ASCII and white space is folded; what belongs to the name
    stays ("42", "3.14", "C++", "AT&T", "Lilu (mythology)").
    """
    if _PLAIN_NAME.fullmatch(name):
        return name
    text = sanitize(name)
    for _ in range(_MARKUP_ROUNDS):
        plain = _HTML_ENTITY.sub(lambda found: html.unescape(found[0]), text)
        plain = _TAG.sub(" ", _PAIRED_TAG.sub(r" \2 ", plain))
        if plain == text:
            break
        text = plain
    text = _INVISIBLE.sub("", sanitize(text).translate(_HALF_WIDTH))
    text = " ".join(_CONTROL.sub(" ", text).split())
    return text if len(text) > _LONGEST_NAME else _strip_quotes(text)


def clipped(text: str, limit: int) -> str:
    """The text on one line, cut to at most `limit` characters and "…"."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[:limit].rstrip() + "…"


def on_one_line(text: str) -> str:
    """A text without line breaks."""
    return text if text.isprintable() else " ".join(text.split())


def first_words(text: str, limit: int) -> str:
    """The first sentence of a text, without a mark of Markdown; a long one is cut between words."""
    text = text.lstrip("#> \n")[: 9 * limit]
    ends = [end for _, end in sentence_spans(text)]
    line = clipped(text[: min(ends, default=0)].rstrip("。."), limit)
    return line if line[-1:] != "…" else re.sub(r"(\s\S{0,15})?…$", "", line) + "…"


def folded_text(text: str) -> str:
    """A text folded like name keys, except at its ends; it contains the keys of the names in the text."""
    return _fold(html.unescape(text) if "&" in text else text)


def simplified(text: str) -> str:
    """A text with its traditional Chinese characters made simple, each by one: offsets stay right.

    Words are known (乾隆, but 干燥), unlike in keys and search terms.
    """
    found = _simplifier().convert(sanitize(text)) if has_cjk(text) else text
    return found if len(found) == len(text) else text.translate(_simple_characters())


def is_cjk(char: str) -> bool:
    """Whether a character is Han, kana or Hangul; search terms of these scripts are bigrams."""
    return _CJK.match(char) is not None


def has_cjk(text: str) -> bool:
    """Whether any character of the text is Han, kana or Hangul."""
    return not text.isascii() and _CJK.search(text) is not None


def is_lone(term: str) -> bool:
    """Whether a term is a single CJK character, which an index holds mainly as part of bigrams."""
    return len(term) == 1 and is_cjk(term)


def search_terms(text: str) -> list[str]:
    """Search terms in order: casefolded words, or overlapping bigrams in scripts without spaces.

    Chinese characters are simplified. A possessive 's is dropped, other apostrophes are closed up.
    """
    return _terms(text, endings=False)


def index_terms(text: str) -> list[str]:
    """The search terms of a text, and the last character of CJK runs: each then begins a term."""
    return _terms(text, endings=True)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """The sentences as (start, end) in characters, for English and Chinese.

    They are in order and cover all but white space; closing quotes and footnote marks belong to them.
    Blank lines end a sentence, single line breaks only beside CJK text, a very long line or a list
    item. A full-width point (．) does so in a text without 。: elsewhere it separates names.
    """
    spans = []
    start = 0
    for end in _sentence_ends(text):
        if piece := text[start:end].strip():
            left = text.index(piece[0], start)
            spans.append((left, left + len(piece)))
        start = end
    return spans


CJK = (  # for the class of a pattern
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
_UNSPACED_CLASS = CJK + "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
_MARKS_CLASS = "".join(
    chr(code) for code in range(0x0300, 0x1E00) if unicodedata.category(chr(code))[0] == "M"
)
_CJK = re.compile(f"[{CJK}]")
FUNCTION_CHARACTERS = (  # Chinese ones that mean little alone
    "的了是在有我你他她它们这那之与及或而但也都就还又被把为对从到于以其此何么吗呢吧谁哪几"
)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_TAG = re.compile(  # HTML tags only, since others may be part of a name: List<String>
    r"</?(?:a|abbr|b|big|blockquote|br|center|cite|code|dd|del|dfn|div|dl|dt|em|font|h[1-6]|hr|i|img"
    r"|ins|kbd|li|mark|nowiki|ol|p|pre|q|ref|s|samp|section|small|span|strike|strong|sub|sup|table"
    r"|tbody|td|th|thead|tr|tt|u|ul|var)(?=[\s/>])[^<>]{0,200}>"
)
_PAIRED_TAG = re.compile(
    r"<([A-Za-z][\w:-]{0,40})(?:\s[^<>]{0,200})?>([^<>]*)</\1\s{0,9}>", re.IGNORECASE
)
_HTML_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_MARKUP_ROUNDS = 3  # markup escaped twice is common in scraped text; deeper is an attack
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_INVISIBLE = re.compile("[\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_HALF_WIDTH = {
    code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F) if chr(code - 0xFEE0).isalnum()
}
_HALF_WIDTH |= {ord(char): ord(char) - 0xFEE0 for char in "＋＆＃＠％．－／＿＇"}
_QUOTE_FORMS = str.maketrans("‘’ʼ‛′`´", "'" * 7)
_KEY_FORMS = _QUOTE_FORMS | str.maketrans("“”„‟″«»‐‑‒–—―−・•‧∙⋅", '"' * 7 + "-" * 7 + "·" * 5)


_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">", "《": "》", "〈": "〉", "「": "」", "『": "』"}
_PAIRS |= {"【": "】", "〔": "〕", "“": "”", "‘": "’", "«": "»", "（": "）"}
_OPENER = {closer: opener for opener, closer in _PAIRS.items()}
_QUOTES = frozenset("\"'`“”‘’«»《》〈〉「」『』„‟")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9]+(?: [A-Za-z0-9]+)*")  # nothing to clean
_LONGEST_NAME = 400  # characters; longer texts are not names, and keep their ends
_MEANINGFUL = frozenset("#%&@‰§")  # Unicode calls it punctuation, but "C#" is not "C"


def _nfkc_casefold(text: str) -> str:
    """NFKC, casefold and simplified characters until none of them changes anything."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    folded = folded.translate(_simple_characters()) if has_cjk(folded) else folded
    return folded if folded == text else _nfkc_casefold(folded)


@cache
def _simplifier() -> "OpenCC":
    from opencc import OpenCC

    return OpenCC("t2s")


@cache
def _simple_characters() -> dict[int, str]:
    """The simplified character of each traditional one, as `str.translate` takes them."""
    every = [chr(code) for code in (*range(0x3400, 0xA000), *range(0x20000, 0x32000))]
    simple = _simplifier().convert("\n".join(every)).split("\n")
    return {ord(one): other for one, other in zip(every, simple, strict=True) if one != other}


def _fold(name: str) -> str:
    """A name key, before punctuation is stripped from its ends."""
    text = sanitize(name)
    if text.isascii():  # as below, in a tenth of the time
        return " ".join(_CONTROL.sub(" ", text.lower().replace("`", "'")).split())
    text = _nfkc_casefold(text).translate(_KEY_FORMS)
    text = " ".join(_INVISIBLE.sub("", _CONTROL.sub(" ", text)).split())
    return text if text == name else _fold(text)


def _strip_outer(text: str) -> str:
    """The text without punctuation at its ends; brackets that are closed inside it are kept."""
    while text:
        if _PAIRS.get(text[0]) == text[-1] and _matched(text):
            text = text[1:-1]
        elif _is_loose(text[-1], opener=_OPENER.get(text[-1]), text=text):
            text = text[:-1]
        elif _is_loose(text[0], opener=_PAIRS.get(text[0]), text=text):
            text = text[1:]
        else:
            break
    return text


def _is_loose(char: str, *, opener: str | None, text: str) -> bool:
    """Whether a character at an end of the text is punctuation without a partner inside."""
    punctuation = char.isspace() or unicodedata.category(char)[0] == "P"
    return punctuation and char not in _MEANINGFUL and (opener is None or opener not in text)


def _matched(text: str) -> bool:
    """Whether the bracket that opens the text is closed by its last character, and not earlier."""
    depth = 0
    for position, char in enumerate(text):
        depth += (char == text[0]) - (char == text[-1])
        if depth == 0:
            return position == len(text) - 1
    return False


def _strip_quotes(text: str) -> str:
    """The text without quotes around it; a single quote at one end goes, too, but not in 12"."""
    while len(text) > 1:
        first, last = text[0], text[-1]
        straight = first == last and first in "\"'`" and '"' not in text[1:-1]
        if straight or (first in _QUOTES and _PAIRS.get(first) == last and _matched(text)):
            text = text[1:-1].strip()
        elif first in _QUOTES and (_PAIRS.get(first, first) not in text[1:]):
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


_ASCII_WORD = re.compile(r"[a-z0-9]+(?:'[a-z0-9]+)*")
_RUN = re.compile(
    rf"(?P<unspaced>[{_UNSPACED_CLASS}]+)"
    rf"|(?P<word>(?:(?![{_UNSPACED_CLASS}_])[\w{_MARKS_CLASS}])+"
    rf"(?:'(?:(?![{_UNSPACED_CLASS}_])[\w{_MARKS_CLASS}])+)*)"
)


def _terms(text: str, *, endings: bool) -> list[str]:
    if text.isascii():  # a quarter of the time; most English text is
        words = _ASCII_WORD.findall(text.lower())
        return words if "'" not in text else [w.removesuffix("'s").replace("'", "") for w in words]
    terms: list[str] = []
    for run in _RUN.finditer(_nfkc_casefold(text).translate(_QUOTE_FORMS)):
        found = run[0]
        if run["word"] is not None:
            terms.append(found.removesuffix("'s").replace("'", ""))
            continue
        terms += [found[at : at + 2] for at in range(len(found) - 1)] or [found]
        if endings and len(found) > 1 and is_cjk(found[-1]):
            terms.append(found[-1])
    return terms


_NUMBER = r"\d{1,18}"  # what 64 bits hold
_NUMBERS = rf"{_NUMBER}(?:\s*[-‐-―−~～－]\s*{_NUMBER})?"
CITATION_MARKER = re.compile(  # [1], [2, 5], 【3-4】; not \[1], which is escaped
    rf"(?<!\\)[\[［【]\s*(?P<numbers>{_NUMBERS}(?:\s*[,，、;；]\s*{_NUMBERS})*)\s*[\]］】]"
    r"(?!\((?:https?:|#))"  # a link's text is no citation
)
_CODE_OR_MARKER = re.compile(rf"(?P<code>```|`|\n)|{CITATION_MARKER.pattern}")


def split_citations(text: str, code: str = "") -> tuple[list[str | re.Match[str]], str]:
    """A text cut at its citations, and the code of Markdown ("", "`" or "```") that is open at its
    end, as `code` is at its beginning: `rows[1]` cites nothing, but a number alone in backticks does.
    """
    pieces, end = list[str | re.Match[str]](), 0
    for match in _CODE_OR_MARKER.finditer(text):
        at, mark = match.start(), match["code"]
        if mark and (code != "```" or mark == code):  # which nothing else closes
            code = "" if mark in ("\n", code) else mark
        elif not mark and (not code or (code == "`" and text[max(at - 1, 0) : at] == "`")):
            pieces += [text[end:at], match]
            end = match.end()
    return [*pieces, text[end:]], code


def words(listed: str) -> frozenset[str]:
    """The words of a table that is written as one string."""
    return frozenset(listed.split())


_STOPS = (
    r"(?P<blank>\n[^\S\n]*(?=\n)|[\f\x1c-\x1e\u2029])|(?P<line>\n)"
    r"|(?P<wide>[。！？｡]+%s)|(?P<narrow>[.!?…]+)"
)
_STOP = re.compile(_STOPS % "")
_STOP_OR_POINT = re.compile(
    _STOPS % rf"|(?<=[{CJK}”’）])(?<![〇零一二三四五六七八九十])．(?![0-9０-９])"
)
_TAG_OR_NOTE = rf"</?[A-Za-z][^<>]{{0,80}}>|{CITATION_MARKER.pattern}"
_CLOSERS = re.compile(rf"(?:[”’」』）)\]】〕》〉»*_]|{_TAG_OR_NOTE})*")
_CLOSERS_STRAIGHT = re.compile(rf"(?:[\"'”’」』）)\]】〕》〉»*_]|{_TAG_OR_NOTE})*")
_NEXT = re.compile(r"\s*([\"'“‘«(\[「『《_*]*)(\w*)")
_HEADING = re.compile(r"[^\S\n]*#{1,6}\s")
_LIST_ITEM = re.compile(
    r"[^\S\n]*(?:[-*•·●▪]\s|\d{1,3}[.)、]\s?|[（(]?[一二三四五六七八九十]+[)）、]|#{1,6}\s)"
)
_UNWRAPPED = 120  # characters; longer lines are not hard-wrapped, so their line breaks are meant
_WORD_BEFORE = re.compile(r"[^\W\d_](?:[\w.&'’-]{0,24})$|\d{1,3}$")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
_TITLES = words(
    "mr mrs ms messrs mme mlle dr prof st ste sr fr gen col maj capt cpt cmdr adm lt sgt cpl pvt"
    " rev hon gov sen rep pres supt insp mt ft vs cf viz e.g i.e eg ie ca approx dept univ assn"
    " bros op ed eds trans"
)
_BEFORE_NUMBERS = words(
    "no nos vol vols fig figs p pp sec art eq ch jan feb mar apr jun jul aug sep sept oct nov dec"
)
_STARTERS = words(
    "the this that these those he she it they we in on at as but and after before when while his"
    " her its their there however for from during since although if"
)


def _sentence_ends(text: str) -> Iterator[int]:
    start = 0
    quotes = counted = 0
    stops = _STOP if "。" in text or "．" not in text else _STOP_OR_POINT
    for stop in stops.finditer(text):
        if stop.start() < start:
            continue
        quotes += text.count('"', counted, stop.start())
        counted = stop.start()
        if stop["blank"] or stop["line"]:
            end = stop.end() if stop["blank"] or _line_ends(text, stop) else None
            quotes = 0 if end else quotes
        elif stop["wide"]:
            end = _after(_CLOSERS_STRAIGHT if quotes % 2 else _CLOSERS, text, stop.end())
        else:
            end = _narrow_end(text, start, stop)
        if end is not None and end > start:
            yield end
            start = end
    if start < len(text):
        yield len(text)


def _after(closers: re.Pattern[str], text: str, position: int) -> int:
    found = closers.match(text, position)
    return position if found is None else found.end()


def _line_ends(text: str, stop: re.Match[str]) -> bool:
    before = text[stop.start() - 1 : stop.start()]
    after = text[stop.end() : stop.end() + 1]
    if _CJK.match(before) or _CJK.match(after) or before in tuple("，：；、”」』》"):
        return True
    ahead = text[stop.end() : stop.end() + _UNWRAPPED]
    behind = text[max(0, stop.start() - _UNWRAPPED) : stop.start()]
    if any(len(line) == _UNWRAPPED and "\n" not in line for line in (ahead, behind)):
        return True
    heading = _HEADING.match(behind, behind.rfind("\n") + 1)
    return heading is not None or _LIST_ITEM.match(text, stop.end()) is not None


def _narrow_end(text: str, start: int, stop: re.Match[str]) -> int | None:
    """The end of a sentence that may end in ". ! ? …", or None if it goes on."""
    end = _after(_CLOSERS_STRAIGHT, text, stop.end())
    follows = text[end : end + 1]
    if not follows:
        return end
    if not follows.isspace():
        wide = _CJK.match(follows) and not stop[0].startswith("…") and "\n" not in follows
        return end if wide and not text[stop.start() - 1 : stop.start()].isascii() else None
    found = _NEXT.match(text, end)
    word = "" if found is None else found[2]
    if word[:1].islower() or (stop[0] == "." and _is_abbreviation(text, start, stop.start(), word)):
        return None
    return end


def _is_abbreviation(text: str, start: int, dot: int, word: str) -> bool:
    """Whether the dot belongs to an abbreviation, an initial or a list number; `word` follows it."""
    before = _WORD_BEFORE.search(text, max(start, dot - 26), dot)
    if before is None:
        return False
    token = before[0].casefold()
    if token.isdigit():
        return not text[start : before.start()].strip()
    if token in _TITLES:
        return True
    if token in _BEFORE_NUMBERS:
        return word[:1].isdigit()
    return _DOTTED.fullmatch(token) is not None and word.casefold() not in _STARTERS
