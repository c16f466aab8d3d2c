"""A model behind a server that reads as `read_all` does."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lightrag_jsonl import Document, Message
from lightrag_jsonl.testing import Request
from tests.kit import pending_document
from tests.servers import Reply, chat_reply
from tests.servers import Request as Posted
from tests.tools.test_merging import read_all

# A node that is gone is noticed after a second; one that a busy machine keeps waiting has half a minute.
# No workers that nobody has asked for.
QUICK = {
    "RAY_health_check_initial_delay_ms": "500",
    "RAY_health_check_period_ms": "200",
    "RAY_health_check_timeout_ms": "6000",
    "RAY_health_check_failure_threshold": "5",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_prestart_worker_first_driver": "0",
}


def answer(posted: Posted) -> Reply:
    turns = tuple(Message(one["role"], one["content"]) for one in posted.json["messages"])
    return replace(chat_reply(read_all(Request(turns, "text", None))), delay=0.05)


async def insert_only(rag: Any, given: Sequence[Document]) -> None:
    """Insert without summaries, as a driver that is killed before it writes them."""
    await rag.engine.indexing.insert([pending_document(one) for one in given], summarize=False)


async def insert_then_summarize(rag: Any, given: Sequence[Document]) -> None:
    """Insert as a cluster does, but at once: all documents first, then all summaries."""
    await insert_only(rag, given)
    await rag.admin.summarize()
