"""How each contestant asks its model, and in which form it reads the answer.

A format recognizes the contestant's prompts by their fixed marks and writes recorded rows as the
contestant reads them. What records cannot answer is `Kind.OTHER`, and counted apart.
"""

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from benchmarks.referee.material import Question, Row

SUMMARY_WORDS = 200
FINDINGS = 8  # of a report


class Kind(StrEnum):
    """What a prompt asks for."""

    EXTRACTION = "extraction"
    GLEANING = "gleaning"
    MORE = "anything missed?"
    NAMES = "names"
    SUMMARY = "summary"
    KEYWORDS = "keywords"
    REPORT = "report"
    POINTS = "points of a report"
    FILTER = "filter of facts"
    ANSWER = "answer to a question"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages of a request; `turns` are the texts of the user, `last` is the last of them."""

    system: str
    turns: tuple[str, ...]
    model: str = ""

    @property
    def last(self) -> str:
        return self.turns[-1]

    @property
    def text(self) -> str:
        """Everything in one string."""
        return "\n".join([self.system, *self.turns])


def summary(prompt: Prompt) -> str:
    """Descriptions in a prompt as one text: each once, in their order, at most so many words."""
    listed = _after(prompt.last, "Description List")
    lines = [_without_marks(line) for line in listed.split("\n")]
    sentences = [line for line in lines if line.endswith(".") or line.endswith("。")]
    words = " ".join(dict.fromkeys(sentences)).split()
    return " ".join(words[:SUMMARY_WORDS]) or "Mentioned."


def _after(text: str, mark: str) -> str:
    """The text after the last mark, which separates the data from instructions and examples; the
    whole text if there is none.
    """
    return text.rpartition(mark)[2]


def _without_marks(line: str) -> str:
    """A line of a list without its JSON or its dash."""
    stripped = line.strip().rstrip(",").lstrip("-[ ").rstrip("] ")
    if stripped.startswith("{"):
        try:
            return " ".join(str(value) for value in json.loads(stripped).values())
        except json.JSONDecodeError:
            return stripped
    return stripped.strip("\"'")


@dataclass(frozen=True, slots=True)
class Format:
    """The marks of a contestant's prompts, and the writers of its answers.

    - `kind`: what a prompt asks for. `source`: the part of an extraction prompt with the text.
    - `rows`: recorded rows as an answer; `nothing`: the answer that nothing was missed.
    - `keywords`: the answer about a question.
    - `summary`: the answer to a prompt with descriptions.
    - `example`: the answer of a model that copies the example of its prompt, "" if there is none.
    """

    kind: Callable[[Prompt], Kind]
    source: Callable[[Prompt], str]
    rows: Callable[[Sequence[Row]], str]
    nothing: str
    keywords: Callable[[Question], str]
    example: Callable[[Prompt], str]
    summary: Callable[[Prompt], str] = summary


def report(prompt: Prompt) -> str:
    """A report of a community made of the descriptions that its prompt lists."""
    listed = _after(prompt.text, "Real Data")
    described = [line for line in listed.split("\n") if _LISTED.match(line)]
    cells = [line.split(",", 1)[-1].strip().strip('"') for line in described]
    findings = [{"summary": cell[:80], "explanation": cell} for cell in cells[:FINDINGS]]
    title = cells[0][:60] if cells else "A community"
    return json.dumps(
        {
            "title": title,
            "summary": " ".join(cells[:3]) or title,
            "rating": 5.0,
            "rating_explanation": "Not rated.",
            "findings": findings,
        },
        ensure_ascii=False,
    )


_LISTED = re.compile(r"\s*\"?\d+\"?\s*,")  # a line of a table, which begins with a number


def points(prompt: Prompt) -> str:
    """Each report in a prompt as one point, all with the same score."""
    _, *rows = _ROW_BEGIN.split(prompt.system)
    listed = [{"description": row.rpartition('"')[0] or row, "score": 50} for row in rows]
    return json.dumps({"points": listed}, ensure_ascii=False)


_ROW_BEGIN = re.compile(r"^\s*\"?\d+\"?,\s*\"?", re.MULTILINE)


# ── this package ────────────────────────────────────────────────────────────────


def _our_kind(prompt: Prompt) -> Kind:
    first = prompt.system or prompt.turns[0]
    for mark, kind in _OUR_MARKS.items():
        if mark in first:
            return Kind.GLEANING if kind == Kind.EXTRACTION and len(prompt.turns) > 1 else kind
    return Kind.OTHER


_OUR_MARKS: Mapping[str, Kind] = {
    "written as JSON Lines": Kind.EXTRACTION,
    "只输出 JSON Lines": Kind.EXTRACTION,
    "low_level_keywords": Kind.KEYWORDS,
    "each left a note": Kind.SUMMARY,
    "以代替这些笔记": Kind.SUMMARY,
    "report on one part": Kind.REPORT,
    "撰写报告": Kind.REPORT,
}


def _our_rows(rows: Sequence[Row]) -> str:
    entities = [row for row in rows if row["type"] == "entity"]
    counts = {
        "type": "done",
        "entities": len(entities),
        "relationships": len(rows) - len(entities),
    }
    return "\n".join([_json(row) for row in (*rows, counts)])


def _our_keywords(question: Question) -> str:
    return _json(
        {
            "high_level_keywords": question.themes,
            "low_level_keywords": question.names,
        }
    )


def _our_example(prompt: Prompt) -> str:
    lines = [line for line in prompt.system.split("\n") if line.startswith('{"type":')]
    return "\n".join(lines)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# ── LightRAG ────────────────────────────────────────────────────────────────────

LIGHT_MARK, LIGHT_END = "<|#|>", "<|COMPLETE|>"


def _light_kind(prompt: Prompt) -> Kind:
    if LIGHT_MARK in prompt.system:
        return Kind.EXTRACTION if len(prompt.turns) == 1 else Kind.GLEANING
    if "high_level_keywords" in prompt.text:
        return Kind.KEYWORDS
    if "Description List" in prompt.text:
        return Kind.SUMMARY
    return Kind.OTHER


def _light_rows(rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        if row["type"] == "entity":
            cells = ["entity", row["name"], row["entity_type"], row["description"]]
        else:
            keywords = ",".join(row["keywords"])
            cells = ["relation", row["source"], row["target"], keywords, row["description"]]
        lines.append(LIGHT_MARK.join(cells))
    return "\n".join([*lines, LIGHT_END])


def _light_example(prompt: Prompt) -> str:
    return _last_block(prompt.system, re.compile(rf"(entity|relation){re.escape(LIGHT_MARK)}.*"))


def _last_block(text: str, record: re.Pattern[str]) -> str:
    """The last lines in a row that are records, with the line after them."""
    lines = text.rstrip().split("\n")
    end = max([at for at, line in enumerate(lines) if record.match(line.strip())], default=-1)
    start = end
    while start > 0 and record.match(lines[start - 1].strip()):
        start -= 1
    return "\n".join(lines[start : end + 2]) if end >= 0 else ""


# ── nano-graphrag and graphrag ──────────────────────────────────────────────────

TUPLE_MARK, TUPLE_END, TUPLE_BREAK = "<|>", "<|COMPLETE|>", "##\n"


def _tuple_kind(prompt: Prompt) -> Kind:
    first = prompt.system + prompt.turns[0]
    if TUPLE_MARK in first and len(prompt.turns) == 1:
        return Kind.EXTRACTION
    if TUPLE_MARK in first:
        asks_whether = re.search(r"\bY(ES)?\b.*\bN(O)?\b", prompt.last)
        return Kind.MORE if asks_whether else Kind.GLEANING
    if '"points"' in first:
        return Kind.POINTS
    if '"findings"' in first or '"rating_explanation"' in first:
        return Kind.REPORT
    if "Description List" in first:
        return Kind.SUMMARY
    return Kind.ANSWER if "---Role---" in prompt.system else Kind.OTHER


def _tuple_summary(prompt: Prompt) -> str:
    """The descriptions of a prompt, which lists them as Python does, each once."""
    listed = prompt.last.partition("Description List:")[2].rpartition("#######")[0].strip()
    try:
        descriptions = [str(item) for item in ast.literal_eval(listed)]
    except (ValueError, SyntaxError):
        descriptions = [listed]
    words = " ".join(dict.fromkeys(descriptions)).split()
    return " ".join(words[:SUMMARY_WORDS])


def _tuple_rows(rows: Sequence[Row]) -> str:
    records = []
    for row in rows:
        if row["type"] == "entity":
            cells = ["entity", row["name"], row["entity_type"], row["description"]]
        else:
            cells = ["relationship", row["source"], row["target"], row["description"]]
        quoted = [f'"{_inline(cell)}"' for cell in cells]
        if row["type"] != "entity":
            quoted.append(str(row.get("strength", 5)))
        records.append(f"({TUPLE_MARK.join(quoted)})")
    return TUPLE_BREAK.join([*records, TUPLE_END])


def _unquoted_rows(rows: Sequence[Row]) -> str:
    """Tuples as GraphRAG's examples have them, without quotation marks."""
    return (
        _tuple_rows(rows)
        .replace('"', "")
        .replace("(entity", '("entity"')
        .replace("(relationship", '("relationship"')
    )


def _inline(text: str) -> str:
    return " ".join(text.replace('"', "'").split())


def _tuple_example(prompt: Prompt) -> str:
    whole = prompt.turns[0]
    start = whole.rfind(f'("entity"{TUPLE_MARK}', 0, whole.rfind(TUPLE_END))
    first = whole.rfind("\n\n", 0, start)
    output = whole.find('("entity"', max(whole.rfind("Output:", 0, start), first, 0))
    end = whole.find(TUPLE_END, output)
    return whole[output:end] + TUPLE_END if 0 <= output < end else ""


def _tuple_keywords(question: Question) -> str:
    return ", ".join(question.names)


# ── fast-graphrag ───────────────────────────────────────────────────────────────


def _fast_kind(prompt: Prompt) -> Kind:
    if "other_relationships" in prompt.text:
        return Kind.EXTRACTION if len(prompt.turns) == 1 else Kind.GLEANING
    if '"named"' in prompt.text:
        return Kind.KEYWORDS
    if "grouped_facts" in prompt.text or "Updated:" in prompt.last:
        return Kind.SUMMARY
    return Kind.OTHER


def _fast_rows(rows: Sequence[Row]) -> str:
    entities = [
        {"name": row["name"], "type": row["entity_type"], "desc": row["description"]}
        for row in rows
        if row["type"] == "entity"
    ]
    relations = [
        {"source": row["source"], "target": row["target"], "desc": row["description"]}
        for row in rows
        if row["type"] == "relationship"
    ]
    return _json({"entities": entities, "relationships": relations, "other_relationships": []})


def _fast_keywords(question: Question) -> str:
    named = [f"[OTHER] {name}" for name in question.names]
    return _json({"named": named, "generic": question.themes})


def _fast_summary(prompt: Prompt) -> str:
    """A group of facts stays as it is; a description is shortened."""
    if "grouped_facts" in prompt.text:
        return _json({"grouped_facts": []})
    current = prompt.last.partition("Current:")[2].rpartition("Updated:")[0]
    words = current.split()[:SUMMARY_WORDS]
    return _json({"description": " ".join(words)})


def _fast_example(prompt: Prompt) -> str:
    return _json_object_with(prompt.text, "other_relationships")


def _json_object_with(text: str, key: str) -> str:
    """The last JSON object in a text that has a list under a key, "" if there is none."""
    end = text.rfind("}")
    decoder = json.JSONDecoder()
    start = text.rfind("{", 0, end)
    while 0 <= start < end:
        try:
            value, length = decoder.raw_decode(text[start:])
        except json.JSONDecodeError:
            value, length = None, 0
        if isinstance(value, dict) and isinstance(value.get(key), list):
            return text[start : start + length]
        start = text.rfind("{", 0, start)
    return ""


# ── HippoRAG ────────────────────────────────────────────────────────────────────


def _hippo_kind(prompt: Prompt) -> Kind:
    if "fact_before_filter" in prompt.text:
        return Kind.FILTER
    if "named_entities" in prompt.last:
        return Kind.EXTRACTION
    if "named entities" in prompt.system:
        return Kind.NAMES
    return Kind.OTHER


def _hippo_rows(rows: Sequence[Row]) -> str:
    triples = [
        [row["source"], " ".join(row["keywords"]), row["target"]]
        for row in rows
        if row["type"] == "relationship"
    ]
    return _json({"triples": [[_bracketless(cell) for cell in triple] for triple in triples]})


def hippo_names(rows: Sequence[Row]) -> str:
    """The names of the entities, as HippoRAG reads them."""
    names = [_bracketless(row["name"]) for row in rows if row["type"] == "entity"]
    return _json({"named_entities": names})


def _bracketless(text: str) -> str:
    """A text without brackets, at which HippoRAG's pattern for an answer ends."""
    return re.sub(r"[\[\]{}]", "", text)


def filtered_facts(prompt: Prompt, question: Question | None, *, by_names: bool) -> str:
    """The facts of a prompt that share a name with the question; all of them if none does."""
    begin = prompt.last.rfind("fact_before_filter ## ]]")
    facts = json.JSONDecoder().raw_decode(prompt.last[prompt.last.index("{", begin) :])[0]["fact"]
    names = {name.casefold() for name in question.names} if question else set()
    chosen = [fact for fact in facts if names & {fact[0].casefold(), fact[-1].casefold()}]
    kept_facts = chosen if by_names and chosen else facts
    answer = _json({"fact": kept_facts})
    return f"[[ ## fact_after_filter ## ]]\n{answer}\n\n[[ ## completed ## ]]"


# ── the table ───────────────────────────────────────────────────────────────────


def _last_turn(prompt: Prompt) -> str:
    return prompt.last


def _first_turn(prompt: Prompt) -> str:
    return prompt.turns[0]


def _no_example(prompt: Prompt) -> str:
    return ""


_TUPLES = Format(
    kind=_tuple_kind,
    source=_first_turn,
    rows=_tuple_rows,
    nothing=TUPLE_END,
    keywords=_tuple_keywords,
    example=_tuple_example,
    summary=_tuple_summary,
)
_OURS = Format(
    kind=_our_kind,
    source=_first_turn,
    rows=_our_rows,
    nothing='{"type":"done","entities":0,"relationships":0}',
    keywords=_our_keywords,
    example=_our_example,
)
FORMATS: Mapping[str, Format] = {
    "ours": _OURS,
    "vectors": _OURS,  # which asks no model
    "lightrag": Format(
        kind=_light_kind,
        source=_first_turn,
        rows=_light_rows,
        nothing=LIGHT_END,
        keywords=_our_keywords,
        example=_light_example,
    ),
    "nano": _TUPLES,
    "graphrag": replace(_TUPLES, rows=_unquoted_rows),
    "fast": Format(
        kind=_fast_kind,
        source=_last_turn,
        rows=_fast_rows,
        nothing=_fast_rows([]),
        keywords=_fast_keywords,
        example=_fast_example,
        summary=_fast_summary,
    ),
    "hipporag": Format(
        kind=_hippo_kind,
        source=_last_turn,
        rows=_hippo_rows,
        nothing=_hippo_rows([]),
        keywords=_our_keywords,
        example=_no_example,
    ),
}
