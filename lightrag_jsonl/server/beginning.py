"""The first screen: the subject of a collection, its names, and questions that it can answer.

No model is asked, and no key is needed: sentences are quoted, and only questions tried with success
are offered.
"""

import re
import tomllib
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from lightrag_jsonl.core.languages import known_language
from lightrag_jsonl.core.modes import Mode
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.types import Relation
from lightrag_jsonl.retrieval.hits import column
from lightrag_jsonl.rules import ExtractiveAnswerer
from lightrag_jsonl.server.graph_overview import relations_among
from lightrag_jsonl.server.indexes import EntityLine, Index
from lightrag_jsonl.server.routing import Call
from lightrag_jsonl.storage.store import search
from lightrag_jsonl.storage.views import Snapshot
from lightrag_jsonl.text.markup import without_bullets, without_markup
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.strings import single_spaced

SENTENCES: Final = 3
QUESTION_FORMS: Final = 3
NAMES: Final = 8
RANKED: Final = 500  # of the most connected names, which are ranked
TRIED: Final = 5  # names and relations for which a question is tried
SUMMARY_TOKENS: Final = 4_000  # of the overview that the sentences are taken from
LONGEST_QUOTED_SENTENCE: Final = 320  # characters; a longer one is a table or a list
PERSON_TYPES: Final = ("person", "人物")
QUESTION_WORDS: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    Path(__file__).with_name("beginning_words.toml").read_text(encoding="utf-8")
)


class QuotedSentence(Struct):
    """A sentence of a document, and the passage around."""

    text: str
    chunk_id: str
    start: int
    end: int
    document: str


class BeginningBody(Struct):
    """The subject of a collection in quoted sentences, its main names, and questions
    answered in the texts.
    """

    sentences: list[QuotedSentence]
    names: list[EntityLine]
    questions: list[str]


async def get_beginning(call: Call) -> BeginningBody:
    """The subject of a collection, and questions to begin with; no model is asked."""
    index = call.index
    return await index.once("beginning", lambda: _first_screen(index))


async def _first_screen(index: Index) -> BeginningBody:
    language = known_language(index.rag.engine.language)
    forms = QUESTION_WORDS[language]
    whole = forms["whole"]
    names = await _main_names(index)
    quotes = await _quotes(index, whole, mode="overview", sentences=2 * SENTENCES)
    sentences = [quote for quote in quotes if len(quote.text) <= LONGEST_QUOTED_SENTENCE]
    questions = [whole] if sentences else []
    async for question in _answered(index, names[:TRIED], forms):
        questions.append(question)
        if len(questions) >= QUESTION_FORMS:
            break
    return BeginningBody(
        sentences=_spread(sentences, SENTENCES), names=names[:NAMES], questions=questions
    )


async def _main_names(index: Index) -> list[EntityLine]:
    """The names with both many documents and many relations, first those with most of the rarer of the two.

    A heading has its relations from one document, and a footer's words stand in all, but beside the same few names.
    """
    directory = await index.directory()
    connected = {key: line for key, line in directory.items() if line.degree}
    keys = [key for key, line in connected.items() if _is_telling(line.name)][:RANKED]
    counts = await search(index.rag.engine.store, lambda snapshot: _document_counts(snapshot, keys))
    keys.sort(key=lambda key: -min(counts[key], connected[key].degree))
    return [connected[key] for key in keys]


def _document_counts(snapshot: Snapshot, keys: Sequence[str]) -> dict[str, int]:
    """In how many documents each entity is mentioned, by the key of its name."""
    ids_by_key = snapshot.entity_ids(keys)
    positions, chunks = snapshot.graph.chunks_of(column(ids_by_key.values()))
    documents = snapshot.chunk_documents(chunks.tolist())
    counted_keys = list(ids_by_key)
    pairs: set[tuple[str, int]] = set()
    for position, chunk in zip(positions.tolist(), chunks.tolist(), strict=True):
        document_row, _ = documents[chunk]
        pairs.add((counted_keys[position], document_row))
    return Counter(key for key, _ in pairs)


def _is_telling(name: str) -> bool:
    """Whether a name is fit for a question: not a mark such as L4, nor a piece of markup."""
    if re.search(r"[\[\](){}<>|`*#_/\\]", name):
        return False
    letters = [char for char in name if char.isalpha()]
    is_chinese = any(ord(char) > 0x2E7F for char in letters)
    fewest_letters = 2 if is_chinese else 3
    return len(letters) >= fewest_letters


def _spread(sentences: Sequence[QuotedSentence], count: int) -> list[QuotedSentence]:
    """At most so many sentences, from the beginning to the end."""
    picked = min(count, len(sentences))
    return [sentences[number * len(sentences) // picked] for number in range(picked)]


async def _answered(
    index: Index, names: Sequence[EntityLine], forms: Mapping[str, str]
) -> AsyncIterator[str]:
    """A question about one name and a question about two, each if a sentence tells of all its names."""
    about_one: list[tuple[str, tuple[str, ...]]] = []
    for line in names:
        form = forms["person" if line.type in PERSON_TYPES else "name"]
        question = form.format(line.name)
        about_one.append((question, (line.name,)))
    about_two: list[tuple[str, tuple[str, ...]]] = []
    for relation in await _relations_of(index, names):
        question = forms["relation"].format(relation.source, relation.target)
        about_two.append((question, (relation.source, relation.target)))
    offered: set[str] = set()
    for candidates in (about_one, about_two, about_one[::-1]):
        for question, asked_names in candidates:
            if question in offered:
                continue
            quotes = await _quotes(index, question, names=asked_names)
            if any(_tells_of(asked_names, quote.text) for quote in quotes):
                offered.add(question)
                yield question
                break


def _tells_of(names: Sequence[str], sentence: str) -> bool:
    """Whether a sentence has all the names, and says more than them: a heading read as a name does not."""
    if not all(name in sentence for name in names):
        return False
    return 2 * sum(map(len, names)) <= len(sentence)


async def _relations_of(index: Index, names: Sequence[EntityLine]) -> list[Relation]:
    """The heaviest relations among entities, each entity once."""
    keys = [name_key(line.name) for line in names]
    relations = await search(
        index.rag.engine.store, lambda snapshot: relations_among(snapshot, keys)
    )
    ends: set[str] = set()
    without_repetition: list[Relation] = []
    for relation in relations:
        if ends.isdisjoint((relation.source, relation.target)):
            ends |= {relation.source, relation.target}
            without_repetition.append(relation)
    return without_repetition


async def _quotes(
    index: Index,
    question: str,
    *,
    mode: Mode = "mix",
    names: Sequence[str] = (),
    sentences: int = SENTENCES,
) -> list[QuotedSentence]:
    """The sentences in the answer to a question without a model."""
    param = QueryParam(
        mode=mode,
        hl_keywords=names or (question,),
        ll_keywords=names,
        max_total_tokens=SUMMARY_TOKENS,
        response_type=f"{sentences} sentences",
        enable_rerank=False,
    )
    context = await index.rag.retrieve(question, param)
    answerer = ExtractiveAnswerer(known_language(index.rag.engine.language))
    answer = await answerer.quoted_answer(question, context)
    chunks = {chunk.id: chunk for chunk in context.chunks}
    quotes: list[QuotedSentence] = []
    for quote in answer.quotes:
        chunk = chunks[quote.chunk_id]
        text = chunk.text[quote.start - chunk.start : quote.end - chunk.start]
        title = context.documents.get(chunk.document_id)
        quotes.append(
            QuotedSentence(
                text=single_spaced(without_bullets(without_markup(text))),
                chunk_id=quote.chunk_id,
                start=quote.start,
                end=quote.end,
                document=title or chunk.document_id,
            )
        )
    return quotes
