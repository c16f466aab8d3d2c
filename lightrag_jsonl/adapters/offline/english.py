"""The English reader: finds names, noun phrases and content words, sentence by sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lightrag_jsonl.adapters.offline import english_words as tables
from lightrag_jsonl.adapters.offline.english_names import (
    full_names,
    inside,
    proper_names,
    topic_name,
)
from lightrag_jsonl.adapters.offline.english_tokens import (
    Token,
    capitalized_inside,
    the_tagger,
    tokenized,
)
from lightrag_jsonl.adapters.offline.phrases import Phrase, Sentence
from lightrag_jsonl.text import sentence_spans


def read_english(text: str, *, quick: bool = False) -> tuple[Sentence, ...]:
    """The sentences of an English text with phrases and content words; `quick` for questions."""
    tagger = the_tagger(quick=quick)
    spans = sentence_spans(text)
    tokens = [tokenized(text, start, end, tagger) for start, end in spans]
    known = capitalized_inside(tokens)
    drafts = [proper_names(text, row, known, tagger.lexicon) for row in tokens]
    if drafts and (title := topic_name(text, spans)):
        inner = [phrase for phrase in drafts[0] if phrase.start >= title.end]
        drafts[0] = [title, *inner]
    full = full_names(phrase for draft in drafts for phrase in draft)
    common = _common_nouns(text, tokens, drafts)
    sentences = []
    topic = ""
    for (start, end), row, draft, nouns in zip(spans, tokens, drafts, common, strict=True):
        named = [replace(phrase, name=full.get(phrase.name, phrase.name)) for phrase in draft]
        phrases = sorted([*named, *nouns], key=lambda phrase: phrase.start)
        about = topic if row and row[0].low in tables.PRONOUNS else ""
        topic = next((p.name for p in named if p.sort not in ("date", "quantity")), topic)
        topic = about or topic
        sentences.append(Sentence(start, end, tuple(phrases), tuple(_content(row)), about))
    return tuple(sentences)


# ── common nouns ──────────────────────────────────────────────────────


def _common_nouns(
    text: str, rows: Sequence[Sequence[Token]], drafts: Sequence[Sequence[Phrase]]
) -> list[list[Phrase]]:
    """Noun phrases worth an entity: of several words or repeated, and among the text's best."""
    found = [
        [_noun_phrase(text, run) for run in _noun_runs(row, draft)]
        for row, draft in zip(rows, drafts, strict=True)
    ]
    counts = Counter(phrase.name for row in found for phrase in row)
    worth = {
        name: (count, name.count(" "), len(name))
        for name, count in counts.items()
        if (" " in name and len(name) > 6) or count > 1
    }
    limit = max(3, len(rows) // 2)
    best = set(sorted(worth, key=lambda name: (*(-part for part in worth[name]), name))[:limit])
    return [[phrase for phrase in row if phrase.name in best] for row in found]


def _noun_runs(row: Sequence[Token], draft: Sequence[Phrase]) -> Iterator[list[Token]]:
    run: list[Token] = []
    for token in row:
        if _in_noun_phrase(token, run) and not inside(token.start, draft):
            run.append(token)
            continue
        yield from _closed(run)
        run = []
    yield from _closed(run)


def _in_noun_phrase(token: Token, run: Sequence[Token]) -> bool:
    if token.kind != "word" or len(token.text) < 3 or token.low in tables.STOP_WORDS:
        return False
    if token.tag.startswith("JJ"):
        return token.low not in tables.WEAK_ADJECTIVES and not any(t.tag[:2] == "NN" for t in run)
    return token.tag in ("NN", "NNS") and token.low.isascii()


def _closed(run: list[Token]) -> Iterator[list[Token]]:
    run = run[-3:]
    while run and not run[-1].tag.startswith("NN"):
        run = run[:-1]
    if run and not (len(run) == 1 and (run[0].low in tables.WEAK_NOUNS or len(run[0].low) < 4)):
        yield run


def _noun_phrase(text: str, run: Sequence[Token]) -> Phrase:
    start, end = run[0].start, run[-1].end
    name = " ".join(text[start:end].split()).lower()
    sort = tables.HEADS.get(run[-1].low, "concept")
    return Phrase(start, end, name, sort, proper=False, sure=False)


def _content(row: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """The verbs and nouns of a sentence with their offsets; they tell what relations are about."""
    for token in row:
        telling = token.tag.startswith(("VB", "NN")) and not token.tag.startswith("NNP")
        weak = token.low in tables.STOP_WORDS or token.low in tables.WEAK_NOUNS
        if token.kind == "word" and telling and len(token.low) > 2 and not weak:
            yield token.start, token.low
