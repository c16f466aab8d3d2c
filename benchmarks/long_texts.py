"""Two long texts whose records a model has written, as question sets.

A Christmas Carol in chunks, with the answers of gpt-4o and questions of our own (`labels/asked-carol.json`);
and Chinese notes on medication before an anaesthesia in entries of a disease each, with the graph that gpt-4o
made of them. Their questions are made by a form: a drug that one entry names leads to its disease, and another
entry says what this disease does in an anaesthesia.
"""

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from benchmarks.datasets import Dataset, Passage, Question, Record, data_folder
from lightrag_jsonl.llm.reader import parse_jsonl
from tests.replays.carol import answers, chunks

CAROL_QUESTIONS = Path(__file__).parent / "labels" / "asked-carol.json"
NOTES = "wd-lightrag0-zh-anaesthesia"
DRUGS, RISKS = "常规用药：", "麻醉诱导阶段风险："
QUESTION = "常规用药里有{}的那种病，麻醉诱导阶段有什么风险？"
SEPARATOR = "<SEP>"  # between the values of a field of a merged record
LEAST_ANSWER = 4  # characters
_GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"


def carol() -> Dataset:
    """42 chunks of about 1,200 tokens, with the first answers of gpt-4o."""
    folder = data_folder()
    texts = [text.strip() for text in chunks(folder)]
    passages = [
        Passage(f"carol-{number}", "", text, recorded=_graph_records(first))
        for number, (text, (first, *_)) in enumerate(zip(texts, answers(folder), strict=True))
    ]
    rows = json.loads(CAROL_QUESTIONS.read_text(encoding="utf-8"))
    questions = [
        Question(
            id=f"carol-question-{number}",
            text=row["question"],
            answer=row["answer"],
            supporting=tuple([f"carol-{chunk}" for chunk in row["supporting"]]),
        )
        for number, row in enumerate(rows)
    ]
    return Dataset("carol", tuple(passages), tuple(questions))


def notes() -> Dataset:
    """About 230 entries in Chinese; an entry has those records of its chunk whose names it contains."""
    folder = data_folder() / NOTES
    texts = _json(folder / "kv_store_full_docs.json.gz")
    chunk_rows = _json(folder / "kv_store_text_chunks.json.gz")
    records_by_chunk = _records_by_chunk(folder / "graph_chunk_entity_relation.graphml.gz")
    passages: list[Passage] = []
    for number, (document, row) in enumerate(texts.items()):
        entries = [entry.strip() for entry in re.split(r"\n\s*\n", row["content"]) if entry.strip()]
        for place, entry in enumerate(entries):
            records = [
                record
                for chunk, chunk_row in chunk_rows.items()
                if chunk_row["full_doc_id"] == document
                and (entry[:40] in chunk_row["content"] or entry[-40:] in chunk_row["content"])
                for record in records_by_chunk.get(chunk, ())
                if all(name in entry for name in _names(record))
            ]
            passages.append(Passage(f"notes-{number}-{place}", "", entry, recorded=tuple(records)))
    return Dataset("notes", tuple(passages), tuple(_note_questions(passages)), language="zh")


def _graph_records(answer: str) -> tuple[Record, ...]:
    """The entities and relations of a recorded answer."""
    records = parse_jsonl(answer).records
    return tuple([dict(record) for record in records if record.get("type") in _NAME_FIELDS])


_NAME_FIELDS: Mapping[str, Sequence[str]] = {
    "entity": ("name",),
    "relationship": ("source", "target"),
}


def _names(record: Record) -> list[str]:
    return [record[field] for field in _NAME_FIELDS[record["type"]]]


def _records_by_chunk(path: Path) -> dict[str, list[Record]]:
    """The records of a merged graph by the chunks that they come from, each with its first description."""
    graph = ElementTree.fromstring(gzip.decompress(path.read_bytes()))[-1]
    records_by_chunk: dict[str, list[Record]] = {}
    for element in graph:
        fields = {data.get("key", ""): (data.text or "") for data in element}
        if element.tag == f"{_GRAPHML}node":
            chunks_of_record = fields["d2"]
            record: Record = {
                "type": "entity",
                "name": _bare(element.get("id", "")),
                "entity_type": _bare(fields["d0"]),
                "description": _bare(fields["d1"]),
            }
        else:
            chunks_of_record = fields["d6"]
            record = {
                "type": "relationship",
                "source": _bare(element.get("source", "")),
                "target": _bare(element.get("target", "")),
                "description": _bare(fields["d5"]),
            }
        for chunk in chunks_of_record.split(SEPARATOR):
            records_by_chunk.setdefault(chunk, []).append(record)
    return records_by_chunk


def _bare(field: str) -> str:
    """The first value of a field, without its quotation marks."""
    return field.partition(SEPARATOR)[0].strip('"')


def _note_questions(passages: Sequence[Passage]) -> Iterator[Question]:
    """A question for each disease with a drug that no other entry names."""
    risks = {
        passage.text.partition("\n")[0].strip(" ：:"): passage
        for passage in passages
        if RISKS in passage.text
    }
    for passage in passages:
        disease, _, rest = passage.text.partition("\n")
        disease = disease.strip(" ：:")
        if not rest.startswith(DRUGS) or disease not in risks:
            continue
        answer = re.split(r"[，。；\n]", risks[disease].text.partition(RISKS)[2].strip())[0].strip()
        drugs = re.findall(r"[（、]如?([^（）、，。]{3,8})(?=[、）])", rest.partition("\n")[0])
        single = [drug for drug in drugs if sum(drug in other.text for other in passages) == 1]
        if single and len(answer) >= LEAST_ANSWER:
            yield Question(
                id=f"{passage.id}-question",
                text=QUESTION.format(single[0]),
                answer=answer,
                supporting=(passage.id, risks[disease].id),
            )


def _json(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))
