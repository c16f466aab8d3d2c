"""Finds English proper names, titles of works, dates and amounts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lightrag_jsonl.adapters.offline import english_words as tables
from lightrag_jsonl.adapters.offline.english_tokens import Token, shouted
from lightrag_jsonl.adapters.offline.phrases import Phrase, Sort

_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
)
_DATE = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?:,?\s+\d{{4}})?"
    rf"|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,\s*\d{{4}})?(?!\d)|{_MONTH},?\s+\d{{4}}"
    r"|1\d{3}s|20\d\ds|(?:1[0-9]|20)\d\d(?![\d,.]\d|-?\d|%)"
    r"|\d{1,2}(?:st|nd|rd|th)\s+century)\b"
)
_AMOUNT = re.compile(
    r"(?:[$£€¥]\s?\d[\d,.]*\d?(?:\s(?:million|billion|trillion|thousand))?"
    r"|\b\d[\d,.]*\s?(?:%|percent|per\scent|million|billion|km|kilometers|kilometres|miles|feet|meters"
    r"|metres|acres|hectares|pounds|shillings|dollars|euros|kg|tons|tonnes)(?![^\W_]))"
)
_QUOTED = re.compile(r"[“\"]([^\W_][^“”\"\n]{2,60}?)[,.]?[”\"]")


def proper_names(
    text: str, row: Sequence[Token], known: Counter[str], lexicon: Mapping[str, str]
) -> list[Phrase]:
    """The proper names, titles of works, dates and amounts of one sentence, in order."""
    if not row:
        return []
    taken = _fixed_phrases(text, row)
    free = [token for token in row if not inside(token.start, taken)]
    loud = shouted(row)
    for run in _runs(free, taken):
        for part in _parts(run, known, lexicon, loud):
            if phrase := _named(text, part, row, lexicon):
                taken.append(phrase)
    return sorted(taken, key=lambda phrase: phrase.start)


def _fixed_phrases(text: str, row: Sequence[Token]) -> list[Phrase]:
    """Dates, amounts and quoted titles, which are found by their form."""
    start, end = row[0].start, row[-1].end
    found: list[Phrase] = []
    for pattern, sort in _FORMS:
        for match in pattern.finditer(text, start, end):
            group = 1 if sort == "work" else 0
            if sort == "work" and not _title_case(match[1]):
                continue
            if not inside(match.start(group), found):
                name = " ".join(match[group].split())
                found.append(Phrase(*match.span(group), name, sort))
    return found


_FORMS: tuple[tuple[re.Pattern[str], Sort], ...] = (
    (_QUOTED, "work"),
    (_DATE, "date"),
    (_AMOUNT, "quantity"),
)


def _title_case(quoted: str) -> bool:
    parts = quoted.split()
    strong = [part for part in parts if part.casefold() not in tables.STOP_WORDS]
    capitals = all(part[0].isupper() or part[0].isdigit() for part in strong)
    return bool(strong) and parts[0][0].isupper() and capitals and 1 < len(parts) <= 9


def inside(position: int, phrases: Iterable[Phrase]) -> bool:
    """Whether an offset in the text lies in one of the phrases."""
    return any(phrase.start <= position < phrase.end for phrase in phrases)


def _runs(row: Sequence[Token], taken: Sequence[Phrase]) -> Iterator[list[Token]]:
    """Runs of capitalized words, with the small words that may join them to a name."""
    at = 0
    while at < len(row):
        if not _starts_name(row, at):
            at += 1
            continue
        run = [row[at]]
        at += 1
        while at < len(row):
            step = _continues(run, row, at)
            if not step or _parted(run[-1], row[at], taken):
                break
            run.extend(row[at : at + step])
            at += step
        yield run


def _parted(left: Token, right: Token, taken: Sequence[Phrase]) -> bool:
    return any(left.end <= phrase.start < right.start for phrase in taken)


def _starts_name(row: Sequence[Token], at: int) -> bool:
    token = row[at]
    if token.capital:
        return True
    year = token.kind == "number" and len(token.text) == 4
    before = row[at - 1].low if at else ""
    return year and before in ("the", "its") and at + 1 < len(row) and row[at + 1].capital


def _continues(run: Sequence[Token], row: Sequence[Token], at: int) -> int:
    """How many of the tokens from `at` on continue the name begun by `run`; 0 if it ends there."""
    token, last = row[at], run[-1]
    if token.capital and not token.initial:
        return 1
    ahead = [other if other.capital else None for other in row[at + 1 : at + 3]]
    first, second = [*ahead, None, None][:2]
    if token.kind == "number" and token.text.isdigit() and len(token.text) <= 4:
        return 1 if last.text[-1] != "." and last.low not in tables.CALENDAR else 0
    if token.kind == "own":
        plural = last.low in _OWNERS and second is not None
        return 2 if first is not None and (plural or (first.common and second is None)) else 0
    if token.low == "of":
        if first is not None:
            return 2
        the = at + 1 < len(row) and row[at + 1].low == "the"
        return 3 if the and second is not None else 0
    if token.text == "&" or token.low in tables.PARTICLES:
        return 2 if first is not None else 0
    if token.low == "for" and any(word.low in tables.JOINED_BY_FOR for word in run):
        return 2 if first is not None else 0
    if token.low == "the" and first is not None and first.low in _BYNAMES:
        return 2
    if token.text == "," and first is not None and first.low in ("jr.", "sr.", "inc.", "ltd."):
        return 2
    return 0


_ROMAN = re.compile(r"[IVXLC]+\Z")
_OWNERS = tables.words("women men children people girls boys king queen")
_BYNAMES = tables.words(
    "great terrible bold wise elder younger younger conqueror confessor first second third good fat"
    " magnificent lionheart pious fair red bear pooh sailor man barbarian impaler hedgehog"
)


def _parts(
    run: list[Token], known: Counter[str], lexicon: Mapping[str, str], loud: bool
) -> Iterator[list[Token]]:
    """The name in a run: without articles, roles, and words capitalized only by their position.

    Nothing if no name remains.
    """
    while run and run[0].low in ("the", "a", "an"):
        run = run[1:]
    if run and run[0].initial and not loud and not _proper_at_start(run, known, lexicon):
        run = run[1:]
        while run and not run[0].capital:
            run = run[1:]
    while len(run) > 2 and (run[0].low in tables.ROLES or _demonym_of(run)):
        run = run[1:]
    while (
        run
        and (run[0].low in tables.INTERJECTIONS or run[0].low in tables.STOP_WORDS)
        and (run[0].initial or len(run) == 1)
    ):
        run = run[1:]
    if run and run[0].kind == "word" and not run[0].capital:
        return
    if run and not (loud and len(run) > 7):
        yield run


def _demonym_of(run: Sequence[Token]) -> bool:
    return run[0].low.endswith(tables.DEMONYM_ENDINGS) and run[1].low in tables.ROLES


def _proper_at_start(run: Sequence[Token], known: Counter[str], lexicon: Mapping[str, str]) -> bool:
    """Whether a word that is capitalized by its position is a name, or begins one."""
    token = run[0]
    if token.kind == "name" or token.low in tables.TITLES:
        return True
    if token.low in tables.STOP_WORDS or token.low in tables.INTERJECTIONS:
        return False
    if known[token.low] > 0 or token.low in tables.FIRST_NAMES or token.text.isupper():
        return True
    common = lexicon.get(token.low)
    if len(run) > 1 and run[1].capital:
        return common is None or common.startswith(("NN", "JJ", "CD", "VBG", "VBN"))
    if len(run) > 2 and run[1].low == "of":
        return common is None or common.startswith("NN")
    if common is not None and not common.startswith("NNP"):
        return False
    return not token.low.endswith(("ly", "ing", "ed", "wards")) or "NNP" in str(
        lexicon.get(token.text)
    )


def _named(
    text: str, run: Sequence[Token], row: Sequence[Token], lexicon: Mapping[str, str]
) -> Phrase | None:
    """The phrase for a run of tokens, or None if it is no name by itself."""
    titled = run[0].low in tables.TITLES
    if len(run) > 1 and run[0].low in tables.COURTESY:
        run = run[1:]
    before = next((t for t in reversed(row) if t.end <= run[0].start), None)
    after = next((t for t in row if t.start >= run[-1].end), None)
    if len(run) == 1 and not _names_alone(run[0], after, lexicon):
        return None
    start, end = run[0].start, run[-1].end
    name = " ".join(text[start:end].replace("_", " ").split())
    sort = "person" if titled else _sort(text, run, before, after)
    return Phrase(start, end, name, sort or _default_sort(run, lexicon), True, sort is not None)


def _names_alone(token: Token, after: Token | None, lexicon: Mapping[str, str]) -> bool:
    low, text = token.low, token.text
    if len(text.strip(".")) < 2 or low in tables.CALENDAR or low in tables.INTERJECTIONS:
        return False
    if _ROMAN.match(text) or low in tables.STOP_WORDS:
        return False
    if low in tables.TITLES or low in tables.ROLES or tables.HEADS.get(low) == "person":
        return False
    if text.isupper() and lexicon.get(low, "NNP") != "NNP" and not token.tag.startswith("NNP"):
        return False
    if str(lexicon.get(text)).startswith("JJ"):
        return False
    adjective = low.endswith(tables.DEMONYM_ENDINGS) and low not in tables.PLACES
    return not (adjective and after is not None and after.kind == "word" and not after.capital)


_COPULA = re.compile(
    r"['\"”’]?\s*(?:\([^()]{0,160}\))?,?\s*(?:is|was|are|were)\s+(?:(?:a|an|the|one\s+of\s+the)\s+)"
    r"((?:[\w'’-]+,?\s+){0,7}?[\w'’-]+)(?=\s+(?:of|in|by|who|that|which|from|for|at|on|based|born|and"
    r"|set|located|written|directed|published|created|situated)\b|[.,;:(])"
)


def _sort(
    text: str, run: Sequence[Token], before: Token | None, after: Token | None
) -> Sort | None:
    """The sort that the text shows: by "X is a …", by the name itself, or by the words beside it."""
    if described := _COPULA.match(text, run[-1].end):
        for word in reversed(described[1].casefold().replace(",", "").split()):
            if found := tables.HEADS.get(word) or tables.HEADS.get(word.removesuffix("s")):
                return found
    heads = [token.low for token in run]
    of = heads.index("of") if "of" in heads else len(heads)
    for word in (heads[of - 1], heads[0]) if of else ():
        if len(run) > 1 and (found := tables.HEADS.get(word)) and found != "person":
            return found
    if len(run) > 1 and run[0].low in tables.FIRST_NAMES:
        return "person"
    if len(run) <= 2 and (run[-1].low in tables.PLACES or run[0].low == "new"):
        return "place"
    if after is not None and (after.low in tables.SPEECH or after.low == "who"):
        return "person"
    if before is not None and before.low in tables.SPEECH and before.low not in ("wrote", "told"):
        return "person"
    if len(run) == 1 and run[0].low in tables.HEADS:
        return tables.HEADS[run[0].low]
    if before is not None and before.low in ("in", "near") and len(run) <= 2:
        return "place"
    return None


def _default_sort(run: Sequence[Token], lexicon: Mapping[str, str]) -> Sort:
    if len(run) == 1:
        token = run[0]
        if token.low in tables.FIRST_NAMES:
            return "person"
        return "organization" if token.text.isupper() and len(token.text) > 2 else "concept"
    plain = all(token.capital and token.text[1:].islower() for token in run)
    unusual = str(lexicon.get(run[-1].low, "NNP")).startswith("NNP")
    return "person" if plain and len(run) <= 3 and unusual else "concept"


def full_names(phrases: Iterable[Phrase]) -> dict[str, str]:
    """The full name for each surname: "Smith" → "Lester Smith".

    Only for surnames in a single full name that comes before the surname alone.
    """
    full: dict[str, set[str]] = {}
    alone: set[str] = set()
    for phrase in phrases:
        last = phrase.name.rsplit(" ", 1)[-1]
        if last == phrase.name:
            if last not in full:
                alone.add(last)
        elif phrase.proper and phrase.sort == "person" and " of " not in phrase.name:
            full.setdefault(last, set()).add(phrase.name)
    return {
        last: next(iter(names))
        for last, names in full.items()
        if len(names) == 1 and last not in alone
    }


_HEADING = re.compile(r"([^\W_][^()\n]{1,60}?)\s*(?:\(([^()\n]{1,40})\))?")
_SUBJECT = re.compile(
    r"\s*(?:The|A|An)?\s*[\"“]?([A-Z0-9][^.;!?:()\"”\n]{1,70}?)[\"”]?,?\s*(?:\([^()]{0,200}\),?\s*)?"
    r"\b(?:is|was|are|were)\s+(?:a|an|the|one)\b"
)


def topic_name(text: str, spans: Sequence[tuple[int, int]]) -> Phrase | None:
    """What a text is about: its title, or the subject that its first sentence defines."""
    return _heading(text, spans) or _subject(text, spans)


def _heading(text: str, spans: Sequence[tuple[int, int]]) -> Phrase | None:
    """The title of a text, if its first line is one, without a "(disambiguation)"."""
    start, end = spans[0]
    title = _HEADING.fullmatch(text, start, end)
    alone = len(spans) > 1 and "\n" in text[end : spans[1][0]] and text[end - 1] not in ".!?…:,;"
    if title is None or not alone or len(title[1].split()) > 8 or title[1][0].islower():
        return None
    name = " ".join(title[1].split())
    if name.isupper() or name.casefold().split()[0] in ("chapter", "section", "part", "page"):
        return None
    words = (title[2] or "").casefold().split()
    sort = next((tables.HEADS[word] for word in reversed(words) if word in tables.HEADS), None)
    return Phrase(*title.span(1), name.removeprefix("The "), sort or "concept", sure=bool(sort))


def _subject(text: str, spans: Sequence[tuple[int, int]]) -> Phrase | None:
    found = _SUBJECT.match(text)
    words = found[1].casefold().replace(",", "").split() if found else []
    if found is None or not words or len(words) > 9 or words[0] in tables.STOP_WORDS:
        return None
    if text[spans[0][1] - 1] in "?？" or words[0] in tables.INTERJECTIONS:
        return None
    if not tables.PRONOUNS.isdisjoint(words):
        return None
    described = _COPULA.match(text, found.end(1))
    last = described[1].casefold().split()[-1] if described else ""
    sort = tables.HEADS.get(last)
    return Phrase(*found.span(1), " ".join(found[1].split()), sort or "concept", sure=bool(sort))
