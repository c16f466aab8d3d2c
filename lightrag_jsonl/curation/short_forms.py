"""Short forms of names: initials of English names, and 台大 for 国立台湾大学."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from lightrag_jsonl.curation.compared_names import ComparedName
from lightrag_jsonl.indexing.english_names import initials
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.segmentation import segmented
from lightrag_jsonl.text.strings import words

LONGEST_SPAN = 6  # words that initials stand for
MOST_WORDS_WITH_INITIALS = 12  # words of a name with such a span
SHORTEST_ALONE = 3  # letters of initials that are a whole name
ABBREVIATION_SIZES = range(2, 9)  # letters
SHORT_SIZES = range(2, 6)  # characters of a Chinese short form
# Words that a Chinese short form leaves out.
_LEFT_OUT = words(
    "国立 公立 市立 省立 私立 中国 中华人民共和国 全国 国家 省 市 县 区 和 与 及 的 股份 有限 责任 公司 集团"
)
_WORD_PIECE = 2  # characters of the words in a long Chinese word


def initial_pairs(names: Mapping[int, ComparedName]) -> Iterator[tuple[int, int]]:
    """Pairs of a name with initials and the only name with the words behind the initials: IRS, the U.S.
    Navy, J. R. R. Tolkien.
    """
    ids_by_form: dict[tuple[str, ...], set[int]] = defaultdict(set)
    people_by_form: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for id, name in names.items():
        if name.cjk:
            continue
        for form in _forms_with_initials(name.plain_words):
            ids_by_form[form].add(id)
        if name.is_person and not name.has_initials and len(name.plain_words) > 1:
            people_by_form[_person_form(name)].add(id)
    for id, name in names.items():
        if name.has_initials and name.is_person:
            yield from _only_pair(id, people_by_form.get(_person_form(name), set()), names)
        elif name.has_initials and _is_long_enough(name.plain_words):
            yield from _only_pair(id, ids_by_form.get(name.plain_words, set()), names)


def bracketed_pairs(names: Mapping[int, ComparedName]) -> Iterator[tuple[int, int]]:
    """Pairs of a name with its abbreviation in brackets, and the abbreviation: 抗利尿激素（ADH）, ADH."""
    ids_by_key = {name.row.key: id for id, name in names.items()}
    for id, name in names.items():
        short_id = ids_by_key.get(name_key(name.aside), id) if name.aside else id
        letters = name.aside.removesuffix("s").replace(".", "")
        is_short = letters.isupper() and letters.isascii() and len(letters) in ABBREVIATION_SIZES
        if is_short and (name.cjk or letters.casefold() in initials(name.plain_words)):
            yield from _only_pair(short_id, {id}, names)


def chinese_short_pairs(names: Mapping[int, ComparedName]) -> Iterator[tuple[int, int]]:
    """Pairs of a Chinese short form and the only possible name in full."""
    long_names: dict[str, list[int]] = defaultdict(list)
    words_by_id: dict[int, list[str]] = {}
    for id, name in names.items():
        if name.cjk and not name.is_person and len(name.core) > SHORT_SIZES[0] + 1:
            words_by_id[id] = _dictionary_words(name.core)
            for first in {word[0] for word in words_by_id[id][:2]}:
                long_names[first].append(id)
    for id, name in names.items():
        if not name.cjk or name.is_person or len(name.core) not in SHORT_SIZES:
            continue
        candidates = {
            candidate
            for candidate in long_names.get(name.core[0], ())
            if candidate != id and shortens(name.core, words_by_id[candidate])
        }
        yield from _only_pair(id, candidates, names)


def shortens(short: str, long_words: Sequence[str]) -> bool:
    """Whether a short form has the first character of each word of a name, in order, except of words
    usually left out; the last character of the name may stand for the last word.
    """
    if len(short) + 1 >= sum(map(len, long_words)):
        return False
    at = 0
    for number, word in enumerate(long_words):
        remaining = short[at:]
        is_last = number == len(long_words) - 1
        if remaining.startswith(word[0]):
            at += 1
            if is_last and remaining[1:] == word[-1]:
                at += 1
        elif is_last and remaining == word[-1]:
            at += 1
        elif word not in _LEFT_OUT:
            return False
    return at == len(short)


def _dictionary_words(name: str) -> list[str]:
    """The words of a name; long words of the dictionary in pieces of two characters."""
    pieces: list[str] = []
    for word in segmented(name):
        text = word.text
        if len(text) > _WORD_PIECE + 1:
            pieces += [text[at : at + _WORD_PIECE] for at in range(0, len(text), _WORD_PIECE)]
        else:
            pieces.append(text)
    return pieces


def _forms_with_initials(name_words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The words of a name, with initials in the place of neighbouring words."""
    if len(name_words) > MOST_WORDS_WITH_INITIALS:
        return
    for start in range(len(name_words)):
        for end in range(start + 2, min(start + LONGEST_SPAN, len(name_words)) + 1):
            for letters in sorted(initials(name_words[start:end])):
                yield (*name_words[:start], letters, *name_words[end:])


def _person_form(name: ComparedName) -> tuple[str, str]:
    """The initials of given names, and the surname."""
    *given_names, family = name.plain_words
    letters = [word if word in name.initials else word[0] for word in given_names]
    return "".join(letters), family


def _is_long_enough(name_words: Sequence[str]) -> bool:
    return len(name_words) > 1 or len(name_words[0]) >= SHORTEST_ALONE


def _only_pair(
    id: int, candidates: set[int], names: Mapping[int, ComparedName]
) -> Iterator[tuple[int, int]]:
    """The pairs of a short name with candidates of the same core, if the types allow one entity."""
    possible = {candidate for candidate in candidates if names[id].may_be(names[candidate])}
    if len({names[candidate].core for candidate in possible}) == 1:
        for candidate in sorted(possible - {id}):
            yield id, candidate
