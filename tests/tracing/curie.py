"""The Marie Curie example of specification 2, section 8, in two languages, with its scripted model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightrag_jsonl import Document, LightRAG
from lightrag_jsonl.testing import Request, Scripted, ScriptedLLM
from tests.kit import Record, entity, relation

NOON = 1_767_355_200.0  # 2026-01-02 12:00 UTC


@dataclass(frozen=True)
class Example:
    """Two pages, what was read from each, a question, and what a model answers to it."""

    language: str
    pages: tuple[str, str]
    person: str
    found: tuple[str, str]
    born: tuple[str, str]
    edge_id: str
    question: str
    reason: str
    answer: str

    @property
    def text(self) -> str:
        return "\f".join(self.pages)

    @property
    def edge(self) -> tuple[str, str, str]:
        return self.person, *self.found

    def document(self, id: str = "d1", text: str | None = None) -> Document:
        return Document(self.text if text is None else text, id=id, title=f"{id}.txt")

    @property
    def records(self) -> list[Record]:
        """What was read from the two pages; the second description names the birthplace."""
        return [*self.records_of(0, *self.found), *self.records_of(1, *self.born)]

    def records_of(self, chunk: int, predicate: str, target: str) -> list[Record]:
        told = f"{self.person} {predicate} {target}"
        ends = [entity(name, told, "concept", chunk=chunk) for name in (self.person, target)]
        return [*ends, relation(self.person, target, told, keywords=[predicate], chunk=chunk)]

    @property
    def selection(self) -> str:
        """A choice, an unknown id, the same choice again, and a line that was cut off."""
        chosen = f'{{"id":"{self.edge_id}","reasoning":"{self.reason}"}}'
        unknown = '{"id":"0badc0de","reasoning":"?"}'
        return "\n".join([chosen, unknown, chosen, '{"id":"9375'])

    def model(self, **replies: Scripted) -> ScriptedLLM:
        """A model that plays its part; `keywords`, `selection` and `answer` can be replaced."""
        return ScriptedLLM(self.script(replies))

    def script(self, replies: Mapping[str, Scripted]) -> Callable[[Request], Scripted]:
        keywords = (
            f'{{"high_level_keywords":["{self.found[0]}"],"low_level_keywords":["{self.person}"]}}'
        )
        plain = {"keywords": keywords, "selection": self.selection, "answer": self.answer}
        answers = {**plain, **replies}
        return lambda request: answers[step(request)]


def step(request: Request) -> str:
    return {"json": "keywords", "jsonl": "selection", "text": "answer"}[request.response_type]


ENGLISH = Example(
    "en",
    ("Marie Curie discovered radium.", "Marie Curie was born in Warsaw."),
    "Marie Curie",
    ("discovered", "radium"),
    ("born in", "Warsaw"),
    "66bd5bed",
    "What did Marie Curie discover?",
    "Names the discovered element",
    "Marie Curie discovered radium [1][2]. She liked gold [9].",
)
CHINESE = Example(
    "zh",
    ("居里夫人发现了镭。", "居里夫人出生于华沙。"),
    "居里夫人",
    ("发现", "镭"),
    ("出生于", "华沙"),
    "17f268d1",
    "居里夫人发现了什么？",
    "指出了所发现的元素",
    "居里夫人发现了镭[1][2]。",
)


def opened(folder: Path, example: Example, model: ScriptedLLM | None = None) -> LightRAG:
    """An index with a fixed clock; traces are numbered."""
    return LightRAG(folder, **settings(example, model))


def filled(folder: Path, example: Example, model: ScriptedLLM | None = None) -> LightRAG:
    """The same, with the example's document in it."""
    rag = opened(folder, example, model)
    rag.insert_records(example.document(), example.records)
    return rag


def settings(example: Example, model: ScriptedLLM | None) -> dict[str, Any]:
    """Ids in a row: 0001, 0002, …; it is always noon."""
    ids = iter(f"{number:04}" for number in range(1, 10_000))
    return {
        "llm": model or example.model(),
        "language": example.language,
        "clock": lambda: NOON,
        "new_id": lambda: next(ids),
    }
