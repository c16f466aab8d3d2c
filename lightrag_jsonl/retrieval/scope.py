"""Decides whether an index may hold anything about a question; in doubt it does."""

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

import numpy as np
from msgspec import Struct

from lightrag_jsonl.core.answers import Keywords
from lightrag_jsonl.core.modes import ModePlan
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Embedder, Vectors
from lightrag_jsonl.core.user_code import embed_texts
from lightrag_jsonl.retrieval.full_text import part_terms
from lightrag_jsonl.retrieval.question_names import question_names
from lightrag_jsonl.retrieval.task import SearchTask, Seeds
from lightrag_jsonl.storage.store import Store, read
from lightrag_jsonl.storage.tables.full_text import ANY_END
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.cjk import has_cjk, is_lone
from lightrag_jsonl.text.names import folded_text, name_key
from lightrag_jsonl.text.question_kinds import (
    asks_about_course,
    asks_about_everything,
    content_words,
    is_small_talk,
    may_ask_about_a_title,
    without_titles,
)
from lightrag_jsonl.text.terms import search_terms

LANGUAGES = ("en", "zh")  # the languages of the word tables below
MOST_WORDS = 64  # content words of a question that are looked up; bounds the time

# Judged by tests/retrieval/test_scope.py: small talk and questions about other subjects find nothing,
# questions about the indexed texts in other words find something.
MOST_ABSENT = (
    0.25  # share of words that no text needs to have, where no passage is like the question
)
MOST_ABSENT_OF_WORDS = 0.5  # the same where vectors only count words, of words and characters
STEM_LENGTH = 4  # letters; longer words also occur in another form: "ghosts" in "ghost"
ENDING = 2  # letters that another form may have in place of others

UNRELATED_ENGLISH = (  # sentences of subjects that have nothing in common
    "Fold the beaten eggs into the flour and the sugar.",
    "The goalkeeper saved two penalties in the cup final.",
    "Install the driver and restart the computer.",
    "Heavy rain is expected in the mountains tonight.",
    "The patient was given antibiotics and rested for a week.",
    "The court ruled that the contract was void.",
    "Astronomers measured the light of a distant galaxy.",
    "The train to the airport leaves every twenty minutes.",
    "The guitarist tuned the strings before the concert began.",
    "Water the roses early in the morning and cut the dead leaves.",
    "Interest rates rose, so the bank asked for a larger deposit.",
    "Paint the wall twice and let it dry overnight.",
    "A right triangle has one angle of ninety degrees.",
    "Mix acid and base slowly; the solution warms.",
    "The soldiers crossed the river before dawn.",
    "She took her coat to the cleaner's.",
)
UNRELATED_CHINESE = (
    "把打好的鸡蛋拌进面粉和糖里。",
    "守门员在杯赛决赛中扑出了两个点球。",
    "安装驱动程序，然后重启电脑。",
    "今晚山区预计有大雨。",
    "病人服用了抗生素，休息了一周。",
    "法院裁定合同无效。",
    "天文学家测量了遥远星系的光。",
    "开往机场的列车每二十分钟一班。",
    "演唱会开始之前，吉他手把弦调好了。",
    "清早给玫瑰浇水，剪掉枯叶。",
    "利率上升，银行要求更多的首付。",
    "把墙刷两遍，晾一个晚上。",
    "直角三角形有一个角是九十度。",
    "酸和碱慢慢混合，溶液会变热。",
    "士兵们在天亮以前过了河。",
    "她把外套送去洗衣店了。",
)


class LikenessScale:
    """How much unrelated texts resemble each other by an embedder's vectors, measured at first use.

    Cosines mean different things for different embedders: of one, those of unrelated texts lie
    around 0.05, of another around 0.75.
    """

    def __init__(self, embedder: Embedder, language: str) -> None:
        self._embedder = embedder
        self._language = language
        self._samples: dict[bool, tuple[Vectors, float]] = {}

    def applies(self, param: QueryParam) -> bool:
        """Whether questions may be out of scope; if not, whatever is asked is searched for."""
        if not param.least_likeness or not self._language.casefold().startswith(LANGUAGES):
            return False
        return param.lexical or not self.is_lexical

    async def floor(self, question: str, vector: Vectors, param: QueryParam) -> float | None:
        """The cosine that a passage must reach to be more like the question than unrelated texts are.

        Infinity where vectors only count words; None if whatever is asked is searched for. `vector` is
        the question's, shape (dim,).
        """
        if not self.applies(param):
            return None
        if self.is_lexical:
            return math.inf
        sample, deviation = await self._sample(is_chinese=has_cjk(question))
        # einsum and not @: the threads of BLAS keep a processor busy while they wait.
        usual = np.einsum("ij,j->i", sample, vector).mean()
        return float(usual + param.least_likeness * deviation)

    @property
    def is_lexical(self) -> bool:
        """Whether the embedder's vectors only count words."""
        return bool(getattr(self._embedder, "lexical", False))

    async def _sample(self, *, is_chinese: bool) -> tuple[Vectors, float]:
        """The vectors of the unrelated texts of one language, and the deviation of their cosines."""
        if is_chinese not in self._samples:
            texts = UNRELATED_CHINESE if is_chinese else UNRELATED_ENGLISH
            vectors = await embed_texts(self._embedder, texts, "passage")
            cosines = np.einsum("ij,kj->ik", vectors, vectors)
            deviation = cosines[~np.eye(len(vectors), dtype=np.bool_)].std()
            self._samples[is_chinese] = vectors, deviation
        return self._samples[is_chinese]


def may_answer(task: SearchTask, seeds: Seeds) -> bool:
    """Whether the index may hold anything about the question; small talk ("hello") is about nothing.

    It may if the question asks about the whole collection, if the nearest passage reaches the
    `likeness_floor`, or if the question names an entity or 第22条, or uses words that occur.
    """
    query = task.query
    if query.likeness_floor is None or task.param.ll_keywords or not len(seeds.dense):
        return True
    content = content_words(query.question)
    if not content:
        return not is_small_talk(query.question)
    if seeds.dense.scores[0] >= query.likeness_floor or asks_about_everything(query.question):
        return True
    if not all(map(str.islower, seeds.spellings)):  # words in small letters are no names
        return True
    if task.snapshot.entity_ids({name_key(keyword) for keyword in query.low}):
        return True
    _, part_counts = task.snapshot.term_counts(part_terms(query.question))
    if any(part_counts.values()) or _words_occur(task, content):
        return True
    # names of a question without keywords last, since to look for them takes longer than all before
    spellings = {} if query.low else question_names(task).spellings
    return not all(map(str.islower, spellings.values()))


class TitleMemory:
    """The titles of all documents, folded, kept for the generation that they were read in."""

    def __init__(self) -> None:
        self._titles: tuple[int, Sequence[tuple[str, Sequence[str]]]] = (-1, ())

    def of_wholes(self, view: StoreView, folded_question: str) -> list[str]:
        """The titles in a question whose documents have several chunks, or one chunk without the title; folded."""
        generation = view.generation
        if generation != self._titles[0]:
            ids_by_title: dict[str, list[str]] = defaultdict(list)
            for label in view.document_labels(titled=True):
                ids_by_title[label.title or ""].append(label.id)
            folded = [(folded_text(title), ids) for title, ids in ids_by_title.items()]
            self._titles = (generation, folded)
        titles: list[str] = []
        for title, ids in self._titles[1]:
            if title not in folded_question:
                continue
            rows = [report.row for report in view.chunk_reports(ids)]
            texts = [folded_text(chunk.text) for chunk in view.chunks(rows[:1]).values()]
            if len(rows) > 1 or title not in "".join(texts):
                titles.append(title)
        return titles


async def asks_for_overview(
    store: Store, titles: TitleMemory, mode: ModePlan, question: str, keywords: Keywords
) -> bool:
    """Whether a question is answered from the whole: in the mode for that, and in a mode that searches
    everything if the model or the words of the question say so. A document's title counts as "the
    book", but not that of a single chunk with the title in it: a search finds it, and what others say of its subject.
    """
    if mode.communities:
        return True
    if not (mode.entities and mode.relations and mode.chunks):
        return False
    if keywords.whole or asks_about_everything(question) or asks_about_course(question):
        return True
    if not may_ask_about_a_title(question):
        return False
    find_titles = partial(titles.of_wholes, folded_question=folded_text(question))
    untitled = without_titles(question, await read(store, find_titles))
    return asks_about_everything(untitled) or asks_about_course(untitled)


# ── words ───────────────────────────────────────────────────────────────────────


class _Unit(Struct, frozen=True):
    """A word, or a character of a Chinese word.

    A unit occurs if one of the terms occurs, or else a term with one of the beginnings.
    """

    terms: Sequence[str]
    beginnings: Sequence[str]


def _words_occur(task: SearchTask, content: Sequence[str]) -> bool:
    """Whether the content words of a question occur in passages: nearly all of them ("Who sells the stolen
    goods?" may be about a text that says "sold"), or, where vectors only count words, one word or else half of
    the beginnings and characters.
    """
    is_lexical = task.query.lexical
    units: list[_Unit] = []
    for word in content[:MOST_WORDS]:
        units += _units(word, characters=is_lexical)
    counts = _part_counts(task, [term for unit in units for term in unit.terms])
    missing = [unit for unit in units if not any(counts[term] for term in unit.terms)]
    if is_lexical and len(missing) < len(units):
        return True
    counts = _part_counts(task, [term for unit in missing for term in unit.beginnings])
    absent = [unit for unit in missing if not any(counts[term] for term in unit.beginnings)]
    most_absent = MOST_ABSENT_OF_WORDS if is_lexical else MOST_ABSENT
    return len(absent) <= most_absent * len(units)


def _part_counts(task: SearchTask, terms: Sequence[str]) -> dict[str, int]:
    """In how many parts of chunks each term occurs."""
    return task.snapshot.term_counts(sorted({*terms}))[1] if terms else {}


def _units(word: str, *, characters: bool) -> list[_Unit]:
    """The units of a word. A long word may have another ending; a Chinese character occurs in a bigram
    of the word, or, if it is alone or with `characters`, at the beginning of any bigram.
    """
    if not has_cjk(word):
        stem = word[: max(STEM_LENGTH, len(word) - ENDING)]
        return [_Unit([word], [f"{stem}{ANY_END}"] if len(word) > STEM_LENGTH else [])]
    units = []
    for position, character in enumerate(word):
        surroundings = search_terms(word[max(position - 1, 0) : position + 2])
        bigrams = [term for term in surroundings if not is_lone(term)]
        is_enough = characters or len(word) == 1
        units.append(_Unit(bigrams, [f"{character}{ANY_END}"] if is_enough else []))
    return units
