"""Sentences that describe a name, the most central first, and sentences as quotes."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from lightrag_jsonl.rules.pronouns import NamedSentence
from lightrag_jsonl.text.cjk import has_cjk
from lightrag_jsonl.text.markup import (
    cells_of,
    colon_of,
    quoted_line,
    row_with_columns,
    without_addresses,
)
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.terms import is_grammatical, search_terms

LONGEST_QUOTED_LINE = 320  # characters
_DESCRIBING_SENTENCES = 3  # of a description
_COMPARED_SENTENCES = 50  # of a name in a text: bounds the time
_END_OF_CLAUSE = pattern_of(r"[,;:，；：](?:\s+|(?<=[，；：]))")
_QUESTION_ENDS = ("?", "？")
_QUOTE_ENDS = (*_QUESTION_ENDS, *".!…,;:。！，；：")
_QUOTE_CLOSERS = "\"'”’」』）)]》"
_WORDS_OF_LINK = pattern_of(r"\[[^\[\]\n]*\]")
_BOXES = ("[ ] ", "[x] ", "[X] ")  # of tasks in a list


def central_sentences(text: str, sentences: Sequence[NamedSentence], key: str) -> str:
    """The most telling of the sentences with a name, together no longer than a quote.

    Sentences with an unclear pronoun do not count, nor the header of a table and rows without known
    columns. Sentences that begin with the name come first, ordered by the words in common with the rest;
    what only repeats the name, and questions, count only without any other sentence.
    """
    clear = [
        sentence
        for sentence in sentences
        if not sentence.is_unclear and _is_readable(text, sentence)
    ]
    telling = [sentence for sentence in clear if _tells(text, sentence)]
    ranked = _most_central_first(text, (telling or clear)[:_COMPARED_SENTENCES], key)
    quotes: list[str] = []
    for sentence in ranked[:_DESCRIBING_SENTENCES]:
        line = quoted_sentence(text, sentence, [key])
        if line in quotes or (quotes and len("".join([*quotes, line])) > LONGEST_QUOTED_LINE):
            continue
        quotes.append(line)
    return _in_one_line(quotes)


def _in_one_line(quotes: Sequence[str]) -> str:
    """Quotes in a line, with a mark behind those that end without one, such as points of a list."""
    line = ""
    for quote in quotes:
        is_cjk = has_cjk(line[-2:] + quote[:2])
        if line and not line.rstrip(_QUOTE_CLOSERS).endswith(_QUOTE_ENDS):
            line += "；" if is_cjk else ";"
        line += quote if is_cjk or not line else f" {quote}"
    return line


def quoted_sentence(text: str, sentence: NamedSentence, keys: Iterable[str]) -> str:
    """A sentence, with the meaning of the pronoun at the beginning: "He [Niels Bohr] moved to
    Cambridge."

    A name in the heading is put before a sentence without the name. The cells of a row stand behind the
    columns. A long sentence is cut; if names given as keys would be lost, the cut begins at the clause of
    the names.
    """
    keys = list(keys)
    heading = sentence.heading
    if heading is not None and len(keys) > 1:
        names = {name_key(name.name) for name in sentence.subject_and_names}
        if name_key(heading.name) in {*keys} - names:
            own_keys = [key for key in keys if key in names]
            quote = quoted_sentence(text, sentence, own_keys)
            return f"{heading.name}{colon_of(heading.name)}{quote}"
    if sentence.columns is not None:
        row = text[sentence.start : sentence.end]
        line = row_with_columns(row, sentence.columns) or " · ".join(cells_of(row))
        return quoted_line(line, LONGEST_QUOTED_LINE)
    start, end = span_of_names(sentence, keys)
    if end - sentence.start <= LONGEST_QUOTED_LINE:
        return quoted_line(_explained(text, sentence), LONGEST_QUOTED_LINE)
    clauses = _END_OF_CLAUSE.finditer(text, sentence.start, start)
    clause_start = max((clause.end() for clause in clauses), default=start)
    link_start = text.rfind("[", sentence.start, start)
    if link_start >= 0 and "]" not in text[link_start:start]:
        clause_start = min(clause_start, link_start)  # the name stands inside of the link
    return "…" + quoted_line(text[clause_start : sentence.end], LONGEST_QUOTED_LINE)


def span_of_names(sentence: NamedSentence, keys: Iterable[str]) -> tuple[int, int]:
    """From the first to the last of the names in a sentence, given as keys, each at the first place."""
    places: dict[str, tuple[int, int]] = {}
    for phrase in sentence.subject_and_names:
        places.setdefault(name_key(phrase.name), (phrase.start, phrase.end))
    spans = [places[key] for key in keys if key in places]
    if not spans:
        return sentence.start, sentence.start
    return min(start for start, _ in spans), max(end for _, end in spans)


def _explained(text: str, sentence: NamedSentence) -> str:
    """A sentence with the meaning of the pronoun, behind the box of a task: open tasks are no facts."""
    start = sentence.start
    if text.endswith(_BOXES, 0, start):
        start -= len(_BOXES[0])
    subject = sentence.subject
    if subject is None:
        return text[start : sentence.end]
    before = text[start : subject.end]
    after = text[subject.end : sentence.end]
    name = f"（{subject.name}）" if has_cjk(before) else f" [{subject.name}]"
    return f"{before}{name}{after}"


def _is_readable(text: str, sentence: NamedSentence) -> bool:
    """Whether a sentence is no row of a table, or one whose columns are known."""
    if sentence.columns is None:
        return not sentence.is_header
    return len(cells_of(text[sentence.start : sentence.end])) == len(sentence.columns)


def _tells(text: str, sentence: NamedSentence) -> bool:
    """Whether a sentence says something: a heading, a question, a name alone and links alone do not."""
    is_question = text[sentence.start : sentence.end].rstrip("\"'”’」）) ").endswith(_QUESTION_ENDS)
    return not (is_question or sentence.is_heading) and _has_own_words(text, sentence)


def _has_own_words(text: str, sentence: NamedSentence) -> bool:
    """Whether a sentence has words beside names and links."""
    words: list[str] = []
    end = sentence.start
    for name in sentence.names:
        words.append(text[end : name.start])
        end = name.end
    words.append(text[end : sentence.end])
    line = " ".join(words)
    if "[" in line or ":" in line:
        line = _WORDS_OF_LINK.sub(" ", without_addresses(line))
    return any(map(str.isalpha, line))


def _most_central_first(
    text: str, sentences: Sequence[NamedSentence], key: str
) -> list[NamedSentence]:
    if len(sentences) < 2:
        return [*sentences]
    terms_of_name = {*search_terms(key)}
    texts = [text[sentence.start : sentence.end] for sentence in sentences]
    terms = [_telling_terms(own_text) - terms_of_name for own_text in texts]
    counts = Counter(term for own_terms in terms for term in own_terms)

    def rank(number: int) -> tuple[int, float, int]:
        own_terms = terms[number]
        shared = sum(counts[term] - 1 for term in own_terms) / (len(own_terms) or 1)
        return _distance(text, sentences[number], key), -shared, number

    return [sentences[number] for number in sorted(range(len(terms)), key=rank)]


@lru_cache(400)  # a sentence is compared for each of its names
def _telling_terms(sentence: str) -> frozenset[str]:
    return frozenset([term for term in search_terms(sentence) if not is_grammatical(term)])


def _distance(text: str, sentence: NamedSentence, key: str) -> int:
    """How far a sentence is from being about a name: 0 with the name at the beginning, 1 with a
    pronoun for the name, 2 with the name elsewhere, 3 with the name only in the heading.
    """
    if sentence.subject is not None and name_key(sentence.subject.name) == key:
        return 1
    places = [name.start for name in sentence.names if name_key(name.name) == key]
    if not places:
        return 3
    return 0 if not re.search(r"\w", text[sentence.start : places[0]]) else 2
