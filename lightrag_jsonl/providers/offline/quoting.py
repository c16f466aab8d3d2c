"""Sentences that describe a name, the most central first, and sentences as quotes."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from lightrag_jsonl.core.cjk import has_cjk
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.patterns import pattern_of
from lightrag_jsonl.core.stop_words import is_grammatical
from lightrag_jsonl.core.terms import search_terms
from lightrag_jsonl.providers.offline.markup import quoted_line
from lightrag_jsonl.providers.offline.pronouns import NamedSentence

LONGEST_QUOTED_LINE = 320  # characters
_DESCRIBING_SENTENCES = 3  # of a description
_COMPARED_SENTENCES = 50  # of a name in a text: bounds the time
_END_OF_CLAUSE = pattern_of(r"[,;:，；：](?:\s+|(?<=[，；：]))")
_QUESTION_ENDS = ("?", "？")


def central_sentences(text: str, sentences: Sequence[NamedSentence], key: str) -> str:
    """The most telling of the sentences with a name, together no longer than a quote.

    Sentences with an unclear pronoun do not count. Sentences that begin with the name come first,
    ordered by the words in common with the rest; headings and questions count only without any
    other sentence.
    """
    clear = [sentence for sentence in sentences if not sentence.is_unclear]
    telling = [sentence for sentence in clear if _tells(text, sentence)]
    ranked = _most_central_first(text, (telling or clear)[:_COMPARED_SENTENCES], key)
    quotes: list[str] = []
    for sentence in ranked[:_DESCRIBING_SENTENCES]:
        line = quoted_sentence(text, sentence, [key])
        if quotes and len("".join([*quotes, line])) > LONGEST_QUOTED_LINE:
            continue
        quotes.append(line)
    return ("" if has_cjk("".join(quotes)[-2:]) else " ").join(quotes)


def quoted_sentence(text: str, sentence: NamedSentence, keys: Iterable[str]) -> str:
    """A sentence, with the meaning of the pronoun at the beginning: "He [Niels Bohr] moved to
    Cambridge."

    A name in the heading is put before a sentence without the name. A long sentence is cut; if
    names given as keys would be lost, the cut begins at the clause of the names.
    """
    keys = list(keys)
    heading = sentence.heading
    if heading is not None and len(keys) > 1:
        names = {name_key(name.name) for name in sentence.subject_and_names}
        if name_key(heading.name) in {*keys} - names:
            colon = "：" if has_cjk(heading.name) else ": "
            own_keys = [key for key in keys if key in names]
            return f"{heading.name}{colon}{quoted_sentence(text, sentence, own_keys)}"
    start, end = span_of_names(sentence, keys)
    if end - sentence.start <= LONGEST_QUOTED_LINE:
        return quoted_line(_explained(text, sentence), LONGEST_QUOTED_LINE)
    clauses = _END_OF_CLAUSE.finditer(text, sentence.start, start)
    clause_start = max((clause.end() for clause in clauses), default=start)
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
    subject = sentence.subject
    if subject is None:
        return text[sentence.start : sentence.end]
    before = text[sentence.start : subject.end]
    after = text[subject.end : sentence.end]
    name = f"（{subject.name}）" if has_cjk(before) else f" [{subject.name}]"
    return f"{before}{name}{after}"


def _tells(text: str, sentence: NamedSentence) -> bool:
    """Whether a sentence says something: neither a heading nor a question does."""
    is_question = text[sentence.start : sentence.end].rstrip("\"'”’」）) ").endswith(_QUESTION_ENDS)
    return not is_question and not sentence.is_heading


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
