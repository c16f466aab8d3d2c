"""Reports on communities by a model: written on request, cited, and kept by the content of a community.

A report is stored among the cached answers, by the passages of its community. So the report is
found as long as the passages are the same, with any model; after a change of the passages, the
next request writes the report anew. A purge deletes reports like all answers with possible quotes
of deleted documents.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from lightrag_jsonl.core.aio import finish_all
from lightrag_jsonl.core.answers import Community, CommunityReport, Finding
from lightrag_jsonl.core.errors import LightRAGError
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.types import Chunk, Completion, Json, Record
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.lenses.communities import CommunityMemory, CommunityRows, load_communities
from lightrag_jsonl.lenses.excerpts import ExcerptChoice, split_sentences
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.retrieval.context_writer import escaped, excerpt_text
from lightrag_jsonl.retrieval.filtering import names_in_chunks, with_filter
from lightrag_jsonl.retrieval.task import SearchTask
from lightrag_jsonl.storage.store import CompletionCache
from lightrag_jsonl.storage.views import Snapshot, StoreView
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import on_one_line
from lightrag_jsonl.text.terms import is_grammatical, search_terms

REPORT_PROMPT = "community-report"
# Budgets, not tuned.
PASSAGE_TOKENS = 4_000  # read for a report
FRAME_TOKENS = 6  # around the excerpts of a passage
REPORT_TOKENS = 400  # written for a report, as estimated
FRAMING_TOKENS = 8  # added by the chat format to the two messages
NAMES_LISTED = 40  # of entities, listed in the prompt
LEAST_ENTITIES = 3  # of a community; its passages say as much as a report on fewer

_ANY_LETTER = pattern_of(r"[^\W\d_]")
_PASSAGE_NUMBER = pattern_of(r"\d{1,6}")
_CITED = pattern_of(r"(?<!\s)\s*[\[［【][\d\s,，、;；-]{1,80}[\]］】]")


class ReportTask(Struct, frozen=True, kw_only=True):
    """A community without a report, and the material of the report for a model.

    `passages` are numbered excerpts as lines, of the chunks `chunk_ids`; `document` is the id of the
    only document quoted, or None.
    """

    community: Community
    passages: tuple[str, ...]
    chunk_ids: tuple[str, ...]
    document: str | None


class ReportRun(Struct, frozen=True):
    """The communities with a new report, the reasons of failed reports, and the cost."""

    communities: tuple[Community, ...] = ()
    failures: tuple[str, ...] = ()
    usage: Usage = Usage()


class WrittenFinding(msgspec.Struct):
    """A finding in the model's words, normalized."""

    text: str
    passages: list[int]


class WrittenReport(msgspec.Struct):
    """A report in the model's words, normalized; unknown fields are left out."""

    title: str
    summary: str
    findings: list[WrittenFinding]


def reported_communities(
    snapshot: Snapshot, memory: CommunityMemory, where: Mapping[str, Any] | None = None
) -> tuple[Community, ...]:
    """The communities of what a filter lets through, the largest first, each followed by its parts; with the reports
    that there are.
    """
    param = QueryParam(mode="overview", where=where or {})
    task = with_filter(SearchTask.without_question(snapshot, param))
    return with_reports(snapshot, load_communities(task, memory.communities(task)))


def with_reports(view: StoreView, communities: Iterable[Community]) -> tuple[Community, ...]:
    """The communities, each with the stored report, if any."""
    described: list[Community] = []
    for community in communities:
        completion = view.completion(_report_key(community))
        if completion is not None:
            report = msgspec.json.decode(completion.text, type=CommunityReport)
            community = replace(community, report=report)
        described.append(community)
    return tuple(described)


def cited_chunk_ids(communities: Iterable[Community]) -> frozenset[str]:
    """The ids of the chunks cited in the reports of communities."""
    reports = [community.report for community in communities if community.report is not None]
    findings = [finding for report in reports for finding in report.findings]
    return frozenset([id for finding in findings for id in finding.chunk_ids])


def lacks_report(community: Community) -> bool:
    """Whether a report on a community is missing: of level 0, large enough, and none is stored."""
    is_large = len(community.entities) >= LEAST_ENTITIES
    return community.report is None and community.level == 0 and is_large


def find_report_tasks(
    task: SearchTask, memory: CommunityMemory, tokenizer: Tokenizer
) -> list[ReportTask]:
    """The communities of level 0 without a report and large enough for a report."""
    rows = memory.communities(task)
    communities = [community for community in load_communities(task, rows) if not community.level]
    report_tasks: list[ReportTask] = []
    for community, community_rows in zip(
        with_reports(task.snapshot, communities), rows, strict=True
    ):
        if lacks_report(community):
            report_task = _report_task(task, community, community_rows, tokenizer)
            if report_task.passages:
                report_tasks.append(report_task)
    return report_tasks


def estimate_reports(
    report_tasks: Sequence[ReportTask],
    client: ModelClient,
    count: Callable[[str], int],
    language: str,
) -> Usage:
    """The calls and tokens of reports; `ConfigError` without a model."""
    _ = client.model("summarize")  # rather than after somebody agreed to the price
    total = Usage()
    for report_task in report_tasks:
        messages = client.prompts.render(REPORT_PROMPT, _prompt_variables(report_task, language))
        input_tokens = FRAMING_TOKENS + sum([count(message.content) for message in messages])
        total += Usage(input_tokens, REPORT_TOKENS, calls=1)
    return total


async def write_reports(
    report_tasks: Sequence[ReportTask], client: ModelClient, cache: CompletionCache, language: str
) -> ReportRun:
    """Write and store the reports; a failed report is named, and asked for again next time."""
    meter = UsageMeter()
    failures: list[str] = []

    example = _telling_words("\n".join(client.prompts.prompt(REPORT_PROMPT).example_lines))

    async def write_report(report_task: ReportTask) -> Community | None:
        variables = _prompt_variables(report_task, language)
        read_words = _telling_words("\n".join(report_task.passages))
        try:
            value = await client.json(
                REPORT_PROMPT,
                variables,
                meter,
                normalize=partial(
                    normalized_report,
                    passages=len(report_task.chunk_ids),
                    foreign_words=example - read_words,
                ),
                document=report_task.document,
            )
            written = msgspec.convert(value, WrittenReport)
            report = _report(written, report_task.chunk_ids)
        except LightRAGError as error:
            failures.append(f"{report_task.community.title}: {error}")
            return None
        text = msgspec.json.encode(report).decode()
        key = _report_key(report_task.community)
        await cache.put(key, Completion(text), report_task.document)
        return replace(report_task.community, report=report)

    with meter.attach_usage():
        results = await finish_all(map(write_report, report_tasks))
    communities = tuple([community for community in results if community is not None])
    return ReportRun(communities, tuple(sorted(failures)), meter.spent)


# ── what the model reads ────────────────────────────────────────────────────────


def _report_task(
    task: SearchTask, community: Community, rows: CommunityRows, tokenizer: Tokenizer
) -> ReportTask:
    """The material of a community for a model: central sentences of the passages, within the budget."""
    stored_chunks = task.snapshot.chunks(rows.chunks.tolist())
    names = names_in_chunks(task, rows.chunks)
    chunks = [stored_chunks[row] for row in rows.chunks.tolist()]
    choice = ExcerptChoice(
        split_sentences(chunks, [names[row] for row in rows.chunks.tolist()]),
        question_terms=frozenset(),
        chunk_weights=[1.0] * len(chunks),
    )
    spans = choice.choose(PASSAGE_TOKENS, FRAME_TOKENS)
    quoted_chunks = [chunks[position] for position in spans]
    lines = [
        f"[{number}] {_excerpt_line(chunks[position], spans[position])}"
        for number, position in enumerate(spans, start=1)
    ]
    documents = {chunk.document_id for chunk in quoted_chunks}
    return ReportTask(
        community=community,
        passages=tuple(lines),
        chunk_ids=tuple([chunk.id for chunk in quoted_chunks]),
        document=documents.pop() if len(documents) == 1 else None,
    )


def _excerpt_line(chunk: Chunk, spans: Sequence[tuple[int, int]]) -> str:
    return escaped(on_one_line(excerpt_text(chunk, spans)))


def _prompt_variables(report_task: ReportTask, language: str) -> dict[str, object]:
    return {
        "entities": [on_one_line(name) for name in report_task.community.entities[:NAMES_LISTED]],
        "passages": report_task.passages,
        "language": language,
    }


def _report_key(community: Community) -> bytes:
    """The key of a report among the cached answers: by the passages, whose ids depend on their texts, so
    that new names in the same passages renew no report.
    """
    passages = repr((REPORT_PROMPT, sorted(community.chunk_ids)))
    return sha256(passages.encode("utf-8", "backslashreplace")).digest()


# ── what the model wrote ────────────────────────────────────────────────────────


def normalized_report(
    value: Json, passages: int, foreign_words: frozenset[str] = frozenset()
) -> Json:
    """A report as the schema has it: findings as objects, each with numbers of the `passages` read; a
    finding without such a number, or without words, is left out. A single passage needs no number.

    `foreign_words` are those of the prompt's example that no passage has: texts made of them are
    copies, which small models write, and are left out.
    """
    if not isinstance(value, dict):
        return value
    report = {
        name: field
        for name, field in value.items()
        if not (isinstance(field, str) and _is_copied(field, foreign_words))
    }
    findings = value.get("findings")
    if not isinstance(findings, list):
        return report
    normalized_findings = [_normalized_finding(finding, passages) for finding in findings]
    report["findings"] = [
        finding
        for finding in normalized_findings
        if finding["passages"] and not _is_copied(str(finding["text"]), foreign_words)
    ]
    return report


def _is_copied(text: str, foreign_words: frozenset[str]) -> bool:
    """Whether most of the content words are foreign."""
    words = _telling_words(text)
    return 2 * len(words & foreign_words) > len(words)


def _telling_words(text: str) -> frozenset[str]:
    return frozenset(word for word in search_terms(text) if not is_grammatical(word))


def _normalized_finding(finding: Json, passages: int) -> Record:
    """A finding with the numbers of passages that stand in its list or, as [3], in its text."""
    fields: Mapping[str, Json] = finding if isinstance(finding, dict) else {"text": finding}
    text = fields.get("text")
    if not isinstance(text, str):
        return {"text": "", "passages": []}
    words = on_one_line(_CITED.sub("", text).strip())
    if not _ANY_LETTER.search(words):
        return {"text": "", "passages": []}
    in_text = " ".join(_CITED.findall(text))
    digits = _PASSAGE_NUMBER.findall(f"{fields.get('passages', '')} {in_text}")
    numbers = [number for number in map(int, digits) if 0 < number <= passages]
    if passages == 1 and not digits:
        numbers = [1]
    return {"text": words, "passages": [*numbers]}


def _report(written: WrittenReport, chunk_ids: Sequence[str]) -> CommunityReport:
    """The report with ids of passages in place of numbers."""
    findings: list[Finding] = []
    for finding in written.findings:
        cited_ids = [chunk_ids[number - 1] for number in finding.passages]
        findings.append(Finding(finding.text, tuple(dict.fromkeys(cited_ids))))
    return CommunityReport(
        title=on_one_line(written.title),
        summary=on_one_line(written.summary),
        findings=tuple(findings),
    )
