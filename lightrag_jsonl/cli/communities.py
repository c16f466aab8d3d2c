"""`communities`: the parts of the graph, and reports on them by a model."""

from dataclasses import asdict

from lightrag_jsonl import LightRAG
from lightrag_jsonl.cli.group import CommandOutput, index_command, main
from lightrag_jsonl.cli.options import POSITIVE, models, option
from lightrag_jsonl.cli.output import agreed_cost, table
from lightrag_jsonl.core.answers import Community

PRINTED_NAMES = 8  # of the entities of a community


@main.group()
def communities_group() -> None:
    """List the communities of the graph, and write reports on them."""


@index_command(
    option("-n --limit", "The maximum number.", POSITIVE, default=100, show_default=True),
    name="list",
    group=communities_group,
)
def list_communities(rag: LightRAG, limit: int) -> CommandOutput:
    """List the communities, the largest first, each followed by its parts, with their reports."""
    communities = rag.communities.list()[:limit]
    rows = [
        {
            "level": community.level,
            "entities": "; ".join(community.entities[:PRINTED_NAMES]),
            "passages": len(community.chunk_ids),
            "report": community.report.title if community.report else "",
        }
        for community in communities
    ]
    return CommandOutput(communities, table(rows, "level", "entities", "passages", "report"))


@index_command(
    option("--yes", "Start without confirmation.", is_flag=True),
    models,
    name="report",
    group=communities_group,
)
def report_communities(rag: LightRAG, yes: bool) -> CommandOutput:
    """Let the model write the reports that are missing or out of date; prints an estimate first."""
    estimate = rag.communities.estimate_report()
    if not estimate.calls:
        return CommandOutput([], "every larger community has a report")
    work = f"write {estimate.calls} reports"
    cost = agreed_cost(rag, work, estimate, ["summarize"], is_agreed=yes)
    run = rag.communities.report()
    notes = [f"written: {run.usage.calls} calls (estimated: {cost})", *run.failures]
    display = "\n\n".join(map(_report_text, run.communities))
    return CommandOutput(
        [asdict(community) for community in run.communities],
        display,
        status=1 if run.failures else 0,
        notes=notes,
    )


def _report_text(community: Community) -> str:
    """A report for people: title, summary, and a line for each finding."""
    report = community.report
    if report is None:
        return community.title
    findings = [f"- {finding.text}" for finding in report.findings]
    return "\n".join([report.title, report.summary, *findings])
