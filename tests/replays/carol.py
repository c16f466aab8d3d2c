"""The recorded extraction answers over A Christmas Carol, turned from tuples into JSONL."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from lightrag_jsonl import Document
from tests.kit import rows_of

RECORD = re.compile(r'\((?=["“]?(?:entity|relationship|content_keywords)["”]?<\|>)')


def chunks(data: Path, chunkset: str = "nobom") -> list[str]:
    """The 42 chunk texts of a chunk set, in order; a byte order mark is no text."""
    rows = rows_of(data / "replay-carol" / "chunks.jsonl.gz")
    return [
        row["text"].removeprefix("\ufeff")
        for row in sorted(rows, key=lambda r: r["chunk"])
        if row["chunkset"] == chunkset
    ]


def answers(data: Path, run: str = "gpt-4o") -> list[list[str]]:
    """For each chunk the model's two answers, as JSONL."""
    rows = [r for r in rows_of(data / "replay-carol" / "answers.jsonl.gz") if r["run"] == run]
    return [
        [to_jsonl(text) for text in row["answers"]]
        for row in sorted(rows, key=lambda r: r["chunk"])
    ]


def documents(data: Path, count: int = 42) -> tuple[list[Document], dict[str, list[str]]]:
    """A document for each of the first chunks, and what gpt-4o answered about its text."""
    texts = [text.strip() for text in chunks(data)[:count]]
    made = [Document(text, id=f"carol-{n:02}") for n, text in enumerate(texts)]
    return made, dict(zip(texts, answers(data), strict=False))


def to_jsonl(answer: str) -> str:
    """One JSON line for each whole tuple; a tuple that does not close is written as a cut line."""
    return "\n".join(_lines(answer))


def _lines(answer: str) -> Iterator[str]:
    for part in RECORD.split(answer)[1:]:
        body, closed = re.subn(
            r"\)\s*(##|<\|COMPLETE\|>|\n|$).*", "", part.strip(), count=1, flags=re.S
        )
        fields = [field.strip().strip('"“”') for field in body.split("<|>")]
        line = json.dumps(_record(fields), ensure_ascii=False)
        yield line if closed else line[: len(line) // 2]


def _record(fields: list[str]) -> dict[str, object]:
    if fields[0] == "entity" and len(fields) == 4:
        keys = ("type", "name", "entity_type", "description")
        return dict(zip(keys, fields, strict=True))
    if fields[0] == "relationship" and len(fields) >= 5:
        record: dict[str, object] = {
            "type": "relationship",
            "source": fields[1],
            "target": fields[2],
            "description": fields[3],
        }
        if len(fields) == 6:
            record["keywords"] = fields[4]
        record["strength"] = fields[-1]
        return record
    return {"type": fields[0], "fields": list(fields[1:])}
